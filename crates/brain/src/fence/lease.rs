//! The lease: how long the last answers allow writing. Every answer counts from the moment its question was sent.

use super::{Asked, Command, Mysqld, Permit, Sidecar};
use crate::fence::input::ReplyId;
use crate::message::{Grant, Question, QuestionId, Vouch};
use crate::name::Member;
use crate::rule::{Rule, holds, off};
use crate::time::Boot;
use std::collections::BTreeSet;

impl Sidecar {
    /// The moment from which on mysqld may no longer be writable; none: there was never a lease under this tenure.
    ///
    /// The later of the newest grant and the k-th most recent vouch, each with the view's lease; a restarted sidecar
    /// goes on with the deadline of the permit that its earlier life had obtained.
    pub fn deadline(&self) -> Option<Boot> {
        let view = self.heard.as_ref()?;
        let lease = view.settings.lease_timeout;
        let needed = view.settings.vouches_needed(view.voters.len());
        let needed = if off(Rule::KthVouch) { 1 } else { needed };
        let counts = |(voter, _): &(&Member, &Boot)| {
            holds(Rule::NoVouchForOneself, **voter != self.me)
                && holds(Rule::PresentVotersCount, view.voters.contains(voter))
        };
        let mut sent: Vec<Boot> = self.vouched.iter().filter(counts).map(|(_, sent)| *sent).collect();
        sent.sort_unstable_by(|a, b| b.cmp(a));
        let by_vouches = sent.get(needed - 1).map(|sent| *sent + lease);
        let by_grant = self.granted.map(|sent| sent + lease);
        by_grant.max(by_vouches).max(self.inherited)
    }

    /// Puts the question to the leader and, if this instance is named, to every voter.
    pub(super) fn ask_everyone(&mut self, now: Boot, out: &mut Vec<Command>) {
        let question = self.named().then(|| self.new_question(now, None));
        out.push(Command::AskOperator(question));
        if self.named() {
            self.ask_voters(now, out);
        }
    }

    /// Puts the question to every voter; returns the questions.
    pub(super) fn ask_voters(&mut self, now: Boot, out: &mut Vec<Command>) -> BTreeSet<QuestionId> {
        let mut voters = self.heard.as_ref().map(|view| view.voters.clone()).unwrap_or_default();
        voters.retain(|voter| holds(Rule::NoVouchForOneself, *voter != self.me));
        let mut questions = BTreeSet::new();
        for voter in voters {
            let question = self.new_question(now, Some(voter.clone()));
            questions.insert(question.id);
            out.push(Command::AskPeer { voter, question });
        }
        questions
    }

    /// A fresh question about the epoch at hand.
    pub(super) fn new_question(&mut self, now: Boot, voter: Option<Member>) -> Question {
        let id = QuestionId(self.next_question);
        self.next_question += 1;
        let epoch = self.heard.as_ref().map_or(0, |view| view.epoch);
        // Voters are asked for their sets where these are compared: before a re-opening.
        let open = self.fenced() && (voter.is_none() || self.was_opened());
        self.asked.insert(id, Asked { voter, sent: now, epoch });
        Question { id, from: self.me.clone(), epoch, open }
    }

    /// The leader's answer: its view counts like any other; as a grant it counts only for the epoch at hand.
    pub(super) fn take_grant(&mut self, now: Boot, grant: Grant, reply: Option<ReplyId>, out: &mut Vec<Command>) {
        let asked = self.asked.remove(&grant.id).filter(|asked| asked.voter.is_none());
        let epoch = grant.view.epoch;
        self.hear_from_operator(now, grant.view, out);
        if let Some(reply) = reply {
            self.replies.insert(reply, now);
        }
        let unasked = off(Rule::GrantAnswersQuestion).then_some(now);
        let Some(sent) = asked.map(|asked| asked.sent).or(unasked) else { return };
        if grant.to != self.me || !self.named() || !holds(Rule::GrantOfItsEpoch, self.is_stored(epoch)) {
            return;
        }
        let counted = if off(Rule::GrantFromSending) { now } else { sent };
        self.granted = self.granted.max(Some(counted));
        let tenure = self.heard.as_ref().map_or(0, |view| view.tenure);
        if let Some(word) = grant.open {
            self.refresh_marker(tenure, &word, out);
            self.word = Some((tenure, word));
        }
    }

    /// A voter's answer. It speaks for the epoch that was asked about; within a tenure it carries over.
    pub(super) fn take_vouch(&mut self, now: Boot, vouch: Vouch) {
        let Some(asked) = self.asked.remove(&vouch.id) else { return };
        let answers_it = asked.voter.as_ref() == Some(&vouch.from) && vouch.about == self.me;
        let speaks_of_it = asked.epoch == vouch.epoch;
        if !holds(Rule::VouchAnswersQuestion, answers_it) || !holds(Rule::VouchOfItsEpoch, speaks_of_it) {
            return;
        }
        self.answer_had.insert(vouch.from.site.clone(), now);
        self.keep_ack(now, *vouch.ack);
        if let Some(gtid) = vouch.gtid {
            self.others.insert(vouch.from.site.clone(), (now, gtid));
        }
        if vouch.ok && self.named() {
            let counted = if off(Rule::VouchFromSending) { now } else { asked.sent };
            let sent = self.vouched.entry(vouch.from).or_insert(counted);
            *sent = counted.max(*sent);
        }
    }

    pub(super) fn no_answer(&mut self, id: QuestionId) {
        self.asked.remove(&id);
    }

    /// A question older than a lease can bring nothing any more. Bounds the memory, too.
    pub(super) fn forget_old_questions(&mut self, now: Boot) {
        let Some(view) = &self.heard else { return self.asked.clear() };
        let lease = view.settings.lease_timeout;
        self.asked.retain(|_, asked| holds(Rule::OldQuestionsForgotten, now < asked.sent + lease));
    }

    /// Prolongs the keeper's permit with the lease. Never makes one.
    pub(super) fn renew_permit(&mut self, now: Boot, out: &mut Vec<Command>) {
        let (Some(deadline), true) = (self.deadline(), self.allowed(now)) else { return };
        let Some(permit) = self.permit.or_else(|| self.permit_out_of_nothing(deadline)) else { return };
        let epoch = self.disk.view.as_ref().map_or(permit.epoch, |view| view.epoch);
        let nothing_new = deadline <= permit.deadline && epoch == permit.epoch;
        if !holds(Rule::NoRenewalInLadder, !self.lane.fencing()) || nothing_new || off(Rule::RenewedWithLease) {
            return;
        }
        let renewed = Permit { epoch, deadline: deadline.max(permit.deadline), ..permit };
        self.permit = Some(renewed);
        out.push(Command::RenewPermit(renewed));
    }

    /// What a renewal without a permit would ask for. There is no such thing.
    fn permit_out_of_nothing(&self, deadline: Boot) -> Option<Permit> {
        let (Mysqld::Up(start), true) = (self.mysqld, off(Rule::RenewalMakesNone)) else { return None };
        Some(Permit { start, epoch: 0, deadline })
    }
}
