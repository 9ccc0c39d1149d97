//! What a leader does: answers, takes acknowledgements, writes the record. All by the brain's own functions.
//!
//! In: a leader. Out: the leader afterwards, or the records that it would write. Must not: know of nodes.

use super::canonical;
use super::world::{Bounds, Leader, NOW, STEP};
use bloodraven_brain::authority::{self, Answer, Policy, Release};
use bloodraven_brain::message::{Ack, Grant, OpeningWord, Question};
use bloodraven_brain::name::Member;
use bloodraven_brain::record::{Cause, Phase, Record, Settings};
use bloodraven_brain::time::{Millis, Now, Wall};

const PRESENT: Now = Now { boot: NOW, wall: Wall(0) };

/// A change of the record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Write {
    /// Takes authority away.
    Revoke,
    /// Gives it to that instance.
    Grant(Member),
    /// Other voters.
    Voters(Vec<Member>),
    /// Other lease settings.
    Settings(Settings),
    /// Forgets outlived sets.
    DropSets,
    /// Writes down that an instance has ended.
    NoteEnd(Member),
    /// Writes down the proof that was found.
    NoteProof,
    /// Starts over, above every epoch heard.
    StartOver,
}

impl Write {
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Revoke => "revoke",
            Self::Grant(_) => "grant",
            Self::Voters(_) => "voters",
            Self::Settings(_) => "settings",
            Self::DropSets => "drop sets",
            Self::NoteEnd(_) => "note end",
            Self::NoteProof => "note proof",
            Self::StartOver => "start over",
        }
    }

    /// Whether it begins something that the bound on epochs is there to end.
    pub(super) fn needs_room(&self) -> bool {
        matches!(self, Self::Revoke | Self::Voters(_) | Self::Settings(_))
    }
}

impl Leader {
    /// The answer to a question, if it is a grant.
    pub(super) fn answers(&mut self, question: &Question) -> Option<Grant> {
        let (until, word) = (Some(NOW + STEP), Some(OpeningWord::default()));
        match authority::answer(&self.record, &mut self.evidence, question, until, word, NOW) {
            Answer::Grant(grant) => Some(*grant),
            Answer::View(_) => None,
        }
    }

    /// Takes an acknowledgement; given directly it may show that an older store has ended.
    pub(super) fn takes(&mut self, bounds: &Bounds, ack: &Ack, lay: Option<Millis>) -> Vec<Member> {
        let mut ack = ack.clone();
        ack.fenced &= !bounds.lease_proof_only;
        if bounds.no_lease_proof && self.record.holder.as_ref().is_some_and(|holder| holder.member != ack.from) {
            self.evidence.highest = self.evidence.highest.max(ack.epoch.unwrap_or(0));
            return Vec::new();
        }
        self.evidence.take(&self.record, &ack, NOW, lay.unwrap_or(Millis(0)));
        let ended = if lay.is_none() { authority::ended_by_newer_store(&self.record, &ack) } else { Vec::new() };
        for member in &ended {
            self.evidence.take_end(member, NOW);
        }
        ended
    }

    /// Whether it would learn anything from that acknowledgement.
    pub(super) fn cares_for(&self, ack: &Ack) -> bool {
        let Record { epoch, revoked_at, holder, .. } = &self.record;
        let of_run = revoked_at.is_some() && ack.epoch >= *revoked_at;
        let of_holder = holder.as_ref().is_some_and(|holder| holder.member == ack.from && holder.sets.len() > 1);
        of_run || of_holder || ack.epoch > Some(*epoch) || !self.record.lists(&ack.from)
    }

    /// Takes over a record that it wrote or read.
    pub(super) fn reads(&mut self, record: Record) {
        if self.record.revoked_at != record.revoked_at {
            self.evidence.forget_run();
        }
        self.record = record;
        self.evidence.enter_run(&self.record, NOW);
    }

    /// The record that it would write; none: it would write nothing.
    pub(super) fn next(&self, write: &Write) -> Option<Record> {
        let Self { record, evidence } = self;
        let behind = evidence.highest > record.epoch;
        let next = match write {
            Write::StartOver if behind => {
                let (voters, settings) = (record.voters.clone(), record.settings);
                authority::start_over(evidence.highest, voters, settings, Cause::RecordBehind, Wall(0))
            }
            _ if behind => return None,
            Write::Revoke if record.phase != Phase::Revoking => authority::revoke(record, Cause::Emergency, Wall(0)),
            Write::Grant(to) => {
                let releases = [self.release(), authority::return_to_holder(record, evidence)];
                let given = |release: Release| authority::grant(record, to, &release, Cause::Emergency, Wall(0)).ok();
                releases.into_iter().flatten().find_map(given)?
            }
            Write::Voters(voters) if *voters != record.voters => {
                authority::change_voters(record, voters.clone(), Wall(0)).ok()?
            }
            Write::Settings(settings) if *settings != record.settings => {
                authority::change_settings(record, *settings, Wall(0))
            }
            Write::DropSets => authority::drop_sets(record, &authority::voters::outlived_sets(record, evidence, NOW)),
            Write::NoteEnd(member) => authority::note_end(record, member, Wall(0)),
            Write::NoteProof => authority::note_proof(record, &self.release()?),
            _ => return None,
        };
        (next != *record).then_some(next)
    }

    /// The release that it could grant by.
    pub(super) fn release(&self) -> Option<Release> {
        let Self { record, evidence } = self;
        if record.holder.is_none() {
            return authority::release_of_all(record, evidence, false, PRESENT).ok();
        }
        authority::release(record, evidence, Policy::Required, PRESENT).ok()
    }

    /// The canonical form.
    pub(super) fn canonical(mut self, bounds: &Bounds) -> Self {
        canonical::leader(&mut self, bounds);
        self
    }
}
