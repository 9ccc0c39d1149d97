//! The world as an operator finds it.

use std::collections::BTreeMap;
use std::sync::Arc;

use bloodraven_api::keys;
use bloodraven_brain::lease::{Acquired, NewLease};
use bloodraven_brain::time::{Millis, Wall};
use bloodraven_operator::world::EventKind;
use serde_json::json;

use super::*;
use crate::store::pods::PodFile;
use crate::testing::{Folder, store, within};

struct Rig {
    store: Store,
    network: Network,
    world: LocalWorld,
    other: LocalWorld,
    group: GroupId,
    _folder: Folder,
}

fn rig() -> Rig {
    let folder = Folder::new();
    let (store, network) = store(&folder);
    let world = |number| LocalWorld::new(store.clone(), network.clone(), number).unwrap();
    Rig { world: world(0), other: world(1), group: GroupId::new("local", "local"), network, store, _folder: folder }
}

impl Rig {
    fn wanted(&self) -> MysqlFailoverGroup {
        bloodraven_blueprint::spec::object(self.store.read_group().unwrap().value).unwrap()
    }
}

fn sites() -> Vec<Site> {
    ["iad", "pdx", "fra"].map(Site::new).into()
}

fn lease(holder: &str) -> NewLease {
    NewLease {
        holder: Some(holder.into()),
        duration: Millis::from_secs(15),
        acquired: Acquired::At(Wall(0)),
        renewed: Wall(1),
        transitions: 0,
    }
}

fn version(object: &Value) -> Version {
    Version(object.pointer("/metadata/resourceVersion").unwrap().as_str().unwrap().into())
}

#[tokio::test]
async fn of_two_operators_one_gets_the_lease() {
    let rig = rig();
    let (one, other) = tokio::join!(async { rig.world.create_lease(&lease("a")).await }, async {
        rig.other.create_lease(&lease("b")).await
    });
    assert!(one.is_ok() != other.is_ok(), "{one:?} {other:?}");
    assert_eq!(one.as_ref().err().or(other.as_ref().err()), Some(&Refused::Conflict));
    let found = rig.other.read_lease().await.unwrap().unwrap();
    let renewed = rig.world.update_lease(&found.version, &lease("a")).await.unwrap();
    assert_eq!(rig.other.update_lease(&found.version, &lease("b")).await, Err(Refused::Conflict));
    assert_eq!(rig.other.read_lease().await.unwrap(), Some(renewed));
}

#[tokio::test]
async fn a_write_is_done_at_its_version_or_not_at_all() {
    let rig = rig();
    let read = || async { rig.world.read(&rig.group).await.unwrap().unwrap() };
    let first = version(&read().await);
    let record: BTreeMap<String, Option<String>> = [(keys::AUTHORITY.to_owned(), Some("{}".to_owned()))].into();
    let second = rig.world.save_annotations(&rig.group, &first, &record).await.unwrap();
    assert_ne!(first, second);
    assert_eq!(rig.other.save_annotations(&rig.group, &first, &record).await, Err(Refused::Conflict));
    let status = json!({ "activeSite": "iad" });
    assert_eq!(rig.other.save_status(&rig.group, &first, &status).await, Err(Refused::Conflict));
    let third = rig.other.save_status(&rig.group, &second, &status).await.unwrap();
    let object = read().await;
    assert_eq!((version(&object), &object["status"]), (third.clone(), &status));
    assert_eq!(object["metadata"]["generation"], 1);
    let gone: BTreeMap<String, Option<String>> = [(keys::AUTHORITY.to_owned(), None)].into();
    rig.world.save_annotations(&rig.group, &third, &gone).await.unwrap();
    assert!(read().await["metadata"]["annotations"].as_object().unwrap().is_empty());
    let strange = Version("x".into());
    assert_eq!(rig.world.save_status(&rig.group, &strange, &status).await, Err(Refused::Conflict));
}

