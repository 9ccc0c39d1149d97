//! When a holder has let go (safety.md 6).

use super::*;
use crate::authority::{change_settings, note_end, note_proof, release_of_all, start_over};

const IAD: &str = "iad";
const PDX: &str = "pdx";
const FRA: &str = "fra";

/// A leader that was elected long ago and answered its last grant at [`ELECTED`].
fn elected() -> Evidence {
    let mut evidence = Evidence::new(Boot(ELECTED - 600 * SECOND));
    evidence.last_grant = Some(Boot(ELECTED));
    evidence
}

fn heard(record: &Record, acks: &[(u64, Ack)]) -> Evidence {
    let mut evidence = elected();
    for (received, ack) in acks {
        evidence.take(record, ack, Boot(*received), Millis(0));
    }
    evidence
}

/// F-01, F-25, F-27, F-29: the holder's own fenced acknowledgement of this run is enough alone; nothing less is.
#[test]
fn p_22_the_holders_own_fenced_acknowledgement_is_enough_alone() {
    let record = revoked(&[IAD, PDX], 1);
    let check = |ack: Ack, proven: bool| {
        let evidence = heard(&record, &[(ELECTED + 1, ack.clone())]);
        let expect = if proven { Ok(ProofKind::FencedBySidecar) } else { Err(None) };
        assert_eq!(required(&record, &evidence, ELECTED + 1), expect, "{ack:?}");
    };
    check(fenced(&member(IAD), 6), true);
    check(fenced(&member(IAD), 7), true);
    check(fenced(&member(IAD), 5), false);
    check(ack(&member(IAD), 6), false);
    check(Ack { epoch: None, ..fenced(&member(IAD), 6) }, false);
    check(fenced(&instance(IAD, "s2"), 6), false);
}

/// C-62: handed on by a peer it is as good; of several the latest spoken counts, whatever the order they come in.
#[test]
fn c_62_a_relayed_acknowledgement_counts_and_an_overtaken_one_does_not() {
    let record = revoked(&[IAD, PDX], 1);
    let mut evidence = elected();
    evidence.take(&record, &fenced(&member(IAD), 6), Boot(ELECTED + 9000), Millis(2000));
    assert_eq!(required(&record, &evidence, ELECTED + 9000), Ok(ProofKind::FencedBySidecar));

    let opened = ack(&member(IAD), 6);
    evidence.take(&record, &opened, Boot(ELECTED + 9000), Millis(5000));
    assert!(evidence.acknowledged_fenced(&record, &member(IAD)), "spoken before");
    evidence.take(&record, &opened, Boot(ELECTED + 9001), Millis(0));
    assert!(!evidence.acknowledged_fenced(&record, &member(IAD)), "spoken after: somebody opened it by hand");
}

/// F-29: what was said in an earlier run of Revoking says nothing about the next, also if nobody told the evidence so.
#[test]
fn f_29_what_was_said_in_an_earlier_run_does_not_count() {
    let (iad, pdx, fra) = (member(IAD), member(PDX), member(FRA));
    let first = revoked(&[IAD, PDX, FRA], 1);
    let mut evidence = elected();
    evidence.take(&first, &fenced(&iad, 6), Boot(ELECTED), Millis(0));
    evidence.take(&first, &fenced(&pdx, 6), Boot(ELECTED), Millis(0));
    evidence.take(&first, &fenced(&fra, 6), Boot(ELECTED), Millis(0));
    let taken = granted(&first, &pdx, &released(&first));
    let second = revoke(&taken, Cause::Emergency, Wall(0));
    assert_eq!(second.revoked_at, Some(8));

    // The new holder acknowledges the second run through a leader that still holds the record of the grant.
    evidence.take(&taken, &ack(&pdx, 8), Boot(ELECTED + 60_000), Millis(0));
    assert_eq!(required(&second, &evidence, ELECTED + 600_000), Err(None));
    // Two voters acknowledge; the lease counts from what they say now, not from what they said then.
    for voter in [&iad, &fra] {
        evidence.take(&second, &vouched(voter, 8, PDX, 0), Boot(ELECTED + 60_000), Millis(0));
    }
    assert_eq!(required(&second, &evidence, ELECTED + 60_000), Err(Some(ELECTED + 60_000 + RUN_OUT)));
}

