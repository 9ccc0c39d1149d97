//! Taints of the nodes of sites that lost authority, so that what must write leaves them.
//!
//! In: nodes as a watch showed them, the wish. Out: done, or why not. Must not: touch another's taint, taint a node that
//! the primary's site has as well, or untaint the new primary's nodes before the old one's are tainted.

use crate::rest::Rest;
use bloodraven_api::group::SiteSpec;
use bloodraven_api::keys::{TAINT_EFFECT, TAINT_VALUE, taint_key};
use bloodraven_brain::name::Site;
use bloodraven_operator::world::GroupId;
use k8s_openapi::api::core::v1::{Node, Taint};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) async fn show(
    rest: &Rest,
    nodes: &[Arc<Node>],
    group: &GroupId,
    sites: &[SiteSpec],
    primary: Option<&Site>,
    wanted: &BTreeMap<Site, bool>,
) -> Result<(), String> {
    let key = taint_key(&group.name);
    let (plan, conflicts) = plan(nodes, &key, sites, primary, wanted);
    for (node, taint) in plan {
        set(rest, node, &key, taint).await?;
    }
    if conflicts.is_empty() {
        return Ok(());
    }
    Err(format!("node {} belongs to the primary's site and to another; left untainted", conflicts.join(", ")))
}

/// Which nodes are to change, those to be tainted first; and those that two sites claim.
fn plan<'a>(
    nodes: &'a [Arc<Node>],
    key: &str,
    sites: &[SiteSpec],
    primary: Option<&Site>,
    wanted: &BTreeMap<Site, bool>,
) -> (Vec<(&'a Node, bool)>, Vec<String>) {
    let (mut taint, mut untaint, mut conflicts) = (Vec::new(), Vec::new(), Vec::new());
    for node in nodes {
        let of: Vec<&SiteSpec> = sites.iter().filter(|site| matches(node, site)).collect();
        if of.is_empty() {
            continue;
        }
        let of_primary = of.iter().any(|site| primary.is_some_and(|primary| primary.as_str() == site.name));
        let asked = of.iter().any(|site| wanted.get(&Site::new(&site.name)) == Some(&true));
        if of_primary && asked {
            conflicts.push(node.metadata.name.clone().unwrap_or_default());
        }
        let should = asked && !of_primary;
        if should != is_tainted(node, key) {
            if should { &mut taint } else { &mut untaint }.push((&**node, should));
        }
    }
    taint.append(&mut untaint);
    (taint, conflicts)
}

fn matches(node: &Node, site: &SiteSpec) -> bool {
    let labels = node.metadata.labels.as_ref();
    let has = |(key, value): (&String, &String)| labels.and_then(|labels| labels.get(key)) == Some(value);
    !site.taint_node_selector.is_empty() && site.taint_node_selector.iter().all(has)
}

fn taints(node: &Node) -> impl Iterator<Item = &Taint> {
    node.spec.iter().flat_map(|spec| spec.taints.iter().flatten())
}

fn is_tainted(node: &Node, key: &str) -> bool {
    taints(node).any(|taint| taint.key == key && taint.effect == TAINT_EFFECT)
}

/// The whole list, bound to the version of the node: another's taint that came meanwhile makes it fail, and the next tick
/// sees it.
async fn set(rest: &Rest, node: &Node, key: &str, taint: bool) -> Result<(), String> {
    let name = node.metadata.name.as_deref().unwrap_or_default();
    let mut list: Vec<Value> = taints(node).filter(|it| it.key != key).map(|it| json!(it)).collect();
    if taint {
        list.push(json!({ "key": key, "value": TAINT_VALUE, "effect": TAINT_EFFECT }));
    }
    let change =
        json!({ "metadata": { "resourceVersion": node.metadata.resource_version }, "spec": { "taints": list } });
    let set = rest.merge(&format!("/api/v1/nodes/{name}"), &change).await;
    set.map(drop).map_err(|fault| format!("node {name}: {fault}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "shipstream.io/db-readonly-orders";

    fn node(name: &str, labels: Value, taints: Value) -> Arc<Node> {
        let node = json!({"metadata": {"name": name, "labels": labels}, "spec": {"taints": taints}});
        Arc::new(serde_json::from_value(node).expect("a node"))
    }

    fn site(name: &str) -> SiteSpec {
        serde_json::from_value(json!({"name": name, "role": "primary-candidate", "zone": name, "lbIP": "10.0.0.1",
            "taintNodeSelector": {format!("site-{name}"): "yes"},
            "storage": {"storageClassName": "s", "size": "1Gi", "accessMode": "ReadWriteOncePod"}}))
        .expect("a site")
    }

    #[test]
    fn old_nodes_are_tainted_before_new_ones_are_freed_and_shared_ones_stay_free() {
        let tainted =
            json!([{"key": KEY, "value": "true", "effect": "NoExecute"}, {"key": "other", "effect": "NoSchedule"}]);
        let nodes = [
            node("new", json!({"site-pdx": "yes"}), tainted.clone()),
            node("old", json!({"site-iad": "yes"}), json!([])),
            node("done", json!({"site-iad": "yes"}), tainted.clone()),
            node("both", json!({"site-iad": "yes", "site-pdx": "yes"}), json!([])),
            node("nobody", json!({}), tainted),
        ];
        let sites = [site("iad"), site("pdx")];
        let wanted = BTreeMap::from([(Site::new("iad"), true), (Site::new("pdx"), false)]);
        let (plan, conflicts) = plan(&nodes, KEY, &sites, Some(&Site::new("pdx")), &wanted);
        let told: Vec<_> = plan.iter().map(|(node, taint)| (node.metadata.name.as_deref(), *taint)).collect();
        assert_eq!(told, [(Some("old"), true), (Some("new"), false)]);
        assert_eq!(conflicts, ["both"]);
    }
}
