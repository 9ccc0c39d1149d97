//! Traces that once led to a lost transaction, a second primary or a group without one; each ends as it should.

use super::{running, set, told};
use crate::candidate::drain::{Applier, Receiver};
use crate::group::forecast::Rehearsal;
use crate::group::forecast::faults::Fault;
use crate::group::input::{Input, PlannedWish, Request, Requests};
use crate::group::kept::PlannedPhase;
use crate::group::{Command, Step, Task};
use crate::name::{Instance, Site};
use crate::record::{Cause, Phase};
use crate::site::Role;
use crate::time::Millis;

fn site(name: &str) -> Site {
    Site::new(name)
}
const MINUTE: Millis = Millis::from_secs(60);

fn ask(stage: &mut Rehearsal, to: &str) {
    let wish = PlannedWish { site: site(to), max_lag_wait: None, id: None };
    let planned = Some(Request { text: to.to_owned(), wish: Ok(wish) });
    stage.tell(Input::Requests(Box::new(Requests { planned, ..Requests::default() })));
}

fn data<'a>(stage: &'a mut Rehearsal, name: &str) -> &'a mut crate::candidate::Data {
    stage.actors.get_mut(&site(name)).expect("known").facts.data.as_mut().expect("known")
}

#[test]
fn a_drain_that_was_done_and_has_more_to_apply_is_not_done() {
    let mut stage = running(&["iad", "pdx", "fra:dr"]);
    data(&mut stage, "pdx").received = set("1:1-10");
    // the proof waits for fra's sidecar; the source still feeds pdx meanwhile
    stage.actors.get_mut(&site("fra")).expect("known").sidecar = false;
    stage.kill(&site("iad"));
    stage.play(Millis::from_secs(12), |_| false);
    assert_eq!(stage.store.record.as_ref().expect("known").phase, Phase::Revoking);
    // one more arrives, and is being applied for long
    data(&mut stage, "pdx").received = set("1:1-11");
    stage.play(Millis::from_secs(4), |_| false);
    stage.actors.get_mut(&site("fra")).expect("known").sidecar = true;
    stage.play(Millis::from_secs(10), |stage| stage.store.record.as_ref().expect("known").phase != Phase::Revoking);
    stage.play(Millis::from_secs(5), |_| false);
    let cut = stage.actors[&site("pdx")].facts.replica.is_none();
    let applied = stage.actors[&site("pdx")].executed().contains(&set("1:11"));
    assert!(!cut || applied, "cut with 11 unapplied, {:?} given up: {}", stage.elapsed(), stage.store.unapplied);
}

#[test]
fn a_stopped_applier_is_started_also_if_its_lane_was_busy_at_first() {
    let mut stage = running(&["iad", "pdx"]);
    data(&mut stage, "pdx").received = set("1:1-11");
    stage.actors.get_mut(&site("pdx")).expect("known").facts.replica.as_mut().expect("known").applier =
        Applier::Stopped;
    // something of the lane Change is under way at pdx for its bound
    let mut lost = Step::default();
    let task = Task::Repoint { source: site("iad"), contained_in: Box::new(set("1:1-11")) };
    stage.kill(&site("iad"));
    stage.play(Millis::from_secs(4), |_| false);
    stage.group.begin(stage.now, &site("pdx"), task, &mut lost);
    stage.play(MINUTE, |_| false);
    let replica = stage.actors[&site("pdx")].facts.replica.clone();
    assert!(
        replica.is_some_and(|replica| replica.applier == Applier::Running) || stage.store.unapplied.is_empty(),
        "never started; given up: {}",
        stage.store.unapplied
    );
}

