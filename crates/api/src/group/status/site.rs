//! What is known of one site.
//!
//! In: the leader's observations. Out: an entry of `status.sites`. Must not: publish as known what is not; unknown values
//! are absent, or `null` where the server itself says so.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RescueStatus;
use crate::group::SiteRole;
use crate::string_enum::string_enum;

/// What is known of one site.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SiteStatus {
    /// Site.
    #[schemars(length(max = 63))]
    pub name: String,
    /// Its effective role; absent for a site that is not declared any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<SiteRole>,
    /// Debounced state.
    #[serde(default)]
    pub state: SiteState,
    /// Last successful poll.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_seen: Option<Time>,
    /// `gtid_executed` as last read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gtid_executed: Option<String>,
    /// Both threads run and the source is the active site, on two polls in a row.
    #[serde(default)]
    pub replicating: bool,
    /// Lag; `null` while it is not known.
    #[serde(default)]
    pub seconds_behind_source: Option<i64>,
    /// Source that the site is configured to follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_host: Option<String>,
    /// Whether it follows the right source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_convergence_state: Option<SourceConvergenceState>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_convergence_reason: Option<SourceConvergenceReason>,
    /// Whether it is rejoining; empty when there is nothing to recover.
    #[serde(default)]
    pub recovery_state: RecoveryState,
    /// Transactions that the site has and the primary lacks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub divergent_gtid: Option<String>,
    /// Their number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub divergent_transaction_count: Option<i64>,
    /// Instance as seen now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// `server_id` as seen now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_id: Option<i64>,
    /// `server_uuid` as seen now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_uuid: Option<String>,
    /// Whether the site's nodes ought to carry the read-only taint.
    #[serde(default)]
    pub read_only_taint: bool,
    /// The clone into this site.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clone: Option<CloneStatus>,
    /// The site's sidecar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sidecar: Option<SidecarStatus>,
    /// Export of its divergent transactions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rescue: Option<RescueStatus>,
}

/// A clone into a site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CloneStatus {
    /// Step.
    pub phase: ClonePhase,
    /// Why it was started.
    pub source: CloneSource,
    /// Attempts so far.
    #[serde(default)]
    pub attempts: u32,
    /// Bytes copied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_done: Option<i64>,
    /// Bytes to copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_total: Option<i64>,
    /// For people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// What the site's sidecar says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SidecarStatus {
    /// Whether it answers.
    pub reachable: bool,
    /// Its version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Its instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// Epoch that it has stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epoch: Option<i64>,
    /// `read_only` as it read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// `super_read_only` as it read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub super_read_only: Option<bool>,
    /// Whether it says that its server is fenced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fenced: Option<bool>,
    /// Who fenced it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fenced_by: Option<String>,
    /// What mysqld does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mysqld: Option<String>,
    /// What is left of the lease.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_remaining_ms: Option<i64>,
    /// Peer that relayed this; empty when the sidecar answered itself.
    pub via: String,
}

string_enum! {
    /// Debounced state of a site.
    #[derive(Default)]
    pub enum SiteState {
        /// Not polled yet.
        #[default]
        Unknown = "unknown",
        /// Reachable with `read_only=0`.
        Writable = "writable",
        /// Reachable with `read_only=1`.
        ReadOnly = "read-only",
        /// Too many failed polls in a row.
        Unreachable = "unreachable",
    }
}

string_enum! {
    /// Whether a site follows the right source.
    pub enum SourceConvergenceState {
        /// It does.
        Converged = "Converged",
        /// Not yet.
        Pending = "Pending",
        /// It cannot.
        Blocked = "Blocked",
    }
}

string_enum! {
    /// Why a site follows the right source, or not.
    pub enum SourceConvergenceReason {
        /// The active site is its source.
        DirectSource = "DirectSource",
        /// Another site is.
        SourceMismatch = "SourceMismatch",
        /// It could not be read.
        ProbeFailed = "ProbeFailed",
        /// It could not be changed.
        MutationFailed = "MutationFailed",
        /// It has transactions that the primary lacks.
        GtidDiverged = "GTIDDiverged",
    }
}

string_enum! {
    /// Whether a site is rejoining.
    #[derive(Default)]
    pub enum RecoveryState {
        /// Nothing to recover.
        #[default]
        None = "",
        /// It is being attached.
        RecoveryInProgress = "RecoveryInProgress",
        /// It has transactions that the primary lacks.
        RecoveryBlocked = "RecoveryBlocked",
    }
}

string_enum! {
    /// Step of a clone.
    pub enum ClonePhase {
        /// Data is being copied.
        Cloning = "Cloning",
        /// The copied server starts.
        WaitingForRestart = "WaitingForRestart",
        /// It is attached to the primary.
        SetupReplication = "SetupReplication",
        /// It replicates.
        Done = "Done",
        /// It ended without success.
        Failed = "Failed",
    }
}

string_enum! {
    /// Why a clone was started.
    pub enum CloneSource {
        /// First filling of a new group.
        FreshDeploy = "fresh-deploy",
        /// An empty site was found.
        AutoClone = "auto-clone",
        /// The reclone annotation.
        Reclone = "reclone",
    }
}
