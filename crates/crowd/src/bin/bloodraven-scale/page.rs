//! The page. In: rows as they are measured. Out: `docs/performance-scale.md`, whole after each row. Must not: show a run that
//! was cut short as a whole one.

use crate::measure::{Hung, Lost, Measured, Steady};
use anyhow::{Context as _, Result};
use bloodraven_crowd::polls::Lateness;
use bloodraven_crowd::process;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

const TEXT: &str = "\
# Scale and footprint

Written by `cargo xtask bench scale`; do not edit. One real operator, release build, against a real API server and played sites:
doubles that speak MySQL's protocol and the sidecars' signed HTTP, and decide with the sidecar's own brain. Everything is on one machine
and at default settings: a group has three sites, each is polled every two seconds and asks the operator every five. The operator is
started anew for each size when all groups are ready, has 20 s and 0.1 s for each group to settle (it looks at all their objects once), and
is watched for 40 s. How late a poll is, is seen at the polled site, against the earliest beat of the same site in that window; so the way there and the double's own delay count, too.
`load` is the machine's load average when a row began and when it ended; on a busy machine lateness says more about the machine.";

const STEADY: &str = "\
| groups | operator, cores | operator, RSS | start to first poll | start to all ready | polls | late: median | p99 | p99.9 | max | beats missed | \
crowd, cores | store, cores | requests/s | load |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|";

/// A row of the aims: what, how much, and what it came to.
struct Aim {
    what: String,
    bound: &'static str,
    measured: String,
    met: bool,
}

/// See above.
pub(crate) struct Page {
    file: Option<PathBuf>,
    programs: Vec<(String, u64)>,
    steady: Vec<Steady>,
    lost: Option<Lost>,
    hung: Option<Hung>,
    remarks: Vec<String>,
}

impl Page {
    pub(crate) fn new(file: Option<PathBuf>, bloodraven: &Path, keeper: Option<&Path>) -> Self {
        let size = |path: &Path| fs::metadata(path).map_or(0, |file| file.len());
        let mut programs = vec![("bloodraven".to_owned(), size(bloodraven))];
        programs.extend(keeper.map(|keeper| ("keeper".to_owned(), size(keeper))));
        Self { file, programs, steady: Vec::new(), lost: None, hung: None, remarks: Vec::new() }
    }

    pub(crate) fn take(&mut self, measured: Measured) -> Result<()> {
        match measured {
            Measured::Steady(row) => self.steady.push(row),
            Measured::Lost(row) => self.lost = Some(row),
            Measured::Hung(row) => self.hung = Some(row),
        }
        self.remarks.retain(|remark| !remark.starts_with(NOT_OVER));
        self.remarks.push(format!("{NOT_OVER}: what is missing above was not measured yet."));
        self.write()?;
        self.remarks.pop();
        Ok(())
    }

    pub(crate) fn cut_short(&mut self, because: &str) {
        let first = because.lines().next().unwrap_or_default();
        self.remarks.push(format!("**This run was cut short.** {first}"));
    }

    /// Not for as long as the text says.
    pub(crate) fn watched_for(&mut self, window: Duration) {
        let seconds = window.as_secs();
        self.remarks
            .push(format!("**Watched for {seconds} s at a time**: the harness works or not; figures need longer."));
    }

    /// Statements that the doubles did not know.
    pub(crate) fn unknown(&mut self, unknown: &BTreeMap<String, u64>) {
        let one = |(what, count): (&String, &u64)| {
            format!("A double was asked what it does not know, {count} times: `{what}`")
        };
        self.remarks.extend(unknown.iter().map(one));
    }

