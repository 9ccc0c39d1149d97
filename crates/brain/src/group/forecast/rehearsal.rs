//! A world in which everything that lives does at once what it is asked for.

use super::Ending;
use crate::authority::Answer;
use crate::candidate::Data;
use crate::candidate::drain::{Applier, Receiver};
use crate::group::command::{Command, RequestKind, SourceSwitch, Switch, Task};
use crate::group::input::{
    CacheFacts, Facts, Input, Loaded, Outcome, ReplicaFacts, Saved, Saw, Shown, SourceSide, Word,
};
use crate::group::{Group, Kept, Notice, Stored};
use crate::message::{Ack, FencedBy, Grant, Question, QuestionId, StartId};
use crate::name::{Instance, Member, Site};
use crate::record::{Epoch, View};
use crate::site::Pair;
use crate::time::{Boot, Millis, Now};
use bloodraven_gtid::GtidSet;
use std::collections::{BTreeMap, VecDeque};

/// How often the leader hears that time has passed.
const TICK: Millis = Millis(250);

/// As many inputs are taken between two ticks; a leader that asks for more goes round in circles.
const INPUTS: usize = 2000;

/// See above.
#[derive(Clone, Debug)]
pub(crate) struct Rehearsal {
    pub(crate) group: Group,
    pub(crate) now: Now,
    pub(super) began: Boot,
    pub(crate) store: Kept,
    pub(crate) actors: BTreeMap<Site, Actor>,
    pub(crate) told: Vec<(Millis, Notice)>,
    pub(crate) next_poll: Boot,
    pub(super) inputs: VecDeque<Input>,
    /// What nobody here carries out.
    pub(crate) unperformed: Vec<Command>,
    /// What goes wrong, by the number of the command.
    #[cfg(test)]
    pub(crate) faults: super::faults::Faults,
    /// Everything that was ever stored, in order.
    #[cfg(test)]
    pub(crate) writes: Vec<Kept>,
    /// Who was opened, and how it stood with receipts then.
    #[cfg(test)]
    pub(crate) openings: Vec<(Site, crate::group::input::SemiSync)>,
}

/// One site.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "two processes and some facts, each true or false")]
pub(crate) struct Actor {
    pub(crate) server: bool,
    pub(crate) sidecar: bool,
    pub(crate) instance: Instance,
    pub(crate) born: Boot,
    pub(crate) epoch: Option<Epoch>,
    pub(crate) facts: Facts,
    /// It was given the right to write under the epoch it has stored.
    pub(super) named: bool,
    /// Applications hold that many sessions that do not end.
    pub(crate) sessions: u64,
    /// Its sidecar tells of a hand that opened it.
    pub(crate) opened_by_hand: bool,
    /// Its server lets nobody in.
    pub(crate) locked: bool,
    /// Questions so far.
    pub(super) asked: u64,
    /// Tasks that fail.
    pub(crate) refuses: Option<fn(&Task) -> bool>,
    /// What its cache says; none: it does not answer.
    pub(crate) cache: Option<CacheFacts>,
    /// Keys in its cache's snapshot.
    pub(super) saved: Option<u64>,
}

impl Rehearsal {
    /// A copy of what the leader knows; none while it does not know what is stored.
    pub(crate) fn of(group: &Group, now: Now) -> Option<Self> {
        let Stored::Known(kept) = &group.stored else { return None };
        let lease = group.lease(kept.record.as_ref());
        let actor = |site: &Site| {
            let seen = group.seen.site(site)?;
            let (instance, heard) = seen.present(lease, now.boot)?;
            let facts = seen.facts.as_deref().cloned()?;
            let named = kept.record.as_ref().is_some_and(|record| record.seat == Some(Member::new(site, instance)));
            Some(Actor {
                server: seen.watch.state.is_reachable(),
                sidecar: true,
                instance: instance.clone(),
                born: heard.at - heard.ack.uptime,
                epoch: heard.ack.epoch,
                facts,
                named,
                sessions: 0,
                opened_by_hand: false,
                locked: false,
                asked: 0,
                refuses: None,
                cache: seen.cache.clone().flatten(),
                saved: None,
            })
        };
        let sites = group.spec.names();
        let actors = sites.iter().filter_map(|site| Some((site.clone(), actor(site)?))).collect();
        let mut group = group.clone();
        group.forget_what_is_under_way();
        Some(Self {
            group,
            now,
            began: now.boot,
            store: Kept::clone(kept),
            actors,
            told: Vec::new(),
            next_poll: now.boot,
            inputs: VecDeque::new(),
            unperformed: Vec::new(),
            #[cfg(test)]
            faults: super::faults::Faults::default(),
            #[cfg(test)]
            writes: Vec::new(),
            #[cfg(test)]
            openings: Vec::new(),
        })
    }

