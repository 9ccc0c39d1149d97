//! What may follow upon what (safety.md 2 and 5).

use super::*;
use crate::authority::{
    Fresh, Refused, change_settings, drop_fence_note, drop_sets, note_end, note_proof, release_of_all,
    release_of_fresh, settle, start_over,
};
use crate::record::Ended;

/// F-01, F-05: a revocation is a new epoch without a seat; the holder and its sets stay, the proof has to be new.
#[test]
fn f_01_a_revocation_keeps_the_holder_and_needs_a_new_proof() {
    let taken = granted(&revoked(&["iad", "pdx"], 1), &member("pdx"), &released(&revoked(&["iad", "pdx"], 1)));
    assert_eq!(taken.proof.as_ref().map(|proof| proof.kind), Some(ProofKind::FencedBySidecar));
    let next = revoke(&settle(&taken), Cause::Planned, Wall(9));
    assert_eq!((next.epoch, next.seat.clone(), next.phase), (8, None, Phase::Revoking));
    assert_eq!((next.revoked_at, next.proof.clone(), next.cause), (Some(8), None, Cause::Planned));
    assert_eq!(next.holder, taken.holder);
    assert_eq!(next.tenure, taken.tenure);
}

/// Revoked again within the run: its first epoch stays what acknowledgements are measured by, and a proof stays found.
#[test]
fn a_second_revocation_belongs_to_the_same_run() {
    let first = revoked(&["iad", "pdx"], 1);
    let again = revoke(&note_proof(&first, &released(&first)), Cause::Planned, Wall(0));
    assert_eq!((again.epoch, again.revoked_at), (7, Some(6)));
    assert!(again.proof.is_some());
    assert_eq!(required(&again, &Evidence::new(Boot(0)), 0), Ok(ProofKind::FencedBySidecar), "for a new leader, too");
}

/// F-01: no grant but out of the run that the release was found in, to a listed instance that has not ended.
#[test]
fn f_01_a_grant_needs_a_release_of_this_run_and_a_listed_target() {
    let record = revoked(&["iad", "pdx", "fra"], 1);
    let release = released(&record);
    let pdx = member("pdx");
    let check = |record: &Record, to: &Member, release: &Release, expect: Option<Refused>| {
        assert_eq!(grant(record, to, release, Cause::Emergency, Wall(0)).err(), expect);
    };
    check(&record, &pdx, &release, None);
    check(&with_voters(&record, &members(&["iad", "pdx"])), &pdx, &release, None);
    check(&stable(&["iad", "pdx", "fra"], 1), &pdx, &release, Some(Refused::NotThisRun));
    let next_run = revoke(&granted(&record, &pdx, &release), Cause::Emergency, Wall(0));
    check(&next_run, &member("fra"), &release, Some(Refused::NotThisRun));
    check(&record, &instance("pdx", "s2"), &release, Some(Refused::NotListed));
    check(&note_end(&record, &pdx, Wall(0)), &pdx, &release, Some(Refused::NotListed));
    check(&record, &pdx, &way_back(&record), Some(Refused::NotReleased));
    check(&record, &member("iad"), &way_back(&record), None);
}

/// F-33: another holder begins with its own set; the same instance keeps its old sets beside the new one.
#[test]
fn f_33_only_a_grant_to_another_instance_replaces_the_sets() {
    let record = revoked(&["iad", "pdx"], 1);
    for release in [released(&record), way_back(&record)] {
        let back = granted(&record, &member("iad"), &release);
        assert_eq!(set_epochs(&back), [5, 7]);
        assert_eq!((back.epoch, back.tenure, back.phase, back.revoked_at), (7, 7, Phase::Granting, None));
        assert_eq!(back.holder.and_then(|holder| holder.server_uuid).as_deref(), Some("a"));
    }
    let away = grant(&record, &member("pdx"), &released(&record), Cause::Emergency, Wall(9)).expect("granted");
    assert_eq!((set_epochs(&away), away.since, away.cause), (vec![7], Wall(9), Cause::Emergency));
    let holder = away.holder.expect("a holder");
    assert_eq!((holder.member, holder.server_uuid), (member("pdx"), None));
}

