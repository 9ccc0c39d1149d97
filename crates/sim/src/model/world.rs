//! The state of the model: nodes, the store, leaders, messages in flight.

use super::Action;
use bloodraven_brain::authority::Evidence;
use bloodraven_brain::fence::{Command, Disk, Input, Permit, ReplyId, Sidecar};
use bloodraven_brain::message::{Ack, Grant, Question, StartId, Vouch};
use bloodraven_brain::name::{Instance, Member, Site};
use bloodraven_brain::record::{Cause, Epoch, Phase, Record, Settings, View, VoterSet};
use bloodraven_brain::time::{Boot, Millis, Wall};
use std::collections::BTreeMap;

/// One step of model time. Chosen so that the margin of a lease of two steps is one step (see [`Settings::margin`]).
pub(super) const STEP: Millis = Millis(3062);

/// The present moment. Time passes by shifting everything else into the past.
pub(super) const NOW: Boot = Boot(3062 * 100);

/// Further back than anything reacts to.
pub(super) const LONG_AGO: Boot = Boot(3062 * 97);

/// How far the search goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bounds {
    /// How many sites.
    pub sites: usize,
    /// Steps of time that a lease lasts. With 1 no answer outlives the step it was given in: much smaller, and blind to
    /// late answers.
    pub lease: u64,
    /// `minPeers`.
    pub min_peers: u32,
    /// The highest epoch that the leader may reach.
    pub epochs: Epoch,
    /// Leader changes, with or without a record write of the old leader in flight.
    pub leader_changes: u8,
    /// Sidecar crashes.
    pub sidecar_crashes: u8,
    /// mysqld crashes.
    pub mysqld_crashes: u8,
    /// Failing steps of a lane, outcome unknown.
    pub lane_failures: u8,
    /// Voter changes.
    pub voter_changes: u8,
    /// Whether questions, acknowledgements and the keeper's word may be late, too. Answers always may.
    pub slow_mail: bool,
    /// What is taken out of the world, to show that the search would notice.
    pub without: Option<Without>,
}

/// A part of the protocol that the world around the brain provides, and that a search can do without.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Without {
    /// The keeper never kills a server whose permit has run out.
    DeadMan,
    /// mysqld comes up open.
    FencedBoot,
    /// Ending the opener's sessions ends nothing.
    EndOfOpeners,
}

/// The whole state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    /// One node for each instance.
    pub nodes: Vec<Node>,
    /// What the API server holds.
    pub record: Record,
    /// Every view ever persisted that a late message may still bring.
    pub views: Vec<View>,
    /// The leader, with the record as it last read or wrote it.
    pub leader: Leader,
    /// A record write of a dead leader; it lands if the record has not changed since.
    pub late_write: Option<Record>,
    /// Messages in flight.
    pub messages: BTreeMap<Channel, Message>,
    /// What is left of the faults.
    pub left: Bounds,
}

/// A leader.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Leader {
    /// What it believes to be persisted.
    pub record: Record,
    /// What it has heard.
    pub evidence: Evidence,
}

/// One instance: keeper, mysqld and sidecar.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    /// Who it is.
    pub me: Member,
    /// The sidecar, unless it is down.
    pub sidecar: Option<Sidecar>,
    /// Its disk.
    pub disk: Disk,
    /// mysqld.
    pub mysqld: Server,
    /// The keeper's permit.
    pub permit: Option<Permit>,
    /// The lane operation that the sidecar waits for.
    pub lane: Option<Command>,
}

/// mysqld, the ground truth.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own, and all combinations occur")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Server {
    /// Which start.
    pub start: u64,
    /// Whether it runs.
    pub running: bool,
    /// `@@global.read_only`.
    pub read_only: bool,
    /// `@@global.super_read_only`.
    pub super_read_only: bool,
    /// An opening statement was sent over a session that nobody has seen gone.
    pub opening_in_flight: bool,
}

/// A message in flight.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Message {
    /// To the leader, or to a voter.
    Question(Question),
    /// The leader's answer.
    Grant(Grant),
    /// A voter's answer.
    Vouch(Vouch),
    /// An acknowledgement for the leader.
    Ack(Ack),
}

