//! The lane: fencing and opening share it, so that neither overtakes the other.
//!
//! The hands run one operation of the lane at a time; a new one cancels the one before, whose result is then never
//! reported. Whatever is cut off in the middle of an opening counts as writable until a ladder has ended: opener
//! sessions ended and seen gone, both variables read as 1, or mysqld killed and reaped.

use super::input::LaneResult;
use super::{Command, KeeperFact, Marker, Mysqld, Note, Permit, ReadBack, Sidecar};
use crate::message::{FencedBy, StartId};
use crate::rule::{Rule, holds, off};
use crate::time::{Boot, Millis};

/// How long each part may take.
pub struct Budget;

impl Budget {
    /// The whole ladder, the kill apart.
    pub const LADDER: Millis = Millis(2500);
    /// Ending the opener's sessions.
    pub const OPENERS: Millis = Millis(400);
    /// The fencing statement.
    pub const FENCE: Millis = Millis(1500);
    /// The fencing statement may be held up by application sessions; they are ended after this long.
    pub const PATIENCE: Millis = Millis(300);
    /// Reading both variables.
    pub const READ: Millis = Millis(500);
    /// Connecting the opener session, and the opening statement.
    pub const OPEN: Millis = Millis(2000);
    /// The note before a lease fence: a hanging disk must not hold the fence up.
    pub const NOTE: Millis = Millis(200);
    /// How long the keeper has, after the ladder, to reap what it killed; then the ladder is climbed again.
    pub const KILL: Millis = Millis(1000);
}

/// What is under way with mysqld.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Lane {
    /// Nothing.
    Idle,
    /// Both variables are being read.
    Reading,
    /// Fences of an earlier life are being ended.
    Clearing,
    /// The server is being opened.
    Opening {
        /// Which start of it.
        start: StartId,
        /// How far.
        step: OpenStep,
    },
    /// The server is being closed.
    Fencing {
        /// Which start of it.
        start: StartId,
        /// By which rule.
        rule: FencedBy,
        /// When the ladder began.
        began: Boot,
        /// How far.
        step: FenceStep,
    },
    /// The server is being closed as well as SQL can, while the keeper is silent.
    Blind {
        /// When the ladder began.
        began: Boot,
        /// How far.
        step: BlindStep,
    },
}

/// The steps of a fence without the keeper's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlindStep {
    /// Both variables are read: what is closed already was not closed by us.
    Looking,
    /// The opener's sessions are ended and seen gone.
    EndingOpeners,
    /// The statement is on its way.
    Setting,
}

/// The steps of an opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OpenStep {
    /// The opener session is being connected.
    Connecting,
    /// The keeper is asked for the permit.
    Permitting,
    /// The statement is on its way.
    Executing,
    /// Both variables are read back.
    Reading,
    /// The server was opened by hand, and may be: the keeper is asked for the permit.
    Adopting,
}

/// The steps of the ladder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FenceStep {
    /// The opener's sessions are ended and seen gone.
    EndingOpeners,
    /// The statement is on its way; whether application sessions were ended to let it through.
    Setting {
        /// See above.
        sessions_ended: bool,
    },
    /// Both variables are read back.
    Reading,
    /// The keeper kills mysqld.
    Killing,
    /// The keeper did not confirm the kill. The ladder is climbed again soon: keeper and server may hang in turn, and
    /// whichever answers first ends it.
    KillFailed,
}

impl Lane {
    /// Whether an opening may be in flight.
    pub fn may_open(&self) -> bool {
        matches!(self, Self::Opening { .. })
    }

    /// Whether the ladder runs.
    pub fn fencing(&self) -> bool {
        matches!(self, Self::Fencing { .. })
    }
}

impl ReadBack {
    /// Both variables are 1. Anything else lets somebody write.
    pub fn closed(&self) -> bool {
        holds(Rule::BothVariables, self.read_only) && self.super_read_only
    }

    /// Both variables are 0: applications can write.
    pub fn open(&self) -> bool {
        !self.read_only && !self.super_read_only
    }
}

/// How a server was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    /// Both variables are 1.
    Closed,
    /// Anything else.
    Open,
}

