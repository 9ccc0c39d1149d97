//! What caches are: their roles, which may take over, and which one is the master.
//!
//! In: the last poll of each. Out: answers. Must not: change anything.

use super::super::input::{CacheFacts, CacheRole};
use super::super::kept::{CacheKept, Kept};
use super::Group;
use crate::name::Site;

/// What one site's cache is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CacheState {
    /// Not asked yet.
    Unknown,
    /// The master of the active site.
    Master,
    /// It follows.
    Replica,
    /// A master elsewhere than at the active site.
    StaleMaster,
    /// It has nothing and follows nobody: just started.
    Unconfigured,
    /// It does not answer.
    Unreachable,
}

impl Group {
    /// What that site's cache is.
    pub fn cache_state(&self, site: &Site, active: Option<&Site>) -> CacheState {
        let Some(said) = self.seen.site(site).and_then(|seen| seen.cache.as_ref()) else {
            return CacheState::Unknown;
        };
        match said {
            None => CacheState::Unreachable,
            Some(facts) => match facts.role {
                CacheRole::Replica { .. } => CacheState::Replica,
                CacheRole::Master { .. } if Some(site) == active => CacheState::Master,
                CacheRole::Master { .. } if is_blank(facts) => CacheState::Unconfigured,
                CacheRole::Master { .. } => CacheState::StaleMaster,
            },
        }
    }

    /// Whether that site's cache follows that master, with everything in place to take over.
    pub fn cache_ready(&self, site: &Site, active: &Site) -> bool {
        self.cache_facts(site).is_some_and(|facts| match &facts.role {
            CacheRole::Replica { master, link_up, syncing, heard, .. } => {
                master.as_ref() == Some(active) && *link_up && !*syncing && *heard && !facts.loading
            }
            CacheRole::Master { .. } => false,
        })
    }

    /// What that site's cache said last, if it answered.
    pub(in super::super) fn cache_facts(&self, site: &Site) -> Option<&CacheFacts> {
        self.seen.site(site)?.cache.as_ref()?.as_ref()
    }

    /// Whether that site's cache was asked and did not answer.
    pub(in super::super) fn cache_is_silent(&self, site: &Site) -> bool {
        self.seen.site(site).is_some_and(|seen| seen.cache == Some(None))
    }

    pub(in super::super) fn cache_is_master(&self, site: &Site) -> bool {
        self.cache_facts(site).is_some_and(|facts| matches!(facts.role, CacheRole::Master { .. }))
    }

    /// A cache that was not asked yet may be anything: nothing is concluded from the others.
    pub(super) fn all_caches_polled(&self) -> bool {
        self.seen.sites.values().all(|seen| seen.cache.is_some())
    }

    /// The one observed master, else the last known, else the database's site. One that has just started calls itself a
    /// master, too: it counts only while nobody else has anything.
    pub(super) fn active_cache(&self, kept: &Kept, cache: &CacheKept) -> Option<Site> {
        let declared = self.spec.sites.iter().map(|spec| &spec.site);
        let (blank, masters): (Vec<&Site>, Vec<&Site>) = declared
            .filter(|site| self.cache_is_master(site))
            .partition(|site| self.cache_facts(site).is_some_and(is_blank));
        let known = cache.active.as_ref().filter(|site| self.spec.site(site).is_some());
        let holder = database_site(kept);
        if let [one] = masters[..]
            && !known.is_some_and(|known| blank.contains(&known))
        {
            return Some(one.clone());
        }
        let known_is_gone = known.is_some_and(|known| self.cache_is_silent(known));
        let anybody_follows = self.spec.sites.iter().any(|spec| self.follows_with_data(&spec.site));
        if known_is_gone && masters.is_empty() && !anybody_follows {
            let at_holder = holder.as_ref().filter(|holder| blank.contains(holder));
            let only = if let [one] = blank[..] { Some(one) } else { None };
            return at_holder.or(only).or(known).cloned();
        }
        known.cloned().or(holder)
    }

    /// Whether the active master is gone: it does not answer, or came back with nothing while others still have it.
    pub(super) fn active_cache_lost(&self, active: &Site) -> bool {
        self.cache_is_silent(active) || self.active_cache_is_blank(active)
    }

    /// The active master started anew, empty, and a follower still has what it had.
    pub(super) fn active_cache_is_blank(&self, active: &Site) -> bool {
        let blank = self.cache_facts(active).is_some_and(|facts| is_blank(facts) && !facts.loading);
        let follower_holds = |site: &Site| {
            let keys = self.cache_facts(site).is_some_and(|facts| facts.keys > 0);
            site != active && keys && self.follows_with_data(site)
        };
        blank && self.spec.sites.iter().any(|spec| follower_holds(&spec.site))
    }

    /// The one with the label follows another. It was told to before it became the active one, or a human did that; where
    /// another one is the only master, that one is the active one by now.
    pub(super) fn active_cache_follows(&self, active: &Site) -> bool {
        self.follows_with_data(active)
    }

    /// Whether it is a replica that is not being filled just now.
    pub(super) fn follows_with_data(&self, site: &Site) -> bool {
        self.cache_facts(site)
            .is_some_and(|facts| !facts.loading && matches!(facts.role, CacheRole::Replica { syncing: false, .. }))
    }
}

/// The site that holds authority over the database, open or not.
pub(super) fn database_site(kept: &Kept) -> Option<Site> {
    let record = kept.record.as_ref()?;
    let member = record.seat.as_ref().or(record.holder.as_ref().map(|last| &last.member))?;
    Some(member.site.clone())
}

/// Whether it just started: a master that nobody follows and that has nothing.
pub(super) fn is_blank(facts: &CacheFacts) -> bool {
    facts.keys == 0 && took_no_writes(facts)
}

/// Whether it is a master that took no writes.
pub(super) fn took_no_writes(facts: &CacheFacts) -> bool {
    matches!(facts.role, CacheRole::Master { offset: 0, replicas: 0 })
}

impl CacheFacts {
    /// Bytes that it has sent, or has.
    pub(super) const fn offset(&self) -> u64 {
        match self.role {
            CacheRole::Master { offset, .. } | CacheRole::Replica { offset, .. } => offset,
        }
    }
}
