//! Fences of an earlier life: a fencing statement outlives the sidecar that sent it, and lands when whatever held it up is
//! over, perhaps after the server was opened again. Nobody could tell it from a fence by hand then.
//!
//! In: the state of a sidecar that has just met its server. Out: the command that ends such sessions and sees them gone;
//! nothing is opened before that. Must not: end a fence that a ladder waits for, lift one, or hold a ladder up.

use super::{Budget, Command, Lane, LaneResult, Mysqld, Sidecar, TIMER};
use crate::rule::{Rule, holds, off};
use crate::time::Boot;

impl Sidecar {
    /// Ends them as soon as the lane is free. A server that started in this life has none.
    pub(super) fn end_stray_fences(&mut self, now: Boot, out: &mut Vec<Command>) {
        let (true, Lane::Idle, Mysqld::Up(_)) = (self.stray_fences, &self.lane, self.mysqld) else { return };
        if now >= self.retry_at && !off(Rule::StrayFencesEnd) {
            self.lane = Lane::Clearing;
            out.push(Command::EndFences { within: Budget::OPENERS });
        }
    }

    pub(super) fn clearing(&mut self, now: Boot, result: &LaneResult) {
        self.lane = Lane::Idle;
        if *result == LaneResult::FencesGone {
            self.stray_fences = false;
            // A note that no fence came of would pass the next one by hand for ours.
            self.read_owed |= self.disk.note.is_some();
        } else {
            self.retry_at = now + TIMER;
        }
    }

    /// Whether no fence of an earlier life can close what is opened now.
    pub(super) fn stays_open(&self) -> bool {
        holds(Rule::StrayFencesEnd, !self.stray_fences)
    }
}
