//! Services: a site for its users, a site for the operator and its peers, the primary, the replicas.
//!
//! In: a plan, a site. Out: the objects. Must not: have a selector that ever changes; labels of pods move.

use std::collections::BTreeMap;

use bloodraven_api::group::ServiceType;
use bloodraven_api::keys::{Application, Healthy, LABEL_HEALTHY, LABEL_ROLE, PodRole};
use bloodraven_api::names;
use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::pod::{ADMIN_PORT, MYSQL_PORT, SIDECAR_PORT};
use super::{Plan, SitePlan, metadata};

/// Where users reach a site: its server, nothing else.
pub fn site_service(plan: &Plan<'_>, site: &SitePlan<'_>) -> Service {
    let name = names::site(plan.name(), site.name());
    let template = &plan.spec().service_template;
    let annotations = (!template.annotations.is_empty()).then(|| template.annotations.clone());
    let metadata = metadata::owned(plan, Application::Mysql, name, Some(site.name()));
    let balanced = template.kind == ServiceType::LoadBalancer;
    let spec = ServiceSpec {
        type_: Some(template.kind.as_str().to_owned()),
        load_balancer_ip: balanced.then(|| site.spec.lb_ip.clone()),
        ..spec(of_site(plan, site), vec![port("mysql", MYSQL_PORT)])
    };
    service(ObjectMeta { annotations, ..metadata }, spec)
}

/// Where operator, replicas and sidecars reach a site, ready or not: a fenced or starting server must be found, too.
pub fn internal_service(plan: &Plan<'_>, site: &SitePlan<'_>) -> Service {
    let name = names::site_internal(plan.name(), site.name());
    let ports = vec![port("mysql", MYSQL_PORT), port("admin", ADMIN_PORT), port("sidecar", SIDECAR_PORT)];
    let spec = ServiceSpec { publish_not_ready_addresses: Some(true), ..spec(of_site(plan, site), ports) };
    service(metadata::owned(plan, Application::Mysql, name, Some(site.name())), spec)
}

/// Where writes go: to the pod that is labelled primary, or nowhere.
pub fn primary_service(plan: &Plan<'_>) -> Service {
    by_role(plan, names::primary(plan.name()), &[(LABEL_ROLE, PodRole::Primary.as_str())])
}

/// Where reads go: to every replica that keeps up.
pub fn replicas_service(plan: &Plan<'_>) -> Service {
    let labels = [(LABEL_ROLE, PodRole::Replica.as_str()), (LABEL_HEALTHY, Healthy::Yes.as_str())];
    by_role(plan, names::replicas(plan.name()), &labels)
}

fn by_role(plan: &Plan<'_>, name: String, labels: &[(&str, &str)]) -> Service {
    let mut selector = metadata::selector(Application::Mysql, plan.name(), None);
    selector.extend(labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
    service(metadata::owned(plan, Application::Mysql, name, None), spec(selector, vec![port("mysql", MYSQL_PORT)]))
}

fn of_site(plan: &Plan<'_>, site: &SitePlan<'_>) -> BTreeMap<String, String> {
    metadata::selector(Application::Mysql, plan.name(), Some(site.name()))
}

pub(super) fn spec(selector: BTreeMap<String, String>, ports: Vec<ServicePort>) -> ServiceSpec {
    ServiceSpec {
        type_: Some(ServiceType::ClusterIp.as_str().to_owned()),
        selector: Some(selector),
        ports: Some(ports),
        ..ServiceSpec::default()
    }
}

pub(super) fn service(metadata: ObjectMeta, spec: ServiceSpec) -> Service {
    Service { metadata, spec: Some(spec), status: None }
}

/// A port that has the name of the container's.
pub(super) fn port(name: &str, number: u16) -> ServicePort {
    ServicePort {
        name: Some(name.to_owned()),
        port: number.into(),
        target_port: Some(IntOrString::String(name.to_owned())),
        protocol: Some("TCP".to_owned()),
        ..ServicePort::default()
    }
}
