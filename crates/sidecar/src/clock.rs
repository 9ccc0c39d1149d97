//! The clocks of this host: the one file of the sidecar that reads them.
//!
//! In: nothing. Out: [`Boot`] for measuring, [`Wall`] for people. Must not: be asked twice for one decision; a step takes
//! one moment and goes by it.

use bloodraven_brain::time::{Boot, Wall};
use rustix::time::{ClockId, clock_gettime};

/// Milliseconds since this host's boot, suspended time included.
pub(crate) fn boot() -> Boot {
    let now = clock_gettime(ClockId::Boottime);
    let (seconds, nanoseconds) = (u64::try_from(now.tv_sec).unwrap_or(0), u64::try_from(now.tv_nsec).unwrap_or(0));
    Boot(seconds.saturating_mul(1000).saturating_add(nanoseconds / 1_000_000))
}

/// Calendar time.
pub(crate) fn wall() -> Wall {
    let now = clock_gettime(ClockId::Realtime);
    Wall(now.tv_sec.saturating_mul(1000).saturating_add(now.tv_nsec / 1_000_000))
}
