//! Divergence: found in the right order, reported for each site, never attached, gone when a reading disproves it.

use super::bench::{Bench, alone, bench, following};
use crate::candidate::Data;
use crate::candidate::drain::Applier;
use crate::group::input::{Facts, Outcome};
use crate::group::kept::{Recovery, SiteKept};
use crate::group::tests::set;
use crate::site::Pair;

fn primary(executed: &str) -> Outcome {
    Outcome::Read(Box::new(Facts { pair: Pair::OPEN, ..alone(1, executed) }))
}

#[test]
fn the_primary_is_read_after_the_site_and_twice_before_a_verdict() {
    let mut bench = bench(vec![("pdx", alone(2, "1:1-12"))]);
    bench.outcomes.insert("Read", None);
    bench.run(3);
    assert_eq!(bench.log, [""; 0], "the polls alone decide nothing");
    // the first reading lacks what the site has: no verdict yet
    bench.end("Read", primary("1:1-11"));
    bench.run(3);
    assert_eq!(bench.log, [""; 0]);
    // the second one has it: contained
    bench.end("Read", primary("1:1-12"));
    assert_eq!(bench.log[..3], ["stored pdx InProgress", "told RecoveryStarted pdx", "pdx: attach to iad"]);
}

#[test]
fn a_reading_that_fails_or_is_not_understood_decides_nothing() {
    let closed = Outcome::Read(Box::new(alone(1, "1:1-5")));
    let blank = Outcome::Read(Box::new(Facts { pair: Pair::OPEN, data: None, ..alone(1, "") }));
    for outcome in [Outcome::Failed("timeout".to_owned()), blank, closed] {
        let mut bench = bench(vec![("pdx", alone(2, "1:1-9,2:1"))]);
        bench.outcomes.insert("Read", Some(outcome.clone()));
        bench.run(60);
        assert_eq!(bench.count("stored"), 0, "{outcome:?}");
    }
}

#[test]
fn a_follower_under_load_never_looks_divergent() {
    let mut bench = bench(vec![("pdx", following(2, "1:1-9", "iad"))]);
    for round in 0..100_u32 {
        // the follower is polled after the primary and has more than the poll of the primary said
        let executed = format!("1:1-{}", 20 + 10 * round);
        bench.executes("iad", &executed);
        bench.executes("pdx", &executed);
        bench.run(1);
    }
    assert_eq!(bench.log, [""; 0]);
}

#[test]
fn a_commit_that_waits_for_a_receipt_at_the_primary_is_no_divergence_elsewhere() {
    let rows = [
        ("1:1-11", "1:11", ""),
        ("1:1-11", "", "1:11"),
        ("1:1-11", "1:12", "1:11"),
        // Of another server: somebody's session at the primary, which may take it back.
        ("1:1-9,2:1", "2:1", "2:1"),
    ];
    for (has, committing, divergent) in rows {
        let mut bench = bench(vec![("pdx", following(2, has, "iad"))]);
        bench.server("iad").facts.data.as_mut().expect("data").committing = set(committing);
        bench.run(10);
        assert_eq!(bench.kept("pdx").divergent, set(divergent), "committing {committing}: {:?}", bench.log);
    }
}

#[test]
fn c_51_a_rogue_row_on_a_follower_is_found() {
    for name in ["pdx", "fra:dr"] {
        let mut bench = bench(vec![(name, following(2, "1:1-9,2:1", "iad"))]);
        bench.run(10);
        let short = name.trim_end_matches(":dr");
        let stored = format!("stored {short} Blocked 02020202:1");
        assert_eq!(bench.log, [stored, format!("told DivergenceFound {short} 1")]);
    }
}

#[test]
fn r_05_a_divergent_site_is_never_attached_however_often_steps_run() {
    let sites = || {
        let lost = Facts { user_data: true, ..alone(3, "3:1-2") };
        vec![("pdx", alone(2, "1:1-9,2:1-3")), ("fra", lost), ("lhr", following(4, "1:1-5,4:7", "pdx"))]
    };
    let mut bench = bench(sites());
    for _ in 0..20 {
        bench.run(97);
        bench.restart();
    }
    for name in ["pdx", "fra", "lhr"] {
        assert_eq!(bench.kept(name).recovery, Recovery::Blocked, "{name}");
        for deed in ["attach", "point", "clone", "StartReplica"] {
            assert_eq!(bench.count(&format!("{name}: {deed}")), 0, "{:?}", bench.log);
        }
        assert_eq!(bench.count(&format!("told DivergenceFound {name}")), 1, "told once, also by later leaders");
    }
}

