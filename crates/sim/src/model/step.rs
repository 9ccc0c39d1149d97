//! Everything that can happen next in a world, and the worlds that follow.
//!
//! Questions and acknowledgements are answered, or taken, in the instant they are sent, or lost; answers may be as late as
//! they like. That loses no danger: an answer counts from the sending of its question, so a question that travels makes
//! an answer worth less and never more, and a voter that is asked late remembers a later vouch than the asker counts.
//! Acknowledgements may be late, and be handed on, where [`Bounds::late_acks`] says so.

use super::happen::Own;
use super::intern::{Hasher, Table};
use super::leader::Write;
use super::local::{self, Stimulus};
use super::persist::{Landing, Possible};
use super::world::{Bounds, Leader, Letter, NOW, Node, ROOM, STEP, Store, World, member};
use bloodraven_brain::fence::Disk;
use bloodraven_brain::message::Question;
use bloodraven_brain::name::Member;
use bloodraven_brain::record::Phase;
use std::collections::HashMap;
use std::rc::Rc;

/// One thing that can happen.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// One step of time.
    Time,
    /// Something happens at a node; of what it says, so much is heard.
    Node(usize, Rc<Stimulus>, Heard),
    /// A late acknowledgement of that node arrives, from itself or handed on by a peer.
    LateAck(usize, bool),
    /// A leader, or its rival, writes the record; whether one copy was missed.
    Write(Who, Rc<Write>, bool),
    /// A new leader, the old one dead; with a write of the old one on its way, or without.
    NewLeader(Option<Rc<Write>>),
    /// A new leader, and the old one goes on.
    Rival,
    /// The write of a dead leader lands.
    LateWriteLands,
    /// A write met a conflict, and the record is read again.
    Reread(Who),
    /// A leader tells of a record that it has not persisted.
    TellUnpersisted(Rc<Write>),
    /// A new pod of that node's site.
    NewPod(usize),
}

impl Action {
    /// What kind of thing it is.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Node(_, stimulus, _) => stimulus.kind(),
            Self::LateAck(..) => "late ack",
            Self::Write(_, write, _) => write.kind(),
            Self::NewLeader(None) => "new leader",
            Self::NewLeader(Some(_)) => "new leader, late write",
            Self::Rival => "rival",
            Self::LateWriteLands => "late write lands",
            Self::Reread(_) => "reread",
            Self::TellUnpersisted(_) => "tell unpersisted",
            Self::NewPod(_) => "new pod",
        }
    }
}

/// Which leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Who {
    /// The one elected last.
    Leader,
    /// The one before.
    Rival,
}

/// Who hears what a node says: the variant's number, in the order in which it is said.
pub type Heard = u8;

/// The bounds with all parts of worlds seen so far.
pub struct Machine {
    pub(super) bounds: Bounds,
    /// Whether worlds in which nothing can go wrong any more are left alone.
    pub(super) prunes: bool,
    pub(super) nodes: Table<Node>,
    pub(super) leaders: Table<Leader>,
    pub(super) stores: Table<Store>,
    pub(super) own: HashMap<u32, Rc<Vec<Own>>, Hasher>,
    pub(super) views: HashMap<(u32, u32), Rc<Vec<Own>>, Hasher>,
    pub(super) time: HashMap<u32, u32, Hasher>,
    pub(super) leader_time: HashMap<u32, u32, Hasher>,
    pub(super) vouches: HashMap<(u32, Question), (u32, Option<Letter>), Hasher>,
    pub(super) answers: HashMap<(u32, Question), (u32, Option<Letter>), Hasher>,
    pub(super) writes: HashMap<u32, Rc<Vec<Possible>>, Hasher>,
    pub(super) landings: HashMap<Landing, (u32, u32), Hasher>,
    pub(super) letters: HashMap<(usize, u64), u32, Hasher>,
    pub(super) released: HashMap<u32, bool, Hasher>,
}

impl Machine {
    /// A machine that has seen nothing yet.
    pub fn new(bounds: Bounds) -> Self {
        let hasher = || Hasher::with_seed(1);
        Self {
            bounds,
            prunes: false,
            nodes: Table::new(),
            leaders: Table::new(),
            stores: Table::new(),
            own: HashMap::with_hasher(hasher()),
            views: HashMap::with_hasher(hasher()),
            time: HashMap::with_hasher(hasher()),
            leader_time: HashMap::with_hasher(hasher()),
            vouches: HashMap::with_hasher(hasher()),
            answers: HashMap::with_hasher(hasher()),
            writes: HashMap::with_hasher(hasher()),
            landings: HashMap::with_hasher(hasher()),
            letters: HashMap::with_hasher(hasher()),
            released: HashMap::with_hasher(hasher()),
        }
    }

    /// All worlds that may come next, each with what happened.
    pub fn successors(&mut self, world: &World, found: &mut Vec<(Action, World)>) {
        found.clear();
        if self.is_over(world) {
            return;
        }
        found.push((Action::Time, self.time(world)));
        for at in 0..ROOM {
            if let Some(id) = world.nodes[at] {
                self.node_steps(world, at, id, found);
            }
        }
        self.leader_steps(world, Who::Leader, found);
        if world.rival.is_some() {
            self.leader_steps(world, Who::Rival, found);
        }
        self.elections(world, found);
        found.retain(|(_, next)| next != world);
    }

