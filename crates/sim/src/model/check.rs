//! The promises, judged on ground truth.

use super::leader::Write;
use super::local::Stimulus;
use super::step::{Action, Machine, Who};
use super::world::{Node, World};
use bloodraven_brain::name::Member;
use bloodraven_brain::record::{Phase, Record};
use std::rc::Rc;

/// A broken promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Breach {
    /// S: two servers accept writes.
    TwoWriters,
    /// P: authority was given to one instance while another one was writable or had an opening in flight.
    GrantBesideWriter,
    /// S2: the release of a holder is proven, and its server is open or may be opened by what is on its way.
    ProvenBesideWriter,
    /// L: undisturbed from here on, the group never comes to have a writer.
    NeverWritable,
}

/// How many rounds of undisturbed running may pass until there is a writer: a lease and its margin run out twice, and a
/// move takes a few rounds.
const ROUNDS: usize = 14;

/// Steps within one round. Each uses something up, so a round ends; the bound is for the day when it does not.
const STEPS: usize = 400;

/// Whether two lives share one server: a store that was lost is a new instance beside the same mysqld.
fn same_server(one: &Member, other: &Member) -> bool {
    one.site == other.site && one.instance.pod == other.instance.pod
}

impl Machine {
    /// The first promise of safety that this world breaks.
    pub fn breach(&mut self, world: &World) -> Option<Breach> {
        let dangerous = |node: &Node| node.server.writable() || node.server.may_be_opened();
        if self.living(world).filter(|node| node.server.writable()).count() > 1 {
            return Some(Breach::TwoWriters);
        }
        if !self.living(world).any(|node| dangerous(&node)) {
            return None;
        }
        let store = self.stores.get(world.store);
        let record = &store.record;
        // A record that was set back is known to be wrong; nothing is given by it.
        if self.living(world).any(|node| node.known() > record.epoch) && record.phase != Phase::Revoking {
            return None;
        }
        if record.phase != Phase::Revoking {
            let seated = |node: &Node| record.seat.as_ref().is_some_and(|seat| same_server(seat, &node.me));
            let beside = self.living(world).any(|node| dangerous(&node) && !seated(&node));
            return beside.then_some(Breach::GrantBesideWriter);
        }
        let leader = self.leaders.get(world.leader);
        if leader.record != *record || leader.evidence.highest > record.epoch {
            return None;
        }
        let holder = record.holder.as_ref().map(|holder| &holder.member);
        let released = |node: &Node| holder.is_none_or(|holder| same_server(holder, &node.me)) && dangerous(node);
        let open = self.living(world).any(|node| released(&node));
        let released = open && *self.released.entry(world.leader).or_insert_with(|| leader.release().is_some());
        released.then_some(Breach::ProvenBesideWriter)
    }

    /// Exactly one server accepts writes, and it is the one that the record names.
    pub fn one_writer(&self, world: &World) -> bool {
        let mut writers = self.living(world).filter(|node| node.server.writable());
        let (first, second) = (writers.next(), writers.next());
        let record = &self.stores.get(world.store).record;
        second.is_none() && first.is_some_and(|node| record.seat.as_ref() == Some(&node.me))
    }

    /// L: whether the group, undisturbed from here on, comes to have exactly one writer.
    pub fn heals(&mut self, world: &World) -> bool {
        let pruned = std::mem::replace(&mut self.prunes, false);
        let healed = self.until_written(*world, ROUNDS);
        self.prunes = pruned;
        self.one_writer(&healed)
    }

    /// Undisturbed rounds until there is a writer, so many at most.
    pub(super) fn until_written(&mut self, mut world: World, rounds: usize) -> World {
        for round in 0..rounds {
            // Who has authority and does not serve is moved away from, as a leader does that sees no primary.
            let stuck = round > 0 && (round == rounds / 2 || !self.seat_lives(&world));
            if stuck && let Some(record) = self.revocation(&world) {
                world = self.persist(world, Who::Leader, &record, false);
            }
            world = self.undisturbed_round(world, None);
            if self.one_writer(&world) {
                break;
            }
        }
        world
    }

    fn seat_lives(&self, world: &World) -> bool {
        let record = &self.stores.get(world.store).record;
        record.seat.as_ref().is_none_or(|seat| self.living(world).any(|node| node.me == *seat && !node.ended))
    }

    fn revocation(&mut self, world: &World) -> Option<Rc<Record>> {
        let leader = self.leaders.get(world.leader);
        let current = leader.record == self.stores.get(world.store).record;
        current.then(|| leader.next(&Write::Revoke)).flatten().map(Rc::new)
    }

