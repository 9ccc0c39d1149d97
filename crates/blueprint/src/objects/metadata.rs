//! Names, labels and owners of objects.
//!
//! In: a plan. Out: metadata, selectors, and whose an object is. Must not: label a pod with a role that it may lose; the
//! leader moves those, and a template with them would roll pods.

use std::collections::BTreeMap;

use bloodraven_api::keys::{
    API_GROUP, API_VERSION, Application, FIELD_MANAGER, LABEL_FAILOVER_GROUP, LABEL_INSTANCE, LABEL_MANAGED_BY,
    LABEL_NAME, LABEL_SITE,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta, OwnerReference};

use super::Plan;

/// The kind of a group.
pub const GROUP_KIND: &str = "MysqlFailoverGroup";

/// Labels of an object: of one site, or of the group.
pub(super) fn labels(app: Application, group: &str, site: Option<&str>) -> BTreeMap<String, String> {
    let mut labels = selector(app, group, site);
    labels.insert(LABEL_MANAGED_BY.to_owned(), FIELD_MANAGER.to_owned());
    labels.insert(LABEL_FAILOVER_GROUP.to_owned(), group.to_owned());
    labels
}

/// The labels by which pods are found.
pub(super) fn selector(app: Application, group: &str, site: Option<&str>) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::from([
        (LABEL_NAME.to_owned(), app.as_str().to_owned()),
        (LABEL_INSTANCE.to_owned(), group.to_owned()),
    ]);
    labels.extend(site.map(|site| (LABEL_SITE.to_owned(), site.to_owned())));
    labels
}

pub(super) fn label_selector(labels: BTreeMap<String, String>) -> LabelSelector {
    LabelSelector { match_labels: Some(labels), match_expressions: None }
}

/// Metadata of an object that goes with its group.
pub(super) fn owned(plan: &Plan<'_>, app: Application, name: String, site: Option<&str>) -> ObjectMeta {
    ObjectMeta { owner_references: Some(vec![owner(plan)]), ..kept(plan, app, name, site) }
}

/// Metadata of an object that outlives its group.
pub(super) fn kept(plan: &Plan<'_>, app: Application, name: String, site: Option<&str>) -> ObjectMeta {
    ObjectMeta {
        name: Some(name),
        namespace: Some(plan.namespace().to_owned()),
        labels: Some(labels(app, plan.name(), site)),
        ..ObjectMeta::default()
    }
}

/// The group as an owner.
pub fn owner(plan: &Plan<'_>) -> OwnerReference {
    OwnerReference {
        api_version: format!("{API_GROUP}/{API_VERSION}"),
        kind: GROUP_KIND.to_owned(),
        name: plan.name().to_owned(),
        uid: plan.uid().to_owned(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// Who else has the object of a name that a group needs, in words; `None`: the group may apply its own.
///
/// An object without a controller is the group's if it was made for a group of that name (a claim that was kept), or if
/// it has no manager.
pub fn foreign(plan: &Plan<'_>, present: &ObjectMeta) -> Option<String> {
    let controller = present.owner_references.iter().flatten().find(|owner| owner.controller == Some(true));
    if let Some(owner) = controller {
        return (owner.uid != plan.uid()).then(|| format!("{} {}", owner.kind, owner.name));
    }
    let label = |key: &str| present.labels.as_ref().and_then(|labels| labels.get(key)).map(String::as_str);
    match (label(LABEL_MANAGED_BY), label(LABEL_FAILOVER_GROUP)) {
        (None, _) => None,
        (Some(FIELD_MANAGER), Some(group)) if group == plan.name() => None,
        (Some(FIELD_MANAGER), Some(group)) => Some(format!("failover group {group}")),
        (Some(manager), _) => Some(manager.to_owned()),
    }
}
