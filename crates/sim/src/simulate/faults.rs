//! Faults: what strikes whom, and how it is undone.
//!
//! In: the scenario's faults, when their time has come. Out: a world in which they have happened. Must not: break an
//! assumption of the protocol, but for those that a scenario names itself.

use super::clock::{MS, SEC};
use super::event::Event;
use super::net::{Channel, End, Link};
use super::scenario::{Edit, Fault, Moment, Process, Victim};
use super::server::Life;
use super::sidecar::RESTART;
use super::world::World;
use bloodraven_brain::group::spec::Pause;
use bloodraven_brain::time::Millis;
use std::sync::Arc;

impl World {
    /// The fault of that number strikes.
    pub(super) fn strike(&mut self, number: usize) {
        let Some(fault) = self.scenario.faults.get(number).map(|timed| timed.what) else { return };
        if self.healed {
            return;
        }
        self.tell(|_| ("FAULT".to_owned(), super::text::print(&fault)));
        match fault {
            Fault::Cut(from, to, channel) => self.links(from, to, channel, false, |link| link.cut = true),
            Fault::CutBoth(from, to, channel) => self.links(from, to, channel, true, |link| link.cut = true),
            Fault::Mend(from, to) => self.links(from, to, None, true, |link| *link = Link::default()),
            Fault::Isolate(end) => self.links_of(end, |link| link.cut = true),
            Fault::Rejoin(end) => self.links_of(end, |link| *link = Link::default()),
            Fault::Loss(from, to, percent) => self.links(from, to, None, true, |link| link.loss = percent),
            Fault::Delay(from, to, delay) => self.links(from, to, None, true, |link| link.delay = delay),
            Fault::Kill(process) => self.kill(process),
            Fault::Pause(process) => self.pause(process),
            Fault::Resume(process) => self.resume(process),
            Fault::Hold(process) => self.hold(process),
            Fault::Release(process) => self.release(process),
            Fault::Stop(site) => self.stop_server(site),
            Fault::CrashAfter(op, commands) => {
                if let Some(operator) = self.operators.get_mut(op) {
                    operator.fuse = Some(commands);
                }
            }
            Fault::DeletePod(site) => self.delete_pod(site, true),
            Fault::ForceDeletePod(site) => self.force_delete_pod(site),
            Fault::LoseVolume(site) => self.delete_pod(site, false),
            Fault::LoseNode(site) => self.lose_node(site),
            Fault::ReturnNode(site) => self.return_node(site),
            Fault::Deny(what) => self.store.denied.push(what),
            Fault::Allow(what) => self.store.denied.retain(|denied| *denied != what),
            Fault::StoreDown => self.store.down = true,
            Fault::StoreUp => self.store.down = false,
            Fault::BackUpStore => self.store.back_up(),
            Fault::RestoreStore => self.restore_store(),
            Fault::Conflict => self.store.version += 1,
            Fault::ClockJump(end, seconds) => self.jump(end, seconds),
            Fault::MustBeClosed(site) => self.must_be_closed(site),
            Fault::Ambush(moment, victim) => self.ambushes.push((moment, victim)),
            Fault::Edit(edit) => self.edit(edit),
            Fault::Planned(site) => self.request(site, true),
            Fault::Reclone(site) => self.request(site, false),
            fault => self.strike_server(fault),
        }
    }

    /// A moment of the protocol has come, about that pod: who lay in wait for it strikes, at once or a little later.
    pub(super) fn moment(&mut self, p: usize, moment: Moment) {
        let Some(place) = self.ambushes.iter().position(|(when, _)| *when == moment) else { return };
        let (_, victim) = self.ambushes.remove(place);
        let at = if self.random.chance(50) { self.soon(1, 3 * MS) } else { self.soon(MS, 400 * MS) };
        self.queue.push(at, Event::Struck(p, victim));
    }

