//! A played group: its servers, and beside each the real decisions of a sidecar with played hands.
//!
//! In: what reaches a sidecar, statements, faults. Out: what has to leave the process (questions to the operator, answers to
//! it). Must not: wait. Every hand here is done at once: disk, keeper, server, and words between the sidecars of the group.

use crate::clock;
use crate::say::{Answer, Said};
use crate::server::Server;
use bloodraven_brain::fence::{
    Command, Input, KeeperFact, Lane, LaneResult, Permit, ReadBack, ReplyId, Sidecar, Source, TIMER,
};
use bloodraven_brain::message::{Ack, Question, QuestionId, StartId};
use bloodraven_brain::name::{Instance, Member, Site};
use bloodraven_brain::record::Epoch;
use bloodraven_brain::time::{Boot, Millis};
use bloodraven_wire::message::{Details, Variables};
use bloodraven_wire::outstanding::Asked;
use bloodraven_wire::{GroupUid, Keys, Nonce, Outstanding, QuestionMessage};
use std::collections::{BTreeMap, VecDeque};
use tokio::sync::oneshot;
use tokio::time::Instant;

/// A lease for the tick as long as no view tells one; as the real sidecar has it.
const NO_LEASE: Millis = Millis(20_000);

/// How long the brain may owe an answer before time alone makes it give one.
const OWED: Millis = Millis(1500);

/// Inputs that one input may lead to: a step leads to a few, and a group has a few sites.
const MOST_STEPS: usize = 10_000;

/// What an acknowledgement is made of.
pub(crate) struct Acknowledged {
    pub(crate) ack: Box<Ack>,
    pub(crate) details: Details,
    pub(crate) question: Option<QuestionMessage>,
    pub(crate) relayed: Vec<(Ack, Millis)>,
}

/// How a push was answered: none: refused.
pub(crate) type PushAnswer = Option<Acknowledged>;

/// A question to the operator that a site has.
pub(crate) struct ToAsk {
    pub(crate) site: usize,
    pub(crate) question: Option<Question>,
    pub(crate) epoch: Epoch,
    pub(crate) sent: Boot,
}

/// Who waits for an answer of a sidecar.
enum ReplyTo {
    Operator(oneshot::Sender<PushAnswer>),
    Peer(usize),
    Voted(usize, QuestionId),
}

/// What a group's sites have to know about it.
pub(crate) struct Belonging {
    pub(crate) uid: GroupUid,
    pub(crate) keys: Keys,
}

/// See above.
pub(crate) struct Group {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) belonging: Option<Belonging>,
    pub(crate) sites: Vec<Played>,
    pub(crate) accounts: Vec<(String, String)>,
}

/// One site.
pub(crate) struct Played {
    pub(crate) site: Site,
    /// As its replicas call it.
    pub(crate) host: String,
    pub(crate) server: Server,
    pub(crate) sidecar: Option<Box<Sidecar>>,
    /// It stands still, or its machine is off: nothing reaches its sidecar.
    pub(crate) away: bool,
    /// When its server was last opened.
    pub(crate) opened: Option<Instant>,
    permit: Option<Permit>,
    replies: BTreeMap<ReplyId, ReplyTo>,
    next_reply: u64,
    outstanding: Outstanding,
    /// The newest operation of the lane, and whether it has not reported yet.
    lane: (u64, bool),
    ticked: Boot,
}

/// What is still to be told to a sidecar.
enum Told {
    Input(usize, Input),
    Lane(usize, u64, LaneResult),
}

impl Played {
    pub(crate) fn new(site: &str, host: String, server: Server) -> Self {
        Self {
            site: Site::new(site),
            host,
            server,
            sidecar: None,
            away: false,
            opened: None,
            permit: None,
            replies: BTreeMap::new(),
            next_reply: 1,
            outstanding: Outstanding::default(),
            lane: (0, false),
            ticked: Boot(0),
        }
    }

    fn remember(&mut self, to: ReplyTo) -> ReplyId {
        let reply = ReplyId(self.next_reply);
        self.next_reply += 1;
        self.replies.insert(reply, to);
        reply
    }