    pub(crate) fn write(&self) -> Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        fs::write(file, self.text() + "\n").with_context(|| format!("cannot write {}", file.display()))
    }

    pub(crate) fn text(&self) -> String {
        let steady: Vec<String> = self.steady.iter().map(steady_line).collect();
        let mut parts = vec![TEXT.to_owned(), format!("## Aims\n\n{}", self.aims())];
        parts.push(format!("## Steady state\n\n{STEADY}\n{}", steady.join("\n")));
        parts.extend(self.steady.last().map(requests));
        parts.extend(self.lost.as_ref().map(lost));
        parts.extend(self.hung.as_ref().map(hung));
        let size = |(name, bytes): &(String, u64)| format!("`{name}` {}", mib(*bytes));
        let programs: Vec<String> = self.programs.iter().map(size).collect();
        parts.push(format!("Programs: {}. Measured on {}.", programs.join(", "), process::machine()));
        if !self.remarks.is_empty() {
            parts.push(format!("- {}", self.remarks.join("\n- ")));
        }
        parts.join("\n\n")
    }

    fn aims(&self) -> String {
        let mut rows = Vec::new();
        for row in &self.steady {
            rows.extend(aims_of(row));
        }
        for pair in self.steady.windows(2) {
            rows.push(linear(&pair[0], &pair[1]));
        }
        if let Some(row) = &self.lost {
            let (last, groups) = (row.decided.last().copied().unwrap_or_default(), row.groups);
            rows.push(Aim {
                what: format!("{groups} groups lose their primary in the same moment: all decided"),
                bound: "<= d + 2 s = 8 s",
                measured: seconds(last),
                met: row.decided.len() == groups && last <= Duration::from_secs(8),
            });
        }
        if let Some(row) = &self.hung {
            let max = row.lateness.permille(1000);
            rows.push(Aim {
                what: format!("one site of one of {} groups hung: latest poll of any other group", row.of),
                bound: "<= 50 ms",
                measured: millis(max),
                met: max <= Duration::from_millis(50),
            });
        }
        let size: u64 = self.programs.iter().map(|(_, bytes)| bytes).sum();
        rows.push(Aim {
            what: "programs of the image, without the C library".to_owned(),
            bound: "image <= 40 MB",
            measured: mib(size),
            met: size <= 40_000_000,
        });
        let line = |aim: &Aim| {
            format!(
                "| {} | {} | {} | {} |",
                aim.what,
                aim.bound,
                aim.measured,
                if aim.met { "met" } else { "**missed**" }
            )
        };
        let lines: Vec<String> = rows.iter().map(line).collect();
        format!("| what | aim | measured | |\n|---|---|---|---|\n{}", lines.join("\n"))
    }
}

/// Begins the remark of a page that is written while the rest is still being measured.
const NOT_OVER: &str = "**This run is not over**";

fn aims_of(row: &Steady) -> Vec<Aim> {
    let groups = row.groups;
    let mut rows = Vec::new();
    if groups == 1000 {
        let p99 = row.lateness.permille(990);
        rows.push(Aim {
            what: "1,000 groups: processor".to_owned(),
            bound: "<= 1 core",
            measured: cores(row.operator),
            met: row.operator <= 1.0,
        });
        rows.push(Aim {
            what: "1,000 groups: p99 of poll starts behind schedule".to_owned(),
            bound: "<= 200 ms",
            measured: millis(p99),
            met: p99 <= Duration::from_millis(200),
        });
    }
    let most = match groups {
        1 => Some((30_000_000, "<= 30 MB")),
        100 => Some((60_000_000, "<= 60 MB")),
        1000 => Some((256_000_000, "<= 256 MB")),
        _ => None,
    };
    if let Some((most, bound)) = most {
        let met = row.usage.memory <= most;
        rows.push(Aim {
            what: format!("{groups} groups: operator's memory"),
            bound,
            measured: mib(row.usage.memory),
            met,
        });
    }
    if groups == 1 {
        let met = row.first_poll <= Duration::from_millis(300);
        rows.push(Aim {
            what: "operator's start to its first poll".to_owned(),
            bound: "<= 300 ms",
            measured: millis(row.first_poll),
            met,
        });
    }
    rows
}

