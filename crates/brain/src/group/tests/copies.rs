//! The two stored copies: what they come to, and when memory may be written over them.

use super::{running, set};
use crate::authority::Answer;
use crate::fence::ReplyId;
use crate::group::command::Command;
use crate::group::copies::Found;
use crate::group::input::Saved;
use crate::group::kept::{Anchor, Kept};
use crate::group::save::Plan;
use crate::group::{Group, Input};
use crate::message::{Question, QuestionId};
use crate::name::Site;
use crate::record::{Phase, Record};
use crate::time::Millis;

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

/// Whether `known` is told by copies whose status was left as `left`.
fn told(known: &Kept, anchor: Option<&Anchor>, status: Option<&Kept>, left: &Kept) -> bool {
    let of_anchor = anchor.and_then(|anchor| anchor.record.as_ref()).map_or(0, |record| record.epoch);
    let epoch = of_anchor.max(status.map_or(0, Kept::epoch));
    known.is_told_by(Found { anchor, status, epoch, left: Some(left) })
}

#[test]
fn memory_is_written_over_a_copy_that_was_spoilt_while_the_other_one_says_what_is_known() {
    let known = running(&["iad", "pdx"]).store.clone();
    let record = known.record.clone().expect("a record");
    let spoilt = Anchor { record: Some(of_another_seat(&record)), ..known.anchor() };
    let set_back = Anchor { record: Some(Record { epoch: record.epoch - 1, ..record.clone() }), ..known.anchor() };
    let elsewhere = Kept::default();
    for anchor in [Some(&known.anchor()), Some(&spoilt), Some(&set_back), Some(&Anchor::default()), None] {
        assert!(told(&known, anchor, Some(&known), &elsewhere), "{anchor:?}");
    }
    let spoilt = Kept { record: Some(of_another_seat(&record)), ..known.clone() };
    for status in [Some(&spoilt), None] {
        assert!(told(&known, Some(&known.anchor()), status, &elsewhere), "{status:?}");
    }
}

/// A record that stands in the annotation alone, because the status follows later, and the status as it was left.
fn ahead_of_its_status() -> (Kept, Kept) {
    let left = running(&["iad", "pdx"]).store.clone();
    let record = left.record.clone().expect("a record");
    let (epoch, tenure) = (record.epoch + 2, record.epoch + 2);
    (Kept { record: Some(Record { epoch, tenure, ..record }), ..left.clone() }, left)
}

#[test]
fn memory_is_written_over_an_annotation_that_says_less_while_the_status_is_as_it_was_left() {
    let (known, left) = ahead_of_its_status();
    let spoilt_one = left.record.as_ref().map(of_another_seat);
    let contradicting = Anchor { record: spoilt_one, ..left.anchor() };
    let of_another_seat = Anchor { record: known.record.as_ref().map(of_another_seat), ..known.anchor() };
    let without_its_promotion = Anchor { promotion: None, ..known.anchor() };
    let rows = [&left.anchor(), &contradicting, &of_another_seat, &without_its_promotion, &Anchor::default()];
    for anchor in rows.into_iter().map(Some).chain([None]) {
        assert!(told(&known, anchor, Some(&left), &left), "{anchor:?}");
        let touched = Kept { unapplied: set("1:1-3"), ..left.clone() };
        assert!(!told(&known, anchor, Some(&touched), &left), "the status was changed, too: {anchor:?}");
        assert!(!told(&known, anchor, None, &left), "nobody says what is stored: {anchor:?}");
    }
}

