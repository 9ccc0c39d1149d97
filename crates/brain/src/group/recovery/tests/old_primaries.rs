//! Old primaries: read-only sites without replication, once there is history.

use super::bench::{Bench, alone, bench, following, site};
use crate::group::input::{Facts, Outcome, Saved};
use crate::group::kept::{Kept, Planned, PlannedPhase, Recovery, SiteKept, Update, UpdatePhase};
use crate::group::spec::Pause;
use crate::record::Phase;
use crate::site::Pair;
use crate::time::{Millis, Wall};

/// Ten seconds of a site that comes back, and what is done about it.
fn check(back: Facts, expect: &[&str]) {
    let mut bench = bench(vec![("pdx", back)]);
    bench.run(10);
    assert_eq!(bench.log, expect);
}

const REJOINS: [&str; 5] = [
    "stored pdx InProgress",
    "told RecoveryStarted pdx",
    "pdx: attach to iad",
    "stored pdx None",
    "told RecoveryComplete pdx",
];

#[test]
fn a_site_without_replication_is_compared_and_rejoins_or_is_blocked() {
    // contained: stored first, then attached; over when both threads run and the source is right
    check(alone(2, "1:1-9"), &REJOINS);
    check(alone(2, "1:1-10"), &REJOINS);
    // divergent: fenced as it is, old minus new, never attached
    check(alone(2, "1:1-9,2:1-3"), &["stored pdx Blocked 02020202:1-3", "told DivergenceFound pdx 3"]);
    check(alone(2, "2:1-3"), &["stored pdx Blocked 02020202:1-3", "told DivergenceFound pdx 3"]);
    // it follows already: nothing
    check(following(2, "1:1-9", "iad"), &[]);
}

#[test]
fn what_is_not_understood_is_left_alone() {
    check(Facts { data: None, ..alone(2, "1:1-9") }, &[]);
    let mut bench = bench(vec![("pdx", alone(2, "1:1-9"))]);
    bench.server("iad").facts.data = None;
    assert_eq!(bench.run(10).log, [""; 0]);
}

#[test]
fn a_returning_writer_is_fenced_first_and_compared_later() {
    let mut bench = bench(vec![("pdx", Facts { pair: Pair::OPEN, ..alone(2, "1:1-9") })]);
    bench.run(10);
    assert_eq!(bench.log.first().map(String::as_str), Some("pdx: Fence"), "{:?}", bench.log);
    assert_eq!(&bench.log[bench.log.len() - 5..], REJOINS);
    // 1/0 is no fence either
    let half = Pair { read_only: true, super_read_only: false };
    let mut other = super::bench::bench(vec![("pdx", Facts { pair: half, ..alone(2, "1:1-9") })]);
    other.outcomes.insert("Fence", None);
    other.run(30);
    assert!(other.count("pdx: Fence") > 0);
    assert_eq!(other.count("stored"), 0, "{:?}", other.log);
}

/// What keeps every recovery from being begun.
#[test]
fn nothing_is_repaired_beside_other_work_or_without_one_confirmed_primary() {
    let quiet = |name: &str, change: fn(&mut Bench)| {
        let mut bench = bench(vec![("pdx", alone(2, "1:1-9"))]);
        change(&mut bench);
        bench.restart();
        bench.run(60);
        assert_eq!(bench.count("stored pdx") + bench.count("pdx: attach"), 0, "{name}: {:?}", bench.log);
    };
    quiet("paused", |bench| bench.group.spec.paused = Some(Pause { reason: String::new(), until: None }));
    quiet("no replication account", |bench| bench.group.spec.replication_account = false);
    quiet("the primary is not confirmed", |bench| bench.server("iad").up = false);
    quiet("the primary is fenced by hand", |bench| bench.server("iad").facts.pair = Pair::CLOSED);
}

#[test]
fn a_planned_failover_keeps_every_repair_waiting_from_its_acceptance_to_its_end() {
    let check = |phase: PlannedPhase, free: bool| {
        let mut bench = bench(vec![("pdx", alone(2, "1:1-9"))]);
        bench.run(4);
        let kept = Kept { planned: Some(planned(phase)), ..bench.store.clone() };
        assert_eq!(bench.group.footing(bench.now, &kept).is_ok(), free, "{phase:?}");
    };
    check(PlannedPhase::Pending, false);
    check(PlannedPhase::Validating, false);
    check(PlannedPhase::Deferred, true);
    check(PlannedPhase::Draining, false);
    check(PlannedPhase::WaitingForLag, false);
    check(PlannedPhase::WaitingForCache, false);
    check(PlannedPhase::PromotingCache, false);
    check(PlannedPhase::Promoting, false);
    check(PlannedPhase::Resuming, false);
    check(PlannedPhase::Succeeded, true);
    check(PlannedPhase::Failed, true);
}

#[test]
fn a_record_that_is_not_stable_or_behind_carries_no_repair() {
    let check = |change: fn(&mut Bench, &mut Kept), free: bool| {
        let mut bench = bench(vec![("pdx", alone(2, "1:1-9"))]);
        bench.run(4);
        let mut kept = bench.store.clone();
        change(&mut bench, &mut kept);
        assert_eq!(bench.group.footing(bench.now, &kept).is_ok(), free);
    };
    check(|_, _| {}, true);
    check(|_, kept| kept.record = None, false);
    check(|_, kept| kept.record.as_mut().expect("a record").phase = Phase::Granting, false);
    check(|_, kept| kept.record.as_mut().expect("a record").phase = Phase::Revoking, false);
    check(|bench, _| bench.group.seen.evidence.highest = 8, false);
}

