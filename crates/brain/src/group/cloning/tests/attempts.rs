//! Attempts: how many, how far apart, and what makes them count anew.

use super::leaders::clone;
use crate::group::Input;
use crate::group::input::Outcome;
use crate::group::kept::{CloneKept, ClonePhase, CloneSource, SiteKept};
use crate::group::recovery::tests::bench::{Bench, alone, bench, credentials, following, site};
use crate::group::tests::set;
use crate::time::Millis;

fn failing(outcome: Outcome) -> Bench {
    let mut bench = bench(vec![("pdx", alone(2, ""))]);
    bench.outcomes.insert("Clone", Some(outcome));
    bench
}

fn broken() -> Outcome {
    Outcome::Failed("donor lost".to_owned())
}

#[test]
fn three_attempts_one_and_five_minutes_apart_then_failed() {
    let mut bench = failing(broken());
    bench.run(50);
    assert_eq!(bench.count("pdx: clone"), 1);
    bench.run(20);
    assert_eq!(bench.count("pdx: clone"), 2);
    bench.run(280);
    assert_eq!(bench.count("pdx: clone"), 2);
    bench.run(30);
    assert_eq!(bench.count("pdx: clone"), 3);
    bench.run(3 * 3600);
    assert_eq!(bench.count("pdx: clone"), 3);
    let clone = bench.kept("pdx").clone.expect("a clone");
    assert_eq!((clone.phase, clone.attempts), (ClonePhase::Failed, 3));
    assert_eq!(
        clone.message,
        "Auto-clone: attempt 3 of 3 failed: donor lost; not tried again until the spec, the Secret or the annotation \
         reclone-site change"
    );
}

#[test]
fn refused_credentials_fail_on_the_first_attempt() {
    let mut bench = failing(Outcome::Refused("access denied".to_owned()));
    bench.run(3600);
    assert_eq!(bench.log, ["stored pdx AutoClone Cloning 1", "pdx: clone from iad", "stored pdx AutoClone Failed 1"]);
}

#[test]
fn a_change_of_spec_or_secret_counts_anew() {
    let spec: fn(&mut Bench) = |bench| bench.respec(|spec| spec.clone_timeout = Millis::from_secs(60));
    let secret: fn(&mut Bench) = |bench| {
        // Their passwords were set by somebody else.
        bench.servers.values_mut().flat_map(|server| server.accounts.values_mut()).for_each(|has| *has = 2);
        bench.tell(Input::CredentialsChanged(credentials(2)));
    };
    for change in [spec, secret] {
        let mut bench = failing(Outcome::Refused("access denied".to_owned()));
        bench.run(20);
        bench.outcomes.clear();
        bench.take_log();
        change(&mut bench);
        bench.run(20);
        assert_eq!(bench.log[..3], ["stored pdx no clone", "stored pdx AutoClone Cloning 1", "pdx: clone from iad"]);
        assert_eq!(bench.kept("pdx").clone.expect("a clone").phase, ClonePhase::Done);
    }
}

#[test]
fn a_change_is_not_lost_with_a_save() {
    let mut bench = failing(Outcome::Refused("access denied".to_owned()));
    bench.run(20);
    bench.outcomes.clear();
    bench.saves = [crate::group::input::Saved::Unknown; 3].into();
    bench.tell(Input::CredentialsChanged(credentials(2)));
    bench.run(30);
    assert_eq!(bench.kept("pdx").clone.expect("a clone").phase, ClonePhase::Done, "{:?}", bench.log);
}

#[test]
fn a_failed_clone_is_over_when_the_site_follows_all_the_same() {
    let failed = CloneKept {
        phase: ClonePhase::Failed,
        source: CloneSource::AutoClone,
        attempts: 3,
        bytes: None,
        message: String::new(),
    };
    let mut bench = bench(vec![("pdx", following(2, "1:1-9", "iad"))])
        .stored("pdx", SiteKept { clone: Some(failed), ..SiteKept::default() });
    bench.run(10);
    assert_eq!(bench.log, ["stored pdx AutoClone Done 3"]);
}

