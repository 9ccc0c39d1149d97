//! `cargo xtask teeth`: every rule is taken away in turn, and somebody has to notice.
//!
//! In: the table that `bloodraven-model --teeth` prints, the brain's unit tests and the model, built with the switch in
//! them. Out: a table of who noticed, and an error if a rule is noticed by nobody without being listed as redundant, or
//! is listed so and noticed after all. Must not: take a rule's name from anywhere but that table.

use crate::run;
use crate::workshop::Workshop;
use anyhow::{Context as _, Result, bail};
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::Mutex;

/// Tells a test binary which rule to do without; the brain reads it where it is built with the switch.
const VARIABLE: &str = "BLOODRAVEN_WITHOUT_RULE";

/// How many programs run at a time.
const AT_A_TIME: usize = 2;

/// The modules whose tests are asked first: those that enforce most rules, in milliseconds. The election's own model and the
/// tests of whole groups take seconds each; they are asked about the few rules that nobody noticed here.
const MODULES: [&str; 5] = ["fence::tests", "authority::tests", "candidate::", "group::semi_sync", "lease::tests"];

/// One line of the table.
struct Tooth {
    name: String,
    sign: String,
    how: String,
    why: String,
}

/// Who noticed.
struct Verdict {
    name: String,
    sign: String,
    noticed: String,
    wrong: Option<&'static str>,
}

/// How much of the table people see.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Show {
    /// All of it.
    All,
    /// What is not true: among other steps the rest would only hide what failed there.
    Wrong,
}

/// Runs the whole table.
pub(crate) fn run(workshop: &Workshop, show: Show) -> Result<()> {
    let model = workshop.program("bloodraven-model")?;
    let model = PathBuf::from(model.get_program());
    let tests = unit_tests(workshop)?;
    if !Command::new(&tests).arg("-q").output().context("cannot start the brain's tests")?.status.success() {
        bail!("the brain's tests fail with every rule in place");
    }
    let table = run::capture(Command::new(&model).arg("--teeth"))?;
    let teeth: Vec<Tooth> = table.lines().filter_map(parse).collect();
    if teeth.is_empty() {
        bail!("the model printed no table of teeth");
    }
    let verdicts = all(&teeth, |tooth| judge(tooth, &tests, &model))?;
    report(&verdicts, show)
}

/// The brain's unit tests, built as the whole suite builds them.
fn unit_tests(workshop: &Workshop) -> Result<PathBuf> {
    let mut cargo = workshop.cargo("test");
    cargo.args(["--locked", "--workspace", "--all-features", "--lib", "--no-run", "--message-format=json", "--quiet"]);
    let messages = run::capture(&mut cargo)?;
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let ours = |message: &serde_json::Value| {
        message["target"]["name"] == "bloodraven_brain" && message["profile"]["test"] == true
    };
    let mut programs = messages.filter(ours).filter_map(|message| Some(PathBuf::from(message["executable"].as_str()?)));
    programs.next_back().context("cargo built no test program of the brain")
}

/// `name <tab> sign <tab> how <tab> why`
fn parse(line: &str) -> Option<Tooth> {
    let mut parts = line.split('\t').map(str::to_owned);
    let (name, sign, how, why) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    Some(Tooth { name, sign, how, why })
}

/// Judges every tooth, some at a time, and returns the verdicts in the table's order.
fn all(teeth: &[Tooth], judge: impl Fn(&Tooth) -> Result<Verdict> + Sync) -> Result<Vec<Verdict>> {
    let todo = Mutex::new(teeth.iter().enumerate());
    let done = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                loop {
                    let next = todo.lock().ok().and_then(|mut todo| todo.next());
                    let Some((number, tooth)) = next else { break };
                    let verdict = judge(tooth);
                    if let Ok(mut done) = done.lock() {
                        done.push((number, verdict));
                    }
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_default();
    done.sort_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, verdict)| verdict).collect()
}

fn judge(tooth: &Tooth, tests: &PathBuf, model: &PathBuf) -> Result<Verdict> {
    let by_test = || match first_failure(tests, &MODULES, &tooth.name)? {
        Some(noticed) => Ok(Some(noticed)),
        None => first_failure(tests, &[], &tooth.name),
    };
    let by_search = || found_by_search(model, &tooth.name);
    let (noticed, wrong) = match tooth.how.as_str() {
        "unit" => or_wrong(by_test()?, "no unit test notices"),
        "search" => or_wrong(by_search()?, "the search does not notice"),
        "both" => match (by_test()?, by_search()?) {
            (Some(test), Some(search)) => (format!("{test}; {search}"), None),
            (test, search) => or_wrong(test.and(search), "the unit tests or the search do not notice"),
        },
        "redundant" => match by_test()?.or(by_search()?) {
            Some(noticed) => (noticed, Some("listed as redundant, and noticed")),
            None => (format!("redundant: {}", tooth.why), None),
        },
        other => bail!("{}: the table says '{other}'", tooth.name),
    };
    Ok(Verdict { name: tooth.name.clone(), sign: tooth.sign.clone(), noticed, wrong })
}

fn or_wrong(noticed: Option<String>, complaint: &'static str) -> (String, Option<&'static str>) {
    match noticed {
        Some(noticed) => (noticed, None),
        None => (String::new(), Some(complaint)),
    }
}

/// The first test of those modules, or of all, that fails without that rule, and how many do.
fn first_failure(tests: &PathBuf, modules: &[&str], rule: &str) -> Result<Option<String>> {
    let mut command = Command::new(tests);
    command.arg("--quiet").args(modules).env(VARIABLE, rule);
    let Output { status, stdout, .. } = command.output().context("cannot start the brain's tests")?;
    if status.success() {
        return Ok(None);
    }
    let text = String::from_utf8_lossy(&stdout).into_owned();
    let mut failed: Vec<&str> =
        text.rsplit("failures:").next().into_iter().flat_map(str::lines).map(str::trim).collect();
    failed.retain(|line| line.contains("::"));
    let first = failed.first().copied().unwrap_or("a crash");
    Ok(Some(format!("{first} ({} in all)", failed.len().max(1))))
}

fn found_by_search(model: &PathBuf, name: &str) -> Result<Option<String>> {
    let output = Command::new(model).args(["--without", name]).output().context("cannot start the model")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut parts = text.trim().split('\t').skip(2);
    let found = format!("{}: {}", parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    Ok(output.status.success().then_some(found))
}

fn report(verdicts: &[Verdict], show: Show) -> Result<()> {
    for Verdict { name, sign, noticed, wrong } in verdicts.iter().filter(|row| show == Show::All || row.wrong.is_some())
    {
        let what = wrong.map_or(noticed.clone(), |wrong| format!("WRONG: {wrong} {noticed}"));
        println!("{name:<28} {sign:<2} {what}");
    }
    let wrong = verdicts.iter().filter(|verdict| verdict.wrong.is_some()).count();
    println!("{} rules and parts, {wrong} of them wrong", verdicts.len());
    if wrong > 0 {
        bail!("{wrong} lines of the table of teeth are not true");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn a_line_of_the_table_has_four_parts() {
        let tooth = parse("Margin\t⚔\tunit\t").expect("four parts");
        assert_eq!((tooth.name.as_str(), tooth.sign.as_str(), tooth.how.as_str()), ("Margin", "⚔", "unit"));
        assert!(parse("Margin\tunit").is_none());
    }
}
