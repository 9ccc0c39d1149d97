//! A promotion, from the label that is taken off the old master to the new one's.
//!
//! In: the target that is stored, results of tasks. Out: the next task, then the new master or the failure, stored.
//! Must not: lose sessions for the sake of order; a promotion without the old master's help is made only when that one is
//! gone, or the database has moved in an emergency.

use super::super::command::{CacheTask, Lane, Task};
use super::super::input::CacheRole;
use super::super::kept::{CacheKept, Kept, Move, PlannedCache, PlannedPhase, PlannedReason, PromotionMethod};
use super::super::notice::CacheNotice;
use super::super::save::Plan;
use super::{Group, cache_of};
use crate::group::{Notice, Step};
use crate::name::Site;
use crate::time::{Boot, Millis, Now, Wall};

/// So long is waited for the word that the old master's label is off.
const LABEL_BOUND: Millis = Millis::from_secs(1);

/// How long a server may try to take over, planned failovers apart; with the task's slack this makes 5 s.
const TAKEOVER: Millis = Millis::from_secs(3);

/// Clients of the old master are ended within this time after a promotion, or not at all.
const END_CLIENTS: Millis = Millis::from_secs(10);

/// A promotion, as this leader knows it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Run {
    pub(super) target: Site,
    since: Boot,
    asked: Wall,
    /// What is being tried.
    trying: Option<PromotionMethod>,
    /// What was tried and failed.
    failed: Vec<PromotionMethod>,
    /// What went well.
    won: Option<PromotionMethod>,
    error: String,
}

impl Group {
    /// Stores that it begins; labels and tasks follow from that.
    pub(in super::super) fn start_promotion(&mut self, now: Now, target: &Site, plan: &mut Plan<'_>) {
        if self.cache_is_silent(target) {
            self.caching.pause.failed(now.boot);
            let because = "it does not answer".to_owned();
            return plan.say(Notice::Cache(CacheNotice::PromotionFailed { site: target.clone(), because }));
        }
        cache_of(plan).promoting = Some(target.clone());
        plan.say(Notice::Cache(CacheNotice::PromotionStarted { site: target.clone() }));
    }

    pub(super) fn go_on_promoting(
        &mut self,
        now: Now,
        kept: &Kept,
        cache: &CacheKept,
        target: &Site,
        plan: &mut Plan<'_>,
        out: &mut Step,
    ) {
        let mut run = self.caching.run.take().unwrap_or_else(|| Run::new(target, now));
        if run.won.is_none() && self.cache_is_master(target) {
            // Promoted already, by a leader before this one or in spite of an answer that was lost.
            run.won = Some(run.trying.or(run.failed.last().copied()).unwrap_or(PromotionMethod::Takeover));
        }
        if let Some(method) = run.won {
            self.caching.run = Some(run);
            return self.promoted_cache(now, cache, target, method, plan);
        }
        let busy = self.is_busy(target, Lane::Cache);
        if let Some(lost) = run.trying.take_if(|_| !busy) {
            run.failed.push(lost);
            "no answer came".clone_into(&mut run.error);
        }
        let overdue = now.boot >= run.since + self.promotion_bound(kept, target);
        let next = if overdue { None } else { self.next_method(now, kept, cache, &run) };
        match next {
            // Not asked yet by this leader: it may be promoted already.
            None if !overdue && self.seen.site(target).is_some_and(|seen| seen.cache.is_none()) => {}
            None if run.trying.is_none() || overdue => self.promotion_failed(now, target, &run.error, plan),
            Some((method, task)) if !busy && self.traffic_is_off(now, &run) => {
                if self.begin(now, target, Task::Cache(task), out) {
                    run.trying = Some(method);
                }
            }
            None | Some(_) => {}
        }
        self.caching.run = Some(run);
    }

    /// With the old master's help if it can give any; without it only if that one is gone or the database moved.
    fn next_method(&self, now: Now, kept: &Kept, cache: &CacheKept, run: &Run) -> Option<(PromotionMethod, CacheTask)> {
        let facts = self.cache_facts(&run.target)?;
        let planned = is_planned(kept, &run.target);
        let gone = |active: &Site| self.active_cache_lost(active) || self.active_cache_follows(active);
        let lost = cache.active.as_ref().is_none_or(gone);
        let linked = matches!(facts.role, CacheRole::Replica { link_up: true, .. });
        let helped = facts.takeover && (linked || !lost);
        if (helped || planned) && !run.failed.contains(&PromotionMethod::Takeover) {
            let within = if planned { self.takeover_bound() } else { TAKEOVER };
            return Some((PromotionMethod::Takeover, CacheTask::TakeOver { within }));
        }
        let forced = !planned && (lost || self.emergency_site(now, kept).as_ref() == Some(&run.target));
        (forced && !run.failed.contains(&PromotionMethod::NoOne))
            .then_some((PromotionMethod::NoOne, CacheTask::Promote))
    }

    /// In whole seconds, rounded up.
    fn takeover_bound(&self) -> Millis {
        let wait = self.spec.cache.as_ref().map_or(TAKEOVER, |cache| cache.max_sync_wait);
        Millis::from_secs(wait.0.div_ceil(1000))
    }

