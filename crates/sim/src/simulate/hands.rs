//! The leader's hands: the store, the servers, the sidecars. Leadership is checked right before every call that changes
//! anything.
//!
//! In: commands of the group's step. Out: calls, and later their ends. Must not: do what a later step has not decided.

use super::clock::{MS, SEC, Time};
use super::event::{Answer, Event, ForLeader, ForSidecar, Wish};
use super::net::{Channel, End};
use super::operator::Call;
use super::server::{Caller, Does};
use super::world::World;
use bloodraven_brain::authority;
use bloodraven_brain::fence;
use bloodraven_brain::group::command::RequestKind;
use bloodraven_brain::group::{Command, Input, Kept, Task};

/// How long a call to the store may take.
pub(super) const STORE_BOUND: Time = 5 * SEC;

impl World {
    /// One step of the group's brain, and what it wants done.
    pub(super) fn feed(&mut self, op: usize, input: Input) {
        let now = self.operator_now(op);
        let Some(group) = &mut self.operators[op].group else { return };
        let step = group.step(now, input);
        if let Some(audience) = &mut self.audience {
            audience.leader(op, now, group, &step.notices);
        }
        for notice in step.notices {
            self.judge.heard(&notice);
            self.tell(|_| (format!("operator {op}"), format!("{notice:?}")));
        }
        let reign = self.operators[op].reign;
        for command in step.commands {
            if self.operators[op].reign != reign {
                return;
            }
            if let Some(left) = &mut self.operators[op].fuse {
                if *left == 0 {
                    let after = self.random.between(SEC, 12 * SEC);
                    return self.operator_dies(op, Some(after));
                }
                *left -= 1;
            }
            self.command(op, reign, command);
        }
    }

    pub(super) fn leads(&self, op: usize) -> bool {
        let boot = self.operator_now(op).boot;
        self.operators[op].election.as_ref().is_some_and(|election| election.leads(boot))
    }

    fn command(&mut self, op: usize, reign: u32, command: Command) {
        if !self.leads(op) {
            return;
        }
        match command {
            Command::Load => {
                self.drop_picture(op);
                self.call_store(op, Call::Load, Wish::Load, STORE_BOUND);
            }
            Command::Save { id, kept } => self.save(op, id, kept),
            Command::Push { to, view } => {
                let site = self.site_number(&to);
                let Some(p) = site.and_then(|site| self.pod_at(site)) else {
                    let at = self.soon(MS, 20 * MS);
                    return self.queue.push(at, super::operator::input(op, reign, Input::PushFailed { to }));
                };
                if !self.operator_to_side(op, p, None, ForSidecar::Push(op, reign, view)) {
                    let late = super::operator::input(op, reign, Input::PushFailed { to });
                    self.queue.push(self.now + 2 * SEC, late);
                }
            }
            Command::Probe { to } => {
                if let Some(p) = self.site_number(&to).and_then(|site| self.pod_at(site)) {
                    self.operator_to_side(op, p, None, ForSidecar::Probe(op, reign));
                }
            }
            Command::Answer { reply, answer } => {
                let Some((p, life)) = self.operators[op].askers.remove(&reply.0) else { return };
                match answer.map(|answer| *answer) {
                    Some(authority::Answer::Grant(grant)) => {
                        let input = fence::Input::Granted { grant: *grant, reply: None };
                        self.operator_to_side(op, p, Some(life), ForSidecar::Input(Box::new(input)));
                    }
                    Some(authority::Answer::View(view)) => self.tell_view_of_operator(op, p, life, *view),
                    None => {}
                }
            }
            Command::Grant(grant) => {
                let to = self.pods.iter().position(|pod| pod.member() == grant.to);
                if let Some(p) = to {
                    self.operator_to_side(op, p, None, ForSidecar::Grant(op, reign, grant));
                }
            }
            Command::Work { id, site, task: Task::Cache(task), within, .. } => {
                let id = self.new_call(op, Call::Work { id }, within.0 * MS);
                if let Some(site) = self.site_number(&site).filter(|site| *site < self.caches.len()) {
                    self.call_cache(op, site, id, Some(task));
                }
            }
            Command::Work { id, site, server, task, within } => {
                let does = Does::Task(Box::new(task), server);
                if let Some(site) = self.site_number(&site) {
                    self.call_server(op, site, Call::Work { id }, does, within.0 * MS);
                }
            }
            Command::Show(outward) => self.call_store(op, Call::Show, Wish::Show(outward), STORE_BOUND),
            Command::RemoveRequest { kind, text } => self.wish(op, Wish::Remove(kind, text)),
            Command::ReleasePod { uid } => self.wish(op, Wish::Release(uid)),
            Command::Roll { site } => {
                if let Some(site) = self.site_number(&site) {
                    self.wish(op, Wish::Roll(site));
                }
            }
            Command::SetCacheImage { image } => self.wish(op, Wish::CacheImage(image)),
        }
    }

