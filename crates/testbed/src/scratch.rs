//! Scratch folders: where a running server keeps its files.
//!
//! In: a name. Out: an empty folder `<cache root>/run/<pid>-<number>-<name>`, removed when dropped, kept in
//! `<cache root>/kept` when a test fails or the user asks for it. Must not: touch the folder of a live process.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

use snafu::{ResultExt as _, Snafu};

use crate::cache;
use crate::environment::{self, CACHE_DIR, KEEP};
use crate::lock;
use crate::progress::say;

/// The file whose lock shows that the owner lives.
const OWNER: &str = ".owner";

/// How many kept folders there may be; the oldest go first. A MySQL server's folder is about 130 MB, a failed test has
/// up to three.
const KEPT: usize = 9;

/// What went wrong with a scratch folder.
#[derive(Debug, Snafu)]
pub enum Error {
    /// It cannot be made.
    #[snafu(display(
        "cannot make the scratch folder {}: {source}; make it writable or point {CACHE_DIR} elsewhere",
        path.display()
    ))]
    Make {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },

    /// It cannot be removed.
    #[snafu(display("cannot remove {}: {source}", path.display()))]
    Remove {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// A folder of our own.
#[derive(Debug)]
pub struct Scratch {
    root: PathBuf,
    path: PathBuf,
    after: After,
    // Its lock tells other processes that we live.
    _owner: File,
}

/// What happens to the folder in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    /// Removed, unless a test is failing or the user wants to see it.
    KeptOnFailure,
    /// Removed: there is nothing to see.
    Removed,
    /// It has been moved away.
    Gone,
}

impl Scratch {
    /// Makes a folder in the cache that the environment asks for. The first call of a process also removes what dead
    /// processes left behind.
    pub fn new(name: &str) -> Result<Self, Error> {
        static SWEPT: Once = Once::new();
        let root = cache::root();
        SWEPT.call_once(|| sweep(&root));
        Self::within(&root, name)
    }

    fn within(root: &Path, name: &str) -> Result<Self, Error> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let (run, name) = (root.join("run"), format!("{}-{count}-{name}", std::process::id()));
        let path = run.join(&name);
        // Under its own name it is seen with its lock held, never before.
        let unseen = run.join(format!(".{name}"));
        let owner = std::fs::create_dir_all(&unseen)
            .and_then(|()| File::create(unseen.join(OWNER)))
            .and_then(|file| file.lock().map(|()| file))
            .and_then(|file| std::fs::rename(&unseen, &path).map(|()| file))
            .context(MakeSnafu { path: &path })?;
        Ok(Self { root: root.to_owned(), path, after: After::KeptOnFailure, _owner: owner })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A folder for something that is of no interest afterwards, whatever happens.
    pub fn passing(name: &str) -> Result<Self, Error> {
        let mut scratch = Self::new(name)?;
        scratch.after = After::Removed;
        Ok(scratch)
    }

    /// Moves the folder to where the next run does not sweep it, tells where, and gives the new path; the old one when
    /// it cannot be moved.
    pub fn keep(mut self) -> PathBuf {
        self.move_away().unwrap_or_else(|_| self.path.clone())
    }

