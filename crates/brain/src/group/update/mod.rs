//! Updates: how changed pods are rolled.
//!
//! In: which pods are not what the spec wants. Out: one site at a time is rolled, followers first, the primary last and
//! only after it has handed over; or all at once, if that is what the spec says. Must not: restart the primary while it
//! serves, or take down a second site.

#[cfg(test)]
mod tests;

use super::command::Command;
use super::input::Rollout;
use super::kept::{Kept, Origin, PlannedPhase, Update, UpdatePhase};
use super::save::Plan;
use super::spec::UpdateStrategy;
use super::{Group, Notice, Step};
use crate::name::{Member, Site};
use crate::record::Record;
use crate::site::State;
use crate::time::{Millis, Now};

/// What this leader remembers of it: nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Memory {}

/// A rolled pod is back within this long, or the update stands still and says so.
const WAIT_BOUND: Millis = Millis::from_secs(600);

impl Group {
    pub(super) fn roll_sites(&mut self, now: Now, plan: &mut Plan<'_>, out: &mut Step) {
        let kept = plan.kept;
        let Some(serving) = self.serving(kept).filter(|_| !self.is_paused(now)) else { return };
        let Some(record) = &kept.record else { return };
        if self.spec.update == UpdateStrategy::Recreate {
            return self.roll_all(kept, out);
        }
        match kept.update.as_ref().filter(|update| update.phase != UpdatePhase::Complete) {
            None => self.begin_update(now, kept, serving, plan),
            Some(update) => self.go_on_with_update(now, record, update, serving, plan, out),
        }
    }

    /// All drifted sites at once; what they had is proven ended by their pods' kept status.
    fn roll_all(&self, kept: &Kept, out: &mut Step) {
        if kept.planned_active().is_none() && kept.cloning().is_none() {
            let drifted = self.sites_in(Rollout::Drifted);
            out.commands.extend(drifted.into_iter().map(|site| Command::Roll { site }));
        }
    }

    fn begin_update(&mut self, now: Now, kept: &Kept, serving: &Member, plan: &mut Plan<'_>) {
        if kept.planned_active().is_some() || kept.cloning().is_some() {
            return;
        }
        let drifted = self.sites_in(Rollout::Drifted);
        let followers: Vec<&Site> = drifted.iter().filter(|site| **site != serving.site).collect();
        let first = followers.iter().find(|site| self.is_down(site)).or_else(|| {
            let best = followers.iter().find(|site| self.spec.is_candidate(site)).or(followers.first());
            best.filter(|_| self.others_are_well(serving, None))
        });
        if let Some(site) = first {
            enter_update(now, UpdatePhase::UpdateReplica, Some((*site).clone()), plan);
        } else if drifted.contains(&serving.site)
            && let Some(target) = self.hand_over_target(now, kept, serving)
        {
            enter_update(now, UpdatePhase::Failover, Some(target), plan);
        }
    }

    fn go_on_with_update(
        &mut self,
        now: Now,
        record: &Record,
        update: &Update,
        serving: &Member,
        plan: &mut Plan<'_>,
        out: &mut Step,
    ) {
        let Some(site) = &update.site else { return enter_update(now, UpdatePhase::Complete, None, plan) };
        // Authority came to the site that was to be rolled: it is not touched, and the next cycle sees what is left.
        if *site == serving.site && update.phase != UpdatePhase::Failover {
            return enter_update(now, UpdatePhase::Complete, None, plan);
        }
        match update.phase {
            UpdatePhase::UpdateReplica => self.roll(now, update, site, serving, UpdatePhase::WaitReplica, plan, out),
            UpdatePhase::UpdateOldPrimary => {
                self.roll(now, update, site, serving, UpdatePhase::WaitOldPrimary, plan, out);
            }
            UpdatePhase::WaitReplica | UpdatePhase::WaitOldPrimary => {
                self.await_site(now, record, update, site, serving, plan);
            }
            UpdatePhase::Failover => self.hand_over(now, update, site, serving, plan),
            UpdatePhase::Complete => {}
        }
    }

