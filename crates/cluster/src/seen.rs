//! What is kept of the objects that watches show.
//!
//! In: objects as the API server tells them. Out: the few words of each that somebody here asks for, and what follows from
//! the rest. Must not: hold more than that; there may be thousands.

use bloodraven_api::keys::{
    FINALIZER_GROUP, GROUP_UID, LABEL_FAILOVER_GROUP, LABEL_HEALTHY, LABEL_NAME, LABEL_ROLE, LABEL_SITE, SERVER_ID,
    SPEC_HASH,
};
use bloodraven_operator::world::Text;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{
    ContainerState, ContainerStatus, Node, NodeSpec, PersistentVolumeClaim, PersistentVolumeClaimSpec, Pod, PodStatus,
    VolumeResourceRequirements,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::DynamicObject;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What the garbage collector of pods writes into the status of those whose node is gone: nobody saw their containers end.
pub(crate) const COLLECTED: &str = "DeletionByPodGC";

/// Where `kubectl apply` keeps the whole object once more.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The labels and annotations that somebody here reads.
const MARKS: [&str; 8] =
    [LABEL_FAILOVER_GROUP, LABEL_HEALTHY, LABEL_NAME, LABEL_ROLE, LABEL_SITE, GROUP_UID, SERVER_ID, SPEC_HASH];

/// A group: who it is, whether it is held, and its text.
#[derive(Debug)]
pub(crate) struct SeenGroup {
    pub(crate) uid: Box<str>,
    /// Our finalizer is on it.
    pub(crate) held: bool,
    pub(crate) text: Arc<Text>,
}

/// Of an object's metadata.
#[derive(Debug, PartialEq)]
pub(crate) struct Meta {
    pub(crate) namespace: Box<str>,
    pub(crate) name: Box<str>,
    pub(crate) uid: Option<Box<str>>,
    /// `resourceVersion`.
    pub(crate) version: Option<Box<str>>,
    pub(crate) deleting: bool,
    pub(crate) finalizers: Box<[Box<str>]>,
    labels: Marks,
    annotations: Marks,
}

/// Labels or annotations.
type Marks = Box<[(&'static str, Box<str>)]>;

/// A pod: who it is, where it runs, and whether it lives.
#[derive(Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct SeenPod {
    pub(crate) meta: Meta,
    pub(crate) node: Option<Box<str>>,
    /// Some container of it ever ran.
    pub(crate) started: bool,
    /// Its phase is an end.
    pub(crate) finished: bool,
    /// See [`COLLECTED`].
    pub(crate) collected: bool,
    pub(crate) ready: bool,
    /// When the last container ended, by its node's clock; none: some container has not ended, or nobody says when it did.
    pub(crate) ends: Option<Timestamp>,
}

/// A Deployment: what its template is called, and which MySQL it has.
#[derive(Debug, PartialEq)]
pub(crate) struct SeenDeployment {
    pub(crate) meta: Meta,
    pub(crate) mysql: Option<Box<str>>,
}

/// A claim: what cannot be changed, and what is not made smaller.
#[derive(Debug, PartialEq)]
pub(crate) struct SeenClaim {
    pub(crate) meta: Meta,
    spec: Option<ClaimSpec>,
}

#[derive(Debug, PartialEq)]
struct ClaimSpec {
    class: Option<Box<str>>,
    modes: Option<Box<[Box<str>]>>,
    size: Option<Box<str>>,
}

impl Meta {
    fn of(whole: ObjectMeta) -> Self {
        let ObjectMeta { namespace, name, uid, resource_version, deletion_timestamp, finalizers, .. } = whole;
        Self {
            namespace: namespace.unwrap_or_default().into(),
            name: name.unwrap_or_default().into(),
            uid: uid.map(Into::into),
            version: resource_version.map(Into::into),
            deleting: deletion_timestamp.is_some(),
            finalizers: boxed(finalizers.unwrap_or_default()),
            labels: marks(whole.labels),
            annotations: marks(whole.annotations),
        }
    }

    /// None also for a label that is not among [`MARKS`].
    pub(crate) fn label(&self, key: &str) -> Option<&str> {
        get(&self.labels, key)
    }

    /// As above.
    pub(crate) fn annotation(&self, key: &str) -> Option<&str> {
        get(&self.annotations, key)
    }

    pub(crate) fn is_held_by(&self, finalizer: &str) -> bool {
        self.finalizers.iter().any(|it| **it == *finalizer)
    }
}

fn boxed(all: Vec<String>) -> Box<[Box<str>]> {
    all.into_iter().map(Into::into).collect()
}

fn marks(mut all: Option<BTreeMap<String, String>>) -> Marks {
    MARKS.into_iter().filter_map(|key| Some((key, all.as_mut()?.remove(key)?.into()))).collect()
}

fn get<'a>(marks: &'a Marks, key: &str) -> Option<&'a str> {
    marks.iter().find(|(name, _)| *name == key).map(|(_, text)| &**text)
}

