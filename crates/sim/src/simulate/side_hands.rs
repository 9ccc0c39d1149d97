//! The sidecar's hands: disk, keeper, server, peers, operators.
//!
//! In: commands of its step. Out: events that bring their results. Must not: run two operations of the lane at a time.

use super::clock::{MS, SEC};
use super::event::{Event, ForSidecar};
use super::pod::{DiskWrite, ReplyTo};
use super::scenario::Moment;
use super::server::{Caller, Does, Life};
use super::world::World;
use bloodraven_brain::fence::{Command, Input, LaneResult, ReplyId};
use bloodraven_brain::group;
use bloodraven_brain::group::input::Word;
use bloodraven_brain::message::{Ack, Question};
use bloodraven_brain::time::Millis;
use std::collections::VecDeque;

impl World {
    pub(super) fn side_commands(&mut self, p: usize, commands: Vec<Command>) {
        let side = &mut self.pods[p].side;
        let mut chain = VecDeque::with_capacity(commands.len());
        for command in commands {
            let mut token = 0;
            if is_of_the_lane(&command) {
                // A new operation cancels the one before.
                side.lane += 1;
                side.lane_open = true;
                token = side.lane;
            }
            chain.push_back((command, token));
        }
        self.run_chain(p, chain);
    }

    /// Does what was commanded, in order; some of it waits for the disk.
    fn run_chain(&mut self, p: usize, mut chain: VecDeque<(Command, u64)>) {
        while let Some((command, token)) = chain.pop_front() {
            let waits = match command {
                Command::WriteMarker(marker) => Some((self.begin_write(p, DiskWrite::Marker(Box::new(marker))), None)),
                Command::WriteNote { note, within } => Some((self.begin_write(p, DiskWrite::Note(note)), Some(within))),
                other => {
                    self.side_command(p, other, token);
                    None
                }
            };
            let Some((id, within)) = waits else { continue };
            if chain.is_empty() {
                return;
            }
            let life = self.pods[p].side.life;
            self.pods[p].side.chains.insert(id, chain);
            if let Some(within) = within {
                self.queue.push(self.now + within.0 * MS, Event::DiskLate(p, life, id));
            }
            return;
        }
    }

    fn side_command(&mut self, p: usize, command: Command, token: u64) {
        match command {
            Command::Store(view) => drop(self.begin_write(p, DiskWrite::View(Box::new(view)))),
            Command::WriteConflict(epoch) => drop(self.begin_write(p, DiskWrite::Conflict(epoch))),
            Command::PushToPeers(view) => self.push_to_peers(p, &view),
            Command::AskOperator(question) => self.ask_operator(p, question.as_ref()),
            Command::AskPeer { voter, question } => self.ask_peer(p, &voter.site, question),
            Command::Acknowledge { reply, ack, question, relayed } => {
                self.acknowledge(p, reply, *ack, question, relayed);
            }
            Command::Refuse { reply, .. } => self.refuse(p, reply),
            Command::Answer { reply, vouch } => {
                let to = self.pods[p].side.replies.remove(&reply);
                if let Some(ReplyTo::Asker(from, life)) = to {
                    let input = ForSidecar::Input(Box::new(Input::Vouched(vouch)));
                    self.side_to_side(p, from, Some(life), input);
                }
            }
            Command::AskKeeper => self.ask_keeper(p),
            Command::KillAppSessions => self.statement_beside(p, Does::EndApps, Caller::Nobody),
            Command::RenewPermit(permit) => self.renew_permit(p, permit),
            Command::WithdrawPermit(start) => {
                let keeper = &mut self.pods[p].keeper;
                if keeper.up && keeper.permit.is_some_and(|permit| permit.start == start) {
                    keeper.permit = None;
                }
            }
            Command::WriteMarker(_) | Command::WriteNote { .. } => {}
            command => self.lane_command(p, &command, token),
        }
    }