/// What ten times as many groups cost.
fn linear(few: &Steady, many: &Steady) -> Aim {
    let small = |number: u64| f64::from(u32::try_from(number).unwrap_or(u32::MAX).max(1));
    let groups = |row: &Steady| small(u64::try_from(row.groups).unwrap_or(u64::MAX));
    let (times, cpu) = (groups(many) / groups(few), many.operator / few.operator.max(0.0001));
    let memory = small(many.usage.memory >> 10) / small(few.usage.memory >> 10);
    Aim {
        what: format!("{} groups against {}: {times:.0} times as many", many.groups, few.groups),
        bound: "<= 1.1 times as much each",
        measured: format!("{cpu:.1} times the processor, {memory:.1} times the memory"),
        met: cpu <= times * 1.1 && memory <= times * 1.1,
    }
}

fn steady_line(row: &Steady) -> String {
    let Steady { groups, usage, lateness, requests, load, .. } = row;
    let [median, p99, p999, max] = [500, 990, 999, 1000].map(|of| millis(lateness.permille(of)));
    let rate: f64 = requests.values().sum();
    format!(
        "| {groups} | {} | {} | {} | {} | {} | {median} | {p99} | {p999} | {max} | {} | {} | {} | {rate:.0} | {}–{} |",
        cores(row.operator),
        mib(usage.memory),
        millis(row.first_poll),
        seconds(row.all_ready),
        lateness.count(),
        lateness.missed,
        cores(row.crowd),
        cores(row.store),
        load[0],
        load[1]
    )
}

fn requests(row: &Steady) -> String {
    let mut rates: Vec<(&String, &f64)> = row.requests.iter().collect();
    rates.sort_by(|one, other| other.1.total_cmp(one.1));
    let first: Vec<String> = rates.iter().take(8).map(|(what, rate)| format!("{what} {rate:.1}")).collect();
    let Steady { groups, usage, .. } = row;
    format!(
        "Requests to the API server in a second with {groups} groups, watches apart: {}. The operator has {} threads and {} open \
         files. `store` is the API server and etcd, `crowd` the doubles.",
        first.join(", "),
        usage.threads,
        usage.files
    )
}

fn lost(row: &Lost) -> String {
    let Lost { groups, of, decided, opened, load } = row;
    format!(
        "## Primaries lost\n\nThe primaries' servers of {groups} of {of} groups are killed in the same moment (defaults: d = 6 s).\n\n\
         | until | groups | first | median | last |\n|---|---|---|---|---|\n\
         | a record without the old holder is stored | {} | {} |\n| another site takes writes | {} | {} |\n\nLoad {}–{}.",
        decided.len(),
        spread(decided),
        opened.len(),
        spread(opened),
        load[0],
        load[1]
    )
}

fn spread(sorted: &[Duration]) -> String {
    let at = |index: usize| sorted.get(index).map_or_else(|| "–".to_owned(), |time| seconds(*time));
    format!("{} | {} | {}", at(0), at(sorted.len() / 2), at(sorted.len().saturating_sub(1)))
}

fn hung(row: &Hung) -> String {
    let Hung { of, lateness, load } = row;
    let [median, p99, p999, max] = [500, 990, 999, 1000].map(|of| millis(Lateness::permille(lateness, of)));
    format!(
        "## A site that hangs\n\nOne site of one of {of} groups takes connections and never answers, for 20 s. Polls of all other groups: \
         {}, late by {median} (median), {p99} (p99), {p999} (p99.9), {max} at most; beats missed: {}. Load {}–{}.",
        lateness.count(),
        lateness.missed,
        load[0],
        load[1]
    )
}

fn cores(cores: f64) -> String {
    format!("{cores:.3}")
}

fn mib(bytes: u64) -> String {
    let tenths = bytes / 100_000;
    format!("{}.{} MB", tenths / 10, tenths % 10)
}

fn millis(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}
