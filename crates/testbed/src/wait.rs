//! Waiting: the one file of the testbed that looks at the clock and sleeps.
//!
//! In: a condition and a bound. Out: what the condition gave, or nothing when the bound passed. Must not: wait for time
//! to pass instead of for a condition, or without a bound.

use std::time::{Duration, Instant};

/// How often a condition is looked at: short against the second a server needs, long against the cost of a look.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Looks at `condition` every ten milliseconds until it gives a value or `limit` has passed; one last look is taken
/// after that, so that a limit of zero is a plain question.
pub fn until<T>(limit: Duration, condition: impl FnMut() -> Option<T>) -> Option<T> {
    until_every(limit, LOOK_EVERY, condition)
}

/// [`until`], with the time between two looks chosen by the caller.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the bounded wait for a condition that everything else is to use"
)]
pub fn until_every<T>(limit: Duration, every: Duration, mut condition: impl FnMut() -> Option<T>) -> Option<T> {
    let watch = Stopwatch::start();
    loop {
        let over = watch.elapsed() >= limit;
        if let Some(value) = condition() {
            return Some(value);
        }
        if over {
            return None;
        }
        std::thread::sleep(every.min(limit.saturating_sub(watch.elapsed())));
    }
}

/// Tells how long ago it was started.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts counting now.
    #[expect(clippy::disallowed_methods, reason = "real processes take real time; nothing here is simulated")]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// The time since the start.
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(answers: &[bool], limit: Duration, expect: Option<usize>) {
        let mut looks = 0;
        let found = until_every(limit, Duration::from_millis(1), || {
            let answer = answers.get(looks).copied().unwrap_or(false);
            looks += 1;
            answer.then_some(looks)
        });
        assert_eq!(found, expect, "answers {answers:?}, limit {limit:?}");
    }

    #[test]
    fn a_condition_that_holds_is_seen_and_one_that_never_holds_ends_at_the_limit() {
        let long = Duration::from_mins(1);
        check(&[true], Duration::ZERO, Some(1));
        check(&[false, true], Duration::ZERO, None);
        check(&[true], long, Some(1));
        check(&[false, false, true], long, Some(3));
        check(&[], Duration::from_millis(5), None);
    }
}
