//! The page `docs/reference/conditions.md`, written from the lists of reasons.
//!
//! In: every condition that a leader shows, with its reasons. Out: Markdown. Must not: leave a reason without a sentence; every
//! match is exhaustive.

use std::fmt::Write as _;

use bloodraven_api::conditions::{
    BootstrappingReason, ConfigWarningReason, DegradedReason, GroupCondition, PausedReason, ReadyReason,
    RecoveryPendingReason, UpdatingReason,
};
use bloodraven_api::events::EventReason;
use bloodraven_api::group::status::{DragonflyPhase, UpdatePhase};

use super::answers::{OURS, advice};

const HEADER: &str = "<!-- Written from the code; do not edit. `UPDATE_DOCS=1 cargo test` writes it anew. -->\n\n";

/// A reason: the word, the status it comes with, when it holds.
type Row = (&'static str, bool, &'static str);

/// The page.
pub fn conditions_page() -> String {
    let mut page = HEADER.to_owned();
    page.push_str(
        "# Conditions\n\n\
         `status.conditions` of a `MysqlFailoverGroup`, one per question, each with `observedGeneration`. `lastTransitionTime` \
         changes with the status and with nothing else. Messages are sentences for people; reasons are stable.\n",
    );
    for condition in OURS {
        let _ = write!(page, "\n## {condition}\n\n{}\n\n", question(condition));
        if condition == GroupCondition::Degraded {
            degraded(&mut page);
            continue;
        }
        page.push_str("| reason | status | when |\n|---|---|---|\n");
        for (reason, holds, when) in rows(condition) {
            let _ = writeln!(page, "| `{reason}` | {} | {when} |", if holds { "True" } else { "False" });
        }
    }
    page
}

const fn question(condition: GroupCondition) -> &'static str {
    match condition {
        GroupCondition::Ready => {
            "True when authority is Stable, its site is writable, and every other site replicates from it."
        }
        GroupCondition::Degraded => {
            "True when anything of this list holds. The first in this order is the reason; the message names all. Each that holds \
             is also `bloodraven_degraded{reason}` = 1 and, when it appears, an Event."
        }
        GroupCondition::RecoveryPending => "True when a site is rejoining or may not; blocked beats in progress.",
        GroupCondition::Bootstrapping => {
            "True when a clone runs or was given up. The message begins with `Bootstrap`, `Auto-clone` or `Reclone`."
        }
        GroupCondition::Updating => "True when an ordered update runs.",
        GroupCondition::Paused => "True while `spec.paused` is set and `spec.pausedUntil` is not over.",
        GroupCondition::DragonflyReady => {
            "Not yet: this release refuses caches. Only where `spec.dragonfly.enabled` is set; the reason is \
             `status.dragonfly.phase`."
        }
        GroupCondition::ConfigWarning => {
            "True when something is set that weakens or cannot work. The first in this order is the reason; the message names all."
        }
        GroupCondition::BackupConfigValid
        | GroupCondition::ArchiveHealthy
        | GroupCondition::ArchiveContinuous
        | GroupCondition::BackupVerified
        | GroupCondition::Restored => "",
    }
}

fn rows(condition: GroupCondition) -> Vec<Row> {
    match condition {
        GroupCondition::Ready => ReadyReason::ALL.iter().map(|reason| ready(*reason)).collect(),
        GroupCondition::RecoveryPending => RecoveryPendingReason::ALL.iter().map(|reason| recovery(*reason)).collect(),
        GroupCondition::Bootstrapping => BootstrappingReason::ALL.iter().map(|reason| bootstrapping(*reason)).collect(),
        GroupCondition::Updating => updating(),
        GroupCondition::Paused => PausedReason::ALL.iter().map(|reason| paused(*reason)).collect(),
        GroupCondition::DragonflyReady => DragonflyPhase::ALL.iter().filter_map(|phase| cache(*phase)).collect(),
        GroupCondition::ConfigWarning => ConfigWarningReason::ALL.iter().map(|reason| warning(*reason)).collect(),
        GroupCondition::Degraded
        | GroupCondition::BackupConfigValid
        | GroupCondition::ArchiveHealthy
        | GroupCondition::ArchiveContinuous
        | GroupCondition::BackupVerified
        | GroupCondition::Restored => Vec::new(),
    }
}

fn degraded(page: &mut String) {
    page.push_str("| reason | Event | when | what to do |\n|---|---|---|---|\n");
    for reason in DegradedReason::ALL.iter().filter(|reason| **reason != DegradedReason::Healthy) {
        let event = EventReason::of_degraded(*reason).map_or("", EventReason::as_str);
        let what = match advice(*reason) {
            "" => "as the message says",
            what => what,
        };
        let _ = writeln!(page, "| `{reason}` | `{event}` | {} | {what} |", wrong(*reason));
    }
    let _ = write!(page, "\n`{}` (False): {}.\n", DegradedReason::Healthy, wrong(DegradedReason::Healthy));
}

