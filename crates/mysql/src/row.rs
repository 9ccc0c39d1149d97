//! Reading columns without trusting them.
//!
//! In: rows of the text protocol. Out: typed values, or the name of the column that is not what it should be. Must not:
//! panic, whatever a server sends.

use crate::Error;
use crate::error::UnreadableSnafu;
use bloodraven_gtid::{GtidSet, Uuid};
use mysql_async::{Row, Value};

/// A row and what it was asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Columns<'a> {
    pub(crate) row: &'a Row,
    pub(crate) place: &'a str,
    pub(crate) doing: &'static str,
}

impl Columns<'_> {
    /// The text of a column; none: NULL or not there.
    pub(crate) fn maybe(self, index: usize) -> Option<String> {
        match self.row.as_ref(index)? {
            Value::Bytes(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
            Value::Int(number) => Some(number.to_string()),
            Value::UInt(number) => Some(number.to_string()),
            _ => None,
        }
    }

    pub(crate) fn text(self, index: usize, what: &str) -> Result<String, Error> {
        self.maybe(index).map_or_else(|| self.unreadable(what), Ok)
    }

    pub(crate) fn number<N: std::str::FromStr>(self, index: usize, what: &str) -> Result<N, Error> {
        self.maybe(index).and_then(|text| text.parse().ok()).map_or_else(|| self.unreadable(what), Ok)
    }

    pub(crate) fn flag(self, index: usize, what: &str) -> Result<bool, Error> {
        match self.maybe(index).as_deref() {
            Some("1") => Ok(true),
            Some("0") => Ok(false),
            _ => self.unreadable(what),
        }
    }

    pub(crate) fn uuid(self, index: usize, what: &str) -> Result<Uuid, Error> {
        self.maybe(index).and_then(|text| text.parse().ok()).map_or_else(|| self.unreadable(what), Ok)
    }

    /// A set; none: its text is not understood.
    pub(crate) fn set(self, index: usize, what: &str) -> Result<Option<GtidSet>, Error> {
        Ok(self.text(index, what)?.parse().ok())
    }

    pub(crate) fn unreadable<T>(self, what: &str) -> Result<T, Error> {
        UnreadableSnafu { place: self.place, doing: self.doing, what }.fail()
    }
}
