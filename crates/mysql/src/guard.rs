//! What stands before every statement that changes something.
//!
//! In: which server is meant, until when the statement is wanted. Out: a statement of its own, sent in the same packet,
//! that fails on the server when either does not hold; what follows it is then not run. Must not: be left out, except
//! where the statement holds a password (the server would keep the whole packet as one text).

use crate::error::WrongServerSnafu;
use crate::{Error, Reading};
use bloodraven_gtid::Uuid;
use snafu::ensure;

/// The text by which the guard's failure is known among other errors of the same number.
const MARK: &str = "bloodraven: too late";

/// `ER_WRONG_VALUE_FOR_TYPE`: what `UUID_TO_BIN` says about a text that is no UUID.
const REFUSED: u16 = 1411;

/// The server that is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// This one; another is left alone.
    Only(Uuid),
    /// Whichever answers.
    Any,
}

impl Wanted {
    pub(crate) fn check(self, place: &str, found: Uuid) -> Result<(), Error> {
        match self {
            Self::Any => Ok(()),
            Self::Only(wanted) => {
                ensure!(wanted == found, WrongServerSnafu { place, wanted, found });
                Ok(())
            }
        }
    }
}

impl From<Option<Uuid>> for Wanted {
    fn from(uuid: Option<Uuid>) -> Self {
        uuid.map_or(Self::Any, Self::Only)
    }
}

/// How a guarded sequence ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Guarded {
    /// The guard held, everything was done, and this was read afterwards.
    Acted(Box<Reading>),
    /// The guard did not hold; only what came before it was done.
    Refused {
        /// Why, with the sets.
        why: String,
        /// What was read.
        reading: Box<Reading>,
    },
}

impl Guarded {
    /// What was read last.
    pub fn reading(&self) -> &Reading {
        match self {
            Self::Acted(reading) | Self::Refused { reading, .. } => reading,
        }
    }
}

/// The server's clock, in microseconds of UTC since 2000. Neither time zones nor daylight saving touch it.
pub(crate) const CLOCK: &str = "TIMESTAMPDIFF(MICROSECOND, '2000-01-01', UTC_TIMESTAMP(6))";

/// The guard: this server, and not after that time by its own clock.
pub(crate) fn statement(uuid: Uuid, until: i64) -> String {
    unless(&format!("@@server_uuid = '{uuid}' AND {CLOCK} < {until}"), "too late")
}

/// A statement that fails with this text unless the condition holds.
pub(crate) fn unless(condition: &str, text: &str) -> String {
    format!("DO IF({condition}, 0, UUID_TO_BIN('bloodraven: {text}'))")
}

/// Whether an error of the server is the guard's.
pub(crate) fn is_refusal(code: u16, message: &str) -> bool {
    code == REFUSED && message.contains(MARK)
}

/// Whether an error of the server is that of [`unless`] with this text.
pub(crate) fn is_unless(error: &Error, text: &str) -> bool {
    matches!(error, Error::Server { code: REFUSED, message, .. } if message.contains(&format!("bloodraven: {text}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_guards_own_failure_counts_as_too_late() {
        let real = "Incorrect string value: 'bloodraven: too late' for function uuid_to_bin";
        assert!(is_refusal(1411, real));
        assert!(!is_refusal(1411, "Incorrect datetime value: 'x' for function str_to_date"));
        assert!(!is_refusal(1064, real));
    }

    #[test]
    fn another_server_is_left_alone() {
        let (one, two) = (Uuid::from_bytes([1; 16]), Uuid::from_bytes([2; 16]));
        assert!(Wanted::Any.check("h:1", one).is_ok());
        assert!(Wanted::from(Some(one)).check("h:1", one).is_ok());
        let error = Wanted::from(Some(one)).check("h:1", two).unwrap_err().to_string();
        assert_eq!(error, format!("h:1: {two} answers there, but {one} is meant: nothing was done"));
    }
}
