//! Openings: what they need, in which order, and what becomes of one that is cut off (safety.md 4).

use super::*;
use crate::fence::{Closed, Lane, OpenStep};

const STEPS: [OpenStep; 4] = [OpenStep::Connecting, OpenStep::Permitting, OpenStep::Executing, OpenStep::Reading];

/// The first opening of tenure 5, up to that step.
fn opening_at(step: OpenStep) -> Bench {
    let mut bench = Bench::named();
    bench.tick().run_lane().grant(Some(word()));
    for _ in 0..STEPS.iter().position(|at| *at == step).expect("a step of the opening") {
        bench.lane_done();
    }
    assert_eq!(bench.sidecar.lane, Lane::Opening { start: StartId(1), step });
    bench.forget();
    bench
}

/// F-09, P-11, F-32: marker, session, permit, statement, read-back; nothing before its turn.
#[test]
fn f_32_an_opening_goes_marker_session_permit_statement_read_back() {
    let mut bench = Bench::named();
    bench.tick().run_lane().forget();
    bench.tick().run_lane();
    bench.out.retain(|command| matches!(command, Command::AskOperator(_)));
    bench.grant(Some(word())).run_lane();
    let said: Vec<&str> = bench.said().into_iter().filter(|said| *said != "AskOperator").collect();
    assert_eq!(said, ["WriteMarker", "ConnectOpener", "AskPermit", "Open", "Read", "WriteMarker"]);
    assert_eq!(bench.marker(), Some(Marker { tenure: 5, start: Some(StartId(1)), word: word() }));
    assert_eq!(bench.permit, Some(Permit { start: StartId(1), epoch: 5, deadline: Boot(BEGIN + LEASE) }));
    assert!(!bench.sidecar.fenced() && !bench.ack().opened_by_hand);
}

/// F-09: the first opening of a tenure needs the leader's word; vouches alone never open first.
#[test]
fn f_09_the_first_opening_needs_a_grant_that_says_open() {
    let mut bench = Bench::named();
    bench.tick().run_lane().grant(None).vouch(&member("pdx")).vouch(&member("fra")).run_lane();
    assert!(bench.sidecar.allowed(Boot(bench.now)) && !bench.writable());
    assert_eq!(bench.sidecar.gate(Boot(bench.now)), Err(Closed::NoWord));
    bench.tick().run_lane().grant(Some(word())).run_lane();
    assert!(bench.writable());
}

/// F-09: the word of one tenure opens no other.
#[test]
fn f_09_the_word_of_an_earlier_tenure_is_worth_nothing() {
    let mut bench = Bench::named();
    bench.server.executed = wrote(5);
    bench.tick().run_lane().grant(Some(word())).run_lane();
    assert!(!bench.writable(), "its data lack the promotion");
    bench.server.executed = wrote(10);
    bench.hear(view(6, 5, None), Source::Operator).hear(view(7, 7, Some(&me())), Source::Operator).run_lane();
    bench.tick().run_lane().grant(None).run_lane();
    assert_eq!(bench.sidecar.gate(Boot(bench.now)), Err(Closed::NoWord));
}

/// F-09, F-30: without a running lease nothing opens, whatever was said before.
#[test]
fn f_30_past_the_deadline_nothing_opens() {
    let mut bench = Bench::named();
    bench.server.executed = wrote(5);
    bench.tick().run_lane().grant(Some(word())).run_lane();
    bench.server.executed = wrote(10);
    bench.later(LEASE).tick().run_lane();
    assert!(!bench.writable());
    assert_eq!(bench.sidecar.gate(Boot(bench.now)), Err(Closed::NotAllowed));
}

