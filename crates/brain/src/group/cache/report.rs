//! The cache, for people and for status.
//!
//! In: what is stored and what caches say. Out: one phase, in words, and each site's role. Must not: decide anything.

use super::super::kept::{CacheKept, Kept};
use super::Group;
use super::observe::{CacheState, database_site};
use crate::name::Site;

/// What goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CachePhase {
    /// There is none.
    Disabled,
    /// Something is being changed, or not everything is known yet.
    Reconciling,
    /// Replicas are attached.
    ConfiguringReplication,
    /// A master serves and everything follows it.
    Ready,
    /// Something is missing.
    Degraded,
    /// A replica takes over.
    Promoting,
}

/// The cache, as seen.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CacheReport {
    /// What goes on.
    pub phase: CachePhase,
    /// In words.
    pub message: String,
    /// The site whose cache takes writes, as last known; it may differ from the database's.
    pub active: Option<Site>,
    /// Each site, in declared order.
    pub sites: Vec<CacheSite>,
}

/// One site's cache.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CacheSite {
    /// Which.
    pub site: Site,
    /// What it is.
    pub state: CacheState,
    /// It could take over now.
    pub ready: bool,
}

impl Group {
    /// The cache, as seen.
    pub fn cache_report(&self, kept: &Kept) -> CacheReport {
        let none = CacheKept::default();
        let cache = kept.cache.as_ref().unwrap_or(&none);
        let active = cache.active.clone().filter(|site| self.spec.site(site).is_some());
        if self.spec.cache.is_none() {
            return CacheReport {
                phase: CachePhase::Disabled,
                message: String::new(),
                active: None,
                sites: Vec::new(),
            };
        }
        let report = |site: Site| CacheSite {
            state: self.cache_state(&site, active.as_ref()),
            ready: active.as_ref().is_some_and(|active| self.cache_ready(&site, active)),
            site,
        };
        let sites: Vec<CacheSite> = self.spec.names().into_iter().map(report).collect();
        let (phase, message) = self.cache_phase(kept, cache, &sites);
        CacheReport { phase, message, active, sites }
    }

    fn cache_phase(&self, kept: &Kept, cache: &CacheKept, sites: &[CacheSite]) -> (CachePhase, String) {
        if let Some(target) = &cache.promoting {
            return (CachePhase::Promoting, format!("{target} takes over"));
        }
        if let Some(upgrade) = cache.upgrade.as_ref().filter(|upgrade| upgrade.phase.is_active()) {
            return (CachePhase::Reconciling, format!("a snapshot upgrade to {} is under way", upgrade.to));
        }
        let having = |state: CacheState| {
            let names = sites.iter().filter(|site| site.state == state).map(|site| site.site.to_string());
            names.collect::<Vec<_>>().join(", ")
        };
        let (unknown, silent) = (having(CacheState::Unknown), having(CacheState::Unreachable));
        let Some(active) = cache.active.as_ref().filter(|_| unknown.is_empty()) else {
            return (CachePhase::Reconciling, format!("not every cache was asked yet: {unknown}"));
        };
        if !self.cache_is_master(active) {
            return (CachePhase::Degraded, format!("there is no master; the last one was at {active}"));
        }
        if !silent.is_empty() {
            return (CachePhase::Degraded, format!("no answer from {silent}"));
        }
        let stale = having(CacheState::StaleMaster);
        if !stale.is_empty() {
            return (CachePhase::Degraded, format!("a master that should be a replica is kept for a while at {stale}"));
        }
        let waits = sites.iter().filter(|site| site.site != *active && !site.ready).map(|site| site.site.to_string());
        let waits = waits.collect::<Vec<_>>().join(", ");
        if !waits.is_empty() {
            return (CachePhase::ConfiguringReplication, format!("not in sync with {active}: {waits}"));
        }
        if !sites.iter().all(|site| self.runs_wanted_image(&site.site)) {
            return (CachePhase::Reconciling, "pods are brought to the wanted image".to_owned());
        }
        let apart = database_site(kept).filter(|site| site != active);
        let drift = apart.map(|site| format!("; the database is at {site}")).unwrap_or_default();
        (CachePhase::Ready, format!("the master is at {active}{drift}"))
    }
}
