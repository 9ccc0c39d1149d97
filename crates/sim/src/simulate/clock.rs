//! Every host's own clocks: a boot clock with an offset and a rate of its own, a calendar that may be wrong and may jump.
//!
//! In: true time, in microseconds since the run began. Out: what that host reads. Must not: let a boot clock jump.

use bloodraven_brain::time::{Boot, Now, Wall};

/// True time, in microseconds since the run began. Nobody in the run can read it.
pub type Time = u64;

/// One millisecond.
pub const MS: Time = 1000;
/// One second.
pub const SEC: Time = 1_000_000;

/// The calendar at the beginning of every run.
const EPOCH: i64 = 1_780_000_000_000;

/// The clocks of one host.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Clock {
    /// Milliseconds since that host's boot when the run began.
    pub(super) offset: u64,
    /// How much faster its boot clock runs, in millionths.
    pub(super) drift: i64,
    /// How far its calendar is off, in milliseconds.
    pub(super) skew: i64,
}

impl Clock {
    /// What the boot clock reads.
    pub(super) fn boot(&self, at: Time) -> Boot {
        Boot(self.offset + self.scaled(at) / 1000)
    }

    /// Both clocks.
    pub(super) fn now(&self, at: Time) -> Now {
        let since = i64::try_from(at / 1000).unwrap_or(i64::MAX);
        Now { boot: self.boot(at), wall: Wall(EPOCH + self.skew + since) }
    }

    /// The first true moment at which the boot clock reads that, or now if it does already.
    pub(super) fn when(&self, boot: Boot, now: Time) -> Time {
        let wanted = boot.0.saturating_sub(self.offset).saturating_mul(1000);
        let rate = u128::try_from(1_000_000 + self.drift).unwrap_or(1_000_000);
        let guess = u128::from(wanted) * 1_000_000 / rate;
        let mut at = u64::try_from(guess).unwrap_or(Time::MAX);
        // Rounding is off by a few at most.
        for _ in 0..4 {
            if self.boot(at) >= boot {
                break;
            }
            at += 1;
        }
        at.max(now)
    }

    fn scaled(&self, at: Time) -> u64 {
        let at = i128::from(at);
        u64::try_from(at + at * i128::from(self.drift) / 1_000_000).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn when_is_the_first_moment_at_which_the_clock_reads_so() {
        for drift in [-4900, -1, 0, 3, 4900] {
            let clock = Clock { offset: 777, drift, skew: 0 };
            for boot in [778, 1000, 5001, 123_456, 9_999_999] {
                let at = clock.when(Boot(boot), 0);
                assert!(clock.boot(at) >= Boot(boot), "{drift} {boot}");
                assert!(clock.boot(at - 3) < Boot(boot), "{drift} {boot}");
            }
        }
    }

    #[test]
    fn a_moment_that_has_passed_is_now() {
        assert_eq!(Clock::default().when(Boot(5), 90 * SEC), 90 * SEC);
    }
}