/// From whom a message goes to whom, and of which kind it is. Each channel holds one message: a newer one replaces the
/// older, which is thereby lost. No member: the leader.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Channel {
    /// The sender.
    pub from: Option<Member>,
    /// The receiver.
    pub to: Option<Member>,
    /// Whether it is an answer (else a question, or an acknowledgement).
    pub answer: bool,
    /// Whether it is an acknowledgement.
    pub ack: bool,
}

impl Bounds {
    /// Two sites, one move, no faults: what every search begins with.
    pub const ONE_MOVE: Self = Self {
        sites: 2,
        lease: 1,
        min_peers: 1,
        epochs: 3,
        leader_changes: 0,
        sidecar_crashes: 0,
        mysqld_crashes: 0,
        lane_failures: 0,
        voter_changes: 0,
        slow_mail: false,
        without: None,
    };

    /// The same with one fault of each kind.
    pub const FAULTS: Self =
        Self { leader_changes: 1, sidecar_crashes: 1, mysqld_crashes: 1, lane_failures: 1, ..Self::ONE_MOVE };

    /// Whether anything beside mysqld can still go wrong in the middle of a lane.
    fn crashes_here(&self) -> bool {
        self.sidecar_crashes > 0 || self.mysqld_crashes > 0 || self.lane_failures > 0
    }
}

impl Server {
    /// Whether somebody could write. 0/1 and 1/0 count.
    pub fn writable(&self) -> bool {
        self.running && !(self.read_only && self.super_read_only)
    }

    /// A new start: always fenced, unless a search does without.
    pub(super) fn boot(&mut self, fenced: bool) {
        *self = Self {
            start: self.start + 1,
            running: true,
            read_only: fenced,
            super_read_only: fenced,
            opening_in_flight: false,
        };
    }

    /// The end of a start takes its sessions along.
    pub(super) fn end(&mut self) {
        self.running = false;
        self.opening_in_flight = false;
    }
}

impl World {
    /// Site 0 has authority under epoch 1, stored everywhere; nothing is opened yet.
    pub fn new(bounds: Bounds) -> Self {
        let members: Vec<Member> = (0..bounds.sites).map(member).collect();
        let settings = Settings { lease_timeout: STEP.times(bounds.lease), min_peers: bounds.min_peers };
        let record = Record {
            epoch: 1,
            tenure: 1,
            seat: Some(members[0].clone()),
            phase: Phase::Granting,
            voters: members.clone(),
            settings,
            since: Wall(0),
            cause: Cause::Bootstrap,
            proof: None,
            revoked_at: None,
            holder: Some(bloodraven_brain::record::Holder {
                member: members[0].clone(),
                server_uuid: None,
                sets: vec![VoterSet { epoch: 1, voters: members.clone(), settings }],
                sql_fence_sent: false,
            }),
            ended: Vec::new(),
        };
        let disk = Disk { view: Some(record.view()), ..Disk::default() };
        let mysqld =
            Server { start: 1, running: true, read_only: true, super_read_only: true, opening_in_flight: false };
        let node = |me: &Member| Node {
            me: me.clone(),
            sidecar: Some(Sidecar::start(me.clone(), disk.clone(), LONG_AGO)),
            disk: disk.clone(),
            mysqld,
            permit: None,
            lane: None,
        };
        Self {
            nodes: members.iter().map(node).collect(),
            views: vec![record.view()],
            leader: Leader { record: record.clone(), evidence: Evidence::new(LONG_AGO) },
            record,
            late_write: None,
            messages: BTreeMap::new(),
            left: bounds,
        }
    }

    /// The same, a moment later: site 0 is open, everybody has spoken to its keeper, nothing is in flight.
    pub fn opened(bounds: Bounds) -> Self {
        let mut world = Self::new(Bounds { sidecar_crashes: 0, mysqld_crashes: 0, lane_failures: 0, ..bounds });
        for at in 0..world.nodes.len() {
            world = world.after(&Action::KeeperFact(at));
        }
        world = world.after(&Action::Tick(0));
        // Question to the leader, its answer, the opening; everything else stays undelivered.
        for _ in 0..2 {
            let channel = world.messages.keys().find(|channel| channel.from.is_none() || channel.to.is_none()).cloned();
            if let Some(channel) = channel {
                world = world.after(&Action::Deliver(channel));
            }
        }
        world = world.after(&Action::LaneDone(0));
        world.messages.clear();
        world.left = bounds;
        world.after(&Action::Timer(0))
    }

