//! Whole groups of real servers under real faults, judged by the ledger: each scenario is a script, run by the playground as
//! a person would run it.
//!
//! The scripts are in `e2e/live`, several scenes each, played on one group: a line for each tells how it ended. A script
//! passes when everything that its scenes expect came true in time and no acknowledged write was lost or taken on the wrong
//! side. What a failed one left behind is kept, and its path told.

#![expect(clippy::unwrap_used, reason = "helpers of tests: what goes wrong ends the test, and says so")]

mod live_support;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bloodraven_testbed::scratch::Scratch;
use bloodraven_testbed::wait;
use live_support::Playground;

/// Longer than any script takes on a busy machine; a playground that hangs is a failure, not a wait for ever.
const LIMIT: Duration = Duration::from_mins(15);

/// Three servers at a time are enough for two cores.
fn turn() -> MutexGuard<'static, ()> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a scenario to its verdict.
fn play(name: &str, choice: &[OsString; 2]) {
    let _turn = turn();
    let scratch = Scratch::new(name).unwrap();
    let mut playground = Playground::start(scratch.path(), &scratch.path().join("group"), choice);
    let status = wait::until(LIMIT, || playground.status());
    let words = playground.told();
    println!("playground {}:\n{}", playground.pid(), words.trim());
    // One that hangs takes everything that it started along.
    drop(playground);
    let passed = status.is_some_and(|status| status.success());
    assert!(passed, "{name}: {status:?} (none: no verdict in time)\n{words}\nsee {}", scratch.keep().display());
}

fn ours(name: &str) {
    let file: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("live").join(format!("{name}.scn"));
    play(name, &["--script".into(), file.into_os_string()]);
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
    the_primary_is_lost = "emergency";
    sites_and_sidecars_are_cut_off = "isolation";
    people_at_the_servers = "people";
    numbered_scenarios = "shipped";
    two_operators = "two-operators";
    receipts = "semi-sync";
}

#[test]
fn the_tour() {
    play("tour", &["--scenario".into(), "tour".into()]);
}