    /// Carries a command out, unless a test has other plans for it.
    fn carry_out(&mut self, command: Command) {
        #[cfg(test)]
        if self.meets_a_fault(&command) {
            return;
        }
        self.perform(command);
    }

    /// The server and the sidecar of that site are gone.
    pub(crate) fn kill(&mut self, site: &Site) {
        if let Some(actor) = self.actors.get_mut(site) {
            (actor.server, actor.sidecar) = (false, false);
            actor.cache = None;
        }
    }

    pub(crate) fn elapsed(&self) -> Millis {
        self.now.boot.since(self.began)
    }

    /// The site that is confirmed to write.
    pub(crate) fn writer(&self) -> Option<Site> {
        let kept = self.group.kept()?;
        self.group.serving(&kept).map(|member| member.site.clone())
    }

    pub(super) fn nobody(&self) -> Ending {
        let judged = self.group.judged.as_ref();
        Ending::Nobody {
            verdict: judged.map(|judged| judged.verdict.clone()),
            obstacle: self.group.obstacle.clone(),
            alert: judged.and_then(|judged| judged.alert.clone()),
        }
    }

    /// Lets time pass until that is so, or the bound is reached. Returns whether it is so.
    pub(crate) fn play(&mut self, bound: Millis, until: impl Fn(&Self) -> bool) -> bool {
        let end = self.now.boot + bound;
        // Bounded by the time, which moves on with every round.
        while self.now.boot < end {
            if until(self) {
                return true;
            }
            self.round();
        }
        until(self)
    }

    /// One tick: leadership is renewed, sites are polled when due, and everything that follows happens.
    fn round(&mut self) {
        self.now.boot = self.now.boot + TICK;
        self.now.wall = self.now.wall.after(TICK);
        #[cfg(test)]
        self.tell_of_new_pods();
        #[cfg(test)]
        self.work_of_applications();
        self.tell(Input::Leads(Some(self.now.boot + Millis::from_secs(10))));
        if self.now.boot >= self.next_poll {
            self.next_poll = self.now.boot + self.group.spec.poll_interval;
            let epoch = self.store.epoch();
            for site in self.group.spec.names() {
                let saw = self.actors.get(&site).filter(|actor| actor.server);
                let saw = match saw {
                    None => Saw::Nothing,
                    Some(actor) if actor.locked => Saw::LoginRefused,
                    Some(actor) => Saw::Facts(Box::new(actor.facts.clone())),
                };
                self.tell(Input::Polled { site, began_under: epoch, saw });
            }
            self.poll_caches();
        }
        self.tell(Input::Tick);
    }

    /// Puts an input to the leader, and everything that follows from it.
    pub(crate) fn tell(&mut self, input: Input) {
        self.inputs.push_back(input);
        for _ in 0..INPUTS {
            let Some(input) = self.inputs.pop_front() else { return };
            let step = self.group.step(self.now, input);
            let after = self.elapsed();
            self.told.extend(step.notices.into_iter().map(|notice| (after, notice)));
            for command in step.commands {
                self.carry_out(command);
            }
        }
        self.inputs.clear();
    }

