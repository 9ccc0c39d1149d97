//! When polls came: how late each was, as the polled site sees it.
//!
//! In: the moments at which polls reached their sites. Out: how far each lies behind the operator's own beat. Must not: know
//! the operator's clock: the earliest poll of a site within the window is taken to be on time.
//!
//! The operator polls each site at a fixed rate. So the polls of one site lie on a grid, each as late as it is behind it;
//! what lies between sending and being noted here is counted as lateness, too.

use crate::crowd::Place;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// A window.
#[derive(Debug, Default)]
pub struct Polls {
    window: Mutex<Option<Window>>,
    first: Mutex<Option<Instant>>,
}

#[derive(Debug)]
struct Window {
    began: Instant,
    /// For each site the moments, in microseconds since the window began.
    came: Vec<Vec<u64>>,
}

/// How late polls were.
#[derive(Clone, Debug, Default)]
pub struct Lateness {
    sorted: Vec<u64>,
    /// Beats at which no poll came at all.
    pub missed: u64,
}

impl Polls {
    pub(crate) fn note(&self, place: Place, sites: usize) {
        let now = Instant::now();
        lock(&self.first).get_or_insert(now);
        if let Some(window) = &mut *lock(&self.window) {
            let micros = u64::try_from(now.duration_since(window.began).as_micros()).unwrap_or(u64::MAX);
            if let Some(came) = window.came.get_mut(place.group * sites + place.site) {
                came.push(micros);
            }
        }
    }

    /// Forgets when the first poll came.
    pub fn forget_first(&self) {
        *lock(&self.first) = None;
    }

    /// When the first poll came since it was forgotten.
    pub fn first(&self) -> Option<Instant> {
        *lock(&self.first)
    }

    /// Notes every poll of so many sites from now on.
    pub fn open(&self, sites: usize) {
        *lock(&self.window) = Some(Window { began: Instant::now(), came: vec![Vec::new(); sites] });
    }

    /// How late the polls of these sites were in the window, which is over.
    pub fn close(&self, period: Duration, counts: impl Fn(usize) -> bool) -> Lateness {
        let Some(window) = lock(&self.window).take() else { return Lateness::default() };
        let period = u64::try_from(period.as_micros()).unwrap_or(u64::MAX).max(1);
        let mut all = Lateness::default();
        for (_, came) in window.came.iter().enumerate().filter(|(site, _)| counts(*site)) {
            all.add(came, period);
        }
        all.sorted.sort_unstable();
        all
    }
}

impl Lateness {
    fn add(&mut self, came: &[u64], period: u64) {
        let Some(first) = came.first() else { return };
        // Against the grid of the first one: it may itself be late, so others may lie before it.
        let behind = |at: &u64| {
            let (since, half) = (i128::from(at - first), i128::from(period / 2));
            since - (since + half).div_euclid(i128::from(period)) * i128::from(period)
        };
        let earliest = came.iter().map(behind).min().unwrap_or(0);
        self.sorted.extend(came.iter().map(|at| u64::try_from(behind(at) - earliest).unwrap_or(0)));
        let last = came.last().unwrap_or(first);
        let beats = (last - first + period / 2) / period + 1;
        self.missed += beats.saturating_sub(u64::try_from(came.len()).unwrap_or(0));
    }

    /// How many polls were noted.
    pub fn count(&self) -> usize {
        self.sorted.len()
    }

    /// So many of a thousand were not later.
    pub fn permille(&self, of_thousand: usize) -> Duration {
        let rank = (self.sorted.len() * of_thousand).div_ceil(1000).saturating_sub(1);
        Duration::from_micros(self.sorted.get(rank).copied().unwrap_or(0))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lateness_is_counted_from_the_earliest_beat() {
        let mut late = Lateness::default();
        // A beat of 2 s; the first poll is 30 ms late, the third 80 ms, the fifth beat is missing.
        late.add(&[1_030_000, 3_000_000, 5_080_000, 7_000_000, 11_000_000], 2_000_000);
        late.sorted.sort_unstable();
        assert_eq!(late.sorted, [0, 0, 0, 30_000, 80_000]);
        assert_eq!(late.missed, 1);
        assert_eq!(late.permille(1000), Duration::from_millis(80));
        assert_eq!(late.permille(500), Duration::ZERO);
    }
}
