//! A backup profile: store, form, retention, encryption, verification.
//!
//! In: an entry of `spec.backup.profiles`. Out: `BackupProfile`. Must not: say when backups run; schedules do.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::BackupStorage;
use crate::shared::{PassphraseSecret, VolumeRequest, utc, yes};
use crate::string_enum::string_enum;
use crate::verification::{CompareSpec, SanityCheckSpec, VerificationPointInTime};

/// A profile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackupProfile {
    /// Name: lower case letters, digits and `-`.
    #[schemars(length(min = 1, max = 40))]
    pub name: String,
    /// Form of the backup.
    #[serde(default = "default_mode")]
    pub mode: BackupMode,
    /// Where it is kept.
    pub storage: BackupStorage,
    /// How it is cut, compressed and throttled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub physical: Option<PhysicalSpec>,
    /// Number of successful backups kept; ignored beside retentionPolicy.
    #[serde(default = "default_retention")]
    pub retention: u32,
    /// What is kept, in detail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention_policy: Option<RetentionPolicy>,
    /// What happens to the artifact when its `MysqlBackup` is deleted.
    #[serde(default = "default_deletion_policy")]
    pub deletion_policy: DeletionPolicy,
    /// Encryption before upload; required when the server has encrypted tablespaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encryption: Option<EncryptionSpec>,
    /// Regular proof that the backups can be restored. Left out: off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verification: Option<ProfileVerification>,
}

/// How a physical backup is cut, compressed and throttled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PhysicalSpec {
    /// Compression.
    pub compression: Compression,
    /// Level of the compression.
    #[schemars(range(min = 1, max = 19))]
    pub compression_level: i32,
    /// Size of one stored object, 64Mi to 64Gi.
    #[schemars(length(min = 1, max = 32))]
    pub segment_size: String,
    /// Bandwidth limit of the copy; 0: none.
    #[serde(rename = "maxBandwidthMiBps")]
    pub max_bandwidth_mibps: u32,
    /// Whether tables that are not InnoDB, which arrive empty, are tolerated.
    #[serde(rename = "allowNonInnoDB")]
    pub allow_non_innodb: bool,
}

/// What is kept: a backup stays if any of the rules keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RetentionPolicy {
    /// So many newest ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// Those younger than so many days.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_age_days: Option<u32>,
    /// At least so many, whatever their age.
    pub min_keep: u32,
    /// So many failed ones.
    pub max_failed_keep: u32,
}

/// Encryption of everything that leaves the pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EncryptionSpec {
    /// Algorithm.
    #[serde(default = "default_algorithm")]
    pub algorithm: EncryptionAlgorithm,
    /// The passphrase. Losing it loses the backups.
    pub passphrase_secret: PassphraseSecret,
    /// Earlier passphrases, for reading after a rotation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4), extend("x-kubernetes-list-type" = "atomic"))]
    pub previous_secrets: Vec<PassphraseSecret>,
}

/// Regular verification of a profile's backups.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProfileVerification {
    /// Whether verifications run.
    #[serde(default)]
    pub enabled: bool,
    /// When, as five cron fields; required when enabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub schedule: Option<String>,
    /// Time zone of the schedule.
    #[serde(default = "utc")]
    #[schemars(length(min = 1, max = 64))]
    pub time_zone: String,
    /// Whether the schedule rests.
    #[serde(default)]
    pub suspend: bool,
    /// Volume of the verification. Left out: the source site's class and 1.5 x the backup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<VolumeRequest>,
    /// Whether pod and volume stay after a failure.
    #[serde(default = "yes")]
    pub keep_on_failure: bool,
    /// Seconds until a finished record is deleted; 0: retention alone decides.
    #[serde(default)]
    pub ttl_seconds_after_finished: u32,
    /// How many finished records are kept.
    #[serde(default)]
    pub retention_policy: VerificationRetention,
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

/// How many finished verification records are kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct VerificationRetention {
    /// Successful ones.
    pub keep_successful: u32,
    /// Failed ones.
    pub keep_failures: u32,
}

string_enum! {
    /// Form of a backup.
    pub enum BackupMode {
        /// A copy of the data files at one exact GTID point.
        Physical = "Physical",
    }
}

string_enum! {
    /// Compression of a backup.
    pub enum Compression {
        /// Zstandard.
        Zstd = "zstd",
        /// None.
        None = "none",
    }
}

string_enum! {
    /// What happens to an artifact when its record is deleted.
    pub enum DeletionPolicy {
        /// It goes too.
        Delete = "Delete",
        /// It stays.
        Retain = "Retain",
    }
}

string_enum! {
    /// Encryption of a backup.
    pub enum EncryptionAlgorithm {
        /// AES-256 in Galois/Counter mode, in chunks.
        Aes256Gcm = "AES-256-GCM",
    }
}

impl Default for PhysicalSpec {
    fn default() -> Self {
        Self {
            compression: Compression::Zstd,
            compression_level: 3,
            segment_size: "4Gi".to_owned(),
            max_bandwidth_mibps: 0,
            allow_non_innodb: false,
        }
    }
}

impl Default for RetentionPolicy {
    fn default() -> Self {
        Self { count: None, max_age_days: None, min_keep: 1, max_failed_keep: 10 }
    }
}

impl Default for VerificationRetention {
    fn default() -> Self {
        Self { keep_successful: 30, keep_failures: 10 }
    }
}

const fn default_mode() -> BackupMode {
    BackupMode::Physical
}

const fn default_retention() -> u32 {
    7
}

const fn default_deletion_policy() -> DeletionPolicy {
    DeletionPolicy::Delete
}

const fn default_algorithm() -> EncryptionAlgorithm {
    EncryptionAlgorithm::Aes256Gcm
}
