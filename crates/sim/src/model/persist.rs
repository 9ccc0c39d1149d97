//! Leaders at the API server: what they write, what lands, and who is elected.

use super::intern::fingerprint;
use super::leader::Write;
use super::local::{self, Stimulus};
use super::step::{Action, Machine, Who, with_leader};
use super::world::{Leader, NOW, STEP, Store, Without, World};
use bloodraven_brain::authority;
use bloodraven_brain::name::Member;
use bloodraven_brain::record::{Phase, Record, Settings};
use std::rc::Rc;

/// A write, and the record that comes of it.
pub(super) type Possible = (Rc<Write>, Rc<Record>);

/// Store, leader, record and what matters of the nodes: what a write makes of the first two.
pub(super) type Landing = (u32, u32, u64, u64, bool);

impl Machine {
    pub(super) fn leader_steps(&mut self, world: &World, who: Who, found: &mut Vec<(Action, World)>) {
        let Some(leader) = self.leader(world, who) else { return };
        let store = self.stores.get(world.store);
        let current = leader.record == store.record;
        if !current {
            let mut reader = (*leader).clone();
            reader.reads(read(&store));
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

    pub(super) fn fixed_writes(&mut self, id: u32, leader: &Leader) -> Rc<Vec<Possible>> {
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

    pub(super) fn elections(&mut self, world: &World, found: &mut Vec<(Action, World)>) {
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

    pub(super) fn elected(&mut self, world: &World, late_write: Option<Record>) -> World {
        let store = self.stores.get(world.store);
        let record = read(&store);
        let store = Store { late_write: late_write.or(store.late_write.clone()), ..(*store).clone() };
        World {
            store: self.stores.put(store),
            leader: self.leaders.put(Leader::elected(record, NOW, &self.bounds)),
            ..*world
        }
    }

    /// A record lands in the store.
    pub(super) fn landed(&mut self, mut world: World, record: Record, missed: bool) -> World {
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
        // What was begun from an older record is refused, unless a search does without that.
        let late_write = before.late_write.clone().filter(|_| self.bounds.without == Some(Without::CompareAndSwap));
        world.store = self.stores.put(Store { record, stale, views, late_write });
        world
    }

    pub(super) fn operator_opens(&mut self, world: &mut World, record: &Record) {
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

    pub(super) fn lowest_on_disk(&self, world: &World) -> u64 {
        self.living(world).filter(|node| !node.ended).map(|node| node.on_disk()).min().unwrap_or(0)
    }

    pub(super) fn goes_on_with(&mut self, world: World, who: Who, record: Record) -> World {
        let Some(leader) = self.leader(&world, who) else { return world };
        let mut leader = (*leader).clone();
        // Who writes an end down has seen it itself, and remembers when.
        for ended in record.ended.iter().filter(|ended| !leader.record.has_ended(&ended.member)) {
            leader.evidence.take_end(&ended.member, NOW);
        }
        leader.reads(record);
        with_leader(world, who, self.leaders.put(leader.canonical(&self.bounds)))
    }

    pub(super) fn told_unpersisted(&mut self, mut world: World, who: Who, record: Record) -> World {
        let mut store = (*self.stores.get(world.store)).clone();
        store.views.push(record.view());
        world.store = self.stores.put(store);
        self.goes_on_with(world, who, record)
    }
}

fn possible(leader: &Leader, write: Write) -> Option<Possible> {
    leader.next(&write).map(|next| (Rc::new(write), Rc::new(next)))
}

/// Both copies of the record, as somebody finds them who reads both.
fn read(store: &Store) -> Record {
    match &store.stale {
        Some(stale) => authority::join(stale.clone(), store.record.clone()),
        None => store.record.clone(),
    }
}
