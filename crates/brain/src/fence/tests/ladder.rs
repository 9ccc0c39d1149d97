//! The ladder, and what is called fenced (safety.md 1 and 4).

use super::*;
use crate::fence::Budget;
use crate::message::FencedBy;

/// The ladder of a revocation, just begun.
fn fencing() -> Bench {
    let mut bench = Bench::opened();
    bench.hear(view(6, 5, None), Source::Operator);
    assert!(bench.did("EndOpeners"));
    bench.forget();
    bench
}

/// F-17, F-28, F-32: sessions of the opener first, then both variables, then both read, then the permit and the apps.
#[test]
fn f_28_the_ladder_ends_openers_sets_both_reads_both_and_only_then_withdraws() {
    let mut bench = Bench::opened();
    bench.hear(view(6, 5, None), Source::Operator).run_lane();
    let ladder = ["EndOpeners", "Fence", "Read", "WithdrawPermit", "KillAppSessions"];
    let said: Vec<&str> = bench.said().into_iter().filter(|said| ladder.contains(said)).collect();
    // The last reading is the one that the stored epoch owes.
    assert_eq!(said, ["EndOpeners", "Fence", "Read", "WithdrawPermit", "KillAppSessions", "Read"]);
    assert!(bench.sidecar.fenced() && bench.permit.is_none());
}

/// F-32: until the fence is read back the permit stays, so that the keeper's dead man stays armed.
#[test]
fn f_32_the_permit_stays_until_the_fence_is_read_back() {
    let mut bench = fencing();
    for _ in 0..2 {
        bench.lane_done();
        assert!(bench.permit.is_some() && !bench.sidecar.fenced());
    }
    bench.lane_done();
    assert!(bench.permit.is_none());
}

/// F-17: every step that fails leads to the kill; so does a read-back that is not both.
#[test]
fn f_17_what_sql_cannot_confirm_the_keeper_kills() {
    for failing in 0..3 {
        let mut bench = fencing();
        for _ in 0..failing {
            bench.lane_done();
        }
        bench.lane_fails();
        assert_eq!(bench.lane, Some(Command::Kill(StartId(1))), "step {failing}");
        assert!(!bench.sidecar.fenced());
    }
    for (read_only, super_read_only) in [(false, true), (true, false), (false, false)] {
        let mut bench = fencing();
        bench.lane_done().lane_done().by_hand(read_only, super_read_only).lane_done();
        assert_eq!(bench.lane, Some(Command::Kill(StartId(1))), "{read_only}/{super_read_only}");
        assert!(!bench.sidecar.fenced() && bench.permit.is_some());
    }
    let mut bench = fencing();
    bench.lane_done().lane_done();
    bench.lane = None;
    let other = ReadBack { start: StartId(2), ..bench.reads(Some(6)) };
    bench.give(Input::Lane(LaneResult::Read(other)));
    assert!(bench.did("Kill"), "another start was read");
}

/// F-17: a kill counts when that very start is reaped.
#[test]
fn f_17_a_kill_counts_only_when_the_process_is_reaped() {
    let mut bench = fencing();
    bench.lane_fails();
    bench.lane = None;
    bench.give(Input::Lane(LaneResult::Killed(StartId(0))));
    assert!(!bench.sidecar.fenced());

    let mut bench = fencing();
    bench.lane_fails().lane_done();
    assert!(bench.sidecar.fenced() && bench.ack().fenced_by == Some(FencedBy::Mismatch));
    assert_eq!(bench.ack().mysqld, None);
}

/// F-15, F-17: a kill that the keeper does not confirm is not the end: the ladder is climbed again, soon, without end.
#[test]
fn f_15_a_failed_kill_starts_the_ladder_again() {
    let mut bench = fencing();
    for round in 0..5 {
        bench.lane_fails().lane_fails();
        assert_eq!(bench.lane, None, "round {round}: not at once");
        bench.later(249).timer();
        assert_eq!(bench.lane, None, "round {round}");
        bench.later(1).timer();
        assert_eq!(bench.lane, Some(Command::EndOpeners { within: Budget::OPENERS }), "round {round}");
        assert!(!bench.sidecar.fenced());
    }
    bench.run_lane();
    assert!(bench.sidecar.fenced() && bench.server.running, "the server answered before the keeper did");
}

