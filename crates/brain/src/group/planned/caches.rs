//! The cache's two phases: its target catches up, then takes over.
//!
//! In: what is stored of the run, what caches say. Out: the next phase, with what became of the sessions. Must not: hold
//! the database up for longer than the wait that the spec allows.

use super::super::kept::{Planned, PlannedCache, PlannedPhase, PlannedReason, PromotionMethod};
use super::super::notice::CacheNotice;
use super::super::save::Plan;
use super::super::{Group, Notice, Step};
use crate::name::Site;
use crate::record::Record;
use crate::time::{Millis, Now};

/// Beyond the takeover's own bound: labels, answers, storing.
const SLACK: Millis = Millis::from_secs(10);

/// The target is asked for its offset at most this often.
const AGAIN: Millis = Millis(100);

impl Group {
    pub(super) fn waiting_for_cache(
        &mut self,
        now: Now,
        record: &Record,
        planned: &Planned,
        plan: &mut Plan<'_>,
        out: &mut Step,
    ) {
        if !Self::is_ours(record, planned) {
            return plan.fail(now, PlannedReason::SourceCrashed, "authority was moved by another way");
        }
        let Some(spec) = self.spec.cache.clone() else { return skip_cache(plan) };
        let Some(began) = planned.cache.as_ref().and_then(|cache| cache.sync_wait_started) else {
            self.forget_offsets();
            return note(plan, |cache| cache.sync_wait_started = Some(now.wall));
        };
        let cache = planned.cache.clone().unwrap_or_default();
        let active = active_site(plan);
        if active.as_ref() == Some(&planned.target) || cache.offset_capture_failed {
            return plan.enter(PlannedPhase::PromotingCache, |_| {});
        }
        if self.ages.passed(began, spec.max_sync_wait, now) {
            return cache_sync_timed_out(spec.fail_on_timeout, spec.max_sync_wait, planned, plan);
        }
        match cache.source_offset {
            None => self.capture_offset(now, active.as_ref(), plan, out),
            Some(captured) => self.await_offset(now, active.as_ref(), planned, captured, plan, out),
        }
    }

    pub(super) fn promoting_cache(
        &mut self,
        now: Now,
        record: &Record,
        planned: &Planned,
        plan: &mut Plan<'_>,
        _: &mut Step,
    ) {
        if !Self::is_ours(record, planned) {
            return plan.fail(now, PlannedReason::SourceCrashed, "authority was moved by another way");
        }
        let Some(spec) = self.spec.cache.clone() else { return skip_cache(plan) };
        let reason = planned.cache.as_ref().and_then(|cache| cache.reason);
        if reason == Some(PlannedReason::CachePromotionFailed) {
            return go_on_without_cache(spec.fail_on_timeout, reason, planned, plan);
        }
        let kept = plan.kept;
        let promoting = kept.cache.as_ref().and_then(|cache| cache.promoting.as_ref());
        if active_site(plan).as_ref() == Some(&planned.target) && promoting.is_none() {
            return plan.enter(PlannedPhase::Promoting, |_| {});
        }
        let upgrading = kept.cache.as_ref().and_then(|cache| cache.upgrade.as_ref());
        let upgrading = upgrading.is_some_and(|upgrade| upgrade.phase.is_active());
        let late = now.boot >= self.phase_since(now) + spec.max_sync_wait + SLACK;
        if late || upgrading || (self.cache_is_silent(&planned.target) && promoting.is_none()) {
            let because = match (late, upgrading) {
                (true, _) => "the target's cache did not take over in time",
                (_, true) => "a snapshot upgrade of the cache is under way",
                _ => "the target's cache does not answer",
            };
            return not_promoted(because, planned, plan);
        }
        if promoting.is_none() {
            self.start_promotion(now, &planned.target, plan);
        }
    }