#[test]
fn an_empty_next_life_of_the_holder_is_not_opened() {
    let mut stage = running(&["iad", "pdx", "fra"]);
    let now = stage.now.boot;
    let old = stage.actors[&site("iad")].instance.clone();
    {
        let iad = stage.actors.get_mut(&site("iad")).expect("known");
        iad.instance = Instance::new("pod-iad-2", "store-2");
        iad.born = now;
        iad.epoch = None;
        iad.server = false; // its mysqld is not up yet
        iad.facts = super::facts(1, "");
    }
    let mut estate = super::estate(&stage.group.spec);
    let mut gone = estate.pods.iter().find(|pod| pod.site == site("iad")).expect("known").clone();
    gone.uid = old.pod.clone();
    (gone.deleting, gone.all_terminated) = (true, true);
    estate.pods.retain(|pod| pod.site != site("iad"));
    let mut next = gone.clone();
    next.uid = "pod-iad-2".into();
    (next.deleting, next.all_terminated) = (false, false);
    estate.pods.push(gone);
    estate.pods.push(next);
    stage.tell(Input::Estate(Box::new(estate)));
    // its sidecar speaks before its server was polled
    let word = stage.actors.get_mut(&site("iad")).expect("known").word(&site("iad"), now);
    stage.tell(Input::Heard(Box::new(word)));
    let seat = stage.store.record.as_ref().expect("known").seat.clone();
    assert!(
        seat.is_none_or(|seat| seat.instance.pod.as_ref() != "pod-iad-2"),
        "granted before its server was ever read"
    );
    stage.play(MINUTE, |stage| {
        stage.store.record.as_ref().expect("known").phase == Phase::Stable && stage.writer().is_some()
    });
    assert_ne!(
        stage.writer(),
        Some(site("iad")),
        "iad writes with {:?}; told {:?}",
        stage.actors[&site("iad")].executed().to_string(),
        told(&stage)
    );
}

#[test]
fn a_voter_change_while_granting_leaves_the_failover_a_failover() {
    let mut stage = running(&["iad", "pdx", "fra"]);
    stage.actors.get_mut(&site("fra")).expect("known").facts.replica = None;
    stage.kill(&site("iad"));
    // the granted site takes long to be cut: its applier still applies
    data(&mut stage, "pdx").received = set("1:1-12");
    data(&mut stage, "pdx").executed = set("1:1-12");
    stage.actors.get_mut(&site("pdx")).expect("known").refuses =
        Some(|task| matches!(task, Task::CutReplication { .. }));
    assert!(stage.play(MINUTE, |stage| stage.store.record.as_ref().expect("known").phase == Phase::Granting));
    // a new pod of fra is taken in
    let now = stage.now.boot;
    let fra = stage.actors.get_mut(&site("fra")).expect("known");
    fra.instance = Instance::new("pod-fra-2", "store-2");
    fra.born = now;
    stage.play(Millis::from_secs(8), |_| false);
    stage.actors.get_mut(&site("pdx")).expect("known").refuses = None;
    assert!(stage.play(MINUTE, |stage| stage.writer() == Some(site("pdx"))), "{:?}", stage.group.obstacle);
    let record = stage.store.record.clone().expect("known");
    assert!(
        stage.store.last_failover.is_some(),
        "no cooldown begins; cause {:?}, proof {:?}; told {:?}",
        record.cause,
        record.proof,
        told(&stage)
    );
}

#[test]
fn a_zombie_of_the_holders_site_does_not_take_the_primary_down() {
    let mut stage = running(&["iad", "pdx", "fra"]);
    let old = stage.actors[&site("iad")].clone();
    let now = stage.now.boot;
    {
        let iad = stage.actors.get_mut(&site("iad")).expect("known");
        iad.instance = Instance::new("pod-iad-2", "store-2");
        iad.born = now;
        iad.facts.pair = crate::site::Pair::CLOSED;
    }
    assert!(stage.play(MINUTE, |stage| stage.store.record.as_ref().expect("known").phase != Phase::Stable));
    assert!(stage.play(MINUTE, |stage| stage.writer() == Some(site("iad"))), "{:?}", stage.group.obstacle);
    // the old pod's sidecar restarts and is heard through a peer
    let mut zombie = old.clone();
    for _ in 0..60 {
        stage.play(Millis::from_secs(2), |_| false);
        zombie.epoch = Some(stage.store.epoch());
        zombie.facts.pair = crate::site::Pair::CLOSED;
        zombie.born = stage.now.boot - Millis(500);
        let mut word = zombie.word(&site("iad"), stage.now.boot);
        word.via = Some(site("pdx"));
        word.question = None;
        stage.tell(Input::Heard(Box::new(word)));
    }
    assert!(stage.writer().is_some(), "{:?} {:?}", stage.group.obstacle, stage.group.summary(stage.now).degraded);
}

