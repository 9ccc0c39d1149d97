//! Corners that only a changed expression shows: each test here kills a mutant that no other one notices.

use super::*;
use crate::fence::{Budget, Lane, OpenStep};
use crate::message::FencedBy;

#[test]
fn c_61_a_blind_fence_waits_for_the_second_word_as_any_other() {
    let mut bench = Bench::opened();
    bench.sidecar_restarts().tick().vouch(&member("pdx")).hear(view(6, 5, None), Source::Peer);
    bench.later(250).timer();
    assert!(bench.lane.is_none(), "the operator may say otherwise");
    bench.later(1000).timer().run_lane();
    assert!(!bench.writable());
}

#[test]
fn f_15_a_blind_ladder_has_the_time_of_any_ladder() {
    let mut bench = Bench::opened();
    bench.sidecar_restarts().later(250).timer().lane_done();
    assert_eq!(bench.lane, Some(Command::EndOpeners { within: Budget::OPENERS }));
    bench.lane_done();
    assert_eq!(bench.lane, Some(Command::Fence { within: Budget::FENCE }));
}

#[test]
fn f_40_a_dispute_is_about_its_own_epoch() {
    let mut bench = Bench::named();
    bench.sidecar.disk.conflict = Some(4);
    assert_eq!(bench.sidecar.rule(), FencedBy::Lease);
    bench.sidecar.disk.conflict = Some(5);
    assert_eq!(bench.sidecar.rule(), FencedBy::Conflict);
}

#[test]
fn f_15_a_kill_is_asked_for_once_while_its_time_runs() {
    let mut bench = Bench::opened();
    bench.later(LEASE).timer().lane_fails();
    bench.later(Budget::LADDER.0).timer().later(100).timer();
    assert_eq!(bench.said().into_iter().filter(|said| *said == "Kill").count(), 1, "{:?}", bench.said());
}

#[test]
fn f_09_nothing_is_opened_on_a_reading_of_an_earlier_epoch() {
    let mut bench = Bench::named();
    bench.tick().run_lane();
    bench.sidecar.read.as_mut().expect("a reading").under = Some(4);
    bench.grant(Some(word()));
    assert!(!bench.did("ConnectOpener"), "{:?}", bench.said());
    bench.tick().run_lane();
    assert!(bench.writable(), "the next reading is of this epoch");
}

#[test]
fn f_11_an_open_server_is_taken_over_with_a_permit_of_its_own_start_only() {
    let mut bench = Bench::opened();
    (bench.sidecar.permit, bench.permit) = (None, None);
    bench.tick().lane_done();
    assert_eq!(bench.sidecar.lane, Lane::Opening { start: StartId(1), step: OpenStep::Adopting });
    bench.lane = None;
    let strange = Permit { start: StartId(9), epoch: 5, deadline: Boot(bench.now + LEASE) };
    bench.give(Input::Lane(LaneResult::PermitGiven(strange)));
    assert_eq!(bench.sidecar.permit, None);
    assert!(bench.sidecar.lane.fencing(), "{:?}", bench.sidecar.lane);
}

#[test]
fn f_06_its_own_vouch_is_worth_nothing_to_a_voter() {
    let mut bench = Bench::named();
    bench.sidecar.vouched.insert(me(), Boot(BEGIN));
    assert_eq!(bench.deadline(), None);
}

#[test]
fn a_tick_beside_a_busy_lane_owes_no_further_reading() {
    let mut bench = Bench::named();
    bench.tick().tick();
    assert!(bench.lane.is_some() && !bench.sidecar.read_owed);
}

#[test]
fn f_33_a_view_that_comes_with_a_grant_is_heard() {
    let mut bench = Bench::opened();
    bench.tick().run_lane();
    let newer = view(6, 5, Some(&me()));
    let grant = Grant { id: bench.question(None).id, to: me(), view: newer, open: None };
    bench.give(Input::Granted { grant, reply: None });
    assert_eq!(bench.sidecar.heard.as_ref().map(|view| view.epoch), Some(6));
}
