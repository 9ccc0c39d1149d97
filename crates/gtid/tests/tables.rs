//! The rules of reading, printing and combining sets, as tables.
//!
//! In the tables `A`, `B` and `C` stand for three UUIDs in ascending order, so that a row fits a line.

#![expect(clippy::panic, reason = "the checks panic to fail the test that calls them")]

use bloodraven_gtid::{Gtid, GtidSet, Interval, MAX_NUMBER, MAX_TEXT_BYTES, ParseError, Problem, Source, Tag, Uuid};

const UUIDS: [(&str, &str); 3] = [
    ("A", "0a11fa47-71ca-11e1-9e33-c80aa9429562"),
    ("B", "b9c1d51f-2f5a-11ef-8d5e-0242ac120002"),
    ("C", "c0ffee00-0000-0000-0000-000000000001"),
];

/// Writes the UUIDs out.
fn long(short: &str) -> String {
    UUIDS.iter().fold(short.to_owned(), |text, (letter, uuid)| text.replace(letter, uuid))
}

/// The opposite of [`long`].
fn short(long: &str) -> String {
    UUIDS.iter().fold(long.to_owned(), |text, (letter, uuid)| text.replace(uuid, letter))
}

fn set(text: &str) -> GtidSet {
    long(text).parse().unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

fn gtid(text: &str) -> Gtid {
    long(text).parse().unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

fn uuid(letter: &str) -> Uuid {
    long(letter).parse().unwrap_or_else(|error| panic!("{letter:?}: {error}"))
}

fn refusal<T: std::str::FromStr<Err = ParseError> + std::fmt::Debug>(text: &str) -> ParseError {
    match long(text).parse::<T>() {
        Ok(value) => panic!("{text:?} was taken for {value:?}"),
        Err(error) => error,
    }
}

#[test]
fn a_set_is_read_and_printed_as_the_server_does() {
    let check = |input: &str, expect: &str| assert_eq!(short(&set(input).to_string()), expect, "from {input:?}");

    // Nothing, in many ways.
    for nothing in ["", " ", "\n", ",", " , ,, ", "A", "A ,A", "A:t", "A:t:u", "A:5-3", "A:1-0", "A:t:5-3", "A:5-3,"] {
        check(nothing, "");
    }
    // Entries, commas and white space.
    check("A:1", "A:1");
    check(",A:1,,A:2,", "A:1-2");
    check("A:1 ,\n, ", "A:1");
    check("\tA\n:\r1\u{b}-\u{c}2 : 5 ", "A:1-2:5");
    check("B:1,A:1", "A:1,\nB:1");
    check("A:5-3,B:1", "B:1");
    check("A,B:1", "B:1");
    // Numbers.
    check("A:007", "A:7");
    check(&format!("A:{}1-02", "0".repeat(60)), "A:1-2");
    check("A:9223372036854775806", "A:9223372036854775806");
    check("A:1-9223372036854775806", "A:1-9223372036854775806");
    check("A:9223372036854775806-3:4", "A:4");
    // Intervals: overlapping, adjacent, nested, repeated, unsorted.
    check("A:1-3:2-8:20:19", "A:1-8:19-20");
    check("A:1-3,A:4-6", "A:1-6");
    check("A:4-6,A:1-3", "A:1-6");
    check("A:1-10:3-4", "A:1-10");
    check("A:3-4:1-10", "A:1-10");
    check("A:7:7:7", "A:7");
    check("A:1:3", "A:1:3");
    check("A:9:7:5:3:1:2:4:6:8", "A:1-9");
    // Tags govern what follows, up to the next tag or the end of the entry.
    check("A:t:1:2-3:u:5", "A:t:1-3:u:5");
    check("A:1-3:5:foo:1-4:bar:7", "A:1-3:5:bar:7:foo:1-4");
    check("A:t:1,A:5", "A:5:t:1");
    check("A:t:1-2:u:3-4:t:7", "A:t:1-2:7:u:3-4");
    check("A:t:5-3:u:4", "A:u:4");
    check("A:1:t", "A:1");
    check("A: T : 1", "A:t:1");
    check("A:T:1:t:2", "A:t:1-2");
    check("A:Z:1:a:1:_:1:z9:1:z_:1:z:1:zz:1", "A:_:1:a:1:z:1:z9:1:z_:1:zz:1");
    check(&format!("A:{}:1", "X".repeat(32)), &format!("A:{}:1", "x".repeat(32)));
    check("A:t:1,B:u:2:t:1:3", "A:t:1,\nB:t:1:3:u:2");
    check("A:t:1:3:u:1,A:w:1", "A:t:1:3:u:1:w:1");
    check("A:e:1", "A:e:1"); // a tag that could be a hexadecimal digit
}

#[test]
fn a_uuid_is_read_in_every_spelling_of_the_server() {
    let dashed = "0a11fa47-71ca-11e1-9e33-c80aa9429562";
    let bare = dashed.replace('-', "");
    for spelling in
        [dashed.to_owned(), dashed.to_uppercase(), bare.clone(), bare.to_uppercase(), format!("{{{dashed}}}")]
    {
        assert_eq!(spelling.parse(), Ok(uuid("A")), "{spelling}");
        assert_eq!(format!("{spelling}:1").parse(), Ok(set("A:1")), "{spelling}");
    }
    assert_eq!(uuid("A").to_string(), dashed);
}

#[test]
fn a_malformed_set_is_refused_with_the_place_and_what_was_expected() {
    let check = |input: &str, expect: &str| assert_eq!(refusal::<GtidSet>(input).to_string(), expect, "from {input:?}");

    check("x", "expected a hexadecimal digit of a UUID, found 'x' at byte 0");
    check("-", "expected a hexadecimal digit of a UUID, found '-' at byte 0");
    check(":1", "expected a hexadecimal digit of a UUID, found ':' at byte 0");
    check("\"A:1\"", "expected a hexadecimal digit of a UUID, found '\"' at byte 0");
    check("automatic", "expected a hexadecimal digit of a UUID, found 'u' at byte 1");
    check("\u{feff}A:1", "expected a hexadecimal digit of a UUID, found '\\u{feff}' at byte 0");
    check("3e11fa47", "expected a hexadecimal digit of a UUID, found the end at byte 8");
    check("3e11fa47-71ca", "expected '-' in the UUID, found the end at byte 13");
    check("3e11fa47-71ca11e19e33c80aa9429562:1", "expected '-' in the UUID, found '1' at byte 13");
    check("3e11fa4771ca-11e1", "expected a hexadecimal digit of a UUID, found '-' at byte 12");
    check("{3e11fa4771ca", "expected '-' in the UUID, found '7' at byte 9");
    check("{A:1", "expected '}' after the UUID, found ':' at byte 37");
    check("{ A}", "expected a hexadecimal digit of a UUID, found ' ' at byte 1");
    check("A}:1", "expected ':', ',' or the end, found '}' at byte 36");
    check("A0:1", "expected ':', ',' or the end, found '0' at byte 36");
    check("A\0:1", "expected ':', ',' or the end, found '\\0' at byte 36");
    check("A:", "expected a number or a tag, found the end at byte 37");
    check("A:,B:1", "expected a number or a tag, found ',' at byte 37");
    check("A::1", "expected a number or a tag, found ':' at byte 37");
    check("A:-1", "expected a number or a tag, found '-' at byte 37");
    check("A:é:1", "expected a number or a tag, found 'é' at byte 37");
    check("A:1:", "expected a number or a tag, found the end at byte 39");
    check("A:t:", "expected a number or a tag, found the end at byte 39");
    check("A:t-u:1", "expected ':', ',' or the end, found '-' at byte 38");
    check("A:t u:1", "expected ':', ',' or the end, found 'u' at byte 39");
    check("A:9t:1", "expected '-', ':', ',' or the end, found 't' at byte 38");
    check("A:1 2", "expected '-', ':', ',' or the end, found '2' at byte 39");
    check("A:1.5", "expected '-', ':', ',' or the end, found '.' at byte 38");
    check("A:1\u{a0}", "expected '-', ':', ',' or the end, found '\\u{a0}' at byte 38");
    check("A:1-2-3", "expected ':', ',' or the end, found '-' at byte 40");
    check("A:1-", "expected a number, found the end at byte 39");
    check("A:1--2", "expected a number, found '-' at byte 39");
    check("A:1-+2", "expected a number, found '+' at byte 39");
    let range = "number out of range (1 to 9223372036854775806)";
    for number in ["0", "0-0", "0-5", "9223372036854775807", "9223372036854775807-3", "18446744073709551616"] {
        check(&format!("A:{number}"), &format!("{range} at byte 37"));
    }
    check("A:1-9223372036854775807", &format!("{range} at byte 39"));
    check(&format!("A:1-1{}", "0".repeat(100)), &format!("{range} at byte 39"));
    check(&format!("A:{}:1", "t".repeat(33)), "tag longer than 32 characters at byte 37");
    // On several lines.
    check("A:1,\nB:2 3", "expected '-', ':', ',' or the end, found '3' at byte 79 (line 2, column 40)");
    check("A:1,\n\n  é", "expected a hexadecimal digit of a UUID, found 'é' at byte 43 (line 3, column 3)");
}

#[test]
fn a_text_is_read_up_to_the_stated_length() {
    let check = |length: usize, expect: Result<GtidSet, Problem>| {
        let text = " ".repeat(length);
        assert_eq!(text.parse::<GtidSet>().map_err(|error| error.problem()), expect, "{length} bytes");
    };
    check(MAX_TEXT_BYTES, Ok(GtidSet::new()));
    check(MAX_TEXT_BYTES + 1, Err(Problem::TextTooLong));
    // The bound may fall inside a character.
    let text = format!(" {}", "é".repeat(MAX_TEXT_BYTES / 2));
    assert_eq!(refusal::<GtidSet>(&text).offset(), MAX_TEXT_BYTES - 1);
}

#[test]
fn single_values_are_read_and_refused() {
    let check = |input: &str, expect: &str| assert_eq!(short(&gtid(input).to_string()), expect, "from {input:?}");
    check("A:1", "A:1");
    check(" A : 01 \n", "A:1");
    check("A: T : 9223372036854775806", "A:t:9223372036854775806");

    let check = |error: ParseError, expect: &str| assert_eq!(error.to_string(), expect);
    check(refusal::<Gtid>("A"), "expected ':', found the end at byte 36");
    check(refusal::<Gtid>("A:"), "expected a number or a tag, found the end at byte 37");
    check(refusal::<Gtid>("A:t"), "expected ':', found the end at byte 38");
    check(refusal::<Gtid>("A:t:u:1"), "expected a number, found 'u' at byte 39");
    check(refusal::<Gtid>("A:1-2"), "expected the end, found '-' at byte 38");
    check(refusal::<Gtid>("A:1,"), "expected the end, found ',' at byte 38");
    check(refusal::<Gtid>("A:0"), "number out of range (1 to 9223372036854775806) at byte 37");
    check(refusal::<Uuid>("A "), "expected the end, found ' ' at byte 36");
    check(refusal::<Uuid>(""), "expected a hexadecimal digit of a UUID, found the end at byte 0");
    let tag = "expected a tag (a letter or '_', then letters, digits and '_')";
    check(refusal::<Tag>(""), &format!("{tag}, found the end at byte 0"));
    check(refusal::<Tag>("9"), &format!("{tag}, found '9' at byte 0"));
    check(refusal::<Tag>("a-b"), "expected the end, found '-' at byte 1");
    check(refusal::<Tag>(&"a".repeat(33)), "tag longer than 32 characters at byte 0");
}

#[test]
fn a_number_out_of_range_makes_no_value() {
    let source = Source::from(uuid("A"));
    for (start, end, is_valid) in [
        (1, 1, true),
        (1, MAX_NUMBER, true),
        (MAX_NUMBER, MAX_NUMBER, true),
        (0, 1, false),
        (0, 0, false),
        (2, 1, false),
        (1, MAX_NUMBER + 1, false),
        (u64::MAX, u64::MAX, false),
    ] {
        assert_eq!(Interval::new(start, end).is_some(), is_valid, "{start}-{end}");
        assert_eq!(Gtid::new(source, start).is_some(), (1..=MAX_NUMBER).contains(&start), "{start}");
    }
}

#[test]
fn two_sets_combine() {
    let check = |left: &str, right: &str, [union, subtract, intersect]: [&str; 3]| {
        let (a, b) = (set(left), set(right));
        assert_eq!(short(&a.union(&b).compact().to_string()), union, "{left} | {right}");
        assert_eq!(short(&b.union(&a).compact().to_string()), union, "{right} | {left}");
        assert_eq!(short(&a.subtract(&b).compact().to_string()), subtract, "{left} - {right}");
        assert_eq!(short(&a.intersect(&b).compact().to_string()), intersect, "{left} & {right}");
        assert_eq!(short(&b.intersect(&a).compact().to_string()), intersect, "{right} & {left}");
    };
    check("", "", ["", "", ""]);
    check("A:1", "", ["A:1", "A:1", ""]);
    check("", "A:1", ["A:1", "", ""]);
    check("A:1-5", "A:1-5", ["A:1-5", "", "A:1-5"]);
    check("A:1-5", "A:6-9", ["A:1-9", "A:1-5", ""]);
    check("A:1-5", "A:7-9", ["A:1-5:7-9", "A:1-5", ""]);
    check("A:1-9", "A:4-6", ["A:1-9", "A:1-3:7-9", "A:4-6"]);
    check("A:4-6", "A:1-9", ["A:1-9", "", "A:4-6"]);
    check("A:1-5", "A:3-9", ["A:1-9", "A:1-2", "A:3-5"]);
    check("A:3-9", "A:1-5", ["A:1-9", "A:6-9", "A:3-5"]);
    check("A:1-3:5-7:9-11", "A:3-5:7-9", ["A:1-11", "A:1-2:6:10-11", "A:3:5:7:9"]);
    check("A:1-3:5-7:9-11", "A:2-10", ["A:1-11", "A:1:11", "A:2-3:5-7:9-10"]);
    check("A:1-9", "B:1-9", ["A:1-9,B:1-9", "A:1-9", ""]);
    check("A:1,B:1,C:1", "B:1", ["A:1,B:1,C:1", "A:1,C:1", "B:1"]);
    check("A:1-9", "A:t:1-9", ["A:1-9:t:1-9", "A:1-9", ""]);
    check("A:1-9:t:1-9", "A:t:5", ["A:1-9:t:1-9", "A:1-9:t:1-4:6-9", "A:t:5"]);
    check("A:t:1,B:t:1", "A:u:1,B:t:1", ["A:t:1:u:1,B:t:1", "A:t:1", "B:t:1"]);
    let top = "A:9223372036854775805-9223372036854775806";
    check(top, "A:9223372036854775806", [top, "A:9223372036854775805", "A:9223372036854775806"]);
    check("A:1-9223372036854775806", top, ["A:1-9223372036854775806", "A:1-9223372036854775804", top]);
}

#[test]
fn two_sets_compare() {
    /// How two sets relate, from the left one's point of view.
    #[derive(Debug, PartialEq)]
    enum Is {
        Equal,
        More,
        Less,
        Apart,
        Crossed,
    }
    let check = |left: &str, right: &str, expect: Is| {
        let (a, b) = (set(left), set(right));
        let relation = match (a.contains(&b), b.contains(&a)) {
            (true, true) => Is::Equal,
            (true, false) => Is::More,
            (false, true) => Is::Less,
            (false, false) if a.is_disjoint(&b) => Is::Apart,
            (false, false) => Is::Crossed,
        };
        assert_eq!(a.strictly_contains(&b), relation == Is::More, "{left} > {right}");
        assert_eq!(b.strictly_contains(&a), relation == Is::Less, "{left} < {right}");
        assert_eq!(a == b, relation == Is::Equal, "{left} == {right}");
        assert_eq!(a.is_disjoint(&b), b.is_disjoint(&a), "{left}, {right}");
        assert_eq!(relation, expect, "{left} to {right}");
    };
    check("", "", Is::Equal);
    check("A:1", "", Is::More);
    check("", "A:1", Is::Less);
    check("A:1-3:2-5", "A:1-5", Is::Equal);
    check("A:1-9", "A:2:4-6:9", Is::More);
    check("A:1-3:5-9", "A:3-5", Is::Crossed);
    check("A:1-3:5-9", "A:4", Is::Apart);
    check("A:1-3:5-9", "A:1-9", Is::Less);
    check("A:1-3", "A:t:1-3", Is::Apart);
    check("A:1-3:t:1-3", "A:t:1-3", Is::More);
    check("A:1-3,B:1", "A:1-4", Is::Crossed);
    check("A:1-3,B:1,C:1", "A:1,C:1", Is::More);
    check("A:1", "B:1", Is::Apart);
}

#[test]
fn transactions_are_added_one_by_one() {
    let check = |before: &str, added: &str, after: &str| {
        let mut one = set(before);
        assert_eq!(one.insert(gtid(added)), before != after, "{before} + {added}");
        assert_eq!(short(&one.compact().to_string()), after, "{before} + {added}");
        assert!(one.contains_gtid(gtid(added)), "{before} + {added}");
        let mut many = set(before);
        many.extend([gtid(added)]);
        assert_eq!(one, many, "{before} + {added}");
    };
    check("", "A:1", "A:1");
    check("A:1", "A:1", "A:1");
    check("A:1-5", "A:3", "A:1-5");
    check("A:2", "A:1", "A:1-2");
    check("A:1", "A:2", "A:1-2");
    check("A:1:3", "A:2", "A:1-3");
    check("A:1:9", "A:5", "A:1:5:9");
    check("A:5", "A:1", "A:1:5");
    check("A:1", "A:t:1", "A:1:t:1");
    check("A:1,C:1", "B:1", "A:1,B:1,C:1");
    check("B:1-3:5-7,C:1:3", "B:4", "B:1-7,C:1:3");
    check("B:1,C:1", "A:7", "A:7,B:1,C:1");
    check("A:9223372036854775805", "A:9223372036854775806", "A:9223372036854775805-9223372036854775806");
}

#[test]
fn an_interval_swallows_what_it_touches() {
    let check = |before: &str, (start, end): (u64, u64), after: &str| {
        let mut all = set(before);
        all.insert_interval(Source::from(uuid("B")), Interval::new(start, end).expect("a valid interval"));
        assert_eq!(short(&all.compact().to_string()), after, "{before} + {start}-{end}");
        assert_eq!(all, set(after), "{before} + {start}-{end}");
    };
    check("A:1,B:1:3:5:7:9,C:1", (3, 7), "A:1,B:1:3-7:9,C:1");
    check("A:1,B:1:3:5:7:9,C:1", (2, 8), "A:1,B:1-9,C:1");
    check("A:1,B:1:3:5:7:9,C:1", (1, 20), "A:1,B:1-20,C:1");
    check("A:1,B:1:3:5:7:9,C:1", (11, 20), "A:1,B:1:3:5:7:9:11-20,C:1");
    check("A:1,C:1", (1, MAX_NUMBER), "A:1,B:1-9223372036854775806,C:1");
}

#[test]
fn transactions_are_counted() {
    let check = |text: &str, total: u128, by_uuid: &[(&str, u128)]| {
        let set = set(text);
        let by_uuid: Vec<_> = by_uuid.iter().map(|(letter, count)| (uuid(letter), *count)).collect();
        assert_eq!(set.count(), total, "{text}");
        assert_eq!(set.count_by_uuid().collect::<Vec<_>>(), by_uuid, "{text}");
        assert_eq!(
            set.uuids().collect::<Vec<_>>(),
            by_uuid.iter().map(|(uuid, _)| *uuid).collect::<Vec<_>>(),
            "{text}"
        );
        for (uuid, count) in by_uuid {
            assert_eq!(set.count_of(uuid), count, "{uuid} in {text}");
        }
        assert_eq!(set.is_empty(), total == 0, "{text}");
    };
    check("", 0, &[]);
    check("A:1-5:7", 6, &[("A", 6)]);
    check("A:1-5:t:1-2:u:9,C:1", 9, &[("A", 8), ("C", 1)]);
    let full = u128::from(MAX_NUMBER);
    check(
        "A:1-9223372036854775806:t:1-9223372036854775806,B:1-9223372036854775806",
        3 * full,
        &[("A", 2 * full), ("B", full)],
    );
    assert_eq!(set("A:1,C:1").count_of(uuid("B")), 0);
}

#[test]
fn only_known_servers_are_kept() {
    let check = |text: &str, keep: &[&str], expect: &str| {
        let mut set = set(text);
        set.retain_uuids(&keep.iter().map(|letter| uuid(letter)).collect::<Vec<_>>());
        assert_eq!(short(&set.compact().to_string()), expect, "{text} of {keep:?}");
    };
    check("A:1:t:5,B:2,C:3", &["A", "C"], "A:1:t:5,C:3");
    check("A:1:t:5,B:2,C:3", &["C", "B", "C"], "B:2,C:3");
    check("A:1:t:5,B:2,C:3", &[], "");
    check("A:1", &["B"], "");
    check("", &["A"], "");
}
