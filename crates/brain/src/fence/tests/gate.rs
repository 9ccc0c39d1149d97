//! The data gate: which data may be opened (safety.md 4, F-06).

use super::*;
use crate::fence::Closed;

const PDX: &str = "pdx";
const FRA: &str = "fra";

/// F-06: the first opening of a tenure needs what the promotion was decided on, and asks nobody else.
#[test]
fn f_06_the_first_opening_contains_the_promotion() {
    let check = |executed: u64, opens: bool| {
        let mut bench = Bench::named();
        bench.server.executed = wrote(executed);
        bench.tick().run_lane();
        bench.vouch_with(&member(PDX), Some(wrote(500)));
        bench.grant(Some(word())).run_lane();
        assert_eq!(bench.writable(), opens, "{executed}");
    };
    check(10, true);
    check(11, true);
    check(9, false);
    let mut bench = Bench::named();
    bench.server.executed = GtidSet::default();
    bench.tick().run_lane().grant(Some(word())).run_lane();
    assert_eq!(bench.sidecar.gate(Boot(bench.now)), Err(Closed::LacksPromotion(wrote(10))), "empty is lost");
}

/// A lapsed holder with so many transactions, asked voters with theirs (none: silent), and what was given up.
fn reopens(own: u64, theirs: [Option<u64>; 2], excused: Option<(&str, GtidSet)>) -> bool {
    let mut bench = Bench::lapsed();
    bench.server.executed = wrote(own);
    let mut word = word();
    word.excused.extend(excused.map(|(site, gtids)| (Site::new(site), gtids)));
    bench.tick().run_lane().grant(Some(word));
    for (site, theirs) in [PDX, FRA].into_iter().zip(theirs) {
        let voter = member(site);
        let answer = match theirs {
            Some(count) => {
                Input::Vouched(Vouch { gtid: Some(wrote(count)), ..answer_to(&bench.question(Some(&voter)), &voter) })
            }
            None => Input::NoAnswer(bench.question(Some(&voter)).id),
        };
        bench.give(answer);
    }
    bench.run_lane().timer().run_lane();
    bench.writable()
}

/// F-06: re-opening: everything that a reachable site has, minus what was given up there, and the promotion itself.
#[test]
fn f_06_a_reopened_server_is_not_behind_a_reachable_site() {
    assert!(reopens(20, [Some(20), Some(15)], None));
    assert!(!reopens(20, [Some(21), Some(15)], None));
    assert!(!reopens(20, [Some(15), Some(21)], None));
    assert!(reopens(20, [None, None], None), "nobody else is reachable, the leader's grant is the lease");
    assert!(!reopens(9, [None, None], None), "the promotion is lost");
    let one = gtids("00000000-0000-0000-0000-00000000000a:21");
    assert!(reopens(20, [Some(21), None], Some((PDX, one.clone()))));
    assert!(!reopens(20, [Some(21), None], Some((FRA, one.clone()))), "given up elsewhere");
    assert!(!reopens(20, [Some(22), None], Some((PDX, one))), "not all of it");
}

/// F-06: the answer of every voter is awaited, or its silence.
#[test]
fn f_06_a_reopening_waits_for_every_answer() {
    let mut bench = Bench::lapsed();
    bench.tick().run_lane().vouch(&member(PDX)).run_lane();
    assert!(bench.sidecar.allowed(Boot(bench.now)) && !bench.writable());
    bench.vouch_with(&member(PDX), Some(wrote(10))).run_lane();
    assert!(!bench.writable(), "fra has not answered");
    bench.vouch_with(&member(FRA), Some(wrote(10))).run_lane();
    assert!(bench.writable());
}

/// F-06: what was told under an earlier lease does not count under the next: everyone is asked anew.
#[test]
fn f_06_a_lease_that_lapsed_before_the_opening_asks_anew() {
    let mut bench = Bench::lapsed();
    bench.tick().run_lane().vouch(&member(PDX));
    assert!(bench.sidecar.round.is_some());
    bench.later(LEASE * 10).tick().run_lane().vouch(&member(PDX)).run_lane();
    assert!(!bench.writable(), "fra was asked long ago");
}

/// F-06: nor does what was told about an earlier start of mysqld.
#[test]
fn f_06_a_new_start_asks_anew() {
    let mut bench = Bench::lapsed();
    bench.tick().run_lane().all_vouch();
    assert!(bench.writable());
    bench.reboots();
    assert!(bench.sidecar.allowed(Boot(bench.now)) && !bench.writable());
    bench.vouch_with(&member(PDX), Some(wrote(11))).vouch(&member(FRA)).run_lane();
    assert!(!bench.writable(), "pdx has more");
}