#[tokio::test]
async fn a_request_is_removed_only_if_it_still_reads_so() {
    let rig = rig();
    let ask = |text: &str| {
        rig.store.annotate(None, &[(keys::PLANNED_FAILOVER.to_owned(), Some(text.to_owned()))]).unwrap();
    };
    let asked = || async {
        let object = rig.world.read(&rig.group).await.unwrap().unwrap();
        object["metadata"]["annotations"].get(keys::PLANNED_FAILOVER).cloned()
    };
    let mut news = rig.world.changes();
    ask("pdx");
    within("the request", news.changed()).await.unwrap();
    ask("pdx:id=2");
    rig.world.remove_request(&rig.group, keys::PLANNED_FAILOVER, "pdx").await.unwrap();
    assert_eq!(asked().await, Some(json!("pdx:id=2")), "a newer request stays");
    rig.world.remove_request(&rig.group, keys::PLANNED_FAILOVER, "pdx:id=2").await.unwrap();
    rig.world.remove_request(&rig.group, keys::PLANNED_FAILOVER, "pdx:id=2").await.unwrap();
    assert_eq!(asked().await, None);
}

#[tokio::test]
async fn what_cannot_be_read_is_unavailable_and_never_absent() {
    let rig = rig();
    std::fs::write(rig.store.dir().join("group.json"), "{").unwrap();
    let error = rig.world.read(&rig.group).await.unwrap_err();
    assert!(error.because.contains("corrupt"), "{error}");
    assert!(rig.world.groups().await.is_err() && rig.world.estate(&rig.group, &sites()).await.is_err());
    let refused = rig.world.save_status(&rig.group, &Version("1".into()), &json!({})).await;
    assert!(matches!(refused, Err(Refused::Denied { .. })), "{refused:?}");
    std::fs::remove_file(rig.store.dir().join("group.json")).unwrap();
    assert!(
        rig.world.read(&rig.group).await.is_err(),
        "a group that vanished is an error, not a group that was deleted"
    );
}

#[tokio::test]
async fn another_group_is_not_there() {
    let rig = rig();
    let other = GroupId::new("local", "other");
    assert_eq!(rig.world.read(&other).await.unwrap(), None);
    assert_eq!(rig.world.save_status(&other, &Version("1".into()), &json!({})).await, Err(Refused::Conflict));
    assert!(rig.world.estate(&other, &sites()).await.is_err());
}

#[tokio::test]
async fn the_estate_is_what_the_supervisor_wrote() {
    let rig = rig();
    let object = rig.store.read_group().unwrap();
    let pod = |site: &str, uid: &str, ended: bool, conf: &str| PodFile {
        site: site.into(),
        uid: uid.into(),
        started: true,
        keeper_pid: (!ended).then_some(1),
        sidecar_pid: (!ended).then_some(2),
        deleting: ended,
        ended,
        conf: conf.into(),
    };
    let conf = conf_digest(&object);
    for pod in [pod("iad", "a", true, &conf), pod("iad", "b", false, &conf), pod("pdx", "c", false, "other")] {
        rig.store.write_pod(&pod).unwrap();
    }
    let claim = |site: &str, by: &str| {
        std::fs::create_dir_all(rig.store.site(site)).unwrap();
        std::fs::write(rig.store.site(site).join(CLAIM), by).unwrap();
    };
    claim("iad", object.uid());
    claim("pdx", "somebody else");
    let estate = rig.world.estate(&rig.group, &sites()).await.unwrap();
    let pods: Vec<(&str, bool)> = estate.pods.iter().map(|pod| (&*pod.uid, pod.has_ended())).collect();
    assert_eq!(pods, [("a", true), ("b", false), ("c", false)]);
    assert_eq!(estate.own_volumes, [Site::new("iad"), Site::new("fra")]);
    let rollouts: Vec<Rollout> = sites().iter().map(|site| estate.rollouts[site]).collect();
    assert_eq!(rollouts, [Rollout::Current, Rollout::Drifted, Rollout::InProgress]);
    rig.world.release_pod(&rig.group, "a").await.unwrap();
    rig.world.release_pod(&rig.group, "a").await.unwrap();
    assert_eq!(rig.world.estate(&rig.group, &sites()).await.unwrap().pods.len(), 2);
    rig.world.roll(&rig.group, &rig.wanted(), &Site::new("pdx")).await.unwrap();
    assert_eq!(rig.store.rolls().unwrap(), [("pdx".to_owned(), "c".to_owned())]);
}

