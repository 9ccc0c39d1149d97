//! Times, lengths and counts: the brain's numbers as the API has them, and back.
//!
//! In: one or the other. Out: the same value. Must not: lose a millisecond. Beyond what the API can hold (years 0 to
//! 9999, lengths of 292 years, counts of 63 bits) the nearest value that it can hold stands in: nothing real is there,
//! and a wild number in one field must not keep the whole status from being stored.

use bloodraven_api::GoDuration;
use bloodraven_brain::time::{Millis, Wall};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;

/// The beginning of the year 0, the first that RFC 3339 knows, in milliseconds.
const FIRST: i64 = -62_167_219_200_000;
/// The last millisecond of 9999-12-30T21:59:59Z: no time zone puts it beyond the year 9999.
const LAST: i64 = 253_402_207_199_999;
const NANOS_PER_MILLI: i64 = 1_000_000;

pub(crate) fn timestamp(at: Wall) -> Timestamp {
    let within = at.0.clamp(FIRST, LAST);
    Timestamp::from_millisecond(within).unwrap_or(Timestamp::UNIX_EPOCH)
}

pub(crate) fn time(at: Wall) -> MicroTime {
    MicroTime(timestamp(at))
}

pub(crate) fn wall(time: &MicroTime) -> Wall {
    Wall(time.0.as_millisecond())
}

pub(crate) fn duration(length: Millis) -> GoDuration {
    let nanos = i64::try_from(length.0).unwrap_or(i64::MAX).saturating_mul(NANOS_PER_MILLI);
    // Whole milliseconds only, also at the end of the numbers.
    GoDuration::from_nanos(nanos - nanos % NANOS_PER_MILLI).unwrap_or_default()
}

/// Parts of a millisecond are dropped.
pub(crate) fn millis(duration: GoDuration) -> Millis {
    Millis((duration.as_nanos() / NANOS_PER_MILLI).unsigned_abs())
}

pub(crate) fn count(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_survive() {
        for at in [0, 1, -1, 1_776_695_520_123, FIRST, LAST] {
            assert_eq!(wall(&time(Wall(at))), Wall(at));
        }
        for length in [0, 1, 20_000, 9_223_372_036_854] {
            assert_eq!(millis(duration(Millis(length))), Millis(length));
        }
    }

    #[test]
    fn beyond_the_ends_stands_the_end() {
        assert_eq!(wall(&time(Wall(i64::MIN))), Wall(FIRST));
        assert_eq!(timestamp(Wall(FIRST)).to_string(), "0000-01-01T00:00:00Z");
        assert_eq!(wall(&time(Wall(i64::MAX))), Wall(LAST));
        assert_eq!(millis(duration(Millis(u64::MAX))), Millis(9_223_372_036_854));
        assert_eq!(count(u64::MAX), i64::MAX);
        assert_eq!(count(7_u64), 7);
    }
}
