//! What a leader has seen is shown, what it has not seen is absent, and what it keeps is left alone.
//!
//! In: a leader that was told something. Out: fields of status.

use std::collections::BTreeMap;

use bloodraven_api::MysqlFailoverGroupStatus;
use bloodraven_api::group::SiteRole;
use bloodraven_api::group::status::{DragonflyRole, DragonflyStatus, SiteState, SiteStatus};
use bloodraven_blueprint::report::{Beside, show};
use bloodraven_blueprint::spec;
use bloodraven_brain::candidate::Data;
use bloodraven_brain::candidate::drain::{Applier, Receiver};
use bloodraven_brain::group::Group;
use bloodraven_brain::group::input::{CacheFacts, CacheRole, Facts, Input, ReplicaFacts, Saw, SemiSync, Word};
use bloodraven_brain::message::{Ack, FencedBy, StartId};
use bloodraven_brain::name::{Instance, Member, Site};
use bloodraven_brain::site::Pair;
use bloodraven_brain::time::{Boot, Millis, Now, Wall};
use serde_json::json;

const UUID: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
/// 2026-04-20T14:32:00.500Z.
const START: i64 = 1_776_695_520_500;

fn at(seconds: u64) -> Now {
    let later = i64::try_from(seconds).expect("small") * 1000;
    Now { boot: Boot(100_000 + seconds * 1000), wall: Wall(START + later) }
}

fn leader() -> Group {
    let site = |name: &str, role: &str| {
        json!({"name": name, "role": role, "zone": "z", "taintNodeSelector": {"a": "b"}, "lbIP": "10.0.0.1",
               "storage": {"storageClassName": "x", "size": "1Gi"}})
    };
    let object = spec::object(json!({
        "apiVersion": "shipstream.io/v1alpha1", "kind": "MysqlFailoverGroup", "metadata": {"name": "orders"},
        "spec": {"sites": [site("iad", ""), site("pdx", ""), site("fra", "dr-only")], "secretName": "s",
                 "dns": {"hostname": "db.example.com"}, "dragonfly": {"enabled": true, "image": "df:v1.38.0"}},
    }));
    let spec = spec::group(&object.expect("an object"), None, at(0).wall, true).expect("a spec");
    let mut group = Group::new(spec.clone(), at(0).boot);
    group.step(at(0), Input::Spec(Box::new(spec)));
    group
}

fn poll(group: &mut Group, now: Now, site: &str) {
    let facts = Facts {
        pair: Pair::CLOSED,
        server_uuid: UUID.parse().expect("a UUID"),
        data: Some(Data { executed: format!("{UUID}:1-5").parse().expect("a set"), ..Data::default() }),
        replica: Some(ReplicaFacts {
            source: Some(Site::new("iad")),
            receiver: Receiver::Running,
            receiver_error: None,
            applier: Applier::Running,
            delayed: false,
            behind: Some(Millis(7900)),
        }),
        user_data: true,
        semi_sync: SemiSync::default(),
    };
    group.step(now, Input::Polled { site: Site::new(site), began_under: 0, saw: Saw::Facts(Box::new(facts)) });
}

fn hear(group: &mut Group, now: Now, site: &str, via: Option<&str>) {
    let ack = Ack {
        from: Member::new(&Site::new(site), &Instance::new("u1", "s1")),
        epoch: Some(4),
        fenced: true,
        gtid: None,
        fenced_by: Some(FencedBy::Lease),
        opened_by_hand: false,
        conflict: false,
        mysqld: Some(StartId(1)),
        last_vouch: BTreeMap::new(),
        last_answer: BTreeMap::new(),
        uptime: Millis(5000),
    };
    let word = Word { ack, lay: Millis(0), via: via.map(Site::new), question: None };
    group.step(now, Input::Heard(Box::new(word)));
}

fn shown(
    group: &Group,
    now: Now,
    beside: &BTreeMap<Site, Beside>,
    before: MysqlFailoverGroupStatus,
) -> MysqlFailoverGroupStatus {
    let mut status = before;
    show(group, now, 7, beside, &mut status);
    status
}

/// K-05: unknown is published as unknown.
#[test]
fn what_was_not_seen_is_absent() {
    let status = shown(&leader(), at(0), &BTreeMap::new(), MysqlFailoverGroupStatus::default());
    assert_eq!(status.observed_generation, Some(7));
    let names: Vec<_> = status.sites.iter().map(|site| (site.name.as_str(), site.role)).collect();
    let candidate = Some(SiteRole::PrimaryCandidate);
    assert_eq!(names, [("iad", candidate), ("pdx", candidate), ("fra", Some(SiteRole::DrOnly))]);
    for site in &status.sites {
        let expect = SiteStatus {
            name: site.name.clone(),
            role: site.role,
            sidecar: site.sidecar.clone(),
            ..SiteStatus::default()
        };
        assert_eq!(*site, expect);
        assert!(site.sidecar.as_ref().is_some_and(|sidecar| !sidecar.reachable && sidecar.fenced.is_none()));
    }
}

