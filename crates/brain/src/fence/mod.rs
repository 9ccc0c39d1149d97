//! The sidecar's rule: mysqld may be writable only while the highest view names this instance *and* the lease runs.
//!
//! In: views, answers, what the keeper and the server say, the passing of time. Out: commands for the hands beside
//! mysqld. Must not: wait, read a clock, or open anything that a newer view could already forbid.
//!
//! Reading order: the state below, `view` (what is stored), `lease` (how long), `lane` (fencing and opening, one at
//! a time), `strays` (what an earlier life left there), `blind` (a fence without the keeper's word), `gate` (which data may be opened), `answer` (what others are told).

mod answer;
mod blind;
mod emptying;
mod gate;
mod input;
mod lane;
mod lease;
mod strays;
mod view;

#[cfg(test)]
mod tests;

pub use emptying::Emptying;
pub use gate::{Closed, Round};
pub use input::{Command, Input, KeeperFact, LaneResult, Permit, ReadBack, ReplyId, Source};
pub use lane::{BlindStep, Budget, FenceStep, Lane, OpenStep};

use crate::message::{Ack, FencedBy, OpeningWord, Question, QuestionId, StartId};
use crate::name::{Member, Site};
use crate::record::{Epoch, View};
use crate::rule::{Rule, holds, off};
use crate::time::{Boot, Millis};
use bloodraven_gtid::GtidSet;
use std::collections::BTreeMap;

/// Timer of the lease deadline: the step is called at least this often.
pub const TIMER: Millis = Millis(250);

/// What survives a restart of the sidecar.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Disk {
    /// The highest view stored.
    pub view: Option<View>,
    /// What was opened last.
    pub marker: Option<Marker>,
    /// A lease fence of our own that may be lifted again.
    pub note: Option<Note>,
    /// An epoch of which two different views were heard: nobody writes under it here.
    pub conflict: Option<Epoch>,
}

/// "This tenure was opened here": re-opening needs no further word of the leader.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Marker {
    /// The tenure that was opened.
    pub tenure: Epoch,
    /// The start of mysqld that was opened; none until the opening was read back.
    pub start: Option<StartId>,
    /// What the opening grant asked for.
    pub word: OpeningWord,
}

/// Written before a lease fence, so that the fence is known as our own afterwards.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Note {
    /// The tenure that was fenced.
    pub tenure: Epoch,
    /// The start of mysqld that was fenced.
    pub start: StartId,
}

/// A question that has no answer yet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Asked {
    /// The voter asked; none: the leader.
    pub voter: Option<Member>,
    /// When it was sent: what an answer is worth counts from here.
    pub sent: Boot,
    /// The epoch it speaks of.
    pub epoch: Epoch,
}

/// A question that waits for a fresh reading of the executed set.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OwedVouch {
    /// The question.
    pub question: Question,
    /// When it came.
    pub came: Boot,
    /// How many readings have to end before one that was begun after it came has ended.
    pub readings: u8,
}

/// mysqld, as the keeper reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mysqld {
    /// The keeper has not answered yet.
    Unknown,
    /// Not running.
    Down,
    /// That start runs.
    Up(StartId),
}

