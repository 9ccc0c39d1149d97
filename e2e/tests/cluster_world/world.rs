//! What is written is there, what is stale is refused, what is denied is told, and what watches show is what stands.

use std::collections::BTreeMap;

use bloodraven_api::{MysqlFailoverGroup, keys};
use bloodraven_brain::group::Outward;
use bloodraven_brain::group::accounts::AccountRole;
use bloodraven_brain::group::command::Label;
use bloodraven_brain::group::input::{PodFacts, Rollout};
use bloodraven_brain::lease::{Acquired, NewLease};
use bloodraven_brain::name::{Instance, Member, Site};
use bloodraven_brain::time::{Millis, Wall};
use bloodraven_cluster::ClusterWorld;
use bloodraven_operator::world::{Event, EventKind, GroupId, Look, MissingSecret, Refused, Unfurnished, World};
use serde_json::{Value, json};

use super::stage::*;

#[tokio::test]
async fn a_lease_has_one_writer_at_a_time() {
    let (world, _) = stage("lease").await;
    assert_eq!(world.read_lease().await.unwrap(), None);
    let mut new = NewLease {
        holder: Some("a_1".into()),
        duration: Millis(15_000),
        acquired: Acquired::At(Wall(1_700_000_000_123)),
        renewed: Wall(1_700_000_000_123),
        transitions: 0,
    };
    let made = world.create_lease(&new).await.unwrap();
    assert_eq!(world.create_lease(&new).await, Err(Refused::Conflict), "it is there already");
    assert_eq!(world.read_lease().await.unwrap().as_ref(), Some(&made));
    new.acquired = Acquired::AsRead(made.acquired.clone());
    new.renewed = Wall(1_700_000_002_000);
    let renewed = world.update_lease(&made.version, &new).await.unwrap();
    assert_eq!((&renewed.acquired, renewed.duration), (&made.acquired, Some(Millis(15_000))));
    assert_eq!(world.update_lease(&made.version, &new).await, Err(Refused::Conflict), "that version is over");
    new.holder = None;
    assert_eq!(world.update_lease(&renewed.version, &new).await.unwrap().holder, None);
}

/// K-07: a status or a copy of the record is written only over the one that was read.
#[tokio::test]
async fn what_is_stored_in_a_group_is_bound_to_its_version() {
    let (world, group) = stage("store").await;
    let first = version(&world, &group).await;
    let note = |value: Option<&str>| BTreeMap::from([(keys::AUTHORITY.to_owned(), value.map(str::to_owned))]);
    let second = world.save_annotations(&group, &first, &note(Some("one"))).await.unwrap();
    assert_eq!(world.save_annotations(&group, &first, &note(Some("two"))).await, Err(Refused::Conflict));
    let status = json!({"activeSite": "iad", "lastFailoverTarget": "iad"});
    let third = world.save_status(&group, &second, &status).await.unwrap();
    assert_eq!(world.save_status(&group, &second, &json!({})).await, Err(Refused::Conflict));
    // the whole status is put in its place: what is not named is gone
    let fourth = world.save_status(&group, &third, &json!({"activeSite": "pdx"})).await.unwrap();
    let object = world.read(&group).await.unwrap().unwrap();
    assert_eq!(object["status"], json!({"activeSite": "pdx"}));
    assert_eq!(object["metadata"]["annotations"][keys::AUTHORITY], "one");
    assert_eq!(object["metadata"]["generation"], 1, "nobody's wish has changed");
    let bad = world.save_status(&group, &fourth, &json!({"activeSite": 7})).await;
    assert!(matches!(bad, Err(Refused::Denied { .. })), "{bad:?}");
    world.save_annotations(&group, &fourth, &note(None)).await.unwrap();
    let object = world.read(&group).await.unwrap().unwrap();
    assert_eq!(object["metadata"]["annotations"].get(keys::AUTHORITY), None);
    assert_eq!(world.read(&GroupId::new("store", "none")).await.unwrap(), None);
}

