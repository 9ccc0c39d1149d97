//! Each condition of a run by itself: every row breaks one and nothing else, and bounds are asked at the very moment.

mod caches;
mod requests;

use super::{MINUTE, site};
use crate::candidate::drain::{Applier, Receiver};
use crate::group::command::{Command, Task};
use crate::group::forecast::Rehearsal;
use crate::group::input::{PlannedWish, ReplicaFacts, Request};
use crate::group::kept::{Kept, Origin, Planned, PlannedPhase, PlannedReason, Update, UpdatePhase};
use crate::group::save::Plan;
use crate::group::seen::SiteSeen;
use crate::group::tests::{running, set};
use crate::group::{Group, Step};
use crate::name::{Instance, Member};
use crate::record::{Cause, Phase, Record};
use crate::site::State;
use crate::time::{Millis, Wall};
use std::sync::Arc;

use PlannedPhase::{Deferred, Draining, Failed, Pending, Promoting, Resuming, Succeeded, Validating, WaitingForLag};

const BUDGET: u64 = 120_000;

/// What is changed about a calm group.
type Change = fn(&mut Rehearsal);

/// What is changed about it and about the run.
type ChangeBoth = fn(&mut Rehearsal, &mut Planned);

/// A leader that has looked around: `iad` has authority, `pdx` and `fra` follow.
fn calm() -> Rehearsal {
    let mut stage = running(&["iad", "pdx", "fra"]);
    stage.play(Millis::from_secs(15), |_| false);
    stage
}

fn seen<'a>(stage: &'a mut Rehearsal, name: &str) -> &'a mut SiteSeen {
    stage.group.seen.sites.get_mut(&site(name)).expect("declared")
}

fn replica<'a>(stage: &'a mut Rehearsal, name: &str) -> &'a mut ReplicaFacts {
    let facts = seen(stage, name).facts.as_mut().expect("it was read");
    Arc::make_mut(facts).replica.as_mut().expect("it follows")
}

fn stored(stage: &Rehearsal) -> Kept {
    Kept::clone(&stage.group.kept().expect("it is known what is stored"))
}

/// Another instance of that site speaks, a younger one.
fn replace(stage: &mut Rehearsal, name: &str) {
    let heard = &mut stage.group.seen.evidence.heard;
    let mut young = heard.iter().find(|(member, _)| member.site == site(name)).expect("it speaks").1.clone();
    (young.started, young.at) = (stage.now.boot, stage.now.boot);
    heard.insert(Member::new(&site(name), &Instance::new("another", "s9")), young);
}

fn silence(stage: &mut Rehearsal, name: &str) {
    stage.group.seen.evidence.heard.retain(|member, _| member.site != site(name));
}

/// From `iad` to `pdx`.
fn run_in(phase: PlannedPhase) -> Planned {
    Planned {
        phase,
        request_id: "id-1".to_owned(),
        origin: Origin::Annotation,
        target: site("pdx"),
        source: site("iad"),
        source_gtid: Some(set("1:1-10")),
        target_gtid: None,
        started: Wall(0),
        completed: None,
        transactions_lost: None,
        reason: None,
        message: String::new(),
        max_lag_wait: MINUTE,
        drain_timeout: MINUTE,
        drain_started: None,
        remaining_connections: None,
        lag_wait_started: None,
        retry_after: None,
        cache: None,
    }
}

/// What one look at the run comes to, and what is commanded.
#[expect(clippy::needless_pass_by_value, reason = "every row makes its own on the spot")]
fn look(stage: &mut Rehearsal, kept: Kept) -> (Planned, Step) {
    let (next, out) = look_at_all(stage, &kept);
    (next.planned.expect("a run"), out)
}

/// The same, with all that is to be stored.
fn look_at_all(stage: &mut Rehearsal, kept: &Kept) -> (Kept, Step) {
    let planned = kept.planned.clone().expect("a run");
    let record = kept.record.clone().expect("a record");
    let mut plan = Plan::new(kept, None);
    let mut out = Step::default();
    let since = stage.group.planning.phase.filter(|(phase, _)| *phase == planned.phase);
    stage.group.planning.phase = since.or(Some((planned.phase, stage.now.boot)));
    stage.group.one_phase(stage.now, &record, &planned, &mut plan, &mut out);
    (plan.next().clone(), out)
}

