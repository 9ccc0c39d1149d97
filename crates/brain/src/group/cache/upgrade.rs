//! The snapshot upgrade: no traffic, a snapshot, the new image, the others attached again, the image written down.
//!
//! In: the upgrade that is stored, what caches say. Out: its next phase, its tasks. Must not: stand in the way of the
//! database's moves; when one leaves the active cache behind, the upgrade ends.

use super::super::command::{CacheTask, Command, Lane, Task};
use super::super::kept::{CacheKept, CacheUpgrade, CacheUpgradePhase, Kept};
use super::super::notice::CacheNotice;
use super::super::save::Plan;
use super::{Group, cache_of};
use crate::group::{Notice, Step};
use crate::name::Site;
use crate::time::{Boot, Millis, Now};

/// A phase that takes longer has failed: the snapshot's own bound and something for its answer.
const PHASE_BOUND: Millis = Millis::from_secs(330);

/// So long is waited for the word that labels are off.
const LABEL_BOUND: Millis = Millis::from_secs(1);

/// So long the others have to follow before the image is written down without them.
const FOLLOW_BOUND: Millis = Millis::from_secs(120);

/// The image is written down at most this often.
const WRITE_AGAIN: Millis = Millis::from_secs(5);

/// What this leader remembers of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Memory {
    /// The phase this leader is in, since when, and what was the time.
    phase: Option<(CacheUpgradePhase, Now)>,
    /// How the snapshot ended.
    pub(super) snapshot: Option<Result<(), String>>,
    /// When the image was last written down.
    written: Option<Boot>,
    /// A request that was refused; its removal is on its way.
    pub(super) dealt_with: Option<String>,
}

impl CacheUpgradePhase {
    /// Whether it goes on.
    pub(in super::super) const fn is_active(self) -> bool {
        !matches!(self, Self::Succeeded | Self::Failed)
    }

    /// Whether no cache gets traffic.
    pub(super) const fn stops_traffic(self) -> bool {
        self.is_active() && !matches!(self, Self::Pending)
    }
}

impl Group {
    pub(super) fn go_on_upgrading(
        &mut self,
        now: Now,
        kept: &Kept,
        cache: &CacheKept,
        plan: &mut Plan<'_>,
        out: &mut Step,
    ) {
        let Some(upgrade) = &cache.upgrade else { return };
        let known = self.caching.upgrade.phase.filter(|(phase, _)| *phase == upgrade.phase);
        let since = known.map_or(now, |(_, since)| since);
        if known.is_none() {
            self.caching.upgrade.phase = Some((upgrade.phase, now));
            self.caching.upgrade.snapshot = None;
        }
        let left_behind = self.emergency_site(now, kept).is_some_and(|site| site != upgrade.active);
        if left_behind {
            return fail(now, upgrade, "the database was moved in an emergency", plan);
        }
        if self.spec.site(&upgrade.active).is_none() || now.boot >= since.boot + PHASE_BOUND {
            return fail(now, upgrade, "it took too long", plan);
        }
        match upgrade.phase {
            CacheUpgradePhase::Pending if self.seen.requests.cache_upgrade.is_none() => {
                enter(upgrade, CacheUpgradePhase::SavingSnapshot, plan, |_| {});
            }
            CacheUpgradePhase::SavingSnapshot => self.save_snapshot(now, since, upgrade, plan, out),
            CacheUpgradePhase::UpdatingActive => self.update_active(now, upgrade, plan, out),
            CacheUpgradePhase::WaitingForActiveRestore => self.await_restore(upgrade, plan),
            CacheUpgradePhase::ReattachingReplicas => self.reattach(now, since, cache, upgrade, plan, out),
            CacheUpgradePhase::Pending | CacheUpgradePhase::Succeeded | CacheUpgradePhase::Failed => {}
        }
    }

    /// Nobody writes any more, then everything is written to the snapshot.
    fn save_snapshot(&mut self, now: Now, since: Now, upgrade: &CacheUpgrade, plan: &mut Plan<'_>, out: &mut Step) {
        match self.caching.upgrade.snapshot.clone() {
            Some(Ok(())) => enter(upgrade, CacheUpgradePhase::UpdatingActive, plan, |upgrade| {
                upgrade.snapshot_at = Some(now.wall);
            }),
            Some(Err(because)) => fail(now, upgrade, &format!("the snapshot failed: {because}"), plan),
            None if self.labels_are_off(since.wall) || now.boot >= since.boot + LABEL_BOUND => {
                self.begin(now, &upgrade.active, Task::Cache(CacheTask::Snapshot), out);
            }
            None => {}
        }
    }

