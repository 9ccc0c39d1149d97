//! Breadth first over all states within the bounds, so that the first trace found is a shortest one.

use super::{Action, Bounds, Breach, World};
use std::collections::HashMap;
use std::collections::VecDeque;
use std::hash::BuildHasher;

/// Healing takes some hundred steps, so it is tried from one state in this many.
const HEAL_EVERY: usize = 1000;

/// What a search found.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Different states seen.
    pub states: usize,
    /// Steps taken between them.
    pub steps: usize,
    /// States in which exactly one server accepts writes: a model in which nothing ever opens would be safe, too.
    pub with_writer: usize,
    /// States from which it was tried whether the group, undisturbed, comes to have a writer.
    pub healed: usize,
    /// Whether every state within the bounds was seen.
    pub complete: bool,
    /// The first broken promise, with the shortest way there.
    pub breach: Option<(Breach, Vec<Action>)>,
}

/// Searches from the initial state; gives up after `most` states.
pub fn search(bounds: Bounds, most: usize) -> Outcome {
    let first = World::opened(bounds);
    let mut parents: HashMap<u64, (u64, u32)> = HashMap::new();
    let start = fingerprint(&first);
    parents.insert(start, (start, 0));
    let mut queue = VecDeque::from([first.clone()]);
    let mut outcome = Outcome { states: 1, steps: 0, with_writer: 0, healed: 0, complete: true, breach: None };
    while let Some(world) = queue.pop_front() {
        let here = fingerprint(&world);
        for (number, action) in (0..).zip(world.actions()) {
            let next = world.after(&action);
            outcome.steps += 1;
            let there = fingerprint(&next);
            if parents.contains_key(&there) {
                continue;
            }
            parents.insert(there, (here, number));
            outcome.states += 1;
            outcome.with_writer += usize::from(next.one_writer());
            let sampled = outcome.states.is_multiple_of(HEAL_EVERY);
            outcome.healed += usize::from(sampled);
            let stuck = sampled && !next.heals();
            if let Some(breach) = next.breach().or(stuck.then_some(Breach::NeverWritable)) {
                outcome.complete = false;
                outcome.breach = Some((breach, trace(&first, start, there, &parents)));
                return outcome;
            }
            queue.push_back(next);
        }
        if outcome.states >= most {
            outcome.complete = queue.is_empty();
            return outcome;
        }
    }
    outcome
}

fn trace(first: &World, start: u64, end: u64, parents: &HashMap<u64, (u64, u32)>) -> Vec<Action> {
    let mut numbers = Vec::new();
    let mut at = end;
    while at != start {
        let Some((parent, number)) = parents.get(&at) else { break };
        numbers.push(*number);
        at = *parent;
    }
    let mut world = first.clone();
    let mut actions = Vec::new();
    for number in numbers.into_iter().rev() {
        let Some(action) = world.actions().into_iter().nth(number as usize) else { break };
        world = world.after(&action);
        actions.push(action);
    }
    actions
}

fn fingerprint(world: &World) -> u64 {
    // A fixed seed: the same bounds give the same search, run after run.
    foldhash::quality::FixedState::with_seed(1).hash_one(world)
}
