//! Which sites are empty, in which order they are filled, and what keeps a clone from being begun.

use crate::group::Input;
use crate::group::input::{Facts, Outcome, Word};
use crate::group::kept::{ClonePhase, CloneSource, Recovery, SiteKept, Update, UpdatePhase};
use crate::group::recovery::tests::bench::{Bench, alone, bench, following, site};
use crate::group::spec::Pause;
use crate::group::tests::set;
use crate::message::Ack;
use crate::name::{Instance, Member};
use crate::site::Pair;
use crate::time::{Millis, Wall};
use std::collections::BTreeMap;

const FILLED: [&str; 5] = [
    "stored pdx AutoClone Cloning 1",
    "pdx: clone from iad",
    "stored pdx AutoClone SetupReplication 1",
    "pdx: attach to iad",
    "stored pdx AutoClone Done 1",
];

fn without_schema(facts: Facts) -> Facts {
    Facts { user_data: false, ..facts }
}

fn with_schema(facts: Facts) -> Facts {
    Facts { user_data: true, ..facts }
}

#[test]
fn the_rule_for_empty_sites() {
    let check = |name: &str, facts: Facts, was: SiteKept, filled: bool| {
        let mut bench = bench(vec![("pdx", facts)]).stored("pdx", was);
        bench.run(12);
        assert_eq!(bench.count("pdx: clone") == 1, filled, "{name}: {:?}", bench.log);
        if filled {
            assert_eq!(bench.log[bench.log.len() - 5..], FILLED, "{name}");
        }
    };
    let new = SiteKept::default;
    check("gtid_executed empty", alone(2, ""), new(), true);
    check("no UUID in common with the primary, no user schema", without_schema(alone(2, "2:1-3")), new(), true);
    check("a UUID in common", without_schema(alone(2, "1:1-3")), new(), false);
    check("one of several UUIDs in common", without_schema(alone(2, "1:1,2:1-3")), new(), false);
    check("a user schema", alone(2, "2:1-3"), new(), false);
    check("doubt: a user schema without a transaction", with_schema(alone(2, "")), new(), false);
    check("replication configured", without_schema(following(2, "", "iad")), new(), false);
    check("not understood", Facts { data: None, ..alone(2, "") }, new(), false);
    // in recovery, or reported: not empty, unless the reading says that nothing is there
    let reported = SiteKept { recovery: Recovery::Blocked, divergent: set("2:1-3"), ..new() };
    check("reported as divergent", without_schema(alone(2, "2:1-3")), reported.clone(), false);
    check("the divergent volume is lost", alone(2, ""), reported, true);
    let coming_back = SiteKept { recovery: Recovery::InProgress, ..new() };
    check("in recovery, and its volume is lost", alone(2, ""), coming_back, true);
    check("given up by a grant", without_schema(alone(2, "2:1")), SiteKept { divergent: set("2:1"), ..new() }, false);
}

#[test]
fn doubt_goes_to_the_divergence_check() {
    let mut bench = bench(vec![("pdx", with_schema(alone(2, "")))]);
    bench.run(10);
    assert_eq!(bench.log[..3], ["stored pdx InProgress", "told RecoveryStarted pdx", "pdx: attach to iad"]);
}

#[test]
fn the_holder_and_open_sites_are_never_filled() {
    // The primary has lost its schemas and its set: it is the holder all the same.
    let mut holder = bench(vec![("pdx", following(2, "1:1-9", "iad"))]);
    holder.server("iad").facts.data = Some(crate::candidate::Data::default());
    holder.run(20);
    assert_eq!(holder.count("iad: clone"), 0);
    for pair in [Pair::OPEN, Pair { read_only: true, super_read_only: false }] {
        let mut open = bench(vec![("pdx", Facts { pair, ..alone(2, "") })]);
        open.outcomes.insert("Fence", None);
        open.run(60);
        assert_eq!(open.count("pdx: clone") + open.count("stored"), 0, "{:?}", open.log);
    }
    let mut unreachable = bench(vec![("pdx", alone(2, ""))]);
    unreachable.server("pdx").up = false;
    unreachable.run(60);
    assert_eq!(unreachable.log, [""; 0]);
}

#[test]
fn a_site_that_its_own_sidecar_calls_open_is_not_overwritten() {
    let mut bench = bench(vec![("pdx", alone(2, ""))]);
    let ack = |fenced: bool| Ack {
        from: Member::new(&site("pdx"), &Instance::new("pod-pdx", "s1")),
        epoch: Some(7),
        fenced,
        gtid: None,
        fenced_by: None,
        opened_by_hand: false,
        conflict: false,
        mysqld: None,
        last_vouch: BTreeMap::new(),
        last_answer: BTreeMap::new(),
        uptime: Millis(1),
    };
    let hear = |bench: &mut Bench, fenced: bool| {
        bench.tell(Input::Heard(Box::new(Word { ack: ack(fenced), lay: Millis(0), via: None, question: None })));
        bench.run(8);
    };
    hear(&mut bench, false);
    assert_eq!(bench.count("pdx: clone"), 0, "{:?}", bench.log);
    hear(&mut bench, true);
    assert_eq!(bench.count("pdx: clone"), 1, "{:?}", bench.log);
}

