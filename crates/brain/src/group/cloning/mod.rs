//! Filling empty sites by CLONE, and carrying out the clones that reclone requests ask for.
//!
//! In: sites that a comparison found empty, clones that are stored, how their tasks ended. Out: one clone at a time, its
//! phases stored before anything is done. Must not: overwrite a site that is open, that has authority, or that has
//! anything of its own without being asked for.

mod copy;
mod retry;
mod setup;

#[cfg(test)]
mod tests;

use super::input::Outcome;
use super::kept::{CloneKept, ClonePhase, CloneSource, Kept, Recovery, SiteKept, UpdatePhase};
use super::recovery::{Footing, Hindrance, has_authority, is_empty_site, note, say_once};
use super::save::Plan;
use super::{Group, Notice, Spec, Step};
use crate::name::Site;
use crate::time::{Boot, Millis, Now};
use bloodraven_gtid::GtidSet;
use std::collections::{BTreeMap, BTreeSet};

/// Attempts at one clone.
pub(super) const ATTEMPTS: u32 = 3;

/// A copied server that does not come up, or does not follow, for so long: the attempt failed.
const PHASE_BOUND: Millis = Millis::from_secs(600);

/// One attempt at one clone.
type Attempt = (Site, u32);

/// What this leader remembers of it. All of it may be lost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Memory {
    /// The attempt whose task this leader began.
    began: Option<Attempt>,
    /// How far it is: bytes copied, bytes in all.
    reported: Option<(Attempt, (u64, u64))>,
    /// How that ended; kept until it is stored.
    ended: Option<(Attempt, Ended)>,
    /// Since when this leader sees the present phase of the present attempt.
    phase: Option<(Attempt, ClonePhase, Boot)>,
    /// Since when this leader sees that an attempt failed.
    failed: BTreeMap<Site, (u32, Boot)>,
    /// Sites whose last attempt failed for want of credentials: not tried again before something changes.
    refused: BTreeSet<Site>,
    /// What was wanted when the first of the failed ones was seen.
    failed_under: Option<Box<Spec>>,
    /// Something has changed: what failed is tried anew.
    forgive: bool,
}

/// How a copy ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Ended {
    Copied,
    Refused(String),
    Failed(String),
}

impl Group {
    pub(super) fn fill_empty_sites(&mut self, now: Now, plan: &mut Plan<'_>, out: &mut Step) {
        let kept = plan.kept;
        if let Some(site) = kept.cloning().cloned() {
            return self.go_on_with_clone(now, &site, plan, out);
        }
        // Attempts are counted anew some day: what is remembered of one is not about another of the same number.
        (self.cloning.began, self.cloning.ended, self.cloning.phase) = (None, None, None);
        self.cloning.reported = None;
        self.tend_failed_clones(now, plan);
        if plan.next().cloning().is_some() || updates(kept) {
            return;
        }
        match self.footing(now, kept) {
            Ok(footing) => self.start_a_clone(now, &footing, plan),
            Err(Hindrance::NoAccount) => self.tell_account_missing(plan),
            Err(_) => {}
        }
    }

    /// A copy ended, well or not.
    pub(super) fn clone_ended(&mut self, _: Now, site: &Site, outcome: &Outcome) {
        let Some(attempt) = self.cloning.began.clone().filter(|(began, _)| began == site) else { return };
        let ended = match outcome {
            Outcome::Cloned => Ended::Copied,
            Outcome::Refused(why) => Ended::Refused(why.clone()),
            Outcome::Failed(why) => Ended::Failed(why.clone()),
            Outcome::Ok | Outcome::Read(_) | Outcome::Sessions(_) | Outcome::Logins(_) | Outcome::Offset(_) => {
                Ended::Failed("its end was not understood".to_owned())
            }
        };
        self.cloning.ended = Some((attempt, ended));
    }

    /// A copy goes on. What is said of one that this leader did not begin is about another.
    pub(super) fn clone_reported(&mut self, site: &Site, bytes: (u64, u64)) {
        let attempt = self.cloning.began.clone().filter(|(began, _)| began == site);
        self.cloning.reported = attempt.map(|attempt| (attempt, bytes)).or(self.cloning.reported.take());
    }

