//! Sets against an oracle: one `RangeSetBlaze` of numbers for each (UUID, tag), which knows nothing of this crate.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::fmt::Write;
use std::hash::{Hash, Hasher};
use std::ops::RangeInclusive;

use bloodraven_gtid::{Entry, Gtid, GtidSet, Interval, MAX_NUMBER, Source, Uuid};
use proptest::prelude::*;
use proptest::sample::select;
use range_set_blaze::RangeSetBlaze;

type Key = (Uuid, Option<&'static str>);
type Oracle = BTreeMap<Key, RangeSetBlaze<u64>>;

/// One interval of one source, and how it is spelled.
#[derive(Clone, Debug)]
struct Piece {
    key: Key,
    numbers: RangeInclusive<u64>,
    spelling: Spelling,
}

#[derive(Clone, Debug)]
struct Spelling {
    upper_case: bool,
    uuid_form: u8,
    zeros: usize,
    space: &'static str,
}

fn pieces() -> impl Strategy<Value = Vec<Piece>> {
    // Few servers, tags and numbers, so that pieces meet.
    let uuid = (0..3_u8).prop_map(|last| Uuid::from_bytes([0xab, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, last]));
    let tag = select(vec![None, None, Some("a"), Some("b_1"), Some("_zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz")]);
    let low = (1..60_u64, 0..9_u64).prop_map(|(start, length)| start..=start + length);
    let high = (0..20_u64, 0..9_u64).prop_map(|(below, length)| {
        let end = MAX_NUMBER - below;
        end - length..=end
    });
    let numbers = prop_oneof![9 => low, 1 => high];
    let space = select(vec!["", "", "", " ", "\n", " \t", "\r\n", "\u{b}\u{c}"]);
    let spelling = (any::<bool>(), 0..4_u8, 0..3_usize, space)
        .prop_map(|(upper_case, uuid_form, zeros, space)| Spelling { upper_case, uuid_form, zeros, space });
    let piece = ((uuid, tag), numbers, spelling).prop_map(|(key, numbers, spelling)| Piece { key, numbers, spelling });
    prop::collection::vec(piece, 0..24)
}

fn source((uuid, tag): Key) -> Source {
    Source { uuid, tag: tag.and_then(|tag| tag.parse().ok()) }
}

fn set_of(pieces: &[Piece]) -> GtidSet {
    pieces
        .iter()
        .filter_map(|piece| Some((source(piece.key), Interval::new(*piece.numbers.start(), *piece.numbers.end())?)))
        .collect()
}

fn oracle_of(pieces: &[Piece]) -> Oracle {
    let mut oracle = Oracle::new();
    for piece in pieces {
        oracle.entry(piece.key).or_default().extend([piece.numbers.clone()]);
    }
    oracle
}

/// The oracle of a set: what the set says it is, without any cleaning up.
fn read(set: &GtidSet) -> Vec<(Source, Vec<RangeInclusive<u64>>)> {
    set.iter()
        .map(|Entry { source, intervals }| (source, intervals.iter().map(|i| i.start()..=i.end()).collect()))
        .collect()
}

/// The canonical form of an oracle: sources in order, none empty, ranges as merged as they can be.
fn canonical(oracle: &Oracle) -> Vec<(Source, Vec<RangeInclusive<u64>>)> {
    oracle
        .iter()
        .filter(|(_, numbers)| !numbers.is_empty())
        .map(|(key, numbers)| (source(*key), numbers.ranges().collect()))
        .collect()
}

/// An operation on each source of two oracles.
fn each(
    left: &Oracle,
    right: &Oracle,
    operation: impl Fn(&RangeSetBlaze<u64>, &RangeSetBlaze<u64>) -> RangeSetBlaze<u64>,
) -> Oracle {
    let nothing = RangeSetBlaze::new();
    left.keys()
        .chain(right.keys())
        .map(|key| (*key, operation(left.get(key).unwrap_or(&nothing), right.get(key).unwrap_or(&nothing))))
        .collect()
}

/// The pieces as somebody in a hurry would type them. Neighbours of one UUID may share an entry.
fn spell(pieces: &[Piece]) -> String {
    let mut text = String::from(",");
    let mut entry: Option<Key> = None;
    for Piece { key, numbers, spelling } in pieces {
        let Spelling { upper_case, uuid_form, zeros, space } = spelling;
        let case = |text: String| if *upper_case { text.to_uppercase() } else { text };
        let goes_on = entry.is_some_and(|open| open.0 == key.0 && (open.1 == key.1 || key.1.is_some()));
        if !goes_on {
            let uuid = match uuid_form {
                0 => key.0.to_string().replace('-', ""),
                1 => format!("{{{}}}", key.0),
                _ => key.0.to_string(),
            };
            _ = write!(text, "{space},{}", case(uuid));
        }
        if let Some(tag) = key.1.filter(|_| !goes_on || entry != Some(*key)) {
            _ = write!(text, "{space}:{space}{}", case(tag.to_owned()));
        }
        entry = Some(*key);
        let (start, end) = numbers.clone().into_inner();
        _ = write!(text, ":{space}{}{start}", "0".repeat(*zeros));
        if start != end || *zeros == 1 {
            _ = write!(text, "{space}-{space}{}{end}", "0".repeat(*zeros));
        }
    }
    text
}

fn hash(set: &GtidSet) -> u64 {
    let mut hasher = DefaultHasher::new();
    set.hash(&mut hasher);
    hasher.finish()
}

proptest! {
    #[test]
    fn any_spelling_gives_the_canonical_set(pieces in pieces()) {
        let text = spell(&pieces);
        let set: GtidSet = text.parse().map_err(|error| TestCaseError::fail(format!("{error} in {text:?}")))?;
        prop_assert_eq!(read(&set), canonical(&oracle_of(&pieces)), "from {:?}", text);
        prop_assert_eq!(&set, &set_of(&pieces));
    }

    #[test]
    fn print_and_parse_are_inverse(pieces in pieces()) {
        let set = set_of(&pieces);
        prop_assert_eq!(&set.to_string().parse::<GtidSet>().unwrap(), &set);
        prop_assert_eq!(&set.compact().to_string().parse::<GtidSet>().unwrap(), &set);
        prop_assert_eq!(set.to_string().replace(",\n", ","), set.compact().to_string());
    }

    #[test]
    fn operations_agree_with_the_oracle(left in pieces(), right in pieces()) {
        let (a, b) = (set_of(&left), set_of(&right));
        let (x, y) = (oracle_of(&left), oracle_of(&right));
        prop_assert_eq!(read(&a.union(&b)), canonical(&each(&x, &y, |x, y| x | y)));
        prop_assert_eq!(read(&a.subtract(&b)), canonical(&each(&x, &y, |x, y| x - y)));
        let both = each(&x, &y, |x, y| x & y);
        prop_assert_eq!(read(&a.intersect(&b)), canonical(&both));
        prop_assert_eq!(a.is_disjoint(&b), both.values().all(RangeSetBlaze::is_empty));
        let contained = y.iter().all(|(key, y)| x.get(key).is_some_and(|x| y.is_subset(x)));
        prop_assert_eq!(a.contains(&b), contained);
        prop_assert_eq!(a.strictly_contains(&b), contained && canonical(&x) != canonical(&y));
        prop_assert_eq!(a == b, canonical(&x) == canonical(&y));
    }

    #[test]
    fn counts_agree_with_the_oracle(pieces in pieces()) {
        let set = set_of(&pieces);
        let mut by_uuid = BTreeMap::<Uuid, u128>::new();
        for ((uuid, _), numbers) in oracle_of(&pieces) {
            *by_uuid.entry(uuid).or_default() += numbers.len();
        }
        prop_assert_eq!(set.count(), by_uuid.values().sum::<u128>());
        prop_assert!(set.count_by_uuid().eq(by_uuid.clone()));
        prop_assert!(set.uuids().eq(by_uuid.keys().copied()));
        prop_assert!(by_uuid.iter().all(|(uuid, count)| set.count_of(*uuid) == *count));
    }

    #[test]
    fn inserting_one_by_one_gives_the_same_set(pieces in pieces()) {
        let mut by_interval = GtidSet::new();
        let mut by_gtid = GtidSet::new();
        for piece in &pieces {
            let (start, end) = piece.numbers.clone().into_inner();
            by_interval.insert_interval(source(piece.key), Interval::new(start, end).unwrap());
            for number in piece.numbers.clone() {
                let gtid = Gtid::new(source(piece.key), number).unwrap();
                let was_there = by_gtid.contains_gtid(gtid);
                prop_assert_eq!(by_gtid.insert(gtid), !was_there);
                prop_assert!(by_gtid.contains_gtid(gtid));
            }
        }
        prop_assert_eq!(&by_interval, &set_of(&pieces));
        prop_assert_eq!(&by_gtid, &by_interval);
    }

    #[test]
    fn membership_agrees_with_the_oracle(pieces in pieces(), number in 1..70_u64) {
        let (set, oracle) = (set_of(&pieces), oracle_of(&pieces));
        for piece in &pieces {
            let gtid = Gtid::new(source(piece.key), number).unwrap();
            prop_assert_eq!(set.contains_gtid(gtid), oracle[&piece.key].contains(number));
        }
    }

    #[test]
    fn restriction_keeps_exactly_the_named_servers(pieces in pieces()) {
        let set = set_of(&pieces);
        for keep in 0..8_u8 {
            let kept: Vec<Uuid> = set.uuids().enumerate().filter(|(i, _)| keep >> i & 1 == 1).map(|(_, u)| u).collect();
            let expect: Vec<_> = read(&set).into_iter().filter(|(source, _)| kept.contains(&source.uuid)).collect();
            let mut restricted = set.clone();
            restricted.retain_uuids(&kept);
            prop_assert_eq!(read(&restricted), expect);
        }
    }

    #[test]
    fn the_laws_of_sets_hold(a in pieces(), b in pieces(), c in pieces()) {
        let (a, b, c) = (set_of(&a), set_of(&b), set_of(&c));
        let nothing = GtidSet::new();
        prop_assert_eq!(&a.union(&b), &b.union(&a));
        prop_assert_eq!(&a.intersect(&b), &b.intersect(&a));
        prop_assert_eq!(&a.union(&b).union(&c), &a.union(&b.union(&c)));
        prop_assert_eq!(&a.intersect(&b).intersect(&c), &a.intersect(&b.intersect(&c)));
        prop_assert_eq!(&a.intersect(&b.union(&c)), &a.intersect(&b).union(&a.intersect(&c)));
        prop_assert_eq!(&a.subtract(&b).union(&a.intersect(&b)), &a);
        prop_assert_eq!(&a.subtract(&b.union(&c)), &a.subtract(&b).subtract(&c));
        prop_assert_eq!(&a.subtract(&b.subtract(&c)), &a.subtract(&b).union(&a.intersect(&c)));
        prop_assert_eq!(&a.union(&nothing), &a);
        prop_assert_eq!(&a.subtract(&a), &nothing);
        prop_assert!(a.subtract(&b).is_disjoint(&b));
        prop_assert!(a.union(&b).contains(&a) && a.contains(&a.intersect(&b)) && a.contains(&a.subtract(&b)));
        prop_assert_eq!(a.contains(&b), b.subtract(&a).is_empty());
        prop_assert_eq!(a.is_disjoint(&b), a.intersect(&b).is_empty());
        prop_assert_eq!(a.union(&b).count(), a.count() + b.count() - a.intersect(&b).count());
        prop_assert_eq!(a == b, a.cmp(&b).is_eq());
        prop_assert!(a != b || hash(&a) == hash(&b));
    }

    #[test]
    fn no_text_panics(text in "(\\PC|[0-9a-f:,{}\\-_ \n]){0,80}", cut in 0..200_usize, pieces in pieces()) {
        let mut damaged: String = spell(&pieces).chars().take(cut).collect();
        damaged.push_str(&text);
        for text in [text, damaged] {
            if let Err(error) = text.parse::<GtidSet>() {
                prop_assert!(text.is_char_boundary(error.offset()));
                prop_assert_eq!(error.found(), text[error.offset()..].chars().next());
                let line = text.split('\n').nth(error.line() - 1).unwrap();
                prop_assert!(error.column() <= line.chars().count() + 1);
            }
        }
    }
}
