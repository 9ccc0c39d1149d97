//! Semi-synchronous replication of simulated servers: who asks for receipts, who gives them.
//!
//! In: switches of the leader's. Out: what a server says of its sides. Must not: let a commit go that waits on an open
//! server; a real one would refuse, too.

use super::world::World;
use bloodraven_brain::group::command::{SourceSwitch, Switch};
use bloodraven_brain::group::input::{SemiSync, SourceSide};
use bloodraven_brain::time::Millis;

impl World {
    pub(super) fn switch_semi_sync(&mut self, p: usize, switch: Switch) -> Result<(), &'static str> {
        let server = &mut self.pods[p].server;
        match switch.source {
            Some(SourceSwitch::On { .. }) => server.asks = true,
            Some(SourceSwitch::OffIfClosed) if !(server.read_only && server.super_read_only) => {
                return Err("it is not closed");
            }
            Some(SourceSwitch::OffIfClosed | SourceSwitch::Off) => server.asks = false,
            None => {}
        }
        if let Some(on) = switch.replica {
            server.gives = on;
            if server.receiver && server.receiver_error.is_none() {
                server.receive();
                // What it has already counts as received when it connects.
                self.start_pulling(p);
            }
        }
        self.go_on_applying(p);
        Ok(())
    }

    pub(super) fn semi_sync_facts(&self, p: usize) -> SemiSync {
        let server = &self.pods[p].server;
        let gives = |replica: usize| {
            self.source_of(replica) == Some(p)
                && self.pods[replica].server.receiver
                && self.pods[replica].server.acknowledges
        };
        let clients = (0..self.pods.len()).filter(|replica| self.pods[*replica].server.is_up() && gives(*replica));
        SemiSync {
            loaded: self.scenario.setup.semi_sync,
            source: server.asks.then_some(SourceSide { timeout: Millis(0), strict: true }),
            waits: server.asks,
            clients: u64::try_from(clients.count()).unwrap_or(u64::MAX),
            replica: server.gives,
            acknowledges: server.receiver && server.acknowledges && self.source_of(p).is_some(),
        }
    }
}
