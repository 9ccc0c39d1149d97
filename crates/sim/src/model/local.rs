//! What one node does by itself: the real sidecar's step, with keeper, mysqld and disk carried out around it.
//!
//! In: a node and a stimulus. Out: the node afterwards and what it says to others. Must not: know of other nodes, the
//! leader or the record.

use super::world::{Bounds, Letter, NOW, Node, STEP, Without};
use bloodraven_brain::fence::{
    Command, Disk, Input, KeeperFact, LaneResult, Mysqld, ReadBack, ReplyId, Sidecar, Source,
};
use bloodraven_brain::message::{Ack, Question, StartId, Vouch};
use bloodraven_brain::name::{Instance, Member};
use bloodraven_brain::record::View;
use bloodraven_gtid::GtidSet;

/// What can happen to a node, from inside or outside.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Stimulus {
    /// One step of time; the keeper's dead man strikes.
    Time,
    /// The fencing tick.
    Tick,
    /// The deadline timer.
    Timer,
    /// A view arrives, new or again.
    View(View, Source),
    /// Somebody asks for a vouch.
    Asked(Question),
    /// The answer of that voter arrives; no member: of the leader.
    Deliver(Option<Member>),
    /// The keeper tells how mysqld is.
    KeeperSpeaks,
    /// The pending operation of the lane succeeds.
    LaneDone,
    /// It fails, outcome unknown.
    LaneFails,
    /// An opening statement takes effect, whatever became of its sender; with a fence racing it: 0/1.
    OpeningLands(bool),
    /// The operator's own opening takes effect.
    OperatorOpens,
    /// The keeper gives a sidecar that has died what it asked for, and its statement goes out.
    GhostIsPermitted,
    /// The sidecar dies.
    SidecarDies,
    /// The sidecar starts.
    SidecarStarts,
    /// The sidecar's store is lost; it starts as a new instance.
    StoreIsLost,
    /// mysqld dies.
    MysqldDies,
    /// The keeper starts it again, fenced.
    MysqldStarts,
    /// Everything of it ends, for good.
    Ends,
    /// The operator sends an opening of its own.
    OperatorSendsOpening,
}

impl Stimulus {
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Tick => "tick",
            Self::Timer => "timer",
            Self::View(_, Source::Operator) => "view",
            Self::View(_, Source::Peer) => "view of a peer",
            Self::Asked(_) => "asked",
            Self::Deliver(None) => "grant arrives",
            Self::Deliver(Some(_)) => "vouch arrives",
            Self::KeeperSpeaks => "keeper speaks",
            Self::LaneDone => "lane done",
            Self::LaneFails => "lane fails",
            Self::OpeningLands(_) => "opening lands",
            Self::OperatorOpens | Self::OperatorSendsOpening => "operator opens",
            Self::GhostIsPermitted => "ghost",
            Self::SidecarDies => "sidecar dies",
            Self::SidecarStarts => "sidecar starts",
            Self::StoreIsLost => "store is lost",
            Self::MysqldDies => "mysqld dies",
            Self::MysqldStarts => "mysqld starts",
            Self::Ends => "ends",
        }
    }
}

/// What a node says to others.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Said {
    /// A question to that voter; no member: to the leader.
    Question(Option<Member>, Question),
    /// An acknowledgement to the leader.
    Ack(Ack),
    /// An answer to a question.
    Vouch(Vouch),
}

/// The node after the stimulus, not yet in its canonical form, and what it said.
pub(super) fn after(bounds: &Bounds, node: &Node, stimulus: &Stimulus) -> (Node, Vec<Said>) {
    let mut desk = Desk { bounds, node: node.clone(), said: Vec::new() };
    desk.apply(stimulus);
    (desk.node, desk.said)
}

/// A node at work.
struct Desk<'a> {
    bounds: &'a Bounds,
    node: Node,
    said: Vec<Said>,
}

