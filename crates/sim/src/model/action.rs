//! Everything that can happen next in a state of the model, and what it does.

use super::world::{Channel, Leader, Message, NOW, STEP, Without, World, start_id};
use bloodraven_brain::authority::{self, Answer, Evidence, Policy};
use bloodraven_brain::fence::{Command, Input, KeeperFact, LaneResult, Mysqld, ReadBack, Sidecar, Source};
use bloodraven_brain::message::{OpeningWord, StartId};
use bloodraven_brain::name::Member;
use bloodraven_brain::record::{Cause, Epoch, Phase, Record};
use bloodraven_brain::time::{Millis, Now, Wall};
use bloodraven_gtid::GtidSet;

/// One thing that can happen.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// One step of time; dead men strike.
    Advance,
    /// The fencing tick of a node.
    Tick(usize),
    /// The deadline timer of a node.
    Timer(usize),
    /// A persisted view reaches a node.
    View(usize, Epoch),
    /// The leader pushes its view again, and hears how the node is by now.
    Push(usize),
    /// A message arrives.
    Deliver(Channel),
    /// The keeper tells its sidecar how mysqld is.
    KeeperFact(usize),
    /// The pending operation of a lane succeeds.
    LaneDone(usize),
    /// It fails, outcome unknown.
    LaneFailed(usize),
    /// An opening statement takes effect, whatever became of its sender; with a fence racing it: 0/1.
    LateOpening(usize, bool),
    /// The sidecar dies.
    SidecarDies(usize),
    /// The sidecar starts.
    SidecarStarts(usize),
    /// mysqld dies.
    MysqldDies(usize),
    /// The keeper starts it again, fenced.
    MysqldStarts(usize),
    /// The leader takes authority away.
    Revoke,
    /// The leader gives authority.
    Grant(usize),
    /// The leader changes the voters: without this one, or with all.
    Voters(Option<usize>),
    /// The leader forgets outlived sets.
    DropSets,
    /// A new leader, the old one dead without a trace.
    NewLeader,
    /// A new leader while a revocation, or a grant, of the old one is on its way to the API server.
    NewLeaderWithLateWrite(Box<Action>),
    /// That write lands.
    LateWriteLands,
    /// The leader's write met a conflict, and it reads the record again.
    Reread,
}

const PRESENT: Now = Now { boot: NOW, wall: Wall(0) };

impl World {
    /// All that can happen next.
    pub fn actions(&self) -> Vec<Action> {
        let mut found = vec![Action::Advance];
        for at in 0..self.nodes.len() {
            self.node_actions(at, &mut found);
        }
        found.extend(self.messages.keys().cloned().map(Action::Deliver));
        self.leader_actions(&mut found);
        found
    }

    fn node_actions(&self, at: usize, found: &mut Vec<Action>) {
        let node = &self.nodes[at];
        if node.mysqld.opening_in_flight {
            found.push(Action::LateOpening(at, false));
            found.extend(matches!(node.lane, Some(Command::Fence { .. })).then_some(Action::LateOpening(at, true)));
        }
        if node.mysqld.running {
            found.extend((self.left.mysqld_crashes > 0).then_some(Action::MysqldDies(at)));
        } else {
            found.push(Action::MysqldStarts(at));
        }
        let Some(sidecar) = &node.sidecar else {
            found.push(Action::SidecarStarts(at));
            return;
        };
        found.extend([Action::Tick(at), Action::Timer(at)]);
        if let Mysqld::Up(start) = sidecar.mysqld
            && node.mysqld.running
            && start == start_id(&node.mysqld)
        {
            // The keeper has nothing new to say.
        } else {
            found.push(Action::KeeperFact(at));
        }
        let known = sidecar.heard.as_ref().map_or(0, |view| view.epoch);
        found.extend(self.views.iter().filter(|view| view.epoch > known).map(|view| Action::View(at, view.epoch)));
        let pushed = &self.leader.record;
        if pushed.phase == Phase::Revoking && pushed.epoch == known {
            found.push(Action::Push(at));
        }
        if node.lane.is_some() {
            found.push(Action::LaneDone(at));
            found.extend((self.left.lane_failures > 0).then_some(Action::LaneFailed(at)));
        }
        found.extend((self.left.sidecar_crashes > 0).then_some(Action::SidecarDies(at)));
    }

