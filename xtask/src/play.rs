//! `cargo xtask play`: the local world with everything that it needs, from a fresh clone.
//!
//! In: words for `bloodraven playground`. Out: that program in the place of this one. Must not: hold the build folder while somebody plays: the
//! programs are linked into a folder of their own, so that the next build does not replace them under a running group.

use crate::run;
use crate::workshop::Workshop;
use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use std::ffi::OsString;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

const HELP: &str = "\
cargo xtask play [--release] [-- words of `bloodraven playground`]

Builds bloodraven and the keeper (unoptimised; --release: optimised, for figures), finds or fetches MySQL, and opens the
playground: three sites with real servers, an operator, load and a ledger. `cargo xtask play -- --help` tells its words.";

/// The programs of the local world.
const PROGRAMS: [&str; 2] = ["bloodraven", "keeper"];

/// What measures them.
const MEASURES: &str = "bloodraven-bench";

/// What measures one operator with many groups.
const MEASURES_SCALE: (&str, &str) = ("bloodraven-crowd", "bloodraven-scale");

/// What the words ask for.
struct Wanted {
    release: bool,
    help: bool,
    words: Vec<String>,
}

/// Builds, provides, plays.
pub(crate) fn run(words: &[String]) -> Result<()> {
    let wanted = understand(words)?;
    if wanted.help {
        println!("{HELP}");
        return Ok(());
    }
    let workshop = Workshop::open()?;
    let built = build(&workshop, wanted.release)?;
    let bench = Bench::new(&workshop.cache, &built)?;
    let mysql = provide_mysql(&workshop)?;
    // From here on others may build.
    drop(workshop);
    let mut play = Command::new(bench.program("bloodraven"));
    play.arg("playground").arg("--keeper").arg(bench.program("keeper")).args(mysql).args(&wanted.words);
    // In the place of this process: keys, signals and the exit code are the playground's alone.
    Err(play.exec()).context("cannot start the playground")
}

/// Faults and moves, into their page.
pub(crate) fn bench_failover(workshop: &Workshop, words: &[String]) -> Result<()> {
    bench_group(workshop, "failover", "docs/performance.md", words)
}

/// What processes use at rest, into its page.
pub(crate) fn bench_footprint(workshop: &Workshop, words: &[String]) -> Result<()> {
    bench_group(workshop, "footprint", "docs/performance-footprint.md", words)
}

/// Builds, provides, measures. The build folder stays locked: who builds meanwhile would be measured, too.
fn bench_group(workshop: &Workshop, name: &str, page: &str, words: &[String]) -> Result<()> {
    let built = build(workshop, true)?;
    let bench = Bench::new(&workshop.cache, &built)?;
    let mut measure = Command::new(built.join(MEASURES));
    measure.arg(name).arg("--bloodraven").arg(bench.program("bloodraven"));
    measure.arg("--keeper").arg(bench.program("keeper")).args(provide_mysql(workshop)?);
    run::inherit(measure.arg("--page").arg(workshop.root.join(page)).args(words))
}

/// Builds, provides an API server's programs, measures. The build folder stays locked, as above.
pub(crate) fn bench_scale(workshop: &Workshop, words: &[String]) -> Result<()> {
    run::inherit(workshop.program("bloodraven-testbed")?.arg("kubernetes")).context("cannot provide Kubernetes")?;
    let built = build(workshop, true)?;
    let mut measure = Command::new(built.join(MEASURES_SCALE.1));
    measure.env("BLOODRAVEN_CACHE_DIR", &workshop.cache);
    measure.arg("--bloodraven").arg(built.join("bloodraven")).arg("--keeper").arg(built.join("keeper"));
    run::inherit(measure.arg("--page").arg(workshop.root.join("docs/performance-scale.md")).args(words))
}

fn understand(words: &[String]) -> Result<Wanted> {
    let at = words.iter().position(|word| word == "--");
    let (ours, theirs) = words.split_at(at.unwrap_or(words.len()));
    let mut wanted = Wanted { release: false, help: false, words: theirs.iter().skip(1).cloned().collect() };
    for word in ours {
        match word.as_str() {
            "--release" => wanted.release = true,
            "--help" | "-h" => wanted.help = true,
            other => {
                bail!("'{other}' is not known; words of the playground come after `--`: cargo xtask play -- {other}")
            }
        }
    }
    Ok(wanted)
}

/// The folder with the built programs.
fn build(workshop: &Workshop, release: bool) -> Result<PathBuf> {
    if !release {
        let program = workshop.program("bloodraven")?;
        return Ok(Path::new(program.get_program()).parent().context("a program is in a folder")?.to_owned());
    }
    let mut cargo = workshop.cargo("build");
    cargo.args(["--quiet", "--release", "--bins"]);
    cargo.args(
        ["bloodraven", "bloodraven-keeper", MEASURES, MEASURES_SCALE.0]
            .iter()
            .flat_map(|package| ["--package", package]),
    );
    run::stream("building", &mut cargo, |_| {})?;
    Ok(workshop.cache.join("target/release"))
}

/// The words that tell the playground how to run MySQL.
fn provide_mysql(workshop: &Workshop) -> Result<Vec<OsString>> {
    let mut testbed = workshop.program("bloodraven-testbed")?;
    // What takes long is told on standard error, which stays the terminal's.
    testbed.args(["mysql", "--json"]).stderr(std::process::Stdio::inherit());
    let told = run::capture(&mut testbed).context("cannot provide MySQL")?;
    let told: Value =
        serde_json::from_str(&told).context("bloodraven-testbed mysql --json did not answer with JSON")?;
    let command = told["mysqld"].as_array().context("bloodraven-testbed mysql --json named no mysqld")?;
    let mut words = Vec::new();
    for word in command {
        words.push(OsString::from("--mysqld"));
        words.push(word.as_str().context("a word of mysqld's command is no text")?.into());
    }
    Ok(words)
}

/// A folder of this process with links to the programs. Those of processes that have ended are removed first.
struct Bench(PathBuf);

impl Bench {
    fn new(cache: &Path, built: &Path) -> Result<Self> {
        let all = cache.join("play");
        for old in fs::read_dir(&all).into_iter().flatten().flatten() {
            let lives = Path::new("/proc").join(old.file_name()).exists();
            if !lives {
                // What cannot be removed is in nobody's way.
                _ = fs::remove_dir_all(old.path());
            }
        }
        let bench = Self(all.join(std::process::id().to_string()));
        // A process before this one may have had the same number.
        _ = fs::remove_dir_all(&bench.0);
        fs::create_dir_all(&bench.0).with_context(|| format!("cannot make {}", bench.0.display()))?;
        for program in PROGRAMS {
            let (from, to) = (built.join(program), bench.program(program));
            let linked = fs::hard_link(&from, &to).or_else(|_| fs::copy(&from, &to).map(|_| ()));
            linked.with_context(|| format!("cannot put {} into {}", from.display(), bench.0.display()))?;
        }
        Ok(bench)
    }

    fn program(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_playground_come_after_two_dashes() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let wanted = understand(&words("--release -- --headless --script x")).unwrap();
        assert!(wanted.release && !wanted.help);
        assert_eq!(wanted.words, ["--headless", "--script", "x"]);
        let refused = understand(&words("--headless")).map(|_| ()).unwrap_err().to_string();
        assert!(refused.contains("cargo xtask play -- --headless"), "{refused}");
    }
}
