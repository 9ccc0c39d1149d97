//! Authority is given, nothing is open yet: cut the site's replication, write down what it has, let its sidecar open it,
//! read it back.

use super::command::Task;
use super::save::Plan;
use super::stable::begin_move;
use super::{Group, Kept, Notice, Obstacle, Step};
use crate::authority;
use crate::candidate::drain::{Applier, Cut, Receiver, may_cut};
use crate::cooldown::LastFailover;
use crate::name::{Member, Site};
use crate::record::{Cause, Holder, Record};
use crate::site::{Pair, State};
use crate::time::{Millis, Now};
use bloodraven_gtid::GtidSet;

/// Between two readings that wait for something.
pub(super) const READ_AGAIN: Millis = Millis(100);

/// A site that was granted authority and is not open after this long is given up for another one.
const OPENING_BOUND: Millis = Millis::from_secs(30);

impl Group {
    pub(super) fn granting(&mut self, now: Now, record: &Record, plan: &mut Plan<'_>, out: &mut Step) {
        let Some(seat) = record.seat.clone() else { return };
        if let Some((cause, because)) = self.target_lost(now, record, &seat) {
            self.seen.attempt.failed(now.boot);
            self.avoid = Some(seat.site.clone());
            return begin_move(now, record, cause, because, plan);
        }
        self.stop_receiving_elsewhere(now, &seat.site, out);
        // Open before its word was given: somebody else did that, and its own sidecar closes it.
        let promoted = plan.kept.promotion.is_some();
        if promoted && self.is_read_open(record, &seat) {
            return self.settle(now, record, &seat, plan);
        }
        if promoted {
            self.obstacle = Some(Obstacle::Opening(seat.site.clone()));
            self.answer_who_waits(now, &seat, out);
            self.read_back(now, &seat, out);
            return;
        }
        // While it stores its epoch its replication is cut: the grant is stored, so there is no way back that needs it.
        let acknowledged = self.stored_and_fenced(now, record, &seat);
        self.obstacle = Some(if acknowledged {
            Obstacle::Cutting(seat.site.clone())
        } else {
            Obstacle::AwaitingTarget(seat.clone())
        });
        if !acknowledged {
            self.stop_receiving(now, &seat.site, out);
        }
        self.cut(now, record, &seat, acknowledged, plan, out);
    }

    /// While the site stores its epoch: nobody may write any more, so nothing is missed, and what has arrived is read again
    /// before anything is cut.
    pub(super) fn stop_receiving(&mut self, now: Now, site: &Site, out: &mut Step) {
        let facts = self.seen.site(site).and_then(|seen| seen.facts.as_ref());
        let receives = facts.and_then(|facts| facts.replica.as_ref());
        if receives.is_some_and(|replica| replica.receiver != Receiver::Stopped) && self.may_change(now, site) {
            self.begin(now, site, Task::StopReceiver, out);
        }
    }

    /// What the last holder still sends to others counts no more: a link to it that is mended in this moment would make them
    /// diverge from the new one.
    fn stop_receiving_elsewhere(&mut self, now: Now, target: &Site, out: &mut Step) {
        for site in self.spec.names().into_iter().filter(|site| site != target) {
            let facts = self.seen.site(&site).and_then(|seen| seen.facts.as_ref());
            let source = facts.and_then(|facts| facts.replica.as_ref()?.source.as_ref());
            if source != Some(target) {
                self.stop_receiving(now, &site, out);
            }
        }
    }

    /// At once when its sidecar says that it is open, and every now and then.
    fn read_back(&mut self, now: Now, seat: &Member, out: &mut Step) {
        let Some(seen) = self.seen.site(&seat.site) else { return };
        let opened = seen.words.get(&seat.instance).is_some_and(|heard| !heard.ack.fenced && heard.at >= seen.facts_at);
        if opened || now.boot >= seen.facts_at + READ_AGAIN {
            self.begin(now, &seat.site, Task::Read, out);
        }
    }

