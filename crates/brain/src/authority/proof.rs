//! When a holder has let go. Every proof is about the holder of the present run of Revoking; without one the group holds
//! and says who is missing.

use super::Evidence;
use crate::name::Member;
use crate::record::{Epoch, Holder, Phase, Proof, ProofKind, Record, Settings, VoterSet};
use crate::rule::{Rule, holds, off};
use crate::time::{Boot, Millis, Now};
use std::collections::BTreeSet;

/// What counts as a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Policy {
    /// The default: only what excludes a second writer.
    Required,
    /// Also the mere passing of the time; the admin's choice.
    BestEffort,
}

/// Why there is no proof yet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Missing {
    /// Who did not acknowledge, and did not end.
    pub silent: Vec<Member>,
    /// When time alone completes the proof; none: it does not.
    pub until: Option<Boot>,
}

/// That authority may be given anew, in one run of Revoking. Only this module makes one, so nothing grants without.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Release {
    pub(super) revoked_at: Option<Epoch>,
    /// The epoch it was found under.
    pub(super) epoch: Epoch,
    pub(super) scope: Scope,
}

/// To whom authority may be given.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Scope {
    /// To anyone: the holder has let go, or no site can be writable.
    Anyone(Option<Proof>),
    /// To this instance alone: it is the holder itself, and it knows of the revocation.
    Holder(Member),
}

impl Release {
    /// What it rests on; none for a return to the holder and for a group without a known one.
    pub fn proof(&self) -> Option<&Proof> {
        match &self.scope {
            Scope::Anyone(proof) => proof.as_ref(),
            Scope::Holder(_) => None,
        }
    }
}

/// The proof that the holder of the present run of Revoking has let go, or what is missing. One that is in the record
/// already stays good: it was about this very run. One that was only assumed is as good as the policy of the day.
pub fn release(record: &Record, evidence: &Evidence, policy: Policy, now: Now) -> Result<Release, Missing> {
    let (Phase::Revoking, Some(holder)) = (record.phase, &record.holder) else {
        return Err(Missing { silent: Vec::new(), until: None });
    };
    let proven = |kind| Proof { kind, about: holder.member.clone(), at: now.wall };
    let good = |proof: &&Proof| {
        let accepted = proof.kind != ProofKind::Assumed || policy == Policy::BestEffort;
        accepted && proof.about == holder.member
    };
    let found = match record.proof.as_ref().filter(good) {
        Some(proof) => proof.clone(),
        None => proven(find(record, holder, evidence, policy, now)?),
    };
    Ok(release_in(record, Scope::Anyone(Some(found))))
}

/// The way back to the same instance needs no proof, only its own acknowledgement of this run of Revoking: what it
/// still holds stays in its sets.
pub fn return_to_holder(record: &Record, evidence: &Evidence) -> Option<Release> {
    let holder = &record.holder.as_ref()?.member;
    let heard = evidence.heard.get(holder).and_then(|heard| heard.epoch);
    let knows = holds(Rule::ReturnIsKnown, heard >= record.revoked_at);
    (knows && record.revoked_at.is_some() && !record.has_ended(holder))
        .then(|| release_in(record, Scope::Holder(holder.clone())))
}

fn release_in(record: &Record, scope: Scope) -> Release {
    Release { revoked_at: record.revoked_at, epoch: record.epoch, scope }
}

fn find(record: &Record, holder: &Holder, evidence: &Evidence, policy: Policy, now: Now) -> Result<ProofKind, Missing> {
    if record.has_ended(&holder.member) && !off(Rule::EndedIsEnough) {
        return Ok(ProofKind::ProcessEnded);
    }
    if evidence.acknowledged_fenced(record, &holder.member) && !off(Rule::FencedIsEnough) {
        return Ok(ProofKind::FencedBySidecar);
    }
    let longest = holder.sets.iter().filter(|_| !off(Rule::LongestLease)).map(|set| run_out(&set.settings)).max();
    let longest = longest.unwrap_or_else(|| run_out(&record.settings));
    let mut since = evidence.last_grant();
    let mut silent = BTreeSet::from([holder.member.clone()]);
    // A holder without a set is a damaged record, not a holder without a lease.
    let mut complete = !holder.sets.is_empty();
    let spared = if off(Rule::EverySet) { holder.sets.len().saturating_sub(1) } else { 0 };
    for set in holder.sets.iter().skip(spared) {
        match set_released(record, evidence, set) {
            Ok(released) => since = since.max(released),
            Err(missing) => {
                complete = false;
                silent.extend(missing);
            }
        }
    }
    let silent = silent.into_iter().collect();
    let (kind, until) = if complete {
        (ProofKind::LeaseExpired, Some(since + longest))
    } else {
        (ProofKind::Assumed, assumed_at(record, holder, evidence, policy, longest))
    };
    match until {
        Some(until) if now.boot >= until => Ok(kind),
        until => Err(Missing { silent, until }),
    }
}

