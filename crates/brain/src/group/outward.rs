//! What the outside sees: labels, the name, taints. Level-triggered; never for a site that is not confirmed writable.

use super::command::{Command, Label, Outward};
use super::granting::{mark_taints, taints_missing};
use super::save::Plan;
use super::{Group, Kept, Step};
use crate::name::{Member, Site};
use crate::record::{Phase, Record};
use crate::site::State;
use crate::time::{Boot, Millis, Now};
use std::collections::BTreeMap;

impl Group {
    /// The taints that a confirmed move should have left behind, also if it was stored only in part.
    pub(super) fn mark_sites(&mut self, now: Now, plan: &mut Plan<'_>, _: &mut Step) {
        let kept = plan.kept;
        let Some(record) = kept.record.as_ref().filter(|record| record.phase == Phase::Stable) else { return };
        if !self.is_paused(now) && taints_missing(plan.next(), record) {
            mark_taints(plan.change(), record);
        }
    }

    /// Asks for the look that is wanted: on each change, and every poll interval, for what was denied or undone.
    pub(super) fn show(&mut self, now: Now, out: &mut Step) {
        let Some(kept) = self.kept() else { return };
        if self.has_yet_to_look(&kept) {
            return;
        }
        let as_wanted = |(at, last): &(Boot, Outward)| {
            now.boot < *at + self.spec.poll_interval && self.looks_like(now, &kept, last)
        };
        if !self.shown.as_ref().is_some_and(as_wanted) {
            let wanted = self.outward(now, &kept);
            out.commands.push(Command::Show(Box::new(wanted.clone())));
            self.shown = Some((now.boot, wanted));
        }
    }

    /// A new leader has not seen the primary of a group that is at rest. Its predecessor had: what it left stays until
    /// polls have decided, else a primary that is well would lose its clients with every change of leaders.
    fn has_yet_to_look(&self, kept: &Kept) -> bool {
        let at_rest = kept.record.as_ref().filter(|record| record.phase == Phase::Stable);
        let seat = at_rest.and_then(|record| record.seat.as_ref());
        seat.and_then(|seat| self.seen.site(&seat.site)).is_some_and(|seen| seen.watch.state == State::Unknown)
    }

    /// How the outside should look.
    pub fn outward(&self, now: Now, kept: &Kept) -> Outward {
        let Some(record) = &kept.record else { return Outward::default() };
        let primary = self.serving(kept);
        let own = |(site, label): (&Site, Label)| (site.clone(), label);
        Outward {
            epoch: record.epoch,
            labels: self.labels(now, record, primary).map(own).collect(),
            dns: primary.map(|primary| primary.site.clone()),
            taints: marks_taints(record, primary)
                .then(|| self.taints(kept).map(|(site, tainted)| (site.clone(), tainted)).collect()),
            cache: self.cache_labels(kept),
            primary: primary.cloned(),
        }
    }

    /// Whether the outside should look like that. Asked in every step, so nothing is built to be compared.
    fn looks_like(&self, now: Now, kept: &Kept, look: &Outward) -> bool {
        let Outward { epoch, primary, labels, dns, taints, cache } = look;
        let Some(record) = &kept.record else { return *look == Outward::default() };
        let serving = self.serving(kept);
        let mut count = 0;
        let labelled = |(site, label): (&Site, Label)| {
            count += 1;
            labels.get(site) == Some(&label)
        };
        let tainted = |taints: &BTreeMap<Site, bool>| {
            taints.len() == self.spec.sites.len()
                && self.taints(kept).all(|(site, tainted)| taints.get(site) == Some(&tainted))
        };
        *epoch == record.epoch
            && primary.as_ref() == serving
            && dns.as_ref() == serving.map(|primary| &primary.site)
            && self.labels(now, record, serving).all(labelled)
            && count == labels.len()
            && taints.is_some() == marks_taints(record, serving)
            && taints.as_ref().is_none_or(tainted)
            && *cache == self.cache_labels(kept)
    }

