//! Views: the highest epoch wins, it is stored before anyone is told, and a contradiction closes the server.

use super::{Command, Sidecar, Source};
use crate::fence::input::ReplyId;
use crate::record::{Epoch, View};
use crate::rule::{Rule, holds, off};
use crate::time::{Boot, Millis};
use std::cmp::Ordering;

/// How long the operator is asked once more before a peer's word closes the server.
const SECOND_WORD: Millis = Millis(1000);

impl Sidecar {
    pub(super) fn hear(
        &mut self,
        now: Boot,
        view: View,
        source: Source,
        reply: Option<ReplyId>,
        out: &mut Vec<Command>,
    ) {
        let epoch = view.epoch;
        let highest = self.heard.as_ref().map_or(0, |heard| heard.epoch);
        if source == Source::Operator && epoch >= highest {
            self.second_word = None;
        }
        let agreed = match epoch.cmp(&highest) {
            // An old view changes nothing; a pusher learns from the acknowledgement that there is a newer one.
            Ordering::Less if !off(Rule::HighestViewWins) => true,
            Ordering::Equal => self.hear_again(view, out),
            Ordering::Greater | Ordering::Less => {
                self.take_view(now, view, source, out);
                true
            }
        };
        match reply {
            Some(reply) if agreed => drop(self.replies.insert(reply, now)),
            Some(reply) => out.push(Command::Refuse { reply, conflict: true }),
            None => {}
        }
    }

    /// Another copy of the epoch at hand: it may bring a later phase, or contradict.
    /// Returns whether it agrees.
    fn hear_again(&mut self, view: View, out: &mut Vec<Command>) -> bool {
        let Some(heard) = &mut self.heard else { return true };
        let another_phase = off(Rule::PhaseIsNoContradiction) && heard.phase != view.phase;
        let contradicts = heard.conflicts_with(&view) && !off(Rule::ContradictionFences);
        if contradicts || another_phase {
            if self.disk.conflict != Some(view.epoch) {
                self.disk.conflict = Some(view.epoch);
                out.push(Command::WriteConflict(view.epoch));
            }
            return false;
        }
        let later = view.phase > heard.phase;
        let missing = self.disk.view.as_ref().is_none_or(|disk| disk.epoch < view.epoch);
        if later {
            *heard = view;
        }
        // Stored again for a later phase, and once more if the first attempt failed.
        if later || missing {
            out.extend(self.heard.clone().map(Command::Store));
        }
        true
    }

    fn take_view(&mut self, now: Boot, view: View, source: Source, out: &mut Vec<Command>) {
        self.await_second_word(now, &view, source, out);
        let same_tenure =
            self.heard.as_ref().is_some_and(|heard| heard.tenure == view.tenure && heard.seat == view.seat);
        if holds(Rule::LeaseDiesWithTenure, same_tenure && !off(Rule::TenureCarriesOver)) {
            self.vouched.retain(|voter, _| holds(Rule::CarriedByBothSets, view.voters.contains(voter)));
            self.asked.retain(|_, asked| asked.voter.as_ref().is_none_or(|voter| view.voters.contains(voter)));
        } else {
            self.granted = None;
            self.word = self.word.take().filter(|_| off(Rule::WordOfThisTenure));
            self.vouched.clear();
            self.asked.clear();
            self.inherited = None;
            self.round = None;
        }
        self.heard = Some(view.clone());
        out.push(Command::Store(view));
    }

    /// A peer's word that takes authority away: the operator is asked once more. Once only, however many such words come,
    /// and never beyond the lease that ran until now.
    fn await_second_word(&mut self, now: Boot, view: &View, source: Source, out: &mut Vec<Command>) {
        if view.names(&self.me) || source == Source::Operator {
            self.second_word = None;
        } else if self.named() {
            let lease_end = self.deadline().unwrap_or(now);
            let bound = lease_end.min(now + SECOND_WORD);
            self.second_word = Some(if off(Rule::SecondWordIsShort) { Boot(u64::MAX) } else { bound });
            out.push(Command::AskOperator(None));
        }
    }

    pub(super) fn stored(&mut self, now: Boot, epoch: Epoch, out: &mut Vec<Command>) {
        let Some(view) = self.heard.clone().filter(|view| view.epoch == epoch) else { return };
        let newer = self.disk.view.as_ref().is_none_or(|disk| disk.epoch < epoch);
        self.disk.view = Some(view.clone());
        if !newer {
            return;
        }
        if !off(Rule::NewerViewIsPushed) {
            out.push(Command::PushToPeers(view));
        }
        // "Fenced" under this epoch needs a reading begun from here on.
        self.read_back(out);
        self.ask_everyone(now, out);
    }

    pub(super) fn not_stored(&mut self, epoch: Epoch, out: &mut Vec<Command>) {
        if self.heard.as_ref().is_some_and(|view| view.epoch == epoch) {
            let waiting = std::mem::take(&mut self.replies);
            out.extend(waiting.into_keys().map(|reply| Command::Refuse { reply, conflict: false }));
        }
    }

    /// The operator confirmed, or stayed silent for long enough.
    pub(super) fn second_word_over(&self, now: Boot) -> bool {
        self.second_word.is_none_or(|until| now >= until)
    }

    /// A view that came with the operator's answer to a question.
    pub(super) fn hear_from_operator(&mut self, now: Boot, view: View, out: &mut Vec<Command>) {
        self.hear(now, view, Source::Operator, None, out);
    }
}
