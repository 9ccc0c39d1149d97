//! How a leader stores: the annotation first, the status if it has to, and the status that follows with a picture.
//!
//! In: saves of the brain's, moments for a picture, answers of the store. Out: writes, and how each save ended. Must not:
//! answer a save with more than the two copies hold together, or let a picture hold up a save.

use super::clock::{MS, SEC, Time};
use super::event::{Answer, Event, ForLeader, Wish};
use super::hands::STORE_BOUND;
use super::operator::{Call, input, plain};
use super::store::{Copies, Wrote};
use super::world::World;
use bloodraven_brain::group::copies::Found;
use bloodraven_brain::group::input::Saved;
use bloodraven_brain::group::{Input, Kept, SaveId};
use std::sync::Arc;

/// A whole save, what is tried again included: the brain doubts one after 10 s.
const SAVE_BOUND: Time = 9500 * MS;

/// After so many conflicts in one write somebody else is writing all the time.
const CONFLICTS: u32 = 4;

/// An annotation that is refused is offered again after so long.
const COPY_AGAIN: Time = 30 * SEC;

/// How often there is a picture.
pub(super) const PICTURE_PACE: Time = SEC;

/// The group's object as a leader last read or wrote it.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) copies: Copies,
    /// What both copies keep together.
    kept: Kept,
}

/// Which copy a write is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Annotation,
    Status,
}

/// A save under way.
#[derive(Clone, Debug)]
pub(super) struct Saving {
    id: SaveId,
    kept: Box<Kept>,
    /// What is known to be stored.
    base: Arc<Kept>,
    part: Part,
    annotated: bool,
    conflicts: u32,
    until: Time,
}

/// A write that a picture brings with it.
#[derive(Clone, Debug)]
pub(super) struct Picture {
    base: Box<Kept>,
    part: Part,
}

impl Known {
    pub(super) fn new(copies: Copies, kept: Kept) -> Self {
        Self { copies, kept: plain(kept) }
    }
}

impl World {
    /// A save goes before any picture that is under way: whether that one was written is found out by the version.
    pub(super) fn save(&mut self, op: usize, id: SaveId, kept: Box<Kept>) {
        self.drop_picture(op);
        let base = self.operators[op].group.as_ref().and_then(|group| group.kept());
        let Some(base) = base else { return };
        let part = if base.anchor() == kept.anchor() { Part::Status } else { Part::Annotation };
        let until = self.now + SAVE_BOUND;
        self.write(op, Saving { id, kept, base, part, annotated: false, conflicts: 0, until });
    }

    pub(super) fn drop_picture(&mut self, op: usize) {
        self.operators[op].calls.retain(|_, call| !matches!(call, Call::Picture(_)));
    }

    fn write(&mut self, op: usize, saving: Saving) {
        let version = self.operators[op].known.as_ref().map(|known| known.copies.version);
        let Some(version) = version.filter(|_| self.leads(op)) else { return self.save_failed(op, &saving) };
        let wish = match saving.part {
            Part::Annotation => Wish::Annotate(version, saving.kept.clone()),
            Part::Status => Wish::Store(version, saving.kept.clone()),
        };
        self.ask(op, saving, wish);
    }

    fn ask(&mut self, op: usize, saving: Saving, wish: Wish) {
        let within = saving.until.saturating_sub(self.now).min(STORE_BOUND);
        self.call_store(op, Call::Save(Box::new(saving)), wish, within);
    }