fn tasks(out: &Step, is: fn(&Task) -> bool) -> usize {
    out.commands.iter().filter(|command| matches!(command, Command::Work { task, .. } if is(task))).count()
}

/// The run is so old in that phase, as this leader saw it.
fn since(group: &mut Group, phase: PlannedPhase, now: crate::time::Boot, age: u64) {
    group.planning.phase = Some((phase, now - Millis(age)));
}

#[test]
fn a_young_leader_says_nothing_of_what_it_has_not_seen() {
    let rows: [(&str, Change, bool); 7] = [
        ("all is seen", |_| (), false),
        ("two answers", |stage| seen(stage, "pdx").watch.answers = 2, false),
        ("a site is unknown", |stage| seen(stage, "fra").watch.state = State::Unknown, true),
        ("one answer", |stage| seen(stage, "pdx").watch.answers = 1, true),
        ("it followed once", |stage| seen(stage, "pdx").following = 1, true),
        ("its sidecar is silent", |stage| silence(stage, "pdx"), true),
        ("it is out of reach", |stage| out_of_reach(stage, "pdx"), false),
    ];
    for (name, change, waits) in rows {
        let mut stage = calm();
        change(&mut stage);
        let kept = stored(&stage);
        for (age, young) in [(9_999, true), (10_000, false), (60_000, false)] {
            stage.group.seen.evidence.elected = stage.now.boot - Millis(age);
            let looks = stage.group.still_looks_around(stage.now, &kept, &site("pdx"));
            assert_eq!(looks, waits && young, "{name}, {age} ms after its election");
        }
    }
}

fn out_of_reach(stage: &mut Rehearsal, name: &str) {
    let seen = seen(stage, name);
    (seen.watch.state, seen.following) = (State::Unreachable, 0);
}

#[test]
fn a_run_begins_only_while_nothing_else_is_under_way() {
    let stage = calm();
    let update = |phase| Some(Update { phase, site: None, since: Wall(0), stopped: None });
    let rows = [
        (None, Phase::Stable, false, true),
        (update(UpdatePhase::UpdateReplica), Phase::Stable, false, false),
        (update(UpdatePhase::UpdateReplica), Phase::Stable, true, true),
        (update(UpdatePhase::Complete), Phase::Stable, false, true),
        (None, Phase::Revoking, false, false),
        (None, Phase::Granting, false, false),
    ];
    for (update, phase, by_update, passes) in rows {
        let mut kept = stored(&stage);
        kept.update = update;
        kept.record.as_mut().expect("a record").phase = phase;
        let checked = stage.group.check_quiet(stage.now, &kept, by_update);
        assert_eq!(checked.is_ok(), passes, "{:?} {phase:?}: {checked:?}", kept.update);
    }
}

#[test]
fn a_target_follows_and_is_not_too_far_behind() {
    let rows: [(&str, Change, bool); 5] = [
        ("it followed once", |stage| seen(stage, "pdx").following = 1, false),
        ("it followed twice", |stage| seen(stage, "pdx").following = 2, true),
        ("it follows on", |stage| seen(stage, "pdx").following = 9, true),
        ("as far behind as it may be", |stage| replica(stage, "pdx").behind = Some(MINUTE), true),
        ("further behind", |stage| replica(stage, "pdx").behind = Some(Millis(MINUTE.0 + 1)), false),
    ];
    for (name, change, passes) in rows {
        let mut stage = calm();
        change(&mut stage);
        let checked = stage.group.check_target(stage.now, &stored(&stage), &site("pdx"), MINUTE);
        assert_eq!(checked.is_ok(), passes, "{name}: {checked:?}");
        stage.group.spec.planned.max_lag_wait = MINUTE;
        let told = stage.group.planned_obstacle(stage.now, &stored(&stage), &site("pdx"));
        assert_eq!(told, checked.err(), "{name}: an update is told the same");
    }
}