#[test]
fn the_fence_is_looked_at_once_more_when_the_clone_begins() {
    let mut bench = bench(vec![("pdx", alone(2, ""))]);
    bench.outcomes.insert("Fence", None);
    bench.saves = [crate::group::input::Saved::Unknown; 3].into();
    // while the store is in trouble, somebody opens the site
    bench.run(2);
    bench.server("pdx").facts.pair = Pair::OPEN;
    bench.run(30);
    assert_eq!(bench.count("pdx: clone"), 0, "{:?}", bench.log);
}

#[test]
fn candidates_before_dr_only_and_one_at_a_time() {
    let mut bench = bench(vec![("fra:dr", alone(3, "")), ("pdx", alone(2, "")), ("lhr", alone(4, ""))]);
    bench.outcomes.insert("Clone", None);
    bench.run(60);
    assert_eq!(bench.log, ["stored pdx AutoClone Cloning 1", "pdx: clone from iad"]);
    bench.outcomes.clear();
    bench.end("Clone", Outcome::Failed("donor lost".to_owned()));
    bench.run(30);
    let clones: Vec<&String> = bench.log.iter().filter(|line| line.contains(": clone")).collect();
    assert_eq!(clones, ["pdx: clone from iad", "lhr: clone from iad", "fra: clone from iad"]);
}

#[test]
fn what_keeps_a_clone_from_being_begun() {
    let quiet = |name: &str, change: fn(&mut Bench)| {
        let mut bench = bench(vec![("pdx", alone(2, ""))]);
        change(&mut bench);
        bench.restart();
        bench.run(60);
        assert_eq!(bench.count("pdx: clone"), 0, "{name}: {:?}", bench.log);
    };
    quiet("paused", |bench| bench.group.spec.paused = Some(Pause { reason: String::new(), until: None }));
    quiet("no confirmed primary", |bench| bench.server("iad").facts.pair = Pair::CLOSED);
    quiet("no replication account", |bench| bench.group.spec.replication_account = false);
    quiet("the primary's set is not understood", |bench| bench.server("iad").facts.data = None);
}

#[test]
fn an_ordered_update_that_goes_on_holds_new_clones_back() {
    let check = |phase: UpdatePhase, stopped: Option<&str>, held: bool| {
        let stopped = stopped.map(str::to_owned);
        let update = Update { phase, site: Some(site("pdx")), since: Wall(0), stopped };
        let kept = crate::group::Kept { update: Some(update), ..crate::group::Kept::default() };
        assert_eq!(super::super::updates(&kept), held, "{phase:?}");
    };
    check(UpdatePhase::WaitReplica, None, true);
    check(UpdatePhase::Failover, None, true);
    check(UpdatePhase::Complete, None, false);
    // it may stand still because of this very site
    check(UpdatePhase::WaitReplica, Some("pdx does not replicate"), false);
}

#[test]
fn without_an_account_people_are_told_at_once_and_it_begins_when_there_is_one() {
    let mut bench = bench(vec![("pdx", alone(2, ""))]);
    bench.group.spec.replication_account = false;
    bench.run(300);
    assert_eq!(bench.log, ["stored pdx AutoClone Failed 1"]);
    let message = bench.kept("pdx").clone.expect("a clone").message;
    assert!(message.starts_with("Auto-clone: ") && message.contains("MYSQL_REPLICATION_USER"), "{message}");
    bench.take_log();
    bench.respec(|spec| spec.replication_account = true);
    bench.run(12);
    assert_eq!(bench.log[..2], ["stored pdx no clone", "stored pdx AutoClone Cloning 1"]);
    assert_eq!(bench.kept("pdx").clone.expect("a clone").phase, ClonePhase::Done);
}

#[test]
fn a_fresh_group_fills_its_other_sites() {
    let mut bench = bench(vec![("pdx", alone(2, "")), ("fra:dr", alone(3, ""))]);
    bench.store.promotion = Some(set(""));
    bench.restart();
    bench.run(30);
    for name in ["pdx", "fra"] {
        let clone = bench.kept(name).clone.expect("a clone");
        assert_eq!((clone.source, clone.phase), (CloneSource::FreshDeploy, ClonePhase::Done), "{name}");
        assert!(clone.message.starts_with("Bootstrap: "), "{}", clone.message);
    }
}

#[test]
fn a_fresh_primary_without_a_transaction_is_cloned_once() {
    let mut bench = bench(vec![("pdx", alone(2, ""))]);
    bench.server("iad").facts.data = Some(crate::candidate::Data::default());
    bench.store.promotion = Some(set(""));
    bench.restart();
    bench.run(120);
    assert_eq!(bench.count("pdx: clone"), 1, "{:?}", bench.log);
    assert_eq!(bench.kept("pdx").clone.expect("a clone").phase, ClonePhase::Done);
}
