//! Why a backup, restore, verification or rescue failed.
//!
//! In: an exit code of one of our Jobs, or the operator's own finding. Out: one word that is the event reason, the
//! condition reason and the metric label, and whether it is worth another try. Must not: leave a failure without a word.

use crate::string_enum::string_enum;

string_enum! {
    /// Why a backup, restore, verification or rescue failed.
    pub enum FailureReason {
        /// Bad arguments or environment.
        BuildJobFailed = "BuildJobFailed",
        /// The tail of the ciphertext is missing.
        BackupCiphertextTruncated = "BackupCiphertextTruncated",
        /// Wrong key, or a changed chunk.
        DecryptionFailed = "DecryptionFailed",
        /// No magic while encryption is required, bad manifest MAC, bytes after the final chunk.
        BackupDecryptionRejected = "BackupDecryptionRejected",
        /// Secret or key absent, or blank.
        DecryptionSecretMissing = "DecryptionSecretMissing",
        /// Sizes, digests or file list differ from the manifest.
        ArtifactMismatch = "ArtifactMismatch",
        /// The manifest names another group, backup or format.
        WrongGroup = "WrongGroup",
        /// The archive has a hole before the target.
        ArchiveGap = "ArchiveGap",
        /// The archive does not reach the target.
        TargetNotInArchive = "TargetNotInArchive",
        /// The reached set is not the target set.
        GtidMismatch = "GtidMismatch",
        /// A statement failed in the replay.
        ReplayFailed = "ReplayFailed",
        /// The volume is too small.
        InsufficientSpace = "InsufficientSpace",
        /// The server cannot read this backup.
        VersionIncompatible = "VersionIncompatible",
        /// Network, 5xx, throttling, credentials refused.
        StorageUnreachable = "StorageUnreachable",
        /// The donor died.
        SourceLost = "SourceLost",
        /// No donor was fit in time.
        NoHealthySource = "NoHealthySource",
        /// activeDeadlineSeconds.
        DeadlineExceeded = "DeadlineExceeded",
        /// Tables that a clone would lose.
        NonInnoDbTables = "NonInnoDBTables",
        /// Tablespaces that a clone would lose.
        ExternalTablespace = "ExternalTablespace",
        /// A bug or panic.
        Internal = "Internal",
        /// Another operation runs.
        ConcurrentOperation = "ConcurrentOperation",
        /// The primary moved meanwhile.
        TopologyChanged = "TopologyChanged",
        /// The confirm token is not newer than the last one used.
        ConfirmRejected = "ConfirmRejected",
        /// The request was taken back.
        Cancelled = "Cancelled",
    }
}

/// Whether a failure is worth another try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// It would fail again.
    Never,
    /// Up to `spec.backup.backoffLimit`.
    UpToBackoffLimit,
    /// Yes, as the schedule or the Job says.
    Yes,
}

impl FailureReason {
    /// Exit code of the Job's process that stands for this reason; `None` for findings of the operator.
    pub const fn exit_code(self) -> Option<u8> {
        Some(match self {
            Self::BuildJobFailed => 2,
            Self::BackupCiphertextTruncated => 10,
            Self::DecryptionFailed => 11,
            Self::BackupDecryptionRejected => 12,
            Self::DecryptionSecretMissing => 13,
            Self::ArtifactMismatch => 14,
            Self::WrongGroup => 15,
            Self::ArchiveGap | Self::TargetNotInArchive => 16,
            Self::GtidMismatch | Self::ReplayFailed => 17,
            Self::InsufficientSpace | Self::VersionIncompatible => 18,
            Self::StorageUnreachable => 20,
            Self::SourceLost | Self::NoHealthySource => 21,
            Self::DeadlineExceeded => 22,
            Self::NonInnoDbTables | Self::ExternalTablespace => 23,
            Self::Internal => 30,
            Self::ConcurrentOperation | Self::TopologyChanged | Self::ConfirmRejected | Self::Cancelled => return None,
        })
    }

    /// Whether it is worth another try.
    pub const fn retry(self) -> Retry {
        match self {
            Self::DecryptionSecretMissing => Retry::UpToBackoffLimit,
            Self::StorageUnreachable
            | Self::SourceLost
            | Self::NoHealthySource
            | Self::DeadlineExceeded
            | Self::Internal => Retry::Yes,
            Self::BuildJobFailed
            | Self::BackupCiphertextTruncated
            | Self::DecryptionFailed
            | Self::BackupDecryptionRejected
            | Self::ArtifactMismatch
            | Self::WrongGroup
            | Self::ArchiveGap
            | Self::TargetNotInArchive
            | Self::GtidMismatch
            | Self::ReplayFailed
            | Self::InsufficientSpace
            | Self::VersionIncompatible
            | Self::NonInnoDbTables
            | Self::ExternalTablespace
            | Self::ConcurrentOperation
            | Self::TopologyChanged
            | Self::ConfirmRejected
            | Self::Cancelled => Retry::Never,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_of_20_and_above_are_retried_but_23() {
        for reason in FailureReason::ALL {
            let expect = match reason.exit_code() {
                Some(13) => Retry::UpToBackoffLimit,
                Some(20..=22 | 30) => Retry::Yes,
                _ => Retry::Never,
            };
            assert_eq!(reason.retry(), expect, "{reason}");
        }
    }
}
