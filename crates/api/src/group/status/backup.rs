//! Backups, archive, restores and rescues as seen.
//!
//! In: finished Jobs and the archiver's reports. Out: their parts of the group's status. Must not: hold secrets or row
//! values.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::backup::BackupPhase;
use crate::reasons::FailureReason;
use crate::string_enum::string_enum;
use crate::verification::VerificationLevel;

/// One backup schedule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackupScheduleStatus {
    /// Schedule.
    pub name: String,
    /// Its CronJob.
    #[serde(default)]
    pub cron_job_name: String,
    /// Last scheduled instant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_schedule_time: Option<Time>,
    /// Last success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_successful_time: Option<Time>,
    /// Last backup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_backup_name: Option<String>,
    /// Its phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_backup_phase: Option<BackupPhase>,
    /// Last successful backup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_successful_backup_name: Option<String>,
    /// Attempt of the last retry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_retry_attempt: Option<i32>,
    /// When the next retry is due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_retry_time: Option<Time>,
    /// When the next run is expected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_run_estimate: Option<Time>,
}

/// What is known of the backups.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct BackupOverview {
    /// The newest backup that was restored as a proof.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_verified: Option<LastVerified>,
}

/// A backup that was restored as a proof.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastVerified {
    /// When.
    pub time: Time,
    /// Which.
    pub backup_name: String,
    /// How thoroughly.
    pub level: VerificationLevel,
    /// Set that was reached.
    #[serde(default)]
    pub gtid: String,
}

/// The archive of binary logs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PitrStatus {
    /// Whether it is on.
    pub enabled: bool,
    /// Profile whose store is used.
    pub profile_name: String,
    /// Last upload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_upload_at: Option<Time>,
    /// Commit time of the newest archived transaction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_archived_commit_time: Option<Time>,
    /// Closed files that are not archived yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backlog_files: Option<i64>,
    /// Files in the archive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archived_file_count: Option<i64>,
    /// Their size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archived_bytes: Option<i64>,
    /// Epoch of the current history.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeline: Option<i64>,
    /// Transactions that can be replayed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub covered_gtid: Option<String>,
    /// Holes, the first 20.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub gaps: Vec<ArchiveGap>,
    /// Number of all holes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap_count: Option<i64>,
    /// Archived transactions that did not survive a failover or restore.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub abandoned_transactions: Option<i64>,
    /// Spans to any point of which a restore is possible.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<RestoreWindow>,
    /// For people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// A hole in the archive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ArchiveGap {
    /// What is missing.
    pub gtid: String,
    /// How many transactions.
    pub transactions: i64,
    /// When it was found.
    pub detected_at: Time,
}

/// A span to any point of which a restore is possible.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestoreWindow {
    /// From.
    pub from_time: Time,
    /// To.
    pub to_time: Time,
    /// Backup that it starts from.
    pub backup_name: String,
}

/// What a restore resolved its request to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RestoreTarget {
    /// Set to reach.
    pub gtid: String,
    /// Commit time of its last transaction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_commit_time: Option<Time>,
    /// First transaction that is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_excluded_gtid: Option<String>,
    /// Whether clocks of sites disagreed around the point.
    pub clock_anomaly: bool,
}

/// What both kinds of restore report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RestoreProgress {
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<FailureReason>,
    /// Attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<i32>,
    /// Its Job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_name: Option<String>,
    /// Site that is filled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_site: Option<String>,
    /// When it began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,
    /// The backup's set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_gtid_executed: Option<String>,
    /// The backup's size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_size_bytes: Option<i64>,
    /// What the request was resolved to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<RestoreTarget>,
    /// Set that was reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_gtid_executed: Option<String>,
    /// Archived files that were replayed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replayed_files: Option<i64>,
    /// For people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// The restore of a new group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestoreStatus {
    /// Step.
    pub phase: RestorePhase,
    /// Progress and result.
    #[serde(flatten)]
    pub progress: RestoreProgress,
}

/// The restore of a running group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestoreInPlaceStatus {
    /// Step.
    pub phase: RestoreInPlacePhase,
    /// Progress and result.
    #[serde(flatten)]
    pub progress: RestoreProgress,
    /// What is restored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<RestoreScope>,
    /// The last `confirm` that was used, as written; only a later one starts a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm_token_used: Option<String>,
    /// Site that was active before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_primary: Option<String>,
    /// Until when it stays intact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_kept_until: Option<Time>,
}

/// Export of divergent transactions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RescueStatus {
    /// How far it is.
    pub phase: RescuePhase,
    /// What was exported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gtid: Option<String>,
    /// What could not be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_gtid: Option<String>,
    /// How many transactions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transactions: Option<i64>,
    /// What they touched, the first 50 tables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    pub tables: Vec<RescuedTable>,
    /// Where the export is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// Digest of its manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest_sha256: Option<String>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Time>,
    /// For people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// What divergent transactions did to one table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RescuedTable {
    /// Table.
    pub name: String,
    /// Rows inserted.
    pub inserts: i64,
    /// Rows updated.
    pub updates: i64,
    /// Rows deleted.
    pub deletes: i64,
}

string_enum! {
    /// Step of the restore of a new group.
    pub enum RestorePhase {
        /// Accepted.
        Pending = "Pending",
        /// A Job runs.
        Running = "Running",
        /// Done.
        Succeeded = "Succeeded",
        /// Ended without success.
        Failed = "Failed",
    }
}

string_enum! {
    /// Step of the restore of a running group.
    pub enum RestoreInPlacePhase {
        /// Everything that can be checked is checked.
        Preflight = "Preflight",
        /// The copy is built beside the old one.
        Staging = "Staging",
        /// The copy is swapped in, fenced, and checked.
        Validating = "Validating",
        /// The primary is fenced.
        Fencing = "Fencing",
        /// The target becomes the primary.
        Activating = "Activating",
        /// The other sites are cloned from it.
        Recloning = "Recloning",
        /// Done.
        Succeeded = "Succeeded",
        /// Ended without success; only a later confirm starts again.
        Failed = "Failed",
    }
}

string_enum! {
    /// What an in-place restore restores.
    pub enum RestoreScope {
        /// Everything.
        Full = "full",
    }
}

string_enum! {
    /// How far the export of divergent transactions is.
    pub enum RescuePhase {
        /// A Job runs.
        Running = "Running",
        /// All of them are exported.
        Complete = "Complete",
        /// Some are gone.
        Partial = "Partial",
        /// None could be exported.
        Failed = "Failed",
        /// There is no profile, or the policy is Off.
        Skipped = "Skipped",
    }
}

impl RestorePhase {
    /// Whether the restore is in flight.
    pub const fn is_in_flight(self) -> bool {
        !matches!(self, Self::Succeeded | Self::Failed)
    }
}

impl RestoreInPlacePhase {
    /// Whether the restore is in flight.
    pub const fn is_in_flight(self) -> bool {
        !matches!(self, Self::Succeeded | Self::Failed)
    }
}
