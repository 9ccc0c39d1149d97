//! The table of reclone requests, row by row.

use super::*;
use crate::candidate::drain::Receiver;
use crate::group::input::{Facts, Outcome, RecloneWish};
use crate::group::kept::{ClonePhase, SiteKept, Update, UpdatePhase};
use crate::group::recovery::tests::bench::{Bench, alone, bench, following, site};
use crate::group::spec::Pause;
use crate::group::tests::set;
use crate::site::Pair;
use crate::time::Wall;

const DIVERGENT: &str = "02020202-0202-0202-0202-020202020202:1-3";

fn wish(name: &str, consent: Consent) -> RecloneWish {
    RecloneWish { site: site(name), consent }
}

fn prefix(text: &str) -> Consent {
    Consent::Prefix(text.to_owned())
}

fn confirm(text: &str) -> Consent {
    Consent::Confirm(text.to_owned())
}

/// `pdx` follows, `fra` has what the primary lacks.
fn group() -> Bench {
    let mut bench = bench(vec![("pdx", following(2, "1:1-9", "iad")), ("fra", alone(2, "1:1-9,2:1-3"))]);
    bench.run(10);
    assert_eq!(bench.kept("fra").divergent.to_string(), DIVERGENT);
    bench.take_log();
    bench
}

fn refused(bench: &mut Bench, wish: RecloneWish, because: &str) {
    bench.ask("request", Ok(wish));
    is_refused(bench, because);
}

fn is_refused(bench: &mut Bench, because: &str) {
    let before = bench.store.clone();
    bench.run(10);
    assert_eq!(bench.count("told RecloneRejected"), 1, "{:?}", bench.log);
    assert_eq!(bench.count("remove request"), 1, "{:?}", bench.log);
    assert!(bench.log[0].contains(because), "{:?} says nothing of {because}", bench.log);
    assert_eq!(bench.store, before, "nothing is changed");
    bench.take_log();
}

fn accepted(bench: &mut Bench, name: &str, consent: Consent) {
    let receives = bench.server(name).facts.replica.as_ref().is_some_and(|it| it.receiver != Receiver::Stopped);
    bench.ask("request", Ok(wish(name, consent)));
    bench.run(20);
    // What goes on receiving would always have more than may go.
    let still = receives.then(|| format!("{name}: StopReceiver"));
    let lines = [format!("stored {name} Reclone Cloning 1"), format!("told RecloneRequested {name}")]
        .into_iter()
        .chain(still)
        .chain([
            format!("{name}: clone from iad"),
            format!("stored {name} Reclone SetupReplication 1"),
            format!("{name}: attach to iad"),
            "remove request".to_owned(),
            format!("stored {name} Reclone Done 1"),
        ]);
    let log: Vec<String> = bench.log.iter().filter(|line| !line.ends_with("None")).cloned().collect();
    assert_eq!(log, lines.collect::<Vec<_>>());
    let kept = bench.kept(name);
    assert_eq!((kept.recovery, kept.divergent), (Recovery::None, GtidSet::new()));
}

#[test]
fn unknown_site_the_holder_a_writable_site_bad_grammar() {
    refused(&mut group(), wish("lax", Consent::None), "\"lax\" is not a site");
    refused(&mut group(), wish("iad", Consent::None), "iad is the holder");
    refused(&mut group(), wish("iad", confirm("orders")), "iad is the holder");
    let mut bad = group();
    bad.ask("request", Err("empty request".to_owned()));
    is_refused(&mut bad, "empty request");
    let mut open = group();
    open.outcomes.insert("Fence", None);
    open.server("pdx").facts.pair = Pair::OPEN;
    open.run(2);
    open.take_log();
    open.ask("request", Ok(wish("pdx", Consent::None)));
    open.run(4);
    let told: Vec<&String> = open.log.iter().filter(|line| !line.contains("Fence")).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].contains("pdx is writable"));
}

