//! Rules about the text of files: length, module docs, words that have no place here, links that lead nowhere.
//!
//! In: the files of the checkout. Out: breaches with file and line.

use crate::run;
use crate::workshop::Workshop;
use anyhow::{Context as _, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// Files stay under about 500 lines; the rest is room for a table that would only suffer from a cut.
const MOST_LINES: usize = 550;

/// Marks in Rust files that hide a test or a gap, with what to do instead. Split, so that this file does not hold them.
const MARKS: &[(&str, &str, &str)] = &[
    ("#[ign", "ore", "a test that does not run is a defect: mend it or delete it"),
    ("#[should_", "panic", "assert on the returned error instead"),
    ("todo", "!(", "finish it or leave it out"),
    ("unimplemented", "!(", "finish it or leave it out"),
];

pub(super) fn breaches(workshop: &Workshop, files: &[PathBuf]) -> Result<Vec<String>> {
    let foreign = foreign_words(workshop);
    let mut found = Vec::new();
    for file in files {
        let bytes = fs::read(workshop.root.join(file)).with_context(|| format!("cannot read {}", file.display()))?;
        let Ok(text) = String::from_utf8(bytes) else {
            continue;
        };
        let shown = file.display().to_string();
        if shown.ends_with("Cargo.lock") {
            continue;
        }
        if file.extension().is_some_and(|extension| extension == "rs") {
            found.extend(rust(&shown, &text));
        }
        if file.extension().is_some_and(|extension| extension == "md") {
            found.extend(links(workshop, file, &text));
        }
        for (number, line) in text.lines().enumerate() {
            let hit = foreign.iter().find(|word| line.contains(word.as_str()));
            found.extend(hit.map(|_| {
                format!(
                    "{shown}:{}: names a package registry or a path of this machine; derive it at run time",
                    number + 1
                )
            }));
        }
    }
    Ok(found)
}

fn rust(shown: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let lines = text.lines().count();
    if lines > MOST_LINES {
        found.push(format!("{shown}: {lines} lines; split it by meaning (at most {MOST_LINES})"));
    }
    let opening = text.lines().find(|line| !line.is_empty() && !line.starts_with("#!["));
    if !opening.is_some_and(|line| line.starts_with("//!")) {
        found.push(format!("{shown}:1: open with `//!`: what comes in, what goes out, what it must not do"));
    }
    for (number, line) in text.lines().enumerate() {
        let hit = MARKS.iter().find(|(head, tail, _)| line.contains(&format!("{head}{tail}")));
        found.extend(hit.map(|(head, tail, advice)| format!("{shown}:{}: {head}{tail}: {advice}", number + 1)));
    }
    found
}

/// Relative links of a page lead to files that exist.
fn links(workshop: &Workshop, file: &Path, text: &str) -> Vec<String> {
    let folder = workshop.root.join(file).parent().map(Path::to_owned).unwrap_or_default();
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for part in line.split("](").skip(1) {
            let target = part.split(')').next().unwrap_or_default();
            let path = target.split('#').next().unwrap_or_default();
            if path.is_empty() || path.contains("://") || path.starts_with("mailto:") {
                continue;
            }
            if !folder.join(path).exists() {
                found.push(format!("{}:{}: the link to {path} leads nowhere", file.display(), number + 1));
            }
        }
    }
    found
}

/// Hosts of the package registries that this machine uses and folders of this machine: whoever builds elsewhere has
/// others, so none of them belongs into a file. They are read from the machine, because writing them here would be
/// such a breach itself.
fn foreign_words(workshop: &Workshop) -> Vec<String> {
    let mut sources = vec![run::capture(std::process::Command::new("go").args(["env", "GOPROXY"])).unwrap_or_default()];
    let apt = Path::new("/etc/apt");
    let lists = fs::read_dir(apt.join("sources.list.d")).into_iter().flatten().flatten().map(|entry| entry.path());
    for list in lists.chain([apt.join("sources.list")]) {
        sources.push(fs::read_to_string(list).unwrap_or_default());
    }
    let mut words: Vec<String> = sources.iter().flat_map(|text| hosts(text)).collect();
    // Short paths such as `/src` would hit ordinary text.
    words.extend(
        [&workshop.root, &workshop.cache]
            .map(|path| path.display().to_string())
            .into_iter()
            .filter(|path| path.len() > 8),
    );
    words.sort();
    words.dedup();
    words
}

fn hosts(text: &str) -> Vec<String> {
    let after_scheme = text.split("://").skip(1);
    let host = |rest: &str| rest.split(['/', ',', ' ', '\n', ':']).next().unwrap_or_default().to_owned();
    after_scheme.map(host).filter(|host| host.contains('.')).collect()
}

#[cfg(test)]
mod tests {
    use super::{hosts, rust};

    #[test]
    fn hosts_are_read_from_apt_and_go_settings() {
        let text = "deb http://mirror.example.test/debian sid main\nURIs: https://a.example.test\nhttps://p.example.test,direct";
        assert_eq!(hosts(text), ["mirror.example.test", "a.example.test", "p.example.test"]);
    }

    #[test]
    fn a_file_without_module_docs_or_with_a_hidden_test_is_named() {
        let hidden = format!("fn f() {{}}\n    {}{}]\n", "#[ign", "ore");
        let found = rust("a.rs", &hidden);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("a.rs:1") && found[1].contains("a.rs:2"), "{found:?}");
        assert!(rust("a.rs", "//! Fine.\n").is_empty());
    }

    #[test]
    fn a_file_that_is_too_long_is_named() {
        let long = format!("//! Long.\n{}", "// line\n".repeat(600));
        assert!(rust("a.rs", &long)[0].contains("601 lines"));
    }
}