/// F-29: a newer view in the middle of an opening ends in the ladder, at every step, and says fenced only after it.
#[test]
fn f_29_a_revocation_in_the_middle_of_an_opening_closes_it() {
    for step in STEPS {
        let mut bench = opening_at(step);
        bench.pushed(view(6, 5, None));
        assert_eq!(bench.lane, Some(Command::EndOpeners { within: Millis(400) }), "{step:?}");
        assert!(!bench.sidecar.fenced() && bench.acknowledged().is_empty(), "{step:?}");
        bench.run_lane();
        assert!(!bench.writable() && bench.sidecar.fenced() && bench.permit.is_none(), "{step:?}");
        let acks = bench.acknowledged();
        assert_eq!((acks[0].1.epoch, acks[0].1.fenced), (Some(6), true), "{step:?}");
    }
}

/// F-29: while an opening is under way nothing is called fenced, whatever was read before.
#[test]
fn f_29_nothing_is_fenced_while_an_opening_is_under_way() {
    for step in STEPS {
        let bench = opening_at(step);
        assert!(bench.sidecar.read.as_ref().is_some_and(ReadBack::closed), "{step:?}");
        assert!(!bench.sidecar.fenced() && !bench.ack().fenced, "{step:?}");
    }
}

/// F-42: an older word of the keeper does not take the permit out of an opening, or out of a ladder.
#[test]
fn f_42_an_overtaken_word_of_the_keeper_changes_no_permit_in_the_lane() {
    let late = Input::Keeper(KeeperFact { running: Some(StartId(1)), permit: None });
    let mut bench = opening_at(OpenStep::Executing);
    bench.give(late.clone());
    assert!(bench.sidecar.permit.is_some());
    bench.later(LEASE).timer().give(late);
    assert!(bench.sidecar.permit.is_some() && bench.sidecar.lane.fencing());
}

/// F-30: the statement has no longer than the lease.
#[test]
fn f_30_the_opening_statement_is_bounded_by_the_lease() {
    let check = |waited: u64, expect: u64| {
        let mut bench = opening_at(OpenStep::Permitting);
        bench.later(waited).lane_done();
        assert_eq!(bench.lane, Some(Command::Open { within: Millis(expect) }));
    };
    check(0, 2000);
    check(LEASE - 300, 300);
}

/// F-30: the lease's end in the middle of an opening closes it, at every step.
#[test]
fn f_30_the_end_of_the_lease_in_the_middle_of_an_opening_closes_it() {
    for step in STEPS {
        let mut bench = opening_at(step);
        bench.later(LEASE).timer();
        assert_eq!(bench.lane, Some(Command::EndOpeners { within: Millis(400) }), "{step:?}");
        bench.run_lane();
        assert!(!bench.writable() && bench.sidecar.fenced(), "{step:?}");
        assert_eq!(bench.ack().fenced_by, Some(crate::message::FencedBy::Lease), "{step:?}");
    }
}

/// F-29: the end of the lease is seen even if it comes with the answer that the opening waited for.
#[test]
fn f_29_an_answer_of_the_lane_after_the_deadline_opens_nothing() {
    for step in STEPS {
        let mut bench = opening_at(step);
        bench.later(LEASE).lane_done();
        assert!(!bench.did("AskPermit") && !bench.did("Open"), "{step:?}: {:?}", bench.said());
        bench.run_lane();
        assert!(!bench.writable(), "{step:?}");
    }
}

/// F-16, F-25: whatever fails once a permit may be out is an unknown outcome: writable until the ladder has ended.
#[test]
fn f_16_an_opening_of_unknown_outcome_counts_as_writable() {
    for step in [OpenStep::Permitting, OpenStep::Executing, OpenStep::Reading] {
        let mut bench = opening_at(step);
        bench.lane_fails();
        assert_eq!(bench.lane, Some(Command::EndOpeners { within: Millis(400) }), "{step:?}");
        bench.opening_lands();
        assert!(!bench.sidecar.fenced() && !bench.ack().fenced, "{step:?}: an earlier reading does not count");
        bench.run_lane();
        assert!(bench.sidecar.fenced() && !bench.writable(), "{step:?}");
    }
    let mut bench = opening_at(OpenStep::Connecting);
    bench.lane_fails();
    assert!(bench.lane.is_none() && bench.sidecar.fenced(), "nothing was permitted and nothing was sent");
}

