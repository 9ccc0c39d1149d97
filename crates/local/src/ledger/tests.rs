//! The ledger on made-up histories: every verdict can fail, and none fails on what is right.

use super::{Book, Evidence, Moment, Outcome, Reading, SiteNumber, Tenure, Verdict, Write};
use bloodraven_gtid::GtidSet;
use std::collections::BTreeMap;

const IAD: SiteNumber = SiteNumber(0);
const PDX: SiteNumber = SiteNumber(1);
const FRA: SiteNumber = SiteNumber(2);
const SECOND: u64 = 1_000_000;

/// A book of three sites: iad held authority from the beginning, pdx from 10 s on.
fn moved_once() -> Book {
    let mut book = Book::new(3);
    book.seen(Tenure { number: 2, site: IAD, from: Moment(0) });
    book.seen(Tenure { number: 4, site: PDX, from: Moment(10 * SECOND) });
    book
}

fn write(id: u64, site: SiteNumber, sent: u64, ended: u64) -> Write {
    let outcome = Outcome::Acknowledged;
    Write { id, door: true, site: Some(site), sent: Moment(sent), ended: Moment(ended), outcome }
}

/// What a look at 100 s found; sites that are not named did not answer.
fn evidence(primary: SiteNumber, found: &[(SiteNumber, &[u64])]) -> Evidence {
    let readings = found.iter().map(|(site, ids)| (*site, Reading { found: ids.iter().copied().collect() }));
    Evidence {
        began: Moment(100 * SECOND),
        primary: Some(primary),
        readings: readings.collect(),
        executed: Some(GtidSet::new()),
        ..Evidence::default()
    }
}

fn judge(book: &mut Book, evidence: &Evidence) -> Verdict {
    book.judge(evidence, Moment(100 * SECOND))
}

#[test]
fn what_is_on_the_primary_is_kept_and_what_is_everywhere_is_settled() {
    let mut book = moved_once();
    book.enter(write(1, IAD, SECOND, SECOND + 1)).unwrap();
    book.enter(write(2, PDX, 11 * SECOND, 11 * SECOND + 1)).unwrap();
    let verdict = judge(&mut book, &evidence(PDX, &[(IAD, &[1]), (PDX, &[1, 2]), (FRA, &[1])]));
    assert!(verdict.is_clean(), "{verdict}");
    assert_eq!((verdict.acknowledged, book.open()), (2, 1));
    let verdict = judge(&mut book, &evidence(PDX, &[(IAD, &[2]), (PDX, &[2]), (FRA, &[2])]));
    assert!(verdict.is_clean(), "{verdict}");
    assert_eq!((verdict.acknowledged, book.open()), (2, 0));
    assert_eq!(book.moves(), 1);
}

#[test]
fn a_write_that_is_nowhere_is_lost() {
    let mut book = moved_once();
    book.enter(write(1, IAD, SECOND, SECOND + 1)).unwrap();
    let verdict = judge(&mut book, &evidence(PDX, &[(IAD, &[]), (PDX, &[]), (FRA, &[])]));
    assert_eq!((verdict.lost, verdict.missing_examples.as_slice()), (1, &[1][..]));
    assert!(!verdict.is_clean());
}

#[test]
fn a_write_on_another_site_needs_a_report() {
    let mut book = moved_once();
    book.enter(write(1, IAD, SECOND, SECOND + 1)).unwrap();
    let mut seen = evidence(PDX, &[(IAD, &[1]), (PDX, &[]), (FRA, &[])]);
    let verdict = judge(&mut book, &seen);
    assert_eq!((verdict.unreported, verdict.missing(), verdict.is_clean()), (1, 1, false));
    seen.reports = BTreeMap::from([(FRA, 5), (IAD, 0)]);
    assert_eq!(judge(&mut book, &seen).unreported, 1, "another site's report says nothing about it");
    seen.reports = BTreeMap::from([(IAD, 1)]);
    let verdict = judge(&mut book, &seen);
    assert_eq!((verdict.reported, verdict.missing(), verdict.is_clean()), (1, 0, true));
    // The site is copied anew: the write is gone, people were told.
    let verdict = judge(&mut book, &evidence(PDX, &[(IAD, &[]), (PDX, &[]), (FRA, &[])]));
    assert_eq!((verdict.reported, verdict.lost, verdict.is_clean()), (1, 0, true));
}