    fn move_away(&mut self) -> io::Result<PathBuf> {
        let kept = self.root.join("kept");
        std::fs::create_dir_all(&kept)?;
        let target = kept.join(self.path.file_name().unwrap_or_default());
        // An earlier process may have had the same number.
        let _ = std::fs::remove_dir_all(&target);
        std::fs::rename(&self.path, &target)?;
        self.after = After::Gone;
        say(&format!("kept {}", target.display()));
        thin_out(&kept, &target);
        Ok(target)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let wanted = || std::thread::panicking() || environment::switched_on(KEEP);
        if self.after == After::KeptOnFailure && wanted() {
            let _ = self.move_away();
        }
        if self.after != After::Gone {
            // What cannot be removed now is swept by a later run.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

/// The folders of live processes below a cache root.
pub fn in_use(root: &Path) -> Vec<PathBuf> {
    folders(&root.join("run")).filter(|path| is_owned(path)).collect()
}

/// Removes the folders of dead processes. Bounded by the names in the folder.
pub fn sweep(root: &Path) {
    for path in folders(&root.join("run")).filter(|path| !is_owned(path)) {
        let _ = std::fs::remove_dir_all(path);
    }
}

/// Removes the kept folders.
pub fn forget_kept(root: &Path) -> Result<(), Error> {
    for path in folders(&root.join("kept")) {
        std::fs::remove_dir_all(&path).context(RemoveSnafu { path })?;
    }
    Ok(())
}

/// Removes all but the newest kept folders. The one just kept stays whatever the clock says: file times are coarse, and
/// folders of one instant have no order.
fn thin_out(kept: &Path, newest: &Path) {
    let age = |path: &PathBuf| path.metadata().and_then(|folder| folder.modified()).ok();
    let mut others: Vec<PathBuf> = folders(kept).filter(|path| path != newest).collect();
    others.sort_by_key(age);
    for path in others.iter().rev().skip(KEPT - 1) {
        let _ = std::fs::remove_dir_all(path);
    }
}

fn folders(parent: &Path) -> impl Iterator<Item = PathBuf> {
    let found = parent.read_dir().into_iter().flatten().flatten();
    found.filter(|found| found.file_type().is_ok_and(|sort| sort.is_dir())).map(|found| found.path())
}

/// Whether the owner lives: it holds the lock, or its number is in use while it may not have the lock yet. The number
/// alone would not do: another process may have it by now, or the owner may be in another pid namespace.
fn is_owned(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let unseen = name.strip_prefix('.').and_then(|name| name.split_once('-'));
    let about_to_lock = unseen.is_some_and(|(pid, _)| Path::new("/proc").join(pid).exists());
    about_to_lock || lock::is_held(&path.join(OWNER))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;

    fn names(parent: &Path) -> Vec<String> {
        let name = |path: PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
        let mut names: Vec<String> = folders(parent).map(name).collect();
        names.sort();
        names
    }

    #[test]
    fn a_scratch_folder_lives_as_long_as_its_owner() {
        let root = Folder::new();
        let scratch = Scratch::within(root.path(), "iad").unwrap();
        let path = scratch.path().to_owned();
        assert!(path.is_dir() && path.to_str().unwrap().ends_with("-iad"));
        assert_eq!(in_use(root.path()), std::slice::from_ref(&path));
        drop(scratch);
        assert!(!path.exists());
    }

    #[test]
    fn a_folder_can_be_kept_at_will() {
        let root = Folder::new();
        let scratch = Scratch::within(root.path(), "iad").unwrap();
        let (before, after) = (scratch.path().to_owned(), scratch.keep());
        assert!(!before.exists() && after.is_dir() && after.starts_with(root.path().join("kept")));
    }

    #[test]
    fn folders_of_dead_processes_are_swept_and_those_of_live_ones_stay() {
        let root = Folder::new();
        let run = root.path().join("run");
        // The highest number that Linux gives out is 4194304; the first process is always there.
        for name in ["4194305-0-iad", "1-0-iad", "no-number", ".4194305-1-iad", ".1-1-iad", "4194306-0-locked"] {
            std::fs::create_dir_all(run.join(name)).unwrap();
        }
        let elsewhere = File::create(run.join("4194306-0-locked").join(OWNER)).unwrap();
        elsewhere.lock().unwrap();
        let mine = Scratch::within(root.path(), "mine").unwrap();
        sweep(root.path());
        let mine = mine.path().file_name().unwrap().to_str().unwrap();
        let mut expect = [".1-1-iad", "4194306-0-locked", mine];
        expect.sort_unstable();
        assert_eq!(names(&run), expect);
    }

    #[test]
    fn a_failing_test_keeps_its_folder_and_only_the_newest_are_kept() {
        let root = Folder::new();
        for number in 0..KEPT {
            std::fs::create_dir_all(root.path().join("kept").join(format!("earlier{number:02}"))).unwrap();
        }
        let fail = || {
            let scratch = Scratch::within(root.path(), "fails").unwrap();
            std::fs::write(scratch.path().join("error.log"), b"why").unwrap();
            panic!("the test fails");
        };
        assert!(std::panic::catch_unwind(fail).is_err());
        let kept = names(&root.path().join("kept"));
        assert_eq!(kept.len(), KEPT);
        let last = kept.iter().find(|name| name.ends_with("-fails")).expect("the newest is among them");
        assert_eq!(std::fs::read(root.path().join("kept").join(last).join("error.log")).unwrap(), b"why");
        assert!(names(&root.path().join("run")).is_empty());
    }
}