    /// One operation of the lane.
    fn lane_command(&mut self, p: usize, command: &Command, token: u64) {
        if self.pods[p].side.lane != token {
            return;
        }
        let life = self.pods[p].side.life;
        let caller = Caller::Sidecar(life, token);
        match *command {
            Command::ConnectOpener { within } => self.connect_opener(p, token, within),
            Command::AskPermit(permit) => {
                let given = self.give_permit(p, permit);
                let result = if given { LaneResult::PermitGiven(permit) } else { LaneResult::Failed };
                let at = self.soon(50, MS);
                self.queue.push(at, Event::Lane(p, life, token, Box::new(result)));
            }
            Command::Open { within } => {
                let tenure = self.pods[p].side.brain.as_ref().and_then(|brain| brain.heard.as_ref());
                let tenure = tenure.map_or(0, |view| view.tenure);
                if self.pods[p].server.opener == Some(life) {
                    self.statement_beside(p, Does::Open(tenure), caller);
                    self.fails_after(p, token, within);
                } else {
                    self.fails_after(p, token, Millis(1));
                }
            }
            Command::EndOpeners { within } => {
                self.moment(p, Moment::Fencing);
                self.statement_beside(p, Does::EndOpeners, caller);
                self.fails_after(p, token, within);
            }
            Command::EndFences { within } => {
                self.statement_beside(p, Does::EndFences, caller);
                self.fails_after(p, token, within);
            }
            Command::Fence { within } => {
                self.statement_beside(p, Does::Fence { both: true }, caller);
                self.fails_after(p, token, within);
            }
            Command::Read { under, start, within } => {
                self.statement_beside(p, Does::Read(under, start.0), caller);
                self.fails_after(p, token, within);
            }
            Command::Kill(start) => self.kill_for_sidecar(p, start.0, token),
            _ => {}
        }
    }

    fn fails_after(&mut self, p: usize, token: u64, within: Millis) {
        let life = self.pods[p].side.life;
        self.queue.push(self.now + within.0.max(1) * MS, Event::Lane(p, life, token, Box::new(LaneResult::Failed)));
    }

    /// A statement of the sidecar's: no network between.
    fn statement_beside(&mut self, p: usize, does: Does, caller: Caller) {
        self.reaches(p, does, caller);
    }

    fn connect_opener(&mut self, p: usize, token: u64, within: Millis) {
        let life = self.pods[p].side.life;
        let server = &mut self.pods[p].server;
        if server.life == Life::Up && !server.hung {
            server.opener = Some(life);
            let at = self.soon(200, 3 * MS);
            self.queue.push(at, Event::Lane(p, life, token, Box::new(LaneResult::OpenerConnected)));
        } else {
            let within = if self.pods[p].server.hung { within } else { Millis(2) };
            self.fails_after(p, token, within);
        }
    }

    fn push_to_peers(&mut self, p: usize, view: &bloodraven_brain::record::View) {
        let life = self.pods[p].side.life;
        for site in 0..self.names.len() {
            if site != self.pods[p].site
                && let Some(to) = self.pod_at(site)
            {
                let what = ForSidecar::PeerPush(p, life, Box::new(view.clone()));
                self.side_to_side(p, to, None, what);
            }
        }
    }

    /// Asks every operator process, and in the same round every peer for its view.
    fn ask_operator(&mut self, p: usize, question: Option<&Question>) {
        let life = self.pods[p].side.life;
        for op in 0..self.operators.len() {
            if let Some(at) = self.side_to_operator(p, op) {
                let question = question.cloned().map(Box::new);
                self.queue.push(at, Event::AskOperator(op, p, life, question));
            }
        }
        for site in 0..self.names.len() {
            if site != self.pods[p].site
                && let Some(to) = self.pod_at(site)
                && !self.knows_the_same(p, to)
            {
                self.side_to_side(p, to, None, ForSidecar::AskView(p, life));
            }
        }
    }

    /// The same view again changes nothing; such a question need not travel.
    fn knows_the_same(&self, p: usize, peer: usize) -> bool {
        let view = |p: usize| self.pods[p].side.brain.as_ref().and_then(|brain| brain.heard.as_ref());
        view(p).is_some() && view(p) == view(peer)
    }

    fn ask_peer(&mut self, p: usize, site: &bloodraven_brain::name::Site, question: Question) {
        let life = self.pods[p].side.life;
        let id = question.id;
        if let Some(to) = self.site_number(site).and_then(|site| self.pod_at(site)) {
            self.side_to_side(p, to, None, ForSidecar::Question(p, life, Box::new(question)));
        }
        let silence = ForSidecar::Input(Box::new(Input::NoAnswer(id)));
        self.queue.push(self.now + 2 * SEC, Event::ToSidecar(p, Some(life), Box::new(silence)));
    }

