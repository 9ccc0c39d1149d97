//! Where a search begins. In: bounds. Out: the first world, made by running undisturbed, never by hand.

use super::leader::Write;
use super::local::{self, Stimulus};
use super::step::{Machine, Who};
use super::world::{Faults, LONG_AGO, Leader, NOW, Node, ROOM, Start, Store, World, first_record, member, no_record};
use bloodraven_brain::fence::Disk;
use bloodraven_brain::record::Record;
use std::rc::Rc;

impl Machine {
    /// The first world.
    pub fn start(&mut self) -> World {
        let bounds = self.bounds;
        let first = first_record(&bounds);
        let record = if bounds.start == Start::Bootstrap { no_record(&bounds, 0) } else { first.clone() };
        let view = (bounds.start != Start::Bootstrap).then(|| record.view());
        let mut nodes = [None; ROOM];
        for (site, place) in nodes.iter_mut().enumerate().take(bounds.sites) {
            let disk = Disk { view: view.clone(), ..Disk::default() };
            let node = Node::new(member(site, 1, 1), disk, LONG_AGO);
            let (node, _) = local::after(&bounds, &node, &Stimulus::KeeperSpeaks);
            *place = Some(self.nodes.put(node.canonical(&bounds)));
        }
        let store = Store { record: record.clone(), stale: None, views: vec![record.view()], late_write: None };
        let world = World {
            nodes,
            leader: self.leaders.put(Leader::elected(record, LONG_AGO, &bounds)),
            rival: None,
            store: self.stores.put(store),
            left: Faults::default(),
        };
        let mut world = match bounds.start {
            Start::Bootstrap => world,
            Start::Opened => self.settled(world),
            Start::RolledBack => {
                let moved = self.moved(world);
                self.rolled_back(moved, first)
            }
        };
        world.left = bounds.faults;
        self.prunes = true;
        world
    }

    /// Runs undisturbed until one server is open and nothing is on its way.
    fn settled(&mut self, world: World) -> World {
        let mut world = world;
        // An opening takes two rounds: the answer, and its statement.
        for _ in 0..4 {
            if !self.one_writer(&world) {
                world = self.undisturbed_round(world, None);
            }
        }
        for place in world.nodes.iter_mut().flatten() {
            let mut node = (*self.nodes.get(*place)).clone();
            node.inbox.clear();
            *place = self.nodes.put(node.canonical(&self.bounds));
        }
        world
    }

    /// Authority moves once, to the other site.
    fn moved(&mut self, world: World) -> World {
        let world = self.settled(world);
        let leader = self.leaders.get(world.leader);
        let Some(revoked) = leader.next(&Write::Revoke) else { return world };
        let world = self.persist(world, Who::Leader, &Rc::new(revoked), false);
        self.settled_at(world, 1)
    }

    fn settled_at(&mut self, world: World, site: usize) -> World {
        let mut world = world;
        for _ in 0..8 {
            world = self.undisturbed_round(world, Some(&member(site, 1, 1)));
        }
        self.settled(world)
    }

    /// The API server goes back to that record; a new leader finds it.
    fn rolled_back(&mut self, world: World, record: Record) -> World {
        let store = Store { record: record.clone(), stale: None, views: vec![record.view()], late_write: None };
        World {
            store: self.stores.put(store),
            leader: self.leaders.put(Leader::elected(record, NOW, &self.bounds)),
            ..world
        }
    }
}
