//! GTID sets from arbitrary bytes: parsing never panics, errors point into the text, and whatever parses obeys the laws of
//! sets.
//!
//! In: bytes; a `|` separates two texts. Out: nothing, or a panic with the law that broke.

#![no_main]

use bloodraven_gtid::{Entry, Gtid, GtidSet, Interval, Tag, Uuid};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let (left, right) = text.split_once('|').unwrap_or((&text, ""));
    _ = (left.parse::<Gtid>(), left.parse::<Uuid>(), left.parse::<Tag>());
    if let (Some(left), Some(right)) = (parse(left), parse(right)) {
        check_one(&left);
        check_two(&left, &right);
        check_two(&right, &left);
    }
});

fn parse(text: &str) -> Option<GtidSet> {
    match text.parse() {
        Ok(set) => Some(set),
        Err(error) => {
            assert_eq!(error.found(), text[error.offset()..].chars().next(), "{error} in {text:?}");
            let line = text.split('\n').nth(error.line() - 1).expect("the line exists");
            assert!((1..=line.chars().count() + 1).contains(&error.column()), "{error} in {text:?}");
            None
        }
    }
}

fn check_one(set: &GtidSet) {
    assert_eq!(set.to_string().parse().as_ref(), Ok(set), "print, then parse");
    assert_eq!(set.compact().to_string().parse().as_ref(), Ok(set), "print on one line, then parse");
    assert_eq!(set.is_empty(), set.count() == 0);
    assert_eq!(set.count(), set.count_by_uuid().map(|(_, count)| count).sum());

    let entries: Vec<Entry<'_>> = set.iter().collect();
    assert!(entries.is_sorted_by(|a, b| a.source < b.source), "sources ascend");
    assert!(entries.iter().all(|entry| !entry.intervals.is_empty()), "no source is empty");
    let has_gap = |a: &Interval, b: &Interval| a.end() + 1 < b.start();
    assert!(entries.iter().all(|entry| entry.intervals.is_sorted_by(has_gap)), "gaps between intervals");

    let mut backwards = GtidSet::new();
    for entry in entries.iter().rev() {
        for interval in entry.intervals.iter().rev() {
            let first = Gtid::new(entry.source, interval.start()).expect("in range");
            assert!(set.contains_gtid(first) && backwards.insert(first) && !backwards.insert(first));
            backwards.insert_interval(entry.source, *interval);
        }
    }
    assert_eq!(&backwards, set, "inserted backwards");
}

fn check_two(a: &GtidSet, b: &GtidSet) {
    let (union, difference, common) = (a.union(b), a.subtract(b), a.intersect(b));
    assert_eq!(union, b.union(a), "union commutes");
    assert_eq!(common, b.intersect(a), "intersection commutes");
    assert_eq!(difference.union(&common), *a, "(A - B) | (A & B) = A");
    assert_eq!(difference.union(b), union, "(A - B) | B = A | B");
    assert_eq!(union.subtract(b), difference, "(A | B) - B = A - B");
    assert!(difference.is_disjoint(b), "A - B has nothing of B");
    assert!(union.contains(a) && a.contains(&common) && a.contains(&difference));
    assert_eq!(a.contains(b), b.subtract(a).is_empty());
    assert_eq!(a.is_disjoint(b), common.is_empty());
    assert_eq!(a.strictly_contains(b), a.contains(b) && a != b);
    assert_eq!(union.count() + common.count(), a.count() + b.count());
    assert_eq!(union.to_string().parse(), Ok(union), "results are canonical");

    let both: GtidSet = format!("{a},{b}").parse().expect("two sets with a comma between are a set");
    assert_eq!(both, a.union(b), "a comma is a union");
    let known: Vec<Uuid> = b.uuids().collect();
    let mut kept = a.clone();
    kept.retain_uuids(&known);
    assert_eq!(kept.count(), known.iter().map(|uuid| a.count_of(*uuid)).sum());
}
