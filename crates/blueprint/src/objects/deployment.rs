//! A site's Deployment: one pod, never two.
//!
//! In: a plan, a site. Out: the object, with the hash of everything that would roll its pod. Must not: carry anything that
//! changes while the group runs, such as roles.

use std::collections::BTreeMap;

use bloodraven_api::keys::{Application, SPEC_HASH};
use bloodraven_api::names;
use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec, DeploymentStrategy};

use super::{Plan, SitePlan, metadata, pod};

/// The Deployment of a site.
pub fn deployment(plan: &Plan<'_>, site: &SitePlan<'_>) -> Deployment {
    let name = names::site(plan.name(), site.name());
    let (template, hash) = pod::template(plan, site);
    let mut metadata = metadata::owned(plan, Application::Mysql, name, Some(site.name()));
    metadata.annotations = Some(BTreeMap::from([(SPEC_HASH.to_owned(), hash)]));
    Deployment {
        metadata,
        spec: Some(DeploymentSpec {
            replicas: Some(1),
            selector: metadata::label_selector(metadata::selector(Application::Mysql, plan.name(), Some(site.name()))),
            // The old pod is gone before the new one is made: they share a volume.
            strategy: Some(DeploymentStrategy { type_: Some("Recreate".to_owned()), rolling_update: None }),
            template,
            ..DeploymentSpec::default()
        }),
        status: None,
    }
}