    pub(super) fn struck(&mut self, p: usize, victim: Victim) {
        if self.healed {
            return;
        }
        self.tell(|w| ("FAULT".to_owned(), format!("ambush: {victim:?} of {}", w.pod_name(p))));
        let again = self.random.between(RESTART.0, RESTART.1);
        let long = self.random.between(SEC, 30 * SEC);
        match victim {
            Victim::Mysqld => self.server_dies(p),
            Victim::Keeper => self.keeper_ends(p, true),
            Victim::Sidecar => self.sidecar_ends(p, Some(again)),
            Victim::MysqldStops => {
                let server = &mut self.pods[p].server;
                server.hung = server.life == Life::Up;
                self.queue.push(self.now + long, Event::GoesOn(p));
            }
            Victim::SidecarStops => {
                self.pods[p].side.paused = self.pods[p].side.brain.is_some();
                self.queue.push(self.now + long, Event::GoesOn(p));
            }
            Victim::Operator => {
                for op in 0..self.operators.len() {
                    let after = self.random.between(SEC, 15 * SEC);
                    self.operator_dies(op, Some(after));
                }
            }
        }
    }

    fn strike_server(&mut self, fault: Fault) {
        match fault {
            Fault::FillDisk(site) => self.fill(site, true),
            Fault::FreeDisk(site) => self.fill(site, false),
            Fault::SlowSql(site, by) => {
                let server = &mut self.pods[self.current[site]].server;
                (server.slow, server.eased_at) = (by, self.now);
            }
            Fault::BlockFence(site, long) => {
                let until = self.now + long;
                self.pods[self.current[site]].server.blocked_until = until;
            }
            Fault::StopApplier(site) => self.pods[self.current[site]].server.applier = false,
            Fault::BreakApplier(site) => {
                let server = &mut self.pods[self.current[site]].server;
                server.applier = false;
                server.applier_error = server.source.is_some();
            }
            Fault::SlowApplier(site, by) => self.pods[self.current[site]].server.slow_applier = by,
            Fault::DelayReplica(site, by) => self.pods[self.current[site]].server.delay = by,
            Fault::StopReceiver(site) => self.pods[self.current[site]].server.receiver = false,
            Fault::Purge(site) => {
                let server = &mut self.pods[self.current[site]].server;
                server.purged = server.executed.clone();
            }
            Fault::HumanFence(site) => {
                let server = &mut self.pods[self.current[site]].server;
                if server.is_up() && !server.hung {
                    server.fence_half(0, true);
                    server.fence_half(1, true);
                }
            }
            Fault::HumanOpen(site) => self.human_opens(site),
            _ => {}
        }
    }

    fn human_opens(&mut self, site: usize) {
        let p = self.current[site];
        // What its sidecar has a permit for is its own again, or for the first time: the statement may still be to come.
        let permitted = self.pods[p].keeper.permit.is_some();
        let server = &mut self.pods[p].server;
        if !server.is_up() || server.hung || !server.read_only {
            return;
        }
        server.open_half(0);
        server.open_half(1);
        server.by_hand = !permitted;
        server.hand_opened_at = self.now;
        if server.by_hand {
            self.watch_hand_opening(p);
        } else {
            self.is_its_sidecars_own(p);
        }
    }

    fn fill(&mut self, site: usize, full: bool) {
        let pod = &mut self.pods[self.current[site]];
        pod.side.full = full;
        pod.server.full = full;
        if !full {
            pod.server.blocked_until = 0;
            let p = self.current[site];
            self.go_on_applying(p);
        }
    }

    fn links(&mut self, from: End, to: End, channel: Option<Channel>, both: bool, change: impl Fn(&mut Link)) {
        let channels = channel.map_or(vec![Channel::Http, Channel::Sql], |one| vec![one]);
        for channel in channels {
            self.net.link_mut(from, to, channel).into_iter().for_each(&change);
            if both {
                self.net.link_mut(to, from, channel).into_iter().for_each(&change);
            }
        }
    }

    fn links_of(&mut self, end: End, change: impl Fn(&mut Link) + Copy) {
        for other in self.net.ends() {
            // Applications sit beside every site.
            if other != end && other != End::Clients {
                self.links(end, other, None, true, change);
            }
        }
    }

