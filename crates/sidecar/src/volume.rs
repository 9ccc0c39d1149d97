//! How full the data volume is.
//!
//! In: the folder of the store, which is on the same volume as the data. Out: what its file system said last. Must not: ask a
//! disk that hangs with more than one thread, or let anybody wait for it.

use crate::lock;
use bloodraven_brain::volume::Space;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

/// A disk fills up in minutes.
const EVERY: Duration = Duration::from_secs(5);

/// How long a disk may take to tell.
const WITHIN: Duration = Duration::from_millis(500);

/// What was measured longer ago than that is not known any more.
const STALE: Duration = Duration::from_secs(30);

/// One volume; copies are of the same one.
#[derive(Clone, Debug)]
pub(crate) struct Gauge {
    folder: Arc<PathBuf>,
    /// Somebody asks the disk.
    asked: Arc<AtomicBool>,
    last: Arc<Mutex<Option<(Instant, Space)>>>,
}

impl Gauge {
    pub(crate) fn of(folder: &Path) -> Self {
        Self { folder: Arc::new(folder.to_owned()), asked: Arc::default(), last: Arc::default() }
    }

    /// Measures for as long as it is polled.
    pub(crate) async fn watch(self) {
        let mut ticks = interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.measure().await;
        }
    }

    /// As it is now; none: the disk does not tell, or somebody else is asking it.
    pub(crate) async fn measure(&self) -> Option<Space> {
        if self.asked.swap(true, Ordering::SeqCst) {
            return None;
        }
        let (folder, asked, last) = (Arc::clone(&self.folder), Arc::clone(&self.asked), Arc::clone(&self.last));
        let asking = tokio::task::spawn_blocking(move || {
            let space = space(&folder);
            *lock(&last) = space.map(|space| (Instant::now(), space));
            asked.store(false, Ordering::SeqCst);
            space
        });
        timeout(WITHIN, asking).await.ok()?.ok()?
    }

    /// As it was measured last.
    pub(crate) fn last(&self) -> Option<Space> {
        lock(&self.last).filter(|(at, _)| at.elapsed() < STALE).map(|(_, space)| space)
    }
}

fn space(folder: &Path) -> Option<Space> {
    let told = rustix::fs::statvfs(folder).ok()?;
    let bytes = |blocks: u64| blocks.checked_mul(told.f_frsize);
    Some(Space { free: bytes(told.f_bavail)?, total: bytes(told.f_blocks)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;

    #[tokio::test]
    async fn what_was_measured_is_known_until_the_disk_says_nothing_any_more() {
        let folder = Folder::new();
        let gauge = Gauge::of(folder.path());
        assert_eq!(gauge.last(), None);
        let space = gauge.measure().await.expect("a disk that answers");
        assert!(space.total > 0 && space.free <= space.total, "{space:?}");
        assert_eq!(gauge.last(), Some(space));
        gauge.asked.store(true, Ordering::SeqCst);
        assert_eq!((gauge.measure().await, gauge.last()), (None, Some(space)), "one asks at a time");
        assert_eq!(Gauge::of(&folder.path().join("none")).measure().await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_old_is_not_known() {
        let gauge = Gauge::of(Path::new("/nowhere"));
        let space = Space { free: 1, total: 2 };
        *lock(&gauge.last) = Some((Instant::now(), space));
        assert_eq!(gauge.last(), Some(space));
        tokio::time::advance(STALE).await;
        assert_eq!(gauge.last(), None);
    }
}
