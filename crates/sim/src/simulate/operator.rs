//! Operator processes: their election, their reigns, and the group's own step while they lead.
//!
//! In: what reaches an operator. Out: its step's commands, handed to [`super::hands`]. Must not: act after its reign.

use super::clock::{MS, SEC, Time};
use super::event::{Answer, Event, ForLeader};
use super::net::{Channel, End};
use super::saves::{Known, PICTURE_PACE, Picture, Saving};
use super::world::World;
use bloodraven_brain::fence;
use bloodraven_brain::fence::Source;
use bloodraven_brain::group::input::{Estate, Loaded, Rollout, Saw, Shown};
use bloodraven_brain::group::kept::SiteKept;
use bloodraven_brain::group::{Group, Input, Kept, WorkId};
use bloodraven_brain::lease;
use bloodraven_brain::lease::{Election, Found, Notice, Times, Written};
use bloodraven_brain::message::Question;
use bloodraven_brain::record::{Epoch, Phase, Record};
use bloodraven_brain::time::{Boot, Now};
use std::collections::BTreeMap;

/// One process.
#[derive(Debug, Default)]
pub(super) struct Operator {
    pub(super) up: bool,
    pub(super) paused: bool,
    pub(super) inbox: Vec<Event>,
    pub(super) life: u32,
    pub(super) election: Option<Election>,
    /// Names the present reign; never used twice.
    pub(super) reign: u32,
    pub(super) group: Option<Box<Group>>,
    pub(super) calls: BTreeMap<u64, Call>,
    pub(super) next: u64,
    /// The group's object as last read or written; none: not read yet, or in doubt.
    pub(super) known: Option<Known>,
    /// When an annotation that is not as it should be may be written anew.
    pub(super) copy_due: Time,
    /// Who asked.
    pub(super) askers: BTreeMap<u64, (usize, u32)>,
    /// It dies after so many more commands.
    pub(super) fuse: Option<u32>,
    /// Until when the group was told that it leads.
    told: Option<Boot>,
    /// When its reign began, and how far ahead its calendar was then.
    pub(super) crowned: (Time, i64),
    /// When the election's tick is set.
    elect_at: u64,
}

/// What a leader waits for.
#[derive(Debug)]
pub(super) enum Call {
    Poll { site: usize, under: Epoch },
    Work { id: WorkId },
    Load,
    Save(Box<Saving>),
    Picture(Box<Picture>),
    Show,
    CachePoll { site: usize },
}

/// An input for the leader of that reign.
pub(super) fn input(op: usize, reign: u32, input: Input) -> Event {
    Event::Leader(op, reign, ForLeader::Input(Box::new(input)))
}

impl World {
    pub(super) fn operator_now(&self, op: usize) -> Now {
        self.operator_clocks[op].now(self.now)
    }

    pub(super) fn operator_begins(&mut self, op: usize) {
        if self.operators[op].up {
            return;
        }
        let now = self.operator_now(op);
        let operator = &mut self.operators[op];
        operator.up = true;
        operator.life += 1;
        let identity = format!("operator-{op}");
        operator.election = Some(Election::new(&identity, Times::default(), now.boot));
        self.tell(|_| (format!("operator {op}"), "starts".to_owned()));
        self.elect(op, lease::Input::Tick);
    }

    /// The process dies; another one starts in its place.
    pub(super) fn operator_dies(&mut self, op: usize, again: Option<u64>) {
        if !self.operators[op].up {
            return;
        }
        self.dethrone(op);
        let operator = &mut self.operators[op];
        operator.up = false;
        operator.paused = false;
        operator.inbox.clear();
        operator.election = None;
        operator.fuse = None;
        self.tell(|_| (format!("operator {op}"), "dies".to_owned()));
        if let Some(after) = again {
            self.queue.push(self.now + after, Event::OperatorBegins(op));
        }
    }

    pub(super) fn elect_tick(&mut self, op: usize, life: u32) {
        let operator = &mut self.operators[op];
        if !operator.up || operator.life != life || operator.elect_at > self.now {
            return;
        }
        if operator.paused {
            return operator.inbox.push(Event::Elect(op, life));
        }
        self.elect(op, lease::Input::Tick);
    }