#[test]
fn a_copy_without_an_answer_failed_when_its_bound_is_over() {
    let mut bench = bench(vec![("pdx", alone(2, ""))]);
    bench.outcomes.insert("Clone", None);
    bench.run(3590);
    assert_eq!(bench.log, ["stored pdx AutoClone Cloning 1", "pdx: clone from iad"]);
    bench.run(30);
    assert_eq!(bench.log.last().map(String::as_str), Some("stored pdx AutoClone Failed 1"));
}

#[test]
fn replication_that_does_not_start_after_a_copy_fails_the_attempt() {
    let mut bench = bench(vec![("pdx", alone(2, ""))]);
    bench.outcomes.insert("Attach", Some(Outcome::Failed("access denied".to_owned())));
    bench.run(590);
    assert_eq!(bench.kept("pdx").clone.expect("a clone").phase, ClonePhase::SetupReplication);
    assert_eq!(bench.count("pdx: attach"), 20);
    bench.run(30);
    let clone = bench.kept("pdx").clone.expect("a clone");
    assert_eq!((clone.phase, clone.attempts), (ClonePhase::Failed, 1));
    // what it holds is a copy now: it is brought back without another one
    bench.outcomes.clear();
    bench.run(120);
    assert_eq!(bench.count("pdx: clone"), 1);
    assert_eq!(bench.kept("pdx").clone.expect("a clone").phase, ClonePhase::Done);
}

/// With everything still in the primary's binary logs it is attached and gets it from there.
#[test]
fn a_copy_that_is_gone_with_its_volume_is_made_again() {
    let setup = |purged: &str| {
        let kept = clone(ClonePhase::SetupReplication, CloneSource::AutoClone);
        let mut bench = bench(vec![("pdx", alone(2, ""))]);
        bench.server("iad").facts.data.as_mut().expect("data").purged = set(purged);
        let mut bench = bench.stored("pdx", kept);
        bench.run(120);
        assert_eq!(bench.kept("pdx").clone.expect("a clone").phase, ClonePhase::Done);
        (bench.count("pdx: clone"), bench.count("pdx: attach"))
    };
    assert_eq!(setup("1:1-5"), (1, 1));
    assert_eq!(setup(""), (0, 1));
}

#[test]
fn how_far_a_copy_is_is_stored_with_every_tenth() {
    let mut bench = bench(vec![("pdx", alone(2, "")), ("fra", following(3, "1:1-5", "iad"))]);
    bench.outcomes.insert("Clone", None);
    bench.run(20);
    let pdx = site("pdx");
    let rows = [
        ((0, 0), (0, 0)),
        ((4, 100), (0, 0)),
        ((9, 100), (0, 0)),
        ((10, 100), (10, 100)),
        ((19, 100), (10, 100)),
        ((57, 100), (57, 100)),
        ((57, 300), (57, 300)),
        ((300, 300), (300, 300)),
    ];
    for (said, stored) in rows {
        bench.tell(Input::CloneProgress { site: pdx.clone(), bytes: said });
        bench.run(2);
        assert_eq!(bench.kept("pdx").clone.expect("a clone").bytes, Some(stored), "{said:?}");
        assert_eq!(bench.group.clone_bytes(&bench.store, &pdx), Some(said));
    }
    // Not about the copy that this leader has begun.
    bench.tell(Input::CloneProgress { site: site("fra"), bytes: (1, 2) });
    bench.run(2);
    assert_eq!((bench.kept("fra").clone, bench.group.clone_bytes(&bench.store, &site("fra"))), (None, None));
    bench.tell(Input::CloneProgress { site: pdx, bytes: (299, 300) });
    bench.end("Clone", Outcome::Cloned);
    bench.run(2);
    assert_eq!(bench.kept("pdx").clone.expect("a clone").bytes, Some((299, 300)), "the last word goes with its end");
}
