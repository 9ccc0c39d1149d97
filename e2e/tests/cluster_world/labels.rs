//! Labels of pods when the API server takes some of them and not others: `primary` goes on last, and never beside another.

use std::collections::BTreeMap;

use bloodraven_api::keys;
use bloodraven_brain::group::Outward;
use bloodraven_brain::group::command::Label;
use bloodraven_brain::name::{Instance, Member};
use bloodraven_cluster::ClusterWorld;
use bloodraven_operator::world::World as _;
use serde_json::{Value, json};

use super::stage::*;

/// An account that may look at everything and change these pods alone.
fn may_change(namespace: &str, pods: &[&str]) {
    let rules = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["patch"], "resourceNames": pods}]);
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"name": "labels", "namespace": namespace}, "rules": rules});
    let reader = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "labels-reads"},
        "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}]});
    let subject = json!([{"kind": "ServiceAccount", "name": "bloodraven", "namespace": namespace}]);
    let binding = |kind: &str, role_kind: &str, role: &str| {
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind,
            "metadata": {"name": role, "namespace": namespace}, "subjects": subject,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role_kind, "name": role}})
    };
    let mut reads = binding("ClusterRoleBinding", "ClusterRole", "labels-reads");
    reads["metadata"] = json!({"name": "labels-reads"});
    for object in [role, reader, binding("RoleBinding", "Role", "labels"), reads] {
        apply(server(), &object.to_string());
    }
}

/// Role and health of each pod.
fn carried(namespace: &str, pods: &[&str]) -> Vec<(String, String)> {
    let label = |pod: &Value, key: &str| pod["metadata"]["labels"][key].as_str().unwrap_or_default().to_owned();
    let one = |name: &&str| {
        let pod = get("pod", namespace, name);
        (label(&pod, keys::LABEL_ROLE), label(&pod, keys::LABEL_HEALTHY))
    };
    pods.iter().map(one).collect()
}

/// K-01: labels that were denied are put on once they are allowed.
/// K-03: `primary` is never put on beside another one, so its Service never has two endpoints.
#[tokio::test]
async fn a_label_that_is_denied_holds_up_no_other_and_primary_is_never_put_beside_primary() {
    const PODS: [&str; 4] = ["old", "sick", "well", "next"];
    let namespace = "relabelled";
    let (_, group) = stage(namespace).await;
    for (name, site) in [("old", "iad"), ("sick", "iad"), ("well", "iad"), ("next", "pdx")] {
        apply(server(), &pod(namespace, name, site, "relabelled-n1").to_string());
    }
    order(&["label", "pod", "-n", namespace, "old", "--overwrite", &format!("{}=primary", keys::LABEL_ROLE)]);
    may_change(namespace, &["well", "next"]);
    let client = kube::Client::try_from(config_of(&install(namespace, &[])).await).unwrap();
    let world = ClusterWorld::new(&client, places(namespace));
    let [iad, pdx] = sites();
    let object = wanted(&world, &group).await;
    let uid = get("pod", namespace, "next")["metadata"]["uid"].as_str().unwrap().to_owned();
    let wish = Outward {
        primary: Some(Member { site: pdx, instance: Instance::new(&uid, "store") }),
        labels: BTreeMap::from([(iad, Label { fenced: false, healthy: Some(true) })]),
        ..Outward::default()
    };
    // Until the list of pods is whole, and then again and again, as the brain does: nobody tells of a right that was given.
    let show = async |as_seen: fn(&[(String, String)]) -> bool| {
        again_until("labels as they should be", async || {
            let shown = world.show(&group, &object, &wish).await.ok()?;
            as_seen(&carried(namespace, &PODS)).then_some(shown.labels)
        })
        .await
    };
    let row = |role: &str, healthy: &str| (role.to_owned(), healthy.to_owned());
    let well = |all: &[(String, String)]| all[2].1 == "yes";
    assert!(!show(well).await, "two are not as wanted");
    let (replica, denied) = (row("replica", "yes"), row("replica", "no"));
    let before = [row("primary", "no"), denied.clone(), replica.clone(), denied.clone()];
    assert_eq!(carried(namespace, &PODS), before, "nobody gets `primary` beside `old`");

    // That one may be changed: the other that is denied is a replica, and stands in nobody's way.
    may_change(namespace, &["old", "well", "next"]);
    assert!(!show(|all| all[3].0 == "primary").await, "one is not as wanted");
    let after = [replica.clone(), denied, replica.clone(), row("primary", "no")];
    assert_eq!(carried(namespace, &PODS), after);

    may_change(namespace, &PODS);
    assert!(show(|all| all[1].1 == "yes").await, "all are as wanted");
    assert_eq!(carried(namespace, &PODS), [replica.clone(), replica.clone(), replica, row("primary", "no")]);
}
