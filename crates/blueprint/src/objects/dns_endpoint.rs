//! The DNS record that follows the active site, as external-dns reads it.
//!
//! In: a plan, the holder's site. Out: the object. Must not: choose the site.

use std::net::IpAddr;

use bloodraven_api::keys::Application;
use bloodraven_api::names;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::{Metadata, NamespaceResourceScope, Resource};
use serde::{Deserialize, Serialize};

use super::{Plan, SitePlan, metadata};

/// A record for external-dns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DnsEndpoint {
    api_version: String,
    kind: String,
    /// Name, labels, owner.
    pub metadata: ObjectMeta,
    /// The record.
    pub spec: DnsEndpointSpec,
}

/// The records of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DnsEndpointSpec {
    /// One a name and type.
    pub endpoints: Vec<Endpoint>,
}

/// A record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Endpoint {
    /// Its name.
    pub dns_name: String,
    /// `A` or `AAAA`.
    pub record_type: String,
    /// Addresses.
    pub targets: Vec<String>,
    /// Seconds.
    #[serde(rename = "recordTTL")]
    pub record_ttl: i64,
}

impl Resource for DnsEndpoint {
    const API_VERSION: &'static str = "externaldns.k8s.io/v1alpha1";
    const GROUP: &'static str = "externaldns.k8s.io";
    const KIND: &'static str = "DNSEndpoint";
    const VERSION: &'static str = "v1alpha1";
    const URL_PATH_SEGMENT: &'static str = "dnsendpoints";
    type Scope = NamespaceResourceScope;
}

impl Metadata for DnsEndpoint {
    type Ty = ObjectMeta;

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// The record that leads to a site.
pub fn dns_endpoint(plan: &Plan<'_>, site: &SitePlan<'_>) -> DnsEndpoint {
    let dns = &plan.spec().dns;
    let target = site.spec.lb_ip.clone();
    let six = matches!(target.parse(), Ok(IpAddr::V6(_)));
    let name = names::dns_endpoint(plan.name());
    DnsEndpoint {
        api_version: DnsEndpoint::API_VERSION.to_owned(),
        kind: DnsEndpoint::KIND.to_owned(),
        metadata: metadata::owned(plan, Application::Mysql, name, None),
        spec: DnsEndpointSpec {
            endpoints: vec![Endpoint {
                dns_name: dns.hostname.clone(),
                record_type: if six { "AAAA" } else { "A" }.to_owned(),
                targets: vec![target],
                record_ttl: dns.ttl.into(),
            }],
        },
    }
}
