//! The page. In: readings as they are taken. Out: `docs/performance-footprint.md`, whole after each window. Must not: show a
//! run that was cut short as a whole one, or call an aim met that was not measured.

use super::sample::Sample;
use super::who::{Kind, Process};
use crate::play::Played;
use anyhow::{Context as _, Result};
use bloodraven_bench::process::{Usage, machine};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// Of a sidecar, in bytes.
const MOST_MEMORY: u64 = 15_000_000;

/// Of a sidecar, in millionths of a core.
const MOST_PROCESSOR: u64 = 5_000;

/// A shorter window says little: what is done every minute may not be in it.
const SHORTEST: Duration = Duration::from_mins(1);

const TEXT: &str = "\
# Footprint

Written by `cargo xtask bench footprint`; do not edit. A playground with three sites of real servers and one operator, release
build, default settings; the operator and each sidecar, keeper and server are processes of their own. What they use is read from
the kernel at the end of a time to settle and after each window.

`RSS` is resident memory, the highest reading. It counts pages of the program's file, which all processes of the same program
share; `anonymous` is the part that no file stands behind, what is really its own. `grown` is RSS at the last reading against the
first. MB are millions of bytes. Processor is user and system time in a window, in percent of one core: the median and the highest
of the windows. The kernel counts it in ticks, mostly of 10 ms: 0.02 % of a core in a minute.

Nobody writes in a window: the ledger's writers run before the time to settle, so that the group has data, and are switched off
then. Still a playground is not quite idle. It looks on: it asks every sidecar and the operator over HTTP twice a second, reads
every server over a new connection twice a second, and every three seconds the ledger looks its writes up. In a cluster there are
the kubelet's probes instead, and those are seldomer: so these figures are rather too high. The operator is that of the local world,
without a Kubernetes client; `cargo xtask bench scale` measures the one of a cluster.";

const HEAD: &str = "\
| process | RSS | anonymous | grown | processor, median | processor, highest | threads | open files |
|---|---|---|---|---|---|---|---|";

/// See above.
pub(crate) struct Page {
    file: Option<PathBuf>,
    window: Duration,
    settle: Duration,
    trials: usize,
    samples: Vec<Sample>,
    /// What each process used in each window, in millionths of a core.
    windows: Vec<Vec<u64>>,
    version: Option<String>,
    /// What went wrong, in one line.
    wrong: Option<String>,
    over: bool,
}

/// What one process came to.
struct Row<'a> {
    process: &'a Process,
    last: &'a Usage,
    memory: u64,
    anonymous: u64,
    /// In bytes; less than nothing: it shrank.
    grown: i64,
    /// Of each window, the smallest first.
    shares: Vec<u64>,
}

impl Page {
    pub(crate) fn new(file: Option<PathBuf>, window: Duration, settle: Duration, trials: usize) -> Self {
        let (samples, windows) = (Vec::new(), Vec::new());
        Self { file, window, settle, trials, samples, windows, version: None, wrong: None, over: false }
    }

    /// Whether no window was measured.
    pub(crate) fn is_empty(&self) -> bool {
        self.windows.is_empty()
    }

    /// Takes a reading in; from the second one on a window ends with it.
    pub(crate) fn take(&mut self, sample: Sample, played: &Played) -> Result<()> {
        self.version.clone_from(&played.version);
        if let Some(before) = self.samples.last() {
            self.windows.push(sample.since(before, self.window)?);
        }
        self.samples.push(sample);
        self.write()
    }

    /// The run is over. True: everything was measured and nothing was wrong.
    pub(crate) fn end(&mut self, wrong: Option<&str>) -> Result<bool> {
        self.over = true;
        self.wrong = wrong.map(|why| why.lines().next().unwrap_or_default().to_owned());
        self.write()?;
        Ok(self.wrong.is_none() && self.windows.len() >= self.trials)
    }

    /// An earlier page stays until there is something to say.
    fn write(&self) -> Result<()> {
        let Some(file) = self.file.as_ref().filter(|_| !self.is_empty()) else { return Ok(()) };
        fs::write(file, self.text() + "\n").with_context(|| format!("cannot write {}", file.display()))
    }

    pub(crate) fn text(&self) -> String {
        let rows = self.rows();
        let lines: Vec<String> = rows.iter().map(line).collect();
        let mut parts = vec![TEXT.to_owned(), format!("## Aims\n\n{}", aims(&rows))];
        parts.push(format!("## Processes\n\n{HEAD}\n{}", lines.join("\n")));
        parts.push(self.conditions());
        let remarks = self.remarks();
        if !remarks.is_empty() {
            parts.push(format!("- {}", remarks.join("\n- ")));
        }
        parts.join("\n\n")
    }

