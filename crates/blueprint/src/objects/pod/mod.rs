//! A site's pod: who runs in it, what they see, and what makes it another pod.
//!
//! In: a plan, a site. Out: the template, and the hash by which a change of it is found. Must not: hold a password, a role
//! that the leader moves, or a setting that sidecars learn from views.

mod containers;
mod security;
mod volumes;

pub use volumes::PRIVATE_VOLUMES;
pub(super) use volumes::names as volume_names;

use std::collections::BTreeMap;

use bloodraven_api::keys::{
    Application, FINALIZER_INSTANCE, Healthy, LABEL_HEALTHY, LABEL_ROLE, LABEL_ZONE, PodRole, SPEC_HASH, taint_key,
};
use k8s_openapi::api::core::v1::{LocalObjectReference, PodSpec, PodTemplateSpec, Toleration};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::{Plan, SitePlan, digest, metadata};

/// Where clients come in.
pub const MYSQL_PORT: u16 = 3306;
/// Where operator, sidecar and opener come in, also when the other is full.
pub const ADMIN_PORT: u16 = 33062;
/// Where the sidecar answers.
pub const SIDECAR_PORT: u16 = 8080;

/// The server's data, on the site's volume.
pub const DATA_DIR: &str = "/var/lib/mysql";
/// What sidecar and keeper remember, on the site's volume, beside the data.
pub const STATE_DIR: &str = "/var/lib/bloodraven";
/// The folder of the server's data on the site's volume.
pub const DATA_FOLDER: &str = "mysql";
/// The folder beside it, of sidecar and keeper.
pub const STATE_FOLDER: &str = "bloodraven";
/// The site's volume itself, in the init container.
pub const VOLUME_DIR: &str = "/volume";
/// The `ConfigMap`, in the init container.
pub const CONFIG_DIR: &str = "/etc/bloodraven/config";
/// What the init container writes for the server.
pub const CONF_DIR: &str = "/etc/bloodraven/conf";
/// The server's option file in it.
pub const OPTION_FILE: &str = "/etc/bloodraven/conf/my.cnf";
/// Memory that sidecar and keeper share.
pub const RUN_DIR: &str = "/run/bloodraven";
/// The keeper's binary, put there by the init container.
pub const KEEPER: &str = "/run/bloodraven/keeper";
/// Its name, in the operator's image and in [`RUN_DIR`].
pub const KEEPER_FILE: &str = "keeper";
/// The keeper's socket.
pub const KEEPER_SOCKET: &str = "/run/bloodraven/keeper.sock";
/// The server's own socket, for people inside the container.
pub const MYSQL_SOCKET: &str = "/run/bloodraven/mysqld.sock";
/// Certificates.
pub const TLS_DIR: &str = "/etc/mysql/tls";
/// Accounts, a folder a role.
pub const CREDENTIALS_DIR: &str = "/etc/mysql/creds";
/// The group's signing key.
pub const AUTHORITY_DIR: &str = "/etc/bloodraven/authority";

/// The template of a site's pod, and its hash.
///
/// The hash covers the option file and the whole template: whatever is in a template makes the cluster replace the pod when
/// it changes, so all of it has to go through the update strategy. Values of Secrets, roles and lease settings are in
/// neither.
pub(super) fn template(plan: &Plan<'_>, site: &SitePlan<'_>) -> (PodTemplateSpec, String) {
    let mut template = PodTemplateSpec { metadata: Some(pod_metadata(plan, site)), spec: Some(spec(plan, site)) };
    let hash = hash(plan.conf(), &template);
    let annotations = template.metadata.as_mut().map(|metadata| metadata.annotations.get_or_insert_default());
    annotations.map(|annotations| annotations.insert(SPEC_HASH.to_owned(), hash.clone()));
    (template, hash)
}

/// The first 16 hex digits of a SHA-256.
fn hash(conf: &str, template: &PodTemplateSpec) -> String {
    // A template is made of text, numbers and maps with text keys: it can always be written.
    let text = serde_json::to_string(&(conf, template)).unwrap_or_default();
    format!("{:016x}", digest(text))
}

fn pod_metadata(plan: &Plan<'_>, site: &SitePlan<'_>) -> ObjectMeta {
    let mut labels = plan.spec().pod_labels.clone();
    labels.extend(metadata::labels(Application::Mysql, plan.name(), Some(site.name())));
    // What a pod is before the leader has seen it: nobody's primary, no address for reads.
    labels.insert(LABEL_ROLE.to_owned(), PodRole::Replica.as_str().to_owned());
    labels.insert(LABEL_HEALTHY.to_owned(), Healthy::No.as_str().to_owned());
    let annotations = &plan.spec().pod_annotations;
    ObjectMeta {
        labels: Some(labels),
        annotations: (!annotations.is_empty()).then(|| annotations.clone()),
        // The pod's last status is the evidence of its end; it outlives any delete.
        finalizers: Some(vec![FINALIZER_INSTANCE.to_owned()]),
        ..ObjectMeta::default()
    }
}

fn spec(plan: &Plan<'_>, site: &SitePlan<'_>) -> PodSpec {
    let spec = plan.spec();
    let mut init_containers = vec![containers::init(plan, site), containers::sidecar(plan, site)];
    init_containers.extend(spec.extra_init_containers.iter().cloned());
    let mut all = vec![containers::mysql(plan, site)];
    all.extend(spec.extra_containers.iter().cloned());
    let pull = spec.image_pull_secrets.iter().map(|secret| LocalObjectReference { name: secret.name.clone() });
    PodSpec {
        init_containers: Some(init_containers),
        containers: all,
        volumes: Some(volumes::volumes(plan, site)),
        image_pull_secrets: (!spec.image_pull_secrets.is_empty()).then(|| pull.collect()),
        node_selector: Some(BTreeMap::from([(LABEL_ZONE.to_owned(), site.spec.zone.clone())])),
        tolerations: Some(vec![toleration(plan.name())]),
        security_context: Some(security::of_pod(plan)),
        termination_grace_period_seconds: Some(spec.termination_grace_period_seconds.into()),
        // Nothing in the pod talks to the API server, and variables of other Services are nobody's business.
        automount_service_account_token: Some(false),
        enable_service_links: Some(false),
        ..PodSpec::default()
    }
}

/// The group's own pods stay where their group's taint is.
pub(super) fn toleration(group: &str) -> Toleration {
    Toleration { key: Some(taint_key(group)), operator: Some("Exists".to_owned()), ..Toleration::default() }
}
