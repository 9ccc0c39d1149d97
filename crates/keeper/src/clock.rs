//! The clocks. In: nothing. Out: the time. Must not: be asked for anything but permits (boot time) and log lines (wall
//! time).

use rustix::time::{ClockId, Timespec, clock_gettime};

/// Milliseconds since the machine started, pauses included.
pub(crate) fn boot() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    seconds(time).saturating_mul(1000).saturating_add(nanoseconds(time) / 1_000_000)
}

/// Nanoseconds since 1970.
pub(crate) fn wall() -> u64 {
    let time = clock_gettime(ClockId::Realtime);
    seconds(time).saturating_mul(1_000_000_000).saturating_add(nanoseconds(time))
}

/// A span of time, for a wait.
pub(crate) fn milliseconds(count: u64) -> Timespec {
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    Timespec { tv_sec: count / 1000, tv_nsec: count % 1000 * 1_000_000 }
}

fn seconds(time: Timespec) -> u64 {
    u64::try_from(time.tv_sec).unwrap_or_default()
}

fn nanoseconds(time: Timespec) -> u64 {
    u64::try_from(time.tv_nsec).unwrap_or_default()
}
