//! The set itself.
//!
//! In: canonical vectors from the builder, single insertions. Out: questions about one set: how many, which, from whom.
//! Must not: hold the same set in two ways; equality, order and hash rely on there being one.

use crate::build::Builder;
use crate::gtid::{Gtid, Source};
use crate::interval::Interval;
use crate::uuid::Uuid;

/// A set of transactions.
///
/// Equal sets are equal values, whatever text they were parsed from. `Ord` is *some* total order, so that sets can be
/// sorted and be keys; it says nothing about containment. For "is ahead of" use [`contains`](Self::contains).
///
/// ```
/// use bloodraven_gtid::GtidSet;
///
/// let set: GtidSet = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5:7".parse()?;
/// assert!(set.contains_gtid("3e11fa47-71ca-11e1-9e33-c80aa9429562:7".parse()?));
/// assert_eq!(set.count(), 6);
/// # Ok::<(), bloodraven_gtid::ParseError>(())
/// ```
// Canonical form: slots strictly ascending by source, none empty; within a slot intervals ascending, with at least one
// number between each two. Slot `i` owns the intervals from the end of slot `i - 1` to its own.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GtidSet {
    slots: Vec<Slot>,
    intervals: Vec<Interval>,
}

/// A source, and where its intervals end in the vector of all intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Slot {
    pub(crate) source: Source,
    pub(crate) end: usize,
}

/// The transactions of one source in a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Where they come from.
    pub source: Source,
    /// Their numbers: ascending, never empty, at least one number missing between each two.
    pub intervals: &'a [Interval],
}

/// The entries of a set, in order; see [`GtidSet::iter`].
#[derive(Clone, Debug)]
pub struct Entries<'a> {
    slots: std::slice::Iter<'a, Slot>,
    intervals: &'a [Interval],
    start: usize,
}

impl GtidSet {
    /// The empty set.
    pub const fn new() -> Self {
        Self { slots: Vec::new(), intervals: Vec::new() }
    }

    pub(crate) const fn from_parts(slots: Vec<Slot>, intervals: Vec<Interval>) -> Self {
        Self { slots, intervals }
    }

    /// Whether there are no transactions in the set.
    pub const fn is_empty(&self) -> bool {
        self.intervals.is_empty()
    }

    /// How many transactions are in the set.
    ///
    /// A `u128`, because one source alone can have 2^63 - 2 of them and two would overflow a `u64`.
    pub fn count(&self) -> u128 {
        count(&self.intervals)
    }

    /// How many transactions in the set come from this server, all tags together.
    ///
    /// ```
    /// use bloodraven_gtid::GtidSet;
    ///
    /// let set: GtidSet = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5:nightly:1-2".parse()?;
    /// assert_eq!(set.count_of("3e11fa47-71ca-11e1-9e33-c80aa9429562".parse()?), 7);
    /// assert_eq!(set.count_of("00000000-0000-0000-0000-00000000000a".parse()?), 0);
    /// # Ok::<(), bloodraven_gtid::ParseError>(())
    /// ```
    pub fn count_of(&self, uuid: Uuid) -> u128 {
        let first = self.slots.partition_point(|slot| slot.source.uuid < uuid);
        let past = self.slots.partition_point(|slot| slot.source.uuid <= uuid);
        count(self.intervals.get(self.start_of(first)..self.start_of(past)).unwrap_or_default())
    }