#[test]
fn memory_is_not_written_over_copies_that_say_something_else() {
    let known = running(&["iad", "pdx"]).store.clone();
    let record = known.record.clone().expect("a record");
    let ahead = Anchor { record: Some(Record { epoch: record.epoch + 1, ..record.clone() }), ..known.anchor() };
    let told = |anchor, status| told(&known, anchor, status, &known);
    assert!(!told(Some(&ahead), Some(&known)), "a write of its own that it was not told of looks the same");
    assert!(!told(Some(&ahead), None));
    assert!(!told(None, None), "nobody says what is stored");
    let spoilt = Anchor { record: Some(of_another_seat(&record)), ..known.anchor() };
    let more = Kept { unapplied: set("1:1-3"), ..known.clone() };
    assert!(!told(Some(&spoilt), Some(&more)), "the copy that is left is not what is known");
    assert!(!told(None, Some(&more)));
    let mut sites = known.clone();
    sites.site_mut(&Site::new("pdx")).tainted = true;
    assert!(!told(Some(&known.anchor()), Some(&sites)), "both can be read, and they know of a taint");
}

#[test]
fn memory_is_never_written_over_a_higher_epoch_even_if_nothing_else_of_that_copy_can_be_read() {
    let known = running(&["iad", "pdx"]).store.clone();
    let found = |epoch| Found { anchor: None, status: Some(&known), epoch, left: Some(&known) };
    assert!(known.is_told_by(found(known.epoch())));
    assert!(!known.is_told_by(found(known.epoch() + 1)));
}

#[test]
fn what_was_stored_and_heard_of_epochs_outlives_a_doubt() {
    let mut stage = running(&["iad", "pdx"]);
    let (stored, until) = (stage.store.clone(), stage.group.leads_until);
    // Somebody put an older record back, and nobody is there to say so but the one that it names.
    let before = stored.record.clone().expect("a record");
    let (epoch, from) = (before.epoch - 1, before.seat.clone().expect("a seat"));
    stage.store.record = Some(Record { epoch, ..before });
    stage.actors.values_mut().for_each(|actor| actor.sidecar = false);
    stage.tell(Input::Leads(None));
    stage.tell(Input::Leads(until));
    let question = Question { id: QuestionId(7), from, epoch, open: false };
    let answer = stage.group.step(stage.now, Input::Asked { question, reply: ReplyId(1) }).commands;
    let granted = |command: &Command| matches!(command, Command::Answer { answer: Some(answer), .. } if matches!(**answer, Answer::Grant(_)));
    assert!(!answer.iter().any(granted), "{answer:?}");
}

#[test]
fn what_is_refused_for_certain_brings_no_doubt_and_what_was_owed_before_stays_owed() {
    let mut stage = running(&["iad", "pdx"]);
    let kept = stage.group.kept().expect("known");
    let mut more = Kept::clone(&kept);
    more.site_mut(&Site::new("pdx")).tainted = true;
    let save = |group: &mut Group, now| {
        let commands = group.step(now, Input::Tick).commands;
        commands.into_iter().find_map(|command| if let Command::Save { id, .. } = command { Some(id) } else { None })
    };
    stage.group.owed = Some(Box::new(more.clone()));
    let id = save(&mut stage.group, stage.now).expect("a save");
    stage.group.step(stage.now, Input::Saved { id, saved: Saved::Denied });
    assert_eq!(stage.group.kept(), Some(kept));
    assert_eq!(stage.group.owed, Some(Box::new(more)));
    assert_eq!(save(&mut stage.group, stage.now), None, "not at once");
    stage.now.boot = stage.now.boot + Millis::from_secs(1);
    assert!(save(&mut stage.group, stage.now).is_some(), "but soon");
}

#[test]
fn what_is_owed_from_before_holds_no_decision_up() {
    let kept = running(&["iad", "pdx"]).store;
    let record = kept.record.clone().expect("a record");
    let owed = Kept { record: Some(Record { ended: vec![], voters: vec![], ..record.clone() }), ..kept.clone() };
    let mut plan = Plan::new(&kept, Some(Box::new(owed)));
    assert!(!plan.record_changed());
    plan.set_record(Record { epoch: record.epoch + 1, ..record });
    assert!(plan.record_changed());
}
