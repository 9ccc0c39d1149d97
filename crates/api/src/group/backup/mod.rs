//! `spec.backup`: profiles (where and how), schedules (when), point-in-time recovery, rescue of divergent writes.
//!
//! In: `spec.backup`. Out: typed settings with defaults. Must not: hold what a restore asks for; that is in
//! `super::restore`.

mod profile;
mod schedule;
mod storage;

use k8s_openapi::api::core::v1::{PodSecurityContext, ResourceRequirements, SecurityContext};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use profile::*;
pub use schedule::*;
pub use storage::*;

use crate::go_duration::GoDuration;
use crate::shared::{NameRef, VolumeRequest};
use crate::string_enum::string_enum;

/// Backups of a group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct BackupSpec {
    /// MySQL image of the Jobs, of the same release series as the source. Left out: spec.image.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub image: Option<String>,
    /// Pull secrets of that image.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub image_pull_secrets: Vec<NameRef>,
    /// Where and how backups are kept.
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub profiles: Vec<BackupProfile>,
    /// When backups are taken.
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub schedules: Vec<BackupSchedule>,
    /// Archive of binary logs, for recovery to any point. Left out: off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pitr: Option<PitrSpec>,
    /// Lag up to which a replica may be the source; 0: it must be fully caught up.
    #[schemars(range(min = 0))]
    pub max_lag_seconds_for_source: i64,
    /// Scratch volume of a Job, private to its pod. Left out: the source site's class and max(10Gi, 1.2 x data).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scratch: Option<VolumeRequest>,
    /// Resources of our containers.
    pub resources: ResourceRequirements,
    /// Resources of containers that run a temporary mysqld.
    pub mysqld_resources: ResourceRequirements,
    /// Deadline of every backup, restore, verification and rescue Job.
    #[schemars(range(min = 60))]
    pub active_deadline_seconds: i64,
    /// Pod retries of a backup Job, and retry Jobs of a restore.
    #[schemars(range(min = 0, max = 10))]
    pub backoff_limit: i32,
    /// Retries of scheduled backups.
    pub retry: BackupRetry,
    /// Export of transactions that a site has and the primary lacks, before a reclone destroys them.
    pub divergence_rescue: DivergenceRescue,
    /// Until then plaintext objects are read where encryption is required; at most 30 days ahead, for migrations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_plaintext_fallback_until: Option<Time>,
    /// Merged field by field over the default pod security context.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_security_context: Option<PodSecurityContext>,
    /// Merged field by field over the default container security context.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container_security_context: Option<SecurityContext>,
}

/// Retries of scheduled backups.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct BackupRetry {
    /// Attempts, the first one included.
    #[schemars(range(min = 1, max = 10))]
    pub max_attempts: i32,
    /// Wait before the second attempt; doubles from there.
    #[schemars(range(min = 1))]
    pub initial_backoff_seconds: i64,
    /// Longest wait, at least initialBackoffSeconds.
    #[schemars(range(min = 1))]
    pub max_backoff_seconds: i64,
}

/// Export of divergent transactions before a reclone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DivergenceRescue {
    /// `Required`: no reclone before the export is complete. `BestEffort`: it waits at most `timeout`.
    pub policy: RescuePolicy,
    /// Profile whose store is used. Left out: that of point-in-time recovery, else the first one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 40))]
    pub profile_name: Option<String>,
    /// Longest wait of `BestEffort`, at least 1s.
    pub timeout: GoDuration,
}

/// Archive of binary logs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PitrSpec {
    /// Whether binary logs are archived.
    pub enabled: bool,
    /// Profile whose store is used; required when enabled.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 40))]
    pub profile_name: Option<String>,
    /// Age at which a file is closed and archived, 5s to 1h.
    #[schemars(extend("default" = "60s"))]
    pub archive_poll_interval: GoDuration,
    /// Size at which the server starts a new file (`max_binlog_size`), 4K to 1G.
    #[schemars(length(min = 1, max = 16))]
    pub max_binlog_size: String,
    /// Days that archived transactions which did not survive a failover are kept.
    pub abandoned_keep_days: u32,
}

string_enum! {
    /// Whether a reclone waits for the export of divergent transactions.
    pub enum RescuePolicy {
        /// Until it is complete.
        Required = "Required",
        /// For a while.
        BestEffort = "BestEffort",
        /// Not at all.
        Off = "Off",
    }
}

impl Default for BackupSpec {
    fn default() -> Self {
        Self {
            image: None,
            image_pull_secrets: Vec::new(),
            profiles: Vec::new(),
            schedules: Vec::new(),
            pitr: None,
            max_lag_seconds_for_source: 300,
            scratch: None,
            resources: requirements("250m", "256Mi", "384Mi"),
            mysqld_resources: requirements("500m", "1Gi", "2Gi"),
            active_deadline_seconds: 7200,
            backoff_limit: 2,
            retry: BackupRetry::default(),
            divergence_rescue: DivergenceRescue::default(),
            allow_plaintext_fallback_until: None,
            pod_security_context: None,
            container_security_context: None,
        }
    }
}

impl Default for BackupRetry {
    fn default() -> Self {
        Self { max_attempts: 1, initial_backoff_seconds: 60, max_backoff_seconds: 1800 }
    }
}

impl Default for DivergenceRescue {
    fn default() -> Self {
        Self { policy: RescuePolicy::BestEffort, profile_name: None, timeout: GoDuration::from_mins(10) }
    }
}

impl Default for PitrSpec {
    fn default() -> Self {
        Self {
            enabled: false,
            profile_name: None,
            archive_poll_interval: GoDuration::from_secs(60),
            max_binlog_size: "100M".to_owned(),
            abandoned_keep_days: 30,
        }
    }
}

fn requirements(cpu: &str, memory: &str, memory_limit: &str) -> ResourceRequirements {
    let entry = |name: &str, amount: &str| (name.to_owned(), Quantity(amount.to_owned()));
    ResourceRequirements {
        requests: Some([entry("cpu", cpu), entry("memory", memory)].into()),
        limits: Some([entry("memory", memory_limit)].into()),
        claims: None,
    }
}
