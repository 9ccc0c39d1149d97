//! Every field of the spec has an effect: another value of it makes another leader, or other objects.
//!
//! The list of fields is the schema's own. A field without a row fails here, unless it stands in one of two short lists:
//! what the operator's hands do with it is shown beside them, and what nobody looks after yet is refused.

use std::collections::BTreeSet;

use bloodraven_api::MysqlFailoverGroup;
use bloodraven_api::admission::Admitted as _;
use bloodraven_blueprint::objects::{self, SitePlan, taints};
use bloodraven_blueprint::spec;
use k8s_openapi::api::core::v1::Node;
use serde_json::{Value, json};

use super::{NOW, edited, with_plan};

/// Refused by the operator; `cluster_world` shows it at a real API server.
const NOT_YET: [&str; 4] = ["dragonfly", "backup", "initFromBackup", "restoreInPlace"];

/// Of the leader's hands; the operator's own tests show commits that are tried, and their absence.
const OF_THE_HANDS: [&str; 2] = ["writeProbe.interval", "writeProbe.timeout"];

/// Kinds of Kubernetes, put into pods as they are.
const AS_THEY_ARE: [&str; 6] = [
    "resources",
    "sidecarResources",
    "extraContainers",
    "extraInitContainers",
    "podSecurityContext",
    "containerSecurityContext",
];

/// Every field below, by its path.
fn fields(schema: &Value, path: &str, found: &mut BTreeSet<String>) {
    let inside = schema["items"].get("properties").map(|inside| (inside, "[]"));
    let inside = schema.get("properties").map(|inside| (inside, "")).or(inside);
    let name = path.rsplit(['.', ']']).next().unwrap_or_default();
    match inside.filter(|_| !AS_THEY_ARE.contains(&name) && !NOT_YET.contains(&path)) {
        None => drop(found.insert(path.to_owned())),
        Some((inside, list)) => {
            for (name, schema) in inside.as_object().expect("fields") {
                let dot = if path.is_empty() { "" } else { "." };
                fields(schema, &format!("{path}{list}{dot}{name}"), found);
            }
        }
    }
}

/// All that follows from a group: the leader's wish, objects, volumes, names, taints.
fn effect(group: &MysqlFailoverGroup) -> String {
    let node = |site: &str| -> Node {
        let labels = json!({"shipstream.io/failover-group.orders": "true", "shipstream.io/site.orders": site});
        serde_json::from_value(json!({"metadata": {"name": site, "resourceVersion": "7", "labels": labels}}))
            .expect("a node")
    };
    let leader = spec::group(group, None, NOW, true).expect("a spec");
    with_plan(group, |plan| {
        let sites = || plan.sites().iter();
        let claims: Vec<_> = sites().map(|site| objects::claim(plan, site, None).expect("a claim")).collect();
        let names: Vec<_> = sites().map(|site| objects::dns_endpoint(plan, site)).collect();
        let taints = taints(plan, &sites().map(SitePlan::name).collect(), &[node("iad"), node("pdx")]);
        format!("{leader:?} {:?} {claims:?} {names:?} {taints:?}", objects::objects(plan))
    })
}

