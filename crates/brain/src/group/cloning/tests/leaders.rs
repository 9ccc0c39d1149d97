//! Phases are stored, and a new leader goes on from them without overwriting anything that is not known to be a copy.

use crate::group::input::{Facts, Outcome, Saved};
use crate::group::kept::{CloneKept, ClonePhase, CloneSource, Recovery, SiteKept};
use crate::group::recovery::tests::bench::{Bench, alone, bench, following};
use crate::group::tests::set;

pub(super) fn clone(phase: ClonePhase, source: CloneSource) -> SiteKept {
    let clone = CloneKept { phase, source, attempts: 1, bytes: None, message: String::new() };
    SiteKept { clone: Some(clone), ..SiteKept::default() }
}

#[test]
fn the_phases_of_a_clone_are_stored_in_their_order() {
    let mut bench = bench(vec![("pdx", alone(2, ""))]);
    bench.outcomes.insert("Clone", None);
    bench.run(10);
    bench.server("pdx").up = false;
    bench.run(10);
    // a copy, and a new server of its own
    let server = bench.server("pdx");
    (server.up, server.facts) = (true, Facts { user_data: true, ..alone(7, "1:1-10") });
    bench.end("Clone", Outcome::Cloned);
    bench.run(10);
    let expect = [
        "stored pdx AutoClone Cloning 1",
        "pdx: clone from iad",
        "stored pdx AutoClone WaitingForRestart 1",
        "stored pdx AutoClone SetupReplication 1",
        "pdx: attach to iad",
        "stored pdx AutoClone Done 1",
    ];
    assert_eq!(bench.log, expect);
}

/// What a leader does that finds a clone it did not begin.
#[test]
fn a_new_leader_goes_on_from_the_phase() {
    let check = |phase: ClonePhase, source: CloneSource, found: Facts, expect: &[&str]| {
        let mut bench = bench(vec![("pdx", found)]).stored("pdx", clone(phase, source));
        bench.run(20);
        let told: Vec<&str> = bench.log.iter().map(String::as_str).filter(|line| !line.starts_with("stored")).collect();
        assert_eq!(told, expect, "{phase:?} {source:?}");
        bench
    };
    let all = ["pdx: clone from iad", "pdx: attach to iad"];
    for phase in [ClonePhase::Cloning, ClonePhase::WaitingForRestart] {
        // still empty: begun anew
        check(phase, CloneSource::AutoClone, alone(2, ""), &all);
        // an earlier copy is complete: not copied again
        check(phase, CloneSource::AutoClone, alone(2, "1:1-9"), &all[1..]);
        // somebody's data: never overwritten
        let bench = check(phase, CloneSource::AutoClone, alone(2, "1:1-9,2:1"), &["told DivergenceFound pdx 1"]);
        assert_eq!(bench.kept("pdx").recovery, Recovery::Blocked);
        // asked for: always copied, whatever the sets look like
        check(phase, CloneSource::Reclone, alone(2, "1:1-9"), &all);
        let still = ["pdx: StopReceiver", all[0], all[1]];
        check(phase, CloneSource::Reclone, following(2, "1:1-9", "iad"), &still);
        // but not over what nobody was asked about: the primary may be another one by now
        let unasked = ["pdx: StopReceiver", "told DivergenceFound pdx 1"];
        let bench = check(phase, CloneSource::Reclone, following(2, "1:1-9,2:1", "iad"), &unasked);
        assert_eq!(bench.kept("pdx").clone.map(|clone| clone.phase), Some(ClonePhase::Failed));
    }
    let setup = ClonePhase::SetupReplication;
    check(setup, CloneSource::Reclone, alone(2, "1:1-9"), &all[1..]);
    check(setup, CloneSource::AutoClone, following(2, "1:1-9", "iad"), &[]);
    check(setup, CloneSource::AutoClone, following(2, "1:1-9", "fra"), &["pdx: StopReceiver", "pdx: attach to iad"]);
}

#[test]
fn a_reclone_goes_on_over_what_was_agreed_to_and_no_further() {
    for (held, copies) in [("1:1-9,2:1-3", 1), ("1:1-9,2:2", 1), ("1:1-9,2:1-4", 0)] {
        let agreed = SiteKept { divergent: set("2:1-3"), ..clone(ClonePhase::Cloning, CloneSource::Reclone) };
        let mut bench = bench(vec![("pdx", alone(2, held))]).stored("pdx", agreed);
        bench.run(20);
        assert_eq!(bench.count("pdx: clone from iad"), copies, "{held}: {:?}", bench.log);
    }
}

#[test]
fn a_follower_whose_reclone_failed_untouched_goes_on_receiving() {
    let mut bench = bench(vec![("pdx", following(2, "1:1-9", "iad"))])
        .stored("pdx", clone(ClonePhase::Cloning, CloneSource::Reclone));
    bench.outcomes.insert("Clone", Some(Outcome::Failed("it could not be emptied".to_owned())));
    bench.run(20);
    let at = |line: &str| bench.log.iter().position(|it| it == line).expect("it is in the log");
    assert!(at("pdx: StopReceiver") < at("pdx: StartReplica"), "{:?}", bench.log);
}

