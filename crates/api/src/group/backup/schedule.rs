//! When backups are taken.
//!
//! In: an entry of `spec.backup.schedules`. Out: `BackupSchedule`. Must not: compute instants; the CronJob decides them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::shared::utc;
use crate::string_enum::string_enum;

/// A schedule, kept as a CronJob.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackupSchedule {
    /// Name: lower case letters, digits and `-`.
    #[schemars(length(min = 1, max = 40))]
    pub name: String,
    /// Profile that is used; must exist.
    #[schemars(length(min = 1, max = 40))]
    pub profile_name: String,
    /// Five cron fields: minute, hour, day of month, month, day of week.
    #[schemars(length(min = 1, max = 128))]
    pub schedule: String,
    /// Time zone of the schedule.
    #[serde(default = "utc")]
    #[schemars(length(min = 1, max = 64))]
    pub time_zone: String,
    /// Whether the schedule rests.
    #[serde(default)]
    pub suspend: bool,
    /// Seconds by which a missed start may still be made up for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub starting_deadline_seconds: Option<i64>,
    /// What happens when a trigger meets its predecessor; backups themselves never overlap.
    #[serde(default = "default_concurrency_policy")]
    pub concurrency_policy: ConcurrencyPolicy,
    /// Finished trigger Jobs kept.
    #[serde(default = "default_history_limit")]
    #[schemars(range(min = 0))]
    pub successful_jobs_history_limit: i32,
    /// Failed trigger Jobs kept.
    #[serde(default = "default_history_limit")]
    #[schemars(range(min = 0))]
    pub failed_jobs_history_limit: i32,
}

string_enum! {
    /// What happens when a trigger meets its predecessor.
    pub enum ConcurrencyPolicy {
        /// Both run.
        Allow = "Allow",
        /// The new one is skipped.
        Forbid = "Forbid",
        /// The old one is ended.
        Replace = "Replace",
    }
}

const fn default_concurrency_policy() -> ConcurrencyPolicy {
    ConcurrencyPolicy::Forbid
}

const fn default_history_limit() -> i32 {
    3
}
