//! Server UUIDs.
//!
//! In: 16 bytes or text. Out: a value that prints in lower case with dashes. Must not: generate, or judge versions: the
//! server takes any 16 bytes.

use std::cmp::Ordering;
use std::str::FromStr;

use crate::error::ParseError;
use crate::parse::Scanner;

/// The UUID of a MySQL server, `@@server_uuid`.
///
/// ```
/// use bloodraven_gtid::Uuid;
///
/// let uuid: Uuid = "3E11FA47-71CA-11E1-9E33-C80AA9429562".parse()?;
/// assert_eq!(uuid.to_string(), "3e11fa47-71ca-11e1-9e33-c80aa9429562");
/// assert_eq!(uuid, "3e11fa4771ca11e19e33c80aa9429562".parse()?);
/// assert_eq!(uuid, Uuid::from_bytes(*uuid.as_bytes()));
/// # Ok::<(), bloodraven_gtid::ParseError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Uuid([u8; 16]);

impl Uuid {
    /// The UUID with these bytes, in the order in which they are printed.
    #[inline]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The bytes, in the order in which they are printed.
    #[inline]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

/// The order of the bytes, and so of the texts.
// As one number and not byte by byte, because every operation on two sets compares all their UUIDs.
impl Ord for Uuid {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        u128::from_be_bytes(self.0).cmp(&u128::from_be_bytes(other.0))
    }
}

impl PartialOrd for Uuid {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl FromStr for Uuid {
    type Err = ParseError;

    /// Accepts the spellings that a GTID set may use: dashed, 32 bare digits, dashed in braces; no white space.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let mut scanner = Scanner::new(text)?;
        let uuid = scanner.uuid()?;
        scanner.end()?;
        Ok(uuid)
    }
}
