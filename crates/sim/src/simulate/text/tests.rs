//! Scenario files: what is printed is read back as it was, and what is wrong is refused with line and reason.

use super::{parse, print_scenario};
use crate::simulate::draw::draw;

#[test]
fn what_is_printed_is_read_back() {
    for seed in 0..300 {
        let mut scenario = draw(seed, None);
        scenario.heal_at = scenario.heal_at.max(scenario.faults.last().map_or(0, |last| last.at + 1));
        scenario.story = format!("story {seed}");
        assert_eq!(parse(&print_scenario(&scenario)), Ok(scenario), "seed {seed}");
    }
}

#[test]
fn what_is_wrong_is_refused_with_its_line_and_reason() {
    let rows = [
        ("sites 3\nat 5s kill mysqld mars", "line 2: `mars` is not a site; this group has iad, pdx, fra"),
        ("sites 2\nat 5s isolate fra", "line 2: `fra` is not a site; this group has iad, pdx"),
        ("at -5s store-down", "line 1: `-5s` is negative"),
        ("at 5 store-down", "line 1: `5` is not a time; write 12.5s or 300ms"),
        (
            "at 5s deny sleep",
            "line 1: `sleep` is not refused; write status, annotation, lease, labels, dns or takeover",
        ),
        ("at 5s cut iad iad", "line 1: a link has two ends"),
        ("at 5s kill operator-1", "line 1: there is one operator only; write `operators 2` first"),
        ("at 5s eat iad", "line 1: `eat` is not a fault"),
        ("at 5s store-down now", "line 1: `now` is too much"),
        ("at 5s kill", "line 1: expected mysqld, keeper, sidecar, cache or an operator, found the end of the line"),
        ("sites 9", "line 1: 9 is not a number of sites from 2 to 5"),
        ("sites 2\ndr-only 2", "line 2: every site is dr-only; one at least must be a candidate"),
        ("prefer fra\ndr-only 1", "line 2: fra is dr-only and cannot be preferred; prefer a candidate"),
        (
            "sites 2\ndr-only 1\nat 5s edit prefer pdx",
            "line 3: pdx is dr-only and cannot be preferred; prefer a candidate",
        ),
        ("sites 2\nat 5s must-be-closed fra", "line 2: `fra` is not a site; this group has iad, pdx"),
        ("at 5s hold cache iad", "line 1: a cache is not held; write kill or pause"),
        ("at 5s stop sidecar iad", "line 1: only mysqld ends in order; write `stop mysqld <site>`, or kill or hold"),
        (
            "at 5s ambush Succeeded operator",
            "line 1: `Succeeded` is no moment; write revoked, granted, permitted, opened, fencing or Pending, Validating, \
             Draining, WaitingForLag, WaitingForCache, PromotingCache, Promoting, Resuming",
        ),
        ("hello", "line 1: `hello` is not known; a fault begins with `at <time>`"),
        (
            "at 90s store-down\nheal at 60s",
            "line 2: the last fault is not before everything heals; write a later `heal at`",
        ),
    ];
    for (text, wrong) in rows {
        assert_eq!(parse(text).map_err(|wrong| wrong.to_string()), Err(wrong.to_owned()), "{text}");
    }
}