impl Sidecar {
    /// Starts the ladder if the server is open, or may be, and must not be.
    pub(super) fn fence_if_needed(&mut self, now: Boot, out: &mut Vec<Command>) {
        let Mysqld::Up(start) = self.mysqld else { return self.fence_blindly(now, out) };
        if self.lane.fencing() {
            return;
        }
        let rule = if self.allowed(now) { self.closes_though_allowed(start) } else { self.closes(now, start) };
        if let Some(rule) = rule {
            self.start_ladder(now, start, rule, out);
        }
    }

    /// By which rule a server that may not be writable has to be closed, if it is open or may be.
    fn closes(&self, now: Boot, start: StartId) -> Option<FencedBy> {
        let may_be_open = self.permit.is_some() || self.stray_openers || self.lane.may_open();
        let rule = match self.rule() {
            // Found closed: that was not our fence, so no note may claim it for us afterwards.
            FencedBy::Lease if self.seen(start) == Some(Seen::Closed) && !self.lane.may_open() => self.default_reason(),
            rule => rule,
        };
        let waits = rule == FencedBy::Mismatch && !self.second_word_over(now);
        let seen_open = self.seen(start) == Some(Seen::Open) && !off(Rule::OpenedByHandIsClosed);
        ((may_be_open || seen_open) && !waits).then_some(rule)
    }

    /// Two servers are closed although they may be writable: one that was opened too early by somebody else, and one
    /// that is closed already but for an opening of an earlier life that may be in flight. Without the latter's ladder
    /// it could neither say fenced nor be opened for as long as its lease runs.
    fn closes_though_allowed(&self, start: StartId) -> Option<FencedBy> {
        if self.lane.may_open() {
            return None;
        }
        match self.seen(start)? {
            // A fence of our own that was ended between its two variables: closed for good, it may be lifted.
            Seen::Open if self.is_half_fenced(start) => Some(FencedBy::Lease),
            Seen::Open => (!holds(Rule::EarlyOpeningIsClosed, self.may_stay_open())).then_some(FencedBy::Mismatch),
            Seen::Closed => self.stray_openers.then(|| self.default_reason()),
        }
    }

    /// Read-only for all but administrators, and the note says that it was about to be closed by us.
    fn is_half_fenced(&self, start: StartId) -> bool {
        let half = self.read.as_ref().is_some_and(|read| read.read_only && !read.super_read_only);
        half && self.disk.note == Some(Note { tenure: self.tenure(), start })
    }

    /// How that start of mysqld was last read.
    fn seen(&self, start: StartId) -> Option<Seen> {
        let read = self.read.as_ref().filter(|read| read.start == start)?;
        Some(if read.closed() { Seen::Closed } else { Seen::Open })
    }

    pub(super) fn rule(&self) -> FencedBy {
        let disputed = self.disk.conflict.is_some() && self.disk.conflict == self.heard.as_ref().map(|view| view.epoch);
        match (disputed, self.named()) {
            (true, _) => FencedBy::Conflict,
            (false, false) => FencedBy::Mismatch,
            (false, true) => FencedBy::Lease,
        }
    }

    fn start_ladder(&mut self, now: Boot, start: StartId, rule: FencedBy, out: &mut Vec<Command>) {
        let note = Some(Note { tenure: self.tenure(), start });
        let ours = matches!(rule, FencedBy::Lease | FencedBy::Conflict) && !off(Rule::NoteBeforeFence);
        if ours && self.disk.note != note {
            self.disk.note.clone_from(&note);
            out.push(Command::WriteNote { note, within: Budget::NOTE });
        }
        if off(Rule::WithdrawnWhenFenced) && self.permit.take().is_some() {
            out.push(Command::WithdrawPermit(start));
        }
        let (step, command) = if off(Rule::OpenersEndFirst) {
            (FenceStep::Setting { sessions_ended: false }, Command::Fence { within: Budget::FENCE })
        } else {
            (FenceStep::EndingOpeners, Command::EndOpeners { within: Budget::OPENERS })
        };
        self.lane = Lane::Fencing { start, rule, began: now, step };
        out.push(command);
    }