    /// The only way back is a move away from the target.
    fn target_lost(&self, now: Now, record: &Record, seat: &Member) -> Option<(Cause, String)> {
        let gone = self.seen.site(&seat.site).is_none_or(|seen| seen.watch.state == State::Unreachable);
        if gone || record.has_ended(seat) {
            return Some((Cause::Emergency, format!("{} was lost before it was open", seat.site)));
        }
        if !self.speaks_for(record, seat) {
            return Some((Cause::Instance, format!("{} lives on as another instance", seat.site)));
        }
        let late = now.boot >= self.epoch_seen.1 + OPENING_BOUND && !self.is_led_by_plan_to(seat);
        late.then(|| {
            (Cause::Emergency, format!("{} could not be opened within {} s", seat.site, OPENING_BOUND.0 / 1000))
        })
    }

    fn is_led_by_plan_to(&self, seat: &Member) -> bool {
        self.kept().is_some_and(|kept| kept.planned_active().is_some_and(|planned| planned.target == seat.site))
    }

    /// Both variables read as 0 over SQL, in a reading that began under this tenure.
    fn is_read_open(&self, record: &Record, seat: &Member) -> bool {
        self.seen.site(&seat.site).is_some_and(|seen| {
            seen.read_since(record.tenure) && seen.facts.as_ref().is_some_and(|facts| facts.pair == Pair::OPEN)
        })
    }

    fn stored_and_fenced(&self, now: Now, record: &Record, seat: &Member) -> bool {
        let word = self.seen.word_of(seat, record.settings.lease_timeout, now.boot);
        word.is_some_and(|ack| ack.epoch == Some(record.epoch) && ack.fenced)
    }

    /// Receiver stopped, received set read again, containment checked; STOP and RESET; then, with its acknowledgement, what it
    /// has is written down.
    fn cut(
        &mut self,
        now: Now,
        record: &Record,
        seat: &Member,
        acknowledged: bool,
        plan: &mut Plan<'_>,
        out: &mut Step,
    ) {
        let facts = self
            .seen
            .site(&seat.site)
            .filter(|seen| seen.read_since(record.tenure))
            .and_then(|seen| seen.facts.clone());
        let Some(facts) = facts else {
            self.begin(now, &seat.site, Task::Read, out);
            return;
        };
        let Some(data) = &facts.data else {
            self.begin(now, &seat.site, Task::Read, out);
            return;
        };
        // A new life of the holder's site was granted on what was read of it; the server may be another one by now.
        if record.cause == Cause::Instance && !self.passes_gate(plan.kept, seat) {
            self.avoid = Some(seat.site.clone());
            let because = format!("{} lacks what another site has", seat.site);
            return begin_move(now, record, Cause::Emergency, because, plan);
        }
        let owed = plan.kept.planned_active().filter(|planned| planned.target == seat.site);
        if owed.and_then(|planned| planned.source_gtid.as_ref()).is_some_and(|fenced| !data.held().contains(fenced)) {
            let because = format!("{} lacks what the source of the planned failover had", seat.site);
            return begin_move(now, record, Cause::Emergency, because, plan);
        }
        let Some(replica) = &facts.replica else {
            // It is closed and follows nobody: commits wait for receipts from the first one on.
            if self.begin_to_wait(now, record.tenure, &seat.site, &facts, out) {
                return;
            }
            if acknowledged {
                plan.change().promotion = Some(data.executed.clone());
            }
            return;
        };
        // Somebody may have opened it by hand, and its sidecar has not closed it yet. And what it received and cannot apply
        // goes with the cut: not before it is sure to be the one that is opened.
        let harmless = facts.pair.is_fenced() && data.unapplied().is_empty();
        if !acknowledged && !harmless {
            return;
        }
        let given_up = Some(&plan.kept.unapplied).filter(|set| !set.is_empty());
        let task = match may_cut(data, replica.receiver, given_up) {
            Cut::StopReceiver => Task::StopReceiver,
            Cut::Ready => Task::CutReplication { unapplied: Box::new(data.unapplied()) },
            Cut::DrainOn(_) if replica.applier == Applier::Running => return self.read_back(now, seat, out),
            Cut::DrainOn(_) => Task::StartApplier,
            Cut::Store(unapplied) => return store_unapplied(seat, unapplied, plan),
        };
        if self.may_change(now, &seat.site) {
            self.begin(now, &seat.site, task, out);
        }
    }

