//! The operator's pod, its account and its Service.
//!
//! In: [`Install`]. Out: the objects. Must not: run as root, write to its own file system, or have a budget that keeps a
//! node from being drained: one that is down for a moment fences nobody.

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec, DeploymentStrategy, RollingUpdateDeployment};
use k8s_openapi::api::core::v1::{
    Capabilities, Container, ContainerPort, EnvVar, EnvVarSource, HTTPGetAction, Namespace, ObjectFieldSelector,
    PodSecurityContext, PodSpec, PodTemplateSpec, Probe, SeccompProfile, SecurityContext, Service, ServiceAccount,
    ServicePort, ServiceSpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::{AUX_PORT, Install, METRICS_PORT, NAME, PROBE_PORT, selector};

/// A user that no image has a password, a home or a file for.
const NOBODY: i64 = 65532;

/// Where the operator lives.
pub fn namespace(install: &Install) -> Namespace {
    let metadata = ObjectMeta { name: Some(install.namespace.clone()), ..ObjectMeta::default() };
    Namespace { metadata, ..Namespace::default() }
}

/// The operator's account.
pub fn service_account(install: &Install) -> ServiceAccount {
    ServiceAccount { metadata: install.metadata(NAME), ..ServiceAccount::default() }
}

/// Where sidecars, people and Prometheus reach the operator.
pub fn service(install: &Install) -> Service {
    let port = |name: &str, number: u16| ServicePort {
        name: Some(name.to_owned()),
        port: number.into(),
        target_port: Some(IntOrString::String(name.to_owned())),
        protocol: Some("TCP".to_owned()),
        ..ServicePort::default()
    };
    let spec = ServiceSpec {
        selector: Some(selector()),
        ports: Some(vec![port("metrics", METRICS_PORT), port("aux", AUX_PORT)]),
        ..ServiceSpec::default()
    };
    Service { metadata: install.metadata(NAME), spec: Some(spec), status: None }
}

/// One operator; a new one is there before the old one goes, and the Lease says which of them leads.
pub fn deployment(install: &Install) -> Deployment {
    let template = PodTemplateSpec {
        metadata: Some(ObjectMeta { labels: Some(selector()), ..ObjectMeta::default() }),
        spec: Some(PodSpec {
            service_account_name: Some(NAME.to_owned()),
            security_context: Some(PodSecurityContext {
                run_as_non_root: Some(true),
                run_as_user: Some(NOBODY),
                run_as_group: Some(NOBODY),
                seccomp_profile: Some(SeccompProfile { type_: "RuntimeDefault".to_owned(), localhost_profile: None }),
                ..PodSecurityContext::default()
            }),
            containers: vec![container(install)],
            ..PodSpec::default()
        }),
    };
    let rolling =
        RollingUpdateDeployment { max_surge: Some(IntOrString::Int(1)), max_unavailable: Some(IntOrString::Int(0)) };
    let spec = DeploymentSpec {
        replicas: Some(1),
        selector: LabelSelector { match_labels: Some(selector()), match_expressions: None },
        strategy: Some(DeploymentStrategy { type_: Some("RollingUpdate".to_owned()), rolling_update: Some(rolling) }),
        template,
        ..DeploymentSpec::default()
    };
    Deployment { metadata: install.metadata(NAME), spec: Some(spec), status: None }
}

fn container(install: &Install) -> Container {
    let port = |name: &str, number: u16| ContainerPort {
        name: Some(name.to_owned()),
        container_port: number.into(),
        protocol: Some("TCP".to_owned()),
        ..ContainerPort::default()
    };
    let probe = |path: &str| Probe {
        http_get: Some(HTTPGetAction {
            path: Some(path.to_owned()),
            port: IntOrString::String("probe".to_owned()),
            ..HTTPGetAction::default()
        }),
        ..Probe::default()
    };
    let mut command = vec!["bloodraven".to_owned(), "operator".to_owned()];
    command.extend(install.watch_namespaces.iter().map(|namespace| format!("--watch-namespace={namespace}")));
    Container {
        name: NAME.to_owned(),
        image: Some(install.image.clone()),
        command: Some(command),
        env: Some(environment(install)),
        ports: Some(vec![port("metrics", METRICS_PORT), port("probe", PROBE_PORT), port("aux", AUX_PORT)]),
        liveness_probe: Some(probe("/healthz")),
        readiness_probe: Some(probe("/readyz")),
        security_context: Some(SecurityContext {
            allow_privilege_escalation: Some(false),
            read_only_root_filesystem: Some(true),
            capabilities: Some(Capabilities { drop: Some(vec!["ALL".to_owned()]), add: None }),
            ..SecurityContext::default()
        }),
        ..Container::default()
    }
}

fn environment(install: &Install) -> Vec<EnvVar> {
    let field = |name: &str, path: &str| EnvVar {
        name: name.to_owned(),
        value: None,
        value_from: Some(EnvVarSource {
            field_ref: Some(ObjectFieldSelector { field_path: path.to_owned(), api_version: None }),
            ..EnvVarSource::default()
        }),
    };
    let value =
        |name: &str, value: &str| EnvVar { name: name.to_owned(), value: Some(value.to_owned()), value_from: None };
    vec![
        field("POD_NAME", "metadata.name"),
        field("POD_NAMESPACE", "metadata.namespace"),
        field("POD_UID", "metadata.uid"),
        field("POD_IP", "status.podIP"),
        value("BLOODRAVEN_OPERATOR_IMAGE", &install.image),
        value("BLOODRAVEN_OPERATOR_SA", NAME),
    ]
}
