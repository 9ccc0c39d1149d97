//! A few candidates, one lease, and what is under way between them; and what can come next.
//!
//! All moments in a candidate are kept relative to its own clock and cut off where they no longer matter, versions and
//! call numbers are renamed to the smallest ones, so the states are finite and the search ends.

use super::Search;
use super::digest::digest;
use crate::lease::{Acquired, CallId, Command, Election, Found, Input, Lease, NewLease, Written};
use crate::time::{Boot, Millis, Now, Wall};
use std::collections::BTreeSet;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

/// Each candidate's present moment; everything it remembers is moved instead.
const NOW: Boot = Boot(10_000);
const UNIT: u64 = 100;
/// Calls of one candidate that are under way at once: the present one and an old write. A further one pushes out the oldest.
const CALLS: usize = 2;
/// Answers to one candidate that are under way at once.
const ANSWERS: usize = 1;

/// Names of versions: the lease's own, one that a candidate saw, any other, and the one that a write makes.
const PRESENT: &str = "present";
const SEEN: &str = "seen";
const PAST: &str = "past";
const NEXT: &str = "next";

#[derive(Clone, Debug, Hash)]
struct Node {
    election: Election,
    calls: Vec<Command>,
    answers: Vec<Input>,
}

/// A candidate with its digest; worlds share those that did not change between them.
#[derive(Clone, Debug)]
struct Shared {
    node: Rc<Node>,
    digest: u128,
}

#[derive(Clone, Debug)]
pub(super) struct World {
    lease: Option<Lease>,
    nodes: Vec<Shared>,
    crashes_left: u8,
    shutdowns_left: u8,
}

impl World {
    pub(super) fn start(search: &Search) -> Self {
        let node = |index: usize| {
            let mut election = Election::new(&index.to_string(), search.times, NOW);
            election.mutation = search.mutation;
            let node = Node { election, calls: Vec::new(), answers: Vec::new() };
            Shared { digest: digest(&node), node: Rc::new(node) }
        };
        Self {
            lease: None,
            nodes: (0..search.candidates).map(node).collect(),
            crashes_left: search.crashes,
            shutdowns_left: search.shutdowns,
        }
    }

    pub(super) fn digest(&self) -> u128 {
        let nodes: Vec<u128> = self.nodes.iter().map(|shared| shared.digest).collect();
        digest(&(&self.lease, nodes, self.crashes_left, self.shutdowns_left))
    }

