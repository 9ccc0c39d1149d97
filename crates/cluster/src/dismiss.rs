//! The end of a group: its taints come off, its pods are released, its object may go.
//!
//! In: a group that is being deleted, or pods whose group is gone. Out: nothing of it holds anybody up. Must not: delete a
//! volume; what `volumeRetention` says is written into the claims' owners. Nor let one go that the last word was to keep:
//! owners that an earlier spec gave are taken off before the group goes.

use crate::pods;
use crate::rest::{Fault, Rest};
use crate::seen::SeenPod;
use crate::watches::Watches;
use bloodraven_api::group::VolumeRetention;
use bloodraven_api::keys::{FINALIZER_GROUP, FINALIZER_INSTANCE, LABEL_FAILOVER_GROUP};
use bloodraven_blueprint::objects::{NodeTaint, untaint};
use bloodraven_operator::world::{GroupId, Refused, Undismissed};
use serde_json::{Value, json};

pub(crate) async fn dismiss(
    rest: &Rest,
    watches: &Watches,
    group: &GroupId,
    patience: bool,
) -> Result<(), Undismissed> {
    let unseen = || Refused::Denied { because: "the list of pods is not whole yet".to_owned() };
    let nodes = match watches.nodes.all() {
        None if patience => {
            return Err(Undismissed::Tainted { because: "the list of nodes is not whole yet".to_owned() });
        }
        nodes => nodes.unwrap_or_default(),
    };
    let nodes: Vec<_> = nodes.iter().map(|node| (**node).clone()).collect();
    for change in untaint(&group.name, &nodes) {
        if let Err(because) = set_taints(rest, &change).await {
            if patience {
                return Err(Undismissed::Tainted { because });
            }
            tracing::warn!(fg = %group, error = because, "a taint stays: the group goes without waiting longer");
        }
    }
    for pod in watches.pods.of(group).ok_or_else(unseen)? {
        if holds(&pod) {
            pods::release(rest, &pod).await?;
        }
    }
    Ok(let_go(rest, group).await?)
}

/// Bound to the version that was looked at: another's taint that came meanwhile makes it fail.
pub(crate) async fn set_taints(rest: &Rest, change: &NodeTaint) -> Result<(), String> {
    let NodeTaint { node, resource_version, taints, tainted: _ } = change;
    let body = json!({ "metadata": { "resourceVersion": resource_version }, "spec": { "taints": taints } });
    let set = rest.merge(&format!("/api/v1/nodes/{node}"), &body).await;
    set.map(drop).map_err(|fault| format!("node {node}: {fault}"))
}

fn holds(pod: &SeenPod) -> bool {
    pod.meta.is_held_by(FINALIZER_INSTANCE)
}

/// Takes our finalizer off the group.
async fn let_go(rest: &Rest, group: &GroupId) -> Result<(), Refused> {
    let path = crate::group::path(group);
    let Some(object) = rest.get(&path).await.map_err(Fault::refused)? else { return Ok(()) };
    let all = object["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    let others: Vec<&Value> = all.iter().filter(|it| *it != FINALIZER_GROUP).collect();
    if others.len() == all.len() {
        return Ok(());
    }
    if object["spec"]["volumeRetention"] != VolumeRetention::Delete.as_str() {
        keep_volumes(rest, group, &object["metadata"]["uid"]).await?;
    }
    let change =
        json!({ "metadata": { "resourceVersion": object["metadata"]["resourceVersion"], "finalizers": others } });
    rest.merge(&path, &change).await.map(drop).map_err(Fault::refused)
}

/// Takes the group off its claims' owners: what it owns goes with it. From the store itself: what a watch has not shown yet
/// would be lost for good.
async fn keep_volumes(rest: &Rest, group: &GroupId, uid: &Value) -> Result<(), Refused> {
    let folder = format!("/api/v1/namespaces/{}/persistentvolumeclaims", group.namespace);
    let ours = format!("{folder}?labelSelector={LABEL_FAILOVER_GROUP}%3D{}", group.name);
    let claims = rest.get(&ours).await.map_err(Fault::refused)?.unwrap_or_default();
    for claim in claims["items"].as_array().into_iter().flatten() {
        let metadata = &claim["metadata"];
        let owners = metadata["ownerReferences"].as_array().cloned().unwrap_or_default();
        let others: Vec<&Value> = owners.iter().filter(|owner| owner["uid"] != *uid).collect();
        if others.len() == owners.len() {
            continue;
        }
        let change = json!({ "metadata": { "uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"],
            "ownerReferences": others } });
        let path = format!("{folder}/{}", metadata["name"].as_str().unwrap_or_default());
        match rest.merge(&path, &change).await {
            Ok(_) | Err(Fault::Answer { code: 404, .. }) => {}
            Err(fault) => return Err(fault.refused()),
        }
    }
    Ok(())
}

/// Pods that are being deleted and whose group is gone.
pub(crate) async fn release_orphans(rest: &Rest, watches: &Watches) -> Result<(), Refused> {
    let Some(pods) = watches.pods.all().filter(|_| watches.groups.is_whole()) else { return Ok(()) };
    for pod in pods.iter().filter(|pod| pod.meta.deleting && holds(pod)) {
        let group = pod.meta.label(LABEL_FAILOVER_GROUP).map(|name| GroupId::new(&pod.meta.namespace, name));
        if group.is_none_or(|group| watches.groups.one(&group, &group.name).is_none()) {
            pods::release(rest, pod).await?;
        }
    }
    Ok(())
}