#[test]
fn a_source_has_authority_and_answers() {
    let rows: [(&str, ChangeBoth, Option<PlannedReason>); 5] = [
        ("as it is", |_, _| (), None),
        ("another has authority", |_, planned| planned.source = site("fra"), Some(PlannedReason::SourceCrashed)),
        ("out of reach", |stage, _| out_of_reach(stage, "iad"), Some(PlannedReason::SourceCrashed)),
        ("another instance", |stage, _| replace(stage, "iad"), Some(PlannedReason::SourceCrashed)),
        ("the target has authority", |_, planned| planned.target = site("iad"), Some(PlannedReason::AlreadyActive)),
    ];
    for (name, change, reason) in rows {
        let mut stage = calm();
        let mut planned = run_in(Pending);
        change(&mut stage, &mut planned);
        let kept = Kept { planned: Some(planned), ..stored(&stage) };
        let (next, _) = look(&mut stage, kept);
        let expect = if reason.is_some() { Failed } else { Validating };
        assert_eq!((next.phase, next.reason), (expect, reason), "{name}");
    }
}

#[test]
fn a_run_knows_its_own_request() {
    let wish =
        |to: &str, id: Option<&str>| Ok(PlannedWish { site: site(to), max_lag_wait: None, id: id.map(str::to_owned) });
    let rows = [
        (wish("pdx", None), Origin::Annotation, true),
        (wish("pdx", Some("id-1")), Origin::Annotation, true),
        (wish("pdx", Some("id-2")), Origin::Annotation, false),
        (wish("fra", Some("id-1")), Origin::Annotation, false),
        (wish("pdx", Some("id-1")), Origin::OrderedUpdate, false),
        (Err("what is this".to_owned()), Origin::Annotation, false),
    ];
    for (wish, origin, own) in rows {
        let mut stage = calm();
        let text = format!("{wish:?} {origin:?}");
        stage.group.seen.requests.planned = Some(Request { text: text.clone(), wish });
        let kept =
            |stage: &Rehearsal, phase| Kept { planned: Some(Planned { origin, ..run_in(phase) }), ..stored(stage) };
        let deferred = kept(&stage, Deferred);
        let expect = if own { (Pending, None) } else { (Failed, Some(PlannedReason::Cancelled)) };
        let (next, _) = look(&mut stage, deferred);
        assert_eq!((next.phase, next.reason), expect, "{text}");
        // One that is its own is removed first, for ten seconds at most.
        for (age, stays) in [(0, own), (9_999, own), (10_000, false)] {
            let pending = kept(&stage, Pending);
            let now = stage.now.boot;
            since(&mut stage.group, Pending, now, age);
            let (next, out) = look(&mut stage, pending);
            let removed = out.commands.iter().any(|command| matches!(command, Command::RemoveRequest { .. }));
            assert_eq!((removed, next.phase), (stays, if stays { Pending } else { Validating }), "{text} {age}");
        }
    }
}

#[test]
fn what_keeps_a_target_from_ever_catching_up() {
    let rows: [(Change, Option<&str>); 6] = [
        (|_| (), None),
        (|stage| replica(stage, "pdx").receiver = Receiver::Connecting, None),
        (|stage| cannot_connect(replica(stage, "pdx")), Some("cannot receive")),
        (|stage| replica(stage, "pdx").receiver = Receiver::Stopped, Some("stopped receiving")),
        (|stage| fails(replica(stage, "pdx")), Some("error 1062")),
        (|stage| out_of_reach(stage, "pdx"), Some("unreachable")),
    ];
    for (change, expect) in rows {
        let mut stage = calm();
        change(&mut stage);
        let why = stage.group.target_fails(&run_in(WaitingForLag));
        let fits = match (&why, expect) {
            (Some(why), Some(expect)) => why.contains(expect),
            (why, expect) => why.is_none() && expect.is_none(),
        };
        assert!(fits, "{expect:?}: {why:?}");
    }
}

fn cannot_connect(replica: &mut ReplicaFacts) {
    (replica.receiver, replica.receiver_error) = (Receiver::Connecting, Some("1045: denied".to_owned()));
}

fn fails(replica: &mut ReplicaFacts) {
    replica.applier = Applier::Failed { code: 1062, message: "duplicate".to_owned() };
}

/// Revoked for this run, `iad` being fenced.
fn revoked(stage: &Rehearsal, phase: PlannedPhase) -> Kept {
    let mut kept = Kept { planned: Some(run_in(phase)), ..stored(stage) };
    let record: &Record = kept.record.as_ref().expect("a record");
    kept.record = Some(crate::authority::revoke(record, Cause::Planned, stage.now.wall));
    kept
}

