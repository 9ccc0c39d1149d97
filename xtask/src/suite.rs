//! `cargo xtask test`: everything that CI runs, in order, with a table at the end.
//!
//! In: the names of the steps to run (none = all). Out: success only if every step succeeded, every test target of the
//! workspace was seen to run, and no test was skipped.

use crate::failures::Failures;
use crate::run;
use crate::teeth;
use crate::tidy;
use crate::workshop::{CARGO_DENY, Workshop};
use anyhow::{Result, anyhow, bail};
use std::collections::BTreeSet;
use std::process::Command;
use std::time::Duration;

/// One step: its name and what it does; later steps still run after a failure, unless they need what failed.
struct Step {
    name: &'static str,
    work: fn(&Workshop, &mut Tally) -> Result<()>,
}

const STEPS: &[Step] = &[
    Step { name: "fmt", work: fmt },
    Step { name: "clippy", work: clippy },
    Step { name: "tidy", work: |workshop, _| tidy::run(workshop) },
    Step { name: "testbed", work: testbed },
    Step { name: "tests", work: tests },
    Step { name: "teeth", work: |workshop, _| teeth::run(workshop, teeth::Show::Wrong) },
    Step { name: "bench-smoke", work: bench_smoke },
    Step { name: "docs", work: docs },
    Step { name: "fuzz-check", work: fuzz_check },
    Step { name: "deny", work: deny },
];

/// What the test runners said.
#[derive(Default)]
struct Tally {
    passed: u64,
    failed: u64,
    skipped: u64,
    ran: BTreeSet<String>,
    failures: Failures,
}

struct Row {
    name: &'static str,
    outcome: Result<()>,
    took: Duration,
}

/// Runs the named steps, all without a name.
pub(crate) fn run(workshop: &Workshop, names: &[String]) -> Result<()> {
    if let Some(unknown) = names.iter().find(|name| STEPS.iter().all(|step| step.name != name.as_str())) {
        let known: Vec<_> = STEPS.iter().map(|step| step.name).collect();
        bail!("unknown step '{unknown}'; the steps are: {}", known.join(" "));
    }
    let wanted = |step: &&Step| names.is_empty() || names.iter().any(|name| name == step.name);
    let mut tally = Tally::default();
    let mut rows = Vec::new();
    for step in STEPS.iter().filter(wanted) {
        println!("\n=== {} ===", step.name);
        let began = run::now();
        let outcome = (step.work)(workshop, &mut tally);
        if let Err(error) = &outcome {
            println!("{} failed: {error:#}", step.name);
        }
        rows.push(Row { name: step.name, outcome, took: began.elapsed() });
    }
    if names.is_empty() {
        let began = run::now();
        rows.push(Row { name: "completeness", outcome: complete(workshop, &tally), took: began.elapsed() });
    }
    report(&rows, &tally)
}

fn report(rows: &[Row], tally: &Tally) -> Result<()> {
    println!("\n{:<14} {:>8}  result", "step", "seconds");
    for row in rows {
        let verdict = match &row.outcome {
            Ok(()) => "ok".to_owned(),
            Err(error) => format!("FAILED: {error:#}"),
        };
        println!("{:<14} {:>8.1}  {verdict}", row.name, row.took.as_secs_f64());
    }
    let total: Duration = rows.iter().map(|row| row.took).sum();
    println!("{:<14} {:>8.1}", "total", total.as_secs_f64());
    for line in tally.failures.lines() {
        println!("{line}");
    }
    let broken = rows.iter().filter(|row| row.outcome.is_err()).count();
    println!("\n{} passed, {} failed", tally.passed, tally.failed);
    if broken > 0 {
        bail!("{broken} of {} steps failed", rows.len());
    }
    Ok(())
}

fn fmt(workshop: &Workshop, _: &mut Tally) -> Result<()> {
    run::inherit(workshop.cargo("fmt").args(["--all", "--check"]))
}

