//! Every Event reason that Bloodraven writes, with its type.
//!
//! In: nothing. Out: the closed list of reasons. Must not: be extended at a call site; an Event that is not here does not
//! exist. A `FailureReason` is an Event reason too, always a Warning.

use crate::conditions::DegradedReason;
use crate::reasons::FailureReason;
use crate::string_enum::string_enum;

string_enum! {
    /// Type of an Event, as Kubernetes names it.
    pub enum EventType {
        /// For the record.
        Normal = "Normal",
        /// For people.
        Warning = "Warning",
    }
}

string_enum! {
    /// Reason of an Event.
    pub enum EventReason {
        /// An automatic promotion is confirmed.
        FailoverExecuted = "FailoverExecuted",
        /// Authority is back at the site that had it.
        AuthorityRestored = "AuthorityRestored",
        /// A site was opened by hand.
        ManualPromotionRequested = "ManualPromotionRequested",
        /// It became the primary.
        ManualPromotionCompleted = "ManualPromotionCompleted",
        /// New voter set.
        VotersChanged = "VotersChanged",
        /// New lease settings.
        LeaseChanged = "LeaseChanged",
        /// More than one site is writable.
        SplitBrainDetected = "SplitBrainDetected",
        /// No site is writable.
        NoPrimaryDetected = "NoPrimaryDetected",
        /// No site is reachable.
        TotalLossDetected = "TotalLossDetected",
        /// A copy of the record cannot be read.
        AuthorityCorrupt = "AuthorityCorrupt",
        /// The record is behind what sidecars have heard.
        AuthorityBehind = "AuthorityBehind",
        /// No proof of release.
        PromotionHeld = "PromotionHeld",
        /// The cooldown blocks a failover.
        CooldownActive = "CooldownActive",
        /// The holder lacks data.
        HolderBehind = "HolderBehind",
        /// Commits do not come back.
        WriteStalled = "WriteStalled",
        /// The client port is full.
        ConnectionsExhausted = "ConnectionsExhausted",
        /// A replication thread reports an error.
        ReplicationError = "ReplicationError",
        /// A replication thread has stopped.
        ReplicationBroken = "ReplicationBroken",
        /// Lag above the threshold.
        ReplicationLagging = "ReplicationLagging",
        /// Semi-sync is off at the source.
        SemiSyncInactive = "SemiSyncInactive",
        /// A replica is unreachable.
        Alert = "Alert",
        /// The spec cannot be followed.
        InvalidSpec = "InvalidSpec",
        /// Nothing is wrong any more.
        SiteRecovered = "SiteRecovered",
        /// Candidates have transactions that the others lack.
        IncomparableCandidates = "IncomparableCandidates",
        /// The drain bound was hit.
        UnappliedTransactions = "UnappliedTransactions",
        /// Divergent transactions were found.
        DataLossDetected = "DataLossDetected",
        /// A site has rejoined.
        RecoveryComplete = "RecoveryComplete",
        /// A reclone starts.
        RecloneRequested = "RecloneRequested",
        /// A reclone was refused.
        RecloneRejected = "RecloneRejected",
        /// A planned failover was accepted.
        PlannedFailoverStarted = "PlannedFailoverStarted",
        /// Its target is active already.
        PlannedFailoverSkipped = "PlannedFailoverSkipped",
        /// It waits for the end of the cooldown.
        PlannedFailoverDeferred = "PlannedFailoverDeferred",
        /// The source is fenced.
        PlannedFailoverDraining = "PlannedFailoverDraining",
        /// The target has caught up.
        PlannedFailoverLagOk = "PlannedFailoverLagOK",
        /// Done.
        PlannedFailoverCompleted = "PlannedFailoverCompleted",
        /// It was refused.
        PlannedFailoverRejected = "PlannedFailoverRejected",
        /// It ended without a move.
        PlannedFailoverFailed = "PlannedFailoverFailed",
        /// The DNSEndpoint could not be written.
        DnsUpdateFailed = "DNSUpdateFailed",
        /// A cache takes over.
        DragonflyPromotionStarted = "DragonflyPromotionStarted",
        /// It has.
        DragonflyPromotionCompleted = "DragonflyPromotionCompleted",
        /// The old cache follows.
        DragonflyOldSiteReconfigured = "DragonflyOldSiteReconfigured",
        /// A cache could not take over.
        DragonflyPromotionFailed = "DragonflyPromotionFailed",
        /// The target cache did not catch up in time.
        DragonflySyncTimeout = "DragonflySyncTimeout",
        /// A second cache master.
        DragonflyStaleMasterDetected = "DragonflyStaleMasterDetected",
        /// Sessions are gone.
        DragonflySessionsLost = "DragonflySessionsLost",
        /// A snapshot upgrade was accepted.
        DragonflyUpgradeStarted = "DragonflyUpgradeStarted",
        /// Its snapshot is written.
        DragonflyUpgradeSnapshotStarted = "DragonflyUpgradeSnapshotStarted",
        /// Its snapshot is complete.
        DragonflyUpgradeSnapshotCompleted = "DragonflyUpgradeSnapshotCompleted",
        /// Done.
        DragonflyUpgradeCompleted = "DragonflyUpgradeCompleted",
        /// It was refused.
        DragonflyUpgradeRejected = "DragonflyUpgradeRejected",
        /// It ended without success.
        DragonflyUpgradeFailed = "DragonflyUpgradeFailed",
        /// An ordered update starts.
        UpdateStarted = "UpdateStarted",
        /// Done.
        UpdateCompleted = "UpdateCompleted",
        /// It waits for its cause to go.
        UpdateStopped = "UpdateStopped",
        /// A Secret is missing.
        SecretNotFound = "SecretNotFound",
        /// A key of a Secret is missing or empty.
        SecretMissingKey = "SecretMissingKey",
        /// A login was refused, or a certificate does not fit.
        CredentialReconcileFailed = "CredentialReconcileFailed",
        /// The sidecar's image cannot be resolved.
        MissingSidecarImage = "MissingSidecarImage",
        /// An object of that name belongs to another controller.
        NameConflict = "NameConflict",
        /// A node belongs to the active site and to another one.
        TaintConflict = "TaintConflict",
        /// Taints could not be removed in time.
        TaintFailed = "TaintFailed",
        /// A sidecar of another version.
        SidecarVersionSkew = "SidecarVersionSkew",
        /// Deletion began.
        GracefulShutdown = "GracefulShutdown",
        /// A backup Job runs.
        BackupStarted = "BackupStarted",
        /// A backup is complete.
        BackupSucceeded = "BackupSucceeded",
        /// A backup failed.
        BackupFailed = "BackupFailed",
        /// A failover happened during a backup.
        InFlightFailover = "InFlightFailover",
        /// A backup will be tried again.
        BackupRetryScheduled = "BackupRetryScheduled",
        /// A schedule cannot be followed.
        BackupScheduleInvalid = "BackupScheduleInvalid",
        /// Encryption cannot work as configured.
        BackupEncryptionInvalid = "BackupEncryptionInvalid",
        /// Point-in-time recovery cannot work as configured.
        BackupPitrInvalid = "BackupPITRInvalid",
        /// Plaintext is read where encryption is required.
        PlaintextFallbackActive = "PlaintextFallbackActive",
        /// An artifact is being deleted.
        ArtifactCleanupStarted = "ArtifactCleanupStarted",
        /// It is gone.
        ArtifactCleanupSucceeded = "ArtifactCleanupSucceeded",
        /// It could not be deleted.
        ArtifactCleanupFailed = "ArtifactCleanupFailed",
        /// It is not ours, or cannot be reached any more.
        ArtifactCleanupSkipped = "ArtifactCleanupSkipped",
        /// It stays by policy.
        ArtifactRetained = "ArtifactRetained",
        /// The archive has a hole.
        ArchiveGapDetected = "ArchiveGapDetected",
        /// The hole is closed.
        ArchiveGapHealed = "ArchiveGapHealed",
        /// A restore starts.
        RestoreStarted = "RestoreStarted",
        /// Done.
        RestoreSucceeded = "RestoreSucceeded",
        /// It ended without success.
        RestoreFailed = "RestoreFailed",
        /// The group is not empty.
        RestoreTargetUnavailable = "RestoreTargetUnavailable",
        /// An in-place restore starts.
        RestoreInPlaceStarted = "RestoreInPlaceStarted",
        /// It was refused.
        RestoreInPlaceRejected = "RestoreInPlaceRejected",
        /// The restored copy is the primary.
        RestoreInPlaceActivated = "RestoreInPlaceActivated",
        /// The other sites will be cloned.
        RestoreInPlaceRecloneScheduled = "RestoreInPlaceRecloneScheduled",
        /// Done.
        RestoreInPlaceSucceeded = "RestoreInPlaceSucceeded",
        /// It ended without success.
        RestoreInPlaceFailed = "RestoreInPlaceFailed",
        /// A verification starts.
        VerificationStarted = "VerificationStarted",
        /// Everything held.
        VerificationSucceeded = "VerificationSucceeded",
        /// Something did not.
        VerificationFailed = "VerificationFailed",
        /// Divergent transactions are being exported.
        RescueStarted = "RescueStarted",
        /// All of them are.
        RescueSucceeded = "RescueSucceeded",
        /// Some are gone.
        RescuePartial = "RescuePartial",
        /// None could be exported.
        RescueFailed = "RescueFailed",
        /// There is no profile, or the policy is Off.
        RescueSkipped = "RescueSkipped",
    }
}

