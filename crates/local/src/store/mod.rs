//! The state directory: what an API server is in a cluster, as files.
//!
//! In: reads, and writes that are bound to a version. Out: what became of them, told apart as finely as safety needs.
//! Must not: lose a write that it called done, do one that it called refused, or take a file that cannot be read for one
//! that is not there.
//!
//! | file | what | who writes |
//! |---|---|---|
//! | `version` | the format of the directory | who makes it |
//! | `group.json` | the group's object | operators, admins; [`object`] |
//! | `lease.json` | the operators' election | operators; [`lease`] |
//! | `secrets/` | accounts and the signing key | who makes it; [`secrets`] |
//! | `pods/<uid>.json` | each life of a site | the supervisor; [`pods`] |
//! | `rolls/<site>` | which life is to be replaced | the leader; [`pods`] |
//! | `outward.json` | what the front doors follow | the leader; [`outward`] |
//! | `events.jsonl` | what people are told | operators; [`events`] |
//!
//! A write is made ready beside its file and flushed first; the lock of the store is held only while the version is
//! compared and the file renamed. So whoever is killed at any moment leaves the old file or the new one, and nobody else
//! waits for longer than a comparison. Files are read without a lock: a rename is seen whole.

pub mod events;
pub mod lease;
pub mod lock;
pub mod object;
pub mod outward;
pub mod pods;
pub mod secrets;
pub mod watch;

use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;
use snafu::{ResultExt as _, Snafu, ensure};

use crate::files;

/// The format that this program writes.
pub const FORMAT: &str = "1";

/// What went wrong with the store.
#[derive(Debug, Snafu)]
#[snafu(visibility(pub(crate)))]
pub enum Error {
    /// There is no directory.
    #[snafu(display("{} is no state directory (it has no file `version`); name one that a playground has made", dir.display()))]
    NotOne {
        /// The directory.
        dir: PathBuf,
    },

    /// Another program's format.
    #[snafu(display(
        "{} has format {found:?} and this program reads {FORMAT:?}; use the program that made it, or another directory",
        dir.display()
    ))]
    OtherFormat {
        /// The directory.
        dir: PathBuf,
        /// What it says.
        found: String,
    },

    /// A file cannot be understood. Never the same as a file that is not there.
    #[snafu(display("{} is corrupt: {why}; put a copy back, or begin anew in another directory", path.display()))]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },

    /// The group's object is gone.
    #[snafu(display("{} is missing; put a copy back, or begin anew in another directory", path.display()))]
    Missing {
        /// The file.
        path: PathBuf,
    },

    /// Somebody else wrote first; nothing was changed.
    #[snafu(display("{}: somebody else has written meanwhile", path.display()))]
    Conflict {
        /// The file.
        path: PathBuf,
    },

    /// It is not accepted; nothing was changed.
    #[snafu(display("{because}"))]
    Refused {
        /// Why, and what to do instead.
        because: String,
    },

    /// The lock was not to be had; nothing was changed.
    #[snafu(transparent)]
    Locked {
        /// Why not.
        source: lock::Error,
    },

    /// A file cannot be read or written. A write may have been done.
    #[snafu(transparent)]
    File {
        /// Why not.
        source: files::Error,
    },

    /// The directory cannot be made or looked into.
    #[snafu(display("cannot use {}: {source}", path.display()))]
    Directory {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },

    /// No randomness for passwords.
    #[snafu(display("cannot draw a password: {why}"))]
    NoDraw {
        /// What the system said.
        why: String,
    },
}

impl Error {
    /// Whether it is certain that nothing was changed.
    pub const fn changed_nothing(&self) -> bool {
        !matches!(self, Self::File { .. })
    }
}

/// A state directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    dir: PathBuf,
}

impl Store {
    /// The store in that directory, which has one of this format.
    pub fn open(dir: &Path) -> Result<Self, Error> {
        let dir = std::path::absolute(dir).context(DirectorySnafu { path: dir })?;
        let Some(found) = files::read(&dir.join("version"))? else { return NotOneSnafu { dir }.fail() };
        let found = String::from_utf8_lossy(&found).trim().to_owned();
        ensure!(found == FORMAT, OtherFormatSnafu { dir, found });
        Ok(Self { dir })
    }

    /// Makes a store in that directory: the folders, the secrets, the group's object. The file `version` comes last, so
    /// that a directory that was not finished is not one.
    pub fn create(dir: &Path, object: &Value) -> Result<Self, Error> {
        files::private_folder(dir)?;
        let dir = std::path::absolute(dir).context(DirectorySnafu { path: dir })?;
        let store = Self { dir };
        for folder in ["pods", "sites", "secrets", pods::ROLLS] {
            files::private_folder(&store.dir.join(folder))?;
        }
        secrets::create(&store)?;
        object::create(&store, object)?;
        files::replace(&store.dir.join("version"), format!("{FORMAT}\n").as_bytes())?;
        Ok(store)
    }

    /// Whether the directory holds a store, of whatever format.
    pub fn exists(dir: &Path) -> Result<bool, Error> {
        Ok(files::read(&dir.join("version"))?.is_some())
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// A file of it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The folder of a site.
    pub fn site(&self, site: &str) -> PathBuf {
        self.dir.join("sites").join(site)
    }

    /// Takes away what writers that were killed left behind. Only for who knows that nobody writes.
    pub(crate) fn sweep(&self) {
        for folder in [self.dir.clone(), self.path("pods"), self.path("secrets")] {
            files::sweep(&folder);
        }
    }

    /// The object's file, read and understood as JSON.
    pub(crate) fn json(&self, name: &str) -> Result<Option<Value>, Error> {
        let path = self.path(name);
        let Some(bytes) = files::read(&path)? else { return Ok(None) };
        match serde_json::from_slice(&bytes) {
            Ok(value) => Ok(Some(value)),
            Err(error) => CorruptSnafu { path, why: error.to_string() }.fail(),
        }
    }
}

#[cfg(test)]
mod tests;