    /// Everything that is due happens, in a fixed order, and everybody is heard; then time passes.
    pub(super) fn undisturbed_round(&mut self, mut world: World, prefer: Option<&Member>) -> World {
        let faults = std::mem::take(&mut world.left);
        let mut found = Vec::new();
        for once in [Stimulus::Timer, Stimulus::Tick] {
            for at in 0..world.nodes.len() {
                self.successors(&world, &mut found);
                // The last variant is the one in which everybody was heard.
                let step = found.iter().rfind(|(action, _)| matches!(action, Action::Node(place, stimulus, _) if *place == at && **stimulus == once));
                world = step.map_or(world, |(_, next)| *next);
            }
        }
        for again in [true, false] {
            for _ in 0..STEPS {
                let Some(next) = self.due(&world, prefer, &mut found) else { break };
                world = next;
            }
            if again {
                world = self.pushed_again(world, &mut found);
            }
        }
        world = self.due_change(world);
        self.successors(&world, &mut found);
        let later = found.iter().find(|(action, _)| *action == Action::Time).map(|(_, next)| *next);
        world = later.unwrap_or(world);
        world.left = faults;
        world
    }

    /// The leader pushes its view to everybody once more, and hears how they are.
    fn pushed_again(&mut self, mut world: World, found: &mut Vec<(Action, World)>) -> World {
        for at in 0..world.nodes.len() {
            self.successors(&world, found);
            let push = found.iter().rfind(|(action, _)| {
                matches!(action, Action::Node(place, what, _) if *place == at && matches!(**what, Stimulus::View(..)))
            });
            world = push.map_or(world, |(_, next)| *next);
        }
        world
    }

    fn due(&mut self, world: &World, prefer: Option<&Member>, found: &mut Vec<(Action, World)>) -> Option<World> {
        self.successors(world, found);
        let due = |machine: &Self, action: &Action| machine.is_due(world, prefer, action);
        let first = found.iter().filter_map(|(action, next)| Some((due(self, action)?, next)));
        // Of equals the last: the variant in which everybody was heard.
        first.rev().min_by_key(|(order, _)| *order).map(|(_, next)| *next)
    }

    /// How urgent an action is in an undisturbed round; none: it is not due.
    fn is_due(&self, world: &World, prefer: Option<&Member>, action: &Action) -> Option<u8> {
        match action {
            Action::LateWriteLands => Some(1),
            Action::Reread(_) => Some(2),
            Action::LateAck(_, false) => Some(6),
            Action::Write(Who::Leader, write, false) => match &**write {
                Write::StartOver => Some(3),
                Write::NoteEnd(member) => self.living(world).any(|node| node.me == *member && node.ended).then_some(3),
                Write::DropSets => Some(9),
                Write::Grant(to) => {
                    let lives = self.living(world).any(|node| node.me == *to && !node.ended);
                    (lives && prefer.is_none_or(|preferred| preferred == to)).then_some(11)
                }
                _ => None,
            },
            Action::Node(at, stimulus, _) => match &**stimulus {
                Stimulus::View(view, _) => {
                    world.nodes[*at].is_some_and(|id| self.nodes.get(id).known() < view.epoch).then_some(0)
                }
                Stimulus::MysqldStarts | Stimulus::SidecarStarts => Some(4),
                Stimulus::KeeperSpeaks => Some(5),
                Stimulus::LaneDone => Some(7),
                Stimulus::OpeningLands(false) | Stimulus::GhostIsPermitted => Some(8),
                Stimulus::Deliver(_) => Some(10),
                _ => None,
            },
            _ => None,
        }
    }

    /// A living instance that is no voter is taken in.
    fn due_change(&mut self, world: World) -> World {
        let leader = self.leaders.get(world.leader);
        let newest = self.voter_choices(&world).swap_remove(0);
        let missing = newest.iter().any(|member| {
            let lives = self.living(&world).any(|node| node.me == *member && !node.ended);
            lives && !leader.record.voters.contains(member)
        });
        let current = leader.record == self.stores.get(world.store).record;
        // The seat stays a voter, whatever other life its site has by now.
        let voters: Vec<Member> = newest
            .into_iter()
            .map(|member| leader.record.seat.clone().filter(|seat| seat.site == member.site).unwrap_or(member))
            .collect();
        match leader.next(&Write::Voters(voters)) {
            Some(record) if missing && current => self.persist(world, Who::Leader, &Rc::new(record), false),
            _ => world,
        }
    }
}
