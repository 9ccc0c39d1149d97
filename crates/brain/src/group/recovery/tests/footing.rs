//! What a repair stands on, condition by condition: each row breaks one of them and nothing else.

use super::bench::{Bench, alone, bench, following, site};
use crate::group::command::Task;
use crate::group::input::Facts;
use crate::group::recovery::{Hindrance, RETRY};
use crate::group::{Kept, Step};
use crate::site::{Pair, State};
use crate::time::Millis;
use std::sync::Arc;

fn known(bench: &Bench) -> Arc<Kept> {
    bench.group.kept().expect("it is known what is stored")
}

#[test]
fn a_second_writer_is_closed_before_anything_is_repaired() {
    let mut bench = bench(vec![("pdx", Facts { pair: Pair::OPEN, ..alone(2, "1:1-9") }), ("fra", alone(3, "1:1-9"))]);
    bench.outcomes.insert("Fence", None);
    bench.run(10);
    let other_writer = Err(Hindrance::OtherWriter(site("pdx")));
    let kept = known(&bench);
    assert_eq!(bench.group.footing(bench.now, &kept), other_writer, "the judgement names it");
    bench.group.judged = None;
    assert_eq!(bench.group.footing(bench.now, &kept), other_writer, "it was read open");
}

#[test]
fn a_site_counts_as_closed_only_while_its_state_and_its_last_poll_say_so() {
    let mut bench = bench(vec![("pdx", alone(2, "1:1-9"))]);
    let mut check = |up: bool, seconds: u64, state: State, closed: bool| {
        bench.server("pdx").up = up;
        bench.run(seconds);
        let seen = bench.group.seen.site(&site("pdx")).expect("declared");
        assert_eq!((seen.watch.state, bench.group.closed_facts(&site("pdx"), 7).is_some()), (state, closed));
    };
    check(true, 10, State::ReadOnly, true);
    check(false, 2, State::ReadOnly, false);
    check(false, 10, State::Unreachable, false);
    check(true, 4, State::ReadOnly, true);
}

#[test]
fn the_next_attempt_is_due_after_its_pause_and_not_before() {
    for (ago, tasks) in [(RETRY.0 - 1, 0), (RETRY.0, 1)] {
        let mut bench = bench(vec![("pdx", following(2, "1:1-9", "iad"))]);
        bench.run(10);
        let kept = known(&bench);
        let footing = bench.group.footing(bench.now, &kept).expect("one primary");
        let last = bench.now.boot - Millis(ago);
        bench.group.recovering.sites.entry(site("pdx")).or_default().attempt = Some((last, footing.tenure));
        let mut out = Step::default();
        bench.group.attempt(bench.now, &footing, &site("pdx"), Task::StartReplica, &mut out);
        assert_eq!(out.commands.len(), tasks, "{ago} ms after the last");
    }
}

#[test]
fn a_follower_seems_ahead_by_what_it_has_and_the_primary_lacks() {
    for (own, ahead) in [("1:1-9", false), ("1:1-10", false), ("1:1-11", true), ("1:1-9,2:1", true)] {
        let mut bench = bench(vec![("pdx", following(2, own, "iad"))]);
        bench.run(10);
        assert_eq!(bench.group.seems_ahead(&site("pdx"), &site("iad")), ahead, "{own}");
        assert!(!bench.group.seems_ahead(&site("nowhere"), &site("iad")));
        assert!(!bench.group.seems_ahead(&site("pdx"), &site("nowhere")));
    }
}
