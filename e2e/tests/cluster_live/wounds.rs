//! Scenes of servers, pods and nodes.
//!
//! In: the cast. Out: a fault that was felt, and is gone. Must not: go by what the status said before the fault.

use bloodraven_testbed::cluster::SITES;

use super::scenes::{Cast, HEALS_WITHIN};

pub(crate) fn container_killed(cast: &Cast<'_>) {
    let (stage, before) = (cast.stage, cast.stage.active());
    let restarts = stage.restarts(&before, "mysql").expect("a container");
    stage.kill_container(&before, "mysql");
    stage.wait_until("the container is started again", || (stage.restarts(&before, "mysql")? > restarts).then_some(()));
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
