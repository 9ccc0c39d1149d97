//! Planned failover: the same move, asked for by an admin or by an update, without losing a transaction. A phase a file.

use super::save::Plan;
use super::{Group, Step};
use crate::time::Now;

/// What this leader remembers of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Memory {}

impl Group {
    pub(super) fn go_on_with_the_plan(&mut self, _now: Now, _plan: &mut Plan, _out: &mut Step) {}

    /// A pass of ending sessions is over.
    pub(super) fn sessions_ended(&mut self, _now: Now, _site: &crate::name::Site, _outcome: &super::input::Outcome) {}
}
