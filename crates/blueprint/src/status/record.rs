//! The record of who may write, in the form that both copies have.
//!
//! In: the brain's record, or the API's. Out: one from the other. Must not: pass on a record that contradicts itself: who
//! half edited one by hand is told so, and authority stays where it is.

use bloodraven_api::group::status as shown;
use bloodraven_brain::name::{Instance, Member, Site};
use bloodraven_brain::record::{Ended, Epoch, Holder, Phase, Proof, ProofKind, Record, Settings, VoterSet};

use super::fault::{Fault, each};
use super::fields::{missing, number, required_time};
use crate::measure;
use crate::words::Word;

pub(super) fn write(record: &Record) -> Result<shown::Authority, Fault> {
    check(record)?;
    let Record { epoch, tenure, seat, phase, voters, settings, since, cause, proof, revoked_at, holder, ended } =
        record;
    let seat = seat.as_ref().map(write_member).transpose()?;
    let (site, instance) = seat.map(|seat| (seat.site, seat.instance)).unwrap_or_default();
    Ok(shown::Authority {
        epoch: write_epoch("epoch", *epoch)?,
        tenure: write_epoch("tenure", *tenure)?,
        site,
        instance,
        phase: phase.twin(),
        voters: each("voters", voters, write_member)?,
        lease_timeout: Some(measure::duration(settings.lease_timeout)),
        min_peers: Some(settings.min_peers),
        since: Some(measure::time(*since)),
        cause: cause.twin(),
        proof: proof.as_ref().map(write_proof).transpose().map_err(|fault| fault.within("proof"))?,
        revoked_at: revoked_at.map(|epoch| write_epoch("revokedAt", epoch)).transpose()?,
        holder: holder.as_ref().map(write_holder).transpose().map_err(|fault| fault.within("holder"))?,
        ended: each("ended", ended, write_ended)?,
    })
}

pub(super) fn read(authority: &shown::Authority) -> Result<Record, Fault> {
    let epoch = number("epoch", authority.epoch)?;
    let read = |holder| read_holder(holder, epoch).map_err(|fault| fault.within("holder"));
    let holder = authority.holder.as_ref().map(read).transpose()?;
    let record = Record {
        epoch,
        tenure: number("tenure", authority.tenure)?,
        seat: read_seat(&authority.site, &authority.instance)?,
        phase: Word::of(authority.phase),
        voters: each("voters", &authority.voters, read_voter)?,
        settings: read_settings(authority, holder.as_ref())?,
        since: required_time("since", authority.since.as_ref())?,
        cause: Word::of(authority.cause),
        proof: authority.proof.as_ref().map(read_proof).transpose().map_err(|fault| fault.within("proof"))?,
        revoked_at: authority.revoked_at.map(|epoch| number("revokedAt", epoch)).transpose()?,
        holder,
        ended: each("ended", &authority.ended, read_ended)?,
    };
    check(&record)?;
    Ok(record)
}

/// What every record has that the leader's rules make. Only a hand or a defect makes another.
fn check(record: &Record) -> Result<(), Fault> {
    let revoking = record.phase == Phase::Revoking;
    let broken = [
        (record.epoch == 0, "epoch", "is 0; the first epoch is 1"),
        (record.tenure > record.epoch, "tenure", "is above the epoch"),
        (revoking && record.seat.is_some(), "site", "names somebody while nobody may write (Revoking)"),
        (!revoking && record.seat.is_none(), "site", "names nobody, but the phase is not Revoking"),
        (revoking && record.revoked_at.is_none(), "revokedAt", "is missing while Revoking"),
        (!revoking && record.revoked_at.is_some(), "revokedAt", "is there, but the phase is not Revoking"),
        (record.revoked_at.is_some_and(|first| first > record.epoch), "revokedAt", "is above the epoch"),
    ];
    match broken.into_iter().find(|(broken, ..)| *broken) {
        Some((_, field, because)) => Err(Fault::new(field, because)),
        None => Ok(()),
    }
}

fn write_epoch(field: &str, epoch: Epoch) -> Result<i64, Fault> {
    i64::try_from(epoch).map_err(|_| Fault::new(field, format!("{epoch} is more than 63 bits can hold")))
}

fn write_member(member: &Member) -> Result<shown::InstanceRef, Fault> {
    let Member { site, instance } = member;
    let text = instance.to_string();
    if site.as_str().is_empty() || Instance::parse(&text).as_ref() != Some(instance) {
        return Err(Fault::new("instance", format!("{member} has no name that could be read back")));
    }
    Ok(shown::InstanceRef { site: site.to_string(), instance: text })
}

