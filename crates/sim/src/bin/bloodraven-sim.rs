//! The simulator on the command line: many seeds, one seed with its timeline, or a scenario file.
//!
//! In: arguments. Out: a table, or a timeline. Must not: decide anything.

use bloodraven_sim::simulate::report::{Wanted, report};
use bloodraven_sim::simulate::text;
use std::process::ExitCode;

const USAGE: &str = "bloodraven-sim --seeds A..B | --seed N [--shrink] | --scenario FILE  [--sites N] [--json]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(because) => {
            eprintln!("{because}\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &[String]) -> Result<bool, String> {
    let (mut seeds, mut seed, mut sites, mut file) = (None, None, None, None);
    let (mut json, mut shrunk) = (false, false);
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let mut value = || rest.next().ok_or(format!("{argument} needs a value"));
        let number = |text: &String| text.parse::<u64>().map_err(|_| format!("`{text}` is not a number"));
        match argument.as_str() {
            "--seeds" => {
                let text = value()?;
                let (from, to) = text.split_once("..").ok_or(format!("`{text}` is not a range; write 0..1000"))?;
                seeds = Some(number(&from.to_owned())?..number(&to.to_owned())?);
            }
            "--seed" => seed = Some(number(value()?)?),
            "--sites" => sites = usize::try_from(number(value()?)?).ok(),
            "--scenario" => file = Some(value()?.clone()),
            "--json" => json = true,
            "--shrink" => shrunk = true,
            other => return Err(format!("`{other}` is not known")),
        }
    }
    let wanted = match (file, seed, seeds) {
        (Some(file), _, _) => {
            let text = std::fs::read_to_string(&file).map_err(|error| format!("{file}: {error}"))?;
            let scenario = text::parse(&text).map_err(|wrong| format!("{file}: {wrong}"))?;
            Wanted::Scenario(Box::new(scenario))
        }
        (None, Some(seed), _) => Wanted::One { seed, sites, shrunk },
        (None, None, seeds) => Wanted::Seeds { seeds: seeds.unwrap_or(0..100), sites },
    };
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let progress = |done| eprint!("\r{done} runs");
    report(&wanted, json, threads, &mut std::io::stdout(), progress).map_err(|error| error.to_string())
}
