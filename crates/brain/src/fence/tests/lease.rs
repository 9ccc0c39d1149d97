//! How long a lease lasts and what it carries over (safety.md 4).

use super::*;
use crate::message::QuestionId;

const PDX: &str = "pdx";
const FRA: &str = "fra";

/// Everyone is asked at [`BEGIN`] + `at`, and those of `from` answer; then the deadline, counted from [`BEGIN`].
fn deadline_after(view: View, rounds: &[(u64, &[&str])]) -> Option<u64> {
    let mut bench = Bench::under(view);
    for (at, from) in rounds {
        bench.now = BEGIN + at;
        bench.tick().run_lane();
        bench.later(40);
        for voter in *from {
            match *voter {
                "leader" => bench.grant(None),
                site => bench.vouch(&member(site)),
            };
        }
    }
    bench.deadline().map(|deadline| deadline - BEGIN)
}

/// F-02, F-30: the later of the newest grant and the k-th most recent vouch, each counted from when it was asked for.
#[test]
fn f_02_the_lease_counts_from_the_question_of_the_newest_grant_or_the_kth_vouch() {
    let five = ["pdx", "fra", "syd", "gru"].map(member);
    let of_five = |min_peers| {
        let voters: Vec<Member> = std::iter::once(me()).chain(five.iter().cloned()).collect();
        with_peers(voting(view(5, 5, Some(&me())), &voters), min_peers)
    };
    let of_three = |min_peers| with_peers(view(5, 5, Some(&me())), min_peers);
    let check = |view: View, rounds: &[(u64, &[&str])], expect: Option<u64>| {
        assert_eq!(deadline_after(view, rounds), expect, "{rounds:?}");
    };
    check(of_three(1), &[], None);
    check(of_three(1), &[(0, &[])], None);
    check(of_three(1), &[(0, &["leader"])], Some(LEASE));
    check(of_three(1), &[(0, &[PDX])], Some(LEASE));
    check(of_three(1), &[(0, &["leader"]), (5000, &[PDX])], Some(5000 + LEASE));
    check(of_three(1), &[(0, &[PDX]), (5000, &["leader"])], Some(5000 + LEASE));
    check(of_three(1), &[(0, &[PDX]), (5000, &[FRA])], Some(5000 + LEASE));
    // Two are needed: the older of the two newest counts.
    check(of_three(2), &[(0, &[PDX])], None);
    check(of_three(2), &[(0, &[PDX]), (5000, &[PDX])], None);
    check(of_three(2), &[(0, &[PDX]), (5000, &[FRA])], Some(LEASE));
    check(of_three(2), &[(0, &[PDX, FRA]), (5000, &[FRA]), (7000, &[PDX])], Some(5000 + LEASE));
    check(of_three(2), &[(0, &["leader"]), (5000, &[PDX])], Some(LEASE));
    // Never more than the others there are, never fewer than one.
    check(of_three(9), &[(0, &[PDX, FRA])], Some(LEASE));
    check(of_three(0), &[(0, &[])], None);
    check(of_three(0), &[(0, &[PDX])], Some(LEASE));
    check(of_five(3), &[(0, &[PDX]), (1000, &[FRA]), (2000, &["syd"]), (3000, &["gru"])], Some(1000 + LEASE));
}

/// What is wrong with an answer.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Wrong {
    Nothing,
    NoSuchQuestion,
    SecondTime,
    OtherEpoch,
    OtherAsker,
    OtherVoter,
    OtherInstance,
    Refusal,
}

/// F-12, F-30: a vouch counts once, for its own question, epoch, asker and answerer.
#[test]
fn f_30_a_vouch_counts_only_for_its_own_outstanding_question() {
    let pdx = member(PDX);
    let check = |wrong: Wrong, counts: bool| {
        let mut bench = Bench::named();
        bench.tick();
        let good = answer_to(&bench.question(Some(&pdx)), &pdx);
        let mut vouch = good.clone();
        match wrong {
            Wrong::Nothing => {}
            Wrong::NoSuchQuestion => vouch.id = QuestionId(4711),
            Wrong::SecondTime => {
                bench.give(Input::Vouched(good));
                bench.sidecar.vouched.clear();
            }
            Wrong::OtherEpoch => vouch.epoch = 4,
            Wrong::OtherAsker => vouch.about = instance("iad", "s0"),
            Wrong::OtherVoter => vouch.from = member(FRA),
            Wrong::OtherInstance => vouch.from = instance(PDX, "s2"),
            Wrong::Refusal => vouch.ok = false,
        }
        bench.give(Input::Vouched(vouch));
        assert_eq!(bench.deadline().is_some(), counts, "{wrong:?}");
    };
    check(Wrong::Nothing, true);
    for wrong in [
        Wrong::NoSuchQuestion,
        Wrong::SecondTime,
        Wrong::OtherEpoch,
        Wrong::OtherAsker,
        Wrong::OtherVoter,
        Wrong::OtherInstance,
        Wrong::Refusal,
    ] {
        check(wrong, false);
    }
}

