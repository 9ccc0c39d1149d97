//! Loops that live say so; one that is stuck is named.
//!
//! In: beats. Out: the names of loops that have not beaten for longer than they may. Must not: end or restart anything.

use crate::guard::Clock;
use bloodraven_brain::time::{Boot, Millis};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A loop may be silent for so long, at least.
const PATIENCE: Millis = Millis::from_secs(10);

/// Every loop of this process. Copies are the same.
#[derive(Clone)]
pub(crate) struct Beats {
    loops: Arc<Mutex<Loops>>,
    clock: Clock,
}

#[derive(Default)]
struct Loops {
    next: u64,
    live: BTreeMap<u64, (String, Millis, Arc<AtomicU64>)>,
}

/// One loop; it is forgotten when this is dropped.
pub(crate) struct Beat {
    id: u64,
    last: Arc<AtomicU64>,
    beats: Beats,
}

impl Beats {
    pub(crate) fn new(clock: Clock) -> Self {
        Self { loops: Arc::default(), clock }
    }

    /// A loop of that name begins; it beats at least every third of `slow`, or of ten seconds if that is longer.
    pub(crate) fn begin(&self, name: impl Into<String>, slow: Millis) -> Beat {
        let last = Arc::new(AtomicU64::new((self.clock)().boot.0));
        let patience = Millis(slow.times(3).0.max(PATIENCE.0));
        let mut loops = self.lock();
        loops.next += 1;
        let id = loops.next;
        loops.live.insert(id, (name.into(), patience, Arc::clone(&last)));
        drop(loops);
        Beat { id, last, beats: self.clone() }
    }

    /// Loops that are stuck.
    pub(crate) fn stuck(&self) -> Vec<String> {
        let now = (self.clock)().boot;
        let is_stuck = |patience: Millis, last: &AtomicU64| now.since(Boot(last.load(Ordering::Relaxed))) > patience;
        let loops = self.lock();
        let stuck = loops.live.values().filter(|(_, patience, last)| is_stuck(*patience, last));
        stuck.map(|(name, ..)| name.clone()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Loops> {
        self.loops.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Beat {
    /// Still alive.
    pub(crate) fn beat(&self) {
        self.last.store((self.beats.clock)().boot.0, Ordering::Relaxed);
    }
}

impl Drop for Beat {
    fn drop(&mut self) {
        self.beats.lock().live.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bloodraven_brain::time::{Now, Wall};

    /// K-18: and whose loops live.
    #[test]
    fn a_loop_that_does_not_beat_is_named_until_it_ends() {
        let at = Arc::new(AtomicU64::new(0));
        let clock = Arc::clone(&at);
        let beats = Beats::new(Arc::new(move || Now { boot: Boot(clock.load(Ordering::Relaxed)), wall: Wall(0) }));
        let quick = beats.begin("poll shop/orders/iad", Millis(2000));
        let slow = beats.begin("slow", Millis(10_000));
        at.store(10_000, Ordering::Relaxed);
        assert_eq!(beats.stuck(), Vec::<String>::new());
        at.store(10_001, Ordering::Relaxed);
        assert_eq!(beats.stuck(), ["poll shop/orders/iad"]);
        quick.beat();
        assert_eq!(beats.stuck(), Vec::<String>::new());
        at.store(30_001, Ordering::Relaxed);
        assert_eq!(beats.stuck(), ["poll shop/orders/iad", "slow"]);
        drop(slow);
        assert_eq!(beats.stuck(), ["poll shop/orders/iad"]);
    }
}
