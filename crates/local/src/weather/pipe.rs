//! One direction of a connection: bytes in order, as late and as slowly as the weather wants.
//!
//! In: two halves and the weather. Out: every byte, in order, and the end of the stream after the last of them. Must not:
//! lose a byte that it has read, or read more than it may hold.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::Sky;

/// How much is read at once.
const CHUNK: usize = 16 << 10;

/// How much may be under way: 2 s of 4 MB/s, the most that a delayed link of the playground has to bear.
const UNDER_WAY: usize = 8 << 20;

/// When a link may take the next bytes of a direction, shared by its connections.
#[derive(Debug, Default)]
pub(super) struct Lane(Mutex<Option<Instant>>);

/// Bytes under way.
struct Chunk {
    sent: Instant,
    bytes: Vec<u8>,
    written: usize,
}

/// Carries one direction to its end.
pub(super) async fn carry(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    early: Vec<u8>,
    lane: &Lane,
    weather: &mut watch::Receiver<u64>,
    sky: impl Fn() -> Sky,
    carried: &AtomicU64,
) -> io::Result<()> {
    let mut under_way = VecDeque::new();
    if !early.is_empty() {
        under_way.push_back(Chunk { sent: Instant::now(), bytes: early, written: 0 });
    }
    let (mut held, mut ended) = (0, false);
    let mut buffer = vec![0; CHUNK];
    weather.mark_unchanged();
    let mut now_sky = sky();
    loop {
        if ended && under_way.is_empty() {
            return to.shutdown().await;
        }
        let due = under_way.front().map(|chunk: &Chunk| {
            lane.next().map_or(chunk.sent + now_sky.delay, |next| next.max(chunk.sent + now_sky.delay))
        });
        let writable = due.is_some_and(|due| due <= Instant::now());
        let most = now_sky.slow.map_or(CHUNK, |rate| usize::try_from(rate / 10).unwrap_or(CHUNK).clamp(1, CHUNK));
        tokio::select! {
            changed = weather.changed() => {
                changed.map_err(|_| io::ErrorKind::BrokenPipe)?;
                now_sky = sky();
            }
            read = from.read(&mut buffer), if !now_sky.cut && !ended && held < UNDER_WAY => {
                let read = read?;
                ended = read == 0;
                held += read;
                if let Some(bytes) = buffer.get(..read).filter(|bytes| !bytes.is_empty()) {
                    under_way.push_back(Chunk { sent: Instant::now(), bytes: bytes.to_vec(), written: 0 });
                }
            }
            written = write_some(to, under_way.front(), most), if !now_sky.cut && writable => {
                let written = written?;
                carried.fetch_add(u64::try_from(written).unwrap_or_default(), Ordering::Relaxed);
                lane.took(written, now_sky.slow);
                held -= written.min(held);
                if let Some(chunk) = under_way.front_mut() {
                    chunk.written += written;
                    if chunk.written >= chunk.bytes.len() {
                        under_way.pop_front();
                    }
                }
            }
            () = sleep_until(due.unwrap_or_else(Instant::now)), if !now_sky.cut && due.is_some() && !writable => {}
        }
    }
}

/// Writes what the other side takes now.
async fn write_some(to: &mut (impl AsyncWrite + Unpin), chunk: Option<&Chunk>, most: usize) -> io::Result<usize> {
    let rest = chunk.and_then(|chunk| chunk.bytes.get(chunk.written..)).unwrap_or_default();
    let written = to.write(&rest[..rest.len().min(most)]).await?;
    if written == 0 { Err(io::ErrorKind::WriteZero.into()) } else { Ok(written) }
}

impl Lane {
    fn next(&self) -> Option<Instant> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn took(&self, bytes: usize, rate: Option<u64>) {
        let mut next = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *next = rate.map(|rate| {
            let now = Instant::now();
            let takes = u64::try_from(bytes).unwrap_or(u64::MAX).saturating_mul(1_000_000) / rate.max(1);
            next.map_or(now, |next| next.max(now)) + Duration::from_micros(takes)
        });
    }
}
