//! A planned failover, in words.
//!
//! In: its phase, and the phase before. Out: a [`Told`]. Must not: tell an end that is not stored; the brain says it when it is.

use super::around::Around;
use super::told::{Change, Told};
use bloodraven_api::events::EventReason;
use bloodraven_api::keys;
use bloodraven_brain::group::kept::{Planned, PlannedPhase, PlannedReason};
use bloodraven_brain::name::Site;
use bloodraven_brain::time::Millis;
use bloodraven_telemetry::log::{Field, Line, LogEvent};
use bloodraven_telemetry::words::PlannedResult;

/// It was accepted, went on, or ended.
pub(super) fn changed(
    around: &Around,
    target: &Site,
    phase: PlannedPhase,
    reason: Option<PlannedReason>,
    message: &str,
) -> Told {
    let before = around.planned_before.map(|(phase, _)| phase);
    let line = Line::of(LogEvent::PlannedPhase)
        .text(Field::Candidate, target)
        .text(Field::From, before.map(|before| format!("{before:?}")).unwrap_or_default())
        .text(Field::To, format!("{phase:?}"))
        .maybe(Field::Reason, reason.map(|reason| format!("{reason:?}: {message}")));
    let told = with_lag_wait(around, target, phase, reason, Told::new().line(line));
    let source = around.planned.as_ref().map(|planned| planned.source.as_str()).filter(|source| !source.is_empty());
    let source = source.unwrap_or_else(|| around.primary());
    match phase {
        PlannedPhase::Pending => told.event(EventReason::PlannedFailoverStarted, started(source, target)),
        // The hand-over of an update has no request, so it begins here.
        PlannedPhase::Validating if before.is_none() => {
            told.event(EventReason::PlannedFailoverStarted, started(source, target))
        }
        PlannedPhase::Deferred => told.event(
            EventReason::PlannedFailoverDeferred,
            format!("the planned failover to {target} waits: {message}; take the annotation away to cancel it"),
        ),
        PlannedPhase::Draining if reason.is_none() => told.event(
            EventReason::PlannedFailoverDraining,
            format!("{source} is fenced for the planned failover to {target}; its sessions are being ended"),
        ),
        PlannedPhase::Succeeded => succeeded(around, source, target, message, told),
        PlannedPhase::Failed => failed(around, source, target, reason, message, told),
        PlannedPhase::Validating
        | PlannedPhase::Draining
        | PlannedPhase::WaitingForLag
        | PlannedPhase::WaitingForCache
        | PlannedPhase::PromotingCache
        | PlannedPhase::Promoting
        | PlannedPhase::Resuming => told,
    }
}

fn started(source: &str, target: &Site) -> String {
    format!("authority will move from {source} to {target} without losing a transaction; writes stop for a moment")
}

/// Leaving the wait without a reason means that the target has everything.
fn with_lag_wait(
    around: &Around,
    target: &Site,
    phase: PlannedPhase,
    reason: Option<PlannedReason>,
    told: Told,
) -> Told {
    let waited = around.planned_before.filter(|(before, _)| *before == PlannedPhase::WaitingForLag);
    let left = !matches!(phase, PlannedPhase::WaitingForLag | PlannedPhase::Failed) && reason.is_none();
    match waited.filter(|_| left) {
        None => told,
        Some((_, waited)) => told
            .event(
                EventReason::PlannedFailoverLagOk,
                format!("{target} has every transaction after {:.1} s and is promoted", super::told::seconds(waited)),
            )
            .count(Change::LagWait(target.clone(), waited)),
    }
}

fn succeeded(around: &Around, source: &str, target: &Site, message: &str, told: Told) -> Told {
    let told = told
        .event(
            EventReason::PlannedFailoverCompleted,
            format!("{message}: authority moved from {source} to {target} (epoch {})", around.epoch),
        )
        .count(Change::Planned(around.declared(target), PlannedResult::Success));
    match around.planned.as_ref().and_then(took) {
        Some(took) => told.count(Change::PlannedTook(target.clone(), took)),
        None => told,
    }
}

fn took(planned: &Planned) -> Option<Millis> {
    let length = planned.completed?.0.saturating_sub(planned.started.0);
    u64::try_from(length).ok().map(Millis)
}

fn failed(
    around: &Around,
    source: &str,
    target: &Site,
    reason: Option<PlannedReason>,
    message: &str,
    told: Told,
) -> Told {
    let result = match reason {
        Some(PlannedReason::LagTimeout | PlannedReason::CacheSyncTimeout) => PlannedResult::FailedTimeout,
        _ => PlannedResult::FailedOther,
    };
    let why = reason.map(|reason| format!("{reason:?}: ")).unwrap_or_default();
    told.event(
        EventReason::PlannedFailoverFailed,
        format!(
            "the planned failover from {source} to {target} ended without a move ({why}{message}); status.activeSite says who \
             writes; ask again when the cause is gone"
        ),
    )
    .count(Change::Planned(around.declared(target), result))
}

/// The target was active already.
pub(super) fn skipped(around: &Around, target: &Site) -> Told {
    let message = format!("{target} is active already (epoch {}); the request was removed", around.epoch);
    Told::new().event(EventReason::PlannedFailoverSkipped, message).also_as_prose()
}

/// It was refused.
pub(super) fn rejected(around: &Around, reason: PlannedReason, message: &str) -> Told {
    let of_this =
        around.planned.as_ref().filter(|planned| planned.reason == Some(reason) && planned.message == message);
    let target = of_this.and_then(|planned| around.declared(&planned.target));
    let message = format!(
        "the request {} was refused ({reason:?}): {message}; nothing was touched, {} stays the primary",
        keys::PLANNED_FAILOVER,
        around.primary()
    );
    Told::new()
        .event(EventReason::PlannedFailoverRejected, message)
        .also_as_prose()
        .count(Change::Planned(target, PlannedResult::Rejected))
}
