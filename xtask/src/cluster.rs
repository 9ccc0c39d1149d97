//! `cargo xtask cluster`: a real cluster of three nodes on this machine, from a fresh clone.
//!
//! In: a word of `bloodraven-testbed cluster`. Out: what it says. Must not: hold the build folder while a cluster runs: it
//! belongs to a process of its own, which has copies of the programs.

use crate::run;
use crate::workshop::Workshop;
use anyhow::{Context as _, Result, bail};
use std::path::{Path, PathBuf};

const HELP: &str = "\
cargo xtask cluster <word>

  up [--profile fast|default]  build everything, start three nodes and leave them running
  down                         take them down; nothing is left
  status                       the nodes, and where the kubeconfig and the logs are
  kubeconfig                   the path of the kubeconfig
  logs [machine]               the logs, or the ends of those of one machine: plane, iad, pdx, fra
  scenes [name]...             a group on a cluster of its own through these scenes, or through all; judged by its ledger
    --kubeconfig F             on that cluster instead, as far as the scenes need no machines
    --context C                its context, where it is not the current one; one that is not for tests is refused
  applies <count>              the same group applied so often on empty volumes, from nothing to Ready
  kills <count>                the operator killed so often in the middle of a failover

Needs root, cgroups of version 1, 3.5 GB of memory and 4 GB of disk; what is missing is told at once. The first time it
builds the programs of Kubernetes, which takes many minutes.";

const WORDS: [&str; 5] = ["up", "down", "status", "kubeconfig", "logs"];

/// Builds what is needed and passes the words on.
pub(crate) fn run(words: &[String]) -> Result<()> {
    let word = match words.first().map(String::as_str) {
        None | Some("--help" | "-h" | "help") => {
            println!("{HELP}");
            return Ok(());
        }
        Some("scenes") => return scenes(&chosen(&words[1..])?),
        Some("applies") if words.len() == 2 => return scenes(&[("BLOODRAVEN_APPLIES", words[1].clone())]),
        Some("kills") if words.len() == 2 => return scenes(&[("BLOODRAVEN_KILLS", words[1].clone())]),
        Some(word) if WORDS.contains(&word) => word,
        Some(other) => {
            bail!(
                "'{other}' is not known; the words are: {}, scenes [name]..., applies <count>, kills <count>",
                WORDS.join(", ")
            )
        }
    };
    let workshop = Workshop::open()?;
    let mut testbed = workshop.program("bloodraven-testbed")?;
    testbed.arg("cluster").args(words);
    if word == "up" {
        // What the nodes run is what was just built.
        let built = Path::new(testbed.get_program()).parent().context("a program is in a folder")?.to_owned();
        testbed.arg("--bloodraven").arg(built.join("bloodraven"));
        testbed.arg("--keeper").arg(static_keeper(&workshop, &built)?);
    }
    run::inherit(&mut testbed)
}

/// The variables that the words after `scenes` stand for.
fn chosen(words: &[String]) -> Result<Vec<(&'static str, String)>> {
    let (mut variables, mut names) = (Vec::new(), Vec::new());
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let variable = match word.as_str() {
            "--kubeconfig" => "BLOODRAVEN_KUBECONFIG",
            "--context" => "BLOODRAVEN_CONTEXT",
            flag if flag.starts_with('-') => {
                bail!("'{flag}' is not known; scenes takes --kubeconfig, --context and names")
            }
            name => {
                names.push(name);
                continue;
            }
        };
        variables.push((variable, words.next().with_context(|| format!("{word} needs a value"))?.clone()));
    }
    let names = if names.is_empty() { "all".to_owned() } else { names.join(",") };
    variables.push(("BLOODRAVEN_SCENES", names));
    Ok(variables)
}

/// The test that every run of the suite plays a part of, with a choice.
fn scenes(choice: &[(&str, String)]) -> Result<()> {
    let workshop = Workshop::open()?;
    let mut cargo = workshop.cargo("test");
    cargo.args(["--locked", "--workspace", "--all-features", "--test", "cluster_live", "--", "--nocapture"]);
    run::stream("scenes", cargo.envs(choice.iter().map(|(name, value)| (*name, value))), |_| {})
}

/// The keeper without a loader, as images carry it: it is copied into containers of any image. A target of its own keeps the
/// flag away from everything else that is built.
fn static_keeper(workshop: &Workshop, built: &Path) -> Result<PathBuf> {
    let triple = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let mut cargo = workshop.cargo("build");
    cargo.args(["--quiet", "--package", "bloodraven-keeper", "--bin", "keeper", "--target", &triple]);
    cargo.env("RUSTFLAGS", "-C target-feature=+crt-static");
    run::stream("building the keeper", &mut cargo, |_| {})?;
    let target = built.parent().context("a build folder is in a target folder")?;
    Ok(target.join(triple).join("debug/keeper"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_is_none_is_told_with_those_that_are() {
        let refused = run(&["upp".to_owned()]).unwrap_err().to_string();
        let words = "up, down, status, kubeconfig, logs, scenes [name]..., applies <count>, kills <count>";
        assert_eq!(refused, format!("'upp' is not known; the words are: {words}"));
        for word in WORDS.into_iter().chain(["scenes", "applies", "kills"]) {
            assert!(HELP.contains(&format!("\n  {word}")), "{word} is explained");
        }
    }
    #[test]
    fn words_after_scenes_choose_the_cluster_and_the_scenes() {
        let check = |words: &[&str], expect: &str| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            let told = match chosen(&words) {
                Ok(variables) => {
                    variables.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
                }
                Err(error) => error.to_string(),
            };
            assert_eq!(told, expect, "{words:?}");
        };
        check(&[], "BLOODRAVEN_SCENES=all");
        check(&["pod", "api"], "BLOODRAVEN_SCENES=pod,api");
        check(&["--kubeconfig", "/k", "pod"], "BLOODRAVEN_KUBECONFIG=/k BLOODRAVEN_SCENES=pod");
        let both = "BLOODRAVEN_KUBECONFIG=/k BLOODRAVEN_CONTEXT=kind-one BLOODRAVEN_SCENES=all";
        check(&["--kubeconfig", "/k", "--context", "kind-one"], both);
        check(&["--context"], "--context needs a value");
        check(&["--cluster"], "'--cluster' is not known; scenes takes --kubeconfig, --context and names");
    }
}
