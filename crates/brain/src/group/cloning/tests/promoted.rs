//! The donor dies when its copy is complete and follows nobody yet.

use crate::candidate::{Busy, Refusal};
use crate::group::forecast::Rehearsal;
use crate::group::kept::{CloneKept, ClonePhase, CloneSource, Recovery};
use crate::group::tests::{running, set};
use crate::group::{Obstacle, Task};
use crate::name::Site;
use crate::record::Phase;
use crate::time::Millis;

const MINUTES: Millis = Millis::from_secs(120);

fn pdx() -> Site {
    Site::new("pdx")
}

/// `pdx` holds that, follows nobody, and cannot be attached; its clone is in that phase.
fn copied(phase: ClonePhase, source: CloneSource, executed: &str) -> Rehearsal {
    let mut stage = running(&["iad", "pdx"]);
    let actor = stage.actors.get_mut(&pdx()).expect("pdx");
    actor.facts.replica = None;
    actor.facts.data.as_mut().expect("data").executed = set(executed);
    actor.refuses = Some(|task| matches!(task, Task::Attach { .. } | Task::Clone { .. }));
    let clone = CloneKept { phase, source, attempts: 1, bytes: None, message: String::new() };
    stage.store.site_mut(&pdx()).clone = Some(clone);
    let mut stage = stage.with_new_leader();
    assert!(stage.play(MINUTES, |stage| stage.writer() == Some(Site::new("iad"))), "{:?}", stage.group.obstacle);
    stage
}

fn is_refused(stage: &Rehearsal, why: Busy) -> bool {
    let refused = (pdx(), Refusal::Busy(why));
    matches!(&stage.group.obstacle, Some(Obstacle::NoCandidate(all)) if all.contains(&refused))
}

#[test]
fn a_complete_copy_is_promoted_and_its_clone_is_over_with_the_grant() {
    for source in [CloneSource::AutoClone, CloneSource::FreshDeploy, CloneSource::Reclone] {
        let mut stage = copied(ClonePhase::SetupReplication, source, "1:1-10");
        stage.kill(&Site::new("iad"));
        let granted = |stage: &Rehearsal| {
            stage.store.record.as_ref().is_some_and(|record| {
                record.phase != Phase::Revoking && record.seat.as_ref().is_some_and(|seat| seat.site == pdx())
            })
        };
        assert!(stage.play(MINUTES, granted), "{source:?}: {:?}", stage.group.obstacle);
        let clone = stage.store.site(&pdx()).clone.expect("a clone");
        assert_eq!((clone.phase, clone.attempts), (ClonePhase::Done, 1), "{source:?}");
        assert!(stage.play(MINUTES, |stage| stage.writer() == Some(pdx())), "{source:?}: {:?}", stage.group.obstacle);
    }
}

#[test]
fn a_copy_that_is_not_complete_or_not_of_the_last_primary_is_not_promoted() {
    let check = |phase: ClonePhase, executed: &str, why: Busy| {
        let mut stage = copied(phase, CloneSource::Reclone, executed);
        stage.kill(&Site::new("iad"));
        assert!(!stage.play(MINUTES, |stage| stage.writer() == Some(pdx())), "{phase:?} {executed}");
        assert!(is_refused(&stage, why), "{phase:?} {executed}: {:?}", stage.group.obstacle);
    };
    check(ClonePhase::Cloning, "1:1-10", Busy::Cloning);
    check(ClonePhase::WaitingForRestart, "1:1-10", Busy::Cloning);
    check(ClonePhase::Failed, "1:1-10", Busy::Cloning);
}

/// What was reported of the site is about what it had before it was emptied.
#[test]
fn an_old_divergence_keeps_a_copy_from_nothing_unless_the_copy_has_it() {
    let blocked = |divergent: &str| {
        let mut stage = copied(ClonePhase::SetupReplication, CloneSource::Reclone, "1:1-10");
        let kept = stage.store.site_mut(&pdx());
        (kept.recovery, kept.divergent) = (Recovery::Blocked, set(divergent));
        let mut stage = stage.with_new_leader();
        stage.kill(&Site::new("iad"));
        stage.play(MINUTES, |stage| stage.writer() == Some(pdx()));
        stage
    };
    let stage = blocked("2:1-3");
    assert_eq!(stage.writer(), Some(pdx()), "{:?}", stage.group.obstacle);
    let kept = stage.store.site(&pdx());
    assert_eq!((kept.recovery, kept.divergent), (Recovery::None, set("")), "the site is the primary");
    let stage = blocked("1:9");
    assert!(is_refused(&stage, Busy::Cloning), "{:?}", stage.group.obstacle);
}
