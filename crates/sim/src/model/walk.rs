//! Swarm walks: long random runs, each of which forbids a random eighth of the kinds of action. Walks alone miss deep
//! holes, exhaustive searches alone stay small.

use super::{Action, Bounds, Breach, Machine};
use std::collections::BTreeSet;

/// Steps of one walk.
const LENGTH: usize = 300;

/// What walks found.
#[derive(Clone, Debug)]
pub struct Walked {
    /// How many walks.
    pub walks: u64,
    /// Steps taken.
    pub steps: u64,
    /// Steps after which exactly one server accepted writes.
    pub with_writer: u64,
    /// The first broken promise, with the way there and the seed of its walk.
    pub breach: Option<(Breach, Vec<Action>, u64)>,
}

/// A small generator of numbers that look random: the walks of one seed are always the same.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below that one; 0 for 0.
    fn below(&mut self, most: usize) -> usize {
        let most = most.max(1) as u64;
        usize::try_from(self.roll() % most).unwrap_or(0)
    }
}

/// So many walks from the first world, beginning with that seed.
pub fn walk(bounds: Bounds, walks: u64, seed: u64) -> Walked {
    let mut machine = Machine::new(bounds);
    let mut walked = Walked { walks: 0, steps: 0, with_writer: 0, breach: None };
    for number in 0..walks {
        walked.walks += 1;
        // The parts seen so far are kept, within memory.
        if machine.nodes.len() > 400_000 {
            machine = Machine::new(bounds);
        }
        let seed = seed.wrapping_add(number);
        if let Some((breach, actions)) = one(&mut machine, seed, &mut walked) {
            walked.breach = Some((breach, actions, seed));
            break;
        }
    }
    walked
}

fn one(machine: &mut Machine, seed: u64, walked: &mut Walked) -> Option<(Breach, Vec<Action>)> {
    // A seed of zero would stay zero for ever.
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut forbidden = BTreeSet::new();
    let mut judged = BTreeSet::new();
    let mut world = machine.start();
    let (mut actions, mut found) = (Vec::new(), Vec::new());
    for _ in 0..LENGTH {
        machine.successors(&world, &mut found);
        for (action, _) in &found {
            let kind = action.kind();
            // Each kind is judged when it first comes up, so that the choice does not depend on a list of kinds.
            if judged.insert(kind) && dice.below(8) == 0 {
                forbidden.insert(kind);
            }
        }
        found.retain(|(action, _)| !forbidden.contains(action.kind()));
        if found.is_empty() {
            break;
        }
        let (action, next) = found.swap_remove(dice.below(found.len()));
        actions.push(action);
        world = next;
        walked.steps += 1;
        walked.with_writer += u64::from(machine.one_writer(&world));
        if let Some(breach) = machine.breach(&world) {
            return Some((breach, actions));
        }
    }
    (!machine.heals(&world)).then_some((Breach::NeverWritable, actions))
}
