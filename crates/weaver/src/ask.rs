//! Which tests notice which mutant. In: the woven test binary. Out: a verdict for each mutant. Must not: ask a test that
//! does not reach the changed place; tests that do the same thing each time reach the same places up to there, so such a
//! test cannot notice.

use crate::modules::Module;
use crate::places::Code;
use crate::report;
use crate::run::{self, End, Switch, now};
use anyhow::{Context as _, Result, bail};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// What became of a mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The compiler refuses it.
    NotBuilt,
    /// A test fails.
    Caught { by_own: bool },
    /// The tests do not come to an end.
    ByTime,
    /// All tests that reach it pass; so many are they.
    Survived { asked: usize },
}

/// The longest that one test may take while nothing is changed.
const LONGEST: Duration = Duration::from_mins(10);

/// A test that takes longer than that is asked last, and alone.
const QUICK: Duration = Duration::from_secs(1);

/// So much longer than unchanged may a changed run take.
const SLOWER: u32 = 10;

/// What a run may take in any case: a busy machine is no endless loop.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// How often people are told.
const TELL: Duration = Duration::from_secs(15);

/// A test, and what it takes.
struct Test {
    name: String,
    takes: Duration,
}

/// How tests are asked.
pub(crate) struct Asking<'a> {
    /// The woven test binary.
    pub(crate) binary: &'a Path,
    /// So many at a time.
    pub(crate) jobs: usize,
    /// See [`PATIENCE`].
    pub(crate) patience: Duration,
}

impl Asking<'_> {
    /// The verdict of every mutant, by its number.
    pub(crate) fn ask(&self, into: &Path, code: &Code, modules: &[Module]) -> Result<Vec<Verdict>> {
        let names = list(self.binary)?;
        println!("weaver: {} tests run once, to see what they reach", names.len());
        let notes = into.join("notes");
        fs::create_dir_all(&notes).context("cannot make the folder of notes")?;
        let reached = each(self.jobs, names.len(), |number| note(self.binary, &notes, number, &names[number]))?;
        let mut reaching: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        let mut tests = Vec::new();
        for (number, (name, (takes, mutants))) in names.into_iter().zip(reached).enumerate() {
            tests.push(Test { name, takes });
            for mutant in mutants {
                reaching.entry(mutant).or_default().push(number);
            }
        }
        let reaching = |mutant: usize, foreign_and_slow: bool| {
            let prefix = modules[code.mutants[mutant].module].prefix();
            let of_mutant = reaching.get(&mutant).into_iter().flatten().map(|test| &tests[*test]);
            let kind = |test: &&Test| (!test.name.starts_with(&prefix) && test.takes >= QUICK) == foreign_and_slow;
            (of_mutant.filter(kind).collect::<Vec<&Test>>(), prefix)
        };
        println!("weaver: {} mutants, one after the other", code.mutants.len());
        let mut verdicts = each(self.jobs, code.mutants.len(), |mutant| {
            if code.left_out.contains(&mutant) {
                return Ok(Verdict::NotBuilt);
            }
            let (tests, prefix) = reaching(mutant, false);
            self.judge(mutant, &prefix, &tests)
        })?;
        let left: Vec<usize> = (0..verdicts.len()).filter(|mutant| verdicts[*mutant].is_survival()).collect();
        for mutant in &left {
            println!("weaver: left so far: {}", report::name(&code.mutants[*mutant]));
        }
        println!("weaver: {} are put to the slow tests of other modules", left.len());
        let again = each(self.jobs, left.len(), |number| {
            let (tests, prefix) = reaching(left[number], true);
            self.judge(left[number], &prefix, &tests)
        })?;
        for (mutant, verdict) in left.into_iter().zip(again) {
            verdicts[mutant] = match (&verdicts[mutant], verdict) {
                (Verdict::Survived { asked }, Verdict::Survived { asked: more }) => {
                    Verdict::Survived { asked: asked + more }
                }
                (_, verdict) => verdict,
            };
        }
        Ok(verdicts)
    }

    /// Asks the module's own tests first, and of each kind the quick ones first.
    fn judge(&self, mutant: usize, prefix: &str, reaching: &[&Test]) -> Result<Verdict> {
        for own in [true, false] {
            let of_kind = reaching.iter().copied().filter(|test| test.name.starts_with(prefix) == own);
            let (quick, mut slow): (Vec<&Test>, Vec<&Test>) = of_kind.partition(|test| test.takes < QUICK);
            slow.sort_by_key(|test| test.takes);
            let batches = std::iter::once(quick).chain(slow.into_iter().map(|test| vec![test]));
            for batch in batches.filter(|batch| !batch.is_empty()) {
                let names: Vec<&str> = batch.iter().map(|test| test.name.as_str()).collect();
                let bound = self.patience + batch.iter().map(|test| test.takes).sum::<Duration>() * SLOWER;
                match run::run(self.binary, &names, &Switch::On(mutant), bound)? {
                    End::Passed => {}
                    End::Failed => return Ok(Verdict::Caught { by_own: own }),
                    End::TooLong => return Ok(Verdict::ByTime),
                }
            }
        }
        Ok(Verdict::Survived { asked: reaching.len() })
    }
}

impl Verdict {
    const fn is_survival(&self) -> bool {
        matches!(self, Self::Survived { .. })
    }
}

/// The names of all tests.
fn list(binary: &Path) -> Result<Vec<String>> {
    let output =
        Command::new(binary).args(["--list", "--format", "terse"]).output().context("cannot list the tests")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let names: Vec<String> = text.lines().filter_map(|line| Some(line.strip_suffix(": test")?.to_owned())).collect();
    if names.is_empty() {
        bail!("there are no tests");
    }
    Ok(names)
}

/// How long an unchanged test takes, and which mutants it reaches.
fn note(binary: &Path, folder: &Path, number: usize, name: &str) -> Result<(Duration, Vec<usize>)> {
    let path = folder.join(number.to_string());
    if path.exists() {
        fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    let began = now();
    let end = run::run(binary, &[name], &Switch::Note(&path), LONGEST)?;
    if end != End::Passed {
        bail!("{name} does not pass while nothing is changed: {end:?}");
    }
    // A test that reaches nothing makes no file.
    let text = fs::read_to_string(&path).unwrap_or_default();
    Ok((began.elapsed(), text.lines().filter_map(|line| line.parse().ok()).collect()))
}

/// Does the work for every number below `count`, so many at a time, and tells how far it is. The first error ends it.
fn each<T: Send>(jobs: usize, count: usize, work: impl Fn(usize) -> Result<T> + Sync) -> Result<Vec<T>> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new((BTreeMap::new(), now()));
    let first_error = Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        break;
                    }
                    match work(number) {
                        Ok(result) => {
                            let Ok(mut done) = done.lock() else { break };
                            done.0.insert(number, result);
                            if done.1.elapsed() > TELL || done.0.len() == count {
                                println!("weaver: {} of {count}", done.0.len());
                                done.1 = now();
                            }
                        }
                        Err(error) => {
                            next.store(count, Ordering::Relaxed);
                            if let Ok(mut first) = first_error.lock() {
                                first.get_or_insert(error);
                            }
                        }
                    }
                }
            });
        }
    });
    if let Ok(Some(error)) = first_error.into_inner() {
        return Err(error);
    }
    let (done, _) = done.into_inner().ok().context("a worker panicked")?;
    Ok(done.into_values().collect())
}