/// F-25: an opening is one only when both variables are read as 0.
#[test]
fn f_25_a_half_opened_server_is_closed_again() {
    for (read_only, super_read_only) in [(false, true), (true, false), (true, true)] {
        let mut bench = opening_at(OpenStep::Reading);
        bench.by_hand(read_only, super_read_only).lane_done();
        assert_eq!(bench.lane, Some(Command::EndOpeners { within: Millis(400) }));
    }
}

/// F-42: a permit for another start opens nothing, nor does the read-back of another.
#[test]
fn f_42_what_was_permitted_for_another_start_is_not_used() {
    let mut bench = opening_at(OpenStep::Permitting);
    bench.lane = None;
    let other = Permit { start: StartId(2), epoch: 5, deadline: Boot(BEGIN + LEASE) };
    bench.give(Input::Lane(LaneResult::PermitGiven(other)));
    assert!(!bench.did("Open") && bench.did("EndOpeners"));

    let mut bench = opening_at(OpenStep::Reading);
    bench.lane = None;
    let other = ReadBack { start: StartId(2), ..bench.reads(Some(5)) };
    bench.give(Input::Lane(LaneResult::Read(other)));
    assert!(bench.did("EndOpeners"));
}

/// F-42: mysqld restarted in the middle of an opening: nothing of it is left, the new start begins at the beginning.
#[test]
fn f_42_a_new_start_takes_nothing_from_the_old_ones_opening() {
    for step in STEPS {
        let mut bench = opening_at(step);
        bench.server.start = 2;
        (bench.server.read_only, bench.server.super_read_only) = (true, true);
        bench.server.opening_in_flight = false;
        bench.permit = None;
        bench.keeper();
        assert!(matches!(bench.lane, Some(Command::Read { start: StartId(2), .. })), "{step:?}");
        assert_eq!(bench.sidecar.permit, None, "{step:?}");
        bench.run_lane();
        assert_eq!(bench.permit.map(|permit| permit.start), Some(StartId(2)), "{step:?}: opened anew, with its own");
    }
}

/// A failed attempt is tried again after a while, never at once and without end.
#[test]
fn a_failed_opening_is_tried_again_after_a_while() {
    for step in STEPS {
        let mut bench = opening_at(step);
        bench.lane_fails().run_lane();
        assert!(!bench.did("ConnectOpener"), "{step:?}");
        bench.later(249).timer();
        assert!(!bench.did("ConnectOpener"), "{step:?}");
        bench.later(1).timer().run_lane();
        assert!(bench.writable(), "{step:?}");
    }
}

/// F-09, F-08: boot is a fence of our own: the marker names another start. With the operator down k vouches are enough.
#[test]
fn f_08_a_rebooted_server_opens_again_on_vouches_alone() {
    let mut bench = Bench::opened();
    bench.later(LEASE).reboots();
    bench.tick().run_lane();
    assert!(!bench.writable());
    bench.all_vouch();
    assert!(bench.writable());
    assert_eq!(bench.marker().and_then(|marker| marker.start), Some(StartId(2)));
}

/// F-09: a fence by the lease is our own, by the note that was written before it; the note goes with the opening.
#[test]
fn f_09_a_lapsed_lease_that_comes_back_opens_again() {
    let mut bench = Bench::lapsed();
    bench.tick().run_lane().all_vouch();
    assert!(bench.writable() && bench.did("RemoveNote"));
    assert_eq!(bench.sidecar.disk.note, None);
}

