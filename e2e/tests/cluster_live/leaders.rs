//! Scenes of the operator and the API server: data keeps flowing without them, and an old leader changes nothing.
//!
//! In: the cast. Out: a leader, and a group that is as it was or moved once. Must not: end before another operator has said
//! something.

use std::time::Duration;

use bloodraven_testbed::cluster::Container;
use bloodraven_testbed::progress::say;
use bloodraven_testbed::wait::{self, Stopwatch};

use super::marks::Change;
use super::scenes::{Cast, HEALS_WITHIN};
use super::stage::OPERATORS;

/// How long the API server is away.
const AWAY: Duration = Duration::from_mins(2);

/// The longest time without a write that a client takes for its own machine's.
pub(crate) const UNNOTICED: Duration = Duration::from_secs(3);

/// How long a leader stands still: four times the Lease.
const STANDSTILL: Duration = Duration::from_mins(1);

/// A Lease that was released is taken at the next look, each 2 s; one that was not lasts 15 s.
const TAKEN_WITHIN: Duration = Duration::from_secs(10);

pub(crate) fn killed_idle(cast: &Cast<'_>) {
    let (before, epoch, revision) = (cast.stage.active(), cast.seen.epoch(), cast.seen.revision());
    let leader = cast.stage.leading();
    cast.stage.kill_operator();
    cast.load.wait_for_writes("without an operator");
    cast.stage.wait_for_status_of_another(&leader);
    cast.stage.wait_until_whole("the operator is back", HEALS_WITHIN);
    assert_eq!((cast.stage.active(), cast.seen.epoch()), (before, epoch), "nothing moves");
    keeps_its_clients(cast, revision);
}

/// A new leader knows nothing of the sites yet; that is no reason to take the primary from its clients.
fn keeps_its_clients(cast: &Cast<'_>, revision: u64) {
    let turned = cast.seen.count_after(revision, |change| matches!(change, Change::Endpoints(_)));
    assert_eq!(turned, 0, "-primary led elsewhere, or nowhere, while nothing moved");
}

/// C-133: the operator and every pod are replaced at once. The next leader reads in the pods that were kept that all of before
/// have ended; authority returns without a human, and a return is no failover.
pub(crate) fn killed_with_all_pods(cast: &Cast<'_>) {
    let (stage, site, leader) = (cast.stage, cast.stage.active(), cast.stage.leading());
    let (instances, moves, revision) = (stage.instances(), cast.seen.moves(), cast.seen.revision());
    let failovers =
        || (stage.events("FailoverExecuted"), stage.object().map(|it| it["status"]["lastFailover"].clone()));
    let before = failovers();
    stage.delete_all_pods();
    stage.kill_operator();
    stage.wait_for_status_of_another(&leader);
    for (site, instance) in &instances {
        stage.wait_for_another_instance(site, instance);
    }
    stage.wait_until_whole("everybody was replaced", HEALS_WITHIN);
    let ended = Change::Proof("ProcessEnded".to_owned());
    assert!(cast.seen.count_after(revision, |change| *change == ended) > 0, "the ends of pods are the proof");
    let more = cast.seen.moves() - moves;
    say(&format!("the operator and all pods were replaced: {more} moves"));
    // The site that comes back first may be another: then that is a failover, and the only one.
    match more {
        0 => assert_eq!((stage.active(), failovers()), (site, before), "a return is no failover"),
        _ => assert_eq!((more, failovers().0), (1, before.0 + 1), "one failover"),
    }
}

/// As soon as authority is taken back and nobody has it yet.
pub(crate) fn killed_in_move(cast: &Cast<'_>) {
    let (stage, before) = (cast.stage, cast.stage.active());
    let leader = stage.leading();
    let epoch = cast.seen.epoch();
    let cut = stage.machines().isolate(&before).unwrap();
    cast.seen.wait_for_move_above(epoch);
    assert_eq!(cast.seen.point().as_deref(), Some("Revoking"), "the move is not in the middle");
    let answers = cast.eyes.answers(&before);
    stage.kill_operator();
    stage.wait_for_status_of_another(&leader);
    stage.wait_for_another(&before, HEALS_WITHIN);
    assert!(cast.eyes.answers(&before) > answers, "{before} was not asked while it was cut off");
    cut.heal().unwrap();
}

