//! The certificate of a group, for cert-manager, where the group names an issuer.
//!
//! In: a plan. Out: the object, for every name that a server of the group is called by. Must not: make a key.

use bloodraven_api::keys::Application;
use bloodraven_api::names;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::{Metadata, NamespaceResourceScope, Resource};
use serde::{Deserialize, Serialize};

use super::{Plan, metadata};

/// A certificate that cert-manager keeps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Certificate {
    api_version: String,
    kind: String,
    /// Name, labels, owner.
    pub metadata: ObjectMeta,
    /// What it is for.
    pub spec: CertificateSpec,
}

/// What a certificate is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CertificateSpec {
    /// Where it is put.
    pub secret_name: String,
    /// The names that it covers.
    pub dns_names: Vec<String>,
    /// Who signs it.
    pub issuer_ref: Issuer,
}

/// Who signs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Issuer {
    /// Always cert-manager's.
    pub group: String,
    /// `Issuer` or `ClusterIssuer`.
    pub kind: String,
    /// Its name.
    pub name: String,
}

impl Resource for Certificate {
    const API_VERSION: &'static str = "cert-manager.io/v1";
    const GROUP: &'static str = "cert-manager.io";
    const KIND: &'static str = "Certificate";
    const VERSION: &'static str = "v1";
    const URL_PATH_SEGMENT: &'static str = "certificates";
    type Scope = NamespaceResourceScope;
}

impl Metadata for Certificate {
    type Ty = ObjectMeta;

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// The certificate of a group with an issuer.
pub fn certificate(plan: &Plan<'_>) -> Option<Certificate> {
    let tls = plan.spec().tls.as_ref()?;
    let issuer = tls.issuer_ref.as_ref()?;
    let name = format!("mysql-{}-tls", plan.name());
    Some(Certificate {
        api_version: Certificate::API_VERSION.to_owned(),
        kind: Certificate::KIND.to_owned(),
        metadata: metadata::owned(plan, Application::Mysql, name, None),
        spec: CertificateSpec {
            secret_name: tls.secret_name.clone(),
            dns_names: covered(plan),
            issuer_ref: Issuer {
                group: Certificate::GROUP.to_owned(),
                kind: issuer.kind.as_str().to_owned(),
                name: issuer.name.clone(),
            },
        },
    })
}

/// Every name of a Service, from the bare one to the whole one.
fn covered(plan: &Plan<'_>) -> Vec<String> {
    let group = plan.name();
    let of_site =
        |site: &super::SitePlan<'_>| [names::site(group, site.name()), names::site_internal(group, site.name())];
    let services = plan.sites().iter().flat_map(of_site).chain([names::primary(group), names::replicas(group)]);
    let namespace = plan.namespace();
    services
        .flat_map(|service| {
            let short = [service.clone(), format!("{service}.{namespace}"), format!("{service}.{namespace}.svc")];
            short.into_iter().chain([plan.host(&service)])
        })
        .collect()
}
