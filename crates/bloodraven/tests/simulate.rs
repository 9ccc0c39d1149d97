//! `bloodraven simulate` as a person calls it: verdicts in the exit code, mistakes named with their place.

#![expect(clippy::expect_used, reason = "the checks fail the test that calls them")]

use std::path::PathBuf;
use std::process::{Command, Output};

fn simulate(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bloodraven")).arg("simulate").args(arguments).output().expect("it runs")
}

fn script(name: &str, text: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.scn"));
    std::fs::write(&path, text).expect("written");
    path
}

#[test]
fn seeds_are_played_and_summed_up() {
    let output = simulate(&["--seeds", "0..20", "--sites", "3"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    assert!(text.starts_with("20 runs, "), "{text}");
}

#[test]
fn one_seed_is_told_the_same_way_twice() {
    let (one, other) = (simulate(&["--seed", "7"]), simulate(&["--seed", "7"]));
    assert!(one.stdout.len() > 500, "{}", String::from_utf8_lossy(&one.stdout));
    assert_eq!(one.stdout, other.stdout);
}

#[test]
fn what_makes_no_sense_is_refused_with_its_place() {
    let rows = [
        ("site", "sites 2\nat 10s kill mysqld lax\nheal at 20s\n", "line 2"),
        ("time", "sites 2\nat -3s kill mysqld iad\nheal at 20s\n", "line 2"),
        ("fault", "sites 2\nat 3s melt mysqld iad\nheal at 20s\n", "line 2"),
    ];
    for (name, text, place) in rows {
        let path = script(name, text);
        let output = simulate(&["--scenario", &path.display().to_string()]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        std::fs::remove_file(&path).expect("removed");
        assert_eq!(output.status.code(), Some(2), "{name}: {said}");
        assert!(said.contains(place), "{name}: {said}");
        assert!(output.stdout.is_empty(), "{name}");
    }
    for arguments in [&["--seeds", "5..5"][..], &["--seeds", "9..3"], &["--seeds", "many"], &["--sites", "9"]] {
        assert_eq!(simulate(arguments).status.code(), Some(2), "{arguments:?}");
    }
}
