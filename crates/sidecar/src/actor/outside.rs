//! What others say, made into inputs. In: checked words. Out: steps. Must not: believe more than was signed.

use super::hands::ReplyTo;
use super::{Actor, Stopping, asked_here};
use crate::clock;
use crate::event::{Look, OPERATOR, Outside, PushAnswer, contact_name};
use bloodraven_brain::fence::{Input, ReplyId, Source};
use bloodraven_brain::message::Question;
use bloodraven_brain::record::{Epoch, View};
use bloodraven_brain::time::{Boot, Millis};

impl Actor {
    pub(super) fn hear_outside(&mut self, outside: Outside) {
        match outside {
            Outside::Heard { view, observed_at, source } => {
                let known = self.parts.brain.heard.as_ref() == Some(&view);
                self.observe(view.epoch, observed_at);
                // The same view again changes nothing, except that the operator's word ends a doubt.
                if !known || source == Source::Operator {
                    self.step(Input::View { view, source, reply: None });
                }
            }
            Outside::Granted { grant, observed_at } => {
                self.observe(grant.view.epoch, observed_at);
                self.step(Input::Granted { grant, reply: None });
            }
            Outside::Vouched(vouch) => self.step(Input::Vouched(vouch)),
            Outside::NoAnswer(id) => {
                if self.parts.brain.asked.contains_key(&id) {
                    self.step(Input::NoAnswer(id));
                }
            }
            Outside::PeerAck(ack) => self.step(Input::PeerAck(ack)),
            Outside::Push { view, observed_at, source, answer } => {
                let is_operator = source == Source::Operator;
                let reply = self.remember(ReplyTo::Pusher { answer, is_operator });
                self.heard_push(view, observed_at, source, reply);
            }
            Outside::PushedGrant { grant, observed_at, answer } => {
                let reply = self.remember(ReplyTo::Pusher { answer, is_operator: true });
                self.operator_heard = Some(clock::boot());
                self.observe(grant.view.epoch, observed_at);
                self.step(Input::Granted { grant, reply: Some(reply) });
            }
            Outside::Question { question, answer } => {
                let reply = self.remember(ReplyTo::Asker(answer));
                let question = Question { id: asked_here(reply), ..question };
                self.step(Input::AskedToVouch { question, reply });
            }
            Outside::Probe(answer) => {
                let now = clock::boot();
                let ack = Box::new(self.parts.brain.ack(now));
                let (details, question, relayed) = (self.details(now), None, Vec::new());
                let _ = answer.send(PushAnswer::Ack { ack, details, question, relayed });
            }
            Outside::Empty { order, answer } => drop(answer.send(self.parts.brain.may_empty(clock::boot(), &order))),
            Outside::Look(answer) => drop(answer.send(self.look())),
            Outside::OperatorAnswered => self.operator_heard = Some(clock::boot()),
            Outside::ClosedForTheEnd => {
                self.stopping = Stopping::Closed;
                self.step(Input::Tick);
            }
        }
    }

    fn heard_push(&mut self, view: View, observed_at: String, source: Source, reply: ReplyId) {
        if source == Source::Operator {
            self.operator_heard = Some(clock::boot());
        }
        self.observe(view.epoch, observed_at);
        self.step(Input::View { view, source, reply: Some(reply) });
    }

    /// Remembers when the highest view was observed; the words of RFC 3339 in UTC sort like the moments.
    fn observe(&mut self, epoch: Epoch, observed_at: String) {
        if (epoch, &observed_at) > (self.observed.0, &self.observed.1) {
            self.observed = (epoch, observed_at);
        }
    }

    fn remember(&mut self, to: ReplyTo) -> ReplyId {
        let reply = ReplyId(self.next_reply);
        self.next_reply += 1;
        self.replies.insert(reply, to);
        reply
    }

    fn look(&self) -> Look {
        let now = clock::boot();
        let brain = &self.parts.brain;
        let lease = brain.deadline().filter(|_| brain.named());
        let age = |at: &Boot| now.since(*at);
        let mut contact: Vec<(String, Millis)> =
            brain.answer_had.iter().map(|(site, at)| (contact_name(site), age(at))).collect();
        contact.extend(self.operator_heard.iter().map(|at| (OPERATOR.to_owned(), age(at))));
        let ack = brain.ack(now);
        Look {
            me: brain.me.clone(),
            view: brain.disk.view.clone().map(|view| {
                let observed = self.observed.0 == view.epoch;
                (view, if observed { self.observed.1.clone() } else { String::new() })
            }),
            fenced: ack.fenced,
            fenced_by: ack.fenced_by,
            mysqld: brain.mysqld,
            opened: brain.disk.marker.as_ref().map(|marker| (marker.tenure, marker.start)),
            lease_remaining: lease.map_or(Millis(0), |deadline| deadline.since(now)),
            variables: self.details(now).variables,
            contact,
        }
    }
}