    fn elect(&mut self, op: usize, input: lease::Input) {
        let now = self.operator_now(op);
        let Some(election) = &mut self.operators[op].election else { return };
        let outcome = election.step(now, input);
        let (wake, until) = (election.wake_at(), election.leads_until());
        if let Some(command) = outcome.command {
            let life = self.operators[op].life;
            if let Some(at) = self.carry(End::Operator(op), End::Store, Channel::Http) {
                self.queue.push(at, Event::LeaseCall(op, life, Box::new(command)));
            }
        }
        for notice in outcome.notices {
            if let Some(audience) = &mut self.audience {
                audience.election(op, now, &notice);
            }
            self.tell(|_| (format!("operator {op}"), format!("{notice:?}")));
            match notice {
                Notice::Elected(_) => self.crown(op),
                Notice::Lost(_) | Notice::Stopped => self.dethrone(op),
                Notice::Follows(_) | Notice::Released => {}
            }
        }
        if let Some(wake) = wake {
            let at = self.operator_clocks[op].when(wake, self.now).max(self.now + MS);
            self.operators[op].elect_at = at;
            let life = self.operators[op].life;
            self.queue.push(at, Event::Elect(op, life));
        }
        if self.operators[op].group.is_some() && self.operators[op].told != until {
            self.operators[op].told = until;
            self.feed(op, Input::Leads(until));
        }
    }

    pub(super) fn lease_call(&mut self, op: usize, life: u32, command: lease::Command) {
        if self.store.down {
            return;
        }
        let input = match command {
            lease::Command::Read(id) => {
                lease::Input::Read(id, self.store.lease.clone().map_or(Found::Absent, Found::Lease))
            }
            lease::Command::Create(id, new) => lease::Input::Wrote(id, written(self.store.write_lease(None, &new))),
            lease::Command::Update(id, version, new) | lease::Command::Release(id, version, new) => {
                lease::Input::Wrote(id, written(self.store.write_lease(Some(&version), &new)))
            }
        };
        if let Some(at) = self.carry(End::Store, End::Operator(op), Channel::Http) {
            self.queue.push(at, Event::LeaseBack(op, life, Box::new(input)));
        }
    }

    pub(super) fn lease_back(&mut self, op: usize, life: u32, input: Box<lease::Input>) {
        let operator = &mut self.operators[op];
        if !operator.up || operator.life != life {
            return;
        }
        if operator.paused {
            return operator.inbox.push(Event::LeaseBack(op, life, input));
        }
        self.elect(op, *input);
    }

    /// A reign begins: everything this leader knows it has to learn.
    fn crown(&mut self, op: usize) {
        let now = self.operator_now(op);
        let reign = u32::try_from(self.next_number()).unwrap_or(u32::MAX);
        let operator = &mut self.operators[op];
        operator.crowned = (self.now, self.operator_clocks[op].skew);
        operator.reign = reign;
        operator.told = None;
        (operator.known, operator.copy_due) = (None, self.now);
        operator.group = Some(Box::new(Group::new(self.store.spec.clone(), now.boot)));
        self.judge.reigned();
        let at = self.soon(MS, 50 * MS);
        self.queue.push(at, Event::Leader(op, reign, ForLeader::Informed));
        self.queue.push(self.now + PICTURE_PACE, Event::Leader(op, reign, ForLeader::Picture));
        let tick = self.soon(MS, 100 * MS);
        self.queue.push(tick, Event::Leader(op, reign, ForLeader::Tick));
        for site in 0..self.names.len() {
            let at = self.soon(MS, 20 * MS);
            self.queue.push(at, Event::Leader(op, reign, ForLeader::Poll(site)));
        }
    }

    fn dethrone(&mut self, op: usize) {
        let operator = &mut self.operators[op];
        operator.group = None;
        operator.reign = 0;
        operator.calls.clear();
        operator.askers.clear();
    }

