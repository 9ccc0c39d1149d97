//! The end of a run: everything heals, and then the group has to come to rest within a bounded time.
//!
//! In: a world in which faults have struck. Out: whether it serves again, or why it rightly does not. Must not: help.

use super::clock::{MS, SEC, Time};
use super::event::Event;
use super::scenario::{Expect, Fault};
use super::world::World;
use bloodraven_brain::group::kept::{PlannedPhase, Recovery};
use bloodraven_brain::group::{Kept, Obstacle, Waiting};
use bloodraven_brain::name::{Member, Site};
use bloodraven_brain::record::Phase;
use bloodraven_gtid::GtidSet;

/// How often it is looked at.
const PACE: Time = 2 * SEC;

/// A copy that began before the bound is over within its own time (a minute, see the spec) and that of a restart and of
/// attaching the site.
const COPY: Time = 120 * SEC;

/// How a run came to rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rest {
    /// One writer, which the record names; everybody follows.
    Serves,
    /// Nobody writes, for a reason that people were told and that fits what was done to the group: its name, and what was
    /// said.
    Blocked(&'static str, String),
    /// The group serves, but something that should follow does not.
    Trails(String),
    /// It did not come to rest.
    Restless(String),
    /// A promise was broken before.
    Unknown,
}

impl World {
    /// Everything that was done is undone, but for sites that are lost for ever.
    pub(super) fn heal(&mut self) {
        self.healed = true;
        self.tell(|_| ("WEATHER".to_owned(), "everything heals".to_owned()));
        self.net.heal();
        self.store.denied.clear();
        self.store.down = false;
        self.store.spec.paused = None;
        self.release_all();
        for op in 0..self.operators.len() {
            self.operators[op].fuse = None;
            self.resume_operator(op);
            if !self.operators[op].up {
                let at = self.soon(SEC, 3 * SEC);
                self.queue.push(at, Event::OperatorBegins(op));
            }
        }
        for site in 0..self.names.len() {
            if self.lost_nodes[site] && !self.scenario.setup.lost_for_ever {
                self.return_node(site);
            }
        }
        for p in 0..self.pods.len() {
            self.heal_pod(p);
        }
        self.caches.iter_mut().for_each(|cache| cache.hung = false);
        self.inform();
        let at = self.now + PACE;
        self.queue.push(at, Event::LookAround);
    }

    fn heal_pod(&mut self, p: usize) {
        let pod = &mut self.pods[p];
        if std::mem::take(&mut pod.server.slow) > 0 {
            pod.server.eased_at = self.now;
        }
        pod.server.full = false;
        pod.server.blocked_until = 0;
        pod.side.full = false;
        pod.server.applier_error = false;
        let (stray, runs) = (pod.stray, pod.runs);
        self.pods[p].server.slow_applier = 0;
        if std::mem::take(&mut self.pods[p].server.delay) > 0 {
            self.pods[p].server.applying = false;
        }
        self.resume_server(p);
        self.resume_keeper(p);
        self.resume_sidecar(p);
        self.go_on_applying(p);
        if stray && runs {
            // Its kubelet is back and ends what was deleted.
            self.pods[p].stray = false;
            let at = self.soon(SEC, 4 * SEC);
            self.queue.push(at, Event::PodEnds(p));
        }
    }

    /// Has it come to rest?
    pub(super) fn look_around(&mut self) {
        let settled = self.at_rest();
        // A rolled site is waited for up to ten minutes before anything else is done about it.
        let update = if self.store.template > 0 { 1000 * SEC } else { 0 };
        let bound = 240 * SEC + self.scenario.setup.cooldown + update;
        let waited = self.now - self.scenario.heal_at;
        match settled {
            Ok(()) => {
                self.over = true;
                self.final_checks();
                self.rest = Rest::Serves;
            }
            Err(why) if waited >= bound && !(self.is_copying() && waited < bound + COPY) => {
                self.over = true;
                self.rest = self.why_restless(&why);
                self.final_checks();
            }
            Err(_) => self.queue.push(self.now + PACE, Event::LookAround),
        }
    }

    /// Whether a site is being copied at this moment: how that ends is to be seen.
    fn is_copying(&self) -> bool {
        self.store.load().cloning().is_some()
    }

    fn holder_pod(&self, kept: &Kept) -> Option<usize> {
        let seat: &Member = kept.record.as_ref().filter(|record| record.phase == Phase::Stable)?.seat.as_ref()?;
        self.pods.iter().position(|pod| pod.member() == *seat)
    }

