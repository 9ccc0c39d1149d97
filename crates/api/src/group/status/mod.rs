//! The group's status: what the operator has seen, decided and done.
//!
//! In: nothing from users. Out: the shape that kubectl, dashboards and a new leader read. Must not: carry defaults in the
//! schema (an absent field means "not known"), or be written by anyone but the group's one writer.
//!
//! Times that a new leader goes on from (the record, the last failover, every step of a planned failover, an update or the
//! cache) are kept with microseconds, so that what is read is what was written; times for people alone have seconds.

mod authority;
mod backup;
mod dragonfly;
mod planned;
mod site;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, MicroTime, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use authority::*;
pub use backup::*;
pub use dragonfly::*;
pub use planned::*;
pub use site::*;

use crate::string_enum::string_enum;

/// Status of a failover group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MysqlFailoverGroupStatus {
    /// Generation of the spec that this status speaks of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Site that may write; empty while nobody may.
    #[schemars(length(max = 63))]
    pub active_site: String,
    /// The record of who may write: the only answer to that question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authority: Option<Authority>,
    /// What is known of each site.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub sites: Vec<SiteStatus>,
    /// One condition per question.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// Time of the last confirmed move to another site; starts the cooldown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_failover: Option<MicroTime>,
    /// Site of the last confirmed move.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_failover_target: Option<String>,
    /// `gtid_executed` of the promoted site just before it became writable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promotion_gtid_executed: Option<String>,
    /// Transactions that the promoted site had received and not applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unapplied_gtid_at_promotion: Option<String>,
    /// Their number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unapplied_transaction_count: Option<i64>,
    /// Step of the ordered update; empty when none runs.
    pub update_phase: UpdatePhase,
    /// Site being rolled.
    pub update_site: String,
    /// When this step of the ordered update began; starts the step's budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update_since: Option<MicroTime>,
    /// Why the ordered update stands still; it goes on when the cause is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update_stopped: Option<String>,
    /// The last accepted planned failover.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planned_failover: Option<PlannedFailoverStatus>,
    /// The Dragonfly cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dragonfly: Option<DragonflyStatus>,
    /// The restore of spec.initFromBackup.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restore: Option<RestoreStatus>,
    /// The restore of spec.restoreInPlace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restore_in_place: Option<RestoreInPlaceStatus>,
    /// The backup schedules.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub backup_schedules: Vec<BackupScheduleStatus>,
    /// Time of the newest successful backup.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_backup_time: Option<Time>,
    /// What is known of the backups.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backup: Option<BackupOverview>,
    /// The archive of binary logs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pitr: Option<PitrStatus>,
}

string_enum! {
    /// Step of an ordered update.
    #[derive(Default)]
    pub enum UpdatePhase {
        /// None runs.
        #[default]
        None = "",
        /// A drifted follower is patched.
        UpdateReplica = "UpdateReplica",
        /// Until that follower replicates and has caught up.
        WaitReplica = "WaitReplica",
        /// Hand-over to it.
        Failover = "Failover",
        /// The old active site is patched.
        UpdateOldPrimary = "UpdateOldPrimary",
        /// Until the old active site replicates and has caught up.
        WaitOldPrimary = "WaitOldPrimary",
        /// Done.
        Complete = "Complete",
    }
}
