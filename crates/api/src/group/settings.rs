//! The group's settings, a struct per subject, each with its defaults beside it.
//!
//! In: the objects below `spec`. Out: values that are never absent. Must not: read one subject to interpret another.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::go_duration::GoDuration;
use crate::string_enum::string_enum;

/// A Secret per role, all in the group's namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Credentials {
    /// Keys `username`, `password`, `MYSQL_ROOT_PASSWORD`; optional `MYSQL_REPLICATION_USER` and
    /// `MYSQL_REPLICATION_PASSWORD`.
    #[schemars(length(min = 1, max = 253))]
    pub operator_secret: String,
    /// Account of applications: keys `username`, `password`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub app_secret: Option<String>,
    /// Read-only account: keys `username`, `password`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub read_only_secret: Option<String>,
    /// Account of monitoring: keys `username`, `password`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub monitor_secret: Option<String>,
    /// Account of backups: keys `username`, `password`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub backup_secret: Option<String>,
}

/// TLS of every MySQL connection; CA and name are verified.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TlsSpec {
    /// Secret with the keys `ca.crt`, `tls.crt`, `tls.key`.
    #[schemars(length(min = 1, max = 253))]
    pub secret_name: String,
    /// cert-manager issuer; given, the operator keeps a Certificate for that Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issuer_ref: Option<IssuerRef>,
}

/// A cert-manager issuer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IssuerRef {
    /// Name of the issuer.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Kind of the issuer.
    #[serde(default = "default_issuer_kind")]
    pub kind: IssuerKind,
}

/// The DNS record that follows the active site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DnsSpec {
    /// Name of the record.
    #[schemars(length(min = 1, max = 253))]
    pub hostname: String,
    /// TTL of the record in seconds.
    #[serde(default = "default_ttl")]
    #[schemars(range(min = 1))]
    pub ttl: u32,
}

/// What counts as proof that the old primary has let go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PromotionSpec {
    /// `Required`: nothing is promoted without proof. `BestEffort` also accepts an assumed release.
    pub proof: PromotionProof,
}

/// Lease and peer checks of the sidecars.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SidecarSpec {
    /// How long a grant or vouch lasts; at least 5s and at least three times peerCheckInterval. A change rolls no pod.
    pub lease_timeout: GoDuration,
    /// Period of the fencing tick, at least 1s.
    pub peer_check_interval: GoDuration,
    /// Peers that have to vouch for the primary while the operator is silent; 1 to the number of sites less one.
    #[schemars(range(min = 1))]
    pub min_peers: u32,
    /// Where sidecars ask, `host:port`. Left out: the operator's own Service, resolved at run time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 260))]
    pub bloodraven_address: Option<String>,
}

/// Promotion tiebreak and split-brain order: preferSite first, then sitePriorities without it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SplitBrainPolicy {
    /// Site that wins every tie; a primary-candidate.
    #[schemars(length(max = 63))]
    pub prefer_site: String,
    /// Sites in the order in which they win ties; primary-candidates only, no duplicates.
    #[schemars(length(max = 32), inner(length(max = 63)), extend("x-kubernetes-list-type" = "atomic"))]
    pub site_priorities: Vec<String>,
}

/// Lag threshold and durability of replication.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ReplicationSpec {
    /// Lag above which a site is reported and leaves the replicas Service; never a gate for promotion.
    pub max_lag_seconds: u32,
    /// `SemiSync` waits for one acknowledgement of a primary-candidate before a commit is visible.
    pub durability: Durability,
    /// `SemiSync` only: wait before the server goes asynchronous; `0s` is never, so writes wait. Otherwise at least 1s.
    pub semi_sync_timeout: GoDuration,
}

