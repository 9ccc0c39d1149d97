//! Processes that are gone for a while: held until they are released, or asked to end in order.
//!
//! In: such faults, and their cures. Out: processes that nobody starts again meanwhile. Must not: hold what a new pod
//! brings along; that one starts by itself.

use super::clock::{MS, SEC};
use super::event::Event;
use super::scenario::Process;
use super::world::World;

impl World {
    /// It is killed, and the kubelet does not start it again before it is released.
    pub(super) fn hold(&mut self, process: Process) {
        self.held.push(process);
        match process {
            Process::Mysqld(site) => self.server_ends(self.current[site], false),
            Process::Keeper(site) => self.keeper_ends(self.current[site], false),
            Process::Sidecar(site) => self.sidecar_ends(self.current[site], None),
            Process::Operator(op) if op < self.operators.len() => self.operator_dies(op, None),
            Process::Operator(_) | Process::Cache(_) => {}
        }
    }

    /// SIGTERM: the server takes no more writes, its replicas receive what it has, it ends, and stays away until it is
    /// released.
    pub(super) fn stop_server(&mut self, site: usize) {
        let p = self.current[site];
        let follows = |replica: &usize| {
            let server = &self.pods[*replica].server;
            server.receiver && server.is_up() && self.source_of(*replica) == Some(p)
        };
        let replicas: Vec<usize> = (0..self.pods.len()).filter(follows).collect();
        for replica in replicas {
            self.pull(replica, self.pods[replica].server.start);
        }
        self.hold(Process::Mysqld(site));
    }

    /// It starts again; nothing happens if it was not held.
    pub(super) fn release(&mut self, process: Process) {
        let Some(place) = self.held.iter().position(|held| *held == process) else { return };
        self.held.remove(place);
        let at = self.soon(100 * MS, SEC);
        let event = match process {
            Process::Mysqld(site) | Process::Keeper(site) => Event::KeeperBegins(self.current[site]),
            Process::Sidecar(site) => {
                let p = self.current[site];
                Event::SidecarBegins(p, self.pods[p].side.life)
            }
            Process::Operator(op) => Event::OperatorBegins(op),
            Process::Cache(site) => Event::CacheBegins(site),
        };
        self.queue.push(at, event);
    }

    /// Everything that is held is released.
    pub(super) fn release_all(&mut self) {
        for process in self.held.clone() {
            self.release(process);
        }
    }
}
