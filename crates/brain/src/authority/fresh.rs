//! The shortcut of a new group: nothing was ever written anywhere, so nobody can be writing.

use super::proof::{Release, Scope};
use crate::record::{Phase, Record};

/// What shows that a site never held anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fresh {
    /// Its volume was made by this very group object, or is not made yet.
    pub own_volume: bool,
    /// No container of any pod of it ever started.
    pub never_started: bool,
    /// Its sidecar answers, fenced, knows no epoch from before this beginning, and its server is empty.
    pub says_empty: bool,
}

/// The release of a group that was never anything: no wait, for no lease was ever given.
pub fn release_of_fresh(record: &Record, sites: &[Fresh]) -> Option<Release> {
    let fresh = |site: &Fresh| site.own_volume && (site.never_started || site.says_empty);
    // An epoch above the first: somebody has reported one, so there was a life before.
    let beginning = record.phase == Phase::Revoking && record.holder.is_none() && record.revoked_at == Some(1);
    let shown = beginning && !sites.is_empty() && sites.iter().all(fresh);
    shown.then_some(Release { revoked_at: record.revoked_at, epoch: record.epoch, scope: Scope::Anyone(None) })
}
