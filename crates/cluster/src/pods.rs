//! Pods: their finalizer, their labels.
//!
//! In: a pod as a watch showed it. Out: a change of exactly that pod. Must not: touch a pod that took its name since.

use crate::rest::{Fault, Rest};
use crate::seen::SeenPod;
use bloodraven_api::keys::FINALIZER_INSTANCE;
use bloodraven_operator::world::Refused;
use serde_json::json;
use std::collections::BTreeMap;

fn path(pod: &SeenPod) -> String {
    format!("/api/v1/namespaces/{}/pods/{}", pod.meta.namespace, pod.meta.name)
}

/// Takes our finalizer off; done also if the pod is gone.
pub(crate) async fn release(rest: &Rest, pod: &SeenPod) -> Result<(), Refused> {
    let all = pod.meta.finalizers.iter();
    let others: Vec<&str> = all.map(|finalizer| &**finalizer).filter(|it| *it != FINALIZER_INSTANCE).collect();
    // Bound to the version: the list is written whole, and another's finalizer must not be lost with ours.
    let change = json!({ "metadata": {
        "uid": pod.meta.uid,
        "resourceVersion": pod.meta.version,
        "finalizers": others,
    } });
    match rest.merge(&path(pod), &change).await {
        Ok(_) | Err(Fault::Answer { code: 404, .. }) => Ok(()),
        Err(fault) => Err(fault.refused()),
    }
}

/// Sets these labels on exactly that pod.
pub(crate) async fn label(rest: &Rest, pod: &SeenPod, labels: &BTreeMap<&str, &str>) -> Result<(), Fault> {
    let change = json!({ "metadata": { "uid": pod.meta.uid, "labels": labels } });
    rest.merge(&path(pod), &change).await.map(drop)
}
