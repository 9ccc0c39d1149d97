//! The fields of status that the brain keeps: their shape, those that stand at the root, and the values that many of them
//! are made of.
//!
//! In: status as JSON, or the brain's values. Out: one from the other. Must not: know a field that is only shown.

use bloodraven_api::group::status::{
    Authority, CloneStatus, DragonflyUpgradeStatus, PlannedFailoverStatus, RecoveryState, StaleMasterStatus,
    UpdatePhase,
};
use bloodraven_api::{GoDuration, MysqlFailoverGroupStatus};
use bloodraven_brain::group::kept::Update;
use bloodraven_brain::name::Site;
use bloodraven_brain::time::{Millis, Wall};
use bloodraven_gtid::GtidSet;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use serde::{Deserialize, Serialize};

use super::fault::Fault;
use crate::measure;
use crate::words::Word;

/// What is read of status, and nothing else.
#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct KeptStatus {
    pub(super) authority: Option<Authority>,
    pub(super) sites: Vec<KeptSite>,
    pub(super) last_failover: Option<MicroTime>,
    pub(super) last_failover_target: Option<String>,
    pub(super) promotion_gtid_executed: Option<String>,
    pub(super) unapplied_gtid_at_promotion: Option<String>,
    pub(super) update_phase: UpdatePhase,
    pub(super) update_site: String,
    pub(super) update_since: Option<MicroTime>,
    pub(super) update_stopped: Option<String>,
    pub(super) planned_failover: Option<PlannedFailoverStatus>,
    pub(super) dragonfly: Option<KeptDragonfly>,
}

/// What is read of one site.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct KeptSite {
    pub(super) name: String,
    #[serde(default)]
    pub(super) recovery_state: RecoveryState,
    pub(super) divergent_gtid: Option<String>,
    pub(super) clone: Option<CloneStatus>,
    #[serde(default)]
    pub(super) read_only_taint: bool,
}

/// What is read of the cache.
#[derive(Serialize, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct KeptDragonfly {
    pub(super) active_site: String,
    pub(super) last_promotion_time: Option<MicroTime>,
    pub(super) last_promotion_target: Option<String>,
    pub(super) promoting: Option<String>,
    pub(super) stale_masters: Vec<StaleMasterStatus>,
    pub(super) upgrade: Option<DragonflyUpgradeStatus>,
}

pub(super) fn write_promotion(promotion: Option<&GtidSet>, unapplied: &GtidSet, status: &mut MysqlFailoverGroupStatus) {
    status.promotion_gtid_executed = promotion.map(set_text);
    (status.unapplied_gtid_at_promotion, status.unapplied_transaction_count) = counted(unapplied);
}

pub(super) fn read_promotion(status: &KeptStatus) -> Result<(Option<GtidSet>, GtidSet), Fault> {
    Ok((
        optional_set("promotionGtidExecuted", status.promotion_gtid_executed.as_deref())?,
        optional_set("unappliedGtidAtPromotion", status.unapplied_gtid_at_promotion.as_deref())?.unwrap_or_default(),
    ))
}

pub(super) fn write_update(update: Option<&Update>, status: &mut MysqlFailoverGroupStatus) {
    status.update_phase = update.map(|update| update.phase).twin();
    status.update_site = update.and_then(|update| update.site.as_ref()).map(Site::to_string).unwrap_or_default();
    status.update_since = update.map(|update| measure::time(update.since));
    status.update_stopped = update.and_then(|update| update.stopped.clone());
}

pub(super) fn read_update(status: &KeptStatus) -> Result<Option<Update>, Fault> {
    let Some(phase) = Word::of(status.update_phase) else { return Ok(None) };
    Ok(Some(Update {
        phase,
        site: named(&status.update_site),
        since: required_time("updateSince", status.update_since.as_ref())?,
        stopped: status.update_stopped.clone(),
    }))
}

/// A set on one line.
pub(super) fn set_text(set: &GtidSet) -> String {
    set.compact().to_string()
}

/// A set and how many transactions are in it; both absent when it is empty.
pub(super) fn counted(set: &GtidSet) -> (Option<String>, Option<i64>) {
    if set.is_empty() { (None, None) } else { (Some(set_text(set)), Some(measure::count(set.count()))) }
}

pub(super) fn optional_set(field: &str, text: Option<&str>) -> Result<Option<GtidSet>, Fault> {
    let set = text.map(str::parse).transpose();
    set.map_err(|error| Fault::new(field, format!("is no GTID set: {error}")))
}

/// The site of that name; an empty name is nobody's.
pub(super) fn named(name: &str) -> Option<Site> {
    (!name.is_empty()).then(|| Site::new(name))
}

pub(super) fn optional_time(time: Option<&MicroTime>) -> Option<Wall> {
    time.map(measure::wall)
}

pub(super) fn required_time(field: &str, time: Option<&MicroTime>) -> Result<Wall, Fault> {
    optional_time(time).ok_or_else(|| missing(field))
}

pub(super) fn required_length(field: &str, length: Option<GoDuration>) -> Result<Millis, Fault> {
    length.map(measure::millis).ok_or_else(|| missing(field))
}

pub(super) fn number(field: &str, number: i64) -> Result<u64, Fault> {
    u64::try_from(number).map_err(|_| Fault::new(field, format!("is {number}, and cannot be negative")))
}

pub(super) fn optional_number(field: &str, given: Option<i64>) -> Result<Option<u64>, Fault> {
    given.map(|given| number(field, given)).transpose()
}

pub(super) fn missing(field: &str) -> Fault {
    Fault::new(field, "is missing")
}
