//! `MysqlBackup`: one backup, asked for or taken.
//!
//! In: a spec that never changes. Out: the record of one backup, complete enough to restore and to clean up without the
//! group or profile that made it. Must not: hold secrets.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::group::{BackupStorage, EncryptionAlgorithm, StorageType};
use crate::reasons::FailureReason;
use crate::shared::NameRef;
use crate::string_enum::string_enum;
use crate::verification::VerificationLevel;

/// Spec of a backup; cannot be changed.
#[derive(CustomResource, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "shipstream.io",
    version = "v1alpha1",
    kind = "MysqlBackup",
    plural = "mysqlbackups",
    singular = "mysqlbackup",
    shortname = "mb",
    namespaced,
    status = "MysqlBackupStatus",
    derive = "PartialEq",
    doc = "One backup of a failover group, at one exact GTID point.",
    printcolumn = r#"{"name":"Group","type":"string","jsonPath":".spec.failoverGroupRef.name"}"#,
    printcolumn = r#"{"name":"Profile","type":"string","jsonPath":".spec.profileName"}"#,
    printcolumn = r#"{"name":"Phase","type":"string","jsonPath":".status.phase"}"#,
    printcolumn = r#"{"name":"Source","type":"string","jsonPath":".status.sourceSite"}"#,
    printcolumn = r#"{"name":"Started","type":"date","jsonPath":".status.startTime"}"#,
    printcolumn = r#"{"name":"Completed","type":"date","jsonPath":".status.completionTime"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name":"Location","type":"string","jsonPath":".status.location","priority":1}"#,
    printcolumn = r#"{"name":"Size","type":"string","jsonPath":".status.size","priority":1}"#,
    printcolumn = r#"{"name":"Verified","type":"string","jsonPath":".status.verified.level","priority":1}"#
)]
#[serde(rename_all = "camelCase")]
pub struct MysqlBackupSpec {
    /// Group that is backed up, in the same namespace.
    pub failover_group_ref: NameRef,
    /// Profile of that group.
    #[schemars(length(min = 1, max = 40))]
    pub profile_name: String,
    /// Site to take it from. Left out: the most caught-up one that is not active.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub source_site_override: Option<String>,
    /// Who asked: `manual`, `restore`, `schedule/<schedule>`, `retry/<schedule>/attempt-<n>`.
    #[serde(default = "manual")]
    #[schemars(length(min = 1, max = 128))]
    pub triggered_by: String,
    /// Attempt, from 1.
    #[serde(default = "first_attempt")]
    #[schemars(range(min = 1))]
    pub attempt: i32,
    /// UID of the backup that this one retries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub retry_of: Option<String>,
}

/// Status of a backup.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MysqlBackupStatus {
    /// How far it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<BackupPhase>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<FailureReason>,
    /// When it began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// When its Job ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,
    /// Its Job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_name: Option<String>,
    /// Site that it was taken from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_site: Option<String>,
    /// Why from there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_reason: Option<SourceReason>,
    /// Site that was active when it began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_site_at_start: Option<String>,
    /// Epoch when it began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epoch_at_start: Option<i64>,
    /// Kind of store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_type: Option<StorageType>,
    /// The store as it was then, so that cleanup needs no profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage: Option<BackupStorage>,
    /// `s3://bucket/key/` or `pvc://claim/path/`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// Size before compression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<i64>,
    /// Size in the store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored_bytes: Option<i64>,
    /// Size for people, in binary units.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<String>,
    /// The exact point.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gtid_executed: Option<String>,
    /// Newest original commit time in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub point_time: Option<Time>,
    /// Version of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mysql_version: Option<String>,
    /// Image of the Job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mysql_image: Option<String>,
    /// Whether it is encrypted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encrypted: Option<bool>,
    /// How.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encryption_algorithm: Option<EncryptionAlgorithm>,
    /// Digest of its manifest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manifest_sha256: Option<String>,
    /// Proof that it can be restored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verified: Option<VerifiedMark>,
    /// For people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Generation of the spec that this status speaks of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `JobCreated` and `Ready`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// Proof that a backup can be restored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VerifiedMark {
    /// When.
    pub time: Time,
    /// How thoroughly.
    pub level: VerificationLevel,
}

string_enum! {
    /// How far a backup is.
    pub enum BackupPhase {
        /// Accepted.
        Pending = "Pending",
        /// Its Job runs.
        Running = "Running",
        /// Complete in the store.
        Succeeded = "Succeeded",
        /// Ended without success.
        Failed = "Failed",
    }
}

string_enum! {
    /// Why a backup was taken from its site.
    pub enum SourceReason {
        /// The spec says so.
        Override = "override",
        /// The most caught-up site that was not active.
        ReplicaPreferred = "replica-preferred",
        /// No other site was fit.
        PrimaryFallback = "primary-fallback",
    }
}

fn manual() -> String {
    "manual".to_owned()
}

const fn first_attempt() -> i32 {
    1
}