#[test]
fn a_write_on_a_silent_site_is_open_until_it_answers() {
    let mut book = moved_once();
    book.enter(write(1, IAD, SECOND, SECOND + 1)).unwrap();
    let verdict = judge(&mut book, &evidence(PDX, &[(PDX, &[]), (FRA, &[])]));
    assert_eq!((verdict.stranded, verdict.missing(), verdict.is_clean()), (1, 0, false));
    let verdict = judge(&mut book, &evidence(PDX, &[(IAD, &[1]), (PDX, &[1]), (FRA, &[])]));
    assert!(verdict.is_clean(), "{verdict}");
}

#[test]
fn without_a_primary_nothing_is_called_lost_and_nothing_clean() {
    let mut book = moved_once();
    book.enter(write(1, IAD, SECOND, SECOND + 1)).unwrap();
    for seen in [evidence(PDX, &[(IAD, &[]), (FRA, &[])]), Evidence { primary: None, ..evidence(PDX, &[(PDX, &[])]) }] {
        let verdict = judge(&mut book, &seen);
        assert_eq!((verdict.lost, verdict.is_clean()), (0, false));
    }
}

#[test]
fn a_write_that_ended_after_the_look_began_is_not_judged() {
    let mut book = moved_once();
    book.enter(write(1, PDX, 99 * SECOND, 101 * SECOND)).unwrap();
    let verdict = judge(&mut book, &evidence(PDX, &[(IAD, &[]), (PDX, &[]), (FRA, &[])]));
    assert!(verdict.is_clean(), "{verdict}");
    assert_eq!(book.open(), 1);
}

#[test]
fn a_write_that_was_entered_after_the_look_began_is_not_judged_either() {
    let mut book = moved_once();
    book.enter(write(1, PDX, 11 * SECOND, 11 * SECOND + 1)).unwrap();
    let ranges = book.open_ranges();
    book.enter(write(2, PDX, 99 * SECOND, 99 * SECOND + 1)).unwrap();
    let seen = evidence(PDX, &[(IAD, &[]), (PDX, &[1]), (FRA, &[])]);
    let verdict = judge(&mut book, &Evidence { asked: Some(ranges), ..seen.clone() });
    assert_eq!(verdict.lost, 0, "nobody was asked for the second one");
    assert_eq!(judge(&mut book, &seen).lost, 1, "here everybody was");
}

#[test]
fn wrong_side_is_what_was_sent_after_a_newer_tenure_had_acknowledged() {
    // (who, sent, ended) of a write beside one that pdx acknowledged at 11 s under its tenure of 10 s.
    let rows = [
        (IAD, 9 * SECOND, 9 * SECOND + 1, 0, "before anything of the new tenure"),
        (IAD, 10 * SECOND + 1, 10 * SECOND + 2, 0, "before the new tenure's first acknowledgement"),
        (IAD, 11 * SECOND, 12 * SECOND, 0, "crossed on its way to the client"),
        (IAD, 11 * SECOND + 1, 12 * SECOND, 1, "sent after it"),
        (PDX, 12 * SECOND, 13 * SECOND, 0, "its own"),
        (PDX, 9 * SECOND, 9 * SECOND + 1, 1, "before it had any tenure"),
        (FRA, 9 * SECOND, 9 * SECOND + 1, 1, "never had one"),
    ];
    for (site, sent, ended, wrong, why) in rows {
        let mut book = moved_once();
        book.enter(write(1, PDX, 11 * SECOND - 5, 11 * SECOND)).unwrap();
        book.enter(write(2, site, sent, ended)).unwrap();
        let everywhere = evidence(PDX, &[(IAD, &[1, 2]), (PDX, &[1, 2]), (FRA, &[1, 2])]);
        assert_eq!(judge(&mut book, &everywhere).wrong_side, wrong, "{why}");
        // Both are settled now, and the verdict stays.
        assert_eq!(book.open(), 0, "{why}");
        let verdict = judge(&mut book, &everywhere);
        assert_eq!((verdict.wrong_side, verdict.is_clean()), (wrong, wrong == 0), "{why}, settled");
    }
}

