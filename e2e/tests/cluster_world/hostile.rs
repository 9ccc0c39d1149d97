//! Objects that no schema would let in, as an older release or a foreign hand may have left them, beside a group that is
//! well: that one is led as if it were alone, and the others are told or left alone, each for itself.

use bloodraven_api::{MysqlFailoverGroup, admission, crd, keys};
use bloodraven_testbed::kubernetes::ApiServer;
use serde_json::{Value, json};
use std::collections::BTreeMap;

use super::stage::{Operator, apply, condition, feed, in_time, places, server_of};

pub(super) const NAMESPACE: &str = "hostile";

/// A server that takes anything that calls itself a group.
pub(super) fn without_schema() -> ApiServer {
    let loosened = |(file, text): (String, String)| {
        let mut kind: Value = serde_saphyr::from_str(&text).unwrap();
        if file.starts_with("mysqlfailovergroups") {
            let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
            kind["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = anything;
        }
        kind.to_string()
    };
    server_of(&crd::each().into_iter().map(loosened).collect::<Vec<_>>().join("\n---\n"))
}

pub(super) fn group(name: &str, rest: &Value) -> Value {
    let mut object = json!({"apiVersion": "shipstream.io/v1alpha1", "kind": "MysqlFailoverGroup"});
    object.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
    object["metadata"]["name"] = json!(name);
    object["metadata"]["namespace"] = json!(NAMESPACE);
    object
}

/// As a server with our schema stores it: nobody fills in what is left out here.
pub(super) fn spec(sites: &[&str]) -> Value {
    let site = |name: &&str| {
        json!({"name": name, "zone": name, "lbIP": "192.0.2.7", "taintNodeSelector": {"hostile-site": name},
            "storage": {"storageClassName": "fast", "size": "1Gi"}})
    };
    let sites: Vec<Value> = sites.iter().map(site).collect();
    let spec = json!({"secretName": "creds", "dns": {"hostname": "db.example.org"}, "sites": sites});
    admission::with_defaults::<MysqlFailoverGroup>(group("orders", &json!({ "spec": spec })))["spec"].clone()
}

fn with(mut spec: Value, pointer: &str, value: Value) -> Value {
    let (of, field) = pointer.rsplit_once('/').unwrap();
    spec.pointer_mut(of).unwrap()[field] = value;
    spec
}

/// What an object looks like whose spec cannot be taken.
fn nonsense() -> Vec<(&'static str, Value)> {
    let fine = || spec(&["iad", "pdx"]);
    // What is deeper than that cannot be read by any client in this language. A server with our schema drops it.
    let deep = (0..90).fold(json!(1), |inner, _| json!({ "deeper": inner }));
    let many: Vec<String> = (0..3000).map(|number| format!("s{number}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    vec![
        ("no-spec", json!({})),
        ("spec-null", json!({ "spec": null })),
        ("spec-text", json!({"spec": "all of it"})),
        ("spec-list", json!({"spec": [1, 2, 3]})),
        ("sites-number", json!({"spec": {"secretName": "creds", "sites": 7}})),
        ("sites-none", json!({"spec": {"secretName": "creds", "sites": []}})),
        ("sites-many", json!({ "spec": spec(&many) })),
        ("sites-same", json!({ "spec": spec(&["iad", "iad"]) })),
        ("site-name", json!({ "spec": spec(&["iad", "../../etc/passwd"]) })),
        ("site-newline", json!({ "spec": spec(&["iad", "pdx\n[mysqld]"]) })),
        ("time-words", json!({ "spec": with(fine(), "/pollInterval", json!("soon")) })),
        ("time-negative", json!({ "spec": with(fine(), "/pollInterval", json!("-1s")) })),
        ("time-huge", json!({ "spec": with(fine(), "/pollInterval", json!("99999999999999999999h")) })),
        ("number-huge", json!({ "spec": with(fine(), "/failureThreshold", json!(1e300)) })),
        ("number-negative", json!({ "spec": with(fine(), "/failureThreshold", json!(-3)) })),
        ("conf-section", json!({ "spec": with(fine(), "/mysqlConf", json!({"a\n[client]\nb": "c"})) })),
        (
            "conf-line",
            json!({ "spec": with(fine(), "/mysqlConf", json!({"max-connections": "7\nskip-grant-tables"})) }),
        ),
        ("size-words", json!({ "spec": with(fine(), "/sites/0/storage/size", json!("much")) })),
        ("deep", json!({ "spec": with(fine(), "/sites/0/storage", deep) })),
        ("secret-elsewhere", json!({ "spec": with(fine(), "/secretName", json!("../../kube-system/secrets/creds")) })),
    ]
}

/// Status and annotations that nobody wrote who knows what they mean; the specs are well.
fn tampered() -> Vec<(&'static str, Value)> {
    let rest =
        |metadata: Value, status: Value| json!({"metadata": metadata, "spec": spec(&["iad", "pdx"]), "status": status});
    let note = |key: &str, text: &str| json!({ "annotations": { key: text } });
    let big = "x".repeat(200_000);
    let huge = with(spec(&["iad", "pdx"]), "/sites/0/storage/size", json!("1e999"));
    vec![
        ("size-huge", json!({ "spec": huge })),
        ("status-text", rest(json!({}), json!("fine"))),
        (
            "status-types",
            rest(json!({}), json!({"activeSite": 7, "conditions": {"a": 1}, "sites": "none", "authority": []})),
        ),
        ("record-garbage", rest(note(keys::AUTHORITY, "{\"epoch\": -1, \"voters\": \"all\"}"), json!({}))),
        ("record-big", rest(note(keys::AUTHORITY, &big), json!({}))),
        ("request-big", rest(note(keys::PLANNED_FAILOVER, &big), json!({}))),
        ("request-odd", rest(note(keys::PLANNED_FAILOVER, "\u{202e}pdx:id=\u{0}1\u{fffd}"), json!({}))),
    ]
}

fn put(server: &ApiServer, object: &Value) {
    feed(server, &["create", "--validate=false", "-f", "-"], &object.to_string());
    if let Some(status) = object.get("status") {
        // A status that comes with an object is dropped; it is written as its writer would write it.
        let (name, change) = (object["metadata"]["name"].as_str().unwrap(), json!({ "status": status }).to_string());
        let words = ["patch", "mfg", "-n", NAMESPACE, name, "--subresource=status", "--type=merge", "-p", &change];
        let set = server.kubectl().args(words).output().unwrap();
        assert!(set.status.success(), "{name}: {}", String::from_utf8_lossy(&set.stderr));
    }
}

pub(super) fn read(server: &ApiServer, words: &[&str]) -> Option<Value> {
    let got = server.kubectl().args(words).args(["-n", NAMESPACE, "-o", "json"]).output().ok()?;
    serde_json::from_slice(&got.stdout).ok()
}

/// Each group with why it is degraded. Not all of them can be parsed by everybody.
fn reasons(server: &ApiServer) -> BTreeMap<String, String> {
    let columns = "custom-columns=NAME:.metadata.name,WHY:.status.conditions[?(@.type==\"Degraded\")].reason";
    let listed =
        server.kubectl().args(["get", "mfg", "-n", NAMESPACE, "--no-headers", "-o", columns]).output().unwrap();
    let words =
        |line: &str| line.split_once(char::is_whitespace).map(|(name, why)| (name.to_owned(), why.trim().to_owned()));
    String::from_utf8_lossy(&listed.stdout).lines().filter_map(words).collect()
}

fn limit_of_connections(server: &ApiServer) -> Option<String> {
    let found = read(server, &["get", "configmap", "mysql-orders-iad-config"])?;
    let text = found["data"]["bloodraven.cnf"].as_str()?;
    text.lines().find_map(|line| line.strip_prefix("max-connections=")).map(str::to_owned)
}

/// The group that is well takes an edit.
pub(super) fn takes_an_edit(server: &ApiServer, limit: &str) {
    let patch = json!({"spec": {"mysqlConf": {"max-connections": limit}}}).to_string();
    let words = ["patch", "mfg", "-n", NAMESPACE, "orders", "--type=merge", "-p", &patch];
    assert!(server.kubectl().args(words).output().unwrap().status.success());
    in_time(&format!("the edit {limit} is in force"), || {
        let there = limit_of_connections(server).as_deref() == Some(limit);
        if !there {
            let object = read(server, &["get", "mfg", "orders"])?;
            eprintln!("{limit} is not in force yet: {}", condition(&object, "Degraded"));
        }
        there.then_some(())
    });
}

/// `kubectl` blocks a thread.
pub(super) async fn on_a_thread(server: ApiServer, act: impl FnOnce(&ApiServer) + Send + 'static) -> ApiServer {
    let act = move || {
        act(&server);
        server
    };
    tokio::task::spawn_blocking(act).await.unwrap()
}

fn put_them(server: &ApiServer) {
    for (name, rest) in nonsense().iter().chain(&tampered()) {
        put(server, &group(name, rest));
    }
}

fn beside_them(server: &ApiServer) {
    let names: Vec<&str> = nonsense().iter().map(|(name, _)| *name).collect();
    takes_an_edit(server, "102");
    in_time("each that cannot be taken says so", || {
        let told = reasons(server);
        let silent: Vec<&&str> =
            names.iter().filter(|name| told.get(**name) != Some(&"InvalidSpec".to_owned())).collect();
        eprintln!("not told yet: {silent:?}");
        silent.is_empty().then_some(())
    });
    let made = read(server, &["get", "deployments"]).unwrap();
    let of_nonsense = |name: &str| names.iter().any(|group| name.starts_with(&format!("mysql-{group}")));
    for object in made["items"].as_array().unwrap() {
        let name = object["metadata"]["name"].as_str().unwrap();
        assert!(!of_nonsense(name), "{name} was made of nonsense");
    }
    takes_an_edit(server, "103");
    // They go as they came, and nobody holds on to them.
    for name in &names {
        let words = ["delete", "mfg", "-n", NAMESPACE, name, "--wait=false"];
        assert!(server.kubectl().args(words).output().unwrap().status.success(), "{name}");
    }
    in_time("they are gone", || {
        let there = reasons(server);
        let left: Vec<&&str> = names.iter().filter(|name| there.contains_key(**name)).collect();
        eprintln!("still there: {left:?}");
        left.is_empty().then_some(())
    });
    takes_an_edit(server, "104");
}

/// A namespace with a group that is well.
pub(super) fn set_up(server: &ApiServer) {
    apply(server, &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}).to_string());
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "creds", "namespace": NAMESPACE},
        "stringData": {"username": "ops", "password": "p1", "MYSQL_ROOT_PASSWORD": "p2",
            "MYSQL_REPLICATION_USER": "repl", "MYSQL_REPLICATION_PASSWORD": "p3"}});
    apply(server, &secret.to_string());
    apply(server, &group("orders", &json!({ "spec": spec(&["iad", "pdx"]) })).to_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_that_nobody_can_understand_stop_no_other_group() {
    let server = tokio::task::spawn_blocking(without_schema).await.unwrap();
    set_up(&server);
    let first = Operator::at(&server, places(NAMESPACE)).await;
    let server = on_a_thread(server, |server| {
        takes_an_edit(server, "100");
        put_them(server);
        takes_an_edit(server, "101");
    })
    .await;
    // Another one sees them all at once, in its first list.
    first.stop().await;
    let operator = Operator::at(&server, places(NAMESPACE)).await;
    let server = on_a_thread(server, beside_them).await;
    let health = reqwest::get(format!("http://{}/healthz", operator.address)).await.unwrap();
    assert!(health.status().is_success(), "{health:?}");
    operator.stop().await;
    drop(server);
}