    /// Which candidates lead now.
    pub(super) fn leading(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.nodes.len()).filter(|index| self.node(*index).election.leads(NOW))
    }

    fn node(&self, index: usize) -> &Node {
        &self.nodes[index].node
    }

    fn node_mut(&mut self, index: usize) -> &mut Node {
        Rc::make_mut(&mut self.nodes[index].node)
    }

    /// Every state that can come next.
    pub(super) fn successors(&self, search: &Search) -> Vec<Self> {
        let all = 0..self.nodes.len();
        let mut next = self.after_time(search);
        for world in &mut next {
            world.rename(search, all.clone());
        }
        for index in all.clone() {
            let mut of_one = self.after_inputs(index);
            of_one.extend(self.after_answers(index, search));
            of_one.extend(self.after_crash(index, search));
            for world in &mut of_one {
                world.rename(search, index..index + 1);
            }
            let mut of_lease = self.after_calls(index);
            for world in &mut of_lease {
                world.rename(search, all.clone());
            }
            next.extend(of_one.into_iter().chain(of_lease));
        }
        next
    }

    fn after_time(&self, search: &Search) -> Vec<Self> {
        let nodes = self.nodes.len();
        let rates: Vec<Vec<u64>> = if search.free_rates {
            (0..1_u32 << nodes)
                .map(|bits| (0..nodes).map(|node| 99 + 2 * u64::from(bits >> node & 1)).collect())
                .collect()
        } else {
            vec![(0..nodes).map(|node| if node == 0 { 99 } else { 101 }).collect()]
        };
        let pass = |rates: &Vec<u64>| {
            let mut world = self.clone();
            for (index, rate) in rates.iter().enumerate() {
                world.node_mut(index).election.age(Millis(UNIT * rate / 100));
            }
            world
        };
        rates.iter().map(pass).collect()
    }

    fn after_inputs(&self, index: usize) -> Vec<Self> {
        let mut next = vec![self.fed(index, Input::Tick)];
        // Who only follows just stops.
        let leads = self.node(index).election.leads(NOW);
        if self.shutdowns_left > 0 && leads {
            let mut world = self.clone();
            world.shutdowns_left -= 1;
            next.push(world.fed(index, Input::Shutdown));
        }
        next
    }

    /// A call is carried out; or twice, and it is the second answer that comes. One that never is just stays.
    fn after_calls(&self, index: usize) -> Vec<Self> {
        let mut next = Vec::new();
        for call in 0..self.node(index).calls.len() {
            let mut once = self.clone();
            let command = once.node_mut(index).calls.remove(call);
            let answer = once.carry_out(command.clone());
            if let Input::Wrote(_, Written::Done(_)) = answer {
                let mut twice = once.clone();
                let answer = twice.carry_out(command);
                push(&mut twice.node_mut(index).answers, answer, ANSWERS);
                next.push(twice);
            }
            push(&mut once.node_mut(index).answers, answer, ANSWERS);
            next.push(once);
        }
        next
    }

    /// An answer comes, or an error in its place. One that never does just stays, until the call is given up.
    fn after_answers(&self, index: usize, search: &Search) -> Vec<Self> {
        let mut next = Vec::new();
        for answer in 0..self.node(index).answers.len() {
            let mut world = self.clone();
            let input = if search.answers_come_again {
                world.node(index).answers[answer].clone()
            } else {
                world.node_mut(index).answers.remove(answer)
            };
            let failed = match &input {
                Input::Read(id, _) => Input::Read(*id, Found::Failed),
                Input::Wrote(id, _) => Input::Wrote(*id, Written::Unknown),
                Input::Tick | Input::Shutdown => Input::Tick,
            };
            next.extend([world.fed(index, input), world.fed(index, failed)]);
        }
        next
    }

    /// A candidate comes back as a new process of the same pod; what it had sent stays under way.
    fn after_crash(&self, index: usize, search: &Search) -> Option<Self> {
        let mut world = self.clone();
        world.crashes_left = world.crashes_left.checked_sub(1)?;
        let fresh = Self::start(search).node(index).election.clone();
        let node = world.node_mut(index);
        let next_call = node.election.next_call;
        node.election = Election { next_call, ..fresh };
        node.answers.clear();
        Some(world)
    }

    fn fed(&self, index: usize, input: Input) -> Self {
        let mut world = self.clone();
        let node = world.node_mut(index);
        // The second candidate's calendar is far ahead.
        let wall = if index == 0 { Wall(0) } else { Wall(1_000_000) };
        let out = node.election.step(Now { boot: NOW, wall }, input);
        if let Some(command) = out.command {
            push(&mut node.calls, command, CALLS);
        }
        world
    }

    fn carry_out(&mut self, command: Command) -> Input {
        match command {
            Command::Read(id) => Input::Read(id, self.lease.clone().map_or(Found::Absent, Found::Lease)),
            Command::Create(id, lease) => match &self.lease {
                Some(_) => Input::Wrote(id, Written::Conflict),
                None => self.write(id, &lease),
            },
            Command::Update(id, version, lease) | Command::Release(id, version, lease) => match &self.lease {
                Some(stored) if stored.version == version => self.write(id, &lease),
                Some(_) | None => Input::Wrote(id, Written::Conflict),
            },
        }
    }

    fn write(&mut self, id: CallId, lease: &NewLease) -> Input {
        let stored = Lease {
            version: NEXT.into(),
            holder: lease.holder.clone(),
            duration: Some(lease.duration),
            acquired: None,
            renewed: Some(lease.renewed.0.to_string().into()),
            transitions: 0,
        };
        self.lease = Some(stored.clone());
        Input::Wrote(id, Written::Done(stored))
    }

    /// Gives versions and calls the smallest numbers that keep apart what must be, and drops what decides nothing.
    fn rename(&mut self, search: &Search, touched: Range<usize>) {
        let present = self.lease.as_ref().map(|lease| Arc::clone(&lease.version));
        for shared in &mut self.nodes[touched] {
            let node = Rc::make_mut(&mut shared.node);
            node.forget(present.as_ref(), search.answers_come_again);
            node.rename_versions(present.as_ref());
            node.rename_calls();
            shared.digest = digest(node);
        }
        if let Some(lease) = self.lease.as_mut().filter(|lease| &*lease.version != PRESENT) {
            lease.version = PRESENT.into();
        }
    }
}