fn read_member(site: &str, instance: &str) -> Result<Member, Fault> {
    if site.is_empty() {
        return Err(Fault::new("site", "names no site"));
    }
    let life = Instance::parse(instance)
        .ok_or_else(|| Fault::new("instance", format!("is {instance:?}, which is no <pod UID>/<store id>")))?;
    Ok(Member::new(&Site::new(site), &life))
}

fn read_voter(voter: &shown::InstanceRef) -> Result<Member, Fault> {
    read_member(&voter.site, &voter.instance)
}

fn read_seat(site: &str, instance: &str) -> Result<Option<Member>, Fault> {
    if site.is_empty() && instance.is_empty() { Ok(None) } else { read_member(site, instance).map(Some) }
}

/// Those of this epoch; a record of an older version has them in its newest set only.
fn read_settings(authority: &shown::Authority, holder: Option<&Holder>) -> Result<Settings, Fault> {
    let newest = holder.and_then(|holder| holder.sets.last()).map(|set| set.settings);
    let lease_timeout = authority.lease_timeout.map(measure::millis);
    Ok(Settings {
        lease_timeout: lease_timeout
            .or(newest.map(|newest| newest.lease_timeout))
            .ok_or_else(|| missing("leaseTimeout"))?,
        min_peers: authority.min_peers.or(newest.map(|newest| newest.min_peers)).ok_or_else(|| missing("minPeers"))?,
    })
}

fn write_proof(proof: &Proof) -> Result<shown::ReleaseProof, Fault> {
    let Proof { kind, about, at } = proof;
    let shown::InstanceRef { site, instance } = write_member(about)?;
    let evidence = match kind {
        ProofKind::FencedBySidecar => format!("the sidecar of {about} itself acknowledged the revocation, fenced"),
        ProofKind::ProcessEnded => format!("{about} has ended: nothing of it runs or can start again"),
        ProofKind::LeaseExpired => {
            format!("nobody is left who could prolong the lease of {about}, and the lease had run out by {at}")
        }
        ProofKind::Assumed => format!(
            "the time of a lease had passed by {at} without enough acknowledgements about {about}; \
             spec.promotion.proof: BestEffort allows it"
        ),
    };
    Ok(shown::ReleaseProof { kind: kind.twin(), site, instance, at: measure::time(*at), evidence })
}

fn read_proof(proof: &shown::ReleaseProof) -> Result<Proof, Fault> {
    let about = read_member(&proof.site, &proof.instance)?;
    Ok(Proof { kind: Word::of(proof.kind), about, at: measure::wall(&proof.at) })
}

fn write_holder(holder: &Holder) -> Result<shown::Holder, Fault> {
    let Holder { member, server_uuid, sets, sql_fence_sent } = holder;
    let shown::InstanceRef { site, instance } = write_member(member)?;
    Ok(shown::Holder {
        site,
        instance,
        server_uuid: server_uuid.clone(),
        sets: each("sets", sets, write_set)?,
        sql_fence_sent: *sql_fence_sent,
    })
}

fn read_holder(holder: &shown::Holder, epoch: Epoch) -> Result<Holder, Fault> {
    Ok(Holder {
        member: read_member(&holder.site, &holder.instance)?,
        server_uuid: holder.server_uuid.clone(),
        sets: each("sets", &holder.sets, |set| read_set(set, epoch))?,
        sql_fence_sent: holder.sql_fence_sent,
    })
}

fn write_set(set: &VoterSet) -> Result<shown::VoterSet, Fault> {
    let VoterSet { epoch, voters, settings: Settings { lease_timeout, min_peers } } = set;
    Ok(shown::VoterSet {
        epoch: Some(write_epoch("epoch", *epoch)?),
        voters: each("voters", voters, write_member)?,
        lease_timeout: measure::duration(*lease_timeout),
        min_peers: *min_peers,
    })
}

/// A set of an older version has no epoch: with the record's own it stays until a later one is acknowledged.
fn read_set(set: &shown::VoterSet, record_epoch: Epoch) -> Result<VoterSet, Fault> {
    Ok(VoterSet {
        epoch: set.epoch.map_or(Ok(record_epoch), |epoch| number("epoch", epoch))?,
        voters: each("voters", &set.voters, read_voter)?,
        settings: Settings { lease_timeout: measure::millis(set.lease_timeout), min_peers: set.min_peers },
    })
}

fn write_ended(ended: &Ended) -> Result<shown::EndedInstance, Fault> {
    let shown::InstanceRef { site, instance } = write_member(&ended.member)?;
    Ok(shown::EndedInstance { site, instance, at: measure::time(ended.at) })
}

fn read_ended(ended: &shown::EndedInstance) -> Result<Ended, Fault> {
    Ok(Ended { member: read_member(&ended.site, &ended.instance)?, at: measure::wall(&ended.at) })
}
