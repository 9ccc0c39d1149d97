//! Where backups are kept: an object store or a claim.
//!
//! In: a `storage` block of a profile, a restore or a backup's status. Out: exactly one of the two stores (the rule table
//! holds users to it). Must not: hold credentials; they stay in Secrets.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::string_enum::string_enum;

/// A store: `type` and exactly the matching block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackupStorage {
    /// Which store.
    #[serde(rename = "type")]
    pub kind: StorageType,
    /// The object store, with type S3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub s3: Option<S3Storage>,
    /// The claim, with type PVC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pvc: Option<PvcStorage>,
}

/// An object store that speaks S3.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct S3Storage {
    /// Name of the bucket.
    #[schemars(length(min = 1, max = 255))]
    pub bucket: String,
    /// Folder inside the bucket: no leading slash, no `..`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub prefix: Option<String>,
    /// Region of the bucket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub region: Option<String>,
    /// Address of a store that is not AWS, `http://` or `https://`; forces path style.
    #[serde(rename = "endpointURL", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub endpoint_url: Option<String>,
    /// Secret with the key `ca.crt`, for a store with its own CA.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub ca_secret: Option<String>,
    /// Secret with the keys `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`; optional `AWS_SESSION_TOKEN`, `AWS_REGION`. A
    /// missing key is an error, never a fall-back to an ambient identity.
    #[schemars(length(min = 1, max = 253))]
    pub credentials_secret: String,
}

/// A claim: one that exists, or a class and size from which one is made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PvcStorage {
    /// Claim that exists. Left out: the claim `mysql-<group>-backup-<profile>` is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub claim_name: Option<String>,
    /// Class of the claim that is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub storage_class_name: Option<String>,
    /// Size of the claim that is made.
    #[serde(default = "default_claim_size")]
    #[schemars(length(min = 1, max = 32))]
    pub size: String,
    /// Folder inside the claim: no leading slash, no `..`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub sub_path: Option<String>,
}

string_enum! {
    /// Kind of a store.
    pub enum StorageType {
        /// An object store.
        S3 = "S3",
        /// A claim.
        Pvc = "PVC",
    }
}

fn default_claim_size() -> String {
    "10Gi".to_owned()
}
