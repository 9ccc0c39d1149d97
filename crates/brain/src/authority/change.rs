//! What may follow upon what. Every function returns the next record; nothing is in force until it is persisted.

use super::proof::{Release, Scope};
use crate::name::Member;
use crate::record::{Cause, Ended, Epoch, Holder, Phase, Proof, ProofKind, Record, Settings, VoterSet};
use crate::rule::{Rule, holds, off};
use crate::time::Wall;

/// Why a change may not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refused {
    /// Authority is given only out of the run of Revoking that the release was found in.
    NotThisRun,
    /// The record lists no such instance, or it has ended; it has to be taken in as a voter first.
    NotListed,
    /// The release allows the way back to the holder, nothing else.
    NotReleased,
    /// Never fewer voters than the holder and one more.
    TooFewVoters,
    /// The holder stays a voter.
    HolderMissing,
}

/// Takes authority away: a new Revoking epoch. `holder` stays, for the proof has to be about it. Within a run of Revoking
/// a proof stays too: nobody was given anything since it was found.
pub fn revoke(record: &Record, cause: Cause, now: Wall) -> Record {
    let epoch = next_epoch(record.epoch);
    let in_run = record.phase == Phase::Revoking;
    Record {
        epoch,
        seat: None,
        phase: Phase::Revoking,
        revoked_at: record.revoked_at.filter(|_| !off(Rule::RunHasOneStart)).or(Some(epoch)),
        proof: record.proof.clone().filter(|_| holds(Rule::ProofDiesWithRun, in_run)),
        since: now,
        cause,
        holder: record.holder.clone().filter(|_| !off(Rule::HolderStays)),
        ..record.clone()
    }
}

/// Epochs are never reused. At the end of the numbers the same one comes again, contradicts what was stored under it,
/// and so closes every server; a wrap to zero would be obeyed by nobody and hidden from everybody.
fn next_epoch(epoch: Epoch) -> Epoch {
    if off(Rule::EpochPerChange) { epoch } else { epoch.saturating_add(1) }
}

/// A Revoking record for a group that has none, or whose record went back in time: above every epoch heard, with
/// nobody known as the holder, so that every site counts as a possible one.
pub fn start_over(highest: Epoch, voters: Vec<Member>, settings: Settings, cause: Cause, now: Wall) -> Record {
    let epoch = if off(Rule::StartAboveAll) { 1 } else { next_epoch(highest) };
    Record {
        epoch,
        tenure: 0,
        seat: None,
        phase: Phase::Revoking,
        voters,
        settings,
        since: now,
        cause,
        proof: None,
        revoked_at: Some(epoch),
        holder: None,
        ended: Vec::new(),
    }
}

/// Writes down the proof as soon as it is found, so that a new leader need not find it again. The epoch stays. The first
/// one stays, too, unless it was only assumed.
pub fn note_proof(record: &Record, release: &Release) -> Record {
    let fits = release.revoked_at == record.revoked_at && record.phase == Phase::Revoking;
    let found = release.proof().filter(|_| fits).cloned();
    let noted = record.proof.clone();
    let assumed = |proof: &Proof| proof.kind == ProofKind::Assumed;
    let proof = if noted.as_ref().is_none_or(assumed) { found.or(noted) } else { noted };
    Record { proof, ..record.clone() }
}

/// Gives authority to `target` under a new tenure. The same instance as the last holder keeps its old sets beside the
/// new one, for it may still hold them; another one needs a release by that holder.
pub fn grant(record: &Record, target: &Member, release: &Release, cause: Cause, now: Wall) -> Result<Record, Refused> {
    let in_its_run = record.phase == Phase::Revoking && release.revoked_at == record.revoked_at;
    if !holds(Rule::GrantInItsRun, in_its_run) {
        return Err(Refused::NotThisRun);
    }
    // Without a known holder the release is about the very voters it was found with.
    let same_voters = record.holder.is_some() || release.epoch == record.epoch;
    if !holds(Rule::ReleaseCoversItsVoters, same_voters) {
        return Err(Refused::NotThisRun);
    }
    let listed = holds(Rule::GrantToListed, record.voters.contains(target));
    if !listed || !holds(Rule::GrantToLiving, !record.has_ended(target)) {
        return Err(Refused::NotListed);
    }
    let epoch = next_epoch(record.epoch);
    let set = VoterSet { epoch, voters: record.voters.clone(), settings: record.settings };
    let holder = match (&record.holder, &release.scope) {
        (Some(holder), _) if holder.member == *target && !off(Rule::ReturnKeepsSets) => {
            let mut sets = holder.sets.clone();
            sets.push(set);
            // Its own SQL fence may still be on its way to that very server.
            let sql_fence_sent = holder.sql_fence_sent && !off(Rule::ReturnKeepsNote);
            Holder { sets, sql_fence_sent, ..holder.clone() }
        }
        (_, scope) if holds(Rule::HolderNeedsRelease, allows(scope, target)) => {
            Holder { member: target.clone(), server_uuid: None, sets: vec![set], sql_fence_sent: false }
        }
        _ => return Err(Refused::NotReleased),
    };
    let next = Record {
        epoch,
        tenure: epoch,
        seat: Some(target.clone()),
        phase: Phase::Granting,
        since: now,
        cause,
        proof: release.proof().cloned(),
        revoked_at: None,
        holder: Some(holder),
        ..record.clone()
    };
    Ok(without_forgotten_ends(next))
}

