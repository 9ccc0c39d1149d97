//! Moves, from the outside: who writes in the end, and why.

use super::{facts, fresh, running, set, spec, told, write};
use crate::candidate::drain::Receiver;
use crate::group::forecast::{Ending, Rehearsal};
use crate::group::report::NotReady;
use crate::group::{Input, Notice, Obstacle, Task};
use crate::name::{Instance, Site};
use crate::record::{Cause, Phase, ProofKind};
use crate::time::{Millis, Wall};

fn site(name: &str) -> Site {
    Site::new(name)
}

const MINUTE: Millis = Millis::from_secs(60);

#[test]
fn a_fresh_group_grants_the_seed_without_any_wait() {
    let mut stage = fresh(spec(&["iad", "pdx", "fra"]));
    assert!(stage.play(Millis::from_secs(10), |stage| stage.writer().is_some()), "{:?}", stage.group.obstacle);
    assert_eq!(stage.writer(), Some(site("iad")));
    let record = stage.store.record.clone().expect("a record");
    assert_eq!((record.phase, record.cause), (Phase::Stable, Cause::Bootstrap));
    assert_eq!(stage.store.promotion, Some(set("")));
    assert_eq!(stage.store.last_failover, None, "a beginning is no failover");
}

#[test]
fn the_seed_is_the_first_promotable_of_the_priority_list() {
    let mut spec = spec(&["iad:dr", "pdx", "fra"]);
    spec.priorities = vec![site("fra")];
    let mut stage = fresh(spec);
    assert!(stage.play(Millis::from_secs(10), |stage| stage.writer().is_some()), "{:?}", stage.group.obstacle);
    assert_eq!(stage.writer(), Some(site("fra")));
}

#[test]
fn a_group_over_kept_volumes_waits_a_lease_and_takes_who_holds_most() {
    let mut stage = fresh(spec(&["iad", "pdx"]));
    stage.actors.get_mut(&site("iad")).expect("iad").facts = facts(1, "1:1-5");
    stage.actors.get_mut(&site("pdx")).expect("pdx").facts = facts(2, "1:1-9");
    assert!(!stage.play(Millis::from_secs(22), |stage| stage.writer().is_some()), "{:?}", told(&stage));
    assert!(stage.play(Millis::from_secs(10), |stage| stage.writer().is_some()), "{:?}", stage.group.obstacle);
    assert_eq!(stage.writer(), Some(site("pdx")));
}

/// K-10: the site that lost is tainted when its successor is confirmed, and no other.
#[test]
fn a_dead_primary_is_replaced_by_who_received_most() {
    let mut stage = running(&["iad", "pdx", "fra"]);
    write(&mut stage, "1:11-12");
    let fra = stage.actors.get_mut(&site("fra")).expect("fra");
    fra.facts.data.as_mut().expect("data").received = set("1:11-12");
    fra.facts.data.as_mut().expect("data").executed = set("1:1-12");
    stage.kill(&site("iad"));
    assert!(stage.play(MINUTE, |stage| stage.writer() == Some(site("fra"))), "{:?}", stage.group.obstacle);
    let record = stage.store.record.clone().expect("a record");
    assert_eq!(record.cause, Cause::Emergency);
    assert_eq!(record.proof.map(|proof| proof.kind), Some(ProofKind::LeaseExpired));
    assert_eq!(stage.store.last_failover.as_ref().map(|last| last.to.clone()), Some(site("fra")));
    assert!(stage.store.site(&site("iad")).tainted && !stage.store.site(&site("fra")).tainted);
    assert!(told(&stage).contains(&"FailoverExecuted".to_owned()), "{:?}", told(&stage));
}

#[test]
fn a_second_death_inside_the_cooldown_waits_for_its_end() {
    let mut stage = running(&["iad", "pdx", "fra"]);
    stage.kill(&site("iad"));
    assert!(stage.play(MINUTE, |stage| stage.writer().is_some_and(|now| now != site("iad"))));
    let second = stage.writer().expect("a writer");
    // The dead one is dropped as a voter, and the set that names it runs out.
    stage.play(Millis::from_secs(90), |_| false);
    stage.kill(&second);
    let third = site(if second == site("pdx") { "fra" } else { "pdx" });
    assert!(!stage.play(Millis::from_secs(150), |stage| stage.writer().as_ref() == Some(&third)));
    assert_eq!(stage.store.record.as_ref().map(|record| record.phase), Some(Phase::Stable), "nothing was begun");
    assert!(told(&stage).contains(&"CooldownBlocks".to_owned()));
    assert!(
        stage.play(Millis::from_secs(200), |stage| stage.writer().as_ref() == Some(&third)),
        "{:?}",
        stage.group.obstacle
    );
}

