//! Every other cache follows the active one. A master that came back is kept for a while if it took writes.
//!
//! In: what caches say. Out: since when a master is stale, stored; `Follow` tasks. Must not: empty a cache while there is
//! no master to follow, or one that is being filled.

use super::super::command::{CacheTask, Task};
use super::super::input::{CacheFacts, CacheRole};
use super::super::kept::CacheKept;
use super::super::notice::CacheNotice;
use super::super::save::Plan;
use super::observe::{CacheState, took_no_writes};
use super::{Group, cache_of};
use crate::group::{Notice, Step};
use crate::name::Site;
use crate::time::{Millis, Now};

/// People are told again of a stale master after this long.
const TELL_AGAIN: Millis = Millis::from_secs(300);

impl Group {
    /// Since when masters are stale, and which follow again. Returns whether something is to be stored.
    pub(super) fn mind_stale_masters(&mut self, now: Now, cache: &CacheKept, plan: &mut Plan<'_>) -> bool {
        let Some(active) = &cache.active else { return false };
        let mut masters = cache.stale_masters.clone();
        masters.retain(|site, _| site != active && self.spec.site(site).is_some());
        for site in self.spec.names() {
            match self.cache_state(&site, Some(active)) {
                CacheState::StaleMaster => {
                    masters.entry(site.clone()).or_insert(now.wall);
                    self.tell_of_stale_master(now, &site, plan);
                }
                CacheState::Replica if self.cache_ready(&site, active) => {
                    let taken_from = self.caching.taken_from.take_if(|(old, _)| *old == site).is_some();
                    self.caching.follow.remove(&site);
                    if masters.remove(&site).is_some() || taken_from {
                        plan.say(Notice::Cache(CacheNotice::OldSiteReconfigured { site: site.clone() }));
                    }
                }
                _ => {}
            }
        }
        let changed = masters != cache.stale_masters;
        if changed {
            cache_of(plan).stale_masters = masters;
        }
        changed
    }

    fn tell_of_stale_master(&mut self, now: Now, site: &Site, plan: &mut Plan<'_>) {
        if self.caching.stale_told.get(site).is_some_and(|told| now.boot < *told + TELL_AGAIN) {
            return;
        }
        self.caching.stale_told.insert(site.clone(), now.boot);
        let keys = self.cache_facts(site).map_or(0, |facts| facts.keys);
        plan.say(Notice::Cache(CacheNotice::StaleMaster { site: site.clone(), keys }));
    }

    /// Has every other cache follow the active one, if that one is a master that answers.
    pub(super) fn repair_caches(&mut self, now: Now, cache: &CacheKept, out: &mut Step) {
        let Some(active) = cache.active.clone().filter(|active| self.cache_is_master(active)) else { return };
        if self.active_cache_is_blank(&active) && !self.heirs(&active).is_empty() {
            // A follower still has everything and is not promoted yet: it is not emptied meanwhile.
            return;
        }
        for site in self.spec.names() {
            let due = site != active && self.should_follow(now, &site, &active, cache);
            let paced = self.caching.follow.get(&site).is_none_or(|tries| tries.may_try(now.boot));
            let task = Task::Cache(CacheTask::Follow { master: active.clone() });
            if due && paced && self.begin(now, &site, task, out) {
                self.caching.follow.entry(site).or_default().failed(now.boot);
            }
        }
    }

    fn should_follow(&self, now: Now, site: &Site, active: &Site, cache: &CacheKept) -> bool {
        let Some(facts) = self.cache_facts(site).filter(|facts| !facts.loading) else { return false };
        match (&facts.role, self.cache_state(site, Some(active))) {
            (CacheRole::Replica { master, link_up, syncing, .. }, _) => {
                master.as_ref() != Some(active) || (!*link_up && !*syncing)
            }
            (_, CacheState::Unconfigured) => true,
            (_, CacheState::StaleMaster) => self.may_be_emptied(now, site, facts, cache),
            _ => false,
        }
    }

    /// A stale master that took no writes, or whose data were taken over whole, is emptied at once; another one after the
    /// grace.
    fn may_be_emptied(&self, now: Now, site: &Site, facts: &CacheFacts, cache: &CacheKept) -> bool {
        let grace = self.spec.cache.as_ref().map_or(TELL_AGAIN, |spec| spec.stale_master_grace);
        let over = cache.stale_masters.get(site).is_some_and(|since| self.ages.passed(*since, grace, now));
        let taken = matches!(&self.caching.taken_from, Some((old, true)) if old == site);
        let known = cache.stale_masters.contains_key(site);
        known && (over || taken || took_no_writes(facts))
    }
}
