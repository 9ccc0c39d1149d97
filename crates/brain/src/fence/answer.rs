//! What others are told: vouches and acknowledgements.

use super::{Command, Lane, Mysqld, Note, OwedVouch, Sidecar};
use crate::fence::input::ReplyId;
use crate::message::{Ack, FencedBy, Question, Vouch};
use crate::name::Site;
use crate::rule::{Rule, holds, off};
use crate::time::{Boot, Millis};
use std::collections::BTreeMap;

/// How long a push waits for the fence before it is acknowledged with what is known.
const REPLY_WITHIN: Millis = Millis(1500);

impl Sidecar {
    /// Vouches only for the epoch stored here, only for the instance that it names, only if nothing newer is known,
    /// and only under a view that lists this very instance: one that lost its memory must not vouch for what it had
    /// helped to revoke.
    ///
    /// Before a re-opening the asker wants to know what this server has executed by now, so the answer waits for a
    /// reading begun after the question came: an older one lacks what the asker itself wrote last, and may have lost.
    pub(super) fn asked_to_vouch(&mut self, now: Boot, question: Question, reply: ReplyId, out: &mut Vec<Command>) {
        if question.open && matches!(self.mysqld, Mysqld::Up(_)) {
            let readings = if self.lane == Lane::Reading { 2 } else { 1 };
            self.vouches_owed.insert(reply, OwedVouch { question, came: now, readings });
            self.read_back(out);
        } else {
            self.vouch(now, &question, reply, out);
        }
    }

    /// Answers the questions whose reading has ended; late, or without a server, with what was read before.
    pub(super) fn answer_questions(&mut self, now: Boot, out: &mut Vec<Command>) {
        let up = matches!(self.mysqld, Mysqld::Up(_));
        let owed = std::mem::take(&mut self.vouches_owed);
        for (reply, owed) in owed {
            if up && owed.readings > 0 && now < owed.came + REPLY_WITHIN {
                self.vouches_owed.insert(reply, owed);
            } else {
                self.vouch(now, &owed.question, reply, out);
            }
        }
    }

    fn may_vouch(&self, question: &Question) -> bool {
        let (Some(heard), Some(disk)) = (&self.heard, &self.disk.view) else { return false };
        holds(Rule::VouchesForStored, disk.epoch == question.epoch)
            && holds(Rule::VouchesIfNothingNewer, heard.epoch == question.epoch)
            && holds(Rule::VouchesWhenListed, heard.lists(&self.me))
            && holds(Rule::VouchesForNamed, heard.names(&question.from))
            && holds(Rule::NoVouchUnderDispute, self.disk.conflict != Some(question.epoch))
            && holds(Rule::NoVouchForOneself, question.from != self.me)
    }

    fn vouch(&mut self, now: Boot, question: &Question, reply: ReplyId, out: &mut Vec<Command>) {
        let ok = self.may_vouch(question);
        if ok && !off(Rule::VouchIsRemembered) {
            self.vouch_given.insert(question.from.site.clone(), now);
        }
        let gtid = self.read.as_ref().filter(|_| question.open).map(|read| read.gtid.clone());
        let (epoch, from, about) = (question.epoch, self.me.clone(), question.from.clone());
        let ack = Box::new(self.ack(now));
        out.push(Command::Answer { reply, vouch: Vouch { id: question.id, epoch, from, about, ok, gtid, ack } });
    }