/// K-19: a pause is honoured by moves, until it expires.
#[test]
fn while_a_group_is_paused_a_dead_primary_is_told_and_not_replaced() {
    let mut stage = running(&["iad", "pdx", "fra"]);
    let pause = |until| Some(crate::group::spec::Pause { reason: "a window".to_owned(), until });
    stage.group.spec.paused = pause(None);
    stage.kill(&site("iad"));
    let moves = |stage: &Rehearsal| stage.store.record.as_ref().is_some_and(|it| it.phase != Phase::Stable);
    assert!(!stage.play(Millis::from_secs(120), moves), "nothing is begun");
    assert_eq!(stage.group.obstacle, Some(Obstacle::Paused));
    // A pause that has an end ends by itself.
    let until = Wall(stage.now.wall.0 + 30_000);
    stage.group.spec.paused = pause(Some(until));
    let in_time = |stage: &Rehearsal| stage.now.wall < until && moves(stage);
    assert!(!stage.play(Millis::from_secs(29), in_time));
    assert!(
        stage.play(MINUTE, |stage| stage.writer().is_some_and(|now| now != site("iad"))),
        "{:?}",
        stage.group.obstacle
    );
}

/// K-04: a replica that lags leaves the reads, and returns by itself.
#[test]
fn a_replica_gets_reads_while_it_follows_closely_and_keeps_them_while_nobody_writes() {
    let mut stage = running(&["iad", "pdx", "fra"]);
    let healthy = |stage: &Rehearsal, name: &str| {
        let kept = stage.group.kept().expect("kept");
        stage.group.outward(stage.now, &kept).labels.get(&site(name)).and_then(|label| label.healthy)
    };
    let behind = |stage: &mut Rehearsal, millis: u64| {
        let replica = stage.actors.get_mut(&site("pdx")).expect("pdx").facts.replica.as_mut().expect("a replica");
        replica.behind = Some(Millis(millis));
    };
    let most = stage.group.spec.max_lag.0;
    stage.play(Millis::from_secs(10), |_| false);
    assert_eq!((healthy(&stage, "pdx"), healthy(&stage, "iad")), (Some(true), None), "the primary has no such label");
    behind(&mut stage, most + 1);
    assert!(stage.play(Millis::from_secs(10), |stage| healthy(stage, "pdx") == Some(false)), "too far behind");
    assert_eq!(healthy(&stage, "fra"), Some(true));
    behind(&mut stage, most);
    assert!(stage.play(Millis::from_secs(10), |stage| healthy(stage, "pdx") == Some(true)), "as far as it may be");
    stage.kill(&site("fra"));
    assert!(stage.play(Millis::from_secs(30), |stage| healthy(stage, "fra") == Some(false)), "it cannot be reached");
    stage.group.spec.paused = Some(crate::group::spec::Pause { reason: String::new(), until: None });
    stage.kill(&site("iad"));
    assert!(stage.play(Millis::from_secs(30), |stage| healthy(stage, "pdx").is_none()), "it keeps what it has");
}

#[test]
fn nobody_receives_from_the_last_holder_any_more_while_another_is_being_opened() {
    let mut stage = running(&["iad", "pdx", "fra:dr"]);
    // It cannot be opened yet, so that there is something to see.
    stage.actors.get_mut(&site("pdx")).expect("pdx").refuses = Some(|task| matches!(task, Task::CutReplication { .. }));
    stage.kill(&site("iad"));
    let receiver =
        |stage: &Rehearsal| stage.actors[&site("fra")].facts.replica.as_ref().map(|replica| replica.receiver);
    assert_eq!(receiver(&stage), Some(Receiver::Running));
    let granted = |stage: &Rehearsal| stage.store.record.as_ref().is_some_and(|it| it.phase == Phase::Granting);
    assert!(stage.play(MINUTE, granted), "{:?}", stage.group.obstacle);
    assert_eq!(receiver(&stage), Some(Receiver::Stopped));
}

