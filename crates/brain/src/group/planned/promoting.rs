//! Promoting and resuming: authority goes to the target with the proof from the drain; the record does the rest.

use super::super::kept::{Origin, Planned, PlannedPhase, PlannedReason};
use super::super::save::Plan;
use super::super::{Group, Obstacle};
use crate::authority;
use crate::name::Member;
use crate::record::{Phase, Record};
use crate::time::{Millis, Now};
use bloodraven_gtid::GtidSet;
use std::collections::BTreeMap;

/// A promotion that takes longer is no planned one any more.
const BUDGET: Millis = Millis::from_secs(120);

impl Group {
    pub(super) fn promoting(&mut self, now: Now, record: &Record, planned: &Planned, plan: &mut Plan) {
        let at_target = record.seat.as_ref().is_some_and(|seat| seat.site == planned.target);
        match record.phase {
            Phase::Stable if at_target => self.promoted(now, planned, plan),
            Phase::Granting if at_target => {
                if now.boot >= self.phase_since(now) + BUDGET {
                    let message = "the target could not be opened in time; the move goes on from the record";
                    self.fail(now, PlannedReason::ExecuteFailed, message, plan);
                }
            }
            Phase::Revoking if Self::is_ours(record, planned) => self.promote(now, record, planned, plan),
            Phase::Stable | Phase::Granting | Phase::Revoking => {
                let message = "authority was moved away from the target before it was open; the emergency path goes on";
                self.fail(now, PlannedReason::ExecuteFailed, message, plan);
            }
        }
    }

    fn promote(&mut self, now: Now, record: &Record, planned: &Planned, plan: &mut Plan) {
        let lost = self.source_lost(record, &planned.source);
        if !self.target_holds(planned) {
            let message = "the target lacks what the source had";
            return self.give_up_target(now, lost, PlannedReason::TargetUnhealthy, message, plan);
        }
        let present = self.present(record.settings.lease_timeout, &planned.target);
        let target = present.map(|instance| Member::new(&planned.target, &instance));
        let listed = target.filter(|member| record.voters.contains(member));
        let unreachable = self.seen.site(&planned.target).is_none_or(|seen| !seen.watch.state.is_reachable());
        if unreachable || now.boot >= self.phase_since(now) + BUDGET {
            let message = "the target was lost before authority was given to it";
            return self.give_up_target(now, lost, PlannedReason::TargetUnhealthy, message, plan);
        }
        let release = authority::release(record, &self.seen.evidence, self.spec.proof, now);
        match (listed, release) {
            (Some(target), Ok(release)) => {
                let nothing = (BTreeMap::new(), GtidSet::new());
                self.give(now, record, &release, &target, nothing.0, nothing.1, plan);
            }
            (Some(_), Err(missing)) => self.obstacle = Some(Obstacle::Release(missing)),
            (None, _) => self.obstacle = Some(Obstacle::Planned),
        }
    }

    /// Authority goes back to the source while it lives; else the emergency path goes on at once.
    pub(super) fn give_up_target(
        &mut self,
        now: Now,
        lost: bool,
        reason: PlannedReason,
        message: &str,
        plan: &mut Plan,
    ) {
        if lost {
            self.fail(now, PlannedReason::SourceCrashed, message, plan);
        } else {
            self.take_back(reason, message, plan);
        }
    }

    fn promoted(&mut self, _: Now, planned: &Planned, plan: &mut Plan) {
        let target_gtid = plan.kept.promotion.clone();
        let lost = match (&planned.source_gtid, &target_gtid) {
            (Some(source), Some(target)) => u64::try_from(source.subtract(target).count()).ok(),
            _ => None,
        };
        self.enter(PlannedPhase::Resuming, plan, |planned| {
            planned.target_gtid = target_gtid;
            planned.transactions_lost = lost;
        });
    }

    /// Labels and the name follow the record; the run is over when the target is seen to serve.
    pub(super) fn resuming(&mut self, now: Now, record: &Record, planned: &Planned, plan: &mut Plan) {
        let there = record.seat.as_ref().is_some_and(|seat| seat.site == planned.target);
        let kept = plan.kept.clone();
        if there && self.serving(&kept).is_none() && now.boot < self.phase_since(now) + BUDGET {
            return;
        }
        let lost = planned.transactions_lost.map_or_else(|| "an unknown number of".to_owned(), |lost| lost.to_string());
        let message = format!("promoted {}, {lost} transactions lost", planned.target);
        let by_update = planned.origin == Origin::OrderedUpdate;
        self.enter(PlannedPhase::Succeeded, plan, |planned| {
            planned.completed = Some(now.wall);
            planned.message = if by_update { format!("{message} (ordered update)") } else { message };
        });
    }
}