    /// Each server in the set with how many transactions come from it, all tags together; ascending by UUID.
    ///
    /// ```
    /// use bloodraven_gtid::GtidSet;
    ///
    /// let set: GtidSet = "00000000-0000-0000-0000-00000000000a:1-5:nightly:1,00000000-0000-0000-0000-00000000000b:9".parse()?;
    /// let counts: Vec<u128> = set.count_by_uuid().map(|(_, count)| count).collect();
    /// assert_eq!(counts, [6, 1]);
    /// # Ok::<(), bloodraven_gtid::ParseError>(())
    /// ```
    pub fn count_by_uuid(&self) -> impl Iterator<Item = (Uuid, u128)> + '_ {
        let mut entries = self.iter().peekable();
        std::iter::from_fn(move || {
            let first = entries.next()?;
            let uuid = first.source.uuid;
            let mut total = count(first.intervals);
            while let Some(entry) = entries.next_if(|entry| entry.source.uuid == uuid) {
                total += count(entry.intervals);
            }
            Some((uuid, total))
        })
    }

    /// The servers that have transactions in the set; ascending.
    pub fn uuids(&self) -> impl Iterator<Item = Uuid> + '_ {
        self.slots
            .chunk_by(|left, right| left.source.uuid == right.source.uuid)
            .filter_map(|slots| slots.first().map(|slot| slot.source.uuid))
    }

    /// How many intervals the set has: what its text and its memory are proportional to.
    pub const fn interval_count(&self) -> usize {
        self.intervals.len()
    }

    /// The transactions by source, in the order in which the server prints them.
    ///
    /// ```
    /// use bloodraven_gtid::{Entry, GtidSet};
    ///
    /// let set: GtidSet = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5:7:nightly:2".parse()?;
    /// let numbers: Vec<_> = set.iter().map(|Entry { source, intervals }| (source.tag, intervals.len())).collect();
    /// assert_eq!(numbers, [(None, 2), (Some("nightly".parse()?), 1)]);
    /// # Ok::<(), bloodraven_gtid::ParseError>(())
    /// ```
    pub fn iter(&self) -> Entries<'_> {
        Entries { slots: self.slots.iter(), intervals: &self.intervals, start: 0 }
    }

    /// The intervals of one source; empty if it has none.
    pub fn intervals_of(&self, source: Source) -> &[Interval] {
        match self.find(source) {
            Ok(index) => self.intervals.get(self.start_of(index)..self.start_of(index + 1)).unwrap_or_default(),
            Err(_) => &[],
        }
    }

    /// Whether this transaction is in the set.
    pub fn contains_gtid(&self, gtid: Gtid) -> bool {
        let intervals = self.intervals_of(gtid.source());
        let index = intervals.partition_point(|interval| interval.end() < gtid.number());
        intervals.get(index).is_some_and(|interval| interval.contains(gtid.number()))
    }

    /// Adds one transaction; says whether it is new.
    ///
    /// Takes logarithmic time when it widens an interval, as transactions in order do; when it needs a new interval, those
    /// after it move over. To add many at once, `extend`.
    ///
    /// ```
    /// use bloodraven_gtid::GtidSet;
    ///
    /// let mut set: GtidSet = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5:7".parse()?;
    /// assert!(set.insert("3e11fa47-71ca-11e1-9e33-c80aa9429562:6".parse()?));
    /// assert!(!set.insert("3e11fa47-71ca-11e1-9e33-c80aa9429562:6".parse()?));
    /// assert_eq!(set.to_string(), "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-7");
    /// # Ok::<(), bloodraven_gtid::ParseError>(())
    /// ```
    pub fn insert(&mut self, gtid: Gtid) -> bool {
        let is_new = !self.contains_gtid(gtid);
        if let Some(interval) = gtid.interval().filter(|_| is_new) {
            self.insert_interval(gtid.source(), interval);
        }
        is_new
    }

    /// Adds all transactions of an interval.
    pub fn insert_interval(&mut self, source: Source, interval: Interval) {
        let index = match self.find(source) {
            Ok(index) => index,
            Err(index) => {
                self.slots.insert(index, Slot { source, end: self.start_of(index) });
                index
            }
        };
        let (start, end) = (self.start_of(index), self.start_of(index + 1));
        let own = self.intervals.get(start..end).unwrap_or_default();
        // Those from `first` up to `past` overlap or touch the new one and become one with it.
        let first = start + own.partition_point(|old| old.ends_well_before(interval));
        let past = start + own.partition_point(|old| !interval.ends_well_before(*old));
        let merged =
            self.intervals.get(first..past).unwrap_or_default().iter().fold(interval, |hull, old| hull.hull(*old));
        self.intervals.splice(first..past, [merged]);
        for slot in self.slots.iter_mut().skip(index) {
            slot.end = slot.end + 1 - (past - first);
        }
    }

    /// Adds all transactions of another set, in place: what a stream brings is a few intervals, and most widen one.
    ///
    /// ```
    /// use bloodraven_gtid::GtidSet;
    ///
    /// let mut set: GtidSet = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5".parse()?;
    /// set.add(&"3e11fa47-71ca-11e1-9e33-c80aa9429562:6:t:1".parse()?);
    /// assert_eq!(set.to_string(), "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-6:t:1");
    /// # Ok::<(), bloodraven_gtid::ParseError>(())
    /// ```
    pub fn add(&mut self, other: &Self) {
        for Entry { source, intervals } in other {
            for interval in intervals {
                self.insert_interval(source, *interval);
            }
        }
    }

    /// Keeps only what comes from these servers, all tags included.
    ///
    /// "Only what came from known primaries counts": local transactions of a replica are no reason to call it ahead.
    /// Takes time proportional to the set times the list, so the list should be short.
    ///
    /// ```
    /// use bloodraven_gtid::{GtidSet, Uuid};
    ///
    /// let mut set: GtidSet = "00000000-0000-0000-0000-00000000000a:1-5:t:1,00000000-0000-0000-0000-00000000000b:9".parse()?;
    /// set.retain_uuids(&["00000000-0000-0000-0000-00000000000a".parse()?]);
    /// assert_eq!(set.to_string(), "00000000-0000-0000-0000-00000000000a:1-5:t:1");
    /// # Ok::<(), bloodraven_gtid::ParseError>(())
    /// ```
    pub fn retain_uuids(&mut self, uuids: &[Uuid]) {
        let mut kept = Builder::new();
        for entry in self.iter().filter(|entry| uuids.contains(&entry.source.uuid)) {
            kept.extend(entry.source, entry.intervals);
        }
        *self = kept.finish();
    }

    fn find(&self, source: Source) -> Result<usize, usize> {
        self.slots.binary_search_by(|slot| slot.source.cmp(&source))
    }

    /// Where the intervals of the slot with this index start: where those of the one before it end.
    fn start_of(&self, index: usize) -> usize {
        index.checked_sub(1).and_then(|before| self.slots.get(before)).map_or(0, |slot| slot.end)
    }
}

