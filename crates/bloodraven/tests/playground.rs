//! The words of the local world: what makes no sense is refused in one line before anything is started or changed.
//!
//! The playground itself is played by the live tests.

#![expect(clippy::expect_used, reason = "the checks fail the test that calls them")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn run(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bloodraven")).args(words).env_clear().output().expect("the binary starts")
}

/// Ends with that code and says that on one line of standard error.
#[track_caller]
fn says(words: &[&str], code: i32, said: &str) {
    let output = run(words);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{words:?}: {errors}");
    assert!(errors.contains(said), "{words:?}: {errors}");
    assert_eq!(errors.lines().count(), 1, "{words:?}: {errors}");
    assert!(output.stdout.is_empty(), "{words:?}");
}

/// A file with that text.
fn script(name: &str, text: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("playground");
    std::fs::create_dir_all(&folder).expect("a folder for the test");
    let file = folder.join(name);
    std::fs::write(&file, text).expect("a file for the test");
    file
}

#[test]
fn shipped_scenarios_are_listed_with_their_stories() {
    let output = run(&["playground", "--list"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}");
    let line = |number: &str| text.lines().find(|line| line.trim_start().starts_with(number)).unwrap_or_default();
    assert!(line("2 ").contains("the operator is killed and started again while everything is healthy"), "{text}");
    assert!(line("5 ").contains("the operator dies in the middle of the failover"), "{text}");
    assert!(text.contains(" tour "), "{text}");
}

#[test]
fn words_that_make_no_sense_are_refused_in_one_line() {
    says(&["playground", "--frobnicate"], 2, "unexpected argument '--frobnicate'");
    says(&["playground", "--profile", "slow"], 2, "`slow` is not a profile; write default or fast");
    says(&["playground", "--sites", "iad"], 2, "a group has 2 to 5 sites, not 1");
    says(&["playground", "--sites", "iad,pdx:boss"], 2, "`boss` is not a role");
    says(&["playground", "--scenario", "99"], 2, "no scenario '99'; see 'bloodraven playground --list'");
    says(&["playground", "--script", "/no/such/file"], 2, "cannot read /no/such/file");
    says(&["playground", "--rate", "0"], 2, "0 is not in 1..=1000");
    says(&["playground", "--headless", "--keeper", "/no/such/keeper"], 2, "no keeper at /no/such/keeper");
    says(&["operator", "--what"], 2, "unexpected argument '--what'");
    says(&["operator"], 1, "no cluster is configured");
    says(&["operator", "--lease-duration", "soon"], 2, "write e.g. 15s");
    says(&["operator", "--local", "x", "--aux-bind", ":1"], 2, "cannot be used with");
    says(&["operator", "--local", "x", "--log-level", "loud"], 2, "write debug, info, warn or error");
    says(&["sidecar", "--now"], 2, "unexpected argument '--now'");
    says(&["local", "dance"], 2, "unrecognized subcommand 'dance'");
    says(&["local", "what-if", "/tmp"], 2, "--kill <SITE>");
    says(&["local", "pause", "/tmp", "--off", "--until", "x"], 2, "cannot be used with");
}

#[test]
fn a_bad_script_is_refused_with_its_line_and_reason() {
    let file = script("bad.scn", "story x\nload on\nkill mysqld mars\n");
    let file = file.to_str().expect("a path that is text");
    says(&["playground", "--script", file], 2, "bad.scn: line 3: `mars` is not a site; this group has iad, pdx, fra");
    let elsewhere = ["playground", "--script", file, "--sites", "iad,mars", "--keeper", "/no/such/keeper"];
    says(&elsewhere, 2, "no keeper at /no/such/keeper");
}

#[test]
fn a_folder_that_is_none_is_told_and_not_made() {
    let nowhere = Path::new(env!("CARGO_TARGET_TMPDIR")).join("nowhere");
    let dir = nowhere.to_str().expect("a path that is text");
    let rows: [&[&str]; 8] = [
        &["local", "status", dir],
        &["local", "promote", dir, "pdx"],
        &["local", "reclone", dir, "pdx"],
        &["local", "pause", dir],
        &["local", "annotate", dir, "a=b"],
        &["local", "why", dir],
        &["local", "what-if", dir, "--kill", "iad"],
        &["operator", "--local", dir],
    ];
    for words in rows {
        says(words, 1, "is no state directory");
    }
    assert!(!nowhere.exists());
}

#[test]
fn a_sidecar_without_its_environment_names_the_variable() {
    let output = run(&["sidecar"]);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains("is not set; the sidecar needs it"), "{errors}");
}

