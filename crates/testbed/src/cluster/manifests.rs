//! The objects that every cluster begins with: the name service, the storage class, the volumes.
//!
//! In: how many volumes a node has. Out: JSON for `kubectl apply`. Must not: know the product.

use serde_json::{Value, json};

use super::images::COREDNS;
use super::layout::{DNS_SERVICE, DOMAIN, Member};

/// The storage class of the volumes, which is the default one.
pub const STORAGE_CLASS: &str = "local";

/// Where a node keeps the folders of its volumes.
pub(super) const VOLUMES: &str = "/var/lib/volumes";

/// What a volume says that it holds; nobody counts.
const CAPACITY: &str = "20Gi";

/// The name of a node's volume.
pub(super) fn volume_name(node: Member, number: usize) -> String {
    format!("{}-{number}", node.name())
}

/// Everything, as one list.
pub(super) fn all(volumes: usize) -> Value {
    let mut items = name_service();
    items.push(storage_class());
    items.extend(Member::nodes().flat_map(|node| (0..volumes).map(move |number| volume(node, number))));
    json!({"apiVersion": "v1", "kind": "List", "items": items})
}

/// The access mode of a node's volume: the first one is for pods that share, the others for one pod alone. (A volume for one
/// pod may have no other mode.)
fn access_mode(number: usize) -> &'static str {
    if number == 0 { "ReadWriteOnce" } else { "ReadWriteOncePod" }
}

/// A folder of a node, as a volume that only pods on that node can have.
pub(super) fn volume(node: Member, number: usize) -> Value {
    let name = volume_name(node, number);
    let here = json!({"key": "topology.kubernetes.io/zone", "operator": "In", "values": [node.name()]});
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": CAPACITY},
            "accessModes": [access_mode(number)],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": STORAGE_CLASS,
            "local": {"path": format!("{VOLUMES}/{name}")},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
        },
    })
}

fn storage_class() -> Value {
    json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {
            "name": STORAGE_CLASS,
            "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
        },
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    })
}

/// CoreDNS on every node, asked on the node itself: a site that is cut off still resolves names.
fn name_service() -> Vec<Value> {
    let labels = json!({"k8s-app": "kube-dns"});
    let meta = json!({"name": "coredns", "namespace": "kube-system", "labels": labels});
    let named = json!({"name": "system:coredns"});
    let rule = |group: &str, resources: &[&str]| json!({"apiGroups": [group], "resources": resources, "verbs": ["list", "watch"]});
    let rules =
        [rule("", &["endpoints", "services", "pods", "namespaces"]), rule("discovery.k8s.io", &["endpointslices"])];
    let subject = json!({"kind": "ServiceAccount", "name": "coredns", "namespace": "kube-system"});
    let bound = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:coredns"});
    let (udp, tcp) = (
        json!({"name": "dns", "port": 53, "protocol": "UDP"}),
        json!({"name": "dns-tcp", "port": 53, "protocol": "TCP"}),
    );
    vec![
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta}),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": named, "rules": rules}),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": named,
            "roleRef": bound,
            "subjects": [subject],
        }),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"Corefile": corefile()}}),
        json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "kube-dns", "namespace": "kube-system", "labels": labels},
            "spec": {
                "clusterIP": DNS_SERVICE,
                "internalTrafficPolicy": "Local",
                "selector": labels,
                "ports": [udp, tcp],
            },
        }),
        json!({
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": meta,
            "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": name_server()}},
        }),
    ]
}

fn name_server() -> Value {
    json!({
        "serviceAccountName": "coredns",
        "priorityClassName": "system-node-critical",
        "dnsPolicy": "Default",
        "terminationGracePeriodSeconds": 1,
        "tolerations": [{"operator": "Exists"}],
        "containers": [{
            "name": "coredns",
            "image": COREDNS,
            "args": ["-conf", "/etc/coredns/Corefile"],
            "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}},
            "volumeMounts": [{"name": "config", "mountPath": "/etc/coredns", "readOnly": true}],
            "readinessProbe": {"httpGet": {"path": "/ready", "port": 8181}, "periodSeconds": 1},
        }],
        "volumes": [{"name": "config", "configMap": {"name": "coredns"}}],
    })
}

/// Names of the cluster, and the certain answer that there are no others. In a block of its own: the order of plugins is
/// fixed, and the second would swallow what the first knows.
fn corefile() -> String {
    format!(
        "{DOMAIN}:53 in-addr.arpa:53 {{
    errors
    ready :8181
    kubernetes {DOMAIN} in-addr.arpa {{
        pods insecure
        ttl 5
    }}
    cache 5
}}
.:53 {{
    template ANY ANY . {{
        rcode NXDOMAIN
    }}
}}
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_volume_is_bound_to_its_node() {
        let list = all(2);
        let items = list["items"].as_array().unwrap();
        let volumes: Vec<&Value> = items.iter().filter(|item| item["kind"] == "PersistentVolume").collect();
        assert_eq!(volumes.len(), 6);
        for volume in volumes {
            let name = volume["metadata"]["name"].as_str().unwrap();
            let term = &volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"][0]["matchExpressions"][0];
            assert!(name.starts_with(term["values"][0].as_str().unwrap()), "{name}");
            assert_eq!(volume["spec"]["local"]["path"], format!("/var/lib/volumes/{name}"));
            let alone = !name.ends_with("-0");
            let mode = if alone { "ReadWriteOncePod" } else { "ReadWriteOnce" };
            assert_eq!(volume["spec"]["accessModes"], json!([mode]), "{name}: it may have one mode only");
        }
    }

    #[test]
    fn names_are_asked_on_the_node_itself_at_the_address_that_kubelets_tell() {
        let list = all(0);
        let service = list["items"].as_array().unwrap().iter().find(|item| item["kind"] == "Service").unwrap();
        assert_eq!(service["spec"]["internalTrafficPolicy"], "Local");
        assert_eq!(service["spec"]["clusterIP"], "10.96.0.10");
        assert!(corefile().contains("kubernetes cluster.local in-addr.arpa"));
    }
}
