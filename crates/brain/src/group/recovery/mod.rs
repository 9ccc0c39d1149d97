//! Bringing sites back: old primaries, replicas that follow the wrong source, replicas whose threads stopped.
//!
//! In: what is stored, and what polls and readings say of each site against the one confirmed primary. Out: recovery
//! states and divergences to store, tasks that attach, point and start. Must not: change anything at a site that has what
//! the primary lacks, or while it is not known who the primary is.

mod convergence;
mod footing;
mod probe;

#[cfg(test)]
pub(super) mod tests;

pub use convergence::{Convergence, ConvergenceReason, ConvergenceState};
pub(super) use footing::{Footing, Hindrance, has_authority};
pub(super) use probe::{Verdict, is_empty_site};

use super::command::Task;
use super::input::{Facts, ReplicaFacts};
use super::kept::{Recovery, SiteKept};
use super::save::Plan;
use super::{Group, Notice, Step};
use crate::candidate::drain::{Applier, Receiver};
use crate::name::Site;
use crate::record::Epoch;
use crate::time::{Boot, Millis, Now};
use bloodraven_gtid::GtidSet;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Between two attempts at bringing a site back, and between two comparisons of one that diverges.
pub(super) const RETRY: Millis = Millis::from_secs(30);

/// What this leader remembers of it: for pacing, and to compare in the right order. All of it may be lost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Memory {
    sites: BTreeMap<Site, Remembered>,
    /// The primary is not read before this moment.
    next_reading: Boot,
}

/// What is remembered of one site.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Remembered {
    /// A comparison that is not over.
    asked: Option<probe::Asked>,
    /// The last comparison that was.
    verdict: Option<Verdict>,
    /// When it was last attached or pointed, and under which tenure.
    attempt: Option<(Boot, Epoch)>,
    /// The reading upon which threads were last started or stopped; the next one waits for a newer reading.
    acted_on: Option<Boot>,
}

/// What the parts of this step agree about.
struct Scene<'a> {
    now: Now,
    footing: &'a Footing<'a>,
}

impl Group {
    pub(super) fn recover(&mut self, now: Now, plan: &mut Plan<'_>, out: &mut Step) {
        let kept = plan.kept;
        let Ok(footing) = self.footing(now, kept) else { return };
        let scene = Scene { now, footing: &footing };
        // What the primary has is what counts: it has nothing that it lacks, and nothing is to be brought back.
        note(plan, &footing.primary.site, Recovery::None, GtidSet::new());
        for site in self.spec.names() {
            if site != footing.primary.site {
                self.recover_site(&scene, &site, plan, out);
            }
        }
        self.read_primary(now, &footing, out);
    }

    fn recover_site(&mut self, scene: &Scene<'_>, site: &Site, plan: &mut Plan<'_>, out: &mut Step) {
        let Some(facts) = self.closed_facts(site, scene.footing.tenure) else { return };
        let kept = plan.kept;
        let was = kept.look(site);
        if let Some(clone) = was.clone.as_ref().filter(|clone| clone.holds_the_site()) {
            // Only another clone brings it back; what it diverges by is told all the same.
            if !clone.phase.is_active() {
                self.report(scene, site, &facts, plan);
                self.go_on_untouched(scene, site, &facts, out);
            }
            return;
        }
        match &facts.replica {
            None => self.rejoin(scene, site, &facts, was, plan, out),
            Some(replica) if replica.source.as_ref() == Some(&scene.footing.primary.site) => {
                self.keep_following(scene, site, &facts, replica, was, plan, out);
            }
            Some(replica) => self.point_to_primary(scene, site, &facts, replica, was, plan, out),
        }
    }

    /// What a site says, read under this tenure, while it is known to be closed.
    pub(super) fn closed_facts(&self, site: &Site, tenure: u64) -> Option<Arc<Facts>> {
        let seen = self.seen.site(site)?;
        let closed = seen.watch.state == crate::site::State::ReadOnly && seen.watch.is_fenced();
        let facts = seen.facts.as_ref().filter(|facts| facts.pair.is_fenced())?;
        (closed && seen.read_since(tenure)).then(|| Arc::clone(facts))
    }

