//! The group's keys: one signs, the last two are accepted.
//!
//! In: the bytes of the group's Secret. Out: signatures, and whether one is right. Must not: show a key, or take a time
//! that tells how much of a wrong signature was right.

use crate::nonce::{from_hex, write_hex};
use hmac::digest::KeyInit;
use hmac::{Hmac, Mac};
use sha2::Sha256;
use snafu::Snafu;
use std::fmt;

/// How long a key is; as long as what SHA-256 gives.
pub const KEY_BYTES: usize = 32;

/// What stands before everything signed: a signature for another purpose or format is none here.
const DOMAIN: &str = "bloodraven-v1\n";

/// One key.
#[derive(Clone, PartialEq, Eq)]
pub struct Key([u8; KEY_BYTES]);

/// The key that signs, and the one that signed before it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Keys {
    /// Signs, and is accepted.
    pub current: Key,
    /// Is accepted: others may not have the current one yet.
    pub previous: Option<Key>,
}

/// Bytes that are no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Snafu)]
#[snafu(display("a key has {KEY_BYTES} bytes, not {bytes}; write it without line end or encoding"))]
pub struct WrongLength {
    /// How many were given.
    pub bytes: usize,
}

impl Key {
    /// The key of these bytes.
    pub const fn new(bytes: [u8; KEY_BYTES]) -> Self {
        Self(bytes)
    }

    fn mac(&self, kind: &str, nonce: &str, body: &str) -> Hmac<Sha256> {
        // HMAC fills a short key up with zeros to the hash's block; done here, so that no length can be wrong.
        let mut block = [0; 64];
        for (to, from) in block.iter_mut().zip(self.0) {
            *to = from;
        }
        let mut mac = <Hmac<Sha256> as KeyInit>::new(&block.into());
        for part in [DOMAIN, kind, "\n", nonce, "\n", body] {
            mac.update(part.as_bytes());
        }
        mac
    }
}

impl TryFrom<&[u8]> for Key {
    type Error = WrongLength;

    fn try_from(bytes: &[u8]) -> Result<Self, WrongLength> {
        bytes.try_into().map(Self).map_err(|_| WrongLength { bytes: bytes.len() })
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(secret)")
    }
}

impl Keys {
    /// This key alone.
    pub const fn only(current: Key) -> Self {
        Self { current, previous: None }
    }

    /// The signature of these parts by the current key. None of them but the body may contain a line feed.
    pub(crate) fn sign(&self, kind: &str, nonce: &str, body: &str) -> String {
        let tag = self.current.mac(kind, nonce, body).finalize().into_bytes();
        let mut text = String::with_capacity(2 * tag.len());
        // Writing into a string does not fail.
        let _ = write_hex(&mut text, &tag);
        text
    }

    /// Whether either key gave this signature. Always tries both, each in constant time.
    pub(crate) fn accept(&self, kind: &str, nonce: &str, body: &str, signature: &str) -> bool {
        let Some(tag) = from_hex::<32>(signature) else { return false };
        let is_of = |key: &Key| key.mac(kind, nonce, body).verify_slice(&tag).is_ok();
        is_of(&self.current) | self.previous.as_ref().is_some_and(is_of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_32_bytes() {
        assert_eq!(Key::try_from([7; 32].as_slice()), Ok(Key::new([7; 32])));
        for bytes in [0, 31, 33, 64] {
            assert_eq!(Key::try_from(vec![7; bytes].as_slice()), Err(WrongLength { bytes }));
        }
    }

    /// K-20: a key shows nothing of itself.
    #[test]
    fn debug_shows_no_key() {
        let keys = Keys { current: Key::new([0xab; 32]), previous: Some(Key::new([0xcd; 32])) };
        assert_eq!(format!("{keys:?}"), "Keys { current: Key(secret), previous: Some(Key(secret)) }");
    }
}
