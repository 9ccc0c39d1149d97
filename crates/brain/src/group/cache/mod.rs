//! The Dragonfly cache follows along: observed, repaired, promoted after the database or in a planned failover. Best
//! effort; it never delays the database.

use super::command::{CacheLabels, CacheTask};
use super::save::Plan;
use super::{Group, Kept, Step};
use crate::name::Site;
use crate::time::Now;

/// What this leader remembers of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Memory {}

impl Group {
    pub(super) fn tend_cache(&mut self, _now: Now, _plan: &mut Plan, _out: &mut Step) {}

    /// A task at a site's cache ended.
    pub(super) fn cache_task_ended(
        &mut self,
        _now: Now,
        _site: &Site,
        _task: &CacheTask,
        _outcome: &super::input::Outcome,
    ) {
    }

    /// How the caches' pods should be labelled; none: there is no cache.
    pub(super) fn cache_labels(&self, _kept: &Kept) -> Option<CacheLabels> {
        None
    }
}