/// F-17: a keeper that says nothing at all does not hold the ladder up either.
#[test]
fn f_17_a_silent_keeper_does_not_end_the_ladder() {
    let mut bench = fencing();
    bench.lane_fails().later(3499).timer();
    assert_eq!(bench.lane, Some(Command::Kill(StartId(1))));
    bench.later(1).timer();
    assert_eq!(bench.lane, Some(Command::EndOpeners { within: Budget::OPENERS }));
}

/// F-17: 2.5 s for the whole ladder, then the kill; the statement's own bound never reaches beyond.
#[test]
fn f_17_the_ladder_takes_two_and_a_half_seconds_at_most() {
    for done in 0..3 {
        let mut bench = fencing();
        for _ in 0..done {
            bench.lane_done();
        }
        bench.later(2499).timer();
        assert!(!bench.did("Kill"), "after {done}");
        bench.later(1).timer();
        assert!(bench.did("Kill"), "after {done}");
    }
    let mut bench = fencing();
    bench.later(2000).lane_done();
    assert_eq!(bench.lane, Some(Command::Fence { within: Millis(500) }));
    bench.later(300).lane_done();
    assert!(matches!(bench.lane, Some(Command::Read { within: Millis(200), .. })));
}

/// Application sessions that hold the fencing statement up are ended after 300 ms, once; no others ever.
#[test]
fn sessions_that_hold_the_fence_up_are_ended_after_300_ms() {
    let mut bench = fencing();
    bench.lane_done().later(299).timer();
    assert!(!bench.did("KillAppSessions"));
    bench.later(1).timer().timer();
    assert_eq!(bench.said().iter().filter(|said| **said == "KillAppSessions").count(), 1);
}

/// F-25: fenced is both variables as 1, in every other state somebody can write.
#[test]
fn f_25_only_one_one_is_fenced() {
    for (read_only, super_read_only, fenced) in
        [(true, true, true), (false, true, false), (true, false, false), (false, false, false)]
    {
        let mut bench = Bench::under(view(5, 5, Some(&member("pdx"))));
        bench.by_hand(read_only, super_read_only).tick().lane_done();
        assert_eq!(bench.sidecar.fenced(), fenced, "{read_only}/{super_read_only}");
        assert_eq!(bench.did("EndOpeners"), !fenced, "{read_only}/{super_read_only}");
    }
}

/// F-29: fenced is a reading begun after that epoch's view was stored, never an earlier one.
#[test]
fn f_29_fenced_is_read_after_the_view_was_stored() {
    let mut bench = Bench::under(view(5, 5, Some(&member("pdx"))));
    assert!(bench.sidecar.fenced());
    bench.tick();
    let earlier = bench.lane.clone();
    assert!(matches!(earlier, Some(Command::Read { under: Some(5), .. })), "begun before");
    bench.pushed(view(6, 5, None));
    assert!(!bench.sidecar.fenced() && bench.acknowledged().is_empty());
    bench.lane_done();
    assert!(!bench.sidecar.fenced() && bench.acknowledged().is_empty(), "it ended after, but began before");
    bench.lane_done();
    assert!(bench.sidecar.fenced());
    assert_eq!(bench.acknowledged().len(), 1);
}

/// F-29: a push that finds a reading under way waits for its end.
#[test]
fn f_29_an_acknowledgement_waits_for_a_reading_under_way() {
    let mut bench = Bench::under(view(5, 5, None));
    bench.tick().pushed(view(5, 5, None));
    assert_eq!(bench.acknowledged(), vec![]);
    bench.lane_done();
    assert_eq!(bench.acknowledged().len(), 1);
}

