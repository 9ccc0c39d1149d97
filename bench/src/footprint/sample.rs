//! Readings and what lies between them. In: a running playground. Out: what each of its processes uses now, and what it used
//! in a window. Must not: take a window for whole in which somebody was started anew, or that ended early.

use super::who::{self, Process};
use crate::play::Played;
use anyhow::{Context as _, Result, ensure};
use bloodraven_bench::process::{self, Usage};
use std::fs;
use std::time::Duration;

/// Steps are told ten times a second: a reading may be late by that much, and a busy machine adds to it.
const SLACK: Duration = Duration::from_secs(1);

/// A moment.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    /// Since the machine was started.
    pub(crate) at: Duration,
    /// Writes that were acknowledged until then.
    pub(crate) acknowledged: u64,
    /// Load average.
    pub(crate) load: String,
    pub(crate) uses: Vec<(Process, Usage)>,
}

impl Sample {
    pub(crate) fn take(played: &Played) -> Result<Self> {
        let text = fs::read_to_string(&played.notice);
        let text = text.with_context(|| format!("cannot read {}", played.notice.display()))?;
        let notice = serde_json::from_str(&text).context("playground.json is not JSON")?;
        let found = who::find(&notice, played.pid, process::parent)?;
        let at = process::uptime().context("cannot read /proc/uptime")?;
        let uses: Vec<(Process, Usage)> = found.into_iter().map(|it| (it.clone(), process::usage(it.pid))).collect();
        for (process, usage) in &uses {
            ensure!(usage.memory > 0, "{process} has ended: process {} has no memory", process.pid);
        }
        Ok(Self { at, acknowledged: played.acknowledged, load: process::load(), uses })
    }

    /// What was used since an earlier one, in millionths of a core, in the order of the table.
    pub(crate) fn since(&self, before: &Self, least: Duration) -> Result<Vec<u64>> {
        let took = self.at.saturating_sub(before.at);
        let whole = took + SLACK >= least && !took.is_zero();
        ensure!(whole, "a window ended after {:.1} s of {} s", took.as_secs_f64(), least.as_secs());
        ensure!(self.uses.len() == before.uses.len(), "the group has not as many processes as before the window");
        let pairs = self.uses.iter().zip(&before.uses);
        let share = |((process, now), (earlier, then)): (&(Process, Usage), &(Process, Usage))| {
            ensure!(
                process == earlier,
                "{earlier} was process {} before a window, and it is {process}, process {} after it",
                earlier.pid,
                process.pid
            );
            Ok(millionths(now.cpu.saturating_sub(then.cpu), took))
        };
        pairs.map(share).collect()
    }
}

/// Of a core.
fn millionths(cpu: Duration, took: Duration) -> u64 {
    u64::try_from(cpu.as_micros() * 1_000_000 / took.as_micros().max(1)).unwrap_or(u64::MAX)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::who::Kind;
    use super::*;

    /// So many seconds after the start: each process with its processor time in milliseconds and its memory in megabytes.
    pub(crate) fn sample(at: u64, uses: &[(Kind, &str, u64, u64)]) -> Sample {
        let one = |(pid, (kind, site, cpu, memory)): (u32, &(Kind, &str, u64, u64))| {
            let process = Process { kind: *kind, site: (*site).to_owned(), primary: *site == "iad", pid };
            let (cpu, memory) = (Duration::from_millis(*cpu), memory * 1_000_000);
            (process, Usage { cpu, memory, anonymous: memory / 2, threads: 3, files: 20 })
        };
        let uses = (100..).zip(uses).map(one).collect();
        Sample { at: Duration::from_secs(at), acknowledged: 40, load: "0.5".to_owned(), uses }
    }

    const MINUTE: Duration = Duration::from_mins(1);

    #[test]
    fn a_share_is_of_the_time_that_really_passed() {
        let before = sample(100, &[(Kind::Sidecar, "iad", 1_000, 12), (Kind::Operator, "", 9_000, 20)]);
        let after = sample(180, &[(Kind::Sidecar, "iad", 1_400, 12), (Kind::Operator, "", 9_000, 20)]);
        assert_eq!(after.since(&before, MINUTE).unwrap(), [5_000, 0]);
        assert_eq!(millionths(Duration::from_secs(2), Duration::from_secs(1)), 2_000_000);
    }

    #[test]
    fn a_window_with_a_new_process_or_an_early_end_is_none() {
        let before = sample(100, &[(Kind::Sidecar, "iad", 1_000, 12)]);
        let refused = |after: &Sample| after.since(&before, MINUTE).unwrap_err().to_string();
        let mut after = sample(112, &[(Kind::Sidecar, "iad", 1_400, 12)]);
        assert_eq!(refused(&after), "a window ended after 12.0 s of 60 s");
        after.at = Duration::from_secs(160);
        after.uses[0].0.pid = 7;
        let text = "sidecar of iad (primary) was process 100 before a window, and it is sidecar of iad (primary), process 7 after it";
        assert_eq!(refused(&after), text);
        after.uses.clear();
        assert!(refused(&after).contains("not as many processes"));
    }
}
