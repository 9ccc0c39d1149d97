//! A copy is complete: the site is attached to the primary, and the clone is over when it follows.

use super::{ATTEMPTS, PHASE_BOUND, finish_copy, go_to};
use crate::candidate::drain::Receiver;
use crate::group::command::Task;
use crate::group::input::Facts;
use crate::group::kept::{CloneKept, ClonePhase, Recovery};
use crate::group::recovery::{Footing, block, note, stopped_without_error};
use crate::group::save::Plan;
use crate::group::{Group, Step};
use crate::name::Site;
use crate::time::Now;
use bloodraven_gtid::GtidSet;

impl Group {
    pub(super) fn set_up(&mut self, now: Now, site: &Site, clone: &CloneKept, plan: &mut Plan<'_>, out: &mut Step) {
        let kept = plan.kept;
        let age = self.phase_age(now, site, clone);
        let footing = match self.footing(now, kept) {
            Ok(footing) => footing,
            Err(why) => return self.wait_with_clone(now, site, clone, &why.to_string(), plan),
        };
        Self::waits_no_more(site, clone, plan);
        if footing.primary.site == *site {
            return finish_copy(plan, site);
        }
        if age >= PHASE_BOUND {
            let why = self.replication_trouble(site).unwrap_or_else(|| "it does not follow".to_owned());
            return self.attempt_failed(now, site, clone, &format!("replication was not set up: {why}"), plan, out);
        }
        // What was read before the copy ended is about another server; the next poll is about this one.
        let read_at = self.seen.site(site).map(|seen| seen.facts_at);
        if read_at > self.phase_began()
            && let Some(facts) = self.closed_facts(site, footing.tenure)
        {
            self.follow_after_copy(now, site, clone, &footing, &facts, plan, out);
        }
    }

    #[expect(clippy::too_many_arguments, reason = "one site as it is stored and as it is seen")]
    fn follow_after_copy(
        &mut self,
        now: Now,
        site: &Site,
        clone: &CloneKept,
        footing: &Footing<'_>,
        facts: &Facts,
        plan: &mut Plan<'_>,
        out: &mut Step,
    ) {
        // One that follows another source changes with every poll: it stands still before it is compared.
        let elsewhere = facts.replica.as_ref().filter(|replica| replica.source.as_ref() != Some(&footing.primary.site));
        if elsewhere.is_some_and(|replica| replica.receiver != Receiver::Stopped) {
            return self.act_on_reading(now, site, Task::StopReceiver, out);
        }
        let Some(verdict) = self.finding(now, footing, site, facts) else {
            return self.read_primary(now, footing, out);
        };
        if verdict.is_divergent() {
            // The donor was another one, and had what this primary lacks. No leader tries that again by itself.
            block(plan, site, &verdict.missing);
            let last = CloneKept { attempts: ATTEMPTS, ..clone.clone() };
            return self.attempt_failed(now, site, &last, "the copy has what the primary lacks", plan, out);
        }
        if verdict.holds_nothing() && self.has_purged(&footing.primary.site) {
            // Its volume went away after the copy. Attached it would stand still, and be empty no more by the rule.
            return self.attempt_failed(now, site, clone, "what was copied is gone again", plan, out);
        }
        let replica = facts.replica.as_ref();
        match replica.filter(|replica| replica.source.as_ref() == Some(&footing.primary.site)) {
            None => self.attach(now, footing, site, &verdict, out),
            Some(replica) if stopped_without_error(replica) => {
                self.act_on_reading(now, site, Task::StartReplica, out);
            }
            Some(_) => {
                let follows = self.seen.site(site).is_some_and(|seen| seen.following >= 2);
                if follows && self.request_is_gone(now, site, clone, out) {
                    note(plan, site, Recovery::None, GtidSet::new());
                    go_to(plan, site, clone, ClonePhase::Done, "it follows the primary");
                }
            }
        }
    }

    /// Whether somebody with nothing cannot get everything from that server's binary logs.
    fn has_purged(&self, primary: &Site) -> bool {
        let data = self.seen.site(primary).and_then(|seen| seen.facts.as_ref()?.data.as_ref());
        data.is_some_and(|data| !data.purged.is_empty())
    }
}
