//! For tests: a rehearsal in which things go wrong at chosen commands, while applications write wherever they can.

use super::rehearsal::{Actor, Rehearsal};
use crate::group::command::Command;
use crate::group::input::{Facts, Input, Outcome, Saved};
use crate::group::{Group, Kept};
use crate::name::{Instance, Site};
use crate::site::Pair;
use crate::time::{Boot, Now};
use bloodraven_gtid::{Gtid, GtidSet, Source};
use std::collections::{BTreeMap, VecDeque};

/// What goes wrong, and what came of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults {
    /// By the number of the command, counted from the beginning of the plan.
    pub(crate) plan: Vec<(usize, Fault)>,
    /// Commands so far.
    pub(crate) commands: usize,
    /// The leader is dead: nothing more of it is carried out.
    pub(crate) leader_dead: bool,
    /// Requests are not removed, however often that is asked for.
    pub(crate) keep_requests: bool,
    /// Applications write.
    pub(crate) writing: bool,
    /// What applications were told is safe.
    pub(crate) acknowledged: GtidSet,
}

/// What can go wrong at a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The leader dies before it.
    LeaderDies,
    /// It is not carried out, and fails.
    Lost,
    /// It is carried out, and seems to fail.
    AnswerLost,
    /// Server and sidecar of that site die.
    SiteDies(Site),
    /// The server of that site restarts, closed.
    ServerRestarts(Site),
    /// The sidecar of that site is silent from here on.
    SidecarHangs(Site),
}

impl Rehearsal {
    /// A world that begins now, around a leader that knows nothing yet.
    pub(crate) fn new(group: Group, now: Now, store: Kept, actors: BTreeMap<Site, Actor>) -> Self {
        Self {
            group,
            now,
            began: now.boot,
            store,
            actors,
            told: Vec::new(),
            next_poll: now.boot,
            inputs: VecDeque::new(),
            unperformed: Vec::new(),
            faults: Faults::default(),
            writes: Vec::new(),
            openings: Vec::new(),
        }
    }

    /// The leader dies after so many commands.
    pub(crate) fn stop_after(&mut self, commands: usize) {
        self.faults.plan = vec![(self.faults.commands + commands, Fault::LeaderDies)];
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.faults.leader_dead
    }

    /// A new leader, which knows what is stored and what it is told.
    pub(crate) fn with_new_leader(mut self) -> Self {
        let estate = self.group.seen.estate.clone().unwrap_or_default();
        let requests = self.group.seen.requests.clone();
        self.group = Group::new(self.group.spec.clone(), self.now.boot);
        self.inputs.clear();
        self.faults.leader_dead = false;
        self.tell(Input::Estate(Box::new(estate)));
        self.tell(Input::Requests(Box::new(requests)));
        self
    }

    /// Will be taken with the next round.
    pub(crate) fn inputs_next(&mut self, input: Input) {
        self.inputs.push_back(input);
    }

    /// Everything that died is back: servers closed, sidecars with their memory.
    pub(crate) fn heal(&mut self) {
        self.faults.plan.clear();
        for actor in self.actors.values_mut() {
            actor.sidecar = true;
            if !actor.server {
                actor.server = true;
                actor.facts.pair = Pair::CLOSED;
            }
        }
    }

    /// Whether that command is dealt with: lost, or carried out without its answer.
    pub(super) fn meets_a_fault(&mut self, command: &Command) -> bool {
        let number = self.faults.commands;
        self.faults.commands += 1;
        let due: Vec<Fault> =
            self.faults.plan.iter().filter(|(at, _)| *at == number).map(|(_, fault)| fault.clone()).collect();
        let mut dealt_with = false;
        for fault in due {
            match fault {
                Fault::LeaderDies => self.faults.leader_dead = true,
                Fault::SiteDies(site) => self.kill(&site),
                Fault::ServerRestarts(site) => self.with(&site, |actor| actor.facts.pair = Pair::CLOSED),
                Fault::SidecarHangs(site) => self.with(&site, |actor| actor.sidecar = false),
                Fault::Lost => {
                    self.inputs.extend(failure(command));
                    dealt_with = true;
                }
                Fault::AnswerLost => {
                    let answers = self.inputs.len();
                    self.perform(command.clone());
                    self.inputs.truncate(answers);
                    self.inputs.extend(failure(command));
                    dealt_with = true;
                }
            }
        }
        let kept = self.faults.keep_requests && matches!(command, Command::RemoveRequest { .. });
        dealt_with || kept || self.faults.leader_dead
    }

