//! What people and programs read of runs: a table for many, a timeline and a script for one.
//!
//! In: runs and tallies. Out: text or JSON. Must not: leave out a seed that went wrong.

use super::batch::{Tally, play_all};
use super::clock::SEC;
use super::draw::draw;
use super::scenario::Scenario;
use super::shrink::shrink;
use super::text::print_scenario;
use super::{Rest, Run, play};
use std::fmt::Write as _;
use std::io::{self, Write};
use std::ops::Range;

/// What is asked for.
#[derive(Clone, Debug)]
pub enum Wanted {
    /// Many seeds, summed up.
    Seeds {
        /// Which.
        seeds: Range<u64>,
        /// Always so many sites; none: as the seed draws.
        sites: Option<usize>,
    },
    /// One seed with its timeline.
    One {
        /// Which.
        seed: u64,
        /// See above.
        sites: Option<usize>,
        /// As short as it can be and still go wrong.
        shrunk: bool,
    },
    /// A scenario with its timeline.
    Scenario(Box<Scenario>),
}

/// Does what is asked for and writes it; returns whether nothing went wrong.
pub fn report(
    wanted: &Wanted,
    json: bool,
    threads: usize,
    out: &mut dyn Write,
    progress: impl Fn(u64) + Sync,
) -> io::Result<bool> {
    match wanted {
        Wanted::Seeds { seeds, sites } => {
            let tally = play_all(seeds.clone(), *sites, threads, progress);
            let text = if json { tally_json(&tally) } else { tally_text(&tally) };
            out.write_all(text.as_bytes())?;
            Ok(tally.is_clean())
        }
        Wanted::One { seed, sites, shrunk } => {
            let scenario = draw(*seed, *sites);
            let scenario = if *shrunk { shrink(&scenario) } else { scenario };
            one(&scenario, json, out)
        }
        Wanted::Scenario(scenario) => one(scenario, json, out),
    }
}

fn one(scenario: &Scenario, json: bool, out: &mut dyn Write) -> io::Result<bool> {
    let run = play(scenario, true);
    let text = if json { run_json(&run) } else { run_text(scenario, &run) };
    out.write_all(text.as_bytes())?;
    Ok(!run.is_wrong())
}

/// One run: its script, its timeline, its verdict.
pub fn run_text(scenario: &Scenario, run: &Run) -> String {
    let mut text = print_scenario(scenario);
    text.push('\n');
    for line in &run.timeline {
        let _ = writeln!(text, "{line}");
    }
    let _ = writeln!(text, "\n{}", verdict(run));
    text
}

/// In one line.
pub fn verdict(run: &Run) -> String {
    match (&run.broken, &run.rest) {
        (Some(broken), _) => {
            format!("seed {}: BROKEN at {} ms: {}: {}", run.seed, broken.at / 1000, broken.promise, broken.words)
        }
        (None, Rest::Serves) => {
            format!("seed {}: serves, {} s after everything healed", run.seed, run.figures.healing / SEC)
        }
        (None, Rest::Blocked(name, why)) => format!("seed {}: stands still, rightly: {name}: {why}", run.seed),
        (None, Rest::Trails(why)) => format!("seed {}: serves, but: {why}", run.seed),
        (None, Rest::Restless(why)) => format!("seed {}: DID NOT COME TO REST: {why}", run.seed),
        (None, Rest::Unknown) => format!("seed {}: was not played to its end", run.seed),
    }
}

fn tally_text(tally: &Tally) -> String {
    let figures = &tally.figures;
    let mut text = format!(
        "{} runs, {} simulated hours, {} events, {} writes of {} attempts, {} failovers, {} grants, {} leaders\n\
         {} serve, {} rightly stand still, {} serve while something trails; most events: {} in seed {}\n",
        tally.runs,
        figures.simulated / (3600 * SEC),
        figures.events,
        figures.writes,
        figures.attempts,
        figures.failovers,
        figures.grants,
        figures.reigns,
        tally.served,
        tally.blocked,
        tally.trailed,
        tally.busiest.0,
        tally.busiest.1,
    );
    for (kind, (count, seeds)) in &tally.wrong {
        let _ = writeln!(text, "{kind}: {count}");
        for (seed, words) in seeds {
            let _ = writeln!(text, "    seed {seed}: {words}");
        }
    }
    text
}

fn tally_json(tally: &Tally) -> String {
    let wrong: Vec<String> = tally
        .wrong
        .iter()
        .map(|(kind, (count, seeds))| {
            let seeds: Vec<String> =
                seeds.iter().map(|(seed, words)| format!("{{\"seed\":{seed},\"words\":{}}}", quoted(words))).collect();
            format!("{{\"kind\":{},\"count\":{count},\"seeds\":[{}]}}", quoted(kind), seeds.join(","))
        })
        .collect();
    let figures = &tally.figures;
    format!(
        "{{\"runs\":{},\"served\":{},\"blocked\":{},\"trailed\":{},\"simulatedSeconds\":{},\"events\":{},\
         \"writes\":{},\"attempts\":{},\"failovers\":{},\"grants\":{},\"clean\":{},\"wrong\":[{}]}}\n",
        tally.runs,
        tally.served,
        tally.blocked,
        tally.trailed,
        figures.simulated / SEC,
        figures.events,
        figures.writes,
        figures.attempts,
        figures.failovers,
        figures.grants,
        tally.is_clean(),
        wrong.join(",")
    )
}

fn run_json(run: &Run) -> String {
    let lines: Vec<String> = run
        .timeline
        .iter()
        .map(|line| format!("{{\"us\":{},\"who\":{},\"what\":{}}}", line.at, quoted(&line.who), quoted(&line.what)))
        .collect();
    format!(
        "{{\"seed\":{},\"wrong\":{},\"verdict\":{},\"timeline\":[{}]}}\n",
        run.seed,
        run.is_wrong(),
        quoted(&verdict(run)),
        lines.join(",")
    )
}

/// A JSON string.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            control if control.is_control() => {
                let _ = write!(out, "\\u{:04x}", u32::from(control));
            }
            letter => out.push(letter),
        }
    }
    out.push('"');
    out
}
