//! Requests to overwrite a site by a clone: checked, refused with a reason, or accepted.

use super::save::Plan;
use super::{Group, Step};
use crate::time::Now;

/// What this leader remembers of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Memory {}

impl Group {
    pub(super) fn heed_reclone_request(&mut self, _now: Now, _plan: &mut Plan, _out: &mut Step) {}
}
