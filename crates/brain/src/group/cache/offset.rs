//! Offsets that are asked for outside of polls, for a planned failover cannot wait for the next one.
//!
//! In: the site. Out: the task, and its answer. Must not: ask more often than that.

use super::super::command::{CacheTask, Task};
use super::{Asked, Group};
use crate::group::Step;
use crate::name::Site;
use crate::time::{Millis, Now};

impl Group {
    /// Asks, unless it was asked a moment ago.
    pub(in super::super) fn ask_offset(&mut self, now: Now, site: &Site, again: Millis, out: &mut Step) {
        let due = self.caching.offsets.get(site).is_none_or(|asked| now.boot >= asked.at + again);
        if due && self.begin(now, site, Task::Cache(CacheTask::Offset), out) {
            let answer = self.caching.offsets.get(site).and_then(|asked| asked.answer.clone());
            self.caching.offsets.insert(site.clone(), Asked { at: now.boot, answer });
        }
    }

    /// What that site answered last.
    pub(in super::super) fn offset_answer(&self, site: &Site) -> Option<Result<u64, String>> {
        self.caching.offsets.get(site)?.answer.clone()
    }

    /// Older answers are answers to other questions.
    pub(in super::super) fn forget_offsets(&mut self) {
        self.caching.offsets.clear();
    }
}
