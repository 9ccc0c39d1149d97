//! Replication by GTID auto-position: what a source has and a replica lacks arrives, then is applied.
//!
//! In: commits and applications. Out: deliveries. Must not: send what the source has purged.

use super::clock::{MS, SEC};
use super::event::Event;
use super::net::{Channel, End};
use super::server::Server;
use super::world::World;
use bloodraven_gtid::GtidSet;

/// `SOURCE_CONNECT_RETRY`.
const RETRY: u64 = 2 * SEC;

impl World {
    /// The source that a replica is connected to at this moment.
    pub(super) fn source_of(&self, p: usize) -> Option<usize> {
        let site = self.pods[p].server.source?;
        let source = self.pod_at(site)?;
        let (a, b) = (self.end_of(p)?, self.end_of(source)?);
        let cut = |from: End, to: End| self.net.link(from, to, Channel::Sql).cut;
        let server = &self.pods[source].server;
        (server.is_up() && !server.hung && source != p && !cut(a, b) && !cut(b, a)).then_some(source)
    }

    /// Something was committed at that pod: its replicas are sent it.
    pub(super) fn committed(&mut self, p: usize) {
        let site = self.pods[p].site;
        if self.current[site] != p {
            return;
        }
        for replica in 0..self.pods.len() {
            let server = &self.pods[replica].server;
            if server.source == Some(site) && server.receiver && !server.pulling && server.is_up() {
                self.start_pulling(replica);
            }
        }
    }

    pub(super) fn start_pulling(&mut self, p: usize) {
        let site = self.pods[p].server.source;
        let server = &mut self.pods[p].server;
        let Some(site) = site.filter(|_| server.receiver && !server.pulling && server.is_up()) else { return };
        server.pulling = true;
        let start = server.start;
        let to = End::Site(self.pods[p].site);
        let at = self.carry(End::Site(site), to, Channel::Sql).unwrap_or(self.now + RETRY);
        self.queue.push(at, Event::Pull(p, start));
    }

    pub(super) fn pull(&mut self, p: usize, start: u64) {
        let server = &mut self.pods[p].server;
        if server.start != start || !server.is_up() {
            return;
        }
        server.pulling = false;
        if !server.receiver || server.hung {
            return;
        }
        let Some(source) = self.source_of(p) else {
            self.pods[p].server.pulling = true;
            return self.queue.push(self.now + RETRY, Event::Pull(p, start));
        };
        let there = &self.pods[source].server;
        let here = &self.pods[p].server;
        let held = here.held();
        let refused = if !there.executed.contains(&held) && has_more_of_its_own(&held, there) {
            Some("the replica has more of the source's transactions than the source has")
        } else if !held.contains(&there.purged) {
            Some("the source has purged binary logs that the replica needs")
        } else {
            None
        };
        let missing = there.executed.subtract(&held);
        let server = &mut self.pods[p].server;
        if let Some(why) = refused {
            server.receiver = false;
            server.receiver_error = Some(why.to_owned());
            return;
        }
        if !missing.is_empty() {
            server.received.add(&missing);
            self.go_on_applying(p);
        }
        self.receipts(source, p);
    }

    pub(super) fn go_on_applying(&mut self, p: usize) {
        let server = &mut self.pods[p].server;
        // Under the source's side an applier's commits wait, too, and nobody gives receipts to a replica.
        let waits = server.asks;
        if server.applying || !server.applier || server.applier_error || waits || server.received.is_empty() {
            return;
        }
        server.applying = true;
        let start = server.start;
        let takes = if self.random.chance(4) { 800 * MS } else { 10 * MS };
        let at = self.soon(MS, takes);
        let server = &self.pods[p].server;
        self.queue.push(at + server.slow_applier.max(server.delay), Event::Apply(p, start));
    }

    pub(super) fn apply(&mut self, p: usize, start: u64) {
        let server = &mut self.pods[p].server;
        if server.start != start || !server.is_up() {
            return;
        }
        server.applying = false;
        if !server.applier || server.applier_error || server.hung || server.full {
            return;
        }
        let unapplied = server.unapplied();
        if unapplied.is_empty() {
            return;
        }
        server.executed.add(&unapplied);
        server.user_data = true;
        self.committed(p);
        self.go_on_applying_later(p);
    }

    fn go_on_applying_later(&mut self, p: usize) {
        if !self.pods[p].server.unapplied().is_empty() {
            self.go_on_applying(p);
        }
    }
}

/// Whether the set has transactions that bear the source's name and that the source lacks.
fn has_more_of_its_own(held: &GtidSet, source: &Server) -> bool {
    let mut of_source = held.clone();
    of_source.retain_uuids(&[source.uuid]);
    !source.executed.contains(&of_source)
}
