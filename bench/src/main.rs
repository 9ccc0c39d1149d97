//! Benchmarks of whole groups. In: programs, and what is to be measured. Out: a table, and the page `docs/performance.md` or
//! `docs/performance-footprint.md`.
//!
//! Nothing of the product is in here: what is measured is a script that the playground plays with real servers, and figures
//! are what the ledger of that run says, or the kernel of its processes. Must not: time anything itself, or keep silent about
//! a run that was cut short.

mod failover;
mod footprint;
mod play;

use anyhow::{Result, bail};
use std::process::ExitCode;

const HELP: &str = "\
bloodraven-bench failover  --bloodraven PATH --keeper PATH [--mysqld WORD]... [--template DIR] [--page FILE]
                           [--trials N] [--only ROW]...
bloodraven-bench footprint --bloodraven PATH --keeper PATH [--mysqld WORD]... [--template DIR] [--page FILE]
                           [--trials N] [--window SECONDS] [--settle SECONDS]

Started by `cargo xtask bench failover` and `cargo xtask bench footprint`, which provide the programs.";

/// What the words ask for.
enum Wanted {
    Failover(failover::Wanted),
    Footprint(footprint::Wanted),
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let wanted = match understand(&words) {
        Ok(wanted) => wanted,
        Err(error) => {
            eprintln!("bench: {error:#}\n\n{HELP}");
            return ExitCode::from(2);
        }
    };
    let measured = match &wanted {
        Wanted::Failover(wanted) => failover::measure(wanted),
        Wanted::Footprint(wanted) => footprint::measure(wanted),
    };
    match measured {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn understand(words: &[String]) -> Result<Wanted> {
    match words.split_first() {
        Some((name, rest)) if name == "failover" => failover::understand(rest).map(Wanted::Failover),
        Some((name, rest)) if name == "footprint" => footprint::understand(rest).map(Wanted::Footprint),
        Some((name, _)) => bail!("there is no benchmark '{name}'; name failover or footprint"),
        None => bail!("name a benchmark: failover or footprint"),
    }
}
