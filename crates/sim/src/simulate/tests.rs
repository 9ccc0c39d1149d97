//! What the simulator itself must hold: the same scenario is the same run, and a quiet group serves.

use super::draw::draw;
use super::scenario::Setup;
use super::{Rest, SEC, Scenario, play};

fn quiet(setup: Setup) -> Scenario {
    Scenario { seed: 1, story: String::new(), setup, faults: Vec::new(), heal_at: 40 * SEC, expects: Vec::new() }
}

#[test]
fn the_same_seed_gives_the_same_timeline() {
    for seed in [1, 2, 3, 17] {
        let scenario = draw(seed, None);
        assert_eq!(play(&scenario, true), play(&scenario, true), "seed {seed}");
    }
}

#[test]
fn a_timeline_changes_nothing() {
    let scenario = draw(5, None);
    let (told, untold) = (play(&scenario, true), play(&scenario, false));
    assert_eq!((told.broken, told.rest, told.figures), (untold.broken, untold.rest, untold.figures));
}

#[test]
fn a_group_without_faults_serves() {
    for sites in 2..=5 {
        let run = play(&quiet(Setup { sites, ..Setup::default() }), true);
        assert_eq!((run.broken, run.rest), (None, Rest::Serves), "{sites} sites");
        assert!(run.figures.writes > 10, "{sites} sites: {:?}", run.figures);
    }
}
