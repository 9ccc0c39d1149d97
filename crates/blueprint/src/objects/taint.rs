//! Which nodes carry the read-only taint of a group.
//!
//! In: a plan, which sites are to be tainted, the nodes as they are. Out: the taints of every node that has to change, in
//! order. Must not: touch a taint of anyone else, or taint a node that the holder uses, too.

use std::collections::{BTreeMap, BTreeSet};

use bloodraven_api::keys::{TAINT_EFFECT, TAINT_VALUE, taint_key};
use k8s_openapi::api::core::v1::{Node, Taint};

use super::{Plan, SitePlan};

/// A node and all the taints that it shall have.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeTaint {
    /// The node.
    pub node: String,
    /// The version that was looked at: the change holds for no other.
    pub resource_version: Option<String>,
    /// All of them, foreign ones as they are.
    pub taints: Vec<Taint>,
    /// Whether ours is among them.
    pub tainted: bool,
}

/// What is to be done.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Taints {
    /// First those that get the taint, then those that lose it.
    pub changes: Vec<NodeTaint>,
    /// Nodes that belong to a site that is to be tainted and to one that is not, with both; they stay untainted.
    pub conflicts: BTreeMap<String, BTreeSet<String>>,
}

/// Compares what nodes carry with what they should. `read_only` are the sites whose nodes carry the taint.
pub fn taints(plan: &Plan<'_>, read_only: &BTreeSet<&str>, nodes: &[Node]) -> Taints {
    let mut found = Taints::default();
    for node in nodes {
        let sites: BTreeSet<&str> = plan
            .sites()
            .iter()
            .filter(|site| matches(node, &site.spec.taint_node_selector))
            .map(SitePlan::name)
            .collect();
        if sites.is_empty() {
            continue;
        }
        let tainted = sites.is_subset(read_only);
        if !tainted && !sites.is_disjoint(read_only) {
            let sites = sites.iter().map(|site| (*site).to_owned()).collect();
            found.conflicts.insert(node.metadata.name.clone().unwrap_or_default(), sites);
        }
        found.changes.extend(change(plan.name(), node, tainted));
    }
    found.changes.sort_by_key(|change| !change.tainted);
    found
}

/// Takes the taint off every node that has it, whatever it was for: the group goes.
pub fn untaint(group: &str, nodes: &[Node]) -> Vec<NodeTaint> {
    nodes.iter().filter_map(|node| change(group, node, false)).collect()
}

fn matches(node: &Node, selector: &BTreeMap<String, String>) -> bool {
    let labels = node.metadata.labels.as_ref();
    selector.iter().all(|(key, value)| labels.and_then(|labels| labels.get(key)) == Some(value))
}

fn change(group: &str, node: &Node, tainted: bool) -> Option<NodeTaint> {
    let key = taint_key(group);
    let present: Vec<Taint> = node.spec.as_ref().and_then(|spec| spec.taints.clone()).unwrap_or_default();
    let ours = |taint: &Taint| taint.key == key;
    let right = |taint: &Taint| taint.effect == TAINT_EFFECT && taint.value.as_deref() == Some(TAINT_VALUE);
    let is_there = present.iter().filter(|taint| ours(taint)).count() == 1
        && present.iter().any(|taint| ours(taint) && right(taint));
    let in_step = if tainted { is_there } else { !present.iter().any(ours) };
    if in_step {
        return None;
    }
    let mut taints: Vec<Taint> = present.into_iter().filter(|taint| !ours(taint)).collect();
    if tainted {
        let value = Some(TAINT_VALUE.to_owned());
        taints.push(Taint { key, value, effect: TAINT_EFFECT.to_owned(), time_added: None });
    }
    let metadata = &node.metadata;
    Some(NodeTaint {
        node: metadata.name.clone().unwrap_or_default(),
        resource_version: metadata.resource_version.clone(),
        taints,
        tainted,
    })
}