/// F-44: an SQL fence that was noted is forgotten with a grant to another instance, not with one back to the same: sent
/// before it, the statement may still arrive.
#[test]
fn f_44_the_note_of_an_sql_fence_lasts_until_another_instance_is_granted() {
    let mut record = stable(&["iad", "pdx"], 1);
    record.holder.as_mut().expect("a holder").sql_fence_sent = true;
    let sent = |record: &Record| record.holder.as_ref().is_some_and(|holder| holder.sql_fence_sent);
    let revoked = revoke(&record, Cause::Regrant, Wall(0));
    assert!(sent(&revoked) && sent(&with_voters(&record, &members(&["iad", "pdx", "fra"]))));
    let back = granted(&revoked, &member("iad"), &way_back(&revoked));
    assert!(sent(&back) && sent(&settle(&back)));
    assert!(!sent(&granted(&revoked, &member("pdx"), &released(&revoked))));
}

/// F-44: the note goes when it is taken off, under the same epoch; nothing else changes.
#[test]
fn f_44_the_note_of_an_sql_fence_is_taken_off_under_the_same_epoch() {
    let mut record = stable(&["iad", "pdx"], 1);
    let without = record.clone();
    record.holder.as_mut().expect("a holder").sql_fence_sent = true;
    assert_eq!(drop_fence_note(&record), without);
    assert_eq!(drop_fence_note(&without), without);
}

/// Granting becomes Stable under the same epoch; nothing else does.
#[test]
fn only_granting_becomes_stable() {
    let record = revoked(&["iad", "pdx"], 1);
    let taken = granted(&record, &member("pdx"), &released(&record));
    assert_eq!(settle(&taken), Record { phase: Phase::Stable, ..taken.clone() });
    assert_eq!(settle(&record), record);
}

/// F-41, F-33: a voter or settings epoch keeps tenure and seat, is stored among the sets, and drops the old grant's proof.
#[test]
fn f_41_a_voter_epoch_keeps_the_tenure_and_is_stored_among_the_sets() {
    let revoked = revoked(&["iad", "pdx"], 1);
    let record = settle(&granted(&revoked, &member("pdx"), &released(&revoked)));
    let longer = Settings { lease_timeout: Millis(60 * SECOND), min_peers: 2 };
    for next in [with_voters(&record, &members(&["iad", "pdx", "fra"])), change_settings(&record, longer, Wall(0))] {
        assert_eq!((next.epoch, next.tenure, next.phase), (8, 7, Phase::Stable));
        assert_eq!((next.seat.clone(), set_epochs(&next)), (record.seat.clone(), vec![7, 8]));
        let newest = next.holder.as_ref().and_then(|holder| holder.sets.last()).expect("a set");
        assert_eq!((&newest.voters, newest.settings), (&next.voters, next.settings));
        assert_eq!(next.proof, None);
    }
    // A move under way keeps its own cause.
    let causes =
        |record: &Record| (with_voters(record, &record.voters).cause, change_settings(record, longer, Wall(0)).cause);
    assert_eq!(causes(&record), (Cause::Voters, Cause::Lease));
    assert_eq!(causes(&revoked), (Cause::Emergency, Cause::Emergency));
}