    fn interval(&self) -> Millis {
        let lease = self.sidecar.as_ref().and_then(|sidecar| sidecar.heard.as_ref());
        let lease = lease.map_or(NO_LEASE, |view| view.settings.lease_timeout);
        Millis(5000.min(lease.0 / 3))
    }

    /// The next moment at which time alone may change something.
    pub(crate) fn next_wake(&self, now: Boot) -> Boot {
        let mut next = self.ticked + self.interval();
        let mut at = |moment: Boot| {
            if moment > now {
                next = next.min(moment);
            }
        };
        if let Some(sidecar) = &self.sidecar {
            sidecar.deadline().into_iter().for_each(&mut at);
            sidecar.second_word.into_iter().for_each(&mut at);
            at(sidecar.retry_at);
            if !matches!(sidecar.lane, Lane::Idle) {
                at(now + TIMER);
            }
            sidecar.replies.values().for_each(|came| at(*came + OWED));
            sidecar.vouches_owed.values().for_each(|owed| at(owed.came + OWED));
        }
        next
    }

    fn fact(&self) -> KeeperFact {
        KeeperFact { running: self.server.start.map(StartId), permit: self.permit }
    }

    fn read_back(&self, under: Option<Epoch>, start: StartId) -> LaneResult {
        if self.server.start != Some(start.0) {
            return LaneResult::Failed;
        }
        let Server { read_only, super_read_only, executed, .. } = &self.server;
        let (read_only, super_read_only, gtid) = (*read_only, *super_read_only, executed.clone());
        LaneResult::Read(ReadBack { start, under, read_only, super_read_only, gtid })
    }

    fn details(&self, now: Boot) -> Details {
        let running = self.server.start.is_some();
        let Server { read_only, super_read_only, .. } = self.server;
        let lease = self.sidecar.as_ref().filter(|sidecar| sidecar.named()).and_then(|sidecar| sidecar.deadline());
        Details {
            variables: running.then_some(Variables { read_only, super_read_only }),
            lease_remaining: lease.map(|deadline| deadline.since(now)),
            // That of the operator, or every group would warn of it.
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            volume: None,
        }
    }
}

impl Group {
    /// Its pod is there: a sidecar begins beside the server.
    pub(crate) fn begin(&mut self, at: usize, pod: &str) -> Vec<ToAsk> {
        let now = clock::boot();
        let played = &mut self.sites[at];
        let me = Member::new(&played.site, &Instance::new(pod, "store"));
        let disk = played.sidecar.take().map(|before| before.disk).unwrap_or_default();
        (played.permit, played.lane) = (None, (0, false));
        played.sidecar = Some(Box::new(Sidecar::start(me, disk, now)));
        self.tick(at)
    }

    /// Its machine was off, and starts again: the same pod and store.
    pub(crate) fn begin_again(&mut self, at: usize) -> Vec<ToAsk> {
        let pod = self.sites[at].sidecar.as_ref().map(|sidecar| sidecar.me.instance.pod.to_string());
        self.sites[at].server.boot();
        pod.map(|pod| self.begin(at, &pod)).unwrap_or_default()
    }

    /// The keeper says that its server came or went.
    pub(crate) fn keeper_speaks(&mut self, at: usize) -> Vec<ToAsk> {
        let played = &mut self.sites[at];
        if played.server.start.is_none() {
            played.permit = None;
        }
        let fact = played.fact();
        self.drive(at, Input::Keeper(fact))
    }

    /// The fencing tick.
    pub(crate) fn tick(&mut self, at: usize) -> Vec<ToAsk> {
        self.sites[at].ticked = clock::boot();
        self.drive(at, Input::Tick)
    }

    /// Time has passed.
    pub(crate) fn wake(&mut self, at: usize) -> Vec<ToAsk> {
        let (now, played) = (clock::boot(), &self.sites[at]);
        if now >= played.ticked + played.interval() { self.tick(at) } else { self.drive(at, Input::Timer) }
    }

    /// The operator pushes something; what it is depends on where the answer goes.
    pub(crate) fn pushed(
        &mut self,
        at: usize,
        what: impl FnOnce(ReplyId) -> Input,
    ) -> (oneshot::Receiver<PushAnswer>, Vec<ToAsk>) {
        let (tell, told) = oneshot::channel();
        let reply = self.sites[at].remember(ReplyTo::Operator(tell));
        (told, self.drive(at, what(reply)))
    }

