//! Ordered updates: followers first, the primary last and only after it has handed over.

use super::save::Plan;
use super::{Group, Step};
use crate::time::Now;

/// What this leader remembers of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Memory {}

impl Group {
    pub(super) fn roll_sites(&mut self, _now: Now, _plan: &mut Plan, _out: &mut Step) {}
}
