//! Tasks at a site: one at a time in each lane, bounded, and forgotten when their bound is long over.

use super::command::{Command, Lane, Task, WorkId};
use super::input::Outcome;
use super::{Group, Step};
use crate::name::Site;
use crate::record::Epoch;
use crate::time::{Boot, Millis, Now};

/// The hands answer by the bound; so much later the answer is not coming.
const SLACK: Millis = Millis(5000);

/// After a reading that brought nothing.
const REST: Millis = Millis(1000);

/// A task without an answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Running {
    pub(super) site: Site,
    pub(super) task: Task,
    pub(super) began_under: Epoch,
    pub(super) begun: Boot,
    until: Boot,
}

impl Group {
    /// Begins a task, unless its lane at that site is taken. Returns whether it was begun.
    pub(super) fn begin(&mut self, now: Now, site: &Site, task: Task, out: &mut Step) -> bool {
        let bound = match task {
            Task::Clone { .. } => self.spec.clone_timeout,
            _ => task.bound(),
        };
        let rests = task.lane() == Lane::Read && self.seen.site(site).is_some_and(|seen| now.boot < seen.read_due);
        if rests || self.is_busy(site, task.lane()) {
            return false;
        }
        let server = self.seen.site(site).and_then(|seen| seen.facts.as_ref()).map(|facts| facts.server_uuid);
        let began_under = self.kept().map_or(0, |kept| kept.epoch());
        let id = WorkId(self.take_id());
        let running = Running {
            site: site.clone(),
            task: task.clone(),
            began_under,
            begun: now.boot,
            until: now.boot + bound + SLACK,
        };
        self.work.insert(id, running);
        out.commands.push(Command::Work { id, site: site.clone(), server, task, within: bound });
        true
    }

    /// Whether something runs in that lane at that site.
    pub(super) fn is_busy(&self, site: &Site, lane: Lane) -> bool {
        self.work.values().any(|running| running.site == *site && running.task.lane() == lane)
    }

    /// Whether that is true of a task that runs.
    pub(super) fn runs(&self, of: impl Fn(&Site, &Task) -> bool) -> bool {
        self.work.values().any(|running| of(&running.site, &running.task))
    }

    pub(super) fn forget_overdue_work(&mut self, now: Now) {
        self.work.retain(|_, running| now.boot < running.until);
    }

    /// A task ended. Tells which, once.
    pub(super) fn end(&mut self, id: WorkId, outcome: &Outcome, now: Now) -> Option<Running> {
        let running = self.work.remove(&id)?;
        let failed = matches!(outcome, Outcome::Failed(_) | Outcome::Refused(_));
        if failed && matches!(running.task, Task::StartApplier | Task::LiftDelay) {
            self.drain_task_failed(&running.site);
        }
        let said_nothing = matches!(outcome, Outcome::Read(facts) if facts.data.is_none());
        if let Some(seen) = self.seen.sites.get_mut(&running.site)
            && running.task.lane() == Lane::Read
            && (failed || said_nothing)
        {
            seen.read_due = now.boot + REST;
        }
        if let Some(seen) = self.seen.sites.get_mut(&running.site)
            && running.task.lane() == Lane::Change
        {
            match outcome {
                Outcome::Failed(_) | Outcome::Refused(_) => seen.change.failed(now.boot),
                Outcome::Ok
                | Outcome::Read(_)
                | Outcome::Sessions(_)
                | Outcome::Cloned
                | Outcome::Logins(_)
                | Outcome::Offset(_) => seen.change.succeeded(),
            }
        }
        Some(running)
    }

    /// Whether replication at that site may be changed now: nothing of the kind runs, and the last failure is long ago.
    pub(super) fn may_change(&self, now: Now, site: &Site) -> bool {
        !self.is_busy(site, Lane::Change) && self.seen.site(site).is_some_and(|seen| seen.change.may_try(now.boot))
    }

    /// A task ended without reading anything: whoever began it hears of it.
    pub(super) fn task_ended(&mut self, now: Now, site: &Site, task: &Task, outcome: &Outcome, out: &mut Step) {
        match task {
            Task::Clone { .. } => self.clone_ended(now, site, outcome),
            Task::EndSessions => self.sessions_ended(now, site, outcome),
            Task::SwitchSemiSync(_) => self.switch_ended(site, outcome),
            Task::CheckLogins { version } => self.logins_checked(now, site, *version, outcome),
            Task::SetPasswords { .. } | Task::DiscardPasswords { .. } => {
                self.passwords_changed(now, site, task, outcome, out);
            }
            Task::RenewChannel { .. } => self.channel_renewed(site, outcome),
            Task::Cache(task) => self.cache_task_ended(now, site, task, outcome),
            // Level-triggered: what is missing is seen by the next reading.
            Task::Read
            | Task::Fence
            | Task::StopReceiver
            | Task::StartApplier
            | Task::LiftDelay
            | Task::CutReplication { .. }
            | Task::StartReplica
            | Task::Attach { .. }
            | Task::Repoint { .. }
            | Task::WaitFor { .. } => {}
        }
    }
}