#[tokio::test]
async fn a_request_is_removed_only_if_it_reads_as_it_was_read() {
    let (world, group) = stage("request").await;
    let ask = |text: &str| {
        let words = ["annotate", "mfg", "-n", "request", "orders", "--overwrite"];
        let note = format!("{}={text}", keys::PLANNED_FAILOVER);
        assert!(server().kubectl().args(words).arg(note).output().unwrap().status.success());
    };
    let stands = async || {
        let object = world.read(&group).await.unwrap().unwrap();
        object["metadata"]["annotations"][keys::PLANNED_FAILOVER].as_str().map(str::to_owned)
    };
    world.remove_request(&group, keys::PLANNED_FAILOVER, "pdx").await.unwrap();
    ask("pdx:id=2");
    world.remove_request(&group, keys::PLANNED_FAILOVER, "pdx:id=1").await.unwrap();
    assert_eq!(stands().await.as_deref(), Some("pdx:id=2"), "a newer request stays");
    world.remove_request(&group, keys::PLANNED_FAILOVER, "pdx:id=2").await.unwrap();
    assert_eq!(stands().await, None);
    world.remove_request(&GroupId::new("request", "none"), keys::PLANNED_FAILOVER, "pdx").await.unwrap();
}

#[tokio::test]
async fn an_ended_pod_is_told_with_its_nodes_word_and_let_go() {
    let (world, group) = stage("estate").await;
    apply(server(), &pod("estate", "a", "iad", "estate-n1").to_string());
    let facts = async |wanted: fn(&PodFacts) -> bool| {
        until(&world, &group, async || {
            let estate = world.estate(&group, &sites()).await.ok()?;
            estate.pods.iter().find(|pod| wanted(pod)).cloned().map(|pod| (pod, estate.rollouts, estate.own_volumes))
        })
        .await
    };
    let (fresh, rollouts, own) = facts(|_| true).await;
    assert_eq!((fresh.site.as_str(), fresh.started, fresh.finalizer), ("iad", false, true));
    assert_eq!(rollouts.values().collect::<Vec<_>>(), [&Rollout::InProgress; 2]);
    assert_eq!(own, sites(), "no volume is made yet");
    let status = json!({"phase": "Succeeded", "initContainerStatuses": [terminated("sidecar")],
        "containerStatuses": [terminated("mysql")]});
    set_status("pod", "estate", "a", &status);
    let (ended, _, _) = facts(|pod| pod.all_terminated).await;
    assert!(ended.finished && ended.started && !ended.node_vouches, "nobody heard of its node since: {ended:?}");
    vouch("estate-n1", "2026-01-01T00:00:05.900000Z");
    assert!(!world.estate(&group, &sites()).await.unwrap().pods[0].node_vouches, "in the same second");
    vouch("estate-n1", "2026-01-01T00:00:06.100000Z");
    assert!(world.estate(&group, &sites()).await.unwrap().pods[0].node_vouches);

    let delete = ["delete", "pod", "-n", "estate", "a", "--wait=false", "--grace-period=0", "--force"];
    assert!(server().kubectl().args(delete).output().unwrap().status.success());
    let (going, _, _) = facts(|pod| pod.deleting).await;
    world.release_pod(&group, &going.uid).await.unwrap();
    until(&world, &group, async || world.estate(&group, &sites()).await.unwrap().pods.is_empty().then_some(())).await;
    world.release_pod(&group, &going.uid).await.unwrap();
}

