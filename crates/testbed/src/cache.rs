//! The cache: what was fetched, built or initialised once and is used by every later run.
//!
//! In: a kind, a key and a function that fills a folder. Out: the path of a folder that is complete. Must not: show a
//! half-written entry to anyone, build the same entry twice at the same time, or trust an entry that lost a file.
//!
//! An entry is the folder `<root>/<kind>/<key>`. It is filled under another name beside it, sealed with a manifest
//! (`.complete`: every file and its size), written through to the disk and only then renamed into place, all under a
//! file lock that the kernel takes back from a dead process. So whoever holds the lock may remove any unfinished folder.

mod inventory;
mod manifest;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use snafu::{ResultExt as _, Snafu, ensure};

pub use self::inventory::{Kept, State, size_of};
pub use self::manifest::Damage;
use crate::environment::{self, CACHE_DIR};
use crate::lock;
use crate::progress::say;

/// With less than this left on the disk a failed build may well be due to the disk: MySQL takes 500 MB with its packages.
const NEARLY_FULL: u64 = 1 << 30;

/// What went wrong with the cache.
#[derive(Debug, Snafu)]
pub enum Error {
    /// The kind or the key cannot be a folder's name.
    #[snafu(display("cache name {name:?} is no folder name: use letters, digits, '.', '-', '_', not first '.'"))]
    Name {
        /// The name that was refused.
        name: String,
    },

    /// The folder of the kind, or one in it, cannot be made.
    #[snafu(display(
        "cannot write to the cache folder {}: {source}; make it writable or point {CACHE_DIR} elsewhere",
        path.display()
    ))]
    Folder {
        /// The folder that was to be made.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },

    /// The right to build the entry cannot be had.
    #[snafu(transparent)]
    Lock {
        /// Why not.
        source: lock::Error,
    },

    /// The function that fills the folder failed.
    #[snafu(display("cannot make {what}: {source}{hint}"))]
    Build {
        /// The entry, as kind and key.
        what: String,
        /// What the function said.
        source: Box<dyn std::error::Error + Send + Sync>,
        /// What may be behind it, such as a full disk.
        hint: String,
    },

    /// The filled folder cannot be sealed or moved into place.
    #[snafu(display("cannot store {what} in {}: {source}{hint}", path.display()))]
    Store {
        /// The entry, as kind and key.
        what: String,
        /// The folder of the entry.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
        /// What may be behind it, such as a full disk.
        hint: String,
    },
}

/// The folder that the environment asks for: `$BLOODRAVEN_CACHE_DIR`, else `$XDG_CACHE_HOME/bloodraven`, else
/// `$HOME/.cache/bloodraven`; without a home, a folder of this user under the system's temporary one.
pub fn root() -> PathBuf {
    let chosen = environment::variable(CACHE_DIR).map(PathBuf::from);
    let root = chosen
        .or_else(|| Some(PathBuf::from(environment::variable("XDG_CACHE_HOME")?).join("bloodraven")))
        .or_else(|| Some(PathBuf::from(environment::variable("HOME")?).join(".cache/bloodraven")))
        .unwrap_or_else(|| {
            std::env::temp_dir().join(format!("bloodraven-cache-{}", rustix::process::getuid().as_raw()))
        });
    // Programs are started with other working folders, so a relative path would mean something else to them.
    std::path::absolute(&root).unwrap_or(root)
}

/// [`Cache::entry`] of the cache at [`root`].
pub fn entry<E>(kind: &str, key: &str, build: impl FnOnce(&Path) -> Result<(), E>) -> Result<PathBuf, Error>
where
    E: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    Cache::open().entry(kind, key, build)
}

/// A cache in a folder.
#[derive(Clone, Debug)]
pub struct Cache {
    root: PathBuf,
}

impl Cache {
    /// The cache at [`root`].
    pub fn open() -> Self {
        Self::at(root())
    }

    /// A cache in another folder.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The folder everything is in.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The entry when it is there and complete; never builds.
    pub fn get(&self, kind: &str, key: &str) -> Option<PathBuf> {
        let place = Place::new(&self.root, kind, key).ok()?;
        manifest::check(&place.entry).is_ok().then_some(place.entry)
    }

