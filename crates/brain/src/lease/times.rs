//! The three times of an election, checked against each other.

use crate::time::Millis;
use std::error::Error;
use std::fmt;

/// The times of an election.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Times {
    lease_duration: Millis,
    renew_deadline: Millis,
    retry_period: Millis,
}

/// Why three times do not go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BadTimes {
    /// A renewal would never be tried, or tried without a pause.
    RetryPeriod {
        /// As given.
        retry_period: Millis,
        /// As given.
        renew_deadline: Millis,
    },
    /// A leader would act for longer than others wait for it.
    RenewDeadline {
        /// As given.
        renew_deadline: Millis,
        /// As given.
        lease_duration: Millis,
    },
}

impl Times {
    /// `--lease-duration`, `--renew-deadline` and `--retry-period`. The first must exceed the second by 3 % of itself,
    /// because the rates of two clocks may each be off by 1 %.
    pub fn new(lease_duration: Millis, renew_deadline: Millis, retry_period: Millis) -> Result<Self, BadTimes> {
        if retry_period == Millis(0) || retry_period >= renew_deadline {
            return Err(BadTimes::RetryPeriod { retry_period, renew_deadline });
        }
        if renew_deadline.times(103) > lease_duration.times(100) {
            return Err(BadTimes::RenewDeadline { renew_deadline, lease_duration });
        }
        Ok(Self { lease_duration, renew_deadline, retry_period })
    }

    /// How long others wait for us, and we for them.
    pub const fn lease_duration(&self) -> Millis {
        self.lease_duration
    }

    /// How long a successful renewal lets us lead, counted from when it was sent.
    pub const fn renew_deadline(&self) -> Millis {
        self.renew_deadline
    }

    /// The pause between two attempts.
    pub const fn retry_period(&self) -> Millis {
        self.retry_period
    }

    /// How long one call may take: half the renew deadline, so that a lost call leaves time for another.
    pub const fn call_deadline(&self) -> Millis {
        Millis(self.renew_deadline.0 / 2)
    }

    /// Times that do not go together, for the model to find out what comes of it.
    #[cfg(test)]
    pub(super) const fn unchecked(lease_duration: Millis, renew_deadline: Millis, retry_period: Millis) -> Self {
        Self { lease_duration, renew_deadline, retry_period }
    }
}

impl Default for Times {
    /// 15 s, 10 s, 2 s.
    fn default() -> Self {
        Self {
            lease_duration: Millis::from_secs(15),
            renew_deadline: Millis::from_secs(10),
            retry_period: Millis::from_secs(2),
        }
    }
}

impl fmt::Display for BadTimes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RetryPeriod { retry_period, renew_deadline } => write!(
                f,
                "--retry-period is {} ms, must be above 0 and below --renew-deadline ({} ms)",
                retry_period.0, renew_deadline.0
            ),
            Self::RenewDeadline { renew_deadline, lease_duration } => write!(
                f,
                "--renew-deadline is {} ms, must be below --lease-duration ({} ms) by at least 3 % of --renew-deadline",
                renew_deadline.0, lease_duration.0
            ),
        }
    }
}

impl Error for BadTimes {}

#[cfg(test)]
mod tests {
    use super::*;

    /// K-12: inverted times of the election are refused.
    #[test]
    fn retry_is_below_renew_and_renew_is_below_lease_by_the_rate_of_clocks() {
        let rows = [
            (15_000, 10_000, 2_000, ""),
            (15_000, 14_563, 2_000, ""),
            (15_000, 14_564, 2_000, "--renew-deadline"),
            (15_450, 15_000, 2_000, ""),
            (15_000, 15_000, 2_000, "--renew-deadline"),
            (10_000, 15_000, 2_000, "--renew-deadline"),
            (15_000, 2_000, 2_000, "--retry-period"),
            (15_000, 10_000, 0, "--retry-period"),
            (0, 0, 0, "--retry-period"),
        ];
        for (lease, renew, retry, blamed) in rows {
            let told = Times::new(Millis(lease), Millis(renew), Millis(retry)).err().map(|bad| bad.to_string());
            let told = told.as_deref().unwrap_or_default();
            let first = told.split(' ').next().unwrap_or_default();
            assert_eq!(first, blamed, "{lease} {renew} {retry}: {told}");
        }
        let Times { lease_duration, renew_deadline, retry_period } = Times::default();
        assert_eq!(Times::new(lease_duration, renew_deadline, retry_period), Ok(Times::default()));
    }
}
