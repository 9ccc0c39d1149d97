//! Generated files: committed, written by one command, and compared with what the code says today.
//!
//! In: what `bloodraven crds` prints. Out: files under `deploy/crds`, or a breach for each one that is out of step.

use crate::run;
use crate::workshop::Workshop;
use anyhow::{Context as _, Result, bail};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

const HEADER: &str = "# Generated from crates/api; do not edit. `cargo xtask codegen` writes it anew.\n";

/// Writes every generated file.
pub(crate) fn write(workshop: &Workshop) -> Result<()> {
    for (path, text) in wanted(workshop)? {
        let full = workshop.root.join(&path);
        if let Some(folder) = full.parent() {
            fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        }
        fs::write(&full, text).with_context(|| format!("cannot write {}", full.display()))?;
        println!("codegen: {}", path.display());
    }
    Ok(())
}

pub(super) fn breaches(workshop: &Workshop) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for (path, text) in wanted(workshop)? {
        if fs::read_to_string(workshop.root.join(&path)).ok().as_deref() != Some(&text) {
            found.push(format!("{}: out of step with the code; run `cargo xtask codegen`", path.display()));
        }
    }
    Ok(found)
}

fn wanted(workshop: &Workshop) -> Result<BTreeMap<PathBuf, String>> {
    let printed = run::capture(workshop.program("bloodraven")?.arg("crds"))?;
    let mut files = BTreeMap::new();
    for document in printed.split("---\n").filter(|document| document.contains("kind:")) {
        let name = document
            .lines()
            .find_map(|line| line.strip_prefix("  name: "))
            .context("a printed CRD has no metadata.name line")?;
        files.insert(PathBuf::from(format!("deploy/crds/{name}.yaml")), format!("{HEADER}{document}"));
    }
    if files.is_empty() {
        bail!("`bloodraven crds` printed nothing");
    }
    Ok(files)
}
