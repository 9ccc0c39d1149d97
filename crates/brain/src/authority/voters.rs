//! Who is counted: which voters to drop or to take in, and which old sets can be forgotten.

use super::Evidence;
use crate::name::{Member, Site};
use crate::record::{Epoch, Record};
use crate::rule::{Rule, holds, off};
use crate::time::Boot;

/// The voters that the record should have, if they differ from those it has.
///
/// Out goes who has been silent for a lease to the leader *and* to the holder; in comes the present instance of every
/// declared site that speaks. Never fewer than the holder and one more, and the holder's own instance stays: where too
/// few would be left, the gone ones stay listed, for a new instance of the last living site has to be taken in, too.
pub fn wanted<'a>(
    record: &Record,
    evidence: &Evidence,
    sites: impl IntoIterator<Item = &'a Site>,
    now: Boot,
) -> Option<Vec<Member>> {
    let mut voters: Vec<(&Member, bool)> = Vec::with_capacity(record.voters.len() + 1);
    for site in sites {
        let listed = record.voters.iter().find(|voter| voter.site == *site);
        let seated = record.seat.as_ref().filter(|seat| seat.site == *site);
        let present = || present_instance(record, evidence, site, now).filter(|_| !off(Rule::NewInstanceIsTakenIn));
        let kept = || listed.map(|voter| (voter, is_gone(record, evidence, voter, now)));
        voters.extend(seated.or_else(present).map(|voter| (voter, false)).or_else(kept));
    }
    let mut missing = 2usize.saturating_sub(voters.iter().filter(|(_, gone)| !gone).count());
    voters.retain(|(_, gone)| {
        let stays_though_gone = *gone && missing > 0;
        missing -= usize::from(stays_though_gone);
        !gone || stays_though_gone
    });
    let too_few = voters.is_empty() || voters.len() < record.voters.len().min(2);
    let others = !voters.iter().map(|(voter, _)| *voter).eq(&record.voters);
    (!too_few && others).then(|| voters.into_iter().map(|(voter, _)| voter.clone()).collect())
}

/// The instance that speaks for a site now: the youngest one heard within a lease that has not ended. Of two that live
/// at once, one that was a voter before and was replaced by the other does not come back while that one speaks: a restart
/// makes a sidecar young again, and the two would take turns.
pub fn present_instance<'a>(record: &Record, evidence: &'a Evidence, site: &Site, now: Boot) -> Option<&'a Member> {
    let lease = record.settings.lease_timeout;
    let speaks = |member: &Member, at: Boot| now < at + lease && !record.has_ended(member);
    let speaking = || evidence.heard.iter().filter(|(member, heard)| member.site == *site && speaks(member, heard.at));
    let mut some = speaking();
    let first = some.next()?;
    if some.next().is_none() {
        return Some(first.0);
    }
    let listed = record.voters.iter().find(|voter| voter.site == *site);
    let listed_speaks = listed.and_then(|voter| evidence.heard.get(voter).map(|heard| speaks(voter, heard.at)));
    let came_back =
        |member: &Member| listed != Some(member) && listed_speaks == Some(true) && evidence.has_voted.contains(member);
    speaking()
        .filter(|(member, _)| holds(Rule::NoSwapBack, !came_back(member)))
        .max_by_key(|(_, heard)| (heard.started, heard.at))
        .map(|(member, _)| member)
}

/// Ended, or silent for a lease to the leader and, by the holder's own words, to the holder.
fn is_gone(record: &Record, evidence: &Evidence, voter: &Member, now: Boot) -> bool {
    if record.has_ended(voter) {
        return true;
    }
    let lease = record.settings.lease_timeout;
    let last = evidence.heard.get(voter).map_or(evidence.elected, |heard| heard.at.max(evidence.elected));
    let silent_to_leader = holds(Rule::SilentToLeader, now >= last + lease);
    let silent_to_holder = record.seat.as_ref().and_then(|seat| evidence.heard.get(seat)).is_some_and(|holder| {
        let fresh = now < holder.at + lease;
        // A sidecar that has just started has heard from nobody yet, which says nothing.
        let silence = holder.last_answer.get(&voter.site).copied().unwrap_or(holder.at.since(holder.started));
        fresh && silence >= lease
    });
    silent_to_leader && holds(Rule::SilentToHolder, silent_to_holder)
}

/// The old voter sets that the holder can no longer hold: a lease and its margin after its first acknowledgement of a
/// later epoch. Also while authority is being revoked: what the holder has stored it does not forget, and a dead voter
/// of an old set must not hold up the proof for ever.
pub fn outlived_sets(record: &Record, evidence: &Evidence, now: Boot) -> Vec<Epoch> {
    let Some(holder) = &record.holder else { return Vec::new() };
    let newest = holder.sets.iter().map(|set| set.epoch).max();
    holder
        .sets
        .iter()
        .filter(|set| Some(set.epoch) != newest)
        .filter(|set| {
            let began = evidence.set_clocks.get(&set.epoch);
            began.is_some_and(|began| holds(Rule::SetLeavesAfterLease, now >= *began + set.settings.run_out()))
        })
        .map(|set| set.epoch)
        .collect()
}
