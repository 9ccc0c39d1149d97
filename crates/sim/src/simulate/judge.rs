//! The judge: looks at what is the case, never at what anybody believes, after everything that can matter.
//!
//! In: openings, stored records, cuts of replication, attachments, clones. Out: the first promise that was broken.
//! Must not: change anything.

use super::clock::{MS, SEC, Time};
use super::event::Event;
use super::scenario::{Moment, Setup};
use super::store::Wrote;
use super::world::World;
use bloodraven_brain::group::kept::PlannedPhase;
use bloodraven_brain::group::{Kept, Notice};
use bloodraven_brain::record::{Cause, Epoch, Phase, ProofKind};
use bloodraven_gtid::GtidSet;
use std::sync::Arc;

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// When.
    pub at: Time,
    /// Which.
    pub promise: &'static str,
    /// In words.
    pub words: String,
}

/// What the judge has seen.
#[derive(Debug)]
pub(super) struct Judge {
    broken: Option<Broken>,
    best_effort: bool,
    /// A release was assumed: two writers are the admin's own choice.
    pub(super) assumed: bool,
    /// The highest record stored so far.
    epoch: Epoch,
    phase: Phase,
    tenure: Epoch,
    /// When the last move to another site was confirmed, and how far the calendar of who stamped it was off.
    moved: Option<(Time, i64)>,
    pub(super) failovers: u32,
    pub(super) grants: u32,
    pub(super) reigns: u32,
    pub(super) openings: u32,
    /// Transactions that were given up and told: unapplied ones.
    pub(super) told: GtidSet,
    /// Transactions that were on volumes that are gone.
    pub(super) lost: GtidSet,
    /// Sites that an admin asked to be overwritten.
    pub(super) reclones: Vec<usize>,
    planned_done: Option<String>,
    /// The planned failover and the phase that were stored last.
    planned_phase: Option<(String, PlannedPhase)>,
    /// The group's object went back in time, and no newer epoch was stored since.
    gone_back: bool,
    /// Pods that had ended and whose objects were gone when the group's object went back: the one note of their end is in
    /// what was lost.
    pub(super) forgotten: Vec<Arc<str>>,
}

impl Judge {
    pub(super) fn new(setup: &Setup) -> Self {
        Self {
            broken: None,
            best_effort: setup.best_effort,
            assumed: false,
            epoch: 0,
            phase: Phase::Stable,
            tenure: 0,
            moved: None,
            failovers: 0,
            grants: 0,
            reigns: 0,
            openings: 0,
            told: GtidSet::new(),
            lost: GtidSet::new(),
            reclones: Vec::new(),
            planned_done: None,
            planned_phase: None,
            gone_back: false,
            forgotten: Vec::new(),
        }
    }

    /// The record that a group begins with.
    pub(super) fn begin(&mut self, epoch: Epoch) {
        self.epoch = epoch;
        self.tenure = epoch;
    }

    pub(super) fn broken(&mut self, at: Time, promise: &'static str, words: impl FnOnce() -> String) {
        if self.broken.is_none() {
            self.broken = Some(Broken { at, promise, words: words() });
        }
    }

    pub(super) const fn is_broken(&self) -> bool {
        self.broken.is_some()
    }

    pub(super) fn verdict(&mut self) -> Option<Broken> {
        self.broken.take()
    }

    /// The group's object went back in time: when it last moved is forgotten, and older epochs are stored until a newer one
    /// is heard of.
    pub(super) fn went_back(&mut self, forgotten: Vec<Arc<str>>) {
        self.gone_back = true;
        self.moved = None;
        self.forgotten = forgotten;
    }

    pub(super) fn reigned(&mut self) {
        self.reigns += 1;
    }

    pub(super) fn heard(&mut self, notice: &Notice) {
        if let Notice::UnappliedTransactions { set, .. } = notice {
            self.told = self.told.union(set);
        }
    }
}

impl World {
    /// A server is open for applications from this moment on.
    pub(super) fn opened(&mut self, p: usize) {
        self.judge.openings += 1;
        self.tell(|w| {
            let tenure = w.pods[p].server.tenure;
            (format!("mysqld {}", w.pod_name(p)), format!("is open, under tenure {tenure}"))
        });
        if !self.scenario.setup.is_candidate(self.pods[p].site) {
            let name = self.pod_name(p);
            self.judge.broken(self.now, "dr-only stays closed", || format!("{name} was opened by its sidecar"));
        }
        self.one_writer();
        self.moment(p, Moment::Opened);
    }

