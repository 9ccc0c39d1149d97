//! How full a data volume is, and when that is worth a word.
//!
//! In: what its file system says. Out: whether people should know. Must not: move anything; a full volume is an alert.

/// A volume as its file system sees it, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// What those who are not root can still write.
    pub free: u64,
    /// All of it.
    pub total: u64,
}

impl Space {
    /// Less than a hundredth is free: a server that cannot write its logs takes no commits.
    pub fn is_nearly_full(self) -> bool {
        u128::from(self.free) * 100 < u128::from(self.total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_of_which_less_than_a_hundredth_is_free_is_nearly_full() {
        let rows = [
            (0, 1, true),
            (9, 1000, true),
            (10, 1000, false),
            (10, 1001, true),
            (1000, 1000, false),
            (u64::MAX / 101, u64::MAX, true),
            (u64::MAX / 99, u64::MAX, false),
            // Says nothing of itself.
            (0, 0, false),
        ];
        for (free, total, expect) in rows {
            assert_eq!(Space { free, total }.is_nearly_full(), expect, "{free} of {total}");
        }
    }
}