/// P-23, C-129: the end of the holder's instance needs nothing else, also for a leader that did not see it.
#[test]
fn p_23_the_end_of_the_holders_instance_is_enough_alone() {
    let record = revoked(&[IAD, PDX, FRA], 1);
    let evidence = Evidence::new(Boot(ELECTED));
    let check = |ended: &Member, expect| {
        assert_eq!(required(&note_end(&record, ended, Wall(0)), &evidence, ELECTED), expect);
    };
    check(&member(IAD), Ok(ProofKind::ProcessEnded));
    check(&member(PDX), Err(None));
    check(&instance(IAD, "s2"), Err(None));
}

/// F-03, C-127: V − k of the other voters, each with its k; fewer leave somebody who may still renew the lease.
#[test]
fn f_03_run_out_needs_so_many_voters_that_the_rest_cannot_renew() {
    const SITES: [&str; 5] = [IAD, PDX, FRA, "syd", "gru"];
    let check = |sites: usize, min_peers: u32, acknowledged: usize, expect: bool| {
        let record = revoked(&SITES[..sites], min_peers);
        let acks: Vec<(u64, Ack)> =
            SITES[1..=acknowledged].iter().map(|site| (ELECTED, ack(&member(site), 6))).collect();
        let proven = required(&record, &heard(&record, &acks), ELECTED + RUN_OUT);
        let expect = if expect { Ok(ProofKind::LeaseExpired) } else { Err(None) };
        assert_eq!(proven, expect, "{sites} sites, minPeers {min_peers}, {acknowledged} acknowledged");
    };
    check(1, 1, 0, true);
    check(2, 1, 0, false);
    check(2, 1, 1, true);
    check(3, 1, 1, false);
    check(3, 1, 2, true);
    check(3, 2, 0, false);
    check(3, 2, 1, true);
    check(4, 2, 1, false);
    check(4, 2, 2, true);
    check(5, 2, 2, false);
    check(5, 2, 3, true);
    check(5, 4, 1, true);
    check(5, 9, 0, false);
}

/// F-03, F-27: only acknowledgements of this run, by the instances of the set, the holder's own not among them.
#[test]
fn f_03_only_the_set_s_own_instances_count_for_run_out() {
    let record = revoked(&[IAD, PDX], 1);
    let check = |ack: Ack, expect: bool| {
        let proven = required(&record, &heard(&record, &[(ELECTED, ack.clone())]), ELECTED + RUN_OUT);
        assert_eq!(proven.is_ok(), expect, "{ack:?}");
    };
    check(ack(&member(PDX), 6), true);
    check(ack(&member(PDX), 5), false);
    check(ack(&instance(PDX, "s2"), 6), false);
    check(ack(&member(IAD), 6), false);
    check(ack(&member(FRA), 6), false);
}

/// F-02: the wait counts from the last grant and from the last vouch that each of them reports, whichever is later.
#[test]
fn f_02_run_out_counts_from_the_last_grant_or_vouch() {
    let record = revoked(&[IAD, PDX, FRA], 2);
    let check = |received: u64, age: Option<u64>, lay: u64, expect: u64| {
        let mut evidence = elected();
        let ack = match age {
            Some(age) => vouched(&member(PDX), 6, IAD, age),
            None => ack(&member(PDX), 6),
        };
        evidence.take(&record, &ack, Boot(ELECTED + received), Millis(lay));
        let until = ELECTED + expect + RUN_OUT;
        assert_eq!(required(&record, &evidence, until - 1), Err(Some(until)), "{received} {age:?} {lay}");
        assert_eq!(required(&record, &evidence, until), Ok(ProofKind::LeaseExpired));
    };
    check(3000, None, 0, 0);
    check(3000, Some(4000), 0, 0);
    check(3000, Some(1000), 0, 2000);
    check(3000, Some(0), 0, 3000);
    // Handed on after lying at a peer for a second.
    check(3000, Some(1000), 1000, 1000);
    // Its vouches to others do not matter, its uptime bounds what it cannot remember.
    let young = Ack { uptime: Millis(500), ..vouched(&member(PDX), 6, FRA, 100) };
    let evidence = heard(&record, &[(ELECTED + 3000, young)]);
    assert_eq!(required(&record, &evidence, ELECTED), Err(Some(ELECTED + 2500 + RUN_OUT)));
}