    fn rows(&self) -> Vec<Row<'_>> {
        let (Some(first), Some(last)) = (self.samples.first(), self.samples.last()) else { return Vec::new() };
        let mut rows = Vec::new();
        for (index, (process, usage)) in last.uses.iter().enumerate() {
            let all = || self.samples.iter().filter_map(|sample| sample.uses.get(index)).map(|(_, usage)| usage);
            let mut shares: Vec<u64> = self.windows.iter().filter_map(|window| window.get(index)).copied().collect();
            shares.sort_unstable();
            let begin = first.uses.get(index).map_or(usage.memory, |(_, usage)| usage.memory);
            rows.push(Row {
                process,
                last: usage,
                memory: all().map(|usage| usage.memory).max().unwrap_or(0),
                anonymous: all().map(|usage| usage.anonymous).max().unwrap_or(0),
                grown: usage.memory.cast_signed() - begin.cast_signed(),
                shares,
            });
        }
        rows
    }

    fn conditions(&self) -> String {
        let (windows, window, settle) = (self.windows.len(), self.window.as_secs(), self.settle.as_secs());
        let load = |sample: Option<&Sample>| sample.map_or_else(String::new, |sample| sample.load.clone());
        let version = self.version.as_deref().unwrap_or("MySQL of an unknown version");
        format!(
            "{windows} of {} windows of {window} s, after {settle} s to settle. Writes that were acknowledged in them: {}. Load average {} \
             when they began, {} when they ended; what it shows beside these processes ran beside them. Measured on {}, {version}.",
            self.trials,
            self.written(),
            load(self.samples.first()),
            load(self.samples.last()),
            machine()
        )
    }

    /// While nobody was to write.
    fn written(&self) -> u64 {
        let count = |sample: Option<&Sample>| sample.map_or(0, |sample| sample.acknowledged);
        count(self.samples.last()).saturating_sub(count(self.samples.first()))
    }

    fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        let (windows, trials) = (self.windows.len(), self.trials);
        if !self.over {
            remarks.push("**This run is not over**: what is missing above was not measured yet.".to_owned());
        } else if windows < trials {
            remarks.push(format!("**This run was cut short**: {windows} of {trials} windows were measured."));
        }
        remarks.extend(self.wrong.as_ref().map(|why| format!("**Something went wrong**: {why}.")));
        if self.window < SHORTEST {
            remarks.push(format!("**A window is too short** to say much: {} s, not a minute.", self.window.as_secs()));
        }
        if self.written() > 0 {
            remarks.push("**Somebody wrote** in a window: these are not figures of a group at rest.".to_owned());
        }
        if cfg!(debug_assertions) {
            remarks.push("**Not a release build**: these figures say nothing about one.".to_owned());
        }
        remarks
    }
}

impl Row<'_> {
    /// Of an even number of windows the higher one.
    fn median(&self) -> Option<u64> {
        self.shares.get(self.shares.len() / 2).copied()
    }

    fn highest(&self) -> Option<u64> {
        self.shares.last().copied()
    }
}

fn line(row: &Row<'_>) -> String {
    let shown = |share: Option<u64>| share.map_or_else(|| "–".to_owned(), percent);
    let sign = if row.grown < 0 { "-" } else { "" };
    format!(
        "| {} | {} | {} | {sign}{} | {} | {} | {} | {} |",
        row.process,
        megabytes(row.memory),
        megabytes(row.anonymous),
        megabytes(row.grown.unsigned_abs()),
        shown(row.median()),
        shown(row.highest()),
        row.last.threads,
        row.last.files
    )
}