fn clippy(workshop: &Workshop, _: &mut Tally) -> Result<()> {
    let mut cargo = workshop.cargo("clippy");
    cargo.args(["--locked", "--workspace", "--all-targets", "--all-features", "--quiet", "--", "-D", "warnings"]);
    run::stream("clippy", &mut cargo, |_| {})
}

fn testbed(workshop: &Workshop, _: &mut Tally) -> Result<()> {
    for part in [["mysql"].as_slice(), &["kubernetes", "--all"], &["cluster", "parts"]] {
        run::stream("testbed", workshop.program("bloodraven-testbed")?.args(part), |_| {})?;
    }
    Ok(())
}

/// The target whose tests wait for most of their time: whole groups, one after the other. It runs beside all others.
const PATIENT: &str = "live";

/// Unit, documentation and live tests, built in one go: what is selected decides which features the dependencies get, and
/// every other choice would compile them again.
fn tests(workshop: &Workshop, tally: &mut Tally) -> Result<()> {
    run::stream("building the tests", test_command(workshop).arg("--no-run"), |_| {})?;
    let patient = [words(&["--test", PATIENT])];
    let others = [other_targets(workshop)?, words(&["--doc"])];
    let (beside, here) = std::thread::scope(|scope| {
        let beside = scope.spawn(|| lane(workshop, "live| ", &patient));
        let here = lane(workshop, "", &others);
        (beside.join(), here)
    });
    let beside = beside.unwrap_or_else(|_| (Tally::default(), Err(anyhow!("the lane of {PATIENT} broke off"))));
    let mut outcome = Ok(());
    for (counted, ended) in [here, beside] {
        tally.add(counted);
        outcome = outcome.and(ended);
    }
    if tally.passed == 0 {
        bail!("no test ran");
    }
    outcome
}

/// One selection of tests after the other.
fn lane(workshop: &Workshop, whose: &str, selections: &[Vec<String>]) -> (Tally, Result<()>) {
    let mut tally = Tally::default();
    let mut outcome = Ok(());
    for selection in selections {
        let mut cargo = test_command(workshop);
        let ended = run::stream_as(whose, "tests", cargo.args(selection), |line| {
            tally.target(line);
            tally.result(line);
            tally.failures.hear(line);
        });
        outcome = outcome.and(ended);
    }
    (tally, outcome)
}

fn test_command(workshop: &Workshop) -> Command {
    let mut cargo = workshop.cargo("test");
    cargo.args(["--locked", "--workspace", "--all-features", "--no-fail-fast"]);
    cargo
}

/// Everything that holds tests but the patient one, by name: cargo cannot leave one out.
fn other_targets(workshop: &Workshop) -> Result<Vec<String>> {
    let mut selection = words(&["--lib", "--bins"]);
    for package in workshop.packages()? {
        for target in package["targets"].as_array().into_iter().flatten() {
            let is_test = target["kind"].as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "test"));
            let name = target["name"].as_str().unwrap_or_default();
            if is_test && name != PATIENT {
                selection.extend(words(&["--test", name]));
            }
        }
    }
    Ok(selection)
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Benchmarks run once each, so that they cannot rot; their figures are for `cargo xtask bench`.
fn bench_smoke(workshop: &Workshop, tally: &mut Tally) -> Result<()> {
    let mut cargo = workshop.cargo("test");
    cargo.args(["--locked", "--workspace", "--all-features", "--bench", "*", "--no-fail-fast"]);
    run::stream("benchmarks", &mut cargo, |line| tally.target(line))
}

fn docs(workshop: &Workshop, _: &mut Tally) -> Result<()> {
    let mut cargo = workshop.cargo("doc");
    cargo.args(["--locked", "--workspace", "--all-features", "--no-deps", "--document-private-items", "--quiet"]);
    cargo.env("RUSTDOCFLAGS", "-D warnings");
    run::stream("docs", &mut cargo, |_| {})
}