    /// Time is up for a step of the ladder: sessions are ended after a while, then the keeper kills.
    pub(super) fn watch_ladder(&mut self, now: Boot, out: &mut Vec<Command>) {
        let Lane::Fencing { start, rule, began, step } = &mut self.lane else { return };
        let over = now >= *began + Budget::LADDER && !off(Rule::LadderIsBounded);
        let unkilled = match step {
            FenceStep::Killing => now >= *began + Budget::LADDER + Budget::KILL,
            FenceStep::KillFailed => now >= self.retry_at,
            _ => false,
        };
        match step {
            FenceStep::Killing | FenceStep::KillFailed if unkilled && !off(Rule::LadderClimbedAgain) => {
                let (start, rule) = (*start, *rule);
                self.start_ladder(now, start, rule, out);
            }
            FenceStep::Killing | FenceStep::KillFailed => {}
            _ if over => {
                self.stray_fences |= matches!(step, FenceStep::Setting { .. });
                *step = FenceStep::Killing;
                out.push(Command::Kill(*start));
            }
            FenceStep::Setting { sessions_ended } if !*sessions_ended && now >= *began + Budget::PATIENCE => {
                *sessions_ended = true;
                out.extend((!off(Rule::SessionsEndedInTime)).then_some(Command::KillAppSessions));
            }
            _ => {}
        }
    }

    /// Opens, re-opens, or takes over what was opened by hand.
    pub(super) fn open_if_allowed(&mut self, now: Boot, out: &mut Vec<Command>) {
        if !self.allowed(now) {
            // What others had told under an earlier lease is of no use under the next.
            return self.round = None;
        }
        let (Lane::Idle, Mysqld::Up(start)) = (&self.lane, self.mysqld) else { return };
        if self.seen(start) == Some(Seen::Open) && self.permit.is_none() {
            self.lane = Lane::Opening { start, step: OpenStep::Adopting };
            self.ask_permit(start, out);
        } else if self.read_is_fresh(start) && now >= self.retry_at {
            match self.gate(now) {
                Err(_) => return,
                Ok(Some(_)) if off(Rule::MarkerBeforeOpening) => {}
                Ok(Some(marker)) => {
                    self.disk.marker = Some(marker.clone());
                    out.push(Command::WriteMarker(marker));
                }
                // The first opening of a tenure does not ask the others: the leader has compared and decided.
                Ok(None) if !self.gate_round_over(now, start, out) => return,
                Ok(None) => {}
            }
            out.push(Command::ConnectOpener { within: Budget::OPEN });
            self.lane = Lane::Opening { start, step: OpenStep::Connecting };
        }
    }

    fn read_is_fresh(&self, start: StartId) -> bool {
        let on_disk = self.disk.view.as_ref().map(|view| view.epoch);
        self.read.as_ref().is_some_and(|read| read.start == start && read.under == on_disk)
    }

    fn ask_permit(&self, start: StartId, out: &mut Vec<Command>) {
        if let (Some(deadline), Some(view)) = (self.deadline(), &self.disk.view) {
            out.push(Command::AskPermit(Permit { start, epoch: view.epoch, deadline }));
        }
    }

    /// Begins a reading of both variables if nothing else is under way; else the lane reads when it is free.
    pub(super) fn read_back(&mut self, out: &mut Vec<Command>) {
        let Mysqld::Up(start) = self.mysqld else { return };
        if self.lane == Lane::Idle {
            self.lane = Lane::Reading;
            self.read_owed = false;
            out.push(self.read_command(start, Budget::READ));
        } else {
            self.read_owed = true;
        }
    }

    pub(super) fn read_command(&self, start: StartId, within: Millis) -> Command {
        Command::Read { under: self.disk.view.as_ref().map(|view| view.epoch), start, within }
    }

    pub(super) fn lane_result(&mut self, now: Boot, result: LaneResult, out: &mut Vec<Command>) {
        match self.lane.clone() {
            Lane::Idle => {}
            Lane::Reading => self.reading(result, out),
            Lane::Clearing => self.clearing(now, &result),
            Lane::Opening { start, step } => self.opening(now, start, step, result, out),
            Lane::Fencing { start, rule, began, step } => self.fencing(now, start, rule, began, step, result, out),
            Lane::Blind { began, step } => self.blind(now, began, step, result, out),
        }
        if self.lane == Lane::Idle && self.read_owed {
            self.read_back(out);
        }
    }

