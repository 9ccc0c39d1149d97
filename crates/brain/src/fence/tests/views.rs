//! Which views count (safety.md 3).

use super::*;

/// F-10: only a higher epoch changes a view.
#[test]
fn f_10_only_a_higher_epoch_changes_the_view() {
    let check = |heard: View, expect: Epoch| {
        let mut bench = Bench::opened();
        bench.hear(heard, Source::Operator);
        let epoch = bench.sidecar.heard.as_ref().map(|view| view.epoch);
        assert_eq!(epoch, Some(expect));
        assert_eq!(bench.sidecar.disk.view.as_ref().map(|view| view.epoch), Some(expect), "and it is on disk");
    };
    check(view(4, 4, Some(&member("pdx"))), 5);
    check(view(5, 5, Some(&me())), 5);
    check(view(6, 5, None), 6);
}

/// F-10: an empty or failed answer clears nothing, nor does an old view fence.
#[test]
fn f_10_silence_and_old_views_take_nothing_away() {
    let mut bench = Bench::opened();
    bench.tick().run_lane();
    let unanswered = bench.question(None).id;
    bench.give(Input::NoAnswer(unanswered)).hear(view(4, 4, None), Source::Operator).timer();
    assert!(bench.sidecar.allowed(Boot(bench.now)) && bench.writable() && bench.lane.is_none());
}

/// A view is on disk before it is acknowledged; one that cannot be stored is refused, stored again when it comes again.
#[test]
fn f_10_a_view_is_stored_before_it_is_acknowledged() {
    let mut bench = Bench::named();
    bench.disk_works = false;
    bench.pushed(view(6, 5, None)).timer();
    assert_eq!(bench.acknowledged(), vec![]);
    assert_eq!(bench.ack().epoch, Some(5), "what is not on disk was not stored");

    bench.forget().give(Input::NotStored(6));
    assert_eq!(bench.said(), ["Refuse"]);

    bench.forget();
    bench.disk_works = true;
    bench.pushed(view(6, 5, None)).run_lane();
    let acks = bench.acknowledged();
    assert_eq!(acks.len(), 1);
    assert_eq!((acks[0].1.epoch, acks[0].1.fenced), (Some(6), true));
}

/// A push that waits longer than its bound gets what is known: not stored is refused, stored but not fenced says so.
#[test]
fn a_push_is_answered_in_bounded_time() {
    let mut bench = Bench::opened();
    bench.disk_works = false;
    bench.pushed(view(6, 5, None)).later(1499).timer();
    assert!(!bench.did("Refuse") && !bench.did("Acknowledge"));
    bench.later(1).timer();
    assert!(bench.did("Refuse"));

    let mut bench = Bench::opened();
    bench.pushed(view(6, 5, None)).later(1499).timer();
    assert_eq!(bench.acknowledged(), vec![], "the ladder is not over");
    bench.later(1).timer();
    assert_eq!(bench.acknowledged().iter().map(|(_, ack)| ack.fenced).collect::<Vec<_>>(), [false]);
}

/// A newer stored view goes to every peer at once; a later phase of the same epoch does not.
#[test]
fn a_newer_view_is_pushed_to_peers_once_it_is_stored() {
    let mut bench = Bench::under(View { phase: Phase::Granting, ..view(5, 5, Some(&member("pdx"))) });
    bench.forget().hear(view(5, 5, Some(&member("pdx"))), Source::Operator);
    assert!(bench.did("Store") && !bench.did("PushToPeers"));
    bench.forget();
    bench.disk_works = false;
    bench.hear(view(6, 5, None), Source::Peer);
    assert!(!bench.did("PushToPeers"));
    bench.give(Input::Stored(6)).give(Input::Stored(6));
    assert_eq!(bench.said().iter().filter(|said| **said == "PushToPeers").count(), 1);
}

/// F-40: views of one epoch conflict only where seat, tenure, voters or settings differ.
#[test]
fn f_40_two_views_of_one_epoch_conflict_unless_only_the_phase_differs() {
    let ours = view(5, 5, Some(&me()));
    let check = |other: View, conflict: bool| {
        let mut bench = Bench::opened();
        bench.pushed(other.clone()).run_lane();
        assert_eq!(bench.writable(), !conflict, "{other:?}");
        assert_eq!(bench.ack().conflict, conflict, "{other:?}");
        assert_eq!(bench.did("WriteConflict"), conflict, "{other:?}");
        assert_eq!(bench.did("Refuse"), conflict, "{other:?}");
    };
    check(ours.clone(), false);
    check(View { phase: Phase::Granting, ..ours.clone() }, false);
    check(view(5, 5, Some(&member("pdx"))), true);
    check(View { tenure: 4, ..ours.clone() }, true);
    check(voting(ours.clone(), &[me(), member("pdx")]), true);
    check(with_peers(ours, 2), true);
}

