//! Two stored copies of one record (safety.md 2, F-05).

use super::*;
use crate::authority::{join, note_end, note_proof, settle};

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
