//! A digest of a state that is quick without optimisation.

use std::hash::{Hash, Hasher};

/// 128 bits: a collision among a million states is less likely than a broken computer.
pub(super) fn digest(of: &impl Hash) -> u128 {
    let mut hasher = Wide(0);
    of.hash(&mut hasher);
    hasher.0
}

/// Multiply and fold, as FNV does; quicker than the standard one without optimisation.
struct Wide(u128);

impl Hasher for Wide {
    fn finish(&self) -> u64 {
        u64::try_from(self.0 >> 64).unwrap_or_default()
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, word: u64) {
        const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
        self.0 = (self.0.rotate_left(29) ^ u128::from(word)).wrapping_mul(PRIME).wrapping_add(PRIME);
    }

    fn write_u8(&mut self, byte: u8) {
        self.write_u64(u64::from(byte));
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    fn write_isize(&mut self, word: isize) {
        self.write_u64(word.cast_unsigned() as u64);
    }
}
