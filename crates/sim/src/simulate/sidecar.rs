//! The sidecar's life: it begins, ticks, hears, ends. Its decisions are the brain's own.
//!
//! In: what reaches a sidecar. Out: its step's commands, handed to [`super::side_hands`]. Must not: skip a moment at
//! which its timer could change anything.

use super::clock::{MS, SEC, Time};
use super::event::{Event, ForSidecar};
use super::net::{Channel, End};
use super::pod::ReplyTo;
use super::world::World;
use bloodraven_brain::fence::{Budget, FenceStep, Input, Lane, LaneResult, Mysqld, ReplyId, Sidecar, Source, TIMER};
use bloodraven_brain::group;
use bloodraven_brain::time::{Boot, Millis};

/// How long a sidecar waits for what it was asked before it answers anyway.
const REPLY_WITHIN: Millis = Millis(1500);

impl World {
    pub(super) fn sidecar_begins(&mut self, p: usize, life: u32) {
        let now = self.now;
        let boot = self.boot_of(p);
        let pod = &mut self.pods[p];
        if !pod.runs || pod.side.life != life || pod.side.brain.is_some() {
            return;
        }
        let me = pod.member();
        pod.side.brain = Some(Box::new(Sidecar::start(me, pod.side.disk.clone(), boot)));
        pod.side.since = now;
        self.tell(|w| (w.sidecar_name(p), "starts".to_owned()));
        self.sidecar_tick(p, life);
    }

    /// The process ends. The kubelet starts it again, unless the pod has ended.
    pub(super) fn sidecar_ends(&mut self, p: usize, again: Option<Time>) {
        if self.pods[p].side.brain.is_none() {
            return;
        }
        let reached = self.random.index(self.pods[p].side.writes.len() + 1);
        let pod = &mut self.pods[p];
        let life = pod.side.life;
        pod.side.end(reached);
        // Its sessions end with it, unless the server stands still. What they have sent may run yet.
        if pod.server.opener == Some(life) && !pod.server.hung {
            pod.server.opener = None;
        }
        if let Some(after) = again {
            let life = pod.side.life;
            self.queue.push(self.now + after, Event::SidecarBegins(p, life));
        }
    }

    /// Its fencing tick, at the smaller of the interval and a third of the view's lease.
    pub(super) fn sidecar_tick(&mut self, p: usize, life: u32) {
        if !self.sidecar_lives(p, life) {
            return;
        }
        if self.pods[p].side.paused {
            return self.pods[p].side.inbox.push(Event::SidecarTick(p, life));
        }
        let lease = self.pods[p].side.brain.as_ref().and_then(|brain| brain.heard.as_ref());
        let lease = lease.map_or(Millis::from_secs(20), |view| view.settings.lease_timeout);
        let interval = Millis(5000.min(lease.0 / 3));
        let next = self.clock_of(p).when(self.boot_of(p) + interval, self.now);
        self.queue.push(next, Event::SidecarTick(p, life));
        self.sidecar_step(p, Input::Tick);
    }

    pub(super) fn sidecar_timer(&mut self, p: usize, life: u32, at: Time) {
        if !self.sidecar_lives(p, life) || self.pods[p].side.timer != Some(at) {
            return;
        }
        if self.pods[p].side.paused {
            return self.pods[p].side.inbox.push(Event::SidecarTimer(p, life, at));
        }
        self.pods[p].side.timer = None;
        self.sidecar_step(p, Input::Timer);
    }

