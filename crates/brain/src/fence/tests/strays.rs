//! Fences that outlive who sent them (safety.md 4, F-44).

use super::*;
use crate::fence::{BlindStep, Closed, Lane};
use crate::message::FencedBy;

/// F-44: a fence of an earlier life is ended before the server is opened, and does not close what is open afterwards.
#[test]
fn f_44_a_fence_of_an_earlier_life_is_ended_before_an_opening() {
    let mut bench = Bench::named();
    bench.server.fence_in_flight = true;
    bench.sidecar_restarts().keeper().tick().grant(Some(word())).run_lane();
    assert!(bench.writable());
    let said = bench.said();
    let at = |word: &str| said.iter().position(|said| *said == word).expect("said");
    assert!(at("EndFences") < at("ConnectOpener"), "{said:?}");
    bench.fence_lands().tick().run_lane();
    assert!(bench.writable());
}

/// F-44: the same where the server is open already: it stays so.
#[test]
fn f_44_an_open_server_is_not_closed_by_a_fence_of_an_earlier_life() {
    let mut bench = Bench::opened();
    bench.server.fence_in_flight = true;
    bench.sidecar_restarts().keeper().run_lane().fence_lands().tick().run_lane();
    assert!(bench.writable() && bench.did("EndFences") && !bench.did("Fence"));
    bench.forget().later(1000).tick().run_lane();
    assert!(!bench.did("EndFences"), "once is enough");
}

/// F-44: one that was sent while the keeper was silent is of the same kind, also when its sender lives on.
#[test]
fn f_44_a_blind_fence_whose_end_was_not_seen_is_ended_when_the_keeper_speaks() {
    let mut bench = Bench::opened();
    bench.sidecar_restarts().later(250).timer().lane_done().lane_done();
    assert!(matches!(bench.sidecar.lane, Lane::Blind { step: BlindStep::Setting, .. }), "{:?}", bench.sidecar.lane);
    bench.server.fence_in_flight = true;
    bench.keeper().run_lane().tick().run_lane().all_vouch().run_lane();
    bench.fence_lands().later(250).tick().run_lane().all_vouch().run_lane();
    assert!(bench.writable());
    bench.by_hand(true, true).later(250).tick().run_lane().all_vouch().run_lane();
    assert!(!bench.writable(), "a human's fence stays");
    assert_eq!(bench.ack().fenced_by, Some(FencedBy::Others));
}

/// Nothing is opened while such a session may be left; it is tried again after a timer's time.
#[test]
fn f_44_nothing_is_opened_before_fences_of_an_earlier_life_are_seen_gone() {
    let mut bench = Bench::named();
    bench.server.fence_in_flight = true;
    bench.sidecar_restarts().keeper().lane_done();
    assert_eq!(bench.lane, Some(Command::EndFences { within: Millis(400) }), "after the first reading");
    bench.lane_fails().tick().grant(Some(word())).run_lane();
    assert!(!bench.writable() && !bench.did("ConnectOpener"));
    bench.later(249).timer();
    assert!(bench.lane.is_none(), "not at once");
    bench.later(1).timer().run_lane();
    assert!(bench.writable() && !bench.server.fence_in_flight);
}

/// A ladder comes first, and takes the lane.
#[test]
fn f_15_a_ladder_waits_for_no_fence_of_an_earlier_life() {
    let mut bench = Bench::opened();
    bench.sidecar_restarts().keeper().lane_done();
    assert_eq!(bench.sidecar.lane, Lane::Clearing);
    bench.hear(view(6, 5, None), Source::Operator).run_lane();
    assert!(!bench.writable() && bench.sidecar.fenced());
}

/// A server that started in this life has seen no other.
#[test]
fn f_44_a_server_that_starts_in_this_life_has_no_fence_of_an_earlier_one() {
    let mut bench = Bench::named();
    bench.sidecar_restarts().dies().keeper().forget();
    bench.reboots().run_lane().later(250).tick().grant(Some(word())).run_lane();
    assert!(bench.writable() && !bench.did("EndFences"));
}

/// Ended between its two variables it leaves a server that applications cannot write to: it is closed for good and opened
/// again. A human's fence by halves stays.
#[test]
fn f_44_a_fence_of_our_own_that_was_ended_halfway_is_finished_and_lifted() {
    for (noted, opens) in [(true, true), (false, false)] {
        let mut bench = Bench::opened();
        bench.sidecar_restarts().later(250);
        if noted {
            bench.timer().lane_done();
            assert!(bench.did("WriteNote"), "the blind fence is ours");
        }
        bench.by_hand(true, false).keeper().run_lane();
        if noted {
            bench.vouch(&member("pdx")).vouch(&member("fra")).run_lane();
        }
        let writes = !bench.server.read_only && !bench.server.super_read_only;
        assert_eq!((writes, bench.did("Fence")), (opens, opens), "noted: {noted}");
    }
}

/// F-44: the note of a fence that may still land stays, also when the server is taken over as opened meanwhile.
#[test]
fn f_44_a_note_stays_until_fences_of_an_earlier_life_are_gone() {
    let mut bench = Bench::opened();
    bench.sidecar_restarts().later(250).timer().lane_done();
    assert!(bench.did("WriteNote"));
    bench.tick().vouch(&member("pdx"));
    (bench.permit, bench.server.fence_in_flight) = (None, true);
    bench.keeper().lane_done();
    assert_eq!(bench.sidecar.lane, Lane::Clearing);
    bench.lane_fails().run_lane();
    assert!(bench.writable() && bench.permit.is_some(), "it is taken over");
    assert!(bench.sidecar.disk.note.is_some(), "and the fence may land yet");
    bench.later(250).timer().run_lane();
    assert!(bench.sidecar.disk.note.is_none() && bench.writable() && !bench.server.fence_in_flight);
}

/// Why it stays closed is told, and it is read all the same.
#[test]
fn f_44_a_fence_that_cannot_be_ended_is_a_reason() {
    let mut bench = Bench::named();
    bench.sidecar_restarts().keeper().lane_done().lane_fails();
    bench.tick().grant(Some(word())).run_lane();
    assert_eq!(bench.sidecar.gate(Boot(bench.now)), Err(Closed::StrayFence));
    bench.later(250).timer();
    assert_eq!(bench.sidecar.lane, Lane::Clearing);
    bench.forget().tick().lane_fails();
    assert!(bench.did("Read"), "a tick's reading is owed");
}

/// A fence of this life that was neither confirmed nor killed may land as late as one of an earlier life.
#[test]
fn f_44_a_fence_of_this_life_without_an_end_is_ended_before_the_next_opening() {
    let mut bench = Bench::opened();
    bench.later(LEASE).timer().lane_done();
    assert!(matches!(bench.sidecar.lane, Lane::Fencing { .. }));
    assert!(!bench.sidecar.stray_fences);
    bench.lane_fails();
    assert!(bench.sidecar.stray_fences, "the statement is somewhere");
}

/// Of a ladder whose time is over only the fencing statement is left behind, and it goes with its server.
#[test]
fn f_44_what_a_ladder_leaves_behind_when_its_time_is_over() {
    for sent in [false, true] {
        let mut bench = Bench::opened();
        bench.later(LEASE).timer();
        if sent {
            bench.lane_done();
        }
        bench.later(2500).timer();
        assert_eq!(bench.lane, Some(Command::Kill(StartId(1))), "sent: {sent}");
        assert_eq!(bench.sidecar.stray_fences, sent);
        bench.server.start = 2;
        bench.keeper();
        assert!(!bench.sidecar.stray_fences, "another server; sent: {sent}");
    }
}