/// Without who wrote which field when, and without what somebody applied: each is most of an object, and nobody here asks.
pub(crate) fn group(mut object: DynamicObject) -> SeenGroup {
    object.metadata.managed_fields = None;
    object.metadata.annotations.as_mut().map(|all| all.remove(LAST_APPLIED));
    SeenGroup {
        uid: object.metadata.uid.as_deref().unwrap_or_default().into(),
        held: object.metadata.finalizers.iter().flatten().any(|it| it == FINALIZER_GROUP),
        text: Arc::new(Text::of(&object)),
    }
}

pub(crate) fn pod(pod: Pod) -> SeenPod {
    let status = pod.status.as_ref();
    let conditions = || status.and_then(|status| status.conditions.as_ref()).into_iter().flatten();
    let phase = status.and_then(|status| status.phase.as_deref());
    SeenPod {
        node: pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).map(Into::into),
        started: started(status),
        finished: matches!(phase, Some("Failed" | "Succeeded")),
        collected: conditions().any(|it| it.reason.as_deref() == Some(COLLECTED)),
        ready: conditions().any(|it| it.type_ == "Ready" && it.status == "True"),
        ends: ends(&pod),
        meta: Meta::of(pod.metadata),
    }
}

/// A phase beyond Pending says so even if no container is listed.
fn started(status: Option<&PodStatus>) -> bool {
    let Some(status) = status else { return false };
    let beyond = status.phase.as_deref().is_some_and(|phase| phase != "Pending");
    let ran = |state: &Option<ContainerState>| {
        state.as_ref().is_some_and(|state| state.running.is_some() || state.terminated.is_some())
    };
    beyond || statuses(status).any(|it| it.restart_count > 0 || ran(&it.state) || ran(&it.last_state))
}

fn statuses(status: &PodStatus) -> impl Iterator<Item = &ContainerStatus> {
    status.init_container_statuses.iter().flatten().chain(status.container_statuses.iter().flatten())
}

fn ends(pod: &Pod) -> Option<Timestamp> {
    let (spec, status) = (pod.spec.as_ref()?, pod.status.as_ref()?);
    let containers = spec.init_containers.iter().flatten().chain(&spec.containers);
    let mut last = None;
    for container in containers {
        let state = statuses(status).find(|it| it.name == container.name)?.state.as_ref()?;
        let ended = state.terminated.as_ref()?.finished_at.as_ref()?.0;
        last = last.max(Some(ended));
    }
    last
}

pub(crate) fn deployment(deployment: Deployment) -> SeenDeployment {
    let template = deployment.spec.and_then(|spec| spec.template.spec);
    let mysql = template.and_then(|pod| pod.containers.into_iter().find(|container| container.name == "mysql"));
    SeenDeployment {
        meta: Meta::of(deployment.metadata),
        mysql: mysql.and_then(|container| container.image).map(Into::into),
    }
}

pub(crate) fn claim(claim: PersistentVolumeClaim) -> SeenClaim {
    let spec = claim.spec.map(|spec| ClaimSpec {
        class: spec.storage_class_name.map(Into::into),
        modes: spec.access_modes.map(boxed),
        size: spec.resources.and_then(|it| it.requests?.remove(STORAGE)).map(|size| size.0.into()),
    });
    SeenClaim { meta: Meta::of(claim.metadata), spec }
}

/// What a claim asks for, by its name.
const STORAGE: &str = "storage";

