//! Questions that were answered already: one that comes again is somebody's recording.
//!
//! In: nonces of questions with a right signature. Out: whether one is new. Must not: grow. The asker takes an answer for
//! an outstanding question only, so one that is so old that it is forgotten here is harmless; but an answer that renews
//! nothing would still look like a grant to the leader, and hold up a proof.

use bloodraven_brain::time::{Boot, Millis};
use bloodraven_wire::Nonce;
use std::collections::BTreeSet;

/// As many are remembered in each half. A sidecar asks a few times in five seconds.
const REMEMBERED: usize = 4096;

/// A half is forgotten after twice this at the earliest, unless it is full.
const HALF: Millis = Millis::from_secs(60);

/// The last questions, in two halves: the younger one takes, the older one is forgotten at once.
#[derive(Debug, Default)]
pub(crate) struct Replay {
    young: BTreeSet<Nonce>,
    old: BTreeSet<Nonce>,
    turned: Boot,
}

impl Replay {
    /// Whether that nonce was never seen; it is from now on.
    pub(crate) fn is_new(&mut self, nonce: Nonce, now: Boot) -> bool {
        if self.young.len() >= REMEMBERED || now.since(self.turned) >= HALF {
            self.old = std::mem::take(&mut self.young);
            self.turned = now;
        }
        !self.old.contains(&nonce) && self.young.insert(nonce)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nonce(number: u32) -> Nonce {
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&number.to_be_bytes());
        Nonce::new(bytes)
    }

    /// K-23: what is remembered of questions is bounded.
    #[test]
    fn a_question_is_new_once_and_memory_stays_bounded() {
        let mut replay = Replay::default();
        assert!(replay.is_new(nonce(1), Boot(1)));
        assert!(!replay.is_new(nonce(1), Boot(2)));
        // Remembered for at least a minute.
        assert!(!replay.is_new(nonce(1), Boot(60_001)));
        for number in 2..20_000 {
            assert!(replay.is_new(nonce(number), Boot(61_000)), "{number}");
        }
        assert!(replay.young.len() <= REMEMBERED && replay.old.len() <= REMEMBERED);
        assert!(!replay.is_new(nonce(19_999), Boot(61_001)));
    }
}