/// A primary that this operator does not see may serve all the same: its lease runs on while its peers vouch.
#[test]
fn authority_is_taken_from_a_lost_holder_only_when_somebody_else_can_get_it() {
    let mut stage = running(&["iad", "pdx", "fra:dr"]);
    let full = stage.actors[&site("pdx")].facts.clone();
    stage.actors.get_mut(&site("pdx")).expect("pdx").facts = facts(2, "");
    // Nothing can be copied from a donor that is not there.
    stage.kill(&site("iad"));
    assert!(!stage.play(MINUTE, |stage| stage.store.record.as_ref().is_some_and(|it| it.phase != Phase::Stable)));
    let told = stage.group.summary(stage.now).degraded;
    let sentence =
        "NO PRIMARY: nobody can be promoted (iad: unreachable; pdx: it has no data; fra: dr-only is never promoted)";
    assert!(told.iter().any(|(_, words)| words == sentence), "{told:?}");
    stage.actors.get_mut(&site("pdx")).expect("pdx").facts = full;
    assert!(stage.play(MINUTE, |stage| stage.writer() == Some(site("pdx"))), "{:?}", stage.group.obstacle);
}

#[test]
fn a_candidate_that_lets_nobody_in_neither_holds_a_move_up_nor_begins_one() {
    let mut stage = running(&["iad", "pdx", "fra"]);
    stage.actors.get_mut(&site("pdx")).expect("pdx").locked = true;
    stage.play(Millis::from_secs(10), |_| false);
    stage.kill(&site("iad"));
    assert!(stage.play(MINUTE, |stage| stage.writer() == Some(site("fra"))), "{:?}", stage.group.obstacle);

    let mut stage = running(&["iad", "pdx", "fra:dr"]);
    stage.actors.get_mut(&site("pdx")).expect("pdx").locked = true;
    stage.play(Millis::from_secs(10), |_| false);
    stage.kill(&site("iad"));
    assert!(!stage.play(MINUTE, |stage| stage.store.record.as_ref().is_some_and(|it| it.phase != Phase::Stable)));
    stage.actors.get_mut(&site("pdx")).expect("pdx").locked = false;
    assert!(stage.play(MINUTE, |stage| stage.writer() == Some(site("pdx"))), "{:?}", stage.group.obstacle);
}

#[test]
fn dr_only_is_never_promoted() {
    let mut stage = running(&["iad", "pdx", "fra:dr"]);
    stage.kill(&site("iad"));
    stage.kill(&site("pdx"));
    assert!(!stage.play(Millis::from_secs(600), |stage| stage.writer() == Some(site("fra"))));
}

#[test]
fn a_replaced_pod_of_the_holder_gets_authority_back_and_nothing_is_counted() {
    let mut stage = running(&["iad", "pdx"]);
    let later = stage.now.boot;
    stage.actors.get_mut(&site("pdx")).expect("pdx").refuses = Some(|task| {
        assert_ne!(*task, Task::StopReceiver, "who follows the site goes on");
        false
    });
    let iad = stage.actors.get_mut(&site("iad")).expect("iad");
    iad.instance = Instance::new("pod-iad-2", "s9");
    iad.born = later;
    iad.epoch = None;
    iad.facts.pair = crate::site::Pair::CLOSED;
    assert!(
        stage.play(MINUTE, |stage| stage.writer() == Some(site("iad"))
            && stage.store.record.as_ref().is_some_and(|record| record.cause == Cause::Instance
                || record.seat.as_ref().is_some_and(|seat| *seat.instance.pod == *"pod-iad-2"))),
        "{:?}",
        stage.group.obstacle
    );
    assert_eq!(stage.store.last_failover, None);
    assert!(told(&stage).contains(&"AuthorityRestored".to_owned()), "{:?}", told(&stage));
}

#[test]
fn a_replaced_pod_of_a_replica_follows_nobody_until_it_was_read() {
    let mut stage = running(&["iad", "pdx"]);
    assert_eq!(stage.group.summary(stage.now).ready, Ok(()));
    let later = stage.now.boot;
    let pdx = stage.actors.get_mut(&site("pdx")).expect("pdx");
    pdx.instance = Instance::new("pod-pdx-2", "s9");
    pdx.born = later;
    // What the new one has to say is heard between two polls.
    stage.next_poll = later + MINUTE;
    let spoke = |stage: &Rehearsal| stage.group.seen.site(&site("pdx")).is_some_and(|seen| seen.words.len() == 2);
    assert!(stage.play(Millis::from_secs(30), spoke));
    assert_eq!(stage.group.summary(stage.now).ready, Err(NotReady::ReplicationUnhealthy));
    assert!(stage.play(Millis::from_secs(120), |stage| stage.group.summary(stage.now).ready.is_ok()));
}

