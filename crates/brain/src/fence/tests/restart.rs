//! Restarts of the sidecar: what it inherits, and what it must not believe (safety.md 4, F-19, F-28).

use super::*;

/// F-19: a restarted sidecar goes on with the deadline of the permit, and fences when it comes.
#[test]
fn f_19_a_restarted_sidecar_inherits_the_deadline_of_the_permit() {
    let mut bench = Bench::opened();
    bench.later(15_000).sidecar_restarts().keeper().run_lane();
    assert_eq!(bench.deadline(), Some(BEGIN + LEASE), "neither longer nor shorter");
    assert!(bench.writable() && !bench.did("EndOpeners"));
    bench.later(4999).timer();
    assert!(!bench.did("EndOpeners"));
    bench.later(1).timer().run_lane();
    assert!(!bench.writable());
}

/// F-19: new answers prolong an inherited lease like any other.
#[test]
fn f_19_an_inherited_lease_is_renewed_by_answers() {
    let mut bench = Bench::opened();
    bench.later(15_000).sidecar_restarts().keeper().run_lane().tick();
    bench.vouch(&member("pdx"));
    assert_eq!(bench.deadline(), Some(BEGIN + 15_000 + LEASE));
    assert_eq!(bench.permit.map(|permit| permit.deadline), Some(Boot(BEGIN + 15_000 + LEASE)));
}

/// F-19: a permit is inherited within its own tenure, by the instance that the view names, for the start that runs.
#[test]
fn f_19_a_permit_of_another_tenure_is_not_inherited() {
    let check = |disk: View, permit_epoch: Epoch, expect: Option<u64>| {
        let mut bench = Bench::silent_keeper(Disk { view: Some(disk.clone()), ..Disk::default() });
        bench.permit = Some(Permit { start: StartId(1), epoch: permit_epoch, deadline: Boot(BEGIN + 7000) });
        bench.keeper();
        assert_eq!(bench.deadline(), expect, "{disk:?} {permit_epoch}");
        assert_eq!(bench.did("EndOpeners"), expect.is_none());
    };
    let lives = Some(BEGIN + 7000);
    check(view(5, 5, Some(&me())), 5, lives);
    check(view(8, 5, Some(&me())), 5, lives);
    check(view(8, 5, Some(&me())), 7, lives);
    check(view(8, 8, Some(&me())), 7, None);
    check(view(6, 5, None), 5, None);
    check(view(5, 5, Some(&member("pdx"))), 5, None);
    check(view(5, 5, Some(&me())), 6, None);
}

/// F-19, F-41: an inherited deadline stays through voter epochs and dies with the tenure.
#[test]
fn f_41_an_inherited_lease_stays_within_its_tenure() {
    let check = |newer: View, lives: bool| {
        let mut bench = Bench::opened();
        bench.sidecar_restarts().keeper().run_lane().hear(newer, Source::Operator);
        assert_eq!(bench.deadline(), lives.then_some(BEGIN + LEASE));
    };
    check(view(6, 5, Some(&me())), true);
    check(view(6, 5, None), false);
    check(view(7, 7, Some(&me())), false);
}

/// F-19: the end of mysqld ends the inherited lease with its permit.
#[test]
fn f_19_an_inherited_lease_ends_with_mysqld() {
    let mut bench = Bench::opened();
    bench.sidecar_restarts().keeper().run_lane().reboots();
    assert_eq!(bench.deadline(), None);
}

/// F-28, C-125: a permit that it did not give itself means an opening in flight: not fenced until those sessions are gone.
#[test]
fn f_28_a_found_permit_is_an_opening_in_flight() {
    let mut bench = Bench::named();
    bench.tick().run_lane().grant(Some(word()));
    bench.lane_done().lane_done();
    assert!(bench.server.opening_in_flight && !bench.writable());
    bench.later(1000).sidecar_restarts();
    bench.hear(view(6, 5, None), Source::Operator);
    bench.keeper();
    assert_eq!(bench.lane, Some(Command::EndOpeners { within: Millis(400) }), "before anything is read");
    assert!(!bench.sidecar.fenced());
    bench.run_lane();
    assert!(bench.sidecar.fenced() && !bench.server.opening_in_flight && !bench.writable());
}

