//! Commands, carried out. In: a chain. Out: writes, operations, requests, answers. Must not: wait for any of them.

use super::{Actor, Stopping, duration};
use crate::chain::{Chain, Token};
use crate::event::{Outside, PushAnswer, VouchAnswer};
use crate::lane::Operation;
use crate::outward::{LONGEST_CALL, fresh_nonce};
use crate::store::Write;
use crate::tell::VERSION;
use crate::{clock, lock};
use bloodraven_brain::fence::{Command, Lane, Mysqld, ReplyId};
use bloodraven_brain::message::{Ack, Question, StartId};
use bloodraven_brain::record::View;
use bloodraven_brain::time::{Boot, Millis};
use bloodraven_telemetry::log::Level;
use bloodraven_wire::message::{Details, Variables};
use bloodraven_wire::outstanding::Asked;
use bloodraven_wire::{GroupUid, QuestionMessage};
use tokio::sync::oneshot;
use tokio::time::Instant;

/// How many requests to others may be under way. A tick makes two for each site and one for the operator, and none lives
/// longer than [`LONGEST_CALL`]; what comes on top is not asked, and counts as unanswered.
const MOST_TASKS: usize = 256;

/// Who waits for an answer of the brain.
#[derive(Debug)]
pub(super) enum ReplyTo {
    /// Somebody who pushed; whether it may be asked something in return.
    Pusher { answer: oneshot::Sender<PushAnswer>, is_operator: bool },
    /// Somebody who asked for a vouch.
    Asker(oneshot::Sender<VouchAnswer>),
}

impl ReplyTo {
    /// Whether nobody waits any more.
    pub(super) fn is_gone(&self) -> bool {
        match self {
            Self::Pusher { answer, .. } => answer.is_closed(),
            Self::Asker(answer) => answer.is_closed(),
        }
    }
}

impl Actor {
    /// Does what was commanded, in order, as far as nothing has to be waited for.
    pub(super) fn carry_out(&mut self, mut chain: Chain) {
        while let Some((command, token)) = chain.next() {
            match command {
                Command::WriteMarker(marker) => {
                    if let Some(write) = self.parts.writer.begin(Write::Marker(Box::new(marker))) {
                        return self.chains.wait_for(write, chain, None);
                    }
                    // Not even begun: what was to follow upon it is not done.
                    self.lane_failed(chain.token());
                    chain = chain.without_operations();
                }
                Command::WriteNote { note, within } => {
                    let patience = Instant::now() + duration(within);
                    if let Some(write) = self.parts.writer.begin(Write::Note(note)) {
                        return self.chains.wait_for(write, chain, Some(patience));
                    }
                }
                other => self.command(other, token),
            }
        }
    }

    fn command(&mut self, command: Command, token: Option<Token>) {
        if let Some(token) = token {
            return self.operate(&command, token);
        }
        match command {
            Command::Store(view) => self.store(view),
            Command::WriteConflict(epoch) => drop(self.parts.writer.begin(Write::Conflict(epoch))),
            Command::PushToPeers(view) => self.push(&view),
            Command::AskOperator(question) => self.ask_operator(question),
            Command::AskPeer { voter, question } => self.ask_peer(&voter.site, question),
            Command::Acknowledge { reply, ack, question, relayed } => self.acknowledge(reply, ack, question, relayed),
            Command::Refuse { reply, conflict } => self.refuse(reply, conflict),
            Command::Answer { reply, vouch } => {
                if let Some(ReplyTo::Asker(answer)) = self.replies.remove(&reply) {
                    let highest_epoch = self.parts.brain.heard.as_ref().map_or(0, |view| view.epoch);
                    let _ = answer.send(VouchAnswer { vouch, highest_epoch, details: self.details(clock::boot()) });
                }
            }
            Command::AskKeeper => self.parts.keeper.ask_status(self.told_keeper),
            Command::KillAppSessions => self.parts.lane.clear_sessions(&mut self.tasks),
            Command::RenewPermit(permit) => {
                self.told_keeper += 1;
                self.parts.keeper.renew(permit);
            }
            Command::WithdrawPermit(start) => {
                self.told_keeper += 1;
                self.parts.keeper.fenced(start);
            }
            // The lane's have a token, the other two are dealt with above.
            Command::WriteMarker(_)
            | Command::WriteNote { .. }
            | Command::ConnectOpener { .. }
            | Command::AskPermit(_)
            | Command::Open { .. }
            | Command::EndOpeners { .. }
            | Command::EndFences { .. }
            | Command::Fence { .. }
            | Command::Read { .. }
            | Command::Kill(_) => {}
        }
    }