/// K-27: and a promotion that is held.
#[test]
fn without_a_proof_the_group_holds_and_says_who_is_silent() {
    let mut stage = running(&["iad", "pdx", "fra"]);
    stage.group.spec.lease.min_peers = 2;
    stage.play(MINUTE, |stage| stage.store.record.as_ref().is_some_and(|record| record.settings.min_peers == 2));
    stage.play(Millis::from_secs(40), |_| false);
    // k = 1 of 2: one silent voter beside the dead holder is enough to hold.
    stage.group.spec.lease.min_peers = 1;
    stage.play(MINUTE, |stage| stage.store.record.as_ref().is_some_and(|record| record.settings.min_peers == 1));
    stage.play(Millis::from_secs(40), |_| false);
    stage.kill(&site("iad"));
    stage.actors.get_mut(&site("fra")).expect("fra").sidecar = false;
    assert!(!stage.play(Millis::from_secs(120), |stage| stage.writer() == Some(site("pdx"))));
    assert!(stage.told.iter().any(|(_, notice)| matches!(notice, Notice::PromotionHeld { .. })), "{:?}", told(&stage));
    stage.group.spec.proof = crate::authority::Policy::BestEffort;
    assert!(
        stage.play(MINUTE, |stage| stage.writer().is_some_and(|now| now != site("iad"))),
        "{:?}",
        stage.group.obstacle
    );
}

#[test]
fn a_human_who_opens_another_site_is_heard_while_the_holder_does_not_serve() {
    let mut stage = running(&["iad", "pdx"]);
    // Cooldown is not consulted: a move just happened.
    stage.group.spec.cooldown = Millis::from_secs(36_000);
    for (name, pair) in [("iad", crate::site::Pair::CLOSED), ("pdx", crate::site::Pair::OPEN)] {
        let actor = stage.actors.get_mut(&site(name)).expect("an actor");
        actor.facts.pair = pair;
        actor.facts.replica = None;
    }
    assert!(
        stage.play(MINUTE, |stage| stage.writer() == Some(site("pdx"))),
        "{:?} {:?}",
        stage.group.obstacle,
        told(&stage)
    );
    assert!(told(&stage).contains(&"ManualPromotionCompleted".to_owned()), "{:?}", told(&stage));
}

/// F-23: people close the old primary and open the new one a moment later. Its sidecar closes that at once and tells of it,
/// and the leader's last reading of the old one may be from before.
#[test]
fn f_23_a_wish_counts_that_is_told_before_the_closed_holder_was_read() {
    let mut stage = running(&["iad", "pdx"]);
    stage.group.spec.cooldown = Millis::from_secs(36_000);
    close(&mut stage, "iad");
    hand_told(&mut stage, "pdx");
    assert!(stage.play(MINUTE, |stage| stage.writer() == Some(site("pdx"))), "{:?}", told(&stage));
    assert!(told(&stage).contains(&"ManualPromotionCompleted".to_owned()), "{:?}", told(&stage));
}

/// F-23: a hand beside a serving holder is no wish, also when its sidecar still tells of it after the holder was closed. The
/// next hand is.
#[test]
fn f_23_a_hand_beside_a_serving_holder_is_no_wish_later() {
    for (another_hand, wished) in [(false, false), (true, true)] {
        let mut stage = running(&["iad", "pdx"]);
        hand_told(&mut stage, "pdx");
        stage.play(Millis::from_secs(8), |_| false);
        if another_hand {
            stage.actors.get_mut(&site("pdx")).expect("pdx").opened_by_hand = false;
            stage.play(Millis::from_secs(8), |_| false);
        }
        close(&mut stage, "iad");
        hand_told(&mut stage, "pdx");
        stage.play(Millis::from_secs(8), |_| false);
        let requested = told(&stage).contains(&"ManualPromotionRequested".to_owned());
        assert_eq!(requested, wished, "{:?}", told(&stage));
    }
}

/// Closed for good: nobody beside it opens it again.
fn close(stage: &mut Rehearsal, name: &str) {
    let actor = stage.actors.get_mut(&site(name)).expect("an actor");
    (actor.facts.pair, actor.sidecar) = (crate::site::Pair::CLOSED, false);
}

