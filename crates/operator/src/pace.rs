//! How often something is done that is done for each group alone and costs the API server something.
//!
//! In: how often it would be done, how many groups there are. Out: how often it is. Must not: slow a hundred groups down.

use std::time::Duration;

/// With more groups than this each has its turn less often, so that one operator never asks more of the API server than it
/// does for so many.
const AT_FULL_PACE: usize = 100;

/// The time between two turns of one of so many groups.
pub fn among(groups: usize, each: Duration) -> Duration {
    let times = u32::try_from(groups.div_ceil(AT_FULL_PACE)).unwrap_or(u32::MAX);
    each.saturating_mul(times.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_groups_together_ask_no_more_than_a_hundred_do() {
        let seconds = |groups| among(groups, Duration::from_secs(10)).as_secs();
        assert_eq!([0, 1, 100, 101, 1000].map(seconds), [10, 10, 10, 20, 100]);
        assert_eq!(among(usize::MAX, Duration::MAX), Duration::MAX);
    }
}