/// F-28: nor while the operator is asked once more: nobody may take it for fenced meanwhile.
#[test]
fn f_28_an_opening_in_flight_is_not_fenced_while_a_second_word_is_awaited() {
    let mut bench = Bench::named();
    bench.tick().run_lane().grant(Some(word()));
    bench.lane_done().lane_done();
    bench.later(1000).sidecar_restarts().keeper().hear(view(6, 5, None), Source::Peer).run_lane();
    assert!(bench.sidecar.is_stored(6) && !bench.did("EndOpeners"));
    assert!(!bench.sidecar.fenced() && !bench.ack().fenced);
    bench.later(1000).timer().run_lane();
    assert!(bench.sidecar.fenced() && !bench.server.opening_in_flight);
}

/// F-28: no permit, no opening in flight: a reading is enough.
#[test]
fn f_28_without_a_permit_a_reading_is_enough() {
    let mut bench = Bench::named();
    bench.sidecar_restarts().keeper().run_lane();
    assert!(bench.sidecar.fenced() && !bench.did("EndOpeners"));
}

/// A sidecar that died between permit and statement: with the lease running, the way out is a ladder of its own, else
/// the server could be neither called fenced nor opened for as long as the lease is renewed.
#[test]
fn p_12_a_sidecar_that_died_between_permit_and_statement_opens_after_all() {
    let mut bench = Bench::named();
    bench.tick().run_lane().grant(Some(word()));
    bench.lane_done().lane_done();
    bench.server.opening_in_flight = false;
    bench.later(1000).sidecar_restarts().keeper().lane_done();
    assert_eq!(bench.lane, Some(Command::EndOpeners { within: Millis(400) }));
    assert!(bench.permit.is_some(), "the keeper's dead man stays armed until the fence is read back");
    bench.run_lane();
    bench.later(1000).tick().run_lane().grant(Some(word())).run_lane();
    assert!(bench.writable());
}

/// The same where the statement was on its way after all: closed, then opened by the book.
#[test]
fn p_12_a_stray_opening_that_lands_late_is_closed_and_done_again() {
    let mut bench = Bench::named();
    bench.tick().run_lane().grant(Some(word()));
    bench.lane_done().lane_done();
    bench.later(1000).sidecar_restarts().keeper().lane_done();
    bench.opening_lands();
    bench.run_lane().later(1000).tick().run_lane().grant(Some(word())).run_lane();
    assert!(bench.writable() && bench.permit.is_some());
    assert_eq!(bench.marker().and_then(|marker| marker.start), Some(StartId(1)));
}

/// An opening that landed but was not written down any more is written down by the next life.
#[test]
fn an_opening_of_an_earlier_life_is_written_down() {
    let mut bench = Bench::named();
    bench.tick().run_lane().grant(Some(word()));
    bench.lane_done().lane_done().lane_done();
    assert!(bench.writable());
    assert_eq!(bench.marker().and_then(|marker| marker.start), None);
    bench.sidecar_restarts().keeper().run_lane();
    assert_eq!(bench.marker(), Some(Marker { tenure: 5, start: Some(StartId(1)), word: word() }));
    assert!(bench.writable() && !bench.did("EndOpeners"));
}

/// C-124: restarted after its deadline it fences before it asks anyone.
#[test]
fn c_124_restarted_past_its_deadline_it_fences() {
    let mut bench = Bench::opened();
    bench.later(LEASE + 100).sidecar_restarts().keeper();
    assert_eq!(bench.lane, Some(Command::EndOpeners { within: Millis(400) }));
}

/// F-08: all restarted, in any order: the holder opens under its present epoch, no human, no new epoch.
#[test]
fn f_08_after_a_full_restart_the_holder_opens_under_its_epoch() {
    let mut bench = Bench::opened();
    bench.dies().later(LEASE * 3).sidecar_restarts().keeper().reboots();
    bench.tick().run_lane().vouch(&member("fra")).vouch(&member("fra")).run_lane();
    assert!(!bench.writable(), "the other voter has not answered yet");
    let silent = bench.question(Some(&member("pdx"))).id;
    bench.give(Input::NoAnswer(silent)).run_lane();
    assert!(bench.writable());
}