/// Whether that release lets this instance have authority.
fn allows(scope: &Scope, target: &Member) -> bool {
    match scope {
        Scope::Anyone(_) => true,
        Scope::Holder(holder) => holder == target,
    }
}

/// Opened and read back.
pub fn settle(record: &Record) -> Record {
    match record.phase {
        Phase::Granting => Record { phase: Phase::Stable, ..record.clone() },
        Phase::Revoking | Phase::Stable => record.clone(),
    }
}

/// Another set of voters under a new epoch of the same tenure. While Revoking the holder's sets do not grow from it.
/// Never fewer than the holder and one more, unless there never were as many.
pub fn change_voters(record: &Record, voters: Vec<Member>, now: Wall) -> Result<Record, Refused> {
    let enough = !voters.is_empty() && voters.len() >= record.voters.len().min(2);
    if !holds(Rule::TwoVoters, enough) {
        return Err(Refused::TooFewVoters);
    }
    if !holds(Rule::SeatStaysVoter, record.seat.as_ref().is_none_or(|seat| voters.contains(seat))) {
        return Err(Refused::HolderMissing);
    }
    Ok(next_set(record, voters, record.settings, Cause::Voters, now))
}

/// Other lease settings under a new epoch of the same tenure.
pub fn change_settings(record: &Record, settings: Settings, now: Wall) -> Record {
    if off(Rule::SettingsAreAnEpoch) {
        return Record { settings, ..record.clone() };
    }
    next_set(record, record.voters.clone(), settings, Cause::Lease, now)
}

fn next_set(record: &Record, voters: Vec<Member>, settings: Settings, cause: Cause, now: Wall) -> Record {
    let epoch = next_epoch(record.epoch);
    // While a move is under way its own cause and proof stay: whoever leads next has to know where it was meant to end,
    // and what it rests on.
    let cause = if record.phase == Phase::Stable { cause } else { record.cause };
    let mut next = Record { epoch, voters, settings, since: now, cause, ..record.clone() };
    if holds(Rule::RevokingAddsNoSet, next.phase != Phase::Revoking) {
        next.proof = next.proof.filter(|_| record.phase != Phase::Stable);
        if let Some(holder) = &mut next.holder {
            if off(Rule::SetsAreAdded) {
                holder.sets.clear();
            }
            holder.sets.push(VoterSet { epoch, voters: next.voters.clone(), settings });
        }
    }
    without_forgotten_ends(next)
}

/// Writes down that an instance has ended. The epoch stays: nobody's rights change by it. The leader that saw the end
/// tells it to [`super::Evidence::take_end`] first: an end that it did not see counts from its election, which is too
/// early for one that it did.
pub fn note_end(record: &Record, member: &Member, at: Wall) -> Record {
    let mut next = record.clone();
    if next.lists(member) && !next.has_ended(member) {
        next.ended.push(Ended { member: member.clone(), at });
    }
    next
}

/// Drops the sets that the holder can no longer hold; the newest stays.
pub fn drop_sets(record: &Record, gone: &[Epoch]) -> Record {
    let mut next = record.clone();
    if let Some(holder) = &mut next.holder {
        let newest = holder.sets.iter().map(|set| set.epoch).max();
        let newest = newest.filter(|_| !off(Rule::NewestSetStays));
        holder.sets.retain(|set| Some(set.epoch) == newest || !gone.contains(&set.epoch));
    }
    without_forgotten_ends(next)
}

/// Takes the note of an SQL fence off the holder: what was sent has arrived or never will. The epoch stays.
pub fn drop_fence_note(record: &Record) -> Record {
    let holder = record.holder.clone().map(|holder| Holder { sql_fence_sent: false, ..holder });
    Record { holder, ..record.clone() }
}

/// An end is remembered as long as the record names the instance anywhere.
fn without_forgotten_ends(mut record: Record) -> Record {
    let ended = std::mem::take(&mut record.ended);
    let named = |member: &Member| {
        if off(Rule::EndsStayWhileNamed) { record.voters.contains(member) } else { record.lists(member) }
    };
    record.ended = ended.into_iter().filter(|ended| named(&ended.member)).collect();
    record
}
