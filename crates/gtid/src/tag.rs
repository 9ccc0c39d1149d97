//! GTID tags.
//!
//! In: text. Out: a small copyable value in lower case. Must not: stand for "no tag"; that is `Option::None`.

use std::str::FromStr;

use crate::error::ParseError;
use crate::parse::Scanner;

/// A GTID tag: 1 to 32 letters, digits and underscores, not starting with a digit, without regard to case.
///
/// Tags name groups of transactions of one server (`SET gtid_next = 'AUTOMATIC:nightly'`). Each tag counts its
/// transactions on its own, so `uuid:1` and `uuid:nightly:1` are two different transactions.
///
/// ```
/// use bloodraven_gtid::Tag;
///
/// let tag: Tag = "Nightly_2".parse()?;
/// assert_eq!(tag.as_str(), "nightly_2");
/// assert!("2nd".parse::<Tag>().is_err());
/// # Ok::<(), bloodraven_gtid::ParseError>(())
/// ```
// Padded with zero bytes, which sort before every character of a tag: the derived order is the order of the texts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag([u8; Tag::MAX_LENGTH]);

impl Tag {
    /// The longest tag, in characters.
    pub const MAX_LENGTH: usize = 32;

    /// The tag as the server prints it.
    pub fn as_str(&self) -> &str {
        let length = self.0.iter().position(|&byte| byte == 0).unwrap_or(Self::MAX_LENGTH);
        // Only ASCII gets in, so neither default is ever used.
        self.0.get(..length).and_then(|bytes| str::from_utf8(bytes).ok()).unwrap_or_default()
    }

    /// The tag of these characters, which must have been checked; `None` if there are too many.
    pub(crate) fn from_checked(characters: &[u8]) -> Option<Self> {
        let mut padded = [0; Self::MAX_LENGTH];
        padded.get_mut(..characters.len())?.copy_from_slice(characters);
        padded.make_ascii_lowercase();
        Some(Self(padded))
    }
}

impl FromStr for Tag {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let mut scanner = Scanner::new(text)?;
        let tag = scanner.tag()?;
        scanner.end()?;
        Ok(tag)
    }
}