    /// Rolls the site, while every other one is well.
    #[expect(clippy::too_many_arguments, reason = "one phase, taken apart")]
    fn roll(
        &mut self,
        now: Now,
        update: &Update,
        site: &Site,
        serving: &Member,
        next: UpdatePhase,
        plan: &mut Plan<'_>,
        out: &mut Step,
    ) {
        if self.rollout(site) != Some(Rollout::Drifted) {
            return enter_update(now, next, Some(site.clone()), plan);
        }
        let kept = plan.kept;
        if kept.planned_active().is_some() || kept.cloning().is_some() {
            return;
        }
        if self.others_are_well(serving, Some(site)) {
            stand_still(update, None, plan);
            out.commands.push(Command::Roll { site: site.clone() });
        } else {
            stand_still(
                update,
                Some(format!("{site} is not rolled while another site is down or does not replicate")),
                plan,
            );
        }
    }

    /// Rolled out, admitted as a voter, one voter set left, replicating, caught up.
    fn await_site(
        &mut self,
        now: Now,
        record: &Record,
        update: &Update,
        site: &Site,
        serving: &Member,
        plan: &mut Plan<'_>,
    ) {
        // It is wanted different once more: rolled again, or it would be waited for in vain.
        if self.rollout(site) == Some(Rollout::Drifted) {
            let again = match update.phase {
                UpdatePhase::WaitOldPrimary => UpdatePhase::UpdateOldPrimary,
                _ => UpdatePhase::UpdateReplica,
            };
            return enter_update(now, again, Some(site.clone()), plan);
        }
        let lacks = self.lacks(record, site, serving);
        match lacks {
            None if update.phase == UpdatePhase::WaitReplica => self.after_replica(now, site, serving, plan),
            None => enter_update(now, UpdatePhase::Complete, None, plan),
            Some(lacks) if self.ages.passed(update.since, WAIT_BOUND, now) => {
                stand_still(update, Some(format!("{site} {lacks}")), plan);
            }
            Some(_) => {}
        }
    }

    fn lacks(&self, record: &Record, site: &Site, serving: &Member) -> Option<String> {
        if self.rollout(site) != Some(Rollout::Current) {
            return Some("is not rolled out".to_owned());
        }
        let present = self.present(record.settings.lease_timeout, site).map(|instance| Member::new(site, instance));
        if !present.is_some_and(|member| record.voters.contains(&member) && self.has_live_pod(&member)) {
            return Some("is not taken in as a voter yet".to_owned());
        }
        if record.holder.as_ref().is_some_and(|holder| holder.sets.len() != 1) {
            return Some("waits until one voter set is left".to_owned());
        }
        let seen = self.seen.site(site)?;
        if seen.following < 2 {
            return Some("does not replicate".to_owned());
        }
        let primary = self.seen.site(&serving.site).and_then(|seen| seen.executed());
        let caught_up = seen.executed().zip(primary).is_some_and(|(own, primary)| own.contains(primary));
        let nearly = seen.facts.as_ref().and_then(|facts| facts.replica.as_ref()?.behind) == Some(Millis(0));
        (!caught_up && !nearly).then(|| "has not caught up".to_owned())
    }

    fn after_replica(&mut self, now: Now, site: &Site, serving: &Member, plan: &mut Plan<'_>) {
        if self.rollout(&serving.site) == Some(Rollout::Drifted) && self.spec.is_candidate(site) {
            enter_update(now, UpdatePhase::Failover, Some(site.clone()), plan);
        } else {
            enter_update(now, UpdatePhase::Complete, None, plan);
        }
    }

