//! What the cache holds: for people who want to see it or have the space back.
//!
//! In: a cache. Out: its entries with their sizes and states; room. Must not: remove what another process is building.

use std::io;
use std::path::{Path, PathBuf};

use super::manifest::{self, Damage};
use super::{Cache, Place, unfinished_key};

/// An entry of the cache.
#[derive(Clone, Debug)]
pub struct Kept {
    /// What sort of thing it is, such as `mysql`.
    pub kind: String,
    /// Which one, such as a version.
    pub key: String,
    /// Its folder.
    pub path: PathBuf,
    /// The sum of its files.
    pub bytes: u64,
    /// Whether it can be used.
    pub state: State,
}

/// Whether an entry can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Complete by its seal.
    Complete,
    /// Being built by a live process, or left by a dead one.
    Unfinished,
    /// It will be built anew when it is asked for.
    Damaged(Damage),
}

impl Cache {
    /// The entries of the given kinds, in the order of the kinds and then of their keys.
    pub fn inventory(&self, kinds: &[&str]) -> Vec<Kept> {
        kinds.iter().flat_map(|kind| self.of_kind(kind)).collect()
    }

    fn of_kind(&self, kind: &str) -> Vec<Kept> {
        let folder = self.root().join(kind);
        let mut kept: Vec<Kept> = folder
            .read_dir()
            .into_iter()
            .flatten()
            .flatten()
            .filter(|found| found.file_type().is_ok_and(|sort| sort.is_dir()))
            .filter_map(|found| describe(kind, &found.path()))
            .collect();
        kept.sort_by(|a, b| a.key.cmp(&b.key));
        kept
    }

    /// Removes an entry under its lock.
    pub fn remove(&self, kind: &str, key: &str) -> Result<(), super::Error> {
        let place = Place::new(self.root(), kind, key)?;
        let lock = place.lock()?;
        place.sweep();
        let removed = match std::fs::remove_dir_all(&place.entry) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
        drop(lock);
        removed.map_err(|source| super::Error::Folder { path: place.entry, source })
    }
}

fn describe(kind: &str, path: &Path) -> Option<Kept> {
    let name = path.file_name()?.to_str()?;
    let (key, state) = match unfinished_key(name) {
        Some(key) => (key, State::Unfinished),
        None if name.starts_with('.') => return None,
        None => (name, manifest::check(path).map_or_else(State::Damaged, |()| State::Complete)),
    };
    Some(Kept {
        kind: kind.to_owned(),
        key: key.to_owned(),
        path: path.to_owned(),
        bytes: size_of(path).unwrap_or(0),
        state,
    })
}

/// The sum of the sizes of the files below a folder.
pub fn size_of(folder: &Path) -> io::Result<u64> {
    Ok(manifest::files(folder)?.iter().map(|(_, size)| size).sum())
}
