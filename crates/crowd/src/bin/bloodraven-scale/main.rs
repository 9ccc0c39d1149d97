//! Scale and footprint, measured: one real operator against up to a thousand groups of played sites.
//!
//! In: the product's program, how many groups. Out: a table, and the page `docs/performance-scale.md`. Must not: run for ever
//! (every wait has a bound, and a run that met one says so), or leave anything behind when it is killed.

mod measure;
mod page;

use anyhow::{Context as _, Result, bail};
use bloodraven_crowd::{Stage, place};
use bloodraven_testbed::scratch::Scratch;
use measure::{Measured, Steady, WINDOW, Windows};
use page::Page;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

const HELP: &str = "\
bloodraven-scale --bloodraven PATH [--keeper PATH] [--page FILE] [--groups N] [--window SECONDS]

Started by `cargo xtask bench scale`, which provides the programs. N is 1000 unless it is said. Everything is watched for 40
seconds; less, and at N groups alone, shows that the harness works, and no figures.";

/// Sizes that are measured, as far as they are not more than was asked for.
const SIZES: [usize; 3] = [1, 100, 1000];

/// Groups that lose their primary in the same moment.
const LOSERS: usize = 100;

/// What the words ask for.
struct Wanted {
    bloodraven: PathBuf,
    keeper: Option<PathBuf>,
    page: Option<PathBuf>,
    groups: usize,
    window: Duration,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let wanted = match understand(&words) {
        Ok(wanted) => wanted,
        Err(error) => {
            eprintln!("scale: {error:#}\n\n{HELP}");
            return ExitCode::from(2);
        }
    };
    match if place::is_inside() { run(&wanted) } else { enter(&words) } {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("scale: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn understand(words: &[String]) -> Result<Wanted> {
    let mut wanted = Wanted { bloodraven: PathBuf::new(), keeper: None, page: None, groups: 1000, window: WINDOW };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let value = words.next().with_context(|| format!("{word} needs a value"))?;
        match word.as_str() {
            "--bloodraven" => wanted.bloodraven = value.into(),
            "--keeper" => wanted.keeper = Some(value.into()),
            "--page" => wanted.page = Some(value.into()),
            "--groups" => {
                let groups = value.parse().ok().filter(|groups| (1..=1000).contains(groups));
                wanted.groups = groups.with_context(|| format!("{value} is not a number from 1 to 1000"))?;
            }
            "--window" => {
                let seconds = value.parse().ok().filter(|seconds| (1..=600).contains(seconds));
                let seconds = seconds.with_context(|| format!("{value} is not a number of seconds from 1 to 600"))?;
                wanted.window = Duration::from_secs(seconds);
            }
            other => bail!("'{other}' is not known"),
        }
    }
    if wanted.bloodraven.as_os_str().is_empty() {
        bail!("--bloodraven is missing");
    }
    Ok(wanted)
}

/// The same program in a network of its own, in the place of this one.
fn enter(words: &[String]) -> Result<()> {
    let own = std::env::current_exe().context("this program has no path")?;
    Err(place::inside(&own).args(words).exec()).context("cannot start unshare (of util-linux)")
}

fn run(wanted: &Wanted) -> Result<()> {
    let scratch = Scratch::new("scale")?;
    place::furnish(scratch.path())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut page = Page::new(wanted.page.clone(), &wanted.bloodraven, wanted.keeper.as_deref());
    if wanted.window != WINDOW {
        page.watched_for(wanted.window);
    }
    let measured = runtime.block_on(measure(wanted, scratch, &mut page));
    // What was measured stays, also when the rest was not to be had.
    if let Err(error) = &measured {
        page.cut_short(&format!("{error:#}"));
    }
    page.write()?;
    println!("\n{}", page.text());
    measured
}

async fn measure(wanted: &Wanted, scratch: Scratch, page: &mut Page) -> Result<()> {
    // Without figures there is nothing to compare with fewer groups.
    let compares = wanted.window == WINDOW;
    let mut sizes: Vec<usize> = SIZES.into_iter().filter(|size| compares && *size <= wanted.groups).collect();
    if sizes.last() != Some(&wanted.groups) {
        sizes.push(wanted.groups);
    }
    say("an API server starts");
    let mut stage = Stage::begin(&wanted.bloodraven, scratch, wanted.groups).await?;
    let windows = Windows::of(wanted.window);
    for size in sizes {
        let steady = steady(&mut stage, size, windows).await.with_context(|| format!("{size} groups"))?;
        page.take(Measured::Steady(steady))?;
    }
    say(&format!("{} groups lose their primary at once", LOSERS.min(stage.groups())));
    let lost = measure::lose_primaries(&stage, LOSERS).await?;
    page.take(Measured::Lost(lost))?;
    if stage.groups() > 1 {
        say("one site of one group hangs");
        let hung = measure::hang_one(&stage, windows).await?;
        page.take(Measured::Hung(hung))?;
    }
    page.unknown(&stage.crowd.unknown());
    stage.stop_operator()
}

async fn steady(stage: &mut Stage, size: usize, windows: Windows) -> Result<Steady> {
    say(&format!("{size} groups are made"));
    stage.grow(size).await?;
    if stage.operator().is_none() {
        stage.start_operator()?;
    }
    // A group takes a lease to begin, and many calls to a store that shares the machine with everybody else.
    let limit = Duration::from_mins(2) + Duration::from_secs(1) * u32::try_from(size).unwrap_or(u32::MAX);
    stage.all_ready(limit, told(size)).await?;
    say(&format!("{size} groups are ready; the operator starts anew, and is watched"));
    measure::steady(stage, windows).await
}

/// Not every number: a line for each twentieth.
fn told(size: usize) -> impl Fn(usize) {
    let last = std::cell::Cell::new(0);
    move |ready| {
        if ready == size || ready >= last.get() + size.div_ceil(20) {
            last.set(ready);
            say(&format!("{ready} of {size} groups are ready"));
        }
    }
}

fn say(line: &str) {
    eprintln!("scale: {line}");
}