fn hand_told(stage: &mut Rehearsal, name: &str) {
    let now = stage.now.boot;
    let actor = stage.actors.get_mut(&site(name)).expect("an actor");
    actor.opened_by_hand = true;
    let word = actor.word(&site(name), now);
    stage.tell(Input::Heard(Box::new(word)));
}

#[test]
fn a_new_leader_goes_on_wherever_the_old_one_stopped() {
    for stop in 0..40 {
        let mut stage = running(&["iad", "pdx", "fra"]);
        stage.kill(&site("iad"));
        let begun = stage.store.epoch();
        stage.play(MINUTE, |stage| stage.store.epoch() > begun);
        stage.stop_after(stop);
        stage.play(MINUTE, Rehearsal::is_stopped);
        let mut stage = stage.with_new_leader();
        assert!(
            stage.play(Millis::from_secs(90), |stage| stage.writer().is_some_and(|now| now != site("iad"))),
            "stopped after {stop} commands: {:?}",
            stage.group.obstacle
        );
        assert_eq!(stage.store.last_failover.as_ref().map(|last| last.to.clone()), stage.writer(), "after {stop}");
    }
}

#[test]
fn what_if_tells_who_would_write_and_changes_nothing() {
    let stage = running(&["iad", "pdx", "fra"]);
    let before = stage.group.clone();
    let forecast = stage.group.what_if(stage.now, &[site("iad")]);
    assert!(matches!(&forecast.ending, Ending::Writes { site: to, .. } if *to != site("iad")), "{forecast:?}");
    let forecast = stage.group.what_if(stage.now, &[site("pdx")]);
    assert!(matches!(&forecast.ending, Ending::Writes { site: to, .. } if *to == site("iad")), "{forecast:?}");
    let forecast = stage.group.what_if(stage.now, &[site("iad"), site("pdx"), site("fra")]);
    assert!(matches!(forecast.ending, Ending::Nobody { .. }), "{forecast:?}");
    assert_eq!(stage.group, before);
}

#[test]
fn a_holder_that_restarts_before_the_old_primary_was_compared_is_opened_all_the_same() {
    let mut stage = running(&["iad", "pdx"]);
    write(&mut stage, "1:11-13");
    let stranded = stage.actors[&site("iad")].executed();
    stage.kill(&site("iad"));
    assert!(stage.play(MINUTE, |stage| stage.writer() == Some(site("pdx"))), "{:?}", stage.group.obstacle);
    // It comes back with what nobody received, and the new primary restarts at that moment.
    let iad = stage.actors.get_mut(&site("iad")).expect("iad");
    (iad.server, iad.sidecar, iad.facts.pair) = (true, true, crate::site::Pair::CLOSED);
    stage.group.seen.sites.get_mut(&site("iad")).expect("iad").facts = Some(iad.facts.clone().into());
    let kept = stage.store.clone();
    let given_up = stage.group.given_up(&kept, &site("iad"));
    assert_eq!(given_up, set("1:11-13"), "of {stranded}");
    // What its own server made counts: another site that has it shows that it was lost.
    let pdx = facts(2, "1:1-10,2:1-5");
    stage.group.seen.sites.get_mut(&site("iad")).expect("iad").facts = Some(pdx.into());
    assert_eq!(stage.group.given_up(&kept, &site("iad")), set(""));
}

#[test]
fn a_pod_that_is_being_deleted_is_not_taken_in() {
    let mut stage = running(&["iad", "pdx", "fra"]);
    let later = stage.now.boot;
    let fra = stage.actors.get_mut(&site("fra")).expect("fra");
    (fra.instance, fra.born, fra.epoch) = (Instance::new("pod-fra-2", "s9"), later, None);
    let mut estate = stage.group.seen.estate.clone().expect("an estate");
    let mut pod = estate.pods.last().expect("a pod").clone();
    (pod.uid, pod.deleting) = ("pod-fra-2".into(), true);
    estate.pods.push(pod);
    stage.tell(Input::Estate(Box::new(estate.clone())));
    stage.play(MINUTE, |_| false);
    let lists = |stage: &Rehearsal| {
        let record = stage.store.record.clone().expect("a record");
        record.voters.iter().any(|voter| *voter.instance.pod == *"pod-fra-2")
    };
    assert!(!lists(&stage), "its end could not be seen any more");
    estate.pods.last_mut().expect("a pod").deleting = false;
    stage.tell(Input::Estate(Box::new(estate)));
    assert!(stage.play(MINUTE, lists), "{:?}", stage.store.record);
}

