//! What the outside sees: labels, the name, taints. Level-triggered; never for a site that is not confirmed writable.

use super::command::{Command, Label, Outward};
use super::granting::{mark_taints, taints_missing};
use super::save::Plan;
use super::{Group, Kept, Step};
use crate::name::Site;
use crate::record::Phase;
use crate::site::State;
use crate::time::{Millis, Now};
use std::collections::BTreeMap;

impl Group {
    /// The taints that a confirmed move should have left behind, also if it was stored only in part.
    pub(super) fn mark_sites(&mut self, now: Now, plan: &mut Plan, _: &mut Step) {
        let kept = plan.kept.clone();
        let Some(record) = kept.record.as_ref().filter(|record| record.phase == Phase::Stable) else { return };
        if !self.is_paused(now) && taints_missing(plan.next(), record) {
            mark_taints(plan.change(), record);
        }
    }

    /// Asks for the look that is wanted: on each change, and every poll interval, for what was denied or undone.
    pub(super) fn show(&mut self, now: Now, out: &mut Step) {
        let Some(kept) = self.kept() else { return };
        let wanted = self.outward(now, &kept);
        let due =
            self.shown.as_ref().is_none_or(|(at, last)| *last != wanted || now.boot >= *at + self.spec.poll_interval);
        if due {
            out.commands.push(Command::Show(Box::new(wanted.clone())));
            self.shown = Some((now.boot, wanted));
        }
    }

    /// How the outside should look.
    pub fn outward(&self, now: Now, kept: &Kept) -> Outward {
        let Some(record) = &kept.record else { return Outward::default() };
        let serving = self.serving(kept);
        let revoked =
            record.holder.as_ref().filter(|_| record.phase == Phase::Revoking).map(|holder| &holder.member.site);
        let sites = self.spec.sites.iter().map(|spec| &spec.site);
        let others = sites.filter(|site| serving.as_ref().is_none_or(|primary| primary.site != **site));
        let label =
            |site: &Site| Label { fenced: revoked == Some(site), healthy: self.healthy(now, site, serving.is_some()) };
        let taints = || -> BTreeMap<Site, bool> {
            self.spec.sites.iter().map(|spec| (spec.site.clone(), kept.look(&spec.site).tainted)).collect()
        };
        Outward {
            epoch: record.epoch,
            labels: others.map(|site| (site.clone(), label(site))).collect(),
            dns: serving.as_ref().map(|primary| primary.site.clone()),
            taints: (record.phase == Phase::Stable && serving.is_some()).then(taints),
            primary: serving,
            cache: self.cache_labels(kept),
        }
    }

    /// Reachable, read-only, replicating, not too far behind. While nobody writes, a reachable read-only site keeps its
    /// label.
    fn healthy(&self, now: Now, site: &Site, primary_writes: bool) -> Option<bool> {
        let seen = self.seen.site(site)?;
        if seen.watch.state != State::ReadOnly {
            return Some(false);
        }
        if !primary_writes {
            return None;
        }
        Some(seen.following >= 2 && self.lag(now, site).is_some_and(|lag| lag <= self.spec.max_lag))
    }

    /// How far a site is behind: by its own word, or since it was last connected and caught up.
    pub fn lag(&self, now: Now, site: &Site) -> Option<Millis> {
        let seen = self.seen.site(site)?;
        let said = seen.facts.as_ref()?.replica.as_ref()?.behind;
        said.or_else(|| seen.caught_up_at.map(|at| now.boot.since(at)))
    }
}
