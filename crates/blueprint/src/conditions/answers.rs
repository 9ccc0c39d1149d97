//! Each condition's status, reason and sentence.
//!
//! In: a [`Sight`]. Out: an [`Answer`] per condition. Must not: leave a reader without the names he needs and the way on.

use bloodraven_api::conditions::{
    BootstrappingReason, ConfigWarningReason, DegradedReason, GroupCondition, PausedReason, ReadyReason,
    RecoveryPendingReason, UpdatingReason,
};
use bloodraven_api::group::status::DragonflyPhase;
use bloodraven_api::keys;
use bloodraven_brain::group::cache::CachePhase;
use bloodraven_brain::group::kept::{CloneKept, ClonePhase, CloneSource, Recovery, Update};
use bloodraven_brain::group::report::{Degraded, NotReady};
use bloodraven_brain::name::Site;

use super::Sight;
use super::sight::Patience;
use crate::words::Word;

/// The conditions that are made here, in the order in which they are shown.
pub const OURS: [GroupCondition; 8] = [
    GroupCondition::Ready,
    GroupCondition::Degraded,
    GroupCondition::RecoveryPending,
    GroupCondition::Bootstrapping,
    GroupCondition::Updating,
    GroupCondition::Paused,
    GroupCondition::DragonflyReady,
    GroupCondition::ConfigWarning,
];

/// The answer to one question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Which question.
    pub condition: GroupCondition,
    /// Yes or no.
    pub holds: bool,
    /// Why, in one word.
    pub reason: &'static str,
    /// Why, in a sentence.
    pub message: String,
}

/// Every answer; the cache's only where there is one.
pub fn all(sight: &Sight) -> Vec<Answer> {
    let some = OURS.into_iter().filter_map(|condition| {
        let (holds, reason, message) = match condition {
            GroupCondition::Ready => ready(sight),
            GroupCondition::Degraded => worst(sight),
            GroupCondition::RecoveryPending => recovery(sight),
            GroupCondition::Bootstrapping => bootstrapping(sight),
            GroupCondition::Updating => updating(sight),
            GroupCondition::Paused => paused(sight),
            GroupCondition::DragonflyReady => cache(sight)?,
            GroupCondition::ConfigWarning => warning(sight),
            GroupCondition::BackupConfigValid
            | GroupCondition::ArchiveHealthy
            | GroupCondition::ArchiveContinuous
            | GroupCondition::BackupVerified
            | GroupCondition::Restored => return None,
        };
        Some(Answer { condition, holds, reason, message })
    });
    some.collect()
}

/// What is known of a group that nobody leads, because no spec of it can be taken.
pub fn refused(because: &str) -> Vec<Answer> {
    let ready = "nobody leads this group: its spec is refused, Degraded says why".to_owned();
    let answer = |condition, holds, reason, message| Answer { condition, holds, reason, message };
    vec![
        answer(GroupCondition::Ready, false, ReadyReason::Initializing.as_str(), ready),
        answer(
            GroupCondition::Degraded,
            true,
            DegradedReason::InvalidSpec.as_str(),
            format!("{because}; nobody leads this group until that is mended"),
        ),
    ]
}