#[test]
fn a_divergence_is_read_again_and_a_site_that_is_contained_rejoins_by_itself() {
    let mut bench = bench(vec![("pdx", alone(2, "1:1-9,2:1"))]);
    bench.run(10);
    assert_eq!(bench.kept("pdx").divergent, set("2:1"));
    bench.take_log();
    bench.executes("iad", "2:1");
    bench.run(36);
    assert_eq!(bench.log.first().map(String::as_str), Some("stored pdx InProgress"));
    assert_eq!(bench.log.last().map(String::as_str), Some("told RecoveryComplete pdx"));
}

#[test]
fn a_divergence_that_grows_is_reported_anew() {
    let mut bench = bench(vec![("pdx", alone(2, "1:1-9,2:1"))]);
    bench.run(10);
    bench.take_log();
    bench.executes("pdx", "2:2");
    bench.run(10);
    assert_eq!(bench.log, ["stored pdx Blocked 02020202:1-2", "told DivergenceFound pdx 2"]);
}

#[test]
fn a_report_stays_while_the_site_is_away() {
    let mut bench = bench(vec![("pdx", alone(2, "1:1-9,2:1"))]);
    bench.run(10);
    bench.server("pdx").up = false;
    bench.take_log();
    bench.run(300);
    assert_eq!(bench.log, [""; 0]);
    assert_eq!(bench.kept("pdx").divergent, set("2:1"));
}

#[test]
fn what_a_grant_gave_up_is_confirmed_or_cleared_by_a_reading() {
    let given_up = || SiteKept { divergent: set("2:1-2"), ..SiteKept::default() };
    let check = |back: Facts, expect: &[&str]| {
        let mut bench = bench(vec![("pdx", back)]).stored("pdx", given_up());
        bench.run(4);
        assert_eq!(bench.log[..expect.len()], *expect);
        bench
    };
    check(alone(2, "1:1-9,2:1-2"), &["stored pdx Blocked 02020202:1-2", "told DivergenceFound pdx 2"]);
    check(following(2, "1:1-9,2:1", "iad"), &["stored pdx Blocked 02020202:1", "told DivergenceFound pdx 1"]);
    check(following(2, "1:1-9", "iad"), &["stored pdx None"]);
    check(following(2, "1:1-9", "fra"), &["stored pdx None", "pdx: StopReceiver", "pdx: point to iad"]);
    check(alone(2, "1:1-9"), &["stored pdx InProgress", "told RecoveryStarted pdx", "pdx: attach to iad"]);
}

#[test]
fn the_primary_itself_is_never_reported() {
    let stale = SiteKept { recovery: Recovery::Blocked, divergent: set("1:1-3"), ..SiteKept::default() };
    let mut bench = bench(vec![("pdx", following(2, "1:1-9", "iad"))]).stored("iad", stale);
    assert_eq!(bench.run(4).log, ["stored iad None"]);
}

#[test]
fn what_was_received_and_not_applied_counts_too() {
    let check = |received: &str, expect: &str| {
        let mut site = following(2, "1:1-9", "fra");
        site.data = Some(Data { received: set(received), ..site.data.unwrap_or_default() });
        let mut bench: Bench = bench(vec![("pdx", site)]);
        bench.run(4);
        assert_eq!(bench.log.first().map(String::as_str), Some(expect));
    };
    check("1:10", "pdx: StopReceiver");
    check("1:10-11", "stored pdx Blocked 01010101-0101-0101-0101-010101010101:11");
}

/// By the polls it has what the primary lacks, which is mostly their order: its threads are started meanwhile, also when the
/// comparison found nothing.
#[test]
fn a_follower_that_only_seems_ahead_is_started_as_any_other() {
    let mut stopped = following(2, "1:1-11", "iad");
    stopped.replica.as_mut().expect("a replica").applier = Applier::Stopped;
    let started = |read: Option<Outcome>| {
        let mut bench = bench(vec![("pdx", stopped.clone())]);
        bench.outcomes.insert("Read", read);
        // It says that it was, and is not: it is tried once for each reading.
        bench.outcomes.insert("StartReplica", Some(Outcome::Ok));
        bench.run(20);
        assert_eq!(bench.count("stored"), 0, "{:?}", bench.log);
        bench.count("pdx: StartReplica")
    };
    assert_eq!(started(Some(primary("1:1-11"))), 10);
    assert_eq!(started(None), 10, "the primary is not read in time");
}