/// One sidecar.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sidecar {
    /// This life of this site.
    pub me: Member,
    /// When this life of the sidecar began.
    pub born: Boot,
    /// What is on disk.
    pub disk: Disk,
    /// The highest view heard, stored or not. Nothing below it is acted upon.
    pub heard: Option<View>,
    /// Questions without an answer.
    pub asked: BTreeMap<QuestionId, Asked>,
    /// Next question's id.
    pub next_question: u64,
    /// Send time of the question that the newest grant of this tenure answered.
    pub granted: Option<Boot>,
    /// The leader's word that this tenure may be opened.
    pub word: Option<(Epoch, OpeningWord)>,
    /// Send times of the questions that the newest vouches of this tenure answered.
    pub vouched: BTreeMap<Member, Boot>,
    /// Deadline of a permit that an earlier life of the sidecar asked for.
    pub inherited: Option<Boot>,
    /// Executed sets of other sites, with the time they were told.
    pub others: BTreeMap<Site, (Boot, GtidSet)>,
    /// The newest acknowledgements of peers, to be handed on, with the time they came.
    pub peer_acks: BTreeMap<Site, (Boot, Ack)>,
    /// When this sidecar last vouched for each site.
    pub vouch_given: BTreeMap<Site, Boot>,
    /// When each site last answered.
    pub answer_had: BTreeMap<Site, Boot>,
    /// mysqld.
    pub mysqld: Mysqld,
    /// The keeper's permit.
    pub permit: Option<Permit>,
    /// An opening of an earlier life may still be in flight: opener sessions were not seen gone yet.
    pub stray_openers: bool,
    /// A fence of an earlier life, or one that was sent before the keeper had spoken, may be in flight: it may close the server
    /// any time. Such sessions were not seen gone yet.
    pub stray_fences: bool,
    /// The last read-back of both variables.
    pub read: Option<ReadBack>,
    /// What is under way with mysqld.
    pub lane: Lane,
    /// Both variables are to be read as soon as the lane is free.
    pub read_owed: bool,
    /// After a failed attempt to open: not before.
    pub retry_at: Boot,
    /// Voters that were asked for their executed sets before a re-opening.
    pub round: Option<Round>,
    /// Pushes to be answered once the fence state under the stored epoch is known, with the time they came.
    pub replies: BTreeMap<ReplyId, Boot>,
    /// Questions about a re-opening that wait for a fresh reading. Each waits a bounded time.
    pub vouches_owed: BTreeMap<ReplyId, OwedVouch>,
    /// A view of a peer says somebody else has authority; the operator is asked once more until then.
    pub second_word: Option<Boot>,
    /// Why the server was last fenced by this sidecar.
    pub fenced_by: Option<FencedBy>,
    /// When it was last found open although nothing here had opened it, and in whose tenure: somebody's wish, which
    /// outlives the fence that follows at once.
    pub opened_by_hand: Option<(Boot, Epoch)>,
}

impl Sidecar {
    /// A sidecar that starts, with what it finds on its disk. Its first command is to ask the keeper.
    pub fn start(me: Member, disk: Disk, now: Boot) -> Self {
        Self {
            me,
            born: now,
            heard: disk.view.clone(),
            disk,
            asked: BTreeMap::new(),
            next_question: 0,
            granted: None,
            word: None,
            vouched: BTreeMap::new(),
            inherited: None,
            others: BTreeMap::new(),
            peer_acks: BTreeMap::new(),
            vouch_given: BTreeMap::new(),
            answer_had: BTreeMap::new(),
            mysqld: Mysqld::Unknown,
            permit: None,
            stray_openers: true,
            stray_fences: true,
            read: None,
            lane: Lane::Idle,
            read_owed: false,
            retry_at: now,
            round: None,
            replies: BTreeMap::new(),
            vouches_owed: BTreeMap::new(),
            second_word: None,
            fenced_by: None,
            opened_by_hand: None,
        }
    }

    /// Takes one input and returns what is to be done, in order.
    pub fn step(&mut self, now: Boot, input: Input) -> Vec<Command> {
        let mut out = Vec::new();
        match input {
            Input::Tick => self.tick(now, &mut out),
            Input::Timer => {}
            Input::View { view, source, reply } => self.hear(now, view, source, reply, &mut out),
            Input::Stored(epoch) => self.stored(now, epoch, &mut out),
            Input::NotStored(epoch) => self.not_stored(epoch, &mut out),
            Input::Granted { grant, reply } => self.take_grant(now, grant, reply, &mut out),
            Input::Vouched(vouch) => self.take_vouch(now, vouch),
            Input::PeerAck(ack) => self.keep_ack(now, *ack),
            Input::NoAnswer(id) => self.no_answer(id),
            Input::AskedToVouch { question, reply } => self.asked_to_vouch(now, question, reply, &mut out),
            Input::Keeper(fact) => self.keeper(now, fact, &mut out),
            Input::Lane(result) => self.lane_result(now, result, &mut out),
        }
        self.settle(now, &mut out);
        out
    }

