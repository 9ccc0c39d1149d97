//! The end of an older store by its successor in the same pod (safety.md 3).

use super::*;
use crate::authority::{ended_by_newer_store, note_end, settle};

/// A life of that pod at that site.
fn life(site: &str, pod: &str, store: &str) -> Member {
    Member { site: Site::new(site), instance: Instance::new(pod, store) }
}

/// The record of these voters, the first of them seated.
fn seated(voters: &[Member]) -> Record {
    let mut record = stable(&["iad", "pdx"], 1);
    record.seat = voters.first().cloned();
    record.voters = voters.to_vec();
    let holder = record.holder.as_mut().expect("a holder");
    holder.member = voters[0].clone();
    holder.sets[0].voters = voters.to_vec();
    record
}

fn check(record: &Record, says: &Ack, expect: &[&Member]) {
    let ended = ended_by_newer_store(record, says);
    assert_eq!(ended.iter().collect::<Vec<_>>(), expect, "{}", says.from);
}

/// A voter that lost its store has ended as soon as its successor speaks; fenced or not, it holds nothing.
#[test]
fn f_35_a_newer_store_of_the_same_pod_ends_the_older_voter() {
    let (iad, old, new) = (life("iad", "i", "s1"), life("pdx", "p", "s1"), life("pdx", "p", "s2"));
    let record = seated(&[iad.clone(), old.clone()]);
    check(&record, &ack(&new, 5), &[&old]);
    check(&record, &Ack { epoch: None, ..ack(&new, 5) }, &[&old]);
    check(&note_end(&record, &old, Wall(0)), &ack(&new, 5), &[]);
    check(&record, &ack(&old, 5), &[]);
    check(&record, &ack(&iad, 5), &[]);
}

/// Another pod of the site says nothing about the first: both may live. Nor does the same store id elsewhere.
#[test]
fn f_27_another_pod_ends_nobody() {
    let (iad, old) = (life("iad", "i", "s1"), life("pdx", "p", "s1"));
    let record = seated(&[iad, old]);
    check(&record, &fenced(&life("pdx", "q", "s2"), 5), &[]);
    check(&record, &fenced(&life("fra", "p", "s2"), 5), &[]);
    check(&record, &fenced(&life("fra", "f", "s1"), 5), &[]);
}

/// The holder's server may be open, or about to be: it has ended only when its successor has read it back closed.
#[test]
fn f_28_the_holder_has_ended_only_with_a_fenced_read_back() {
    let (old, new, pdx) = (life("iad", "i", "s1"), life("iad", "i", "s2"), life("pdx", "p", "s1"));
    let record = seated(&[old.clone(), pdx]);
    for record in [record.clone(), revoke(&record, Cause::Instance, Wall(0))] {
        check(&record, &ack(&new, 6), &[]);
        check(&record, &fenced(&new, 6), &[&old]);
        check(&record, &Ack { epoch: None, ..fenced(&new, 6) }, &[&old]);
    }
}

/// An answer of the older store that was under way while its successor was taken in ends nobody.
#[test]
fn f_35_an_older_store_never_ends_its_successor() {
    let (iad, old, new) = (life("iad", "i", "s1"), life("pdx", "p", "s1"), life("pdx", "p", "s2"));
    let record = seated(&[iad.clone(), old.clone()]);
    let taken_in = with_voters(&record, &[iad.clone(), new.clone()]);
    check(&taken_in, &fenced(&old, 5), &[]);
    check(&taken_in, &ack(&new, 6), &[&old]);
    let revoked = revoke(&taken_in, Cause::Emergency, Wall(0));
    check(&revoked, &fenced(&old, 5), &[]);
    check(&note_end(&taken_in, &old, Wall(0)), &fenced(&old, 5), &[]);
    // The same where the holder's own successor was taken in while Revoking, and granted.
    let (next, pdx) = (life("iad", "i", "s2"), life("pdx", "p", "s1"));
    let moving = revoke(&seated(&[iad.clone(), pdx.clone()]), Cause::Instance, Wall(0));
    let moving = with_voters(&moving, &[next.clone(), pdx]);
    check(&moving, &fenced(&iad, 6), &[]);
    check(&moving, &fenced(&next, 7), &[&iad]);
    let moved = settle(&granted(&note_end(&moving, &iad, Wall(0)), &next, &released(&moving)));
    check(&moved, &ack(&next, 8), &[]);
}

/// Who was taken in again while Revoking is listed last, though no set says so: the other one's late answer ends nobody.
#[test]
fn f_35_a_voter_of_the_present_epoch_is_newer_than_any_set() {
    let (iad, one, other) = (life("iad", "i", "s1"), life("pdx", "p", "s1"), life("pdx", "p", "s2"));
    let mut record = seated(&[iad.clone(), one.clone()]);
    let holder = record.holder.as_mut().expect("a holder");
    holder.sets.push(VoterSet { epoch: 6, voters: vec![iad.clone(), other.clone()], settings: record.settings });
    record.epoch = 6;
    let record = with_voters(&revoke(&record, Cause::Emergency, Wall(0)), &[iad, one.clone()]);
    assert_eq!((record.epoch, record.seat.is_some()), (8, false));
    check(&record, &ack(&other, 6), &[]);
    check(&record, &ack(&one, 8), &[&other]);
}

/// Who has ended speaks for nobody, also where it is the newer of two: its answer was on its way when its end was seen.
#[test]
fn f_35_an_instance_that_has_ended_ends_nobody() {
    let (iad, one, other) = (life("iad", "i", "s1"), life("pdx", "p", "s1"), life("pdx", "p", "s2"));
    let record = with_voters(&seated(&[iad.clone(), one.clone()]), &[iad, other.clone()]);
    check(&record, &ack(&other, 6), &[&one]);
    check(&note_end(&record, &other, Wall(0)), &ack(&other, 6), &[]);
}

/// Of two that one epoch lists neither is the older, so neither ends the other.
#[test]
fn f_35_of_two_stores_listed_at_once_neither_ends_the_other() {
    let (iad, one, other) = (life("iad", "i", "s1"), life("pdx", "p", "s1"), life("pdx", "p", "s2"));
    let record = seated(&[iad, one.clone(), other.clone()]);
    check(&record, &fenced(&one, 5), &[]);
    check(&record, &fenced(&other, 5), &[]);
}
