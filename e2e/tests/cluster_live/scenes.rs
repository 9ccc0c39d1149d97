//! What happens to clusters, scene by scene.
//!
//! In: a stage with a whole group, and clients that write all the time. Out: a fault that was there, was felt and is gone,
//! and the group as far as the scene waits for it; whoever plays it waits until everything is whole again. Must not: leave a
//! fault behind: each is a guard.
//!
//! `wounds` are the scenes of servers, pods and nodes, `leaders` those of the operator and the API server, `moves` those of
//! what is shown of a move, `losses` those in which nobody can write, `sites` those of sites that come and go, `tls` those of
//! groups with TLS.

use std::time::Duration;

use super::eyes::Eyes;
use super::ground::Ground;
use super::load::Load;
use super::seen::Seen;
use super::stage::Stage;
use super::{leaders, losses, moves, sites, tls, wounds};

/// From a fault to a group that is whole again: a node that was off boots, its pod catches up.
pub(crate) const HEALS_WITHIN: Duration = Duration::from_mins(6);

/// Chooses what is played: `all`, or names with commas; what every run of the tests plays without it.
const CHOICE: &str = "BLOODRAVEN_SCENES";

/// Has the group applied so often, each time on empty volumes, instead of any scene.
const APPLIES: &str = "BLOODRAVEN_APPLIES";

/// Has the operator killed so often in the middle of a move.
const KILLS: &str = "BLOODRAVEN_KILLS";

/// What a scene has to do with.
pub(crate) struct Cast<'a> {
    pub(crate) stage: &'a Stage,
    pub(crate) seen: &'a Seen,
    pub(crate) load: &'a Load,
    pub(crate) eyes: &'a Eyes,
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

const SCENES: [Scene; 29] = [
    scene("container", "the primary's container is killed", true, wounds::container_killed),
    scene("sidecar", "the primary's sidecar is killed: nothing else happens", false, wounds::sidecar_killed),
    scene(
        "sidecar-cut-off",
        "the primary's sidecar is killed while its node is cut off: the lease is not longer for it",
        false,
        wounds::sidecar_killed_while_cut_off,
    ),
    scene("pod", "the primary's pod is deleted", true, wounds::pod_deleted),
    scene(
        "forced",
        "the primary's pod is deleted by force while its node is cut off",
        false,
        wounds::forced_while_cut_off,
    ),
    scene("power", "the primary's node loses power", true, wounds::power_cut),
    scene("frozen", "the primary's node stands still, and goes on when another writes", false, wounds::frozen),
    scene("isolated", "the primary's node is cut off", false, wounds::isolated),
    scene("replica", "a replica's node loses power: nothing moves", false, wounds::replica_lost),
    scene("one-by-one", "every pod is replaced, one after the other", false, wounds::one_by_one),
    scene("all-at-once", "every pod is replaced at once", false, wounds::all_at_once),
    scene("total-loss", "every site is down, the operator is not: nothing is done", false, losses::every_site),
    scene("no-candidate", "every site that may write is down: the other stays closed", false, losses::candidates),
    scene("site", "a site that only follows comes, and goes", false, sites::comes_and_goes),
    scene("operator", "the operator is killed while everything is well: nothing moves", false, leaders::killed_idle),
    scene("operator-in-move", "the operator is killed in the middle of a failover", true, leaders::killed_in_move),
    scene("everybody", "the operator and every pod are replaced at once", false, leaders::killed_with_all_pods),
    scene("rollout", "the operator is rolled in good order: nothing moves", false, leaders::rolled),
    scene("stale-leader", "the leader stands still, another leads and moves, the first goes on", false, leaders::stale),
    scene("api", "the API server is away for two minutes: clients notice nothing", false, leaders::api_away),
    scene("tls", "groups with TLS: every line is encrypted, every server verified", false, tls::verified),
    scene("tls-other-names", "a certificate that covers other names: nobody is trusted", false, tls::not_covered),
    scene("planned", "an admin asks for a move", false, moves::planned),
    scene("update", "a setting of mysqld is changed: one move, one pod at a time", false, moves::update),
    scene(
        "mysqld",
        "the primary's mysqld stands still: the outside follows in order",
        false,
        moves::mysqld_stands_still,
    ),
    scene(
        "labels-denied",
        "labels cannot be written in a failover, and are when they can be",
        false,
        moves::labels_denied,
    ),
    scene(
        "status-denied",
        "status cannot be written in a failover, and is when it can be",
        false,
        moves::status_denied,
    ),
    scene(
        "dns-denied",
        "the DNS record cannot be written in a failover, and is when it can be",
        false,
        moves::dns_denied,
    ),
    scene(
        "taints-denied",
        "nodes cannot be tainted in a failover, and are when they can be",
        false,
        moves::taints_denied,
    ),
];

/// Those that need no machines of our own, and can be played in a cluster of somebody else.
const ANYWHERE: [&str; 8] =
    ["pod", "one-by-one", "all-at-once", "operator", "everybody", "rollout", "planned", "update"];

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
    let possible = |scene: &&Scene| Ground::is_own() || ANYWHERE.contains(&scene.name);
    if choice.is_empty() {
        return SCENES.iter().filter(|scene| scene.always).filter(possible).collect();
    }
    if choice == "all" {
        return SCENES.iter().filter(possible).collect();
    }
    let known = || SCENES.iter().map(|scene| scene.name).collect::<Vec<_>>().join(", ");
    let find = |name: &str| SCENES.iter().find(|scene| scene.name == name);
    let find = |name: &str| {
        let scene = find(name).unwrap_or_else(|| panic!("no scene {name}; there are {}", known()));
        assert!(possible(&scene), "{name} needs machines of our own; elsewhere there are {}", ANYWHERE.join(", "));
        scene
    };
    choice.split(',').map(find).collect()
}
