//! A group on a real cluster of three nodes: from nothing to Ready without a manual step, then what happens to clusters.
//!
//! Throughout, one client writes through `-primary` and one straight to each site, and everything that the API server shows
//! is watched. In the end the ledger says whether a write was lost or taken on the wrong side.
//!
//! It needs root and builds the programs of Kubernetes the first time; a machine that cannot run a cluster fails here, with
//! the reason. On failure the folder with the cluster's logs is kept, with the group, its Events and every container's log.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking, and so do the functions that its tests share"
)]

mod judge;
mod load;
mod seen;
mod stage;

use std::time::Duration;

use bloodraven_testbed::progress::say;
use bloodraven_testbed::wait::Stopwatch;
use load::Load;
use seen::Seen;
use stage::{GROUP, NAMESPACE, Stage};

/// From a fault to a group that is whole again: a node that was off boots, its pod catches up.
const HEALS_WITHIN: Duration = Duration::from_mins(6);

type Scene = fn(&Stage, &Seen);

const SCENES: &[(&str, Scene)] = &[
    ("the primary's container is killed", |stage, _| stage.kill_container(&stage.active(), "mysql")),
    ("the primary's pod is deleted", |stage, _| stage.delete_pod(&stage.active())),
    ("the primary's node loses power", power_cut),
    ("the operator is killed in the middle of a failover", operator_killed),
];

#[test]
fn a_group_has_one_writer_and_loses_nothing_through_what_happens_to_clusters() {
    let stage = Stage::up();
    let _evidence = stage.evidence();
    stage.install();
    let watch = Stopwatch::start();
    stage.apply_group();
    stage.wait_until_whole("applied", HEALS_WITHIN);
    say(&format!("from apply to Ready: {:.1} s", watch.elapsed().as_secs_f64()));
    stage.objects_are_as_promised();

    let seen = Seen::start(&stage);
    let load = Load::start(&stage);
    load.wait_for_writes("before the first fault");
    for (name, scene) in SCENES {
        let watch = Stopwatch::start();
        scene(&stage, &seen);
        load.wait_for_writes(name);
        stage.wait_until_whole(name, HEALS_WITHIN);
        let gap = load.longest_gap_since(watch);
        let healed = watch.elapsed().as_secs_f64();
        say(&format!("{name}: {:.1} s without a write, whole after {healed:.1} s", gap.as_secs_f64()));
    }
    let ledger = load.stop();
    judge::judge(&stage, &seen.stop(), &ledger);
}

/// The node comes back when somebody else writes.
fn power_cut(stage: &Stage, _: &Seen) {
    let before = stage.active();
    let off = stage.cluster.power_cut(&before).unwrap();
    stage.wait_for_another(&before, HEALS_WITHIN);
    off.boot().unwrap();
}

/// As soon as authority is taken back and nobody has it yet.
fn operator_killed(stage: &Stage, seen: &Seen) {
    let before = stage.active();
    let epoch = seen.epoch();
    let cut = stage.cluster.isolate(&before).unwrap();
    seen.wait_for_revoking_above(epoch);
    stage.kill_operator();
    stage.wait_for_another(&before, HEALS_WITHIN);
    cut.heal().unwrap();
}

/// `kubectl` words for something of the group's namespace.
fn of_group<'a>(words: &[&'a str]) -> Vec<&'a str> {
    [words, &["-n", NAMESPACE]].concat()
}

/// How messages call it.
fn group() -> String {
    format!("{NAMESPACE}/{GROUP}")
}
