//! The leader's rule, row by row.

mod answers;
mod changes;
mod copies;
mod proofs;
mod stores;
mod voters;

use super::{Evidence, Policy, Release, change_voters, grant, release, return_to_holder, revoke};
use crate::message::Ack;
use crate::name::{Instance, Member, Site};
use crate::record::{Cause, Epoch, Holder, Phase, ProofKind, Record, Settings, VoterSet};
use crate::time::{Boot, Millis, Now, Wall};
use std::collections::BTreeMap;

const SECOND: u64 = 1000;

/// Lease 20 s, margin 1 % and 3 s.
const RUN_OUT: u64 = 23_200;

/// When the leader of a test was elected.
const ELECTED: u64 = 1000 * SECOND;

fn member(site: &str) -> Member {
    instance(site, "s1")
}

fn instance(site: &str, store: &str) -> Member {
    Member { site: Site::new(site), instance: Instance::new(&format!("pod-{site}-{store}"), store) }
}

fn members(sites: &[&str]) -> Vec<Member> {
    sites.iter().copied().map(member).collect()
}

fn settings(min_peers: u32) -> Settings {
    Settings { lease_timeout: Millis(20 * SECOND), min_peers }
}

/// Epoch 5, tenure 5, of the first of these sites, Stable, one voter set.
fn stable(sites: &[&str], min_peers: u32) -> Record {
    let voters = members(sites);
    let settings = settings(min_peers);
    Record {
        epoch: 5,
        tenure: 5,
        seat: voters.first().cloned(),
        phase: Phase::Stable,
        voters: voters.clone(),
        settings,
        since: Wall(0),
        cause: Cause::Bootstrap,
        proof: None,
        revoked_at: None,
        holder: voters.first().map(|holder| Holder {
            member: holder.clone(),
            server_uuid: Some("a".to_owned()),
            sets: vec![VoterSet { epoch: 5, voters: voters.clone(), settings }],
            sql_fence_sent: false,
        }),
        ended: Vec::new(),
    }
}

/// The same, revoked: epoch 6.
fn revoked(sites: &[&str], min_peers: u32) -> Record {
    revoke(&stable(sites, min_peers), Cause::Emergency, Wall(0))
}

/// An acknowledgement of a sidecar that has lived for ten minutes and vouched for nobody.
fn ack(from: &Member, epoch: Epoch) -> Ack {
    Ack {
        from: from.clone(),
        epoch: Some(epoch),
        fenced: false,
        gtid: None,
        fenced_by: None,
        opened_by_hand: false,
        conflict: false,
        mysqld: None,
        last_vouch: BTreeMap::new(),
        last_answer: BTreeMap::new(),
        uptime: Millis(600 * SECOND),
    }
}

fn fenced(from: &Member, epoch: Epoch) -> Ack {
    Ack { fenced: true, ..ack(from, epoch) }
}

/// It vouched for that site so long ago.
fn vouched(from: &Member, epoch: Epoch, site: &str, age: u64) -> Ack {
    let mut ack = ack(from, epoch);
    ack.last_vouch.insert(Site::new(site), Millis(age));
    ack
}

fn at(boot: u64) -> Now {
    Now { boot: Boot(boot), wall: Wall(7) }
}

/// What is proven at that moment, or when time alone will have proven it.
fn proof_at(record: &Record, evidence: &Evidence, policy: Policy, boot: u64) -> Result<ProofKind, Option<u64>> {
    match release(record, evidence, policy, at(boot)) {
        Ok(release) => Ok(release.proof().expect("about a holder").kind),
        Err(missing) => Err(missing.until.map(|until| until.0)),
    }
}

fn required(record: &Record, evidence: &Evidence, boot: u64) -> Result<ProofKind, Option<u64>> {
    proof_at(record, evidence, Policy::Required, boot)
}

/// A release by the holder's own fenced acknowledgement.
fn released(record: &Record) -> Release {
    let mut evidence = Evidence::new(Boot(ELECTED));
    let holder = record.holder.as_ref().expect("a holder").member.clone();
    evidence.take(record, &fenced(&holder, record.epoch), Boot(ELECTED), Millis(0));
    release(record, &evidence, Policy::Required, at(ELECTED)).expect("released")
}

/// The way back, by the holder's acknowledgement.
fn way_back(record: &Record) -> Release {
    let mut evidence = Evidence::new(Boot(ELECTED));
    let holder = record.holder.as_ref().expect("a holder").member.clone();
    evidence.take(record, &ack(&holder, record.epoch), Boot(ELECTED), Millis(0));
    return_to_holder(record, &evidence).expect("it knows")
}

fn set_epochs(record: &Record) -> Vec<Epoch> {
    record.holder.iter().flat_map(|holder| &holder.sets).map(|set| set.epoch).collect()
}

fn with_voters(record: &Record, voters: &[Member]) -> Record {
    change_voters(record, voters.to_vec(), Wall(0)).expect("these voters")
}

fn granted(record: &Record, to: &Member, release: &Release) -> Record {
    grant(record, to, release, Cause::Emergency, Wall(0)).expect("granted")
}