impl SeenClaim {
    /// As the blueprint looks at a claim that is there.
    pub(crate) fn whole(&self) -> PersistentVolumeClaim {
        let annotations = self.meta.annotations.iter().map(|(key, text)| ((*key).to_owned(), text.to_string()));
        let spec = |ClaimSpec { class, modes, size }: &ClaimSpec| PersistentVolumeClaimSpec {
            storage_class_name: class.as_deref().map(str::to_owned),
            access_modes: modes.as_ref().map(|modes| modes.iter().map(ToString::to_string).collect()),
            resources: size.as_deref().map(|size| VolumeResourceRequirements {
                requests: Some(BTreeMap::from([(STORAGE.to_owned(), Quantity(size.to_owned()))])),
                limits: None,
            }),
            ..PersistentVolumeClaimSpec::default()
        };
        PersistentVolumeClaim {
            metadata: ObjectMeta { annotations: Some(annotations.collect()), ..ObjectMeta::default() },
            spec: self.spec.as_ref().map(spec),
            status: None,
        }
    }
}

/// Labels and taints: the images alone that a node says it has are tens of kilobytes.
pub(crate) fn node(node: Node) -> Node {
    let ObjectMeta { name, resource_version, labels, .. } = node.metadata;
    let metadata = ObjectMeta { name, resource_version, labels, ..ObjectMeta::default() };
    let spec = node.spec.map(|spec| NodeSpec { taints: spec.taints, ..NodeSpec::default() });
    Node { metadata, spec, status: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn of_a_pod_stays_what_tells_whether_it_lives() {
        let whole = json!({
            "metadata": {"name": "p", "namespace": "shop", "uid": "u", "labels": {"a": "b", LABEL_SITE: "iad"},
                "annotations": {"c": "d", SPEC_HASH: "h"}, "finalizers": ["f"], "resourceVersion": "7",
                "deletionTimestamp": "2026-01-01T00:00:00Z", "managedFields": [{"manager": "m"}]},
            "spec": {"nodeName": "n", "containers": [{"name": "mysql", "image": "i", "command": ["x"]}]},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
        });
        let SeenPod { meta, node, started, finished, collected, ready, ends } =
            pod(serde_json::from_value(whole).expect("a pod"));
        assert_eq!((&*meta.namespace, &*meta.name, meta.uid.as_deref()), ("shop", "p", Some("u")));
        assert_eq!((meta.version.as_deref(), meta.deleting, node.as_deref()), (Some("7"), true, Some("n")));
        assert!(meta.is_held_by("f") && !meta.is_held_by("g"));
        assert_eq!((meta.label(LABEL_SITE), meta.label("a")), (Some("iad"), None), "nobody asks for the other");
        assert_eq!((meta.annotation(SPEC_HASH), meta.annotation("c")), (Some("h"), None));
        assert_eq!((started, finished, collected, ready, ends), (true, false, false, true, None));
    }

    #[test]
    fn of_a_claim_stays_what_the_next_one_is_compared_with() {
        let whole = json!({
            "metadata": {"name": "c", "annotations": {GROUP_UID: "u", SERVER_ID: "7", "other": "x"}},
            "spec": {"storageClassName": "fast", "accessModes": ["ReadWriteOnce"], "volumeName": "v",
                "resources": {"requests": {"storage": "10Gi"}}},
        });
        let seen = claim(serde_json::from_value(whole).expect("a claim"));
        let again = serde_json::to_value(seen.whole()).expect("JSON");
        assert_eq!(again["metadata"]["annotations"], json!({GROUP_UID: "u", SERVER_ID: "7"}));
        let spec = json!({"storageClassName": "fast", "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "10Gi"}}});
        assert_eq!(again["spec"], spec);
        let empty = claim(PersistentVolumeClaim::default()).whole();
        assert_eq!((empty.spec, empty.metadata.annotations), (None, Some(BTreeMap::new())));
    }

    #[test]
    fn of_a_group_stays_its_text_without_what_is_there_twice() {
        let whole = json!({"apiVersion": "v1", "kind": "K", "metadata": {"name": "g", "uid": "u",
            "finalizers": [FINALIZER_GROUP], "annotations": {LAST_APPLIED: "{}", "mine": "kept"},
            "managedFields": [{"manager": "m"}]}, "spec": {"a": 1}, "status": {"b": [2]}});
        let seen = group(serde_json::from_value(whole.clone()).expect("an object"));
        assert_eq!((&*seen.uid, seen.held), ("u", true));
        let mut wanted = whole;
        wanted["metadata"]["annotations"] = json!({"mine": "kept"});
        wanted["metadata"].as_object_mut().expect("metadata").remove("managedFields");
        assert_eq!(seen.text.read(), wanted);
    }
}