/// The data gate holds back only for sites heard from within a lease: a dead one does not close the group for ever.
#[test]
fn f_06_what_a_dead_site_once_told_is_forgotten_after_a_lease() {
    let mut bench = Bench::lapsed();
    bench.tick().run_lane().grant(None);
    bench.vouch_with(&member(PDX), Some(wrote(11))).vouch_with(&member(FRA), Some(wrote(10))).run_lane();
    assert!(matches!(bench.sidecar.gate(Boot(bench.now)), Err(Closed::Behind(site, _)) if site == Site::new(PDX)));
    bench.later(LEASE - 1).tick().run_lane().grant(None).run_lane();
    assert!(!bench.writable());
    bench.later(1).timer().run_lane();
    for voter in [PDX, FRA] {
        let silent = bench.question(Some(&member(voter))).id;
        bench.give(Input::NoAnswer(silent));
    }
    bench.run_lane();
    assert!(bench.writable());
}

/// The leader's newest word goes with the marker: what was reported as lost since then keeps nothing closed.
#[test]
fn f_06_a_later_word_excuses_what_was_reported_since() {
    let mut bench = Bench::lapsed();
    let errant = gtids("00000000-0000-0000-0000-00000000000b:1-3");
    bench.tick().run_lane().vouch(&member(FRA));
    bench.vouch_with(&member(PDX), Some(wrote(10).union(&errant))).vouch(&member(FRA)).run_lane();
    assert!(matches!(bench.sidecar.gate(Boot(bench.now)), Err(Closed::Behind(_, _))));
    bench.forget().tick().run_lane();
    let mut later = word();
    later.excused.insert(Site::new(PDX), errant.clone());
    bench.grant(Some(later.clone())).run_lane();
    assert!(bench.writable());
    assert_eq!(bench.marker().map(|marker| marker.word), Some(later));

    bench.reboots();
    bench.later(LEASE).tick().run_lane().vouch(&member(FRA));
    bench.vouch_with(&member(PDX), Some(wrote(10).union(&errant))).vouch(&member(FRA)).run_lane();
    assert!(bench.writable(), "also with the operator down");
}

/// A first opening that failed is still the first: a returned old primary with more does not keep it closed.
#[test]
fn f_06_a_failed_first_opening_is_still_the_first() {
    let mut bench = Bench::named();
    bench.tick().run_lane();
    bench.grant(Some(word())).lane_fails();
    bench.later(1000).tick().run_lane();
    assert!(bench.writable(), "nobody else was asked for its set");
}

/// With the operator gone the same attempt is a re-opening like any other: k vouches, and the sets compared.
#[test]
fn f_35_an_attempt_of_an_earlier_life_is_a_reopening() {
    let mut bench = Bench::named();
    bench.tick().run_lane().grant(Some(word())).lane_fails();
    bench.later(LEASE).sidecar_restarts().keeper().run_lane();
    bench.tick().run_lane().vouch(&member(PDX));
    assert!(bench.question(Some(&member(PDX))).open);
    bench.vouch_with(&member(PDX), Some(wrote(11))).vouch(&member(FRA)).run_lane();
    assert!(!bench.writable());
}

/// Voters are asked for their sets only where these are compared.
#[test]
fn sets_are_asked_for_before_a_reopening_only() {
    let check = |bench: &mut Bench, leader: bool, voter: bool| {
        bench.tick().run_lane();
        assert_eq!(bench.question(None).open, leader);
        assert_eq!(bench.question(Some(&member(PDX))).open, voter);
    };
    check(&mut Bench::named(), true, false);
    check(&mut Bench::opened(), false, false);
    check(&mut Bench::lapsed(), true, true);
}

/// A word that says the same again is not written again: each grant carries one.
#[test]
fn the_leaders_word_is_written_down_anew_only_when_it_has_changed() {
    let mut bench = Bench::opened();
    bench.later(1000).tick().run_lane().grant(Some(word()));
    assert!(!bench.did("WriteMarker"));
    let mut newer = word();
    newer.excused.insert(Site::new(PDX), wrote(1));
    bench.later(1000).tick().run_lane().grant(Some(newer.clone()));
    assert!(bench.did("WriteMarker"));
    assert_eq!(bench.marker().map(|marker| marker.word), Some(newer));
}

/// What was written down of an earlier tenure stays as it was said then.
#[test]
fn the_word_of_this_tenure_does_not_change_the_marker_of_another() {
    let old = Marker { tenure: 4, start: Some(StartId(1)), word: OpeningWord::default() };
    let view = Some(view(5, 5, Some(&me())));
    let mut bench = Bench::starts_with(Disk { view, marker: Some(old.clone()), ..Disk::default() });
    bench.server.executed = wrote(9);
    bench.tick().run_lane().grant(Some(word())).run_lane();
    assert!(!bench.writable(), "it lacks what the promotion was decided on");
    assert_eq!(bench.marker(), Some(old));
}
