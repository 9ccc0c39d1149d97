//! What happens to clusters, scene by scene.
//!
//! In: a stage with a whole group, and clients that write all the time. Out: a fault that was there and is gone, and the
//! group as far as the scene waits for it; whoever plays it waits until everything is whole again. Must not: leave a fault
//! behind: each is a guard.

use std::time::Duration;

use bloodraven_testbed::cluster::{Container, Denial, SITES};

use super::load::Load;
use super::seen::Seen;
use super::stage::{OPERATORS, Stage};

/// From a fault to a group that is whole again: a node that was off boots, its pod catches up.
pub(crate) const HEALS_WITHIN: Duration = Duration::from_mins(6);

/// Chooses what is played: `all`, or names with commas; what every run of the tests plays without it.
const CHOICE: &str = "BLOODRAVEN_SCENES";

/// Has the group applied so often, each time on empty volumes, instead of any scene.
const APPLIES: &str = "BLOODRAVEN_APPLIES";

/// Has the operator killed so often in the middle of a move.
const KILLS: &str = "BLOODRAVEN_KILLS";

/// The clients write about twenty times a second: so many take two minutes, and some more on a busy machine.
const TWO_MINUTES_OF_WRITES: usize = 2200;

/// What a scene has to do with.
pub(crate) struct Cast<'a> {
    pub(crate) stage: &'a Stage,
    pub(crate) seen: &'a Seen,
    pub(crate) load: &'a Load,
}

