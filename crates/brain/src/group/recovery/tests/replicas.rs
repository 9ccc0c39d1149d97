//! Other replicas: pointed to the primary without losing what they received; threads started; errors reported.

use super::bench::{Bench, bench, following, site};
use crate::candidate::drain::{Applier, Receiver};
use crate::group::input::{Facts, Outcome, ReplicaFacts};
use crate::group::kept::{Recovery, SiteKept};
use crate::group::tests::set;

fn with(change: impl Fn(&mut ReplicaFacts), facts: Facts) -> Facts {
    let mut facts = facts;
    change(facts.replica.as_mut().expect("a replica"));
    facts
}

fn check(site: Facts, expect: &[&str]) -> Bench {
    let mut bench = bench(vec![("pdx", site)]);
    bench.run(20);
    assert_eq!(bench.log, expect);
    bench
}

#[test]
fn a_replica_of_another_source_is_stopped_compared_and_pointed() {
    const POINTED: [&str; 2] = ["pdx: StopReceiver", "pdx: point to iad"];
    check(following(2, "1:1-9", "fra"), &POINTED);
    // of something that is no site
    check(with(|replica| replica.source = None, following(2, "1:1-9", "fra")), &POINTED);
    // of a source that is gone
    check(with(|replica| replica.receiver = Receiver::Connecting, following(2, "1:1-9", "fra")), &POINTED);
    // nothing is received any more
    check(with(|replica| replica.receiver = Receiver::Stopped, following(2, "1:1-9", "fra")), &POINTED[1..]);
    // not contained: blocked, left stopped
    check(
        following(2, "1:1-9,3:4", "fra"),
        &["stored pdx Blocked 03030303:4", "told DivergenceFound pdx 1", "pdx: StopReceiver"],
    );
}

#[test]
fn a_replica_that_was_just_pointed_under_the_last_tenure_is_pointed_under_the_next_at_once() {
    // The tenure is 7; under 5 authority may have been where it is now: it went there and back.
    for (last, pointed) in [(5, 1), (7, 0)] {
        let mut bench = bench(vec![("pdx", following(2, "1:1-9", "fra"))]);
        let now = bench.now.boot;
        bench.group.recovering.sites.entry(site("pdx")).or_default().attempt = Some((now, last));
        bench.run(20);
        assert_eq!(bench.count("pdx: point to iad"), pointed, "it was pointed under {last} a moment ago");
    }
}

#[test]
fn a_failed_pointing_is_tried_again_after_thirty_seconds() {
    let mut bench = bench(vec![("pdx", following(2, "1:1-9", "fra"))]);
    bench.outcomes.insert("Repoint", Some(Outcome::Failed("timeout".to_owned())));
    bench.run(29);
    assert_eq!(bench.count("pdx: point"), 1);
    bench.run(300);
    assert_eq!(bench.count("pdx: point"), 11);
    assert_eq!(bench.count("stored"), 0);
}

#[test]
fn stopped_threads_are_started_and_errors_are_not() {
    let stopped = |replica: &mut ReplicaFacts| {
        (replica.receiver, replica.applier) = (Receiver::Stopped, Applier::Stopped);
    };
    check(with(stopped, following(2, "1:1-9", "iad")), &["pdx: StartReplica"]);
    let receiver = |replica: &mut ReplicaFacts| replica.receiver = Receiver::Stopped;
    check(with(receiver, following(2, "1:1-9", "iad")), &["pdx: StartReplica"]);
    let applier = |replica: &mut ReplicaFacts| replica.applier = Applier::Stopped;
    check(with(applier, following(2, "1:1-9", "iad")), &["pdx: StartReplica"]);
    // a broken link is not a stopped thread
    check(with(|replica| replica.receiver = Receiver::Connecting, following(2, "1:1-9", "iad")), &[]);
    // 1062: reported, not looped
    let duplicate = |replica: &mut ReplicaFacts| {
        replica.applier = Applier::Failed { code: 1062, message: "duplicate entry".to_owned() };
    };
    let bench = check(with(duplicate, following(2, "1:1-9", "iad")), &[]);
    let trouble = bench.group.replication_trouble(&site("pdx"));
    assert_eq!(trouble.as_deref(), Some("applier stopped with error 1062: duplicate entry"));
    // c_95: the primary purged what it needs: reported, not looped
    let purged = |replica: &mut ReplicaFacts| {
        replica.receiver = Receiver::Stopped;
        replica.receiver_error = Some("1236: purged binary logs".to_owned());
    };
    check(with(purged, following(2, "1:1-9", "iad")), &[]);
}

#[test]
fn a_start_is_given_once_for_each_reading() {
    let stopped = |replica: &mut ReplicaFacts| replica.applier = Applier::Stopped;
    let mut bench = bench(vec![("pdx", with(stopped, following(2, "1:1-9", "iad")))]);
    // it says OK and does not start
    bench.outcomes.insert("StartReplica", Some(Outcome::Ok));
    bench.run(20);
    assert_eq!(bench.count("pdx: StartReplica"), 10);
}

#[test]
fn a_blocked_follower_is_not_started() {
    let stopped = |replica: &mut ReplicaFacts| replica.applier = Applier::Stopped;
    let blocked = SiteKept { recovery: Recovery::Blocked, divergent: set("2:1"), ..SiteKept::default() };
    let mut bench = bench(vec![("pdx", with(stopped, following(2, "1:1-9,2:1", "iad")))]).stored("pdx", blocked);
    bench.run(100);
    assert_eq!(bench.log, [""; 0]);
    // contained: it goes on by itself
    bench.executes("iad", "2:1");
    bench.run(40);
    assert_eq!(bench.log, ["stored pdx None", "pdx: StartReplica"]);
}
