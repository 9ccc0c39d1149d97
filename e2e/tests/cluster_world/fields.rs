//! Fields of the spec, with a whole operator at a real API server: each has its effect, or is refused in words.

use std::path::Path;
use std::time::Duration;

use bloodraven_api::keys;
use bloodraven_brain::group::accounts::AccountRole;
use bloodraven_operator::world::{Look, Secrets, World};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::stage::*;

/// K-11: a feature that is on and cannot work is a condition that stays.
#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_looks_after_yet_is_refused_in_words_and_nothing_is_made() {
    let namespace = "not-yet";
    apply(server(), &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}).to_string());
    let rows = [
        ("dragonfly.yaml", "dragonfly"),
        ("backup-pitr.yaml", "backup"),
        ("restore-new-group.yaml", "initFromBackup"),
        ("restore-in-place.yaml", "restoreInPlace"),
    ];
    for (file, field) in rows {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(file);
        let mut object: Value = serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        object["metadata"] = json!({"namespace": namespace, "name": field.to_lowercase()});
        apply(server(), &object.to_string());
    }
    let operator = Operator::start(namespace).await;
    for (_, field) in rows {
        let wanted = format!("spec.{field}: this operator does not look after it yet; remove it");
        let said = format!("Degraded names {wanted}");
        let object = eventually(&said, move || {
            let object = group(namespace, &field.to_lowercase())?;
            let degraded = condition(&object, "Degraded");
            let named = degraded["status"] == "True" && degraded["message"].as_str()?.contains(&wanted);
            named.then_some(object)
        })
        .await;
        let degraded = condition(&object, "Degraded");
        assert!(
            degraded["message"].as_str().unwrap().contains("InvalidSpec") || degraded["reason"] == "InvalidSpec",
            "{degraded}"
        );
        assert_ne!(condition(&object, "Ready")["status"], "True");
    }
    let told = events(namespace);
    let refusals = told.iter().filter(|(reason, _)| reason == "InvalidSpec").count();
    assert!(refusals >= rows.len(), "{told:?}");
    assert_eq!(names_of("deployment", namespace), Vec::<String>::new());
    assert_eq!(names_of("pvc", namespace), Vec::<String>::new());
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_is_missing_is_named_and_taken_when_it_comes() {
    let namespace = "late-secret";
    let (_, _) = stage(namespace).await;
    let operator = Operator::start(namespace).await;
    eventually("an Event SecretNotFound", move || {
        events(namespace).into_iter().find(|(reason, note)| reason == "SecretNotFound" && note.contains("creds"))
    })
    .await;
    assert_eq!(names_of("deployment", namespace), Vec::<String>::new());
    secret(namespace);
    eventually("Deployments", move || (names_of("deployment", namespace).len() == 2).then_some(())).await;
    operator.stop().await;
}

/// K-19: a pause is honoured, and shown with its reason.
#[tokio::test(flavor = "multi_thread")]
async fn a_paused_group_is_left_as_it_is_until_the_pause_ends() {
    let namespace = "paused";
    let (_, _) = stage(namespace).await;
    secret(namespace);
    let operator = Operator::start(namespace).await;
    let text = move || get("configmap", namespace, "mysql-orders-iad-config")["data"]["bloodraven.cnf"].to_string();
    eventually("a ConfigMap", move || (names_of("configmap", namespace).len() == 3).then_some(())).await;
    let before = text();
    edit(namespace, &json!({"paused": true, "pausedReason": "disks are changed"}));
    eventually("Paused", move || {
        let paused = condition(&group(namespace, "orders")?, "Paused");
        (paused["status"] == "True" && paused["message"].as_str()?.contains("disks are changed")).then_some(())
    })
    .await;
    edit(namespace, &json!({"mysqlConf": {"max-connections": "77"}}));
    // the operator has seen the change, and has left everything alone
    eventually("the new generation is seen", move || {
        let object = group(namespace, "orders")?;
        (object["status"]["observedGeneration"] == object["metadata"]["generation"]).then_some(())
    })
    .await;
    assert_eq!(text(), before);
    edit(namespace, &json!({"paused": false}));
    eventually("the change is made", move || text().contains("max-connections=77").then_some(())).await;
    operator.stop().await;
}

/// So long a pause lasts below: the edits and looks inside of it take a busy machine a fraction of that.
const A_WHILE: Duration = Duration::from_secs(30);

