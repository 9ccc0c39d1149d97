//! Pods: their finalizer, their labels.
//!
//! In: a pod as a watch showed it. Out: a change of exactly that pod. Must not: touch a pod that took its name since.

use crate::rest::{Fault, Rest};
use bloodraven_api::keys::FINALIZER_INSTANCE;
use bloodraven_operator::world::Refused;
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;
use std::collections::BTreeMap;

fn path(pod: &Pod) -> String {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    format!("/api/v1/namespaces/{namespace}/pods/{}", pod.metadata.name.as_deref().unwrap_or_default())
}

/// Takes our finalizer off; done also if the pod is gone.
pub(crate) async fn release(rest: &Rest, pod: &Pod) -> Result<(), Refused> {
    let all = pod.metadata.finalizers.iter().flatten();
    let others: Vec<&String> = all.filter(|finalizer| *finalizer != FINALIZER_INSTANCE).collect();
    // Bound to the version: the list is written whole, and another's finalizer must not be lost with ours.
    let change = json!({ "metadata": {
        "uid": pod.metadata.uid,
        "resourceVersion": pod.metadata.resource_version,
        "finalizers": others,
    } });
    match rest.merge(&path(pod), &change).await {
        Ok(_) | Err(Fault::Answer { code: 404, .. }) => Ok(()),
        Err(fault) => Err(fault.refused()),
    }
}

/// Sets these labels on exactly that pod.
pub(crate) async fn label(rest: &Rest, pod: &Pod, labels: &BTreeMap<&str, &str>) -> Result<(), Fault> {
    let change = json!({ "metadata": { "uid": pod.metadata.uid, "labels": labels } });
    rest.merge(&path(pod), &change).await.map(drop)
}
