//! Whatever group passes admission has objects, and their names are ones that Kubernetes takes.

use std::collections::BTreeSet;

use bloodraven_api::rules::text::{DNS_LABEL, LABEL_VALUE};
use proptest::collection::{btree_map, btree_set};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use proptest::string::string_regex;
use serde_json::{Value, json};

use super::snapshots::all;
use super::{accepted, built, containers, pod, seed};

/// A group name and site names that have 40 characters together at most.
fn names() -> impl Strategy<Value = (String, BTreeSet<String>)> {
    (1_usize..=38).prop_flat_map(|room| {
        let group = format!("[a-z]([-a-z0-9]{{0,{}}}[a-z0-9])?", room.saturating_sub(2).min(36));
        let site = format!("[a-z0-9]([-a-z0-9]{{0,{}}}[a-z0-9])?", (40 - room).saturating_sub(2).min(36));
        let free = |site: &String| !matches!(site.as_str(), "primary" | "replicas") && !site.ends_with("-internal");
        let text = |pattern: &str| string_regex(pattern).expect("a pattern");
        let sites = btree_set(text(&site).prop_filter("a free name", free), 2..6);
        (text(&group), sites)
            .prop_filter("40 characters", |(group, sites)| sites.iter().all(|site| group.len() + site.len() <= 40))
    })
}

fn site(name: &str, role: &str, six: bool) -> Value {
    let ip = if six { "2001:db8::10" } else { "10.0.0.10" };
    json!({"name": name, "role": role, "zone": "z", "lbIP": ip, "taintNodeSelector": {"a": name},
           "storage": {"storageClassName": "gp3", "size": "1Gi"}})
}

/// Settings that may stand together in any number.
fn settings() -> impl Strategy<Value = Vec<(&'static str, Value)>> {
    let all = vec![
        ("tls", json!({"secretName": "tls", "issuerRef": {"name": "ca"}})),
        ("replication", json!({"durability": "SemiSync"})),
        ("sidecarImage", json!("bloodraven:2")),
        ("serviceTemplate", json!({"type": "LoadBalancer", "annotations": {"a": "b"}})),
        ("volumeRetention", json!("Delete")),
        ("podLabels", json!({"team": "shop"})),
        ("podSecurityContext", json!({"runAsUser": 27})),
        ("containerSecurityContext", json!({})),
        (
            "extraContainers",
            json!([{"name": "x", "image": "x:1", "volumeMounts": [{"name": "data", "mountPath": "/d"}]}]),
        ),
        ("imagePullSecrets", json!([{"name": "pull"}])),
        ("dragonfly", json!({"enabled": true, "image": "dragonfly:v1.38.0", "auth": {"secretName": "cache"}})),
        ("sidecar", json!({"leaseTimeout": "1h", "peerCheckInterval": "1.5s"})),
    ];
    let count = all.len();
    subsequence(all, 0..=count)
}

fn group() -> impl Strategy<Value = Value> {
    let options = select(vec!["max_connections", "sync-binlog", "loose-x", "skip-name-resolve", "sql_mode", "a.b"]);
    let conf = btree_map(options, "[ -~]{0,12}", 0..4);
    (names(), settings(), conf, option::of(any::<bool>()), any::<bool>()).prop_map(
        |((name, sites), settings, conf, followers, six)| {
            let mut object = seed();
            object["metadata"]["name"] = json!(name);
            let role = |at: usize| if at >= 2 && followers == Some(true) { "dr-only" } else { "" };
            object["spec"]["sites"] = sites.iter().enumerate().map(|(at, name)| site(name, role(at), six)).collect();
            object["spec"]["splitBrainPolicy"] = json!({});
            object["spec"]["mysqlConf"] = json!(conf);
            for (key, value) in settings {
                object["spec"][key] = value;
            }
            object
        },
    )
}

fn check_names(object: &Value) {
    let name = object.pointer("/metadata/name").and_then(Value::as_str).expect("a name");
    assert!(DNS_LABEL.holds(name) && name.len() <= 63, "{name}");
    if object["kind"] == "Service" {
        assert!(name.starts_with(|first: char| first.is_ascii_lowercase()), "{name}");
    }
    for labels in ["/metadata/labels", "/spec/selector", "/spec/template/metadata/labels"] {
        let labels = object.pointer(labels).and_then(Value::as_object).into_iter().flatten();
        for (key, value) in labels.filter(|(_, value)| value.is_string()) {
            let value = value.as_str().unwrap_or_default();
            assert!(LABEL_VALUE.holds(value) && value.len() <= 63, "{key}: {value}");
        }
    }
    let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array).map_or(0, Vec::len);
    let kept = object["kind"] == "PersistentVolumeClaim";
    assert!(owners == 1 || kept, "{name} goes with its group");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn every_group_has_objects_with_good_names(object in group()) {
        let group = accepted(object);
        let objects = all(&group);
        let identities: BTreeSet<String> = objects.iter().map(|it| format!("{}/{}", it["kind"], it["metadata"]["name"])).collect();
        prop_assert_eq!(identities.len(), objects.len(), "no object twice");
        objects.iter().for_each(check_names);
        let objects = built(&group);
        for at in 0..group.spec.sites.len() {
            let pod = pod(&objects, at);
            let volumes: BTreeSet<&str> = pod.volumes.iter().flatten().map(|volume| volume.name.as_str()).collect();
            for container in containers(pod) {
                prop_assert!(DNS_LABEL.holds(&container.name));
                for mount in container.volume_mounts.iter().flatten() {
                    prop_assert!(volumes.contains(mount.name.as_str()), "{}", mount.name);
                }
                for port in container.ports.iter().flatten() {
                    prop_assert!(port.name.as_deref().is_some_and(|name| name.len() <= 15));
                }
            }
        }
    }
}
