//! Until when a call may take.
//!
//! In: a duration or an instant. Out: an instant that is handed down from call to call, so that connecting, asking and
//! reading share one bound. Must not: be prolonged.

use std::time::Duration;
use tokio::time::Instant;

/// An instant after which nobody waits any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline(Instant);

impl Deadline {
    /// So long from now.
    pub fn within(limit: Duration) -> Self {
        let now = Instant::now();
        // A limit beyond what the clock can hold is a day.
        Self(now.checked_add(limit).unwrap_or(now + Duration::from_hours(24)))
    }

    /// At that instant.
    pub const fn at(instant: Instant) -> Self {
        Self(instant)
    }

    /// The instant.
    pub const fn instant(self) -> Instant {
        self.0
    }

    /// What is left of it; zero when it has passed.
    pub fn left(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    /// Whether it has passed.
    pub fn is_over(self) -> bool {
        self.left().is_zero()
    }

    /// The earlier of this one and `limit` from now.
    #[must_use]
    pub fn but_within(self, limit: Duration) -> Self {
        self.min(Self::within(limit))
    }

    /// So much before this one.
    #[must_use]
    pub fn sooner(self, by: Duration) -> Self {
        Self(self.0.checked_sub(by).unwrap_or(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_deadline_is_only_ever_shortened() {
        let deadline = Deadline::within(Duration::from_secs(2));
        assert_eq!(deadline.left(), Duration::from_secs(2));
        assert_eq!(deadline.but_within(Duration::from_secs(5)), deadline);
        assert_eq!(deadline.but_within(Duration::from_secs(1)).left(), Duration::from_secs(1));
        assert_eq!(deadline.sooner(Duration::from_millis(500)).left(), Duration::from_millis(1500));
        tokio::time::advance(Duration::from_secs(3)).await;
        assert!(deadline.is_over() && deadline.left().is_zero());
        assert!(Deadline::within(Duration::MAX).left() >= Duration::from_hours(23));
    }
}