/// F-12, F-30: a grant counts for an outstanding question to the leader, for this instance, under the stored epoch.
#[test]
fn f_30_a_grant_counts_only_for_its_own_outstanding_question() {
    let check = |spoil: &dyn Fn(&Bench, &mut Grant), counts: bool| {
        let mut bench = Bench::named();
        bench.tick().run_lane();
        let id = bench.question(None).id;
        let mut grant = Grant { id, to: me(), view: view(5, 5, Some(&me())), open: Some(word()) };
        spoil(&bench, &mut grant);
        bench.give(Input::Granted { grant, reply: None }).run_lane();
        assert_eq!(bench.deadline().is_some(), counts);
        assert_eq!(bench.writable(), counts, "and opens only then");
    };
    check(&|_, _| {}, true);
    check(&|_, grant| grant.id = QuestionId(4711), false);
    check(&|bench, grant| grant.id = bench.question(Some(&member(PDX))).id, false);
    check(&|_, grant| grant.to = instance("iad", "s0"), false);
    check(&|_, grant| grant.view = view(4, 4, Some(&me())), false);
    check(&|_, grant| grant.view = view(6, 5, None), false);
    check(&|_, grant| grant.view = view(6, 6, Some(&me())), false);
}

/// F-12: a push is never a grant, and nothing is written under it.
#[test]
fn f_12_a_push_renews_nothing() {
    let mut bench = Bench::opened();
    bench.later(5000).pushed(view(5, 5, Some(&me()))).run_lane();
    assert_eq!(bench.deadline(), Some(BEGIN + LEASE));
}

/// F-30: an answer to a question of an earlier tenure opens and renews nothing, however often authority came back.
#[test]
fn f_30_an_answer_from_before_a_newer_tenure_is_dead() {
    let mut bench = Bench::named();
    bench.tick().run_lane();
    let (grant_id, pdx) = (bench.question(None).id, member(PDX));
    let vouch = answer_to(&bench.question(Some(&pdx)), &pdx);
    bench.hear(view(6, 5, None), Source::Operator).hear(view(7, 7, Some(&me())), Source::Operator).run_lane();
    let grant = Grant { id: grant_id, to: me(), view: view(7, 7, Some(&me())), open: Some(word()) };
    bench.give(Input::Granted { grant, reply: None }).give(Input::Vouched(vouch)).run_lane();
    assert_eq!(bench.deadline(), None);
    assert!(!bench.writable());
}

/// F-30: an answer older than a lease is worth nothing, and its question is forgotten.
#[test]
fn f_30_questions_are_forgotten_after_a_lease() {
    let mut bench = Bench::named();
    bench.tick().run_lane().later(LEASE - 1).timer();
    assert!(!bench.sidecar.asked.is_empty());
    bench.later(1).timer();
    assert!(bench.sidecar.asked.is_empty());
    bench.grant(Some(word())).vouch(&member(PDX));
    assert_eq!(bench.deadline(), None);
}

/// F-41: a voter or settings epoch of the same tenure carries grants and the vouches of voters in both sets over.
#[test]
fn f_41_voter_epoch_of_the_same_tenure_keeps_the_lease() {
    let (pdx, fra) = (member(PDX), member(FRA));
    let check = |by: &[&str], newer: View, expect: Option<u64>| {
        let mut bench = Bench::named();
        bench.tick().run_lane();
        for from in by {
            match *from {
                "leader" => bench.grant(None),
                site => bench.vouch(&member(site)),
            };
        }
        bench.hear(newer.clone(), Source::Operator);
        assert_eq!(bench.deadline().map(|deadline| deadline - BEGIN), expect, "{by:?} {newer:?}");
    };
    let without_fra = voting(view(6, 5, Some(&me())), &[me(), pdx.clone()]);
    check(&["leader"], without_fra.clone(), Some(LEASE));
    check(&[PDX], without_fra.clone(), Some(LEASE));
    check(&[FRA], without_fra, None);
    check(&[PDX], voting(view(6, 5, Some(&me())), &[me(), instance(PDX, "s2"), fra]), None);
    check(&[PDX], with_peers(view(6, 5, Some(&me())), 2), None);
    let longer = Settings { lease_timeout: Millis(60_000), min_peers: 1 };
    check(&[PDX], View { settings: longer, ..view(6, 5, Some(&me())) }, Some(60_000));
    // Another tenure, or nobody's: nothing is carried over.
    check(&["leader", PDX, FRA], view(6, 6, Some(&me())), None);
    check(&["leader", PDX, FRA], view(6, 5, None), None);
}

/// F-41: a voter that was out for an epoch begins anew.
#[test]
fn f_41_the_vouch_of_a_voter_that_was_out_does_not_come_back() {
    let mut bench = Bench::named();
    bench.tick().run_lane().vouch(&member(FRA));
    bench.hear(voting(view(6, 5, Some(&me())), &[me(), member(PDX)]), Source::Operator);
    bench.hear(view(7, 5, Some(&me())), Source::Operator);
    assert_eq!(bench.deadline(), None);
}

