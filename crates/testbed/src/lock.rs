//! File locks between processes: one at a time, given back by the kernel when their holder dies.
//!
//! In: a path and what it guards. Out: the locked file; dropping it unlocks. Must not: wait without a bound or in
//! silence.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use snafu::{ResultExt as _, Snafu};

use crate::environment::CACHE_DIR;
use crate::progress::Progress;
use crate::wait;

/// How long one process waits for another: the longest thing done under a lock (building a Kubernetes API server from
/// source on two busy cores) took under ten minutes.
const LIMIT: Duration = Duration::from_mins(45);

/// How often a held lock is tried again.
const TRY_EVERY: Duration = Duration::from_millis(100);

/// Why a lock was not taken.
#[derive(Debug, Snafu)]
pub enum Error {
    /// The lock file cannot be made.
    #[snafu(display(
        "cannot write {}: {source}; make its folder writable or point {CACHE_DIR} elsewhere",
        path.display()
    ))]
    Create {
        /// The lock file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },

    /// The file system knows no locks.
    #[snafu(display("cannot lock {}: {source}; point {CACHE_DIR} at a local disk", path.display()))]
    Lock {
        /// The lock file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },

    /// Another process held the lock all the time.
    #[snafu(display(
        "another process has been busy with {what} for {} minutes: end the one that holds {} and try again",
        LIMIT.as_secs() / 60,
        path.display()
    ))]
    Busy {
        /// What the lock guards.
        what: String,
        /// The lock file.
        path: PathBuf,
    },
}

/// Takes the lock, and says so when another process has to be waited for.
pub fn exclusive(path: &Path, what: &str) -> Result<File, Error> {
    let file = File::create(path).context(CreateSnafu { path })?;
    if attempt(&file).context(LockSnafu { path })? {
        return Ok(file);
    }
    let progress = Progress::start(format!("waiting for another process that is busy with {what}"));
    let taken = wait::until_every(LIMIT, TRY_EVERY, || match attempt(&file) {
        Ok(false) => None,
        taken_or_broken => Some(taken_or_broken),
    });
    match taken {
        Some(Ok(_)) => progress.done(),
        Some(Err(source)) => return Err(source).context(LockSnafu { path }),
        None => return BusySnafu { what, path }.fail(),
    }
    Ok(file)
}

/// Whether someone holds the lock. One whose file does not exist is free.
pub fn is_held(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
}

fn attempt(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;

    #[test]
    fn a_lock_is_exclusive_until_it_is_dropped() {
        let folder = Folder::new();
        let path = folder.path().join("lock");
        assert!(!is_held(&path), "a lock that nobody ever took is free");
        let held = exclusive(&path, "the test").unwrap();
        assert!(is_held(&path));
        std::thread::scope(|scope| {
            let second = scope.spawn(|| exclusive(&path, "the test").map(drop));
            drop(held);
            second.join().unwrap().unwrap();
        });
        // A process that another test is just starting holds a copy of the lock until it runs its program.
        let free = wait::until(Duration::from_mins(1), || (!is_held(&path)).then_some(()));
        assert!(free.is_some());
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let error = exclusive(Path::new("/no/such/folder/lock"), "the test").unwrap_err().to_string();
        assert!(error.contains("/no/such/folder/lock") && error.contains("BLOODRAVEN_CACHE_DIR"), "{error}");
    }
}