#[test]
fn what_was_seen_is_shown() {
    let mut group = leader();
    poll(&mut group, at(3), "pdx");
    hear(&mut group, at(4), "pdx", Some("iad"));
    let pair = Pair { read_only: false, super_read_only: true };
    let told = Beside {
        server_id: Some(17),
        version: Some("1.0".to_owned()),
        pair: Some(pair),
        lease_remaining: Some(Millis(1500)),
        volume: None,
    };
    let beside = BTreeMap::from([(Site::new("pdx"), told)]);
    let status = shown(&group, at(5), &beside, MysqlFailoverGroupStatus::default());
    let site = serde_json::to_value(&status.sites[1]).expect("JSON");
    let expect = json!({
        "name": "pdx", "role": "primary-candidate", "state": "read-only", "lastSeen": "2026-04-20T14:32:03Z",
        "gtidExecuted": format!("{UUID}:1-5"), "replicating": false, "secondsBehindSource": 7,
        "sourceHost": "mysql-orders-iad-internal", "recoveryState": "", "readOnlyTaint": false,
        "instance": "u1/s1", "serverId": 17, "serverUuid": UUID,
        "sidecar": {"reachable": true, "version": "1.0", "instance": "u1/s1", "epoch": 4, "readOnly": false,
                    "superReadOnly": true, "fenced": true, "fencedBy": "Lease", "mysqld": "running",
                    "leaseRemainingMs": 1500, "via": "iad"},
    });
    assert_eq!(site, expect);
}

/// K-05: a field of before does not stay when its source is silent.
#[test]
fn a_silent_sidecar_is_not_reachable() {
    let mut group = leader();
    hear(&mut group, at(1), "pdx", None);
    for (now, reachable) in [(at(2), true), (at(20), true), (at(21), false)] {
        let status = shown(&group, now, &BTreeMap::new(), MysqlFailoverGroupStatus::default());
        let sidecar = status.sites[1].sidecar.as_ref().expect("a sidecar");
        assert_eq!(sidecar.reachable, reachable, "{now:?}");
        assert_eq!(
            (sidecar.read_only, sidecar.super_read_only),
            (reachable.then_some(true), reachable.then_some(true))
        );
    }
}

#[test]
fn what_is_kept_is_left_alone() {
    let raw = json!({
        "activeSite": "iad", "conditions": [],
        "sites": [
            {"name": "old", "state": "writable", "readOnlyTaint": true},
            {"name": "pdx", "state": "writable", "recoveryState": "RecoveryBlocked", "divergentGtid": "x"},
        ],
    });
    let before: MysqlFailoverGroupStatus = serde_json::from_value(raw).expect("a status");
    // What is stored is not known yet, so a site that is not declared any more stays, too.
    let status = shown(&leader(), at(0), &BTreeMap::new(), before);
    assert_eq!(status.active_site, "iad");
    let names: Vec<_> = status.sites.iter().map(|site| site.name.as_str()).collect();
    assert_eq!(names, ["iad", "pdx", "fra", "old"]);
    assert_eq!(status.sites[1].divergent_gtid.as_deref(), Some("x"));
    assert_eq!(status.sites[1].state, SiteState::Unknown);
    let old = SiteStatus { name: "old".to_owned(), read_only_taint: true, ..SiteStatus::default() };
    assert_eq!(status.sites[3], old);
}

#[test]
fn caches_are_shown_by_what_they_say() {
    let facts = |role| CacheFacts { role, keys: 1, image: "df:v1.38.0".to_owned(), loading: false, takeover: true };
    let replica =
        CacheRole::Replica { master: Some(Site::new("iad")), link_up: true, syncing: false, heard: true, offset: 9 };
    for (said, active, role, ready) in [
        (Some(facts(CacheRole::Master { offset: 1, replicas: 1 })), "pdx", DragonflyRole::Master, true),
        (Some(facts(CacheRole::Master { offset: 1, replicas: 1 })), "iad", DragonflyRole::StaleMaster, false),
        (Some(facts(replica.clone())), "iad", DragonflyRole::Replica, true),
        (Some(facts(replica)), "fra", DragonflyRole::Replica, false),
        (None, "iad", DragonflyRole::Unreachable, false),
    ] {
        let mut group = leader();
        group.step(at(1), Input::CachePolled { site: Site::new("pdx"), facts: said });
        let dragonfly = DragonflyStatus { active_site: active.to_owned(), ..DragonflyStatus::default() };
        let before = MysqlFailoverGroupStatus { dragonfly: Some(dragonfly), ..MysqlFailoverGroupStatus::default() };
        let cache = shown(&group, at(1), &BTreeMap::new(), before).dragonfly.expect("a cache");
        assert!(cache.enabled && cache.sites.len() == 3);
        assert_eq!((cache.sites[1].role, cache.sites[1].ready), (role, ready));
        assert_eq!((cache.sites[0].role, cache.sites[0].reachable), (DragonflyRole::Unknown, false));
    }
}
