//! Accounts and the signing key of a directory's group.
//!
//! In: randomness. Out: `secrets/<role>/{username,password}` and `secrets/hmac.key`, made once, readable by their owner
//! alone. Must not: show a password, or make a secret anew that is there.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::{CorruptSnafu, Error, NoDrawSnafu, Store};
use crate::files;

/// The roles that have an account, and its user. Root has a password alone.
pub const ROLES: [(&str, &str); 7] = [
    ("operator", "bloodraven"),
    ("app", "app"),
    ("readonly", "readonly"),
    ("monitor", "monitor"),
    ("backup", "backup"),
    ("replication", "replication"),
    ("root", ""),
];

/// So many characters of 62: 142 bits.
const PASSWORD: usize = 24;

/// Bytes of the signing key.
const KEY: usize = 32;

const LETTERS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// Makes what is missing.
pub(super) fn create(store: &Store) -> Result<(), Error> {
    for (role, user) in ROLES {
        let folder = store.secrets().join(role);
        files::private_folder(&folder)?;
        if !user.is_empty() {
            make(&folder.join("username"), || Ok(user.as_bytes().to_vec()))?;
        }
        make(&folder.join("password"), password)?;
    }
    make(&store.key_file(), || random(KEY))
}

impl Store {
    /// The folder of the accounts.
    pub fn secrets(&self) -> PathBuf {
        self.path("secrets")
    }

    /// The file of the signing key.
    pub fn key_file(&self) -> PathBuf {
        self.secrets().join("hmac.key")
    }

    /// A role's user and password.
    pub fn account(&self, role: &str) -> Result<(String, String), Error> {
        let folder = self.secrets().join(role);
        Ok((text(folder.join("username"))?, text(folder.join("password"))?))
    }

    /// The signing keys: the present one, and the one before it if there was a change.
    pub fn keys(&self) -> Result<(Vec<u8>, Option<Vec<u8>>), Error> {
        let path = self.key_file();
        let Some(key) = files::read(&path)? else { return CorruptSnafu { path, why: "it is missing" }.fail() };
        Ok((key, files::read(&self.secrets().join("hmac.previous"))?))
    }
}

/// A random identity in the form of a UUID.
pub(crate) fn uuid() -> Result<String, Error> {
    let bytes = random(16)?;
    let mut text = String::with_capacity(36);
    for (at, byte) in bytes.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        // Version 4, variant 1, as whoever reads it may check.
        let byte = match at {
            6 => byte & 0x0f | 0x40,
            8 => byte & 0x3f | 0x80,
            _ => *byte,
        };
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}

fn make(path: &Path, content: impl FnOnce() -> Result<Vec<u8>, Error>) -> Result<(), Error> {
    match files::read(path)? {
        Some(_) => Ok(()),
        None => Ok(files::replace(path, &content()?)?),
    }
}

fn text(path: PathBuf) -> Result<String, Error> {
    let Some(bytes) = files::read(&path)? else { return CorruptSnafu { path, why: "it is missing" }.fail() };
    let text = String::from_utf8_lossy(&bytes).trim_end_matches(['\r', '\n']).to_owned();
    if text.is_empty() { CorruptSnafu { path, why: "it is empty" }.fail() } else { Ok(text) }
}

fn password() -> Result<Vec<u8>, Error> {
    let mut password = Vec::with_capacity(PASSWORD);
    // A byte of 248 and more would favour the first letters; four in five bytes serve, so this ends soon.
    while password.len() < PASSWORD {
        let letters = random(PASSWORD)?.into_iter().filter(|byte| *byte < 248);
        password.extend(letters.filter_map(|byte| LETTERS.get(usize::from(byte) % LETTERS.len()).copied()));
    }
    password.truncate(PASSWORD);
    Ok(password)
}

fn random(bytes: usize) -> Result<Vec<u8>, Error> {
    let mut drawn = vec![0; bytes];
    getrandom::fill(&mut drawn).map_err(|error| NoDrawSnafu { why: error.to_string() }.build())?;
    Ok(drawn)
}