    pub(super) fn perform(&mut self, command: Command) {
        let answer = match command {
            Command::Load => Input::Loaded(Loaded::Kept(Box::new(self.store.clone()))),
            Command::Save { id, kept } => {
                self.store = *kept;
                #[cfg(test)]
                self.writes.push(self.store.clone());
                Input::Saved { id, saved: Saved::All }
            }
            Command::Push { to, view } => self.push(to, &view),
            Command::Probe { to } => match self.actors.get_mut(&to).filter(|actor| actor.sidecar) {
                Some(actor) => Input::Heard(Box::new(actor.word(&to, self.now.boot))),
                None => Input::PushFailed { to },
            },
            Command::Grant(grant) => return self.grant(&grant),
            Command::Answer { answer, .. } => {
                if let Some(Answer::Grant(grant)) = answer.map(|answer| *answer) {
                    self.grant(&grant);
                }
                return;
            }
            Command::Work { id, site, task, .. } => Input::Done { id, outcome: self.work(&site, &task) },
            Command::Show(_) => {
                let at = self.now.wall;
                Input::Shown(Shown { labels: true, dns: Ok(()), taints: Ok(()), at })
            }
            Command::RemoveRequest { kind, .. } => {
                let mut requests = self.group.seen.requests.clone();
                match kind {
                    RequestKind::PlannedFailover => requests.planned = None,
                    RequestKind::Reclone => requests.reclone = None,
                    RequestKind::CacheUpgrade => requests.cache_upgrade = None,
                }
                Input::Requests(Box::new(requests))
            }
            Command::SetCacheImage { image } => {
                let mut spec = self.group.spec.clone();
                if let Some(cache) = &mut spec.cache {
                    cache.image = image;
                }
                Input::Spec(Box::new(spec))
            }
            Command::Roll { .. } | Command::ReleasePod { .. } => {
                return self.unperformed.push(command);
            }
        };
        self.inputs.push_back(answer);
    }

    fn push(&mut self, to: Site, view: &View) -> Input {
        let now = self.now.boot;
        let Some(actor) = self.actors.get_mut(&to).filter(|actor| actor.sidecar) else {
            return Input::PushFailed { to };
        };
        let me = Member::new(&to, &actor.instance);
        actor.epoch = actor.epoch.max(Some(view.epoch));
        actor.named = view.names(&me);
        if !actor.named && actor.server {
            actor.facts.pair = Pair::CLOSED;
        }
        Input::Heard(Box::new(actor.word(&to, now)))
    }

    fn grant(&mut self, grant: &Grant) {
        let Some(actor) = self.actors.get_mut(&grant.to.site).filter(|actor| actor.server && actor.sidecar) else {
            return;
        };
        if grant.open.is_some() && actor.named && actor.instance == grant.to.instance {
            actor.facts.pair = Pair::OPEN;
            actor.facts.replica = None;
            #[cfg(test)]
            self.openings.push((grant.to.site.clone(), actor.facts.semi_sync));
        }
    }

    fn work(&mut self, site: &Site, task: &Task) -> Outcome {
        if let Task::Cache(task) = task {
            return self.cache_work(site, task);
        }
        let all: BTreeMap<Site, GtidSet> =
            self.actors.iter().map(|(site, actor)| (site.clone(), actor.executed())).collect();
        let Some(actor) = self.actors.get_mut(site).filter(|actor| actor.server) else {
            return Outcome::Failed("the site does not answer".to_owned());
        };
        if actor.refuses.is_some_and(|refuses| refuses(task)) {
            return Outcome::Failed("refused".to_owned());
        }
        actor.work(task, &all)
    }
}

impl Actor {
    pub(crate) fn executed(&self) -> GtidSet {
        self.facts.data.as_ref().map(|data| data.executed.clone()).unwrap_or_default()
    }

