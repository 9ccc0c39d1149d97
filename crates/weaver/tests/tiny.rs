//! The program on a crate small enough to know its survivors by heart. In: a workspace of one crate, written here. Out:
//! what the weaver says of it.

#![expect(clippy::expect_used, reason = "helpers of tests: what goes wrong ends the test, and says so")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const LIBRARY: &str = "//! A tiny crate.\npub mod door;\npub mod house;\n";

const DOOR: &str = r#"//! A door.
pub fn may_open(age: u32, has_key: bool) -> bool {
    age >= 18 && has_key
}

pub fn nobody_asks(age: u32) -> u32 {
    age + 1
}

pub fn seen_from_the_house(locked: bool) -> &'static str {
    if !locked { "open" } else { "locked" }
}

pub fn greeting(name: &str) -> String {
    name.to_owned() + "!"
}

pub fn counts_down(from: u64) -> u64 {
    let mut left = from;
    let mut steps = 0;
    while left > 0 {
        left -= 1;
        steps += 1;
    }
    steps
}

pub fn shortest(words: &[&str]) -> Option<usize> {
    let mut words = words.iter().map(|word| word.len());
    let first = words.next()?;
    Some(words.fold(first, |least, length| if length < least { length } else { least }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grown_ups_with_a_key_come_in() {
        assert!(may_open(20, true));
        assert!(!may_open(20, false));
        assert!(!may_open(10, true));
    }

    #[test]
    fn it_greets() {
        assert_eq!(greeting("you"), "you!");
    }

    #[test]
    fn it_counts() {
        assert_eq!(counts_down(3), 3);
    }

    #[test]
    fn the_shortest_is_found() {
        assert_eq!(shortest(&["abc", "a", "ab"]), Some(1));
    }
}
"#;

const HOUSE: &str = r#"//! A house.
#[cfg(test)]
mod tests {
    #[test]
    fn its_door_is_seen() {
        assert_eq!(crate::door::seen_from_the_house(true), "locked");
    }
}
"#;

/// Names as the page writes them, of what the tests above let through.
const SURVIVORS: [&str; 5] = [
    "door.rs may_open: `age >= 18`: `>=` made `>`",
    "door.rs nobody_asks: `nobody_asks`: returns `0`",
    "door.rs nobody_asks: `nobody_asks`: returns `1`",
    "door.rs nobody_asks: `age + 1`: `+` made `-`",
    "door.rs shortest: `length < least`: `<` made `<=`",
];

fn workspace(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let source = root.join("tiny/src");
    fs::create_dir_all(&source).expect("a folder");
    let manifest = "[package]\nname = \"tiny\"\nversion = \"0.0.0\"\nedition = \"2024\"\n";
    let files = [
        ("Cargo.toml", "[workspace]\nresolver = \"3\"\nmembers = [\"tiny\"]\n"),
        ("tiny/Cargo.toml", manifest),
        ("tiny/src/lib.rs", LIBRARY),
        ("tiny/src/door.rs", DOOR),
        ("tiny/src/house.rs", HOUSE),
    ];
    for (path, text) in files {
        fs::write(root.join(path), text).expect("a file");
    }
    root
}

fn weave(root: &Path, page: &str) -> Output {
    fs::write(root.join("page.md"), page).expect("a page");
    let mut command = Command::new(env!("CARGO_BIN_EXE_bloodraven-weaver"));
    command.arg("--root").arg(root).args(["--crate", "tiny", "--page", "page.md", "--into"]).arg(root.join("work"));
    command.args(["--patience", "6", "door=door"]).output().expect("the weaver starts")
}

#[test]
fn known_survivors_are_found_and_nothing_else() {
    let root = workspace("survivors");
    let output = weave(&root, "");
    let text = String::from_utf8_lossy(&output.stdout);
    let found: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("SURVIVED"))
        .filter_map(|line| line.split_once(": line ")?.1.split_once(": ")?.1.rsplit_once(" ("))
        .map(|(name, _)| name)
        .collect();
    assert_eq!(found, SURVIVORS, "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(1));
    // A text cannot be subtracted, the house alone sees the door, the loop that counts up has no end. A machine that is very
    // busy may take another one for endless, too.
    let row = text.lines().find_map(|line| line.strip_prefix("| door | ")).expect("a row of the table");
    let figures: Vec<usize> = row.split(" |").filter_map(|figure| figure.trim().parse().ok()).collect();
    let [mutants, not_built, by_own, by_others, by_time, survived, unreached] = figures[..] else { panic!("{row}") };
    assert_eq!((mutants, not_built, survived, unreached), (20, 1, 5, 3), "{text}");
    assert_eq!((by_own + by_others + by_time, by_others.max(1), by_time.max(1)), (14, by_others, by_time), "{text}");

    let page = SURVIVORS.join("\n");
    let output = weave(&root, &page);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("0 survive without an explanation"), "{text}");
}
