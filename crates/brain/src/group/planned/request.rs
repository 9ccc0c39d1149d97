//! The request: accepted, refused, skipped or deferred. It is removed once what became of it is stored.

use super::super::command::{Command, RequestKind};
use super::super::input::{PlannedWish, Request};
use super::super::kept::{Kept, Origin, Planned, PlannedPhase, PlannedReason};
use super::super::save::Plan;
use super::super::{Group, Notice, Step};
use super::checks::Refusal;
use super::told;
use crate::authority;
use crate::cooldown::{self, Reach};
use crate::name::Site;
use crate::record::{Cause, Record};
use crate::time::{Millis, Now, Wall};

/// A request is gone within this long after it was accepted, or the run goes on beside it.
const REMOVAL_BOUND: Millis = Millis::from_secs(10);

impl Group {
    pub(super) fn heed_planned_request(&mut self, now: Now, plan: &mut Plan<'_>, out: &mut Step) {
        let Some(request) = self.seen.requests.planned.clone() else {
            (self.planning.dealt_with, self.planning.rejecting) = (None, None);
            return;
        };
        if self.planning.dealt_with.as_ref() == Some(&request.text) {
            return remove(&request.text, out);
        }
        self.planning.dealt_with = None;
        let kept = plan.kept;
        // Rejected, and that is stored: now it may go. One whose end could not be stored is looked at again.
        let rejecting = self.planning.rejecting.take();
        if rejecting.is_some_and(|(text, planned)| text == request.text && kept.planned.as_ref() == Some(&*planned)) {
            self.planning.dealt_with = Some(request.text.clone());
            return remove(&request.text, out);
        }
        match kept.planned.as_ref().filter(|planned| !planned.phase.is_terminal()) {
            // Its own request, seen again after a crash: it is removed while Pending, see there.
            Some(planned) if is_of(&request, planned) => {}
            Some(planned) if planned.phase.is_active() => self.reject_beside(&request, out),
            // A deferred run whose request was replaced by another one.
            Some(_) | None => self.take_request(now, kept, &request, plan),
        }
    }

    fn take_request(&mut self, now: Now, kept: &Kept, request: &Request<PlannedWish>, plan: &mut Plan<'_>) {
        let wish = match &request.wish {
            Ok(wish) => wish,
            Err(message) => {
                let target = Site::new("");
                return self.reject(
                    now,
                    kept,
                    request,
                    target,
                    (PlannedReason::InvalidAnnotation, message.clone()),
                    plan,
                );
            }
        };
        if self.still_looks_around(now, kept, &wish.site) {
            return;
        }
        match self.check_request(now, kept, wish) {
            Ok(()) => self.accept(now, kept, wish, PlannedPhase::Pending, None, plan),
            Err(Refusal::AlreadyActive) => {
                self.planning.dealt_with = Some(request.text.clone());
                plan.say(Notice::PlannedSkipped { target: wish.site.clone() });
            }
            Err(Refusal::Rejected(reason, message)) => {
                self.reject(now, kept, request, wish.site.clone(), (reason, message), plan);
            }
            // One that waits already does not come here: it is known by its run.
            Err(Refusal::Cooldown(active)) if self.spec.planned.defer => {
                self.accept(now, kept, wish, PlannedPhase::Deferred, Some(active.retry_after), plan);
            }
            Err(Refusal::Cooldown(active)) => {
                let message = format!(
                    "a failover happened {} s ago; retry after {}",
                    (active.cooldown.0.saturating_sub(active.remaining.0)) / 1000,
                    stamp(active.retry_after)
                );
                self.reject(now, kept, request, wish.site.clone(), (PlannedReason::CooldownActive, message), plan);
            }
        }
    }

