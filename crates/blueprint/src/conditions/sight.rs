//! Everything that conditions are made of.
//!
//! In: the leader. Out: a [`Sight`], plain data, so that each answer can be shown by a row of a table. Must not: judge.

use bloodraven_brain::group::cache::{CachePhase, CacheReport};
use bloodraven_brain::group::kept::{CloneKept, ClonePhase, Kept, Recovery, Update, UpdatePhase};
use bloodraven_brain::group::report::Report;
use bloodraven_brain::group::{Group, Obstacle};
use bloodraven_brain::name::Site;
use bloodraven_brain::record::Epoch;
use bloodraven_brain::time::{Millis, Now, Wall};
use bloodraven_gtid::GtidSet;

use super::Hands;

/// See above.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sight {
    /// The group's name.
    pub name: String,
    /// The record's epoch; 0 without one.
    pub epoch: Epoch,
    /// The leader's own summary.
    pub report: Report,
    /// Why a missing proof is no reason to call for anybody yet.
    pub patience: Option<Patience>,
    /// Declared sites that do not follow the active one.
    pub not_following: Vec<Site>,
    /// Sites that have what the primary lacks, and what.
    pub divergent: Vec<(Site, GtidSet)>,
    /// Clones that run or were given up, and those that are done.
    pub clones: Vec<(Site, CloneKept)>,
    /// The ordered update.
    pub update: Option<Update>,
    /// Until when it is paused; none: until somebody says otherwise.
    pub paused_until: Option<Wall>,
    /// The cache; none: there is none.
    pub cache: Option<(CachePhase, String)>,
    /// Whether there is a replication account.
    pub replication_account: bool,
    /// Why the DNS record is not as wanted.
    pub dns: Option<String>,
    /// Why node taints are not as wanted.
    pub taints: Option<String>,
    /// What only the hands know.
    pub hands: Hands,
}

/// A proof is missing, and that is as it should be for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// Time alone brings it within this long.
    Comes(Millis),
    /// The revocation is so young that acknowledgements are on their way.
    Young,
}

/// Acknowledgements are on their way for a moment after every revocation.
const YOUNG: Millis = Millis::from_secs(5);

impl Sight {
    /// What can be seen of that leader.
    pub fn of(group: &Group, now: Now, hands: &Hands) -> Self {
        let kept = group.kept();
        let empty = Kept::default();
        let kept = kept.as_deref().unwrap_or(&empty);
        let shown = group.seen.shown.as_ref();
        let CacheReport { phase, message, active: _, sites: _ } = group.cache_report(kept);
        Self {
            name: group.spec.name.clone(),
            epoch: kept.epoch(),
            report: group.summary(now),
            patience: patience(group, kept, now),
            not_following: not_following(group, kept),
            divergent: divergent(group, kept),
            clones: clones(group, kept),
            update: kept.update.clone().filter(|update| update.phase != UpdatePhase::Complete),
            paused_until: group.spec.pause(now.wall).and_then(|pause| pause.until),
            cache: group.spec.cache.is_some().then_some((phase, message)),
            replication_account: group.spec.replication_account,
            dns: shown.and_then(|shown| shown.dns.clone().err()),
            taints: shown.and_then(|shown| shown.taints.clone().err()),
            hands: hands.clone(),
        }
    }
}

fn patience(group: &Group, kept: &Kept, now: Now) -> Option<Patience> {
    let Some(Obstacle::Release(missing)) = &group.obstacle else { return None };
    let young = kept.record.as_ref().is_some_and(|record| now.wall < record.since.after(YOUNG));
    match missing.until {
        Some(until) => Some(Patience::Comes(until.since(now.boot))),
        None => young.then_some(Patience::Young),
    }
}

fn not_following(group: &Group, kept: &Kept) -> Vec<Site> {
    let active = kept.record.as_ref().and_then(|record| record.seat.as_ref()).map(|seat| &seat.site);
    let follows = |site: &Site| group.seen.site(site).is_some_and(|seen| seen.following >= 2);
    let others = group.spec.names().into_iter().filter(|site| Some(site) != active);
    others.filter(|site| !follows(site)).collect()
}

fn divergent(group: &Group, kept: &Kept) -> Vec<(Site, GtidSet)> {
    let blocked = |site: Site| {
        let known = kept.site(&site);
        (known.recovery == Recovery::Blocked).then_some((site, known.divergent))
    };
    group.spec.names().into_iter().filter_map(blocked).collect()
}

fn clones(group: &Group, kept: &Kept) -> Vec<(Site, CloneKept)> {
    let clone = |site: Site| kept.site(&site).clone.map(|clone| (site, clone));
    let mut found: Vec<_> = group.spec.names().into_iter().filter_map(clone).collect();
    // What runs is shown before what was given up, and that before what is done.
    found.sort_by_key(|(_, clone)| match clone.phase {
        ClonePhase::Failed => 1,
        ClonePhase::Done => 2,
        ClonePhase::Cloning | ClonePhase::WaitingForRestart | ClonePhase::SetupReplication => 0,
    });
    found
}