    fn acknowledge(
        &mut self,
        p: usize,
        reply: ReplyId,
        ack: Ack,
        question: Option<Question>,
        relayed: Vec<(Ack, Millis)>,
    ) {
        match self.pods[p].side.replies.remove(&reply) {
            Some(ReplyTo::Operator(op, reign)) => {
                let via = self.pods[p].name.clone();
                let mut words = vec![Word { ack, lay: Millis(0), via: None, question }];
                let handed_on =
                    relayed.into_iter().map(|(ack, lay)| Word { ack, lay, via: Some(via.clone()), question: None });
                words.extend(handed_on);
                let Some(at) = self.side_to_operator(p, op) else { return };
                for word in words {
                    let input = group::Input::Heard(Box::new(word));
                    self.queue.push(at, super::operator::input(op, reign, input));
                }
            }
            Some(ReplyTo::Pusher(from, life)) => {
                let input = ForSidecar::Input(Box::new(Input::PeerAck(Box::new(ack))));
                self.side_to_side(p, from, Some(life), input);
            }
            Some(ReplyTo::Asker(..)) | None => {}
        }
    }

    fn refuse(&mut self, p: usize, reply: ReplyId) {
        if let Some(ReplyTo::Operator(op, reign)) = self.pods[p].side.replies.remove(&reply)
            && let Some(at) = self.side_to_operator(p, op)
        {
            let input = group::Input::PushFailed { to: self.pods[p].name.clone() };
            self.queue.push(at, super::operator::input(op, reign, input));
        }
    }

    fn begin_write(&mut self, p: usize, write: DiskWrite) -> u64 {
        let takes = if self.random.chance(1) { 300 * MS } else { 3 * MS };
        let takes = 100 + self.random.below(takes);
        let side = &mut self.pods[p].side;
        let id = side.next_id();
        side.writes.push_back((id, write));
        side.disk_free = side.disk_free.max(self.now) + takes;
        let (at, life) = (side.disk_free, side.life);
        self.queue.push(at, Event::Disk(p, life, id));
        id
    }

    /// A write reached the disk, or could not.
    pub(super) fn disk_done(&mut self, p: usize, life: u32, id: u64) {
        if !self.sidecar_lives(p, life) {
            return;
        }
        if self.pods[p].side.paused {
            return self.pods[p].side.inbox.push(Event::Disk(p, life, id));
        }
        let side = &mut self.pods[p].side;
        if side.writes.front().is_none_or(|(front, _)| *front != id) {
            return;
        }
        let Some((_, write)) = side.writes.pop_front() else { return };
        let ok = !side.full;
        let input = match &write {
            DiskWrite::View(view) if ok => Some(Input::Stored(view.epoch)),
            DiskWrite::View(view) => Some(Input::NotStored(view.epoch)),
            _ => None,
        };
        let marker_failed = !ok && matches!(write, DiskWrite::Marker(_));
        if ok {
            side.reach(write);
        }
        if let Some(chain) = side.chains.remove(&id) {
            if marker_failed {
                self.give_up(p, &chain);
            } else {
                self.run_chain(p, chain);
            }
        }
        if let Some(input) = input {
            self.sidecar_step(p, input);
        }
    }

    /// What was to follow upon a marker that is not on disk is not done.
    fn give_up(&mut self, p: usize, chain: &VecDeque<(Command, u64)>) {
        for (_, token) in chain.iter().filter(|(command, _)| is_of_the_lane(command)) {
            self.fails_after(p, *token, Millis(1));
        }
    }

    /// The patience for a note is over: what follows is done without it.
    pub(super) fn disk_late(&mut self, p: usize, life: u32, id: u64) {
        if !self.sidecar_lives(p, life) {
            return;
        }
        if self.pods[p].side.paused {
            return self.pods[p].side.inbox.push(Event::DiskLate(p, life, id));
        }
        if let Some(chain) = self.pods[p].side.chains.remove(&id) {
            self.run_chain(p, chain);
        }
    }
}

const fn is_of_the_lane(command: &Command) -> bool {
    matches!(
        command,
        Command::ConnectOpener { .. }
            | Command::AskPermit(_)
            | Command::Open { .. }
            | Command::EndOpeners { .. }
            | Command::EndFences { .. }
            | Command::Fence { .. }
            | Command::Read { .. }
            | Command::Kill(_)
    )
}
