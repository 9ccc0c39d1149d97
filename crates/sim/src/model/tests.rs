//! Bounds that finish in seconds; the larger ones are `cargo xtask model`.

use super::{Bounds, Breach, Outcome, Without, search};

const SMALL: Bounds = Bounds::ONE_MOVE;

fn check_safe(bounds: Bounds, most: usize) -> Outcome {
    let outcome = search(bounds, most);
    assert!(outcome.breach.is_none(), "{:#?}", outcome.breach);
    assert!(outcome.with_writer > 0, "nothing ever opened: such a model proves nothing");
    outcome
}

#[test]
fn without_a_move_every_state_is_seen_and_safe() {
    let outcome = check_safe(Bounds { epochs: 1, lease: 2, mysqld_crashes: 1, ..SMALL }, 400_000);
    assert!(outcome.complete, "{} states and more", outcome.states);
}

#[test]
fn a_move_is_safe_with_crashes_and_a_new_leader() {
    check_safe(Bounds::FAULTS, 150_000);
}

#[test]
fn three_sites_with_a_voter_change_are_safe() {
    check_safe(Bounds { sites: 3, voter_changes: 1, epochs: 4, ..SMALL }, 60_000);
}

/// The search notices when a part of the protocol that lies outside the brain is taken away.
#[test]
fn the_search_has_teeth() {
    let rows = [
        (Without::DeadMan, SMALL),
        (Without::FencedBoot, Bounds { mysqld_crashes: 1, ..SMALL }),
        (Without::EndOfOpeners, SMALL),
    ];
    for (without, bounds) in rows {
        let outcome = search(Bounds { without: Some(without), ..bounds }, 1_000_000);
        let found = outcome.breach.map(|(breach, trace)| (breach, trace.len()));
        println!("without {without:?}: {found:?} after {} states", outcome.states);
        assert!(
            matches!(found, Some((Breach::TwoWriters | Breach::GrantBesideWriter, _))),
            "without {without:?}: {found:?}"
        );
    }
}