/// the shortcut is for the very beginning of a group whose every site never held anything.
#[test]
fn r_25_only_a_group_that_was_never_anything_is_released_at_once() {
    let begun = |highest| start_over(highest, members(&["iad", "pdx"]), settings(1), Cause::Bootstrap, Wall(0));
    let site = |own_volume, never_started, says_empty| Fresh { own_volume, never_started, says_empty };
    let (never, empty) = (site(true, true, false), site(true, false, true));
    let rows = [
        (0, vec![never, empty], true),
        (0, vec![empty, site(true, true, true)], true),
        (0, vec![], false),
        (0, vec![empty, site(false, true, true)], false),
        (0, vec![empty, site(true, false, false)], false),
        (1, vec![never, empty], false),
    ];
    for (highest, sites, expect) in rows {
        let released = release_of_fresh(&begun(highest), &sites);
        assert_eq!(released.is_some(), expect, "{highest} {sites:?}");
        let granted = released.map(|release| grant(&begun(0), &member("pdx"), &release, Cause::Bootstrap, Wall(0)));
        assert!(granted.is_none_or(|granted| granted.is_ok()));
    }
    let held = Record { holder: stable(&["iad", "pdx"], 1).holder, ..begun(0) };
    assert!(release_of_fresh(&held, &[never, empty]).is_none());
    assert!(release_of_fresh(&Record { phase: Phase::Stable, ..begun(0) }, &[never, empty]).is_none());
}

/// F-35: while Revoking a voter epoch is one more epoch of the run: the holder, its sets and a found proof stay.
#[test]
fn f_35_while_revoking_the_holders_sets_do_not_grow() {
    let record = revoked(&["iad", "pdx"], 1);
    let record = note_proof(&record, &released(&record));
    let newcomer = instance("pdx", "s2");
    let next = with_voters(&record, &[member("iad"), newcomer.clone()]);
    assert_eq!((next.epoch, next.phase, next.revoked_at), (7, Phase::Revoking, Some(6)));
    assert_eq!((&next.holder, &next.proof), (&record.holder, &record.proof));
    assert!(next.lists(&newcomer) && next.lists(&member("pdx")), "the old voter is still in a set");
}

/// Never fewer voters than the holder and one more, unless there never were as many; and the holder stays.
#[test]
fn voters_are_never_fewer_than_the_holder_and_one_more() {
    let check = |record: &Record, voters: &[&str], expect: Option<Refused>| {
        assert_eq!(change_voters(record, members(voters), Wall(0)).err(), expect, "{voters:?}");
    };
    let three = stable(&["iad", "pdx", "fra"], 1);
    check(&three, &["iad", "pdx"], None);
    check(&three, &["iad"], Some(Refused::TooFewVoters));
    check(&three, &[], Some(Refused::TooFewVoters));
    check(&three, &["pdx", "fra"], Some(Refused::HolderMissing));
    check(&revoked(&["iad", "pdx", "fra"], 1), &["pdx", "fra"], None);
    check(&revoked(&["iad"], 1), &["iad"], None);
    check(&revoked(&["iad"], 1), &[], Some(Refused::TooFewVoters));
}

/// F-43: an end is written down for instances of the record, once, and forgotten with the last mention of them.
#[test]
fn f_43_an_end_is_remembered_as_long_as_the_record_names_the_instance() {
    let record = stable(&["iad", "pdx", "fra"], 1);
    let fra = member("fra");
    let ended = note_end(&record, &fra, Wall(3));
    assert_eq!(ended.ended, [Ended { member: fra.clone(), at: Wall(3) }]);
    assert_eq!(ended.epoch, record.epoch);
    assert_eq!(note_end(&ended, &fra, Wall(4)), ended, "the first time stays");
    assert_eq!(note_end(&record, &instance("fra", "s2"), Wall(3)), record, "listed nowhere");

    let without = with_voters(&ended, &members(&["iad", "pdx"]));
    assert!(without.has_ended(&fra), "an old set still names it");
    assert_eq!(drop_sets(&without, &[5]).ended, []);
}

/// F-34: only the sets named are dropped, and never the newest.
#[test]
fn f_34_the_newest_set_is_never_dropped() {
    let record = with_voters(&stable(&["iad", "pdx", "fra"], 1), &members(&["iad", "pdx"]));
    let record = with_voters(&record, &members(&["iad", "fra"]));
    let check = |gone: &[Epoch], expect: &[Epoch]| assert_eq!(set_epochs(&drop_sets(&record, gone)), expect);
    check(&[], &[5, 6, 7]);
    check(&[5], &[6, 7]);
    check(&[6], &[5, 7]);
    check(&[5, 6, 7], &[7]);
}