    /// Who is there?
    pub(crate) fn probed(&self, at: usize) -> PushAnswer {
        let (now, played) = (clock::boot(), &self.sites[at]);
        let ack = Box::new(played.sidecar.as_ref()?.ack(now));
        Some(Acknowledged { ack, details: played.details(now), question: None, relayed: Vec::new() })
    }

    /// Which question a grant answers.
    pub(crate) fn asked(&mut self, at: usize, nonce: Nonce, lease: Millis) -> Option<QuestionId> {
        self.sites[at].outstanding.take(nonce, clock::boot(), lease).map(|asked| asked.id)
    }

    /// A session says something to a server.
    pub(crate) fn say(&mut self, at: usize, connection: u32, text: &str) -> Vec<Answer> {
        let Self { sites, accounts, .. } = self;
        let servers = sites.iter_mut().map(|played| (played.host.as_str(), &mut played.server)).collect();
        Said { servers, at, connection, accounts }.all(text)
    }

    /// One input, and everything that follows from it within the group.
    pub(crate) fn drive(&mut self, at: usize, input: Input) -> Vec<ToAsk> {
        let (mut todo, mut to_ask) = (VecDeque::from([Told::Input(at, input)]), Vec::new());
        for _ in 0..MOST_STEPS {
            let Some(told) = todo.pop_front() else { break };
            let (at, input) = match told {
                Told::Input(at, input) => (at, input),
                Told::Lane(at, token, result) => {
                    if self.sites[at].lane != (token, true) {
                        continue;
                    }
                    self.sites[at].lane.1 = false;
                    (at, Input::Lane(result))
                }
            };
            if self.sites[at].away {
                continue;
            }
            let Some(sidecar) = &mut self.sites[at].sidecar else { continue };
            for command in sidecar.step(clock::boot(), input) {
                self.command(at, command, &mut todo, &mut to_ask);
            }
        }
        to_ask
    }

