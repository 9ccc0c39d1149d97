//! `cargo xtask mutants [module]...`: one expression of the brain is changed at a time, and its unit tests have to notice.
//!
//! In: the names of modules; none: all of the table, in its order. Out: a table, and what no test notices; an error if the
//! page does not explain all of it. Must not: change the checkout; the weaver works in a copy.

use crate::run;
use crate::workshop::Workshop;
use anyhow::{Context as _, Result};

/// The modules that keep the promises, and where they are below the brain's `src`.
const MODULES: [(&str, &str); 6] = [
    ("authority", "authority"),
    ("fence", "fence"),
    ("lease", "lease"),
    ("candidate", "candidate"),
    ("planned", "group/planned"),
    ("recovery", "group/recovery"),
];

/// What no test notices, and why that is so.
const PAGE: &str = "crates/brain/mutants.md";

/// Runs the weaver on these modules.
pub(crate) fn run(workshop: &Workshop, words: &[String]) -> Result<()> {
    let modules = wanted(words)?;
    let mut cargo = workshop.cargo("run");
    cargo.args(["--quiet", "--package", "bloodraven-weaver", "--", "--page", PAGE, "--root"]).arg(&workshop.root);
    cargo.args(["--crate", "crates/brain", "--with", "crates/gtid", "--into"]).arg(workshop.cache.join("mutants"));
    cargo.args(modules.iter().map(|(name, path)| format!("{name}={path}")));
    run::inherit(&mut cargo).with_context(|| format!("not everything was noticed or explained by {PAGE}"))
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

#[cfg(test)]
mod tests {
    use super::{MODULES, PAGE, wanted};
    use std::path::Path;

    #[test]
    fn every_module_of_the_table_is_there_and_found_by_its_name() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a parent");
        assert!(root.join(PAGE).is_file());
        for (name, path) in MODULES {
            assert!(root.join("crates/brain/src").join(path).is_dir(), "{path}");
            assert_eq!(wanted(&[name.to_owned()]).expect("a module"), [(name, path)]);
        }
        assert_eq!(wanted(&[]).expect("all").len(), MODULES.len());
        assert!(wanted(&["topology".to_owned()]).is_err());
    }
}
