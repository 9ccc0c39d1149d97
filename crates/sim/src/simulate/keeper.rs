//! Keepers, servers' lives and pods: what starts, what ends, what the kubelet does about it.
//!
//! In: starts, kills, ends. Out: their consequences. Must not: open anything.

use super::clock::{MS, SEC};
use super::event::Event;
use super::scenario::Moment;
use super::server::{Caller, Life, Statement};
use super::sidecar::RESTART;
use super::world::World;
use bloodraven_brain::fence::{Input, KeeperFact, LaneResult, Permit};
use bloodraven_brain::message::StartId;
use bloodraven_brain::time::Millis;

/// How long after its deadline a permit ends in SIGKILL.
const DEAD_MAN: Millis = Millis(2500);

impl World {
    /// The pod's containers begin: sidecar first, then keeper and server.
    pub(super) fn pod_begins(&mut self, p: usize) {
        let pod = &mut self.pods[p];
        if pod.ended || pod.runs || self.lost_nodes[pod.site] {
            return;
        }
        pod.runs = true;
        let (uid, life) = (pod.uid.clone(), pod.side.life);
        for facts in self.store.pods.iter_mut().filter(|facts| facts.uid == uid) {
            facts.started = true;
        }
        self.tell(|w| (format!("pod {}", w.pod_name(p)), "starts".to_owned()));
        let (side, keeper) = (self.soon(20 * MS, 300 * MS), self.soon(100 * MS, 600 * MS));
        self.queue.push(side, Event::SidecarBegins(p, life));
        self.queue.push(keeper, Event::KeeperBegins(p));
        self.inform();
    }

    /// Every container of the pod has ended, for ever.
    pub(super) fn pod_ends(&mut self, p: usize) {
        if self.pods[p].ended {
            return;
        }
        self.sidecar_ends(p, None);
        self.keeper_ends(p, false);
        let pod = &mut self.pods[p];
        pod.runs = false;
        pod.ended = true;
        let (uid, site) = (pod.uid.clone(), pod.site);
        for facts in self.store.pods.iter_mut().filter(|facts| facts.uid == uid) {
            facts.all_terminated = true;
        }
        self.tell(|w| (format!("pod {}", w.pod_name(p)), "has ended".to_owned()));
        let at = self.soon(200 * MS, 4 * SEC);
        self.queue.push(at, Event::NodeVouches(p));
        // The volume is free: its successor begins.
        let next = self.current[site];
        if self.pods[next].waits_for == Some(p) {
            self.take_volume(p, next);
            let at = self.soon(300 * MS, 3 * SEC);
            self.queue.push(at, Event::PodBegins(next));
        }
        self.inform();
    }

    /// A successor that waited for the volume begins with what is on it now.
    fn take_volume(&mut self, old: usize, new: usize) {
        if self.pods[new].side.store != self.pods[old].side.store || self.pods[new].runs {
            return;
        }
        let (mut server, disk) = (self.pods[old].server.clone(), self.pods[old].side.disk.clone());
        server.end();
        server.slow = 0;
        self.pods[new].server = server;
        self.pods[new].side.disk = disk;
    }

    /// The node's Lease was renewed after the pod's last status.
    pub(super) fn node_vouches(&mut self, p: usize) {
        let uid = self.pods[p].uid.clone();
        for facts in self.store.pods.iter_mut().filter(|facts| facts.uid == uid) {
            facts.node_vouches = true;
        }
        self.inform();
    }

    pub(super) fn keeper_begins(&mut self, p: usize) {
        let pod = &mut self.pods[p];
        if !pod.runs || pod.keeper.up {
            return;
        }
        pod.keeper.up = true;
        pod.keeper.life += 1;
        pod.keeper.permit = None;
        pod.keeper.session = None;
        pod.keeper.known_by = None;
        self.pods[p].keeper.goes_on();
        self.start_server(p);
    }

    pub(super) fn start_server(&mut self, p: usize) {
        let start = self.next_number();
        self.pods[p].server.begin(start);
        // As its configuration says: the source's side is on from the start.
        self.pods[p].server.asks = self.scenario.setup.semi_sync;
        let at = self.soon(200 * MS, 2500 * MS);
        self.queue.push(at, Event::ServerUp(p, start));
        self.tell(|w| (format!("mysqld {}", w.pod_name(p)), "starts, closed".to_owned()));
        self.keeper_tells(p);
    }

    pub(super) fn server_up(&mut self, p: usize, start: u64) {
        let server = &mut self.pods[p].server;
        if server.start == start && server.life == Life::Booting {
            server.life = Life::Up;
            if self.store.template > 0 {
                self.inform();
            }
        }
    }