    fn at_rest(&self) -> Result<(), String> {
        let kept = self.store.load();
        let record = kept.record.as_ref().ok_or("there is no record")?;
        let Some(primary) = self.holder_pod(&kept) else { return Err(format!("authority is {:?}", record.phase)) };
        if !self.pods[primary].server.is_open() {
            return Err(format!("{} has authority and is closed", self.pod_name(primary)));
        }
        let open = self.pods.iter().filter(|pod| pod.server.is_open()).count();
        if open != 1 {
            return Err(format!("{open} servers are open"));
        }
        if kept.planned_active().is_some() {
            return Err("a planned failover is under way".to_owned());
        }
        if self.store.primary.as_ref() != record.seat.as_ref() {
            return Err("the label is not the primary's".to_owned());
        }
        if self.store.dns != record.seat.as_ref().map(|seat| seat.site.clone()) {
            return Err("the name does not point to the primary".to_owned());
        }
        for site in 0..self.names.len() {
            self.follows(site, primary, &kept)?;
        }
        self.updated(&kept)?;
        self.caches_rest(primary)
    }

    /// Whether every pod is what the spec wants, or it is said why not.
    fn updated(&self, kept: &Kept) -> Result<(), String> {
        let behind = |site: &usize| {
            let pod = &self.pods[self.current[*site]];
            pod.template != self.store.template && !self.lost_nodes[*site]
        };
        let stands = kept.update.as_ref().is_some_and(|update| update.stopped.is_some())
            || kept.sites.values().any(|site| site.recovery == Recovery::Blocked)
            || self.lost_nodes.contains(&true);
        match (0..self.names.len()).find(behind) {
            Some(site) if !stands => Err(format!("{} is not rolled: {:?}", self.names[site], kept.update)),
            _ => Ok(()),
        }
    }

    /// Whether that site follows the primary, or rightly does not.
    fn follows(&self, site: usize, primary: usize, kept: &Kept) -> Result<(), String> {
        let p = self.current[site];
        if p == primary || self.lost_nodes[site] {
            return Ok(());
        }
        let name = &self.names[site];
        let of_site = kept.site(name);
        let server = &self.pods[p].server;
        let own = server.executed.subtract(&self.pods[primary].server.executed).subtract(&of_site.divergent);
        if !own.is_empty() {
            return Err(format!("{name} has {own}, which the primary lacks, and nobody says so"));
        }
        if of_site.recovery == Recovery::Blocked {
            return Ok(());
        }
        if server.source != Some(self.pods[primary].site) || !server.receiver || !server.applier {
            let (source, receiver, applier) = (server.source, server.receiver, server.applier);
            return Err(format!(
                "{name} does not follow the primary: source {source:?}, receiver {receiver} {:?}, applier {applier}, {:?}, \
                 clone {:?}",
                server.receiver_error,
                of_site.recovery,
                of_site.clone.map(|clone| clone.phase)
            ));
        }
        let behind =
            self.clients.acknowledged.intersect(&self.pods[primary].server.executed).subtract(&server.executed);
        if behind.count() > 20 {
            return Err(format!("{name} lacks {behind}"));
        }
        Ok(())
    }

    /// Told apart: what is right to block, what only trails, what should have come to rest.
    fn why_restless(&self, why: &str) -> Rest {
        let kept = self.store.load();
        let told: Vec<String> = (0..self.operators.len()).filter_map(|op| self.said(op)).collect();
        let words = format!("{why}; {}", told.join("; "));
        let serves = self.holder_pod(&kept).is_some_and(|p| self.pods[p].server.is_open());
        match self.rightly(&words, &kept, serves) {
            Some(name) => Rest::Blocked(name, words),
            None if serves => Rest::Trails(words),
            None => Rest::Restless(words),
        }
    }