/// Knobs of the planned failover.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PlannedFailoverSpec {
    /// Longest wait for the target to catch up, then rollback; at least 1s.
    pub max_lag_wait: GoDuration,
    /// Longest time that client connections are ended one by one; expiry never blocks the move. At least 1s.
    pub drain_timeout: GoDuration,
    /// Request during the cooldown: `reject` it, or `defer` it until the cooldown ends.
    pub on_cooldown: OnCooldown,
}

/// Commit canary on the active site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct WriteProbeSpec {
    /// Period; `0s` turns it off, otherwise at least 1s.
    pub interval: GoDuration,
    /// Budget of one probe, at least 1s and at most the interval.
    pub timeout: GoDuration,
}

/// Type and annotations of the user-facing Services.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceTemplate {
    /// Type of the Services.
    #[serde(rename = "type")]
    pub kind: ServiceType,
    /// Annotations of the Services.
    #[schemars(extend("maxProperties" = 64))]
    pub annotations: BTreeMap<String, String>,
}

string_enum! {
    /// Kind of a cert-manager issuer.
    pub enum IssuerKind {
        /// In the group's namespace.
        Issuer = "Issuer",
        /// For the whole cluster.
        ClusterIssuer = "ClusterIssuer",
    }
}

string_enum! {
    /// What counts as proof of release.
    pub enum PromotionProof {
        /// Only a proof that holds whatever happens.
        Required = "Required",
        /// An assumption is enough.
        BestEffort = "BestEffort",
    }
}

string_enum! {
    /// When a commit counts.
    pub enum Durability {
        /// When the primary has it.
        Async = "Async",
        /// When one primary-candidate has received it too.
        SemiSync = "SemiSync",
    }
}

string_enum! {
    /// What a planned failover does during the cooldown.
    pub enum OnCooldown {
        /// Fail at once.
        Reject = "reject",
        /// Wait for the end of the cooldown.
        Defer = "defer",
    }
}

string_enum! {
    /// How changes reach the pods.
    pub enum UpdateStrategy {
        /// Replicas first, then a hand-over, then the old primary.
        OrderedUpdate = "OrderedUpdate",
        /// All at once.
        Recreate = "Recreate",
    }
}

string_enum! {
    /// What happens to volumes on deletion.
    pub enum VolumeRetention {
        /// They stay.
        Retain = "Retain",
        /// They go.
        Delete = "Delete",
    }
}

string_enum! {
    /// Type of the user-facing Services.
    pub enum ServiceType {
        /// Inside the cluster.
        ClusterIp = "ClusterIP",
        /// With a load balancer at the site's lbIP.
        LoadBalancer = "LoadBalancer",
        /// With a port on every node.
        NodePort = "NodePort",
    }
}

impl Default for PromotionSpec {
    fn default() -> Self {
        Self { proof: PromotionProof::Required }
    }
}

impl Default for SidecarSpec {
    fn default() -> Self {
        Self {
            lease_timeout: GoDuration::from_secs(20),
            peer_check_interval: GoDuration::from_secs(5),
            min_peers: 1,
            bloodraven_address: None,
        }
    }
}

impl Default for ReplicationSpec {
    fn default() -> Self {
        Self { max_lag_seconds: 300, durability: Durability::Async, semi_sync_timeout: GoDuration::from_secs(10) }
    }
}

impl Default for PlannedFailoverSpec {
    fn default() -> Self {
        Self {
            max_lag_wait: GoDuration::from_mins(5),
            drain_timeout: GoDuration::from_secs(30),
            on_cooldown: OnCooldown::Reject,
        }
    }
}

impl Default for WriteProbeSpec {
    fn default() -> Self {
        Self { interval: GoDuration::from_secs(10), timeout: GoDuration::from_secs(5) }
    }
}

impl Default for ServiceTemplate {
    fn default() -> Self {
        Self { kind: ServiceType::ClusterIp, annotations: BTreeMap::new() }
    }
}

const fn default_issuer_kind() -> IssuerKind {
    IssuerKind::Issuer
}

const fn default_ttl() -> u32 {
    60
}
