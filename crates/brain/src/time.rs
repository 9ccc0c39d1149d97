//! Time as the brain sees it: two clocks that are handed in, never read.
//!
//! [`Boot`] counts milliseconds since a host's boot, suspended time included (`CLOCK_BOOTTIME`); leases, deadlines and
//! ages are measured on it, and it means nothing on another host. [`Wall`] is calendar time; it is written into status
//! for people and for the cooldown, and orders nothing.

use std::fmt;
use std::ops::{Add, Sub};

/// A length of time in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Millis(pub u64);

/// A moment on one host's `CLOCK_BOOTTIME`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Boot(pub u64);

/// A moment on the calendar, in milliseconds since 1970-01-01 UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Wall(pub i64);

/// The present moment on both clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Now {
    /// For measuring.
    pub boot: Boot,
    /// For writing down.
    pub wall: Wall,
}

impl Millis {
    /// So many seconds.
    pub const fn from_secs(seconds: u64) -> Self {
        Self(seconds.saturating_mul(1000))
    }

    /// This length, `factor` times.
    #[must_use]
    pub const fn times(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

impl Add for Millis {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Add<Millis> for Boot {
    type Output = Self;

    fn add(self, length: Millis) -> Self {
        Self(self.0.saturating_add(length.0))
    }
}

impl Sub<Millis> for Boot {
    type Output = Self;

    fn sub(self, length: Millis) -> Self {
        Self(self.0.saturating_sub(length.0))
    }
}

impl Boot {
    /// How long ago `earlier` was; zero if it lies ahead.
    pub const fn since(self, earlier: Self) -> Millis {
        Millis(self.0.saturating_sub(earlier.0))
    }
}

impl Wall {
    /// This moment, that much later.
    #[must_use]
    pub fn after(self, length: Millis) -> Self {
        Self(self.0.saturating_add(i64::try_from(length.0).unwrap_or(i64::MAX)))
    }
}

/// RFC 3339 in UTC, to the second: `2026-11-15T03:04:05Z`.
impl fmt::Display for Wall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.div_euclid(1000);
        let (day, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
        // Days since 0000-03-01, in eras of 400 years: leap days fall on the ends of years counted from March.
        let days = day + 719_468;
        let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
        let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted_month = (5 * of_year + 2) / 153;
        let day_of_month = of_year - (153 * shifted_month + 2) / 5 + 1;
        let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        write!(f, "{year:04}-{month:02}-{day_of_month:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

#[cfg(test)]
mod tests {
    use super::Wall;

    #[test]
    fn wall_prints_rfc_3339() {
        let rows = [
            (0, "1970-01-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
            (951_782_400_000, "2000-02-29T00:00:00Z"),
            (951_868_799_999, "2000-02-29T23:59:59Z"),
            (951_868_800_000, "2000-03-01T00:00:00Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00Z"),
            (1_794_712_345_678, "2026-11-15T03:12:25Z"),
        ];
        for (millis, expected) in rows {
            assert_eq!(Wall(millis).to_string(), expected, "{millis}");
        }
    }
}
