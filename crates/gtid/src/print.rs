//! From values to text.
//!
//! In: values. Out: the server's own canonical text, or the same on one line. Must not: allocate.

use std::fmt;

use crate::gtid::{Gtid, Source};
use crate::interval::Interval;
use crate::set::{Entry, GtidSet};
use crate::tag::Tag;
use crate::uuid::Uuid;

/// A set printed on one line; see [`GtidSet::compact`].
#[derive(Clone, Copy)]
pub struct Compact<'a>(&'a GtidSet);

impl GtidSet {
    /// The set on one line: the server's form with `,` instead of `,\n` between entries.
    ///
    /// For log lines, annotations and JSON. Servers and [`FromStr`](std::str::FromStr) take both forms.
    ///
    /// ```
    /// use bloodraven_gtid::GtidSet;
    ///
    /// let set: GtidSet = "00000000-0000-0000-0000-00000000000a:1-7, 00000000-0000-0000-0000-00000000000b:1".parse()?;
    /// assert_eq!(
    ///     set.compact().to_string(),
    ///     "00000000-0000-0000-0000-00000000000a:1-7,00000000-0000-0000-0000-00000000000b:1",
    /// );
    /// # Ok::<(), bloodraven_gtid::ParseError>(())
    /// ```
    pub const fn compact(&self) -> Compact<'_> {
        Compact(self)
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, between_entries: &str) -> fmt::Result {
        let mut current = None;
        for Entry { source, intervals } in self {
            // Sources of one server follow each other, the untagged one first, and share one printed entry.
            if current != Some(source.uuid) {
                if current.is_some() {
                    f.write_str(between_entries)?;
                }
                write!(f, "{}", source.uuid)?;
                current = Some(source.uuid);
            }
            if let Some(tag) = source.tag {
                write!(f, ":{tag}")?;
            }
            for interval in intervals {
                write!(f, ":{interval}")?;
            }
        }
        Ok(())
    }
}

/// Byte for byte what the server prints for this set: entries joined by `,\n`, the empty set as nothing.
impl fmt::Display for GtidSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, ",\n")
    }
}

impl fmt::Display for Compact<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.write(f, ",")
    }
}

impl fmt::Display for Gtid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.source(), self.number())
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tag {
            Some(tag) => write!(f, "{}:{tag}", self.uuid),
            None => write!(f, "{}", self.uuid),
        }
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.start())?;
        if self.start() < self.end() {
            write!(f, "-{}", self.end())?;
        }
        Ok(())
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // One write of 36 characters is several times as fast as 36 of one.
        let mut text = [b'-'; 36];
        let places = (0..8).chain(9..13).chain(14..18).chain(19..23).chain(24..36);
        let digits = self.as_bytes().iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
        for (place, digit) in places.zip(digits) {
            text[place] = if digit < 10 { b'0' + digit } else { b'a' + digit - 10 };
        }
        f.write_str(str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

/// `Debug` shows the text in the type's name: what a failed assertion should print.
macro_rules! debug_as_text {
    ($($name:ident),*) => {$(
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self)
            }
        }
    )*};
}

debug_as_text!(Uuid, Tag, Source, Gtid, Interval);

impl fmt::Debug for GtidSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GtidSet({})", self.compact())
    }
}

impl fmt::Debug for Compact<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Compact({self})")
    }
}
