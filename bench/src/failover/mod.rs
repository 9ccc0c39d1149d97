//! Faults and moves. In: programs, rows. Out: a table, and the page `docs/performance.md`. Must not: keep silent about a
//! broken promise, or about a trial that was not measured.

mod figures;
mod page;
mod rows;

use crate::play::{Played, Programs};
use anyhow::{Context as _, Result, bail};
use figures::Figures;
use page::Page;
use rows::{ROWS, Row};
use std::path::PathBuf;

/// So often a group is started anew for one row: a trial that failed leaves nobody knows what behind.
const GROUPS: usize = 3;

/// What the words ask for.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    programs: Programs,
    page: Option<PathBuf>,
    trials: Option<usize>,
    only: Vec<String>,
}

pub(crate) fn understand(words: &[String]) -> Result<Wanted> {
    let mut words = words.iter();
    let mut wanted = Wanted::default();
    while let Some(word) = words.next() {
        let value = words.next().with_context(|| format!("{word} needs a value"))?;
        match word.as_str() {
            "--page" => wanted.page = Some(value.into()),
            "--trials" => {
                let trials = value.parse().ok().filter(|trials| (1..=60).contains(trials));
                wanted.trials = Some(trials.with_context(|| format!("{value} is not a number from 1 to 60"))?);
            }
            "--only" if ROWS.iter().any(|row| row.name == value) => wanted.only.push(value.clone()),
            "--only" => bail!("there is no row {value}; the rows are {}", ROWS.map(|row| row.name).join(", ")),
            other if wanted.programs.take(other, value) => {}
            other => bail!("'{other}' is not known"),
        }
    }
    wanted.programs.check()?;
    Ok(wanted)
}

/// Row after row; the page is written after each, so that a run that is cut short leaves what it has and says so. True: all
/// that was asked for was measured, and no promise was broken.
pub(crate) fn measure(wanted: &Wanted) -> Result<bool> {
    let rows: Vec<&Row> =
        ROWS.iter().filter(|row| wanted.only.is_empty() || wanted.only.iter().any(|name| name == row.name)).collect();
    let mut page = Page::begin(wanted.page.as_deref(), &rows)?;
    let mut fine = true;
    for row in rows {
        let trials = wanted.trials.map_or(row.trials, |trials| trials.min(row.most));
        let figures = measure_row(&wanted.programs, row, trials)?;
        fine &= figures.is_whole(trials) && figures.broken() == 0;
        println!("{}", page.take(row, trials, &figures)?);
    }
    println!("\n{}", page.table());
    Ok(fine)
}

fn measure_row(programs: &Programs, row: &Row, trials: usize) -> Result<Figures> {
    let mut figures = Figures::begin();
    for _ in 0..GROUPS {
        let missing = trials.saturating_sub(figures.gaps.len());
        if missing == 0 {
            break;
        }
        let played = programs.play(row.name, row.rate, &row.script(missing), |_, _| Ok(()))?;
        let Played { verdict, version, .. } = played;
        figures.version = version.or(figures.version);
        figures.take(row, verdict.as_ref());
    }
    figures.end();
    Ok(figures)
}