    fn reading(&mut self, result: LaneResult, out: &mut Vec<Command>) {
        self.lane = Lane::Idle;
        for owed in self.vouches_owed.values_mut() {
            owed.readings = owed.readings.saturating_sub(1);
        }
        let LaneResult::Read(read) = result else { return };
        // Closed by somebody else, and nothing of ours is on its way: the permit has nothing left to allow.
        if read.closed() && !self.stray_openers && self.permit.take().is_some() {
            out.push(Command::WithdrawPermit(read.start));
        }
        if read.open() && !self.stray_fences {
            self.remove_note(out);
        }
        self.read = Some(read);
    }

    fn remove_note(&mut self, out: &mut Vec<Command>) {
        if self.disk.note.take().is_some() {
            out.push(Command::WriteNote { note: None, within: Budget::NOTE });
        }
    }

    /// An opening of an earlier life of this sidecar that was not written down any more.
    pub(super) fn note_opened(&mut self, now: Boot, out: &mut Vec<Command>) {
        let (Lane::Idle, Mysqld::Up(start), Some(_)) = (&self.lane, self.mysqld, self.permit) else { return };
        let open = self.seen(start) == Some(Seen::Open);
        let written = self.disk.marker.as_ref().is_some_and(|marker| marker.start == Some(start));
        if open && !written && self.allowed(now) {
            self.opened(start, out);
        }
    }

    fn opening(&mut self, now: Boot, start: StartId, step: OpenStep, result: LaneResult, out: &mut Vec<Command>) {
        let next = |step| Lane::Opening { start, step };
        match (step, result) {
            (OpenStep::Connecting, LaneResult::OpenerConnected) if off(Rule::PermitFirst) => {
                self.lane = next(OpenStep::Executing);
                out.push(Command::Open { within: Budget::OPEN });
            }
            (OpenStep::Connecting, LaneResult::OpenerConnected)
                if holds(Rule::OpensWhileAllowed, self.allowed(now)) =>
            {
                self.lane = next(OpenStep::Permitting);
                self.ask_permit(start, out);
            }
            (OpenStep::Connecting, _) => {
                // Nothing was permitted and nothing was sent.
                self.lane = Lane::Idle;
                self.retry_at = now + super::TIMER;
            }
            (OpenStep::Permitting, LaneResult::PermitGiven(permit))
                if holds(Rule::PermitOfThisStart, permit.start == start)
                    && holds(Rule::OpensWhileAllowed, self.allowed(now)) =>
            {
                self.permit = Some(permit);
                let left = self.deadline().map_or(Millis(0), |deadline| deadline.since(now));
                let left = if off(Rule::OpeningWithinLease) { Budget::OPEN } else { left };
                self.lane = next(OpenStep::Executing);
                out.push(Command::Open { within: Budget::OPEN.min(left) });
            }
            (OpenStep::Executing, LaneResult::OpenSent) => {
                self.lane = next(OpenStep::Reading);
                out.push(self.read_command(start, Budget::READ));
            }
            (OpenStep::Reading, LaneResult::Read(read))
                if holds(Rule::OpenIsReadBack, read.open() && read.start == start) =>
            {
                self.read = Some(read);
                self.opened(start, out);
            }
            (OpenStep::Adopting, LaneResult::PermitGiven(permit)) if permit.start == start => {
                self.permit = Some(permit);
                self.opened(start, out);
            }
            _ if off(Rule::UnknownOutcomeIsWritable) => self.lane = Lane::Idle,
            // Whatever went wrong, a permit may be out and the statement may run yet.
            _ => {
                self.retry_at = now + super::TIMER;
                self.start_ladder(now, start, self.rule(), out);
            }
        }
    }

