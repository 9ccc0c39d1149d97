//! The page `docs/reference/events.md`, written from the list of reasons.
//!
//! In: every reason there is. Out: Markdown. Must not: leave a reason without a sentence; both matches are exhaustive.

use bloodraven_api::events::{EventReason, EventType};
use bloodraven_api::reasons::FailureReason;
use bloodraven_telemetry::reference::HEADER;
use std::fmt::Write as _;

/// When it is written, and what to do; the latter is empty where nothing is to be done.
#[expect(clippy::too_many_lines, reason = "a table: one row per reason")]
const fn row(reason: EventReason) -> (&'static str, &'static str) {
    use EventReason as E;
    match reason {
        E::FailoverExecuted => ("an automatic promotion is confirmed: site, epoch, proof, GTID set", ""),
        E::AuthorityRestored => ("authority is back at the site that had it, as the same or a new instance", ""),
        E::ManualPromotionRequested => {
            ("a site was opened by hand while the primary does not serve", "wait: it is promoted")
        }
        E::ManualPromotionCompleted => ("the site that was opened by hand is the primary", ""),
        E::VotersChanged => ("another set of sidecars vouches for the primary", ""),
        E::LeaseChanged => ("other lease settings are in force", ""),
        E::SplitBrainDetected => (
            "more than one site is writable",
            "they are fenced; look for who opened them, and for divergent transactions",
        ),
        E::NoPrimaryDetected => ("no site is writable", "the message says what is waited for"),
        E::TotalLossDetected => ("no site answers", "bring pods, nodes or network back; nothing moves by itself"),
        E::AuthorityCorrupt => (
            "a stored copy of the record cannot be read, or the two contradict each other",
            "mend the part that is named; nothing moves until then",
        ),
        E::AuthorityBehind => ("the record has gone back in time", "wait: it starts over above every epoch heard"),
        E::PromotionHeld => (
            "no proof of release, and time alone brings none; said again every 5 minutes",
            "bring a silent one back, or run the command in the message",
        ),
        E::CooldownActive => ("a failover waits for the end of the cooldown", "wait, or open a site by hand"),
        E::HolderBehind => (
            "the primary lacks what another site has and stays closed",
            "decide which one counts; the message has the statements",
        ),
        E::WriteStalled => (
            "commits on the primary do not come back, or its data volume is nearly full",
            "look at its disk, and at replicas that should acknowledge",
        ),
        E::ConnectionsExhausted => {
            ("the primary takes no more connections", "raise max_connections or end idle sessions")
        }
        E::ReplicationError => {
            ("a replication thread reports an error", "mend the cause, or have the site copied anew")
        }
        E::ReplicationBroken => {
            ("a replication thread stands still", "START REPLICA, unless somebody stopped it on purpose")
        }
        E::ReplicationLagging => ("a site is further behind than maxLagSeconds", "look at its load and its link"),
        E::SemiSyncInactive => {
            ("commits at the primary have no receipt, or wait in vain for one", "bring a primary-candidate back")
        }
        E::Alert => ("a site does not answer while the primary writes", "bring it back; writes go on"),
        E::InvalidSpec => {
            ("the spec cannot be followed; the last valid one stays in force", "mend the field that is named")
        }
        E::SiteRecovered => ("nothing is wrong any more", ""),
        E::IncomparableCandidates => (
            "candidates have transactions that the others lack",
            "look for what only the others have; it will show as divergent",
        ),
        E::UnappliedTransactions => {
            ("a promoted site could not apply all that it had received", "look for the set on the other sites")
        }
        E::DataLossDetected => {
            ("a site has transactions that the primary lacks", "save what you need, then allow a reclone")
        }
        E::RecoveryComplete => ("a site follows the primary again", ""),
        E::RecloneRequested => ("a reclone was accepted", ""),
        E::RecloneRejected => ("a reclone was refused", "the message says what to write"),
        E::PlannedFailoverStarted => ("a planned failover was accepted", ""),
        E::PlannedFailoverSkipped => ("its target is active already", ""),
        E::PlannedFailoverDeferred => ("it waits for the end of the cooldown", "take the annotation away to cancel it"),
        E::PlannedFailoverDraining => ("the old primary is fenced, its sessions are ended", ""),
        E::PlannedFailoverLagOk => ("the target has every transaction", ""),
        E::PlannedFailoverCompleted => ("the target is the primary", ""),
        E::PlannedFailoverRejected => ("it was refused before anything was touched", "the message says why"),
        E::PlannedFailoverFailed => ("it ended without a move", "ask again when the cause is gone"),
        E::DnsUpdateFailed => {
            ("the DNSEndpoint could not be written; it is tried again", "look at external-dns and at permissions")
        }
        E::DragonflyPromotionStarted => ("a cache takes over", ""),
        E::DragonflyPromotionCompleted => ("it is the master", ""),
        E::DragonflyOldSiteReconfigured => ("the old cache follows", ""),
        E::DragonflyPromotionFailed => ("a cache could not take over; it is tried again", "look at that pod"),
        E::DragonflySyncTimeout => ("the target's cache did not catch up in time", ""),
        E::DragonflyStaleMasterDetected => (
            "a cache is a master that should be a replica; once in 5 minutes",
            "save its keys before staleMasterGrace is over, if you need them",
        ),
        E::DragonflySessionsLost => ("a cache took over without what had not arrived", ""),
        E::DragonflyUpgradeStarted => ("a snapshot upgrade was accepted", ""),
        E::DragonflyUpgradeSnapshotStarted => ("its snapshot is being written", ""),
        E::DragonflyUpgradeSnapshotCompleted => ("its snapshot is complete", ""),
        E::DragonflyUpgradeCompleted => ("the cache runs the new image", ""),
        E::DragonflyUpgradeRejected => ("a snapshot upgrade was refused", "the message says why"),
        E::DragonflyUpgradeFailed => ("it ended without success", "look at status.dragonfly.upgrade"),
        E::UpdateStarted => ("an ordered update rolls the first site", ""),
        E::UpdateCompleted => ("every site runs what the spec wants", ""),
        E::UpdateStopped => ("an ordered update stands still", "it goes on when the cause in the message is gone"),
        E::SecretNotFound => ("a Secret is missing", "create it; it is looked for every 30 s"),
        E::SecretMissingKey => {
            ("a key of a Secret is missing, empty or malformed", "mend it; it is looked for every 30 s")
        }
        E::CredentialReconcileFailed => (
            "a server refuses a login or a new password, or a certificate does not fit",
            "the message names the account",
        ),
        E::MissingSidecarImage => ("the sidecar's image cannot be resolved", "set spec.sidecarImage"),
        E::NameConflict => ("an object of that name belongs to somebody else", "rename one of the two"),
        E::TaintConflict => ("a node belongs to the active site and to another one", "mend taintNodeSelector"),
        E::TaintFailed => ("taints could not be removed in time at deletion", "take them off the nodes"),
        E::SidecarVersionSkew => {
            ("a sidecar is of another version than the operator", "let the update go on, or set spec.sidecarImage")
        }
        E::GracefulShutdown => ("deletion of the group began", ""),
        E::BackupStarted => ("a backup runs", ""),
        E::BackupSucceeded => ("a backup is complete", ""),
        E::BackupFailed => ("a backup failed", "the reason is in its status"),
        E::InFlightFailover => ("authority moved while a backup ran", ""),
        E::BackupRetryScheduled => ("a backup will be tried again", ""),
        E::BackupScheduleInvalid => ("a schedule cannot be followed", "mend it"),
        E::BackupEncryptionInvalid => ("encryption cannot work as configured", "mend the profile"),
        E::BackupPitrInvalid => ("point-in-time recovery cannot work as configured", "mend the profile"),
        E::PlaintextFallbackActive => {
            ("plaintext is read where encryption is required", "end the transition when every artifact is encrypted")
        }
        E::ArtifactCleanupStarted => ("an artifact is being deleted", ""),
        E::ArtifactCleanupSucceeded => ("it is gone", ""),
        E::ArtifactCleanupFailed => ("it could not be deleted", "look at the store's permissions"),
        E::ArtifactCleanupSkipped => {
            ("it is not ours, or cannot be reached any more", "delete it by hand if it is not needed")
        }
        E::ArtifactRetained => ("it stays by policy", ""),
        E::ArchiveGapDetected => {
            ("the archive of binary logs has a hole", "take a backup; restores before the hole still work")
        }
        E::ArchiveGapHealed => ("the hole is closed", ""),
        E::RestoreStarted => ("a restore starts", ""),
        E::RestoreSucceeded => ("the restore is done", ""),
        E::RestoreFailed => ("it ended without success", "the reason is in status.restore"),
        E::RestoreTargetUnavailable => ("the group is not empty", "restore into a new group, or in place"),
        E::RestoreInPlaceStarted => ("an in-place restore starts", ""),
        E::RestoreInPlaceRejected => ("an in-place restore was refused", "the message says why"),
        E::RestoreInPlaceActivated => ("the restored copy is the primary", ""),
        E::RestoreInPlaceRecloneScheduled => ("the other sites will be copied from it", ""),
        E::RestoreInPlaceSucceeded => ("the in-place restore is done", ""),
        E::RestoreInPlaceFailed => ("it ended without success", "the reason is in status.restoreInPlace"),
        E::VerificationStarted => ("a backup is being restored as a proof", ""),
        E::VerificationSucceeded => ("everything held", ""),
        E::VerificationFailed => ("something did not hold", "do not rely on that backup"),
        E::RescueStarted => ("divergent transactions are being exported", ""),
        E::RescueSucceeded => ("all of them are", ""),
        E::RescuePartial => ("some are gone", "look at what was exported"),
        E::RescueFailed => ("none could be exported", "save them by hand before a reclone"),
        E::RescueSkipped => ("there is no profile, or the policy is Off", "save them by hand before a reclone"),
    }
}