#[test]
fn a_site_with_divergent_gtid_needs_eight_matching_characters() {
    let rows = [
        (Consent::None, "has divergentGtid"),
        (confirm("orders"), "has divergentGtid"),
        (prefix(""), "shorter than 8"),
        (prefix("0202020"), "shorter than 8"),
        (prefix("02020203"), "not the beginning"),
        (prefix("2020202-0202"), "not the beginning"),
        (prefix(&format!("{DIVERGENT}4")), "not the beginning"),
    ];
    let mut bench = group();
    for (consent, because) in rows {
        refused(&mut bench, wish("fra", consent), because);
    }
    accepted(&mut group(), "fra", prefix("02020202"));
    accepted(&mut group(), "fra", prefix(DIVERGENT));
}

#[test]
fn a_site_without_divergent_gtid_needs_its_name() {
    accepted(&mut group(), "pdx", Consent::None);
    accepted(&mut group(), "pdx", confirm("orders"));
    refused(&mut group(), wish("pdx", confirm("invoices")), "does not name this group");
    refused(&mut group(), wish("pdx", prefix("02020202")), "no divergentGtid");
}

#[test]
fn no_replication_credentials() {
    let mut bench = group();
    bench.respec(|spec| spec.replication_account = false);
    refused(&mut bench, wish("pdx", Consent::None), "MYSQL_REPLICATION_PASSWORD");
}

/// Kept while that is so, and carried out when it is over.
fn kept_and_retried(begin: fn(&mut Bench), end: fn(&mut Bench), because: &str) {
    let mut bench = group();
    begin(&mut bench);
    bench.run(8);
    bench.take_log();
    bench.ask("request", Ok(wish("pdx", Consent::None)));
    bench.run(20);
    assert_eq!(bench.count("told Reclone") + bench.count("remove") + bench.count("pdx: clone"), 0, "{:?}", bench.log);
    let waits = bench.group.reclone_waits().expect("it waits");
    assert!(*waits.0 == site("pdx") && waits.1.contains(because), "{waits:?}");
    end(&mut bench);
    bench.run(20);
    assert_eq!(bench.count("told RecloneRequested pdx"), 1, "{because}: {:?}", bench.log);
    assert_eq!(bench.kept("pdx").clone.expect("a clone").phase, ClonePhase::Done);
    assert_eq!(bench.group.reclone_waits(), None);
}

#[test]
fn what_is_only_blocked_for_now_is_kept_and_retried() {
    kept_and_retried(
        |bench| bench.respec(|spec| spec.paused = Some(Pause { reason: String::new(), until: None })),
        |bench| bench.respec(|spec| spec.paused = None),
        "paused",
    );
    kept_and_retried(
        |bench| bench.server("iad").facts.pair = Pair::CLOSED,
        |bench| bench.server("iad").facts.pair = Pair::OPEN,
        "no confirmed primary",
    );
    kept_and_retried(|bench| bench.server("pdx").up = false, |bench| bench.server("pdx").up = true, "does not answer");
    kept_and_retried(
        |bench| bench.server("pdx").facts.data = None,
        |bench| bench.server("pdx").facts = following(2, "1:1-9", "iad"),
        "InvalidGTID",
    );
}

#[test]
fn another_clone_in_flight_is_waited_for() {
    let mut bench = bench(vec![("pdx", following(2, "1:1-9", "iad")), ("fra", alone(3, ""))]);
    bench.outcomes.insert("Clone", None);
    bench.run(10);
    bench.ask("request", Ok(wish("pdx", Consent::None)));
    bench.run(30);
    assert_eq!(bench.group.reclone_waits().expect("it waits").1, "a clone into fra is under way");
    assert_eq!(bench.count("pdx: clone"), 0);
    bench.outcomes.clear();
    bench.server("fra").facts = Facts { user_data: true, ..alone(3, "1:1-10") };
    bench.end("Clone", Outcome::Cloned);
    bench.run(30);
    assert_eq!(bench.count("pdx: clone"), 1, "{:?}", bench.log);
}

#[test]
fn an_ordered_update_is_waited_for() {
    let mut bench = group();
    let update = Update { phase: UpdatePhase::WaitReplica, site: None, since: Wall(0), stopped: None };
    let kept = Kept { update: Some(update), ..bench.store.clone() };
    let wish = RecloneWish { site: site("pdx"), consent: Consent::None };
    let answer = bench.group.judge_reclone(bench.now, &wish, &kept, &mut Step::default());
    assert!(matches!(answer, Answer::Wait(why) if why.contains("ordered update")));
}