#[test]
fn a_request_that_cannot_be_removed_does_not_hold_up_the_emergency() {
    let mut stage = running(&["iad", "pdx", "fra"]);
    stage.faults.keep_requests = true; // the removal is refused
    ask(&mut stage, "pdx");
    let mut stuck = 0;
    stage.kill(&site("iad"));
    for _ in 0..400 {
        ask_again(&mut stage);
        if stage.store.planned.as_ref().is_some_and(|planned| planned.phase == PlannedPhase::Pending) {
            stuck += 1;
        }
    }
    assert!(
        stage.writer().is_some_and(|now| now != site("iad")),
        "Pending in {stuck} of 400 looks, {:?}",
        stage.store.planned
    );
}

fn ask_again(stage: &mut Rehearsal) {
    stage.play(Millis(250), |_| false);
    ask(stage, "pdx");
}

#[test]
fn a_deferred_run_is_checked_anew_role_and_cooldown() {
    let mut stage = running(&["iad", "pdx", "fra"]);
    stage.group.spec.planned.defer = true;
    stage.group.seen.last_failover = Some(crate::cooldown::LastFailover::now(stage.now));
    ask(&mut stage, "pdx");
    stage.play(Millis::from_secs(5), |_| false);
    assert_eq!(stage.store.planned.as_ref().expect("known").phase, PlannedPhase::Deferred);
    // meanwhile pdx is made dr-only
    stage.group.spec.sites[1].role = Role::DrOnly;
    stage.play(Millis::from_secs(400), |stage| stage.store.planned.as_ref().expect("known").phase.is_terminal());
    assert_ne!(stage.writer(), Some(site("pdx")), "dr-only was promoted: {:?}", stage.store.planned);
}

#[test]
fn a_deferred_run_waits_for_a_cooldown_that_began_meanwhile() {
    let mut stage = running(&["iad", "pdx", "fra"]);
    stage.group.spec.planned.defer = true;
    stage.group.seen.last_failover = Some(crate::cooldown::LastFailover::now(stage.now));
    ask(&mut stage, "pdx");
    stage.play(Millis::from_secs(290), |_| false);
    // a manual promotion, or a hand-over of an update, wrote a new stamp
    stage.group.seen.last_failover = Some(crate::cooldown::LastFailover::now(stage.now));
    let began = stage.now.boot;
    stage.play(Millis::from_secs(60), |stage| stage.writer() == Some(site("pdx")));
    assert_ne!(stage.writer(), Some(site("pdx")), "moved {:?} after the last move", stage.now.boot.since(began));
}

#[test]
fn a_candidate_whose_sets_are_not_understood_is_not_read_in_a_tight_loop() {
    let mut stage = running(&["iad", "pdx", "fra"]);
    stage.actors.get_mut(&site("fra")).expect("known").facts.data = None;
    stage.actors.get_mut(&site("pdx")).expect("known").sidecar = false;
    stage.kill(&site("iad"));
    stage.play(Millis::from_secs(9), |_| false);
    assert_eq!(stage.store.record.as_ref().expect("known").phase, Phase::Revoking);
    // each Done begins the next one: count what one tick brings
    let mut group = stage.group.clone();
    group.forget_what_is_under_way();
    let mut inputs = vec![Input::Tick];
    let mut reads = 0;
    for _ in 0..200 {
        let Some(input) = inputs.pop() else { break };
        for command in group.step(stage.now, input).commands {
            if let Command::Work { id, task: Task::Read, .. } = command {
                reads += 1;
                let facts = stage.actors[&site("fra")].facts.clone();
                inputs.push(Input::Done { id, outcome: crate::group::input::Outcome::Read(Box::new(facts)) });
            }
        }
    }
    assert!(reads < 10, "{reads} readings in one moment");
}