/// K-19: a site scaled down on purpose stays down for as long as the pause is in force, which ends by itself at its expiry;
/// then the site comes up again, and the condition says that the group is not paused.
#[tokio::test(flavor = "multi_thread")]
async fn a_site_that_was_scaled_down_stays_down_until_the_pause_expires() {
    let namespace = "scaled-down";
    let (_, _) = stage(namespace).await;
    secret(namespace);
    let operator = Operator::start(namespace).await;
    eventually("Deployments", move || (names_of("deployment", namespace).len() == 2).then_some(())).await;
    let until = Timestamp::now() + A_WHILE;
    edit(namespace, &json!({"paused": true, "pausedReason": "disks are changed", "pausedUntil": until.to_string()}));
    let paused = move || Some(condition(&group(namespace, "orders")?, "Paused"));
    let said = eventually("Paused", move || paused().filter(|it| it["status"] == "True")).await;
    assert!(said["message"].as_str().unwrap().contains("disks are changed"), "{said}");
    order(&["scale", "deployment", "-n", namespace, "mysql-orders-pdx", "--replicas=0"]);
    // An object of the group is told of at once, and looked at every second while something is wrong with it.
    order(&["annotate", "deployment", "-n", namespace, "mysql-orders-iad", "a=b"]);
    let replicas = move || get("deployment", namespace, "mysql-orders-pdx")["spec"]["replicas"].as_i64();
    loop {
        let found = replicas();
        // Only what was seen before the end of the pause counts.
        if Timestamp::now() >= until {
            break;
        }
        assert_eq!(found, Some(0), "the group is paused");
    }
    eventually("it is not paused any more", move || paused().filter(|it| it["status"] == "False")).await;
    eventually("the site is up again", move || (replicas() == Some(1)).then_some(())).await;
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_volume_grows_and_keeps_what_else_it_is() {
    let namespace = "growing";
    let (world, group) = stage(namespace).await;
    secret(namespace);
    let class = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fast"},
        "provisioner": "example.org/none", "allowVolumeExpansion": true});
    apply(server(), &class.to_string());
    let object = wanted(&world, &group).await;
    until(&world, &group, async || world.furnish(&group, &object, Look::All).await.ok()).await;
    // as a provisioner would
    let name = "mysql-orders-iad-data";
    let bind = json!({"spec": {"volumeName": "v1"}}).to_string();
    let words = ["patch", "pvc", "-n", namespace, name, "--type=merge", "-p", &bind];
    assert!(server().kubectl().args(words).output().unwrap().status.success());
    set_status("pvc", namespace, name, &json!({"phase": "Bound", "capacity": {"storage": "1Gi"}}));
    let before = get("pvc", namespace, name);

    let mut spec = get("mfg", namespace, "orders")["spec"]["sites"].clone();
    spec[0]["storage"]["size"] = json!("2Gi");
    edit(namespace, &json!({ "sites": spec }));
    let object = wanted(&world, &group).await;
    until(&world, &group, async || {
        world.furnish(&group, &object, Look::All).await.ok()?;
        (get("pvc", namespace, name)["spec"]["resources"]["requests"]["storage"] == "2Gi").then_some(())
    })
    .await;
    let after = get("pvc", namespace, name);
    for key in [keys::SERVER_ID, keys::GROUP_UID] {
        let of = |claim: &Value| claim["metadata"]["annotations"][key].clone();
        assert!(of(&before).is_string(), "{before}");
        assert_eq!(of(&after), of(&before), "{key} stays");
    }
    assert_eq!(after["spec"]["volumeName"], "v1");
    let shrink = json!([{"op": "replace", "path": "/spec/sites/0/storage/size", "value": "1Gi"}]).to_string();
    let words = ["patch", "mfg", "-n", namespace, "orders", "--type=json", "-p", &shrink];
    let refused = server().kubectl().args(words).output().unwrap();
    assert!(!refused.status.success(), "a volume never shrinks");
}

/// What is to be seen in the Secrets.
type Check = fn(&Secrets) -> bool;

/// K-22: the same with the authority of certificates and the signing key.
#[tokio::test(flavor = "multi_thread")]
async fn every_secret_that_a_spec_names_is_read_anew() {
    let namespace = "rotating";
    let (world, group) = stage(namespace).await;
    let put = |name: &str, data: Value| {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace},
            "stringData": data});
        apply(server(), &secret.to_string());
    };
    let credentials =
        json!({"operatorSecret": "op", "appSecret": "app", "monitorSecret": "mon", "backupSecret": "bak"});
    edit(namespace, &json!({"secretName": null, "credentials": credentials, "tls": {"secretName": "tls"}}));
    let account = |user: &str, password: &str| json!({"username": user, "password": password});
    let both = json!({"username": "ops", "password": "one", "MYSQL_ROOT_PASSWORD": "r",
        "MYSQL_REPLICATION_USER": "repl", "MYSQL_REPLICATION_PASSWORD": "one"});
    put("op", both.clone());
    for (name, user) in [("app", "app"), ("mon", "mon"), ("bak", "bak")] {
        put(name, account(user, "one"));
    }
    put("tls", json!({"ca.crt": "one", "tls.crt": "-", "tls.key": "-"}));
    put("mysql-orders-authority", json!({"hmac.key": "a".repeat(32)}));
    let read = || until(&world, &group, async || world.secrets(&group, &wanted(&world, &group).await).await.ok());
    let before = read().await;
    let user = |it: &Secrets, role: AccountRole| it.others.get(&role).map(|account| account.user.clone());
    let users = [AccountRole::App, AccountRole::Monitor, AccountRole::Backup].map(|role| user(&before, role).unwrap());
    assert_eq!(users, ["app", "mon", "bak"]);
    let mut changed = both;
    changed["password"] = json!("two");
    changed["MYSQL_REPLICATION_PASSWORD"] = json!("three");
    let rows: [(&str, Value, Check); 6] = [
        ("op", changed, |it| {
            it.operator.password == "two" && it.replication.as_ref().is_some_and(|it| it.password == "three")
        }),
        ("app", account("app", "two"), |it| it.others[&AccountRole::App].password == "two"),
        ("mon", account("mon2", "x"), |it| it.others[&AccountRole::Monitor].user == "mon2"),
        ("bak", account("bak2", "x"), |it| it.others[&AccountRole::Backup].user == "bak2"),
        ("tls", json!({"ca.crt": "two", "tls.crt": "-", "tls.key": "-"}), |it| {
            it.tls.as_ref().is_some_and(|tls| tls.ca == b"two")
        }),
        ("mysql-orders-authority", json!({"hmac.key": "b".repeat(32), "hmac.previous": "a".repeat(32)}), |it| {
            it.keys.previous.is_some()
        }),
    ];
    for (name, data, check) in rows {
        assert!(!check(&before), "{name}: the test can fail");
        put(name, data);
        let now = read().await;
        assert!(check(&now), "{name}: {now:?}");
    }
}

