//! Ordered updates among obedient sites: order, one site at a time, the primary last.

use crate::group::forecast::Rehearsal;
use crate::group::input::{Input, Rollout};
use crate::group::kept::{PlannedPhase, UpdatePhase};
use crate::group::save::Plan;
use crate::group::tests::{follow_all, running, told};
use crate::group::{Command, Notice};
use crate::name::{Instance, Site};
use crate::time::{Millis, Now, Wall};
use std::collections::BTreeSet;

fn site(name: &str) -> Site {
    Site::new(name)
}

fn drift(stage: &mut Rehearsal, sites: &[&str]) {
    let mut estate = stage.group.seen.estate.clone().unwrap_or_default();
    estate.rollouts = stage.group.spec.names().into_iter().map(|site| (site, Rollout::Current)).collect();
    for name in sites {
        estate.rollouts.insert(site(name), Rollout::Drifted);
    }
    stage.tell(Input::Estate(Box::new(estate)));
}

/// A rolled site comes back as a new instance that follows the primary; returns the order of rolling.
fn play_rolling(stage: &mut Rehearsal, rounds: usize) -> Vec<Site> {
    let mut order = Vec::new();
    for _ in 0..rounds {
        stage.play(Millis::from_secs(1), |_| false);
        for command in std::mem::take(&mut stage.unperformed) {
            let Command::Roll { site } = command else { continue };
            if order.last() == Some(&site) {
                continue;
            }
            assert_ne!(stage.writer().as_ref(), Some(&site), "the primary is never rolled while it serves");
            let mut estate = stage.group.seen.estate.clone().unwrap_or_default();
            estate.rollouts.insert(site.clone(), Rollout::Current);
            // The old pod is gone; the new one is told of when it speaks.
            let gone = estate.pods.iter_mut().filter(|pod| pod.site == site);
            gone.for_each(|pod| (pod.deleting, pod.all_terminated) = (true, true));
            let now = stage.now.boot;
            let actor = stage.actors.get_mut(&site).expect("its actor");
            actor.instance = Instance::new(&format!("pod-{site}-{}", order.len()), "s1");
            (actor.born, actor.epoch) = (now, None);
            order.push(site);
            stage.tell(Input::Estate(Box::new(estate)));
        }
        if let Some(primary) = stage.writer() {
            follow_all(stage, &primary);
        }
    }
    order
}

#[test]
fn followers_first_then_a_hand_over_then_the_old_primary() {
    let mut stage = running(&["iad", "pdx", "fra"]);
    drift(&mut stage, &["iad", "pdx", "fra"]);
    let order = play_rolling(&mut stage, 400);
    assert_eq!(order, [site("pdx"), site("iad"), site("fra")], "{:?}", stage.store.update);
    assert_eq!(stage.writer(), Some(site("pdx")));
    assert_eq!(stage.store.update.as_ref().map(|update| update.phase), Some(UpdatePhase::Complete));
}

#[test]
fn a_follower_alone_needs_no_hand_over() {
    let mut stage = running(&["iad", "pdx", "fra"]);
    drift(&mut stage, &["fra"]);
    assert_eq!(play_rolling(&mut stage, 120), [site("fra")]);
    assert_eq!(stage.writer(), Some(site("iad")));
}

#[test]
fn the_primary_alone_hands_over_first() {
    let mut stage = running(&["iad", "pdx"]);
    drift(&mut stage, &["iad"]);
    assert_eq!(play_rolling(&mut stage, 200), [site("iad")], "{:?} {:?}", stage.store.update, stage.store.planned);
    assert_eq!(stage.writer(), Some(site("pdx")));
}

