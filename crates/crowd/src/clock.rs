//! The clocks. In: nothing. Out: the time, in the brain's words and the server's. Must not: be read anywhere else.

use bloodraven_brain::time::Boot;
use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// 2000-01-01, where the guard of a statement counts from.
const SINCE_2000: Duration = Duration::from_hours(262_968);

/// Since the machine started, asleep or not.
pub(crate) fn boot() -> Boot {
    let boot = clock_gettime(ClockId::Boottime);
    let millis = boot.tv_sec.saturating_mul(1000).saturating_add(boot.tv_nsec / 1_000_000);
    Boot(u64::try_from(millis).unwrap_or_default())
}

/// As a server's guard reads it: microseconds of UTC since 2000.
#[expect(clippy::disallowed_methods, reason = "this is the clock of the played servers")]
pub(crate) fn micros_since_2000() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.saturating_sub(SINCE_2000).as_micros()).unwrap_or(i64::MAX)
}

/// Lets time pass: the beat of a played site, or a window over which something is measured.
#[expect(clippy::disallowed_methods, reason = "what is measured is what happens in a stretch of time")]
pub async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
}
