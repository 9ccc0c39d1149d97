//! The one writer of the store: a thread, so that a hanging disk holds up nobody but those who wait for it.
//!
//! In: writes, in order. Out: for each, whether it is on disk for certain. Must not: change the order, report before the
//! disk has, or keep in its picture of the store what the disk refused.

use super::file::{self, Kept};
use bloodraven_brain::fence::{Marker, Note};
use bloodraven_brain::record::{Epoch, View};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

/// How many writes may wait for a hanging disk. A write is a new view, an opening or a fence: dozens mean that the disk
/// has hung for minutes, and one more would not be reported in time anyway.
const WAITING: usize = 64;

/// One change of the store.
#[derive(Clone, Debug)]
pub(crate) enum Write {
    /// The highest view, and when it was observed.
    View(Box<View>, String),
    /// What was opened.
    Marker(Box<Marker>),
    /// A fence of our own.
    Note(Option<Note>),
    /// Two views of one epoch.
    Conflict(Epoch),
}

/// What a write was, for its report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrote {
    /// The view of that epoch.
    View(Epoch),
    /// The marker.
    Marker,
    /// The note.
    Note,
    /// The conflict.
    Conflict,
}

/// The end of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Done {
    /// Its number.
    pub(crate) id: u64,
    /// What it was.
    pub(crate) wrote: Wrote,
    /// Whether it is on disk.
    pub(crate) ok: bool,
}

/// Hands writes to the thread. The thread ends with this value, after what was handed to it.
#[derive(Debug)]
pub(crate) struct Writer {
    jobs: SyncSender<(u64, Write)>,
    next: u64,
}

impl Write {
    fn wrote(&self) -> Wrote {
        match self {
            Self::View(view, _) => Wrote::View(view.epoch),
            Self::Marker(_) => Wrote::Marker,
            Self::Note(_) => Wrote::Note,
            Self::Conflict(_) => Wrote::Conflict,
        }
    }

    fn apply(self, kept: &mut Kept) {
        match self {
            Self::View(view, observed_at) => {
                kept.disk.view = Some(*view);
                kept.observed_at = observed_at;
            }
            Self::Marker(marker) => kept.disk.marker = Some(*marker),
            Self::Note(note) => kept.disk.note = note,
            Self::Conflict(epoch) => kept.disk.conflict = Some(epoch),
        }
    }
}

impl Writer {
    /// Starts the thread; `report` is called there for every write, in order.
    pub(crate) fn start(
        folder: PathBuf,
        kept: Kept,
        report: impl FnMut(Done) + Send + 'static,
    ) -> std::io::Result<Self> {
        let (jobs, queue) = sync_channel(WAITING);
        std::thread::Builder::new().name("store".into()).spawn(move || work(&folder, kept, &queue, report))?;
        Ok(Self { jobs, next: 1 })
    }

    /// Hands a write over; its number, or none when the disk has hung for so long that no more can wait.
    pub(crate) fn begin(&mut self, write: Write) -> Option<u64> {
        let id = self.next;
        self.next += 1;
        match self.jobs.try_send((id, write)) {
            Ok(()) => Some(id),
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => None,
        }
    }
}

fn work(folder: &std::path::Path, mut kept: Kept, queue: &Receiver<(u64, Write)>, mut report: impl FnMut(Done)) {
    // Ends when the sender is gone.
    for (id, write) in queue {
        let wrote = write.wrote();
        let mut next = kept.clone();
        write.apply(&mut next);
        let saved = file::save(folder, &next);
        if let Err(error) = &saved {
            tracing::error!(error = %error, write = ?wrote, "the store cannot be written");
        }
        let ok = saved.is_ok();
        if ok {
            kept = next;
        }
        report(Done { id, wrote, ok });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::open;
    use crate::testing::Folder;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    const SOON: Duration = Duration::from_secs(10);

    fn note(start: u64) -> Write {
        Write::Note(Some(Note { tenure: 1, start: bloodraven_brain::message::StartId(start) }))
    }

    #[test]
    fn writes_are_reported_in_order_and_are_there_after_a_restart() {
        let folder = Folder::new();
        let kept = open(folder.path(), || "one".into()).kept;
        let (tell, told) = channel();
        let mut writer = Writer::start(folder.path().into(), kept, move |done| {
            let _ = tell.send(done);
        })
        .expect("thread");
        let ids = [writer.begin(note(1)), writer.begin(Write::Conflict(5)), writer.begin(note(2))];
        for (id, wrote) in ids.into_iter().zip([Wrote::Note, Wrote::Conflict, Wrote::Note]) {
            let done = told.recv_timeout(SOON).expect("a report");
            assert_eq!((Some(done.id), done.wrote, done.ok), (id, wrote, true));
        }
        let kept = open(folder.path(), || "two".into()).kept;
        assert_eq!((kept.id.as_str(), kept.disk.conflict), ("one", Some(5)));
        assert_eq!(kept.disk.note.map(|note| note.start.0), Some(2));
    }

    #[test]
    fn what_a_full_disk_refused_is_not_in_the_next_write() {
        let folder = Folder::new();
        let kept = open(folder.path(), || "one".into()).kept;
        let (tell, told) = channel();
        let mut writer = Writer::start(folder.path().into(), kept, move |done| {
            let _ = tell.send(done);
        })
        .expect("thread");
        let full = folder.path().join("sidecar.store.new");
        std::os::unix::fs::symlink("/dev/full", &full).expect("a link");
        writer.begin(note(1));
        assert!(!told.recv_timeout(SOON).expect("a report").ok);
        std::fs::remove_file(&full).expect("there");
        writer.begin(Write::Conflict(5));
        assert!(told.recv_timeout(SOON).expect("a report").ok);
        let disk = open(folder.path(), || "two".into()).kept.disk;
        assert_eq!((disk.note, disk.conflict), (None, Some(5)));
    }

    #[test]
    fn a_hanging_disk_holds_up_nobody_and_the_queue_is_bounded() {
        let folder = Folder::new();
        let kept = open(folder.path(), || "one".into()).kept;
        let (go_on, wait) = channel::<()>();
        let report = move |_| {
            let _ = wait.recv_timeout(SOON);
        };
        let mut writer = Writer::start(folder.path().into(), kept, report).expect("thread");
        let taken = (0..3 * WAITING).filter(|_| writer.begin(Write::Conflict(5)).is_some()).count();
        assert!(taken <= WAITING + 2, "{taken}");
        drop(go_on);
    }
}