impl EventReason {
    /// Whether the Event is for the record or for people.
    pub const fn event_type(self) -> EventType {
        match self {
            Self::FailoverExecuted
            | Self::AuthorityRestored
            | Self::ManualPromotionRequested
            | Self::ManualPromotionCompleted
            | Self::VotersChanged
            | Self::LeaseChanged
            | Self::SiteRecovered
            | Self::RecoveryComplete
            | Self::RecloneRequested
            | Self::PlannedFailoverStarted
            | Self::PlannedFailoverSkipped
            | Self::PlannedFailoverDeferred
            | Self::PlannedFailoverDraining
            | Self::PlannedFailoverLagOk
            | Self::PlannedFailoverCompleted
            | Self::DragonflyPromotionStarted
            | Self::DragonflyPromotionCompleted
            | Self::DragonflyOldSiteReconfigured
            | Self::DragonflyUpgradeStarted
            | Self::DragonflyUpgradeSnapshotStarted
            | Self::DragonflyUpgradeSnapshotCompleted
            | Self::DragonflyUpgradeCompleted
            | Self::UpdateStarted
            | Self::UpdateCompleted
            | Self::GracefulShutdown
            | Self::BackupStarted
            | Self::BackupSucceeded
            | Self::BackupRetryScheduled
            | Self::ArtifactCleanupStarted
            | Self::ArtifactCleanupSucceeded
            | Self::ArtifactRetained
            | Self::ArchiveGapHealed
            | Self::RestoreStarted
            | Self::RestoreSucceeded
            | Self::RestoreInPlaceStarted
            | Self::RestoreInPlaceActivated
            | Self::RestoreInPlaceRecloneScheduled
            | Self::RestoreInPlaceSucceeded
            | Self::VerificationStarted
            | Self::VerificationSucceeded
            | Self::RescueStarted
            | Self::RescueSucceeded => EventType::Normal,
            _ => EventType::Warning,
        }
    }

