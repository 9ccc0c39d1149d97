//! Filling empty sites by CLONE, and carrying out the clones that reclone requests ask for.

use super::save::Plan;
use super::{Group, Step};
use crate::time::Now;

/// What this leader remembers of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Memory {}

impl Group {
    pub(super) fn fill_empty_sites(&mut self, _now: Now, _plan: &mut Plan, _out: &mut Step) {}
}

impl Group {
    /// A clone ended, well or not.
    pub(super) fn clone_ended(&mut self, _now: Now, _site: &crate::name::Site, _outcome: &super::input::Outcome) {}
}

impl Group {
    pub(super) fn forgive_failed_clones(&mut self) {}
}
