//! Nonces that were used: a signed question that is played again is none.
//!
//! In: the nonces of what was asked and signed. Out: whether one is new. Must not: grow: only holders of the key get here,
//! and of more than fit the oldest is forgotten.

use bloodraven_wire::Nonce;
use std::collections::{BTreeSet, VecDeque};

/// Sixteen sites that ask twice a second fill it in two minutes, six leases by default.
const MOST: usize = 4096;

/// See above.
#[derive(Debug, Default)]
pub(super) struct Seen {
    known: BTreeSet<Nonce>,
    order: VecDeque<Nonce>,
}

impl Seen {
    /// Remembers a nonce; false: it was used before.
    pub(super) fn first(&mut self, nonce: Nonce) -> bool {
        if !self.known.insert(nonce) {
            return false;
        }
        self.order.push_back(nonce);
        if self.order.len() > MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nonce(number: usize) -> Nonce {
        Nonce::new((number as u128).to_be_bytes())
    }

    /// K-23: what is remembered of nonces is bounded.
    #[test]
    fn a_nonce_is_good_once_and_memory_is_bounded() {
        let mut seen = Seen::default();
        for number in 0..3 * MOST {
            assert!(seen.first(nonce(number)));
            assert!(!seen.first(nonce(number)));
        }
        assert_eq!((seen.known.len(), seen.order.len()), (MOST, MOST));
        assert!(!seen.first(nonce(3 * MOST - MOST)), "the newest are remembered");
    }
}
