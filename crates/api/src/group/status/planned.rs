//! The last planned failover.
//!
//! In: what the leader persists at every step. Out: everything that a new leader needs to go on. Must not: hold a budget
//! that is not written down here (start times and effective values are), or lose a millisecond of it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::go_duration::GoDuration;
use crate::string_enum::string_enum;

/// The last planned failover; kept until the next accepted request replaces it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlannedFailoverStatus {
    /// Step.
    pub phase: PlannedFailoverPhase,
    /// Id of the request, given or generated.
    #[serde(default)]
    pub request_id: String,
    /// Who asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<PlannedFailoverOrigin>,
    /// Site to be promoted.
    #[serde(default)]
    pub target: String,
    /// Site that was active.
    #[serde(default)]
    pub source_primary: String,
    /// `gtid_executed` of the source after its fence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_gtid_at_fence: Option<String>,
    /// `gtid_executed` of the target just before it became writable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_gtid_at_promotion: Option<String>,
    /// When the request was accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<MicroTime>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<MicroTime>,
    /// How long it took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_seconds: Option<i64>,
    /// Transactions of the source that the target lacked: 0 by construction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transactions_lost: Option<i64>,
    /// Why it was refused, deferred or failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<PlannedFailoverReason>,
    /// For people.
    #[serde(default)]
    pub message: String,
    /// Effective value, copied at accept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_lag_wait: Option<GoDuration>,
    /// Effective value, copied at accept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain_timeout: Option<GoDuration>,
    /// Start of the drain budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain_start_time: Option<MicroTime>,
    /// Client connections left when the drain ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remaining_connections: Option<i64>,
    /// Start of the lag budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lag_wait_start_time: Option<MicroTime>,
    /// When a deferred request is tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<MicroTime>,
    /// The cache's part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dragonfly: Option<PlannedDragonflyStatus>,
}

/// The cache's part of a planned failover.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PlannedDragonflyStatus {
    /// Whether the cache took part.
    pub enabled: bool,
    /// Start of the sync budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync_wait_start_time: Option<MicroTime>,
    /// Replication offset of the source when it was drained.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_offset_at_drain: Option<i64>,
    /// Whether that offset could not be read.
    pub offset_capture_failed: bool,
    /// Replication offset of the target when it was promoted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_offset_at_promotion: Option<i64>,
    /// How long the sync took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync_wait_seconds: Option<i64>,
    /// Whether sessions survived; absent while it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sessions_preserved: Option<bool>,
    /// How the target was promoted; empty when it was not.
    pub promotion_method: PromotionMethod,
    /// Why sessions were not preserved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<PlannedFailoverReason>,
    /// For people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

string_enum! {
    /// Step of a planned failover.
    pub enum PlannedFailoverPhase {
        /// Accepted.
        Pending = "Pending",
        /// All checks again.
        Validating = "Validating",
        /// Waits for the end of the cooldown.
        Deferred = "Deferred",
        /// The source is fenced, clients are ended.
        Draining = "Draining",
        /// The target catches up.
        WaitingForLag = "WaitingForLag",
        /// The target cache catches up.
        WaitingForDragonflySync = "WaitingForDragonflySync",
        /// The target cache takes over.
        PromotingDragonfly = "PromotingDragonfly",
        /// The target becomes writable.
        Promoting = "Promoting",
        /// The result is persisted.
        Resuming = "Resuming",
        /// Done.
        Succeeded = "Succeeded",
        /// Ended without a move, or handed to the emergency path.
        Failed = "Failed",
    }
}

string_enum! {
    /// Who asked for a planned failover.
    pub enum PlannedFailoverOrigin {
        /// The annotation.
        Annotation = "Annotation",
        /// An ordered update.
        OrderedUpdate = "OrderedUpdate",
    }
}

string_enum! {
    /// Why a planned failover was refused, deferred or failed.
    pub enum PlannedFailoverReason {
        /// The cooldown is in force.
        CooldownActive = "CooldownActive",
        /// No such site, or it is dr-only.
        UnknownSite = "UnknownSite",
        /// The target does not replicate, or is too far behind.
        TargetUnhealthy = "TargetUnhealthy",
        /// Another operation runs.
        ConcurrentOperation = "ConcurrentOperation",
        /// The annotation cannot be read.
        InvalidAnnotation = "InvalidAnnotation",
        /// The group is paused.
        Paused = "Paused",
        /// The annotation was removed while deferred.
        Cancelled = "Cancelled",
        /// The target became active while deferred.
        AlreadyActive = "AlreadyActive",
        /// The target did not catch up in time.
        LagTimeout = "LagTimeout",
        /// A GTID set could not be read.
        InvalidGtid = "InvalidGTID",
        /// The source was lost.
        SourceCrashed = "SourceCrashed",
        /// The promotion failed past its budget.
        ExecuteFailed = "ExecuteFailed",
        /// The target cache did not catch up in time.
        DragonflySyncTimeout = "DragonflySyncTimeout",
        /// The target cache could not take over.
        DragonflyPromotionFailed = "DragonflyPromotionFailed",
        /// Something of ours.
        InternalError = "InternalError",
    }
}

string_enum! {
    /// How a cache was promoted.
    #[derive(Default)]
    pub enum PromotionMethod {
        /// Not promoted.
        #[default]
        None = "",
        /// Took over with its sessions.
        ReplTakeover = "REPLTAKEOVER",
        /// Made a master without its sessions.
        ReplicaOfNoOne = "REPLICAOF NO ONE",
        /// Turned off meanwhile.
        Skipped = "skipped",
    }
}

impl PlannedFailoverPhase {
    /// Whether the run is over.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }

    /// Whether the run holds the guard that suspends automatic evaluation: Pending to Resuming, not Deferred.
    pub const fn is_active(self) -> bool {
        !matches!(self, Self::Deferred | Self::Succeeded | Self::Failed)
    }
}
