//! The program `bloodraven-testbed`: its words, its exit codes, and what `clean` leaves.
//!
//! In: the built program and a cache folder of the test's own. Out: what it says. Must not: fetch anything.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

use bloodraven_testbed::cache::Cache;
use bloodraven_testbed::{kubernetes, mysql};

/// A cache folder that goes away with the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("command-line-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        Self(Path::new(env!("CARGO_TARGET_TMPDIR")).join(name))
    }

    fn run(&self, words: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bloodraven-testbed"));
        command.args(words).env("BLOODRAVEN_CACHE_DIR", &self.0).env("BLOODRAVEN_MYSQLD", "/no/such/mysqld");
        command.output().unwrap_or_else(|error| unreachable!("the program is built with its tests: {error}"))
    }

    fn check(&self, words: &[&str], code: i32, said: &str) {
        let output = self.run(words);
        let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(code), "{words:?}: {text}");
        assert!(text.contains(said), "{words:?}: {text}");
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn fill(folder: &Path) -> std::io::Result<()> {
    std::fs::write(folder.join("program"), vec![0; 3 << 20])
}

#[test]
fn every_word_has_its_exit_code_and_unknown_ones_point_to_the_help() {
    let folder = Folder::new();
    folder.check(&["--help"], 0, "Usage: bloodraven-testbed <COMMAND>");
    folder.check(&["status"], 0, "0 MB  in all");
    folder.check(&["clean"], 0, "0 MB freed");
    folder.check(&[], 2, "no command; see bloodraven-testbed --help");
    folder.check(&["frobnicate"], 2, "unknown: frobnicate; see");
    folder.check(&["clean", "everything"], 2, "unknown: clean everything; see");
    folder.check(&["mysql", "--now"], 2, "unknown: mysql --now; see");
    folder.check(&["mysql", "--json", "--now"], 2, "unknown: mysql --json --now; see");
    folder.check(&["mysql", "--json"], 1, "BLOODRAVEN_MYSQLD=/no/such/mysqld: no such program");
    folder.check(&["mysql"], 1, "BLOODRAVEN_MYSQLD=/no/such/mysqld: no such program");
}

#[test]
fn status_shows_every_entry_and_clean_keeps_what_was_built_from_source() {
    let folder = Folder::new();
    let cache = Cache::at(&folder.0);
    let kinds = || mysql::KINDS.into_iter().chain(kubernetes::KINDS);
    for kind in kinds() {
        cache.entry(kind, "v1", fill).unwrap();
        folder.check(&["status"], 0, &format!("3 MB  {kind}/v1"));
    }
    folder.check(&["status"], 0, "12 MB  in all");
    folder.check(&["clean"], 0, "9 MB freed");
    let left: Vec<&str> = kinds().filter(|kind| cache.get(kind, "v1").is_some()).collect();
    assert_eq!(left, ["kubernetes"]);
    folder.check(&["clean", "--all"], 0, "3 MB freed");
    folder.check(&["status"], 0, "0 MB  in all");
}

#[test]
fn status_names_damage_and_clean_removes_leftovers() {
    let folder = Folder::new();
    let entry = Cache::at(&folder.0).entry("mysql", "v1", fill).unwrap();
    std::fs::remove_file(entry.join("program")).unwrap();
    folder.check(&["status"], 0, "mysql/v1 (damaged: program is missing; it will be made anew)");
    for left in ["mysql/.v0.unfinished-1-0", "kept/1-0-iad", "run/4194305-0-iad", "apt/sid"] {
        std::fs::create_dir_all(folder.0.join(left)).unwrap();
        std::fs::write(folder.0.join(left).join("file"), vec![0; 1 << 20]).unwrap();
    }
    folder.check(&["status"], 0, "mysql/v0 (unfinished)");
    folder.check(&["clean"], 0, "4 MB freed");
    folder.check(&["status"], 0, "0 MB  in all");
}

#[test]
fn clean_does_not_pull_the_ground_from_under_a_running_test() {
    let folder = Folder::new();
    let mine = folder.0.join("run/4194305-0-iad");
    std::fs::create_dir_all(&mine).unwrap();
    let owner = std::fs::File::create(mine.join(".owner")).unwrap();
    owner.lock().unwrap();
    folder.check(&["clean"], 1, &mine.display().to_string());
    assert!(mine.is_dir());
    // Not only dropped: a program that another test is just starting may hold the same file for a moment.
    owner.unlock().unwrap();
    drop(owner);
    folder.check(&["clean"], 0, "freed");
    assert!(!mine.exists());
}