    /// Puts an input to a node's sidecar and carries its commands out, as far as they are instantaneous here.
    pub(super) fn tell(&mut self, at: usize, input: Input) {
        let mut inputs = vec![input];
        // A step stores at most one view and reads at most once or twice, so this ends soon.
        while let Some(input) = inputs.pop() {
            let Some(sidecar) = &mut self.nodes[at].sidecar else { return };
            for command in sidecar.step(NOW, input) {
                inputs.extend(self.perform(at, command));
            }
        }
    }

    fn perform(&mut self, at: usize, command: Command) -> Option<Input> {
        let node = &mut self.nodes[at];
        match command {
            Command::Store(view) => {
                let epoch = view.epoch;
                node.disk.view = Some(view);
                return Some(Input::Stored(epoch));
            }
            Command::WriteMarker(marker) => node.disk.marker = Some(marker),
            Command::WriteNote { note, .. } => node.disk.note = note,
            Command::WriteConflict(epoch) => node.disk.conflict = Some(epoch),
            Command::AskOperator(Some(question)) => self.send(None, Message::Question(question)),
            Command::AskPeer { voter, question } => self.send(Some(voter), Message::Question(question)),
            Command::Acknowledge { ack, question, .. } => {
                self.send(None, Message::Ack(*ack));
                if let Some(question) = question {
                    self.send(None, Message::Question(question));
                }
            }
            Command::Answer { vouch, .. } => self.send(Some(vouch.about.clone()), Message::Vouch(vouch)),
            Command::RenewPermit(permit) => {
                if let Some(held) = &mut node.permit
                    && held.start == permit.start
                {
                    *held = permit;
                }
            }
            Command::WithdrawPermit(start) => node.permit = node.permit.filter(|permit| permit.start != start),
            Command::Open { .. } => {
                node.mysqld.opening_in_flight = true;
                node.lane = Some(command);
            }
            Command::Fence { .. } | Command::Kill(_) => node.lane = Some(command),
            Command::AskPermit(_) | Command::EndOpeners { .. } if self.left.crashes_here() => {
                node.lane = Some(command);
            }
            // Readings and connections change nothing, and without crashes nothing comes between: they succeed in the
            // same instant, unless mysqld is gone.
            Command::ConnectOpener { .. }
            | Command::Read { .. }
            | Command::AskPermit(_)
            | Command::EndOpeners { .. } => {
                node.lane = Some(command);
                return Some(Input::Lane(self.lane_result(at)));
            }
            // Views travel by `World::views`, keeper facts by an action of their own; sessions do not matter here.
            Command::PushToPeers(_)
            | Command::AskOperator(None)
            | Command::AskKeeper
            | Command::KillAppSessions
            | Command::Refuse { .. } => {}
        }
        None
    }

    /// Puts a message on its way.
    pub(super) fn send(&mut self, to: Option<Member>, message: Message) {
        let (from, answer, ack) = match &message {
            Message::Question(question) => (Some(question.from.clone()), false, false),
            Message::Grant(_) => (None, true, false),
            Message::Vouch(vouch) => (Some(vouch.from.clone()), true, false),
            Message::Ack(ack) => (Some(ack.from.clone()), false, true),
        };
        let channel = Channel { from, to, answer, ack };
        if let Message::Question(_) = message {
            // One question to each at a time: what was still on its way back is lost.
            let back = Channel { from: channel.to.clone(), to: channel.from.clone(), answer: true, ack: false };
            self.messages.remove(&back);
        }
        self.messages.insert(channel, message);
    }

    /// A reply id for a push; nobody looks at it here.
    pub(super) fn reply() -> ReplyId {
        ReplyId(0)
    }
}

/// The instance at that site.
pub(super) fn member(site: usize) -> Member {
    let name = ["iad", "pdx", "fra", "syd", "gru"].get(site).copied().unwrap_or("zzz");
    Member { site: Site::new(name), instance: Instance::new(&format!("pod-{name}"), "s1") }
}

/// The server's start as the brain names it.
pub(super) fn start_id(server: &Server) -> StartId {
    StartId(server.start)
}
