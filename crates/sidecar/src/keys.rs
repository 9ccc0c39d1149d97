//! The group's keys, as they are on disk by now.
//!
//! In: the key's file, and `hmac.previous` beside it. Out: the keys that sign and are accepted, for whoever asks. Must not:
//! forget a key because a file cannot be read, or show one.

use bloodraven_wire::{Key, Keys};
use snafu::{ResultExt as _, Snafu};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

/// How often the files are looked at: a changed key is known everywhere long before the one before it is dropped.
pub(crate) const LOOK_EVERY: Duration = Duration::from_secs(5);

/// The name of the file with the key before, beside the present one.
const PREVIOUS: &str = "hmac.previous";

/// The keys of this moment, shared by all who sign and check.
#[derive(Clone, Debug)]
pub(crate) struct KeyRing {
    file: PathBuf,
    keys: Arc<RwLock<Keys>>,
}

/// Why there is no key.
#[derive(Debug, Snafu)]
pub enum Error {
    /// The file cannot be read.
    #[snafu(display("AUTHORITY_KEY_FILE: cannot read {}: {source}", path.display()))]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file holds no key.
    #[snafu(display("AUTHORITY_KEY_FILE: {}: {source}", path.display()))]
    NoKey {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: bloodraven_wire::key::WrongLength,
    },
}

impl KeyRing {
    /// Reads the keys. Blocks for as long as the files take.
    pub(crate) fn read(file: &Path) -> Result<Self, Error> {
        let keys = read(file)?;
        Ok(Self { file: file.to_owned(), keys: Arc::new(RwLock::new(keys)) })
    }

    /// The keys of this moment.
    pub(crate) fn now(&self) -> Keys {
        self.keys.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads the files again; returns whether the keys are others now. What cannot be read changes nothing. Blocks.
    pub(crate) fn look_again(&self) -> Result<bool, Error> {
        let found = read(&self.file)?;
        let mut keys = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        let changed = *keys != found;
        *keys = found;
        Ok(changed)
    }
}

fn read(file: &Path) -> Result<Keys, Error> {
    let current = read_one(file)?;
    let previous = file.with_file_name(PREVIOUS);
    let previous = if previous.exists() { Some(read_one(&previous)?) } else { None };
    Ok(Keys { current, previous })
}

fn read_one(path: &Path) -> Result<Key, Error> {
    let bytes = std::fs::read(path).context(ReadSnafu { path })?;
    Key::try_from(bytes.as_slice()).context(NoKeySnafu { path })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;

    fn write(folder: &Folder, name: &str, bytes: &[u8]) -> PathBuf {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).expect("a file");
        path
    }

    /// K-22: the signing key.
    #[test]
    fn a_changed_key_is_taken_and_the_one_before_stays_accepted() {
        let folder = Folder::new();
        let file = write(&folder, "hmac.key", &[1; 32]);
        let ring = KeyRing::read(&file).expect("a key");
        assert_eq!(ring.now(), Keys::only(Key::new([1; 32])));
        assert!(!ring.look_again().expect("the same"));
        write(&folder, "hmac.key", &[2; 32]);
        write(&folder, "hmac.previous", &[1; 32]);
        assert!(ring.look_again().expect("another"));
        assert_eq!(ring.now(), Keys { current: Key::new([2; 32]), previous: Some(Key::new([1; 32])) });
    }

    #[test]
    fn a_file_that_is_no_key_changes_nothing_and_names_the_variable() {
        let folder = Folder::new();
        let file = write(&folder, "hmac.key", &[1; 32]);
        let ring = KeyRing::read(&file).expect("a key");
        write(&folder, "hmac.key", &[1; 31]);
        let error = ring.look_again().expect_err("31 bytes").to_string();
        assert!(error.starts_with("AUTHORITY_KEY_FILE"), "{error}");
        std::fs::remove_file(&file).expect("there");
        assert!(matches!(ring.look_again(), Err(Error::Read { .. })));
        assert_eq!(ring.now(), Keys::only(Key::new([1; 32])));
        assert!(KeyRing::read(&file).is_err());
    }
}
