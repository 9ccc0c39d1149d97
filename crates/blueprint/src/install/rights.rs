//! What the operator may do, as one table.
//!
//! In: where it is installed and what it watches. Out: roles and bindings. Must not: give a right over the whole cluster
//! where one over a namespace will do: its own Lease, the kubelets' Leases, and with `--watch-namespace` all but nodes.

use bloodraven_api::keys::API_GROUP;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::{Install, LEASE, NAME, NODE_LEASE_NAMESPACE, cluster_metadata};

/// For objects that are looked at and applied; applying one that is not there makes it.
const KEPT: &[&str] = &["get", "create", "patch"];
/// For those that are also watched, and go with a site.
const GONE_WITH_A_SITE: &[&str] = &["get", "list", "watch", "create", "patch", "delete"];

/// One row: API group, resources, verbs.
type Row = (&'static str, &'static [&'static str], &'static [&'static str]);

/// In every namespace with groups. What is deleted is a site's that is not in the spec any more; everything else goes with
/// its group.
const GROUPS: &[Row] = &[
    ("", &["configmaps", "services", "persistentvolumeclaims"], GONE_WITH_A_SITE),
    // Labels, and the finalizer that keeps a pod's last status.
    ("", &["pods"], &["list", "watch", "patch"]),
    // Named ones, never a list: what is in other Secrets is nobody's business.
    ("", &["secrets"], KEPT),
    ("events.k8s.io", &["events"], &["create", "patch"]),
    ("apps", &["deployments"], GONE_WITH_A_SITE),
    ("policy", &["poddisruptionbudgets"], &["get", "list", "watch", "create", "patch"]),
    (API_GROUP, &["mysqlfailovergroups"], &["get", "list", "watch", "patch"]),
    (API_GROUP, &["mysqlfailovergroups/status"], &["update"]),
    // Where owners are checked, whoever makes an object that its owner waits for needs this.
    (API_GROUP, &["mysqlfailovergroups/finalizers"], &["update"]),
    ("externaldns.k8s.io", &["dnsendpoints"], KEPT),
    ("cert-manager.io", &["certificates"], KEPT),
];

/// Nodes are in no namespace.
const NODES: &[Row] = &[("", &["nodes"], &["list", "watch", "patch"])];

/// In the operator's own namespace.
const ELECTION: &[Row] = &[
    ("coordination.k8s.io", &["leases"], &["get", "create", "update"]),
    // Where the one that leads is, for sidecars that asked another.
    ("", &["pods"], &["get"]),
];

/// Where kubelets renew theirs: whether what one says of a pod is fresh.
const NODE_LEASES: &[Row] = &[("coordination.k8s.io", &["leases"], &["get"])];

/// All rights of the operator.
#[derive(Clone, Debug, PartialEq)]
pub struct Rights {
    /// Over the whole cluster.
    pub cluster: ClusterRights,
    /// Over one namespace each.
    pub namespaced: Vec<(Role, RoleBinding)>,
}

/// Rights over the whole cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterRights {
    /// What.
    pub role: ClusterRole,
    /// Who.
    pub binding: ClusterRoleBinding,
}

/// The rights that an installation needs.
pub fn rights(install: &Install) -> Rights {
    let watched = &install.watch_namespaces;
    let everywhere = if watched.is_empty() { [NODES, GROUPS].concat() } else { NODES.to_vec() };
    let role =
        ClusterRole { metadata: cluster_metadata(NAME), rules: Some(rules(&everywhere)), ..ClusterRole::default() };
    let binding = ClusterRoleBinding {
        metadata: cluster_metadata(NAME),
        role_ref: reference("ClusterRole", NAME),
        subjects: Some(vec![subject(install)]),
    };
    let mut namespaced = vec![
        in_namespace(install, &format!("{NAME}-election"), &install.namespace, ELECTION),
        in_namespace(install, &format!("{NAME}-nodes"), NODE_LEASE_NAMESPACE, NODE_LEASES),
    ];
    namespaced.extend(watched.iter().map(|namespace| in_namespace(install, NAME, namespace, GROUPS)));
    Rights { cluster: ClusterRights { role, binding }, namespaced }
}

fn in_namespace(install: &Install, name: &str, namespace: &str, rows: &[Row]) -> (Role, RoleBinding) {
    let metadata = || ObjectMeta { namespace: Some(namespace.to_owned()), ..cluster_metadata(name) };
    let mut rules = rules(rows);
    if rows == ELECTION {
        // The one Lease; making it cannot be bound to a name.
        rules = election();
    }
    let role = Role { metadata: metadata(), rules: Some(rules) };
    let binding =
        RoleBinding { metadata: metadata(), role_ref: reference("Role", name), subjects: Some(vec![subject(install)]) };
    (role, binding)
}

fn election() -> Vec<PolicyRule> {
    let mut rules = rules(ELECTION);
    let lease = rules.remove(0);
    let making = PolicyRule { verbs: owned(&["create"]), ..lease.clone() };
    let keeping =
        PolicyRule { verbs: owned(&["get", "update"]), resource_names: Some(vec![LEASE.to_owned()]), ..lease };
    [making, keeping].into_iter().chain(rules).collect()
}

fn rules(rows: &[Row]) -> Vec<PolicyRule> {
    let rule = |(group, resources, verbs): &Row| PolicyRule {
        api_groups: Some(vec![(*group).to_owned()]),
        resources: Some(owned(resources)),
        verbs: owned(verbs),
        ..PolicyRule::default()
    };
    rows.iter().map(rule).collect()
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn reference(kind: &str, name: &str) -> RoleRef {
    RoleRef { api_group: "rbac.authorization.k8s.io".to_owned(), kind: kind.to_owned(), name: name.to_owned() }
}

fn subject(install: &Install) -> Subject {
    Subject {
        kind: "ServiceAccount".to_owned(),
        name: NAME.to_owned(),
        namespace: Some(install.namespace.clone()),
        api_group: None,
    }
}