    /// Stores what a comparison found, and does nothing else.
    fn report(&mut self, scene: &Scene<'_>, site: &Site, facts: &Facts, plan: &mut Plan<'_>) {
        let Some(verdict) = self.finding(scene.now, scene.footing, site, facts) else { return };
        if verdict.is_divergent() {
            block(plan, site, &verdict.missing);
        } else {
            note(plan, site, Recovery::None, GtidSet::new());
        }
    }

    /// A clone that failed before it touched anything leaves a site that follows, and whose receiver was stopped for it.
    fn go_on_untouched(&mut self, scene: &Scene<'_>, site: &Site, facts: &Facts, out: &mut Step) {
        let follows = |replica: &&ReplicaFacts| replica.source.as_ref() == Some(&scene.footing.primary.site);
        let stands = facts.replica.as_ref().filter(follows).is_some_and(stopped_without_error);
        let contained = || {
            let known = self.recovering.sites.get(site).and_then(|known| known.verdict.as_ref());
            known.is_some_and(|verdict| verdict.is_about(scene.footing.tenure) && !verdict.is_divergent())
        };
        if stands && contained() {
            self.act_on_reading(scene.now, site, Task::StartReplica, out);
        }
    }

    /// No replication is configured: an old primary, or an empty site, which is somebody else's to fill.
    fn rejoin(
        &mut self,
        scene: &Scene<'_>,
        site: &Site,
        facts: &Facts,
        was: &SiteKept,
        plan: &mut Plan<'_>,
        out: &mut Step,
    ) {
        let Some(verdict) = self.finding(scene.now, scene.footing, site, facts) else { return };
        let reported = was.recovery == Recovery::Blocked || !was.divergent.is_empty();
        if verdict.holds_nothing() || (verdict.empty && !reported) {
            note(plan, site, Recovery::None, GtidSet::new());
        } else if !verdict.missing.is_empty() {
            block(plan, site, &verdict.missing);
        } else if was.recovery == Recovery::InProgress && was.divergent.is_empty() {
            self.attach(scene.now, scene.footing, site, &verdict, out);
        } else if note(plan, site, Recovery::InProgress, GtidSet::new()) {
            say_once(plan, Notice::RecoveryStarted { site: site.clone() });
        }
    }

    /// Attaches a site whose transactions the primary has; once in a while.
    pub(super) fn attach(&mut self, now: Now, footing: &Footing<'_>, site: &Site, verdict: &Verdict, out: &mut Step) {
        let contained_in = Box::new(verdict.primary.clone());
        let task = Task::Attach { source: footing.primary.site.clone(), contained_in };
        self.attempt(now, footing, site, task, out);
    }

    /// Paced for each tenure: a site that was pointed to one primary does not wait before it follows the next, also when
    /// authority went there and back.
    fn attempt(&mut self, now: Now, footing: &Footing<'_>, site: &Site, task: Task, out: &mut Step) {
        let last = self.recovering.sites.get(site).and_then(|known| known.attempt);
        let due = last.is_none_or(|(at, tenure)| tenure != footing.tenure || now.boot >= at + RETRY);
        if due && self.may_change(now, site) && self.begin(now, site, task, out) {
            self.recovering.sites.entry(site.clone()).or_default().attempt = Some((now.boot, footing.tenure));
        }
    }

    /// It is pointed at the primary: threads that stopped without an error are started; when both run, it is back.
    #[expect(clippy::too_many_arguments, reason = "one site as it is stored and as it is seen")]
    fn keep_following(
        &mut self,
        scene: &Scene<'_>,
        site: &Site,
        facts: &Facts,
        replica: &ReplicaFacts,
        was: &SiteKept,
        plan: &mut Plan<'_>,
        out: &mut Step,
    ) {
        let reported = was.recovery == Recovery::Blocked || !was.divergent.is_empty();
        if reported || self.seems_ahead(site, &scene.footing.primary.site) {
            match self.finding(scene.now, scene.footing, site, facts) {
                Some(verdict) if !verdict.missing.is_empty() => return block(plan, site, &verdict.missing),
                Some(_) if reported => {
                    note(plan, site, Recovery::None, GtidSet::new());
                    return;
                }
                None if reported => return,
                Some(_) | None => {}
            }
        }
        if stopped_without_error(replica) {
            self.act_on_reading(scene.now, site, Task::StartReplica, out);
        }
        let follows = self.seen.site(site).is_some_and(|seen| seen.following >= 2);
        if follows && was.recovery == Recovery::InProgress && note(plan, site, Recovery::None, GtidSet::new()) {
            say_once(plan, Notice::RecoveryComplete { site: site.clone() });
        }
    }

