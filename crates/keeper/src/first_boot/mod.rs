//! First boot: whether the data folder is initialised, and the markers that make a crash in the middle harmless.
//!
//! In: the data folder and the markers. Out: a plan, and its steps. Must not: empty a data folder whose first boot was
//! not begun by a keeper with this very state folder, or whose first boot was finished. Who wants a folder emptied begins
//! its first boot anew: then an emptying that is cut short goes on at the next start.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::error::Error;

/// A first boot of the data folder whose path is the file's content was begun.
const STARTED: &str = "init-started";

/// It was finished.
const DONE: &str = "init-done";

/// The next start shall have a new `server_uuid` (a reclone in place asks for it).
const NEW_IDENTITY: &str = "new-identity";

/// Below this a volume counts as full: mysqld's initial files alone are larger.
const FULL: u64 = 64 << 20;

/// What is found at a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// The data folder holds something.
    pub(crate) filled: bool,
    /// The marker of a begun first boot names this data folder.
    pub(crate) started: bool,
    /// The marker of a finished one is there.
    pub(crate) done: bool,
}

/// What is to be done before mysqld starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// Nothing.
    Start,
    /// Initialise the empty data folder.
    Initialise,
    /// Empty the data folder of the unfinished first boot, and initialise it.
    Again,
}

/// The table of decisions.
pub(crate) fn plan(found: Found) -> Plan {
    match found {
        Found { filled: false, .. } => Plan::Initialise,
        Found { filled: true, started: true, done: false } => Plan::Again,
        // Finished by us, or foreign: it is somebody's data.
        Found { filled: true, .. } => Plan::Start,
    }
}

/// The two folders.
#[derive(Clone, Debug)]
pub(crate) struct Folders {
    data: PathBuf,
    state: PathBuf,
}

impl Folders {
    /// Makes them when they are missing.
    pub(crate) fn open(data: &Path, state: &Path) -> Result<Self, Error> {
        for path in [data, state] {
            std::fs::create_dir_all(path).map_err(Error::file("make", path))?;
        }
        let data = data.canonicalize().map_err(Error::file("find", data))?;
        Ok(Self { data, state: state.to_owned() })
    }

    pub(crate) fn look(&self) -> Result<Found, Error> {
        let filled = !entries(&self.data)?.is_empty();
        let marker = self.state.join(STARTED);
        let started = match std::fs::read(&marker) {
            Ok(text) => text == self.data.as_os_str().as_bytes(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => return Err(Error::file("read", marker)(error)),
        };
        let done = self.state.join(DONE);
        let done = done.try_exists().map_err(Error::file("read", done))?;
        Ok(Found { filled, started, done })
    }

    /// Notes that a first boot begins, before anything of it is there.
    pub(crate) fn begin(&self) -> Result<(), Error> {
        self.write(STARTED, self.data.as_os_str().as_bytes())?;
        self.remove(DONE)
    }

    /// Empties the data folder of an unfinished first boot.
    pub(crate) fn empty(&self) -> Result<(), Error> {
        for path in entries(&self.data)? {
            let folder = path.symlink_metadata().map_err(Error::file("read", &path))?.is_dir();
            let removed = if folder { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
            removed.map_err(Error::file("remove", &path))?;
        }
        sync(&self.data)
    }

    /// Notes that the first boot is finished.
    pub(crate) fn finish(&self) -> Result<(), Error> {
        self.write(DONE, b"")
    }

    /// Whether the data folder was initialised by a keeper with this state folder.
    pub(crate) fn is_ours(&self) -> bool {
        self.look().is_ok_and(|found| found.started && found.done)
    }

    /// Removes the server's identity where a marker asks for it.
    pub(crate) fn renew_identity(&self) -> Result<bool, Error> {
        let marker = self.state.join(NEW_IDENTITY);
        if !marker.try_exists().map_err(Error::file("read", marker))? {
            return Ok(false);
        }
        remove(&self.data.join("auto.cnf"))?;
        sync(&self.data)?;
        self.remove(NEW_IDENTITY)?;
        Ok(true)
    }

    /// What is left on the data volume, when it is so little that it explains a failure.
    pub(crate) fn nearly_full(&self) -> Option<u64> {
        let volume = rustix::fs::statvfs(&self.data).ok()?;
        Some(volume.f_bavail.saturating_mul(volume.f_frsize)).filter(|free| *free < FULL)
    }

    /// A marker appears complete and for good, or not at all.
    fn write(&self, name: &str, content: &[u8]) -> Result<(), Error> {
        let (path, beside) = (self.state.join(name), self.state.join(format!("{name}.new")));
        let write = || {
            let mut file = File::create(&beside)?;
            file.write_all(content)?;
            file.sync_all()?;
            std::fs::rename(&beside, &path)
        };
        write().map_err(Error::file("write the marker", &path))?;
        sync(&self.state)
    }

    fn remove(&self, name: &str) -> Result<(), Error> {
        remove(&self.state.join(name))?;
        sync(&self.state)
    }
}

/// What counts as content: mysqld, too, overlooks hidden files and a volume's own folder when it looks for emptiness.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    for entry in folder.read_dir().map_err(Error::file("read", folder))? {
        let entry = entry.map_err(Error::file("read", folder))?;
        let name = entry.file_name();
        if name != "lost+found" && !name.as_bytes().starts_with(b".") {
            found.push(entry.path());
        }
    }
    Ok(found)
}

/// Removes a file that may be missing.
pub(crate) fn remove(path: &Path) -> Result<(), Error> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::file("remove", path)(error)),
        _ => Ok(()),
    }
}

fn sync(folder: &Path) -> Result<(), Error> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(Error::file("sync", folder))
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