    /// How far the clone into that site is, as far as anybody has said: bytes copied, bytes in all.
    pub fn clone_bytes(&self, kept: &Kept, site: &Site) -> Option<(u64, u64)> {
        let clone = kept.look(site).clone.as_ref()?;
        self.reported(&(site.clone(), clone.attempts)).or(clone.bytes)
    }

    fn reported(&self, attempt: &Attempt) -> Option<(u64, u64)> {
        self.cloning.reported.as_ref().filter(|(of, _)| of == attempt).map(|(_, bytes)| *bytes)
    }

    fn go_on_with_clone(&mut self, now: Now, site: &Site, plan: &mut Plan<'_>, out: &mut Step) {
        let Some(clone) = plan.kept.site(site).clone else { return };
        if self.spec.site(site).is_none() {
            // The site is not declared any more, and nobody waits for it.
            plan.change().site_mut(site).clone = None;
            return;
        }
        match clone.phase {
            ClonePhase::Cloning | ClonePhase::WaitingForRestart => self.copy(now, site, &clone, plan, out),
            ClonePhase::SetupReplication => self.set_up(now, site, &clone, plan, out),
            ClonePhase::Done | ClonePhase::Failed => {}
        }
    }

    /// The first site that is to be filled: candidates before those that are never promoted.
    fn start_a_clone(&mut self, now: Now, footing: &Footing<'_>, plan: &mut Plan<'_>) {
        let kept = plan.kept;
        // Asked in every step: who follows somebody is not empty, and only a clone that was begun goes on there.
        let follows = |site: &Site| {
            let facts = self.seen.site(site).and_then(|seen| seen.facts.as_ref());
            facts.is_some_and(|facts| facts.replica.is_some())
        };
        let begun = |site: &Site| kept.look(site).clone.as_ref().is_some_and(CloneKept::holds_the_site);
        let names = self.spec.sites.iter().map(|spec| &spec.site);
        let mut sites: Vec<Site> = names.filter(|site| begun(site) || !follows(site)).cloned().collect();
        sites.sort_by_key(|site| !self.spec.is_candidate(site));
        for site in sites {
            let was = kept.look(&site);
            if !self.may_receive(footing, &site) || !self.is_due(now, &site, was.clone.as_ref()) {
                continue;
            }
            let attempts = next_attempt(was.clone.as_ref());
            let again = was.clone.as_ref().filter(|clone| clone.holds_the_site()).map(|clone| clone.source);
            let source = match again {
                Some(source) => Some(source),
                None => self.is_to_be_filled(now, footing, &site, was).then(|| filling(kept)),
            };
            if let Some(source) = source {
                return begin_clone(plan, &site, source, attempts);
            }
        }
    }

    /// Whether an automatic clone may overwrite the site: it is empty by a comparison, and nothing else is known of it.
    fn is_to_be_filled(&mut self, now: Now, footing: &Footing<'_>, site: &Site, was: &SiteKept) -> bool {
        let Some(facts) = self.closed_facts(site, footing.tenure) else { return false };
        if facts.replica.is_some() || was.recovery != Recovery::None || !was.divergent.is_empty() {
            return false;
        }
        self.finding(now, footing, site, &facts).is_some_and(|verdict| verdict.empty)
    }

    /// Whether a clone may be made into the site, as far as its fence goes: it is closed, by its own word too, and it is
    /// not the one that has or had authority.
    pub(super) fn may_receive(&self, footing: &Footing<'_>, site: &Site) -> bool {
        let Some(kept) = self.kept() else { return false };
        let lease = self.lease(kept.record.as_ref());
        let says_open = self
            .seen
            .site(site)
            .and_then(|seen| seen.present(lease, self.clock))
            .is_some_and(|(_, heard)| !heard.ack.fenced);
        *site != footing.primary.site
            && !has_authority(&kept, site)
            && !says_open
            && self.closed_facts(site, footing.tenure).is_some()
    }