    /// Something for the leader of that reign.
    pub(super) fn for_leader(&mut self, op: usize, reign: u32, what: ForLeader) {
        let operator = &mut self.operators[op];
        if operator.reign != reign || operator.group.is_none() {
            return;
        }
        if operator.paused {
            return operator.inbox.push(Event::Leader(op, reign, what));
        }
        match what {
            ForLeader::Tick => {
                let pace = if self.is_calm(op) { SEC } else { 250 * MS };
                self.queue.push(self.now + pace, Event::Leader(op, reign, ForLeader::Tick));
                self.feed(op, Input::Tick);
            }
            ForLeader::Poll(site) => {
                let interval = self.scenario.setup.poll;
                self.queue.push(self.now + interval, Event::Leader(op, reign, ForLeader::Poll(site)));
                self.poll(op, site);
                if self.scenario.setup.caches {
                    self.poll_cache(op, site);
                }
            }
            ForLeader::Picture => self.picture(op),
            ForLeader::Input(input) => self.feed(op, *input),
            ForLeader::Informed => {
                let (estate, requests) = (self.estate(), self.store.requests.clone());
                let spec = self.store.spec.clone();
                self.feed(op, Input::Spec(Box::new(spec)));
                self.feed(op, Input::Estate(Box::new(estate)));
                self.feed(op, Input::Requests(Box::new(requests)));
                self.look_for_foreign(op);
            }
            ForLeader::Back(call, answer) => self.call_over(op, call, *answer),
            ForLeader::Late(call) => self.call_over(op, call, Answer::Failed),
        }
    }

    /// Whether nothing is under way that a tick could bring further.
    fn is_calm(&self, op: usize) -> bool {
        let kept = self.operators[op].group.as_ref().and_then(|group| group.kept());
        kept.is_some_and(|kept| {
            kept.record.as_ref().is_some_and(|record| record.phase == Phase::Stable) && kept.planned_active().is_none()
        })
    }

    fn estate(&self) -> Estate {
        let rollouts = self.names.iter().cloned().enumerate().map(|(site, name)| (name, self.rollout(site))).collect();
        Estate { pods: self.store.pods.clone(), own_volumes: self.store.own_volumes.clone(), rollouts }
    }

    /// What stands in the store is not what this leader read or stored last: somebody else wrote it, or the store went back.
    /// Like the real operator it forgets everything and learns it anew, what it found out about sites included.
    fn look_for_foreign(&mut self, op: usize) {
        let operator = &self.operators[op];
        let saving = operator.calls.values().any(|call| matches!(call, Call::Save(_)));
        let Some(group) = operator.group.as_ref().filter(|_| !saving) else { return };
        let Some(known) = group.kept() else { return };
        let stored = self.store.load();
        if stored != *known && plain(stored) != plain(Kept::clone(&known)) {
            self.doubt(op);
        }
    }

    /// The brain's word for it is a leadership that was over for a moment.
    pub(super) fn doubt(&mut self, op: usize) {
        self.operators[op].known = None;
        let until = self.operators[op].group.as_ref().and_then(|group| group.leads_until);
        self.feed(op, Input::Leads(None));
        self.feed(op, Input::Leads(until));
    }

    fn rollout(&self, site: usize) -> Rollout {
        if self.store.template == 0 {
            return Rollout::Current;
        }
        let pod = &self.pods[self.current[site]];
        match pod.runs && pod.server.is_up() && pod.side.brain.is_some() {
            _ if self.store.deployed(site) != self.store.template => Rollout::Drifted,
            true if pod.template == self.store.template => Rollout::Current,
            _ => Rollout::InProgress,
        }
    }

    /// Something changed in the store: watches tell, after a while.
    pub(super) fn inform(&mut self) {
        for op in 0..self.operators.len() {
            if self.operators[op].group.is_none() {
                continue;
            }
            let reign = self.operators[op].reign;
            if let Some(at) = self.carry(End::Store, End::Operator(op), Channel::Http) {
                let late = self.random.below(100 * MS);
                self.queue.push(at + late, Event::Leader(op, reign, ForLeader::Informed));
            }
        }
    }

