//! Everything that can happen next in a world, and the worlds that follow.
//!
//! Questions and acknowledgements are answered, or taken, in the instant they are sent, or lost; answers may be as late as
//! they like. That loses no danger: an answer counts from the sending of its question, so a question that travels makes
//! an answer worth less and never more, and a voter that is asked late remembers a later vouch than the asker counts.
//! Acknowledgements may be late, and be handed on, where [`Bounds::late_acks`] says so.

use super::intern::{Hasher, Table, fingerprint};
use super::leader::Write;
use super::local::{self, Said, Stimulus};
use super::world::{Bounds, Faults, Leader, Letter, NOW, Node, ROOM, STEP, Start, Store, Without, World};
use super::world::{first_record, member, no_record};
use bloodraven_brain::authority;
use bloodraven_brain::fence::{Command, Disk, Mysqld, Source};
use bloodraven_brain::message::{Ack, Question};
use bloodraven_brain::name::Member;
use bloodraven_brain::record::{Phase, Record, Settings};
use bloodraven_brain::time::Millis;
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

/// What one stimulus does to one node.
pub(super) struct Outcome {
    /// The node afterwards, if it says nothing that anybody could hear.
    quiet: u32,
    /// The same, before it was brought into its form.
    raw: Node,
    said: Vec<Said>,
}

/// A stimulus, the fault that it uses up, and its outcome.
type Own = (Rc<Stimulus>, Fault, Rc<Outcome>);

/// A write, and the record that comes of it.
type Possible = (Rc<Write>, Rc<Record>);

/// The bounds with all parts of worlds seen so far.
pub struct Machine {
    pub(super) bounds: Bounds,
    /// Whether worlds in which nothing can go wrong any more are left alone.
    pub(super) prunes: bool,
    pub(super) nodes: Table<Node>,
    pub(super) leaders: Table<Leader>,
    pub(super) stores: Table<Store>,
    own: HashMap<u32, Rc<Vec<Own>>, Hasher>,
    views: HashMap<(u32, u32), Rc<Vec<Own>>, Hasher>,
    time: HashMap<u32, u32, Hasher>,
    leader_time: HashMap<u32, u32, Hasher>,
    vouches: HashMap<(u32, Question), (u32, Option<Letter>), Hasher>,
    answers: HashMap<(u32, Question), (u32, Option<Letter>), Hasher>,
    writes: HashMap<u32, Rc<Vec<Possible>>, Hasher>,
    landings: HashMap<Landing, (u32, u32), Hasher>,
    letters: HashMap<(usize, u64), u32, Hasher>,
    pub(super) released: HashMap<u32, bool, Hasher>,
}

/// Store, leader, record and what matters of the nodes: what a write makes of the first two.
type Landing = (u32, u32, u64, u64, bool);

/// A world in the making: what was heard of what a node said.
#[derive(Clone)]
struct Draft {
    world: World,
    letters: Vec<(Option<Member>, Letter)>,
    late_ack: Option<Ack>,
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