    /// The Event that tells people of a Degraded reason; none for `Healthy`, whose Event is `SiteRecovered`.
    pub const fn of_degraded(reason: DegradedReason) -> Option<Self> {
        Some(match reason {
            DegradedReason::TotalLoss => Self::TotalLossDetected,
            DegradedReason::SplitBrain => Self::SplitBrainDetected,
            DegradedReason::AuthorityCorrupt => Self::AuthorityCorrupt,
            DegradedReason::AuthorityBehind => Self::AuthorityBehind,
            DegradedReason::PromotionHeld => Self::PromotionHeld,
            DegradedReason::CooldownActive => Self::CooldownActive,
            DegradedReason::HolderBehind => Self::HolderBehind,
            DegradedReason::NoPrimary => Self::NoPrimaryDetected,
            DegradedReason::WriteStalled => Self::WriteStalled,
            DegradedReason::ConnectionsExhausted => Self::ConnectionsExhausted,
            DegradedReason::ReplicationError => Self::ReplicationError,
            DegradedReason::ReplicationBroken => Self::ReplicationBroken,
            DegradedReason::ReplicationLagging => Self::ReplicationLagging,
            DegradedReason::SemiSyncInactive => Self::SemiSyncInactive,
            DegradedReason::Alert => Self::Alert,
            DegradedReason::InvalidSpec => Self::InvalidSpec,
            DegradedReason::Healthy => return None,
        })
    }
}

impl FailureReason {
    /// A failure is for people.
    pub const fn event_type(self) -> EventType {
        EventType::Warning
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_say_failure_are_warnings() {
        for reason in EventReason::ALL {
            let word = reason.as_str();
            let bad =
                ["Failed", "Rejected", "Detected", "Lost", "Invalid", "Missing", "Conflict", "NotFound", "Stopped"];
            if bad.iter().any(|b| word.contains(b)) {
                assert_eq!(reason.event_type(), EventType::Warning, "{word}");
            }
            let good = ["Started", "Completed", "Succeeded", "Requested", "Changed"];
            if good.iter().any(|g| word.ends_with(g)) {
                assert_eq!(reason.event_type(), EventType::Normal, "{word}");
            }
        }
    }

    #[test]
    fn every_degraded_reason_but_healthy_has_a_warning() {
        for reason in DegradedReason::ALL {
            let event = EventReason::of_degraded(*reason);
            assert_eq!(event.is_none(), *reason == DegradedReason::Healthy, "{reason}");
            if let Some(event) = event {
                assert_eq!(event.event_type(), EventType::Warning, "{reason}");
                let word = event.as_str();
                assert!(word == reason.as_str() || word == format!("{reason}Detected"), "{word}");
            }
        }
    }
}
