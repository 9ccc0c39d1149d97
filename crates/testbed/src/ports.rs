//! Ports: numbers on loopback that nobody uses.
//!
//! In: how many. Out: that many different port numbers, each held for this process so that no other process of the
//! testbed picks it. Must not: hand a port out twice, or pick from the range that outgoing connections use.
//!
//! A port is free until someone binds it: a foreign process may still come first. Whoever gets a port here starts its
//! program, and asks again when the program says that the port is taken.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use snafu::{ResultExt as _, Snafu};

use crate::cache;
use crate::environment::CACHE_DIR;

/// Where the search begins: above the ports that services are known by.
const LOWEST: u16 = 15_000;

/// Where it ends when the system does not tell its range of outgoing ports: the first of Linux's own.
const OUTGOING: u16 = 32_768;

/// What went wrong with finding ports.
#[derive(Debug, Snafu)]
pub enum Error {
    /// The folder of the locks cannot be made.
    #[snafu(display(
        "cannot write to the port locks in {}: {source}; make it writable or point {CACHE_DIR} elsewhere",
        path.display()
    ))]
    Folder {
        /// The folder of the locks.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },

    /// Every port of the range is taken.
    #[snafu(display("only {found} of {wanted} loopback ports in {}..{} are free: end other test runs", range.start, range.end))]
    Exhausted {
        /// How many were asked for.
        wanted: usize,
        /// How many there were.
        found: usize,
        /// The range that was searched.
        range: Range<u16>,
    },
}

/// `count` free loopback ports.
pub fn free(count: usize) -> Result<Vec<u16>, Error> {
    // The ports of this process, each with the locked file that keeps others from picking it.
    static HELD: Mutex<BTreeMap<u16, File>> = Mutex::new(BTreeMap::new());
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    pick(&cache::root().join("ports"), &range(), count, &mut held)
}

/// Whether something may listen there now.
pub fn is_free(address: Ipv4Addr, port: u16) -> io::Result<()> {
    TcpListener::bind((address, port)).map(drop)
}

/// Takes the ports of the range in turn, from a place that differs between processes, at most once round.
fn pick(folder: &Path, range: &Range<u16>, count: usize, held: &mut BTreeMap<u16, File>) -> Result<Vec<u16>, Error> {
    std::fs::create_dir_all(folder).context(FolderSnafu { path: folder })?;
    let size = u32::from(range.end.saturating_sub(range.start)).max(1);
    // Processes start with neighbouring numbers; a stride keeps their searches apart.
    let first = std::process::id().wrapping_mul(64) % size;
    let mut found = Vec::with_capacity(count);
    for step in 0..size {
        if found.len() == count {
            break;
        }
        let Some(port) = u16::try_from((first + step) % size).ok().and_then(|offset| range.start.checked_add(offset))
        else {
            break;
        };
        if let Some(lock) = hold(folder, port, held)? {
            held.insert(port, lock);
            found.push(port);
        }
    }
    if found.len() == count {
        return Ok(found);
    }
    // The caller gets none, so others may have them.
    held.retain(|port, _| !found.contains(port));
    ExhaustedSnafu { wanted: count, found: found.len(), range: range.clone() }.fail()
}

/// The lock on a port that is neither held by the testbed nor bound by anyone.
fn hold(folder: &Path, port: u16, held: &BTreeMap<u16, File>) -> Result<Option<File>, Error> {
    if held.contains_key(&port) {
        return Ok(None);
    }
    let path = folder.join(port.to_string());
    let lock = File::create(&path).context(FolderSnafu { path })?;
    let ours = lock.try_lock().is_ok() && is_free(Ipv4Addr::LOCALHOST, port).is_ok();
    Ok(ours.then_some(lock))
}

/// The ports below those that the system gives to outgoing connections.
fn range() -> Range<u16> {
    let told = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok();
    let outgoing = told.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(OUTGOING);
    // A system that uses nearly all ports for outgoing connections leaves no better choice than Linux's own range.
    LOWEST..if outgoing > LOWEST + 1_000 { outgoing } else { OUTGOING }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;
    use crate::wait;
    use std::time::Duration;

    /// A range with a port that the test itself listens on.
    fn taken() -> (TcpListener, u16) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        (listener, port)
    }

    #[test]
    fn a_port_is_not_handed_out_twice() {
        let (folder, mut held) = (Folder::new(), BTreeMap::new());
        let mut all = pick(folder.path(), &range(), 20, &mut held).unwrap();
        all.extend(pick(folder.path(), &range(), 20, &mut held).unwrap());
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 40);
        assert!(all.iter().all(|port| range().contains(port)), "{all:?}");
    }

    #[test]
    fn two_processes_do_not_pick_the_same_port() {
        let folder = Folder::new();
        let (mut one, mut other) = (BTreeMap::new(), BTreeMap::new());
        let mine = pick(folder.path(), &range(), 10, &mut one).unwrap();
        let theirs = pick(folder.path(), &range(), 10, &mut other).unwrap();
        assert!(mine.iter().all(|port| !theirs.contains(port)), "{mine:?} {theirs:?}");
        drop(one);
        let unlocked = |port: &u16| File::open(folder.path().join(port.to_string())).unwrap().try_lock().is_ok();
        // A process that another test is just starting holds copies of the locks until it runs its program.
        let free = wait::until(Duration::from_mins(1), || mine.iter().all(unlocked).then_some(()));
        assert!(free.is_some(), "the locks of a process that ended are free again");
        assert!(!theirs.iter().any(unlocked), "the others are still held");
    }

    #[test]
    fn a_port_in_use_is_not_picked_and_a_short_range_says_so() {
        let folder = Folder::new();
        let (_listener, port) = taken();
        let mut held = BTreeMap::new();
        let error = pick(folder.path(), &(port..port + 1), 1, &mut held).unwrap_err();
        assert!(matches!(error, Error::Exhausted { wanted: 1, found: 0, .. }), "{error}");
        assert!(held.is_empty());
    }

    #[test]
    fn a_lock_folder_that_cannot_be_written_is_named_with_the_way_out() {
        let folder = Folder::new();
        let file = folder.path().join("file");
        std::fs::write(&file, b"").unwrap();
        let error = pick(&file.join("ports"), &range(), 1, &mut BTreeMap::new()).unwrap_err().to_string();
        assert!(error.contains("/file/ports") && error.contains("BLOODRAVEN_CACHE_DIR"), "{error}");
    }
}