/// The field, and two groups that differ in it alone.
type Row = (&'static str, Value, Value);

fn rows_of_sites() -> Vec<Row> {
    let row = |path, pointer: &str, value: Value| (path, json!({}), json!({ pointer: value }));
    vec![
        row("sites[].name", "/spec/sites/2/name", json!("ams")),
        row("sites[].role", "/spec/sites/2/role", json!("primary-candidate")),
        row("sites[].zone", "/spec/sites/0/zone", json!("iad-1b")),
        row("sites[].taintNodeSelector", "/spec/sites/0/taintNodeSelector", json!({"a": "b"})),
        row("sites[].lbIP", "/spec/sites/0/lbIP", json!("10.0.0.11")),
        row("sites[].storage.storageClassName", "/spec/sites/0/storage/storageClassName", json!("gp4")),
        row("sites[].storage.size", "/spec/sites/0/storage/size", json!("501Gi")),
        row("sites[].storage.accessMode", "/spec/sites/0/storage/accessMode", json!("ReadWriteOnce")),
        row("sites[].resources", "/spec/sites/0/resources", json!({"requests": {"cpu": "2"}})),
    ]
}

fn rows_of_access() -> Vec<Row> {
    let accounts = |role: &str, name: &str| {
        let mut all = json!({"operatorSecret": "op", "appSecret": "app", "readOnlySecret": "ro", "monitorSecret": "mon",
            "backupSecret": "bak"});
        all[role] = json!(name);
        json!({"/spec/secretName": null, "/spec/credentials": all})
    };
    let tls = |secret: &str, issuer: Value| json!({"/spec/tls": {"secretName": secret, "issuerRef": issuer}});
    let issuer = |name: &str, kind: &str| json!({"name": name, "kind": kind});
    let of = |path, role| (path, accounts(role, "a"), accounts(role, "b"));
    vec![
        ("secretName", json!({}), json!({"/spec/secretName": "other"})),
        of("credentials.operatorSecret", "operatorSecret"),
        of("credentials.appSecret", "appSecret"),
        of("credentials.readOnlySecret", "readOnlySecret"),
        of("credentials.monitorSecret", "monitorSecret"),
        of("credentials.backupSecret", "backupSecret"),
        ("tls.secretName", tls("a", issuer("ca", "Issuer")), tls("b", issuer("ca", "Issuer"))),
        ("tls.issuerRef.name", tls("a", issuer("ca", "Issuer")), tls("a", issuer("cb", "Issuer"))),
        ("tls.issuerRef.kind", tls("a", issuer("ca", "Issuer")), tls("a", issuer("ca", "ClusterIssuer"))),
        ("dns.hostname", json!({}), json!({"/spec/dns/hostname": "other.example.com"})),
        ("dns.ttl", json!({}), json!({"/spec/dns/ttl": 5})),
    ]
}

fn rows_of_leaders() -> Vec<Row> {
    let row = |path, pointer: &str, value: Value| (path, json!({}), json!({ pointer: value }));
    let waits = |wait: &str| json!({"/spec/replication": {"durability": "SemiSync", "semiSyncTimeout": wait}});
    let paused = |more: Value| {
        let mut edits = json!({"/spec/paused": true});
        for (pointer, value) in more.as_object().expect("edits") {
            edits[pointer] = value.clone();
        }
        edits
    };
    vec![
        row("pollInterval", "/spec/pollInterval", json!("3s")),
        row("failureThreshold", "/spec/failureThreshold", json!(4)),
        row("recoveryThreshold", "/spec/recoveryThreshold", json!(3)),
        row("failoverCooldown", "/spec/failoverCooldown", json!("6m")),
        row("promotion.proof", "/spec/promotion", json!({"proof": "BestEffort"})),
        row("sidecar.leaseTimeout", "/spec/sidecar", json!({"leaseTimeout": "30s"})),
        row("sidecar.peerCheckInterval", "/spec/sidecar", json!({"peerCheckInterval": "4s"})),
        row("sidecar.minPeers", "/spec/sidecar", json!({"minPeers": 2})),
        row("sidecar.bloodravenAddress", "/spec/sidecar", json!({"bloodravenAddress": "10.9.9.9:8082"})),
        row("splitBrainPolicy.preferSite", "/spec/splitBrainPolicy", json!({"preferSite": "pdx"})),
        row("splitBrainPolicy.sitePriorities", "/spec/splitBrainPolicy", json!({"sitePriorities": ["pdx", "iad"]})),
        row("replication.maxLagSeconds", "/spec/replication", json!({"maxLagSeconds": 7})),
        row("replication.durability", "/spec/replication", json!({"durability": "SemiSync"})),
        ("replication.semiSyncTimeout", waits("10s"), waits("0s")),
        row("plannedFailover.maxLagWait", "/spec/plannedFailover", json!({"maxLagWait": "7m"})),
        row("plannedFailover.drainTimeout", "/spec/plannedFailover", json!({"drainTimeout": "7s"})),
        row("plannedFailover.onCooldown", "/spec/plannedFailover", json!({"onCooldown": "defer"})),
        row("updateStrategy", "/spec/updateStrategy", json!("Recreate")),
        row("cloneTimeout", "/spec/cloneTimeout", json!(7200)),
        row("paused", "/spec/paused", json!(true)),
        ("pausedReason", paused(json!({})), paused(json!({"/spec/pausedReason": "disks"}))),
        ("pausedUntil", paused(json!({})), paused(json!({"/spec/pausedUntil": "2026-04-21T00:00:00Z"}))),
    ]
}

fn rows_of_pods() -> Vec<Row> {
    let row = |path, pointer: &str, value: Value| (path, json!({}), json!({ pointer: value }));
    let pull = |name: &str| json!({"/spec/imagePullSecrets": [{"name": name}]});
    vec![
        row("image", "/spec/image", json!("mysql:9.7.5")),
        row("sidecarImage", "/spec/sidecarImage", json!("registry.example.com/bloodraven:0.0.9")),
        ("imagePullSecrets[].name", pull("a"), pull("b")),
        row("mysqlConf", "/spec/mysqlConf", json!({"max_connections": "1000"})),
        row("volumeRetention", "/spec/volumeRetention", json!("Delete")),
        row("sidecarResources", "/spec/sidecarResources", json!({"limits": {"memory": "64Mi"}})),
        row("terminationGracePeriodSeconds", "/spec/terminationGracePeriodSeconds", json!(120)),
        row("podLabels", "/spec/podLabels", json!({"team": "shop"})),
        row("podAnnotations", "/spec/podAnnotations", json!({"example.com/owner": "shop"})),
        row("serviceTemplate.type", "/spec/serviceTemplate", json!({"type": "LoadBalancer"})),
        row("serviceTemplate.annotations", "/spec/serviceTemplate", json!({"annotations": {"a": "b"}})),
        row("extraContainers", "/spec/extraContainers", json!([{"name": "exporter", "image": "exporter:1"}])),
        row("extraInitContainers", "/spec/extraInitContainers", json!([{"name": "warm", "image": "warm:1"}])),
        row("podSecurityContext", "/spec/podSecurityContext", json!({"runAsUser": 1001, "fsGroup": 1001})),
        row("containerSecurityContext", "/spec/containerSecurityContext", json!({"readOnlyRootFilesystem": true})),
    ]
}

fn rows() -> Vec<Row> {
    [rows_of_sites(), rows_of_access(), rows_of_leaders(), rows_of_pods()].concat()
}

/// K-11: another value of a field makes another leader or other objects.
#[test]
fn another_value_has_another_effect() {
    for (path, before, after) in rows() {
        assert_ne!(effect(&edited(&before)), effect(&edited(&after)), "spec.{path} has no effect");
    }
}

/// K-11: no field of the schema is left out of that.
#[test]
fn every_field_has_a_row() {
    let mut found = BTreeSet::new();
    fields(&MysqlFailoverGroup::definition().schema()["properties"]["spec"], "", &mut found);
    let shown = rows().into_iter().map(|(path, ..)| path).chain(OF_THE_HANDS).chain(NOT_YET);
    let shown: BTreeSet<String> = shown.map(str::to_owned).collect();
    assert_eq!(found.difference(&shown).collect::<Vec<_>>(), Vec::<&String>::new(), "nothing shows an effect");
    assert_eq!(shown.difference(&found).collect::<Vec<_>>(), Vec::<&String>::new(), "there is no such field");
}