    /// It is pointed elsewhere: nothing more is received, everything it has is compared, then it is pointed right.
    #[expect(clippy::too_many_arguments, reason = "one site as it is stored and as it is seen")]
    fn point_to_primary(
        &mut self,
        scene: &Scene<'_>,
        site: &Site,
        facts: &Facts,
        replica: &ReplicaFacts,
        was: &SiteKept,
        plan: &mut Plan<'_>,
        out: &mut Step,
    ) {
        let receives = replica.receiver != Receiver::Stopped;
        if was.recovery == Recovery::Blocked && receives {
            self.act_on_reading(scene.now, site, Task::StopReceiver, out);
        }
        let Some(verdict) = self.finding(scene.now, scene.footing, site, facts) else { return };
        if !verdict.missing.is_empty() {
            return block(plan, site, &verdict.missing);
        }
        if was.recovery == Recovery::Blocked || !was.divergent.is_empty() {
            note(plan, site, Recovery::None, GtidSet::new());
        } else if receives {
            // A set that grows would never be contained in one that was read before.
            self.act_on_reading(scene.now, site, Task::StopReceiver, out);
        } else {
            let contained_in = Box::new(verdict.primary);
            let source = scene.footing.primary.site.clone();
            self.attempt(scene.now, scene.footing, site, Task::Repoint { source, contained_in }, out);
        }
    }

    /// Once for each reading: what is missing is seen by the next one.
    pub(super) fn act_on_reading(&mut self, now: Now, site: &Site, task: Task, out: &mut Step) {
        let Some(read_at) = self.seen.site(site).map(|seen| seen.facts_at) else { return };
        let last = self.recovering.sites.get(site).and_then(|known| known.acted_on);
        let news = last.is_none_or(|last| read_at > last);
        if news && self.may_change(now, site) && self.begin(now, site, task, out) {
            self.recovering.sites.entry(site.clone()).or_default().acted_on = Some(read_at);
        }
    }

    /// Whether a follower has, by the last polls, what the primary lacks. Under load that is mostly the order of the polls.
    fn seems_ahead(&self, site: &Site, primary: &Site) -> bool {
        let executed = |site: &Site| self.seen.site(site).and_then(|seen| seen.executed());
        match (executed(site), executed(primary)) {
            (Some(own), Some(theirs)) => !theirs.contains(own),
            (None, _) | (_, None) => false,
        }
    }
}

/// A thread that does not run, and none that stopped with an error: that is reported, not tried over and over.
pub(super) fn stopped_without_error(replica: &ReplicaFacts) -> bool {
    let failed = matches!(replica.applier, Applier::Failed { .. }) || replica.receiver_error.is_some();
    let stopped = replica.applier == Applier::Stopped || replica.receiver == Receiver::Stopped;
    stopped && !failed
}

/// To be stored: how a site stands. Returns whether that is not stored yet.
pub(super) fn note(plan: &mut Plan<'_>, site: &Site, recovery: Recovery, divergent: GtidSet) -> bool {
    let stands_so = |kept: &SiteKept| kept.recovery == recovery && kept.divergent == divergent;
    let stored = stands_so(plan.kept.look(site));
    if !stands_so(plan.next().look(site)) {
        let kept = plan.change().site_mut(site);
        (kept.recovery, kept.divergent) = (recovery, divergent);
    }
    !stored
}

/// Said when it is stored, once, whichever parts found it.
pub(super) fn say_once(plan: &mut Plan<'_>, notice: Notice) {
    if !plan.notices.contains(&notice) {
        plan.say(notice);
    }
}

/// To be stored: a site has what the primary lacks.
pub(super) fn block(plan: &mut Plan<'_>, site: &Site, missing: &GtidSet) {
    if note(plan, site, Recovery::Blocked, missing.clone()) {
        say_once(plan, Notice::DivergenceFound { site: site.clone(), set: missing.clone() });
    }
}