    /// An answer to a save has come, or its time is over.
    pub(super) fn save_went_on(&mut self, op: usize, mut saving: Saving, answer: Answer) {
        if self.now >= saving.until {
            return self.save_over(op, saving.id, Saved::Unknown);
        }
        match answer {
            Answer::Annotated(Wrote::Ok, version) => {
                let held = self.store.held(&saving.kept);
                let between = Kept::join(held.clone(), Kept::clone(&saving.base));
                if let Some(known) = &mut self.operators[op].known {
                    (known.copies.version, known.copies.anchor) = (version, held);
                    known.kept = plain(between.clone());
                }
                // Both copies together hold all of it then; the status follows with the next picture.
                if plain(between.clone()) == plain(Kept::clone(&saving.kept)) {
                    return self.save_over(op, saving.id, Saved::All);
                }
                saving.base = Arc::new(between);
                saving.annotated = true;
                self.write_status_next(op, saving);
            }
            Answer::Stored(Wrote::Denied, _) if !saving.annotated && saving.base.anchor() == saving.kept.anchor() => {
                self.save_over(op, saving.id, Saved::Denied);
            }
            // Another path may be open.
            Answer::Annotated(Wrote::Denied, _) => self.write_status_next(op, saving),
            Answer::Stored(Wrote::Ok, version) => {
                self.status_is(op, version, &saving.kept);
                self.save_over(op, saving.id, Saved::All);
            }
            Answer::Annotated(Wrote::Conflict, _) | Answer::Stored(Wrote::Conflict, _) => {
                saving.conflicts += 1;
                self.ask(op, saving, Wish::Look);
            }
            Answer::Looked(copies) if self.is_told(op, &copies, &saving.base) && saving.conflicts < CONFLICTS => {
                self.write(op, saving);
            }
            _ => self.save_failed(op, &saving),
        }
    }

    fn write_status_next(&mut self, op: usize, mut saving: Saving) {
        (saving.part, saving.conflicts) = (Part::Status, 0);
        self.write(op, saving);
    }

    /// An annotation without room for a promotion does not say what it belongs to: nobody knows all that is stored then.
    fn save_failed(&mut self, op: usize, saving: &Saving) {
        let fits = self.store.held(&saving.kept) == saving.kept.anchor();
        let saved = if saving.annotated && fits { Saved::RecordOnly } else { Saved::Unknown };
        self.save_over(op, saving.id, saved);
    }

    fn save_over(&mut self, op: usize, id: SaveId, saved: Saved) {
        if saved == Saved::Unknown {
            self.operators[op].known = None;
        }
        let reign = self.operators[op].reign;
        self.queue.push(self.now, input(op, reign, Input::Saved { id, saved }));
    }

    fn status_is(&mut self, op: usize, version: u64, kept: &Kept) {
        if let Some(known) = &mut self.operators[op].known {
            known.copies.version = version;
            known.copies.status = kept.clone();
            known.kept = plain(kept.clone());
        }
    }

    /// After a conflict: whether the object still keeps what it was thought to keep. Its version is known again then.
    fn is_told(&mut self, op: usize, copies: &Copies, base: &Kept) -> bool {
        let base = plain(base.clone());
        let status = plain(copies.status.clone());
        let left = self.operators[op].known.as_ref().map(|known| plain(known.copies.status.clone()));
        let of_anchor = copies.anchor.record.as_ref().map_or(0, |record| record.epoch);
        let epoch = of_anchor.max(status.epoch());
        let found = Found { anchor: Some(&copies.anchor), status: Some(&status), epoch, left: left.as_ref() };
        let told = base.is_told_by(found);
        if told {
            self.operators[op].known = Some(Known::new(copies.clone(), base));
        }
        told
    }

    /// Time for a picture: with it goes the copy that is behind, unless the store is asked for something better.
    pub(super) fn picture(&mut self, op: usize) {
        let reign = self.operators[op].reign;
        self.queue.push(self.now + PICTURE_PACE, Event::Leader(op, reign, ForLeader::Picture));
        let busy = |call: &Call| matches!(call, Call::Save(_) | Call::Load | Call::Picture(_));
        let operator = &self.operators[op];
        if !self.leads(op) || operator.calls.values().any(busy) {
            return;
        }
        let (Some(group), Some(known)) = (&operator.group, &operator.known) else { return };
        let Some(base) = group.kept().map(|kept| plain(Kept::clone(&kept))) else { return };
        // A picture from before the last save would show what is over.
        if known.kept != base {
            return;
        }
        let version = known.copies.version;
        let missing = known.copies.anchor != self.store.held(&base) && self.now >= operator.copy_due;
        let behind = plain(known.copies.status.clone()) != base;
        let base = Box::new(base);
        let (part, wish) = match (missing, behind) {
            (true, _) => (Part::Annotation, Wish::Annotate(version, base.clone())),
            (false, true) => (Part::Status, Wish::Store(version, base.clone())),
            (false, false) => return,
        };
        self.call_store(op, Call::Picture(Box::new(Picture { base, part })), wish, STORE_BOUND);
    }