/// The fuzz targets compile; running them takes minutes and is `cargo xtask fuzz`.
fn fuzz_check(workshop: &Workshop, _: &mut Tally) -> Result<()> {
    let mut cargo = workshop.cargo("check");
    cargo.args(["--locked", "--quiet", "--manifest-path", "fuzz/Cargo.toml"]);
    cargo.env("CARGO_TARGET_DIR", workshop.cache.join("fuzz-target"));
    run::stream("fuzz targets", &mut cargo, |_| {})
}

/// Licences, sources and banned crates; advisories need a database from outside and are the release's business.
fn deny(workshop: &Workshop, _: &mut Tally) -> Result<()> {
    let tool = workshop.tool("cargo-deny", CARGO_DENY)?;
    let mut command = Command::new(tool);
    command.args(["--locked", "--workspace", "check", "--hide-inclusion-graph", "bans", "licenses", "sources"]);
    run::stream("deny", command.current_dir(&workshop.root), |_| {})
}

/// Every target that can hold tests was seen to run, and nothing was skipped.
fn complete(workshop: &Workshop, tally: &Tally) -> Result<()> {
    let mut missing = Vec::new();
    for package in workshop.packages()? {
        for target in package["targets"].as_array().into_iter().flatten() {
            let name = target["name"].as_str().unwrap_or_default().replace('-', "_");
            let is_bench = target["kind"].as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "bench"));
            let holds_tests = target["test"].as_bool() == Some(true) || is_bench;
            if holds_tests && !tally.ran.contains(&name) {
                missing.push(name);
            }
        }
    }
    if !missing.is_empty() {
        bail!("these test targets did not run: {}", missing.join(", "));
    }
    if tally.skipped > 0 {
        bail!("{} tests were skipped; a test that does not run is a defect", tally.skipped);
    }
    Ok(())
}

impl Tally {
    /// What another runner said, too.
    fn add(&mut self, other: Self) {
        let Self { passed, failed, skipped, ran, failures } = other;
        self.passed += passed;
        self.failed += failed;
        self.skipped += skipped;
        self.ran.extend(ran);
        self.failures.add(failures);
    }

    /// `     Running tests/cli.rs (/…/deps/cli-0123456789abcdef)`
    fn target(&mut self, line: &str) {
        if let Some(rest) = line.trim_start().strip_prefix("Running ")
            && let Some((_, program)) = rest.rsplit_once('/')
            && let Some((name, _)) = program.rsplit_once('-')
        {
            self.ran.insert(name.to_owned());
        }
    }

    /// `test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s`
    fn result(&mut self, line: &str) {
        let Some(rest) = line.strip_prefix("test result: ") else { return };
        let count = |word: &str| {
            rest.split([';', '.']).find_map(|part| part.trim().strip_suffix(word)?.trim().parse().ok()).unwrap_or(0)
        };
        self.passed += count("passed");
        self.failed += count("failed");
        self.skipped += count("ignored") + count("filtered out");
    }
}

#[cfg(test)]
mod tests {
    use super::Tally;

    #[test]
    fn result_lines_are_counted() {
        let mut tally = Tally::default();
        tally.result("test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.01s");
        tally.result("test result: FAILED. 4 passed; 5 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1s");
        tally.result("some other line: 9 passed");
        assert_eq!((tally.passed, tally.failed, tally.skipped), (7, 5, 3));
    }

    #[test]
    fn running_lines_name_the_target() {
        let mut tally = Tally::default();
        tally.target("     Running unittests src/lib.rs (/cache/target/debug/deps/bloodraven_gtid-9f0a3c)");
        tally.target("     Running tests/cli.rs (target/debug/deps/cli-11aa)");
        tally.target("   Doc-tests bloodraven_gtid");
        assert_eq!(tally.ran.into_iter().collect::<Vec<_>>(), ["bloodraven_gtid", "cli"]);
    }
}
