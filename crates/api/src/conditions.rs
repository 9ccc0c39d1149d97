//! Condition types and the reasons that each may carry.
//!
//! In: nothing. Out: closed lists. Must not: hold a reason that the schema's readers cannot find in the manual.

use crate::string_enum::string_enum;

string_enum! {
    /// Condition types of a group, one per question.
    pub enum GroupCondition {
        /// Is it serving as it should?
        Ready = "Ready",
        /// Is anything wrong?
        Degraded = "Degraded",
        /// Is a site rejoining or blocked?
        RecoveryPending = "RecoveryPending",
        /// Does a clone run, or has one failed?
        Bootstrapping = "Bootstrapping",
        /// Does an ordered update run?
        Updating = "Updating",
        /// Is it paused?
        Paused = "Paused",
        /// Is the cache ready?
        DragonflyReady = "DragonflyReady",
        /// Is something set that weakens or cannot work?
        ConfigWarning = "ConfigWarning",
        /// Can backups work as configured?
        BackupConfigValid = "BackupConfigValid",
        /// Does the archive keep up?
        ArchiveHealthy = "ArchiveHealthy",
        /// Is the archive without holes?
        ArchiveContinuous = "ArchiveContinuous",
        /// Was a backup restored as a proof?
        BackupVerified = "BackupVerified",
        /// Has the restore succeeded?
        Restored = "Restored",
    }
}

string_enum! {
    /// Reasons of `Ready`.
    pub enum ReadyReason {
        /// Authority is stable, its site writable, every other site replicates from it.
        TopologyPolled = "TopologyPolled",
        /// Not everything has been polled yet.
        Initializing = "Initializing",
        /// Nobody is confirmed writable.
        NoWritablePrimary = "NoWritablePrimary",
        /// A site does not replicate.
        ReplicationUnhealthy = "ReplicationUnhealthy",
    }
}

string_enum! {
    /// Reasons of `Degraded`, the gravest first: the first that holds is the condition's reason.
    pub enum DegradedReason {
        /// No site is reachable.
        TotalLoss = "TotalLoss",
        /// More than one site is writable.
        SplitBrain = "SplitBrain",
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
        /// No site is writable.
        NoPrimary = "NoPrimary",
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
        /// A replica is unreachable while the primary is writable.
        Alert = "Alert",
        /// The spec cannot be followed.
        InvalidSpec = "InvalidSpec",
        /// Nothing is wrong.
        Healthy = "Healthy",
    }
}

string_enum! {
    /// Reasons of `RecoveryPending`.
    pub enum RecoveryPendingReason {
        /// A site is being attached.
        RecoveryInProgress = "RecoveryInProgress",
        /// A site has transactions that the primary lacks.
        DivergentTransactions = "DivergentTransactions",
        /// There is no replication account.
        CredentialsMissing = "CredentialsMissing",
        /// Nothing to recover.
        NoRecoveryPending = "NoRecoveryPending",
    }
}

string_enum! {
    /// Reasons of `Bootstrapping`.
    pub enum BootstrappingReason {
        /// Data is being copied.
        Cloning = "Cloning",
        /// The copied server starts.
        WaitingForRestart = "WaitingForRestart",
        /// It is attached to the primary.
        SetupReplication = "SetupReplication",
        /// It ended without success.
        Failed = "Failed",
        /// No clone was needed.
        NotBootstrapping = "NotBootstrapping",
        /// The last clone succeeded.
        Done = "Done",
    }
}

string_enum! {
    /// Reason of `Updating` when no update runs; otherwise the reason is the update phase.
    pub enum UpdatingReason {
        /// No update runs.
        NotUpdating = "NotUpdating",
    }
}

string_enum! {
    /// Reasons of `Paused`.
    pub enum PausedReason {
        /// The switch is on and its time not over.
        Paused = "Paused",
        /// It is not.
        NotPaused = "NotPaused",
    }
}