#[test]
fn what_a_person_let_through_is_counted_apart_and_only_until_the_server_is_closed() {
    let mut book = Book::new(3);
    book.seen(Tenure { number: 2, site: IAD, from: Moment(0) });
    book.hand.opens(PDX, Moment(1000));
    for (id, sent) in [(1, 900), (2, 1100), (3, 1500), (4, 1700)] {
        book.enter(write(id, PDX, sent, sent + 50)).unwrap();
    }
    book.enter(write(5, FRA, 1100, 1150)).unwrap();
    book.hand.closed(PDX, Moment(1600));
    let told = |verdict: &Verdict| (verdict.wrong_side, verdict.opened_by_hand);
    let verdict = judge(&mut book, &evidence(IAD, &[]));
    assert_eq!(told(&verdict), (3, 2), "before, after, and elsewhere is wrong");
    assert!(!verdict.is_clean() && verdict.to_string().contains("2 by a server that a person had opened"));

    // One that is not closed again is excused for a moment, not for ever.
    let mut book = Book::new(3);
    book.seen(Tenure { number: 2, site: IAD, from: Moment(0) });
    book.hand.opens(PDX, Moment(0));
    for (id, sent) in [(1, 4_900_000), (2, 5_100_000)] {
        book.enter(write(id, PDX, sent, sent + 50)).unwrap();
    }
    assert_eq!(told(&judge(&mut book, &evidence(IAD, &[]))), (1, 1));
}

#[test]
fn a_site_that_got_authority_back_is_right_again() {
    let mut book = moved_once();
    book.enter(write(1, PDX, 11 * SECOND, 11 * SECOND + 1)).unwrap();
    let seen = evidence(IAD, &[(IAD, &[1, 2]), (PDX, &[1, 2]), (FRA, &[1, 2])]);
    // The first write is settled and forgotten but for its moment.
    judge(&mut book, &seen);
    book.enter(write(2, IAD, 21 * SECOND, 21 * SECOND + 1)).unwrap();
    assert_eq!(judge(&mut book, &Evidence { primary: None, ..seen.clone() }).wrong_side, 1);
    book.seen(Tenure { number: 6, site: IAD, from: Moment(20 * SECOND) });
    assert_eq!(judge(&mut book, &seen).wrong_side, 0);
    assert_eq!(book.moves(), 2);
}

#[test]
fn what_a_later_primary_had_received_must_be_there() {
    let uuid = "0a11fa47-71ca-11e1-9e33-c80aa9429562";
    let set = |text: &str| text.replace('A', uuid).parse().unwrap();
    let mut book = moved_once();
    let mut seen = evidence(PDX, &[(IAD, &[]), (PDX, &[]), (FRA, &[])]);
    seen.executed = Some(set("A:1-8"));
    seen.received = BTreeMap::from([(PDX, set("A:1-10"))]);
    let verdict = judge(&mut book, &seen);
    assert_eq!((verdict.received_and_lost, verdict.is_clean()), (2, false));
    seen.divergent = set("A:9");
    assert_eq!(judge(&mut book, &seen).received_and_lost, 1);
    seen.executed = Some(set("A:1-20"));
    assert_eq!(judge(&mut book, &seen).received_and_lost, 0);
    // A site that never became primary owes nothing.
    seen.executed = Some(set("A:1-8"));
    seen.received = BTreeMap::from([(FRA, set("A:1-10"))]);
    assert_eq!(judge(&mut book, &seen).received_and_lost, 0);
}

