//! The locks of a keeper: nobody else keeps these folders, and everybody can tell when keeper and mysqld are gone.
//!
//! In: where they are. Out: both, held. Must not: hold them without passing them on to mysqld, or free them while
//! anything that the keeper started may live: a lock ends with the last process that has it open, and only so.

use std::fs::{File, TryLockError};
use std::path::Path;

use bloodraven_keeper::protocol::lock_of;
use rustix::event::poll;

use crate::error::Error;
use crate::{clock, signals};

/// How long a predecessor, or its dying mysqld, is waited for. A sidecar that tries the lock holds it for a moment.
const PREDECESSOR: u64 = if cfg!(test) { 1000 } else { 10_000 };

/// See above.
#[derive(Debug)]
pub(crate) struct Locks {
    /// Of the state folder: two keepers of one volume, wherever their sockets are.
    folder: File,
    /// Beside the socket, where the sidecar sees it.
    life: File,
}

impl Locks {
    /// Waits for both.
    pub(crate) fn take(state: &Path, socket: &Path) -> Result<Self, Error> {
        let until = clock::boot().saturating_add(PREDECESSOR);
        Ok(Self { folder: lock(&state.join("keeper.lock"), until)?, life: lock(&lock_of(socket), until)? })
    }

    /// What every child inherits.
    pub(crate) fn all(&self) -> [&File; 2] {
        [&self.folder, &self.life]
    }
}

/// The file is never replaced or removed: another one under the same name could be had while this one is held.
fn lock(path: &Path, until: u64) -> Result<File, Error> {
    let file = File::options().write(true).create(true).truncate(false).open(path);
    let file = file.map_err(Error::file("open the lock", path))?;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(Error::file("lock", path)(error)),
            Err(TryLockError::WouldBlock) if clock::boot() >= until || signals::told_to_end() => {
                return Err(Error::Taken(path.to_owned()));
            }
            Err(TryLockError::WouldBlock) => drop(poll(&mut [], Some(&clock::milliseconds(20)))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::process::{Command, Stdio};

    use rustix::process::{Pid, Signal, WaitOptions, waitpid};

    use super::*;
    use crate::first_boot::testing::Place;
    use crate::process;

    fn is_free(path: &Path) -> bool {
        File::open(path).unwrap().try_lock_shared().is_ok()
    }

    /// One test, because a child of another one would have every file open for the moment before its exec.
    #[test]
    fn a_lock_stands_until_the_last_child_that_was_given_it_is_gone() {
        let place = Place::new();
        let (socket, life) = (place.0.join("k.sock"), place.0.join("mysqld.lock"));
        let locks = Locks::take(&place.0, &socket).unwrap();
        let error = Locks::take(&place.0, &socket).unwrap_err().to_string();
        assert!(error.ends_with("keeper.lock: another keeper, or its mysqld, still holds this lock; end it first"));
        assert!(!is_free(&life), "the keeper lives");
        let mut other = Command::new("sleep").arg("1000").stdin(Stdio::null()).spawn().unwrap();
        let words: Vec<OsString> = ["sleep", "1000"].map(OsString::from).to_vec();
        let pid = process::spawn(&words, [], locks.all()).unwrap();
        drop(locks);
        assert!(!is_free(&life) && !is_free(&place.0.join("keeper.lock")), "its server lives");
        process::signal(pid, Signal::KILL).unwrap();
        waitpid(Pid::from_raw(i32::try_from(pid).unwrap()), WaitOptions::empty()).unwrap();
        assert!(is_free(&life), "what else the keeper may have started has no part in it");
        other.kill().unwrap();
        other.wait().unwrap();
    }

    #[test]
    fn a_sidecars_try_does_not_end_a_keeper() {
        let place = Place::new();
        let tried = File::create(place.0.join("mysqld.lock")).unwrap();
        tried.try_lock_shared().unwrap();
        let folder = place.0.join("keeper.lock");
        File::create(&folder).unwrap();
        let sidecar = std::thread::spawn(move || {
            // The keeper takes this one first; its own patience bounds the wait.
            while is_free(&folder) {
                std::thread::yield_now();
            }
            drop(tried);
        });
        Locks::take(&place.0, &place.0.join("k.sock")).unwrap();
        sidecar.join().unwrap();
    }
}