    pub(super) fn operator_to_side(&mut self, op: usize, p: usize, life: Option<u32>, what: ForSidecar) -> bool {
        let Some(to) = self.end_of(p) else { return false };
        let [first, again] = self.carry_twice(End::Operator(op), to, Channel::Http);
        let Some(at) = first else { return false };
        if let (Some(again), ForSidecar::Push(op, reign, view)) = (again, &what) {
            let copy = ForSidecar::Push(*op, *reign, view.clone());
            self.queue.push(again, Event::ToSidecar(p, life, Box::new(copy)));
        }
        self.queue.push(at, Event::ToSidecar(p, life, Box::new(what)));
        true
    }

    pub(super) fn poll(&mut self, op: usize, site: usize) {
        let Some(group) = &self.operators[op].group else { return };
        let under = group.kept().map_or(0, |kept| kept.epoch());
        let interval = self.scenario.setup.poll;
        self.call_server(op, site, Call::Poll { site, under }, Does::Poll, interval);
    }

    pub(super) fn new_call(&mut self, op: usize, call: Call, within: Time) -> u64 {
        let operator = &mut self.operators[op];
        operator.next += 1;
        let (id, reign) = (operator.next, operator.reign);
        operator.calls.insert(id, call);
        self.queue.push(self.now + within, Event::Leader(op, reign, ForLeader::Late(id)));
        id
    }

    fn call_server(&mut self, op: usize, site: usize, call: Call, does: Does, within: Time) {
        let id = self.new_call(op, call, within);
        let reign = self.operators[op].reign;
        let refused = |world: &mut Self| {
            let at = world.soon(MS, 20 * MS);
            world.queue.push(at, Event::Leader(op, reign, ForLeader::Back(id, Box::new(Answer::Failed))));
        };
        let Some(p) = self.pod_at(site) else { return refused(self) };
        let Some(end) = self.end_of(p) else { return };
        if let Some(at) = self.carry(End::Operator(op), end, Channel::Sql) {
            self.queue.push(at, Event::Reaches(p, Box::new(does), Caller::Operator(op, reign, id)));
        }
    }

    pub(super) fn call_store(&mut self, op: usize, call: Call, wish: Wish, within: Time) {
        let id = self.new_call(op, call, within);
        self.send_to_store(op, id, wish);
    }

    /// Without an answer.
    fn wish(&mut self, op: usize, wish: Wish) {
        self.send_to_store(op, 0, wish);
    }

    fn send_to_store(&mut self, op: usize, id: u64, wish: Wish) {
        let reign = self.operators[op].reign;
        if let Some(at) = self.carry(End::Operator(op), End::Store, Channel::Http) {
            self.queue.push(at, Event::AtStore(op, reign, id, Box::new(wish)));
        }
    }

    /// What a leader wants reaches the store. A write whose answer is lost still happened.
    pub(super) fn at_store(&mut self, op: usize, reign: u32, id: u64, wish: Wish) {
        if self.store.down {
            return;
        }
        let answer = match wish {
            Wish::Load => {
                let loaded = super::status::read_back(&self.store.annotation, &self.store.status);
                Answer::Loaded(Box::new(self.store.copies()), loaded)
            }
            Wish::Look => Answer::Looked(Box::new(self.store.copies())),
            Wish::Annotate(version, kept) => {
                let wrote = self.store.write_annotation(version, &kept);
                self.was_persisted(op, wrote, &kept);
                Answer::Annotated(wrote, self.store.version)
            }
            Wish::Store(version, kept) => {
                let wrote = self.store.write_status(version, Kept::clone(&kept));
                self.was_persisted(op, wrote, &kept);
                Answer::Stored(wrote, self.store.version)
            }
            Wish::Show(outward) => {
                let (labels, dns) = self.store.show(&outward);
                Answer::Shown(labels, dns)
            }
            Wish::Release(uid) => {
                self.store.release_pod(&uid);
                return self.inform();
            }
            Wish::Roll(site) => return self.roll_pod(site),
            Wish::CacheImage(image) => {
                if let Some(cache) = &mut self.store.spec.cache {
                    cache.image = image;
                }
                self.store.version += 1;
                return self.inform();
            }
            Wish::Remove(kind, text) => return self.remove_request(op, kind, &text),
        };
        if let Some(at) = self.carry(End::Store, End::Operator(op), Channel::Http) {
            self.queue.push(at, Event::Leader(op, reign, ForLeader::Back(id, Box::new(answer))));
        }
    }

    fn remove_request(&mut self, op: usize, kind: RequestKind, text: &str) {
        let requests = &mut self.store.requests;
        match kind {
            RequestKind::PlannedFailover => drop(requests.planned.take_if(|request| request.text == text)),
            RequestKind::Reclone => drop(requests.reclone.take_if(|request| request.text == text)),
            RequestKind::CacheUpgrade => drop(requests.cache_upgrade.take_if(|request| request.text == text)),
        }
        // Its own write tells it the new version.
        let version = self.store.version;
        if let Some(known) = self.operators[op].known.as_mut().filter(|known| known.copies.version == version) {
            known.copies.version += 1;
        }
        self.store.version += 1;
        self.inform();
    }
}