type Said = (bool, &'static str, String);

fn ready(sight: &Sight) -> Said {
    let active = sight.report.active.as_ref().map_or("nobody", Site::as_str);
    let (reason, message) = match sight.report.ready {
        Ok(()) => {
            let message = format!("{active} writes in epoch {}, every other site follows it", sight.epoch);
            return (true, ReadyReason::TopologyPolled.as_str(), message);
        }
        Err(NotReady::Initializing) => (ReadyReason::Initializing, "no site has been opened yet".to_owned()),
        Err(NotReady::NoWritablePrimary) => (
            ReadyReason::NoWritablePrimary,
            format!("no site is confirmed to write (epoch {}, authority: {active}); Degraded says why", sight.epoch),
        ),
        Err(NotReady::ReplicationUnhealthy) => (
            ReadyReason::ReplicationUnhealthy,
            format!("{active} writes; it is not followed by {}", names(&sight.not_following)),
        ),
    };
    (false, reason.as_str(), message)
}

/// Every Degraded reason that holds, the gravest first, each with its sentence and the way on.
pub fn degraded(sight: &Sight) -> Vec<(DegradedReason, String)> {
    let hands = &sight.hands;
    let by_hands = [
        (DegradedReason::WriteStalled, &hands.write_stalled),
        (DegradedReason::ConnectionsExhausted, &hands.connections_exhausted),
        (DegradedReason::InvalidSpec, &hands.invalid_spec),
    ];
    let by_hands = by_hands.into_iter().filter_map(|(reason, text)| Some((reason, text.clone()?)));
    let by_brain = sight.report.degraded.iter().map(|(reason, text)| told(sight, *reason, text));
    let mut found: Vec<(DegradedReason, String)> = by_brain.chain(by_hands).collect();
    found.sort_by_key(|(reason, _)| *reason);
    let with_advice = |(reason, text): (DegradedReason, String)| {
        let advice = advice(reason);
        (reason, if advice.is_empty() { text } else { format!("{text}; {advice}") })
    };
    found.into_iter().map(with_advice).collect()
}

/// A proof that time alone brings, or that was asked for a moment ago, is no reason to call for anybody: nobody writes, and
/// it says what is waited for.
fn told(sight: &Sight, reason: Degraded, text: &str) -> (DegradedReason, String) {
    match (reason, sight.patience) {
        (Degraded::PromotionHeld, Some(Patience::Comes(within))) => {
            let seconds = within.0.div_ceil(1000);
            (DegradedReason::NoPrimary, format!("NO PRIMARY: {text}; the proof comes by itself within {seconds} s"))
        }
        (Degraded::PromotionHeld, Some(Patience::Young)) => {
            let until_now = text.split("; to accept").next().unwrap_or(text);
            (DegradedReason::NoPrimary, format!("NO PRIMARY: {until_now}; acknowledgements are on their way"))
        }
        _ => (reason_of(reason), text.to_owned()),
    }
}

const fn reason_of(reason: Degraded) -> DegradedReason {
    match reason {
        Degraded::TotalLoss => DegradedReason::TotalLoss,
        Degraded::SplitBrain => DegradedReason::SplitBrain,
        Degraded::AuthorityCorrupt => DegradedReason::AuthorityCorrupt,
        Degraded::AuthorityBehind => DegradedReason::AuthorityBehind,
        Degraded::PromotionHeld => DegradedReason::PromotionHeld,
        Degraded::CooldownActive => DegradedReason::CooldownActive,
        Degraded::HolderBehind => DegradedReason::HolderBehind,
        Degraded::NoPrimary => DegradedReason::NoPrimary,
        Degraded::ReplicationError => DegradedReason::ReplicationError,
        Degraded::ReplicationBroken => DegradedReason::ReplicationBroken,
        Degraded::ReplicationLagging => DegradedReason::ReplicationLagging,
        Degraded::SemiSyncInactive => DegradedReason::SemiSyncInactive,
        Degraded::Alert => DegradedReason::Alert,
    }
}

/// What to do about it; empty where the sentence itself says it.
pub const fn advice(reason: DegradedReason) -> &'static str {
    match reason {
        DegradedReason::TotalLoss => "nothing moves by itself: bring pods, nodes or network back",
        DegradedReason::SplitBrain => {
            "sites without authority are being fenced; look for who opened them, then for divergent transactions"
        }
        DegradedReason::AuthorityCorrupt => {
            "mend the copy that is named from the other one; the present primary keeps its lease meanwhile"
        }
        DegradedReason::AuthorityBehind => "authority is given anew once every site is known to be closed",
        DegradedReason::CooldownActive => "it goes on by itself then; spec.failoverCooldown sets the pause",
        DegradedReason::NoPrimary => "status.authority and status.sites say who answers and what is waited for",
        DegradedReason::WriteStalled => {
            "look at the primary's disk, and with durability SemiSync at its replicas; nothing moves because of it"
        }
        DegradedReason::ConnectionsExhausted => {
            "raise max_connections in spec.mysqlConf or end idle sessions; nothing moves because of it"
        }
        DegradedReason::ReplicationError => {
            "mend the cause there, or have the site copied anew with the annotation reclone-site"
        }
        DegradedReason::ReplicationBroken => "START REPLICA there, unless somebody stopped it on purpose",
        DegradedReason::ReplicationLagging => "it sheds reads until it has caught up; look at its load and its link",
        DegradedReason::SemiSyncInactive => {
            "bring a primary-candidate back; what is committed meanwhile may be lost with the primary"
        }
        DegradedReason::Alert => "writes go on; bring the site back",
        DegradedReason::InvalidSpec => "the last valid spec stays in force until the field is mended",
        DegradedReason::PromotionHeld | DegradedReason::HolderBehind | DegradedReason::Healthy => "",
    }
}

