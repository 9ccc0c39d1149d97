//! The page. In: rows as they are measured. Out: `docs/performance.md`, whole after each row. Must not: lose the row of an
//! earlier run that this one does not measure, or show a run that was cut short as a whole one.

use super::figures::Figures;
use super::rows::{ROWS, Row};
use anyhow::{Context as _, Result};
use bloodraven_bench::process::machine;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const HEAD: &str = "\
| fault | aim | trials | median | p95 | max | quiet | wrong-side | lost | received and lost | load |
|---|---|---|---|---|---|---|---|---|---|---|";

const TEXT: &str = "\
# Performance

Written by `cargo xtask bench failover`; do not edit. Each row is a script that the playground plays with three sites of real
servers, release build, a writer for each site and one through the front door. The figures are the write gap at the front door:
from the last acknowledged write before a fault to the first one after it. `quiet` is the longest silence of the same writer in
five seconds before anything was done: what the machine itself adds. The last three counts must be 0. `load` is the machine's load
average when the row began and when it ended; times on a busy machine say more about the machine.";

/// See above.
pub(crate) struct Page {
    file: Option<PathBuf>,
    rows: BTreeMap<&'static str, String>,
    /// Asked for, and not measured yet.
    missing: Vec<&'static str>,
    remarks: Vec<String>,
    version: Option<String>,
}

impl Page {
    /// Rows of an earlier run stay until they are measured anew.
    pub(crate) fn begin(file: Option<&Path>, wanted: &[&Row]) -> Result<Self> {
        let before = match file {
            Some(file) if file.exists() => {
                fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?
            }
            _ => String::new(),
        };
        let line = |row: &Row| before.lines().find(|line| line.starts_with(&format!("| {} |", row.fault)));
        let rows = ROWS.iter().filter_map(|row| Some((row.name, line(row)?.to_owned()))).collect();
        let missing = wanted.iter().map(|row| row.name).collect();
        Ok(Self { file: file.map(Path::to_owned), rows, missing, remarks: Vec::new(), version: None })
    }

    /// Takes a row in; returns its line.
    pub(crate) fn take(&mut self, row: &Row, trials: usize, figures: &Figures) -> Result<String> {
        let line = line(row, figures);
        self.rows.insert(row.name, line.clone());
        self.missing.retain(|name| *name != row.name);
        self.version.clone_from(&figures.version);
        if figures.gaps.len() < trials {
            self.remarks.push(format!("`{}`: {} of {trials} trials were measured.", row.name, figures.gaps.len()));
        }
        self.remarks.extend(figures.failed.iter().map(|failed| format!("`{}`: {failed}.", row.name)));
        if let Some(file) = &self.file {
            fs::write(file, self.text()).with_context(|| format!("cannot write {}", file.display()))?;
        }
        Ok(line)
    }

    pub(crate) fn table(&self) -> String {
        let lines = ROWS.iter().filter_map(|row| self.rows.get(row.name)).map(String::as_str);
        std::iter::once(HEAD).chain(lines).collect::<Vec<_>>().join("\n")
    }

    fn text(&self) -> String {
        let version = self.version.as_deref().unwrap_or("MySQL of an unknown version");
        let mut parts = vec![TEXT.to_owned(), self.table(), format!("Measured on {}, {version}.", machine())];
        if !self.missing.is_empty() {
            let missing = self.missing.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
            parts.push(format!("**This run was cut short.** Not measured: {missing}."));
        }
        if !self.remarks.is_empty() {
            parts.push(format!("What did not go as the scripts expect:\n\n- {}", self.remarks.join("\n- ")));
        }
        parts.join("\n\n") + "\n"
    }
}

fn line(row: &Row, figures: &Figures) -> String {
    let shown = |percent| figures.percentile(percent).map_or_else(|| "–".to_owned(), seconds);
    let [median, p95, max] = [50, 95, 100].map(shown);
    let Figures { wrong_side, lost, received_and_lost, .. } = figures;
    let (trials, quiet, [before, after]) = (figures.gaps.len(), seconds(figures.quiet), &figures.load);
    format!(
        "| {} | {} | {trials} | {median} | {p95} | {max} | {quiet} | {wrong_side} | {lost} | {received_and_lost} | {before}–{after} |",
        row.fault, row.aim
    )
}

fn seconds(micros: u64) -> String {
    let millis = micros.div_ceil(1000);
    format!("{}.{:03} s", millis / 1000, millis % 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(gaps: &[u64]) -> Figures {
        Figures { gaps: gaps.to_vec(), load: ["0.5".to_owned(), "1.5".to_owned()], ..Figures::default() }
    }

    #[test]
    fn a_page_says_what_is_missing_and_what_failed() {
        let [one, two] = [&ROWS[0], &ROWS[1]];
        let mut page = Page::begin(None, &[one, two]).unwrap();
        page.take(one, 2, &Figures { failed: vec!["line 7: no".to_owned()], ..measured(&[6_100_000]) }).unwrap();
        let text = page.text();
        assert!(text.contains("**This run was cut short.** Not measured: `kill-fast`."), "{text}");
        assert!(text.contains("1 of 2 trials") && text.contains("`kill`: line 7: no."), "{text}");
        assert!(text.contains("| 1 | 6.100 s | 6.100 s | 6.100 s |"), "{text}");
        page.take(two, 1, &measured(&[900_400])).unwrap();
        let text = page.text();
        assert!(!text.contains("cut short") && text.contains("| 0.901 s |"), "{text}");
    }
}