    fn accept(
        &mut self,
        now: Now,
        kept: &Kept,
        wish: &PlannedWish,
        phase: PlannedPhase,
        retry_after: Option<Wall>,
        plan: &mut Plan<'_>,
    ) {
        let deferred = retry_after.is_some();
        let request_id = wish.id.clone().unwrap_or_else(|| format!("{}-{}", wish.site, now.wall.0));
        let planned = Planned {
            reason: deferred.then_some(PlannedReason::CooldownActive),
            message: retry_after
                .map(|at| format!("waits for the cooldown; retry after {}", stamp(at)))
                .unwrap_or_default(),
            phase,
            retry_after,
            max_lag_wait: wish.max_lag_wait.unwrap_or(self.spec.planned.max_lag_wait),
            ..self.new_plan(now, kept, request_id, wish.site.clone(), Origin::Annotation)
        };
        plan.say(told(&planned));
        plan.change().planned = Some(planned);
    }

    fn new_plan(&self, now: Now, kept: &Kept, request_id: String, target: Site, origin: Origin) -> Planned {
        let source = kept.record.as_ref().and_then(|record| record.seat.as_ref()).map(|seat| seat.site.clone());
        Planned {
            phase: PlannedPhase::Pending,
            request_id,
            origin,
            target,
            source: source.unwrap_or_else(|| Site::new("")),
            source_gtid: None,
            target_gtid: None,
            started: now.wall,
            completed: None,
            transactions_lost: None,
            reason: None,
            message: String::new(),
            max_lag_wait: self.spec.planned.max_lag_wait,
            drain_timeout: self.spec.planned.drain_timeout,
            drain_started: None,
            remaining_connections: None,
            lag_wait_started: None,
            retry_after: None,
            cache: None,
        }
    }

    /// The hand-over of an ordered update: the same run, begun without a request.
    pub(in super::super) fn plan_hand_over(&mut self, now: Now, target: &Site, plan: &mut Plan<'_>) {
        let kept = plan.kept;
        let id = format!("update-{}-{}", target, now.wall.0);
        let planned = Planned {
            phase: PlannedPhase::Validating,
            ..self.new_plan(now, kept, id, target.clone(), Origin::OrderedUpdate)
        };
        plan.say(told(&planned));
        plan.change().planned = Some(planned);
    }

    fn reject(
        &mut self,
        now: Now,
        kept: &Kept,
        request: &Request<PlannedWish>,
        target: Site,
        (reason, message): (PlannedReason, String),
        plan: &mut Plan<'_>,
    ) {
        let id = request.wish.as_ref().ok().and_then(|wish| wish.id.clone());
        let planned = Planned {
            phase: PlannedPhase::Failed,
            reason: Some(reason),
            message: message.clone(),
            completed: Some(now.wall),
            ..self.new_plan(now, kept, id.unwrap_or_default(), target, Origin::Annotation)
        };
        plan.say(Notice::PlannedRejected { reason, message });
        self.planning.rejecting = Some((request.text.clone(), Box::new(planned.clone())));
        plan.change().planned = Some(planned);
    }

    /// Beside a run in flight: people are told, the run's own status is untouched.
    fn reject_beside(&mut self, request: &Request<PlannedWish>, out: &mut Step) {
        self.planning.dealt_with = Some(request.text.clone());
        let message = "another planned failover is under way".to_owned();
        out.notices.push(Notice::PlannedRejected { reason: PlannedReason::ConcurrentOperation, message });
        remove(&request.text, out);
    }

    /// Accepted and stored: the request is removed, and seen to be gone, before anything follows. Otherwise it would be
    /// taken for a new one afterwards. One that cannot be removed does not hold anything up for long.
    pub(super) fn pending(&mut self, now: Now, planned: &Planned, plan: &mut Plan<'_>, out: &mut Step) {
        let kept = plan.kept;
        if self.still_looks_around(now, kept, &planned.target) {
            return;
        }
        if let Err((reason, message)) = self.check_source(kept, planned) {
            // Its request is dealt with, and must not be taken for another one.
            self.planning.dealt_with = self.seen.requests.planned.as_ref().map(|request| request.text.clone());
            return plan.fail(now, reason, &message);
        }
        match self.seen.requests.planned.clone().filter(|request| is_of(request, planned)) {
            Some(request) if now.boot < self.phase_since(now) + REMOVAL_BOUND => remove(&request.text, out),
            Some(request) => {
                self.planning.dealt_with = Some(request.text);
                plan.enter(PlannedPhase::Validating, |_| {});
            }
            None => plan.enter(PlannedPhase::Validating, |_| {}),
        }
    }

