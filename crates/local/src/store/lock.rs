//! Locks between processes, each waited for with a bound.
//!
//! In: a file. Out: its lock, held until dropped, or that somebody else has it. Must not: wait for ever: a process that
//! stands still keeps its locks.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use snafu::{ResultExt as _, Snafu};

use super::Store;

/// How long the lock of the store is waited for. It is held for a comparison and a rename.
const STORE_LIMIT: Duration = Duration::from_secs(2);

/// How often it is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// What went wrong with a lock.
#[derive(Debug, Snafu)]
pub enum Error {
    /// Somebody else has it.
    #[snafu(display("{} is locked by another process; end it, or try again", path.display()))]
    Taken {
        /// The file.
        path: PathBuf,
    },

    /// It cannot be locked at all.
    #[snafu(display("cannot lock {}: {source}", path.display()))]
    Broken {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// A held lock.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock, waiting at most so long. Blocks.
    #[expect(clippy::disallowed_methods, reason = "this is the bounded wait for a lock that everything else uses")]
    pub fn take(path: &Path, limit: Duration) -> Result<Self, Error> {
        let open = File::options().create(true).truncate(false).write(true).open(path);
        let file = open.context(BrokenSnafu { path })?;
        let began = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _file: file }),
                Err(TryLockError::WouldBlock) if began.elapsed() < limit => std::thread::sleep(LOOK_EVERY),
                Err(TryLockError::WouldBlock) => return TakenSnafu { path }.fail(),
                Err(TryLockError::Error(source)) => return Err(Error::Broken { path: path.to_owned(), source }),
            }
        }
    }
}

impl Store {
    /// The lock under which versions are compared and files renamed. Blocks for at most two seconds.
    pub(crate) fn lock(&self) -> Result<Lock, Error> {
        Lock::take(&self.path("store.lock"), STORE_LIMIT)
    }
}