    fn opened(&mut self, start: StartId, out: &mut Vec<Command>) {
        self.lane = Lane::Idle;
        // Authority may have gone meanwhile, and its tenure is then not ours to write down: the ladder comes next.
        if !self.named() {
            return;
        }
        self.fenced_by = None;
        let tenure = self.tenure();
        let kept = self.disk.marker.as_ref().filter(|marker| marker.tenure == tenure).map(|marker| &marker.word);
        let told = self.word.as_ref().filter(|(of, _)| *of == tenure).map(|(_, word)| word);
        let word = kept.or(told).cloned().unwrap_or_default();
        let marker = Marker { tenure, start: Some(start), word };
        self.disk.marker = Some(marker.clone());
        out.push(Command::WriteMarker(marker));
        if self.stays_open() {
            self.remove_note(out);
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one lane state, taken apart")]
    fn fencing(
        &mut self,
        now: Boot,
        start: StartId,
        rule: FencedBy,
        began: Boot,
        step: FenceStep,
        result: LaneResult,
        out: &mut Vec<Command>,
    ) {
        let left = (began + Budget::LADDER).since(now);
        let next = |step| Lane::Fencing { start, rule, began, step };
        match (step, result) {
            (FenceStep::EndingOpeners, LaneResult::OpenersGone) => {
                self.lane = next(FenceStep::Setting { sessions_ended: false });
                out.push(Command::Fence { within: Budget::FENCE.min(left) });
            }
            (FenceStep::Setting { .. }, LaneResult::FenceSet) => {
                self.lane = next(FenceStep::Reading);
                out.push(self.read_command(start, Budget::READ.min(left)));
            }
            (FenceStep::Reading, LaneResult::Read(read)) if read.closed() && read.start == start => {
                self.read = Some(read);
                self.closed(start, rule, out);
            }
            (FenceStep::Killing, LaneResult::Killed(killed)) if holds(Rule::KillCountsReaped, killed == start) => {
                self.mysqld_ended();
                self.fenced_by = Some(rule);
            }
            (FenceStep::Killing | FenceStep::KillFailed, _) => {
                self.lane = next(FenceStep::KillFailed);
                self.retry_at = now + super::TIMER;
            }
            _ if off(Rule::KilledUnlessConfirmed) => self.closed(start, rule, out),
            // Not confirmed by SQL; and the statement may land yet, where mysqld cannot be killed either.
            _ => {
                self.stray_fences |= matches!(step, FenceStep::Setting { .. });
                self.lane = next(FenceStep::Killing);
                out.push(Command::Kill(start));
            }
        }
    }

    fn closed(&mut self, start: StartId, rule: FencedBy, out: &mut Vec<Command>) {
        self.lane = Lane::Idle;
        self.permit = None;
        self.stray_openers = false;
        self.round = None;
        self.fenced_by = Some(rule);
        out.push(Command::WithdrawPermit(start));
        out.push(Command::KillAppSessions);
    }

    fn mysqld_ended(&mut self) {
        self.lane = Lane::Idle;
        self.mysqld = Mysqld::Down;
        if off(Rule::EndOfServerEndsAll) {
            return;
        }
        self.permit = None;
        self.stray_fences = false;
        self.stray_openers = false;
        self.read = None;
        self.read_owed = false;
        self.inherited = None;
    }

    /// The keeper's word about mysqld. A start that has ended takes its permit and everything in flight with it.
    pub(super) fn keeper(&mut self, now: Boot, fact: KeeperFact, out: &mut Vec<Command>) {
        let before = self.mysqld;
        let Some(start) = fact.running else {
            return self.mysqld_ended();
        };
        if before != Mysqld::Up(start) {
            let stray_fences = self.stray_fences && before == Mysqld::Unknown;
            self.mysqld_ended();
            self.stray_fences = stray_fences;
            self.mysqld = Mysqld::Up(start);
            self.fenced_by = None;
            // Only a first contact finds a permit here: the keeper refuses one for a start that does not run.
            self.stray_openers = fact.permit.is_some() && !off(Rule::FoundPermitIsAnOpening);
            self.inherit(fact.permit);
            self.read_back(out);
            self.ask_everyone(now, out);
        }
        if !self.lane.may_open() && !self.lane.fencing() {
            self.permit = fact.permit.filter(|permit| permit.start == start);
        }
    }

    /// The lease that an earlier life of this sidecar had obtained goes on, if it is still about the same tenure.
    fn inherit(&mut self, permit: Option<Permit>) {
        let (Some(permit), Some(view)) = (permit, &self.heard) else { return };
        let same_tenure = (view.tenure..=view.epoch).contains(&permit.epoch);
        let ours = same_tenure && view.names(&self.me);
        if holds(Rule::InheritedInTenure, ours) && !off(Rule::DeadlineInherited) {
            self.inherited = Some(permit.deadline);
        }
    }
}
