//! The root of the group's spec.
//!
//! In: JSON that the API server has defaulted, or a manifest. Out: `MysqlFailoverGroup` with its spec. Must not: hold
//! settings of one subject only; those are in the files beside this one.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, PodSecurityContext, ResourceRequirements, SecurityContext};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    BackupSpec, Credentials, DnsSpec, DragonflySpec, InitFromBackup, PlannedFailoverSpec, PromotionSpec,
    ReplicationSpec, RestoreInPlace, ServiceTemplate, SidecarSpec, SiteSpec, SplitBrainPolicy, TlsSpec, UpdateStrategy,
    VolumeRetention, WriteProbeSpec, status::MysqlFailoverGroupStatus,
};
use crate::go_duration::GoDuration;
use crate::shared::NameRef;

/// Spec of a failover group: sites, who is preferred, how failure is told from a hiccup, and what runs beside MySQL.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "shipstream.io",
    version = "v1alpha1",
    kind = "MysqlFailoverGroup",
    plural = "mysqlfailovergroups",
    singular = "mysqlfailovergroup",
    shortname = "mfg",
    namespaced,
    status = "MysqlFailoverGroupStatus",
    derive = "PartialEq",
    doc = "One MySQL database that is kept writable across sites, with a single writer at any time.",
    printcolumn = r#"{"name":"Active","type":"string","jsonPath":".status.activeSite","description":"Site that may write"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Degraded","type":"string","jsonPath":".status.conditions[?(@.type==\"Degraded\")].status"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name":"Reason","type":"string","jsonPath":".status.conditions[?(@.type==\"Degraded\")].reason","priority":1}"#,
    printcolumn = r#"{"name":"Planned","type":"string","jsonPath":".status.plannedFailover.phase","priority":1}"#,
    printcolumn = r#"{"name":"Epoch","type":"integer","jsonPath":".status.authority.epoch","priority":1}"#
)]
#[serde(rename_all = "camelCase")]
pub struct MysqlFailoverGroupSpec {
    /// MySQL server image, with a tag or digest and not `:latest`. A pinned form (`mysql:9.7.4`, `...@sha256:...`) is
    /// recommended.
    #[serde(default = "default_image")]
    #[schemars(length(min = 1, max = 512))]
    pub image: String,

    /// Image of the sidecar. Left out: the operator's own image, resolved at run time and never stored here. A change, an
    /// operator upgrade included, rolls the pods by updateStrategy; set it to keep them still.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub sidecar_image: Option<String>,

    /// Pull secrets for both images.
    #[serde(default)]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub image_pull_secrets: Vec<NameRef>,

    /// The sites, at least two of them primary-candidates. The bound of 256 is there for the cost of the admission rules;
    /// replication cost on the primary ends sooner.
    #[schemars(length(min = 2, max = 256), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub sites: Vec<SiteSpec>,

    /// One Secret for every account. Exactly one of secretName and credentials is set.
    #[serde(default)]
    #[schemars(length(max = 253))]
    pub secret_name: String,

    /// A Secret per role. Exactly one of secretName and credentials is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials: Option<Credentials>,

    /// TLS for every MySQL connection: operator, sidecar, replication, clone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsSpec>,

    /// The DNS record that follows the active site.
    pub dns: DnsSpec,

    /// Poll period of each site; also the timeout of one poll, connecting included. 250ms to 60s.
    #[serde(default = "default_poll_interval")]
    pub poll_interval: GoDuration,

    /// Consecutive failed polls before a site is unreachable.
    #[serde(default = "default_failure_threshold")]
    #[schemars(range(min = 1))]
    pub failure_threshold: u32,

    /// Consecutive polls that read `read_only=0` before a site is writable.
    #[serde(default = "default_recovery_threshold")]
    #[schemars(range(min = 1))]
    pub recovery_threshold: u32,

    /// Anti-flap window after a failover, planned or not; `0s` turns it off.
    #[serde(default = "default_failover_cooldown")]
    pub failover_cooldown: GoDuration,

    /// What counts as proof that the old primary has let go.
    #[serde(default)]
    pub promotion: PromotionSpec,