    /// Something reaches a sidecar.
    pub(super) fn reaches_sidecar(&mut self, p: usize, life: Option<u32>, what: Box<ForSidecar>) {
        let boot = self.boot_of(p);
        let side = &mut self.pods[p].side;
        let Some(brain) = &side.brain else { return self.refused_by_sidecar(p, &what) };
        if life.is_some_and(|life| life != side.life) {
            return;
        }
        if side.paused {
            return side.inbox.push(Event::ToSidecar(p, life, what));
        }
        let input = match *what {
            ForSidecar::Input(input) => match &*input {
                // Answered already.
                Input::NoAnswer(id) if !brain.asked.contains_key(id) => return,
                _ => *input,
            },
            ForSidecar::Push(op, reign, view) => {
                let reply = Some(self.remember(p, ReplyTo::Operator(op, reign)));
                Input::View { view: *view, source: Source::Operator, reply }
            }
            ForSidecar::Grant(op, reign, grant) => {
                let reply = Some(self.remember(p, ReplyTo::Operator(op, reign)));
                Input::Granted { grant: *grant, reply }
            }
            ForSidecar::PeerPush(from, life, view) => {
                let reply = Some(self.remember(p, ReplyTo::Pusher(from, life)));
                Input::View { view: *view, source: Source::Peer, reply }
            }
            ForSidecar::Question(from, life, question) => {
                let reply = self.remember(p, ReplyTo::Asker(from, life));
                Input::AskedToVouch { question: *question, reply }
            }
            ForSidecar::Probe(op, reign) => {
                let ack = brain.ack(boot);
                let word = group::input::Word { ack, lay: Millis(0), via: None, question: None };
                if let Some(at) = self.side_to_operator(p, op) {
                    self.queue.push(at, super::operator::input(op, reign, group::Input::Heard(Box::new(word))));
                }
                return;
            }
            ForSidecar::AskView(from, life) => return self.tell_view(p, from, life),
        };
        self.sidecar_step(p, input);
    }

    fn remember(&mut self, p: usize, to: ReplyTo) -> ReplyId {
        let side = &mut self.pods[p].side;
        let reply = ReplyId(side.next_id());
        side.replies.insert(reply, to);
        reply
    }

    /// A sidecar tells a peer which view it has stored. Answers carry no word about what is only heard.
    fn tell_view(&mut self, p: usize, from: usize, life: u32) {
        let Some(brain) = &self.pods[p].side.brain else { return };
        let known = self.pods[from].side.brain.as_ref().and_then(|asker| asker.heard.as_ref());
        let Some(view) = brain.disk.view.clone() else { return };
        // The same view again changes nothing; it need not be carried.
        if known.is_some_and(|known| *known == view) {
            return;
        }
        let input = Input::View { view, source: Source::Peer, reply: None };
        self.side_to_side(p, from, Some(life), ForSidecar::Input(Box::new(input)));
    }

    /// The other end is told at once that nobody listens; who black-holes is cut off.
    fn refused_by_sidecar(&mut self, p: usize, what: &ForSidecar) {
        let at = self.soon(MS, 5 * MS);
        match what {
            ForSidecar::Push(op, reign, _) => {
                let input = group::Input::PushFailed { to: self.pods[p].name.clone() };
                self.queue.push(at, super::operator::input(*op, *reign, input));
            }
            ForSidecar::Question(from, life, question) => {
                let input = ForSidecar::Input(Box::new(Input::NoAnswer(question.id)));
                self.queue.push(at, Event::ToSidecar(*from, Some(*life), Box::new(input)));
            }
            _ => {}
        }
    }

    /// One step of the brain, and what it wants done.
    pub(super) fn sidecar_step(&mut self, p: usize, input: Input) {
        let boot = self.boot_of(p);
        let side = &mut self.pods[p].side;
        let Some(brain) = side.brain.as_mut() else { return };
        let commands = brain.step(boot, input);
        if let Some(audience) = &mut self.audience {
            audience.sidecar(p, side.life, boot, brain);
        }
        self.side_commands(p, commands);
        self.set_timer(p);
    }

    pub(super) fn lane_over(&mut self, p: usize, life: u32, token: u64, result: Box<LaneResult>) {
        if !self.sidecar_lives(p, life) || self.pods[p].side.lane != token || !self.pods[p].side.lane_open {
            return;
        }
        if self.pods[p].side.paused {
            return self.pods[p].side.inbox.push(Event::Lane(p, life, token, result));
        }
        self.pods[p].side.lane_open = false;
        self.sidecar_step(p, Input::Lane(*result));
    }

