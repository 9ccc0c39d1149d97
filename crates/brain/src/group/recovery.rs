//! Bringing sites back: old primaries, replicas that follow the wrong source, replicas whose threads stopped.

use super::save::Plan;
use super::{Group, Step};
use crate::time::Now;

/// What this leader remembers of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Memory {}

impl Group {
    pub(super) fn recover(&mut self, _now: Now, _plan: &mut Plan, _out: &mut Step) {}
}

impl Group {
    pub(super) fn take_reading(&mut self, _id: super::WorkId, _outcome: &super::input::Outcome) {}
}
