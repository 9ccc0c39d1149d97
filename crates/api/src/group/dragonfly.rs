//! The Dragonfly cache that follows the MySQL primary.
//!
//! In: `spec.dragonfly`. Out: typed settings. Must not: let a cache setting change what MySQL does, the planned
//! failover's `onSyncTimeout` apart.

use k8s_openapi::api::core::v1::{PodSecurityContext, ResourceRequirements, SecurityContext};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::go_duration::GoDuration;
use crate::string_enum::string_enum;

/// Dragonfly beside MySQL: cache and session state, best effort.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DragonflySpec {
    /// Off: its objects are deleted.
    pub enabled: bool,
    /// Image with a tag or digest and not `:latest`; required when enabled. Supported from v1.38.0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub image: Option<String>,
    /// Client port.
    #[schemars(range(min = 1))]
    pub port: u16,
    /// Admin port, another than the client port.
    #[schemars(range(min = 1))]
    pub admin_port: u16,
    /// Memory limit in megabytes (`--maxmemory`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_memory_mb: Option<u32>,
    /// Threads (`--proactor_threads`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub proactor_threads: Option<u32>,
    /// Further flags, passed last; flags that the operator owns are refused.
    #[schemars(length(max = 64), inner(length(max = 1024)), extend("x-kubernetes-list-type" = "atomic"))]
    pub args: Vec<String>,
    /// Password of the cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth: Option<DragonflyAuth>,
    /// Resources of the container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceRequirements>,
    /// Security context of the pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_security_context: Option<PodSecurityContext>,
    /// Security context of the container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container_security_context: Option<SecurityContext>,
    /// Where snapshots go; needed for a snapshot upgrade.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<DragonflySnapshot>,
    /// What a planned failover does about the cache.
    pub planned_failover: DragonflyPlannedFailover,
    /// How long a returned master that took writes is kept before it is attached again and its data discarded; at least
    /// 10s.
    pub stale_master_grace: GoDuration,
}

/// Password of the cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DragonflyAuth {
    /// Secret that holds the password.
    #[schemars(length(min = 1, max = 253))]
    pub secret_name: String,
    /// Key inside the Secret.
    #[serde(default = "default_password_key")]
    #[schemars(length(min = 1, max = 253))]
    pub password_key: String,
}

/// Where snapshots go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DragonflySnapshot {
    /// Folder or bucket address (`--dir`).
    #[schemars(length(min = 1, max = 1024))]
    pub dir: String,
    /// Service account of the pod, for access to the bucket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub service_account_name: Option<String>,
    /// Secret with the bucket's credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub credentials_secret_name: Option<String>,
    /// Address of the object store (`--s3_endpoint`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub s3_endpoint: Option<String>,
    /// `--s3_use_https`.
    #[serde(rename = "s3UseHTTPS", default, skip_serializing_if = "Option::is_none")]
    pub s3_use_https: Option<bool>,
    /// `--s3_sign_payload`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub s3_sign_payload: Option<bool>,
}

/// What a planned failover does about the cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DragonflyPlannedFailover {
    /// Longest wait for the target cache, and the REPLTAKEOVER timeout; at least 1s.
    pub max_sync_wait: GoDuration,
    /// Cache not in step in time: `proceed` without its sessions, or `fail` and roll back before MySQL is promoted.
    pub on_sync_timeout: OnSyncTimeout,
}

string_enum! {
    /// Cache not in step in time.
    pub enum OnSyncTimeout {
        /// MySQL goes on; sessions may be lost.
        Proceed = "proceed",
        /// The planned failover is rolled back.
        Fail = "fail",
    }
}

impl Default for DragonflySpec {
    fn default() -> Self {
        Self {
            enabled: false,
            image: None,
            port: 6379,
            admin_port: 9999,
            max_memory_mb: None,
            proactor_threads: None,
            args: Vec::new(),
            auth: None,
            resources: None,
            pod_security_context: None,
            container_security_context: None,
            snapshot: None,
            planned_failover: DragonflyPlannedFailover::default(),
            stale_master_grace: GoDuration::from_mins(5),
        }
    }
}

impl Default for DragonflyPlannedFailover {
    fn default() -> Self {
        Self { max_sync_wait: GoDuration::from_secs(30), on_sync_timeout: OnSyncTimeout::Proceed }
    }
}

fn default_password_key() -> String {
    "password".to_owned()
}