    /// Begins an operation of the lane, if it is still wanted. While mysqld is being stopped none opens.
    fn operate(&mut self, command: &Command, token: Token) {
        if !self.chains.wants(token) {
            return;
        }
        let brain = &self.parts.brain;
        let start = match (&brain.lane, brain.mysqld) {
            (Lane::Opening { start, .. } | Lane::Fencing { start, .. }, _) => *start,
            (_, Mysqld::Up(start)) => start,
            _ => StartId(0),
        };
        let lease = brain.deadline().unwrap_or(Boot(0));
        let operation = match *command {
            Command::ConnectOpener { .. } | Command::AskPermit(_) | Command::Open { .. }
                if self.stopping != Stopping::No =>
            {
                return self.lane_failed(Some(token));
            }
            Command::ConnectOpener { within } => Operation::Connect { start, within },
            Command::AskPermit(permit) => Operation::Permit(permit),
            Command::Open { within } => Operation::Open { lease, within },
            Command::EndOpeners { within } => Operation::EndOpeners { start, within },
            Command::EndFences { within } => Operation::EndFences { start, within },
            Command::Fence { within } => Operation::Fence { within },
            Command::Read { under, start, within } => {
                Operation::Read { start, under, blind: brain.mysqld == Mysqld::Unknown, within }
            }
            Command::Kill(start) => Operation::Kill(start),
            _ => return,
        };
        if matches!(operation, Operation::Permit(_) | Operation::Kill(_)) {
            self.told_keeper += 1;
        }
        self.parts.lane.begin(&mut self.tasks, token, operation);
    }

    /// An operation that was not begun has failed. It is reported like any other, not from within the step that wanted it.
    pub(super) fn lane_failed(&mut self, token: Option<Token>) {
        if let Some(token) = token.filter(|token| self.chains.wants(*token)) {
            self.parts.lane.cancel();
            self.parts.lane.report_failed(&mut self.tasks, token);
        }
    }

    fn store(&mut self, view: View) {
        let epoch = view.epoch;
        let observed_at = if self.observed.0 == epoch { self.observed.1.clone() } else { clock::wall().to_string() };
        if self.parts.writer.begin(Write::View(Box::new(view), observed_at)).is_none() {
            self.parts.teller.prose(Level::Error, "the disk hangs: a view is not stored", None);
            self.not_stored.push(epoch);
        }
    }

    /// Pushes to every peer, once. A push of an older view to the same peer ends.
    fn push(&mut self, view: &View) {
        let until = Instant::now() + LONGEST_CALL;
        for (site, address) in &self.parts.config.peers {
            let (outward, address) = (self.parts.outward.clone(), address.clone());
            let push = outward.push(address, view.clone(), self.observed.1.clone(), until);
            if let Some(older) = self.pushes.insert(site.clone(), self.tasks.spawn(push)) {
                older.abort();
            }
        }
    }

    /// Asks the operator, and in the same round every peer for its view.
    fn ask_operator(&mut self, question: Option<Question>) {
        let until = self.call_until();
        let epoch = self.parts.brain.heard.as_ref().map_or(0, |view| view.epoch);
        let sent = self.sent(question.as_ref());
        let outward = self.parts.outward.clone();
        self.begin(outward.ask_operator(question, epoch, sent, until));
        let peers: Vec<String> = self.parts.config.peers.values().cloned().collect();
        for address in peers {
            let outward = self.parts.outward.clone();
            self.begin(outward.ask_view(address, until));
        }
    }

    fn ask_peer(&mut self, site: &bloodraven_brain::name::Site, question: Question) {
        let (until, sent, id) = (self.call_until(), self.sent(Some(&question)), question.id);
        let address = self.parts.config.peers.get(site).cloned();
        let begun = match address {
            Some(address) => {
                let outward = self.parts.outward.clone();
                self.begin(outward.ask_peer(address, question, sent, until))
            }
            None => false,
        };
        if !begun {
            self.unanswered.push(id);
        }
    }