    /// Lease and peer checks of the sidecars.
    #[serde(default)]
    pub sidecar: SidecarSpec,

    /// Promotion tiebreak and split-brain order. Empty: alert only.
    #[serde(default)]
    pub split_brain_policy: SplitBrainPolicy,

    /// Lag threshold and durability of replication.
    #[serde(default)]
    pub replication: ReplicationSpec,

    /// Knobs of the planned failover.
    #[serde(default)]
    pub planned_failover: PlannedFailoverSpec,

    /// A Dragonfly cache that follows the MySQL primary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dragonfly: Option<DragonflySpec>,

    /// How changes reach the pods.
    #[serde(default = "default_update_strategy")]
    pub update_strategy: UpdateStrategy,

    /// Budget of one CLONE, in seconds.
    #[serde(default = "default_clone_timeout")]
    #[schemars(range(min = 60))]
    pub clone_timeout: u32,

    /// Commit canary on the active site.
    #[serde(default)]
    pub write_probe: WriteProbeSpec,

    /// Additions to my.cnf, section mysqld. Keys that the operator owns are refused; `_` and `-` are the same. A change
    /// rolls the pods by updateStrategy.
    #[serde(default)]
    #[schemars(extend("maxProperties" = 256))]
    pub mysql_conf: BTreeMap<String, String>,

    /// What happens to a site's volume when the site or the group is deleted.
    #[serde(default = "default_volume_retention")]
    pub volume_retention: VolumeRetention,

    /// Maintenance switch: no new move, recovery, clone, update or object change starts while it is true.
    #[serde(default)]
    pub paused: bool,

    /// Why it is paused, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub paused_reason: Option<String>,

    /// Time at which the pause ends by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_until: Option<Time>,

    /// Resources of the sidecar container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sidecar_resources: Option<ResourceRequirements>,

    /// Grace period of the MySQL pod.
    #[serde(default = "default_termination_grace_period")]
    #[schemars(range(min = 10))]
    pub termination_grace_period_seconds: u32,

    /// Labels merged into MySQL pods; keys of the operator are refused.
    #[serde(default)]
    #[schemars(extend("maxProperties" = 64))]
    pub pod_labels: BTreeMap<String, String>,

    /// Annotations merged into MySQL pods; keys of the operator are refused.
    #[serde(default)]
    #[schemars(extend("maxProperties" = 64))]
    pub pod_annotations: BTreeMap<String, String>,

    /// Type and annotations of the user-facing Services.
    #[serde(default)]
    pub service_template: ServiceTemplate,

    /// Containers appended to the MySQL pod; the names mysql, sidecar and init are taken.
    #[serde(default)]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub extra_containers: Vec<Container>,

    /// Init containers that run after `init`; the names mysql, sidecar and init are taken.
    #[serde(default)]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub extra_init_containers: Vec<Container>,

    /// Replaces the default pod security context as a whole; mysql and sidecar always share one uid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_security_context: Option<PodSecurityContext>,

    /// Replaces the default container security context as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_security_context: Option<SecurityContext>,

    /// Backups, schedules and point-in-time recovery. Left out: no backups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup: Option<BackupSpec>,

    /// Fill a new group from a backup. Acts only while every site is empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub init_from_backup: Option<InitFromBackup>,

    /// Replace the data of a running group by a backup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restore_in_place: Option<RestoreInPlace>,
}

fn default_image() -> String {
    "mysql:9.7".to_owned()
}

const fn default_poll_interval() -> GoDuration {
    GoDuration::from_secs(2)
}

const fn default_failure_threshold() -> u32 {
    3
}

const fn default_recovery_threshold() -> u32 {
    2
}

const fn default_failover_cooldown() -> GoDuration {
    GoDuration::from_mins(5)
}

const fn default_update_strategy() -> UpdateStrategy {
    UpdateStrategy::OrderedUpdate
}

const fn default_clone_timeout() -> u32 {
    3600
}

const fn default_volume_retention() -> VolumeRetention {
    VolumeRetention::Retain
}

const fn default_termination_grace_period() -> u32 {
    60
}
