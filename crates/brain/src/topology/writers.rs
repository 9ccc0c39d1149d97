//! Who writes, or could, without authority. Asked on every tick, whatever the verdict; no count of polls delays it.

use super::{Picture, SiteFacts, Writer, WriterReason};
use crate::name::{Instance, Site};
use crate::record::Phase;
use crate::site::Role;

/// Every server that was seen not fenced and that the record does not let write.
///
/// Two cases name nobody. A record that is behind does not say who may write, so a fence on its word could hit the true
/// holder; the start over revokes everyone. And without a record, writers of whom the priority list names none are not
/// the leader's to judge: their own sidecars close them, people are told.
pub(super) fn unauthorised(picture: &Picture<'_>) -> Vec<Writer> {
    if picture.record_is_behind() || (picture.record.is_none() && !policy_decides(picture)) {
        return Vec::new();
    }
    picture.sites.iter().flat_map(|facts| writers_at(picture, facts)).collect()
}

/// The priority list names a primary-candidate that was seen open.
fn policy_decides(picture: &Picture<'_>) -> bool {
    let open = |facts: &&SiteFacts| facts.role == Role::PrimaryCandidate && facts.watch.is_seen_open();
    picture.sites.iter().filter(open).any(|facts| picture.priorities.contains(&facts.watch.site))
}

fn writers_at(picture: &Picture<'_>, facts: &SiteFacts) -> Vec<Writer> {
    let site = &facts.watch.site;
    let polled = facts.watch.is_seen_open().then(|| (facts.instance.clone(), facts.watch.pair));
    let strays = facts.open_strays.iter().map(|stray| (Some(stray.clone()), None));
    polled
        .into_iter()
        .chain(strays)
        .filter(|(instance, _)| !picture.may_write(site, instance.as_ref()))
        .map(|(instance, pair)| {
            let why = reason(picture, facts, instance.as_ref());
            Writer { site: site.clone(), instance, pair, why }
        })
        .collect()
}

fn reason(picture: &Picture<'_>, facts: &SiteFacts, instance: Option<&Instance>) -> WriterReason {
    let Some(record) = picture.record else { return WriterReason::NoRecord };
    let at_holder = |site: &Site| picture.holder().is_some_and(|holder| holder.site == *site);
    let is_holder = picture.holder().is_some_and(|holder| instance.is_none_or(|now| *now == holder.instance));
    if at_holder(&facts.watch.site) {
        let revoked = is_holder && record.phase == Phase::Revoking;
        return if revoked { WriterReason::Revoked } else { WriterReason::AnotherInstance };
    }
    match (facts.role, facts.opened_by_hand) {
        (Role::DrOnly, _) => WriterReason::DrOnly,
        (Role::PrimaryCandidate, true) => WriterReason::OpenedByHand,
        (Role::PrimaryCandidate, false) => WriterReason::NotTheHolder,
    }
}