/// F-02: of more voters than are needed the earliest count, in whatever order they stand in the set.
#[test]
fn f_02_the_earliest_voters_that_suffice_count() {
    let sites = [IAD, PDX, FRA, "syd"];
    let record = revoked(&sites, 2);
    let vouches = [(PDX, 9000), (FRA, 1000), ("syd", 5000)];
    let acks = vouches.map(|(site, at)| (ELECTED + at, vouched(&member(site), 6, IAD, 0)));
    assert_eq!(required(&record, &heard(&record, &acks), ELECTED), Err(Some(ELECTED + 5000 + RUN_OUT)));
}

/// F-02: what a voter said before it stored the revocation is no bound: it may have vouched again.
#[test]
fn f_02_an_acknowledgement_of_an_earlier_epoch_is_no_bound() {
    let record = revoked(&[IAD, PDX], 1);
    let before = vouched(&member(PDX), 5, IAD, 4000);
    let after = vouched(&member(PDX), 6, IAD, 0);
    let evidence = heard(&record, &[(ELECTED + 5000, before), (ELECTED + 8000, after)]);
    assert_eq!(required(&record, &evidence, ELECTED), Err(Some(ELECTED + 8000 + RUN_OUT)));
}

/// F-39: of several acknowledgements of one voter the earliest result stays, however often it restarts.
#[test]
fn f_39_a_crash_looping_voter_does_not_delay_run_out() {
    let record = revoked(&[IAD, PDX], 1);
    let mut evidence = elected();
    evidence.take(&record, &vouched(&member(PDX), 6, IAD, 1000), Boot(ELECTED + 2000), Millis(0));
    for round in 3..20 {
        let restarted = Ack { uptime: Millis(10), ..ack(&member(PDX), 6) };
        evidence.take(&record, &restarted, Boot(ELECTED + round * 1000), Millis(0));
    }
    assert_eq!(required(&record, &evidence, ELECTED), Err(Some(ELECTED + 1000 + RUN_OUT)));
}

/// F-39, P-22: an ended voter counts as acknowledged from its end; one that the leader did not see end, from its election.
#[test]
fn p_22_an_ended_voter_counts_from_its_end() {
    let record = note_end(&revoked(&[IAD, PDX], 1), &member(PDX), Wall(0));
    let mut saw = elected();
    saw.take_end(&member(PDX), Boot(ELECTED + 4000));
    saw.take_end(&member(PDX), Boot(ELECTED + 9000));
    assert_eq!(required(&record, &saw, ELECTED), Err(Some(ELECTED + 4000 + RUN_OUT)));
    saw.take(&record, &ack(&member(IAD), 6), Boot(ELECTED + 9000), Millis(0));
    assert_eq!(required(&record, &saw, ELECTED), Err(Some(ELECTED + 4000 + RUN_OUT)), "it stays remembered");
    saw.take(&record, &vouched(&member(PDX), 6, IAD, 2000), Boot(ELECTED + 4000), Millis(0));
    assert_eq!(required(&record, &saw, ELECTED), Err(Some(ELECTED + 2000 + RUN_OUT)), "it had said better");

    let later = Evidence::new(Boot(ELECTED + 50_000));
    assert_eq!(required(&record, &later, ELECTED), Err(Some(ELECTED + 50_000 + RUN_OUT)));
}

/// F-02, F-13: a new leader counts grants from its own election; its predecessor may have answered until then.
#[test]
fn f_02_a_new_leader_counts_grants_from_its_election() {
    let record = revoked(&[IAD, PDX], 1);
    let mut evidence = Evidence::new(Boot(ELECTED));
    evidence.take(&record, &vouched(&member(PDX), 6, IAD, 60_000), Boot(ELECTED + 1), Millis(0));
    assert_eq!(required(&record, &evidence, ELECTED + 1), Err(Some(ELECTED + RUN_OUT)));
    evidence.last_grant = Some(Boot(ELECTED - 5000));
    assert_eq!(required(&record, &evidence, ELECTED + 1), Err(Some(ELECTED + RUN_OUT)));
}

