//! A leader among obedient sites: what it does when something goes wrong, and in which order.

mod copies;
mod faults;
mod moves;
mod traces;

use super::forecast::Rehearsal;
use super::input::{Estate, Facts, Input, PodFacts, SemiSync};
use super::kept::Kept;
use super::spec::{Durability, PlannedSpec, SiteSpec, Spec, UpdateStrategy};
use super::{Group, Notice};
use crate::authority::Policy;
use crate::candidate::Data;
use crate::group::forecast::Actor;
use crate::name::Site;
use crate::record::Settings;
use crate::site::{Pair, Role, Thresholds};
use crate::time::{Boot, Millis, Now, Wall};
use bloodraven_gtid::{GtidSet, Uuid};
use std::collections::BTreeMap;

pub(super) const START: Now = Now { boot: Boot(1_000_000), wall: Wall(1_800_000_000_000) };

/// `iad`, `pdx`, `fra`…; a name with `:dr` is never promoted.
pub(super) fn spec(sites: &[&str]) -> Spec {
    let site = |name: &&str| match name.strip_suffix(":dr") {
        Some(name) => SiteSpec { site: Site::new(name), role: Role::DrOnly },
        None => SiteSpec { site: Site::new(name), role: Role::PrimaryCandidate },
    };
    Spec {
        name: "orders".to_owned(),
        sites: sites.iter().map(site).collect(),
        poll_interval: Millis(2000),
        thresholds: Thresholds { failure: 3, recovery: 2 },
        cooldown: Millis::from_secs(300),
        proof: Policy::Required,
        lease: Settings { lease_timeout: Millis::from_secs(20), min_peers: 1 },
        peer_check: Millis(5000),
        priorities: Vec::new(),
        max_lag: Millis::from_secs(300),
        durability: Durability::Async,
        planned: PlannedSpec {
            max_lag_wait: Millis::from_secs(300),
            drain_timeout: Millis::from_secs(30),
            defer: false,
        },
        cache: None,
        update: UpdateStrategy::Ordered,
        clone_timeout: Millis::from_secs(3600),
        replication_account: true,
        paused: None,
    }
}

pub(super) fn uuid(number: u8) -> Uuid {
    Uuid::from_bytes([number; 16])
}

/// A set such as `1:1-9` (server number, interval), several with commas.
pub(super) fn set(text: &str) -> GtidSet {
    let part = |part: &str| {
        let (server, interval) = part.split_once(':').expect("server:interval");
        format!("{}:{interval}", uuid(server.parse().expect("a number")))
    };
    let text: Vec<String> = text.split(',').filter(|part| !part.is_empty()).map(part).collect();
    text.join(",").parse().expect("a set")
}

pub(super) fn facts(number: u8, executed: &str) -> Facts {
    Facts {
        pair: Pair::CLOSED,
        server_uuid: uuid(number),
        data: Some(Data { executed: set(executed), ..Data::default() }),
        replica: None,
        user_data: !executed.is_empty(),
        semi_sync: SemiSync::default(),
    }
}

/// A new group of empty sites, its leader just elected.
pub(super) fn fresh(spec: Spec) -> Rehearsal {
    let mut actors = BTreeMap::new();
    for (number, site) in (1..).zip(&spec.sites) {
        actors.insert(site.site.clone(), Actor::new(&site.site, facts(number, ""), START.boot));
    }
    let estate = estate(&spec);
    let mut stage = Rehearsal::new(Group::new(spec, START.boot), START, Kept::default(), actors);
    stage.tell(Input::Estate(Box::new(estate)));
    stage
}

pub(super) fn estate(spec: &Spec) -> Estate {
    let pod = |site: &Site| PodFacts {
        site: site.clone(),
        uid: format!("pod-{site}").into(),
        started: true,
        all_terminated: false,
        deleting: false,
        finished: false,
        collected: false,
        node_vouches: true,
        finalizer: true,
    };
    Estate { pods: spec.names().iter().map(pod).collect(), own_volumes: spec.names(), rollouts: BTreeMap::new() }
}

/// The same group once it is up: the first site writes, it has transactions, the others follow it.
pub(super) fn running(sites: &[&str]) -> Rehearsal {
    let mut stage = fresh(spec(sites));
    assert!(stage.play(Millis::from_secs(60), |stage| stage.writer().is_some()), "{:?}", stage.group.obstacle);
    let primary = stage.writer().expect("a writer");
    write(&mut stage, "1:1-10");
    follow_all(&mut stage, &primary);
    // Past the cooldown and past the first voter changes.
    stage.play(Millis::from_secs(60), |_| false);
    stage
}

/// The primary executes these.
pub(super) fn write(stage: &mut Rehearsal, transactions: &str) {
    let primary = stage.writer().expect("a writer");
    let actor = stage.actors.get_mut(&primary).expect("its actor");
    actor.facts.user_data = true;
    if let Some(data) = &mut actor.facts.data {
        data.executed = data.executed.union(&set(transactions));
    }
}

/// Every other site follows that one and has all it has.
pub(super) fn follow_all(stage: &mut Rehearsal, primary: &Site) {
    let executed = stage.actors[primary].executed();
    for (site, actor) in &mut stage.actors {
        if site != primary {
            actor.follow_and_hold(primary, &executed);
        }
    }
}

/// The names of what was told, in order, each once in a row.
pub(super) fn told(stage: &Rehearsal) -> Vec<String> {
    let name = |notice: &Notice| format!("{notice:?}").split([' ', '(', '{']).next().unwrap_or_default().to_owned();
    let mut names: Vec<String> = stage.told.iter().map(|(_, notice)| name(notice)).collect();
    names.dedup();
    names
}
