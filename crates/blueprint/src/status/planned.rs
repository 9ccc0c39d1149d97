//! The planned failover under way, or the last one.
//!
//! In: the brain's words, or `status.plannedFailover`. Out: one from the other. Must not: lose a budget's start; a new
//! leader counts from it.

use bloodraven_api::group::status::{PlannedDragonflyStatus, PlannedFailoverOrigin, PlannedFailoverStatus};
use bloodraven_brain::group::kept::{Planned, PlannedCache};
use bloodraven_brain::name::Site;
use bloodraven_brain::time::Wall;

use super::fault::Fault;
use super::fields::{optional_number, optional_set, optional_time, required_length, required_time, set_text};
use crate::measure::{count, duration, time};
use crate::words::Word;

pub(super) fn write(planned: &Planned) -> PlannedFailoverStatus {
    // Taken apart, so that nothing that is kept is left out here.
    let Planned {
        phase,
        request_id,
        origin,
        target,
        source,
        source_gtid,
        target_gtid,
        started,
        completed,
        transactions_lost,
        reason,
        message,
        max_lag_wait,
        drain_timeout,
        drain_started,
        remaining_connections,
        lag_wait_started,
        retry_after,
        cache,
    } = planned;
    PlannedFailoverStatus {
        phase: phase.twin(),
        request_id: request_id.clone(),
        origin: Some(origin.twin()),
        target: target.to_string(),
        source_primary: source.to_string(),
        source_gtid_at_fence: source_gtid.as_ref().map(set_text),
        target_gtid_at_promotion: target_gtid.as_ref().map(set_text),
        start_time: Some(time(*started)),
        completion_time: completed.map(time),
        duration_seconds: completed.map(|completed| whole_seconds(*started, completed)),
        transactions_lost: transactions_lost.map(count),
        reason: reason.map(Word::twin),
        message: message.clone(),
        max_lag_wait: Some(duration(*max_lag_wait)),
        drain_timeout: Some(duration(*drain_timeout)),
        drain_start_time: drain_started.map(time),
        remaining_connections: remaining_connections.map(count),
        lag_wait_start_time: lag_wait_started.map(time),
        retry_after: retry_after.map(time),
        dragonfly: cache.as_ref().map(write_cache),
    }
}

pub(super) fn read(status: Option<PlannedFailoverStatus>) -> Result<Option<Planned>, Fault> {
    let Some(status) = status else { return Ok(None) };
    Ok(Some(Planned {
        phase: Word::of(status.phase),
        request_id: status.request_id,
        origin: Word::of(status.origin.unwrap_or(PlannedFailoverOrigin::Annotation)),
        target: Site::new(&status.target),
        source: Site::new(&status.source_primary),
        source_gtid: optional_set("sourceGtidAtFence", status.source_gtid_at_fence.as_deref())?,
        target_gtid: optional_set("targetGtidAtPromotion", status.target_gtid_at_promotion.as_deref())?,
        started: required_time("startTime", status.start_time.as_ref())?,
        completed: optional_time(status.completion_time.as_ref()),
        transactions_lost: optional_number("transactionsLost", status.transactions_lost)?,
        reason: status.reason.map(Word::of),
        message: status.message,
        max_lag_wait: required_length("maxLagWait", status.max_lag_wait)?,
        drain_timeout: required_length("drainTimeout", status.drain_timeout)?,
        drain_started: optional_time(status.drain_start_time.as_ref()),
        remaining_connections: optional_number("remainingConnections", status.remaining_connections)?,
        lag_wait_started: optional_time(status.lag_wait_start_time.as_ref()),
        retry_after: optional_time(status.retry_after.as_ref()),
        cache: status.dragonfly.map(read_cache).transpose().map_err(|fault| fault.within("dragonfly"))?,
    }))
}

/// For people; nothing is counted from it.
fn whole_seconds(from: Wall, to: Wall) -> i64 {
    to.0.saturating_sub(from.0).max(0) / 1000
}

fn write_cache(cache: &PlannedCache) -> PlannedDragonflyStatus {
    let PlannedCache {
        sync_wait_started,
        source_offset,
        offset_capture_failed,
        target_offset,
        sync_wait_seconds,
        sessions_preserved,
        method,
        reason,
        message,
    } = cache;
    PlannedDragonflyStatus {
        enabled: true,
        sync_wait_start_time: sync_wait_started.map(time),
        source_offset_at_drain: source_offset.map(count),
        offset_capture_failed: *offset_capture_failed,
        target_offset_at_promotion: target_offset.map(count),
        sync_wait_seconds: sync_wait_seconds.map(count),
        sessions_preserved: *sessions_preserved,
        promotion_method: method.twin(),
        reason: reason.map(Word::twin),
        message: message.clone(),
    }
}

fn read_cache(status: PlannedDragonflyStatus) -> Result<PlannedCache, Fault> {
    Ok(PlannedCache {
        sync_wait_started: optional_time(status.sync_wait_start_time.as_ref()),
        source_offset: optional_number("sourceOffsetAtDrain", status.source_offset_at_drain)?,
        offset_capture_failed: status.offset_capture_failed,
        target_offset: optional_number("targetOffsetAtPromotion", status.target_offset_at_promotion)?,
        sync_wait_seconds: optional_number("syncWaitSeconds", status.sync_wait_seconds)?,
        sessions_preserved: status.sessions_preserved,
        method: Word::of(status.promotion_method),
        reason: status.reason.map(Word::of),
        message: status.message,
    })
}
