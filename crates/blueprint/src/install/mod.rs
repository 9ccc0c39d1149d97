//! The operator itself as objects: what it may do, and how it runs.
//!
//! In: [`Install`], a few choices. Out: objects for a fresh cluster. Must not: grant a right that no part of the operator
//! uses, or read a Secret that it was not pointed at (no list, no watch).

mod operator;
mod rights;

pub use operator::{deployment, service, service_account};
pub use rights::{ClusterRights, Rights, rights};

use std::collections::BTreeMap;

use bloodraven_api::keys::{FIELD_MANAGER, LABEL_MANAGED_BY, LABEL_NAME};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// Name of the operator's objects; also of its scrape job.
pub const NAME: &str = "bloodraven";
/// The Lease by which one replica leads, in the operator's namespace.
pub const LEASE: &str = "bloodraven.shipstream.io";
/// Where kubelets renew their Leases.
pub const NODE_LEASE_NAMESPACE: &str = "kube-node-lease";

/// Metrics.
pub const METRICS_PORT: u16 = 8080;
/// Liveness and readiness.
pub const PROBE_PORT: u16 = 8081;
/// Questions of sidecars and people.
pub const AUX_PORT: u16 = 8082;

/// What is chosen at an installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Install {
    /// Where the operator runs.
    pub namespace: String,
    /// Its image, which is also that of the sidecars.
    pub image: String,
    /// The only namespaces that it looks at; empty: all.
    pub watch_namespaces: Vec<String>,
}

impl Install {
    fn metadata(&self, name: &str) -> ObjectMeta {
        ObjectMeta { namespace: Some(self.namespace.clone()), ..cluster_metadata(name) }
    }
}

fn cluster_metadata(name: &str) -> ObjectMeta {
    let labels = selector().into_iter().chain([(LABEL_MANAGED_BY.to_owned(), FIELD_MANAGER.to_owned())]);
    ObjectMeta { name: Some(name.to_owned()), labels: Some(labels.collect()), ..ObjectMeta::default() }
}

fn selector() -> BTreeMap<String, String> {
    BTreeMap::from([(LABEL_NAME.to_owned(), NAME.to_owned())])
}
