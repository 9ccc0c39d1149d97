//! Shrinking: the shortest script that still goes wrong in the same way.
//!
//! In: a scenario that goes wrong. Out: one that does with fewer faults. Must not: take a different failure for the same.

use super::scenario::Scenario;
use super::{Run, play};

/// How often a scenario is played at most.
const MOST_PLAYS: u32 = 400;

/// What went wrong: the promise, or that it did not come to rest.
fn failure(run: &Run) -> Option<&'static str> {
    match &run.broken {
        Some(broken) => Some(broken.promise),
        None if run.is_wrong() => Some("restless"),
        None => None,
    }
}

/// Drops faults one by one, and then the time that is not needed, as long as it goes wrong in the same way.
pub fn shrink(scenario: &Scenario) -> Scenario {
    let Some(wanted) = failure(&play(scenario, false)) else { return scenario.clone() };
    let mut best = scenario.clone();
    let mut plays = 0;
    let mut goes_wrong = |candidate: &Scenario| {
        plays += 1;
        plays <= MOST_PLAYS && failure(&play(candidate, false)) == Some(wanted)
    };
    loop {
        let before = best.faults.len();
        let mut number = 0;
        while number < best.faults.len() {
            let mut candidate = best.clone();
            candidate.faults.remove(number);
            if goes_wrong(&candidate) {
                best = candidate;
            } else {
                number += 1;
            }
        }
        if best.faults.len() == before {
            break;
        }
    }
    let last = best.faults.last().map_or(0, |fault| fault.at);
    for heal_at in [last + super::SEC, last + 10 * super::SEC, last + 40 * super::SEC] {
        let candidate = Scenario { heal_at, ..best.clone() };
        if heal_at < best.heal_at && goes_wrong(&candidate) {
            return candidate;
        }
    }
    best
}