    /// What follows from the state alone, whatever the input was: fence before anything else, then open, then renew,
    /// then tell.
    fn settle(&mut self, now: Boot, out: &mut Vec<Command>) {
        self.forget_old_questions(now);
        self.note_hand(now);
        self.fence_if_needed(now, out);
        self.watch_ladder(now, out);
        self.end_stray_fences(now, out);
        self.open_if_allowed(now, out);
        self.note_opened(now, out);
        self.renew_permit(now, out);
        self.answer_questions(now, out);
        self.answer_pushes(now, out);
    }

    /// After a pause past the deadline the ladder precedes any call.
    fn tick(&mut self, now: Boot, out: &mut Vec<Command>) {
        self.fence_if_needed(now, out);
        out.push(Command::AskKeeper);
        if matches!(self.lane, Lane::Idle | Lane::Clearing) && matches!(self.mysqld, Mysqld::Up(_)) {
            self.read_back(out);
        }
        self.ask_everyone(now, out);
    }

    /// Whether mysqld may be writable at this moment.
    pub fn allowed(&self, now: Boot) -> bool {
        holds(Rule::WritableOnlyNamed, self.named())
            && holds(Rule::WritableOnlyLeased, self.deadline().is_some_and(|deadline| now < deadline))
    }

    /// Whether the highest view heard gives authority to this instance, undisputed, and the disk knows of that tenure.
    /// A newer view of the same tenure that is still being stored takes nothing away.
    pub fn named(&self) -> bool {
        let (Some(view), Some(disk)) = (&self.heard, &self.disk.view) else { return false };
        let disputed = self.disk.conflict == Some(view.epoch);
        let on_disk = disk.tenure == view.tenure && disk.seat == view.seat;
        !disputed && self.is_named_by(view) && holds(Rule::TenureOnDisk, on_disk)
    }

    /// Whether that view gives authority to this very instance.
    pub(super) fn is_named_by(&self, view: &View) -> bool {
        let another_life = view.seat.as_ref().is_some_and(|seat| seat.site == self.me.site);
        view.names(&self.me) || (off(Rule::OpensWhenNamed) && another_life)
    }

    /// The tenure of the highest view heard.
    pub(super) fn tenure(&self) -> Epoch {
        self.heard.as_ref().map_or(0, |view| view.tenure)
    }

    /// Whether that epoch is on disk and nothing newer was heard.
    pub fn is_stored(&self, epoch: Epoch) -> bool {
        let on_disk = self.disk.view.as_ref().map(|view| view.epoch);
        on_disk == Some(epoch) && self.heard.as_ref().map(|view| view.epoch) == Some(epoch)
    }

    /// Whether the server is known to refuse writes now and until this sidecar opens it. Unknown means no, and so does a
    /// ladder that has not ended: it runs because the server is open or may be.
    pub fn fenced(&self) -> bool {
        match self.mysqld {
            Mysqld::Unknown => off(Rule::UnknownIsWritable),
            Mysqld::Down => true,
            Mysqld::Up(start) => {
                let on_disk = self.disk.view.as_ref().map(|view| view.epoch);
                let read_since_stored = self.read.as_ref().is_some_and(|read| {
                    holds(Rule::ReadOfThisStart, read.start == start)
                        && holds(Rule::ReadAfterStored, read.under == on_disk)
                        && read.closed()
                });
                read_since_stored
                    && !self.stray_openers
                    && holds(Rule::OpeningIsWritable, !self.lane.may_open())
                    && holds(Rule::LadderIsWritable, !self.lane.fencing())
            }
        }
    }
}