#[test]
fn nothing_is_rolled_while_another_site_is_down() {
    let mut stage = running(&["iad", "pdx", "fra"]);
    stage.kill(&site("fra"));
    stage.play(Millis::from_secs(20), |_| false);
    drift(&mut stage, &["iad", "pdx"]);
    assert_eq!(play_rolling(&mut stage, 60), []);
    // A drifted follower that is down anyway is rolled first.
    drift(&mut stage, &["fra", "pdx"]);
    stage.unperformed.clear();
    stage.play(Millis::from_secs(3), |_| false);
    assert_eq!(stage.store.update.as_ref().and_then(|update| update.site.clone()), Some(site("fra")));
}

/// K-27: and an update that waits.
#[test]
fn what_stands_in_the_way_is_told() {
    let mut stage = running(&["iad", "pdx", "fra"]);
    drift(&mut stage, &["pdx"]);
    stage.play(Millis::from_secs(1), |stage| stage.store.update.is_some());
    stage.kill(&site("fra"));
    // Rolling was asked for before; the world never did it, and now another site is down.
    stage.play(Millis::from_secs(20), |_| false);
    let stopped = stage.store.update.as_ref().and_then(|update| update.stopped.clone());
    assert!(stopped.is_some_and(|why| why.contains("another site is down")), "{:?}", told(&stage));
    assert!(stage.told.iter().any(|(_, notice)| matches!(notice, Notice::UpdateChanged { stopped: Some(_), .. })));
}

#[test]
fn recreate_rolls_all_at_once() {
    let mut stage = running(&["iad", "pdx"]);
    stage.group.spec.update = crate::group::spec::UpdateStrategy::Recreate;
    drift(&mut stage, &["iad", "pdx"]);
    let rolled: BTreeSet<Site> = stage
        .unperformed
        .iter()
        .filter_map(|command| match command {
            Command::Roll { site } => Some(site.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(rolled.into_iter().collect::<Vec<_>>(), [site("iad"), site("pdx")]);
}

/// S-15: a site that is to be different again while it is waited for is rolled again.
#[test]
fn s_15_a_site_that_drifts_again_while_it_is_waited_for_is_rolled_again() {
    let mut stage = running(&["iad", "pdx", "fra"]);
    drift(&mut stage, &["fra"]);
    stage.play(Millis::from_secs(5), |_| false);
    assert!(stage.unperformed.contains(&Command::Roll { site: site("fra") }), "{:?}", stage.store.update);
    drift(&mut stage, &[]);
    stage.play(Millis::from_secs(2), |stage| {
        stage.store.update.as_ref().is_some_and(|update| update.phase == UpdatePhase::WaitReplica)
    });
    // The template changes once more before it is back: its pod is that of a change ago.
    drift(&mut stage, &["fra"]);
    stage.unperformed.clear();
    stage.play(Millis::from_secs(5), |_| false);
    assert!(stage.unperformed.contains(&Command::Roll { site: site("fra") }), "{:?}", stage.store.update);
}

/// A hand-over failed, and the calendar was set back after it: the next attempt comes after the pause, once.
#[test]
fn a_failed_hand_over_is_tried_again_after_a_pause_whatever_the_calendar_says() {
    let mut stage = running(&["iad", "pdx"]);
    let ahead = Wall(stage.now.wall.0 + 3_600_000);
    let mut plan = Plan::new(&stage.store, None);
    stage.group.plan_hand_over(Now { wall: ahead, ..stage.now }, &site("pdx"), &mut plan);
    let mut failed = plan.next().planned.clone().expect("a hand-over");
    (failed.phase, failed.completed) = (PlannedPhase::Failed, Some(ahead));
    stage.store.planned = Some(failed);
    stage.tell(Input::Leads(None));
    drift(&mut stage, &["iad"]);
    assert!(!stage.play(Millis::from_secs(590), |stage| stage.writer() == Some(site("pdx"))), "{:?}", told(&stage));
    assert!(stage.play(Millis::from_secs(60), |stage| stage.writer() == Some(site("pdx"))), "{:?}", stage.store.update);
    let changes = stage.told.iter().filter(|(_, notice)| matches!(notice, Notice::UpdateChanged { .. })).count();
    assert!(changes < 6, "{:?}", told(&stage));
}
