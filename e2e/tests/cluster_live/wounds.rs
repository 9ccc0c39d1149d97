//! Scenes of servers, pods and nodes.
//!
//! In: the cast. Out: a fault that was felt, and is gone. Must not: go by what the status said before the fault.

use std::time::Duration;

use bloodraven_testbed::cluster::SITES;
use bloodraven_testbed::progress::say;

use super::leaders::UNNOTICED;
use super::scenes::{Cast, HEALS_WITHIN};
use super::stage::LEASE;

/// From the end of a lease until a server is closed for certain: a timer of 0.25 s, 2.5 s for the ladder or the keeper, 0.25 s
/// until they are scheduled.
const CLOSED_WITHIN: Duration = Duration::from_secs(3);

pub(crate) fn container_killed(cast: &Cast<'_>) {
    let (stage, before) = (cast.stage, cast.stage.active());
    let restarts = stage.restarts(&before, "mysql").expect("a container");
    stage.kill_container(&before, "mysql");
    stage.wait_until("the container is started again", || (stage.restarts(&before, "mysql")? > restarts).then_some(()));
}

/// C-67: the primary's sidecar is killed once. It is started again, and that is all.
pub(crate) fn sidecar_killed(cast: &Cast<'_>) {
    let (stage, before) = (cast.stage, cast.stage.active());
    let rest = || (stage.active(), stage.instance(&before), stage.restarts(&before, "mysql"), cast.seen.epoch());
    let (as_it_was, begin) = (rest(), stage.timeline.now());
    let restarts = stage.restarts(&before, "sidecar").expect("a sidecar");
    stage.kill_container(&before, "sidecar");
    stage.wait_until("the sidecar is started again", || (stage.restarts(&before, "sidecar")? > restarts).then_some(()));
    cast.load.wait_for_writes("with another sidecar");
    stage.wait_until_whole("with another sidecar", HEALS_WITHIN);
    assert_eq!(rest(), as_it_was, "nothing else happens");
    let gap = cast.load.longest_gap_since(begin);
    assert!(gap < UNNOTICED, "nobody could write for {gap:?} because of a sidecar");
}

/// C-67: and its lease is not longer for it. The primary is cut off, so that nobody renews anything, and its sidecar killed.
pub(crate) fn sidecar_killed_while_cut_off(cast: &Cast<'_>) {
    let (stage, before) = (cast.stage, cast.stage.active());
    let cut = stage.machines().isolate(&before).unwrap();
    let last_renewal = stage.timeline.now();
    stage.kill_container(&before, "sidecar");
    cut_off_and_still_asked(cast, &before);
    let closed = cast.eyes.last_open(&before).expect("it was open").saturating_sub(last_renewal);
    say(&format!("cut off and with another sidecar, {before} was open for {:.1} s", closed.as_secs_f64()));
    assert!(closed <= LEASE + CLOSED_WITHIN, "{before} was open for {closed:?}, its lease is {LEASE:?}");
    cut.heal().unwrap();
}

pub(crate) fn pod_deleted(cast: &Cast<'_>) {
    let (stage, before) = (cast.stage, cast.stage.active());
    let instance = stage.instance(&before);
    stage.delete_pod(&before);
    stage.wait_for_another_instance(&before, &instance);
}

/// The object goes, the processes live on where nobody reaches them.
pub(crate) fn forced_while_cut_off(cast: &Cast<'_>) {
    let (stage, before) = (cast.stage, cast.stage.active());
    let instance = stage.instance(&before);
    let cut = stage.machines().isolate(&before).unwrap();
    stage.force_delete_pod(&before);
    cut_off_and_still_asked(cast, &before);
    cast.load.wait_for_writes("elsewhere");
    cut.heal().unwrap();
    stage.wait_for_another_instance(&before, &instance);
}

/// Somebody else took over, and all that time the server that was cut off had clients.
fn cut_off_and_still_asked(cast: &Cast<'_>, before: &str) {
    let answers = cast.eyes.answers(before);
    cast.stage.wait_for_another(before, HEALS_WITHIN);
    cast.stage.wait_for_unreachable(before);
    cast.stage.wait_for_lost_node(before);
    assert!(cast.eyes.answers(before) > answers, "{before} was not asked on its own node while it was cut off");
}

/// The node comes back when somebody else writes.
pub(crate) fn power_cut(cast: &Cast<'_>) {
    let (stage, before) = (cast.stage, cast.stage.active());
    let off = stage.machines().power_cut(&before).unwrap();
    stage.wait_for_another(&before, HEALS_WITHIN);
    stage.wait_for_unreachable(&before);
    stage.wait_for_lost_node(&before);
    off.boot().unwrap();
}

pub(crate) fn frozen(cast: &Cast<'_>) {
    let (stage, before) = (cast.stage, cast.stage.active());
    let frozen = stage.machines().freeze(&before).unwrap();
    stage.wait_for_another(&before, HEALS_WITHIN);
    stage.wait_for_unreachable(&before);
    stage.wait_for_lost_node(&before);
    cast.load.wait_for_writes("elsewhere");
    cast.eyes.wakes(&before);
    frozen.thaw().unwrap();
}

pub(crate) fn isolated(cast: &Cast<'_>) {
    let before = cast.stage.active();
    let cut = cast.stage.machines().isolate(&before).unwrap();
    cut_off_and_still_asked(cast, &before);
    cut.heal().unwrap();
}

pub(crate) fn replica_lost(cast: &Cast<'_>) {
    let (stage, before) = (cast.stage, cast.stage.active());
    let (replica, moves) = (stage.other_candidate(&before), cast.seen.moves());
    let off = stage.machines().power_cut(replica).unwrap();
    stage.wait_for_unreachable(replica);
    stage.wait_for_condition("Degraded", "True");
    cast.load.wait_for_writes("without a replica");
    assert_eq!((stage.active(), cast.seen.moves()), (before, moves), "nothing moves");
    off.boot().unwrap();
}

pub(crate) fn one_by_one(cast: &Cast<'_>) {
    for site in SITES {
        let instance = cast.stage.instance(site);
        cast.stage.delete_pod(site);
        cast.stage.wait_for_another_instance(site, &instance);
        cast.load.wait_for_writes(site);
        cast.stage.wait_until_whole(site, HEALS_WITHIN);
    }
}

pub(crate) fn all_at_once(cast: &Cast<'_>) {
    let before = cast.stage.instances();
    cast.stage.delete_all_pods();
    for (site, instance) in before {
        cast.stage.wait_for_another_instance(site, &instance);
    }
}
