//! Storing: one write at a time, and nothing that depends on it before it is known to be stored.

use super::command::{Command, SaveId};
use super::input::{Loaded, Saved};
use super::{Group, Kept, Notice, Step, Stored};
use crate::cooldown::LastFailover;
use crate::record::Record;
use crate::time::{Boot, Millis, Now};
use std::sync::Arc;

/// After a write or a reading that went wrong.
const RETRY: Millis = Millis(1000);

/// A reading that was not answered for so long is asked for again.
const LOAD_BOUND: Millis = Millis(6000);

/// A write is answered within this long, or it is in doubt.
const SAVE_BOUND: Millis = Millis(10_000);

/// What is stored, and what is to be stored instead.
#[derive(Clone, Debug)]
pub(super) struct Plan<'a> {
    pub(super) kept: &'a Kept,
    next: Option<Box<Kept>>,
    owed: Option<Box<Kept>>,
    pub(super) notices: Vec<Notice>,
}

/// A write without an answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Saving {
    id: SaveId,
    since: Boot,
    next: Box<Kept>,
    /// What was to be stored before anything of this was decided.
    owed: Option<Box<Kept>>,
    notices: Vec<Notice>,
}

impl<'a> Plan<'a> {
    pub(super) fn new(kept: &'a Kept, owed: Option<Box<Kept>>) -> Self {
        Self { kept, next: owed.clone(), owed, notices: Vec::new() }
    }

    /// What is to be stored, to be changed.
    pub(super) fn change(&mut self) -> &mut Kept {
        self.next.get_or_insert_with(|| Box::new(self.kept.clone()))
    }

    /// What is to be stored.
    pub(super) fn next(&self) -> &Kept {
        self.next.as_deref().unwrap_or(self.kept)
    }

    /// What is to be said once it is stored.
    pub(super) fn say(&mut self, notice: Notice) {
        self.notices.push(notice);
    }

    /// The record is to be this.
    pub(super) fn set_record(&mut self, record: Record) {
        self.change().record = Some(record);
    }

    /// By what was decided now: a change that is owed from before holds nothing up.
    pub(super) fn record_changed(&self) -> bool {
        let before = self.owed.as_deref().unwrap_or(self.kept);
        self.next.as_ref().is_some_and(|next| next.record != before.record)
    }
}

impl Group {
    /// Asks for what is stored while that is not known.
    pub(super) fn load(&mut self, now: Now, out: &mut Step) {
        let (Stored::Unknown(asked) | Stored::Corrupt(_, asked)) = &mut self.stored else { return };
        if asked.is_none_or(|at| now.boot >= at + LOAD_BOUND) {
            *asked = Some(now.boot);
            out.commands.push(Command::Load);
        }
    }

    pub(super) fn loaded(&mut self, now: Now, loaded: Loaded, out: &mut Step) {
        // The answer to an older question, from before a write: what is known is newer.
        if matches!(self.stored, Stored::Known(_)) {
            return;
        }
        match loaded {
            Loaded::Kept(kept) => {
                let stamp = kept.last_failover.as_ref().map(|last| LastFailover::read(last.at, now));
                self.seen.last_failover = match (self.seen.last_failover, stamp) {
                    (Some(known), Some(read)) => Some(known.newer(read)),
                    (one, other) => other.or(one),
                };
                self.now_stored(now, kept);
            }
            Loaded::Corrupt(because) => {
                let news = !matches!(&self.stored, Stored::Corrupt(known, _) if *known == because);
                if news {
                    out.notices.push(Notice::AuthorityCorrupt { because: because.clone() });
                }
                // Asked again after a while: it may be mended by hand.
                self.stored = Stored::Corrupt(because, Some(now.boot));
            }
            // Asked again when the retry is due.
            Loaded::Failed => self.stored = Stored::Unknown(Some(now.boot + RETRY - LOAD_BOUND)),
        }
    }

