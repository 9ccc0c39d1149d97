//! Waiting for lag: the target applies everything that the source had after its fence.

use super::super::command::Task;
use super::super::kept::{Planned, PlannedPhase, PlannedReason};
use super::super::save::Plan;
use super::super::{Group, Step};
use crate::candidate::drain::{Applier, Receiver};
use crate::record::Record;
use crate::site::State;
use crate::time::Now;

impl Group {
    pub(super) fn waiting_for_lag(
        &mut self,
        now: Now,
        record: &Record,
        planned: &Planned,
        plan: &mut Plan<'_>,
        out: &mut Step,
    ) {
        if Self::is_granted_to_target(record, planned) {
            return plan.enter(PlannedPhase::Promoting, |_| {});
        }
        if !Self::is_ours(record, planned) {
            return plan.fail(now, PlannedReason::SourceCrashed, "authority was moved by another way");
        }
        if self.target_holds(planned) {
            let next = if self.spec.cache.is_some() { PlannedPhase::WaitingForCache } else { PlannedPhase::Promoting };
            return plan.enter(next, |_| {});
        }
        if self.source_lost(record, &planned.source) {
            let message = "the source was lost before the target had everything; the emergency path goes on";
            return plan.fail(now, PlannedReason::SourceCrashed, message);
        }
        if let Some(message) = self.target_fails(planned) {
            return plan.take_back(PlannedReason::TargetUnhealthy, &message);
        }
        if planned.lag_wait_started.is_none_or(|began| self.ages.passed(began, planned.max_lag_wait, now)) {
            let message = format!("the target did not catch up within {} s", planned.max_lag_wait.0 / 1000);
            return plan.take_back(PlannedReason::LagTimeout, &message);
        }
        self.catch_up(now, planned, out);
    }

    /// Waits at the target for what the source had after its fence, a slice of the time, unless the target is known to have it.
    pub(super) fn catch_up(&mut self, now: Now, planned: &Planned, out: &mut Step) {
        if let Some(fenced) = planned.source_gtid.as_ref().filter(|_| !self.target_holds(planned)) {
            self.begin(now, &planned.target, Task::WaitFor { set: Box::new(fenced.clone()) }, out);
        }
    }

    /// The target cannot catch up, however long it is waited for.
    pub(super) fn target_fails(&self, planned: &Planned) -> Option<String> {
        let target = &planned.target;
        let Some(seen) = self.seen.site(target) else { return Some(format!("{target} is not declared any more")) };
        if seen.watch.state == State::Unreachable {
            return Some(format!("{target} is unreachable"));
        }
        let replica = seen.facts.as_ref()?.replica.as_ref();
        match replica {
            None => Some(format!("{target} does not replicate any more")),
            Some(replica) => match (&replica.applier, replica.receiver) {
                (Applier::Failed { code, message }, _) => {
                    Some(format!("{target}'s applier failed with error {code}: {message}"))
                }
                (_, Receiver::Connecting) if replica.receiver_error.is_some() => {
                    let error = replica.receiver_error.as_deref().unwrap_or_default();
                    Some(format!("{target} cannot receive while the source lives: {error}"))
                }
                (_, Receiver::Stopped) => Some(format!("{target} stopped receiving while the source lives")),
                _ => None,
            },
        }
    }
}
