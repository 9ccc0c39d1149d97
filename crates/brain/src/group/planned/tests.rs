//! Planned failovers among obedient sites.

mod conditions;

use crate::group::forecast::Rehearsal;
use crate::group::forecast::faults::Fault;
use crate::group::input::{Input, PlannedWish, Request, Requests};
use crate::group::kept::{Kept, PlannedPhase, PlannedReason};
use crate::group::tests::{running, told, write};
use crate::group::{Notice, Task};
use crate::name::Site;
use crate::record::{Cause, Phase, ProofKind};
use crate::site::Pair;
use crate::time::{Millis, Wall};

use PlannedPhase::{Draining, Pending, Promoting, Resuming, Succeeded, Validating, WaitingForLag};

/// Where to, what goes before it, and the reason of the refusal; none: it is skipped.
type Refused = (&'static str, fn(&mut Rehearsal), Option<PlannedReason>);

const MINUTE: Millis = Millis::from_secs(60);

fn site(name: &str) -> Site {
    Site::new(name)
}

fn ask(stage: &mut Rehearsal, to: &str) {
    let wish = PlannedWish { site: site(to), max_lag_wait: None, id: None };
    let planned = Some(Request { text: to.to_owned(), wish: Ok(wish) });
    stage.tell(Input::Requests(Box::new(Requests { planned, ..Requests::default() })));
}

fn outcome(stage: &Rehearsal) -> Option<(PlannedPhase, Option<PlannedReason>)> {
    stage.store.planned.as_ref().map(|planned| (planned.phase, planned.reason))
}

fn is_over(stage: &Rehearsal) -> bool {
    stage.store.planned.as_ref().is_some_and(|planned| planned.phase.is_terminal())
}

#[test]
fn a_planned_failover_loses_nothing_and_takes_no_lease_wait() {
    let mut stage = running(&["iad", "pdx", "fra"]);
    let before = stage.now.boot;
    ask(&mut stage, "pdx");
    assert!(stage.play(MINUTE, is_over), "{:?} {:?}", outcome(&stage), stage.group.obstacle);
    assert_eq!(outcome(&stage), Some((Succeeded, None)), "{:?}", stage.store.planned);
    assert_eq!(stage.writer(), Some(site("pdx")));
    let planned = stage.store.planned.clone().expect("a run");
    assert_eq!(planned.transactions_lost, Some(0));
    assert_eq!(planned.message, "promoted pdx, 0 transactions lost");
    let record = stage.store.record.clone().expect("a record");
    assert_eq!(record.cause, Cause::Planned);
    assert_eq!(record.proof.map(|proof| proof.kind), Some(ProofKind::FencedBySidecar));
    assert!(stage.now.boot.since(before) < Millis::from_secs(3), "{:?}", stage.now.boot.since(before));
}

/// K-27: a planned failover that is refused gives its reason.
#[test]
fn what_a_request_is_refused_for() {
    let rows: [Refused; 6] = [
        ("lax", |_| {}, Some(PlannedReason::UnknownSite)),
        ("fra", |_| {}, Some(PlannedReason::UnknownSite)),
        ("iad", |_| {}, None),
        ("pdx", |stage| stage.kill(&Site::new("pdx")), Some(PlannedReason::TargetUnhealthy)),
        ("pdx", pause, Some(PlannedReason::Paused)),
        ("pdx", lag, Some(PlannedReason::TargetUnhealthy)),
    ];
    for (to, before, expected) in rows {
        let mut stage = running(&["iad", "pdx", "fra:dr"]);
        before(&mut stage);
        stage.play(Millis::from_secs(15), |_| false);
        let epoch = stage.store.epoch();
        ask(&mut stage, to);
        stage.play(Millis::from_secs(2), |_| false);
        assert_eq!(outcome(&stage).and_then(|(_, reason)| reason), expected, "{to}: {:?}", told(&stage));
        assert_eq!(stage.store.record.as_ref().map(|record| record.phase), Some(Phase::Stable), "{to}: never fenced");
        assert!(stage.store.epoch() <= epoch + 1, "{to}: never fenced");
        let word = if expected.is_some() { "PlannedRejected" } else { "PlannedSkipped" };
        assert!(told(&stage).contains(&word.to_owned()), "{to}: {:?}", told(&stage));
    }
}

fn pause(stage: &mut Rehearsal) {
    stage.group.spec.paused = Some(crate::group::spec::Pause { reason: "maintenance".to_owned(), until: None });
}

fn lag(stage: &mut Rehearsal) {
    let pdx = stage.actors.get_mut(&Site::new("pdx")).expect("pdx");
    pdx.facts.replica.as_mut().expect("replica").behind = Some(Millis::from_secs(1200));
}

#[test]
fn inside_the_cooldown_it_is_rejected_or_deferred() {
    for defer in [false, true] {
        let mut stage = running(&["iad", "pdx", "fra"]);
        stage.group.spec.planned.defer = defer;
        ask(&mut stage, "pdx");
        assert!(stage.play(MINUTE, |stage| stage.writer() == Some(site("pdx"))));
        crate::group::tests::follow_all(&mut stage, &site("pdx"));
        stage.tell(Input::Requests(Box::default()));
        stage.play(Millis::from_secs(10), |_| false);
        ask(&mut stage, "fra");
        stage.play(Millis::from_secs(2), |_| false);
        let expected = if defer { PlannedPhase::Deferred } else { PlannedPhase::Failed };
        assert_eq!(outcome(&stage), Some((expected, Some(PlannedReason::CooldownActive))));
        let message = stage.store.planned.as_ref().map(|planned| planned.message.clone()).unwrap_or_default();
        assert!(message.contains("retry after 20"), "the moment is named: {message}");
        let moved = stage.play(Millis::from_secs(400), |stage| stage.writer() == Some(site("fra")));
        assert_eq!(moved, defer, "{:?}", stage.store.planned);
    }
}

#[test]
fn a_target_that_does_not_catch_up_gives_authority_back_to_the_source() {
    let mut stage = running(&["iad", "pdx", "fra"]);
    write(&mut stage, "1:11-20");
    stage.actors.get_mut(&site("pdx")).expect("pdx").refuses = Some(|task| matches!(task, Task::WaitFor { .. }));
    stage.group.spec.planned.max_lag_wait = Millis::from_secs(20);
    ask(&mut stage, "pdx");
    assert!(stage.play(MINUTE, is_over), "{:?} {:?}", outcome(&stage), stage.group.obstacle);
    assert_eq!(outcome(&stage), Some((PlannedPhase::Failed, Some(PlannedReason::LagTimeout))));
    assert_eq!(stage.writer(), Some(site("iad")));
    assert_eq!(stage.store.record.as_ref().map(|record| record.cause), Some(Cause::Rollback));
    assert_eq!(stage.store.last_failover, None);
}

#[test]
fn a_calendar_that_jumps_changes_no_wait() {
    // The calendar's jump while nobody can write, in seconds; how long the wait takes, at least and at most.
    for jump in [0, -3600, 3600] {
        let mut stage = running(&["iad", "pdx", "fra"]);
        write(&mut stage, "1:11-20");
        stage.actors.get_mut(&site("pdx")).expect("pdx").refuses = Some(|task| matches!(task, Task::WaitFor { .. }));
        stage.actors.get_mut(&site("iad")).expect("iad").sessions = 3;
        stage.group.spec.planned.max_lag_wait = Millis::from_secs(20);
        stage.group.spec.planned.drain_timeout = Millis::from_secs(9);
        ask(&mut stage, "pdx");
        for (phase, least, most) in [(Draining, 8, 11), (WaitingForLag, 19, 23)] {
            let fenced = |stage: &Rehearsal| {
                let planned = stage.store.planned.as_ref();
                planned.is_some_and(|planned| planned.phase == phase && planned.drain_started.is_some())
            };
            assert!(stage.play(MINUTE, fenced), "{jump} {phase:?}");
            stage.now.wall = Wall(stage.now.wall.0 + jump * 1000);
            let began = stage.now.boot;
            assert!(stage.play(MINUTE, |stage| !fenced(stage) || is_taken_back(stage)), "{jump} {phase:?}");
            let took = stage.now.boot.since(began);
            assert!(took >= Millis::from_secs(least) && took <= Millis::from_secs(most), "{jump} {phase:?} {took:?}");
        }
        assert!(stage.play(MINUTE, is_over), "{jump}");
        assert_eq!(outcome(&stage), Some((PlannedPhase::Failed, Some(PlannedReason::LagTimeout))), "{jump}");
    }
}

fn is_taken_back(stage: &Rehearsal) -> bool {
    outcome(stage).is_some_and(|(_, reason)| reason.is_some())
}

#[test]
fn a_deferred_request_goes_on_when_the_cooldown_is_over_whatever_the_calendar_says() {
    for jump in [0, -7200, 7200] {
        let mut stage = running(&["iad", "pdx", "fra"]);
        stage.group.spec.planned.defer = true;
        ask(&mut stage, "pdx");
        assert!(stage.play(MINUTE, |stage| stage.writer() == Some(site("pdx"))));
        crate::group::tests::follow_all(&mut stage, &site("pdx"));
        stage.tell(Input::Requests(Box::default()));
        stage.play(Millis::from_secs(10), |_| false);
        ask(&mut stage, "fra");
        stage.play(Millis::from_secs(2), |_| false);
        stage.now.wall = Wall(stage.now.wall.0 + jump * 1000);
        let began = stage.now.boot;
        assert!(stage.play(Millis::from_secs(400), |stage| stage.writer() == Some(site("fra"))), "{jump}");
        let took = stage.now.boot.since(began);
        assert!(took > Millis::from_secs(200), "{jump}: {took:?}");
    }
}

#[test]
fn a_source_that_dies_on_the_way_is_an_emergency() {
    let mut stage = running(&["iad", "pdx", "fra"]);
    write(&mut stage, "1:11-20");
    stage.actors.get_mut(&site("pdx")).expect("pdx").refuses = Some(|task| matches!(task, Task::WaitFor { .. }));
    ask(&mut stage, "pdx");
    assert!(stage.play(MINUTE, |stage| outcome(stage).is_some_and(|(phase, _)| phase == WaitingForLag)));
    stage.kill(&site("iad"));
    assert!(stage.play(MINUTE, is_over), "{:?}", outcome(&stage));
    assert_eq!(outcome(&stage), Some((PlannedPhase::Failed, Some(PlannedReason::SourceCrashed))));
    assert!(
        stage.play(MINUTE, |stage| stage.writer().is_some_and(|now| now != site("iad"))),
        "{:?}",
        stage.group.obstacle
    );
}

#[test]
fn a_new_leader_goes_on_wherever_the_old_one_stopped() {
    for stop in 0..60 {
        let mut stage = running(&["iad", "pdx", "fra"]);
        stage.stop_after(stop);
        ask(&mut stage, "pdx");
        stage.play(MINUTE, Rehearsal::is_stopped);
        let accepted = stage.store.planned.is_some();
        let mut stage = stage.with_new_leader();
        if !accepted {
            ask(&mut stage, "pdx");
        }
        assert!(stage.play(MINUTE, is_over), "stopped after {stop}: {:?} {:?}", outcome(&stage), stage.group.obstacle);
        let expected = match outcome(&stage) {
            Some((Succeeded, None)) => "pdx",
            _ => "iad",
        };
        assert!(
            stage.play(MINUTE, |stage| stage.writer() == Some(site(expected))),
            "stopped after {stop}: {:?}",
            outcome(&stage)
        );
        assert_eq!(stage.store.planned.as_ref().and_then(|planned| planned.transactions_lost).unwrap_or(0), 0);
    }
}

#[test]
fn the_story_is_told_in_order() {
    let mut stage = running(&["iad", "pdx", "fra"]);
    stage.told.clear();
    ask(&mut stage, "pdx");
    stage.play(MINUTE, is_over);
    let phases: Vec<PlannedPhase> = stage
        .told
        .iter()
        .filter_map(|(_, notice)| match notice {
            Notice::PlannedChanged { phase, .. } => Some(*phase),
            _ => None,
        })
        .collect();
    let expected = [Pending, Validating, Draining, Draining, WaitingForLag, Promoting, Resuming, Succeeded];
    assert_eq!(phases, expected);
}

/// What was stored: the run's phase and the record's.
fn written(stage: &Rehearsal) -> Vec<(PlannedPhase, Phase)> {
    let phases = |kept: &Kept| Some((kept.planned.as_ref()?.phase, kept.record.as_ref()?.phase));
    stage.writes.iter().filter_map(phases).collect()
}

#[test]
fn a_target_that_has_everything_is_granted_with_the_second_write_after_the_fence() {
    let mut stage = running(&["iad", "pdx", "fra"]);
    ask(&mut stage, "pdx");
    assert!(stage.play(MINUTE, is_over));
    let expected = [
        (Pending, Phase::Stable),
        (Validating, Phase::Stable),
        (Draining, Phase::Revoking),
        (Draining, Phase::Revoking),
        (Promoting, Phase::Granting),
        (Promoting, Phase::Granting),
        (Promoting, Phase::Stable),
        (Resuming, Phase::Stable),
        (Succeeded, Phase::Stable),
    ];
    assert!(written(&stage).starts_with(&expected), "{:?}", written(&stage));
}

/// The cut takes no time of its own; but nothing is written down or opened without the target's word.
#[test]
fn a_target_is_cut_off_while_it_stores_its_epoch_and_promoted_only_when_it_has() {
    let mut cut_before_its_word = false;
    for command in 0..40 {
        let mut stage = running(&["iad", "pdx", "fra"]);
        stage.faults.plan = vec![(stage.faults.commands + command, Fault::SidecarHangs(site("pdx")))];
        ask(&mut stage, "pdx");
        stage.play(Millis::from_secs(20), |stage| {
            let record = stage.store.record.as_ref().expect("a record");
            let target = &stage.actors[&site("pdx")];
            let granted = record.seat.as_ref().is_some_and(|seat| seat.site == site("pdx"));
            if granted && record.phase == Phase::Granting && target.epoch != Some(record.epoch) {
                assert_eq!(stage.store.promotion, None, "silent since command {command}");
                assert_ne!(target.facts.pair, Pair::OPEN, "silent since command {command}");
            }
            false
        });
        let unpromoted = at(&stage.store) == Some(Phase::Granting) && stage.store.promotion.is_none();
        cut_before_its_word |= unpromoted && stage.actors[&site("pdx")].facts.replica.is_none();
    }
    assert!(cut_before_its_word);
}

#[test]
fn a_wait_is_stored_before_it_is_waited_for() {
    let mut stage = running(&["iad", "pdx", "fra"]);
    write(&mut stage, "1:11-20");
    stage.actors.get_mut(&site("pdx")).expect("pdx").refuses = Some(|task| matches!(task, Task::WaitFor { .. }));
    stage.actors.get_mut(&site("iad")).expect("iad").sessions = 3;
    ask(&mut stage, "pdx");
    assert!(stage.play(MINUTE, |stage| outcome(stage).is_some_and(|(phase, _)| phase == WaitingForLag)));
    let planned = stage.store.planned.clone().expect("a run");
    assert!(planned.source_gtid.is_some() && planned.lag_wait_started.is_some(), "{planned:?}");
    assert_eq!(planned.remaining_connections, Some(3), "the time to end sessions was over");
}

#[test]
fn a_grant_that_was_stored_without_its_phase_ends_as_the_run_that_it_is() {
    let mut tried = 0;
    for (stop, phase) in (0..60).flat_map(|stop| [(stop, Draining), (stop, WaitingForLag)]) {
        let mut stage = running(&["iad", "pdx", "fra"]);
        stage.stop_after(stop);
        ask(&mut stage, "pdx");
        stage.play(MINUTE, Rehearsal::is_stopped);
        if at(&stage.store) != Some(Phase::Granting) {
            continue;
        }
        tried += 1;
        stage.store.planned.as_mut().expect("a run").phase = phase;
        let mut stage = stage.with_new_leader();
        assert!(stage.play(MINUTE, is_over), "{stop} {phase:?}: {:?}", stage.group.obstacle);
        assert_eq!(outcome(&stage), Some((Succeeded, None)), "{stop} {phase:?}");
        assert_eq!(stage.store.planned.and_then(|planned| planned.transactions_lost), Some(0), "{stop} {phase:?}");
    }
    assert!(tried > 4, "{tried}");
}

fn at(kept: &Kept) -> Option<Phase> {
    kept.record.as_ref().map(|record| record.phase)
}

#[test]
fn a_deferred_request_that_was_taken_back_and_is_made_again_waits_again() {
    let mut stage = running(&["iad", "pdx", "fra"]);
    stage.group.spec.planned.defer = true;
    ask(&mut stage, "pdx");
    assert!(stage.play(MINUTE, |stage| stage.writer() == Some(site("pdx"))));
    crate::group::tests::follow_all(&mut stage, &site("pdx"));
    stage.tell(Input::Requests(Box::default()));
    stage.play(Millis::from_secs(10), |_| false);
    let deferred = Some((PlannedPhase::Deferred, Some(PlannedReason::CooldownActive)));
    ask(&mut stage, "fra");
    stage.play(Millis::from_secs(2), |_| false);
    assert_eq!(outcome(&stage), deferred);
    stage.tell(Input::Requests(Box::default()));
    stage.play(Millis::from_secs(2), |_| false);
    assert_eq!(outcome(&stage), Some((PlannedPhase::Failed, Some(PlannedReason::Cancelled))));
    ask(&mut stage, "fra");
    stage.play(Millis::from_secs(2), |_| false);
    assert_eq!(outcome(&stage), deferred, "it is not taken for the one that was taken back");
}