#[test]
fn what_does_not_keep_a_recovery_from_being_begun() {
    let loud = |name: &str, change: fn(&mut Bench)| {
        let mut bench = bench(vec![("pdx", alone(2, "1:1-9"))]);
        change(&mut bench);
        bench.restart();
        bench.run(10);
        assert_eq!(bench.log, REJOINS, "{name}");
    };
    loud("a pause that is over", |bench| {
        bench.group.spec.paused = Some(Pause { reason: String::new(), until: Some(Wall(1)) });
    });
    loud("an ordered update, which waits for it", |bench| {
        let phase = UpdatePhase::WaitOldPrimary;
        bench.store.update = Some(Update { phase, site: Some(site("pdx")), since: Wall(0), stopped: None });
    });
}

fn planned(phase: PlannedPhase) -> Planned {
    Planned {
        phase,
        request_id: String::new(),
        origin: crate::group::kept::Origin::Annotation,
        target: site("pdx"),
        source: site("iad"),
        source_gtid: None,
        target_gtid: None,
        started: Wall(0),
        completed: None,
        transactions_lost: None,
        reason: None,
        message: String::new(),
        max_lag_wait: Millis(0),
        drain_timeout: Millis(0),
        drain_started: None,
        remaining_connections: None,
        lag_wait_started: None,
        // The end of the cooldown, far ahead.
        retry_after: Some(Wall(i64::MAX)),
        cache: None,
    }
}

#[test]
fn attempts_are_thirty_seconds_apart() {
    let mut bench = bench(vec![("pdx", alone(2, "1:1-9"))]);
    bench.outcomes.insert("Attach", Some(Outcome::Failed("no route".to_owned())));
    bench.run(5);
    assert_eq!(bench.count("pdx: attach"), 1);
    bench.run(24);
    assert_eq!(bench.count("pdx: attach"), 1);
    bench.run(10);
    assert_eq!(bench.count("pdx: attach"), 2);
    bench.run(300);
    assert_eq!(bench.count("pdx: attach"), 12);
    assert_eq!(bench.kept("pdx").recovery, Recovery::InProgress);
    bench.outcomes.clear();
    bench.take_log();
    bench.run(35);
    assert_eq!(bench.log, REJOINS[2..]);
}

#[test]
fn a_started_replica_is_back_only_when_both_threads_run() {
    let mut bench = bench(vec![("pdx", following(2, "1:1-9", "iad"))]);
    bench.server("pdx").facts.replica.as_mut().expect("a replica").receiver =
        crate::candidate::drain::Receiver::Connecting;
    let mut bench = bench.stored("pdx", SiteKept { recovery: Recovery::InProgress, ..SiteKept::default() });
    bench.run(30);
    assert_eq!(bench.log, [""; 0]);
    bench.server("pdx").facts = following(2, "1:1-9", "iad");
    // one poll is not enough, two are
    bench.run(2);
    assert_eq!(bench.log, [""; 0]);
    bench.run(2);
    assert_eq!(bench.log, REJOINS[3..]);
}

#[test]
fn a_new_leader_goes_on_wherever_the_old_one_stopped() {
    for quarter_seconds in 0..24 {
        let mut bench = bench(vec![("pdx", alone(2, "1:1-9"))]);
        for _ in 0..quarter_seconds {
            bench.now.boot = bench.now.boot + Millis(250);
            bench.run(0);
            bench.tell(crate::group::Input::Tick);
        }
        bench.restart();
        bench.run(40);
        assert_eq!(bench.kept("pdx").recovery, Recovery::None);
        assert_eq!(bench.log, REJOINS, "restarted after {quarter_seconds} quarters of a second");
    }
    // it died after the state was stored, and after the server was attached
    let state = SiteKept { recovery: Recovery::InProgress, ..SiteKept::default() };
    let mut stored = bench(vec![("pdx", alone(2, "1:1-9"))]).stored("pdx", state.clone());
    assert_eq!(stored.run(10).log, REJOINS[2..]);
    let mut attached = bench(vec![("pdx", following(2, "1:1-9", "iad"))]).stored("pdx", state);
    assert_eq!(attached.run(10).log, REJOINS[3..]);
}

#[test]
fn nothing_is_attached_before_the_state_is_stored() {
    let mut bench = bench(vec![("pdx", alone(2, "1:1-9"))]);
    bench.saves = [Saved::Unknown, Saved::Unknown].into();
    bench.run(15);
    let expect: Vec<&str> = ["lost a save"; 2].into_iter().chain(REJOINS).collect();
    assert_eq!(bench.log, expect);
}

#[test]
fn several_sites_come_back_at_once() {
    let mut bench = bench(vec![("pdx", alone(2, "1:1-9")), ("fra:dr", alone(3, "1:1-4,3:1"))]);
    bench.run(10);
    assert_eq!(bench.count("told RecoveryComplete pdx"), 1, "{:?}", bench.log);
    assert_eq!(bench.count("told DivergenceFound fra 1"), 1, "{:?}", bench.log);
}
