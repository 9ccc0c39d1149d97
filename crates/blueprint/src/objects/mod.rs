//! From a checked group to the objects that stand for it in a cluster, a kind a file.
//!
//! In: a group object that [`crate::spec`] took, and what its object does not say ([`Surroundings`]). Out: whole objects
//! for server-side apply under the field manager [`FIELD_MANAGER`](bloodraven_api::keys::FIELD_MANAGER). Must not: talk to
//! anyone, decide when an object is applied, or put a password anywhere but into a Secret.
//!
//! Everything that can go wrong goes wrong in [`Plan::new`], so that an object is either built or was never begun; only the
//! claim has a second look, at the claim that is there already.

mod certificate;
mod claim;
pub mod conf;
mod config_map;
mod deployment;
mod disruption_budget;
mod dns_endpoint;
mod dragonfly;
mod error;
pub mod metadata;
mod plan;
pub mod pod;
mod secret;
mod server_id;
mod service;
mod taint;
mod taken;

pub use certificate::{Certificate, certificate};
pub use claim::claim;
pub use config_map::{CONFIG_KEY, config_map};
pub use deployment::deployment;
pub use disruption_budget::disruption_budget;
pub use dns_endpoint::{DnsEndpoint, dns_endpoint};
pub use dragonfly::{Cache, caches, dragonfly_service};
pub use error::Error;
pub use plan::{OperatorAccount, Plan, SitePlan, Surroundings};
pub use secret::{AuthorityKeys, KEY_BYTES, authority, operator_account};
pub use server_id::server_ids;
pub use service::{internal_service, primary_service, replicas_service, site_service};
pub use taint::{NodeTaint, Taints, taints, untaint};
pub use taken::{Taken, taken, taken_spec};

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use sha2::{Digest as _, Sha256};

/// The same in every release: objects carry it.
pub fn digest(text: impl AsRef<[u8]>) -> u64 {
    Sha256::digest(text).iter().take(8).fold(0, |head, byte| head << 8 | u64::from(*byte))
}

/// The objects of a group that follow from its spec alone, each in the order in which they are applied: a pod finds its
/// configuration, its Service and its peers' names when it starts. Claims, Secrets, the DNS record and taints follow from
/// the cluster's state, too, and have functions of their own.
#[derive(Clone, Debug, PartialEq)]
pub struct Objects {
    /// Of the sites, in declared order.
    pub config_maps: Vec<ConfigMap>,
    /// Of the sites, two each, then those of the group.
    pub services: Vec<Service>,
    /// Of the group, then of the caches.
    pub disruption_budgets: Vec<PodDisruptionBudget>,
    /// With an issuer.
    pub certificate: Option<Certificate>,
    /// Of the sites, in declared order; rolled by the update strategy.
    pub deployments: Vec<Deployment>,
    /// Of the caches, in declared order of their sites; empty when Dragonfly is off.
    pub stateful_sets: Vec<StatefulSet>,
}

/// Builds them.
pub fn objects(plan: &Plan<'_>) -> Objects {
    let sites = || plan.sites().iter();
    let caches = caches(plan);
    let mut services: Vec<Service> =
        sites().flat_map(|site| [site_service(plan, site), internal_service(plan, site)]).collect();
    services.extend([primary_service(plan), replicas_service(plan)]);
    services.extend(caches.iter().map(|cache| cache.service.clone()));
    services.extend(dragonfly_service(plan));
    let budgets = caches.iter().map(|cache| cache.disruption_budget.clone());
    Objects {
        config_maps: sites().map(|site| config_map(plan, site)).collect(),
        services,
        disruption_budgets: std::iter::once(disruption_budget(plan)).chain(budgets).collect(),
        certificate: certificate(plan),
        deployments: sites().map(|site| deployment(plan, site)).collect(),
        stateful_sets: caches.into_iter().map(|cache| cache.stateful_set).collect(),
    }
}
