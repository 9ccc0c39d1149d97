//! Plays seeds or scenario files without the whole program: `seeds 0..1000 [threads]`, `seeds 17`, `seeds file.scn`.
//! `seeds digest 0..100` prints a digest of every timeline, to compare two builds.

use bloodraven_sim::simulate::report::{Wanted, report};
use bloodraven_sim::simulate::{draw::draw, play, text};
use std::hash::{Hash as _, Hasher as _};
use std::io;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["digest", seeds] => range(seeds).map(digests),
        [what] => wanted(what).and_then(|wanted| run(&wanted, 1)),
        [what, threads] => wanted(what).and_then(|wanted| run(&wanted, threads.parse().unwrap_or(1))),
        _ => Err("seeds <from..to | seed | file> [threads]".to_owned()),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(wrong) => {
            eprintln!("{wrong}");
            ExitCode::from(2)
        }
    }
}

fn range(text: &str) -> Result<std::ops::Range<u64>, String> {
    let (from, to) = text.split_once("..").ok_or("write 0..1000")?;
    let number = |text: &str| text.parse().map_err(|_| format!("`{text}` is no number"));
    Ok(number(from)?..number(to)?)
}

fn wanted(what: &str) -> Result<Wanted, String> {
    if what.contains("..") && !what.contains('/') {
        return Ok(Wanted::Seeds { seeds: range(what)?, sites: None });
    }
    if let Ok(seed) = what.parse() {
        return Ok(Wanted::One { seed, sites: None, shrunk: false });
    }
    let text = std::fs::read_to_string(what).map_err(|wrong| format!("{what}: {wrong}"))?;
    let scenario = text::parse(&text).map_err(|wrong| format!("{what}: {wrong}"))?;
    Ok(Wanted::Scenario(Box::new(scenario)))
}

fn run(wanted: &Wanted, threads: usize) -> Result<bool, String> {
    let mut out = io::stdout().lock();
    report(wanted, false, threads, &mut out, |_| ()).map_err(|wrong| wrong.to_string())
}

fn digests(seeds: std::ops::Range<u64>) -> bool {
    for seed in seeds {
        let run = play(&draw(seed, None), true);
        let mut hasher = std::hash::DefaultHasher::new();
        format!("{run:?}").hash(&mut hasher);
        println!("{seed} {:016x}", hasher.finish());
    }
    true
}
