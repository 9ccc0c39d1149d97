//! What others are told: acknowledgements and vouches (safety.md 3 and 4).

use super::*;
use crate::message::QuestionId;

fn ages(ack: &Ack, site: &str) -> Option<u64> {
    ack.last_vouch.get(&Site::new(site)).map(|age| age.0)
}

fn asks(bench: &mut Bench, epoch: Epoch, open: bool) {
    let question = Question { id: QuestionId(7), from: member("pdx"), epoch, open };
    bench.give(Input::AskedToVouch { question, reply: ReplyId(9) });
}

/// F-39, F-02: the age of the last vouch is told, a restarted sidecar tells its uptime: no vouch of it is younger.
#[test]
fn f_39_an_acknowledgement_tells_the_age_of_the_last_vouch() {
    let pdx = Site::new("pdx");
    let mut bench = Bench::under(view(5, 5, Some(&member("pdx"))));
    bench.later(1000);
    asks(&mut bench, 5, false);
    bench.later(3000);
    asks(&mut bench, 4, false);
    assert_eq!(ages(&bench.ack(), "pdx"), Some(3000), "a refusal is no vouch");
    assert_eq!(bench.ack().last_vouch_age(&pdx), Millis(3000));
    assert_eq!(bench.ack().last_vouch_age(&Site::new("fra")), Millis(4000), "its uptime");

    bench.sidecar_restarts().later(500);
    assert_eq!(bench.ack().last_vouch_age(&pdx), Millis(500), "it does not know, so as late as can be");
    assert_eq!(bench.ack().uptime, Millis(500));
}

/// How long ago each voter answered is told, refusals included, strangers excluded.
#[test]
fn the_age_of_the_last_answer_is_told() {
    let mut bench = Bench::named();
    bench.tick().run_lane();
    let (pdx, fra) = (member("pdx"), member("fra"));
    let refusal = Vouch { ok: false, ..answer_to(&bench.question(Some(&pdx)), &pdx) };
    let stranger = Vouch { from: instance("fra", "s2"), ..answer_to(&bench.question(Some(&fra)), &fra) };
    bench.give(Input::Vouched(refusal)).give(Input::Vouched(stranger)).later(700);
    let ack = bench.ack();
    assert_eq!(ack.last_answer.get(&pdx.site), Some(&Millis(700)));
    assert_eq!(ack.last_answer.get(&fra.site), None);
}

/// F-14: the acknowledgement of a view that names a fenced server carries its question; no other does.
#[test]
fn f_14_a_question_rides_on_the_acknowledgement_of_a_named_fenced_server() {
    let check = |seat: Option<&Member>, expect: bool| {
        let mut bench = Bench::under(view(4, 4, None));
        bench.forget().pushed(view(5, 5, seat)).run_lane();
        let rides = bench.out.iter().any(|command| matches!(command, Command::Acknowledge { question: Some(_), .. }));
        assert_eq!(rides, expect);
    };
    check(Some(&me()), true);
    check(Some(&member("pdx")), false);
    check(None, false);

    let mut open = Bench::opened();
    open.pushed(view(6, 5, Some(&me()))).run_lane();
    assert!(open.out.iter().any(|command| matches!(command, Command::Acknowledge { question: None, .. })));
}

/// F-14: the grant that answers such a question opens, and its own push is acknowledged.
#[test]
fn f_14_a_granted_push_opens_and_is_acknowledged() {
    let mut bench = Bench::under(view(4, 4, None));
    bench.forget().pushed(view(5, 5, Some(&me()))).run_lane();
    let question = bench.question(None);
    let grant = Grant { id: question.id, to: me(), view: view(5, 5, Some(&me())), open: Some(word()) };
    bench.forget().give(Input::Granted { grant, reply: Some(ReplyId(77)) }).run_lane();
    assert!(bench.writable());
    assert_eq!(bench.acknowledged().iter().map(|(reply, _)| *reply).collect::<Vec<_>>(), [ReplyId(77)]);
}

/// C-62: acknowledgements of peers are handed on with their age, the newest of each, never one of a lower epoch.
#[test]
fn c_62_peers_acknowledgements_are_handed_on_with_their_age() {
    let relayed = |bench: &Bench| {
        let found = bench.out.iter().rev().find_map(|command| match command {
            Command::Acknowledge { relayed, .. } => Some(relayed.clone()),
            _ => None,
        });
        found.expect("acknowledged")
    };
    let mut bench = Bench::under(view(5, 5, None));
    let newer = Ack { fenced: false, ..ack_of(&member("pdx"), Some(5)) };
    bench.give(Input::PeerAck(Box::new(ack_of(&member("pdx"), Some(5)))));
    bench.later(100).give(Input::PeerAck(Box::new(newer.clone())));
    bench.later(100).give(Input::PeerAck(Box::new(ack_of(&member("pdx"), Some(4)))));
    bench.later(100).pushed(view(5, 5, None)).run_lane();
    assert_eq!(relayed(&bench), [(newer, Millis(200))]);
}