/// Whether a reason is declared for work that is yet to come: nobody gives it, and the page says so.
pub fn is_to_come(reason: EventReason) -> bool {
    const WORK: [&str; 7] = ["Dragonfly", "Backup", "Artifact", "Archive", "Restore", "Verification", "Rescue"];
    WORK.iter().any(|work| reason.as_str().starts_with(work))
        || matches!(reason, EventReason::InFlightFailover | EventReason::PlaintextFallbackActive)
}

/// The page.
pub fn events_page() -> String {
    let mut page = HEADER.to_owned();
    page.push_str(
        "# Events\n\n\
         Events are written on the `MysqlFailoverGroup` after its status. Each has one of the reasons below and a plain sentence \
         that names sites, epochs and the way on. The same reason with the same sentence is said once in five minutes; the next \
         one says how often it was. A reason of the condition `Degraded` is an Event when it appears, under its own name. What is marked \
         as not yet is declared for caches and backups, which this release refuses.\n",
    );
    for (kind, title) in
        [(EventType::Warning, "Warning: somebody should look"), (EventType::Normal, "Normal: for the record")]
    {
        let _ = write!(page, "\n## {title}\n\n| reason | when | what to do |\n|---|---|---|\n");
        for reason in EventReason::ALL.iter().filter(|reason| reason.event_type() == kind) {
            let (when, what) = row(*reason);
            let what = if what.is_empty() { "nothing" } else { what };
            let not_yet = if is_to_come(*reason) { " (not yet)" } else { "" };
            let _ = writeln!(page, "| `{reason}` | {when}{not_yet} | {what} |");
        }
    }
    let failures: Vec<String> = FailureReason::ALL.iter().map(|reason| format!("`{reason}`")).collect();
    let _ = write!(
        page,
        "\n## Why a backup, restore, verification or rescue failed\n\nWarnings, each under its own name: {}.\n",
        failures.join(", ")
    );
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_committed_page_is_in_step() {
        #[expect(
            clippy::disallowed_methods,
            reason = "a test is told by the environment to write instead of comparing"
        )]
        let update = std::env::var_os("UPDATE_DOCS").is_some();
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/events.md");
        assert_eq!(bloodraven_telemetry::reference::compare(&path, &events_page(), update), Ok(()));
    }

    #[test]
    fn a_warning_says_what_to_do_or_that_nothing_is() {
        for reason in EventReason::ALL {
            let (when, what) = row(*reason);
            assert!(!when.is_empty() && !when.ends_with('.') && !what.ends_with('.'), "{reason}");
        }
    }
}