    /// mysqld ends: killed, crashed or stopped. The keeper's container goes with it and is started again.
    pub(super) fn server_dies(&mut self, p: usize) {
        self.server_ends(p, true);
    }

    /// The same; `again`: the kubelet starts the container again.
    pub(super) fn server_ends(&mut self, p: usize, again: bool) {
        if self.pods[p].server.life == Life::Down {
            return;
        }
        let left = self.pods[p].server.end();
        self.pods[p].keeper.permit = None;
        self.tell(|w| (format!("mysqld {}", w.pod_name(p)), "dies".to_owned()));
        self.keeper_tells(p);
        self.keeper_ends(p, again);
        self.unanswered(p, left);
    }

    /// The keeper ends, and the server with it.
    pub(super) fn keeper_ends(&mut self, p: usize, again: bool) {
        let pod = &mut self.pods[p];
        if !pod.keeper.up {
            return;
        }
        pod.keeper.up = false;
        pod.keeper.permit = None;
        pod.keeper.session = None;
        pod.keeper.goes_on();
        let keeper_life = pod.keeper.life;
        let left = pod.server.end();
        self.unanswered(p, left);
        let at = self.soon(20 * MS, 300 * MS);
        self.queue.push(at, Event::KeeperGone(p, keeper_life));
        if again {
            let at = self.soon(RESTART.0, RESTART.1);
            self.queue.push(at, Event::KeeperBegins(p));
        }
    }

    /// The sidecar that had a session finds the keeper's lock free, unless the next keeper has it already.
    pub(super) fn keeper_gone(&mut self, p: usize, keeper_life: u32) {
        let pod = &mut self.pods[p];
        let known = pod.keeper.known_by.filter(|_| !pod.keeper.up && pod.keeper.life == keeper_life);
        if !known.is_some_and(|life| self.sidecar_lives(p, life)) {
            return;
        }
        if self.pods[p].side.paused {
            return self.pods[p].side.inbox.push(Event::KeeperGone(p, keeper_life));
        }
        self.sidecar_step(p, Input::Keeper(KeeperFact { running: None, permit: None }));
    }

    /// Who waited for a statement hears that the connection broke.
    fn unanswered(&mut self, p: usize, left: Vec<Statement>) {
        for statement in left {
            match statement.caller {
                Caller::Sidecar(life, token) => {
                    let at = self.soon(100, MS);
                    self.queue.push(at, Event::Lane(p, life, token, Box::new(LaneResult::Failed)));
                }
                caller @ Caller::Operator(..) => self.answer_operator(p, caller, super::sql::broken()),
                Caller::Nobody => {}
            }
        }
    }

    /// The keeper tells its sidecar that something changed.
    fn keeper_tells(&mut self, p: usize) {
        let pod = &self.pods[p];
        if let Some(life) = pod.keeper.session.filter(|life| self.sidecar_lives(p, *life) && !pod.keeper.paused) {
            let fact = self.keeper_fact(p);
            let at = self.soon(50, 800);
            let input = super::event::ForSidecar::Input(Box::new(Input::Keeper(fact)));
            self.queue.push(at, Event::ToSidecar(p, Some(life), Box::new(input)));
        }
    }

    fn keeper_fact(&self, p: usize) -> KeeperFact {
        let pod = &self.pods[p];
        let running = (pod.server.life != Life::Down).then_some(StartId(pod.server.start));
        KeeperFact { running, permit: pod.keeper.permit }
    }

    pub(super) fn ask_keeper(&mut self, p: usize) {
        let life = self.pods[p].side.life;
        let at = self.soon(50, 500);
        self.queue.push(at, Event::KeeperSays(p, life));
    }

    /// Its word is made when it is given, so that none is older than one before it.
    pub(super) fn keeper_says(&mut self, p: usize, life: u32) {
        if !self.sidecar_lives(p, life) || !self.pods[p].keeper.up {
            return;
        }
        if self.pods[p].side.paused {
            return self.pods[p].side.inbox.push(Event::KeeperSays(p, life));
        }
        if self.pods[p].keeper.paused {
            return self.pods[p].keeper.inbox.push(Event::KeeperSays(p, life));
        }
        self.pods[p].keeper.session = Some(life);
        self.pods[p].keeper.known_by = Some(life);
        let fact = self.keeper_fact(p);
        self.sidecar_step(p, Input::Keeper(fact));
    }

