//! The request for a snapshot upgrade: accepted or refused, and removed once that is stored.
//!
//! In: the annotation. Out: the upgrade, stored as Pending, or the refusal, told. Must not: begin anything.

use super::super::command::{Command, RequestKind};
use super::super::kept::{CacheUpgrade, CacheUpgradePhase, Kept};
use super::super::notice::CacheNotice;
use super::super::save::Plan;
use super::upgrade::told;
use super::{Group, cache_of};
use crate::group::{Notice, Step};
use crate::time::Now;

impl Group {
    pub(super) fn heed_cache_upgrade(&mut self, now: Now, plan: &mut Plan<'_>, out: &mut Step) {
        let Some(request) = self.seen.requests.cache_upgrade.clone() else {
            self.caching.upgrade.dealt_with = None;
            return;
        };
        let kept = plan.kept;
        let running = kept.cache.as_ref().and_then(|cache| cache.upgrade.as_ref()).filter(|run| run.phase.is_active());
        let ours = running.is_some_and(|run| request.wish.as_ref() == Ok(&run.to));
        if ours || self.caching.upgrade.dealt_with.as_ref() == Some(&request.text) {
            out.commands.push(Command::RemoveRequest { kind: RequestKind::CacheUpgrade, text: request.text });
            return;
        }
        if self.spec.cache.is_some() && !self.all_caches_polled() {
            return;
        }
        match request.wish.clone().and_then(|image| self.check_upgrade(now, kept, running, image)) {
            Ok(upgrade) => {
                plan.say(told(&upgrade));
                cache_of(plan).upgrade = Some(upgrade);
            }
            Err(because) => {
                plan.say(Notice::Cache(CacheNotice::UpgradeRejected { because }));
                self.caching.upgrade.dealt_with = Some(request.text);
            }
        }
    }

    /// The upgrade, if all conditions are met.
    fn check_upgrade(
        &self,
        now: Now,
        kept: &Kept,
        running: Option<&CacheUpgrade>,
        to: String,
    ) -> Result<CacheUpgrade, String> {
        let Some(spec) = &self.spec.cache else { return Err("the cache is not enabled".to_owned()) };
        let Some(snapshot_dir) = spec.snapshot_dir.clone() else {
            return Err("spec.dragonfly.snapshot.dir is not set".to_owned());
        };
        if let Some(running) = running {
            return Err(format!("an upgrade to {} is under way", running.to));
        }
        if kept.planned_active().is_some() {
            return Err("a planned failover is under way".to_owned());
        }
        if self.is_paused(now) {
            return Err("the group is paused".to_owned());
        }
        let cache = kept.cache.as_ref();
        if cache.is_some_and(|cache| cache.promoting.is_some()) {
            return Err("a promotion of the cache is under way".to_owned());
        }
        let active = cache.and_then(|cache| cache.active.clone()).filter(|active| self.cache_is_master(active));
        let Some(active) = active else { return Err("the active cache is not known".to_owned()) };
        if spec.image == to && self.runs_wanted_image(&active) {
            return Err(format!("the cache runs {to} already"));
        }
        Ok(CacheUpgrade {
            phase: CacheUpgradePhase::Pending,
            from: self.cache_facts(&active).map_or_else(|| spec.image.clone(), |facts| facts.image.clone()),
            to,
            active,
            snapshot_dir,
            started: now.wall,
            snapshot_at: None,
            completed: None,
            message: String::new(),
        })
    }
}
