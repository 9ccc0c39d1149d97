//! One site of a group: where it runs, what its address is, what it may become.
//!
//! In: an entry of `spec.sites`. Out: `SiteSpec`. Must not: know about other sites; rules across sites are in
//! `crate::rules`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ResourceRequirements;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de};

use crate::string_enum::string_enum;

/// One site.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SiteSpec {
    /// Name, the key of everything per site: lower case letters, digits and `-`; not `primary`, `replicas` or `*-internal`.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,

    /// `primary-candidate` may be promoted, `dr-only` never is, neither automatically nor planned. Empty means
    /// primary-candidate.
    #[serde(default = "default_role", deserialize_with = "role_or_empty")]
    #[schemars(extend("enum" = ["primary-candidate", "dr-only", ""]))]
    pub role: SiteRole,

    /// Zone of the nodes (`topology.kubernetes.io/zone`).
    #[schemars(length(min = 1, max = 63))]
    pub zone: String,

    /// Nodes that carry the read-only taint; by convention `shipstream.io/failover-group.<group>: "true"` and
    /// `shipstream.io/site.<group>: <site>`.
    #[schemars(extend("minProperties" = 1, "maxProperties" = 16))]
    pub taint_node_selector: BTreeMap<String, String>,

    /// Target of the DNS record, an IP address; also the address of a LoadBalancer Service of this site.
    #[serde(rename = "lbIP")]
    #[schemars(length(min = 1, max = 45))]
    pub lb_ip: String,

    /// Volume of the site.
    pub storage: SiteStorage,

    /// Resources of the mysql container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceRequirements>,
}

/// Volume of a site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SiteStorage {
    /// Storage class of the claim; cannot be changed.
    #[schemars(length(min = 1, max = 253))]
    pub storage_class_name: String,

    /// Size of the claim; may only grow.
    #[schemars(length(min = 1, max = 32))]
    pub size: String,

    /// Access mode of the claim; cannot be changed. `ReadWriteOnce` only for drivers that lack `ReadWriteOncePod`.
    #[serde(default = "default_access_mode")]
    pub access_mode: AccessMode,
}

string_enum! {
    /// What a site may become.
    pub enum SiteRole {
        /// May be promoted.
        PrimaryCandidate = "primary-candidate",
        /// Follows, and is never promoted.
        DrOnly = "dr-only",
    }
}

string_enum! {
    /// Access mode of a site's claim.
    pub enum AccessMode {
        /// One pod at a time, enforced by the cluster.
        ReadWriteOncePod = "ReadWriteOncePod",
        /// One node at a time.
        ReadWriteOnce = "ReadWriteOnce",
    }
}

const fn default_role() -> SiteRole {
    SiteRole::PrimaryCandidate
}

const fn default_access_mode() -> AccessMode {
    AccessMode::ReadWriteOncePod
}

fn role_or_empty<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SiteRole, D::Error> {
    let text = <Cow<'de, str>>::deserialize(deserializer)?;
    if text.is_empty() { Ok(default_role()) } else { text.parse().map_err(de::Error::custom) }
}
