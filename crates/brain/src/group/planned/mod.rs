//! Planned failover: the same move, asked for by an admin or by an update, without losing a transaction. A phase a file.
//!
//! In: the request, what is stored of the run, what sites say. Out: the run's next phase, stored before anything depends
//! on it; the move itself is the record's. Must not: fence anything before every check has passed.
//!
//! A run with a reason that is not over is being taken back: authority returns to the source.

mod caches;
mod checks;
mod draining;
mod lag;
mod promoting;
mod request;
mod rollback;

#[cfg(test)]
mod tests;

use super::kept::{Kept, Planned, PlannedPhase, PlannedReason};
use super::save::Plan;
use super::{Group, Notice, Step};
use crate::name::{Member, Site};
use crate::record::{Cause, Phase, Record};
use crate::site::State;
use crate::time::{Boot, Now};

/// Draining, waiting for lag, promoting.
const IN_ONE_WRITE: usize = 3;

/// What this leader remembers of it: pacing, and what was dealt with already.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Memory {
    /// The text of a request that was refused or skipped; its removal is on its way.
    dealt_with: Option<String>,
    /// The request that is being rejected, and what is to be stored of it.
    rejecting: Option<(String, Box<Planned>)>,
    /// When sessions were last ended, and how many were left.
    sessions: Option<(Boot, Option<u64>)>,
    /// The phase this leader is in, and since when.
    phase: Option<(PlannedPhase, Boot)>,
    /// Since when it is being taken back.
    rolling_back: Option<Boot>,
}

impl Group {
    pub(super) fn go_on_with_the_plan(&mut self, now: Now, plan: &mut Plan<'_>, out: &mut Step) {
        self.heed_planned_request(now, plan, out);
        let kept = plan.kept;
        let Some(planned) = kept.planned.as_ref().filter(|planned| !planned.phase.is_terminal()) else {
            self.planning.phase = None;
            self.planning.rolling_back = None;
            return;
        };
        let (Some(record), true) = (&kept.record, plan.next().planned == kept.planned) else { return };
        let mut planned = planned.clone();
        // A phase whose end is known when it is entered is stored together with the next one: every write that is waited for
        // is a part of the time in which nobody can write. A grant ends it, like everything that changes the record.
        for _ in 0..IN_ONE_WRITE {
            self.one_phase(now, record, &planned, plan, out);
            match &plan.next().planned {
                Some(next) if goes_on_at_once(planned.phase, next) && !plan.record_changed() => planned = next.clone(),
                _ => return,
            }
        }
    }

    fn one_phase(&mut self, now: Now, record: &Record, planned: &Planned, plan: &mut Plan<'_>, out: &mut Step) {
        if self.planning.phase.is_none_or(|(phase, _)| phase != planned.phase) {
            self.planning.phase = Some((planned.phase, now.boot));
            self.planning.sessions = None;
        }
        if planned.reason.is_some() && planned.phase != PlannedPhase::Deferred {
            return self.roll_back(now, record, planned, plan);
        }
        match planned.phase {
            PlannedPhase::Pending => self.pending(now, planned, plan, out),
            PlannedPhase::Validating => self.validating(now, record, planned, plan),
            PlannedPhase::Deferred => self.deferred(now, planned, plan),
            PlannedPhase::Draining => self.draining(now, record, planned, plan, out),
            PlannedPhase::WaitingForLag => self.waiting_for_lag(now, record, planned, plan, out),
            PlannedPhase::WaitingForCache => self.waiting_for_cache(now, record, planned, plan, out),
            PlannedPhase::PromotingCache => self.promoting_cache(now, record, planned, plan, out),
            PlannedPhase::Promoting => self.promoting(now, record, planned, plan, out),
            PlannedPhase::Resuming => self.resuming(now, record, planned, plan),
            PlannedPhase::Succeeded | PlannedPhase::Failed => {}
        }
    }

    /// How long this leader has been in the present phase.
    fn phase_since(&self, now: Now) -> Boot {
        self.planning.phase.map_or(now.boot, |(_, since)| since)
    }

    /// The source's instance, as the record knows it.
    fn source_of(record: &Record) -> Option<&Member> {
        record.holder.as_ref().map(|holder| &holder.member)
    }

    /// Whether the source is gone: it does not answer, has ended, or lives on as another instance.
    fn source_lost(&self, record: &Record, source: &Site) -> bool {
        let unreachable = self.seen.site(source).is_none_or(|seen| seen.watch.state == State::Unreachable);
        let holder = Self::source_of(record).filter(|member| member.site == *source);
        let replaced = holder.is_none_or(|member| record.has_ended(member) || !self.speaks_for(record, member));
        unreachable || replaced
    }

    /// Whether the target has everything that the source had after its fence.
    fn target_holds(&self, planned: &Planned) -> bool {
        let executed = self.seen.site(&planned.target).and_then(|seen| seen.executed());
        matches!((executed, &planned.source_gtid), (Some(executed), Some(fenced)) if executed.contains(fenced))
    }

    /// Whether the record is still in the run of Revoking that this plan began.
    fn is_ours(record: &Record, planned: &Planned) -> bool {
        let from_source = Self::source_of(record).is_some_and(|member| member.site == planned.source);
        let begun_for_it = matches!(record.cause, Cause::Planned | Cause::OrderedUpdate | Cause::Rollback);
        record.phase == Phase::Revoking && from_source && begun_for_it
    }

    /// Whether the grant was stored that this plan is for, and the phase beside it was not.
    fn is_granted_to_target(record: &Record, planned: &Planned) -> bool {
        let at_target = record.seat.as_ref().is_some_and(|seat| seat.site == planned.target);
        at_target && matches!(record.cause, Cause::Planned | Cause::OrderedUpdate)
    }

    /// A planned failover to that site would be refused, and why; for the update, which asks first.
    pub(super) fn planned_obstacle(&self, now: Now, kept: &Kept, target: &Site) -> Option<(PlannedReason, String)> {
        self.check_target(now, kept, target, self.spec.planned.max_lag_wait).err()
    }
}

impl Plan<'_> {
    /// The run's next phase.
    pub(super) fn enter(&mut self, phase: PlannedPhase, change: impl FnOnce(&mut Planned)) {
        let Some(mut planned) = self.next().planned.clone() else { return };
        planned.phase = phase;
        change(&mut planned);
        self.say(told(&planned));
        self.change().planned = Some(planned);
    }

    /// The run is over, and authority is where it belongs, or the emergency path goes on from the record.
    fn fail(&mut self, now: Now, reason: PlannedReason, message: &str) {
        self.enter(PlannedPhase::Failed, |planned| {
            planned.reason = Some(reason);
            message.clone_into(&mut planned.message);
            planned.completed = Some(now.wall);
        });
    }
}

/// Whether the phase that was just entered is looked at before the one before it is stored: between the fence and the grant.
fn goes_on_at_once(before: PlannedPhase, next: &Planned) -> bool {
    let follows = matches!(
        (before, next.phase),
        (PlannedPhase::Draining, PlannedPhase::WaitingForLag) | (PlannedPhase::WaitingForLag, PlannedPhase::Promoting)
    );
    follows && next.reason.is_none()
}

fn told(planned: &Planned) -> Notice {
    Notice::PlannedChanged {
        target: planned.target.clone(),
        phase: planned.phase,
        reason: planned.reason,
        message: planned.message.clone(),
    }
}