    /// The source's offset, once nobody writes any more. Without it nothing is claimed, and nothing waited for.
    fn capture_offset(&mut self, now: Now, source: Option<&Site>, plan: &mut Plan<'_>, out: &mut Step) {
        let answer = source.and_then(|source| self.offset_answer(source));
        let silent = source.is_none_or(|source| self.cache_is_silent(source));
        match (answer, source) {
            (Some(Ok(offset)), _) => note(plan, |cache| cache.source_offset = Some(offset)),
            (Some(Err(because)), _) => note(plan, |cache| capture_failed(cache, &because)),
            (None, _) if silent => note(plan, |cache| capture_failed(cache, "it does not answer")),
            (None, Some(source)) => {
                let source = source.clone();
                self.ask_offset(now, &source, AGAIN, out);
            }
            (None, None) => {}
        }
    }

    fn await_offset(
        &mut self,
        now: Now,
        source: Option<&Site>,
        planned: &Planned,
        captured: u64,
        plan: &mut Plan<'_>,
        out: &mut Step,
    ) {
        let target = &planned.target;
        let ready = source.is_some_and(|source| self.cache_ready(target, source));
        let offset = self.offset_answer(target).and_then(Result::ok);
        if let Some(offset) = offset.filter(|offset| ready && *offset >= captured) {
            let began = planned.cache.as_ref().and_then(|cache| cache.sync_wait_started).unwrap_or(now.wall);
            let seconds = self.ages.of(began, now).0 / 1000;
            return plan.enter(PlannedPhase::PromotingCache, |planned| {
                let cache = planned.cache.get_or_insert_default();
                cache.target_offset = Some(offset);
                cache.sync_wait_seconds = Some(seconds);
            });
        }
        self.ask_offset(now, target, AGAIN, out);
    }
}

fn cache_sync_timed_out(fails: bool, wait: Millis, planned: &Planned, plan: &mut Plan<'_>) {
    let reason = PlannedReason::CacheSyncTimeout;
    let message = format!("the target's cache did not catch up within {} s", wait.0 / 1000);
    plan.say(Notice::Cache(CacheNotice::SyncTimeout { site: planned.target.clone() }));
    note(plan, |cache| {
        cache.sync_wait_seconds = Some(wait.0 / 1000);
        cache.sessions_preserved = Some(false);
        cache.reason = Some(reason);
        cache.message.clone_from(&message);
    });
    if fails {
        plan.take_back(reason, &message);
    } else {
        plan.enter(PlannedPhase::PromotingCache, |_| {});
    }
}

fn go_on_without_cache(fails: bool, reason: Option<PlannedReason>, planned: &Planned, plan: &mut Plan<'_>) {
    let because = planned.cache.as_ref().map(|cache| cache.message.clone()).unwrap_or_default();
    match reason.filter(|_| fails) {
        Some(reason) => {
            plan.take_back(reason, &format!("the target's cache could not be promoted: {because}"));
        }
        None => plan.enter(PlannedPhase::Promoting, |_| {}),
    }
}

/// It was turned off meanwhile.
fn skip_cache(plan: &mut Plan<'_>) {
    plan.enter(PlannedPhase::Promoting, |planned| {
        planned.cache.get_or_insert_default().method = PromotionMethod::Skipped;
    });
}

fn capture_failed(cache: &mut PlannedCache, because: &str) {
    cache.offset_capture_failed = true;
    cache.sessions_preserved = Some(false);
    cache.message = format!("the source's offset could not be read: {because}");
}

/// Changes what is stored of the cache's part, without another phase.
fn note(plan: &mut Plan<'_>, change: impl FnOnce(&mut PlannedCache)) {
    if let Some(planned) = &mut plan.change().planned {
        change(planned.cache.get_or_insert_default());
    }
}

/// It was never begun, or is given up.
fn not_promoted(because: &str, planned: &Planned, plan: &mut Plan<'_>) {
    let (site, told) = (planned.target.clone(), because.to_owned());
    plan.say(Notice::Cache(CacheNotice::PromotionFailed { site, because: told }));
    if let Some(cache) = &mut plan.change().cache {
        cache.promoting = None;
    }
    note(plan, |cache| {
        cache.sessions_preserved = Some(false);
        cache.reason = Some(PlannedReason::CachePromotionFailed);
        because.clone_into(&mut cache.message);
    });
}

/// The site whose cache takes writes, as stored.
fn active_site(plan: &Plan<'_>) -> Option<Site> {
    plan.kept.cache.as_ref().and_then(|cache| cache.active.clone())
}