    /// The label of every site's pod but the primary's.
    fn labels<'a>(
        &'a self,
        now: Now,
        record: &'a Record,
        serving: Option<&'a Member>,
    ) -> impl Iterator<Item = (&'a Site, Label)> {
        let revoked =
            record.holder.as_ref().filter(|_| record.phase == Phase::Revoking).map(|holder| &holder.member.site);
        let others = move |site: &&Site| serving.is_none_or(|primary| primary.site != **site);
        let label = move |site: &Site| Label {
            fenced: revoked == Some(site),
            healthy: self.healthy(now, site, serving.is_some()),
        };
        self.spec.sites.iter().map(|spec| &spec.site).filter(others).map(move |site| (site, label(site)))
    }

    /// Each site, and whether its nodes carry the taint.
    fn taints<'a>(&'a self, kept: &'a Kept) -> impl Iterator<Item = (&'a Site, bool)> {
        self.spec.sites.iter().map(|spec| (&spec.site, kept.look(&spec.site).tainted))
    }

    /// Reachable, read-only, replicating, not too far behind. A site keeps its label while nobody writes, while no poll has
    /// decided what it is, and between its first poll as a follower and the one that confirms it.
    fn healthy(&self, now: Now, site: &Site, primary_writes: bool) -> Option<bool> {
        let seen = self.seen.site(site)?;
        match seen.watch.state {
            State::Unknown => return None,
            State::ReadOnly => {}
            State::Writable | State::Unreachable => return Some(false),
        }
        if !primary_writes {
            return None;
        }
        let near = self.lag(now, site).is_some_and(|lag| lag <= self.spec.max_lag);
        match seen.following {
            1 if near => None,
            following => Some(following >= 2 && near),
        }
    }

    /// How far a site is behind: by its own word, or since it was last connected and caught up.
    pub fn lag(&self, now: Now, site: &Site) -> Option<Millis> {
        let seen = self.seen.site(site)?;
        let said = seen.facts.as_ref()?.replica.as_ref()?.behind;
        said.or_else(|| seen.caught_up_at.map(|at| now.boot.since(at)))
    }
}

/// Taints follow a primary that is confirmed; else they stay as they are.
fn marks_taints(record: &Record, serving: Option<&Member>) -> bool {
    record.phase == Phase::Stable && serving.is_some()
}

#[cfg(test)]
mod tests {
    use crate::group::command::{CacheLabels, Outward};
    use crate::group::forecast::Rehearsal;
    use crate::group::tests::{running, write};
    use crate::name::Site;
    use crate::time::Millis;

    /// What is compared without being built is the same as what would be built, field by field.
    #[test]
    fn the_outside_looks_as_wanted_or_it_is_seen_where_it_does_not() {
        let mut stage = running(&["iad", "pdx", "fra"]);
        stage.play(Millis::from_secs(10), |_| false);
        let kept = stage.group.kept().expect("it is known what is stored");
        let check = |name: &str, change: fn(&mut Outward), expect: bool| {
            let mut look = stage.group.outward(stage.now, &kept);
            assert!(look.primary.is_some() && look.taints.is_some() && look.labels.len() == 2, "{look:?}");
            change(&mut look);
            assert_eq!(stage.group.looks_like(stage.now, &kept, &look), expect, "{name}");
        };
        check("as wanted", |_| (), true);
        check("an older epoch", |look| look.epoch -= 1, false);
        check("no primary", |look| look.primary = None, false);
        check("a label is missing", |look| drop(look.labels.pop_first()), false);
        check(
            "a label too many",
            |look| {
                let label = look.labels[&Site::new("pdx")];
                look.labels.insert(Site::new("gone"), label);
            },
            false,
        );
        check("a label is another", |look| look.labels.values_mut().for_each(|label| label.fenced = true), false);
        check("no name", |look| look.dns = None, false);
        check("taints as they are", |look| look.taints = None, false);
        check(
            "a taint is another",
            |look| look.taints.iter_mut().flat_map(|it| it.values_mut()).for_each(|it| *it = !*it),
            false,
        );
        check(
            "a taint too many",
            |look| {
                look.taints.iter_mut().for_each(|taints| {
                    taints.insert(Site::new("gone"), false);
                });
            },
            false,
        );
        check("a cache", |look| look.cache = Some(CacheLabels::default()), false);
    }

    /// The first look that somebody asks for.
    fn first_look(stage: &mut Rehearsal) -> Outward {
        assert!(stage.play(Millis::from_secs(30), |stage| stage.group.shown.is_some()), "a look is asked for");
        stage.group.shown.as_ref().map(|(_, look)| look.clone()).expect("asked for")
    }

    /// K-02, K-03: a restart of the operator takes neither the name nor the endpoint from a primary that is well.
    #[test]
    fn a_new_leader_takes_nothing_from_a_primary_and_replicas_that_are_well() {
        let mut stage = running(&["iad", "pdx", "fra"]).with_new_leader();
        stage.play(Millis(500), |_| false);
        assert_eq!(stage.group.shown, None, "one poll says nothing yet");
        let look = first_look(&mut stage);
        assert_eq!(look.primary.map(|primary| primary.site), Some(Site::new("iad")));
        assert_eq!(look.dns, Some(Site::new("iad")));
        let unwell: Vec<_> = look.labels.iter().filter(|(_, label)| label.healthy == Some(false)).collect();
        assert!(unwell.is_empty(), "{unwell:?}");
    }

    /// K-02: no name leads to a site that is not confirmed to write.
    #[test]
    fn a_new_leader_takes_a_dead_primary_out_as_soon_as_polls_have_decided() {
        let mut stage = running(&["iad", "pdx", "fra"]);
        write(&mut stage, "1:11");
        stage.actors.get_mut(&Site::new("iad")).expect("its actor").server = false;
        let mut stage = stage.with_new_leader();
        let look = first_look(&mut stage);
        assert_eq!((look.primary, look.dns), (None, None));
    }
}