#[test]
fn a_primary_that_does_not_tell_what_it_executed_leaves_the_judgement_open() {
    let mut book = moved_once();
    let seen = evidence(PDX, &[(IAD, &[]), (PDX, &[]), (FRA, &[])]);
    assert!(judge(&mut book, &seen).is_clean());
    let verdict = judge(&mut book, &Evidence { executed: None, ..seen });
    assert!(!verdict.is_clean() && verdict.incomplete.is_some(), "{verdict}");
}

#[test]
fn the_gap_is_the_longest_silence_at_the_front_door_after_a_mark() {
    let mut book = Book::new(3);
    book.seen(Tenure { number: 2, site: IAD, from: Moment(0) });
    let mut id = 0;
    let mut acknowledged = |book: &mut Book, at: u64, door: bool| {
        id += 1;
        book.enter(Write { door, ..write(id, IAD, at, at) }).unwrap();
    };
    for at in [1000, 1013, 1030] {
        acknowledged(&mut book, at, true);
    }
    book.gaps.mark("kill mysqld iad", Moment(1040));
    acknowledged(&mut book, 1500, false);
    assert_eq!(book.gaps.latest(Moment(1630)).map(|gap| (gap.longest_us, gap.over)), Some((600, false)));
    acknowledged(&mut book, 1730, true);
    acknowledged(&mut book, 1740, true);
    let gap = book.gaps.latest(Moment(1741)).unwrap();
    assert_eq!((gap.after.as_str(), gap.longest_us, gap.over), ("kill mysqld iad", 700, true));
    assert!(book.gaps.has_begun());
    book.gaps.switched_off();
    assert_eq!(book.gaps.silence(Moment(9000)), 0);
    acknowledged(&mut book, 9000, true);
    assert_eq!(book.gaps.longest(Moment(9001)), 700);
    book.gaps.switched_on();
    assert!(!book.gaps.has_begun(), "nobody knows yet whether the door is open");
    acknowledged(&mut book, 9500, true);
    assert!(book.gaps.has_begun());
}

#[test]
fn refused_and_unknown_writes_are_counted_and_not_owed() {
    let mut book = moved_once();
    for (id, outcome) in [(1, Outcome::Refused), (2, Outcome::Unknown), (3, Outcome::Unknown)] {
        book.enter(Write { outcome, ..write(id, IAD, SECOND, SECOND) }).unwrap();
    }
    let verdict = judge(&mut book, &evidence(PDX, &[(IAD, &[]), (PDX, &[]), (FRA, &[])]));
    assert_eq!((verdict.acknowledged, verdict.refused, verdict.unknown), (0, 1, 2));
    assert!(verdict.is_clean(), "{verdict}");
}

#[test]
fn ranges_name_each_writer_once() {
    let mut book = Book::new(3);
    for id in [(7 << 32) + 5, (7 << 32) + 9, (8 << 32) + 1] {
        book.enter(write(id, IAD, 1, 1)).unwrap();
    }
    assert_eq!(book.open_ranges(), [((7 << 32) + 5, (7 << 32) + 9), ((8 << 32) + 1, (8 << 32) + 1)]);
}

#[test]
fn the_summary_names_what_matters() {
    let verdict = Verdict { acknowledged: 9123, longest_gap_us: 6_240_000, ..Verdict::default() };
    let clean = "9123 acknowledged, 0 lost, 0 wrong-side, 0 received and lost, longest gap 6.2 s";
    assert_eq!(verdict.to_string(), clean);
    let verdict = Verdict { reported: 3, stranded: 2, longest_gap_us: 41_999, ..verdict };
    assert!(verdict.to_string().ends_with("gap 41 ms, 3 reported as divergent, 2 on a site that does not answer"));
}
