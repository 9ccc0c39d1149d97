//! Objects of a group: what is in them, what fits together, what makes a pod another pod.
//!
//! In: group objects. Out: Kubernetes objects, looked at from the outside.

mod any_group;
mod claims;
mod conf;
mod errors;
mod fields;
mod fits;
mod nodes;
mod restricted;
mod rolls;
mod snapshots;

use std::collections::BTreeMap;

use bloodraven_api::MysqlFailoverGroup;
use bloodraven_blueprint::objects::{self, Objects, OperatorAccount, Plan, Surroundings, server_ids};
use bloodraven_blueprint::spec;
use bloodraven_brain::time::Wall;
use k8s_openapi::api::core::v1::{Container, PodSpec};
use serde_json::{Value, json};

const NOW: Wall = Wall(1_776_695_520_000);

/// The example of the manual: two sites that take over from each other, and a third that only follows.
fn seed() -> Value {
    let site = |name: &str, role: &str, zone: &str, ip: &str| {
        json!({"name": name, "role": role, "zone": zone, "lbIP": ip,
               "taintNodeSelector": {"shipstream.io/failover-group.orders": "true", "shipstream.io/site.orders": name},
               "storage": {"storageClassName": "gp3", "size": "500Gi"}})
    };
    json!({
        "apiVersion": "shipstream.io/v1alpha1", "kind": "MysqlFailoverGroup",
        "metadata": {"name": "orders", "namespace": "shop", "uid": "6f1c"},
        "spec": {
            "image": "mysql:9.7.4",
            "secretName": "orders-mysql",
            "dns": {"hostname": "orders-db.example.com"},
            "sites": [
                site("iad", "primary-candidate", "iad-1a", "10.0.0.10"),
                site("pdx", "primary-candidate", "pdx-1a", "10.1.0.10"),
                site("fra", "dr-only", "fra-1a", "10.2.0.10"),
            ],
            "splitBrainPolicy": {"sitePriorities": ["iad", "pdx"]},
        },
    })
}

/// The example with some values in other places, by JSON pointer; a null takes a value away.
fn edited(edits: &Value) -> MysqlFailoverGroup {
    let mut object = seed();
    for (pointer, value) in edits.as_object().expect("pointers to values") {
        let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
        let parent = object.pointer_mut(parent).expect("a place that is there");
        match parent {
            Value::Array(list) => list.push(value.clone()),
            Value::Object(fields) if value.is_null() => drop(fields.remove(key)),
            Value::Object(fields) => drop(fields.insert(key.to_owned(), value.clone())),
            other => panic!("{pointer}: nothing can be put into {other}"),
        }
    }
    accepted(object)
}

/// A group that passes every rule.
fn accepted(object: Value) -> MysqlFailoverGroup {
    let shown = object.to_string();
    let group = spec::object(object).unwrap_or_else(|found| panic!("{shown}: {found:?}"));
    spec::group(&group, None, NOW, true).unwrap_or_else(|found| panic!("{shown}: {found:?}"));
    group
}

fn around(group: &MysqlFailoverGroup) -> Surroundings {
    let sites: Vec<&str> = group.spec.sites.iter().map(|site| site.name.as_str()).collect();
    let name = group.metadata.name.clone().unwrap_or_default();
    Surroundings {
        own_image: Some("registry.example.com/bloodraven:0.1.0".to_owned()),
        operator_address: "bloodraven.ops.svc.cluster.local:8082".to_owned(),
        cluster_domain: "cluster.local".to_owned(),
        operator_account: OperatorAccount::Keys,
        replication_account: true,
        server_ids: server_ids(&name, &sites, &BTreeMap::new()),
    }
}

fn with_plan<T>(group: &MysqlFailoverGroup, look: impl FnOnce(&Plan<'_>) -> T) -> T {
    let around = around(group);
    look(&Plan::new(group, &around).expect("everything is there"))
}

fn built(group: &MysqlFailoverGroup) -> Objects {
    with_plan(group, objects::objects)
}

fn pod(objects: &Objects, site: usize) -> &PodSpec {
    let deployment = objects.deployments.get(site).and_then(|deployment| deployment.spec.as_ref());
    deployment.and_then(|deployment| deployment.template.spec.as_ref()).expect("a pod")
}

/// Containers of a pod, those that run first included.
fn containers(pod: &PodSpec) -> impl Iterator<Item = &Container> {
    pod.init_containers.iter().flatten().chain(&pod.containers)
}

fn container<'a>(pod: &'a PodSpec, name: &str) -> &'a Container {
    containers(pod).find(|container| container.name == name).expect("a container of that name")
}

/// A group with something in every field that objects are made of.
fn full() -> MysqlFailoverGroup {
    edited(&json!({
        "/spec/secretName": null,
        "/spec/credentials": {"operatorSecret": "op", "appSecret": "app", "readOnlySecret": "ro",
                              "monitorSecret": "mon", "backupSecret": "bak"},
        "/spec/sidecarImage": "registry.example.com/bloodraven:0.0.9",
        "/spec/imagePullSecrets": [{"name": "pull"}],
        "/spec/tls": {"secretName": "orders-tls", "issuerRef": {"name": "ca", "kind": "ClusterIssuer"}},
        "/spec/replication": {"durability": "SemiSync", "semiSyncTimeout": "0s"},
        "/spec/sidecar": {"peerCheckInterval": "2s", "bloodravenAddress": "10.9.9.9:8082"},
        "/spec/mysqlConf": {"max_connections": "1000"},
        "/spec/volumeRetention": "Delete",
        "/spec/sidecarResources": {"limits": {"memory": "64Mi"}},
        "/spec/terminationGracePeriodSeconds": 120,
        "/spec/podLabels": {"team": "shop"},
        "/spec/podAnnotations": {"example.com/owner": "shop"},
        "/spec/serviceTemplate": {"type": "LoadBalancer", "annotations": {"example.com/internal": "true"}},
        "/spec/extraContainers": [{"name": "exporter", "image": "exporter:1",
            "volumeMounts": [{"name": "creds-monitor", "mountPath": "/creds"}]}],
        "/spec/extraInitContainers": [{"name": "warm", "image": "warm:1"}],
        "/spec/sites/0/storage/accessMode": "ReadWriteOnce",
        "/spec/sites/0/resources": {"requests": {"cpu": "2", "memory": "8Gi"}},
        "/spec/sites/1/lbIP": "2001:db8::10",
        "/spec/dragonfly": {"enabled": true, "image": "dragonfly:v1.38.0", "maxMemoryMb": 512, "proactorThreads": 2,
            "args": ["--cache_mode=true"], "auth": {"secretName": "cache"},
            "snapshot": {"dir": "s3://cache/snapshots", "credentialsSecretName": "s3", "s3Endpoint": "s3.example.com",
                         "s3UseHTTPS": true}},
    }))
}