fn worst(sight: &Sight) -> Said {
    let found = degraded(sight);
    match found.as_slice() {
        [] => (false, DegradedReason::Healthy.as_str(), "nothing is wrong".to_owned()),
        [(reason, text)] => (true, reason.as_str(), text.clone()),
        [(reason, _), ..] => {
            let each: Vec<String> = found.iter().map(|(reason, text)| format!("{reason}: {text}")).collect();
            (true, reason.as_str(), each.join(" | "))
        }
    }
}

fn recovery(sight: &Sight) -> Said {
    let primary = sight.report.active.as_ref().map_or("the primary", Site::as_str);
    if !sight.divergent.is_empty() {
        let each = sight.divergent.iter().map(|(site, set)| {
            let (count, group, key) = (set.count(), &sight.name, keys::RECLONE_SITE);
            let set = set.compact().to_string();
            // A prefix of the set is consent enough, and fits into a command line.
            let prefix = set.split(':').next().unwrap_or_default();
            format!(
                "{site} has {count} transactions that {primary} lacks ({set}); save what you need of them, then have it \
                 copied anew: kubectl annotate mfg {group} {key}={site}:{prefix}"
            )
        });
        let message = each.collect::<Vec<_>>().join("; ");
        return (true, RecoveryPendingReason::DivergentTransactions.as_str(), message);
    }
    if !sight.replication_account && sight.report.active.is_some() && !sight.not_following.is_empty() {
        let message = format!(
            "{} cannot be attached: there is no replication account; put MYSQL_REPLICATION_USER and \
             MYSQL_REPLICATION_PASSWORD into the operator's Secret",
            names(&sight.not_following)
        );
        return (true, RecoveryPendingReason::CredentialsMissing.as_str(), message);
    }
    let coming: Vec<Site> = sight
        .report
        .recovering
        .iter()
        .filter(|(_, state)| *state == Recovery::InProgress)
        .map(|(site, _)| site.clone())
        .collect();
    if coming.is_empty() {
        return (false, RecoveryPendingReason::NoRecoveryPending.as_str(), "no site is rejoining".to_owned());
    }
    let message = format!("{} is being attached to {primary}", names(&coming));
    (true, RecoveryPendingReason::RecoveryInProgress.as_str(), message)
}

fn bootstrapping(sight: &Sight) -> Said {
    let Some((site, clone)) = sight.clones.first() else {
        let reason = BootstrappingReason::NotBootstrapping;
        return (false, reason.as_str(), "no site is being copied".to_owned());
    };
    let begin = match clone.source {
        CloneSource::FreshDeploy => "Bootstrap",
        CloneSource::AutoClone => "Auto-clone",
        CloneSource::Reclone => "Reclone",
    };
    let (reason, state) = match clone.phase {
        ClonePhase::Cloning => (BootstrappingReason::Cloning, format!("data are copied{}", progress(clone))),
        ClonePhase::WaitingForRestart => {
            (BootstrappingReason::WaitingForRestart, "the server restarts on the copy".to_owned())
        }
        ClonePhase::SetupReplication => {
            (BootstrappingReason::SetupReplication, "it is attached to the primary".to_owned())
        }
        ClonePhase::Failed => (
            BootstrappingReason::Failed,
            format!(
                "given up after {} attempts; it is tried again when the spec, a Secret or the annotation {} changes",
                clone.attempts,
                keys::RECLONE_SITE
            ),
        ),
        ClonePhase::Done => (BootstrappingReason::Done, "done".to_owned()),
    };
    let said = if clone.message.is_empty() { String::new() } else { format!(" ({})", clone.message) };
    (reason != BootstrappingReason::Done, reason.as_str(), format!("{begin} of {site}: {state}{said}"))
}

