//! What a restore asks for: from which backup, to which point, onto which site.
//!
//! In: `spec.initFromBackup` and `spec.restoreInPlace`. Out: typed requests. Must not: resolve them; that needs the
//! archive.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{BackupStorage, S3Storage};
use crate::go_duration::GoDuration;
use crate::shared::{NameRef, PassphraseSecret};

/// Fill a new group from a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InitFromBackup {
    /// The backup.
    pub source: RestoreSource,
    /// The point to replay to. Left out: the backup's own point.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub point_in_time: Option<RestorePointInTime>,
    /// Passphrases. Left out: those of the backup's profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decryption: Option<DecryptionSpec>,
    /// Site that is filled first, a primary-candidate. Left out: the seed site.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub target_site: Option<String>,
}

/// Replace the data of a running group by a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestoreInPlace {
    /// The backup.
    pub source: RestoreSource,
    /// The point to replay to. Left out: the backup's own point.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub point_in_time: Option<RestorePointInTime>,
    /// Passphrases. Left out: those of the backup's profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decryption: Option<DecryptionSpec>,
    /// Site on which the copy is built, a primary-candidate. Left out: the first healthy one that is not active.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub target_site: Option<String>,
    /// Consent and id of the run: a time (RFC 3339), strictly later than the last one used. Kept as text, so that it is
    /// compared exactly as written.
    #[schemars(extend("format" = "date-time"), length(max = 64))]
    pub confirm: String,
    /// Whether the target's volume may lose its old copy early when it cannot hold both.
    #[serde(default)]
    pub allow_overwrite: bool,
    /// Time that the old primary stays fenced and intact before it is cloned anew.
    #[serde(default = "default_keep_previous_for")]
    pub keep_previous_for: GoDuration,
}

/// A backup: exactly one of mysqlBackupRef, s3 and pvc.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestoreSource {
    /// A `MysqlBackup` of this namespace that has succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mysql_backup_ref: Option<NameRef>,
    /// An object store; prefix is the folder of manifest.json.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub s3: Option<S3Storage>,
    /// A claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pvc: Option<RestorePvc>,
    /// Group whose backup it must be, `<namespace>/<group>`; required with s3 and pvc.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub expect_group: Option<String>,
}

/// A folder of a claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestorePvc {
    /// The claim.
    #[schemars(length(min = 1, max = 253))]
    pub claim_name: String,
    /// Folder of manifest.json inside it: no leading slash, no `..`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub sub_path: Option<String>,
}

/// A point in time: exactly one of stopDatetime, beforeGtid and `latest: true`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestorePointInTime {
    /// Everything before the first transaction committed later than this (RFC 3339 with offset). Kept as text, so that
    /// fractions of a second survive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"), length(max = 64))]
    pub stop_datetime: Option<String>,
    /// Everything before this one transaction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub before_gtid: Option<String>,
    /// Everything that the archive has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latest: Option<bool>,
    /// Transactions left out, as a GTID set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096))]
    pub exclude_gtids: Option<String>,
    /// Epoch of the history to follow. Left out: the current one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub timeline: Option<i64>,
    /// The archive. Left out: the same root as the backup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archive: Option<RestoreArchive>,
}

/// Where the archive of binary logs is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestoreArchive {
    /// The store.
    pub storage: BackupStorage,
}

/// Passphrases of a restore, tried in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DecryptionSpec {
    /// The passphrase.
    pub passphrase_secret: PassphraseSecret,
    /// Earlier passphrases, so that a replay can cross a rotation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4), extend("x-kubernetes-list-type" = "atomic"))]
    pub previous_secrets: Vec<PassphraseSecret>,
}

const fn default_keep_previous_for() -> GoDuration {
    GoDuration::from_mins(60)
}
