//! The rows, first that fits. Each asks for one thing and relies on those above it having been refused.

use super::{
    Alert, AuthorityUnknown, Lost, NoPrimary, NotServing, Picture, RegrantReason, SiteFacts, SplitBrain,
    SplitBrainAnswer, Verdict,
};
use crate::message::FencedBy;
use crate::name::Site;
use crate::record::Phase;
use crate::site::{Role, State};

type Row = fn(&Picture<'_>) -> Option<Verdict>;

/// Whether anything may be decided at all. A record that is behind comes first: a move must not go on from it.
const BEFORE: [Row; 5] = [record_behind, move_in_progress, some_unknown, no_record, self_move];

/// What is the case among decided sites under a known holder.
const AMONG_SITES: [Row; 7] = [
    total_loss,
    split_brain,
    only_the_holder_writes,
    opened_by_hand,
    another_site_writes,
    holder_lost,
    fenced_by_our_own_doing,
];

pub(super) fn first_that_fits(picture: &Picture<'_>) -> Verdict {
    BEFORE.iter().find_map(|row| row(picture)).unwrap_or_else(|| among_sites(picture))
}

fn among_sites(picture: &Picture<'_>) -> Verdict {
    AMONG_SITES.iter().find_map(|row| row(picture)).unwrap_or_else(|| holder_closed(picture))
}

/// The alert of a verdict. While a move goes on, what would be the case without it still shows.
pub(super) fn alert(picture: &Picture<'_>, verdict: &Verdict) -> Option<Alert> {
    match verdict {
        Verdict::TotalLoss => Some(Alert::TotalLoss),
        Verdict::SplitBrain(split)
        | Verdict::AuthorityUnknown(AuthorityUnknown::NoRecord { split_brain: Some(split) }) => {
            Some(Alert::SplitBrain(split.writable.clone()))
        }
        Verdict::NoPrimary(why) => Some(Alert::NoPrimary(why.clone())),
        Verdict::Degraded { primary, unreachable } => {
            Some(Alert::Unreachable { primary: primary.clone(), unreachable: unreachable.clone() })
        }
        Verdict::MoveInProgress { .. } | Verdict::AuthorityUnknown(AuthorityUnknown::RecordBehind { .. }) => {
            alert_beside_a_move(picture)
        }
        Verdict::Wait { .. }
        | Verdict::AuthorityUnknown(AuthorityUnknown::NoRecord { split_brain: None })
        | Verdict::SelfMove { .. }
        | Verdict::Healthy { .. }
        | Verdict::UnauthorisedWriter { .. }
        | Verdict::ManualPromotion { .. }
        | Verdict::Failover { .. }
        | Verdict::Regrant { .. }
        | Verdict::HolderClosed { .. } => None,
    }
}

fn alert_beside_a_move(picture: &Picture<'_>) -> Option<Alert> {
    if some_unknown(picture).is_some() {
        return None;
    }
    let verdict = match picture.holder() {
        Some(_) => among_sites(picture),
        // A group that starts over has no holder to miss.
        None => total_loss(picture).or_else(|| split_brain(picture))?,
    };
    // That the site which is being revoked or granted is closed is the move itself, and nothing to wake people for.
    let is_the_move = matches!(verdict, Verdict::NoPrimary(NoPrimary::HolderFenced { .. }));
    alert(picture, &verdict).filter(|_| !is_the_move)
}

/// A higher epoch was heard than the record has.
fn record_behind(picture: &Picture<'_>) -> Option<Verdict> {
    let record = picture.record.filter(|_| picture.record_is_behind())?;
    let why = AuthorityUnknown::RecordBehind { heard: picture.highest_heard, record: record.epoch };
    Some(Verdict::AuthorityUnknown(why))
}

/// The record is not Stable.
fn move_in_progress(picture: &Picture<'_>) -> Option<Verdict> {
    let record = picture.record.filter(|record| record.phase != Phase::Stable)?;
    Some(Verdict::MoveInProgress { phase: record.phase, cause: record.cause, epoch: record.epoch })
}

/// Some site is still unknown. Another one than the holder's that lets nobody in will stay so: it is not waited for.
fn some_unknown(picture: &Picture<'_>) -> Option<Verdict> {
    let holder = picture.holder().map(|holder| &holder.site);
    let waits = |facts: &&SiteFacts| !facts.watch.login_refused || Some(facts.site()) == holder || holder.is_none();
    let unknown = picture.sites.iter().filter(|facts| facts.is(State::Unknown)).filter(waits);
    let unknown: Vec<Site> = unknown.map(|facts| facts.site().clone()).collect();
    let shortcut = picture.record.is_none() && picture.fresh_and_empty;
    (!unknown.is_empty() && !shortcut).then_some(Verdict::Wait { unknown })
}

/// There is no record, or none that names anybody.
fn no_record(picture: &Picture<'_>) -> Option<Verdict> {
    picture.holder().is_none().then(|| {
        let split_brain = several_writable(picture);
        Verdict::AuthorityUnknown(AuthorityUnknown::NoRecord { split_brain })
    })
}

/// The holder's site answers as another instance than the record's, with its data.
fn self_move(picture: &Picture<'_>) -> Option<Verdict> {
    let holder = picture.holder()?;
    let facts = picture.holder_site().filter(|facts| !facts.is(State::Unreachable) && !facts.data_lost)?;
    let new = facts.instance.as_ref().filter(|now| **now != holder.instance)?;
    Some(Verdict::SelfMove { site: holder.site.clone(), old: holder.instance.clone(), new: new.clone() })
}

/// All sites are unreachable.
fn total_loss(picture: &Picture<'_>) -> Option<Verdict> {
    let all = picture.sites.iter().all(|facts| facts.is(State::Unreachable));
    all.then_some(Verdict::TotalLoss)
}

/// More than one site is writable.
fn split_brain(picture: &Picture<'_>) -> Option<Verdict> {
    several_writable(picture).map(Verdict::SplitBrain)
}

fn several_writable(picture: &Picture<'_>) -> Option<SplitBrain> {
    if picture.sites.iter().filter(|facts| facts.is(State::Writable)).count() < 2 {
        return None;
    }
    let writable = picture.sites_in(State::Writable);
    let answer = match picture.holder() {
        Some(holder) => SplitBrainAnswer::RecordStands(holder.clone()),
        None => policy_winner(picture).map_or(SplitBrainAnswer::AlertOnly, SplitBrainAnswer::PolicyWinner),
    };
    Some(SplitBrain { writable, answer })
}

/// The first entry of the priority list that is a writable primary-candidate.
fn policy_winner(picture: &Picture<'_>) -> Option<Site> {
    let may_win = |facts: &&SiteFacts| facts.role == Role::PrimaryCandidate && facts.is(State::Writable);
    let entry =
        picture.priorities.iter().find(|name| picture.sites.iter().filter(may_win).any(|site| site.site() == *name));
    entry.cloned()
}

/// Only the holder is writable: healthy, or degraded by sites that do not answer.
fn only_the_holder_writes(picture: &Picture<'_>) -> Option<Verdict> {
    let holder = picture.holder_site().filter(|facts| facts.is(State::Writable) && picture.is_holder(facts))?;
    let primary = holder.site().clone();
    let unreachable = picture.sites_in(State::Unreachable);
    if unreachable.is_empty() {
        return Some(Verdict::Healthy { primary });
    }
    Some(Verdict::Degraded { primary, unreachable })
}

/// A primary-candidate other than the holder was opened by hand, seen writable still or fenced again already, and the
/// holder does not serve.
fn opened_by_hand(picture: &Picture<'_>) -> Option<Verdict> {
    let holder_site = picture.holder().map(|holder| &holder.site);
    let wished = |facts: &&SiteFacts| {
        let reachable = facts.watch.state.is_reachable() && Some(facts.site()) != holder_site;
        facts.opened_by_hand && reachable && facts.role == Role::PrimaryCandidate
    };
    let wish = picture.sites.iter().find(wished)?;
    let holder = match picture.holder_site() {
        Some(facts) if facts.watch.state.is_reachable() && picture.is_holder(facts) => NotServing::ReadOnly,
        Some(facts) if facts.watch.state.is_reachable() => NotServing::Replaced,
        Some(_) | None => NotServing::Unreachable,
    };
    Some(Verdict::ManualPromotion { site: wish.site().clone(), holder })
}

/// One site is writable, and it is not the holder. A dr-only site counts as none: it is fenced, and nothing follows.
fn another_site_writes(picture: &Picture<'_>) -> Option<Verdict> {
    let candidate = |facts: &&SiteFacts| facts.is(State::Writable) && facts.role == Role::PrimaryCandidate;
    let writer = picture.sites.iter().find(candidate)?;
    Some(Verdict::UnauthorisedWriter { site: writer.site().clone() })
}

/// The holder does not answer, or answers with its data lost: somebody else is promoted, or there is nobody.
fn holder_lost(picture: &Picture<'_>) -> Option<Verdict> {
    let lost = lost(picture)?;
    let holder_site = picture.holder().map(|holder| &holder.site);
    let others = |role: Role| -> Vec<Site> {
        let fits = |facts: &&SiteFacts| facts.role == role && facts.watch.state.is_reachable();
        let sites = picture.sites.iter().filter(fits).map(SiteFacts::site);
        sites.filter(|site| Some(*site) != holder_site).cloned().collect()
    };
    let candidates = others(Role::PrimaryCandidate);
    if candidates.is_empty() {
        return Some(Verdict::NoPrimary(NoPrimary::NoCandidate { lost, dr_only: others(Role::DrOnly) }));
    }
    Some(Verdict::Failover { lost, candidates })
}

fn lost(picture: &Picture<'_>) -> Option<Lost> {
    let holder = picture.holder()?;
    match picture.holder_site() {
        Some(facts) if facts.watch.state.is_reachable() => facts.data_lost.then(|| Lost::DataLost(holder.site.clone())),
        Some(_) | None => Some(Lost::Unreachable(holder.site.clone())),
    }
}

/// The holder is fenced by what the operator itself did: its SQL fence, or two views of one epoch.
fn fenced_by_our_own_doing(picture: &Picture<'_>) -> Option<Verdict> {
    let holder = picture.record?.holder.as_ref()?;
    let facts = picture.holder_site().filter(|facts| picture.is_holder(facts))?;
    let why = match facts.fenced_by? {
        FencedBy::Others if holder.sql_fence_sent => RegrantReason::OwnSqlFence,
        FencedBy::Conflict => RegrantReason::ConflictingViews,
        FencedBy::Others | FencedBy::Boot | FencedBy::Mismatch | FencedBy::Lease => return None,
    };
    Some(Verdict::Regrant { holder: holder.member.clone(), why })
}

/// What is left: the holder answers, read-only. An alert once enough polls agree, and nothing across sites.
fn holder_closed(picture: &Picture<'_>) -> Verdict {
    let Some(facts) = picture.holder_site() else {
        return Verdict::AuthorityUnknown(AuthorityUnknown::NoRecord { split_brain: None });
    };
    let (site, polls, needed) = (facts.site().clone(), facts.watch.closings, picture.failure_threshold);
    if polls < needed {
        return Verdict::HolderClosed { site, polls, needed };
    }
    Verdict::NoPrimary(NoPrimary::HolderFenced { site, by: facts.fenced_by })
}