string_enum! {
    /// Reasons of `ConfigWarning`.
    pub enum ConfigWarningReason {
        /// my.cnf relaxes durability.
        DurabilityRelaxed = "DurabilityRelaxed",
        /// A sidecar of another version.
        SidecarVersionSkew = "SidecarVersionSkew",
        /// There is no replication account.
        CredentialsMissing = "CredentialsMissing",
        /// A node belongs to the active site and to another one.
        TaintConflict = "TaintConflict",
        /// The DNSEndpoint could not be written.
        DnsWriteFailed = "DNSWriteFailed",
        /// Scheduled events are disabled on a promoted site.
        ScheduledEventsDisabled = "ScheduledEventsDisabled",
        /// Nothing to warn of.
        NoWarnings = "NoWarnings",
    }
}

string_enum! {
    /// Reasons of `BackupConfigValid`.
    pub enum BackupConfigReason {
        /// It can work.
        Valid = "Valid",
        /// It can work, and plaintext is read for now.
        PlaintextFallbackActive = "PlaintextFallbackActive",
        /// No such profile.
        ProfileNotFound = "ProfileNotFound",
        /// A schedule cannot be followed.
        ScheduleInvalid = "ScheduleInvalid",
        /// A passphrase Secret is missing.
        EncryptionSecretMissing = "EncryptionSecretMissing",
        /// A passphrase is too weak.
        WeakPassphrase = "WeakPassphrase",
        /// Encrypted tablespaces need profile encryption.
        PlaintextKeyring = "PlaintextKeyring",
        /// The archive's claim cannot be shared between sites.
        PitrStorageNotShared = "PitrStorageNotShared",
        /// The backup image is of another release series.
        ImageSeriesMismatch = "ImageSeriesMismatch",
    }
}

string_enum! {
    /// Reasons of `ArchiveHealthy`.
    pub enum ArchiveHealthReason {
        /// Every closed file is archived.
        UpToDate = "UpToDate",
        /// Files wait.
        Backlog = "Backlog",
        /// The store does not answer.
        StorageUnreachable = "StorageUnreachable",
        /// Files may expire before they are archived.
        AtRisk = "AtRisk",
        /// The archive is off.
        Disabled = "Disabled",
    }
}

string_enum! {
    /// Reasons of `ArchiveContinuous`.
    pub enum ArchiveContinuityReason {
        /// No hole.
        NoGap = "NoGap",
        /// A hole.
        ArchiveGap = "ArchiveGap",
    }
}

string_enum! {
    /// Reasons of `BackupVerified`.
    pub enum BackupVerifiedReason {
        /// The last proof holds and is fresh.
        Verified = "Verified",
        /// There is no proof yet.
        NeverVerified = "NeverVerified",
        /// The last proof is old.
        VerificationStale = "VerificationStale",
        /// The last proof failed.
        VerificationFailed = "VerificationFailed",
    }
}

string_enum! {
    /// Reasons of `Restored`, besides the failure reasons.
    pub enum RestoredReason {
        /// Done.
        Succeeded = "Succeeded",
        /// It runs.
        Running = "Running",
    }
}

string_enum! {
    /// Condition types of a `MysqlBackup`.
    pub enum BackupCondition {
        /// Has its Job been created?
        JobCreated = "JobCreated",
        /// Can it be restored from?
        Ready = "Ready",
    }
}

string_enum! {
    /// Condition types of a `MysqlBackupVerification`.
    pub enum VerificationCondition {
        /// Did everything hold?
        Verified = "Verified",
        /// Are pod and volume gone?
        ResourcesCleanedUp = "ResourcesCleanedUp",
    }
}

string_enum! {
    /// Reasons of `Verified`, besides the failure reasons.
    pub enum VerifiedReason {
        /// Everything held.
        Succeeded = "Succeeded",
        /// Tables differ.
        DataMismatch = "DataMismatch",
        /// Time was over before every table was compared.
        CompareTimeout = "CompareTimeout",
        /// The query gave too few rows, or an error.
        SanityCheckFailed = "SanityCheckFailed",
        /// The query took too long.
        SanityCheckTimeout = "SanityCheckTimeout",
        /// There is no such backup, or it has not succeeded.
        BackupNotAvailable = "BackupNotAvailable",
        /// Another verification of this profile runs.
        BlockedByActiveVerification = "BlockedByActiveVerification",
    }
}
