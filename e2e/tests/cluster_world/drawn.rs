//! Fields of the spec that go into objects: each stands where it belongs in an object that a real API server took.

use std::collections::BTreeSet;

use bloodraven_brain::group::Outward;
use bloodraven_cluster::ClusterWorld;
use bloodraven_operator::world::{GroupId, Look, World as _};
use serde_json::{Value, json};

use super::rights::certificates;
use super::stage::*;

const NAMESPACE: &str = "drawn";

/// The Secrets that the group names, by what it calls them.
const SECRETS: [(&str, &str); 5] = [
    ("operatorSecret", "s-operator"),
    ("appSecret", "s-app"),
    ("readOnlySecret", "s-reader"),
    ("monitorSecret", "s-monitor"),
    ("backupSecret", "s-backup"),
];

/// A group with another value than the default in every field that objects are made of.
fn whole() -> Value {
    let site = |name: &str, ip: &str| {
        json!({"name": name, "zone": format!("{name}-1b"), "lbIP": ip, "taintNodeSelector": {"drawn-site": name},
            "resources": {"requests": {"cpu": "2"}},
            "storage": {"storageClassName": "fast-1", "size": "7Gi", "accessMode": "ReadWriteOnce"}})
    };
    let credentials: Value = SECRETS.iter().map(|(field, name)| ((*field).to_owned(), json!(name))).collect();
    let spec = json!({
        "image": "mysql:9.7.4", "sidecarImage": "example.org/sidecar:7", "imagePullSecrets": [{"name": "s-pull"}],
        "credentials": credentials, "tls": {"secretName": "s-tls", "issuerRef": {"name": "ca", "kind": "ClusterIssuer"}},
        "dns": {"hostname": "other.example.org", "ttl": 7}, "sites": [site("iad", "192.0.2.7"), site("pdx", "192.0.2.8")],
        "sidecar": {"peerCheckInterval": "3s", "bloodravenAddress": "192.0.2.99:8082"},
        "replication": {"durability": "SemiSync", "semiSyncTimeout": "7s"},
        "mysqlConf": {"max-connections": "77"}, "volumeRetention": "Delete",
        "sidecarResources": {"limits": {"memory": "64Mi"}}, "terminationGracePeriodSeconds": 77,
        "podLabels": {"team": "shop"}, "podAnnotations": {"owner": "shop"},
        "serviceTemplate": {"type": "LoadBalancer", "annotations": {"balancer": "ours"}},
        "extraContainers": [{"name": "exporter", "image": "example.org/exporter:1"}],
        "extraInitContainers": [{"name": "warm", "image": "example.org/warm:1"}],
        "podSecurityContext": {"runAsUser": 1001, "fsGroup": 1001},
        "containerSecurityContext": {"readOnlyRootFilesystem": true},
    });
    json!({"apiVersion": "shipstream.io/v1alpha1", "kind": "MysqlFailoverGroup",
        "metadata": {"name": "orders", "namespace": NAMESPACE}, "spec": spec})
}

