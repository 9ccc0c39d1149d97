//! How long sets of 10,000 intervals take. The target: parse and contains within a millisecond each.
//!
//! Two shapes: `one_server` is a single entry full of holes, `many_servers` has as many entries as intervals.

use bloodraven_gtid::{Gtid, GtidSet, Source, Uuid};
use divan::{Bencher, black_box};

const INTERVALS: u32 = 10_000;

fn main() {
    divan::main();
}

#[derive(Clone, Copy, Debug)]
enum Shape {
    OneServer,
    ManyServers,
}

const SHAPES: [Shape; 2] = [Shape::OneServer, Shape::ManyServers];

/// A set of this shape, as the server prints it; `length` of every ten numbers are present.
fn text(shape: Shape, length: u32) -> String {
    let numbers = |index: u32| format!("{}-{}", 1_000_000 + index * 10, 1_000_000 + index * 10 + length - 1);
    match shape {
        Shape::OneServer => (0..INTERVALS).fold(uuid(7).to_string(), |text, index| text + ":" + &numbers(index)),
        Shape::ManyServers => {
            (0..INTERVALS).map(|index| format!("{}:{}", uuid(index), numbers(index))).collect::<Vec<_>>().join(",\n")
        }
    }
}

fn uuid(index: u32) -> Uuid {
    let mut bytes = *b"\0\0\0\0\x71\xca\x11\xe1\x9e\x33\xc8\x0a\xa9\x42\x95\x62";
    bytes[..4].copy_from_slice(&index.to_be_bytes());
    Uuid::from_bytes(bytes)
}

fn set(shape: Shape, length: u32) -> GtidSet {
    text(shape, length).parse().unwrap_or_default()
}

#[divan::bench(args = SHAPES)]
fn parse(bencher: Bencher<'_, '_>, shape: Shape) {
    let text = text(shape, 5);
    bencher.bench(|| black_box(&text).parse::<GtidSet>());
}

#[divan::bench(args = SHAPES)]
fn parse_unsorted(bencher: Bencher<'_, '_>, shape: Shape) {
    let backwards = match shape {
        Shape::OneServer => {
            let text = text(shape, 5);
            let (uuid, intervals) = text.split_once(':').unwrap_or_default();
            format!("{uuid}:{}", intervals.rsplit(':').collect::<Vec<_>>().join(":"))
        }
        Shape::ManyServers => text(shape, 5).rsplit(",\n").collect::<Vec<_>>().join(","),
    };
    bencher.bench(|| black_box(&backwards).parse::<GtidSet>());
}

#[divan::bench(args = SHAPES)]
fn print(bencher: Bencher<'_, '_>, shape: Shape) {
    let set = set(shape, 5);
    bencher.bench(|| black_box(&set).to_string());
}

#[divan::bench(args = SHAPES)]
fn contains(bencher: Bencher<'_, '_>, shape: Shape) {
    let (all, some) = (set(shape, 5), set(shape, 4));
    assert!(all.contains(&some));
    bencher.bench(|| black_box(&all).contains(black_box(&some)));
}

#[divan::bench(args = SHAPES)]
fn parse_both_and_contains(bencher: Bencher<'_, '_>, shape: Shape) {
    let (all, some) = (text(shape, 5), text(shape, 4));
    bencher.bench(|| {
        Ok::<_, bloodraven_gtid::ParseError>(black_box(&all).parse::<GtidSet>()?.contains(&black_box(&some).parse()?))
    });
}

#[divan::bench(args = SHAPES)]
fn union(bencher: Bencher<'_, '_>, shape: Shape) {
    let (left, right) = (set(shape, 5), set(shape, 7));
    bencher.bench(|| black_box(&left).union(black_box(&right)));
}

#[divan::bench(args = SHAPES)]
fn subtract(bencher: Bencher<'_, '_>, shape: Shape) {
    let (left, right) = (set(shape, 7), set(shape, 5));
    bencher.bench(|| black_box(&left).subtract(black_box(&right)));
}

#[divan::bench(args = SHAPES)]
fn intersect(bencher: Bencher<'_, '_>, shape: Shape) {
    let (left, right) = (set(shape, 7), set(shape, 5));
    bencher.bench(|| black_box(&left).intersect(black_box(&right)));
}

/// 10,000 transactions one after the other, as a server commits them.
#[divan::bench]
fn insert_in_order(bencher: Bencher<'_, '_>) {
    insert(bencher, |index| index);
}

/// 10,000 transactions in an order that leaves a hole after nearly each of them.
#[divan::bench]
fn insert_scattered(bencher: Bencher<'_, '_>) {
    insert(bencher, |index| index * 7919 % INTERVALS * 2);
}

fn insert(bencher: Bencher<'_, '_>, number: impl Fn(u32) -> u32 + Sync) {
    let source = Source::from(uuid(7));
    let gtids: Vec<_> = (0..INTERVALS).filter_map(|index| Gtid::new(source, u64::from(number(index)) + 1)).collect();
    bencher.bench(|| {
        let mut set = GtidSet::new();
        for gtid in black_box(&gtids) {
            set.insert(*gtid);
        }
        set
    });
}