    /// Stores the plan, unless it is what is stored already.
    pub(super) fn save(&mut self, now: Now, plan: Plan<'_>, out: &mut Step) {
        let Plan { kept, next, owed, notices } = plan;
        let Some(next) = next.filter(|next| **next != *kept) else {
            return out.notices.extend(notices);
        };
        self.ages.meet(kept.stamps().chain(next.stamps()), now);
        let id = SaveId(self.take_id());
        out.commands.push(Command::Save { id, kept: next.clone() });
        self.saving = Some(Saving { id, since: self.clock, next, owed, notices });
    }

    pub(super) fn saved(&mut self, now: Now, id: SaveId, saved: Saved, out: &mut Step) {
        let Some(saving) = self.saving.take_if(|saving| saving.id == id) else { return };
        let Some(before) = self.kept() else { return };
        if saving.next.last_failover != before.last_failover {
            // The stamp is this leader's own: it is not read off the calendar again, which may have jumped meanwhile.
            let own = self.seen.last_failover;
            self.seen.last_failover =
                saving.next.last_failover.as_ref().map(|last| {
                    own.filter(|own| own.at == last.at).unwrap_or_else(|| LastFailover::read(last.at, now))
                });
        }
        match saved {
            Saved::All => {
                out.notices.extend(record_notice(&before, &saving.next));
                out.notices.extend(saving.notices);
                self.now_stored(now, saving.next);
            }
            Saved::RecordOnly => {
                let kept = Kept::join(saving.next.anchor(), Kept::clone(&before));
                out.notices.extend(record_notice(&before, &kept));
                out.notices.extend(saving.notices);
                self.now_stored(now, Box::new(kept));
                self.owed = Some(saving.next);
                self.save_not_before = now.boot + RETRY;
            }
            // It is decided anew.
            Saved::Denied => {
                self.owed = saving.owed;
                self.save_not_before = now.boot + RETRY;
            }
            Saved::Unknown => {
                self.stored = Stored::Unknown(None);
                self.save_not_before = now.boot + RETRY;
            }
        }
    }

    /// A write that was not answered for so long may have gone through, or not.
    pub(super) fn doubt_overdue_save(&mut self, now: Now, out: &mut Step) {
        let overdue = |saving: &Saving| now.boot >= saving.since + SAVE_BOUND;
        if let Some(id) = self.saving.as_ref().filter(|saving| overdue(saving)).map(|saving| saving.id) {
            self.saved(now, id, Saved::Unknown, out);
        }
    }

    fn now_stored(&mut self, now: Now, kept: Box<Kept>) {
        if let Some(record) = &kept.record {
            self.seen.evidence.enter_run(record, now.boot);
            // A promotion that is written down is news to the site that waits for its opening word.
            let news = |before: &Kept| before.record.as_ref() != Some(record) || before.promotion != kept.promotion;
            if self.kept().is_none_or(|before| news(&before)) {
                self.push_soon(now.boot);
            }
        }
        self.ages.meet(kept.stamps(), now);
        self.stored = Stored::Known(Arc::from(kept));
    }

    /// Whether the record is about to change, or may have changed without our knowing: nobody is granted anything then.
    pub(super) fn record_in_doubt(&self) -> bool {
        let changing = |saving: &Saving| self.kept().is_none_or(|kept| kept.record != saving.next.record);
        self.kept().is_none() || self.saving.as_ref().is_some_and(changing)
    }

    pub(super) fn take_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }
}

fn record_notice(before: &Kept, after: &Kept) -> Option<Notice> {
    let record = after.record.as_ref().filter(|record| {
        let same = |before: &Record| before.epoch == record.epoch && before.phase == record.phase;
        !before.record.as_ref().is_some_and(same)
    })?;
    Some(Notice::AuthorityChanged {
        epoch: record.epoch,
        phase: record.phase,
        cause: record.cause,
        seat: record.seat.clone(),
        proof: record.proof.clone(),
    })
}
