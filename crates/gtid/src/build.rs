//! The one way in which sets are made.
//!
//! In: sources and intervals, in any order. Out: a set in canonical form. Must not: sort what is already in order, which is
//! what servers print and what merges of sets produce.

use crate::gtid::Source;
use crate::interval::Interval;
use crate::set::{GtidSet, Slot};

/// A set in the making.
pub(crate) struct Builder {
    slots: Vec<Slot>,
    intervals: Vec<Interval>,
    /// Where the next interval comes from, if it is not the source of the last slot.
    next: Option<Source>,
    /// Whether what is here is canonical.
    canonical: bool,
}

impl Builder {
    pub(crate) const fn new() -> Self {
        Self { slots: Vec::new(), intervals: Vec::new(), next: None, canonical: true }
    }

    /// The intervals that follow come from this source. A source without intervals leaves nothing behind.
    pub(crate) fn begin(&mut self, source: Source) {
        let is_current = self.slots.last().is_some_and(|slot| slot.source == source);
        self.next = (!is_current).then_some(source);
    }

    /// Adds an interval of the current source.
    #[inline]
    pub(crate) fn push(&mut self, interval: Interval) {
        if let Some(source) = self.next.take() {
            self.open(source);
        } else if let Some(last) = self.intervals.last_mut() {
            if interval.start() < last.start() {
                self.canonical = false;
            } else if !last.ends_well_before(interval) {
                *last = last.hull(interval);
                return;
            }
        }
        self.intervals.push(interval);
        self.close();
    }

    /// Adds intervals of a source that has none yet; they must be canonical.
    pub(crate) fn extend(&mut self, source: Source, intervals: &[Interval]) {
        if !intervals.is_empty() {
            self.open(source);
            self.intervals.extend_from_slice(intervals);
            self.close();
        }
    }

    /// The set.
    pub(crate) fn finish(self) -> GtidSet {
        let set = GtidSet::from_parts(self.slots, self.intervals);
        if self.canonical {
            return set;
        }
        let mut runs: Vec<_> = set.iter().collect();
        runs.sort_by_key(|run| run.source);

        let mut sorted = Self::new();
        let mut intervals = Vec::new();
        for runs in runs.chunk_by(|left, right| left.source == right.source) {
            intervals.clear();
            intervals.extend(runs.iter().flat_map(|run| run.intervals));
            intervals.sort_unstable();
            runs.first().inspect(|run| sorted.begin(run.source));
            for interval in &intervals {
                sorted.push(*interval);
            }
        }
        GtidSet::from_parts(sorted.slots, sorted.intervals)
    }

    fn open(&mut self, source: Source) {
        self.canonical &= self.slots.last().is_none_or(|slot| slot.source < source);
        self.slots.push(Slot { source, end: self.intervals.len() });
    }

    #[inline]
    fn close(&mut self) {
        if let Some(slot) = self.slots.last_mut() {
            slot.end = self.intervals.len();
        }
    }
}
