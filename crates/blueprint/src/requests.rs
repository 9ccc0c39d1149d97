//! What admins ask for in annotations, typed.
//!
//! In: a group's annotations. Out: the brain's requests; one that is not understood carries the sentence that says how to
//! write it. Must not: judge whether a request may be granted, or drop one that is not understood: somebody waits for an
//! answer.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use bloodraven_api::annotations::{PlannedFailoverRequest, RecloneConsent, RecloneRequest, SnapshotUpgradeRequest};
use bloodraven_api::keys;
use bloodraven_brain::group::input::{Consent, PlannedWish, RecloneWish, Request, Requests};
use bloodraven_brain::name::Site;

use crate::measure::millis;

/// The requests that stand on a group.
pub fn read(annotations: &BTreeMap<String, String>) -> Requests {
    Requests {
        planned: request(annotations, keys::PLANNED_FAILOVER, planned),
        reclone: request(annotations, keys::RECLONE_SITE, reclone),
        cache_upgrade: request(annotations, keys::DRAGONFLY_SNAPSHOT_UPGRADE, |asked: SnapshotUpgradeRequest| {
            asked.image
        }),
    }
}

fn request<T: FromStr<Err: fmt::Display>, W>(
    annotations: &BTreeMap<String, String>,
    key: &str,
    wish: impl FnOnce(T) -> W,
) -> Option<Request<W>> {
    let text = annotations.get(key)?;
    let wish = text.parse().map(wish).map_err(|error| error.to_string());
    Some(Request { text: text.clone(), wish })
}

fn planned(asked: PlannedFailoverRequest) -> PlannedWish {
    let PlannedFailoverRequest { site, max_lag_wait, id } = asked;
    PlannedWish { site: Site::new(&site), max_lag_wait: max_lag_wait.map(millis), id }
}

fn reclone(asked: RecloneRequest) -> RecloneWish {
    let RecloneRequest { site, consent } = asked;
    let consent = match consent {
        RecloneConsent::Bare => Consent::None,
        RecloneConsent::Prefix(prefix) => Consent::Prefix(prefix),
        RecloneConsent::Confirm(group) => Consent::Confirm(group),
    };
    RecloneWish { site: Site::new(&site), consent }
}
