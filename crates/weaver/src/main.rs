//! Mutants of a crate, all in one program. In: a crate of a workspace and some of its modules. Out: how many changes of
//! their code no unit test notices, and which; an error if the page does not explain each of them.
//!
//! One build a mutant takes hours. Here every expression that can be changed becomes a switch by number in a copy of the
//! crate, that copy is built once, and its test binary is run with one number after the other, asking only tests that
//! reach the changed place. Must not: change the checkout; all work is done in the folder `--into`.
//!
//! Reading order: [`modules`] (which code), [`places`] (what can be changed), [`weave`] (one text out of both), [`build`],
//! [`ask`] (which tests notice), [`report`].

mod ask;
mod build;
mod modules;
mod places;
mod report;
mod run;
mod weave;

use anyhow::{Context as _, Result, bail};
use ask::Asking;
use modules::Module;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

const HELP: &str = "\
bloodraven-weaver --root DIR --crate DIR [--with DIR]... --into DIR [--page FILE] [--jobs N] [--patience S]
                  <name>=<path>...

  --root   the workspace; the other paths are relative to it
  --crate  the crate whose modules are changed, such as crates/brain
  --with   a crate of the workspace that it uses
  --into   where to work; what is left there makes the next build faster
  --page   the page that explains what no test notices
  --jobs   how many tests run at a time; else as many as there are processors
  --patience  what every run may take in any case, in seconds; beyond ten times of what is usual it is ended
  <name>=<path>  a module and its file or folder below the crate's src

Started by `cargo xtask mutants`, which knows the modules.";

/// What the words ask for.
#[derive(Debug, Default)]
struct Wanted {
    root: PathBuf,
    package: PathBuf,
    with: Vec<PathBuf>,
    into: PathBuf,
    page: Option<PathBuf>,
    jobs: Option<usize>,
    patience: Option<u64>,
    modules: Vec<Module>,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match understand(&words).and_then(|wanted| examine(&wanted)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("weaver: {error:#}\n\n{HELP}");
            ExitCode::from(2)
        }
    }
}

fn understand(words: &[String]) -> Result<Wanted> {
    let mut wanted = Wanted::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if let Some((name, path)) = word.split_once('=') {
            wanted.modules.push(Module::new(name, path));
            continue;
        }
        let value = words.next().with_context(|| format!("{word} needs a value"))?;
        match word.as_str() {
            "--root" => wanted.root = value.into(),
            "--crate" => wanted.package = value.into(),
            "--with" => wanted.with.push(value.into()),
            "--into" => wanted.into = value.into(),
            "--page" => wanted.page = Some(value.into()),
            "--jobs" => {
                let jobs = value.parse().ok().filter(|jobs| (1..=64).contains(jobs));
                wanted.jobs = Some(jobs.with_context(|| format!("{value} is not a number from 1 to 64"))?);
            }
            "--patience" => {
                let patience = value.parse().ok().filter(|patience| (1..=3600).contains(patience));
                wanted.patience = Some(patience.with_context(|| format!("{value} is not a number from 1 to 3600"))?);
            }
            other => bail!("'{other}' is not known"),
        }
    }
    if wanted.modules.is_empty() || wanted.into.as_os_str().is_empty() {
        bail!("name a folder to work in and some modules");
    }
    Ok(wanted)
}

/// True: every change is noticed by a test or explained by the page.
fn examine(wanted: &Wanted) -> Result<bool> {
    let source = wanted.root.join(&wanted.package).join("src");
    let mut code = places::find_all(&source, &wanted.modules)?;
    println!("weaver: {} mutants in {} files", code.mutants.len(), code.files.len());
    let binary = build::build(wanted, &mut code)?;
    let jobs = wanted.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let patience = wanted.patience.map_or(ask::PATIENCE, Duration::from_secs);
    let asked = Asking { binary: &binary, jobs, patience }.ask(&wanted.into, &code, &wanted.modules)?;
    let page = match &wanted.page {
        Some(page) => std::fs::read_to_string(wanted.root.join(page))
            .with_context(|| format!("cannot read {}", page.display()))?,
        None => String::new(),
    };
    let report = report::write(&code, &wanted.modules, &asked, &page);
    println!("\n{}", report.text);
    std::fs::write(wanted.into.join("report.txt"), &report.text).context("cannot write the report")?;
    Ok(report.unexplained == 0)
}

#[cfg(test)]
mod tests {
    use super::understand;

    #[test]
    fn words_that_say_too_little_or_too_much_are_refused() {
        let rows = [
            ("--into there fence=fence", true),
            ("--root . --crate crates/brain --with crates/gtid --into there --jobs 3 a=a b=group/b", true),
            ("--into there", false),
            ("fence=fence", false),
            ("--into there --jobs 0 fence=fence", false),
            ("--into there --fast yes fence=fence", false),
            ("--into there fence=fence --page", false),
        ];
        for (text, good) in rows {
            let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
            assert_eq!(understand(&words).is_ok(), good, "{text}");
        }
    }
}
