//! The clocks of an operator's host, for the worlds that have no other.
//!
//! In: nothing. Out: both. Must not: be asked where a world is at hand; that has `now`.

use bloodraven_brain::time::{Boot, Now, Wall};
use rustix::time::{ClockId, Timespec, clock_gettime};

/// `CLOCK_BOOTTIME` and the calendar.
pub fn now() -> Now {
    let millis = |time: Timespec| time.tv_sec.saturating_mul(1000).saturating_add(time.tv_nsec / 1_000_000);
    Now {
        boot: Boot(u64::try_from(millis(clock_gettime(ClockId::Boottime))).unwrap_or_default()),
        wall: Wall(millis(clock_gettime(ClockId::Realtime))),
    }
}
