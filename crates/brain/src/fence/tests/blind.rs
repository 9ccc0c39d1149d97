//! A sidecar that came back while its keeper hangs (safety.md 4 and 9).

use super::*;
use crate::fence::{BlindStep, Lane, Note};

/// A server that an earlier life had opened under tenure 5; the sidecar is back, the keeper says nothing.
fn comes_back_alone() -> Bench {
    let mut bench = Bench::opened();
    bench.sidecar_restarts();
    bench
}

/// The keeper has one timer's time; then the SQL part of the ladder runs without its word.
#[test]
fn f_19_a_sidecar_that_comes_back_to_a_silent_keeper_fences_by_sql() {
    let mut bench = comes_back_alone();
    bench.timer().later(249).timer();
    assert!(bench.lane.is_none(), "the keeper may speak yet");
    bench.later(1).timer();
    assert_eq!(bench.sidecar.lane, Lane::Blind { began: Boot(bench.now), step: BlindStep::Looking });
    bench.run_lane();
    assert!(!bench.writable());
    let said: Vec<&str> = bench.said().into_iter().filter(|said| !said.starts_with("Ask")).collect();
    assert_eq!(said, ["Read", "WriteNote", "EndOpeners", "Fence"]);
    assert!(!bench.sidecar.fenced() && !bench.ack().fenced, "without the keeper nothing is certain");
}

/// A lease that is answered for meanwhile keeps the server open; so does the keeper's own word of a running permit.
#[test]
fn f_19_a_lease_or_the_keepers_word_comes_before_the_blind_fence() {
    let mut bench = comes_back_alone();
    bench.tick().vouch(&member("pdx")).later(250).timer();
    assert!(bench.lane.is_none() && bench.sidecar.allowed(Boot(bench.now)) && bench.writable());

    let mut bench = comes_back_alone();
    bench.later(249).keeper().run_lane().later(1).timer();
    assert!(bench.writable() && !bench.did("EndOpeners"));
}

/// It goes on while the keeper is silent, for whoever opens the server meanwhile; a dead server is only looked for.
#[test]
fn f_15_a_blind_fence_is_repeated() {
    let mut bench = comes_back_alone();
    for _ in 0..3 {
        bench.by_hand(false, false).later(250).timer().run_lane();
        assert!(!bench.writable());
    }
    bench.dies().forget().later(250).timer().run_lane();
    assert_eq!(bench.said(), ["Read"]);
    bench.later(249).timer();
    assert_eq!(bench.said(), ["Read"], "not at once");
}

/// What it closed itself it may open again once the keeper speaks; what a human had closed before stays closed.
#[test]
fn f_44_a_blind_fence_is_known_as_our_own_and_claims_no_others() {
    let check = |closed_before: bool, opens: bool| {
        let mut bench = comes_back_alone();
        bench.by_hand(closed_before, closed_before).later(250).timer().run_lane();
        assert_eq!(bench.sidecar.disk.note, opens.then_some(Note { tenure: 5, start: StartId(1) }));
        bench.permit = None;
        bench.keeper().run_lane().later(250).tick().run_lane().all_vouch();
        assert_eq!(bench.writable(), opens);
    };
    check(false, true);
    check(true, false);
}

/// A peer's word is not acted upon before the second one, here as everywhere; who is named by nobody waits for nothing.
#[test]
fn c_61_a_blind_fence_under_a_view_that_names_another() {
    let mut bench = Bench::opened();
    bench.hear(view(6, 5, None), Source::Operator);
    bench.sidecar_restarts().later(250).timer().run_lane();
    assert!(!bench.writable() && !bench.did("WriteNote"));
}