impl Desk<'_> {
    fn apply(&mut self, stimulus: &Stimulus) {
        match stimulus {
            Stimulus::Time => self.time(),
            Stimulus::Tick => self.tell(Input::Tick),
            Stimulus::Timer => self.tell(Input::Timer),
            Stimulus::View(view, source) => {
                self.tell(Input::View { view: view.clone(), source: *source, reply: Some(ReplyId(0)) });
                self.acknowledge_unfenced();
            }
            Stimulus::Asked(question) => {
                self.tell(Input::AskedToVouch { question: question.clone(), reply: ReplyId(0) });
            }
            Stimulus::Deliver(from) => match self.node.inbox.remove(from) {
                Some(Letter::Grant(grant)) => self.tell(Input::Granted { grant, reply: None }),
                Some(Letter::Vouch(vouch)) => self.tell(Input::Vouched(vouch)),
                None => {}
            },
            Stimulus::KeeperSpeaks => self.keeper_speaks(),
            Stimulus::LaneDone => {
                let result = self.lane_result();
                self.tell(Input::Lane(result));
            }
            Stimulus::LaneFails => {
                self.node.lane = None;
                self.tell(Input::Lane(LaneResult::Failed));
            }
            Stimulus::OpeningLands(racing) => {
                self.node.server.opening_in_flight = false;
                (self.node.server.read_only, self.node.server.super_read_only) = (false, *racing);
            }
            Stimulus::OperatorSendsOpening => self.node.server.operator_opens = true,
            Stimulus::OperatorOpens => {
                self.node.server.operator_opens = false;
                (self.node.server.read_only, self.node.server.super_read_only) = (false, false);
            }
            Stimulus::GhostIsPermitted => {
                self.node.permit = self.node.asked_by_ghost.take();
                self.node.server.opening_in_flight = true;
            }
            life => self.life(life),
        }
    }

    /// A push that finds the server not fenced yet is acknowledged when its time is up, which is well within a step.
    fn acknowledge_unfenced(&mut self) {
        let waits = self.node.sidecar.as_ref().filter(|sidecar| !sidecar.replies.is_empty());
        let stored = waits.filter(|sidecar| sidecar.heard.as_ref().is_some_and(|view| sidecar.is_stored(view.epoch)));
        self.said.extend(stored.map(|sidecar| Said::Ack(sidecar.ack(NOW))));
    }

    fn life(&mut self, stimulus: &Stimulus) {
        match stimulus {
            Stimulus::SidecarDies => self.sidecar_dies(),
            Stimulus::SidecarStarts => {
                let disk = std::mem::take(&mut self.node.disk);
                self.node.sidecar = Some(Sidecar::start(self.node.me.clone(), disk, NOW));
                self.keeper_speaks_at_once();
            }
            Stimulus::StoreIsLost => {
                self.sidecar_dies();
                let Member { site, instance } = &self.node.me;
                self.node.me = Member { site: site.clone(), instance: Instance::new(&instance.pod, "s2") };
                self.node.disk = Disk::default();
                self.life(&Stimulus::SidecarStarts);
            }
            Stimulus::MysqldDies => self.kill(),
            Stimulus::MysqldStarts => {
                let fenced = self.bounds.without != Some(Without::FencedBoot);
                let operator_opens = self.node.server.operator_opens;
                self.node.server.boot(fenced);
                self.node.server.operator_opens = operator_opens;
                self.keeper_speaks_at_once();
            }
            Stimulus::Ends => {
                self.sidecar_dies();
                self.node.server.end();
                self.node.server.operator_opens = false;
                self.node.permit = None;
                self.node.disk = Disk::default();
                self.node.late_ack = None;
                self.node.ended = true;
            }
            _ => {}
        }
    }

    fn time(&mut self) {
        self.node.shift(STEP);
        // The keeper: deadline + 2.5 s, whatever became of the sidecar.
        let over = self.node.permit.is_some_and(|permit| NOW.0 >= permit.deadline.0 + 2500);
        if over && self.bounds.without != Some(Without::DeadMan) {
            self.kill();
        }
    }

    fn sidecar_dies(&mut self) {
        if let Some(sidecar) = self.node.sidecar.take() {
            self.node.disk = sidecar.disk;
        }
        self.node.inbox.clear();
        let lane = self.node.lane.take();
        if let (Some(Command::AskPermit(permit)), Some(Without::OneSession)) = (lane, self.bounds.without) {
            self.node.asked_by_ghost = Some(permit);
        }
    }

    fn kill(&mut self) {
        self.node.server.end();
        self.node.permit = None;
        self.node.asked_by_ghost = None;
        self.keeper_speaks_at_once();
    }

    /// The keeper tells its sidecar at once how mysqld is, unless that, too, may be late.
    fn keeper_speaks_at_once(&mut self) {
        if !self.bounds.slow_keeper {
            self.keeper_speaks();
        }
    }

    fn keeper_speaks(&mut self) {
        let running = self.node.server.running.then(|| self.node.server.id());
        if running.is_none() {
            self.node.lane = None;
        }
        self.tell(Input::Keeper(KeeperFact { running, permit: self.node.permit }));
    }

    /// Puts an input to the sidecar and carries its commands out, as far as they are instantaneous here.
    fn tell(&mut self, input: Input) {
        let mut inputs = vec![input];
        // A step stores at most one view and reads at most once or twice, so this ends soon.
        while let Some(input) = inputs.pop() {
            let Some(sidecar) = &mut self.node.sidecar else { return };
            for command in sidecar.step(NOW, input) {
                inputs.extend(self.perform(command));
            }
        }
    }

    fn perform(&mut self, command: Command) -> Option<Input> {
        let node = &mut self.node;
        match command {
            Command::Store(view) => return Some(Input::Stored(view.epoch)),
            Command::AskOperator(Some(question)) => self.said.push(Said::Question(None, question)),
            Command::AskPeer { voter, question } => self.said.push(Said::Question(Some(voter), question)),
            Command::Acknowledge { ack, question, .. } => {
                self.said.push(Said::Ack(*ack));
                self.said.extend(question.map(|question| Said::Question(None, question)));
            }
            Command::Answer { vouch, .. } => self.said.push(Said::Vouch(vouch)),
            Command::RenewPermit(permit) => {
                if let Some(held) = &mut node.permit
                    && held.start == permit.start
                {
                    *held = permit;
                }
            }
            Command::WithdrawPermit(start) => node.permit = node.permit.filter(|permit| permit.start != start),
            Command::Open { .. } => {
                // Sent over the session that stands; to a server that is gone it goes nowhere.
                node.server.opening_in_flight |= node.server.running;
                node.lane = Some(command);
            }
            Command::EndOpeners { .. } | Command::Kill(_) => node.lane = Some(command),
            Command::AskPermit(_) if self.bounds.lane_is_disturbed() => node.lane = Some(command),
            // Readings and connections change nothing. Once the opener's sessions are gone nothing races with the fencing
            // statement. Without crashes nothing comes between the other steps.
            Command::ConnectOpener { .. }
            | Command::EndFences { .. }
            | Command::Read { .. }
            | Command::AskPermit(_)
            | Command::Fence { .. } => {
                node.lane = Some(command);
                return Some(Input::Lane(self.lane_result()));
            }
            // Views travel by the store, the keeper's word by a stimulus of its own; sessions do not matter here, and the
            // sidecar's own copy of its disk is the disk.
            Command::WriteMarker(_)
            | Command::WriteNote { .. }
            | Command::WriteConflict(_)
            | Command::PushToPeers(_)
            | Command::AskOperator(None)
            | Command::AskKeeper
            | Command::KillAppSessions
            | Command::Refuse { .. } => {}
        }
        None
    }

    /// Carries the pending operation of the lane out.
    fn lane_result(&mut self) -> LaneResult {
        let without = self.bounds.without;
        let node = &mut self.node;
        let Some(command) = node.lane.take() else { return LaneResult::Failed };
        let blind = node.sidecar.as_ref().is_some_and(|sidecar| sidecar.mysqld == Mysqld::Unknown);
        let server = &mut node.server;
        let here = |start: StartId| server.running && server.id() == start;
        match command {
            Command::Kill(start) => {
                if here(start) {
                    server.end();
                    node.permit = None;
                }
                LaneResult::Killed(start)
            }
            _ if !server.running => LaneResult::Failed,
            Command::ConnectOpener { .. } => LaneResult::OpenerConnected,
            Command::AskPermit(permit) if here(permit.start) || without == Some(Without::StartIdAtPermit) => {
                node.permit = Some(permit);
                LaneResult::PermitGiven(permit)
            }
            Command::Open { .. } if server.opening_in_flight => {
                server.opening_in_flight = false;
                (server.read_only, server.super_read_only) = (false, false);
                LaneResult::OpenSent
            }
            Command::EndOpeners { .. } => {
                server.opening_in_flight &= without == Some(Without::EndOfOpeners);
                LaneResult::OpenersGone
            }
            // A fence takes no time here, and none outlives its sender.
            Command::EndFences { .. } => LaneResult::FencesGone,
            Command::Fence { .. } => {
                let idle = without == Some(Without::BothInOneStatement) && server.super_read_only;
                server.read_only |= !idle;
                server.super_read_only = true;
                LaneResult::FenceSet
            }
            // Without its keeper's word a sidecar reads whichever server answers.
            Command::Read { under, start, .. } if here(start) || blind => LaneResult::Read(ReadBack {
                start,
                under,
                read_only: server.read_only,
                super_read_only: server.super_read_only,
                gtid: GtidSet::default(),
            }),
            _ => LaneResult::Failed,
        }
    }
}
