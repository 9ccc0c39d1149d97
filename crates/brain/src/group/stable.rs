//! Starting moves: what the judgement asks for, if nothing stands in the way.

use super::input::PodFacts;
use super::save::Plan;
use super::{Group, Notice, Obstacle, Step};
use crate::authority;
use crate::candidate::Decision;
use crate::cooldown::{self, Reach};
use crate::name::Site;
use crate::record::{Cause, Record};
use crate::rule::{Rule, holds, off};
use crate::time::{Millis, Now};
use crate::topology::{Lost, Verdict};

/// So long the holder's next pod is waited for after every site was lost at once: pods that are replaced together come back
/// within seconds of each other.
const NEXT_POD: Millis = Millis::from_secs(30);

impl Group {
    /// One new move at most, out of a record that is Stable. Everything else is somebody else's, or only told.
    pub(super) fn start_a_move(&mut self, now: Now, plan: &mut Plan<'_>, _: &mut Step) {
        let Some(verdict) = self.judged.as_ref().map(|judged| &judged.verdict) else { return };
        match verdict {
            Verdict::TotalLoss => self.all_lost = true,
            Verdict::Healthy { .. } | Verdict::Degraded { .. } => (self.all_lost, self.next_pod_since) = (false, None),
            _ => {}
        }
        if !may_start_a_move(verdict) {
            return;
        }
        let verdict = verdict.clone();
        let kept = plan.kept;
        if let Verdict::AuthorityUnknown(why) = &verdict {
            return self.start_over(now, why, plan);
        }
        let (Some(record), None) = (&kept.record, plan.next().planned_active()) else { return };
        let because = verdict.to_string();
        match verdict {
            // A pause does not keep authority from the holder's own next life, nor from whom a human opened.
            Verdict::SelfMove { .. } => begin_move(now, record, Cause::Instance, because, plan),
            Verdict::ManualPromotion { site, .. } => {
                plan.say(Notice::ManualPromotionRequested { site });
                begin_move(now, record, Cause::Manual, because, plan);
            }
            Verdict::Regrant { .. } if !self.is_paused(now) => {
                begin_move(now, record, Cause::Regrant, because, plan);
            }
            Verdict::Failover { lost, .. } => self.fail_over(now, record, &lost, because, plan),
            // Paused, or not one of those that start a move.
            _ => {}
        }
    }

    /// The holder is lost to this operator. It may well serve its clients: authority is taken from it only when somebody
    /// else can get it, now or in a moment.
    fn fail_over(&mut self, now: Now, record: &Record, how: &Lost, because: String, plan: &mut Plan<'_>) {
        if self.is_paused(now) {
            self.obstacle = Some(Obstacle::Paused);
            return;
        }
        if let Some(site) = self.comes_back(now, record, how) {
            self.obstacle = Some(Obstacle::NextPod(site));
            return;
        }
        let Decision { chosen, refused } = self.choose(record, plan.kept, None);
        let soon = refused.iter().any(|(_, why)| why.passes_by_itself());
        if !holds(Rule::SomebodyToMoveTo, chosen.is_some() || soon) {
            self.obstacle = Some(Obstacle::NoCandidate(refused));
            return;
        }
        let last = self.seen.last_failover.as_ref();
        match cooldown::may_start(Cause::Emergency, Reach::OtherSite, last, self.spec.cooldown, now.boot) {
            Ok(()) => begin_move(now, record, Cause::Emergency, because, plan),
            Err(active) => self.blocked_by_cooldown(active, plan),
        }
    }

    /// The holder's site, if every site was lost a moment ago and its pod has ended in good order: all pods are being replaced,
    /// and who comes back first may lack what the holder acknowledged last.
    fn comes_back(&mut self, now: Now, record: &Record, how: &Lost) -> Option<Site> {
        let seat = record.seat.as_ref()?;
        let pods = self.seen.estate.iter().flat_map(|estate| &estate.pods);
        let ended = record.has_ended(seat) || pods.filter(|pod| pod.is_pod_of(seat)).any(PodFacts::has_ended);
        let replaced = self.all_lost && ended && matches!(how, Lost::Unreachable(_));
        if !replaced || off(Rule::NextPodIsAwaited) {
            return None;
        }
        let since = *self.next_pod_since.get_or_insert(now.boot);
        (now.boot < since + NEXT_POD).then(|| seat.site.clone())
    }

    /// Told when it begins to block, not on every tick.
    pub(super) fn blocked_by_cooldown(&mut self, active: cooldown::Active, plan: &mut Plan<'_>) {
        if self.cooldown_told != Some(active.last_failover) {
            self.cooldown_told = Some(active.last_failover);
            plan.say(Notice::CooldownBlocks(active));
        }
        self.obstacle = Some(Obstacle::Cooldown(active));
    }
}

/// Whether a move can come of it. Asked in every step, so before anything is copied or put into words.
const fn may_start_a_move(verdict: &Verdict) -> bool {
    match verdict {
        Verdict::AuthorityUnknown(_)
        | Verdict::SelfMove { .. }
        | Verdict::ManualPromotion { .. }
        | Verdict::Regrant { .. }
        | Verdict::Failover { .. } => true,
        Verdict::MoveInProgress { .. }
        | Verdict::Wait { .. }
        | Verdict::TotalLoss
        | Verdict::SplitBrain(_)
        | Verdict::Healthy { .. }
        | Verdict::Degraded { .. }
        | Verdict::UnauthorisedWriter { .. }
        | Verdict::HolderClosed { .. }
        | Verdict::NoPrimary(_) => false,
    }
}

/// Takes authority away; everything else follows from the record.
pub(super) fn begin_move(now: Now, record: &Record, cause: Cause, because: String, plan: &mut Plan<'_>) {
    plan.set_record(authority::revoke(record, cause, now.wall));
    plan.say(Notice::MoveStarted { cause, because });
}