pub(crate) struct Scene {
    /// For the choice.
    pub(crate) name: &'static str,
    /// For people.
    pub(crate) story: &'static str,
    /// It is played in every run of the tests.
    always: bool,
    pub(crate) play: fn(&Cast<'_>),
}

const fn scene(name: &'static str, story: &'static str, always: bool, play: fn(&Cast<'_>)) -> Scene {
    Scene { name, story, always, play }
}

const SCENES: [Scene; 17] = [
    scene("container", "the primary's container is killed", true, container_killed),
    scene("pod", "the primary's pod is deleted", true, pod_deleted),
    scene("forced", "the primary's pod is deleted by force while its node is cut off", false, forced_while_cut_off),
    scene("power", "the primary's node loses power", true, power_cut),
    scene("frozen", "the primary's node stands still, and goes on when another writes", false, frozen),
    scene("isolated", "the primary's node is cut off", false, isolated),
    scene("replica", "a replica's node loses power: nothing moves", false, replica_lost),
    scene("one-by-one", "every pod is replaced, one after the other", false, one_by_one),
    scene("all-at-once", "every pod is replaced at once", false, all_at_once),
    scene("operator", "the operator is killed while everything is well: nothing moves", false, operator_killed_idle),
    scene("operator-in-move", "the operator is killed in the middle of a failover", true, operator_killed_in_move),
    scene("planned", "an admin asks for a move", false, planned),
    scene("api", "the API server is away for two minutes: clients notice nothing", false, api_away),
    scene("stale-leader", "the leader stands still, another leads and moves, the first goes on", false, stale_leader),
    scene("labels-denied", "labels cannot be written in a move, and are when they can be", false, labels_denied),
    scene("dns-denied", "the DNS record cannot be written in a move, and is when it can be", false, dns_denied),
    scene("taints-denied", "nodes cannot be tainted in a move, and are when they can be", false, taints_denied),
];

#[expect(clippy::disallowed_methods, reason = "the one place of this test that reads the environment")]
fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

/// How often the group is applied, instead of any scene.
pub(crate) fn applies() -> Option<u32> {
    count(APPLIES)
}

/// How often the operator is killed in the middle of a move, instead of any scene.
pub(crate) fn kills() -> Option<u32> {
    count(KILLS)
}

fn count(name: &str) -> Option<u32> {
    match variable(name).as_str() {
        "" => None,
        text => Some(text.parse().ok().filter(|count| *count > 0).unwrap_or_else(|| panic!("{name}={text}: no count"))),
    }
}

/// What is to be played.
pub(crate) fn chosen() -> Vec<&'static Scene> {
    let choice = variable(CHOICE);
    if kills().is_some() {
        return Vec::new();
    }
    if choice.is_empty() {
        return SCENES.iter().filter(|scene| scene.always).collect();
    }
    if choice == "all" {
        return SCENES.iter().collect();
    }
    let known = || SCENES.iter().map(|scene| scene.name).collect::<Vec<_>>().join(", ");
    let find = |name: &str| SCENES.iter().find(|scene| scene.name == name);
    choice
        .split(',')
        .map(|name| find(name).unwrap_or_else(|| panic!("no scene {name}; there are {}", known())))
        .collect()
}

fn container_killed(cast: &Cast<'_>) {
    cast.stage.kill_container(&cast.stage.active(), "mysql");
}

fn pod_deleted(cast: &Cast<'_>) {
    cast.stage.delete_pod(&cast.stage.active());
}

/// The object goes, the processes live on where nobody reaches them.
fn forced_while_cut_off(cast: &Cast<'_>) {
    let before = cast.stage.active();
    let cut = cast.stage.cluster.isolate(&before).unwrap();
    cast.stage.force_delete_pod(&before);
    cast.stage.wait_for_another(&before, HEALS_WITHIN);
    cast.load.wait_for_writes("elsewhere");
    cut.heal().unwrap();
}

/// The node comes back when somebody else writes.
fn power_cut(cast: &Cast<'_>) {
    let before = cast.stage.active();
    let off = cast.stage.cluster.power_cut(&before).unwrap();
    cast.stage.wait_for_another(&before, HEALS_WITHIN);
    off.boot().unwrap();
}

fn frozen(cast: &Cast<'_>) {
    let before = cast.stage.active();
    let frozen = cast.stage.cluster.freeze(&before).unwrap();
    cast.stage.wait_for_another(&before, HEALS_WITHIN);
    cast.load.wait_for_writes("elsewhere");
    frozen.thaw().unwrap();
}

fn isolated(cast: &Cast<'_>) {
    let before = cast.stage.active();
    let cut = cast.stage.cluster.isolate(&before).unwrap();
    cast.stage.wait_for_another(&before, HEALS_WITHIN);
    cut.heal().unwrap();
}

fn replica_lost(cast: &Cast<'_>) {
    let before = cast.stage.active();
    let off = cast.stage.cluster.power_cut(cast.stage.other_candidate(&before)).unwrap();
    cast.stage.wait_for_condition("Degraded", "True");
    cast.load.wait_for_writes("without a replica");
    assert_eq!(cast.stage.active(), before, "nothing moves");
    off.boot().unwrap();
}

fn one_by_one(cast: &Cast<'_>) {
    for site in SITES {
        cast.stage.delete_pod(site);
        cast.load.wait_for_writes(site);
        cast.stage.wait_until_whole(site, HEALS_WITHIN);
    }
}

fn all_at_once(cast: &Cast<'_>) {
    cast.stage.delete_all_pods();
}

fn operator_killed_idle(cast: &Cast<'_>) {
    let (before, epoch) = (cast.stage.active(), cast.seen.epoch());
    cast.stage.kill_operator();
    cast.load.wait_for_writes("without an operator");
    cast.stage.wait_until_whole("the operator is back", HEALS_WITHIN);
    assert_eq!((cast.stage.active(), cast.seen.epoch()), (before, epoch), "nothing moves");
}

/// As soon as authority is taken back and nobody has it yet.
fn operator_killed_in_move(cast: &Cast<'_>) {
    let before = cast.stage.active();
    let epoch = cast.seen.epoch();
    let cut = cast.stage.cluster.isolate(&before).unwrap();
    cast.seen.wait_for_revoking_above(epoch);
    cast.stage.kill_operator();
    cast.stage.wait_for_another(&before, HEALS_WITHIN);
    cut.heal().unwrap();
}

fn planned(cast: &Cast<'_>) {
    let before = cast.stage.active();
    cast.stage.ask_for(cast.stage.other_candidate(&before));
    cast.stage.wait_for_another(&before, HEALS_WITHIN);
    assert_eq!(cast.stage.planned_phase().as_deref(), Some("Succeeded"));
}

fn api_away(cast: &Cast<'_>) {
    let (before, epoch) = (cast.stage.active(), cast.seen.epoch());
    let away = cast.stage.cluster.stop_api().unwrap();
    cast.load.wait_for_more(TWO_MINUTES_OF_WRITES, "without an API server");
    drop(away);
    cast.stage.cluster.wait_for_answers(HEALS_WITHIN).unwrap();
    cast.stage.wait_until_whole("the API server is back", HEALS_WITHIN);
    assert_eq!((cast.stage.active(), cast.seen.epoch()), (before, epoch), "nothing moves");
}

/// What the first leader had in mind when it stood still must not happen any more.
fn stale_leader(cast: &Cast<'_>) {
    let stage = cast.stage;
    stage.scale_operator(2);
    let first = stage.leader().expect("a leader");
    let of = Container { namespace: OPERATORS, pod: &first, container: "bloodraven" };
    let stands = stage.cluster.pause(of).unwrap();
    stage.wait_for_another_leader(&first);
    let before = stage.active();
    stage.ask_for(stage.other_candidate(&before));
    stage.wait_for_another(&before, HEALS_WITHIN);
    let (now, epoch) = (stage.active(), cast.seen.epoch());
    drop(stands);
    cast.load.wait_for_more(200, "with the first leader awake again");
    stage.wait_until_whole("two operators", HEALS_WITHIN);
    assert_eq!(stage.active(), now, "the first leader changed nothing");
    assert!(cast.seen.epoch() >= epoch, "nothing went back");
    stage.scale_operator(1);
}

fn labels_denied(cast: &Cast<'_>) {
    denied(cast, "pods", &["patch", "update"], |stage, to| {
        let wanted: Vec<bool> = SITES.iter().map(|site| *site == to).collect();
        let is = |site: &&str| stage.role(site).as_deref() == Some("primary");
        SITES.iter().map(is).collect::<Vec<_>>() == wanted
    });
}

fn dns_denied(cast: &Cast<'_>) {
    denied(cast, "dnsendpoints", &["*"], |stage, to| stage.dns_target() == stage.address_of(to));
}

fn taints_denied(cast: &Cast<'_>) {
    cast.stage.offer_nodes_for_taints();
    denied(cast, "nodes", &["patch", "update"], |stage, to| {
        stage.is_tainted(stage.other_candidate(to)) && !stage.is_tainted(to)
    });
}

/// A move that is whole but for one thing that cannot be written; and then it can.
fn denied(cast: &Cast<'_>, resource: &str, verbs: &[&str], shown: fn(&Stage, &str) -> bool) {
    let stage = cast.stage;
    let before = stage.active();
    let to = stage.other_candidate(&before);
    let operator = format!("system:serviceaccount:{OPERATORS}:bloodraven");
    let denied = stage.cluster.deny(Denial::new(&operator, verbs, resource).unwrap()).unwrap();
    stage.ask_for(to);
    stage.wait_for_another(&before, HEALS_WITHIN);
    let moved = cast.seen.moves();
    assert!(!shown(stage, to), "{resource} were written although they cannot be");
    denied.allow().unwrap();
    stage.wait_until(&format!("{resource} follow when they can be written"), || shown(stage, to).then_some(()));
    assert_eq!((stage.active().as_str(), cast.seen.moves()), (to, moved), "no second failover");
}