impl Node {
    /// Drops what can no longer change anything: answers to calls that were given up, and such calls if they would only
    /// read, or write over a version that is gone.
    fn forget(&mut self, present: Option<&Arc<str>>, answers_come_again: bool) {
        let awaited = self.election.call.map(|call| call.id);
        self.calls.retain(|call| match call {
            Command::Read(id) => awaited == Some(*id),
            Command::Create(id, _) => awaited == Some(*id) || present.is_none(),
            Command::Update(id, version, _) | Command::Release(id, version, _) => {
                awaited == Some(*id) || present == Some(version)
            }
        });
        self.answers.retain(|answer| match answer {
            Input::Read(id, _) | Input::Wrote(id, _) => answers_come_again || awaited == Some(*id),
            Input::Tick | Input::Shutdown => false,
        });
    }

    /// All that matters of a version: is it the present one, is it the one that this candidate saw.
    fn rename_versions(&mut self, present: Option<&Arc<str>>) {
        let saw = self.election.seen.as_ref().map(|lease| Arc::clone(&lease.version));
        let rename = |version: &mut Arc<str>| {
            let name = match () {
                () if present == Some(version) => PRESENT,
                () if saw.as_ref() == Some(version) => SEEN,
                () => PAST,
            };
            if &**version != name {
                *version = name.into();
            }
        };
        for command in &mut self.calls {
            if let Command::Update(_, version, _) | Command::Release(_, version, _) = command {
                rename(version);
            }
        }
        for answer in &mut self.answers {
            if let Input::Read(_, Found::Lease(lease)) | Input::Wrote(_, Written::Done(lease)) = answer {
                rename(&mut lease.version);
            }
        }
        self.election.seen.iter_mut().for_each(|lease| rename(&mut lease.version));
    }

    fn rename_calls(&mut self) {
        let mut used = BTreeSet::new();
        self.each_id(&mut |id| {
            used.insert(*id);
        });
        self.each_id(&mut |id| *id = CallId(used.range(..*id).count() as u64));
        self.election.next_call = used.len() as u64;
        for command in &mut self.calls {
            if let Command::Create(_, lease) | Command::Update(_, _, lease) | Command::Release(_, _, lease) = command {
                (lease.acquired, lease.transitions) = (Acquired::AsRead(None), 0);
            }
        }
    }

    fn each_id(&mut self, f: &mut dyn FnMut(&mut CallId)) {
        self.election.call.iter_mut().for_each(|call| f(&mut call.id));
        for command in &mut self.calls {
            match command {
                Command::Read(id) | Command::Create(id, _) | Command::Update(id, _, _) | Command::Release(id, _, _) => {
                    f(id);
                }
            }
        }
        for answer in &mut self.answers {
            match answer {
                Input::Read(id, _) | Input::Wrote(id, _) => f(id),
                Input::Tick | Input::Shutdown => {}
            }
        }
    }
}

impl Election {
    /// The candidate's clock moves on: what it remembers moves back. A moment that has passed is just that.
    fn age(&mut self, by: Millis) {
        for moment in [Some(&mut self.due), self.led_until.as_mut(), self.wait_until.as_mut()].into_iter().flatten() {
            *moment = (*moment - by).max(NOW);
        }
        let oldest = NOW - self.times.renew_deadline();
        if let Some(call) = &mut self.call {
            call.sent = (call.sent - by).max(oldest);
        }
    }
}

fn push<T>(queue: &mut Vec<T>, entry: T, most: usize) {
    if queue.len() == most {
        queue.remove(0);
    }
    queue.push(entry);
}
