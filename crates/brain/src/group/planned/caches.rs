//! The cache's two phases: its target catches up, then takes over. Whatever goes wrong there delays the database by a
//! bounded time at most.

use super::super::kept::{Planned, PlannedPhase};
use super::super::save::Plan;
use super::super::{Group, Step};
use crate::record::Record;
use crate::time::Now;

impl Group {
    pub(super) fn waiting_for_cache(&mut self, _: Now, _: &Record, _: &Planned, plan: &mut Plan, _: &mut Step) {
        self.enter(PlannedPhase::PromotingCache, plan, |_| {});
    }

    pub(super) fn promoting_cache(&mut self, _: Now, _: &Record, _: &Planned, plan: &mut Plan, _: &mut Step) {
        self.enter(PlannedPhase::Promoting, plan, |_| {});
    }
}