    pub(super) fn sidecar_lives(&self, p: usize, life: u32) -> bool {
        let side = &self.pods[p].side;
        side.brain.is_some() && side.life == life
    }

    /// It goes on: what came meanwhile comes now, in the order in which it came.
    pub(super) fn resume_sidecar(&mut self, p: usize) {
        let side = &mut self.pods[p].side;
        if !side.paused {
            return;
        }
        side.paused = false;
        for event in std::mem::take(&mut side.inbox) {
            self.queue.push(self.now, event);
        }
    }

    /// Sets the timer to the first moment of its grid at which time alone can change anything.
    fn set_timer(&mut self, p: usize) {
        let boot = self.boot_of(p);
        let Some(next) = self.pods[p].side.brain.as_ref().and_then(|brain| next_change(brain, boot)) else { return };
        let at = self.clock_of(p).when(next, self.now);
        let side = &mut self.pods[p].side;
        // The grid: a timer of 250 ms that began with the process.
        let grid = TIMER.0 * MS;
        let at = side.since + (at.saturating_sub(side.since)).div_ceil(grid) * grid;
        let at = if at <= self.now { at + grid } else { at };
        if side.timer.is_none_or(|set| at < set || set < self.now) {
            side.timer = Some(at);
            let life = side.life;
            self.queue.push(at, Event::SidecarTimer(p, life, at));
        }
    }

    pub(super) fn side_to_side(&mut self, from: usize, to: usize, life: Option<u32>, what: ForSidecar) -> bool {
        let (Some(a), Some(b)) = (self.end_of(from), self.end_of(to)) else { return false };
        let Some(at) = self.carry(a, b, Channel::Http) else { return false };
        self.queue.push(at, Event::ToSidecar(to, life, Box::new(what)));
        true
    }

    pub(super) fn side_to_operator(&mut self, p: usize, op: usize) -> Option<Time> {
        let from = self.end_of(p)?;
        self.carry(from, End::Operator(op), Channel::Http)
    }

    pub(super) fn boot_of(&self, p: usize) -> Boot {
        self.clock_of(p).boot(self.now)
    }

    pub(super) fn clock_of(&self, p: usize) -> super::clock::Clock {
        self.site_clocks[self.pods[p].site]
    }

    pub(super) fn sidecar_name(&self, p: usize) -> String {
        format!("sidecar {}", self.pod_name(p))
    }

    pub(super) fn pod_name(&self, p: usize) -> String {
        let pod = &self.pods[p];
        if self.current[pod.site] == p { pod.name.to_string() } else { format!("{} (old pod)", pod.name) }
    }
}

/// The first moment at which time alone can change what the sidecar does.
fn next_change(brain: &Sidecar, now: Boot) -> Option<Boot> {
    let mut next: Option<Boot> = None;
    let mut at = |moment: Boot| {
        if moment > now {
            next = Some(next.map_or(moment, |sooner| sooner.min(moment)));
        }
    };
    brain.deadline().into_iter().for_each(&mut at);
    brain.second_word.into_iter().for_each(&mut at);
    at(brain.retry_at);
    if brain.mysqld == Mysqld::Unknown {
        at(brain.born + TIMER);
    }
    if let Lane::Fencing { began, step, .. } = &brain.lane {
        if let FenceStep::Setting { sessions_ended: false } = step {
            at(*began + Budget::PATIENCE);
        }
        at(*began + Budget::LADDER);
        at(*began + Budget::LADDER + Budget::KILL);
    }
    brain.replies.values().for_each(|came| at(*came + REPLY_WITHIN));
    brain.vouches_owed.values().for_each(|owed| at(owed.came + REPLY_WITHIN));
    next
}

/// How long a restarted container takes, in microseconds.
pub(super) const RESTART: (Time, Time) = (300 * MS, 3 * SEC);