/// F-09, F-44: somebody else's fence stays under this tenure, whatever the lease, and is reported; its permit goes.
#[test]
fn f_44_a_humans_fence_is_not_lifted_under_the_same_tenure() {
    let mut bench = Bench::opened();
    bench.by_hand(true, true).later(1000).tick().run_lane();
    assert!(bench.permit.is_none(), "there is nothing left to permit");
    bench.grant(Some(word())).all_vouch();
    bench.hear(view(6, 5, Some(&me())), Source::Operator).run_lane();
    bench.tick().run_lane().grant(Some(word())).all_vouch();
    assert!(!bench.writable());
    assert_eq!(bench.sidecar.gate(Boot(bench.now)), Err(Closed::FencedByOthers));
    assert_eq!(bench.ack().fenced_by, Some(crate::message::FencedBy::Others));
}

/// F-44: the end of the lease, or a restart of the sidecar, does not make a human's fence ours.
#[test]
fn f_44_a_humans_fence_survives_a_lapsed_lease_and_a_restart() {
    let check = |meddle: &dyn Fn(&mut Bench)| {
        let mut bench = Bench::opened();
        bench.by_hand(true, true);
        meddle(&mut bench);
        bench.tick().run_lane().all_vouch();
        bench.later(1000).tick().run_lane().all_vouch();
        assert!(!bench.writable());
        assert_eq!(bench.sidecar.disk.note, None);
    };
    check(&|bench| {
        bench.tick().run_lane().later(LEASE).timer().run_lane();
    });
    check(&|bench| {
        bench.sidecar_restarts().keeper().run_lane();
    });
    // An overtaken word of the keeper, after the permit was withdrawn and the lease had ended.
    check(&|bench| {
        let permit = bench.permit;
        bench.tick().run_lane().later(LEASE).timer().run_lane();
        bench.give(Input::Keeper(KeeperFact { running: Some(StartId(1)), permit }));
        assert!(bench.did("EndOpeners"));
        bench.run_lane();
    });
    check(&|bench| {
        bench.sidecar_restarts().keeper().run_lane().later(LEASE).timer().run_lane();
    });
}

/// F-09: which fences are our own, by what is on disk.
#[test]
fn f_09_only_boot_and_noted_fences_are_our_own() {
    let check = |opened: Option<u64>, note: Option<(Epoch, u64)>, own: bool| {
        let marker = Marker { tenure: 5, start: opened.map(StartId), word: word() };
        let note = note.map(|(tenure, start)| crate::fence::Note { tenure, start: StartId(start) });
        let view = view(5, 5, Some(&me()));
        let mut bench = Bench::starts_with(Disk { view: Some(view), marker: Some(marker), note, ..Disk::default() });
        bench.tick().run_lane().all_vouch();
        assert_eq!(bench.writable(), own, "{opened:?} {:?}", bench.sidecar.disk.note);
    };
    check(None, None, true);
    check(Some(0), None, true);
    check(Some(1), None, false);
    check(Some(1), Some((5, 1)), true);
    check(Some(1), Some((5, 0)), false);
    check(Some(1), Some((4, 1)), false);
}

/// F-09: a grant of a newer tenure lifts any fence.
#[test]
fn f_09_a_newer_tenure_lifts_a_humans_fence() {
    let mut bench = Bench::opened();
    bench.by_hand(true, true).tick().run_lane();
    bench.hear(view(6, 5, None), Source::Operator).run_lane();
    bench.hear(view(7, 7, Some(&me())), Source::Operator).run_lane();
    bench.tick().run_lane().grant(Some(word())).run_lane();
    assert!(bench.writable());
}

/// Contract 8.5: a fence that a human lifts on the holder gets its permit within one tick.
#[test]
fn a_fence_lifted_by_hand_on_the_holder_gets_a_permit() {
    let mut bench = Bench::opened();
    bench.by_hand(true, true).tick().run_lane().by_hand(false, false);
    bench.tick().run_lane();
    assert!(bench.writable() && bench.permit.is_some());
    assert!(!bench.did("Open") && !bench.did("EndOpeners"));
}