/// K-06: a site that is removed leaves the others as they are.
#[tokio::test(flavor = "multi_thread")]
async fn a_site_that_leaves_the_spec_takes_its_objects_along_and_leaves_its_volume() {
    let namespace = "leaving";
    let (world, group) = stage(namespace).await;
    secret(namespace);
    let two = get("mfg", namespace, "orders")["spec"]["sites"].clone();
    let mut three = two.as_array().unwrap().clone();
    three.push(json!({"name": "fra", "zone": "fra", "lbIP": "192.0.2.7", "taintNodeSelector": {"none": "x"},
        "storage": {"storageClassName": "fast", "size": "1Gi"}}));
    let furnish = async |sites: Value, deployments: usize| {
        edit(namespace, &json!({ "sites": sites }));
        let object = wanted(&world, &group).await;
        until(&world, &group, async || {
            world.furnish(&group, &object, Look::All).await.ok()?;
            (names_of("deployment", namespace).len() == deployments).then_some(())
        })
        .await;
    };
    furnish(json!(three), 3).await;
    let iad = || get("deployment", namespace, "mysql-orders-iad")["spec"].clone();
    let (before, services) = (iad(), names_of("service", namespace).len());
    // somebody's Service that only looks like the site's
    let other = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "mysql-orders-fra", "namespace": namespace,
        "labels": {"app.kubernetes.io/managed-by": "somebody"}, "ownerReferences": []}, "spec": {"ports": [{"port": 1}]}});
    assert!(
        server()
            .kubectl()
            .args(["delete", "service", "-n", namespace, "mysql-orders-fra"])
            .output()
            .unwrap()
            .status
            .success()
    );
    apply(server(), &other.to_string());

    // its pod is on its way out; the record still names it
    apply(server(), &pod(namespace, "f", "fra", "leaving-n1").to_string());
    let uid = get("pod", namespace, "f")["metadata"]["uid"].as_str().unwrap().to_owned();
    let voters = json!([{"site": "fra", "instance": format!("{uid}/s")}]);
    let record = |epoch: u64, voters: &Value| {
        let authority = json!({"epoch": epoch, "tenure": 1, "site": "iad", "instance": "u/s", "phase": "Stable",
            "cause": "Voters", "voters": voters});
        set_status("mfg", namespace, "orders", &json!({ "authority": authority }));
    };
    record(1, &voters);
    let delete = ["delete", "pod", "-n", namespace, "f", "--wait=false", "--grace-period=0", "--force"];
    assert!(server().kubectl().args(delete).output().unwrap().status.success());
    furnish(two.clone(), 2).await;
    assert_eq!(names_of("pvc", namespace).len(), 3, "its volume stays");
    assert_eq!(names_of("configmap", namespace).len(), 2);
    assert_eq!(names_of("service", namespace).len(), services - 2);
    assert_eq!(get("service", namespace, "mysql-orders-fra")["spec"]["ports"][0]["port"], 1, "another's");
    assert!(get("pod", namespace, "f")["metadata"]["deletionTimestamp"].is_string(), "a record names it");
    assert_eq!(iad(), before, "nothing is rolled by it");
    record(2, &json!([]));
    let object = wanted(&world, &group).await;
    until(&world, &group, async || {
        world.furnish(&group, &object, Look::All).await.ok()?;
        let words = ["get", "pod", "-n", namespace, "f"];
        (!server().kubectl().args(words).output().unwrap().status.success()).then_some(())
    })
    .await;
}
