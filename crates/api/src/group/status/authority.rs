//! The record of who may write.
//!
//! In: the status, or the annotation that is its second copy. Out: the same record from both. Must not: lose a field or a
//! microsecond between the two copies.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::go_duration::GoDuration;
use crate::string_enum::string_enum;

/// The record of who may write.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Authority {
    /// Number of this record: rises with every change of site, instance, voters, lease settings, or phase to Revoking;
    /// never goes back.
    pub epoch: i64,
    /// Epoch of the grant that began the present holder's time.
    pub tenure: i64,
    /// Site that may write; empty while Revoking.
    #[serde(default)]
    #[schemars(length(max = 63))]
    pub site: String,
    /// Instance of that site that may write; empty while Revoking.
    #[serde(default)]
    pub instance: String,
    /// How far the grant is.
    pub phase: AuthorityPhase,
    /// Instances whose vouches count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub voters: Vec<InstanceRef>,
    /// Lease setting of this epoch: how long a grant or vouch lasts. Absent in a record of an older version: that of the
    /// newest set of the holder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_timeout: Option<GoDuration>,
    /// Lease setting of this epoch: vouches needed while the operator is silent. Absent in a record of an older version:
    /// that of the newest set of the holder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_peers: Option<u32>,
    /// Time of this epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<MicroTime>,
    /// Why this epoch began.
    pub cause: AuthorityCause,
    /// Proof that the previous holder has let go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<ReleaseProof>,
    /// First epoch of the present unbroken run of Revoking epochs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<i64>,
    /// Last instance that may have been writable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<Holder>,
    /// Instances of the record that were seen to have ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ended: Vec<EndedInstance>,
}

/// An instance: one life of a site.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstanceRef {
    /// Site.
    pub site: String,
    /// `<pod UID>/<store id>`.
    pub instance: String,
}

/// Proof that an instance has let go.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseProof {
    /// Kind of proof.
    #[serde(rename = "type")]
    pub kind: ProofType,
    /// Site it is about.
    pub site: String,
    /// Instance it is about.
    pub instance: String,
    /// When it was found.
    pub at: MicroTime,
    /// What it rests on, for people.
    #[serde(default)]
    pub evidence: String,
}

/// Last instance that may have been writable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Holder {
    /// Site.
    #[schemars(length(max = 63))]
    pub site: String,
    /// Instance.
    pub instance: String,
    /// `server_uuid` of its MySQL server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_uuid: Option<String>,
    /// Every voter set that the instance may still hold, the newest last; a proof must hold for each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sets: Vec<VoterSet>,
    /// Whether the operator sent it a fence by SQL since its last grant; noted before it is sent, so that such a fence is
    /// not taken for a human's. Absent: no.
    #[serde(default, skip_serializing_if = "is_false")]
    pub sql_fence_sent: bool,
}

/// Voters with the lease settings that they were given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VoterSet {
    /// Epoch that brought this set. Absent in a record of an older version: the record's own, so that the set stays until
    /// the holder has acknowledged a later one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<i64>,
    /// The voters.
    #[serde(default)]
    pub voters: Vec<InstanceRef>,
    /// How long a grant or vouch lasts.
    pub lease_timeout: GoDuration,
    /// Vouches needed while the operator is silent.
    pub min_peers: u32,
}

/// An instance that was seen to have ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EndedInstance {
    /// Site.
    pub site: String,
    /// Instance.
    pub instance: String,
    /// When its end was seen.
    pub at: MicroTime,
}

string_enum! {
    /// How far a grant is.
    pub enum AuthorityPhase {
        /// Nobody may write.
        Revoking = "Revoking",
        /// The instance may, once opened.
        Granting = "Granting",
        /// Opened and read back.
        Stable = "Stable",
    }
}

string_enum! {
    /// Why an epoch began.
    pub enum AuthorityCause {
        /// First grant of a group.
        Bootstrap = "Bootstrap",
        /// Automatic failover.
        Emergency = "Emergency",
        /// Planned failover.
        Planned = "Planned",
        /// Hand-over of an ordered update.
        OrderedUpdate = "OrderedUpdate",
        /// Winner of a split brain without history.
        SplitBrain = "SplitBrain",
        /// Promotion by hand.
        Manual = "Manual",
        /// In-place restore.
        Restore = "Restore",
        /// Planned failover rolled back.
        Rollback = "Rollback",
        /// New instance of the holder.
        Instance = "Instance",
        /// Holder fenced by others, or a conflict of views.
        Regrant = "Regrant",
        /// Voters changed.
        Voters = "Voters",
        /// Lease settings changed.
        Lease = "Lease",
        /// The record was behind what sidecars had heard.
        RecordBehind = "RecordBehind",
    }
}

string_enum! {
    /// Kind of proof that an instance has let go.
    pub enum ProofType {
        /// Its own sidecar says that it is fenced.
        FencedBySidecar = "FencedBySidecar",
        /// The instance has ended.
        ProcessEnded = "ProcessEnded",
        /// Its lease is over for every voter set.
        LeaseExpired = "LeaseExpired",
        /// Assumed, by choice of the user.
        Assumed = "Assumed",
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
const fn is_false(value: &bool) -> bool {
    !*value
}
