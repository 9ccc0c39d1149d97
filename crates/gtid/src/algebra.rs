//! Questions about, and results from, two sets.
//!
//! In: two sets. Out: a set or a yes or no, in one pass over both: first over their sources, which are sorted, then over the
//! sorted intervals of each source that both have. Must not: build a set to answer a question.

use std::cmp::Ordering;
use std::iter::Peekable;

use crate::build::Builder;
use crate::interval::Interval;
use crate::set::{Entries, Entry, GtidSet};

impl GtidSet {
    /// All transactions that are in one of the sets, or in both.
    ///
    /// ```
    /// # use bloodraven_gtid::GtidSet;
    /// let a: GtidSet = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5".parse()?;
    /// let b: GtidSet = "3e11fa47-71ca-11e1-9e33-c80aa9429562:4-6:t:1".parse()?;
    /// assert_eq!(a.union(&b).to_string(), "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-6:t:1");
    /// # Ok::<(), bloodraven_gtid::ParseError>(())
    /// ```
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut out = Builder::new();
        for pair in Pairs::of(self, other) {
            match pair {
                Pair::Left(entry) | Pair::Right(entry) => out.extend(entry.source, entry.intervals),
                Pair::Both(left, right) => {
                    out.begin(left.source);
                    union(left.intervals, right, &mut out);
                }
            }
        }
        out.finish()
    }

    /// The transactions that are in this set and not in the other one: `GTID_SUBTRACT(self, other)`.
    ///
    /// ```
    /// # use bloodraven_gtid::GtidSet;
    /// let a: GtidSet = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5".parse()?;
    /// let b: GtidSet = "3e11fa47-71ca-11e1-9e33-c80aa9429562:2:t:1".parse()?;
    /// assert_eq!(a.subtract(&b).to_string(), "3e11fa47-71ca-11e1-9e33-c80aa9429562:1:3-5");
    /// # Ok::<(), bloodraven_gtid::ParseError>(())
    /// ```
    #[must_use]
    pub fn subtract(&self, other: &Self) -> Self {
        let mut out = Builder::new();
        for pair in Pairs::of(self, other) {
            match pair {
                Pair::Left(entry) => out.extend(entry.source, entry.intervals),
                Pair::Right(_) => {}
                Pair::Both(left, right) => {
                    out.begin(left.source);
                    subtract(left.intervals, right, &mut out);
                }
            }
        }
        out.finish()
    }

    /// The transactions that are in both sets.
    ///
    /// ```
    /// # use bloodraven_gtid::GtidSet;
    /// let a: GtidSet = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5".parse()?;
    /// let b: GtidSet = "3e11fa47-71ca-11e1-9e33-c80aa9429562:4-6:t:1".parse()?;
    /// assert_eq!(a.intersect(&b).to_string(), "3e11fa47-71ca-11e1-9e33-c80aa9429562:4-5");
    /// # Ok::<(), bloodraven_gtid::ParseError>(())
    /// ```
    #[must_use]
    pub fn intersect(&self, other: &Self) -> Self {
        let mut out = Builder::new();
        for pair in Pairs::of(self, other) {
            if let Pair::Both(left, right) = pair {
                out.begin(left.source);
                overlaps(left.intervals, right).for_each(|interval| out.push(interval));
            }
        }
        out.finish()
    }

    /// Whether every transaction of the other set is in this one: `GTID_SUBSET(other, self)`. True for equal sets.
    ///
    /// ```
    /// # use bloodraven_gtid::GtidSet;
    /// let a: GtidSet = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5".parse()?;
    /// let b: GtidSet = "3e11fa47-71ca-11e1-9e33-c80aa9429562:2-3".parse()?;
    /// assert!(a.contains(&b) && a.contains(&a) && a.contains(&GtidSet::new()));
    /// assert!(!b.contains(&a));
    /// # Ok::<(), bloodraven_gtid::ParseError>(())
    /// ```
    #[must_use]
    pub fn contains(&self, other: &Self) -> bool {
        Pairs::of(self, other).all(|pair| match pair {
            Pair::Left(_) => true,
            Pair::Right(_) => false,
            Pair::Both(left, right) => covers(left.intervals, right),
        })
    }

    /// Whether every transaction of the other set is in this one, which has more besides.
    #[must_use]
    pub fn strictly_contains(&self, other: &Self) -> bool {
        self != other && self.contains(other)
    }

    /// Whether the sets have no transaction in common.
    ///
    /// ```
    /// # use bloodraven_gtid::GtidSet;
    /// let untagged: GtidSet = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5".parse()?;
    /// let tagged: GtidSet = "3e11fa47-71ca-11e1-9e33-c80aa9429562:t:1-5".parse()?;
    /// assert!(untagged.is_disjoint(&tagged));
    /// # Ok::<(), bloodraven_gtid::ParseError>(())
    /// ```
    #[must_use]
    pub fn is_disjoint(&self, other: &Self) -> bool {
        Pairs::of(self, other).all(|pair| match pair {
            Pair::Left(_) | Pair::Right(_) => true,
            Pair::Both(left, right) => overlaps(left.intervals, right).next().is_none(),
        })
    }
}

