//! The last failover and its two copies.
//!
//! In: status and annotations. Out: when and where to. Must not: take half a copy; a time without a target, or a target
//! without a time, says that something was lost. A stamp in the future is the brain's business.

use std::collections::BTreeMap;

use bloodraven_api::{MysqlFailoverGroupStatus, annotations as texts, keys};
use bloodraven_brain::group::kept::Move;
use bloodraven_brain::time::Wall;

use super::Annotations;
use super::fault::{Corrupt, Fault};
use super::fields::{KeptStatus, missing, named, optional_time};
use crate::measure;

pub(super) fn write(last: Option<&Move>, status: &mut MysqlFailoverGroupStatus, annotations: &mut Annotations) {
    let target = last.map(|last| last.to.to_string());
    status.last_failover = last.map(|last| measure::time(last.at));
    status.last_failover_target.clone_from(&target);
    annotations.last_failover = last.map(|last| texts::last_failover_to_annotation(measure::timestamp(last.at)));
    annotations.last_failover_target = target;
}

pub(super) fn in_status(status: &KeptStatus) -> Result<Option<Move>, Fault> {
    let at = optional_time(status.last_failover.as_ref());
    both(at, status.last_failover_target.as_deref(), "lastFailover", "lastFailoverTarget")
}

pub(super) fn annotated(annotations: &BTreeMap<String, String>) -> Result<Option<Move>, Corrupt> {
    let at = annotations.get(keys::LAST_FAILOVER).map(|text| {
        let time = texts::last_failover_from_annotation(text);
        let fault = |_| Fault::new("", format!("is {text:?}, which is no time"));
        time.map(|time| Wall(time.as_millisecond())).map_err(fault)
    });
    let at = at.transpose().map_err(|fault| fault.in_annotation(keys::LAST_FAILOVER))?;
    let target = annotations.get(keys::LAST_FAILOVER_TARGET).map(String::as_str);
    let key = if at.is_none() { keys::LAST_FAILOVER } else { keys::LAST_FAILOVER_TARGET };
    both(at, target, "", "").map_err(|fault| fault.in_annotation(key))
}

fn both(at: Option<Wall>, target: Option<&str>, time_field: &str, target_field: &str) -> Result<Option<Move>, Fault> {
    match (at, target) {
        (None, None) => Ok(None),
        (None, Some(_)) => Err(missing(time_field)),
        (Some(_), None) => Err(missing(target_field)),
        (Some(at), Some(target)) => match named(target) {
            Some(to) => Ok(Some(Move { at, to })),
            None => Err(Fault::new(target_field, "names no site")),
        },
    }
}