    /// An internal planned failover to the site that was rolled.
    fn hand_over(&mut self, now: Now, update: &Update, target: &Site, serving: &Member, plan: &mut Plan<'_>) {
        let kept = plan.kept;
        let ours = kept
            .planned
            .as_ref()
            .filter(|planned| planned.origin == Origin::OrderedUpdate && planned.started >= update.since);
        match ours {
            Some(planned) if !planned.phase.is_terminal() => {}
            Some(planned) if planned.phase == PlannedPhase::Succeeded && serving.site == *target => {
                let old = planned.source.clone();
                enter_update(now, UpdatePhase::UpdateOldPrimary, Some(old), plan);
            }
            Some(planned) if self.ages.passed(planned.completed.unwrap_or(planned.started), WAIT_BOUND, now) => {
                self.hand_over_again(now, serving, plan);
            }
            Some(planned) => stand_still(update, Some(format!("the hand-over failed: {}", planned.message)), plan),
            None if self.rollout(&serving.site) != Some(Rollout::Drifted) || serving.site == *target => {
                enter_update(now, UpdatePhase::Complete, None, plan);
            }
            None if kept.planned_active().is_some() || kept.cloning().is_some() => {}
            None => match self.planned_obstacle(now, kept, target) {
                None => self.plan_hand_over(now, target, plan),
                Some((_, message)) => stand_still(update, Some(format!("no hand-over: {message}")), plan),
            },
        }
    }

    /// The last attempt failed, and the cause may be gone after a while. The next one begins here and not by way of another
    /// phase: by a calendar that was set back meanwhile the failed one would be the new phase's own.
    fn hand_over_again(&mut self, now: Now, serving: &Member, plan: &mut Plan<'_>) {
        if plan.kept.cloning().is_some() {
            return;
        }
        let target = match self.rollout(&serving.site) {
            Some(Rollout::Drifted) => self.hand_over_target(now, plan.kept, serving),
            _ => None,
        };
        let Some(target) = target else { return enter_update(now, UpdatePhase::Complete, None, plan) };
        enter_update(now, UpdatePhase::Failover, Some(target.clone()), plan);
        self.plan_hand_over(now, &target, plan);
    }

    /// A site that could take over and is what the spec wants.
    fn hand_over_target(&self, now: Now, kept: &Kept, serving: &Member) -> Option<Site> {
        let fits = |site: &&Site| {
            **site != serving.site
                && self.spec.is_candidate(site)
                && self.rollout(site) == Some(Rollout::Current)
                && self.planned_obstacle(now, kept, site).is_none()
        };
        let names = self.spec.names();
        self.spec.priorities.iter().chain(&names).find(fits).cloned()
    }

    fn rollout(&self, site: &Site) -> Option<Rollout> {
        self.seen.estate.as_ref()?.rollouts.get(site).copied()
    }

    fn sites_in(&self, rollout: Rollout) -> Vec<Site> {
        let names = self.spec.sites.iter().map(|spec| &spec.site);
        names.filter(|site| self.rollout(site) == Some(rollout)).cloned().collect()
    }

    fn is_down(&self, site: &Site) -> bool {
        self.seen.site(site).is_some_and(|seen| seen.watch.state == State::Unreachable)
    }

    /// Every site but the primary and that one is up and follows.
    fn others_are_well(&self, serving: &Member, but: Option<&Site>) -> bool {
        let others = self.seen.sites.iter().filter(|(site, _)| **site != serving.site && Some(*site) != but);
        others.into_iter().all(|(_, seen)| seen.watch.state == State::ReadOnly && seen.following >= 2)
    }
}

fn enter_update(now: Now, phase: UpdatePhase, site: Option<Site>, plan: &mut Plan<'_>) {
    plan.say(Notice::UpdateChanged { phase, site: site.clone(), stopped: None });
    plan.change().update = Some(Update { phase, site, since: now.wall, stopped: None });
}

/// The phase stays; why it stands still is told once, and forgotten when the cause is gone.
fn stand_still(update: &Update, stopped: Option<String>, plan: &mut Plan<'_>) {
    if update.stopped != stopped {
        plan.say(Notice::UpdateChanged { phase: update.phase, site: update.site.clone(), stopped: stopped.clone() });
        plan.change().update = Some(Update { stopped, ..update.clone() });
    }
}