    fn leader_actions(&self, found: &mut Vec<Action>) {
        if self.leader.record != self.record {
            found.push(Action::Reread);
        }
        found.extend(self.late_write.is_some().then_some(Action::LateWriteLands));
        let mut writes: Vec<Action> = vec![Action::Revoke, Action::DropSets];
        writes.extend((0..self.nodes.len()).map(Action::Grant));
        if self.left.voter_changes > 0 {
            writes.push(Action::Voters(None));
            writes.extend((0..self.nodes.len()).map(|without| Action::Voters(Some(without))));
        }
        writes.retain(|write| self.next_record(write).is_some());
        // Every write is a compare-and-swap: one based on an older record changes nothing.
        let based_on_present = self.leader.record == self.record;
        if self.left.leader_changes > 0 {
            found.push(Action::NewLeader);
            if based_on_present {
                found.extend(writes.iter().cloned().map(|write| Action::NewLeaderWithLateWrite(Box::new(write))));
            }
        }
        if based_on_present {
            found.extend(writes);
        }
    }

    /// The record that the leader would write; none: it would write nothing.
    fn next_record(&self, write: &Action) -> Option<Record> {
        let Leader { record, evidence } = &self.leader;
        let room = record.epoch < self.left.epochs;
        let next = match write {
            Action::Revoke if room && record.phase != Phase::Revoking => {
                authority::revoke(record, Cause::Emergency, Wall(0))
            }
            Action::DropSets => {
                let gone = authority::voters::outlived_sets(record, evidence, NOW);
                authority::drop_sets(record, &gone)
            }
            Action::Grant(to) if record.epoch < self.left.epochs + 1 => self.next_grant(*to)?,
            Action::Voters(without) if room => {
                let out = without.map(|without| self.nodes[without].me.clone());
                let voters = self.nodes.iter().map(|node| node.me.clone()).filter(|me| Some(me) != out.as_ref());
                let voters: Vec<Member> = voters.collect();
                if voters == record.voters {
                    return None;
                }
                authority::change_voters(record, voters, Wall(0)).ok()?
            }
            _ => return None,
        };
        (next != *record).then_some(next)
    }

    fn next_grant(&self, to: usize) -> Option<Record> {
        let Leader { record, evidence } = &self.leader;
        let to = &self.nodes[to].me;
        let back = authority::return_to_holder(record, evidence);
        let proven = authority::release(record, evidence, Policy::Required, PRESENT).ok();
        [proven, back]
            .into_iter()
            .flatten()
            .find_map(|release| authority::grant(record, to, &release, Cause::Emergency, Wall(0)).ok())
    }

    /// The state after that action.
    #[must_use]
    pub fn after(&self, action: &Action) -> Self {
        let mut next = self.clone();
        next.apply(action);
        next.canonicalise();
        next
    }

    fn apply(&mut self, action: &Action) {
        match action {
            Action::Advance => self.advance(),
            Action::Tick(at) => self.tell(*at, Input::Tick),
            Action::Timer(at) => self.tell(*at, Input::Timer),
            Action::View(at, epoch) => self.deliver_view(*at, *epoch),
            Action::Push(at) => {
                let view = self.leader.record.view();
                self.tell(*at, Input::View { view, source: Source::Operator, reply: Some(Self::reply()) });
            }
            Action::Deliver(channel) => self.deliver(channel),
            Action::KeeperFact(at) => self.keeper_fact(*at),
            Action::LaneDone(at) => self.lane_done(*at),
            Action::LaneFailed(at) => {
                self.left.lane_failures -= 1;
                self.nodes[*at].lane = None;
                self.tell(*at, Input::Lane(LaneResult::Failed));
            }
            Action::LateOpening(at, racing) => {
                let server = &mut self.nodes[*at].mysqld;
                server.opening_in_flight = false;
                server.read_only = false;
                server.super_read_only = *racing;
            }
            Action::SidecarDies(at) => {
                self.left.sidecar_crashes -= 1;
                self.nodes[*at].sidecar = None;
                self.nodes[*at].lane = None;
            }
            Action::SidecarStarts(at) => {
                let node = &mut self.nodes[*at];
                node.sidecar = Some(Sidecar::start(node.me.clone(), node.disk.clone(), NOW));
                self.keeper_speaks(*at);
            }
            Action::MysqldDies(at) => {
                self.left.mysqld_crashes -= 1;
                self.kill(*at);
            }
            Action::MysqldStarts(at) => {
                let fenced = self.left.without != Some(Without::FencedBoot);
                self.nodes[*at].mysqld.boot(fenced);
                self.keeper_speaks(*at);
            }
            Action::NewLeader => self.elect(),
            Action::NewLeaderWithLateWrite(write) => {
                self.late_write = self.next_record(write);
                self.elect();
            }
            Action::LateWriteLands => {
                if let Some(record) = self.late_write.take() {
                    self.persist(record);
                }
            }
            Action::Reread => self.take_record(self.record.clone()),
            write => {
                if let Some(record) = self.next_record(write) {
                    if matches!(write, Action::Voters(_)) {
                        self.left.voter_changes -= 1;
                    }
                    self.persist(record.clone());
                    self.take_record(record);
                }
            }
        }
    }

