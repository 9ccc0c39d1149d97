//! The way of a line to the outside: a bounded queue and one thread that writes.
//!
//! In: lines. Out: bytes. Must not: make whoever speaks wait: when the queue is full the line is dropped and counted, and a
//! line says so as soon as there is room. A writer that fails is written to again; nobody is told, for nobody listens.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

/// Lines that may wait: a few seconds of the worst noise, some megabytes.
pub(super) const MOST_WAITING: usize = 4096;

/// How long the end of the process waits for the last lines.
const LAST_LINES: Duration = Duration::from_secs(1);

/// How often a full queue is looked at in that time.
const TRIES: u32 = 50;

enum Parcel {
    Line(String),
    Flush(SyncSender<()>),
}

/// See above. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Pipe {
    queue: SyncSender<Parcel>,
    dropped: Arc<AtomicU64>,
}

impl std::fmt::Debug for Parcel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Parcel")
    }
}

/// Waits for the last lines when it goes, a second at most. Keep it until the end of the process.
#[derive(Debug)]
#[must_use = "lines that are still waiting are lost when the process ends without it"]
pub struct Guard {
    queue: SyncSender<Parcel>,
}

impl Pipe {
    /// A pipe into `out`, with its thread.
    pub fn into(out: impl Write + Send + 'static) -> std::io::Result<(Self, Guard)> {
        let (queue, parcels) = sync_channel(MOST_WAITING);
        let dropped = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&dropped);
        std::thread::Builder::new().name("log".to_owned()).spawn(move || run(&parcels, &counted, out))?;
        Ok((Self { queue: queue.clone(), dropped }, Guard { queue }))
    }

    /// Hands the line over, or drops and counts it.
    pub(super) fn send(&self, line: String) {
        if self.queue.try_send(Parcel::Line(line)).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let (done, seen) = sync_channel(1);
        let mut parcel = Parcel::Flush(done);
        // A full queue is being emptied; looked at again until the second is over.
        for _ in 0..TRIES {
            parcel = match self.queue.try_send(parcel) {
                Ok(()) => {
                    let _ = seen.recv_timeout(LAST_LINES);
                    return;
                }
                Err(TrySendError::Disconnected(_)) => return,
                Err(TrySendError::Full(parcel)) => parcel,
            };
            let _ = seen.recv_timeout(LAST_LINES / TRIES);
        }
    }
}

fn run(parcels: &Receiver<Parcel>, dropped: &AtomicU64, mut out: impl Write) {
    while let Ok(parcel) = parcels.recv() {
        let lost = dropped.swap(0, Ordering::Relaxed);
        if lost > 0 {
            let _ = writeln!(out, "{{\"level\":\"warn\",\"msg\":\"log lines were dropped\",\"count\":{lost}}}");
        }
        match parcel {
            Parcel::Line(line) => {
                let _ = out.write_all(line.as_bytes());
            }
            Parcel::Flush(done) => {
                let _ = out.flush();
                let _ = done.try_send(());
            }
        }
    }
}