    /// What was said is right, by what was done to the group and by what is there; in a few words.
    fn rightly(&self, words: &str, kept: &Kept, serves: bool) -> Option<&'static str> {
        let struck = |kind: fn(&Fault) -> bool| self.scenario.faults.iter().any(|timed| kind(&timed.what));
        let lost = self.lost_nodes.contains(&true);
        let holder = self.holder_pod(kept);
        // Without a holder each site may have written: a human names one. So it is as well when humans opened the sites of a new
        // group before it had its first one.
        let opened_first = kept.record.as_ref().is_none_or(|record| record.holder.is_none())
            && self.scenario.setup.fresh
            && struck(|fault| matches!(fault, Fault::HumanOpen(_)));
        let recordless =
            self.scenario.setup.recordless || struck(|fault| matches!(fault, Fault::RestoreStore)) || opened_first;
        let never_promoted = words.contains("never promoted");
        let beside = [
            (
                "a site lacks what was purged",
                words.contains("purged") && holder.is_some_and(|p| self.has_purged_too_much(p)),
            ),
            ("a clone failed", words.contains("clone Some(Failed)")),
        ];
        let alone = [
            (
                "closed by hand",
                struck(|fault| matches!(fault, Fault::HumanFence(_))) && words.contains("fenced by hand"),
            ),
            ("no proof of release", words.contains("Release(") && lost),
            ("an end that the store forgot", self.waits_for_a_forgotten_end()),
            ("a lost volume", struck(|fault| matches!(fault, Fault::LoseVolume(_))) && words.contains("Empty")),
            (
                "no candidate is left",
                lost && (words.contains("NoCandidate") || words.contains("no primary-candidate answers")),
            ),
            ("every site is lost", words.contains("TotalLoss") && self.lost_nodes.iter().all(|lost| *lost)),
            ("only dr-only sites have data", never_promoted && !self.a_candidate_has_data()),
            ("the holder is behind", words.contains("HolderBehind") && holder.is_some_and(|p| self.is_behind(p))),
            ("a lost site cannot be compared", words.contains("cannot be compared") && lost && recordless),
            ("a lost site cannot be heard", recordless && self.waits_for_lost_sites()),
            ("sites without an order", words.contains("Incomparable(") && !self.list_decides() && recordless),
        ];
        let fits: &[(&str, bool)] = if serves { &beside } else { &alone };
        fits.iter().find(|(_, fits)| *fits).map(|(name, _)| *name)
    }

    /// The leader holds for want of a word of pods that have all ended, and the store went back to before their end: nobody
    /// can see it any more.
    fn waits_for_a_forgotten_end(&self) -> bool {
        let forgotten = |member: &Member| self.judge.forgotten.contains(&member.instance.pod);
        let Some(Obstacle::Release(missing)) = self.obstacle() else { return false };
        missing.until.is_none() && !missing.silent.is_empty() && missing.silent.iter().all(forgotten)
    }

    /// What stands in a leader's way.
    fn obstacle(&self) -> Option<&Obstacle> {
        self.operators.iter().find_map(|operator| operator.group.as_ref()?.obstacle.as_ref())
    }

    /// The leader knows of no holder and may only go on when it has heard everybody; who is missing is lost for ever.
    fn waits_for_lost_sites(&self) -> bool {
        let lost = |site: &Site| self.site_number(site).is_some_and(|site| self.lost_nodes[site]);
        matches!(self.obstacle(), Some(Obstacle::Fresh(Waiting::Unheard(sites))) if !sites.is_empty() && sites.iter().all(lost))
    }

    /// A site lacks what that server has and cannot send any more: purged, or from before it was copied.
    fn has_purged_too_much(&self, p: usize) -> bool {
        let purged = &self.pods[p].server.purged;
        let here = (0..self.names.len()).filter(|site| !self.lost_nodes[*site]).map(|site| self.current[site]);
        here.into_iter().any(|other| !self.pods[other].server.held().contains(purged))
    }

    /// Whether the priority list names a site that has something.
    fn list_decides(&self) -> bool {
        self.store.spec.priorities.iter().any(|site| self.site_number(site).is_some_and(|site| self.has_data(site)))
    }

    /// Whether a site that may be promoted has something, and is there.
    fn a_candidate_has_data(&self) -> bool {
        let may = |site: &usize| self.scenario.setup.is_candidate(*site) && !self.lost_nodes[*site];
        (0..self.names.len()).filter(may).any(|site| self.has_data(site))
    }

    fn has_data(&self, site: usize) -> bool {
        !self.pods[self.current[site]].server.held().is_empty()
    }

    /// What a leader tells people at a glance.
    fn said(&self, op: usize) -> Option<String> {
        let group = self.operators[op].group.as_ref()?;
        let degraded = group.summary(self.operator_now(op)).degraded;
        Some(format!("obstacle {:?}, degraded {degraded:?}", group.obstacle))
    }

    /// Another site has what that one lacks: it rightly stays closed, and a human decides.
    fn is_behind(&self, p: usize) -> bool {
        let own = &self.pods[p].server.executed;
        self.current.iter().any(|other| !own.contains(&self.pods[*other].server.executed))
    }

    /// Every acknowledged write is on the primary, reported, or was on a volume that is gone.
    fn final_checks(&mut self) {
        let kept = self.store.load();
        let primary = self.holder_pod(&kept).filter(|p| self.pods[*p].server.is_open());
        self.expectations(primary);
        // Nothing is compared, and so nothing reported, while nobody serves.
        let Some(primary) = primary else { return };
        let mut known = self.pods[primary].server.executed.union(&self.judge.told).union(&self.judge.lost);
        known = known.union(&kept.unapplied);
        for site in kept.sites.values() {
            known = known.union(&site.divergent);
        }
        for (site, lost) in self.lost_nodes.iter().enumerate() {
            if *lost {
                known = known.union(&self.pods[self.current[site]].server.executed);
            }
        }
        let missing = self.clients.acknowledged.subtract(&known);
        if !missing.is_empty() {
            let on = |set: &GtidSet| -> Vec<String> {
                let has = |p: &usize| !self.pods[*p].server.executed.intersect(set).is_empty();
                (0..self.pods.len()).filter(has).map(|p| self.pod_name(p)).collect()
            };
            let words = format!("{missing} was acknowledged; it is on {:?}, nobody reported it", on(&missing));
            self.judge.broken(self.now, "no acknowledged write is lost unsaid", || words);
        }
    }

    fn expectations(&mut self, primary: Option<usize>) {
        let site = primary.map(|primary| self.pods[primary].site);
        let failovers = self.judge.failovers;
        let kept = self.store.load();
        let planned = kept.planned.as_ref().filter(|planned| planned.phase.is_terminal());
        let planned = planned.map(|planned| planned.phase == PlannedPhase::Succeeded);
        for expect in self.scenario.expects.clone() {
            let met = match expect {
                Expect::Primary(wanted) => site == Some(wanted),
                Expect::NoPrimary => site.is_none(),
                Expect::Failovers(count) => failovers == count,
                Expect::Planned(wanted) => planned == Some(wanted),
                Expect::Divergent(wanted) => !kept.site(&self.names[wanted]).divergent.is_empty(),
                Expect::Cache(wanted) => self.cache_master() == Some(wanted),
                Expect::Updated => self.updated(&kept).is_ok() && self.store.template > 0,
            };
            if !met {
                let words = || format!("expected {expect:?}; the primary is {site:?}, failovers: {failovers}");
                self.judge.broken(self.now, "as the scenario expects", words);
            }
        }
    }

    /// How long the run took to come to rest.
    pub(super) fn healing_took(&self) -> Time {
        self.now.saturating_sub(self.scenario.heal_at) / MS * MS
    }
}

