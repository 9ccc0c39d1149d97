//! The promises, judged on ground truth.

use super::Action;
use super::world::{Node, World};
use bloodraven_brain::record::Phase;

/// A broken promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Breach {
    /// S: two servers accept writes.
    TwoWriters,
    /// P: authority was given to one instance while another one was writable or had an opening in flight.
    GrantBesideWriter,
    /// L: undisturbed from here on, the group never comes to have a writer.
    NeverWritable,
}

impl World {
    /// The first promise that this state breaks.
    pub fn breach(&self) -> Option<Breach> {
        if self.nodes.iter().filter(|node| node.mysqld.writable()).count() > 1 {
            return Some(Breach::TwoWriters);
        }
        if self.record.phase == Phase::Revoking {
            return None;
        }
        let seat = self.record.seat.as_ref();
        let dangerous = |node: &&Node| node.mysqld.writable() || (node.mysqld.running && node.mysqld.opening_in_flight);
        let beside = self.nodes.iter().filter(dangerous).any(|node| Some(&node.me) != seat);
        beside.then_some(Breach::GrantBesideWriter)
    }

    /// Exactly one server accepts writes, and it is the one that the record names.
    pub fn one_writer(&self) -> bool {
        let mut writers = self.nodes.iter().filter(|node| node.mysqld.writable());
        let (first, second) = (writers.next(), writers.next());
        second.is_none() && first.is_some_and(|node| self.record.seat.as_ref() == Some(&node.me))
    }
}

/// How many rounds of undisturbed running may pass until there is a writer: a lease and its margin run out once, a move
/// takes one round, and everything is asked again in each.
const ROUNDS: usize = 8;

impl World {
    /// L: whether the group, undisturbed from here on, comes to have exactly one writer.
    pub fn heals(&self) -> bool {
        let mut world = self.clone();
        world.left.epochs += 10;
        for _ in 0..ROUNDS {
            world = world.undisturbed_round();
            if world.one_writer() {
                return true;
            }
        }
        false
    }

    /// Everything that is due happens, in a fixed order; then time passes.
    fn undisturbed_round(&self) -> Self {
        let mut world = self.clone();
        let due: [fn(&Action) -> bool; 9] = [
            |action| matches!(action, Action::LateWriteLands),
            |action| matches!(action, Action::Reread),
            |action| matches!(action, Action::MysqldStarts(_)),
            |action| matches!(action, Action::SidecarStarts(_)),
            |action| matches!(action, Action::KeeperFact(_)),
            |action| matches!(action, Action::LaneDone(_)),
            |action| matches!(action, Action::View(..)),
            |action| matches!(action, Action::Deliver(_)),
            |action| matches!(action, Action::Grant(_)),
        ];
        for at in 0..world.nodes.len() {
            for action in [Action::Timer(at), Action::Tick(at), Action::Push(at)] {
                world = world.after(&action);
            }
        }
        // Each action uses something up (a message, a lane step, a view not heard yet), so this ends; the bound is for
        // the day when it does not.
        for _ in 0..200 {
            let actions = world.actions();
            let Some(action) = due.iter().find_map(|is_due| actions.iter().find(|action| is_due(action))) else {
                break;
            };
            world = world.after(action);
        }
        world.after(&Action::Advance)
    }
}
