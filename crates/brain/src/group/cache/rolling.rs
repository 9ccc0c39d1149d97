//! A changed image: followers one at a time, then a promotion to one of them, then the old master.
//!
//! In: the images that caches run. Out: `Roll` tasks, and the site that should be master meanwhile. Must not: have more
//! than one cache down.

use super::super::command::{CacheTask, Task};
use super::super::kept::{CacheKept, Kept};
use super::Group;
use super::observe::database_site;
use crate::group::Step;
use crate::name::Site;
use crate::time::{Millis, Now};

/// The same pod is brought to an image at most this often.
const AGAIN: Millis = Millis::from_secs(30);

impl Group {
    pub(super) fn roll_caches(&mut self, now: Now, kept: &Kept, cache: &CacheKept, out: &mut Step) {
        let (Some(active), Some(spec)) = (&cache.active, self.spec.cache.clone()) else { return };
        if kept.planned_active().is_some() || !self.cache_is_master(active) {
            return;
        }
        let followers: Vec<Site> = self.spec.names().into_iter().filter(|site| site != active).collect();
        let not_ready: Vec<&Site> = followers.iter().filter(|site| !self.cache_ready(site, active)).collect();
        let drifted = |site: &&Site| !self.runs_wanted_image(site);
        let next = match not_ready[..] {
            [] => followers.iter().find(drifted).or_else(|| self.rolls_alone(active, &followers)),
            // One is down already: if it is for its image, it is that one's turn.
            [one] => Some(one).filter(drifted),
            _ => None,
        };
        if let Some(site) = next.cloned() {
            self.roll_cache(now, &site, &spec.image, out);
        }
    }

    /// The master itself, when nobody could take over from it.
    fn rolls_alone<'a>(&self, active: &'a Site, followers: &[Site]) -> Option<&'a Site> {
        let heirs = followers.iter().any(|site| self.spec.is_candidate(site));
        (!heirs && !self.runs_wanted_image(active)).then_some(active)
    }

    /// Brings that pod to that image, now and then again.
    pub(super) fn roll_cache(&mut self, now: Now, site: &Site, image: &str, out: &mut Step) {
        let paced = self.caching.rolled.get(site).is_none_or(|at| now.boot >= *at + AGAIN);
        let task = Task::Cache(CacheTask::Roll { image: image.to_owned() });
        if paced && self.begin(now, site, task, out) {
            self.caching.rolled.insert(site.clone(), now.boot);
        }
    }

    /// The master is the last one with an old image: a ready one takes over, the database's site first.
    pub(super) fn successor_for_image(&self, kept: &Kept, active: &Site) -> Option<Site> {
        let names = || self.spec.sites.iter().map(|spec| &spec.site).filter(|site| *site != active);
        let followers_done = names().all(|site| self.cache_ready(site, active) && self.runs_wanted_image(site));
        if self.runs_wanted_image(active) || !followers_done {
            return None;
        }
        let fits = |site: &&Site| self.spec.is_candidate(site) && self.takes_over(site, active);
        let holder = database_site(kept);
        let at_holder = names().filter(fits).find(|site| Some(*site) == holder.as_ref());
        at_holder.or_else(|| names().find(fits)).cloned()
    }

    /// Whether that cache runs the image that is wanted; one that does not answer does not.
    pub(super) fn runs_wanted_image(&self, site: &Site) -> bool {
        let wanted = self.spec.cache.as_ref().map(|spec| &spec.image);
        self.cache_facts(site).map(|facts| &facts.image) == wanted
    }
}