    /// When the brain made that question: what its answer is worth counts from there.
    fn sent(&self, question: Option<&Question>) -> Boot {
        let asked = question.and_then(|question| self.parts.brain.asked.get(&question.id));
        asked.map_or_else(clock::boot, |asked| asked.sent)
    }

    /// A tick takes at most half of its interval, the ends of its calls included.
    fn call_until(&self) -> Instant {
        let half = self.interval() / 2;
        Instant::now() + LONGEST_CALL.min(half * 7 / 8)
    }

    /// Begins a call, unless too many are under way; a tick lasts as long as its calls.
    fn begin(&mut self, call: impl Future<Output = ()> + Send + 'static) -> bool {
        if self.tasks.len() >= MOST_TASKS {
            return false;
        }
        let tick = self.tick.clone();
        self.tasks.spawn(async move {
            call.await;
            drop(tick);
        });
        true
    }

    fn acknowledge(&mut self, reply: ReplyId, ack: Box<Ack>, question: Option<Question>, relayed: Vec<(Ack, Millis)>) {
        let Some(ReplyTo::Pusher { answer, is_operator }) = self.replies.remove(&reply) else { return };
        let details = self.details(clock::boot());
        // A peer grants nothing, and what it wants to know of others it asks them.
        let question = question.filter(|_| is_operator).and_then(|question| self.riding(question)).map(Box::new);
        let relayed = if is_operator { relayed } else { Vec::new() };
        let _ = answer.send(PushAnswer::Ack { ack, details, question, relayed });
    }

    /// A question that rides on an acknowledgement: its answer comes as a push, and is known by its nonce.
    fn riding(&self, question: Question) -> Option<QuestionMessage> {
        let (t_send, nonce) = (self.sent(Some(&question)), fresh_nonce().ok()?);
        let lease = self.parts.brain.heard.as_ref().map(|view| view.settings.lease_timeout)?;
        let kept = lock(&self.parts.outstanding).ask(nonce, Asked { id: question.id, t_send }, lease);
        let group = GroupUid::new(&self.parts.config.group_uid);
        kept.then_some(QuestionMessage { group, nonce, question, t_send })
    }

    fn refuse(&mut self, reply: ReplyId, conflict: bool) {
        if let Some(ReplyTo::Pusher { answer, .. }) = self.replies.remove(&reply) {
            let _ = answer.send(if conflict { PushAnswer::Conflict } else { PushAnswer::NotStored });
        }
    }

    /// What an acknowledgement says for people.
    pub(super) fn details(&self, now: Boot) -> Details {
        let brain = &self.parts.brain;
        let read = brain.read.as_ref().filter(|_| matches!(brain.mysqld, Mysqld::Up(_)));
        let variables = read.map(|read| Variables { read_only: read.read_only, super_read_only: read.super_read_only });
        let lease_remaining = brain.deadline().filter(|_| brain.named()).map(|deadline| deadline.since(now));
        Details { variables, lease_remaining, version: Some(VERSION.to_owned()), volume: self.parts.volume.last() }
    }

    /// mysqld is about to be stopped: an opening under way fails (and is followed by the ladder), else the server is
    /// closed, whoever may write.
    pub(super) fn stop_server(&mut self) {
        if self.stopping != Stopping::No {
            return;
        }
        self.stopping = Stopping::Closing;
        self.parts.teller.prose(Level::Warn, "the keeper stops mysqld: it is fenced first", None);
        if self.parts.brain.lane.may_open() {
            let under_way = self.chains.under_way();
            self.lane_failed(under_way);
        }
        let (lane, inbox) = (&self.parts.lane, self.parts.outward.inbox());
        let attempts = [lane.close_for_the_end(), lane.close_for_the_end()];
        self.tasks.spawn(async move {
            for closed in attempts {
                if closed.await {
                    let _ = inbox.send(Outside::ClosedForTheEnd).await;
                    return;
                }
            }
        });
    }

    /// Tells the keeper, once the brain has read for itself that the server is closed.
    pub(super) fn tell_closed_for_the_end(&mut self) {
        let brain = &self.parts.brain;
        let closed = brain.read.as_ref().filter(|read| read.closed() && !brain.lane.may_open());
        if let (Stopping::Closed, Some(read)) = (self.stopping, closed) {
            self.parts.keeper.fenced(read.start);
            self.stopping = Stopping::Told;
        }
    }
}