    /// The folder of that kind and key, filled by `build` when it is absent or damaged.
    ///
    /// `build` gets an empty folder that is renamed afterwards: what it writes must not contain that folder's path.
    /// When it fails or panics, nothing is left behind and the next call builds again.
    pub fn entry<E>(&self, kind: &str, key: &str, build: impl FnOnce(&Path) -> Result<(), E>) -> Result<PathBuf, Error>
    where
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let place = Place::new(&self.root, kind, key)?;
        if manifest::check(&place.entry).is_ok() {
            return Ok(place.entry);
        }
        std::fs::create_dir_all(&place.folder).context(FolderSnafu { path: &place.folder })?;
        let lock = place.lock()?;
        match manifest::check(&place.entry) {
            Ok(()) => return Ok(place.entry),
            Err(Damage::Absent) => {}
            Err(damage) => say(&format!("{} is damaged ({damage}): making it anew", place.entry.display())),
        }
        place.sweep();
        place.build(build)?;
        drop(lock);
        Ok(place.entry)
    }
}

/// Where an entry lives, and what it is called on the way there.
struct Place {
    folder: PathBuf,
    key: String,
    entry: PathBuf,
    what: String,
}

impl Place {
    fn new(root: &Path, kind: &str, key: &str) -> Result<Self, Error> {
        for name in [kind, key] {
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '+' | '~');
            ensure!(!name.is_empty() && !name.starts_with('.') && name.chars().all(plain), NameSnafu { name });
        }
        let folder = root.join(kind);
        let entry = folder.join(key);
        Ok(Self { folder, key: key.to_owned(), entry, what: format!("{kind}/{key}") })
    }

    /// The exclusive right to build.
    fn lock(&self) -> Result<File, Error> {
        Ok(lock::exclusive(&lock_path(&self.folder, &self.key), &self.what)?)
    }

    /// Removes the unfinished folders of dead builders: those of this key, whose lock we hold, and those of any other
    /// key whose lock nobody holds. Bounded by the number of names in the folder of the kind.
    fn sweep(&self) {
        let Ok(names) = self.folder.read_dir() else { return };
        for name in names.flatten().filter_map(|found| found.file_name().into_string().ok()) {
            let Some(key) = unfinished_key(&name) else { continue };
            if key == self.key || !lock::is_held(&lock_path(&self.folder, key)) {
                // What cannot be removed now is tried again by the next build.
                let _ = std::fs::remove_dir_all(self.folder.join(&name));
            }
        }
    }

    fn build<E>(&self, build: impl FnOnce(&Path) -> Result<(), E>) -> Result<(), Error>
    where
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let unfinished = Unfinished::new(&self.folder, &self.key)?;
        build(&unfinished.0).map_err(Into::into).map_err(|source| Error::Build {
            what: self.what.clone(),
            source,
            hint: disk_hint(&self.folder),
        })?;
        self.install(&unfinished).map_err(|source| Error::Store {
            what: self.what.clone(),
            path: self.entry.clone(),
            source,
            hint: disk_hint(&self.folder),
        })
    }

    /// Seals the filled folder, writes it through and puts it where the entry belongs.
    fn install(&self, unfinished: &Unfinished) -> io::Result<()> {
        manifest::write(&unfinished.0)?;
        // Without this a power cut could leave the rename on the disk and the files not.
        rustix::fs::syncfs(File::open(&unfinished.0)?)?;
        let discarded = Unfinished::name(&self.folder, &self.key);
        match std::fs::rename(&self.entry, &discarded) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        std::fs::rename(&unfinished.0, &self.entry)?;
        drop(Unfinished(discarded));
        Ok(())
    }
}

/// A folder that is being filled, or thrown away; removed on every way out but the rename into place.
struct Unfinished(PathBuf);

impl Unfinished {
    fn name(folder: &Path, key: &str) -> PathBuf {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        folder.join(format!(".{key}.unfinished-{}-{count}", std::process::id()))
    }

    fn new(folder: &Path, key: &str) -> Result<Self, Error> {
        let path = Self::name(folder, key);
        std::fs::create_dir(&path).context(FolderSnafu { path: &path })?;
        Ok(Self(path))
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // After the rename there is nothing left under this name; what else fails is swept by the next build.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn lock_path(folder: &Path, key: &str) -> PathBuf {
    folder.join(format!(".{key}.lock"))
}

/// The key in the name of an unfinished folder.
fn unfinished_key(name: &str) -> Option<&str> {
    name.strip_prefix('.')?.rsplit_once(".unfinished-").map(|(key, _)| key)
}

/// The end of a message when the disk is (nearly) full, and nothing otherwise.
fn disk_hint(folder: &Path) -> String {
    match rustix::fs::statvfs(folder) {
        Ok(disk) if disk.f_bavail.saturating_mul(disk.f_frsize) < NEARLY_FULL => format!(
            "; the disk of {} has only {} MB left: free some space or point {CACHE_DIR} elsewhere",
            folder.display(),
            disk.f_bavail.saturating_mul(disk.f_frsize) >> 20
        ),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests;