/// The same time without enough acknowledgements: who is silent may have vouched until the revocation, who is not has
/// said when it last did. Counted from the last of these and the last grant that can have been.
fn assumed_at(record: &Record, holder: &Holder, evidence: &Evidence, policy: Policy, longest: Millis) -> Option<Boot> {
    let asked_for = holds(Rule::AssumedIfAsked, policy == Policy::BestEffort);
    let run = evidence.run.filter(|run| asked_for && record.revoked_at == Some(run.revoked_at))?;
    let voters = holder.sets.iter().flat_map(|set| &set.voters);
    let vouched = voters.filter_map(|voter| voter_released(record, evidence, voter)).max();
    Some(evidence.last_grant().max(run.since).max(vouched.unwrap_or_default()) + longest)
}

/// When, at the latest, that set can last have renewed the holder's lease: so many of its voters have acknowledged the
/// revocation, or ended, that those left are too few to renew it. Otherwise who is missing.
fn set_released(record: &Record, evidence: &Evidence, set: &VoterSet) -> Result<Boot, Vec<Member>> {
    let holder = record.holder.as_ref().map(|holder| &holder.member);
    let others: Vec<&Member> = set.voters.iter().filter(|voter| Some(*voter) != holder).collect();
    // V − k in a set that has the holder: so many that fewer than k others are left.
    let needed = (others.len() + 1).saturating_sub(set.settings.vouches_needed(set.voters.len()));
    let needed = if off(Rule::EnoughVoters) { 0 } else { needed };
    let mut released: Vec<Boot> = Vec::new();
    let mut missing = Vec::new();
    for voter in others {
        match voter_released(record, evidence, voter) {
            Some(at) => released.push(at),
            None => missing.push(voter.clone()),
        }
    }
    released.sort_unstable();
    match needed.checked_sub(1).map(|last| released.get(last)) {
        // The `needed` earliest: whoever is left over is too few to renew anything.
        Some(Some(at)) => Ok(*at),
        Some(None) => Err(missing),
        None => Ok(Boot(0)),
    }
}

/// When that voter can last have vouched for the holder; none: it may do so still.
fn voter_released(record: &Record, evidence: &Evidence, voter: &Member) -> Option<Boot> {
    let said = evidence.heard_in_run(record, voter).and_then(|heard| heard.released);
    let said = if off(Rule::FromLastVouch) { said.map(|_| Boot(0)) } else { said };
    // An end that this leader did not see counts from its election.
    let elected = if off(Rule::EndsFromElection) { Boot(0) } else { evidence.elected };
    let has_ended = record.has_ended(voter) && !off(Rule::EndCountsAsAck);
    let ended = has_ended.then(|| evidence.ended.get(voter).copied().unwrap_or(elected));
    match (said, ended) {
        (Some(said), Some(ended)) => Some(said.min(ended)),
        (one, other) => one.or(other),
    }
}

/// How long a lease and its margin last.
fn run_out(settings: &Settings) -> Millis {
    if off(Rule::Margin) { settings.lease_timeout } else { settings.run_out() }
}

/// The proof for a group without a known holder (no record, or a record that went back in time): every site's present
/// instance acknowledges fenced or has ended, no pod of the group has an instance that is not asked, and a lease with its margin has
/// passed since the election and since the youngest sidecar's start.
pub fn release_of_all(
    record: &Record,
    evidence: &Evidence,
    unknown_instances: bool,
    now: Now,
) -> Result<Release, Missing> {
    let closed = |voter: &&Member| evidence.acknowledged_fenced(record, voter) || record.has_ended(voter);
    let open = |voter: &&Member| !holds(Rule::AllFenced, closed(voter));
    let silent: Vec<Member> = record.voters.iter().filter(open).cloned().collect();
    let youngest = record.voters.iter().filter_map(|voter| Some(evidence.heard.get(voter)?.started)).max();
    let youngest = youngest.filter(|_| !off(Rule::WaitFromYoungest));
    let elected = if off(Rule::WaitFromElection) { Boot(0) } else { evidence.elected };
    let until = elected.max(youngest.unwrap_or(elected)) + run_out(&record.settings);
    let ownerless = record.phase == Phase::Revoking && holds(Rule::OnlyWithoutHolder, record.holder.is_none());
    let none_unknown = holds(Rule::NoneUnknown, !unknown_instances);
    let complete = ownerless && !record.voters.is_empty() && silent.is_empty() && none_unknown;
    if complete && now.boot >= until {
        return Ok(release_in(record, Scope::Anyone(None)));
    }
    Err(Missing { silent, until: complete.then_some(until) })
}
