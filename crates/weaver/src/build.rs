//! The woven copy, compiled. In: the code with its mutants. Out: a test binary; mutants that do not compile are left out.
//! Must not: write outside the folder it is given.

use crate::Wanted;
use crate::places::Code;
use crate::weave;
use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// So often it is compiled again without what the compiler refused: types first, borrows afterwards, and each of them may
/// hide another.
const ROUNDS: usize = 12;

/// Optimised a little: compiled once, run thousands of times.
const PROFILE: &str = "\n[profile.test]\nopt-level = 1\ndebug = false\n\n[profile.dev]\nopt-level = 1\ndebug = false\n";

/// Copies, weaves, compiles; again without what does not compile.
pub(crate) fn build(wanted: &Wanted, code: &mut Code) -> Result<PathBuf> {
    copy(wanted)?;
    for round in 1..=ROUNDS {
        let woven = write(wanted, code)?;
        println!("weaver: building {} mutants", code.mutants.len() - code.left_out.len());
        let refused = match compile(wanted, &woven)? {
            Built::Program(binary) => return Ok(binary),
            Built::Refused(refused) => refused,
        };
        println!("weaver: round {round}: {} mutants do not compile and are left out", refused.len());
        code.left_out.extend(refused);
    }
    bail!("still not compiled after {ROUNDS} rounds")
}

enum Built {
    Program(PathBuf),
    Refused(BTreeSet<usize>),
}

fn folder(wanted: &Wanted) -> PathBuf {
    wanted.into.join("woven")
}

/// A workspace of the crate and those it uses, without what only benches and the like need.
fn copy(wanted: &Wanted) -> Result<()> {
    let into = folder(wanted);
    let crates: Vec<&PathBuf> = std::iter::once(&wanted.package).chain(&wanted.with).collect();
    let manifest = read(&wanted.root.join("Cargo.toml"))?;
    let members: Vec<String> = crates.iter().map(|path| format!("\"{}\"", path.display())).collect();
    write_if_new(&into.join("Cargo.toml"), &(workspace(&manifest, &members.join(", ")) + PROFILE))?;
    if wanted.root.join("Cargo.lock").is_file() {
        write_if_new(&into.join("Cargo.lock"), &read(&wanted.root.join("Cargo.lock"))?)?;
    }
    for path in crates {
        let manifest = read(&wanted.root.join(path).join("Cargo.toml"))?;
        let product = without_sections(&manifest, |head| {
            ["[dev-dependencies", "[[bench", "[[test"].iter().any(|word| head.starts_with(word))
        });
        write_if_new(&into.join(path).join("Cargo.toml"), &product)?;
        let (from, to) = (wanted.root.join(path).join("src"), into.join(path).join("src"));
        remove_others(&from, &to)?;
        if *path != wanted.package {
            copy_folder(&from, &to)?;
        }
    }
    Ok(())
}

/// The manifest of the workspace with other members and without profiles.
fn workspace(manifest: &str, members: &str) -> String {
    let kept = without_sections(manifest, |head| head.starts_with("[profile"));
    let line = |line: &str| match line.split('=').next().map(str::trim) {
        Some("members") => format!("members = [{members}]\n"),
        Some("exclude") => String::new(),
        _ => format!("{line}\n"),
    };
    kept.lines().map(line).collect()
}

fn without_sections(manifest: &str, unwanted: impl Fn(&str) -> bool) -> String {
    let mut skipped = false;
    let mut kept = String::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            skipped = unwanted(line);
        }
        if !skipped {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

/// Writes every file of the crate, woven where it has mutants; returns the woven texts.
fn write(wanted: &Wanted, code: &Code) -> Result<BTreeMap<PathBuf, String>> {
    let to = folder(wanted).join(&wanted.package).join("src");
    let woven: BTreeMap<PathBuf, String> = code
        .files
        .iter()
        .map(|(file, places)| (file.path.clone(), weave::weave(&file.text, places, &code.mutants, &code.left_out)))
        .collect();
    let from = wanted.root.join(&wanted.package).join("src");
    for path in files_below(&from)? {
        let below = path.strip_prefix(&from).context("a file outside its folder")?;
        let text = match woven.get(below) {
            Some(text) => text.clone(),
            None => read(&path)?,
        };
        let text = if below == Path::new("lib.rs") { text + "\nmod woven;\n" } else { text };
        write_if_new(&to.join(below), &text)?;
    }
    write_if_new(&to.join("woven.rs"), &weave::SWITCH.replace("COUNT", &code.mutants.len().max(1).to_string()))?;
    Ok(woven)
}

fn compile(wanted: &Wanted, woven: &BTreeMap<PathBuf, String>) -> Result<Built> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(folder(wanted).join(&wanted.package));
    cargo.args(["test", "--lib", "--all-features", "--no-run", "--message-format", "json"]);
    cargo.env("CARGO_TARGET_DIR", wanted.into.join("target")).env("RUSTFLAGS", "--cap-lints=allow");
    cargo.env_remove("CARGO_MANIFEST_DIR").stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = cargo.output().context("cannot start cargo")?;
    let messages: Vec<Value> =
        String::from_utf8_lossy(&output.stdout).lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    if output.status.success() {
        let binary = messages.iter().rev().find_map(|message| message["executable"].as_str());
        return Ok(Built::Program(binary.context("cargo built no test binary")?.into()));
    }
    let mut refused = BTreeSet::new();
    for message in messages.iter().map(|message| &message["message"]).filter(|message| message["level"] == "error") {
        let spans = message["spans"].as_array().cloned().unwrap_or_default();
        let owners: Vec<usize> = spans.iter().filter_map(|span| owner(span, woven)).collect();
        if owners.is_empty() && !spans.is_empty() {
            bail!("the woven copy does not compile:\n{}", message["rendered"].as_str().unwrap_or_default());
        }
        refused.extend(owners);
    }
    if refused.is_empty() {
        bail!("the woven copy does not compile; see cargo's words above");
    }
    Ok(Built::Refused(refused))
}

/// Whose text the compiler's primary complaint is about.
fn owner(span: &Value, woven: &BTreeMap<PathBuf, String>) -> Option<usize> {
    let (file, line) = (span["file_name"].as_str()?, span["line_start"].as_u64()?);
    let below = Path::new(file).iter().skip_while(|part| *part != "src").skip(1).collect::<PathBuf>();
    let primary = span["is_primary"] == true;
    woven.get(&below).filter(|_| primary).and_then(|text| weave::owner(text, usize::try_from(line).ok()?))
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// A file that stays as it was keeps its time, so that it is not compiled again.
fn write_if_new(path: &Path, text: &str) -> Result<()> {
    if fs::read_to_string(path).is_ok_and(|old| old == text) {
        return Ok(());
    }
    let folder = path.parent().context("a file without a folder")?;
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    for path in files_below(from)? {
        write_if_new(&to.join(path.strip_prefix(from).context("a file outside its folder")?), &read(&path)?)?;
    }
    Ok(())
}

/// Removes what an earlier run left and the original no longer has.
fn remove_others(from: &Path, to: &Path) -> Result<()> {
    if !to.is_dir() {
        return Ok(());
    }
    for path in files_below(to)? {
        let below = path.strip_prefix(to).context("a file outside its folder")?;
        if !from.join(below).is_file() {
            fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        }
    }
    Ok(())
}

fn files_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry.with_context(|| format!("cannot read {}", folder.display()))?.path();
        if path.is_dir() {
            files.extend(files_below(&path)?);
        } else {
            files.push(path);
        }
    }
    Ok(files)
}