    /// Acknowledges the pushes whose fence state is known, and at the latest when their time is up.
    pub(super) fn answer_pushes(&mut self, now: Boot, out: &mut Vec<Command>) {
        if self.replies.is_empty() {
            return;
        }
        let stored = self.heard.as_ref().is_some_and(|view| self.is_stored(view.epoch));
        let stored = holds(Rule::StoredBeforeTold, stored);
        // An opening that is under way is waited for, so that the leader reads back an open server at once.
        let settled = self.lane != Lane::Reading && !self.lane.may_open() && !self.read_owed;
        let known = stored && (self.fenced() || self.allowed(now)) && settled;
        let due: Vec<ReplyId> = self
            .replies
            .iter()
            .filter(|(_, came)| known || now >= **came + REPLY_WITHIN)
            .map(|(reply, _)| *reply)
            .collect();
        for reply in due {
            self.replies.remove(&reply);
            if !stored {
                out.push(Command::Refuse { reply, conflict: false });
                continue;
            }
            let question = (self.named() && self.fenced()).then(|| self.new_question(now, None));
            let handed_on = self.peer_acks.values().filter(|_| !off(Rule::AcksAreHandedOn));
            let relayed = handed_on.map(|(came, ack)| (ack.clone(), now.since(*came))).collect();
            out.push(Command::Acknowledge { reply, ack: Box::new(self.ack(now)), question, relayed });
        }
    }

    /// Keeps a peer's acknowledgement for the leader, who may not reach that peer itself. Of one peer the newest, but
    /// never one of a lower epoch.
    pub(super) fn keep_ack(&mut self, now: Boot, ack: Ack) {
        let newest = self.peer_acks.get(&ack.from.site).and_then(|(_, kept)| kept.epoch);
        if ack.epoch >= newest {
            self.peer_acks.insert(ack.from.site.clone(), (now, ack));
        }
    }

    /// What this sidecar says of itself at this moment.
    pub fn ack(&self, now: Boot) -> Ack {
        let ages = |times: &BTreeMap<Site, Boot>| {
            times.iter().map(|(site, at)| (site.clone(), now.since(*at))).collect::<BTreeMap<_, _>>()
        };
        let told = if off(Rule::StoredBeforeTold) { &self.heard } else { &self.disk.view };
        let epoch = told.as_ref().map(|view| view.epoch);
        let fenced = self.fenced();
        let read = self.read.as_ref();
        Ack {
            from: self.me.clone(),
            epoch,
            fenced,
            gtid: read.filter(|_| fenced).map(|read| read.gtid.clone()),
            fenced_by: fenced.then(|| self.fenced_by.unwrap_or(self.default_reason())),
            opened_by_hand: self.is_open_by_hand() || self.was_opened_by_hand(now),
            conflict: self.disk.conflict.is_some() && self.disk.conflict == epoch,
            mysqld: match self.mysqld {
                Mysqld::Up(start) => Some(start),
                Mysqld::Down | Mysqld::Unknown => None,
            },
            last_vouch: ages(&self.vouch_given),
            last_answer: ages(&self.answer_had),
            uptime: now.since(self.born),
        }
    }

    /// Read open, and nothing here has opened it.
    fn is_open_by_hand(&self) -> bool {
        let open = self.read.as_ref().is_some_and(|read| !read.closed());
        open && self.permit.is_none() && !self.lane.may_open()
    }

    /// A server without authority that was opened by hand is closed within milliseconds. The wish behind it is told for
    /// as long as a lease, into which three pushes of the leader fall, or until authority went somewhere.
    fn was_opened_by_hand(&self, now: Boot) -> bool {
        let lease = self.heard.as_ref().map_or(Millis(0), |view| view.settings.lease_timeout);
        self.opened_by_hand.is_some_and(|(at, tenure)| now < at + lease && tenure == self.tenure())
    }

    /// Remembers a hand at a server that has no authority. At the holder it is no wish: its fence was lifted.
    pub(super) fn note_hand(&mut self, now: Boot) {
        if self.is_open_by_hand() && !self.named() {
            self.opened_by_hand = Some((now, self.tenure()));
        }
    }

    /// Fenced without a ladder of this life: an earlier life did it, it came up so, or somebody else did it after it was
    /// opened.
    pub(super) fn default_reason(&self) -> FencedBy {
        let opened = self.disk.marker.as_ref().and_then(|marker| marker.start);
        let noted = |start| self.disk.note == Some(Note { tenure: self.tenure(), start });
        match self.mysqld {
            Mysqld::Up(start) if noted(start) => FencedBy::Lease,
            Mysqld::Up(start) if opened == Some(start) => FencedBy::Others,
            _ => FencedBy::Boot,
        }
    }
}