/// A vouch brings the answerer's own acknowledgement, and hands it on.
#[test]
fn c_62_a_vouch_carries_the_answerers_acknowledgement() {
    let mut voter = Bench::under(view(5, 5, Some(&member("pdx"))));
    asks(&mut voter, 5, false);
    assert_eq!(*voter.answers()[0].ack, voter.ack());

    let mut asker = Bench::named();
    asker.tick().run_lane().vouch(&member("pdx"));
    assert_eq!(asker.sidecar.peer_acks.keys().cloned().collect::<Vec<_>>(), [Site::new("pdx")]);
}

/// F-06: before a re-opening a voter reads its set anew: a cached one lacks what the asker wrote last and may have lost.
#[test]
fn f_06_a_voter_answers_a_reopening_with_a_fresh_set() {
    let told = |bench: &Bench| bench.answers().iter().map(|vouch| vouch.gtid.clone()).collect::<Vec<_>>();
    let standby = || {
        let mut bench = Bench::under(view(5, 5, Some(&member("pdx"))));
        bench.forget();
        bench
    };
    let mut bench = standby();
    bench.server.executed = wrote(12);
    asks(&mut bench, 5, true);
    assert_eq!(told(&bench), []);
    bench.lane_done();
    assert_eq!(told(&bench), [Some(wrote(12))]);
    assert!(bench.answers()[0].ok && ages(&bench.ack(), "pdx") == Some(0));

    // A reading that was under way began too early.
    let mut bench = standby();
    bench.tick();
    asks(&mut bench, 5, true);
    bench.lane_done();
    assert_eq!(told(&bench), []);
    bench.server.executed = wrote(12);
    bench.lane_done();
    assert_eq!(told(&bench), [Some(wrote(12))]);

    // Not asked for a set: at once, and without one.
    let mut bench = standby();
    asks(&mut bench, 5, false);
    assert_eq!(told(&bench), [None]);
}

/// F-18: a hanging or dead server at the voter's does not keep the answer back for long.
#[test]
fn f_18_a_voter_whose_server_hangs_answers_with_what_it_has() {
    let mut bench = Bench::under(view(5, 5, Some(&member("pdx"))));
    asks(&mut bench, 5, true);
    bench.later(1499).timer();
    assert_eq!(bench.answers().len(), 0);
    bench.later(1).timer();
    assert_eq!(bench.answers()[0].gtid, Some(wrote(10)));

    let mut bench = Bench::under(view(5, 5, Some(&member("pdx"))));
    asks(&mut bench, 5, true);
    bench.lane_fails();
    assert_eq!(bench.answers()[0].gtid, Some(wrote(10)));

    let mut bench = Bench::under(view(5, 5, Some(&member("pdx"))));
    bench.dies().keeper();
    asks(&mut bench, 5, true);
    assert_eq!((bench.answers()[0].ok, bench.answers()[0].gtid.clone()), (true, None), "no MySQL needed");
}

/// A vouch that waited is decided when it is given: a view heard meanwhile forbids it.
#[test]
fn f_12_a_vouch_that_waited_is_decided_when_it_is_given() {
    let mut bench = Bench::under(view(5, 5, Some(&member("pdx"))));
    asks(&mut bench, 5, true);
    bench.hear(view(6, 5, None), Source::Operator).run_lane();
    assert!(!bench.answers()[0].ok);
    assert_eq!(ages(&bench.ack(), "pdx"), None);
}

/// The executed set in an acknowledgement is one read after the fence; an open or dead server tells none.
#[test]
fn the_set_in_an_acknowledgement_was_read_after_the_fence() {
    let mut bench = Bench::opened();
    assert_eq!(bench.ack().gtid, None);
    bench.server.executed = wrote(33);
    bench.pushed(view(6, 5, None)).run_lane();
    assert_eq!(bench.acknowledged()[0].1.gtid, Some(wrote(33)));
    bench.dies().keeper();
    assert_eq!((bench.ack().gtid, bench.ack().fenced), (None, true));
}

/// Memory is bounded: a hundred ticks without an answer leave no more behind than a lease's worth.
#[test]
fn nothing_grows_without_answers() {
    let mut bench = Bench::named();
    for _ in 0..100 {
        bench.later(5000).tick().run_lane().forget();
    }
    let per_tick = 3;
    assert_eq!(bench.sidecar.asked.len(), 4 * per_tick, "a lease is four ticks long");
    assert!(bench.sidecar.replies.is_empty() && bench.sidecar.vouches_owed.is_empty());
}
