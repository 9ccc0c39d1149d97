//! Runs the exhaustive searches that take longer than a test may, and prints what they saw.
//!
//! In: nothing, or `--deep`. Out: a row for each search, exit code 1 and the shortest trace if a promise was broken.

use bloodraven_sim::model::rows::{DEEP, MINUTES, Row};
use bloodraven_sim::model::search;
use std::process::ExitCode;
use std::time::Instant;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let rows = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => MINUTES,
        ["--deep"] => DEEP,
        _ => return ExitCode::from(2),
    };
    println!("{:<56} {:>10} {:>11} {:>10} {:>8} {:>8} {:>7}  seen", "search", "states", "steps", "writing", "healed", "nodes", "s");
    let mut safe = true;
    for row in rows {
        safe &= run(row);
    }
    ExitCode::from(u8::from(!safe))
}

#[expect(clippy::disallowed_methods, reason = "the searches are timed for people; nothing is decided on it")]
fn run(row: &Row) -> bool {
    let began = Instant::now();
    let found = search(row.bounds, row.most);
    let seen = if found.complete { "all" } else { "in part" };
    println!(
        "{:<56} {:>10} {:>11} {:>10} {:>8} {:>8} {:>7.1}  {seen}",
        row.name,
        found.states,
        found.steps,
        found.with_writer,
        found.healed,
        found.nodes,
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
