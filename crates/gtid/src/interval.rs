//! Intervals of transaction numbers.
//!
//! In: a first and a last number. Out: a value whose bounds are in order and in range. Must not: know of UUIDs or tags.

/// The largest number a transaction can have: 2^63 - 2.
///
/// The server keeps numbers in a signed 64-bit integer and reserves its largest value for "one past the end".
pub const MAX_NUMBER: u64 = (1 << 63) - 2;

/// The transactions from one number to another, both included: `1 <= start <= end <= MAX_NUMBER`.
///
/// ```
/// use bloodraven_gtid::Interval;
///
/// let interval = Interval::new(5, 9).unwrap();
/// assert_eq!((interval.start(), interval.end(), interval.count()), (5, 9, 5));
/// assert!(interval.contains(9));
/// assert_eq!(interval.to_string(), "5-9");
/// assert_eq!(Interval::single(5).unwrap().to_string(), "5");
/// assert_eq!(Interval::new(9, 5), None);
/// assert_eq!(Interval::new(0, 5), None);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Interval {
    start: u64,
    end: u64,
}

impl Interval {
    /// The interval from `start` to `end`, both included; `None` if that is empty or out of range.
    #[inline]
    pub const fn new(start: u64, end: u64) -> Option<Self> {
        if 1 <= start && start <= end && end <= MAX_NUMBER { Some(Self { start, end }) } else { None }
    }

    /// The interval of a single number; `None` if the number is out of range.
    #[inline]
    pub const fn single(number: u64) -> Option<Self> {
        Self::new(number, number)
    }

    /// The first number.
    #[inline]
    pub const fn start(self) -> u64 {
        self.start
    }

    /// The last number.
    #[inline]
    pub const fn end(self) -> u64 {
        self.end
    }

    /// How many transactions lie in the interval: at least one.
    #[inline]
    pub const fn count(self) -> u64 {
        self.end - self.start + 1
    }

    /// Whether the interval holds this number.
    #[inline]
    pub const fn contains(self, number: u64) -> bool {
        self.start <= number && number <= self.end
    }

    /// Whether the interval holds all of the other one.
    #[inline]
    pub(crate) const fn covers(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    /// Whether this interval ends so early that at least one number lies between it and the other one.
    #[inline]
    pub(crate) const fn ends_well_before(self, other: Self) -> bool {
        self.end + 1 < other.start
    }

    /// The smallest interval that holds both.
    #[inline]
    pub(crate) fn hull(self, other: Self) -> Self {
        Self { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// What both hold.
    #[inline]
    pub(crate) fn overlap(self, other: Self) -> Option<Self> {
        Self::new(self.start.max(other.start), self.end.min(other.end))
    }
}
