//! Runs the exhaustive searches and the swarm walks, and prints what they saw.
//!
//! In: see [`HELP`]. Out: a row for each search, exit code 1 and the shortest trace if a promise was broken; with
//! `--without` the other way round: 0 if it was broken, which is what is wanted then.

use bloodraven_brain::rule::switch_off;
use bloodraven_sim::model::rows::{DEEP, MINUTES, MOVE, ROAM, Row};
use bloodraven_sim::model::teeth::{Caught, Tooth, search_without};
use bloodraven_sim::model::{Outcome, search, walk};
use std::process::ExitCode;
use std::time::Instant;

const HELP: &str = "\
bloodraven-model                        searches of minutes
bloodraven-model --deep                 longer ones
bloodraven-model --row <part of name>   only the rows of such a name
bloodraven-model --row <part> --most <n> the same, each given up after so many worlds
bloodraven-model --walks <n> --seed <s> so many swarm walks, from that seed on
bloodraven-model --teeth                the table of teeth: name, sign, who notices, why not
bloodraven-model --without <name>       the search that notices when that rule or part is taken away
bloodraven-model --without <name> <row> the same, in the rows of such a name";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => run_all(MINUTES.iter().copied()),
        ["--deep"] => run_all(DEEP.iter().copied()),
        ["--row", name] => run_all(every_row().filter(|row| row.name.contains(name)).copied()),
        ["--row", name, "--most", most] => match most.parse() {
            Ok(most) => run_all(every_row().filter(|row| row.name.contains(name)).map(|row| Row { most, ..*row })),
            Err(_) => unknown(&words),
        },
        ["--walks", walks, "--seed", seed] => match (walks.parse(), seed.parse()) {
            (Ok(walks), Ok(seed)) => run_walks(walks, seed),
            _ => unknown(&words),
        },
        ["--teeth"] => print_teeth(),
        ["--without", name] => run_without(name, None),
        ["--without", name, row] => run_without(name, Some(row)),
        _ => unknown(&words),
    }
}

fn unknown(words: &[String]) -> ExitCode {
    eprintln!("bloodraven-model: unknown: {}\n{HELP}", words.join(" "));
    ExitCode::from(2)
}

fn every_row() -> impl Iterator<Item = &'static Row> {
    MINUTES.iter().chain(DEEP)
}

fn run_all(rows: impl Iterator<Item = Row>) -> ExitCode {
    let titles = ["states", "steps", "writing", "healed", "nodes", "s"];
    let [states, steps, writing, healed, nodes, seconds] = titles;
    println!("{:<52} {states:>10} {steps:>11} {writing:>9} {healed:>7} {nodes:>7} {seconds:>7}  seen", "search");
    let mut safe = true;
    for row in rows {
        let (found, took) = timed(|| search(row.bounds, row.most));
        print_row(&row, &found, took);
        safe &= found.breach.is_none();
    }
    ExitCode::from(u8::from(!safe))
}

fn print_row(row: &Row, found: &Outcome, took: f64) {
    let seen = if found.complete { "all" } else { "in part" };
    let Outcome { states, steps, with_writer, healed, nodes, breach, .. } = found;
    let verdict = if breach.is_some() { "BROKEN" } else { "safe" };
    println!(
        "{:<52} {states:>10} {steps:>11} {with_writer:>9} {healed:>7} {nodes:>7} {took:>7.1}  {seen}, {verdict}",
        row.name
    );
    if let Some((breach, trace)) = breach {
        println!("BROKEN: {breach:?}, by");
        for action in trace {
            println!("  {action:?}");
        }
    }
}

fn run_walks(walks: u64, seed: u64) -> ExitCode {
    let (found, took) = timed(|| walk(ROAM, walks, seed));
    let (walks, steps, writing) = (found.walks, found.steps, found.with_writer);
    println!("{walks} walks from seed {seed}: {steps} steps, {writing} of them with a writer, {took:.1} s");
    let Some((breach, trace, seed)) = found.breach else { return ExitCode::SUCCESS };
    println!("BROKEN: {breach:?}, seed {seed}, by");
    for action in trace {
        println!("  {action:?}");
    }
    ExitCode::FAILURE
}

fn print_teeth() -> ExitCode {
    for tooth in Tooth::all() {
        let (how, why) = match tooth.caught() {
            Caught::UnitTest => ("unit", ""),
            Caught::Both(row) => ("both", row.name),
            Caught::Search(row) => ("search", row.name),
            Caught::Redundant(reason) => ("redundant", reason),
        };
        println!("{}\t{}\t{how}\t{why}", tooth.name(), tooth.sign());
    }
    ExitCode::SUCCESS
}

fn run_without(name: &str, part_of_row: Option<&str>) -> ExitCode {
    let Some(tooth) = Tooth::named(name) else {
        eprintln!("bloodraven-model: there is no rule and no part of that name: {name}");
        return ExitCode::from(2);
    };
    if let Tooth::Rule(rule) = tooth
        && !switch_off(rule)
    {
        eprintln!(
            "bloodraven-model: this build cannot switch rules off; build it with --features bloodraven-brain/teeth"
        );
        return ExitCode::from(2);
    }
    let rows: Vec<Row> = match (part_of_row, tooth.caught()) {
        (Some(part), _) => every_row().filter(|row| row.name.contains(part)).copied().collect(),
        (None, Caught::Search(row) | Caught::Both(row)) => vec![row],
        (None, Caught::UnitTest | Caught::Redundant(_)) => vec![MOVE],
    };
    for row in rows {
        let (found, took) = timed(|| search_without(tooth, &row));
        if let Some((breach, trace)) = found.breach {
            println!(
                "{name}\tcaught\t{breach:?} in {} steps, {} states, {took:.1} s\t{}",
                trace.len(),
                found.states,
                row.name
            );
            return ExitCode::SUCCESS;
        }
    }
    println!("{name}\tmissed\t\t");
    ExitCode::FAILURE
}

#[expect(clippy::disallowed_methods, reason = "the searches are timed for people; nothing is decided on it")]
fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let began = Instant::now();
    let done = work();
    (done, began.elapsed().as_secs_f64())
}