/// F-40: under a disputed epoch nothing opens again and nobody is vouched for, through any restart of the sidecar.
#[test]
fn f_40_a_disputed_epoch_stays_closed() {
    let mut bench = Bench::opened();
    bench.pushed(view(5, 5, Some(&member("pdx")))).run_lane();
    bench.sidecar_restarts().keeper().run_lane();
    bench.tick().run_lane();
    bench.forget().tick().run_lane();
    assert!(!bench.writable() && bench.ack().conflict);
    assert!(!bench.did("AskPeer"), "it does not take itself for named");

    let mut voter = Bench::under(view(5, 5, Some(&member("pdx"))));
    voter.pushed(view(5, 5, Some(&member("fra"))));
    let question = Question { id: crate::message::QuestionId(7), from: member("pdx"), epoch: 5, open: false };
    voter.forget().give(Input::AskedToVouch { question, reply: ReplyId(1) });
    assert!(!voter.answers()[0].ok);
}

/// F-40: the leader's next epoch brings the writes back, also one that only changes the voters of the same tenure.
#[test]
fn f_40_a_newer_epoch_ends_the_dispute() {
    let mut bench = Bench::opened();
    bench.pushed(voting(view(5, 5, Some(&me())), &[me(), member("fra")])).run_lane();
    assert!(bench.sidecar.fenced());
    bench.pushed(view(6, 5, Some(&me()))).run_lane().all_vouch();
    assert!(bench.writable() && !bench.ack().conflict);
}

/// F-10, F-22: who is not named fences at once, whatever its lease; nobody named, somebody else named, no view at all.
#[test]
fn f_10_a_view_that_names_another_fences_without_a_lease_wait() {
    for newer in [view(6, 5, None), view(7, 7, Some(&member("pdx"))), view(7, 7, Some(&instance("iad", "s2")))] {
        let mut bench = Bench::opened();
        bench.hear(newer, Source::Operator);
        assert!(bench.did("EndOpeners"));
        assert!(!bench.did("WriteNote"), "only a fence under this tenure may be lifted under it");
        bench.run_lane();
        assert!(!bench.writable() && bench.ack().fenced_by == Some(crate::message::FencedBy::Mismatch));
    }
    let mut bench = Bench::starts_with(Disk::default());
    bench.by_hand(false, false).tick().run_lane();
    assert!(!bench.writable(), "F-22: listed nowhere, fenced");
}

/// C-61: a peer's word is enough, within a second and without any lease wait; the operator is asked once more.
#[test]
fn c_61_a_peers_newer_view_fences_after_a_second_word() {
    let mut bench = Bench::opened();
    bench.hear(view(6, 5, None), Source::Peer);
    assert!(bench.did("AskOperator") && !bench.did("EndOpeners"));
    bench.later(999).timer();
    assert!(!bench.did("EndOpeners"));
    bench.later(1).timer();
    assert!(bench.did("EndOpeners"));
}

/// C-61: the operator's own copy of that view ends the wait; an older one does not, a newer one that names us undoes it.
#[test]
fn c_61_the_operators_word_ends_the_wait() {
    let check = |word: View, fences: bool| {
        let mut bench = Bench::opened();
        bench.hear(view(6, 5, None), Source::Peer).hear(word.clone(), Source::Operator);
        assert_eq!(bench.did("EndOpeners"), fences, "{word:?}");
    };
    check(view(6, 5, None), true);
    check(view(7, 5, None), true);
    check(view(5, 5, Some(&me())), false);
}

/// C-61: neither more words of peers nor the wait itself prolong anything: it ends with the lease that ran.
#[test]
fn c_61_the_second_word_never_outlasts_the_lease() {
    let mut bench = Bench::opened();
    bench.later(LEASE - 300).hear(view(6, 5, None), Source::Peer).later(299).timer();
    assert!(!bench.did("EndOpeners"));
    bench.later(1).timer();
    assert!(bench.did("EndOpeners"));

    let mut bench = Bench::opened();
    bench.hear(view(6, 5, None), Source::Peer);
    bench.later(900).hear(view(7, 5, None), Source::Peer);
    assert!(!bench.did("EndOpeners"));
    bench.later(100).timer();
    assert!(bench.did("EndOpeners"));
}

