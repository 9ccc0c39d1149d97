//! `bloodraven simulate`: groups under random faults, judged on what really happened.
//!
//! In: which seeds or which script. Out: a table or a timeline, and a verdict in the exit code. Must not: judge; the
//! simulator does.

use std::io::Write;
use std::ops::Range;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use bloodraven_sim::simulate::report::{self, Wanted};
use bloodraven_sim::simulate::text;

pub(crate) const HELP: &str = "\
Examples:
  bloodraven simulate --seeds 0..1000             a thousand runs, two to five sites, one table
  bloodraven simulate --seeds 0..1000 --sites 3   the same with three sites each
  bloodraven simulate --seed 42                   one run, told from beginning to end
  bloodraven simulate --seed 42 --shrink          the same, if it failed, with as few faults as show it
  bloodraven simulate --scenario FILE             a script of faults

The exit code is 0 when every promise held and every run came to rest, 1 when not, 2 when the question made no sense.";

/// What to simulate.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Seeds, from..to (the end is not included)
    #[arg(long, value_name = "A..B", value_parser = range, conflicts_with_all = ["seed", "scenario"])]
    seeds: Option<Range<u64>>,

    /// One seed, with its timeline
    #[arg(long, value_name = "N", conflicts_with = "scenario")]
    seed: Option<u64>,

    /// How many sites; drawn from the seed otherwise
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(2..=5))]
    sites: Option<u8>,

    /// Leave out every fault that a failed run does not need
    #[arg(long, requires = "seed")]
    shrink: bool,

    /// A script of faults
    #[arg(long, value_name = "FILE")]
    scenario: Option<PathBuf>,

    /// JSON lines
    #[arg(long)]
    json: bool,
}

/// `0..1000`, the smaller number first.
fn range(text: &str) -> Result<Range<u64>, String> {
    let (from, to) = text.split_once("..").ok_or("write two numbers with two dots between them, as in 0..1000")?;
    let number = |text: &str| text.parse::<u64>().map_err(|_| format!("'{text}' is not a number"));
    let range = number(from)?..number(to)?;
    if range.is_empty() { Err("the range is empty; write the smaller number first".to_owned()) } else { Ok(range) }
}

pub(crate) fn run(arguments: &Arguments, stdout: &mut impl Write) -> anyhow::Result<ExitCode> {
    let sites = arguments.sites.map(usize::from);
    let wanted = match (&arguments.scenario, arguments.seed, &arguments.seeds) {
        (Some(file), _, _) => {
            let script = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
            match text::parse(&script) {
                Ok(scenario) => Wanted::Scenario(Box::new(scenario)),
                Err(wrong) => {
                    eprintln!("bloodraven: {}: {wrong}", file.display());
                    return Ok(ExitCode::from(2));
                }
            }
        }
        (None, Some(seed), _) => Wanted::One { seed, sites, shrunk: arguments.shrink },
        (None, None, seeds) => Wanted::Seeds { seeds: seeds.clone().unwrap_or(0..100), sites },
    };
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let held = report::report(&wanted, arguments.json, threads, stdout, |done| eprint!("\r{done} runs"))?;
    Ok(if held { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