/// F-33, F-36, C-127: every set that the holder may hold has to be released, with its own k, after the longest lease.
#[test]
fn f_36_run_out_holds_for_every_set_with_its_own_k_and_the_longest_lease() {
    let first = stable(&[IAD, PDX, FRA], 2);
    let longer = Settings { lease_timeout: Millis(60 * SECOND), min_peers: 2 };
    let shorter = Settings { lease_timeout: Millis(5 * SECOND), min_peers: 1 };
    let check = |record: &Record, voters: &[&str], expect: Result<u64, ()>| {
        let record = revoke(record, Cause::Emergency, Wall(0));
        let acks: Vec<(u64, Ack)> = voters.iter().map(|site| (ELECTED, ack(&member(site), record.epoch))).collect();
        let until = required(&record, &heard(&record, &acks), ELECTED).expect_err("not yet");
        assert_eq!(until.ok_or(()), expect.map(|wait| ELECTED + wait), "{voters:?}");
    };
    check(&first, &[PDX], Ok(RUN_OUT));
    // k = 1 in the second set: one acknowledgement is no longer enough, whichever it is.
    let second = change_settings(&first, shorter, Wall(0));
    check(&second, &[PDX], Err(()));
    check(&second, &[PDX, FRA], Ok(RUN_OUT));
    // The longest lease of all counts, first or last.
    check(&change_settings(&first, longer, Wall(0)), &[PDX], Ok(60 * SECOND + 3600));
    check(&change_settings(&change_settings(&first, longer, Wall(0)), settings(2), Wall(0)), &[PDX], Ok(63_600));
    // A voter who is in an old set only still may renew.
    let dropped = with_voters(&stable(&[IAD, PDX, FRA], 1), &members(&[IAD, PDX]));
    check(&dropped, &[PDX], Err(()));
    check(&dropped, &[PDX, FRA], Ok(RUN_OUT));
}

/// Settings of a Revoking epoch, which nobody holds a lease under, change nothing about the proof.
#[test]
fn f_36_settings_changed_while_revoking_do_not_count() {
    let shorter = Settings { lease_timeout: Millis(5 * SECOND), min_peers: 2 };
    let record = change_settings(&revoked(&[IAD, PDX, FRA], 1), shorter, Wall(0));
    let evidence = heard(&record, &[(ELECTED, ack(&member(PDX), 7))]);
    assert_eq!(required(&record, &evidence, ELECTED + RUN_OUT), Err(None));
    let evidence = heard(&record, &[(ELECTED, ack(&member(PDX), 6)), (ELECTED, ack(&member(FRA), 7))]);
    assert_eq!(required(&record, &evidence, ELECTED), Err(Some(ELECTED + RUN_OUT)));
}

/// Who is missing is named: the silent voters and the holder itself.
#[test]
fn f_03_what_is_missing_is_named() {
    let record = revoked(&[IAD, PDX, FRA], 1);
    let evidence = heard(&record, &[(ELECTED, ack(&member(PDX), 6))]);
    let missing = release(&record, &evidence, Policy::Required, at(ELECTED)).expect_err("held");
    assert_eq!(missing.silent, members(&[FRA, IAD]));
    assert_eq!(missing.until, None);
}

