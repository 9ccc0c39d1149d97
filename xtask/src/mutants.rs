//! `cargo xtask mutants [module]`: one expression of the brain is changed at a time, and its unit tests have to notice.
//!
//! In: the names of modules; none: those of the table, in its order. Out: what no test notices, as `cargo mutants` prints
//! it, and an error if there is any. Must not: change the checkout; the tool works in a copy.

use crate::run;
use crate::workshop::{CARGO_MUTANTS, Workshop};
use anyhow::{Context as _, Result, bail};
use std::process::Command;

/// The modules that keep the promises, and where they are. What their tests do not notice and why that is so stands in
/// `crates/brain/mutants.md`.
const MODULES: [(&str, &str); 6] = [
    ("fence", "crates/brain/src/fence"),
    ("lease", "crates/brain/src/lease"),
    ("authority", "crates/brain/src/authority"),
    ("recovery", "crates/brain/src/group/recovery"),
    ("planned", "crates/brain/src/group/planned"),
    ("candidate", "crates/brain/src/candidate"),
];

/// The brain's unit tests take less than half of that, unoptimised, on a machine that does something else as well.
const BOUND_SECONDS: &str = "120";

/// Runs the tool on each module.
pub(crate) fn run(workshop: &Workshop, words: &[String]) -> Result<()> {
    let modules = wanted(words)?;
    let tool = workshop.tool("cargo-mutants", CARGO_MUTANTS)?;
    let mut missed = Vec::new();
    for (name, folder) in modules {
        let mut command = Command::new(&tool);
        command.arg("mutants").args(arguments(folder));
        command.arg("--output").arg(workshop.cache.join("mutants").join(name)).current_dir(&workshop.root);
        println!("mutants of {name}");
        std::fs::create_dir_all(workshop.cache.join("mutants").join(name))
            .context("cannot make the output's folder")?;
        if let Err(error) = run::inherit(&mut command) {
            missed.push(format!("{name}: {error:#}"));
        }
    }
    if !missed.is_empty() {
        bail!("not everything was noticed; compare with crates/brain/mutants.md\n{}", missed.join("\n"));
    }
    Ok(())
}

fn wanted(words: &[String]) -> Result<Vec<(&'static str, &'static str)>> {
    let find = |word: &String| MODULES.iter().copied().find(|(name, _)| name == word);
    let known: Vec<&str> = MODULES.iter().map(|(name, _)| *name).collect();
    let named: Result<Vec<_>> = words
        .iter()
        .map(|word| find(word).with_context(|| format!("'{word}' is no module; write some of {}", known.join(", "))))
        .collect();
    Ok(if words.is_empty() { MODULES.to_vec() } else { named? })
}

/// Unoptimised: a mutant is compiled once and run once, so compiling is what takes the time.
fn arguments(folder: &str) -> Vec<String> {
    let mut words: Vec<String> =
        ["--package", "bloodraven-brain", "--no-shuffle", "--timeout", BOUND_SECONDS].map(str::to_owned).into();
    for package in ["brain", "gtid"] {
        words.push(format!("--cargo-arg=--config=profile.dev.package.bloodraven-{package}.opt-level=0"));
    }
    words.extend(["--file".to_owned(), format!("{folder}/**/*.rs"), "--".to_owned(), "--lib".to_owned()]);
    words
}

#[cfg(test)]
mod tests {
    use super::{MODULES, wanted};
    use std::path::Path;

    #[test]
    fn every_module_of_the_table_is_there_and_found_by_its_name() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a parent");
        for (name, folder) in MODULES {
            assert!(root.join(folder).is_dir(), "{folder}");
            assert_eq!(wanted(&[name.to_owned()]).expect("a module"), [(name, folder)]);
        }
        assert_eq!(wanted(&[]).expect("all").len(), MODULES.len());
        assert!(wanted(&["topology".to_owned()]).is_err());
    }
}