    fn kill(&mut self, process: Process) {
        let again = self.random.between(RESTART.0, RESTART.1);
        match process {
            Process::Mysqld(site) => self.server_dies(self.current[site]),
            Process::Keeper(site) => self.keeper_ends(self.current[site], true),
            Process::Sidecar(site) => self.sidecar_ends(self.current[site], Some(again)),
            Process::Operator(op) if op < self.operators.len() => {
                let after = self.random.between(SEC, 15 * SEC);
                self.operator_dies(op, Some(after));
            }
            Process::Cache(site) if site < self.caches.len() => self.cache_dies(site),
            Process::Operator(_) | Process::Cache(_) => {}
        }
    }

    fn pause(&mut self, process: Process) {
        match process {
            Process::Mysqld(site) => {
                let server = &mut self.pods[self.current[site]].server;
                server.hung = server.life == Life::Up;
            }
            Process::Sidecar(site) => {
                let pod = &mut self.pods[self.current[site]];
                pod.side.paused = pod.side.brain.is_some();
            }
            Process::Operator(op) => {
                if let Some(operator) = self.operators.get_mut(op) {
                    operator.paused = operator.up;
                }
            }
            Process::Keeper(site) => {
                let keeper = &mut self.pods[self.current[site]].keeper;
                keeper.paused = keeper.up;
            }
            Process::Cache(site) => self.caches.get_mut(site).into_iter().for_each(|cache| cache.hung = cache.up),
        }
    }

    fn resume(&mut self, process: Process) {
        match process {
            Process::Mysqld(site) => self.resume_server(self.current[site]),
            Process::Sidecar(site) => self.resume_sidecar(self.current[site]),
            Process::Operator(op) if op < self.operators.len() => self.resume_operator(op),
            Process::Operator(_) => {}
            Process::Keeper(site) => self.resume_keeper(self.current[site]),
            Process::Cache(site) => self.caches.get_mut(site).into_iter().for_each(|cache| cache.hung = false),
        }
    }

    /// The pod is deleted: its containers are ended in order, its object stays until its end is written down. Another
    /// one waits for the volume, or gets a new one.
    fn delete_pod(&mut self, site: usize, keep_volume: bool) {
        let old = self.current[site];
        if self.lost_nodes[site] || !self.pods[old].runs {
            return;
        }
        self.mark_deleted(old);
        let new = self.new_pod(site, keep_volume.then_some(old));
        if !keep_volume {
            self.judge.lost = self.judge.lost.union(&self.pods[old].server.executed);
            self.pods[old].ended_volume = true;
            self.store.own_volumes.retain(|name| *name != self.names[site]);
        }
        self.pods[new].waits_for = Some(old);
        self.current[site] = new;
        let at = self.soon(100 * MS, 5 * SEC);
        self.queue.push(at, Event::PodEnds(old));
        self.inform();
    }

    fn mark_deleted(&mut self, p: usize) {
        let uid = self.pods[p].uid.clone();
        for facts in self.store.pods.iter_mut().filter(|facts| facts.uid == uid) {
            facts.deleting = true;
            facts.node_vouches = false;
        }
    }

    /// The old pod lives on, cut off from everyone; the volume is taken from it for the new one.
    fn force_delete_pod(&mut self, site: usize) {
        let old = self.current[site];
        if self.lost_nodes[site] || !self.pods[old].runs {
            return;
        }
        self.mark_deleted(old);
        let new = self.new_pod(site, Some(old));
        self.pods[old].stray = true;
        self.pods[old].ended_volume = true;
        self.current[site] = new;
        let at = self.soon(SEC, 6 * SEC);
        self.queue.push(at, Event::PodBegins(new));
        self.inform();
    }