/// F-01: only with `BestEffort` is the same time assumed to do; it counts from the revocation and all that is known.
#[test]
fn f_01_only_best_effort_assumes() {
    let record = revoked(&[IAD, PDX, FRA], 1);
    let best = |evidence: &Evidence, boot| proof_at(&record, evidence, Policy::BestEffort, boot);
    // The last grant is long ago: who is silent may have vouched until the revocation.
    let mut evidence = elected();
    evidence.last_grant = None;
    evidence.enter_run(&record, Boot(ELECTED));
    let until = ELECTED + RUN_OUT;
    assert_eq!(best(&evidence, until - 1), Err(Some(until)));
    assert_eq!(best(&evidence, until), Ok(ProofKind::Assumed));
    assert_eq!(required(&record, &evidence, until), Err(None));
    // A later grant or vouch counts.
    evidence.last_grant = Some(Boot(ELECTED + 1000));
    assert_eq!(best(&evidence, until), Err(Some(until + 1000)));
    evidence.take(&record, &vouched(&member(PDX), 6, IAD, 0), Boot(ELECTED + 3000), Millis(0));
    assert_eq!(best(&evidence, until), Err(Some(until + 3000)));
    // In another run nothing of that is known.
    let other = Record { revoked_at: Some(7), epoch: 7, ..record.clone() };
    assert_eq!(proof_at(&other, &evidence, Policy::BestEffort, until * 2), Err(None));
}

/// A proof in the record stays good for every later leader; an assumed one only as long as it is the policy.
#[test]
fn f_33_a_stored_proof_stays_good() {
    let record = revoked(&[IAD, PDX, FRA], 1);
    let nothing = Evidence::new(Boot(ELECTED));
    let proven = note_proof(&record, &released(&record));
    assert_eq!(required(&proven, &nothing, ELECTED), Ok(ProofKind::FencedBySidecar));

    let mut evidence = elected();
    evidence.enter_run(&record, Boot(ELECTED));
    let assumed = release(&record, &evidence, Policy::BestEffort, at(ELECTED + RUN_OUT)).expect("assumed");
    let noted = note_proof(&record, &assumed);
    assert_eq!(proof_at(&noted, &nothing, Policy::BestEffort, ELECTED), Ok(ProofKind::Assumed));
    assert_eq!(required(&noted, &nothing, ELECTED), Err(None));

    let mut foreign = proven;
    foreign.proof.as_mut().expect("a proof").about = member(PDX);
    assert_eq!(required(&foreign, &nothing, ELECTED), Err(None), "it is about somebody else");
}

/// A damaged record without sets proves nothing by time, and nothing at all is proven while authority is given.
#[test]
fn f_05_no_sets_and_no_revocation_are_no_proof() {
    let mut damaged = revoked(&[IAD, PDX], 1);
    damaged.holder.as_mut().expect("a holder").sets.clear();
    let evidence = heard(&damaged, &[(ELECTED, ack(&member(PDX), 6))]);
    assert_eq!(required(&damaged, &evidence, ELECTED * 9), Err(None));
    assert_eq!(proof_at(&damaged, &evidence, Policy::BestEffort, ELECTED), Err(Some(ELECTED + RUN_OUT)));

    let record = note_end(&stable(&[IAD, PDX], 1), &member(IAD), Wall(0));
    assert_eq!(required(&record, &Evidence::new(Boot(0)), ELECTED), Err(None));
}

/// P-22: the way back needs the holder's own acknowledgement of the run, fenced or not; an ended one has no way back.
#[test]
fn p_22_the_way_back_needs_only_the_holders_acknowledgement() {
    let record = revoked(&[IAD, PDX], 1);
    let check = |record: &Record, ack: Ack, expect: bool| {
        let evidence = heard(record, &[(ELECTED, ack.clone())]);
        assert_eq!(return_to_holder(record, &evidence).is_some(), expect, "{ack:?}");
    };
    check(&record, ack(&member(IAD), 6), true);
    check(&with_voters(&record, &members(&[IAD, PDX, FRA])), ack(&member(IAD), 6), true);
    check(&record, ack(&member(IAD), 5), false);
    check(&record, ack(&member(PDX), 6), false);
    check(&record, ack(&instance(IAD, "s2"), 6), false);
    check(&note_end(&record, &member(IAD), Wall(0)), ack(&member(IAD), 6), false);
    check(&stable(&[IAD, PDX], 1), ack(&member(IAD), 6), false);
    assert!(return_to_holder(&record, &Evidence::new(Boot(0))).is_none());
}

