//! The rows of minutes, cut to seconds, and the teeth of the search; the rest is `cargo xtask model` and `xtask teeth`.

use super::rows::{self, MINUTES, Row};
use super::teeth::{Caught, Tooth, search_without};
use super::{Bounds, Without, search, walk};

/// Worlds of each row: enough for a whole move in every one of them.
const MOST: usize = 40_000;

#[test]
fn every_row_is_safe_as_far_as_it_is_seen() {
    for row in MINUTES {
        let outcome = search(row.bounds, MOST.min(row.most));
        assert!(outcome.breach.is_none(), "{}: {:#?}", row.name, outcome.breach);
        assert!(outcome.with_writer > 0, "{}: nothing ever opened, such a model proves nothing", row.name);
    }
}

/// Two moves apart, a search of a small row ends, and every world that it can come to was seen.
#[test]
fn one_move_without_faults_is_seen_whole() {
    let outcome = search(rows::MOVE.bounds, rows::MOVE.most);
    assert!(outcome.breach.is_none(), "{:#?}", outcome.breach);
    assert!(outcome.complete, "{} states and more", outcome.states);
}

/// The search notices when a part of the protocol that lies outside the brain is taken away.
#[test]
fn the_search_has_teeth() {
    let slow = [Without::StartIdAtPermit];
    for part in Without::ALL.iter().filter(|part| !slow.contains(part)) {
        let tooth = Tooth::Part(*part);
        let (Caught::Search(row) | Caught::Both(row)) = tooth.caught() else { continue };
        let found = search_without(tooth, &Row { most: 400_000, ..row });
        assert!(found.breach.is_some(), "without {part:?}: {} states", found.states);
    }
}

#[test]
fn every_tooth_has_a_name_of_its_own() {
    for tooth in Tooth::all() {
        assert_eq!(Tooth::named(&tooth.name()), Some(tooth));
    }
}

#[test]
fn swarm_walks_are_safe_and_always_the_same() {
    let once = walk(rows::ROAM, 30, 7);
    assert!(once.breach.is_none(), "{:#?}", once.breach);
    assert!(once.with_writer > 0);
    let again = walk(rows::ROAM, 30, 7);
    assert_eq!((once.steps, once.with_writer), (again.steps, again.with_writer));
}

/// Two leaders at once: that the record is compared and swapped keeps them apart, as long as neither counts on a lease that the
/// other may have renewed.
#[test]
fn a_rival_leader_is_kept_apart_by_the_record_alone() {
    let bounds = rows::RIVAL.bounds;
    let safe = search(bounds, MOST);
    assert!(safe.breach.is_none() && safe.with_writer > 0, "{:#?}", safe.breach);
    let unkept = search(Bounds { without: Some(Without::CompareAndSwap), ..bounds }, rows::RIVAL.most);
    assert!(unkept.breach.is_some(), "{} states", unkept.states);
    let counted = search(Bounds { no_lease_proof: false, ..bounds }, rows::RIVAL.most);
    assert!(counted.breach.is_some(), "{} states", counted.states);
}