/// The worst sidecar against the aims.
fn aims(rows: &[Row<'_>]) -> String {
    let sidecars = || rows.iter().filter(|row| row.process.kind == Kind::Sidecar);
    let memory = sidecars().map(|row| (row.memory, row.process)).max();
    let processor = sidecars().filter_map(|row| Some((row.highest()?, row.process))).max();
    let lines = [
        aim("memory of a sidecar (RSS), the highest of all", "<= 15 MB", memory, MOST_MEMORY, megabytes),
        aim(
            "processor of a sidecar at rest, the highest of all",
            "<= 0.5 % of a core",
            processor,
            MOST_PROCESSOR,
            percent,
        ),
    ];
    format!("| what | aim | measured | |\n|---|---|---|---|\n{}", lines.join("\n"))
}

fn aim(what: &str, bound: &str, worst: Option<(u64, &Process)>, most: u64, shown: fn(u64) -> String) -> String {
    let (measured, verdict) = match worst {
        None => ("–".to_owned(), "not measured"),
        Some((value, process)) if value <= most => (format!("{}, {process}", shown(value)), "met"),
        Some((value, process)) => (format!("{}, {process}", shown(value)), "**missed**"),
    };
    format!("| {what} | {bound} | {measured} | {verdict} |")
}

/// Rounded up: what is shown never looks better than what is judged.
fn megabytes(bytes: u64) -> String {
    let tenths = bytes.div_ceil(100_000);
    format!("{}.{} MB", tenths / 10, tenths % 10)
}

/// Rounded up, as above.
fn percent(millionths: u64) -> String {
    let hundredths = millionths.div_ceil(100);
    format!("{}.{:02} %", hundredths / 100, hundredths % 100)
}

#[cfg(test)]
mod tests {
    use super::super::sample::tests::sample;
    use super::*;

    fn page(trials: usize) -> Page {
        Page::new(None, Duration::from_mins(1), Duration::from_secs(30), trials)
    }

    /// A reading after so many seconds: the sidecars' processor time in milliseconds and memory in megabytes.
    fn reading(at: u64, iad: (u64, u64), pdx: (u64, u64)) -> Sample {
        let sidecar = |site, (cpu, memory)| (Kind::Sidecar, site, cpu, memory);
        sample(at, &[sidecar("iad", iad), sidecar("pdx", pdx), (Kind::Operator, "", at * 40, 90)])
    }

    #[test]
    fn the_worst_sidecar_is_held_against_the_aims() {
        let (mut page, played) = (page(2), Played::default());
        for sample in
            [reading(0, (0, 12), (0, 14)), reading(60, (60, 12), (240, 16)), reading(120, (300, 12), (540, 13))]
        {
            page.take(sample, &played).unwrap();
        }
        assert!(page.text().contains("This run is not over"));
        assert!(page.end(None).unwrap());
        let text = page.text();
        assert!(text.contains("| <= 15 MB | 16.0 MB, sidecar of pdx | **missed** |"), "{text}");
        assert!(text.contains("| <= 0.5 % of a core | 0.50 %, sidecar of pdx | met |"), "{text}");
        assert!(text.contains("| sidecar of pdx | 16.0 MB | 8.0 MB | -1.0 MB | 0.50 % | 0.50 % | 3 | 20 |"), "{text}");
        assert!(text.contains("| sidecar of iad (primary) | 12.0 MB | 6.0 MB | 0.0 MB | 0.40 % | 0.40 % |"), "{text}");
        assert!(text.contains("| operator | 90.0 MB | 45.0 MB | 0.0 MB | 4.00 % | 4.00 % |"), "{text}");
        assert!(text.contains("2 of 2 windows of 60 s, after 30 s to settle."), "{text}");
        assert!(
            !text.contains("not over") && !text.contains("cut short") && !text.contains("Somebody wrote"),
            "{text}"
        );
    }

    #[test]
    fn a_run_that_was_cut_short_says_so_and_keeps_what_it_has() {
        let (mut page, played) = (page(3), Played { version: Some("MySQL 9".to_owned()), ..Played::default() });
        page.take(reading(0, (0, 12), (0, 12)), &played).unwrap();
        assert!(page.is_empty());
        page.take(Sample { acknowledged: 47, ..reading(60, (6, 12), (6, 12)) }, &played).unwrap();
        assert!(page.take(reading(70, (7, 12), (7, 12)), &played).is_err());
        assert!(!page.end(Some("the window broke\nand more")).unwrap());
        let text = page.text();
        assert!(text.contains("- **This run was cut short**: 1 of 3 windows were measured."), "{text}");
        assert!(text.contains("- **Something went wrong**: the window broke."), "{text}");
        assert!(text.contains("1 of 3 windows") && text.contains(", MySQL 9."), "{text}");
        assert!(text.contains("acknowledged in them: 7.") && text.contains("**Somebody wrote**"), "{text}");
        assert!(!page.end(None).unwrap());
        assert!(!page.text().contains("went wrong"), "{}", page.text());
    }

    #[test]
    fn a_page_without_a_window_claims_nothing_and_is_not_written() {
        let mut page = Page { file: Some("/nowhere/at/all".into()), ..page(1) };
        page.take(reading(0, (0, 12), (0, 12)), &Played::default()).unwrap();
        assert!(page.text().contains("| <= 0.5 % of a core | – | not measured |"), "{}", page.text());
        let refused = page.take(reading(60, (0, 12), (0, 12)), &Played::default()).unwrap_err().to_string();
        assert!(refused.contains("cannot write /nowhere/at/all"), "{refused}");
    }

    #[test]
    fn what_is_shown_never_looks_better_than_it_is() {
        assert_eq!((megabytes(15_000_001), megabytes(15_000_000)), ("15.1 MB".to_owned(), "15.0 MB".to_owned()));
        assert_eq!((percent(5_001), percent(5_000), percent(0)), ("0.51 %".into(), "0.50 %".into(), "0.00 %".into()));
    }
}