    /// At no instant do two servers take writes, but for those that a human opened.
    fn one_writer(&mut self) {
        let open: Vec<usize> =
            (0..self.pods.len()).filter(|p| self.pods[*p].server.is_open() && !self.pods[*p].server.by_hand).collect();
        if open.len() > 1 && !self.judge.assumed {
            let names: Vec<String> = open.iter().map(|p| self.pod_name(*p)).collect();
            self.judge.broken(self.now, "one writer", || format!("all of these take writes: {}", names.join(", ")));
        }
    }

    /// A copy of what is kept was stored.
    pub(super) fn was_persisted(&mut self, op: usize, wrote: Wrote, kept: &Kept) {
        let Some(record) = kept.record.as_ref().filter(|_| wrote == Wrote::Ok) else { return };
        self.planned_stored(kept);
        if self.store.status.contradicts(&self.store.annotation) {
            let epoch = record.epoch;
            self.judge
                .broken(self.now, "copies agree", || format!("the copies of epoch {epoch} contradict each other"));
        }
        let newer = (record.epoch, record.phase) > (self.judge.epoch, self.judge.phase);
        if !newer {
            if record.epoch < self.judge.epoch && !self.judge.gone_back {
                let (now, before) = (record.epoch, self.judge.epoch);
                self.judge.broken(self.now, "epochs only rise", || format!("epoch {now} was stored after {before}"));
            }
            return;
        }
        if self.judge.best_effort && record.proof.as_ref().is_some_and(|proof| proof.kind == ProofKind::Assumed) {
            self.judge.assumed = true;
        }
        let was_stable = self.judge.phase == Phase::Stable && self.judge.epoch > 0;
        if record.phase == Phase::Revoking && was_stable {
            self.move_begins(op, record.cause);
        }
        if record.phase == Phase::Granting && record.tenure > self.judge.tenure {
            self.judge.grants += 1;
            self.grant_stored(kept);
        }
        if record.phase == Phase::Stable && self.judge.phase == Phase::Granting && is_move(record.cause) {
            self.judge.moved = Some((self.now, self.operator_clocks[op].skew));
            self.judge.failovers += 1;
        }
        let about = record.seat.as_ref().or(record.holder.as_ref().map(|holder| &holder.member));
        let about = about.and_then(|member| self.pods.iter().position(|pod| pod.uid == member.instance.pod));
        let new = record.epoch > self.judge.epoch;
        if let (Some(p), true) = (about, new) {
            match record.phase {
                Phase::Revoking => self.moment(p, Moment::Revoked),
                Phase::Granting => self.moment(p, Moment::Granted),
                Phase::Stable => {}
            }
        }
        self.judge.gone_back = false;
        self.judge.epoch = record.epoch;
        self.judge.phase = record.phase;
        self.judge.tenure = record.tenure;
    }

    /// No automatic move starts inside the cooldown.
    fn move_begins(&mut self, op: usize, cause: Cause) {
        let automatic = matches!(cause, Cause::Emergency | Cause::SplitBrain);
        let Some((moved, stamped)) = self.judge.moved.filter(|_| automatic) else { return };
        let cooldown = self.scenario.setup.cooldown;
        let since = self.now - moved;
        // A leader that did not see the move itself has nothing but the stamp and its own calendar.
        let (crowned, ahead) = self.operators[op].crowned;
        let told = u64::try_from(ahead - stamped).unwrap_or(0) * MS;
        let believed = if crowned > moved { since + told } else { since };
        // Clocks run apart by a hundredth at most; the stamp is written a little before it is stored.
        if believed + cooldown / 50 + 6 * SEC < cooldown {
            let words =
                || format!("a move ({cause:?}) began {} ms after the last, cooldown {} ms", since / MS, cooldown / MS);
            self.judge.broken(self.now, "cooldown", words);
        }
    }

    /// No grant is stored while another instance is open, or has an opening in flight.
    fn grant_stored(&mut self, kept: &Kept) {
        let seat = kept.record.as_ref().and_then(|record| record.seat.clone());
        let Some(seat) = seat.filter(|_| !self.judge.assumed) else { return };
        for p in 0..self.pods.len() {
            let pod = &self.pods[p];
            let open = pod.server.is_open() && !pod.server.by_hand;
            if pod.uid != seat.instance.pod && (open || pod.server.opening_in_flight()) {
                let name = self.pod_name(p);
                let how = if open { "is open" } else { "has an opening in flight" };
                let words = || format!("authority was given to {seat} while {name} {how}");
                self.judge.broken(self.now, "revoke, prove, then grant", words);
            }
        }
    }

    /// A planned failover enters a phase: who lies in wait for it strikes at its source.
    fn phase_stored(&mut self, kept: &Kept) {
        let Some(planned) = &kept.planned else { return };
        let here = (planned.request_id.clone(), planned.phase);
        if self.judge.planned_phase.as_ref() == Some(&here) {
            return;
        }
        self.judge.planned_phase = Some(here);
        if let Some(source) = self.site_number(&planned.source) {
            self.moment(self.current[source], Moment::Planned(planned.phase));
        }
    }

