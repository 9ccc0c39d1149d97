//! Runs the exhaustive searches that take longer than a test may, and prints what they saw.
//!
//! In: nothing, or `--deep`. Out: a row for each search, exit code 1 and the shortest trace if a promise was broken.

use bloodraven_sim::model::{Bounds, search};
use std::process::ExitCode;
use std::time::Instant;

/// A name, its bounds, and after how many states the search gives up.
type Row = (&'static str, Bounds, usize);

const ONE_MOVE: Bounds = Bounds::ONE_MOVE;
const FAULTS: Bounds = Bounds::FAULTS;

const MINUTES: &[Row] = &[
    ("2 sites, one move", ONE_MOVE, 2_000_000),
    ("2 sites, one move, one fault of each kind", FAULTS, 1_000_000),
    ("2 sites, one move, late answers", Bounds { lease: 2, ..ONE_MOVE }, 1_000_000),
    ("2 sites, one move, all mail late", Bounds { lease: 2, slow_mail: true, ..ONE_MOVE }, 1_000_000),
    ("3 sites, one move, one voter change", Bounds { sites: 3, epochs: 4, voter_changes: 1, ..ONE_MOVE }, 500_000),
];

const DEEP: &[Row] = &[
    ("2 sites, two moves", Bounds { epochs: 5, ..ONE_MOVE }, 40_000_000),
    ("2 sites, one move, one fault of each kind", FAULTS, 40_000_000),
    ("2 sites, one move, late answers", Bounds { lease: 2, ..ONE_MOVE }, 40_000_000),
    ("2 sites, one move, late answers, a crash, a new leader", Bounds { lease: 2, ..FAULTS }, 40_000_000),
    ("3 sites, one move", Bounds { sites: 3, ..ONE_MOVE }, 40_000_000),
    ("3 sites, one voter change", Bounds { sites: 3, epochs: 4, voter_changes: 1, ..ONE_MOVE }, 40_000_000),
    ("4 sites, two vouches needed", Bounds { sites: 4, min_peers: 2, ..ONE_MOVE }, 40_000_000),
];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let rows = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => MINUTES,
        ["--deep"] => DEEP,
        _ => {
            eprintln!("bloodraven-model: unknown: {}; it takes nothing, or --deep", words.join(" "));
            return ExitCode::from(2);
        }
    };
    println!("{:<56} {:>10} {:>11} {:>10} {:>8} {:>7}  seen", "search", "states", "steps", "writing", "healed", "s");
    let mut safe = true;
    for (name, bounds, most) in rows {
        safe &= run(name, *bounds, *most);
    }
    ExitCode::from(u8::from(!safe))
}

#[expect(clippy::disallowed_methods, reason = "the searches are timed for people; nothing is decided on it")]
fn run(name: &str, bounds: Bounds, most: usize) -> bool {
    let began = Instant::now();
    let found = search(bounds, most);
    let seen = if found.complete { "all" } else { "in part" };
    println!(
        "{name:<56} {:>10} {:>11} {:>10} {:>8} {:>7.1}  {seen}",
        found.states,
        found.steps,
        found.with_writer,
        found.healed,
        began.elapsed().as_secs_f64()
    );
    if let Some((breach, trace)) = &found.breach {
        println!("BROKEN: {breach:?}, by");
        for action in trace {
            println!("  {action:?}");
        }
    }
    found.breach.is_none()
}
