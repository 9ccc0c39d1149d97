//! The rows: what is done to a group, as scripts of the playground, and what is aimed at.
//!
//! In: how many trials. Out: a script. Must not: expect a time; the ledger measures, the table shows the aim beside it.

use std::fmt::Write as _;

/// The two candidates; authority goes from one to the other with every trial that moves it. The third site votes and follows.
const CANDIDATES: [&str; 2] = ["iad", "pdx"];

/// One row of the table.
pub(crate) struct Row {
    /// For `--only`.
    pub(crate) name: &'static str,
    /// What is done, for people.
    pub(crate) fault: &'static str,
    /// What is aimed at.
    pub(crate) aim: &'static str,
    /// Lines that say what the group is like.
    setup: &'static str,
    /// Writes a second for each writer.
    pub(crate) rate: u32,
    /// Trials when nobody says otherwise, and at most: each takes its time.
    pub(crate) trials: usize,
    /// See above.
    pub(crate) most: usize,
    /// One trial: `P` is the primary, `O` the other candidate.
    trial: &'static str,
    /// What puts the group back to where it was.
    left: &'static str,
    /// The deed whose silence is measured.
    pub(crate) deed: &'static str,
    /// Whether a trial moves authority.
    moves: bool,
}

const USUAL: u32 = 75;

/// A lost primary may hold what nobody had received: that is looked at and reported, then its data are thrown away and copied
/// anew, so that the next trial finds two candidates.
const LEFT: &str = "wait attached within 150s\nexpect ledger clean\nlose-volume P\nrest 2s\nwait settled within 150s";

/// Nobody has anything that the primary lacks.
const NOTHING_LEFT: &str = "wait settled within 150s";

/// All of them, in the order of the table.
pub(crate) const ROWS: [Row; 9] = [
    Row {
        name: "kill",
        fault: "primary SIGKILL, defaults (d = 6 s)",
        aim: "≤ 6.5 s",
        setup: "cooldown 1s",
        rate: USUAL,
        trials: 8,
        most: 30,
        trial: "hold mysqld at P\nexpect primary O within 60s\nrest 1s\nrelease mysqld at P",
        left: LEFT,
        deed: "hold mysqld",
        moves: true,
    },
    Row {
        name: "kill-fast",
        fault: "primary SIGKILL, fast profile (polls 250 ms, 3 of them)",
        aim: "≤ 1.2 s p95",
        setup: "profile fast\ncooldown 1s",
        rate: USUAL,
        trials: 12,
        most: 60,
        trial: "hold mysqld at P\nexpect primary O within 60s\nrest 1s\nrelease mysqld at P",
        left: LEFT,
        deed: "hold mysqld",
        moves: true,
    },
    Row {
        name: "stop-fast",
        fault: "primary SIGSTOP for 30 s, then resumed, fast profile",
        aim: "≤ 4 s",
        setup: "profile fast\ncooldown 1s",
        rate: USUAL,
        trials: 4,
        most: 10,
        trial: "pause mysqld at P\nexpect primary O within 28s\nrest 28s\nheal",
        left: LEFT,
        deed: "pause mysqld",
        moves: true,
    },
    Row {
        name: "isolated",
        fault: "site isolated from operator and peers, defaults",
        aim: "≤ 23.7 s",
        setup: "cooldown 1s",
        rate: USUAL,
        trials: 4,
        most: 10,
        trial: "isolate P\nexpect primary O within 90s\nrest 1s\nheal",
        left: LEFT,
        deed: "isolate",
        moves: true,
    },
    Row {
        name: "operator-cut",
        fault: "operator cut from the primary, peers connected, defaults",
        aim: "≤ 7 s",
        setup: "cooldown 1s",
        rate: USUAL,
        trials: 4,
        most: 10,
        trial: "cut operator P\nexpect primary O within 60s\nrest 1s\nheal",
        left: LEFT,
        deed: "cut operator-0",
        moves: true,
    },
    Row {
        name: "planned-idle",
        fault: "planned switchover, idle (the ledger's own writes)",
        aim: "≤ 0.05 s median, ≤ 0.15 s p95",
        setup: "cooldown 1s",
        rate: USUAL,
        trials: 20,
        most: 60,
        trial: "plan failover to O\nexpect primary O within 60s",
        left: "wait settled within 90s",
        deed: "plan failover",
        moves: true,
    },
    Row {
        name: "planned-load",
        fault: "planned switchover under load (300 writes/s a writer)",
        aim: "≤ 0.05 s median, ≤ 0.15 s p95",
        setup: "cooldown 1s",
        rate: 300,
        trials: 20,
        most: 60,
        trial: "plan failover to O\nexpect primary O within 60s",
        left: "wait settled within 90s",
        deed: "plan failover",
        moves: true,
    },
    Row {
        name: "replica-killed",
        fault: "replica SIGKILL",
        aim: "none",
        setup: "",
        rate: USUAL,
        trials: 4,
        most: 10,
        trial: "kill mysqld at O\nexpect primary P for 8s",
        left: NOTHING_LEFT,
        deed: "kill mysqld",
        moves: false,
    },
    Row {
        name: "dr-killed",
        fault: "DR site SIGKILL",
        aim: "none",
        setup: "",
        rate: USUAL,
        trials: 4,
        most: 10,
        trial: "kill mysqld at fra\nexpect primary P for 8s",
        left: NOTHING_LEFT,
        deed: "kill mysqld",
        moves: false,
    },
];

impl Row {
    /// So many trials on one group, one after the other; each begins when the group has settled from the one before.
    pub(crate) fn script(&self, trials: usize) -> String {
        let mut script = format!("story {}\nsites iad,pdx,fra:dr-only\n{}\n", self.fault, self.setup);
        script.push_str("wait settled\nload on\nrest 5s\n");
        for trial in 0..trials {
            let turn = if self.moves { trial % 2 } else { 0 };
            let (primary, other) = (CANDIDATES[turn], CANDIDATES[1 - turn]);
            for line in self.trial.lines().chain(self.left.lines()) {
                let words = line.split(' ').map(|word| match word {
                    "P" => primary,
                    "O" => other,
                    word => word,
                });
                // Cannot fail: it is text in memory.
                let _ = writeln!(script, "{}", words.collect::<Vec<_>>().join(" "));
            }
            script.push_str("rest 2s\n");
        }
        script.push_str("expect ledger clean\n");
        script
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authority_goes_to_and_fro_and_each_trial_has_its_deed() {
        for row in &ROWS {
            let script = row.script(3);
            let deeds: Vec<&str> = script.lines().filter(|line| line.starts_with(row.first_word())).collect();
            assert_eq!(deeds.len(), 3, "{}: {script}", row.name);
            assert_eq!(deeds[0] == deeds[1], !row.moves, "{}: {deeds:?}", row.name);
            assert_eq!(deeds[0], deeds[2], "{}", row.name);
            assert!(script.lines().all(|line| !line.split(' ').any(|word| word == "P" || word == "O")), "{script}");
        }
    }

    impl Row {
        fn first_word(&self) -> &str {
            self.deed.split(' ').next().unwrap_or_default()
        }
    }
}
