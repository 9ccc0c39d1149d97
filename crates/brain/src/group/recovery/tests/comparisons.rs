//! Comparisons with the primary: how long one holds, and what it is about.

use super::bench::{Bench, alone, bench, following, site};
use crate::candidate::drain::Receiver;
use crate::group::command::{Command, Task, WorkId};
use crate::group::input::{Facts, Outcome};
use crate::group::kept::{Recovery, SiteKept};
use crate::group::recovery::{Footing, RETRY, Scene, Verdict};
use crate::group::tests::set;
use crate::group::{Group, Step};
use crate::site::Pair;
use crate::time::{Boot, Millis, Now};

/// A calm group in which `pdx` follows; nothing is being compared.
fn calm() -> (Bench, Footing<'static>) {
    let mut bench = bench(vec![("pdx", following(2, "1:1-9", "iad"))]);
    bench.run(10);
    // A few bytes for each test: what is borrowed outlives the bench.
    let kept = Box::leak(Box::new(bench.group.kept().expect("it is known what is stored")));
    let footing = bench.group.footing(bench.now, kept).expect("one primary");
    bench.group.recovering.sites.clear();
    bench.group.recovering.next_reading = Boot(0);
    (bench, footing)
}

fn finding(group: &mut Group, now: Now, footing: &Footing<'_>, facts: &Facts) -> Option<Verdict> {
    group.finding(now, footing, &site("pdx"), facts)
}

/// The reading of the primary that is asked for.
fn reading(bench: &mut Bench, footing: &Footing<'_>) -> Option<WorkId> {
    let mut out = Step::default();
    bench.group.read_primary(bench.now, footing, &mut out);
    out.commands.iter().find_map(|command| match command {
        Command::Work { id, task: Task::Read, .. } => Some(*id),
        _ => None,
    })
}

/// Asks, and has the primary read with ten transactions.
fn compared(bench: &mut Bench, footing: &Footing<'_>, facts: &Facts) {
    assert_eq!(finding(&mut bench.group, bench.now, footing, facts), None);
    let id = reading(bench, footing).expect("it is read");
    let primary = Facts { pair: Pair::OPEN, ..alone(1, "1:1-10") };
    bench.group.clock = bench.now.boot;
    bench.group.take_reading(id, &Outcome::Read(Box::new(primary)));
}

#[test]
fn a_comparison_holds_for_its_time_and_not_longer() {
    let facts = following(2, "1:1-9", "iad");
    for (age, holds) in [(0, true), (RETRY.0 - 1, true), (RETRY.0, false)] {
        let (mut bench, footing) = calm();
        compared(&mut bench, &footing, &facts);
        let later = Now { boot: bench.now.boot + Millis(age), ..bench.now };
        assert_eq!(finding(&mut bench.group, later, &footing, &facts).is_some(), holds, "{age} ms");
    }
}

#[test]
fn a_comparison_is_about_its_tenure_its_server_and_its_source() {
    let facts = following(2, "1:1-9", "iad");
    let stopped = || {
        let mut facts = following(2, "1:1-9", "iad");
        facts.replica.as_mut().expect("it follows").receiver = Receiver::Stopped;
        facts
    };
    let rows = [
        ("the same", 7, facts.clone(), true),
        ("it moved on", 7, following(2, "1:1-10", "iad"), true),
        ("another tenure", 8, facts.clone(), false),
        ("another source", 7, following(2, "1:1-9", "fra"), false),
        ("another server", 7, following(3, "1:1-9", "iad"), false),
        ("it receives no more", 7, stopped(), false),
        ("it follows nobody", 7, alone(2, "1:1-9"), false),
    ];
    for (name, tenure, now_says, same) in rows {
        let (mut bench, footing) = calm();
        compared(&mut bench, &footing, &facts);
        let present = Footing { tenure, ..footing };
        assert_eq!(finding(&mut bench.group, bench.now, &present, &now_says).is_some(), same, "{name}");
        // One that is under way goes on only if it is about the same.
        let (mut bench, footing) = calm();
        assert_eq!(finding(&mut bench.group, bench.now, &footing, &facts), None);
        let id = reading(&mut bench, &footing);
        let asked =
            |bench: &Bench| bench.group.recovering.sites.get(&site("pdx")).and_then(|known| known.asked.clone());
        let before = asked(&bench);
        assert_eq!(finding(&mut bench.group, bench.now, &present, &now_says), None);
        assert_eq!((id.is_some(), asked(&bench) == before), (true, same), "{name}, under way");
    }
}

#[test]
fn the_primary_is_read_once_a_second() {
    for (ahead, reads) in [(0, true), (1, false)] {
        let (mut bench, footing) = calm();
        finding(&mut bench.group, bench.now, &footing, &following(2, "1:1-9", "iad"));
        bench.group.recovering.next_reading = bench.now.boot + Millis(ahead);
        let next = if reads { Millis(1000) } else { Millis(ahead) };
        assert_eq!(reading(&mut bench, &footing).is_some(), reads, "{ahead} ms before it is due");
        assert_eq!(bench.group.recovering.next_reading, bench.now.boot + next);
    }
}

#[test]
fn a_receiver_that_stood_still_for_a_clone_is_started_upon_a_comparison_of_this_tenure() {
    let mut facts = following(2, "1:1-9", "iad");
    facts.replica.as_mut().expect("it follows").receiver = Receiver::Stopped;
    for (tenure, starts) in [(7, 1), (8, 0)] {
        let (mut bench, footing) = calm();
        compared(&mut bench, &footing, &facts);
        let footing = Footing { tenure, ..footing };
        let scene = Scene { now: bench.now, footing: &footing };
        let mut out = Step::default();
        bench.group.go_on_untouched(&scene, &site("pdx"), &facts, &mut out);
        assert_eq!(out.commands.len(), starts, "tenure {tenure}");
    }
}

#[test]
fn a_site_that_was_emptied_is_no_longer_told_to_diverge_and_is_not_attached() {
    let blocked = SiteKept { recovery: Recovery::Blocked, divergent: set("2:1"), ..SiteKept::default() };
    let mut bench = bench(vec![("pdx", alone(2, ""))]).stored("pdx", blocked);
    bench.outcomes.insert("Clone", None);
    bench.run(20);
    assert_eq!((bench.kept("pdx").recovery, bench.kept("pdx").divergent), (Recovery::None, set("")));
    assert_eq!((bench.count("told RecoveryStarted"), bench.count("pdx: attach")), (0, 0), "{:?}", bench.log);
}
