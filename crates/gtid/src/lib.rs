//! MySQL GTID sets as algebra.
//!
//! In: the text that a MySQL server prints and that people paste. Out: values that can be compared, added, subtracted
//! and printed again, byte for byte as the server prints them. Must not: do IO, read a clock or the environment, panic.
//!
//! # What a GTID set is
//!
//! Every transaction of a MySQL server has a global transaction identifier: the UUID of the server that wrote it first,
//! an optional [tag](Tag), and a number. The set of all that a server has executed, `@@gtid_executed`, is the only
//! trustworthy answer to "who is ahead?" and "has anything been lost?". A set is written as intervals:
//!
//! ```text
//! 3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5:7:maintenance:1-2,
//! 9c1d51fa-2f5a-11ef-8d5e-0242ac120002:1-31
//! ```
//!
//! Read: from the first server the untagged transactions 1 to 5 and 7, and 1 to 2 of those tagged `maintenance`; from
//! the second server 1 to 31. A tag governs the intervals after it, up to the next tag or the end of the entry.
//!
//! # A tour
//!
//! Who is ahead, and by what?
//!
//! ```
//! use bloodraven_gtid::GtidSet;
//!
//! let primary: GtidSet = "3E11FA47-71CA-11E1-9E33-C80AA9429562:1-100".parse()?;
//! let replica: GtidSet = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-90:95-97".parse()?;
//!
//! assert!(primary.contains(&replica));
//! let missing = primary.subtract(&replica);
//! assert_eq!(missing.to_string(), "3e11fa47-71ca-11e1-9e33-c80aa9429562:91-94:98-100");
//! assert_eq!(missing.count(), 7);
//! # Ok::<(), bloodraven_gtid::ParseError>(())
//! ```
//!
//! Equal sets are equal values, however they were spelled:
//!
//! ```
//! # use bloodraven_gtid::GtidSet;
//! let tidy: GtidSet = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-6:daily:9".parse()?;
//! let messy: GtidSet = "
//!     3E11FA47-71CA-11E1-9E33-C80AA9429562 : Daily : 9,,
//!     {3e11fa47-71ca-11e1-9e33-c80aa9429562}:4-6:2-3 : 1 ".parse()?;
//! assert_eq!(tidy, messy);
//! assert_eq!(tidy.to_string(), messy.to_string());
//! # Ok::<(), bloodraven_gtid::ParseError>(())
//! ```
//!
//! Two servers that both wrote have diverged: neither contains the other.
//!
//! ```
//! # use bloodraven_gtid::GtidSet;
//! let a: GtidSet = "00000000-0000-0000-0000-00000000000a:1-7, 00000000-0000-0000-0000-00000000000b:1-3".parse()?;
//! let b: GtidSet = "00000000-0000-0000-0000-00000000000a:1-5, 00000000-0000-0000-0000-00000000000b:1-4".parse()?;
//! assert!(!a.contains(&b) && !b.contains(&a));
//! assert_eq!(a.subtract(&b).compact().to_string(), "00000000-0000-0000-0000-00000000000a:6-7");
//! assert_eq!(b.subtract(&a).compact().to_string(), "00000000-0000-0000-0000-00000000000b:4");
//! assert_eq!(a.union(&b).count(), 11);
//! # Ok::<(), bloodraven_gtid::ParseError>(())
//! ```
//!
//! Only what came from known servers counts:
//!
//! ```
//! # use bloodraven_gtid::{GtidSet, Uuid};
//! let known: Uuid = "00000000-0000-0000-0000-00000000000a".parse()?;
//! let mut set: GtidSet = "00000000-0000-0000-0000-00000000000a:1-7, 00000000-0000-0000-0000-00000000000b:1-3".parse()?;
//! set.retain_uuids(&[known]);
//! assert_eq!(set.to_string(), "00000000-0000-0000-0000-00000000000a:1-7");
//! # Ok::<(), bloodraven_gtid::ParseError>(())
//! ```
//!
//! A malformed text is refused with the place and what was expected there:
//!
//! ```
//! # use bloodraven_gtid::GtidSet;
//! let error = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5;7".parse::<GtidSet>().unwrap_err();
//! assert_eq!(error.offset(), 40);
//! assert_eq!(error.to_string(), "expected ':', ',' or the end, found ';' at byte 40");
//! ```
//!
//! # The text forms
//!
//! *Reading* accepts what `GTID_SUBSET` and `GTID_SUBTRACT` of MySQL 9.7 accept, and refuses what they refuse:
//!
//! - UUIDs and tags in any case. A UUID may also be written as 32 digits without dashes, or with dashes in braces.
//! - White space (space, tab, line feed, vertical tab, form feed, carriage return) between any two parts, not inside one.
//! - Empty entries (`""`, `",,"`, a comma at either end), an entry or a tag without intervals (`uuid`, `uuid:tag`), and
//!   intervals that end before they start (`5-3`): they add nothing.
//! - Overlapping, adjacent, repeated and unsorted intervals, tags and UUIDs: their union is meant.
//! - Leading zeros. Numbers run from 1 to [`MAX_NUMBER`]; an interval may not start at 0.
//!
//! Two differences, both on the strict side: a text longer than [`MAX_TEXT_BYTES`] is refused; and so is a tag with
//! characters beyond ASCII, which those functions take and garble, although no transaction can have one (`gtid_next`
//! refuses it).
//!
//! *Printing* has two forms, both accepted wherever a server accepts a GTID set. [`Display`](std::fmt::Display) is the
//! server's own (one entry for each UUID, entries joined by a comma and a line feed); [`GtidSet::compact`] is the same on
//! one line, for logs, annotations and JSON.
//!
//! # Costs
//!
//! A set is two sorted vectors: one of sources, one of intervals. Parsing takes time linear in the text if the text is in
//! canonical order, as a server prints it, and sorts otherwise. Every operation on two sets is one linear merge.
//! A set of 10,000 intervals parses in less than a millisecond and compares in less still; `cargo bench -p bloodraven-gtid`
//! shows the figures.
//! A set usually takes about two bytes of memory for each byte of its text; a hostile text can take fifty while it is parsed.
//!
//! # Features
//!
//! - `serde`: every type serialises as text (sets in the compact form) and deserialises from it.

#![forbid(unsafe_code)]

mod algebra;
mod build;
mod error;
mod gtid;
mod interval;
mod parse;
mod print;
#[cfg(feature = "serde")]
mod serde;
mod set;
mod tag;
mod uuid;

pub use error::{ParseError, Problem};
pub use gtid::{Gtid, Source};
pub use interval::{Interval, MAX_NUMBER};
pub use parse::MAX_TEXT_BYTES;
pub use print::Compact;
pub use set::{Entries, Entry, GtidSet};
pub use tag::Tag;
pub use uuid::Uuid;
