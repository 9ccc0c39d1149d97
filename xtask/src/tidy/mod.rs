//! The house rules as a program. In: the checkout. Out: success, or every breach with its place and the way to mend it.
//!
//! A rule lives here when a reader would otherwise have to remember it.

mod directions;
pub(crate) mod generated;
mod text;

use crate::run;
use crate::workshop::Workshop;
use anyhow::{Result, bail};
use std::path::PathBuf;

/// Checks everything and reports all breaches at once.
pub(crate) fn run(workshop: &Workshop) -> Result<()> {
    let files = tracked_files(workshop)?;
    let mut breaches = directions::breaches(workshop)?;
    breaches.extend(text::breaches(workshop, &files)?);
    breaches.extend(generated::breaches(workshop)?);
    for breach in &breaches {
        println!("tidy: {breach}");
    }
    if !breaches.is_empty() {
        bail!("{} breaches of the house rules", breaches.len());
    }
    println!("tidy: {} files in order", files.len());
    Ok(())
}

/// What git knows or would take in, relative to the root.
fn tracked_files(workshop: &Workshop) -> Result<Vec<PathBuf>> {
    let mut git = std::process::Command::new("git");
    git.args(["ls-files", "--cached", "--others", "--exclude-standard"]).current_dir(&workshop.root);
    let listed = run::capture(&mut git)?;
    Ok(listed.lines().map(PathBuf::from).filter(|path| workshop.root.join(path).is_file()).collect())
}
