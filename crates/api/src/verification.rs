//! `MysqlBackupVerification`: one proof that a backup can be restored.
//!
//! In: a spec that never changes. Out: what was restored, how far it was replayed, how it compared. Must not: hold row
//! values; a sanity check keeps a row count and one short value.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::shared::{NameRef, VolumeRequest, yes};
use crate::string_enum::string_enum;

/// Spec of a verification; cannot be changed.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "shipstream.io",
    version = "v1alpha1",
    kind = "MysqlBackupVerification",
    plural = "mysqlbackupverifications",
    singular = "mysqlbackupverification",
    shortname = "mbv",
    namespaced,
    status = "MysqlBackupVerificationStatus",
    derive = "PartialEq",
    doc = "One proof that a backup can be restored: restored, replayed, compared.",
    printcolumn = r#"{"name":"Group","type":"string","jsonPath":".spec.failoverGroupRef.name"}"#,
    printcolumn = r#"{"name":"Profile","type":"string","jsonPath":".spec.profileName"}"#,
    printcolumn = r#"{"name":"Phase","type":"string","jsonPath":".status.phase"}"#,
    printcolumn = r#"{"name":"Target","type":"string","jsonPath":".status.target.gtid"}"#,
    printcolumn = r#"{"name":"Started","type":"date","jsonPath":".status.startTime"}"#,
    printcolumn = r#"{"name":"Completed","type":"date","jsonPath":".status.completionTime"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name":"Backup","type":"string","jsonPath":".status.backupRef.name","priority":1}"#,
    printcolumn = r#"{"name":"Compare","type":"string","jsonPath":".status.compare.result","priority":1}"#
)]
#[serde(rename_all = "camelCase")]
pub struct MysqlBackupVerificationSpec {
    /// Group whose backup is verified, in the same namespace.
    pub failover_group_ref: NameRef,
    /// Profile of that group.
    #[schemars(length(min = 1, max = 40))]
    pub profile_name: String,
    /// The backup. Left out: the newest successful one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup_ref: Option<NameRef>,
    /// Volume of the verification. Left out: the source site's class and 1.5 x the backup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<VolumeRequest>,
    /// Whether pod and volume stay after a failure.
    #[serde(default = "yes")]
    pub keep_on_failure: bool,
    /// Seconds until the finished record is deleted; 0: retention alone decides.
    #[serde(default)]
    pub ttl_seconds_after_finished: u32,
    /// Who asked: `manual`, or `schedule/<profile>`.
    #[serde(default = "manual")]
    #[schemars(length(min = 1, max = 128))]
    pub triggered_by: String,
    /// How far the archive is replayed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub point_in_time: Option<VerificationPointInTime>,
    /// Comparison with a replica, table by table; needs point-in-time recovery.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compare: Option<CompareSpec>,
    /// A query of your own against the restored copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sanity_check: Option<SanityCheckSpec>,
}

/// How far the archive is replayed onto the restored copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct VerificationPointInTime {
    /// `none`: not at all; `latest`: to its end; `random`: to just before a transaction drawn by chance; `timestamp` and
    /// `gtid`: to the point given below.
    pub mode: ReplayMode,
    /// With mode timestamp: the point (RFC 3339 with offset).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"), length(max = 64))]
    pub timestamp: Option<String>,
    /// With mode gtid: replay stops before this transaction.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub gtid: Option<String>,
}

/// Comparison with a replica, table by table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct CompareSpec {
    /// Whether tables are compared.
    pub enabled: bool,
    /// Longest time; what was not compared by then is said.
    #[schemars(range(min = 1))]
    pub max_duration_seconds: u32,
    /// Tables compared at once.
    #[schemars(range(min = 1, max = 64))]
    pub max_parallel: u32,
    /// Tables left out, `schema.table`.
    #[schemars(length(max = 256), inner(length(min = 1, max = 129)), extend("x-kubernetes-list-type" = "atomic"))]
    pub exclude_tables: Vec<String>,
}

/// A query of your own against the restored copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SanityCheckSpec {
    /// One SELECT, on one line; run by a read-only account.
    #[schemars(length(min = 1, max = 4096))]
    pub query: String,
    /// What it must give.
    #[serde(default)]
    pub expect: SanityCheckExpectation,
}