fn count(intervals: &[Interval]) -> u128 {
    intervals.iter().map(|interval| u128::from(interval.count())).sum()
}

impl<'a> Iterator for Entries<'a> {
    type Item = Entry<'a>;

    #[inline]
    fn next(&mut self) -> Option<Entry<'a>> {
        let slot = self.slots.next()?;
        let intervals = self.intervals.get(self.start..slot.end)?;
        self.start = slot.end;
        Some(Entry { source: slot.source, intervals })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.slots.size_hint()
    }
}

impl ExactSizeIterator for Entries<'_> {}

impl<'a> IntoIterator for &'a GtidSet {
    type Item = Entry<'a>;
    type IntoIter = Entries<'a>;

    fn into_iter(self) -> Entries<'a> {
        self.iter()
    }
}

impl From<Gtid> for GtidSet {
    fn from(gtid: Gtid) -> Self {
        Self::from_iter([gtid])
    }
}

impl FromIterator<(Source, Interval)> for GtidSet {
    fn from_iter<I: IntoIterator<Item = (Source, Interval)>>(items: I) -> Self {
        let mut builder = Builder::new();
        for (source, interval) in items {
            builder.begin(source);
            builder.push(interval);
        }
        builder.finish()
    }
}

impl FromIterator<Gtid> for GtidSet {
    fn from_iter<I: IntoIterator<Item = Gtid>>(gtids: I) -> Self {
        gtids.into_iter().filter_map(|gtid| Some((gtid.source(), gtid.interval()?))).collect()
    }
}

impl Extend<(Source, Interval)> for GtidSet {
    fn extend<I: IntoIterator<Item = (Source, Interval)>>(&mut self, items: I) {
        *self = self.union(&items.into_iter().collect());
    }
}

impl Extend<Gtid> for GtidSet {
    fn extend<I: IntoIterator<Item = Gtid>>(&mut self, gtids: I) {
        *self = self.union(&gtids.into_iter().collect());
    }
}