/// F-37: without a known holder every present instance is fenced or ended, none is unknown, and a lease has passed.
#[test]
fn f_37_without_a_known_holder_every_site_is_fenced_and_a_lease_has_passed() {
    let record = start_over(41, members(&[IAD, PDX]), settings(1), Cause::RecordBehind, Wall(0));
    let check = |record: &Record, acks: &[Ack], unknown: bool, boot: u64, expect: Result<(), Option<u64>>| {
        let mut evidence = Evidence::new(Boot(ELECTED));
        for ack in acks {
            evidence.take(record, ack, Boot(ELECTED + 1000), Millis(0));
        }
        let found = release_of_all(record, &evidence, unknown, at(boot));
        assert_eq!(found.map(drop).map_err(|missing| missing.until.map(|until| until.0)), expect);
    };
    let both = [fenced(&member(IAD), 42), fenced(&member(PDX), 42)];
    let until = ELECTED + RUN_OUT;
    check(&record, &both, false, until - 1, Err(Some(until)));
    check(&record, &both, false, until, Ok(()));
    check(&record, &both, true, until, Err(None));
    check(&record, &both[..1], false, until, Err(None));
    check(&record, &[both[0].clone(), ack(&member(PDX), 42)], false, until, Err(None));
    check(&record, &[both[0].clone(), fenced(&member(PDX), 41)], false, until, Err(None));
    check(&record, &[both[0].clone(), fenced(&instance(PDX, "s2"), 42)], false, until, Err(None));
    check(&note_end(&record, &member(PDX), Wall(0)), &both[..1], false, until, Ok(()));
    // The youngest sidecar may have forgotten whom it served.
    let young = Ack { uptime: Millis(400), ..both[1].clone() };
    check(&record, &[both[0].clone(), young], false, until, Err(Some(until + 600)));
    // Nobody asked, a known holder, or authority given: not by this rule.
    check(&start_over(41, Vec::new(), settings(1), Cause::Bootstrap, Wall(0)), &[], false, until, Err(None));
    check(&revoked(&[IAD, PDX], 1), &both, false, until, Err(None));
}

/// Memory is bounded: instances that come and go are forgotten unless the record names them.
#[test]
fn strangers_are_forgotten_after_a_lease() {
    let record = stable(&[IAD, PDX], 1);
    let mut evidence = elected();
    evidence.take(&record, &ack(&member(PDX), 5), Boot(ELECTED), Millis(0));
    evidence.take_end(&instance(FRA, "gone"), Boot(ELECTED));
    for pod in 0..100 {
        let stranger = ack(&instance(FRA, &format!("s{pod}")), 5);
        evidence.take(&record, &stranger, Boot(ELECTED + pod * 10_000), Millis(0));
    }
    assert_eq!(evidence.heard.len(), 3, "the voter, and two strangers of the last lease");
    assert!(evidence.heard.contains_key(&member(PDX)) && evidence.ended.is_empty());
}

/// Two words of one moment come in the order in which they were said: the second is the news.
#[test]
fn of_two_words_of_one_moment_the_later_counts() {
    let (record, pdx) = (stable(&["iad", "pdx"], 1), member("pdx"));
    let mut evidence = Evidence::new(Boot(ELECTED));
    for conflict in [false, true, false] {
        evidence.take(&record, &Ack { conflict, ..ack(&pdx, 5) }, Boot(ELECTED), Millis(0));
        assert_eq!(evidence.heard[&pdx].conflict, conflict);
    }
}

/// A voter that said when it last vouched, and has ended, counts from the earlier of the two.
#[test]
fn a_voter_that_spoke_and_ended_counts_from_the_earlier() {
    let pdx = member(PDX);
    let record = note_end(&revoked(&[IAD, PDX], 1), &pdx, Wall(0));
    for (end, vouched_at, since) in [(3, 9, 3), (9, 3, 3), (5, 5, 5)] {
        let mut evidence = heard(&record, &[(ELECTED + vouched_at * SECOND, vouched(&pdx, 6, IAD, 0))]);
        evidence.take_end(&pdx, Boot(ELECTED + end * SECOND));
        let until = Err(Some(ELECTED + since * SECOND + RUN_OUT));
        assert_eq!(required(&record, &evidence, ELECTED), until, "ended {end}, vouched {vouched_at}");
    }
}