    /// All checks once more, then the source is revoked.
    pub(super) fn validating(&mut self, now: Now, record: &Record, planned: &Planned, plan: &mut Plan<'_>) {
        if Self::is_ours(record, planned) {
            // The revocation was stored, the phase was not.
            return plan.enter(PlannedPhase::Draining, |_| {});
        }
        let kept = plan.kept;
        if self.still_looks_around(now, kept, &planned.target) {
            return;
        }
        let by_update = planned.origin == Origin::OrderedUpdate;
        let checked = self
            .check_quiet(now, kept, by_update)
            .and_then(|()| self.check_source(kept, planned))
            .and_then(|()| self.check_target(now, kept, &planned.target, planned.max_lag_wait));
        if let Err((reason, message)) = checked {
            return plan.fail(now, reason, &message);
        }
        let cause = if by_update { Cause::OrderedUpdate } else { Cause::Planned };
        // Exempt moves may have happened since it was accepted.
        let last = self.seen.last_failover.as_ref();
        if let Err(active) = cooldown::may_start(cause, Reach::OtherSite, last, self.spec.cooldown, now.boot) {
            let message = format!("authority moved meanwhile; retry after {}", active.retry_after);
            return plan.fail(now, PlannedReason::CooldownActive, &message);
        }
        plan.enter(PlannedPhase::Draining, |planned| planned.reason = None);
        plan.set_record(authority::revoke(record, cause, now.wall));
    }

    /// The source has authority and answers. Whether it is open does not matter: one that was closed by hand can be moved
    /// away from, too.
    fn check_source(&self, kept: &Kept, planned: &Planned) -> Result<(), (PlannedReason, String)> {
        let record = kept.record.as_ref();
        let seat = record.and_then(|record| record.seat.as_ref());
        if seat.is_some_and(|seat| seat.site == planned.target) {
            return Err((PlannedReason::AlreadyActive, format!("{} is active already", planned.target)));
        }
        let answers = record.zip(seat).is_some_and(|(record, seat)| {
            let reachable = self.seen.site(&seat.site).is_some_and(|seen| seen.watch.state.is_reachable());
            seat.site == planned.source && reachable && self.speaks_for(record, seat)
        });
        if answers {
            Ok(())
        } else {
            Err((PlannedReason::SourceCrashed, format!("{} does not answer", planned.source)))
        }
    }

    /// Nothing is held up by a deferred run; it goes on when its time has come and its request still stands.
    pub(super) fn deferred(&mut self, now: Now, planned: &Planned, plan: &mut Plan<'_>) {
        let seat = plan.kept.record.as_ref().and_then(|record| record.seat.as_ref());
        if seat.is_some_and(|seat| seat.site == planned.target) {
            return plan.fail(now, PlannedReason::AlreadyActive, "the target became active meanwhile");
        }
        if !self.seen.requests.planned.as_ref().is_some_and(|request| is_of(request, planned)) {
            return plan.fail(now, PlannedReason::Cancelled, "the request was taken back");
        }
        let last = self.seen.last_failover.as_ref();
        if cooldown::may_start(Cause::Planned, Reach::OtherSite, last, self.spec.cooldown, now.boot).is_ok() {
            let source = seat.map_or_else(|| planned.source.clone(), |seat| seat.site.clone());
            plan.enter(PlannedPhase::Pending, |planned| {
                planned.reason = None;
                planned.message = String::new();
                planned.retry_after = None;
                planned.source = source;
            });
        }
    }
}

/// Whether that request is the one that the run was accepted from.
fn is_of(request: &Request<PlannedWish>, planned: &Planned) -> bool {
    let Ok(wish) = &request.wish else { return false };
    let same_id = wish.id.as_ref().is_none_or(|id| *id == planned.request_id);
    planned.origin == Origin::Annotation && wish.site == planned.target && same_id
}

fn remove(text: &str, out: &mut Step) {
    out.commands.push(Command::RemoveRequest { kind: RequestKind::PlannedFailover, text: text.to_owned() });
}

/// RFC 3339, to the second.
fn stamp(at: Wall) -> String {
    at.to_string()
}