#[test]
fn sessions_are_ended_once_a_second_until_none_is_left() {
    // How long ago the last pass began and how many it left; whether a pass begins, and what is stored.
    let rows = [
        (None, 1, Draining, ""),
        (Some((999, Some(3))), 0, Draining, ""),
        (Some((1000, Some(3))), 1, Draining, ""),
        (Some((0, Some(0))), 0, WaitingForLag, ""),
    ];
    for (last, passes, phase, message) in rows {
        let mut stage = calm();
        let mut kept = revoked(&stage, Draining);
        kept.planned.as_mut().expect("a run").drain_started = Some(stage.now.wall);
        stage.group.ages.meet(kept.stamps(), stage.now);
        let now = stage.now.boot;
        since(&mut stage.group, Draining, now, 0);
        stage.group.planning.sessions = last.map(|(ago, left)| (now - Millis(ago), left));
        let (next, out) = look(&mut stage, kept);
        let begun = tasks(&out, |task| matches!(task, Task::EndSessions));
        assert_eq!((begun, next.phase, next.message.as_str()), (passes, phase, message), "{last:?}");
    }
    // The time is over: those that are left are named.
    let mut stage = calm();
    let kept = revoked(&stage, Draining);
    let now = stage.now.boot;
    since(&mut stage.group, Draining, now, 0);
    stage.group.planning.sessions = Some((now, Some(3)));
    let (next, _) = look(&mut stage, kept);
    assert_eq!((next.phase, next.remaining_connections), (WaitingForLag, Some(3)));
    assert_eq!(next.message, "3 sessions were left when the time to end them was over");
}

#[test]
fn a_source_that_does_not_acknowledge_gets_five_seconds() {
    let crashed = (Failed, Some(PlannedReason::SourceCrashed));
    let rows: [(u64, Change, _); 4] = [
        (4_999, |_| (), (Draining, None)),
        (5_000, |_| (), (Draining, Some(PlannedReason::InternalError))),
        (0, |stage| out_of_reach(stage, "iad"), crashed),
        // It has not ended as far as the record knows, and lives on as another instance.
        (0, |stage| replace(stage, "iad"), crashed),
    ];
    for (age, change, expect) in rows {
        let mut stage = calm();
        let mut kept = revoked(&stage, Draining);
        kept.planned.as_mut().expect("a run").source_gtid = None;
        let now = stage.now.boot;
        since(&mut stage.group, Draining, now, age);
        change(&mut stage);
        let (next, _) = look(&mut stage, kept);
        assert_eq!((next.phase, next.reason), expect, "{age} ms");
    }
}

#[test]
fn the_target_is_waited_for_unless_it_has_everything() {
    for (fenced, waits) in [("1:1-10", 0), ("1:1-99", 1)] {
        let mut stage = calm();
        let planned = Planned { source_gtid: Some(set(fenced)), ..run_in(WaitingForLag) };
        let mut out = Step::default();
        stage.group.catch_up(stage.now, &planned, &mut out);
        assert_eq!(tasks(&out, |task| matches!(task, Task::WaitFor { .. })), waits, "{fenced}");
    }
}

/// The record with authority at that site, in that phase.
fn seated(stage: &Rehearsal, name: &str, phase: Phase, planned: PlannedPhase) -> Kept {
    let mut kept = Kept { planned: Some(run_in(planned)), promotion: Some(set("1:1-10")), ..stored(stage) };
    let record = kept.record.as_mut().expect("a record");
    record.seat = record.voters.iter().find(|voter| voter.site == site(name)).cloned();
    (record.phase, record.cause) = (phase, Cause::Planned);
    kept
}