fn progress(clone: &CloneKept) -> String {
    clone.bytes.map(|(done, total)| format!(", {done} of {total} bytes")).unwrap_or_default()
}

fn updating(sight: &Sight) -> Said {
    let Some(Update { phase, site, since: _, stopped }) = &sight.update else {
        return (false, UpdatingReason::NotUpdating.as_str(), "every site runs what the spec wants".to_owned());
    };
    let which = site.as_ref().map(|site| format!(" at {site}")).unwrap_or_default();
    let stands = stopped.as_ref().map(|why| format!("; it stands still: {why}")).unwrap_or_default();
    let reason = Some(*phase).twin().as_str();
    (true, reason, format!("an ordered update is under way: {reason}{which}{stands}"))
}

fn paused(sight: &Sight) -> Said {
    let Some(why) = &sight.report.paused else {
        return (false, PausedReason::NotPaused.as_str(), "not paused".to_owned());
    };
    let why = if why.is_empty() { String::new() } else { format!(": {why}") };
    let until = sight.paused_until.map_or("until spec.paused is false".to_owned(), |until| format!("until {until}"));
    (true, PausedReason::Paused.as_str(), format!("no new move is started {until}{why}"))
}

fn cache(sight: &Sight) -> Option<Said> {
    let (phase, message) = sight.cache.as_ref()?;
    Some((*phase == CachePhase::Ready, phase_of(*phase).as_str(), message.clone()))
}

pub(crate) const fn phase_of(phase: CachePhase) -> DragonflyPhase {
    match phase {
        CachePhase::Disabled => DragonflyPhase::Disabled,
        CachePhase::Reconciling => DragonflyPhase::Reconciling,
        CachePhase::ConfiguringReplication => DragonflyPhase::ConfiguringReplication,
        CachePhase::Ready => DragonflyPhase::Ready,
        CachePhase::Degraded => DragonflyPhase::Degraded,
        CachePhase::Promoting => DragonflyPhase::Promoting,
    }
}

fn warning(sight: &Sight) -> Said {
    let account = (!sight.replication_account).then(|| {
        "there is no replication account: no site is attached or copied; put MYSQL_REPLICATION_USER and \
         MYSQL_REPLICATION_PASSWORD into the operator's Secret"
            .to_owned()
    });
    let dns = sight.dns.as_ref().map(|why| format!("the DNS record could not be written: {why}; it is tried again"));
    let taints = sight.taints.as_ref().map(|why| format!("node taints are not as wanted: {why}"));
    let known = [
        (ConfigWarningReason::CredentialsMissing, account),
        (ConfigWarningReason::TaintConflict, taints),
        (ConfigWarningReason::DnsWriteFailed, dns),
    ];
    let known = known.into_iter().filter_map(|(reason, text)| Some((reason, text?)));
    let mut found: Vec<_> = sight.hands.warnings.iter().cloned().chain(known).collect();
    found.sort_by_key(|(reason, _)| *reason);
    match found.first() {
        None => (false, ConfigWarningReason::NoWarnings.as_str(), "nothing to warn of".to_owned()),
        Some((reason, _)) => {
            let each: Vec<String> = found.iter().map(|(_, text)| text.clone()).collect();
            (true, reason.as_str(), each.join(" | "))
        }
    }
}

fn names(sites: &[Site]) -> String {
    sites.iter().map(Site::as_str).collect::<Vec<_>>().join(", ")
}