    /// Everything on the node is gone at once, and nobody says so. The collector of orphaned pods marks them.
    fn lose_node(&mut self, site: usize) {
        // A pod that is just being replaced: its successor has no volume yet that could come back.
        let replaced =
            (0..self.pods.len()).any(|p| self.pods[p].site == site && self.pods[p].runs && p != self.current[site]);
        if self.lost_nodes[site] || replaced {
            return;
        }
        self.lost_nodes[site] = true;
        let p = self.current[site];
        self.sidecar_ends(p, None);
        self.keeper_ends(p, false);
        self.pods[p].runs = false;
        if let Some(cache) = self.caches.get_mut(site) {
            cache.up = false;
        }
        let uid = self.pods[p].uid.clone();
        for facts in self.store.pods.iter_mut().filter(|facts| facts.uid == uid) {
            facts.node_vouches = false;
            facts.collected = true;
            facts.deleting = true;
            facts.all_terminated = true;
        }
        self.inform();
    }

    /// The node is back: its kubelet ends what was deleted, and the next pod starts from the volume.
    pub(super) fn return_node(&mut self, site: usize) {
        if !self.lost_nodes[site] {
            return;
        }
        self.lost_nodes[site] = false;
        if !self.caches.is_empty() {
            self.queue.push(self.now + SEC, Event::CacheBegins(site));
        }
        let old = self.current[site];
        let uid = self.pods[old].uid.clone();
        self.pods[old].ended = true;
        for facts in self.store.pods.iter_mut().filter(|facts| facts.uid == uid) {
            facts.collected = false;
        }
        let vouches = self.soon(500 * MS, 5 * SEC);
        self.queue.push(vouches, Event::NodeVouches(old));
        let new = self.new_pod(site, Some(old));
        self.current[site] = new;
        let at = self.soon(SEC, 5 * SEC);
        self.queue.push(at, Event::PodBegins(new));
        self.inform();
    }

    /// The group's object is what it was; everybody watching sees it.
    fn restore_store(&mut self) {
        if self.store.restore() {
            let objects = &self.store.pods;
            let gone = |uid: &Arc<str>| !objects.iter().any(|facts| facts.uid == *uid);
            let ended = self.pods.iter().filter(|pod| pod.ended).map(|pod| pod.uid.clone());
            self.judge.went_back(ended.filter(gone).collect());
            self.inform();
        }
    }

    /// The leader wants that site's pod to be what the spec wants: it is replaced, if it is not.
    pub(super) fn roll_pod(&mut self, site: usize) {
        if self.store.deployed(site) == self.store.template {
            return;
        }
        self.store.deploy(site);
        let p = self.current[site];
        if self.pods[p].runs && !self.lost_nodes[site] {
            self.delete_pod(site, true);
        } else {
            self.pods[p].template = self.store.template;
        }
        self.inform();
    }

    fn jump(&mut self, end: End, seconds: i64) {
        let clock = match end {
            End::Operator(op) => self.operator_clocks.get_mut(op),
            End::Site(site) => self.site_clocks.get_mut(site),
            End::Store | End::Clients => None,
        };
        if let Some(clock) = clock {
            clock.skew += seconds * 1000;
        }
    }

    fn edit(&mut self, edit: Edit) {
        let spec = &mut self.store.spec;
        match edit {
            Edit::Lease(lease) => spec.lease.lease_timeout = Millis(lease / MS),
            Edit::MinPeers(peers) => spec.lease.min_peers = peers,
            Edit::Prefer(site) => spec.priorities = self.names.get(site).cloned().into_iter().collect(),
            Edit::Paused(true) => spec.paused = Some(Pause { reason: "maintenance".to_owned(), until: None }),
            Edit::Paused(false) => spec.paused = None,
            Edit::Template => self.store.template += 1,
            Edit::CacheImage => {
                if let Some(cache) = &mut spec.cache {
                    cache.image.push('+');
                }
            }
        }
        self.store.version += 1;
        self.inform();
    }

    fn request(&mut self, site: usize, planned: bool) {
        let number = self.next_number();
        let name = self.names[site].clone();
        if planned {
            self.store.request_planned(&name, number);
        } else {
            self.store.request_reclone(&name, number);
            self.judge.reclones.push(site);
        }
        self.inform();
    }
}