/// K-02: the name is written on difference only.
/// K-10: a taint of somebody else's stays.
#[tokio::test]
async fn the_outside_follows_and_stays_untouched_when_it_is_as_wanted() {
    let (world, group) = stage("outward").await;
    let node = |name: &str, site: &str| {
        json!({"apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {"outward-site": site}},
        "spec": {"taints": [{"key": "other", "effect": "NoSchedule"}]}})
    };
    for object in [
        node("outward-n1", "iad"),
        node("outward-n2", "pdx"),
        pod("outward", "a", "iad", "outward-n1"),
        pod("outward", "b", "pdx", "outward-n2"),
    ] {
        apply(server(), &object.to_string());
    }
    let uid = until(&world, &group, async || {
        let pods = world.estate(&group, &sites()).await.ok()?.pods;
        pods.iter().find(|pod| pod.site.as_str() == "pdx" && pods.len() == 2).map(|pod| pod.uid.clone())
    })
    .await;
    let [iad, pdx] = sites();
    let wish = Outward {
        primary: Some(Member { site: pdx.clone(), instance: Instance::new(&uid, "store") }),
        labels: BTreeMap::from([(iad.clone(), Label { fenced: false, healthy: Some(true) })]),
        dns: Some(pdx.clone()),
        taints: Some(BTreeMap::from([(iad, true), (pdx, false)])),
        ..Outward::default()
    };
    // nodes are watched apart from pods: asked until they were seen, as the brain does
    let shown =
        until(&world, &group, async || world.show(&group, &wanted(&world, &group).await, &wish).await.ok()).await;
    assert_eq!((shown.labels, &shown.dns, &shown.taints), (true, &Ok(()), &Ok(())));
    let role = |name: &str| get("pod", "outward", name)["metadata"]["labels"][keys::LABEL_ROLE].clone();
    assert_eq!((role("a"), role("b")), (json!("replica"), json!("primary")));
    let record = get("dnsendpoint", "outward", "bloodraven-orders");
    assert_eq!(record["spec"]["endpoints"][0]["targets"], json!(["192.0.2.7"]));
    assert_eq!(record["metadata"]["ownerReferences"][0]["name"], "orders");
    let taints = |name: &str| {
        let node = get("node", "outward", name);
        let list = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
        list.iter().map(|taint| taint["key"].as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    let ours = keys::taint_key("orders");
    assert!(taints("outward-n1").contains(&ours) && taints("outward-n1").contains(&"other".to_owned()));
    assert!(!taints("outward-n2").contains(&ours));
    let versions = || {
        let each = [get("pod", "outward", "b"), get("dnsendpoint", "outward", "bloodraven-orders")];
        each.map(|object| object["metadata"]["resourceVersion"].clone())
    };
    let before = versions();
    world.show(&group, &wanted(&world, &group).await, &wish).await.unwrap();
    assert_eq!(versions(), before, "nothing is written that is so already");
}

#[tokio::test]
async fn secrets_are_read_and_what_is_missing_is_named() {
    let (world, group) = stage("secrets").await;
    let read = || {
        until(&world, &group, async || match world.secrets(&group, &wanted(&world, &group).await).await {
            Err(MissingSecret::Unread { .. }) => None,
            other => Some(other),
        })
    };
    assert_eq!(read().await.unwrap_err(), MissingSecret::NotFound { name: "creds".to_owned() });
    let secret = |name: &str, data: Value| {
        json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": name, "namespace": "secrets"}, "stringData": data})
    };
    apply(server(), &secret("creds", json!({"username": "ops"})).to_string());
    let said = read().await.unwrap_err().to_string();
    assert_eq!(said, "secret creds: key password is missing; add it");
    let data = json!({"username": "ops", "password": "hidden", "MYSQL_REPLICATION_USER": "repl",
        "MYSQL_REPLICATION_PASSWORD": "hidden2"});
    apply(server(), &secret("creds", data).to_string());
    assert_eq!(read().await.unwrap_err(), MissingSecret::ToBeMade { name: "mysql-orders-authority".to_owned() });
    apply(server(), &secret("mysql-orders-authority", json!({"hmac.key": "k".repeat(32)})).to_string());
    let secrets = read().await.unwrap();
    assert_eq!((secrets.operator.user.as_str(), secrets.operator.password.as_str()), ("ops", "hidden"));
    assert_eq!(secrets.replication.map(|account| account.user).as_deref(), Some("repl"));
}

/// K-22: Secrets of all accounts.
#[tokio::test]
async fn every_secret_that_the_spec_names_is_read_anew() {
    const ROLES: [(&str, AccountRole); 4] = [
        ("app", AccountRole::App),
        ("reader", AccountRole::ReadOnly),
        ("monitor", AccountRole::Monitor),
        ("backup", AccountRole::Backup),
    ];
    let (world, group) = stage("rotated").await;
    edit(
        "rotated",
        &json!({"secretName": null, "credentials": {"operatorSecret": "ops", "appSecret": "app",
        "readOnlySecret": "reader", "monitorSecret": "monitor", "backupSecret": "backup"}}),
    );
    let write = |name: &str, data: Value| {
        let metadata = json!({"name": name, "namespace": "rotated"});
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": data});
        apply(server(), &secret.to_string());
    };
    let rotate = |to: &str| {
        write(
            "ops",
            json!({"username": "ops", "password": format!("ops-{to}\n"),
            "MYSQL_REPLICATION_USER": "repl", "MYSQL_REPLICATION_PASSWORD": format!("repl-{to}")}),
        );
        for (name, _) in ROLES {
            write(name, json!({"username": name, "password": format!("{name}-{to}")}));
        }
    };
    write("mysql-orders-authority", json!({"hmac.key": "k".repeat(32)}));
    for to in ["one", "two"] {
        rotate(to);
        let read =
            until(&world, &group, async || world.secrets(&group, &wanted(&world, &group).await).await.ok()).await;
        let found = (read.operator.password, read.replication.map(|account| account.password));
        assert_eq!(found, (format!("ops-{to}"), Some(format!("repl-{to}"))), "without the line end");
        assert!(read.missing.is_none() && read.others.len() == ROLES.len());
        for (name, role) in ROLES {
            assert_eq!(read.others[&role].password, format!("{name}-{to}"));
        }
    }
    // One that nobody needs to lead is left out, and named.
    let delete = ["delete", "secret", "-n", "rotated", "app"];
    assert!(server().kubectl().args(delete).output().unwrap().status.success());
    let read = world.secrets(&group, &wanted(&world, &group).await).await.unwrap();
    assert_eq!(read.missing, Some(MissingSecret::NotFound { name: "app".to_owned() }));
    assert!(!read.others.contains_key(&AccountRole::App) && read.others.len() == 3);
}

#[tokio::test]
async fn events_that_repeat_are_counted() {
    let (world, group) = stage("events").await;
    until(&world, &group, async || world.groups().await.ok().filter(|all| !all.is_empty())).await;
    let event = |at| Event {
        kind: EventKind::Warning,
        reason: "NoPrimaryDetected".to_owned(),
        message: "nobody writes".to_owned(),
        at: Wall(at),
    };
    world.record_event(&group, &event(1_700_000_000_000)).await.unwrap();
    world.record_event(&group, &event(1_700_000_001_000)).await.unwrap();
    let words = ["get", "events.v1.events.k8s.io", "-n", "events", "-o", "json"];
    let listed = server().kubectl().args(words).output().unwrap();
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let items = listed["items"].as_array().unwrap();
    assert_eq!(items.len(), 1, "{items:?}");
    assert_eq!((&items[0]["series"]["count"], &items[0]["regarding"]["name"]), (&json!(2), &json!("orders")));
}

/// What somebody deleted or changed comes back as soon as its watch tells of it.
async fn what_was_taken_away_comes_back(world: &ClusterWorld, group: &GroupId, object: &MysqlFailoverGroup) {
    let remove = |kind: &str, name: &str| {
        assert!(server().kubectl().args(["delete", kind, "-n", "furnish", name]).output().unwrap().status.success());
    };
    let gone = ["mysql-orders-primary", "mysql-orders-pdx-internal"];
    for name in gone {
        remove("service", name);
    }
    remove("poddisruptionbudget", "mysql-orders");
    let patch = json!({"data": {"bloodraven.cnf": "by hand"}}).to_string();
    let edit = ["patch", "configmap", "-n", "furnish", "mysql-orders-pdx-config", "--type=merge", "-p", &patch];
    assert!(server().kubectl().args(edit).output().unwrap().status.success());
    let stands = |kind: &str, name: &str| names_of(kind, "furnish").iter().any(|it| it == name);
    until(world, group, async || {
        world.furnish(group, object, Look::Told).await.ok()?;
        let text = get("configmap", "furnish", "mysql-orders-pdx-config")["data"]["bloodraven.cnf"].to_string();
        let whole = gone.iter().all(|name| stands("service", name)) && stands("poddisruptionbudget", "mysql-orders");
        (whole && text.contains("max-connections=77")).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_group_is_furnished_rolled_when_told_and_let_go() {
    let (world, group) = stage("furnish").await;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "creds", "namespace": "furnish"},
        "stringData": {"dsn": "mysql://ops:hidden@any:3306/"}});
    apply(server(), &secret.to_string());
    // somebody's volume, under the name that the group needs
    let volume = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "mysql-orders-pdx-data", "namespace": "furnish"},
        "spec": {"accessModes": ["ReadWriteOncePod"], "storageClassName": "fast",
            "resources": {"requests": {"storage": "1Gi"}}}});
    apply(server(), &volume.to_string());
    let object = wanted(&world, &group).await;
    until(&world, &group, async || world.furnish(&group, &object, Look::All).await.ok()).await;
    let maker = |name: &str| get("pvc", "furnish", name)["metadata"]["annotations"][keys::GROUP_UID].clone();
    assert_eq!(maker("mysql-orders-iad-data"), json!(object.metadata.uid));
    assert_eq!(maker("mysql-orders-pdx-data"), json!("unknown"), "its data count");
    assert_eq!(names_of("deployment", "furnish"), ["mysql-orders-iad", "mysql-orders-pdx"]);
    assert_eq!(names_of("pvc", "furnish"), ["mysql-orders-iad-data", "mysql-orders-pdx-data"]);
    assert_eq!(names_of("configmap", "furnish"), ["mysql-orders-iad-config", "mysql-orders-pdx-config"]);
    assert_eq!(names_of("service", "furnish").len(), 6);
    assert_eq!(names_of("poddisruptionbudget", "furnish"), ["mysql-orders"]);
    assert_eq!(names_of("secret", "furnish"), ["mysql-orders-authority", "mysql-orders-operator"]);
    assert_eq!(
        wanted(&world, &group).await.metadata.finalizers.as_deref(),
        Some(&[keys::FINALIZER_GROUP.to_owned()][..])
    );
    let key = || get("secret", "furnish", "mysql-orders-authority")["data"]["hmac.key"].clone();
    let first = key();

    // what is so already is not written again; a template that changed waits until it is told
    let version = |name: &str| get("deployment", "furnish", name)["metadata"]["resourceVersion"].clone();
    let before = version("mysql-orders-iad");
    let patch = json!({"spec": {"mysqlConf": {"max-connections": "77"}}}).to_string();
    let edit = ["patch", "mfg", "-n", "furnish", "orders", "--type=merge", "-p", &patch];
    assert!(server().kubectl().args(edit).output().unwrap().status.success());
    let object = wanted(&world, &group).await;
    let drifted = until(&world, &group, async || {
        world.furnish(&group, &object, Look::All).await.ok()?;
        let estate = world.estate(&group, &sites()).await.ok()?;
        (estate.rollouts[&Site::new("iad")] == Rollout::Drifted).then_some(estate)
    })
    .await;
    assert_eq!(drifted.own_volumes, [Site::new("iad")], "made by this very group");
    assert_eq!((version("mysql-orders-iad"), key()), (before.clone(), first.clone()));
    // a signing key that somebody deleted comes back as it was: whoever has it goes on
    let delete = ["delete", "secret", "-n", "furnish", "mysql-orders-authority"];
    assert!(server().kubectl().args(delete).output().unwrap().status.success());
    world.furnish(&group, &object, Look::All).await.unwrap();
    assert_eq!(key(), first);
    what_was_taken_away_comes_back(&world, &group, &object).await;
    until(&world, &group, async || world.roll(&group, &object, &Site::new("iad")).await.ok()).await;
    assert_ne!(version("mysql-orders-iad"), before);
    until(&world, &group, async || {
        let rollouts = world.estate(&group, &sites()).await.ok()?.rollouts;
        (rollouts[&Site::new("iad")] == Rollout::InProgress && rollouts[&Site::new("pdx")] == Rollout::Drifted)
            .then_some(())
    })
    .await;

    // another's object of that name is left alone, and named
    let other = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "mysql-other-primary",
        "namespace": "furnish", "labels": {keys::LABEL_MANAGED_BY: "somebody"}}, "spec": {"ports": [{"port": 1}]}});
    apply(server(), &other.to_string());
    let mut renamed = object.clone();
    renamed.metadata.name = Some("other".to_owned());
    let taken = world.furnish(&GroupId::new("furnish", "other"), &renamed, Look::All).await.unwrap_err();
    assert!(
        matches!(&taken, Unfurnished::Taken { name, owner, .. } if name == "mysql-other-primary" && owner == "somebody"),
        "{taken}"
    );

    // an older server would not start on what a newer one has written
    let mut older = object.clone();
    older.spec.image = "mysql:5.7.44".to_owned();
    let refused = world.furnish(&group, &older, Look::All).await.unwrap_err();
    assert!(
        matches!(&refused, Unfurnished::Unbuildable { because } if because.starts_with("spec.image: mysql:5.7.44 is older")),
        "{refused}"
    );

    // what nobody looks after yet is refused, not left undone
    let mut cached = object.clone();
    cached.spec.dragonfly = serde_json::from_value(json!({"enabled": true, "image": "d:1"})).ok();
    assert!(cached.spec.dragonfly.is_some());
    let refused = world.furnish(&group, &cached, Look::All).await.unwrap_err();
    assert!(
        matches!(&refused, Unfurnished::Unbuildable { because } if because.starts_with("spec.dragonfly:")),
        "{refused}"
    );

    // deleted: the object goes as soon as it was let go, and not before
    let delete = ["delete", "mfg", "-n", "furnish", "orders", "--wait=false"];
    assert!(server().kubectl().args(delete).output().unwrap().status.success());
    assert!(world.read(&group).await.unwrap().is_some());
    until(&world, &group, async || world.dismiss(&group, true).await.ok()).await;
    assert_eq!(world.read(&group).await.unwrap(), None);
}

/// K-01, the first half: a denied write is told as such. That it is made later is shown in `outside`.
#[tokio::test]
async fn what_is_denied_is_told_and_changes_nothing() {
    let (world, group) = stage("denied").await;
    let mut config = server().client_config().await.unwrap();
    config.auth_info.impersonate = Some("nobody".to_owned());
    let nobody = ClusterWorld::new(&kube::Client::try_from(config).unwrap(), places("denied"));
    let now = version(&world, &group).await;
    let denied = nobody.save_status(&group, &now, &json!({"activeSite": "iad"})).await;
    assert!(matches!(denied, Err(Refused::Denied { .. })), "{denied:?}");
    assert!(nobody.read(&group).await.is_err() && nobody.read_lease().await.is_err(), "not read is not absent");
    assert!(nobody.groups().await.is_err() && nobody.estate(&group, &sites()).await.is_err());
    assert_eq!(version(&world, &group).await, now);
}