    /// A call of the leader's is over, one way or another; the first way counts.
    fn call_over(&mut self, op: usize, id: u64, answer: Answer) {
        let Some(call) = self.operators[op].calls.remove(&id) else { return };
        match (call, answer) {
            (Call::Poll { site, under }, answer) => {
                let saw = match answer {
                    Answer::Sql(bloodraven_brain::group::input::Outcome::Read(facts)) => Saw::Facts(facts),
                    _ => Saw::Nothing,
                };
                let site = self.names[site].clone();
                self.feed(op, Input::Polled { site, began_under: under, saw });
            }
            (Call::Work { id }, Answer::Sql(outcome)) => self.feed(op, Input::Done { id, outcome }),
            (Call::Work { id }, _) => self.feed(op, Input::Done { id, outcome: super::sql::broken() }),
            (Call::Load, Answer::Loaded(copies, loaded)) => {
                self.operators[op].known = match &loaded {
                    Loaded::Kept(kept) => Some(Known::new(*copies, Kept::clone(kept))),
                    _ => None,
                };
                self.feed(op, Input::Loaded(loaded));
            }
            (Call::Load, _) => self.feed(op, Input::Loaded(Loaded::Failed)),
            (Call::Save(saving), answer) => self.save_went_on(op, *saving, answer),
            (Call::Picture(picture), answer) => self.picture_went_on(op, *picture, answer),
            (Call::Show, Answer::Shown(labels, dns)) => {
                let dns = if dns { Ok(()) } else { Err("denied".to_owned()) };
                let at = self.operator_now(op).wall;
                self.feed(op, Input::Shown(Shown { labels, dns, taints: Ok(()), at }));
            }
            (Call::Show, _) => {}
            (Call::CachePoll { site }, answer) => {
                let facts = if let Answer::Cache(facts) = answer { facts.map(|facts| *facts) } else { None };
                let site = self.names[site].clone();
                self.feed(op, Input::CachePolled { site, facts });
            }
        }
    }

    /// A sidecar asks: the leader answers by its own rule, a follower with what is stored.
    pub(super) fn asked_operator(&mut self, op: usize, p: usize, life: u32, question: Option<Box<Question>>) {
        let operator = &mut self.operators[op];
        if !operator.up {
            return;
        }
        if operator.paused {
            return operator.inbox.push(Event::AskOperator(op, p, life, question));
        }
        match (&operator.group, question) {
            (Some(_), Some(question)) => {
                operator.next += 1;
                let reply = operator.next;
                operator.askers.insert(reply, (p, life));
                self.feed(op, Input::Asked { question: *question, reply: fence::ReplyId(reply) });
            }
            (Some(group), None) => {
                let view = group.kept().and_then(|kept| kept.record.as_ref().map(Record::view));
                if let Some(view) = view {
                    self.tell_view_of_operator(op, p, life, view);
                }
            }
            (None, _) if !self.store.down => {
                let cut = self.net.link(End::Store, End::Operator(op), Channel::Http).cut;
                if let Some(record) = self.store.record().filter(|_| !cut) {
                    self.tell_view_of_operator(op, p, life, record.view());
                }
            }
            (None, _) => {}
        }
    }

    pub(super) fn tell_view_of_operator(
        &mut self,
        op: usize,
        p: usize,
        life: u32,
        view: bloodraven_brain::record::View,
    ) {
        let input = fence::Input::View { view, source: Source::Operator, reply: None };
        self.operator_to_side(op, p, Some(life), super::event::ForSidecar::Input(Box::new(input)));
    }

    /// It goes on: what came meanwhile comes now.
    pub(super) fn resume_operator(&mut self, op: usize) {
        let operator = &mut self.operators[op];
        if !operator.paused {
            return;
        }
        operator.paused = false;
        for event in std::mem::take(&mut operator.inbox) {
            self.queue.push(self.now, event);
        }
    }
}

/// A site of which nothing is known needs no entry.
pub(super) fn plain(mut kept: Kept) -> Kept {
    kept.sites.retain(|_, site| *site != SiteKept::default());
    kept
}

fn written(result: Result<lease::Lease, super::store::Wrote>) -> Written {
    match result {
        Ok(lease) => Written::Done(lease),
        Err(super::store::Wrote::Conflict) => Written::Conflict,
        Err(_) => Written::Unknown,
    }
}
