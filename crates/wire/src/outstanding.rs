//! Which questions wait for an answer.
//!
//! In: nonces with the question each one carries, and the nonces of answers. Out: the question that an answer is for, once.
//! Must not: outlive the process that asked, grow without bound, or know a question for longer than a lease.

use crate::nonce::Nonce;
use bloodraven_brain::message::QuestionId;
use bloodraven_brain::time::{Boot, Millis};
use std::collections::VecDeque;

/// The most questions that are remembered; of more, the oldest is forgotten, and its answer counts for nothing. A tick
/// asks each site and the operator, and who does not answer in 2 s is given up, so a few dozen are outstanding at a time.
pub const MAX_OUTSTANDING: usize = 1024;

/// The questions of this life that have no answer yet. A new one knows none: answers to an earlier life are nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outstanding {
    /// In the order in which they were asked.
    waiting: VecDeque<Waiting>,
}

/// What an answer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The question, as the brain knows it.
    pub id: QuestionId,
    /// When it was sent: what the answer is worth counts from here.
    pub t_send: Boot,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Waiting {
    nonce: Nonce,
    asked: Asked,
}

impl Outstanding {
    /// Remembers a question that is about to be sent. `false`: that nonce is in use, do not send; randomness has failed.
    #[must_use]
    pub fn ask(&mut self, nonce: Nonce, asked: Asked, lease_timeout: Millis) -> bool {
        self.forget(asked.t_send, lease_timeout);
        if self.waiting.iter().any(|waiting| waiting.nonce == nonce) {
            return false;
        }
        if self.waiting.len() >= MAX_OUTSTANDING {
            self.waiting.pop_front();
        }
        self.waiting.push_back(Waiting { nonce, asked });
        true
    }

    /// The question that an answer with this nonce is for. It is forgotten with this: a second answer gets none, nor does
    /// one that comes a lease after the question was sent.
    pub fn take(&mut self, nonce: Nonce, now: Boot, lease_timeout: Millis) -> Option<Asked> {
        self.forget(now, lease_timeout);
        let at = self.waiting.iter().position(|waiting| waiting.nonce == nonce)?;
        self.waiting.remove(at).map(|waiting| waiting.asked)
    }

    /// Forgets a question that ended without an answer.
    pub fn give_up(&mut self, id: QuestionId) {
        self.waiting.retain(|waiting| waiting.asked.id != id);
    }

    /// Forgets what is a lease old.
    pub fn forget(&mut self, now: Boot, lease_timeout: Millis) {
        self.waiting.retain(|waiting| now < waiting.asked.t_send + lease_timeout);
    }

    /// How many questions wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Millis = Millis(20_000);

    fn nonce(number: u128) -> Nonce {
        Nonce::new(number.to_be_bytes())
    }

    fn asked(id: u64, t_send: u64) -> Asked {
        Asked { id: QuestionId(id), t_send: Boot(t_send) }
    }

    /// Question 1 is sent at 1000; at `now` an answer with `answer` comes.
    fn check(answer: Nonce, now: u64, expect: Option<Asked>) {
        let mut outstanding = Outstanding::default();
        assert!(outstanding.ask(nonce(1), asked(1, 1000), LEASE));
        assert_eq!(outstanding.take(answer, Boot(now), LEASE), expect, "{answer} at {now}");
    }

    #[test]
    fn an_answer_counts_for_its_own_question_within_a_lease() {
        check(nonce(1), 1000, Some(asked(1, 1000)));
        check(nonce(1), 20_999, Some(asked(1, 1000)));
        check(nonce(1), 21_000, None);
        check(nonce(2), 1001, None);
    }

    #[test]
    fn a_second_answer_counts_for_nothing() {
        let mut outstanding = Outstanding::default();
        assert!(outstanding.ask(nonce(1), asked(1, 0), LEASE));
        assert!(outstanding.take(nonce(1), Boot(5), LEASE).is_some());
        assert_eq!(outstanding.take(nonce(1), Boot(5), LEASE), None);
        assert!(outstanding.is_empty());
    }

    #[test]
    fn a_restarted_asker_knows_no_question() {
        assert_eq!(Outstanding::default().take(nonce(1), Boot(5), LEASE), None);
    }

    #[test]
    fn a_question_given_up_has_no_answer() {
        let mut outstanding = Outstanding::default();
        assert!(outstanding.ask(nonce(1), asked(1, 0), LEASE));
        assert!(outstanding.ask(nonce(2), asked(2, 0), LEASE));
        outstanding.give_up(QuestionId(1));
        assert_eq!(outstanding.take(nonce(1), Boot(5), LEASE), None);
        assert_eq!(outstanding.take(nonce(2), Boot(5), LEASE), Some(asked(2, 0)));
    }

    #[test]
    fn a_shorter_lease_forgets_sooner() {
        let mut outstanding = Outstanding::default();
        assert!(outstanding.ask(nonce(1), asked(1, 0), LEASE));
        assert_eq!(outstanding.take(nonce(1), Boot(6000), Millis(6000)), None);
    }

    #[test]
    fn a_nonce_in_use_is_not_used_again() {
        let mut outstanding = Outstanding::default();
        assert!(outstanding.ask(nonce(1), asked(1, 0), LEASE));
        assert!(!outstanding.ask(nonce(1), asked(2, 1), LEASE));
        assert_eq!(outstanding.take(nonce(1), Boot(5), LEASE), Some(asked(1, 0)));
    }

    /// K-23: questions without an answer are bounded.
    #[test]
    fn of_too_many_the_oldest_is_forgotten() {
        let mut outstanding = Outstanding::default();
        for number in 0..=MAX_OUTSTANDING as u64 {
            assert!(outstanding.ask(nonce(u128::from(number)), asked(number, number), LEASE));
        }
        assert_eq!(outstanding.len(), MAX_OUTSTANDING);
        assert_eq!(outstanding.take(nonce(0), Boot(2000), LEASE), None);
        assert_eq!(outstanding.take(nonce(1), Boot(2000), LEASE), Some(asked(1, 1)));
    }
}
