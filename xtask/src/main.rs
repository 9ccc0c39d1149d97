//! The project's chores. In: a word and its arguments. Out: an exit code, and a table of what ran.
//!
//! Kept small on purpose (two dependencies): it is the one program that a fresh clone builds cold. Everything heavier
//! is started from here as a process of its own, built into the user's cache folder (see [`workshop`]).

mod cluster;
mod failures;
mod mutants;
mod play;
mod run;
mod suite;
mod teeth;
mod tidy;
mod workshop;

use anyhow::{Context as _, Result, bail};
use std::process::ExitCode;
use workshop::Workshop;

const HELP: &str = "\
cargo xtask <word>

  test               set everything up and run all that CI runs; ends with a table and a count
  test <step>...     only these steps: fmt clippy tidy testbed tests teeth bench-smoke docs fuzz-check deny
  tidy               the house rules: dependency directions, module docs, file sizes, links, generated files
  codegen            write the generated files (CRDs) anew; `tidy` fails when they are out of step
  play [-- words]    the local world: real servers, an operator, load, faults and a screen; `play --help` tells more
  cluster <word>     a real cluster of three nodes on this machine: up, down, status, kubeconfig, logs, scenes, applies, kills; needs root
  testbed <part>...  bring a real part into the cache: mysql, kubernetes [--all], status, clean
  bench <name>       benchmarks, release build: gtid brain
  bench failover     faults and moves of whole groups with real servers, into docs/performance.md [--trials N] [--only ROW]
  bench footprint    what sidecars, operator, keepers and servers use at rest, into docs/performance-footprint.md [--trials N] [--window S]
  bench scale        one operator and up to 1,000 groups of played sites, into docs/performance-scale.md [--groups N]
  model [--deep]     exhaustive searches over the brain's own functions: minutes, or hours
  teeth              every rule is taken away in turn, and a test or a search has to notice
  mutants [module]   one expression of the brain is changed at a time, and its unit tests have to notice: minutes
  fuzz <target> <s>  fuzz a target for so many seconds: gtid_set
  help               this page

Everything fetched or built is kept in $BLOODRAVEN_CACHE_DIR, else $XDG_CACHE_HOME/bloodraven, else
~/.cache/bloodraven. Deleting that folder is always safe; the next run fetches and builds again.";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::from(if error.is::<UnknownWord>() { 2 } else { 1 })
        }
    }
}

/// The word is not one of ours: the exit code is 2, as for every program of the house.
#[derive(Debug)]
struct UnknownWord(String);

impl std::fmt::Display for UnknownWord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "unknown word '{}'; `cargo xtask help` lists them", self.0)
    }
}

impl std::error::Error for UnknownWord {}

fn dispatch(words: &[String]) -> Result<()> {
    let (word, rest) = match words.split_first() {
        Some((word, rest)) => (word.as_str(), rest),
        None => ("help", words),
    };
    match word {
        "help" | "--help" | "-h" => {
            println!("{HELP}");
            Ok(())
        }
        "test" => suite::run(&Workshop::open()?, rest),
        "tidy" => tidy::run(&Workshop::open()?),
        "codegen" => tidy::generated::write(&Workshop::open()?),
        "play" => play::run(rest),
        "cluster" => cluster::run(rest),
        "testbed" => testbed(&Workshop::open()?, rest),
        "bench" => bench(&Workshop::open()?, rest),
        "teeth" => teeth::run(&Workshop::open()?, teeth::Show::All),
        "mutants" => mutants::run(&Workshop::open()?, rest),
        "model" => model(&Workshop::open()?, rest),
        "fuzz" => fuzz(&Workshop::open()?, rest),
        other => Err(UnknownWord(other.to_owned()).into()),
    }
}

fn testbed(workshop: &Workshop, words: &[String]) -> Result<()> {
    if words.is_empty() {
        bail!("name a part: mysql, kubernetes, status or clean");
    }
    run::inherit(workshop.program("bloodraven-testbed")?.args(words))
}

fn bench(workshop: &Workshop, words: &[String]) -> Result<()> {
    match words {
        [name] if ["gtid", "brain"].contains(&name.as_str()) => {
            run::inherit(workshop.cargo("bench").args(["--package", &format!("bloodraven-{name}"), "--benches"]))
        }
        [name, rest @ ..] if name == "failover" => play::bench_failover(workshop, rest),
        [name, rest @ ..] if name == "footprint" => play::bench_footprint(workshop, rest),
        [name, rest @ ..] if name == "scale" => play::bench_scale(workshop, rest),
        _ => bail!("name a benchmark: gtid, brain, failover, footprint or scale"),
    }
}

fn model(workshop: &Workshop, words: &[String]) -> Result<()> {
    let mut cargo = workshop.cargo("run");
    cargo.args(["--quiet", "--release", "--package", "bloodraven-sim", "--bin", "bloodraven-model", "--"]);
    run::inherit(cargo.args(words))
}

fn fuzz(workshop: &Workshop, words: &[String]) -> Result<()> {
    let [target, seconds] = words else {
        bail!("name a target and a time in seconds: cargo xtask fuzz gtid_set 300");
    };
    let seconds: u32 = seconds.parse().with_context(|| format!("'{seconds}' is not a number of seconds"))?;
    let corpus = workshop.root.join("fuzz/corpus").join(target);
    std::fs::create_dir_all(&corpus).with_context(|| format!("cannot make {}", corpus.display()))?;
    let tool = workshop.tool("cargo-fuzz", workshop::CARGO_FUZZ)?;
    run::inherit(&mut workshop.fuzz(&tool, target, seconds))
}