#[test]
fn r_11_a_reclone_copies_even_if_the_sets_look_contained() {
    let mut bench = bench(vec![("pdx", following(2, "1:1-10", "iad"))]);
    bench.run(4);
    accepted(&mut bench, "pdx", Consent::None);
}

#[test]
fn what_nobody_has_seen_yet_is_reported_before_a_bare_request_counts() {
    let mut bench = bench(vec![("pdx", alone(2, "1:1-9,2:1"))]);
    bench.ask("request", Ok(wish("pdx", Consent::None)));
    bench.run(20);
    assert_eq!(bench.count("pdx: clone"), 0, "{:?}", bench.log);
    assert_eq!(bench.count("told DivergenceFound pdx"), 1);
    assert_eq!(bench.count("told RecloneRejected"), 1);
}

#[test]
fn a_refusal_is_told_once_however_long_the_request_stands() {
    let mut bench = group();
    bench.requests_stay = true;
    bench.ask("request", Ok(wish("lax", Consent::None)));
    bench.run(60);
    assert_eq!(bench.count("told RecloneRejected"), 1);
    assert!(bench.count("remove request") > 10);
}

#[test]
fn the_end_is_stored_only_when_the_request_is_gone() {
    let mut bench = group();
    bench.requests_stay = true;
    bench.ask("request", Ok(wish("pdx", Consent::None)));
    bench.run(60);
    assert_eq!(bench.kept("pdx").clone.expect("a clone").phase, ClonePhase::SetupReplication);
    assert_eq!(bench.count("pdx: clone"), 1);
    // a new leader does not take the request for another one
    bench.restart();
    bench.requests_stay = false;
    bench.run(60);
    assert_eq!(bench.kept("pdx").clone.expect("a clone").phase, ClonePhase::Done);
    assert_eq!(bench.count("pdx: clone"), 1, "{:?}", bench.log);
}

#[test]
fn a_failed_attempt_ends_the_request_and_is_repeated_by_itself() {
    let mut bench = group();
    bench.outcomes.insert("Clone", Some(Outcome::Failed("donor lost".to_owned())));
    bench.ask("request", Ok(wish("fra", prefix("02020202"))));
    bench.run(20);
    assert_eq!(bench.count("remove request"), 1, "{:?}", bench.log);
    let kept = bench.kept("fra");
    assert_eq!(kept.clone.expect("a clone").phase, ClonePhase::Failed);
    assert_eq!(kept.divergent, set("2:1-3"), "reported until a reading disproves it");
    bench.outcomes.clear();
    bench.run(80);
    let kept = bench.kept("fra");
    assert_eq!(
        (kept.clone.map(|clone| (clone.phase, clone.attempts)), kept.divergent.is_empty()),
        (Some((ClonePhase::Done, 2)), true)
    );
}

#[test]
fn an_admin_may_ask_again_after_the_last_attempt() {
    let mut bench = group();
    bench.outcomes.insert("Clone", Some(Outcome::Refused("access denied".to_owned())));
    bench.ask("request", Ok(wish("pdx", Consent::None)));
    bench.run(1800);
    assert_eq!(bench.count("pdx: clone"), 1);
    bench.outcomes.clear();
    bench.take_log();
    accepted(&mut bench, "pdx", Consent::None);
}

#[test]
fn a_site_in_recovery_is_recloned_and_not_attached_beside_it() {
    let state = SiteKept { recovery: Recovery::InProgress, ..SiteKept::default() };
    let mut bench = bench(vec![("pdx", alone(2, "1:1-9"))]).stored("pdx", state);
    bench.outcomes.insert("Attach", None);
    bench.run(4);
    assert_eq!(bench.log, ["pdx: attach to iad"]);
    bench.ask("request", Ok(wish("pdx", Consent::None)));
    bench.run(4);
    assert_eq!(bench.count("pdx: clone"), 0, "the attempt to attach is still on its way");
    bench.outcomes.clear();
    bench.end("Attach", Outcome::Failed("timeout".to_owned()));
    bench.run(60);
    assert_eq!(bench.kept("pdx").clone.expect("a clone").phase, ClonePhase::Done, "{:?}", bench.log);
}