/// F-32: reading an open server leaves its permit alone.
#[test]
fn f_32_a_reading_of_an_open_server_keeps_the_permit() {
    let mut bench = Bench::opened();
    bench.tick().run_lane();
    assert!(!bench.did("WithdrawPermit") && !bench.did("AskPermit") && bench.permit.is_some());
}

/// F-28: a permit that turns up without a lease is an opening that may be in flight, whatever was read.
#[test]
fn f_28_a_permit_without_a_lease_starts_the_ladder() {
    let mut bench = Bench::under(view(5, 5, Some(&member("pdx"))));
    bench.permit = Some(Permit { start: StartId(1), epoch: 4, deadline: Boot(BEGIN) });
    bench.keeper();
    assert!(bench.did("EndOpeners"));
    bench.run_lane();
    assert!(bench.permit.is_none() && bench.sidecar.fenced());
}

/// Unknown is not fenced; not running is.
#[test]
fn a_dead_server_is_fenced_an_unknown_one_is_not() {
    let mut bench = Bench::silent_keeper(Disk { view: Some(view(5, 5, None)), ..Disk::default() });
    assert!(!bench.sidecar.fenced());
    bench.dies().keeper();
    assert!(bench.sidecar.fenced());
    bench.server.running = true;
    bench.server.start = 2;
    bench.keeper();
    assert!(!bench.sidecar.fenced(), "it runs, and was not read yet");
    bench.run_lane();
    assert!(bench.sidecar.fenced());
}

/// F-16: a reading of an earlier start says nothing about the next.
#[test]
fn f_16_a_reading_of_an_earlier_start_says_nothing() {
    let mut bench = Bench::under(view(5, 5, None));
    assert!(bench.sidecar.fenced());
    bench.server.start = 2;
    bench.keeper();
    assert!(!bench.sidecar.fenced());
}

/// F-16: nor does one that ends after the next start was told of.
#[test]
fn f_16_a_late_reading_of_an_earlier_start_is_not_one_of_the_present() {
    let mut bench = Bench::under(view(5, 5, None));
    bench.tick();
    let late = bench.reads(Some(5));
    bench.dies();
    (bench.server.running, bench.server.start) = (true, 2);
    bench.keeper().give(Input::Lane(LaneResult::Read(late)));
    assert!(!bench.sidecar.fenced() && !bench.ack().fenced);
}

/// F-15: while a server without authority is seen open, every tick closes it again.
#[test]
fn f_15_a_fence_is_repeated_until_it_holds() {
    let mut bench = Bench::under(view(5, 5, Some(&member("pdx"))));
    for _ in 0..3 {
        bench.by_hand(false, false).later(5000).tick().run_lane();
        assert!(!bench.writable());
    }
    assert_eq!(bench.said().iter().filter(|said| **said == "Fence").count(), 3);
}

/// Why a server is fenced, as the leader is told.
#[test]
fn the_reason_of_a_fence_is_told() {
    let check = |bench: &Bench, expect: Option<FencedBy>| assert_eq!(bench.ack().fenced_by, expect);
    check(&Bench::named(), Some(FencedBy::Boot));
    check(&Bench::opened(), None);
    check(&Bench::lapsed(), Some(FencedBy::Lease));
    let mut bench = Bench::lapsed();
    bench.reboots();
    check(&bench, Some(FencedBy::Boot));
    let mut bench = Bench::opened();
    bench.pushed(view(5, 5, Some(&member("pdx")))).run_lane();
    check(&bench, Some(FencedBy::Conflict));
    let mut bench = Bench::opened();
    bench.by_hand(true, true).tick().run_lane();
    check(&bench, Some(FencedBy::Others));
    let mut bench = Bench::lapsed();
    bench.sidecar_restarts().keeper().run_lane();
    check(&bench, Some(FencedBy::Lease));
}
