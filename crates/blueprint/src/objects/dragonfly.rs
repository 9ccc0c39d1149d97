//! The cache beside MySQL: a small set of objects a site, and the Service that leads to the active one.
//!
//! In: a plan. Out: the objects; none when the cache is off. Must not: touch anything of MySQL's, or say on a template who is
//! the master: the leader moves that.

use bloodraven_api::group::{DragonflySnapshot, DragonflySpec};
use bloodraven_api::keys::{
    Application, DRAGONFLY_TRAFFIC_ENABLED, LABEL_DRAGONFLY_ROLE, LABEL_DRAGONFLY_TRAFFIC, LABEL_ZONE,
};
use bloodraven_api::names;
use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetSpec};
use k8s_openapi::api::core::v1::{
    Container, ContainerPort, EmptyDirVolumeSource, EnvFromSource, EnvVar, EnvVarSource, LocalObjectReference, PodSpec,
    PodTemplateSpec, Probe, SecretEnvSource, SecretKeySelector, Service, ServiceSpec, TCPSocketAction, Volume,
    VolumeMount,
};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use std::collections::BTreeMap;

use super::pod::toleration;
use super::{Plan, SitePlan, disruption_budget, metadata, service};

const MASTER: &str = "master";
const REPLICA: &str = "replica";
const DATA: &str = "/data";

/// The cache of a site.
#[derive(Clone, Debug, PartialEq)]
pub struct Cache {
    /// The server.
    pub stateful_set: StatefulSet,
    /// Where operator and replicas reach it, ready or not.
    pub service: Service,
    /// Of its one pod.
    pub disruption_budget: PodDisruptionBudget,
}

/// The caches of a group, in the order of its sites; none when it has none.
pub fn caches(plan: &Plan<'_>) -> Vec<Cache> {
    let Some(cache) = enabled(plan) else { return Vec::new() };
    plan.sites().iter().map(|site| of_site(plan, site, cache)).collect()
}

/// Where clients reach the active cache: its master while it takes traffic, or nobody.
pub fn dragonfly_service(plan: &Plan<'_>) -> Option<Service> {
    let cache = enabled(plan)?;
    let mut selector = metadata::selector(Application::Dragonfly, plan.name(), None);
    selector.insert(LABEL_DRAGONFLY_ROLE.to_owned(), MASTER.to_owned());
    selector.insert(LABEL_DRAGONFLY_TRAFFIC.to_owned(), DRAGONFLY_TRAFFIC_ENABLED.to_owned());
    let name = names::dragonfly(plan.name());
    let metadata = metadata::owned(plan, Application::Dragonfly, name, None);
    Some(service::service(metadata, service::spec(selector, vec![service::port("dragonfly", cache.port)])))
}

fn enabled<'a>(plan: &Plan<'a>) -> Option<&'a DragonflySpec> {
    plan.spec().dragonfly.as_ref().filter(|cache| cache.enabled)
}

fn of_site(plan: &Plan<'_>, site: &SitePlan<'_>, cache: &DragonflySpec) -> Cache {
    let name = names::dragonfly_site(plan.name(), site.name());
    let selector = metadata::selector(Application::Dragonfly, plan.name(), Some(site.name()));
    let metadata = || metadata::owned(plan, Application::Dragonfly, name.clone(), Some(site.name()));
    let ports = vec![service::port("dragonfly", cache.port), service::port("admin", cache.admin_port)];
    let spec = ServiceSpec { publish_not_ready_addresses: Some(true), ..service::spec(selector.clone(), ports) };
    let stateful_set = StatefulSetSpec {
        replicas: Some(1),
        service_name: Some(name.clone()),
        selector: metadata::label_selector(selector.clone()),
        template: template(plan, site, cache),
        ..StatefulSetSpec::default()
    };
    Cache {
        stateful_set: StatefulSet { metadata: metadata(), spec: Some(stateful_set), status: None },
        service: service::service(metadata(), spec),
        disruption_budget: disruption_budget::budget(metadata(), selector),
    }
}

