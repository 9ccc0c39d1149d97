//! Files that are never seen half made.
//!
//! In: a path and bytes. Out: the file with exactly these bytes, on disk for certain, or an error that names it. Must
//! not: write into a file that others read, or take a missing file for an empty one.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use snafu::{ResultExt as _, Snafu};

/// How a file that is being made ends: sweeping takes these away.
const UNFINISHED: &str = ".unfinished";

/// Nothing of ours is longer; a file that is was not written by us.
const LONGEST: u64 = 64 << 20;

/// What went wrong with a file.
#[derive(Debug, Snafu)]
pub enum Error {
    /// It cannot be written.
    #[snafu(display("cannot write {}: {source}", path.display()))]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },

    /// It cannot be read.
    #[snafu(display("cannot read {}: {source}", path.display()))]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// A file's bytes; none: there is no such file.
pub fn read(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    let length = match std::fs::metadata(path) {
        Ok(found) => found.len(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(Error::Read { path: path.to_owned(), source }),
    };
    if length > LONGEST {
        let source = io::Error::new(io::ErrorKind::FileTooLarge, "longer than anything that is written here");
        return Err(Error::Read { path: path.to_owned(), source });
    }
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::Read { path: path.to_owned(), source }),
    }
}

/// Puts these bytes in the file's place, readable by its owner alone: beside, flushed, renamed, the folder flushed.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    stage(path, bytes)?.place()
}

/// [`replace`] for what is only shown and made anew at every start: never half made, but not waited for.
pub fn show(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let staged = write_beside(path, bytes, false)?;
    std::fs::rename(&staged.beside, path).context(WriteSnafu { path })
}

/// Writes the bytes beside the file and flushes them; [`Staged::place`] makes them the file.
pub fn stage(path: &Path, bytes: &[u8]) -> Result<Staged, Error> {
    write_beside(path, bytes, true)
}

fn write_beside(path: &Path, bytes: &[u8], flushed: bool) -> Result<Staged, Error> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = path.with_file_name(format!(".{name}.{}.{count}{UNFINISHED}", std::process::id()));
    let staged = Staged { path: path.to_owned(), beside };
    let write = || {
        let mut file = File::options().write(true).create(true).truncate(true).mode(0o600).open(&staged.beside)?;
        file.write_all(bytes)?;
        if flushed { file.sync_all() } else { Ok(()) }
    };
    write().context(WriteSnafu { path })?;
    Ok(staged)
}

/// A file that lies ready beside its place. Dropped without being placed, it goes away.
#[derive(Debug)]
pub struct Staged {
    path: PathBuf,
    beside: PathBuf,
}

impl Staged {
    /// Makes it the file, and returns when that is on disk.
    pub fn place(self) -> Result<(), Error> {
        self.rename()?;
        self.settle()
    }

    /// Makes it the file, at once and for everyone to see.
    pub fn rename(&self) -> Result<(), Error> {
        std::fs::rename(&self.beside, &self.path).context(WriteSnafu { path: &self.path })
    }

    /// Returns when the rename is on disk.
    pub fn settle(self) -> Result<(), Error> {
        flush_folder(&self.path).context(WriteSnafu { path: &self.path })
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        // Renamed already in the good case.
        let _ = std::fs::remove_file(&self.beside);
    }
}

/// Flushes the folder that the file is in.
fn flush_folder(path: &Path) -> io::Result<()> {
    File::open(path.parent().unwrap_or(Path::new("/")))?.sync_all()
}

/// Removes a file for certain; one that is not there is fine.
pub fn remove(path: &Path) -> Result<(), Error> {
    match std::fs::remove_file(path) {
        Ok(()) => flush_folder(path).context(WriteSnafu { path }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(Error::Write { path: path.to_owned(), source }),
    }
}

/// Makes a folder that only its owner may look into; one that is there is fine.
pub fn private_folder(path: &Path) -> Result<(), Error> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path).context(WriteSnafu { path })
}

/// Takes away what writers that were killed left beside the files of this folder. Only for who knows that nobody writes.
pub fn sweep(folder: &Path) {
    let found = std::fs::read_dir(folder).into_iter().flatten().flatten();
    for file in found.filter(|file| file.file_name().to_string_lossy().ends_with(UNFINISHED)) {
        // What cannot be removed is in nobody's way.
        let _ = std::fs::remove_file(file.path());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_replaced_file_has_the_new_bytes_and_nothing_lies_beside_it() {
        let folder = Folder::new();
        let path = folder.path().join("group.json");
        assert_eq!(read(&path).unwrap(), None);
        replace(&path, b"one").unwrap();
        replace(&path, b"two").unwrap();
        show(&path, b"three").unwrap();
        assert_eq!(read(&path).unwrap().unwrap(), b"three");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_is_staged_and_not_placed_changes_nothing_and_goes_away() {
        let folder = Folder::new();
        let path = folder.path().join("f");
        replace(&path, b"old").unwrap();
        drop(stage(&path, b"new").unwrap());
        assert_eq!(read(&path).unwrap().unwrap(), b"old");
        let killed = stage(&path, b"new").unwrap();
        std::mem::forget(killed);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
        sweep(folder.path());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn an_error_names_the_file() {
        let folder = Folder::new();
        let path = folder.path().join("absent/f");
        assert!(replace(&path, b"").unwrap_err().to_string().contains("/absent/f"));
        assert!(read(folder.path()).unwrap_err().to_string().contains("cannot read"));
        remove(&path).unwrap();
    }
}
