//! The Dragonfly cache follows along: observed, repaired, promoted after the database or in a planned failover. Best
//! effort.
//!
//! In: what caches say, what is stored of them, who holds authority over the database. Out: the cache's own part of what
//! is stored, tasks at caches, their labels. Must not: change anything of the database's, or make it wait; only the two
//! phases of a planned failover wait for a cache, and those are bounded.

mod choice;
mod observe;
mod offset;
mod promotion;
mod repair;
mod report;
mod rolling;
mod upgrade;
mod upgrade_request;

#[cfg(test)]
pub(super) mod tests;

pub use observe::CacheState;
pub use report::{CachePhase, CacheReport, CacheSite};

use super::command::{CacheLabels, CacheTask};
use super::input::{CacheRole, Outcome};
use super::kept::{CacheKept, PromotionMethod};
use super::save::Plan;
use super::seen::Attempt;
use super::{Group, Kept, Step};
use crate::name::Site;
use crate::time::{Boot, Millis, Now, Wall};
use promotion::Run;
use std::collections::{BTreeMap, BTreeSet};

/// Polls that began before a promotion may still come in for so long: they are no news.
const SETTLE: Millis = Millis::from_secs(5);

/// What this leader remembers of it: pacing, results of tasks, what was told already.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Memory {
    /// The promotion under way.
    run: Option<Run>,
    /// Failed promotions in a row.
    pause: Attempt,
    /// Failed or fruitless attempts to have a site follow.
    follow: BTreeMap<Site, Attempt>,
    /// The last master, and whether everything it had was taken over.
    taken_from: Option<(Site, bool)>,
    /// When people were last told of a stale master.
    stale_told: BTreeMap<Site, Boot>,
    /// The promotion after which clients were ended, and where.
    clients_ended: (Option<Wall>, BTreeSet<Site>),
    /// Offsets that were asked for: when, and what came of it.
    offsets: BTreeMap<Site, Asked>,
    /// Since when a site's cache does not answer.
    silent: BTreeMap<Site, Boot>,
    /// When a pod was last brought to an image.
    rolled: BTreeMap<Site, Boot>,
    /// The snapshot upgrade.
    upgrade: upgrade::Memory,
}

/// An offset that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Asked {
    at: Boot,
    answer: Option<Result<u64, String>>,
}

impl Group {
    pub(super) fn tend_cache(&mut self, now: Now, plan: &mut Plan<'_>, out: &mut Step) {
        self.heed_cache_upgrade(now, plan, out);
        let kept = plan.kept;
        if plan.next().cache != kept.cache {
            return;
        }
        let nothing = CacheKept::default();
        let cache = kept.cache.as_ref().unwrap_or(&nothing);
        if self.caching.run.as_ref().is_some_and(|run| Some(&run.target) != cache.promoting.as_ref()) {
            self.caching.run = None;
        }
        if self.spec.cache.is_none() {
            // Turned off: what was begun is over.
            if cache.promoting.is_some() {
                cache_of(plan).promoting = None;
            }
            return;
        }
        if let Some(target) = &cache.promoting {
            return self.go_on_promoting(now, kept, cache, target, plan, out);
        }
        self.follow_along(now, kept, cache, plan, out);
    }

    /// No promotion is under way.
    fn follow_along(&mut self, now: Now, kept: &Kept, cache: &CacheKept, plan: &mut Plan<'_>, out: &mut Step) {
        if !self.all_caches_polled() {
            return;
        }
        self.note_silence(now);
        let settled = cache.last_promotion.as_ref().is_none_or(|last| self.ages.passed(last.at, SETTLE, now));
        let active = self.active_cache(kept, cache);
        let upgrading = cache.upgrade.as_ref().is_some_and(|upgrade| upgrade.phase.is_active());
        if settled && !upgrading && active != cache.active {
            cache_of(plan).active = active;
            return;
        }
        self.end_clients_elsewhere(now, cache, out);
        if upgrading {
            return self.go_on_upgrading(now, kept, cache, plan, out);
        }
        if settled && self.mind_stale_masters(now, cache, plan) {
            return;
        }
        if self.is_paused(now) {
            return;
        }
        if let Some(target) = self.wanted_promotion(now, kept, cache) {
            return self.start_promotion(now, &target, plan);
        }
        self.repair_caches(now, cache, out);
        self.roll_caches(now, kept, cache, out);
    }

    fn note_silence(&mut self, now: Now) {
        let silent: BTreeSet<Site> =
            self.seen.sites.iter().filter(|(_, seen)| seen.cache == Some(None)).map(|(site, _)| site.clone()).collect();
        self.caching.silent.retain(|site, _| silent.contains(site));
        for site in silent {
            self.caching.silent.entry(site).or_insert(now.boot);
        }
    }

    /// A task at a site's cache ended.
    pub(super) fn cache_task_ended(&mut self, now: Now, site: &Site, task: &CacheTask, outcome: &Outcome) {
        let failure = match outcome {
            Outcome::Failed(because) | Outcome::Refused(because) => Some(because.clone()),
            _ => None,
        };
        match task {
            CacheTask::TakeOver { .. } => self.promotion_ended(site, PromotionMethod::Takeover, failure),
            CacheTask::Promote => self.promotion_ended(site, PromotionMethod::NoOne, failure),
            CacheTask::Offset => {
                let answer = match (outcome, failure) {
                    (Outcome::Offset(offset), _) => Ok(*offset),
                    (_, failure) => Err(failure.unwrap_or_else(|| "no offset was told".to_owned())),
                };
                self.caching.offsets.insert(site.clone(), Asked { at: now.boot, answer: Some(answer) });
            }
            CacheTask::Snapshot => self.caching.upgrade.snapshot = Some(failure.map_or(Ok(()), Err)),
            // What came of it is seen by the next polls.
            CacheTask::Follow { .. } | CacheTask::EndClients | CacheTask::Roll { .. } => {}
        }
    }

    /// How the caches' pods should be labelled; none: there is no cache. At most one gets traffic: a master that is not
    /// known to be anything else, while nothing is done to it.
    pub(super) fn cache_labels(&self, kept: &Kept) -> Option<CacheLabels> {
        self.spec.cache.as_ref()?;
        let cache = kept.cache.as_ref();
        let master = cache.and_then(|cache| cache.active.clone()).filter(|site| self.spec.site(site).is_some());
        let serves = master.as_ref().is_some_and(|site| match self.cache_facts(site) {
            Some(facts) => matches!(facts.role, CacheRole::Master { .. }) && !facts.loading,
            None => true,
        });
        let busy = cache.is_some_and(|cache| {
            let upgrading = cache.upgrade.as_ref().is_some_and(|upgrade| upgrade.phase.stops_traffic());
            cache.promoting.is_some() || upgrading
        });
        Some(CacheLabels { traffic: serves && !busy, master })
    }
}

/// What is to be stored of the cache.
pub(super) fn cache_of<'a>(plan: &'a mut Plan<'_>) -> &'a mut CacheKept {
    plan.change().cache.get_or_insert_default()
}
