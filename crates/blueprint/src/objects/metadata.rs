//! Names, labels and owners of objects.
//!
//! In: a plan, or who a group is. Out: metadata, selectors, and whose an object is. Must not: label a pod with a role that it may lose; the
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

/// Who a group is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity<'a> {
    /// `metadata.name`.
    pub name: &'a str,
    /// `metadata.namespace`.
    pub namespace: &'a str,
    /// `metadata.uid`.
    pub uid: &'a str,
}

impl<'a> From<&Plan<'a>> for Identity<'a> {
    fn from(plan: &Plan<'a>) -> Self {
        Self { name: plan.name(), namespace: plan.namespace(), uid: plan.uid() }
    }
}

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
pub(super) fn owned<'a>(
    group: impl Into<Identity<'a>>,
    app: Application,
    name: String,
    site: Option<&str>,
) -> ObjectMeta {
    let group = group.into();
    ObjectMeta { owner_references: Some(vec![owner(group)]), ..kept(group, app, name, site) }
}

/// Metadata of an object that outlives its group.
pub(super) fn kept<'a>(
    group: impl Into<Identity<'a>>,
    app: Application,
    name: String,
    site: Option<&str>,
) -> ObjectMeta {
    let group = group.into();
    ObjectMeta {
        name: Some(name),
        namespace: Some(group.namespace.to_owned()),
        labels: Some(labels(app, group.name, site)),
        ..ObjectMeta::default()
    }
}

/// The group as an owner.
pub fn owner<'a>(group: impl Into<Identity<'a>>) -> OwnerReference {
    let group = group.into();
    OwnerReference {
        api_version: format!("{API_GROUP}/{API_VERSION}"),
        kind: GROUP_KIND.to_owned(),
        name: group.name.to_owned(),
        uid: group.uid.to_owned(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// Who else has the object of a name that a group needs, in words; `None`: the group may apply its own.
///
/// An object without a controller is the group's if it was made for a group of that name (a claim that was kept), or if
/// it has no manager.
pub fn foreign<'a>(group: impl Into<Identity<'a>>, present: &ObjectMeta) -> Option<String> {
    let group = group.into();
    let controller = present.owner_references.iter().flatten().find(|owner| owner.controller == Some(true));
    if let Some(owner) = controller {
        return (owner.uid != group.uid).then(|| format!("{} {}", owner.kind, owner.name));
    }
    let label = |key: &str| present.labels.as_ref().and_then(|labels| labels.get(key)).map(String::as_str);
    match (label(LABEL_MANAGED_BY), label(LABEL_FAILOVER_GROUP)) {
        (None, _) => None,
        (Some(FIELD_MANAGER), Some(named)) if named == group.name => None,
        (Some(FIELD_MANAGER), Some(named)) => Some(format!("failover group {named}")),
        (Some(manager), _) => Some(manager.to_owned()),
    }
}