#[test]
fn a_new_leader_does_not_choose_before_it_has_looked_at_every_candidate() {
    let mut stage = running(&["iad", "pdx", "fra"]);
    stage.actors.get_mut(&site("fra")).expect("known").sidecar = false;
    stage.kill(&site("iad"));
    data(&mut stage, "fra").executed = set("1:1-12");
    data(&mut stage, "pdx").received = set("1:1-11");
    data(&mut stage, "pdx").executed = set("1:1-11");
    assert!(stage.play(MINUTE, |stage| stage.store.record.as_ref().expect("known").phase == Phase::Revoking));
    // the proof was found and written down by the leader before
    let mut record = stage.store.record.clone().expect("known");
    let holder = record.holder.clone().expect("known").member;
    record.proof =
        Some(crate::record::Proof { kind: crate::record::ProofKind::LeaseExpired, about: holder, at: stage.now.wall });
    stage.store.record = Some(record.clone());
    stage.group = crate::group::Group::new(stage.group.spec.clone(), stage.now.boot);
    stage.actors.get_mut(&site("fra")).expect("known").sidecar = true;
    // fra's first poll takes a moment longer than pdx's
    stage.tell(Input::Leads(Some(stage.now.boot + Millis::from_secs(10))));
    let pdx = stage.actors[&site("pdx")].facts.clone();
    for _ in 0..3 {
        stage.tell(Input::Polled {
            site: site("pdx"),
            began_under: record.epoch,
            saw: crate::group::input::Saw::Facts(Box::new(pdx.clone())),
        });
        stage.tell(Input::Tick);
    }
    let granted = stage.store.record.clone().expect("known");
    assert_eq!(
        granted.phase,
        Phase::Revoking,
        "granted to {:?} while fra is unknown",
        granted.seat.map(|seat| seat.site)
    );
}

#[test]
fn a_lapsed_leadership_starts_over() {
    let mut stage = running(&["iad", "pdx", "fra"]);
    let lapsed = stage.now.boot + Millis::from_secs(100);
    stage
        .group
        .step(crate::time::Now { boot: lapsed, ..stage.now }, Input::Leads(Some(lapsed + Millis::from_secs(10))));
    assert!(stage.group.seen.evidence.elected >= lapsed, "grants of another leader in between are not counted");
}

#[test]
fn opened_by_hand_while_granting_is_not_settled_without_a_promotion() {
    let mut stage = running(&["iad", "pdx", "fra"]);
    stage.kill(&site("iad"));
    for name in ["pdx", "fra"] {
        stage.actors.get_mut(&site(name)).expect("known").refuses =
            Some(|task| matches!(task, Task::CutReplication { .. }));
    }
    assert!(stage.play(MINUTE, |stage| stage.store.record.as_ref().expect("known").phase == Phase::Granting));
    let seat = stage.store.record.as_ref().expect("known").seat.clone().expect("known");
    stage.actors.get_mut(&seat.site).expect("known").facts.pair = crate::site::Pair::OPEN;
    stage.play(Millis::from_secs(4), |_| false);
    let record = stage.store.record.clone().expect("known");
    let replica = stage.actors[&seat.site].facts.replica.is_some();
    assert!(
        record.phase != Phase::Stable || stage.store.promotion.is_some(),
        "{:?}, promotion {:?}, still a replica: {replica}",
        record.phase,
        stage.store.promotion
    );
}

