//! Applications: a writer at every site and one through the front door, and the ledger of what they were told.
//!
//! In: their next attempts. Out: commits, and who was told of them. Must not: know who has authority.

use super::clock::{MS, SEC};
use super::event::Event;
use super::net::{Channel, End};
use super::world::World;
use bloodraven_gtid::{Gtid, GtidSet};

/// What applications were told.
#[derive(Debug)]
pub(super) struct Clients {
    sites: usize,
    /// Every transaction whose commit was acknowledged.
    pub(super) acknowledged: GtidSet,
    /// How many attempts were made, and how many acknowledged.
    pub(super) attempts: u64,
    pub(super) writes: u64,
    /// The highest tenure under which a write was acknowledged.
    pub(super) highest: u64,
}

impl Clients {
    pub(super) fn new(sites: usize) -> Self {
        Self { sites, acknowledged: GtidSet::new(), attempts: 0, writes: 0, highest: 0 }
    }
}

impl World {
    /// One attempt of one writer; the last writer goes through the front door.
    pub(super) fn client_writes(&mut self, client: usize) {
        let next = self.soon(300 * MS, 1500 * MS);
        self.queue.push(next, Event::Write(client));
        self.clients.attempts += 1;
        if client == self.clients.sites && !self.caches.is_empty() {
            self.cache_write();
        }
        let pod = if client < self.clients.sites { self.any_pod_of(client) } else { self.front_door() };
        let Some(p) = pod else { return };
        let site = End::Site(self.pods[p].site);
        let cut = !self.pods[p].stray && self.net.link(End::Clients, site, Channel::Sql).cut;
        let server = &mut self.pods[p].server;
        if cut || !server.is_open() || server.hung || server.cloning.is_some() {
            return;
        }
        if server.waiting.len() > 20 {
            return;
        }
        if server.full {
            // Its commit waits for space, and every fence waits for it.
            server.blocked_until = self.now + 30 * SEC;
            return;
        }
        if self.random.chance(3) {
            let takes = self.random.between(50 * MS, 2 * SEC);
            let (until, start) = (self.now + takes, self.pods[p].server.start);
            let server = &mut self.pods[p].server;
            if server.blocked_until < until {
                server.blocked_until = until;
                self.queue.push(until, Event::StuckWrite(p, start));
            }
            return;
        }
        self.commit(p);
    }

    /// A write that took its time commits, unless its session was ended.
    pub(super) fn stuck_write(&mut self, p: usize, start: u64) {
        let server = &mut self.pods[p].server;
        let lives = server.start == start && server.blocked_until >= self.now && server.is_open() && !server.hung;
        if lives {
            server.blocked_until = 0;
            self.commit(p);
        }
    }

    fn commit(&mut self, p: usize) {
        let Some(gtid) = self.pods[p].server.commit() else { return };
        if self.pods[p].server.asks {
            let server = &mut self.pods[p].server;
            server.waiting.push(gtid);
            server.blocked_until = server.blocked_until.max(self.now + 3600 * SEC);
            return self.committed(p);
        }
        let site = End::Site(self.pods[p].site);
        let heard = self.pods[p].stray || !self.net.link(site, End::Clients, Channel::Sql).cut;
        if heard {
            self.acknowledged_alone(p);
            self.acknowledged(p, gtid);
        }
        self.committed(p);
    }

    /// Nobody else has what was just acknowledged. Where receipts are wanted only a human brings that about, or a site that
    /// has to be copied while nobody gives any.
    fn acknowledged_alone(&mut self, p: usize) {
        let copied = || self.store.status.sites.values().any(|site| site.clone.is_some());
        if self.scenario.setup.semi_sync && !self.pods[p].server.by_hand && !copied() {
            let name = self.pod_name(p);
            let words = || format!("{name} acknowledged a write that no other site has received");
            self.judge.broken(self.now, "nothing is acknowledged without a receipt", words);
        }
    }

    /// A replica received something: commits that waited for it are acknowledged.
    pub(super) fn receipts(&mut self, source: usize, replica: usize) {
        if self.pods[source].server.waiting.is_empty() || !self.pods[replica].server.acknowledges {
            return;
        }
        let waiting = std::mem::take(&mut self.pods[source].server.waiting);
        let held = self.pods[replica].server.held();
        let (done, left): (Vec<Gtid>, Vec<Gtid>) = waiting.into_iter().partition(|gtid| held.contains_gtid(*gtid));
        self.pods[source].server.waiting = left;
        self.pods[source].server.unblock();
        let site = End::Site(self.pods[source].site);
        let heard = self.pods[source].stray || !self.net.link(site, End::Clients, Channel::Sql).cut;
        for gtid in done.into_iter().filter(|_| heard) {
            self.acknowledged(source, gtid);
        }
    }

    fn acknowledged(&mut self, p: usize, gtid: Gtid) {
        self.clients.writes += 1;
        self.clients.acknowledged.insert(gtid);
        let (tenure, by_hand) = (self.pods[p].server.tenure, self.pods[p].server.by_hand);
        if self.pods[p].ended_volume {
            self.judge.lost.insert(gtid);
        }
        if by_hand {
            return;
        }
        if tenure < self.clients.highest && !self.judge.assumed {
            let (highest, name) = (self.clients.highest, self.pod_name(p));
            let words = || format!("{name} acknowledged a write of tenure {tenure} after one of tenure {highest}");
            self.judge.broken(self.now, "wrong-side write", words);
        }
        self.clients.highest = self.clients.highest.max(tenure);
    }

    /// Whoever runs at that site: an application beside an old pod still reaches it.
    fn any_pod_of(&mut self, site: usize) -> Option<usize> {
        let running: Vec<usize> =
            (0..self.pods.len()).filter(|p| self.pods[*p].site == site && self.pods[*p].runs).collect();
        self.random.pick(&running).copied()
    }

    /// The pod that has the primary's label.
    fn front_door(&self) -> Option<usize> {
        let member = self.store.primary.as_ref()?;
        self.pods.iter().position(|pod| pod.uid == member.instance.pod && pod.runs && !pod.stray)
    }
}
