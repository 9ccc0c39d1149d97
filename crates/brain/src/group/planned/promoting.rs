//! Promoting and resuming: authority goes to the target with the proof from the drain; the record does the rest.

use super::super::command::Task;
use super::super::kept::{Origin, Planned, PlannedPhase, PlannedReason};
use super::super::save::Plan;
use super::super::{Group, Obstacle, Step};
use crate::authority;
use crate::name::Member;
use crate::record::{Phase, Record};
use crate::site::State;
use crate::time::{Millis, Now};
use bloodraven_gtid::GtidSet;
use std::collections::BTreeMap;

/// A promotion that takes longer is no planned one any more.
const BUDGET: Millis = Millis::from_secs(120);

impl Group {
    pub(super) fn promoting(
        &mut self,
        now: Now,
        record: &Record,
        planned: &Planned,
        plan: &mut Plan<'_>,
        out: &mut Step,
    ) {
        let at_target = record.seat.as_ref().is_some_and(|seat| seat.site == planned.target);
        match record.phase {
            Phase::Stable if at_target => Self::promoted(now, planned, plan),
            Phase::Granting if at_target => {
                if now.boot >= self.phase_since(now) + BUDGET {
                    let message = "the target could not be opened in time; the move goes on from the record";
                    plan.fail(now, PlannedReason::ExecuteFailed, message);
                }
            }
            Phase::Revoking if Self::is_ours(record, planned) => self.promote(now, record, planned, plan, out),
            Phase::Stable | Phase::Granting | Phase::Revoking => {
                let message = "authority was moved away from the target before it was open; the emergency path goes on";
                plan.fail(now, PlannedReason::ExecuteFailed, message);
            }
        }
    }

    fn promote(&mut self, now: Now, record: &Record, planned: &Planned, plan: &mut Plan<'_>, out: &mut Step) {
        let lost = self.source_lost(record, &planned.source);
        // A reading from before this run may be of a server that was replaced since.
        let since = record.revoked_at.unwrap_or(record.epoch);
        if !self.seen.site(&planned.target).is_some_and(|seen| seen.read_since(since)) {
            self.obstacle = Some(Obstacle::Reading(vec![planned.target.clone()]));
            self.begin(now, &planned.target, Task::Read, out);
            self.give_up_silent_target(now, lost, planned, plan);
            return;
        }
        if !self.target_holds(planned) {
            let message = "the target lacks what the source had";
            return give_up_target(now, lost, PlannedReason::TargetUnhealthy, message, plan);
        }
        let present = self.present(record.settings.lease_timeout, &planned.target);
        let target = present.map(|instance| Member::new(&planned.target, instance));
        let listed = target.filter(|member| record.voters.contains(member));
        if self.give_up_silent_target(now, lost, planned, plan) {
            return;
        }
        let release = authority::release(record, &self.seen.evidence, self.spec.proof, now);
        match (listed, release) {
            (Some(target), Ok(release)) => {
                let nothing = (BTreeMap::new(), GtidSet::new());
                self.give(now, record, &release, &target, nothing.0, nothing.1, plan);
                // While that is being stored: the target has everything, and the source sends nothing more.
                self.stop_receiving(now, &target.site, out);
            }
            (Some(_), Err(missing)) => self.obstacle = Some(Obstacle::Release(missing)),
            (None, _) => self.obstacle = Some(Obstacle::Planned),
        }
    }

    /// The target does not answer, or takes too long. Returns whether it was given up.
    fn give_up_silent_target(&mut self, now: Now, lost: bool, planned: &Planned, plan: &mut Plan<'_>) -> bool {
        let unreachable = self.seen.site(&planned.target).is_none_or(|seen| seen.watch.state == State::Unreachable);
        let gone = unreachable || now.boot >= self.phase_since(now) + BUDGET;
        if gone {
            let message = "the target was lost before authority was given to it";
            give_up_target(now, lost, PlannedReason::TargetUnhealthy, message, plan);
        }
        gone
    }

    fn promoted(now: Now, planned: &Planned, plan: &mut Plan<'_>) {
        let target_gtid = plan.kept.promotion.clone();
        let lost = match (&planned.source_gtid, &target_gtid) {
            (Some(source), Some(target)) => u64::try_from(source.subtract(target).count()).ok(),
            _ => None,
        };
        if lost.is_some_and(|lost| lost > 0) {
            let message = "the target was opened without everything that the source had";
            return plan.fail(now, PlannedReason::ExecuteFailed, message);
        }
        plan.enter(PlannedPhase::Resuming, |planned| {
            planned.target_gtid = target_gtid;
            planned.transactions_lost = lost;
        });
    }

    /// Labels and the name follow the record; the run is over when the target is seen to serve.
    pub(super) fn resuming(&mut self, now: Now, record: &Record, planned: &Planned, plan: &mut Plan<'_>) {
        let there = record.seat.as_ref().is_some_and(|seat| seat.site == planned.target);
        let kept = plan.kept;
        let lives = record.seat.as_ref().is_some_and(|seat| {
            let reachable = self.seen.site(&seat.site).is_some_and(|seen| seen.watch.state != State::Unreachable);
            reachable && self.speaks_for(record, seat)
        });
        if there && lives && self.serving(kept).is_none() && now.boot < self.phase_since(now) + BUDGET {
            return;
        }
        let lost = planned.transactions_lost.map_or_else(|| "an unknown number of".to_owned(), |lost| lost.to_string());
        let message = format!("promoted {}, {lost} transactions lost", planned.target);
        let by_update = planned.origin == Origin::OrderedUpdate;
        plan.enter(PlannedPhase::Succeeded, |planned| {
            planned.completed = Some(now.wall);
            planned.message = if by_update { format!("{message} (ordered update)") } else { message };
        });
    }
}

/// Authority goes back to the source while it lives; else the emergency path goes on at once.
fn give_up_target(now: Now, lost: bool, reason: PlannedReason, message: &str, plan: &mut Plan<'_>) {
    if lost {
        plan.fail(now, PlannedReason::SourceCrashed, message);
    } else {
        plan.take_back(reason, message);
    }
}