#[test]
fn people_are_told_by_which_rule_a_site_was_chosen_and_what_could_not_be_compared() {
    for (fra, doubtful) in [("1:1-11", true), ("1:1-10", false)] {
        let mut stage = running(&["iad", "pdx", "fra"]);
        for (name, executed) in [("pdx", "1:1-10:12"), ("fra", fra)] {
            let actor = stage.actors.get_mut(&site(name)).expect("an actor");
            actor.facts.data.as_mut().expect("data").executed = set(executed);
        }
        stage.told.clear();
        stage.kill(&site("iad"));
        assert!(stage.play(MINUTE, |stage| stage.writer().is_some_and(|now| now != site("iad"))), "{fra}");
        let told = told(&stage);
        assert!(told.contains(&"CandidateChosen".to_owned()), "{fra}: {told:?}");
        assert_eq!(told.contains(&"IncomparableCandidates".to_owned()), doubtful, "{fra}: {told:?}");
    }
}

/// F-44: the note of the leader's own SQL fence outlives a grant back to the same instance, for the statement may still be
/// on its way, and goes when the holder was read open for a lease.
#[test]
fn f_44_a_fence_that_lands_after_the_way_back_is_our_own_and_a_later_one_is_a_humans() {
    let mut stage = running(&["iad", "pdx"]);
    let sent = |stage: &Rehearsal| {
        let record = stage.store.record.as_ref().expect("a record");
        record.holder.as_ref().is_some_and(|holder| holder.sql_fence_sent)
    };
    let mut record = stage.store.record.clone().expect("a record");
    record.holder.as_mut().expect("a holder").sql_fence_sent = true;
    stage.store.record = Some(record);
    stage.tell(Input::Leads(None));
    stage.play(Millis::from_secs(15), |_| false);
    assert!(sent(&stage), "read open for less than a lease");
    assert!(stage.play(Millis::from_secs(15), |stage| !sent(stage)), "read open for a lease");
    assert_eq!(stage.writer(), Some(site("iad")));
}

/// C-131: all pods are replaced at once, and another site's is back first: authority returns to the holder's next pod.
#[test]
fn c_131_when_all_pods_are_replaced_the_next_pod_of_the_holder_is_waited_for() {
    let lost_together = |ended: bool| {
        let mut stage = running(&["iad", "pdx", "fra"]);
        for name in ["iad", "pdx", "fra"] {
            stage.kill(&site(name));
        }
        let mut estate = stage.group.seen.estate.clone().expect("an estate");
        for pod in estate.pods.iter_mut().filter(|pod| pod.site == site("iad")) {
            (pod.deleting, pod.all_terminated, pod.node_vouches) = (true, ended, true);
        }
        stage.tell(Input::Estate(Box::new(estate)));
        assert!(stage.play(MINUTE, |stage| stage.group.all_lost), "{:?}", stage.group.judged);
        for name in ["pdx", "fra"] {
            let actor = stage.actors.get_mut(&site(name)).expect("an actor");
            (actor.server, actor.sidecar) = (true, true);
        }
        stage
    };
    let waits = |stage: &Rehearsal| stage.group.obstacle == Some(Obstacle::NextPod(site("iad")));

    let mut stage = lost_together(true);
    assert!(stage.play(Millis::from_secs(20), waits), "{:?}", stage.group.obstacle);
    let degraded = stage.group.summary(stage.now).degraded;
    assert!(degraded.iter().any(|(_, why)| why.contains("waiting for iad's next pod")), "{degraded:?}");
    let iad = stage.actors.get_mut(&site("iad")).expect("an actor");
    (iad.server, iad.sidecar, iad.instance) = (true, true, Instance::new("pod-iad-2", "store-2"));
    assert!(stage.play(MINUTE, |stage| stage.writer() == Some(site("iad"))), "{:?}", stage.group.obstacle);
    assert_eq!(stage.store.last_failover, None);

    // It does not come: somebody else, in the end.
    let mut stage = lost_together(true);
    assert!(!stage.play(Millis::from_secs(25), |stage| stage.writer().is_some()), "{:?}", stage.group.obstacle);
    assert!(stage.play(MINUTE, |stage| stage.writer() == Some(site("pdx"))), "{:?}", stage.group.obstacle);

    // Its end was not seen: it may be lost for ever, and nothing is waited for but the proof.
    let mut stage = lost_together(false);
    assert!(!stage.play(MINUTE, waits) && stage.writer() == Some(site("pdx")), "{:?}", stage.group.obstacle);
}