    /// Without an account an empty site stays empty; people are told at once.
    fn tell_account_missing(&self, plan: &mut Plan<'_>) {
        let kept = plan.kept;
        let Some(seat) = kept.record.as_ref().and_then(|record| record.seat.as_ref()) else { return };
        let Some(primary) = self.seen.site(&seat.site).and_then(|seen| seen.executed()) else { return };
        for site in self.spec.names().into_iter().filter(|site| *site != seat.site) {
            let was = kept.site(&site);
            let facts = self.seen.site(&site).filter(|seen| seen.watch.state.is_reachable());
            let empty = facts.and_then(|seen| seen.facts.as_ref()).is_some_and(|facts| is_empty_site(facts, primary));
            if empty && was.clone.is_none() && was.recovery == Recovery::None {
                let clone = new_clone(filling(kept), 1);
                fail(plan, &site, &clone, &Hindrance::NoAccount.to_string(), None);
            }
        }
    }
}

/// An ordered update that goes on; one that stands still may wait for this very clone.
pub(super) fn updates(kept: &Kept) -> bool {
    kept.update.as_ref().is_some_and(|update| update.phase != UpdatePhase::Complete && update.stopped.is_none())
}

/// Why an empty site is filled: the group has never moved and began with nothing, or its data went away.
fn filling(kept: &Kept) -> CloneSource {
    let began_with_nothing = kept.promotion.as_ref().is_some_and(GtidSet::is_empty);
    if kept.last_failover.is_none() && began_with_nothing { CloneSource::FreshDeploy } else { CloneSource::AutoClone }
}

/// The number of the next attempt; after one that went well they are counted anew.
fn next_attempt(clone: Option<&CloneKept>) -> u32 {
    clone.filter(|clone| clone.phase == ClonePhase::Failed).map_or(1, |clone| clone.attempts.saturating_add(1))
}

fn new_clone(source: CloneSource, attempts: u32) -> CloneKept {
    let message = format!("{}: attempt {attempts} of {ATTEMPTS}", title(source));
    CloneKept { phase: ClonePhase::Cloning, source, attempts, bytes: None, message }
}

/// To be stored: a clone begins. The next step, when that is stored, does it.
pub(super) fn begin_clone(plan: &mut Plan<'_>, site: &Site, source: CloneSource, attempts: u32) {
    change(plan, site, new_clone(source, attempts));
}

/// To be stored: the site gets authority, so its copy has nobody to follow. It goes with the grant: from there on the site
/// writes what is its own, and a clone that goes on would overwrite that one day.
pub(super) fn finish_copy(plan: &mut Plan<'_>, site: &Site) {
    let clone = plan.kept.site(site).clone.filter(|clone| clone.phase == ClonePhase::SetupReplication);
    if let Some(clone) = clone {
        note(plan, site, Recovery::None, GtidSet::new());
        go_to(plan, site, &clone, ClonePhase::Done, "the copy is complete, and the site is promoted");
    }
}

/// To be stored: the attempt failed, and what follows.
fn fail(plan: &mut Plan<'_>, site: &Site, clone: &CloneKept, why: &str, next: Option<Millis>) {
    let on = match (next, clone.source) {
        (Some(pause), _) => format!("next attempt in {} s", pause.0 / 1000),
        (None, CloneSource::Reclone) => "its data may be incomplete: ask for the reclone again".to_owned(),
        (None, CloneSource::FreshDeploy | CloneSource::AutoClone) => {
            "not tried again until the spec, the Secret or the annotation reclone-site change".to_owned()
        }
    };
    let message = format!("{}: attempt {} of {ATTEMPTS} failed: {why}; {on}", title(clone.source), clone.attempts);
    change(plan, site, CloneKept { phase: ClonePhase::Failed, message, ..clone.clone() });
}

/// To be stored: the clone goes on.
fn go_to(plan: &mut Plan<'_>, site: &Site, clone: &CloneKept, phase: ClonePhase, message: &str) {
    let message = format!("{}: {message}", title(clone.source));
    change(plan, site, CloneKept { phase, message, ..clone.clone() });
}

fn change(plan: &mut Plan<'_>, site: &Site, clone: CloneKept) {
    let (phase, source, message) = (clone.phase, clone.source, clone.message.clone());
    if plan.kept.site(site).clone.as_ref() != Some(&clone) {
        plan.change().site_mut(site).clone = Some(clone);
        say_once(plan, Notice::CloneChanged { site: site.clone(), phase, source, message });
    }
}

/// How people call it.
const fn title(source: CloneSource) -> &'static str {
    match source {
        CloneSource::FreshDeploy => "Bootstrap",
        CloneSource::AutoClone => "Auto-clone",
        CloneSource::Reclone => "Reclone",
    }
}
