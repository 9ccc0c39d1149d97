//! Taints: on the right nodes, in the right order, and nothing of anyone else's.

use std::collections::BTreeSet;

use bloodraven_blueprint::objects::{NodeTaint, Taints, taints, untaint};
use k8s_openapi::api::core::v1::Node;
use serde_json::{Value, json};

use super::{edited, with_plan};

const KEY: &str = "shipstream.io/db-readonly-orders";

fn node(name: &str, sites: &[&str], taints: &Value) -> Node {
    let mut labels = json!({"shipstream.io/failover-group.orders": "true"});
    // A node has one value a label; two sites share one by selectors of their own.
    for site in sites {
        labels["shipstream.io/site.orders"] = json!(site);
        labels[format!("site/{site}")] = json!("yes");
    }
    let node =
        json!({"metadata": {"name": name, "resourceVersion": "7", "labels": labels}, "spec": {"taints": taints}});
    serde_json::from_value(node).expect("a node")
}

fn ours() -> Value {
    json!({"key": KEY, "value": "true", "effect": "NoExecute"})
}

fn compare(read_only: &[&str], nodes: &[Node]) -> Taints {
    let read_only: BTreeSet<&str> = read_only.iter().copied().collect();
    with_plan(&edited(&json!({})), |plan| taints(plan, &read_only, nodes))
}

fn keys(change: &NodeTaint) -> Vec<&str> {
    change.taints.iter().map(|taint| taint.key.as_str()).collect()
}

/// K-10: only nodes of the site that lost are tainted.
#[test]
fn nodes_of_the_site_that_lost_are_tainted_before_those_of_the_winner_are_freed() {
    let foreign = json!({"key": "a", "effect": "NoSchedule"});
    let nodes = [
        node("new", &["pdx"], &json!([foreign, ours()])),
        node("old", &["iad"], &json!([foreign])),
        node("idle", &["fra"], &json!([])),
        node("elsewhere", &[], &json!([])),
    ];
    let found = compare(&["iad"], &nodes);
    let rows: Vec<_> =
        found.changes.iter().map(|change| (change.node.as_str(), change.tainted, keys(change))).collect();
    assert_eq!(rows, [("old", true, vec!["a", KEY]), ("new", false, vec!["a"])]);
    assert!(found.changes.iter().all(|change| change.resource_version.as_deref() == Some("7")));
    assert!(found.conflicts.is_empty());
}

/// K-10: foreign taints are kept.
#[test]
fn what_is_in_step_stays_and_what_is_wrong_is_put_right() {
    let wrong = json!({"key": KEY, "value": "true", "effect": "NoSchedule"});
    let rows = [
        (json!([ours()]), true, 0),
        (json!([]), true, 1),
        (json!([wrong]), true, 1),
        (json!([ours(), wrong]), true, 1),
        (json!([]), false, 0),
        (json!([ours()]), false, 1),
        (json!([wrong]), false, 1),
    ];
    for (present, read_only, expect) in rows {
        let read_only: &[&str] = if read_only { &["iad"] } else { &[] };
        let found = compare(read_only, &[node("n", &["iad"], &present)]);
        assert_eq!(found.changes.len(), expect, "{present} {read_only:?}");
        for change in found.changes {
            assert_eq!(change.taints.len(), read_only.len(), "{change:?}");
        }
    }
}

/// K-10: a node of the holder is never tainted, whoever else is on it.
#[test]
fn a_node_that_two_sites_share_is_left_free() {
    let selector = |site: &str| json!({format!("site/{site}"): "yes"});
    let group = edited(&json!({"/spec/sites/0/taintNodeSelector": selector("iad"),
                               "/spec/sites/1/taintNodeSelector": selector("pdx")}));
    let shared = [node("shared", &["iad", "pdx"], &json!([ours()]))];
    let found = with_plan(&group, |plan| taints(plan, &BTreeSet::from(["iad"]), &shared));
    assert_eq!(found.conflicts["shared"], BTreeSet::from(["iad".to_owned(), "pdx".to_owned()]));
    assert_eq!(found.changes.len(), 1);
    assert!(!found.changes[0].tainted);
    let found = with_plan(&group, |plan| taints(plan, &BTreeSet::from(["iad", "pdx"]), &shared));
    assert_eq!((found.changes.len(), found.conflicts.len()), (0, 0), "both agree");
}

/// K-10: the key is the group's own.
#[test]
fn a_group_that_goes_frees_every_node_and_leaves_other_groups_alone() {
    let billing = json!({"key": "shipstream.io/db-readonly-billing", "value": "true", "effect": "NoExecute"});
    let nodes = [node("a", &[], &json!([ours(), billing])), node("b", &["iad"], &json!([billing]))];
    let found = untaint("orders", &nodes);
    assert_eq!(
        found.iter().map(|change| (change.node.as_str(), keys(change))).collect::<Vec<_>>(),
        [("a", vec!["shipstream.io/db-readonly-billing"])]
    );
}