    fn persist(&mut self, record: Record) {
        self.late_write = None;
        self.views.retain(|view| view.epoch != record.epoch);
        self.views.push(record.view());
        self.record = record;
    }

    fn take_record(&mut self, record: Record) {
        if self.leader.record.revoked_at != record.revoked_at {
            self.leader.evidence.forget_run();
        }
        self.leader.record = record;
    }

    fn elect(&mut self) {
        self.left.leader_changes -= 1;
        self.leader = Leader { record: self.record.clone(), evidence: Evidence::new(NOW) };
    }

    fn advance(&mut self) {
        self.shift(STEP);
        if !self.left.slow_mail {
            self.messages.retain(|_, message| matches!(message, Message::Grant(_) | Message::Vouch(_)));
        }
        for at in 0..self.nodes.len() {
            // The keeper: deadline + 2.5 s, whatever became of the sidecar.
            let over = self.nodes[at].permit.is_some_and(|permit| NOW.0 >= permit.deadline.0 + 2500);
            if over && self.left.without != Some(Without::DeadMan) {
                self.kill(at);
            }
        }
    }

    fn kill(&mut self, at: usize) {
        self.nodes[at].mysqld.end();
        self.nodes[at].permit = None;
        self.keeper_speaks(at);
    }

    /// The keeper tells its sidecar at once how mysqld is, unless that, too, may be late.
    fn keeper_speaks(&mut self, at: usize) {
        if !self.left.slow_mail {
            self.keeper_fact(at);
        }
    }

    fn deliver_view(&mut self, at: usize, epoch: Epoch) {
        let view = self.views.iter().find(|view| view.epoch == epoch).cloned();
        if let Some(view) = view {
            self.tell(at, Input::View { view, source: Source::Operator, reply: Some(Self::reply()) });
        }
    }

    fn deliver(&mut self, channel: &Channel) {
        let Some(message) = self.messages.remove(channel) else { return };
        let to = channel.to.as_ref().and_then(|to| self.node(to));
        let Leader { record, evidence } = &mut self.leader;
        match (message, to) {
            (Message::Question(question), None) => {
                let (until, word) = (Some(NOW + STEP), Some(OpeningWord::default()));
                if let Answer::Grant(grant) = authority::answer(record, evidence, &question, until, word, NOW) {
                    self.send(channel.from.clone(), Message::Grant(*grant));
                }
            }
            (Message::Ack(ack), None) => evidence.take(record, &ack, NOW, Millis(0)),
            (Message::Question(question), Some(at)) => {
                self.tell(at, Input::AskedToVouch { question, reply: Self::reply() });
            }
            (Message::Grant(grant), Some(at)) => self.tell(at, Input::Granted { grant, reply: None }),
            (Message::Vouch(vouch), Some(at)) => self.tell(at, Input::Vouched(vouch)),
            (Message::Grant(_) | Message::Vouch(_), None) | (Message::Ack(_), Some(_)) => {}
        }
    }

    fn node(&self, member: &Member) -> Option<usize> {
        self.nodes.iter().position(|node| node.me == *member)
    }

    fn keeper_fact(&mut self, at: usize) {
        let node = &self.nodes[at];
        let running = node.mysqld.running.then(|| start_id(&node.mysqld));
        let fact = KeeperFact { running, permit: node.permit };
        let lost = node.lane.is_some() && running.is_none();
        if lost {
            self.nodes[at].lane = None;
        }
        self.tell(at, Input::Keeper(fact));
    }

    fn lane_done(&mut self, at: usize) {
        let result = self.lane_result(at);
        self.tell(at, Input::Lane(result));
    }

    /// Carries the pending operation of a lane out.
    pub(super) fn lane_result(&mut self, at: usize) -> LaneResult {
        let node = &mut self.nodes[at];
        let Some(command) = node.lane.take() else { return LaneResult::Failed };
        let server = &mut node.mysqld;
        let here = |start: StartId| server.running && start_id(server) == start;
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
            Command::AskPermit(permit) if here(permit.start) => {
                node.permit = Some(permit);
                LaneResult::PermitGiven(permit)
            }
            Command::Open { .. } => {
                if server.opening_in_flight {
                    server.opening_in_flight = false;
                    server.read_only = false;
                    server.super_read_only = false;
                    LaneResult::OpenSent
                } else {
                    LaneResult::Failed
                }
            }
            Command::EndOpeners { .. } => {
                server.opening_in_flight &= self.left.without == Some(Without::EndOfOpeners);
                LaneResult::OpenersGone
            }
            Command::Fence { .. } => {
                server.read_only = true;
                server.super_read_only = true;
                LaneResult::FenceSet
            }
            Command::Read { under, start, .. } if here(start) => LaneResult::Read(ReadBack {
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
