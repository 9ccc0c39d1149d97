//! The cache, in words.
//!
//! In: a [`CacheNotice`]. Out: a [`Told`]. Must not: say anything of MySQL; the cache never holds it up.

use super::around::Around;
use super::told::{Change, Told};
use bloodraven_api::events::EventReason;
use bloodraven_api::keys;
use bloodraven_brain::group::kept::CacheUpgradePhase;
use bloodraven_brain::group::notice::CacheNotice;
use bloodraven_telemetry::words::CacheResult;

/// What that notice comes to.
pub(super) fn told(notice: &CacheNotice, around: &Around) -> Told {
    let told = match notice {
        CacheNotice::PromotionStarted { site } => Told::new().event(
            EventReason::DragonflyPromotionStarted,
            format!("the cache at {site} takes over, as the database moved (epoch {})", around.epoch),
        ),
        CacheNotice::PromotionCompleted { site } => Told::new()
            .event(EventReason::DragonflyPromotionCompleted, format!("the cache at {site} is the master"))
            .count(Change::CachePromotion(site.clone(), CacheResult::Success)),
        CacheNotice::PromotionFailed { site, because } => Told::new()
            .event(
                EventReason::DragonflyPromotionFailed,
                format!("the cache at {site} could not take over: {because}; it is tried again, the database is not held up"),
            )
            .count(Change::CachePromotion(site.clone(), CacheResult::Failed)),
        CacheNotice::SyncTimeout { site } => Told::new().event(
            EventReason::DragonflySyncTimeout,
            format!(
                "the cache at {site} did not catch up within maxSyncWait; dragonfly.plannedFailover.onSyncTimeout says whether \
                 the move goes on"
            ),
        ),
        CacheNotice::StaleMaster { site, keys } => Told::new().event_once(
            EventReason::DragonflyStaleMasterDetected,
            site.as_str(),
            format!(
                "the cache at {site} is a master that should be a replica and holds {keys} keys; it is re-attached, and they \
                 go, when dragonfly.staleMasterGrace is over"
            ),
        ),
        CacheNotice::OldSiteReconfigured { site } => Told::new()
            .event(EventReason::DragonflyOldSiteReconfigured, format!("the cache at {site} follows the master again")),
        CacheNotice::SessionsLost { site } => Told::new().event(
            EventReason::DragonflySessionsLost,
            format!("the cache at {site} took over without what had not arrived; some sessions are gone, people log in again"),
        ),
        CacheNotice::UpgradeChanged { phase, message } => upgrade(*phase, message),
        CacheNotice::UpgradeRejected { because } => Told::new().event(
            EventReason::DragonflyUpgradeRejected,
            format!("the request {} was refused: {because}", keys::DRAGONFLY_SNAPSHOT_UPGRADE),
        ),
    };
    told.also_as_prose()
}

fn upgrade(phase: CacheUpgradePhase, message: &str) -> Told {
    let (reason, text) = match phase {
        CacheUpgradePhase::Pending => (
            EventReason::DragonflyUpgradeStarted,
            "the snapshot upgrade of the cache was accepted; traffic stops meanwhile",
        ),
        CacheUpgradePhase::SavingSnapshot => {
            (EventReason::DragonflyUpgradeSnapshotStarted, "the snapshot of the cache is being written")
        }
        CacheUpgradePhase::UpdatingActive => (
            EventReason::DragonflyUpgradeSnapshotCompleted,
            "the snapshot is complete; the active cache gets the new image",
        ),
        CacheUpgradePhase::Succeeded => {
            (EventReason::DragonflyUpgradeCompleted, "the cache runs the new image and serves again")
        }
        CacheUpgradePhase::Failed => {
            (EventReason::DragonflyUpgradeFailed, "the snapshot upgrade of the cache ended without success")
        }
        CacheUpgradePhase::WaitingForActiveRestore | CacheUpgradePhase::ReattachingReplicas => return Told::new(),
    };
    let said = if message.is_empty() { String::new() } else { format!(": {message}") };
    Told::new().event(reason, format!("{text}{said}"))
}
