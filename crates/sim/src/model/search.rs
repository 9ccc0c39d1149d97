//! Breadth first over all worlds within the bounds, so that the first trace found is a shortest one.

use super::intern::{Hasher, fingerprint};
use super::{Action, Bounds, Breach, Machine, World};
use std::collections::{HashMap, VecDeque};

/// Healing takes some hundred steps, so it is tried from one world in this many; more rarely after the first hundred.
const HEAL_EVERY: [usize; 2] = [500, 50_000];

/// What a search found.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Different worlds seen.
    pub states: usize,
    /// Steps taken between them.
    pub steps: usize,
    /// Worlds in which exactly one server accepts writes: a model in which nothing ever opens would be safe, too.
    pub with_writer: usize,
    /// Worlds from which it was tried whether the group, undisturbed, comes to have a writer.
    pub healed: usize,
    /// Different nodes seen: how many states one instance can be in.
    pub nodes: usize,
    /// Whether every world within the bounds was seen.
    pub complete: bool,
    /// The first broken promise, with the shortest way there.
    pub breach: Option<(Breach, Vec<Action>)>,
}

/// Where a world was reached from, and by which of its steps.
type Parents = HashMap<u64, (u64, u32), Hasher>;

/// Searches from the first world; gives up after `most` worlds.
pub fn search(bounds: Bounds, most: usize) -> Outcome {
    let mut machine = Machine::new(bounds);
    let first = machine.start();
    let start = fingerprint(&first);
    let mut parents: Parents = HashMap::with_hasher(Hasher::with_seed(1));
    parents.insert(start, (start, 0));
    let mut queue = VecDeque::from([first]);
    let mut found = Vec::new();
    let mut outcome =
        Outcome { states: 1, steps: 0, with_writer: 0, healed: 0, nodes: 0, complete: true, breach: None };
    while let Some(world) = queue.pop_front() {
        let here = fingerprint(&world);
        machine.successors(&world, &mut found);
        outcome.steps += found.len();
        for (number, (_, next)) in (0..).zip(&found) {
            let there = fingerprint(next);
            if parents.contains_key(&there) {
                continue;
            }
            parents.insert(there, (here, number));
            outcome.states += 1;
            outcome.with_writer += usize::from(machine.one_writer(next));
            if let Some(breach) = machine.breach(next).or_else(|| stuck(&mut machine, next, &mut outcome)) {
                outcome.complete = false;
                outcome.nodes = machine.nodes.len();
                outcome.breach = Some((breach, trace(&mut machine, first, there, &parents)));
                return outcome;
            }
            queue.push_back(*next);
        }
        if outcome.states >= most {
            outcome.complete = queue.is_empty();
            break;
        }
    }
    outcome.nodes = machine.nodes.len();
    outcome
}

fn stuck(machine: &mut Machine, world: &World, outcome: &mut Outcome) -> Option<Breach> {
    if !outcome.states.is_multiple_of(HEAL_EVERY[usize::from(outcome.healed >= 100)]) {
        return None;
    }
    outcome.healed += 1;
    (!machine.heals(world)).then_some(Breach::NeverWritable)
}

fn trace(machine: &mut Machine, first: World, end: u64, parents: &Parents) -> Vec<Action> {
    let start = fingerprint(&first);
    let mut numbers = Vec::new();
    let mut at = end;
    while at != start {
        let Some((parent, number)) = parents.get(&at) else { break };
        numbers.push(*number);
        at = *parent;
    }
    let mut world = first;
    let mut actions = Vec::new();
    let mut found = Vec::new();
    for number in numbers.into_iter().rev() {
        machine.successors(&world, &mut found);
        if number as usize >= found.len() {
            break;
        }
        let (action, next) = found.swap_remove(number as usize);
        world = next;
        actions.push(action);
    }
    actions
}
