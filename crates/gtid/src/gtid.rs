//! Single transactions and where they come from.
//!
//! In: a UUID, an optional tag, a number, or the text of these. Out: values whose number is in range. Must not: hold
//! intervals.

use std::str::FromStr;

use crate::error::ParseError;
use crate::interval::{Interval, MAX_NUMBER};
use crate::parse::Scanner;
use crate::tag::Tag;
use crate::uuid::Uuid;

/// Where transactions come from: a server and, if they have one, their tag. Numbers are counted per source.
///
/// Sources are ordered as the server prints them: by UUID, then untagged before tagged, then by tag.
///
/// ```
/// use bloodraven_gtid::{Source, Uuid};
///
/// let uuid: Uuid = "3e11fa47-71ca-11e1-9e33-c80aa9429562".parse()?;
/// let untagged = Source::from(uuid);
/// let tagged = Source { uuid, tag: Some("nightly".parse()?) };
/// assert!(untagged < tagged);
/// assert_eq!(tagged.to_string(), "3e11fa47-71ca-11e1-9e33-c80aa9429562:nightly");
/// # Ok::<(), bloodraven_gtid::ParseError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Source {
    /// The server that first committed the transactions.
    pub uuid: Uuid,
    /// The tag of the transactions, if they have one.
    pub tag: Option<Tag>,
}

impl From<Uuid> for Source {
    fn from(uuid: Uuid) -> Self {
        Self { uuid, tag: None }
    }
}

/// One transaction: `1 <= number <= MAX_NUMBER`.
///
/// ```
/// use bloodraven_gtid::Gtid;
///
/// let gtid: Gtid = "3E11FA47-71CA-11E1-9E33-C80AA9429562:Nightly:7".parse()?;
/// assert_eq!(gtid.number(), 7);
/// assert_eq!(gtid.to_string(), "3e11fa47-71ca-11e1-9e33-c80aa9429562:nightly:7");
/// assert_eq!(Gtid::new(gtid.source(), 0), None);
/// # Ok::<(), bloodraven_gtid::ParseError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gtid {
    source: Source,
    number: u64,
}

impl Gtid {
    /// The transaction with this number from this source; `None` if the number is out of range.
    pub const fn new(source: Source, number: u64) -> Option<Self> {
        if 1 <= number && number <= MAX_NUMBER { Some(Self { source, number }) } else { None }
    }

    /// Where the transaction comes from.
    pub const fn source(self) -> Source {
        self.source
    }

    /// The transaction's number.
    pub const fn number(self) -> u64 {
        self.number
    }

    /// The interval of this transaction alone. Never `None`: the number was checked when the value was made.
    pub(crate) const fn interval(self) -> Option<Interval> {
        Interval::single(self.number)
    }
}

impl FromStr for Gtid {
    type Err = ParseError;

    /// Accepts `uuid:number` and `uuid:tag:number`, spelled as in a set; exactly one number, no interval.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        Scanner::new(text)?.gtid()
    }
}