/// What two sets have of one source.
enum Pair<'a> {
    /// Only the left set has it.
    Left(Entry<'a>),
    /// Only the right set has it.
    Right(Entry<'a>),
    /// Both have it: the left entry, and the intervals of the right one.
    Both(Entry<'a>, &'a [Interval]),
}

/// The sources of two sets, ascending, each once.
struct Pairs<'a> {
    left: Peekable<Entries<'a>>,
    right: Peekable<Entries<'a>>,
}

impl<'a> Pairs<'a> {
    fn of(left: &'a GtidSet, right: &'a GtidSet) -> Self {
        Self { left: left.iter().peekable(), right: right.iter().peekable() }
    }
}

impl<'a> Iterator for Pairs<'a> {
    type Item = Pair<'a>;

    #[inline]
    fn next(&mut self) -> Option<Pair<'a>> {
        let order = match (self.left.peek(), self.right.peek()) {
            (Some(left), Some(right)) => left.source.cmp(&right.source),
            (Some(_), None) => Ordering::Less,
            (None, _) => Ordering::Greater,
        };
        match order {
            Ordering::Less => self.left.next().map(Pair::Left),
            Ordering::Greater => self.right.next().map(Pair::Right),
            Ordering::Equal => Some(Pair::Both(self.left.next()?, self.right.next()?.intervals)),
        }
    }
}

/// Pushes the intervals of both by ascending start; the builder joins those that overlap or touch.
fn union(mut left: &[Interval], mut right: &[Interval], out: &mut Builder) {
    while let ([first_left, rest_left @ ..], [first_right, rest_right @ ..]) = (left, right) {
        if first_left.start() <= first_right.start() {
            out.push(*first_left);
            left = rest_left;
        } else {
            out.push(*first_right);
            right = rest_right;
        }
    }
    left.iter().chain(right).for_each(|interval| out.push(*interval));
}

/// Pushes what is left of the left intervals when the right ones are taken out.
fn subtract(left: &[Interval], mut right: &[Interval], out: &mut Builder) {
    for interval in left {
        let mut start = interval.start();
        // A right interval that reaches past this left one stays for the next.
        while let [hole, rest @ ..] = right
            && hole.start() <= interval.end()
        {
            if let Some(before) = Interval::new(start, hole.start() - 1) {
                out.push(before);
            }
            start = start.max(hole.end() + 1);
            if hole.end() > interval.end() {
                break;
            }
            right = rest;
        }
        if let Some(remainder) = Interval::new(start, interval.end()) {
            out.push(remainder);
        }
    }
}

/// What both have, ascending.
fn overlaps<'a>(mut left: &'a [Interval], mut right: &'a [Interval]) -> impl Iterator<Item = Interval> + 'a {
    std::iter::from_fn(move || {
        while let ([first_left, rest_left @ ..], [first_right, rest_right @ ..]) = (left, right) {
            if first_left.end() <= first_right.end() {
                left = rest_left;
            } else {
                right = rest_right;
            }
            let overlap = first_left.overlap(*first_right);
            if overlap.is_some() {
                return overlap;
            }
        }
        None
    })
}

/// Whether each right interval lies within a left one. (It cannot be covered by two: there is a gap between them.)
fn covers(mut left: &[Interval], right: &[Interval]) -> bool {
    right.iter().all(|wanted| {
        while let [first, rest @ ..] = left
            && first.end() < wanted.end()
        {
            left = rest;
        }
        left.first().is_some_and(|first| first.covers(*wanted))
    })
}