    /// Lost without harm: tried again with the next one.
    pub(super) fn picture_went_on(&mut self, op: usize, picture: Picture, answer: Answer) {
        match answer {
            Answer::Annotated(Wrote::Ok, version) => {
                let held = self.store.held(&picture.base);
                if let Some(known) = &mut self.operators[op].known {
                    (known.copies.version, known.copies.anchor) = (version, held);
                }
            }
            Answer::Stored(Wrote::Ok, version) => self.status_is(op, version, &picture.base),
            Answer::Annotated(Wrote::Conflict, _) | Answer::Stored(Wrote::Conflict, _) => {
                self.call_store(op, Call::Picture(Box::new(picture)), Wish::Look, STORE_BOUND);
            }
            Answer::Looked(copies) if self.is_told(op, &copies, &picture.base) => {}
            // Somebody else changed what is stored; it is read again.
            Answer::Looked(_) if picture.part == Part::Status => self.doubt(op),
            _ if picture.part == Part::Annotation => self.operators[op].copy_due = self.now + COPY_AGAIN,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Rest;
    use super::super::scenario::{Fault, Process, Refusable, Scenario, Setup, Timed};
    use super::*;

    /// The first site's server is gone, and another one takes over at once. How many epochs the status was behind at most, and whether
    /// each copy told the same in the end.
    fn behind_in_a_move(setup: Setup, more: &[Timed]) -> (u64, bool) {
        let mut faults = vec![Timed { at: 20 * SEC, what: Fault::Hold(Process::Mysqld(0)) }];
        faults.extend_from_slice(more);
        faults.sort_by_key(|timed| timed.at);
        let setup = Setup { cooldown: 20 * SEC, lease: 10 * SEC, ..setup };
        let scenario =
            Scenario { seed: 1, story: String::new(), setup, faults, heal_at: 80 * SEC, expects: Vec::new() };
        let mut world = World::new(&scenario, false);
        let mut most = 0;
        while !world.over && world.next_event() {
            let epoch = |record: &Option<_>| {
                record.as_ref().map_or(0, |record: &bloodraven_brain::record::Record| record.epoch)
            };
            most = most.max(epoch(&world.store.annotation.record).saturating_sub(epoch(&world.store.status.record)));
        }
        assert_eq!((world.judge.verdict(), world.rest.clone()), (None, Rest::Serves));
        (most, world.store.annotation == world.store.held(&world.store.status))
    }

    #[test]
    fn a_move_does_not_wait_for_the_status_which_follows() {
        let (behind, same) = behind_in_a_move(Setup::default(), &[]);
        assert!(behind >= 2 && same, "{behind} epochs behind, {same}");
    }

    #[test]
    fn a_status_that_is_refused_is_left_behind_and_follows_later() {
        let denied = [
            Timed { at: 19 * SEC, what: Fault::Deny(Refusable::Status) },
            Timed { at: 70 * SEC, what: Fault::Allow(Refusable::Status) },
        ];
        let (behind, same) = behind_in_a_move(Setup::default(), &denied);
        assert!(behind >= 2 && same, "{behind} epochs behind, {same}");
    }

    #[test]
    fn an_annotation_that_is_refused_follows_later() {
        let denied = [
            Timed { at: 19 * SEC, what: Fault::Deny(Refusable::Annotation) },
            Timed { at: 40 * SEC, what: Fault::Allow(Refusable::Annotation) },
        ];
        let (behind, same) = behind_in_a_move(Setup::default(), &denied);
        assert!(behind == 0 && same, "{behind} epochs behind, {same}");
    }

    #[test]
    fn promotions_that_an_annotation_has_no_room_for_are_in_status() {
        let (_, same) = behind_in_a_move(Setup { large_promotions: true, ..Setup::default() }, &[]);
        assert!(same);
    }
}