/// F-37: a record that went back starts above everything heard, with nobody as the holder.
#[test]
fn f_37_a_group_without_a_record_starts_above_every_epoch_heard() {
    let record = start_over(41, members(&["iad", "pdx"]), settings(1), Cause::RecordBehind, Wall(0));
    assert_eq!((record.epoch, record.revoked_at, record.phase), (42, Some(42), Phase::Revoking));
    assert_eq!((record.seat, record.holder), (None, None));
}

/// F-37: a release without a known holder is about the voters it was found with, and no others.
#[test]
fn f_37_a_release_of_all_does_not_cover_voters_who_came_later() {
    let record = start_over(41, members(&["iad"]), settings(1), Cause::Bootstrap, Wall(0));
    let mut evidence = Evidence::new(Boot(ELECTED));
    evidence.take(&record, &fenced(&member("iad"), 42), Boot(ELECTED), Millis(0));
    let release = release_of_all(&record, &evidence, false, at(ELECTED + RUN_OUT)).expect("released");
    let wider = with_voters(&record, &members(&["iad", "pdx"]));
    let check = |record| grant(record, &member("iad"), &release, Cause::Bootstrap, Wall(0)).err();
    assert_eq!(check(&record), None);
    assert_eq!(check(&wider), Some(Refused::NotThisRun));
}

/// F-37: epochs never wrap: at the end of the numbers the same one comes again, and contradicts what was stored.
#[test]
fn f_37_epochs_do_not_wrap() {
    let last = Record { epoch: Epoch::MAX, ..stable(&["iad", "pdx"], 1) };
    let next = revoke(&last, Cause::Emergency, Wall(0));
    assert_eq!(next.epoch, Epoch::MAX);
    assert!(next.view().conflicts_with(&last.view()));
    assert_eq!(start_over(Epoch::MAX, Vec::new(), settings(1), Cause::RecordBehind, Wall(0)).epoch, Epoch::MAX);
}

/// A proof is written down once, in its own run only; one that was only assumed gives way to a better one.
#[test]
fn the_first_proof_stays_unless_it_was_assumed() {
    let record = revoked(&["iad", "pdx", "fra"], 1);
    let fenced = released(&record);
    let kind = |record: &Record| record.proof.as_ref().map(|proof| proof.kind);
    let mut evidence = Evidence::new(Boot(ELECTED));
    evidence.enter_run(&record, Boot(ELECTED));
    let assumed = release(&record, &evidence, Policy::BestEffort, at(ELECTED + RUN_OUT)).expect("assumed");
    let noted = note_proof(&record, &assumed);
    assert_eq!(kind(&noted), Some(ProofKind::Assumed));
    assert_eq!(kind(&note_proof(&noted, &fenced)), Some(ProofKind::FencedBySidecar));
    assert_eq!(kind(&note_proof(&note_proof(&record, &fenced), &assumed)), Some(ProofKind::FencedBySidecar));
    assert_eq!(kind(&note_proof(&record, &way_back(&record))), None);
    let other = revoke(&granted(&record, &member("pdx"), &fenced), Cause::Emergency, Wall(0));
    assert_eq!(kind(&note_proof(&other, &fenced)), None);
    assert_eq!(kind(&note_proof(&stable(&["iad", "pdx"], 1), &fenced)), None);
}

/// A grant back says that an SQL fence was sent only if one was.
#[test]
fn a_grant_back_invents_no_sql_fence() {
    let mut record = revoked(&["iad", "pdx"], 1);
    for sent in [false, true] {
        record.holder.as_mut().expect("a holder").sql_fence_sent = sent;
        let next = granted(&record, &member("iad"), &way_back(&record));
        assert_eq!(next.holder.map(|holder| holder.sql_fence_sent), Some(sent));
    }
}