/// The new pod is there before the old one goes, and the old one gives the Lease back.
pub(crate) fn rolled(cast: &Cast<'_>) {
    let (stage, before) = (cast.stage, cast.stage.active());
    let (epoch, revision) = (cast.seen.epoch(), cast.seen.revision());
    let leader = stage.leading();
    stage.restart_operator_in_good_order();
    let now = stage.wait_for_status_of_another(&leader);
    stage.wait_for_rollout();
    let taken = cast.seen.time_between(revision, &Change::Leader(String::new()), &Change::Leader(now));
    say(&format!("the Lease was given back, and taken {:.1} s later", taken.as_secs_f64()));
    assert!(taken < TAKEN_WITHIN, "the next leader waited {taken:?} although the Lease was given back");
    stage.wait_until_whole("another operator leads", HEALS_WITHIN);
    assert_eq!((stage.active(), cast.seen.epoch()), (before, epoch), "nothing moves");
    keeps_its_clients(cast, revision);
}

pub(crate) fn api_away(cast: &Cast<'_>) {
    let (stage, before, epoch) = (cast.stage, cast.stage.active(), cast.seen.epoch());
    let away = stage.machines().stop_api().unwrap();
    let (watch, begin) = (Stopwatch::start(), stage.timeline.now());
    let answers = || stage.cluster.kubectl(&["get", "--raw=/readyz", "--request-timeout=2s"]).is_ok();
    let over = wait::until_every(2 * AWAY, Duration::from_secs(1), || {
        assert!(!answers(), "the API server answers");
        (watch.elapsed() >= AWAY).then_some(())
    });
    assert!(over.is_some(), "the API server was away for {:?} only", watch.elapsed());
    let (lasted, gap) = (watch.elapsed(), cast.load.longest_gap_since(begin));
    drop(away);
    say(&format!(
        "the API server was away for {:.1} s, {:.1} s without a write",
        lasted.as_secs_f64(),
        gap.as_secs_f64()
    ));
    assert!(gap < UNNOTICED, "nobody could write for {gap:?} while the API server was away");
    stage.cluster.wait_for_answers(HEALS_WITHIN).unwrap();
    stage.wait_until_whole("the API server is back", HEALS_WITHIN);
    assert_eq!((stage.active(), cast.seen.epoch()), (before, epoch), "nothing moves");
}

/// What the first leader had in mind when it stood still must not happen any more.
pub(crate) fn stale(cast: &Cast<'_>) {
    let stage = cast.stage;
    stage.two_patient_operators();
    let leader = stage.leading();
    let (first, _) = leader.split_once('_').expect("a pod and its number");
    let of = Container { namespace: OPERATORS, pod: first, container: "bloodraven" };
    let (stands, watch) = (stage.machines().pause(of).unwrap(), Stopwatch::start());
    let second = stage.wait_for_status_of_another(&leader);
    let before = stage.active();
    stage.ask_for(stage.other_candidate(&before));
    stage.wait_for_another(&before, HEALS_WITHIN);
    stage.wait_until_whole("the second leads", HEALS_WITHIN);
    let stood =
        wait::until_every(HEALS_WITHIN, Duration::from_secs(1), || (watch.elapsed() >= STANDSTILL).then_some(()));
    assert!(stood.is_some(), "a minute passes");
    let (record, revision) = (stage.object().expect("the group")["status"]["authority"].clone(), cast.seen.revision());
    assert_eq!(stage.restarts_of_operator(first), Some(0), "{first} stood still and was not ended");
    drop(stands);
    let stood = watch.elapsed().as_secs_f64();
    stage.wait_until("the first leader knows that it leads no more", || {
        (stage.leads_by_its_metrics(first)? == 0).then_some(())
    });
    cast.load.wait_for_more(200, "with the first leader awake again");
    stage.wait_until_whole("two operators", HEALS_WITHIN);
    let now = stage.object().expect("the group")["status"]["authority"].clone();
    assert_eq!(now, record, "the first leader changed nothing");
    assert_eq!(stage.lease().map(|(holder, _)| holder), Some(second), "the second leads");
    let taken =
        cast.seen.count_after(revision, |change| matches!(change, Change::Leader(_) | Change::Authority { .. }));
    assert_eq!(taken, 0, "neither the Lease nor the record was written by another");
    say(&format!("the first leader stood still for {stood:.1} s, woke, and wrote nothing"));
    stage.one_operator_as_installed();
}