/// P-13, F-09: opened by hand before the leader has said so: closed, for replication runs and nothing is written down.
#[test]
fn f_09_a_granted_site_opened_by_hand_before_the_word_is_closed() {
    let mut bench = Bench::named();
    bench.tick().run_lane().grant(None).by_hand(false, false);
    bench.tick().run_lane();
    assert!(!bench.writable() && bench.permit.is_none() && bench.marker().is_none());
    bench.tick().run_lane().grant(Some(word())).run_lane();
    assert!(bench.writable());
}

/// F-23: a site without authority that was opened by hand is closed at first sight, and says who it was.
#[test]
fn f_23_opened_by_hand_without_authority_is_closed_at_first_sight() {
    for (read_only, super_read_only) in [(false, false), (false, true), (true, false)] {
        let mut bench = Bench::under(view(5, 5, Some(&member("pdx"))));
        bench.by_hand(read_only, super_read_only).tick().lane_done();
        assert!(bench.ack().opened_by_hand && !bench.ack().fenced);
        bench.run_lane();
        assert!(!bench.writable() && bench.ack().fenced);
    }
}

/// F-23: the fence comes within milliseconds, and the leader asks every few seconds: the wish is told for a lease.
#[test]
fn f_23_a_wish_outlives_the_fence_that_follows_it() {
    let mut bench = Bench::under(view(5, 5, Some(&member("pdx"))));
    bench.by_hand(false, false).tick().run_lane();
    assert!(bench.ack().fenced && bench.ack().opened_by_hand);
    bench.hear(view(6, 5, None), Source::Operator).run_lane();
    assert!(bench.ack().opened_by_hand, "the revocation that it asked for takes nothing from it");
    bench.later(LEASE - 1).timer();
    assert!(bench.ack().opened_by_hand);
    bench.later(1).timer();
    assert!(!bench.ack().opened_by_hand);
}

/// F-23: authority went somewhere, so the wish is over, fulfilled or not.
#[test]
fn f_23_a_wish_ends_with_the_tenure() {
    let mut bench = Bench::under(view(5, 5, Some(&member("pdx"))));
    bench.by_hand(false, false).tick().run_lane();
    bench.hear(view(7, 7, Some(&member("fra"))), Source::Operator).run_lane();
    assert!(!bench.ack().opened_by_hand);
}

/// Contract 8.5: whoever lifts his own fence at the holder wishes for nothing.
#[test]
fn a_fence_lifted_at_the_holder_is_no_wish() {
    let mut bench = Bench::opened();
    bench.by_hand(true, true).tick().run_lane().by_hand(false, false);
    bench.tick().run_lane();
    assert!(bench.writable() && !bench.ack().opened_by_hand);
}

/// F-09: a newer tenure heard in the middle of an opening is not written down as opened here.
#[test]
fn f_09_a_tenure_of_another_is_never_marked_as_opened() {
    let mut bench = opening_at(OpenStep::Reading);
    bench.hear(view(7, 7, Some(&member("pdx"))), Source::Peer).lane_done();
    assert_eq!(bench.marker().map(|marker| (marker.tenure, marker.start)), Some((5, None)));
    bench.later(1000).timer().run_lane();
    assert!(!bench.writable());
}

/// Opened by hand before this sidecar could: it is taken over, and the leader's word is written down with it.
#[test]
fn an_opening_by_hand_that_is_taken_over_is_written_down_with_the_leaders_word() {
    let disk = Disk { view: Some(view(5, 5, Some(&me()))), ..Disk::default() };
    let mut bench = Bench::silent_keeper(disk);
    bench.by_hand(false, false).keeper().grant(Some(word())).run_lane();
    assert!(bench.writable() && bench.permit.is_some() && !bench.did("Open"));
    assert_eq!(bench.marker(), Some(Marker { tenure: 5, start: Some(StartId(1)), word: word() }));
}