    /// Whether the last move of the search is over: everybody knows of it, and only its target is open or about to be. From
    /// here on nobody else is ever named, so nobody else opens; what a holder by itself can do is searched from the start.
    pub(super) fn is_over(&self, world: &World) -> bool {
        let store = self.stores.get(world.store);
        let record = &store.record;
        self.prunes
            && record.phase != Phase::Revoking
            && self.bounds.is_last(record.epoch)
            && record.epoch > 1
            && store.late_write.is_none()
            && world.rival.is_none()
            && self.living(world).all(|node| {
                let seated = record.seat.as_ref() == Some(&node.me);
                let dangerous = node.server.writable() || node.server.may_be_opened() || node.asked_by_ghost.is_some();
                node.ended || (node.on_disk() == record.epoch && (seated || !dangerous))
            })
    }

    pub(super) fn time(&mut self, world: &World) -> World {
        let mut next = *world;
        for place in next.nodes.iter_mut().flatten() {
            *place = self.node_later(*place);
        }
        next.leader = self.leader_later(next.leader);
        next.rival = next.rival.map(|rival| self.leader_later(rival));
        next
    }

    fn node_later(&mut self, before: u32) -> u32 {
        if let Some(after) = self.time.get(&before) {
            return *after;
        }
        let (node, _) = local::after(&self.bounds, &self.nodes.get(before), &Stimulus::Time);
        let after = self.nodes.put(node.canonical(&self.bounds));
        self.time.insert(before, after);
        after
    }

    pub(super) fn leader_later(&mut self, before: u32) -> u32 {
        if let Some(after) = self.leader_time.get(&before) {
            return *after;
        }
        let mut leader = (*self.leaders.get(before)).clone();
        leader.shift(STEP);
        let after = self.leaders.put(leader.canonical(&self.bounds));
        self.leader_time.insert(before, after);
        after
    }

    pub(super) fn node_steps(&mut self, world: &World, at: usize, id: u32, found: &mut Vec<(Action, World)>) {
        let own = self.own_steps(id);
        let views = self.view_steps(id, world.store);
        for (stimulus, fault, outcome) in own.iter().chain(views.iter()) {
            let mut next = *world;
            if let Some(left) = fault(&mut next.left) {
                let Some(less) = left.checked_sub(1) else { continue };
                *left = less;
            }
            if outcome.said.is_empty() {
                next.nodes[at] = Some(outcome.quiet);
                found.push((Action::Node(at, Rc::clone(stimulus), 0), next));
            } else {
                self.heard(next, at, stimulus, outcome, found);
            }
        }
        let node = self.nodes.get(id);
        if let Some((spoken, ack)) = &node.late_ack {
            let mut quiet = (*node).clone();
            quiet.late_ack = None;
            let quiet = self.nodes.put(quiet);
            for relayed in [false, true] {
                let mut next = *world;
                next.nodes[at] = Some(quiet);
                let lay = relayed.then(|| NOW.since(*spoken));
                found.push((Action::LateAck(at, relayed), self.acknowledged(next, Who::Leader, ack, lay)));
            }
        }
        let pods = world.left.new_pods > 0 && world.nodes.contains(&None) && is_latest(self, world, &node.me);
        found.extend(pods.then(|| (Action::NewPod(at), self.new_pod(world, &node.me))));
    }

    pub(super) fn new_pod(&mut self, world: &World, old: &Member) -> World {
        let mut next = *world;
        next.left.new_pods -= 1;
        let lives = self.living(world).filter(|node| node.me.site == old.site).count();
        let site = (0..self.bounds.sites).find(|site| member(*site, 1, 1).site == old.site).unwrap_or(0);
        let node = Node::new(member(site, lives + 1, 1), Disk::default(), NOW);
        let (node, _) = local::after(&self.bounds, &node, &Stimulus::KeeperSpeaks);
        let id = self.nodes.put(node.canonical(&self.bounds));
        if let Some(place) = next.nodes.iter_mut().find(|place| place.is_none()) {
            *place = Some(id);
        }
        next
    }

    pub(super) fn leader(&self, world: &World, who: Who) -> Option<Rc<Leader>> {
        match who {
            Who::Leader => Some(self.leaders.get(world.leader)),
            Who::Rival => world.rival.map(|rival| self.leaders.get(rival)),
        }
    }

    pub(super) fn living<'a>(&'a self, world: &'a World) -> impl Iterator<Item = Rc<Node>> + 'a {
        world.nodes.iter().flatten().map(|id| self.nodes.get(*id))
    }

    pub(super) fn find(&self, world: &World, member: &Member) -> Option<usize> {
        (0..ROOM).find(|at| world.nodes[*at].is_some_and(|id| self.nodes.get(id).me == *member))
    }
}

pub(super) fn with_leader(mut world: World, who: Who, id: u32) -> World {
    match who {
        Who::Leader => world.leader = id,
        Who::Rival => world.rival = Some(id),
    }
    world
}

/// Whether that instance is the youngest of its site.
fn is_latest(machine: &Machine, world: &World, member: &Member) -> bool {
    machine.living(world).filter(|node| node.me.site == member.site).last().is_some_and(|node| node.me == *member)
}