#[test]
fn a_promotion_follows_the_record() {
    let refused = (Failed, Some(PlannedReason::ExecuteFailed));
    for (name, phase, age, expect) in [
        ("pdx", Phase::Stable, 0, (Resuming, None)),
        ("fra", Phase::Stable, 0, refused),
        ("pdx", Phase::Granting, BUDGET - 1, (Promoting, None)),
        ("pdx", Phase::Granting, BUDGET, refused),
        ("fra", Phase::Granting, 0, refused),
    ] {
        let mut stage = calm();
        let kept = seated(&stage, name, phase, Promoting);
        let now = stage.now.boot;
        since(&mut stage.group, Promoting, now, age);
        let (next, _) = look(&mut stage, kept);
        assert_eq!((next.phase, next.reason), expect, "{name} {phase:?} {age}");
    }
    // Revoked for another cause: it is not this run's any more.
    let mut stage = calm();
    let mut kept = revoked(&stage, Promoting);
    kept.record.as_mut().expect("a record").cause = Cause::Emergency;
    let (next, _) = look(&mut stage, kept);
    assert_eq!((next.phase, next.reason), refused);
    // Opened with less than the source had: that is no success.
    let mut stage = calm();
    let kept = Kept { promotion: Some(set("1:1-9")), ..seated(&stage, "pdx", Phase::Stable, Promoting) };
    let (next, _) = look(&mut stage, kept);
    assert_eq!((next.phase, next.reason), refused);
}

#[test]
fn a_target_that_is_lost_before_its_grant_gives_authority_back() {
    for (age, lost, expect) in [
        (BUDGET - 1, false, None),
        (BUDGET, false, Some(PlannedReason::TargetUnhealthy)),
        (0, true, Some(PlannedReason::TargetUnhealthy)),
    ] {
        let mut stage = calm();
        let kept = revoked(&stage, Promoting);
        let now = stage.now.boot;
        since(&mut stage.group, Promoting, now, age);
        if lost {
            out_of_reach(&mut stage, "pdx");
        }
        let (next, _) = look(&mut stage, kept);
        assert_eq!((next.phase, next.reason), (Promoting, expect), "{age} ms");
    }
}

#[test]
fn a_run_is_over_when_its_target_serves_or_nothing_more_can_come_of_it() {
    let rows: [(&str, Change, u64, PlannedPhase); 6] = [
        ("pdx", |_| (), 0, Resuming),
        ("pdx", |_| (), BUDGET - 1, Resuming),
        ("pdx", |_| (), BUDGET, Succeeded),
        ("fra", |_| (), 0, Succeeded),
        ("pdx", |stage| out_of_reach(stage, "pdx"), 0, Succeeded),
        ("pdx", |stage| replace(stage, "pdx"), 0, Succeeded),
    ];
    for (name, change, age, expect) in rows {
        let mut stage = calm();
        change(&mut stage);
        let kept = seated(&stage, name, Phase::Stable, Resuming);
        let now = stage.now.boot;
        since(&mut stage.group, Resuming, now, age);
        assert_eq!(look(&mut stage, kept).0.phase, expect, "{name} {age}");
    }
    let mut stage = calm();
    seen(&mut stage, "pdx").watch.state = State::Writable;
    let kept = seated(&stage, "pdx", Phase::Stable, Resuming);
    assert_eq!(look(&mut stage, kept).0.phase, Succeeded, "it serves");
}

#[test]
fn a_run_that_is_taken_back_is_stamped_after_ten_seconds_or_when_its_source_is_gone() {
    for (age, lost, expect) in [(9_999, false, Draining), (10_000, false, Failed), (0, true, Failed)] {
        let mut stage = calm();
        let mut kept = revoked(&stage, Draining);
        kept.planned.as_mut().expect("a run").reason = Some(PlannedReason::LagTimeout);
        stage.group.planning.rolling_back = Some(stage.now.boot - Millis(age));
        if lost {
            out_of_reach(&mut stage, "iad");
        }
        assert_eq!(look(&mut stage, kept).0.phase, expect, "{age} ms");
    }
}

#[test]
fn a_run_that_is_taken_back_is_over_as_soon_as_its_source_serves() {
    let mut stage = calm();
    let taken_back = Planned { reason: Some(PlannedReason::LagTimeout), ..run_in(Draining) };
    let at_source = Kept { planned: Some(taken_back.clone()), ..stored(&stage) };
    assert_eq!(look(&mut stage, at_source).0.phase, Failed);
    let mut stage = calm();
    seen(&mut stage, "pdx").watch.state = State::Writable;
    let at_target = Kept { planned: Some(taken_back), ..seated(&stage, "pdx", Phase::Stable, Draining) };
    assert_eq!(look(&mut stage, at_target).0.phase, Draining, "another one serves");
}