    /// Opened and read back: everything that a confirmed move leaves behind is stored in one go.
    fn settle(&mut self, now: Now, record: &Record, seat: &Member, plan: &mut Plan<'_>) {
        let facts = self.seen.site(&seat.site).and_then(|seen| seen.facts.as_ref());
        let server_uuid = facts.map(|facts| facts.server_uuid.to_string());
        let executed =
            facts.and_then(|facts| facts.data.as_ref()).map(|data| data.executed.clone()).unwrap_or_default();
        let mut next = authority::settle(record);
        if let Some(holder) = &mut next.holder {
            *holder = Holder { server_uuid, ..holder.clone() };
        }
        let moved = is_move(next.cause);
        let kept = plan.change();
        if moved {
            kept.last_failover = Some(super::kept::Move { at: now.wall, to: seat.site.clone() });
            self.seen.last_failover = Some(LastFailover::now(now));
        }
        mark_taints(kept, &next);
        let gtid = kept.promotion.clone().unwrap_or(executed);
        let (epoch, cause, proof) = (next.epoch, next.cause, next.proof.clone());
        plan.set_record(next);
        let site = seat.site.clone();
        if cause == Cause::Manual {
            plan.say(Notice::ManualPromotionCompleted { site: site.clone() });
        }
        plan.say(if moved {
            Notice::FailoverExecuted { site, epoch, cause, proof, gtid }
        } else {
            Notice::AuthorityRestored { site, epoch, cause }
        });
        self.move_ended();
    }

    fn move_ended(&mut self) {
        self.avoid = None;
        self.policy_winner = None;
        self.seen.attempt.succeeded();
        for seen in self.seen.sites.values_mut() {
            seen.forget_hand();
            seen.drain = None;
            seen.granted = None;
            seen.unanswered = None;
        }
    }
}

fn store_unapplied(seat: &Member, unapplied: GtidSet, plan: &mut Plan<'_>) {
    plan.say(Notice::UnappliedTransactions { site: seat.site.clone(), set: unapplied.clone() });
    plan.change().unapplied = unapplied;
}

/// Whether a grant of that cause was a move to another site.
pub(super) const fn is_move(cause: Cause) -> bool {
    match cause {
        Cause::Emergency
        | Cause::Planned
        | Cause::OrderedUpdate
        | Cause::SplitBrain
        | Cause::Manual
        | Cause::Restore => true,
        Cause::Bootstrap
        | Cause::Rollback
        | Cause::Instance
        | Cause::Regrant
        | Cause::Voters
        | Cause::Lease
        | Cause::RecordBehind => false,
    }
}

/// Whether a confirmed move left other taints behind than it should have.
pub(super) fn taints_missing(kept: &Kept, record: &Record) -> bool {
    let Some(seat) = &record.seat else { return false };
    let is_tainted = |site: &Site| kept.sites.get(site).is_some_and(|kept| kept.tainted);
    let lost = record.proof.as_ref().map(|proof| &proof.about.site).filter(|site| **site != seat.site);
    is_tainted(&seat.site) || lost.is_some_and(|site| !is_tainted(site))
}

/// The site that lost authority is tainted, the one that has it is not.
pub(super) fn mark_taints(kept: &mut Kept, record: &Record) {
    let Some(seat) = &record.seat else { return };
    if let Some(proof) = record.proof.as_ref().filter(|proof| proof.about.site != seat.site) {
        kept.site_mut(&proof.about.site).tainted = true;
    }
    if kept.site(&seat.site).tainted {
        kept.site_mut(&seat.site).tainted = false;
    }
}