#[cfg(test)]
mod tests {
    use super::super::text;
    use super::*;
    use bloodraven_brain::authority::Missing;
    use bloodraven_brain::group::kept::ClonePhase;
    use bloodraven_brain::name::Instance;
    use bloodraven_brain::time::Boot;
    use std::sync::Arc;

    fn at_its_end(scenario: &str) -> World {
        let mut world = World::new(&text::parse(scenario).expect("a scenario"), false);
        world.run();
        world
    }

    /// A hold is excused when everybody who is waited for has ended, and the store went back to before all of that.
    #[test]
    fn a_hold_for_ends_that_the_store_forgot_is_known_by_its_name() {
        let mut world = at_its_end(include_str!("../../corpus/store-put-back-before-two-pods-had-ended.scn"));
        assert!(!world.judge.forgotten.is_empty(), "pods had ended when the store went back");
        assert!(matches!(world.rest, Rest::Blocked("an end that the store forgot", _)), "{:?}", world.rest);
        let pods: Vec<_> =
            world.judge.forgotten.iter().map(|pod| Instance { pod: Arc::clone(pod), store: "s".into() }).collect();
        let gone: Vec<Member> = pods.iter().map(|pod| Member::new(&world.names[0], pod)).collect();
        let alive = Member::new(&world.names[1], &Instance::new("alive", "s"));
        let both = [gone.clone(), vec![alive.clone()]].concat();
        let rows = [
            (gone.clone(), None, true),
            (gone, Some(Boot(1)), false),
            (both, None, false),
            (vec![alive], None, false),
            (Vec::new(), None, false),
        ];
        for (silent, until, excused) in rows {
            let group = world.operators.iter_mut().find_map(|operator| operator.group.as_mut()).expect("a leader");
            group.obstacle = Some(Obstacle::Release(Missing { silent: silent.clone(), until }));
            assert_eq!(world.waits_for_a_forgotten_end(), excused, "{silent:?} until {until:?}");
        }
    }

    #[test]
    fn a_copy_that_still_runs_is_waited_for_and_not_for_ever() {
        let mut world = at_its_end(include_str!("../../corpus/wiped-replica.scn"));
        assert_eq!(world.rest, Rest::Serves);
        let bound = world.scenario.heal_at + 240 * SEC + world.scenario.setup.cooldown;
        // As if the site were being copied still.
        let clone = world.store.status.site_mut(&world.names[1].clone()).clone.as_mut().expect("a copy was made");
        clone.phase = ClonePhase::Cloning;
        world.pods[world.current[1]].server.receiver = false;
        for (at, over) in [(bound, false), (bound + COPY - 1, false), (bound + COPY, true)] {
            (world.now, world.over) = (at, false);
            world.look_around();
            assert_eq!(world.over, over, "{} s after the bound", (at - bound) / SEC);
        }
        assert!(matches!(&world.rest, Rest::Trails(_)), "{:?}", world.rest);
    }
}