    pub(super) fn give_permit(&mut self, p: usize, permit: Permit) -> bool {
        let pod = &mut self.pods[p];
        let life = pod.side.life;
        let runs = pod.server.life != Life::Down && permit.start == StartId(pod.server.start);
        if !pod.keeper.up || pod.keeper.paused || pod.keeper.session != Some(life) || !runs {
            return false;
        }
        pod.keeper.permit = Some(permit);
        // A permit for what was opened by hand makes it the sidecar's own, under the tenure that it knows.
        if std::mem::take(&mut pod.server.by_hand) {
            self.is_its_sidecars_own(p);
        }
        self.set_dead_man(p, permit);
        self.moment(p, Moment::Permitted);
        true
    }

    /// Open under the tenure that its sidecar knows, whoever sent the statement. Authority that went elsewhere meanwhile is
    /// not its own: what it takes is still of the tenure that it was opened under before.
    pub(super) fn is_its_sidecars_own(&mut self, p: usize) {
        let pod = &mut self.pods[p];
        let named = pod.side.brain.as_ref().filter(|brain| brain.named());
        if let Some(view) = named.and_then(|brain| brain.heard.as_ref()) {
            pod.server.tenure = view.tenure;
        }
    }

    pub(super) fn renew_permit(&mut self, p: usize, permit: Permit) {
        let pod = &mut self.pods[p];
        let life = pod.side.life;
        let same = pod.keeper.permit.is_some_and(|held| held.start == permit.start);
        if pod.keeper.paused {
            pod.keeper.renewal = Some(permit).filter(|_| same && pod.keeper.session == Some(life));
        } else if pod.keeper.up && pod.keeper.session == Some(life) && same {
            pod.keeper.permit = Some(permit);
            self.set_dead_man(p, permit);
        }
    }

    fn set_dead_man(&mut self, p: usize, permit: Permit) {
        let at = self.clock_of(p).when(permit.deadline + DEAD_MAN, self.now);
        let late = self.random.below(100 * MS);
        self.queue.push(at + late, Event::DeadMan(p, permit.start.0));
    }

    pub(super) fn dead_man(&mut self, p: usize, start: u64) {
        let boot = self.boot_of(p);
        let pod = &self.pods[p];
        if pod.keeper.paused {
            return self.pods[p].keeper.inbox.push(Event::DeadMan(p, start));
        }
        let over = pod.keeper.permit.is_some_and(|permit| {
            permit.start == StartId(start) && boot >= permit.deadline + DEAD_MAN && pod.server.start == start
        });
        if over {
            self.tell(|w| (format!("keeper {}", w.pod_name(p)), "the permit is over: kills mysqld".to_owned()));
            self.server_dies(p);
        }
    }

    pub(super) fn kill_for_sidecar(&mut self, p: usize, start: u64, token: u64) {
        let life = self.pods[p].side.life;
        let keeper = &self.pods[p].keeper;
        if keeper.paused {
            // It lies in the socket; the sidecar's patience ends before.
            self.pods[p].keeper.inbox.push(Event::Reaped(p, start, None));
            let at = self.soon(400 * MS, 600 * MS);
            self.queue.push(at, Event::Lane(p, life, token, Box::new(LaneResult::Failed)));
        } else if keeper.up && keeper.session == Some(life) {
            let at = self.soon(MS, 30 * MS);
            self.tell(|w| (w.sidecar_name(p), "has its keeper kill mysqld".to_owned()));
            self.queue.push(at, Event::Reaped(p, start, Some((life, token))));
        } else {
            let at = self.soon(MS, 5 * MS);
            self.queue.push(at, Event::Lane(p, life, token, Box::new(LaneResult::Failed)));
        }
    }

    /// A server that was killed is gone; whoever wanted it is told.
    pub(super) fn reaped(&mut self, p: usize, start: u64, teller: Option<(u32, u64)>) {
        if self.pods[p].server.start == start && self.pods[p].server.life != Life::Down {
            self.server_dies(p);
        }
        if let Some((life, token)) = teller {
            let at = self.soon(50, 500);
            self.queue.push(at, Event::Lane(p, life, token, Box::new(LaneResult::Killed(StartId(start)))));
        }
    }
}

impl World {
    /// The keeper goes on: a renewal that lay in its socket first, then what fell due meanwhile.
    pub(super) fn resume_keeper(&mut self, p: usize) {
        if !std::mem::take(&mut self.pods[p].keeper.paused) {
            return;
        }
        if let Some(permit) = self.pods[p].keeper.renewal.take() {
            self.renew_permit(p, permit);
        }
        for event in std::mem::take(&mut self.pods[p].keeper.inbox) {
            self.queue.push(self.now, event);
        }
    }
}

impl super::pod::Keeper {
    /// A new process stands still for nobody.
    fn goes_on(&mut self) {
        self.paused = false;
        self.inbox.clear();
        self.renewal = None;
    }
}
