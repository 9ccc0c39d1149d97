//! The Dragonfly cache as seen.
//!
//! In: the cache manager's observations. Out: `status.dragonfly`. Must not: be read to decide anything about MySQL.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::string_enum::string_enum;

/// The cache as seen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DragonflyStatus {
    /// Whether it is on.
    pub enabled: bool,
    /// Site of the active cache; may differ from the MySQL one.
    pub active_site: String,
    /// What goes on.
    pub phase: DragonflyPhase,
    /// For people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Time of the last promotion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_promotion_time: Option<MicroTime>,
    /// Site of the last promotion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_promotion_target: Option<String>,
    /// Site of a promotion that was begun and is not known to be over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promoting: Option<String>,
    /// Masters that should be replicas.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub stale_masters: Vec<StaleMasterStatus>,
    /// Each site's cache.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub sites: Vec<DragonflySiteStatus>,
    /// The snapshot upgrade.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upgrade: Option<DragonflyUpgradeStatus>,
}

/// One site's cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DragonflySiteStatus {
    /// Site.
    pub name: String,
    /// What it is.
    #[serde(default)]
    pub role: DragonflyRole,
    /// Whether it answers.
    #[serde(default)]
    pub reachable: bool,
    /// Its Service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_name: Option<String>,
    /// Its pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_name: Option<String>,
    /// State of its replication, as the server words it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replication_state: Option<String>,
    /// State of its link to the master, as the server words it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_status: Option<String>,
    /// Whether a full sync runs.
    #[serde(default)]
    pub sync_in_progress: bool,
    /// Seconds since it last heard its master; -1: never.
    #[serde(rename = "lastIOSecondsAgo", default, skip_serializing_if = "Option::is_none")]
    pub last_io_seconds_ago: Option<i64>,
    /// Whether it could take over now.
    #[serde(default)]
    pub ready: bool,
    /// Whether the server knows REPLTAKEOVER.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub takeover_supported: Option<bool>,
    /// For people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// A master that should be a replica.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StaleMasterStatus {
    /// Site.
    pub name: String,
    /// Since when it is known; starts staleMasterGrace.
    pub since: MicroTime,
}

/// The snapshot upgrade.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DragonflyUpgradeStatus {
    /// Step.
    pub phase: DragonflyUpgradePhase,
    /// Image before.
    #[serde(default)]
    pub source_image: String,
    /// Image wanted.
    #[serde(default)]
    pub target_image: String,
    /// Site of the active cache.
    #[serde(default)]
    pub active_site: String,
    /// Where the snapshot is.
    #[serde(default)]
    pub snapshot_dir: String,
    /// When it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<MicroTime>,
    /// When the snapshot was complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot_time: Option<MicroTime>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<MicroTime>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// For people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

string_enum! {
    /// What the cache manager does.
    #[derive(Default)]
    pub enum DragonflyPhase {
        /// The cache is off.
        #[default]
        Disabled = "Disabled",
        /// Objects are made.
        Reconciling = "Reconciling",
        /// Replicas are attached.
        ConfiguringReplication = "ConfiguringReplication",
        /// A master serves and every replica follows.
        Ready = "Ready",
        /// Something is missing.
        Degraded = "Degraded",
        /// A replica takes over.
        Promoting = "Promoting",
    }
}

string_enum! {
    /// What one site's cache is.
    #[derive(Default)]
    pub enum DragonflyRole {
        /// Not asked yet.
        #[default]
        Unknown = "unknown",
        /// The master of the active site.
        Master = "master",
        /// A replica.
        Replica = "replica",
        /// A master elsewhere than on the active site.
        StaleMaster = "stale-master",
        /// Neither attached nor serving.
        Unconfigured = "unconfigured",
        /// Does not answer.
        Unreachable = "unreachable",
    }
}

string_enum! {
    /// Step of a snapshot upgrade.
    pub enum DragonflyUpgradePhase {
        /// Accepted.
        Pending = "Pending",
        /// The snapshot is written.
        SavingSnapshot = "SavingSnapshot",
        /// The active cache gets the new image.
        UpdatingActive = "UpdatingActive",
        /// It loads the snapshot.
        WaitingForActiveRestore = "WaitingForActiveRestore",
        /// Replicas are attached again.
        ReattachingReplicas = "ReattachingReplicas",
        /// Done.
        Succeeded = "Succeeded",
        /// Ended without success.
        Failed = "Failed",
    }
}