    fn update_active(&mut self, now: Now, upgrade: &CacheUpgrade, plan: &mut Plan<'_>, out: &mut Step) {
        if self.runs_image(&upgrade.active, &upgrade.to) {
            return enter(upgrade, CacheUpgradePhase::WaitingForActiveRestore, plan, |_| {});
        }
        self.roll_cache(now, &upgrade.active, &upgrade.to, out);
    }

    /// Restored: it answers as a master, reads nothing any more, and has something if the others have.
    fn await_restore(&mut self, upgrade: &CacheUpgrade, plan: &mut Plan<'_>) {
        let active = &upgrade.active;
        let read = self.cache_facts(active).is_some_and(|facts| !facts.loading);
        if read && self.cache_is_master(active) && !self.active_cache_is_blank(active) {
            enter(upgrade, CacheUpgradePhase::ReattachingReplicas, plan, |_| {});
        }
    }

    /// The others get the image one at a time, and follow. One that does not answer is not waited for for long.
    fn reattach(
        &mut self,
        now: Now,
        since: Now,
        cache: &CacheKept,
        upgrade: &CacheUpgrade,
        plan: &mut Plan<'_>,
        out: &mut Step,
    ) {
        let written = self.spec.cache.as_ref().is_some_and(|spec| spec.image == upgrade.to);
        let missing = self.not_attached(now, upgrade);
        let enough = missing.is_empty() || now.boot >= since.boot + FOLLOW_BOUND;
        if enough && written {
            return enter(upgrade, CacheUpgradePhase::Succeeded, plan, |upgrade| {
                upgrade.completed = Some(now.wall);
                upgrade.message = if missing.is_empty() {
                    format!("the cache runs {}", upgrade.to)
                } else {
                    format!("the cache runs {}; some do not follow yet: {}", upgrade.to, list(&missing))
                };
            });
        }
        if enough && self.caching.upgrade.written.is_none_or(|at| now.boot >= at + WRITE_AGAIN) {
            self.caching.upgrade.written = Some(now.boot);
            out.commands.push(Command::SetCacheImage { image: upgrade.to.clone() });
        }
        if self.is_paused(now) {
            return;
        }
        self.repair_caches(now, cache, out);
        let down = missing.iter().any(|site| self.cache_is_silent(site));
        let next = missing.iter().find(|site| !self.runs_image(site, &upgrade.to) && !self.is_busy(site, Lane::Cache));
        if let Some(site) = next.filter(|site| !down || self.cache_is_silent(site)) {
            self.roll_cache(now, site, &upgrade.to, out);
        }
    }

    /// Others that answer, or were just given the image, and do not follow with it yet.
    fn not_attached(&self, now: Now, upgrade: &CacheUpgrade) -> Vec<Site> {
        let waits = |site: &Site| {
            let rolled = self.caching.rolled.get(site).is_some_and(|at| now.boot < *at + FOLLOW_BOUND);
            let done = self.cache_ready(site, &upgrade.active) && self.runs_image(site, &upgrade.to);
            *site != upgrade.active && !done && (rolled || !self.cache_is_silent(site))
        };
        self.spec.names().into_iter().filter(waits).collect()
    }

    fn runs_image(&self, site: &Site, image: &str) -> bool {
        self.cache_facts(site).is_some_and(|facts| facts.image == image)
    }
}

/// What people are told of it.
pub(super) fn told(upgrade: &CacheUpgrade) -> Notice {
    Notice::Cache(CacheNotice::UpgradeChanged { phase: upgrade.phase, message: upgrade.message.clone() })
}

fn enter(
    upgrade: &CacheUpgrade,
    phase: CacheUpgradePhase,
    plan: &mut Plan<'_>,
    change: impl FnOnce(&mut CacheUpgrade),
) {
    let mut next = CacheUpgrade { phase, ..upgrade.clone() };
    change(&mut next);
    plan.say(told(&next));
    cache_of(plan).upgrade = Some(next);
}

fn fail(now: Now, upgrade: &CacheUpgrade, because: &str, plan: &mut Plan<'_>) {
    enter(upgrade, CacheUpgradePhase::Failed, plan, |upgrade| {
        upgrade.completed = Some(now.wall);
        because.clone_into(&mut upgrade.message);
    });
}

fn list(sites: &[Site]) -> String {
    sites.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
