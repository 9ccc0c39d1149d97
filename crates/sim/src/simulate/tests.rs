//! What the simulator itself must hold: the same scenario is the same run, and a quiet group serves.

use super::draw::draw;
use super::scenario::{Edit, Expect, Fault, Process, Setup, Timed};
use super::{End, Rest, SEC, Scenario, play};

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
fn who_watches_changes_nothing() {
    struct Nobody;
    impl super::Audience for Nobody {}
    let scenario = draw(5, None);
    assert_eq!(super::play_before(&scenario, Box::new(Nobody)), play(&scenario, false));
}

#[test]
fn a_group_without_faults_serves() {
    for sites in 2..=5 {
        let run = play(&quiet(Setup { sites, ..Setup::default() }), true);
        assert_eq!((run.broken, run.rest), (None, Rest::Serves), "{sites} sites");
        assert!(run.figures.writes > 10, "{sites} sites: {:?}", run.figures);
    }
}

/// The operator dies after each of so many commands, counted from just before the fault; the next one ends the move.
#[test]
fn an_operator_that_dies_anywhere_in_a_move_changes_nothing_in_the_end() {
    for commands in 0..24 {
        let mut scenario = quiet(Setup { cooldown: 20 * SEC, lease: 10 * SEC, ..Setup::default() });
        scenario.faults = vec![
            Timed { at: 20 * SEC, what: Fault::Isolate(End::Site(0)) },
            Timed { at: 26 * SEC + 100, what: Fault::CrashAfter(0, commands) },
        ];
        scenario.heal_at = 80 * SEC;
        scenario.expects = vec![Expect::Failovers(1)];
        let run = play(&scenario, false);
        assert_eq!((run.broken, run.rest), (None, Rest::Serves), "dies after {commands} commands");
    }
}

/// The same for a move that an admin asked for: the next operator looks around, and ends it.
#[test]
fn an_operator_that_dies_anywhere_in_a_planned_move_changes_nothing_in_the_end() {
    for commands in 0..24 {
        let mut scenario = quiet(Setup { cooldown: 20 * SEC, lease: 10 * SEC, ..Setup::default() });
        scenario.faults = vec![
            Timed { at: 20 * SEC, what: Fault::Planned(1) },
            Timed { at: 20 * SEC, what: Fault::CrashAfter(0, commands) },
        ];
        scenario.heal_at = 80 * SEC;
        scenario.expects = vec![Expect::Failovers(1), Expect::Primary(1), Expect::Planned(true)];
        let run = play(&scenario, false);
        assert_eq!((run.broken, run.rest), (None, Rest::Serves), "dies after {commands} commands");
    }
}

/// What only some seeds have is drawn by somebody.
#[test]
fn every_kind_of_weather_is_drawn() {
    let setups: Vec<Setup> = (0..400).map(|seed| draw(seed, None).setup).collect();
    let some = |has: fn(&Setup) -> bool| setups.iter().any(has);
    assert!(some(|setup| setup.caches && setup.caches_matter) && some(|setup| setup.semi_sync));
    assert!(some(|setup| setup.tagged) && some(|setup| setup.recordless) && some(|setup| setup.recreate));
    assert!(some(|setup| setup.large_promotions) && some(|setup| !setup.large_promotions));
    let faults: Vec<Fault> = (0..400).flat_map(|seed| draw(seed, None).faults).map(|timed| timed.what).collect();
    let struck = |is: fn(&Fault) -> bool| faults.iter().any(is);
    assert!(
        struck(|fault| matches!(fault, Fault::RestoreStore))
            && struck(|fault| matches!(fault, Fault::DelayReplica(..)))
    );
    assert!(struck(|fault| matches!(fault, Fault::Pause(Process::Keeper(_)))));
    assert!(struck(|fault| matches!(fault, Fault::Edit(Edit::Template))));
}
