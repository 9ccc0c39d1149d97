//! A group on a real cluster of three nodes: from nothing to Ready without a manual step, then what happens to clusters.
//!
//! Every run plays a few of the scenes; `cargo xtask cluster scenes` plays all of them, or those that it names.
//!
//! Throughout, one client writes through `-primary` and one straight to each site, from the site's own node; each server is
//! asked there whether it is open; and everything that the API server shows is watched. In the end the ledger says whether a
//! write was lost or taken on the wrong side, and whether two servers were ever open at once.
//!
//! It needs root and builds the programs of Kubernetes the first time; a machine that cannot run a cluster fails here, with
//! the reason. On failure the folder with the cluster's logs is kept, with a timeline of all that was seen, the group, its
//! Events, every pod's metrics and every container's log.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking, and so do the functions that its tests share"
)]

mod entrance;
mod evidence;
mod eyes;
mod ground;
mod judge;
mod kills;
mod leaders;
mod load;
mod losses;
mod marks;
mod moves;
mod operators;
mod outward;
mod pods;
mod scenes;
mod seen;
mod sessions;
mod sites;
mod stage;
mod terms;
mod timeline;
mod tls;
mod ways;
mod wounds;

use bloodraven_testbed::progress::say;
use bloodraven_testbed::wait::Stopwatch;
use eyes::Eyes;
use load::Load;
use scenes::{Cast, HEALS_WITHIN, Scene};
use seen::Seen;
use stage::Stage;
use terms::Terms;

/// A node has four volumes of the kind that the example asks for.
const AT_A_TIME: u32 = 4;

#[test]
fn a_group_has_one_writer_and_loses_nothing_through_what_happens_to_clusters() {
    // A wrong choice is told before anything is brought up.
    let chosen = scenes::chosen();
    let stage = Stage::up();
    let _evidence = stage.evidence();
    stage.install();
    if let Some(count) = scenes::applies() {
        return apply_often(&stage, count);
    }
    let watch = Stopwatch::start();
    stage.apply_group();
    stage.wait_until_whole("applied", HEALS_WITHIN);
    say(&format!("from apply to Ready: {:.1} s", watch.elapsed().as_secs_f64()));
    stage.objects_are_as_promised();

    let seen = Seen::start(&stage);
    let load = Load::start(&stage);
    load.wait_for_writes("before the first fault");
    let eyes = Eyes::open(&stage);
    let cast = Cast { stage: &stage, seen: &seen, load: &load, eyes: &eyes };
    if let Some(kills) = scenes::kills() {
        kills::play(&cast, kills);
    }
    for scene in chosen {
        play(&cast, scene);
    }
    let (ledger, sight) = (load.stop(), eyes.close());
    judge::judge(&stage, &seen.stop(), &ledger, &sight);
    stage.leave();
}

/// One scene, from a whole group to a whole group.
fn play(cast: &Cast<'_>, scene: &Scene) {
    let Cast { stage, seen, load, .. } = cast;
    let begin = stage.timeline.now();
    stage.timeline.note(format!("scene {} begins: {}", scene.name, scene.story));
    (scene.play)(cast);
    stage.timeline.note(format!("scene {}: everything was done", scene.name));
    load.wait_for_writes(scene.story);
    stage.wait_until_whole(scene.story, HEALS_WITHIN);
    stage.timeline.note(format!("scene {}: whole", scene.name));
    let whole = stage.timeline.now().saturating_sub(begin).as_secs_f64();
    let gap = load.longest_gap_since(begin).as_secs_f64();
    let nowhere = seen.led_nowhere_since(begin).as_secs_f64();
    say(&format!(
        "{}: {}: {gap:.1} s without a write, -primary without an endpoint {nowhere:.1} s, whole after {whole:.1} s",
        scene.name, scene.story
    ));
}

/// From nothing to Ready, again and again: as many groups at a time as there are volumes for, each on empty ones.
fn apply_often(stage: &Stage, count: u32) {
    let mut ready = 0;
    while ready < count {
        let groups: Vec<Stage> = (0..AT_A_TIME.min(count - ready))
            .map(|number| stage.beside(&number.to_string(), Terms::ordinary()))
            .collect();
        let _evidence: Vec<_> = groups.iter().map(Stage::evidence).collect();
        let watch = Stopwatch::start();
        groups.iter().for_each(Stage::apply_group);
        for group in &groups {
            group.wait_until_whole("applied", HEALS_WITHIN);
            ready += 1;
            say(&format!("{ready} of {count} Ready, {:.1} s after apply", watch.elapsed().as_secs_f64()));
            group.objects_are_as_promised();
        }
        groups.iter().for_each(Stage::delete_group);
        groups.iter().for_each(Stage::wait_until_gone);
        stage.machines().renew_volumes().unwrap();
    }
}