/// An answer that was overtaken by a newer one shortens nothing.
#[test]
fn f_30_an_overtaken_answer_shortens_nothing() {
    let pdx = member(PDX);
    let mut bench = Bench::named();
    bench.tick().run_lane();
    let older = answer_to(&bench.question(Some(&pdx)), &pdx);
    bench.later(5000).tick().run_lane().vouch(&pdx).give(Input::Vouched(older));
    assert_eq!(bench.deadline(), Some(BEGIN + 5000 + LEASE));
}

/// F-32: an answer that comes in the middle of the ladder does not prolong the permit of what is being closed.
#[test]
fn f_32_no_permit_is_renewed_in_the_middle_of_a_ladder() {
    let mut bench = Bench::opened();
    bench.later(LEASE - 100).tick().run_lane().later(100).timer();
    assert!(bench.did("EndOpeners"));
    bench.vouch(&member(PDX));
    assert!(bench.sidecar.allowed(Boot(bench.now)) && !bench.did("RenewPermit"));
}

/// F-41, C-135: the primary stays open through any such epoch, and a vouch on its way for the older one still counts.
#[test]
fn f_41_a_pod_restart_elsewhere_fences_nobody() {
    let pdx = member(PDX);
    let mut bench = Bench::opened();
    for round in 1..=5 {
        bench.later(LEASE / 2).tick();
        let late = answer_to(&bench.question(Some(&pdx)), &pdx);
        let fra = instance(FRA, &format!("s{round}"));
        bench.hear(voting(view(5 + round, 5, Some(&me())), &[me(), pdx.clone(), fra]), Source::Peer);
        bench.give(Input::Vouched(late)).timer().run_lane();
        assert!(bench.writable() && !bench.did("EndOpeners"), "round {round}");
    }
    assert_eq!(bench.deadline(), Some(bench.now + LEASE));
}

/// F-41: a newer view of the same tenure that is still being stored takes nothing away, but brings no grant either.
#[test]
fn f_41_an_unstored_voter_epoch_neither_fences_nor_is_granted() {
    let mut bench = Bench::opened();
    bench.disk_works = false;
    bench.later(1000).hear(view(6, 5, Some(&me())), Source::Operator).tick().run_lane();
    assert!(bench.writable());
    bench.grant(None);
    assert_eq!(bench.deadline(), Some(BEGIN + LEASE));
}

/// F-32: the lease's end fences on the timer, not before it.
#[test]
fn f_32_the_server_is_fenced_when_the_lease_ends() {
    let mut bench = Bench::opened();
    bench.later(LEASE - 1).timer();
    assert!(!bench.did("EndOpeners"));
    bench.later(1).timer();
    assert_eq!(bench.said(), ["WriteNote", "EndOpeners"], "the note comes before the fence");
    bench.run_lane();
    assert!(bench.sidecar.fenced() && bench.permit.is_none());
}

/// F-19: after a pause past the deadline the ladder precedes any call.
#[test]
fn f_19_after_a_pause_the_ladder_comes_first() {
    let mut bench = Bench::opened();
    bench.later(LEASE + 60_000).tick();
    let said = bench.said();
    let at = |wanted: &str| said.iter().position(|said| *said == wanted);
    assert!(at("EndOpeners") < at("AskKeeper"), "{said:?}");
    assert!(at("EndOpeners") < at("AskOperator"), "{said:?}");
    assert_eq!(at("Read"), None, "nothing cancels the ladder");
}

/// F-32, F-42: the permit follows the lease, under the epoch on disk; a renewal never makes one, an ended lease none.
#[test]
fn f_42_the_lease_renews_the_permit_and_never_makes_one() {
    let mut bench = Bench::opened();
    bench.later(5000).tick().run_lane();
    assert!(!bench.did("RenewPermit"));
    bench.grant(None);
    let renewed = Permit { start: StartId(1), epoch: 5, deadline: Boot(BEGIN + 5000 + LEASE) };
    assert_eq!(bench.permit, Some(renewed));

    bench.disk_works = false;
    bench.hear(view(6, 5, Some(&me())), Source::Operator).later(1000).tick().run_lane();
    bench.vouch(&member(PDX));
    assert_eq!(bench.permit.map(|permit| permit.epoch), Some(5), "a restarted sidecar knows only what is on disk");

    let mut closed = Bench::lapsed();
    closed.tick().run_lane();
    closed.forget();
    closed.sidecar.round = None;
    closed.tick();
    assert!(!closed.did("RenewPermit") && closed.permit.is_none());
}

/// F-32: a shorter lease does not shorten a permit that was given, a longer one prolongs it.
#[test]
fn the_permit_is_never_taken_back_by_a_renewal() {
    let check = |lease: u64, expect: u64| {
        let mut bench = Bench::opened();
        let settings = Settings { lease_timeout: Millis(lease), min_peers: 1 };
        bench.hear(View { settings, ..view(6, 5, Some(&me())) }, Source::Operator);
        assert_eq!(bench.permit.map(|permit| permit.deadline.0 - BEGIN), Some(expect));
        assert_eq!(bench.deadline(), Some(BEGIN + lease));
    };
    check(10_000, LEASE);
    check(40_000, 40_000);
}
