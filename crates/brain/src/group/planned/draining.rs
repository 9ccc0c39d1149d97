//! Draining: the source's own sidecar fences it and says what it has executed since; then its sessions are ended.

use super::super::command::{Lane, Task};
use super::super::input::Outcome;
use super::super::kept::{Planned, PlannedPhase, PlannedReason};
use super::super::save::Plan;
use super::super::{Group, Step};
use crate::name::Site;
use crate::record::Record;
use crate::time::{Millis, Now};

/// The source's sidecar acknowledges within this long, or the run is taken back.
const FENCE_BOUND: Millis = Millis::from_secs(5);

/// Between two passes over the sessions.
const PASS: Millis = Millis::from_secs(1);

impl Group {
    pub(super) fn draining(
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
        if planned.source_gtid.is_none() {
            return self.await_fence(now, record, planned, plan, out);
        }
        let lost = self.source_lost(record, &planned.source);
        self.end_sessions(now, planned, lost, plan, out);
        self.catch_up(now, planned, out);
    }

    /// The acknowledgement of the revocation is the proof, and carries the set read after the fence. What follows from it
    /// begins while it is being stored: neither a session's end nor a wait decides anything.
    fn await_fence(&mut self, now: Now, record: &Record, planned: &Planned, plan: &mut Plan<'_>, out: &mut Step) {
        let Some(source) = Self::source_of(record).cloned() else { return };
        let fenced = self.seen.evidence.acknowledged_fenced(record, &source);
        let executed = self.seen.evidence.heard.get(&source).and_then(|heard| heard.gtid.clone()).filter(|_| fenced);
        if let Some(executed) = executed {
            let fenced = Planned { source_gtid: Some(executed), drain_started: Some(now.wall), ..planned.clone() };
            self.end_sessions_once(now, &fenced, out);
            self.catch_up(now, &fenced, out);
            return plan.enter(PlannedPhase::Draining, |planned| *planned = fenced);
        }
        if fenced || self.source_lost(record, &planned.source) {
            let message = "the source was lost while it was being fenced; the emergency path goes on";
            return plan.fail(now, PlannedReason::SourceCrashed, message);
        }
        if now.boot >= self.phase_since(now) + FENCE_BOUND {
            let message = "the source's sidecar did not acknowledge its fence in time";
            plan.take_back(PlannedReason::InternalError, message);
        }
    }

    /// At once, then every second, until nobody is left or the time is over; it goes on either way.
    fn end_sessions(&mut self, now: Now, planned: &Planned, lost: bool, plan: &mut Plan<'_>, out: &mut Step) {
        let left = self.planning.sessions.and_then(|(_, left)| left);
        let over = planned.drain_started.is_none_or(|began| self.ages.passed(began, planned.drain_timeout, now));
        if left == Some(0) || over || lost {
            return plan.enter(PlannedPhase::WaitingForLag, |planned| {
                planned.remaining_connections = left;
                planned.lag_wait_started = Some(now.wall);
                if let Some(left) = left.filter(|left| *left > 0) {
                    planned.message = format!("{left} sessions were left when the time to end them was over");
                }
            });
        }
        self.end_sessions_once(now, planned, out);
    }

    /// One pass, if one is due.
    fn end_sessions_once(&mut self, now: Now, planned: &Planned, out: &mut Step) {
        let left = self.planning.sessions.and_then(|(_, left)| left);
        let due = self.planning.sessions.is_none_or(|(at, _)| now.boot >= at + PASS);
        if due
            && !self.is_busy(&planned.source, Lane::Fence)
            && self.begin(now, &planned.source, Task::EndSessions, out)
        {
            self.planning.sessions = Some((now.boot, left));
        }
    }

    /// A pass of ending sessions is over.
    pub(in super::super) fn sessions_ended(&mut self, now: Now, _: &Site, outcome: &Outcome) {
        if let Outcome::Sessions(left) = outcome {
            let at = self.planning.sessions.map_or(now.boot, |(at, _)| at);
            self.planning.sessions = Some((at, Some(*left)));
        }
    }
}
