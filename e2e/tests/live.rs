//! Whole groups of real servers under real faults, judged by the ledger: each scenario is a script, run by the playground as
//! a person would run it.
//!
//! The scripts are in `e2e/live`, several scenes each, played on one group: a line for each tells how it ended. A script
//! passes when everything that its scenes expect came true in time and no acknowledged write was lost or taken on the wrong
//! side. What a failed one left behind is kept, and its path told.

#![expect(clippy::unwrap_used, reason = "helpers of tests: what goes wrong ends the test, and says so")]

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use bloodraven_e2e::programs;
use bloodraven_testbed::mysql::{self, Distribution};
use bloodraven_testbed::scratch::Scratch;
use bloodraven_testbed::wait;

/// Longer than any script takes on a busy machine; a playground that hangs is a failure, not a wait for ever.
const LIMIT: Duration = Duration::from_mins(15);

/// Three servers at a time are enough for two cores.
fn turn() -> MutexGuard<'static, ()> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The words that tell the playground how to run MySQL.
fn mysql_words() -> &'static [OsString] {
    static WORDS: OnceLock<Vec<OsString>> = OnceLock::new();
    WORDS.get_or_init(|| {
        let distribution = Distribution::shared().unwrap();
        let template = mysql::provision_template(&distribution).unwrap();
        let mysqld = distribution.mysqld();
        let command = std::iter::once(mysqld.get_program()).chain(mysqld.get_args());
        let mut words: Vec<OsString> = command.flat_map(|word| ["--mysqld".into(), word.to_owned()]).collect();
        words.extend(["--template".into(), template.into_os_string()]);
        words
    })
}

/// Runs a scenario to its verdict.
fn play(name: &str, choice: [OsString; 2]) {
    let _turn = turn();
    let scratch = Scratch::new(name).unwrap();
    let said = scratch.path().join("said.jsonl");
    let told = scratch.path().join("told.txt");
    let mut command = Command::new(programs::bloodraven());
    command
        .args(["playground", "--headless"])
        .args(choice)
        .arg("--dir")
        .arg(scratch.path().join("group"))
        .arg("--keeper")
        .arg(programs::keeper())
        .args(mysql_words())
        .stdin(Stdio::null())
        .stdout(std::fs::File::create(&said).unwrap())
        .stderr(std::fs::File::create(&told).unwrap());
    let mut playground = command.spawn().unwrap();
    let status = wait::until(LIMIT, || playground.try_wait().unwrap());
    if status.is_none() {
        // It takes everything that it started along.
        playground.kill().unwrap();
        playground.wait().unwrap();
    }
    let words = std::fs::read_to_string(&told).unwrap_or_default();
    println!("{}", words.trim());
    let passed = status.is_some_and(|status| status.success());
    assert!(passed, "{name}: {status:?} (none: no verdict in time)\n{words}\nsee {}", scratch.keep().display());
}

fn ours(name: &str) {
    let file: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("live").join(format!("{name}.scn"));
    play(name, ["--script".into(), file.into_os_string()]);
}

macro_rules! scenarios {
    ($run:ident: $($test:ident = $name:literal;)*) => {
        $(#[test]
        fn $test() {
            $run($name);
        })*
    };
}

scenarios! { ours:
    planned_failovers = "planned";
    operator_dies_when_revoked = "operator-dies-revoked";
    operator_dies_when_granted = "operator-dies-granted";
    operator_dies_when_opened = "operator-dies-opened";
    primary_isolated_one_way = "isolated-one-way";
    sidecar_killed_then_isolated = "sidecar-killed-then-isolated";
    sidecar_killed_and_back = "sidecar-killed";
    keeper_killed = "keeper-killed";
    keeper_killed_and_away = "keeper-gone";
    divergent_site_recloned = "reclone-divergent";
    graceful_stop_of_the_primary = "graceful-stop";
    primary_pod_replaced = "pod-replaced";
    primary_loses_its_volume = "primary-wiped";
    dr_site_dies = "dr-dies";
    operator_down_primary_isolated = "operator-down-isolated";
    all_down_and_back = "all-down";
}

#[test]
fn the_tour() {
    play("tour", ["--scenario".into(), "tour".into()]);
}
