//! Copying: the task is begun once by each leader that finds it stored, and its end decides.
//!
//! A leader that finds a copy it did not begin reads the site first. An automatic one goes on only if the site is still
//! empty, or straight to replication if the primary has all that it holds; anything else is somebody's data. One that was
//! asked for is begun anew: a copy over a copy loses nothing, and old data cannot be told from the new by their sets. The
//! server refuses a second copy beside one that runs.

use super::{ATTEMPTS, Ended, PHASE_BOUND, go_to};
use crate::candidate::drain::Receiver;
use crate::group::command::Task;
use crate::group::input::Facts;
use crate::group::kept::{CloneKept, ClonePhase, CloneSource};
use crate::group::recovery::{Footing, block};
use crate::group::save::Plan;
use crate::group::{Group, Step};
use crate::name::Site;
use crate::site::State;
use crate::time::Now;

impl Group {
    pub(super) fn copy(&mut self, now: Now, site: &Site, clone: &CloneKept, plan: &mut Plan<'_>, out: &mut Step) {
        let attempt = (site.clone(), clone.attempts);
        let ended = self.cloning.ended.as_ref().filter(|(of, _)| *of == attempt).map(|(_, ended)| ended.clone());
        let reported = self.reported(&attempt);
        if let Some(ended) = ended {
            let clone = CloneKept { bytes: reported.or(clone.bytes), ..clone.clone() };
            return self.copy_ended(now, site, &clone, &ended, plan, out);
        }
        if self.runs(|at, task| at == site && matches!(task, Task::Clone { .. })) {
            let gone = self.seen.site(site).is_some_and(|seen| seen.watch.state == State::Unreachable);
            if gone && clone.phase == ClonePhase::Cloning {
                go_to(plan, site, clone, ClonePhase::WaitingForRestart, "the server starts anew");
            } else if reported.is_some_and(|bytes| is_worth_storing(clone.bytes, bytes)) {
                plan.change().site_mut(site).clone = Some(CloneKept { bytes: reported, ..clone.clone() });
            }
        } else if self.cloning.began.as_ref() == Some(&attempt) {
            let why = format!("no end was seen within {} s", self.spec.clone_timeout.0 / 1000);
            self.attempt_failed(now, site, clone, &why, plan, out);
        } else {
            self.begin_copy(now, site, clone, plan, out);
        }
    }

    fn copy_ended(
        &mut self,
        now: Now,
        site: &Site,
        clone: &CloneKept,
        ended: &Ended,
        plan: &mut Plan<'_>,
        out: &mut Step,
    ) {
        match ended {
            Ended::Copied => go_to(plan, site, clone, ClonePhase::SetupReplication, "the copy is complete"),
            Ended::Failed(why) => self.attempt_failed(now, site, clone, why, plan, out),
            Ended::Refused(why) => {
                self.cloning.refused.insert(site.clone());
                self.attempt_failed(now, site, clone, &format!("login refused: {why}"), plan, out);
            }
        }
    }

    /// Everything is looked at once more, at the moment of beginning.
    fn begin_copy(&mut self, now: Now, site: &Site, clone: &CloneKept, plan: &mut Plan<'_>, out: &mut Step) {
        let kept = plan.kept;
        let age = self.phase_age(now, site, clone);
        let footing = match self.footing(now, kept) {
            Ok(footing) => footing,
            Err(why) => return self.wait_with_clone(now, site, clone, &why.to_string(), plan),
        };
        Self::waits_no_more(site, clone, plan);
        if footing.primary.site == *site {
            return self.attempt_failed(now, site, clone, "the site has authority now", plan, out);
        }
        if !self.may_receive(&footing, site) {
            if age >= PHASE_BOUND {
                self.attempt_failed(now, site, clone, "the site does not answer, or is not fenced", plan, out);
            }
            return;
        }
        let Some(facts) = self.closed_facts(site, footing.tenure) else { return };
        if clone.source == CloneSource::Reclone {
            // One that goes on receiving would always have more than may go.
            let receives = facts.replica.as_ref().is_some_and(|replica| replica.receiver != Receiver::Stopped);
            if receives {
                return self.act_on_reading(now, site, Task::StopReceiver, out);
            }
            return self.begin_asked_copy(now, site, clone, &footing, &facts, plan, out);
        }
        match self.finding(now, &footing, site, &facts) {
            None => self.read_primary(now, &footing, out),
            Some(verdict) if verdict.empty => self.order_copy(now, site, clone, &footing, out),
            Some(verdict) if verdict.missing.is_empty() => {
                go_to(plan, site, clone, ClonePhase::SetupReplication, "an earlier copy is complete");
            }
            Some(_) => {
                self.cloning.refused.insert(site.clone());
                self.attempt_failed(now, site, clone, "it has what the primary lacks", plan, out);
            }
        }
    }

    /// What an admin agreed to lose was compared with the primary of that moment. Another one may lack more.
    #[expect(clippy::too_many_arguments, reason = "one site as it is stored and as it is seen")]
    fn begin_asked_copy(
        &mut self,
        now: Now,
        site: &Site,
        clone: &CloneKept,
        footing: &Footing<'_>,
        facts: &Facts,
        plan: &mut Plan<'_>,
        out: &mut Step,
    ) {
        if facts.data.is_some() {
            let Some(verdict) = self.finding(now, footing, site, facts) else {
                return self.read_primary(now, footing, out);
            };
            if verdict.is_divergent() && !plan.kept.site(site).divergent.contains(&verdict.missing) {
                block(plan, site, &verdict.missing);
                let last = CloneKept { attempts: ATTEMPTS, ..clone.clone() };
                let why = "it has what the present primary lacks, and nobody was asked about that";
                return self.attempt_failed(now, site, &last, why, plan, out);
            }
        }
        self.order_copy(now, site, clone, footing, out);
    }

    fn order_copy(&mut self, now: Now, site: &Site, clone: &CloneKept, footing: &Footing<'_>, out: &mut Step) {
        let donor = footing.primary.site.clone();
        // What was written since is not what anybody agreed to lose; what was received may be applied meanwhile.
        let data = self.seen.site(site).and_then(|seen| seen.facts.as_ref()?.data.as_ref());
        let over = data.map(|data| Box::new(data.held()));
        let asked = clone.source == CloneSource::Reclone;
        if self.may_change(now, site) && self.begin(now, site, Task::Clone { donor, over, asked }, out) {
            self.cloning.began = Some((site.clone(), clone.attempts));
            self.cloning.ended = None;
            self.cloning.refused.remove(site);
        }
    }
}

/// The first word, and then every tenth: each is a write, and people who want to see more look at the gauge.
fn is_worth_storing(before: Option<(u64, u64)>, now: (u64, u64)) -> bool {
    let tenths = |(done, total): (u64, u64)| u128::from(done) * 10 / u128::from(total).max(1);
    before.is_none_or(|before| tenths(before) != tenths(now))
}
