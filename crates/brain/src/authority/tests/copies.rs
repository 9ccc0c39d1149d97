//! Two stored copies of one record (safety.md 2, F-05).

use super::*;
use crate::authority::{contradict, drop_fence_note, drop_sets, join, note_end, note_proof, settle};
use crate::record::{Phase, Record, Settings};

/// F-05: the higher epoch is the record, whole.
#[test]
fn f_05_the_higher_epoch_wins_whole() {
    let lower = note_end(&stable(&["iad", "pdx"], 1), &member("pdx"), Wall(0));
    let higher = revoked(&["iad", "pdx"], 1);
    assert_eq!(join(lower.clone(), higher.clone()), higher);
    assert_eq!(join(higher.clone(), lower), higher);
}

/// F-05: at equal epochs Stable beats Granting, and what either knows of sets, ends, proofs and fences is joined.
#[test]
fn f_05_at_equal_epochs_nothing_that_either_copy_knows_is_lost() {
    let revoked = revoked(&["iad", "pdx"], 1);
    let granting = granted(&revoked, &member("iad"), &way_back(&revoked));
    let stable = settle(&granting);
    for (one, other) in [(granting.clone(), stable.clone()), (stable.clone(), granting.clone())] {
        assert_eq!(join(one, other), stable);
    }

    let mut knows = note_end(&stable, &member("pdx"), Wall(0));
    knows.holder.as_mut().expect("a holder").sql_fence_sent = true;
    let mut forgot = stable.clone();
    let holder = forgot.holder.as_mut().expect("a holder");
    holder.sets.remove(0);
    holder.server_uuid = None;
    for (one, other) in [(knows.clone(), forgot.clone()), (forgot, knows.clone())] {
        assert_eq!(join(one, other), knows);
    }

    let proven = note_proof(&revoked, &released(&revoked));
    for (one, other) in [(proven.clone(), revoked.clone()), (revoked, proven.clone())] {
        assert_eq!(join(one, other), proven);
    }
}

/// What one leader stores under one epoch, in any order, is no contradiction; nor are two epochs.
#[test]
fn copies_of_one_history_never_contradict() {
    let revoked = revoked(&["iad", "pdx"], 1);
    let granting = granted(&revoked, &member("iad"), &way_back(&revoked));
    let stable = settle(&granting);
    let later = [
        stable.clone(),
        note_end(&stable, &member("pdx"), Wall(0)),
        drop_sets(&stable, &[1]),
        drop_fence_note(&stable),
        granting,
    ];
    for (one, other) in later.iter().flat_map(|one| later.iter().map(move |other| (one, other))) {
        assert!(!contradict(one, other), "{one:?} {other:?}");
    }
    assert!(!contradict(&revoked, &note_proof(&revoked, &released(&revoked))));
    assert!(!contradict(&revoked, &stable), "another epoch is another record");
}

/// What an epoch settles has one value under it: a copy that has another one is nobody's.
#[test]
fn copies_that_differ_in_what_their_epoch_settles_contradict() {
    type Row = (&'static str, fn(&mut Record));
    let stable = stable(&["iad", "pdx"], 1);
    let rows: [Row; 8] = [
        ("seat", |record| record.seat = Some(member("pdx"))),
        ("no seat", |record| record.seat = None),
        ("holder", |record| record.holder.as_mut().expect("a holder").member = member("pdx")),
        ("no holder", |record| record.holder = None),
        ("phase", |record| record.phase = Phase::Revoking),
        ("tenure", |record| record.tenure += 1),
        ("voters", |record| record.voters = vec![member("iad")]),
        ("settings", |record| record.settings = Settings { min_peers: 9, ..record.settings }),
    ];
    for (what, change) in rows {
        let mut other = stable.clone();
        change(&mut other);
        assert!(contradict(&stable, &other) && contradict(&other, &stable), "{what}");
    }
}