/// F-40: a contradiction waits for no second word.
#[test]
fn f_40_a_conflict_fences_at_once() {
    let mut bench = Bench::opened();
    bench.hear(view(6, 5, None), Source::Peer);
    assert!(!bench.did("EndOpeners"));
    bench.hear(view(6, 6, Some(&me())), Source::Peer);
    assert!(bench.did("EndOpeners"));
}

/// F-10: a tenure that is not on disk is not ours yet: nothing is noted under it and nobody is asked to vouch.
#[test]
fn f_10_a_tenure_that_is_not_on_disk_is_not_ours_yet() {
    let mut bench = Bench::opened();
    bench.disk_works = false;
    bench.hear(view(7, 7, Some(&me())), Source::Operator).tick();
    assert!(bench.did("EndOpeners") && !bench.did("WriteNote") && !bench.did("AskPeer"));
    bench.run_lane().give(Input::Stored(7)).tick();
    assert!(bench.did("AskPeer"));
}

/// F-10: the word of the disk about an older view says nothing about the newest.
#[test]
fn f_10_an_older_store_that_ends_late_is_not_the_newest_view() {
    let mut bench = Bench::under(view(5, 5, None));
    bench.disk_works = false;
    bench.hear(view(6, 5, None), Source::Operator).hear(view(7, 5, None), Source::Operator);
    bench.give(Input::Stored(6));
    assert_eq!(bench.ack().epoch, Some(5));
    bench.give(Input::Stored(7));
    assert_eq!(bench.ack().epoch, Some(7));
}

/// F-35: vouches only for the epoch stored here, for the instance it names, knowing nothing newer, listed itself.
#[test]
fn f_35_vouches_only_for_what_it_has_stored_and_only_if_listed() {
    let pdx = member("pdx");
    let check = |stored: View, heard: Option<View>, from: &Member, epoch: Epoch, expect: bool| {
        let mut bench = Bench::under(stored);
        bench.disk_works = false;
        if let Some(heard) = heard {
            bench.hear(heard, Source::Peer);
        }
        let question = Question { id: crate::message::QuestionId(7), from: from.clone(), epoch, open: false };
        bench.forget().give(Input::AskedToVouch { question, reply: ReplyId(1) });
        let answers = bench.answers();
        assert_eq!(answers.len(), 1);
        assert_eq!(answers[0].ok, expect, "{from} {epoch}");
        let remembered = bench.ack().last_vouch.get(&from.site).copied();
        assert_eq!(remembered, expect.then_some(Millis(0)), "a vouch is remembered, a refusal is none");
    };
    let named = view(5, 5, Some(&pdx));
    check(named.clone(), None, &pdx, 5, true);
    check(named.clone(), None, &pdx, 4, false);
    check(named.clone(), None, &pdx, 6, false);
    check(named.clone(), None, &member("fra"), 5, false);
    check(named.clone(), None, &instance("pdx", "s2"), 5, false);
    check(named.clone(), Some(view(6, 5, Some(&pdx))), &pdx, 5, false);
    check(named.clone(), Some(view(6, 5, Some(&pdx))), &pdx, 6, false);
    check(voting(named, &[instance("iad", "s0"), pdx.clone()]), None, &pdx, 5, false);
    check(view(5, 5, None), None, &pdx, 5, false);
    check(view(5, 5, Some(&me())), None, &me(), 5, false);
}

/// F-35: a sidecar that lost its memory is mute, and its server stays fenced, also under a view for its own site.
#[test]
fn f_35_a_new_instance_neither_vouches_nor_opens_under_views_of_the_old_one() {
    let old = instance("iad", "s0");
    let mut bench = Bench::starts_with(Disk::default());
    bench.hear(voting(view(5, 5, Some(&old)), &[old.clone(), member("pdx")]), Source::Operator).run_lane();
    bench.forget().tick().run_lane();
    assert_eq!(bench.ack().epoch, Some(5), "it acknowledges whatever it stored");
    assert!(!bench.did("AskPeer") && !bench.did("ConnectOpener") && bench.sidecar.fenced());
}