/// An object by its kind and name, and where in it which value stands.
type Row = (&'static str, &'static str, Vec<(&'static str, Value)>);

fn rows() -> Vec<Row> {
    let pods = vec![
        ("/spec/template/spec/containers/0/image", json!("mysql:9.7.4")),
        ("/spec/template/spec/initContainers/0/image", json!("example.org/sidecar:7")),
        ("/spec/template/spec/initContainers/1/image", json!("example.org/sidecar:7")),
        ("/spec/template/spec/imagePullSecrets/0/name", json!("s-pull")),
        ("/spec/template/spec/nodeSelector/topology.kubernetes.io~1zone", json!("iad-1b")),
        ("/spec/template/spec/containers/0/resources/requests/cpu", json!("2")),
        ("/spec/template/spec/initContainers/1/resources/limits/memory", json!("64Mi")),
        ("/spec/template/spec/terminationGracePeriodSeconds", json!(77)),
        ("/spec/template/metadata/labels/team", json!("shop")),
        ("/spec/template/metadata/annotations/owner", json!("shop")),
        ("/spec/template/spec/containers/1/image", json!("example.org/exporter:1")),
        ("/spec/template/spec/initContainers/2/image", json!("example.org/warm:1")),
        ("/spec/template/spec/securityContext", json!({"runAsUser": 1001, "fsGroup": 1001})),
        ("/spec/template/spec/containers/0/securityContext", json!({"readOnlyRootFilesystem": true})),
    ];
    let doors = vec![
        ("/spec/type", json!("LoadBalancer")),
        ("/spec/loadBalancerIP", json!("192.0.2.7")),
        ("/metadata/annotations/balancer", json!("ours")),
    ];
    let volumes = vec![
        ("/spec/storageClassName", json!("fast-1")),
        ("/spec/resources/requests/storage", json!("7Gi")),
        ("/spec/accessModes", json!(["ReadWriteOnce"])),
        ("/metadata/ownerReferences/0/name", json!("orders")),
    ];
    let certificate = vec![
        ("/spec/secretName", json!("s-tls")),
        ("/spec/issuerRef/name", json!("ca")),
        ("/spec/issuerRef/kind", json!("ClusterIssuer")),
    ];
    let name = vec![
        ("/spec/endpoints/0/dnsName", json!("other.example.org")),
        ("/spec/endpoints/0/recordTTL", json!(7)),
        ("/spec/endpoints/0/targets", json!(["192.0.2.7"])),
    ];
    vec![
        ("deployment", "mysql-orders-iad", pods),
        ("service", "mysql-orders-iad", doors),
        ("pvc", "mysql-orders-iad-data", volumes),
        ("certificates.cert-manager.io", "mysql-orders-tls", certificate),
        ("dnsendpoint", "bloodraven-orders", name),
    ]
}

/// Everything is made once, as an operator makes it.
async fn make() {
    apply(server(), &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}).to_string());
    apply(server(), &certificates());
    serves_all(server());
    for (_, name) in SECRETS {
        let data = json!({"username": name, "password": "hidden", "MYSQL_ROOT_PASSWORD": "hidden"});
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": NAMESPACE},
            "stringData": data});
        apply(server(), &secret.to_string());
    }
    apply(server(), &whole().to_string());
    let world = ClusterWorld::new(&server().client().await.unwrap(), places(NAMESPACE));
    let group = GroupId::new(NAMESPACE, "orders");
    let object = wanted(&world, &group).await;
    until(&world, &group, async || world.furnish(&group, &object, Look::All).await.ok()).await;
    let [iad, _] = sites();
    let wish = Outward { dns: Some(iad), ..Outward::default() };
    until(&world, &group, async || world.show(&group, &object, &wish).await.ok()?.dns.ok()).await;
}

/// K-11: fields of images, pods, Services, volumes, certificates and the name.
#[tokio::test(flavor = "multi_thread")]
async fn fields_that_objects_are_made_of_stand_in_them() {
    make().await;
    for (kind, name, values) in rows() {
        let object = get(kind, NAMESPACE, name);
        for (pointer, expect) in values {
            assert_eq!(object.pointer(pointer), Some(&expect), "{kind} {name} {pointer} in {object:#}");
        }
    }
    let pod = get("deployment", NAMESPACE, "mysql-orders-iad")["spec"]["template"]["spec"].clone();
    let env = pod["initContainers"][1]["env"].as_array().unwrap();
    let told = |name: &str| env.iter().find(|it| it["name"] == name).map(|it| it["value"].clone()).unwrap_or_default();
    assert_eq!((told("PEER_CHECK_INTERVAL"), told("BLOODRAVEN_ADDRESS")), (json!("3s"), json!("192.0.2.99:8082")));
    let mounted: BTreeSet<&str> =
        pod["volumes"].as_array().unwrap().iter().filter_map(|it| it["secret"]["secretName"].as_str()).collect();
    for name in SECRETS.iter().map(|(_, name)| *name).chain(["s-tls"]) {
        assert!(mounted.contains(name), "{name} in {mounted:?}");
    }
    let options = get("configmap", NAMESPACE, "mysql-orders-iad-config")["data"]["bloodraven.cnf"].to_string();
    for line in ["max-connections=77", "rpl-semi-sync-source-timeout=7000"] {
        assert!(options.contains(line), "{line} in {options}");
    }
}