#[test]
fn a_leader_that_dies_at_any_moment_leaves_a_clone_that_ends() {
    for steps in 0..40 {
        let mut bench = bench(vec![("pdx", alone(2, ""))]);
        bench.outcomes.insert("Clone", Some(Outcome::Failed("donor lost".to_owned())));
        for _ in 0..steps {
            bench.run(2);
        }
        bench.outcomes.clear();
        bench.restart();
        bench.run(400);
        assert_eq!(bench.kept("pdx").clone.expect("a clone").phase, ClonePhase::Done, "after {steps} polls");
        assert!(bench.count("pdx: clone") <= 3, "{:?}", bench.log);
    }
}

#[test]
fn a_lost_save_loses_no_end_and_begins_nothing_twice() {
    for lost in 0..6 {
        let mut bench = bench(vec![("pdx", alone(2, ""))]);
        bench.saves = (0..lost).map(|_| Saved::All).chain([Saved::Unknown; 2]).collect();
        bench.run(60);
        assert_eq!(bench.kept("pdx").clone.expect("a clone").phase, ClonePhase::Done, "after {lost} saves");
        assert_eq!(bench.count("pdx: clone"), 1, "after {lost} saves: {:?}", bench.log);
    }
}

#[test]
fn a_copy_that_has_what_the_primary_lacks_is_blocked() {
    let mut bench = bench(vec![("pdx", alone(2, ""))]);
    bench.outcomes.insert("Clone", None);
    bench.run(10);
    // the donor was another one
    bench.server("pdx").facts = alone(2, "1:1-12");
    bench.end("Clone", Outcome::Cloned);
    bench.run(300);
    assert_eq!(bench.kept("pdx").recovery, Recovery::Blocked);
    assert_eq!(bench.kept("pdx").divergent, set("1:11-12"));
    assert_eq!(bench.kept("pdx").clone.expect("a clone").phase, ClonePhase::Failed);
    assert_eq!(bench.count("pdx: attach"), 0);
}

/// What the copy has is nobody's to overwrite without a further word, whatever leader finds it.
#[test]
fn a_copy_that_was_asked_for_and_has_what_the_primary_lacks_is_never_copied_over_by_itself() {
    let mut bench = bench(vec![("pdx", alone(2, "1:1-12"))])
        .stored("pdx", clone(ClonePhase::SetupReplication, CloneSource::Reclone));
    bench.run(20);
    assert_eq!(bench.kept("pdx").divergent, set("1:11-12"));
    bench.restart();
    bench.run(3600);
    assert_eq!(bench.count("pdx: clone"), 0, "{:?}", bench.log);
    assert_eq!(bench.kept("pdx").recovery, Recovery::Blocked);
}

/// A copy over data that breaks off leaves the old set without its tables.
#[test]
fn a_site_whose_reclone_failed_is_brought_back_by_nothing_but_a_clone() {
    let mut broken = clone(ClonePhase::Failed, CloneSource::Reclone);
    broken.clone.as_mut().expect("a clone").attempts = 3;
    let quiet = |facts: Facts| -> Bench {
        let mut bench = bench(vec![("pdx", facts)]).stored("pdx", broken.clone());
        bench.run(3600);
        for deed in ["attach", "point", "clone", "StartReplica"] {
            assert_eq!(bench.count(&format!("pdx: {deed}")), 0, "{:?}", bench.log);
        }
        bench
    };
    quiet(alone(2, "1:1-9"));
    quiet(following(2, "1:1-9", "fra"));
    quiet(alone(2, ""));
    assert_eq!(quiet(alone(2, "1:1-9,2:1")).kept("pdx").divergent, set("2:1"), "it is told all the same");
    assert!(broken.clone.as_ref().expect("a clone").holds_the_site(), "and it is not promoted");
}

#[test]
fn a_pause_holds_the_next_task_back_and_its_time_does_not_count() {
    let mut bench = bench(vec![("pdx", alone(2, "1:1-9"))])
        .stored("pdx", clone(ClonePhase::SetupReplication, CloneSource::AutoClone));
    bench.respec(|spec| {
        spec.paused = Some(crate::group::spec::Pause { reason: String::new(), until: None });
    });
    bench.run(3600);
    assert_eq!(bench.count("pdx: attach"), 0);
    let message = bench.kept("pdx").clone.expect("a clone").message;
    assert_eq!(message, "Auto-clone: waits: the group is paused");
    bench.respec(|spec| spec.paused = None);
    bench.run(10);
    assert_eq!(bench.kept("pdx").clone.expect("a clone").phase, ClonePhase::Done, "{:?}", bench.log);
}

#[test]
fn a_site_that_is_not_declared_any_more_holds_nobody_up() {
    let mut bench = bench(vec![("pdx", following(2, "1:1-9", "iad"))])
        .stored("gone", clone(ClonePhase::Cloning, CloneSource::AutoClone));
    bench.run(4);
    assert_eq!(bench.log, ["stored gone no clone"]);
}