/// What a sanity check must give.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SanityCheckExpectation {
    /// At least so many rows.
    pub min_rows: u32,
    /// Within so many seconds.
    #[schemars(range(min = 1))]
    pub max_duration_seconds: u32,
}

/// Status of a verification.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MysqlBackupVerificationStatus {
    /// How far it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<VerificationPhase>,
    /// The backup that is verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backup_ref: Option<VerifiedBackupRef>,
    /// Seed of the random choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<i64>,
    /// Point to reach.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<VerificationTarget>,
    /// Set that was reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reached_gtid: Option<String>,
    /// Result of the comparison.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compare: Option<CompareStatus>,
    /// Result of the query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sanity_check: Option<SanityCheckStatus>,
    /// When it began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,
    /// How long it took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_seconds: Option<i64>,
    /// Its Job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_name: Option<String>,
    /// For people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Generation of the spec that this status speaks of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `Verified` and `ResourcesCleanedUp`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// The backup that is verified.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VerifiedBackupRef {
    /// Name.
    pub name: String,
    /// UID.
    #[serde(default)]
    pub uid: String,
    /// Where it is.
    #[serde(default)]
    pub location: String,
}

/// Point that a verification replays to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct VerificationTarget {
    /// Set to reach.
    pub gtid: String,
    /// Commit time of its last transaction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit_time: Option<Time>,
}

/// Result of the comparison with a replica.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompareStatus {
    /// Result.
    pub result: CompareResult,
    /// Set at which both were compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_gtid: Option<String>,
    /// Site of the replica.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replica_site: Option<String>,
    /// Tables compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tables: Option<i64>,
    /// Rows compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<i64>,
    /// Where they differ, the first 50; keys, never values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    pub differences: Vec<String>,
}

/// Result of a sanity check.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SanityCheckStatus {
    /// Whether the query ran.
    pub ran: bool,
    /// How long it took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<i64>,
    /// Row count and first value, cut to 256 bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_row: Option<String>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

string_enum! {
    /// How far the archive is replayed.
    pub enum ReplayMode {
        /// Not at all.
        None = "none",
        /// To its end.
        Latest = "latest",
        /// To just before a transaction drawn by chance.
        Random = "random",
        /// To a time.
        Timestamp = "timestamp",
        /// To just before a transaction.
        Gtid = "gtid",
    }
}

string_enum! {
    /// How far a verification is.
    pub enum VerificationPhase {
        /// Accepted.
        Pending = "Pending",
        /// Pod and volume are made.
        Provisioning = "Provisioning",
        /// The backup is restored.
        Restoring = "Restoring",
        /// The archive is replayed.
        Replaying = "Replaying",
        /// Sets, tables and the query are checked.
        Checking = "Checking",
        /// Pod and volume go.
        Cleaning = "Cleaning",
        /// Everything held.
        Succeeded = "Succeeded",
        /// Something did not.
        Failed = "Failed",
    }
}

string_enum! {
    /// How thoroughly a backup was verified.
    pub enum VerificationLevel {
        /// Restored.
        Restore = "restore",
        /// Restored and replayed.
        Replay = "replay",
        /// Restored, replayed and compared.
        Compare = "compare",
    }
}

string_enum! {
    /// Result of the comparison with a replica.
    pub enum CompareResult {
        /// Every table is equal.
        Equal = "Equal",
        /// Some are not.
        Different = "Different",
        /// Time was over; what was compared is equal.
        Partial = "Partial",
        /// There was nothing to compare with.
        Unavailable = "Unavailable",
    }
}

impl Default for VerificationPointInTime {
    fn default() -> Self {
        Self { mode: ReplayMode::None, timestamp: None, gtid: None }
    }
}

impl Default for CompareSpec {
    fn default() -> Self {
        Self { enabled: false, max_duration_seconds: 1800, max_parallel: 4, exclude_tables: Vec::new() }
    }
}

impl Default for SanityCheckExpectation {
    fn default() -> Self {
        Self { min_rows: 0, max_duration_seconds: 60 }
    }
}

fn manual() -> String {
    "manual".to_owned()
}
