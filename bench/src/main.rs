//! Benchmarks of whole groups. In: programs, and what is to be measured. Out: a table, and the page `docs/performance.md`.
//!
//! Nothing of the product is in here: a row is a script that the playground plays with real servers, and its figures are
//! what the ledger of that run says. Must not: time anything itself, or keep silent about a run that was cut short.

mod figures;
mod page;
mod play;
mod rows;

use anyhow::{Context as _, Result, bail};
use figures::Figures;
use page::Page;
use play::{Played, Programs};
use rows::{ROWS, Row};
use std::path::PathBuf;
use std::process::ExitCode;

/// So often a group is started anew for one row: a trial that failed leaves nobody knows what behind.
const GROUPS: usize = 3;

const HELP: &str = "\
bloodraven-bench failover --bloodraven PATH --keeper PATH [--mysqld WORD]... [--template DIR] [--page FILE]
                          [--trials N] [--only ROW]...

Started by `cargo xtask bench failover`, which provides the programs.";

/// What the words ask for.
struct Wanted {
    programs: Programs,
    page: Option<PathBuf>,
    trials: Option<usize>,
    only: Vec<String>,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match understand(&words).and_then(|wanted| measure(&wanted)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("bench: {error:#}\n\n{HELP}");
            ExitCode::from(2)
        }
    }
}

fn understand(words: &[String]) -> Result<Wanted> {
    let mut words = words.iter();
    match words.next().map(String::as_str) {
        Some("failover") => {}
        _ => bail!("name a benchmark: failover"),
    }
    let mut wanted = Wanted { programs: Programs::default(), page: None, trials: None, only: Vec::new() };
    while let Some(word) = words.next() {
        let value = words.next().with_context(|| format!("{word} needs a value"))?;
        match word.as_str() {
            "--bloodraven" => wanted.programs.bloodraven = value.into(),
            "--keeper" => wanted.programs.keeper = value.into(),
            "--mysqld" => wanted.programs.mysqld.push(value.clone()),
            "--template" => wanted.programs.template = Some(value.into()),
            "--page" => wanted.page = Some(value.into()),
            "--trials" => {
                let trials = value.parse().ok().filter(|trials| (1..=60).contains(trials));
                wanted.trials = Some(trials.with_context(|| format!("{value} is not a number from 1 to 60"))?);
            }
            "--only" if ROWS.iter().any(|row| row.name == value) => wanted.only.push(value.clone()),
            "--only" => bail!("there is no row {value}; the rows are {}", ROWS.map(|row| row.name).join(", ")),
            other => bail!("'{other}' is not known"),
        }
    }
    Ok(wanted)
}

/// Row after row; the page is written after each, so that a run that is cut short leaves what it has and says so. True: all
/// that was asked for was measured, and no promise was broken.
fn measure(wanted: &Wanted) -> Result<bool> {
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
        let Played { verdict, version } = programs.play(row, &row.script(missing))?;
        figures.version = version.or(figures.version);
        figures.take(row, verdict.as_ref());
    }
    figures.end();
    Ok(figures)
}