    fn command(&mut self, at: usize, command: Command, todo: &mut VecDeque<Told>, to_ask: &mut Vec<ToAsk>) {
        let now = clock::boot();
        if let Some(result) = self.operate(at, &command) {
            let lane = &mut self.sites[at].lane;
            *lane = (lane.0 + 1, true);
            return todo.push_back(Told::Lane(at, lane.0, result));
        }
        let mut tell = |at, input| todo.push_back(Told::Input(at, input));
        match command {
            Command::Store(view) => tell(at, Input::Stored(view.epoch)),
            Command::AskKeeper => tell(at, Input::Keeper(self.sites[at].fact())),
            Command::RenewPermit(permit) => self.sites[at].permit = self.sites[at].permit.map(|_| permit),
            Command::WithdrawPermit(_) => self.sites[at].permit = None,
            Command::PushToPeers(view) => {
                for peer in self.peers(at) {
                    let reply = Some(self.sites[peer].remember(ReplyTo::Peer(at)));
                    tell(peer, Input::View { view: view.clone(), source: Source::Peer, reply });
                }
            }
            Command::AskOperator(question) => {
                let sidecar = self.sites[at].sidecar.as_ref();
                let heard = sidecar.and_then(|sidecar| sidecar.heard.clone());
                let asked = question.as_ref().and_then(|question| sidecar?.asked.get(&question.id));
                let sent = asked.map_or(now, |asked| asked.sent);
                let epoch = heard.as_ref().map_or(0, |view| view.epoch);
                to_ask.push(ToAsk { site: at, question, epoch, sent });
                // In the same round every peer is asked for its view.
                for peer in self.peers(at) {
                    let stored = self.sites[peer].sidecar.as_ref().and_then(|peer| peer.disk.view.clone());
                    if let Some(view) = stored.filter(|view| heard.as_ref() != Some(view)) {
                        tell(at, Input::View { view, source: Source::Peer, reply: None });
                    }
                }
            }
            Command::AskPeer { voter, question } => {
                let peer = self.peers(at).into_iter().find(|peer| self.sites[*peer].site == voter.site);
                let Some(peer) = peer else { return tell(at, Input::NoAnswer(question.id)) };
                let reply = self.sites[peer].remember(ReplyTo::Voted(at, question.id));
                tell(peer, Input::AskedToVouch { question: Question { id: QuestionId(reply.0), ..question }, reply });
            }
            Command::Acknowledge { reply, ack, question, relayed } => match self.sites[at].replies.remove(&reply) {
                Some(ReplyTo::Operator(answer)) => {
                    let question = question.and_then(|question| self.riding(at, question));
                    let details = self.sites[at].details(now);
                    // The operator may have given up.
                    let _ = answer.send(Some(Acknowledged { ack, details, question, relayed }));
                }
                Some(ReplyTo::Peer(from)) => tell(from, Input::PeerAck(ack)),
                Some(ReplyTo::Voted(..)) | None => {}
            },
            Command::Refuse { reply, .. } => {
                if let Some(ReplyTo::Operator(answer)) = self.sites[at].replies.remove(&reply) {
                    let _ = answer.send(None);
                }
            }
            Command::Answer { reply, mut vouch } => {
                if let Some(ReplyTo::Voted(from, id)) = self.sites[at].replies.remove(&reply) {
                    vouch.id = id;
                    tell(from, Input::Vouched(vouch));
                }
            }
            // On disk at once, and never lost; applications have no sessions here; and what the lane does was done above.
            Command::WriteMarker(_)
            | Command::WriteNote { .. }
            | Command::WriteConflict(_)
            | Command::KillAppSessions
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

    /// The lane's operations, done at once; none: it is none of them.
    fn operate(&mut self, at: usize, command: &Command) -> Option<LaneResult> {
        let played = &mut self.sites[at];
        let runs = played.server.start.is_some();
        let or_failed = |result| if runs { result } else { LaneResult::Failed };
        Some(match command {
            Command::ConnectOpener { .. } => or_failed(LaneResult::OpenerConnected),
            Command::AskPermit(permit) => {
                played.permit = Some(*permit).filter(|_| runs);
                or_failed(LaneResult::PermitGiven(*permit))
            }
            Command::Open { .. } => {
                if runs {
                    played.server.open();
                    played.opened = Some(Instant::now());
                }
                or_failed(LaneResult::OpenSent)
            }
            Command::EndOpeners { .. } => or_failed(LaneResult::OpenersGone),
            Command::EndFences { .. } => or_failed(LaneResult::FencesGone),
            Command::Fence { .. } => {
                played.server.close();
                or_failed(LaneResult::FenceSet)
            }
            Command::Read { under, start, .. } => played.read_back(*under, *start),
            Command::Kill(start) => {
                played.server.end();
                played.permit = None;
                LaneResult::Killed(*start)
            }
            _ => return None,
        })
    }

    /// Those that answer.
    fn peers(&self, at: usize) -> Vec<usize> {
        let answers = |peer: &usize| *peer != at && !self.sites[*peer].away && self.sites[*peer].sidecar.is_some();
        (0..self.sites.len()).filter(answers).collect()
    }

    /// A question that rides on an acknowledgement: its answer comes as a push, and is known by its nonce.
    fn riding(&mut self, at: usize, question: Question) -> Option<QuestionMessage> {
        let group = self.belonging.as_ref()?.uid.clone();
        let played = &mut self.sites[at];
        let sidecar = played.sidecar.as_ref()?;
        let t_send = sidecar.asked.get(&question.id).map_or_else(clock::boot, |asked| asked.sent);
        let lease = sidecar.heard.as_ref().map(|view| view.settings.lease_timeout)?;
        let nonce = fresh_nonce();
        let kept = played.outstanding.ask(nonce, Asked { id: question.id, t_send }, lease);
        kept.then_some(QuestionMessage { group, nonce, question, t_send })
    }
}

/// A number that nobody can guess.
pub(crate) fn fresh_nonce() -> Nonce {
    let mut bytes = [0; 16];
    // Without randomness the kernel would have stopped everything else, too.
    let _ = getrandom::fill(&mut bytes);
    Nonce::new(bytes)
}
