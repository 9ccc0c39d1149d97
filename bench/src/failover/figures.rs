//! Figures of one row. In: verdicts of the ledger. Out: median, p95, max, and broken promises. Must not: count a trial whose
//! silence did not end.

use super::rows::Row;
use bloodraven_bench::process::load;
use serde_json::Value;

/// What a row came to.
#[derive(Default)]
pub(crate) struct Figures {
    /// One silence a trial, in microseconds.
    pub(crate) gaps: Vec<u64>,
    /// The longest silence before anything was done, in microseconds.
    pub(crate) quiet: u64,
    pub(crate) wrong_side: u64,
    pub(crate) lost: u64,
    pub(crate) received_and_lost: u64,
    pub(crate) acknowledged: u64,
    /// What did not come true.
    pub(crate) failed: Vec<String>,
    /// Load average when it began and when it ended.
    pub(crate) load: [String; 2],
    pub(crate) version: Option<String>,
}

impl Figures {
    pub(crate) fn begin() -> Self {
        Self { load: [load(), String::new()], ..Self::default() }
    }

    pub(crate) fn end(&mut self) {
        self.load[1] = load();
    }

    /// Adds what a run came to; none: it ended without a verdict.
    pub(crate) fn take(&mut self, row: &Row, verdict: Option<&Value>) {
        let Some(verdict) = verdict else {
            self.failed.push("the playground ended without a verdict".to_owned());
            return;
        };
        if let Some(failed) = verdict["failed"].as_str() {
            self.failed.push(failed.to_owned());
        }
        let ledger = &verdict["ledger"];
        let count = |key: &str| ledger[key].as_u64().unwrap_or(0);
        self.acknowledged += count("acknowledged");
        self.wrong_side += count("wrongSide");
        self.lost += count("lost") + count("unreported") + count("stranded");
        self.received_and_lost += count("receivedAndLost");
        for gap in ledger["gaps"].as_array().into_iter().flatten() {
            let (after, longest) = (gap["after"].as_str().unwrap_or_default(), gap["longestUs"].as_u64().unwrap_or(0));
            if after == "start" {
                self.quiet = self.quiet.max(longest);
            } else if after.starts_with(row.deed) && gap["over"] == true {
                self.gaps.push(longest);
            }
        }
    }

    /// Whether every trial was measured and nothing went wrong on the way.
    pub(crate) fn is_whole(&self, trials: usize) -> bool {
        self.gaps.len() >= trials && self.failed.is_empty()
    }

    /// Writes that the product had promised and did not keep, or should never have taken.
    pub(crate) fn broken(&self) -> u64 {
        self.wrong_side + self.lost + self.received_and_lost
    }

    /// The silence that so many of a hundred trials did not exceed; none: nothing was measured.
    pub(crate) fn percentile(&self, percent: usize) -> Option<u64> {
        let mut sorted = self.gaps.clone();
        sorted.sort_unstable();
        let rank = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
        sorted.get(rank).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failover::rows::ROWS;
    use serde_json::json;

    #[test]
    fn figures_are_those_of_the_deed_and_of_nothing_else() {
        let row = ROWS.iter().find(|row| row.name == "kill").unwrap();
        let gap = |after: &str, us: u64, over: bool| json!({"after": after, "longestUs": us, "over": over});
        let gaps = [
            gap("start", 30, true),
            gap("hold mysqld iad", 6_000, true),
            gap("release mysqld iad", 90_000, true),
            gap("hold mysqld pdx", 5_000, true),
            gap("hold mysqld iad", 7_000, false),
        ];
        let verdict =
            json!({"failed": "line 9: no", "ledger": {"wrongSide": 1, "lost": 2, "unreported": 3, "gaps": gaps}});
        let mut figures = Figures::begin();
        figures.take(row, Some(&verdict));
        assert_eq!((figures.gaps.as_slice(), figures.quiet), ([6_000, 5_000].as_slice(), 30));
        assert_eq!((figures.broken(), figures.is_whole(2)), (6, false));
        figures.take(row, None);
        assert_eq!(figures.failed.len(), 2);
    }

    #[test]
    fn a_percentile_is_a_trial_that_was_seen() {
        let figures = Figures { gaps: (1..=20).rev().collect(), ..Figures::default() };
        let found = [50, 95, 100].map(|percent| figures.percentile(percent));
        assert_eq!(found, [Some(10), Some(19), Some(20)]);
        assert_eq!(Figures::default().percentile(50), None);
        assert_eq!(Figures { gaps: vec![7], ..Figures::default() }.percentile(95), Some(7));
    }
}
