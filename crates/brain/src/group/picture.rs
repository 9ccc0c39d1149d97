//! What is seen, put together for the judgement of a tick.

use super::seen::SiteSeen;
use super::spec::SiteSpec;
use super::{Group, Kept, Notice, Step};
use crate::name::{Instance, Member, Site};
use crate::record::Record;
use crate::site::Pair;
use crate::time::{Millis, Now};
use crate::topology::{self, Picture, SiteFacts, Verdict};
use bloodraven_gtid::GtidSet;

impl Group {
    /// Judges, and tells people when what they should see changes.
    pub(super) fn judge(&mut self, now: Now, kept: &Kept, out: &mut Step) {
        let sites = self.site_facts(now, kept);
        let picture = Picture {
            record: kept.record.as_ref(),
            highest_heard: self.seen.evidence.highest,
            sites: &sites,
            priorities: &self.spec.priorities,
            failure_threshold: self.spec.thresholds.failure,
            fresh_and_empty: kept.record.is_none() && self.is_fresh_and_empty(),
        };
        let judgement = topology::judge(&picture);
        let before = self.judged.as_ref().and_then(|judged| judged.alert.as_ref());
        match (&judgement.alert, before) {
            (Some(alert), before) if before != Some(alert) => out.notices.push(Notice::AlertRaised(alert.clone())),
            (None, Some(_)) => out.notices.push(Notice::AlertCleared),
            _ => {}
        }
        if let Verdict::Healthy { primary } | Verdict::Degraded { primary, .. } = &judgement.verdict {
            self.forget_hands_beside(primary);
        }
        self.judged = Some(judgement);
    }

    /// The holder served after a hand had opened another site: that was no wish. A reading from before says nothing:
    /// people close the old primary first, and open the new one a moment later.
    fn forget_hands_beside(&mut self, primary: &Site) {
        let holder =
            self.seen.site(primary).filter(|seen| seen.facts.as_ref().is_some_and(|read| read.pair == Pair::OPEN));
        let Some(served) = holder.map(|seen| seen.facts_begun) else { return };
        for seen in self.seen.sites.values_mut() {
            if seen.opened_by_hand.is_some_and(|since| since < served) {
                seen.forget_hand();
            }
        }
    }

    fn site_facts(&self, now: Now, kept: &Kept) -> Vec<SiteFacts> {
        let nothing = GtidSet::new();
        let promotion = kept.promotion.as_ref().unwrap_or(&nothing);
        let lease = self.lease(kept.record.as_ref());
        let names = || self.spec.sites.iter().map(|spec| &spec.site);
        let facts = |spec: &SiteSpec| {
            let site = &spec.site;
            let seen = self.seen.site(site)?;
            let instance = self.present(lease, site);
            let word = instance.and_then(|instance| seen.words.get(instance));
            let others = names().filter(|name| *name != site).filter_map(|name| self.seen.site(name)?.executed());
            Some(SiteFacts {
                watch: seen.watch.clone(),
                role: spec.role,
                open_strays: open_strays(now, lease, seen, instance),
                instance: instance.cloned(),
                data_lost: seen.executed().is_some_and(|own| topology::data_lost(own, promotion, others)),
                opened_by_hand: seen.opened_by_hand.is_some(),
                fenced_by: word.and_then(|heard| heard.ack.fenced_by),
            })
        };
        let mut all = Vec::with_capacity(self.spec.sites.len());
        all.extend(self.spec.sites.iter().filter_map(facts));
        all
    }

    /// How long an instance that was heard counts as present.
    pub(super) fn lease(&self, record: Option<&Record>) -> Millis {
        record.map_or(self.spec.lease.lease_timeout, |record| record.settings.lease_timeout)
    }

    /// Whether the site lacks nothing that any site heard of has, given-up sets apart: the re-opening gate, as the leader
    /// sees it before it grants.
    pub(super) fn passes_gate(&self, kept: &Kept, member: &Member) -> bool {
        let Some(own) = self.seen.site(&member.site).and_then(|seen| seen.executed()) else { return false };
        // Nothing is not everything: it passes only where everybody was read, and has nothing either.
        let all_read_empty =
            |seen: &SiteSeen| seen.watch.state.is_reachable() && seen.executed().is_some_and(GtidSet::is_empty);
        if own.is_empty() && !self.seen.sites.iter().all(|(site, seen)| *site == member.site || all_read_empty(seen)) {
            return false;
        }
        let promotion = kept.promotion.clone().unwrap_or_default();
        let covers = |site: &Site, theirs: &GtidSet| {
            let given_up = self.given_up(kept, site);
            own.contains(&theirs.subtract(&given_up))
        };
        let others =
            self.seen.sites.iter().filter(|(site, seen)| **site != member.site && seen.watch.state.is_reachable());
        own.contains(&promotion)
            && others
                .filter_map(|(site, seen)| Some((site, seen.executed()?)))
                .all(|(site, theirs)| covers(site, theirs))
    }
}

/// Other instances of a site that say they are not fenced: a second pod that lives on.
fn open_strays(now: Now, lease: Millis, seen: &SiteSeen, present: Option<&Instance>) -> Vec<Instance> {
    let speaks = |instance: &Instance| Some(instance) != present;
    let open = seen.words.iter().filter(|(_, heard)| !heard.ack.fenced && now.boot < heard.at + lease);
    open.filter(|(instance, _)| speaks(instance)).map(|(instance, _)| instance.clone()).collect()
}