#[tokio::test]
async fn everyone_is_reached_through_a_link_of_ones_own() {
    let rig = rig();
    let of = |world: &LocalWorld| {
        let group = rig.group.clone();
        let all = sites();
        let found = world.addresses(&group, &all);
        futures_util::FutureExt::now_or_never(found).unwrap().unwrap()
    };
    let (mine, theirs) = (of(&rig.world), of(&rig.other));
    for site in sites() {
        assert_ne!(mine[&site].admin, theirs[&site].admin);
        assert_ne!(mine[&site].sidecar, theirs[&site].sidecar);
        assert_eq!(mine[&site].peers, theirs[&site].peers, "a replica's source is nobody's view");
        assert_eq!(mine[&site].peers.len(), 2);
        let real = rig.network.address(&End::Site(site.to_string()), Service::Admin).unwrap();
        assert_ne!(mine[&site].admin.to_string(), real.to_string());
    }
    let identity = identity(1, "some-uid");
    let address = rig.world.operator_address(&identity).await.unwrap();
    assert_eq!(Some(address), rig.network.advertised_address(1).map(|it| it.to_string()));
    for strange in ["", "operator", "operator-9_x", "operator-x_y", "mysql-1_x"] {
        assert_eq!(rig.world.operator_address(strange).await, None, "{strange}");
    }
}

#[tokio::test]
async fn secrets_are_whole_or_the_missing_part_is_named() {
    let rig = rig();
    let secrets = rig.world.secrets(&rig.group, &rig.wanted()).await.unwrap();
    assert_eq!(secrets.operator.user, "bloodraven");
    assert_eq!(secrets.replication.unwrap().user, "replication");
    let others: Vec<&str> = secrets.others.values().map(|account| account.user.as_str()).collect();
    assert_eq!((others, secrets.tls), (vec!["app", "readonly", "monitor", "backup"], None));
    std::fs::write(rig.store.key_file(), b"short").unwrap();
    let error = rig.world.secrets(&rig.group, &rig.wanted()).await.unwrap_err().to_string();
    assert!(error.contains("hmac.key") && error.contains("32 bytes"), "{error}");
    std::fs::remove_file(rig.store.secrets().join("replication/password")).unwrap();
    let error = rig.world.secrets(&rig.group, &rig.wanted()).await.unwrap_err().to_string();
    assert!(error.contains("replication/password"), "{error}");
}

#[tokio::test]
async fn what_is_told_and_shown_is_in_the_directory() {
    let rig = rig();
    let event = Event { kind: EventKind::Warning, reason: "Why".into(), message: "because".into(), at: Wall(0) };
    rig.world.record_event(&rig.group, &event).await.unwrap();
    let found = rig.store.events(10).unwrap();
    assert_eq!((found[0].kind.as_str(), found[0].reason.as_str(), found.len()), ("Warning", "Why", 1));
    let shown = rig.world.show(&rig.group, &rig.wanted(), &Outward { epoch: 3, ..Outward::default() }).await.unwrap();
    assert!(shown.labels && shown.dns.is_ok() && shown.taints.is_ok());
    assert_eq!(rig.store.shown().unwrap().epoch, 3);
    assert!(rig.world.show(&rig.group, &rig.wanted(), &Outward { epoch: 2, ..Outward::default() }).await.is_err());
    let glimpse = rig.world.groups().await.unwrap().remove(0);
    assert_eq!((glimpse.id, Arc::strong_count(&glimpse.object)), (rig.group.clone(), 1));
    let now = rig.world.now();
    assert!(now.boot.0 > 0 && now.wall.0 > 1_600_000_000_000);
}