fn template(plan: &Plan<'_>, site: &SitePlan<'_>, cache: &DragonflySpec) -> PodTemplateSpec {
    let mut labels = metadata::labels(Application::Dragonfly, plan.name(), Some(site.name()));
    labels.insert(LABEL_DRAGONFLY_ROLE.to_owned(), REPLICA.to_owned());
    let snapshot = cache.snapshot.as_ref();
    let account = snapshot.and_then(|snapshot| snapshot.service_account_name.clone());
    let pull = plan.spec().image_pull_secrets.iter();
    let pull: Vec<_> = pull.map(|secret| LocalObjectReference { name: secret.name.clone() }).collect();
    let spec = PodSpec {
        containers: vec![container(cache)],
        volumes: Some(vec![Volume {
            name: "data".to_owned(),
            empty_dir: Some(EmptyDirVolumeSource::default()),
            ..Volume::default()
        }]),
        // A token only for who was given an account of its own, for its bucket.
        automount_service_account_token: account.is_none().then_some(false),
        service_account_name: account,
        enable_service_links: Some(false),
        image_pull_secrets: (!pull.is_empty()).then_some(pull),
        node_selector: Some(BTreeMap::from([(LABEL_ZONE.to_owned(), site.spec.zone.clone())])),
        tolerations: Some(vec![toleration(plan.name())]),
        security_context: cache.pod_security_context.clone(),
        ..PodSpec::default()
    };
    let metadata = ObjectMeta { labels: Some(labels), ..ObjectMeta::default() };
    PodTemplateSpec { metadata: Some(metadata), spec: Some(spec) }
}

fn container(cache: &DragonflySpec) -> Container {
    let port = |name: &str, number: u16| ContainerPort {
        name: Some(name.to_owned()),
        container_port: number.into(),
        protocol: Some("TCP".to_owned()),
        ..ContainerPort::default()
    };
    let probe = |delay, period| Probe {
        tcp_socket: Some(TCPSocketAction { port: IntOrString::String("dragonfly".to_owned()), host: None }),
        initial_delay_seconds: Some(delay),
        period_seconds: Some(period),
        ..Probe::default()
    };
    let env = passwords(cache);
    let bucket = cache.snapshot.as_ref().and_then(|snapshot| snapshot.credentials_secret_name.as_ref());
    let from = bucket.map(|name| EnvFromSource {
        secret_ref: Some(SecretEnvSource { name: name.clone(), optional: None }),
        ..EnvFromSource::default()
    });
    Container {
        name: "dragonfly".to_owned(),
        // The rules ask for an image when the cache is on.
        image: cache.image.clone(),
        args: Some(flags(cache)),
        env: (!env.is_empty()).then_some(env),
        env_from: from.map(|from| vec![from]),
        ports: Some(vec![port("dragonfly", cache.port), port("admin", cache.admin_port)]),
        liveness_probe: Some(probe(5, 10)),
        readiness_probe: Some(probe(2, 5)),
        volume_mounts: Some(vec![VolumeMount {
            name: "data".to_owned(),
            mount_path: DATA.to_owned(),
            ..VolumeMount::default()
        }]),
        resources: cache.resources.clone(),
        security_context: cache.container_security_context.clone(),
        ..Container::default()
    }
}

/// The password as two flags, each from a variable of its own: a command line would show it to the whole node.
fn passwords(cache: &DragonflySpec) -> Vec<EnvVar> {
    let Some(auth) = &cache.auth else { return Vec::new() };
    let key = SecretKeySelector { name: auth.secret_name.clone(), key: auth.password_key.clone(), optional: None };
    let source = EnvVarSource { secret_key_ref: Some(key), ..EnvVarSource::default() };
    let variable = |name: &str| EnvVar { name: name.to_owned(), value: None, value_from: Some(source.clone()) };
    vec![variable("DFLY_requirepass"), variable("DFLY_masterauth")]
}

fn flags(cache: &DragonflySpec) -> Vec<String> {
    let mut flags = vec![
        format!("--port={}", cache.port),
        format!("--admin_port={}", cache.admin_port),
        "--bind=0.0.0.0".to_owned(),
        // A master that comes back empty must not empty its replicas.
        "--break_replication_on_master_restart=true".to_owned(),
    ];
    flags.extend(cache.max_memory_mb.map(|megabytes| format!("--maxmemory={megabytes}mb")));
    flags.extend(cache.proactor_threads.map(|threads| format!("--proactor_threads={threads}")));
    flags.push(format!("--dir={}", cache.snapshot.as_ref().map_or(DATA, |snapshot| &snapshot.dir)));
    flags.extend(cache.snapshot.iter().flat_map(bucket_flags));
    flags.extend(cache.args.iter().cloned());
    flags
}

fn bucket_flags(snapshot: &DragonflySnapshot) -> Vec<String> {
    let endpoint = snapshot.s3_endpoint.as_ref().map(|endpoint| format!("--s3_endpoint={endpoint}"));
    let https = snapshot.s3_use_https.map(|on| format!("--s3_use_https={on}"));
    let sign = snapshot.s3_sign_payload.map(|on| format!("--s3_sign_payload={on}"));
    endpoint.into_iter().chain(https).chain(sign).collect()
}