const fn wrong(reason: DegradedReason) -> &'static str {
    match reason {
        DegradedReason::TotalLoss => "no site answers",
        DegradedReason::SplitBrain => "more than one site is writable",
        DegradedReason::AuthorityCorrupt => {
            "a stored copy of the record cannot be read, or the two contradict each other"
        }
        DegradedReason::AuthorityBehind => "a sidecar knows a later epoch than the record",
        DegradedReason::PromotionHeld => {
            "there is no proof that the last primary has let go, and time alone brings none; names who is silent and the \
             overriding command"
        }
        DegradedReason::CooldownActive => "a failover waits for the end of the cooldown; names the time",
        DegradedReason::HolderBehind => "the primary lacks what another site has, and stays closed",
        DegradedReason::NoPrimary => "no site is writable",
        DegradedReason::WriteStalled => "commits on the primary do not come back, or its data volume is nearly full",
        DegradedReason::ConnectionsExhausted => "the primary takes no more connections",
        DegradedReason::ReplicationError => "a replication thread reports an error",
        DegradedReason::ReplicationBroken => "a replication thread stands still; a link that is cut counts as lag",
        DegradedReason::ReplicationLagging => "a site is further behind than `replication.maxLagSeconds`",
        DegradedReason::SemiSyncInactive => {
            "with `durability: SemiSync`: commits at the primary have no receipt, or wait in vain for one"
        }
        DegradedReason::Alert => "a site does not answer while the primary is writable",
        DegradedReason::InvalidSpec => "the spec cannot be followed",
        DegradedReason::Healthy => "nothing is wrong",
    }
}

const fn ready(reason: ReadyReason) -> Row {
    match reason {
        ReadyReason::TopologyPolled => (reason.as_str(), true, "everything is as it should be"),
        ReadyReason::Initializing => (reason.as_str(), false, "no site has been opened yet"),
        ReadyReason::NoWritablePrimary => (reason.as_str(), false, "no site is confirmed to write"),
        ReadyReason::ReplicationUnhealthy => (reason.as_str(), false, "a site does not follow; names it"),
    }
}

const fn recovery(reason: RecoveryPendingReason) -> Row {
    match reason {
        RecoveryPendingReason::RecoveryInProgress => (reason.as_str(), true, "a site is being attached"),
        RecoveryPendingReason::DivergentTransactions => {
            (reason.as_str(), true, "a site has transactions that the primary lacks; names them and the way on")
        }
        RecoveryPendingReason::CredentialsMissing => {
            (reason.as_str(), true, "a site cannot be attached: there is no replication account")
        }
        RecoveryPendingReason::NoRecoveryPending => (reason.as_str(), false, "no site is rejoining"),
    }
}

const fn bootstrapping(reason: BootstrappingReason) -> Row {
    match reason {
        BootstrappingReason::Cloning => (reason.as_str(), true, "data are copied"),
        BootstrappingReason::WaitingForRestart => (reason.as_str(), true, "the server restarts on the copy"),
        BootstrappingReason::SetupReplication => (reason.as_str(), true, "it is attached to the primary"),
        BootstrappingReason::Failed => {
            (reason.as_str(), true, "given up until spec, Secret or the annotation `reclone-site` change")
        }
        BootstrappingReason::NotBootstrapping => (reason.as_str(), false, "no site was copied"),
        BootstrappingReason::Done => (reason.as_str(), false, "the last clone is done"),
    }
}

fn updating() -> Vec<Row> {
    let phases = UpdatePhase::ALL.iter().filter_map(|phase| match phase {
        UpdatePhase::None | UpdatePhase::Complete => None,
        UpdatePhase::UpdateReplica => Some((phase.as_str(), true, "a follower is being rolled")),
        UpdatePhase::WaitReplica => Some((phase.as_str(), true, "it comes back and catches up")),
        UpdatePhase::Failover => Some((phase.as_str(), true, "the primary hands over")),
        UpdatePhase::UpdateOldPrimary => Some((phase.as_str(), true, "the old primary is being rolled")),
        UpdatePhase::WaitOldPrimary => Some((phase.as_str(), true, "the old primary comes back and catches up")),
    });
    phases.chain([(UpdatingReason::NotUpdating.as_str(), false, "every site runs what the spec wants")]).collect()
}

const fn paused(reason: PausedReason) -> Row {
    match reason {
        PausedReason::Paused => (reason.as_str(), true, "no new move is started; names the reason and the end"),
        PausedReason::NotPaused => (reason.as_str(), false, "not paused"),
    }
}

const fn cache(phase: DragonflyPhase) -> Option<Row> {
    Some(match phase {
        DragonflyPhase::Disabled => return None,
        DragonflyPhase::Reconciling => {
            (phase.as_str(), false, "something is being changed, or not everything was asked yet")
        }
        DragonflyPhase::ConfiguringReplication => (phase.as_str(), false, "replicas are being attached"),
        DragonflyPhase::Ready => (phase.as_str(), true, "a master serves and every other cache follows it"),
        DragonflyPhase::Degraded => (phase.as_str(), false, "a cache is missing, or is a master that should not be"),
        DragonflyPhase::Promoting => (phase.as_str(), false, "a replica takes over"),
    })
}

const fn warning(reason: ConfigWarningReason) -> Row {
    match reason {
        ConfigWarningReason::DurabilityRelaxed => (reason.as_str(), true, "`mysqlConf` relaxes durability"),
        ConfigWarningReason::SidecarVersionSkew => (reason.as_str(), true, "a sidecar is of another version"),
        ConfigWarningReason::CredentialsMissing => {
            (reason.as_str(), true, "there is no replication account: no site is attached or copied")
        }
        ConfigWarningReason::TaintConflict => {
            (reason.as_str(), true, "node taints are not as wanted, or a node belongs to two sites")
        }
        ConfigWarningReason::DnsWriteFailed => (reason.as_str(), true, "the DNS record could not be written"),
        ConfigWarningReason::ScheduledEventsDisabled => {
            (reason.as_str(), true, "scheduled events are disabled on a promoted site; names them")
        }
        ConfigWarningReason::NoWarnings => (reason.as_str(), false, "nothing to warn of"),
    }
}