    /// A planned failover that succeeded lost nothing.
    fn planned_stored(&mut self, kept: &Kept) {
        self.phase_stored(kept);
        let Some(planned) = kept.planned.as_ref().filter(|planned| planned.phase == PlannedPhase::Succeeded) else {
            return;
        };
        if self.judge.planned_done.as_ref() == Some(&planned.request_id) {
            return;
        }
        self.judge.planned_done = Some(planned.request_id.clone());
        let Some(target) = self.site_number(&planned.target).map(|site| self.current[site]) else { return };
        let has = &self.pods[target].server.executed;
        let lacks = planned.source_gtid.as_ref().map(|set| set.subtract(has));
        if lacks.as_ref().is_none_or(|lacks| !lacks.is_empty()) {
            let words = || format!("the planned failover succeeded, and its target lacks {lacks:?}");
            self.judge.broken(self.now, "a planned move loses nothing", words);
        }
    }

    /// Replication is cut for good: what was received and not applied is stored before.
    pub(super) fn judge_cut(&mut self, p: usize) {
        let dropped = self.pods[p].server.unapplied();
        if dropped.is_empty() {
            return;
        }
        let missing = dropped.subtract(&self.store.load().unapplied);
        if !missing.is_empty() {
            let name = self.pod_name(p);
            let words = || format!("{name} dropped {missing}, which nobody has written down");
            self.judge.broken(self.now, "what was received is not lost unsaid", words);
        }
    }

    /// Only a server whose data the source has is attached to it.
    pub(super) fn judge_attach(&mut self, p: usize, source: usize, how: &str) {
        // A source that was just replaced is not the one that was read; the replica's own server refuses it.
        let seat = self.store.record().and_then(|record| record.seat);
        let present = &self.pods[self.current[source]];
        if seat.is_none_or(|seat| seat.instance.pod != present.uid) {
            return;
        }
        let has = &present.server.executed;
        let own = self.pods[p].server.held();
        let more = own.subtract(has);
        if !more.is_empty() {
            let (name, source) = (self.pod_name(p), self.names[source].clone());
            let words = || format!("{name} was {how} to {source}, which lacks {more}");
            self.judge.broken(self.now, "nothing divergent is attached", words);
        }
    }

    /// Only a server whose data the donor has is overwritten, unless an admin asked for it.
    pub(super) fn judge_clone(&mut self, p: usize, donor: usize) {
        let has = &self.pods[self.current[donor]].server.executed;
        let more = self.pods[p].server.held().subtract(has);
        if more.is_empty() {
            return;
        }
        let site = self.pods[p].site;
        if self.judge.reclones.contains(&site) {
            self.judge.lost = self.judge.lost.union(&more);
            return;
        }
        let name = self.pod_name(p);
        self.judge
            .broken(self.now, "nothing is overwritten unasked", || format!("{name} was cloned over; lost: {more}"));
    }

    /// The scenario says that this site is closed by now.
    pub(super) fn must_be_closed(&mut self, site: usize) {
        let p = self.current[site];
        if self.pods[p].server.is_open() {
            let name = self.pod_name(p);
            self.judge.broken(self.now, "as the scenario expects", || format!("{name} is open and should be closed"));
        }
    }

    /// A server that a human opened without authority is closed again by its sidecar, within a tick and the ladder.
    pub(super) fn watch_hand_opening(&mut self, p: usize) {
        let (start, life) = (self.pods[p].server.start, self.pods[p].side.life);
        self.queue.push(self.now + 12 * SEC, Event::StillOpen(p, start, life));
    }

    pub(super) fn still_open(&mut self, p: usize, start: u64, life: u32) {
        let pod = &self.pods[p];
        let watched = self.sidecar_lives(p, life) && !pod.side.paused && pod.keeper.up;
        let still = pod.server.start == start && pod.server.by_hand && pod.server.is_open();
        // A server that was slow meanwhile has its time from then on.
        let due = pod.server.hand_opened_at.max(pod.server.eased_at) + 12 * SEC;
        if still && self.now < due {
            return self.queue.push(due, Event::StillOpen(p, start, life));
        }
        if watched && still && !pod.server.hung && pod.server.slow == 0 && pod.server.blocked_until == 0 {
            let name = self.pod_name(p);
            let words = || format!("{name} was opened by hand 12 s ago, and its sidecar has not closed it");
            self.judge.broken(self.now, "what was opened by hand is closed", words);
        }
    }
}

const fn is_move(cause: Cause) -> bool {
    matches!(
        cause,
        Cause::Emergency | Cause::Planned | Cause::OrderedUpdate | Cause::SplitBrain | Cause::Manual | Cause::Restore
    )
}