/// A rejection that could not be stored is not forgotten, and its request not removed before.
#[test]
fn s_12_a_rejection_that_could_not_be_stored_is_stored_later() {
    let mut stage = running(&["iad", "pdx", "fra:dr"]);
    let before = stage.store.planned.clone();
    // the first write of it is lost
    stage.faults.plan = vec![(stage.faults.commands, Fault::Lost)];
    ask(&mut stage, "fra");
    assert_eq!(stage.store.planned, before, "the write was lost");
    assert!(stage.group.seen.requests.planned.is_some(), "removed before its end was stored");
    stage.play(Millis::from_secs(10), |_| false);
    let planned = stage.store.planned.as_ref().expect("stored");
    assert_eq!((planned.phase, planned.target.clone()), (PlannedPhase::Failed, site("fra")));
    assert!(stage.group.seen.requests.planned.is_none(), "removed afterwards");
    assert!(told(&stage).contains(&"PlannedRejected".to_owned()), "{:?}", told(&stage));
}

/// F-37: a leader that finds something else stored than it knows learns everything anew. What is newer is the record; what is
/// older is left by an epoch above all that any sidecar has stored.
#[test]
fn f_37_what_somebody_else_stored_is_read_and_an_older_record_is_left_behind() {
    let mut stage = running(&["iad", "pdx", "fra"]);
    let known = stage.store.clone();
    stage.store.record.as_mut().expect("a record").epoch -= 1;
    doubt(&mut stage);
    assert!(stage.play(MINUTE, |stage| stage.writer().is_some()), "{:?}", stage.store.record);
    assert!(stage.store.epoch() > known.epoch(), "{} after {}", stage.store.epoch(), known.epoch());
    let mut newer = stage.store.clone();
    newer.record = newer.record.as_ref().map(|record| crate::authority::revoke(record, Cause::Emergency, record.since));
    stage.store = newer.clone();
    doubt(&mut stage);
    let read = stage.group.kept().expect("read again");
    assert!(read.epoch() >= newer.epoch(), "{} was read", read.epoch());
}

/// As the hands say it: a leadership that was over for a moment.
fn doubt(stage: &mut Rehearsal) {
    let until = stage.group.leads_until;
    stage.tell(Input::Leads(None));
    stage.tell(Input::Leads(until));
}

/// S-08: a leader that has not looked around yet neither refuses a request nor ends a run that was accepted.
#[test]
fn s_08_a_new_leader_looks_before_it_refuses() {
    let mut stage = running(&["iad", "pdx", "fra"]).with_new_leader();
    ask(&mut stage, "pdx");
    assert!(stage.play(MINUTE, |stage| stage.writer() == Some(site("pdx"))), "{:?}", stage.store.planned);
    // accepted, and then another leader before anything was done
    let mut stage = running(&["iad", "pdx", "fra"]);
    stage.faults.keep_requests = true;
    ask(&mut stage, "pdx");
    assert_eq!(stage.store.planned.as_ref().map(|planned| planned.phase), Some(PlannedPhase::Pending));
    stage.faults.keep_requests = false;
    let mut stage = stage.with_new_leader();
    assert!(stage.play(MINUTE, |stage| stage.writer() == Some(site("pdx"))), "{:?}", stage.store.planned);
    // its first looks fall into a moment in which the target connects anew
    let mut stage = running(&["iad", "pdx", "fra"]);
    stage.faults.keep_requests = true;
    ask(&mut stage, "pdx");
    stage.faults.keep_requests = false;
    let mut stage = stage.with_new_leader();
    receiver_of_pdx(&mut stage, Receiver::Connecting);
    stage.play(Millis::from_secs(6), |_| false);
    let phase = stage.store.planned.as_ref().map(|planned| planned.phase);
    assert!(phase.is_some_and(|phase| !phase.is_terminal()), "{:?}", stage.store.planned);
    receiver_of_pdx(&mut stage, Receiver::Running);
    assert!(stage.play(MINUTE, |stage| stage.writer() == Some(site("pdx"))), "{:?}", stage.store.planned);
}

fn receiver_of_pdx(stage: &mut Rehearsal, receiver: Receiver) {
    let pdx = stage.actors.get_mut(&site("pdx")).expect("pdx");
    pdx.facts.replica.as_mut().expect("replica").receiver = receiver;
}
