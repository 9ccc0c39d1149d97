//! The fence of a sidecar whose keeper has not spoken yet: it knows neither whether mysqld runs nor what was permitted.
//!
//! In: the state of such a sidecar, the time, what the lane reports. Out: the SQL part of the ladder, again and again
//! while the server may not be writable. Must not: say fenced, or kill; both need the keeper's word. It is for the one
//! case that a lease does not cover: keeper and sidecar were both away, and only the sidecar came back.

use super::{BlindStep, Budget, Command, Lane, LaneResult, Mysqld, Note, Sidecar, TIMER};
use crate::message::{FencedBy, StartId};
use crate::rule::{Rule, off};
use crate::time::Boot;

impl Sidecar {
    /// Starts the ladder without a start id. The keeper has one timer's time for its first word; then a lease that an
    /// earlier life may have had counts as over, unless somebody has answered for a new one.
    pub(super) fn fence_blindly(&mut self, now: Boot, out: &mut Vec<Command>) {
        let silent = self.mysqld == Mysqld::Unknown && now >= self.born + TIMER && now >= self.retry_at;
        let waits = self.rule() == FencedBy::Mismatch && !self.second_word_over(now);
        if !silent || self.lane != Lane::Idle || self.allowed(now) || waits || off(Rule::BlindFence) {
            return;
        }
        self.lane = Lane::Blind { began: now, step: BlindStep::Looking };
        out.push(self.read_command(self.last_opened(), Budget::READ));
    }

    /// Looks first: a server that somebody else has closed must not pass for one that we have closed.
    pub(super) fn blind(
        &mut self,
        now: Boot,
        began: Boot,
        step: BlindStep,
        result: LaneResult,
        out: &mut Vec<Command>,
    ) {
        let left = (began + Budget::LADDER).since(now);
        let (next, command) = match (step, result) {
            (BlindStep::Looking, LaneResult::Read(read)) => {
                if !read.closed() {
                    self.note_blindly(out);
                }
                (BlindStep::EndingOpeners, Command::EndOpeners { within: Budget::OPENERS.min(left) })
            }
            (BlindStep::EndingOpeners, LaneResult::OpenersGone) => {
                (BlindStep::Setting, Command::Fence { within: Budget::FENCE.min(left) })
            }
            // Set, unknown, or nobody there to be fenced. Until the keeper speaks nothing is certain, so it goes on.
            _ => {
                self.lane = Lane::Idle;
                self.retry_at = now + TIMER;
                return;
            }
        };
        self.lane = Lane::Blind { began, step: next };
        out.push(command);
    }

    /// The note of a fence by the lease names the start that was opened last: if another one runs by now, it came up
    /// fenced and needs no note.
    fn note_blindly(&mut self, out: &mut Vec<Command>) {
        let ours = matches!(self.rule(), FencedBy::Lease | FencedBy::Conflict);
        let note = Some(Note { tenure: self.tenure(), start: self.last_opened() });
        if ours && self.disk.note != note {
            self.disk.note.clone_from(&note);
            out.push(Command::WriteNote { note, within: Budget::NOTE });
        }
    }

    /// The start that the marker names; 0, which no start is called, without one.
    fn last_opened(&self) -> StartId {
        self.disk.marker.as_ref().and_then(|marker| marker.start).unwrap_or(StartId(0))
    }
}