    /// The first world.
    pub fn start(&mut self) -> World {
        let bounds = self.bounds;
        let first = first_record(&bounds);
        let record = if bounds.start == Start::Bootstrap { no_record(&bounds, 0) } else { first.clone() };
        let view = (bounds.start != Start::Bootstrap).then(|| record.view());
        let mut nodes = [None; ROOM];
        for (site, place) in nodes.iter_mut().enumerate().take(bounds.sites) {
            let disk = Disk { view: view.clone(), ..Disk::default() };
            let node = Node::new(member(site, 1, 1), disk, super::world::LONG_AGO);
            let (node, _) = local::after(&bounds, &node, &Stimulus::KeeperSpeaks);
            *place = Some(self.nodes.put(node.canonical(&bounds)));
        }
        let store = Store { record: record.clone(), stale: None, views: vec![record.view()], late_write: None };
        let world = World {
            nodes,
            leader: self.leaders.put(Leader::elected(record, super::world::LONG_AGO, &bounds)),
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
        World { store: self.stores.put(store), leader: self.leaders.put(Leader::elected(record, NOW, &self.bounds)), ..world }
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
    fn is_over(&self, world: &World) -> bool {
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

    fn time(&mut self, world: &World) -> World {
        let mut next = *world;
        for place in next.nodes.iter_mut().flatten() {
            let before = *place;
            *place = match self.time.get(&before) {
                Some(after) => *after,
                None => {
                    let (node, _) = local::after(&self.bounds, &self.nodes.get(before), &Stimulus::Time);
                    let after = self.nodes.put(node.canonical(&self.bounds));
                    self.time.insert(before, after);
                    after
                }
            };
        }
        next.leader = self.leader_later(next.leader);
        next.rival = next.rival.map(|rival| self.leader_later(rival));
        next
    }

    fn leader_later(&mut self, before: u32) -> u32 {
        if let Some(after) = self.leader_time.get(&before) {
            return *after;
        }
        let mut leader = (*self.leaders.get(before)).clone();
        leader.shift(STEP);
        let after = self.leaders.put(leader.canonical(&self.bounds));
        self.leader_time.insert(before, after);
        after
    }

    fn node_steps(&mut self, world: &World, at: usize, id: u32, found: &mut Vec<(Action, World)>) {
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

    /// Every way in which what a node says may be heard or lost.
    fn heard(
        &mut self,
        base: World,
        at: usize,
        stimulus: &Rc<Stimulus>,
        outcome: &Rc<Outcome>,
        found: &mut Vec<(Action, World)>,
    ) {
        let mut drafts = vec![Draft { world: base, letters: Vec::new(), late_ack: None }];
        for said in &outcome.said {
            for draft in drafts.clone() {
                self.listen(&draft, said, &mut drafts);
            }
        }
        for (number, draft) in (0..).zip(drafts) {
            let mut next = draft.world;
            next.nodes[at] = Some(if draft.letters.is_empty() && draft.late_ack.is_none() {
                outcome.quiet
            } else {
                self.with_letters(outcome, draft.letters, draft.late_ack)
            });
            found.push((Action::Node(at, Rc::clone(stimulus), number), next));
        }
    }

    fn with_letters(&mut self, outcome: &Rc<Outcome>, letters: Vec<(Option<Member>, Letter)>, ack: Option<Ack>) -> u32 {
        // An outcome is kept as long as the machine, so its place names it.
        let key = (Rc::as_ptr(outcome).addr(), fingerprint(&(&letters, &ack)));
        if let Some(known) = self.letters.get(&key) {
            return *known;
        }
        let mut node = outcome.raw.clone();
        node.inbox.extend(letters);
        node.late_ack = ack.map(|ack| (NOW, ack)).or(node.late_ack);
        let id = self.nodes.put(node.canonical(&self.bounds));
        self.letters.insert(key, id);
        id
    }

    fn listen(&mut self, draft: &Draft, said: &Said, drafts: &mut Vec<Draft>) {
        let with = |draft: &Draft, world: World, letter: Option<(Option<Member>, Letter)>| {
            let mut draft = Draft { world, ..draft.clone() };
            draft.letters.extend(letter);
            draft
        };
        match said {
            Said::Question(None, question) => {
                for who in [Who::Leader, Who::Rival] {
                    if let Some((world, Some(letter))) = self.answered(draft.world, who, question) {
                        drafts.push(with(draft, world, Some((None, letter))));
                    }
                }
            }
            Said::Question(Some(voter), question) => {
                let Some(to) = self.find(&draft.world, voter) else { return };
                let Some(id) = draft.world.nodes[to] else { return };
                if let (after, Some(letter)) = self.vouched(id, question) {
                    let mut world = draft.world;
                    world.nodes[to] = Some(after);
                    drafts.push(with(draft, world, Some((Some(voter.clone()), letter))));
                }
            }
            Said::Ack(ack) => {
                for who in [Who::Leader, Who::Rival] {
                    if self.leader(&draft.world, who).is_some_and(|leader| leader.cares_for(ack)) {
                        let world = self.acknowledged(draft.world, who, ack, None);
                        drafts.push(with(draft, world, None));
                    }
                }
                if self.bounds.late_acks {
                    drafts.push(Draft { late_ack: Some(ack.clone()), ..draft.clone() });
                }
            }
            Said::Vouch(_) => {}
        }
    }

    /// The voter's answer, if it vouches.
    fn vouched(&mut self, id: u32, question: &Question) -> (u32, Option<Letter>) {
        let key = (id, question.clone());
        if let Some(known) = self.vouches.get(&key) {
            return known.clone();
        }
        let (node, said) = local::after(&self.bounds, &self.nodes.get(id), &Stimulus::Asked(question.clone()));
        let vouch = said.into_iter().find_map(|said| match said {
            Said::Vouch(vouch) if vouch.ok => Some(Letter::Vouch(vouch)),
            _ => None,
        });
        let answer = (self.nodes.put(node.canonical(&self.bounds)), vouch);
        self.vouches.insert(key, answer.clone());
        answer
    }

    /// A leader's answer, if it grants.
    fn answered(&mut self, world: World, who: Who, question: &Question) -> Option<(World, Option<Letter>)> {
        let id = match who {
            Who::Leader => world.leader,
            // One that was replaced knows it, and grants nothing, unless the Lease or the check is not kept.
            Who::Rival => world.rival?,
        };
        let key = (id, question.clone());
        let (after, letter) = match self.answers.get(&key) {
            Some(known) => known.clone(),
            None => {
                let mut leader = (*self.leaders.get(id)).clone();
                let letter = leader.answers(question).map(Letter::Grant);
                let answer = (self.leaders.put(leader.canonical(&self.bounds)), letter);
                self.answers.insert(key, answer.clone());
                answer
            }
        };
        Some((with_leader(world, who, after), letter))
    }

    fn acknowledged(&mut self, world: World, who: Who, ack: &Ack, lay: Option<Millis>) -> World {
        let Some(leader) = self.leader(&world, who) else { return world };
        let mut leader = (*leader).clone();
        let ended = leader.takes(&self.bounds, ack, lay);
        let mut world = with_leader(world, who, self.leaders.put(leader.clone().canonical(&self.bounds)));
        // An end is written down before anyone acts on it; a leader that cannot write it does not know of it.
        for member in ended {
            if self.stores.get(world.store).record == leader.record
                && let Some(next) = leader.next(&Write::NoteEnd(member))
            {
                leader.record = next.clone();
                world = self.persist(world, who, &Rc::new(next), false);
            }
        }
        world
    }

    /// What may happen at a node by itself.
    fn own_steps(&mut self, id: u32) -> Rc<Vec<Own>> {
        if let Some(known) = self.own.get(&id) {
            return Rc::clone(known);
        }
        let node = self.nodes.get(id);
        let steps = self.outcomes(&node, own_stimuli(&self.bounds, &node));
        self.own.insert(id, Rc::clone(&steps));
        steps
    }

    fn outcomes(&mut self, node: &Node, stimuli: Vec<(Stimulus, Fault)>) -> Rc<Vec<Own>> {
        let mut steps = Vec::new();
        for (stimulus, fault) in stimuli {
            // What can never happen within the bounds is not computed either.
            if fault(&mut self.bounds.faults.clone()).is_some_and(|left| *left == 0) {
                continue;
            }
            let (raw, said) = local::after(&self.bounds, node, &stimulus);
            let quiet = self.nodes.put(raw.clone().canonical(&self.bounds));
            steps.push((Rc::new(stimulus), fault, Rc::new(Outcome { quiet, raw, said })));
        }
        Rc::new(steps)
    }

    /// Which views may reach a node: newer ones, and the record's own again where its acknowledgement is wanted.
    fn view_steps(&mut self, id: u32, store: u32) -> Rc<Vec<Own>> {
        if let Some(known) = self.views.get(&(id, store)) {
            return Rc::clone(known);
        }
        let (node, told) = (self.nodes.get(id), self.stores.get(store));
        let mut stimuli: Vec<(Stimulus, Fault)> = Vec::new();
        if node.sidecar.is_some() {
            for view in &told.views {
                let newer = view.epoch > node.known();
                let wanted = view.epoch == told.record.epoch && asks_again(&self.bounds, &told.record);
                if newer || wanted {
                    stimuli.push((Stimulus::View(view.clone(), Source::Operator), no_fault));
                }
                if newer && self.bounds.peer_views {
                    stimuli.push((Stimulus::View(view.clone(), Source::Peer), no_fault));
                }
            }
        }
        let steps = self.outcomes(&node, stimuli);
        self.views.insert((id, store), Rc::clone(&steps));
        steps
    }

    fn leader_steps(&mut self, world: &World, who: Who, found: &mut Vec<(Action, World)>) {
        let Some(leader) = self.leader(world, who) else { return };
        let store = self.stores.get(world.store);
        let current = leader.record == store.record;
        if !current {
            let mut reader = (*leader).clone();
            reader.reads(self.read(&store));
            let next = with_leader(*world, who, self.leaders.put(reader.canonical(&self.bounds)));
            found.push((Action::Reread(who), next));
        }
        // Every write is a compare-and-swap: one based on an older record changes nothing.
        if !current && self.bounds.without != Some(Without::CompareAndSwap) {
            return;
        }
        for (write, record) in self.possible_writes(world, who) {
            let mut base = *world;
            match *write {
                Write::Voters(_) => base.left.voter_changes -= 1,
                Write::Settings(_) => base.left.settings_changes -= 1,
                _ => {}
            }
            if self.bounds.without == Some(Without::PersistFirst) {
                let next = self.told_unpersisted(base, who, (*record).clone());
                found.push((Action::TellUnpersisted(Rc::clone(&write)), next));
            }
            for missed in [false, true].into_iter().take(1 + usize::from(self.bounds.two_copies)) {
                let next = self.persist(base, who, &record, missed);
                found.push((Action::Write(who, Rc::clone(&write), missed), next));
            }
        }
    }

    /// What a leader may write, with the records that would come of it.
    pub(super) fn possible_writes(&mut self, world: &World, who: Who) -> Vec<Possible> {
        let Some(leader) = self.leader(world, who) else { return Vec::new() };
        let id = if who == Who::Leader { world.leader } else { world.rival.unwrap_or(world.leader) };
        let mut writes = (*self.fixed_writes(id, &leader)).clone();
        let mut more = Vec::new();
        if world.left.voter_changes > 0 {
            more.extend(self.voter_choices(world).into_iter().map(Write::Voters));
        }
        if world.left.settings_changes > 0 {
            let Settings { lease_timeout, min_peers } = leader.record.settings;
            let lease = if lease_timeout == STEP { STEP.times(2) } else { STEP };
            more.push(Write::Settings(Settings { lease_timeout: lease, min_peers }));
            more.push(Write::Settings(Settings { lease_timeout, min_peers: 3 - min_peers.min(2) }));
        }
        let anyone = self.bounds.without == Some(Without::EvidenceOfTheEnd);
        for node in self.living(world) {
            if node.ended || anyone {
                more.push(Write::NoteEnd(node.me.clone()));
            }
        }
        writes.extend(more.into_iter().filter_map(|write| possible(&leader, write)));
        writes.retain(|(write, _)| !write.needs_room() || leader.record.epoch <= self.bounds.epochs);
        writes
    }

    fn fixed_writes(&mut self, id: u32, leader: &Leader) -> Rc<Vec<Possible>> {
        if let Some(known) = self.writes.get(&id) {
            return Rc::clone(known);
        }
        let mut writes = vec![Write::Revoke, Write::DropSets, Write::StartOver];
        if self.bounds.faults.leader_changes + self.bounds.faults.rivals > 0 {
            writes.push(Write::NoteProof);
        }
        writes.extend(leader.record.voters.iter().cloned().map(Write::Grant));
        let writes: Vec<Possible> = writes.into_iter().filter_map(|write| possible(leader, write)).collect();
        let writes = Rc::new(writes);
        self.writes.insert(id, Rc::clone(&writes));
        writes
    }

    /// The newest instances of all sites, and the same without one of them.
    pub(super) fn voter_choices(&self, world: &World) -> Vec<Vec<Member>> {
        let mut newest: Vec<Member> = Vec::new();
        for node in self.living(world) {
            newest.retain(|member| member.site != node.me.site);
            newest.push(node.me.clone());
        }
        newest.sort();
        let mut choices = vec![newest.clone()];
        for out in &newest {
            choices.push(newest.iter().filter(|member| *member != out).cloned().collect());
        }
        choices
    }

    fn elections(&mut self, world: &World, found: &mut Vec<(Action, World)>) {
        let store = self.stores.get(world.store);
        if let Some(late) = &store.late_write {
            let (left, record) = (Store { late_write: None, ..(*store).clone() }, late.clone());
            let world = World { store: self.stores.put(left), ..*world };
            let landed = self.landed(world, record, false);
            found.push((Action::LateWriteLands, landed));
        }
        if world.left.rivals > 0 {
            let mut next = self.elected(world, None);
            next.left.rivals -= 1;
            next.rival = Some(world.leader);
            found.push((Action::Rival, next));
        }
        if world.left.leader_changes == 0 {
            return;
        }
        let mut lates: Vec<Option<Possible>> = vec![None];
        if self.leaders.get(world.leader).record == store.record {
            lates.extend(self.possible_writes(world, Who::Leader).into_iter().map(Some));
        }
        for late in lates {
            let (write, record) = late.unzip();
            let mut next = self.elected(world, record.map(|record| (*record).clone()));
            next.left.leader_changes -= 1;
            if self.bounds.without == Some(Without::LeadershipAtTheAnswer) {
                next.rival = Some(world.leader);
            }
            found.push((Action::NewLeader(write), next));
        }
    }

    fn elected(&mut self, world: &World, late_write: Option<Record>) -> World {
        let store = self.stores.get(world.store);
        let record = self.read(&store);
        let store = Store { late_write: late_write.or(store.late_write.clone()), ..(*store).clone() };
        World { store: self.stores.put(store), leader: self.leaders.put(Leader::elected(record, NOW, &self.bounds)), ..*world }
    }

    /// Both copies of the record, as somebody finds them who reads both.
    fn read(&self, store: &Store) -> Record {
        match &store.stale {
            Some(stale) => authority::join(stale.clone(), store.record.clone()),
            None => store.record.clone(),
        }
    }

    /// A record lands in the store.
    fn landed(&mut self, mut world: World, record: Record, missed: bool) -> World {
        let before = self.stores.get(world.store);
        let mut views = before.views.clone();
        views.retain(|view| view.epoch != record.epoch);
        views.push(record.view());
        // What everybody has on disk already changes nothing when it comes again, but for the record's own.
        let lowest = self.lowest_on_disk(&world);
        views.retain(|view| view.epoch > lowest || view.epoch == record.epoch);
        views.sort_by_key(|view| view.epoch);
        let stale = missed.then(|| before.stale.clone().unwrap_or_else(|| before.record.clone()));
        if self.bounds.without == Some(Without::OnlyTheSidecarOpens) && record.phase == Phase::Granting {
            self.operator_opens(&mut world, &record);
        }
        world.store = self.stores.put(Store { record, stale, views, late_write: None });
        world
    }

    fn operator_opens(&mut self, world: &mut World, record: &Record) {
        let Some(at) = record.seat.as_ref().and_then(|seat| self.find(world, seat)) else { return };
        if let Some(id) = &mut world.nodes[at] {
            let (node, _) = local::after(&self.bounds, &self.nodes.get(*id), &Stimulus::OperatorSendsOpening);
            *id = self.nodes.put(node.canonical(&self.bounds));
        }
    }

    /// A leader writes, and goes on with what it wrote.
    pub(super) fn persist(&mut self, world: World, who: Who, record: &Rc<Record>, missed: bool) -> World {
        let id = if who == Who::Leader { Some(world.leader) } else { world.rival };
        let lowest = self.lowest_on_disk(&world);
        let key = (world.store, id.unwrap_or(u32::MAX), fingerprint(&**record), lowest, missed);
        if self.bounds.without != Some(Without::OnlyTheSidecarOpens)
            && let Some((store, leader)) = self.landings.get(&key)
        {
            return with_leader(World { store: *store, ..world }, who, *leader);
        }
        let landed = self.landed(world, (**record).clone(), missed);
        let next = self.goes_on_with(landed, who, (**record).clone());
        let leader = if who == Who::Leader { next.leader } else { next.rival.unwrap_or(next.leader) };
        self.landings.insert(key, (next.store, leader));
        next
    }

    fn lowest_on_disk(&self, world: &World) -> u64 {
        self.living(world).filter(|node| !node.ended).map(|node| node.on_disk()).min().unwrap_or(0)
    }

    fn goes_on_with(&mut self, world: World, who: Who, record: Record) -> World {
        let Some(leader) = self.leader(&world, who) else { return world };
        let mut leader = (*leader).clone();
        leader.reads(record);
        with_leader(world, who, self.leaders.put(leader.canonical(&self.bounds)))
    }

    fn told_unpersisted(&mut self, mut world: World, who: Who, record: Record) -> World {
        let mut store = (*self.stores.get(world.store)).clone();
        store.views.push(record.view());
        world.store = self.stores.put(store);
        self.goes_on_with(world, who, record)
    }

    fn new_pod(&mut self, world: &World, old: &Member) -> World {
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

/// Which counter a stimulus uses up.
type Fault = fn(&mut Faults) -> Option<&mut u8>;

fn no_fault(_: &mut Faults) -> Option<&mut u8> {
    None
}

fn possible(leader: &Leader, write: Write) -> Option<Possible> {
    leader.next(&write).map(|next| (Rc::new(write), Rc::new(next)))
}

fn with_leader(mut world: World, who: Who, id: u32) -> World {
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

/// Whether a leader pushes its view to those who have it: for their acknowledgement.
fn asks_again(bounds: &Bounds, record: &Record) -> bool {
    let several_sets = record.holder.as_ref().is_some_and(|holder| holder.sets.len() > 1);
    record.phase == Phase::Revoking || several_sets || bounds.start == Start::RolledBack
}

fn own_stimuli(bounds: &Bounds, node: &Node) -> Vec<(Stimulus, Fault)> {
    if node.ended {
        return Vec::new();
    }
    let mut found: Vec<(Stimulus, Fault)> = Vec::new();
    let server = &node.server;
    if server.running && server.opening_in_flight {
        found.push((Stimulus::OpeningLands(false), no_fault));
        if matches!(node.lane, Some(Command::EndOpeners { .. })) {
            found.push((Stimulus::OpeningLands(true), no_fault));
        }
    }
    if server.running && server.operator_opens {
        found.push((Stimulus::OperatorOpens, no_fault));
    }
    if node.asked_by_ghost.is_some_and(|permit| server.running && permit.start == server.id()) {
        found.push((Stimulus::GhostIsPermitted, no_fault));
    }
    if server.running {
        found.push((Stimulus::MysqldDies, |left| Some(&mut left.mysqld_crashes)));
    } else {
        found.push((Stimulus::MysqldStarts, no_fault));
    }
    found.push((Stimulus::Ends, |left| Some(&mut left.ends)));
    let Some(sidecar) = &node.sidecar else {
        found.push((Stimulus::SidecarStarts, no_fault));
        return found;
    };
    found.extend([(Stimulus::Tick, no_fault as Fault), (Stimulus::Timer, no_fault)]);
    let known = matches!(sidecar.mysqld, Mysqld::Up(start) if server.running && start == server.id())
        || (sidecar.mysqld == Mysqld::Down && !server.running);
    if bounds.slow_keeper && !known {
        found.push((Stimulus::KeeperSpeaks, no_fault));
    }
    found.extend(node.inbox.keys().cloned().map(|from| (Stimulus::Deliver(from), no_fault as Fault)));
    if node.lane.is_some() {
        found.push((Stimulus::LaneDone, no_fault));
        found.push((Stimulus::LaneFails, |left| Some(&mut left.lane_failures)));
    }
    found.push((Stimulus::SidecarDies, |left| Some(&mut left.sidecar_crashes)));
    found.push((Stimulus::StoreIsLost, |left| Some(&mut left.lost_stores)));
    found
}
