//! Taking a run back: authority returns to the source, which never lost a transaction. Possible until the target was
//! granted.

use super::super::kept::{Planned, PlannedPhase, PlannedReason};
use super::super::save::Plan;
use super::super::{Group, Kept};
use super::told;
use crate::record::{Cause, Phase, Record};
use crate::time::{Millis, Now};

/// Failed is stamped after this long, whether the source is open by then or not; the record is pursued on.
const STAMP: Millis = Millis::from_secs(10);

impl Plan<'_> {
    /// Begins to take the run back: the reason is stored, and it is not over until the source is open again.
    pub(super) fn take_back(&mut self, reason: PlannedReason, message: &str) {
        let Some(mut planned) = self.next().planned.clone() else { return };
        planned.reason = Some(reason);
        message.clone_into(&mut planned.message);
        self.say(told(&planned));
        let kept = self.change();
        kept.planned = Some(planned);
        if let Some(record) = &mut kept.record {
            record.cause = Cause::Rollback;
        }
    }
}

impl Group {
    pub(super) fn roll_back(&mut self, now: Now, record: &Record, planned: &Planned, plan: &mut Plan<'_>) {
        let since = *self.planning.rolling_back.get_or_insert(now.boot);
        let kept = plan.kept;
        let open = self.source_is_open(kept, planned);
        let over = open || now.boot >= since + STAMP || self.source_lost(record, &planned.source);
        if over {
            return plan.enter(PlannedPhase::Failed, |planned| planned.completed = Some(now.wall));
        }
        if let (Phase::Revoking, Some(source)) = (record.phase, Self::source_of(record).cloned()) {
            self.give_back(now, record, &source, plan);
        }
    }

    fn source_is_open(&self, kept: &Kept, planned: &Planned) -> bool {
        self.serving(kept).is_some_and(|member| member.site == planned.source)
    }
}