    fn promotion_bound(&self, kept: &Kept, target: &Site) -> Millis {
        if is_planned(kept, target) { self.takeover_bound() + Millis::from_secs(4) } else { Millis::from_secs(15) }
    }

    /// Whether the old master's pod is known to get no new connections, or that was waited for long enough.
    fn traffic_is_off(&self, now: Now, run: &Run) -> bool {
        self.labels_are_off(run.asked) || now.boot >= run.since + LABEL_BOUND
    }

    /// Whether the labels were made so that no cache gets traffic, as of that time.
    pub(super) fn labels_are_off(&self, asked: Wall) -> bool {
        let wanted = self.shown.as_ref().and_then(|(_, wanted)| wanted.cache.as_ref());
        let off = wanted.is_some_and(|labels| !labels.traffic);
        off && self.seen.shown.as_ref().is_some_and(|shown| shown.labels && shown.at >= asked)
    }

    /// A task of a promotion ended. What was polled before it is no news any more.
    pub(super) fn promotion_ended(&mut self, site: &Site, method: PromotionMethod, failure: Option<String>) {
        let Some(run) = self.caching.run.as_mut().filter(|run| run.target == *site) else { return };
        run.trying = None;
        if let Some(because) = failure {
            run.failed.push(method);
            run.error = because;
            return;
        }
        run.won = Some(method);
        let old = self.kept().and_then(|kept| kept.cache.as_ref()?.active.clone());
        for (name, seen) in &mut self.seen.sites {
            if name == site
                && let Some(Some(facts)) = &mut seen.cache
            {
                let offset = facts.offset();
                facts.role = CacheRole::Master { offset, replicas: 0 };
            } else if Some(name) == old.as_ref() {
                seen.cache = None;
            }
        }
    }

    fn promoted_cache(
        &mut self,
        now: Now,
        cache: &CacheKept,
        target: &Site,
        method: PromotionMethod,
        plan: &mut Plan<'_>,
    ) {
        let old = cache.active.clone().filter(|old| old != target);
        self.caching.taken_from = old.map(|old| (old, method == PromotionMethod::Takeover));
        self.caching.pause.succeeded();
        let next = cache_of(plan);
        next.promoting = None;
        next.active = Some(target.clone());
        next.stale_masters.remove(target);
        next.last_promotion = Some(Move { at: now.wall, to: target.clone() });
        plan.say(Notice::Cache(CacheNotice::PromotionCompleted { site: target.clone() }));
        if method == PromotionMethod::NoOne {
            plan.say(Notice::Cache(CacheNotice::SessionsLost { site: target.clone() }));
        }
        stamp(plan, target, |planned| {
            let reached = planned.source_offset.is_some() && planned.target_offset >= planned.source_offset;
            let doubted = planned.sessions_preserved == Some(false);
            planned.sessions_preserved = Some(method == PromotionMethod::Takeover && reached && !doubted);
            planned.method = method;
        });
    }

    fn promotion_failed(&mut self, now: Now, target: &Site, error: &str, plan: &mut Plan<'_>) {
        self.caching.pause.failed(now.boot);
        cache_of(plan).promoting = None;
        let because = if error.is_empty() { "it cannot be promoted now".to_owned() } else { error.to_owned() };
        plan.say(Notice::Cache(CacheNotice::PromotionFailed { site: target.clone(), because: because.clone() }));
        stamp(plan, target, |planned| {
            planned.sessions_preserved = Some(false);
            planned.reason = Some(PlannedReason::CachePromotionFailed);
            planned.message = because;
        });
    }

    /// Those still connected to another cache than the new master come back through the Service: once, best effort.
    pub(super) fn end_clients_elsewhere(&mut self, now: Now, cache: &CacheKept, out: &mut Step) {
        let recent = |last: &&Move| !self.ages.passed(last.at, END_CLIENTS, now);
        let Some(last) = cache.last_promotion.as_ref().filter(recent) else { return };
        if self.caching.clients_ended.0 != Some(last.at) {
            self.caching.clients_ended = (Some(last.at), std::collections::BTreeSet::new());
        }
        for site in self.spec.names() {
            let there = Some(&site) != cache.active.as_ref() && !self.cache_is_silent(&site);
            if there
                && !self.caching.clients_ended.1.contains(&site)
                && self.begin(now, &site, Task::Cache(CacheTask::EndClients), out)
            {
                self.caching.clients_ended.1.insert(site);
            }
        }
    }
}

impl Run {
    fn new(target: &Site, now: Now) -> Self {
        Self {
            target: target.clone(),
            since: now.boot,
            asked: now.wall,
            trying: None,
            failed: Vec::new(),
            won: None,
            error: String::new(),
        }
    }
}

/// Whether this promotion is a phase of a planned failover.
fn is_planned(kept: &Kept, target: &Site) -> bool {
    kept.planned
        .as_ref()
        .is_some_and(|planned| planned.phase == PlannedPhase::PromotingCache && planned.target == *target)
}

/// What came of it goes into the planned failover whose phase it was, together with the result itself.
fn stamp(plan: &mut Plan<'_>, target: &Site, change: impl FnOnce(&mut PlannedCache)) {
    if is_planned(plan.next(), target)
        && let Some(planned) = &mut plan.change().planned
    {
        change(planned.cache.get_or_insert_default());
    }
}