#[test]
fn a_playground_without_a_server_program_changes_nothing() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("no-server");
    _ = std::fs::remove_dir_all(&folder);
    let keeper = script("keeper", "");
    let words = ["playground", "--headless", "--mysqld", "/no/such/mysqld", "--dir"];
    let mut words = words.to_vec();
    let (keeper, dir) = (keeper.to_str().expect("text"), folder.to_str().expect("text"));
    words.extend([dir, "--keeper", keeper]);
    says(&words, 1, "cannot run /no/such/mysqld");
    assert!(!folder.exists());
}

/// A program that answers `--version` with that, and nothing else.
fn server(name: &str, version: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt as _;
    let file = script(name, &format!("#!/bin/sh\necho '{version}'\n"));
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).expect("a program for the test");
    file
}

/// Every file below a folder with what is in it, locks aside.
fn contents(folder: &Path) -> std::collections::BTreeMap<PathBuf, Vec<u8>> {
    let entries = std::fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path());
    let files = entries.filter(|path| path.extension().is_none_or(|end| end != "lock"));
    files.map(|path| (path.clone(), std::fs::read(&path).unwrap_or_default())).collect()
}

#[test]
fn a_server_or_a_folder_that_cannot_be_used_is_told_and_left_as_it_is() {
    let new = server("mysqld-new", "mysqld  Ver 9.7.4 for Linux on x86_64 (Source distribution)");
    let old = server("mysqld-old", "mysqld  Ver 8.0.36 for Linux on x86_64 (MySQL Community Server - GPL)");
    let other = server("mysqld-other", "mysqld  Ver 11.4.2-MariaDB for debian-linux-gnu on x86_64");
    let mute = server("mysqld-mute", "");
    let keeper = script("keeper", "");
    let rows = [
        (&old, None, None, "is MySQL 8.0.36, which is too old; name a mysqld of 8.4 or newer"),
        (&other, None, None, "mysqld-other"),
        (&mute, None, None, "mysqld-mute"),
        (&new, Some("7\n"), Some("{}"), "has format \"7\" and this program reads \"1\""),
        (&new, Some("one"), None, "and this program reads \"1\""),
        (&new, Some("1\n"), Some("{"), "group.json is corrupt"),
        (&new, Some("1\n"), Some("[]"), "group.json"),
    ];
    for (number, (mysqld, version, group, said)) in rows.into_iter().enumerate() {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("unusable-{number}"));
        _ = std::fs::remove_dir_all(&folder);
        if let Some(version) = version {
            std::fs::create_dir_all(&folder).expect("a folder for the test");
            std::fs::write(folder.join("version"), version).expect("a file for the test");
        }
        if let Some(group) = group {
            std::fs::write(folder.join("group.json"), group).expect("a file for the test");
        }
        let before = folder.exists().then(|| contents(&folder));
        let text = |path: &Path| path.to_str().expect("a path that is text").to_owned();
        let (dir, mysqld, keeper) = (text(&folder), text(mysqld), text(&keeper));
        let output = run(&["playground", "--headless", "--dir", &dir, "--keeper", &keeper, "--mysqld", &mysqld]);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}: {errors}");
        assert!(errors.contains(said) && errors.lines().count() == 1, "{said}: {errors}");
        assert_eq!(folder.exists().then(|| contents(&folder)), before, "{said}");
    }
}
