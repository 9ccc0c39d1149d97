//! Which cache is to be promoted, if any: after an emergency, after the master's own death, for an image, for order.
//!
//! In: what is stored, what caches say. Out: a site. Must not: move a cache while something else moves.

use super::super::kept::{CacheKept, Kept};
use super::Group;
use crate::name::Site;
use crate::record::Cause;
use crate::time::{Boot, Millis, Now};

/// After a confirmed emergency move the cache is made to follow for so long; then the ordinary rules hold.
const EMERGENCY: Millis = Millis::from_secs(10);

/// Two promotions for order's sake are at least so far apart.
const APART: Millis = Millis::from_secs(30);

/// A cache that does not answer for so long is not just being restarted.
const LOST: Millis = Millis::from_secs(120);

impl Group {
    pub(super) fn wanted_promotion(&self, now: Now, kept: &Kept, cache: &CacheKept) -> Option<Site> {
        let active = cache.active.as_ref()?;
        if kept.planned_active().is_some() || !self.caching.pause.may_try(now.boot) {
            return None;
        }
        let emergency = self.emergency_site(now, kept).filter(|site| site != active && !self.cache_is_master(site));
        if emergency.is_some() {
            return emergency;
        }
        if self.active_cache_lost(active) {
            return self.heir(kept, active);
        }
        let apart = cache.last_promotion.as_ref().is_none_or(|last| self.ages.passed(last.at, APART, now));
        if apart && self.active_cache_follows(active) {
            return self.fullest(active);
        }
        if !apart || !self.cache_is_master(active) {
            return None;
        }
        self.successor_for_image(kept, active).or_else(|| self.drifted_to(now, kept, active))
    }

    /// The site that the database was just moved to in an emergency.
    pub(super) fn emergency_site(&self, now: Now, kept: &Kept) -> Option<Site> {
        let serving = &self.serving(kept)?.site;
        let planned = kept.record.as_ref().is_some_and(|record| record.cause == Cause::Planned);
        let last = kept.last_failover.as_ref().filter(|last| last.to == *serving && !planned)?;
        (!self.ages.passed(last.at, EMERGENCY, now)).then(|| serving.clone())
    }

    /// The one replica that can stand in for a master that is gone. Of several none is taken but the one beside the
    /// database, where the cache would go anyway; and if the master came back empty and would empty them all, the one that
    /// has most.
    fn heir(&self, kept: &Kept, active: &Site) -> Option<Site> {
        let heirs = self.heirs(active);
        match heirs[..] {
            [one] => Some(one.clone()),
            _ if self.active_cache_is_blank(active) => {
                let has = |site: &&&Site| self.cache_facts(site).map(|facts| (facts.keys > 0, facts.offset()));
                heirs.iter().max_by_key(has).map(|site| (*site).clone())
            }
            _ => self.serving(kept).map(|seat| &seat.site).filter(|site| heirs.contains(site)).cloned(),
        }
    }

    /// Replicas that could stand in for that master.
    pub(super) fn heirs(&self, active: &Site) -> Vec<&Site> {
        let names = self.spec.sites.iter().map(|spec| &spec.site);
        let fit = |site: &&Site| *site != active && self.spec.is_candidate(site) && self.follows_with_data(site);
        names.filter(fit).collect()
    }

    /// Nobody is the master: the one that has most, and of equals the one that has the label.
    fn fullest(&self, active: &Site) -> Option<Site> {
        let names = self.spec.sites.iter().map(|spec| &spec.site);
        let fit =
            names.filter(|site| self.follows_with_data(site) && (self.spec.is_candidate(site) || *site == active));
        let has = |site: &&Site| self.cache_facts(site).map(|facts| (facts.keys > 0, facts.offset(), *site == active));
        fit.max_by_key(has).cloned()
    }

    /// The database's site, where a replica is ready. A changed image comes first, unless its turn waits for a cache that does
    /// not answer: that may be for ever.
    fn drifted_to(&self, now: Now, kept: &Kept, active: &Site) -> Option<Site> {
        let serving = &self.serving(kept)?.site;
        let ready = serving != active && self.takes_over(serving, active);
        let lost = |since: &Boot| now.boot >= *since + LOST;
        let silent = self.caching.silent.iter().any(|(site, since)| site != serving && lost(since));
        (ready && (silent || self.runs_wanted_image(serving))).then(|| serving.clone())
    }

    /// Whether everything is in place for a takeover there.
    pub(super) fn takes_over(&self, site: &Site, active: &Site) -> bool {
        self.cache_ready(site, active) && self.cache_facts(site).is_some_and(|facts| facts.takeover)
    }
}
