//! The number used once that ties an answer to its question.
//!
//! In: 16 random bytes from the caller, or text. Out: 32 lower-case hexadecimal digits. Must not: make randomness, or
//! accept two texts for one nonce.

use crate::error::Error;
use std::fmt;
use std::str::FromStr;

/// Names a question or a push, unguessably. The caller fills it from a source of true randomness.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nonce([u8; 16]);

impl Nonce {
    /// The nonce of these bytes.
    pub const fn new(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }
}

impl FromStr for Nonce {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        from_hex(text).map(Self).ok_or(Error::BadNonce)
    }
}

impl fmt::Display for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(f, &self.0)
    }
}

impl fmt::Debug for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(f, &self.0)
    }
}

/// Lower-case digits, two a byte.
pub(crate) fn write_hex(f: &mut impl fmt::Write, bytes: &[u8]) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

/// The bytes of exactly `2 * N` lower-case digits.
pub(crate) fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if pairs.len() != N || !rest.is_empty() {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(bytes)
}

const fn digit(letter: u8) -> Option<u8> {
    match letter {
        b'0'..=b'9' => Some(letter - b'0'),
        b'a'..=b'f' => Some(letter - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nonce_has_one_text() {
        let text = "00ff102030405060708090a0b0c0d0e0";
        assert_eq!(text.parse::<Nonce>().expect("a nonce").to_string(), text);
        check_refused("");
        check_refused("00ff102030405060708090a0b0c0d0e");
        check_refused("00ff102030405060708090a0b0c0d0e00");
        check_refused("00FF102030405060708090a0b0c0d0e0");
        check_refused("0xff102030405060708090a0b0c0d0e0");
        check_refused(" 0ff102030405060708090a0b0c0d0e0");
        check_refused("00ff102030405060708090a0b0c0d0eg");
        check_refused("éééééééééééééééé");
    }

    fn check_refused(text: &str) {
        assert_eq!(text.parse::<Nonce>(), Err(Error::BadNonce), "{text:?}");
    }
}
