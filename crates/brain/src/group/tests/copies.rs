//! The two stored copies: what they come to, and when memory may be written over them.

use super::{running, set};
use crate::group::kept::{Anchor, Kept};
use crate::name::Site;
use crate::record::{Phase, Record};

#[test]
fn what_belongs_to_an_earlier_tenure_is_not_taken_for_the_present_one() {
    let stage = running(&["iad", "pdx"]);
    let before = stage.store.clone();
    assert!(before.promotion.is_some());
    let mut granted = before.record.clone().expect("a record");
    (granted.epoch, granted.tenure, granted.phase) = (granted.epoch + 2, granted.epoch + 2, Phase::Granting);
    let joined = Kept::join(Anchor { record: Some(granted.clone()), ..Anchor::default() }, before.clone());
    assert_eq!(joined.record, Some(granted), "the annotation took it, the status did not");
    assert_eq!(joined.promotion, None, "nothing is opened before its own replication is cut");
    let voters = Record { epoch: before.epoch() + 1, ..before.record.clone().expect("a record") };
    let joined = Kept::join(Anchor { record: Some(voters), ..Anchor::default() }, before.clone());
    assert_eq!(joined.promotion, before.promotion, "a voter change is the same tenure");
    assert_eq!(Kept::join(Anchor::default(), before.clone()), before);
}

/// The same record with another seat under the same epoch.
fn of_another_seat(record: &Record) -> Record {
    let other = record.voters.iter().find(|voter| Some(*voter) != record.seat.as_ref()).expect("another voter");
    Record { seat: Some(other.clone()), ..record.clone() }
}

#[test]
fn memory_is_written_over_a_copy_that_was_spoilt_while_the_other_one_says_what_is_known() {
    let known = running(&["iad", "pdx"]).store.clone();
    let record = known.record.clone().expect("a record");
    let spoilt = Anchor { record: Some(of_another_seat(&record)), ..known.anchor() };
    let set_back = Anchor { record: Some(Record { epoch: record.epoch - 1, ..record.clone() }), ..known.anchor() };
    for anchor in [Some(&known.anchor()), Some(&spoilt), Some(&set_back), Some(&Anchor::default()), None] {
        assert!(known.is_told_by(anchor, Some(&known)), "{anchor:?}");
    }
    let spoilt = Kept { record: Some(of_another_seat(&record)), ..known.clone() };
    for status in [Some(&spoilt), None] {
        assert!(known.is_told_by(Some(&known.anchor()), status), "{status:?}");
    }
}

#[test]
fn memory_is_not_written_over_copies_that_say_something_else() {
    let known = running(&["iad", "pdx"]).store.clone();
    let record = known.record.clone().expect("a record");
    let ahead = Anchor { record: Some(Record { epoch: record.epoch + 1, ..record.clone() }), ..known.anchor() };
    assert!(!known.is_told_by(Some(&ahead), Some(&known)), "a write of its own that it was not told of looks the same");
    assert!(!known.is_told_by(Some(&ahead), None));
    assert!(!known.is_told_by(None, None), "nobody says what is stored");
    let spoilt = Anchor { record: Some(of_another_seat(&record)), ..known.anchor() };
    let more = Kept { unapplied: set("1:1-3"), ..known.clone() };
    assert!(!known.is_told_by(Some(&spoilt), Some(&more)), "the copy that is left is not what is known");
    assert!(!known.is_told_by(None, Some(&more)));
    let mut sites = known.clone();
    sites.site_mut(&Site::new("pdx")).tainted = true;
    assert!(!known.is_told_by(Some(&known.anchor()), Some(&sites)), "both can be read, and they know of a taint");
}