    fn with(&mut self, site: &Site, change: impl FnOnce(&mut Actor)) {
        if let Some(actor) = self.actors.get_mut(site) {
            change(actor);
        }
    }

    /// Every site that lives has a pod that the leader is told of.
    pub(super) fn tell_of_new_pods(&mut self) {
        let Some(mut estate) = self.group.seen.estate.clone() else { return };
        let before = estate.pods.len();
        for (site, actor) in &self.actors {
            let known = estate.pods.iter().any(|pod| *pod.uid == *actor.instance.pod);
            if let (false, Some(like)) = (known, estate.pods.iter().find(|pod| pod.site == *site).cloned()) {
                let uid = actor.instance.pod.clone();
                let alive = crate::group::input::PodFacts { uid, all_terminated: false, deleting: false, ..like };
                estate.pods.push(alive);
            }
        }
        if estate.pods.len() > before {
            self.tell(Input::Estate(Box::new(estate)));
        }
    }

    /// Replicas that follow get what their source has; then every open server takes a write.
    pub(super) fn work_of_applications(&mut self) {
        if !self.faults.writing {
            return;
        }
        let held: BTreeMap<Site, GtidSet> = self
            .actors
            .iter()
            .filter(|(_, actor)| actor.server)
            .map(|(site, actor)| (site.clone(), actor.executed()))
            .collect();
        for actor in self.actors.values_mut().filter(|actor| actor.server) {
            actor.replicate(&held);
            if actor.facts.pair == Pair::OPEN {
                let written = actor.write();
                self.faults.acknowledged = self.faults.acknowledged.union(&written);
            }
        }
    }
}

/// How the leader hears that a command came to nothing, as far as it can know.
fn failure(command: &Command) -> Option<Input> {
    match command {
        Command::Save { id, .. } => Some(Input::Saved { id: *id, saved: Saved::Unknown }),
        Command::Load => Some(Input::Loaded(crate::group::input::Loaded::Failed)),
        Command::Push { to, .. } | Command::Probe { to } => Some(Input::PushFailed { to: to.clone() }),
        Command::Work { id, .. } => Some(Input::Done { id: *id, outcome: Outcome::Failed("lost".to_owned()) }),
        Command::Grant(_)
        | Command::Answer { .. }
        | Command::Show(_)
        | Command::RemoveRequest { .. }
        | Command::Roll { .. }
        | Command::ReleasePod { .. }
        | Command::SetCacheImage { .. } => None,
    }
}

impl Actor {
    /// A fenced server without anything, and its sidecar.
    pub(crate) fn new(site: &Site, facts: Facts, born: Boot) -> Self {
        Self {
            server: true,
            sidecar: true,
            instance: Instance::new(&format!("pod-{site}"), "s1"),
            born,
            epoch: None,
            facts,
            named: false,
            sessions: 0,
            opened_by_hand: false,
            locked: false,
            asked: 0,
            refuses: None,
            cache: None,
            saved: None,
        }
    }

    /// Follows that site and has executed that.
    pub(crate) fn follow_and_hold(&mut self, source: &Site, executed: &GtidSet) {
        self.follow(source, &BTreeMap::from([(source.clone(), executed.clone())]));
        self.facts.user_data = true;
    }

    fn replicate(&mut self, held: &BTreeMap<Site, GtidSet>) {
        let source = self.facts.replica.as_ref().and_then(|replica| replica.source.as_ref());
        let runs = self
            .facts
            .replica
            .as_ref()
            .is_some_and(|replica| replica.receiver != crate::candidate::drain::Receiver::Stopped);
        if let (Some(theirs), Some(data), true) =
            (source.and_then(|source| held.get(source)), &mut self.facts.data, runs)
        {
            data.executed = data.executed.union(theirs);
        }
    }

    fn write(&mut self) -> GtidSet {
        let uuid = self.facts.server_uuid;
        let number = self.executed().count_of(uuid) + 1;
        let mut written = GtidSet::new();
        if let Some(gtid) = Gtid::new(Source { uuid, tag: None }, u64::try_from(number).unwrap_or(1)) {
            written.insert(gtid);
        }
        if let Some(data) = &mut self.facts.data {
            data.executed = data.executed.union(&written);
        }
        written
    }
}