    /// Its acknowledgement, with a question if it could open.
    pub(crate) fn word(&mut self, site: &Site, now: Boot) -> Word {
        let from = Member::new(site, &self.instance);
        let fenced = !self.server || self.facts.pair.is_fenced();
        self.asked += 1;
        let question =
            Question { id: QuestionId(self.asked), from: from.clone(), epoch: self.epoch.unwrap_or(0), open: true };
        let ack = Ack {
            from,
            epoch: self.epoch,
            fenced,
            gtid: (fenced && self.server).then(|| self.executed()),
            fenced_by: fenced.then_some(FencedBy::Boot),
            opened_by_hand: self.opened_by_hand,
            conflict: false,
            mysqld: self.server.then_some(StartId(1)),
            last_vouch: BTreeMap::new(),
            last_answer: BTreeMap::new(),
            uptime: now.since(self.born),
        };
        let question = (self.named && fenced && self.server).then_some(question);
        Word { ack, lay: Millis(0), via: None, question }
    }

    fn work(&mut self, task: &Task, all: &BTreeMap<Site, GtidSet>) -> Outcome {
        if self.locked {
            return Outcome::Refused("login refused".to_owned());
        }
        match task {
            Task::Fence => self.facts.pair = Pair::CLOSED,
            Task::EndSessions => return Outcome::Sessions(self.sessions),
            Task::StartApplier | Task::LiftDelay | Task::StartReplica => {
                if let Some(replica) = &mut self.facts.replica {
                    (replica.applier, replica.receiver) = (Applier::Running, Receiver::Running);
                }
                if let Some(data) = &mut self.facts.data {
                    data.executed = data.held();
                }
                return Outcome::Ok;
            }
            Task::Clone { donor, .. } => {
                let executed = all.get(donor).cloned().unwrap_or_default();
                self.facts.data = Some(Data { purged: executed.clone(), executed, ..Data::default() });
                self.facts.replica = None;
                return Outcome::Cloned;
            }
            Task::Read | Task::Cache(_) => {}
            Task::SwitchSemiSync(switch) => self.switch_semi_sync(*switch),
            // A rehearsal has no passwords: everybody is let in.
            Task::CheckLogins { .. } | Task::SetPasswords { .. } | Task::DiscardPasswords { .. } => {
                return Outcome::Logins(Box::default());
            }
            Task::RenewChannel { .. } => return Outcome::Ok,
            Task::StopReceiver => {
                if let Some(replica) = &mut self.facts.replica {
                    replica.receiver = Receiver::Stopped;
                }
            }
            Task::CutReplication { .. } => self.facts.replica = None,
            Task::Attach { source, .. } | Task::Repoint { source, .. } => self.follow(source, all),
            Task::WaitFor { set } => {
                if let (Some(data), Some(_)) = (&mut self.facts.data, &self.facts.replica) {
                    data.executed = data.executed.union(set);
                }
            }
        }
        Outcome::Read(Box::new(self.facts.clone()))
    }

    fn switch_semi_sync(&mut self, switch: Switch) {
        let semi_sync = &mut self.facts.semi_sync;
        match switch.source {
            Some(SourceSwitch::On { timeout }) => semi_sync.source = Some(SourceSide { timeout, strict: true }),
            Some(SourceSwitch::OffIfClosed | SourceSwitch::Off) => semi_sync.source = None,
            None => {}
        }
        semi_sync.waits = semi_sync.source.is_some();
        if let Some(on) = switch.replica {
            (semi_sync.replica, semi_sync.acknowledges) = (on, on && self.facts.replica.is_some());
        }
    }

    pub(super) fn follow(&mut self, source: &Site, all: &BTreeMap<Site, GtidSet>) {
        if let (Some(data), Some(theirs)) = (&mut self.facts.data, all.get(source)) {
            data.executed = data.executed.union(theirs);
            data.received = GtidSet::new();
        }
        self.facts.pair = Pair::CLOSED;
        self.facts.replica = Some(ReplicaFacts {
            source: Some(source.clone()),
            receiver: Receiver::Running,
            receiver_error: None,
            applier: Applier::Running,
            delayed: false,
            behind: Some(Millis(0)),
        });
    }
}
