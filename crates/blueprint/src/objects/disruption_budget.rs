//! The budget of a group: one pod at a time.
//!
//! In: a plan. Out: the object. Must not: keep a pod that is broken anyway from being evicted.

use std::collections::BTreeMap;

use bloodraven_api::keys::Application;
use bloodraven_api::names;
use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::{Plan, metadata};

/// The budget of a group's MySQL pods.
pub fn disruption_budget(plan: &Plan<'_>) -> PodDisruptionBudget {
    let name = names::disruption_budget(plan.name());
    let metadata = metadata::owned(plan, Application::Mysql, name, None);
    budget(metadata, metadata::selector(Application::Mysql, plan.name(), None))
}

pub(super) fn budget(metadata: ObjectMeta, selector: BTreeMap<String, String>) -> PodDisruptionBudget {
    let spec = PodDisruptionBudgetSpec {
        max_unavailable: Some(IntOrString::Int(1)),
        unhealthy_pod_eviction_policy: Some("AlwaysAllow".to_owned()),
        selector: Some(metadata::label_selector(selector)),
        ..PodDisruptionBudgetSpec::default()
    };
    PodDisruptionBudget { metadata, spec: Some(spec), status: None }
}
