//! Scenes in which nobody is left to write: every site is down, or every site that may write is.
//!
//! In: the cast. Out: a group that was told of, and left alone until somebody is back. Must not: end the fault before the
//! operator has looked often enough to do something wrong.

use bloodraven_testbed::cluster::{KUBELET, SITES};
use bloodraven_testbed::progress::say;
use bloodraven_testbed::wait::Stopwatch;

use super::marks::Change;
use super::scenes::{Cast, HEALS_WITHIN};
use super::stage::Stage;

/// So many more polls fail while nobody may do anything: more than make a site unreachable, and fewer than make Kubernetes
/// give up a node whose kubelet is away.
const MORE_POLLS: u64 = 5;

/// C-16: every site is down, and the operator is not. It says so and does nothing; who comes back has authority still.
///
/// Kubelets are kept away, so that nobody starts what was killed.
pub(crate) fn every_site(cast: &Cast<'_>) {
    let (stage, leader) = (cast.stage, cast.stage.leading());
    let (epoch, moves, told) = (cast.seen.epoch(), cast.seen.moves(), stage.events("TotalLossDetected"));
    let panics = stage.panics();
    let away = SITES.map(|site| stage.machines().stop_program(site, KUBELET).unwrap());
    let watch = Stopwatch::start();
    for site in SITES {
        stage.kill_container(site, "sidecar");
        stage.kill_container(site, "mysql");
    }
    let down = watch.elapsed().as_secs_f64();
    stage.wait_for_reason("TotalLoss");
    say(&format!(
        "every site was down after {down:.1} s, TotalLoss was told after {:.1} s",
        watch.elapsed().as_secs_f64()
    ));
    more_polls_fail(stage);
    let authority = stage.object().expect("the group")["status"]["authority"].clone();
    assert_eq!((&authority["phase"], cast.seen.epoch()), (&"Stable".into(), epoch), "nothing is done: {authority}");
    drop(away);
    cast.load.wait_for_writes("somebody is back");
    stage.wait_until_whole("every site is back", HEALS_WITHIN);
    // The same is said once in five minutes: a scene before may have had all of them down, too.
    let said = stage.events("TotalLossDetected");
    assert!(said > 0 && said <= told + 1, "people were told, and once: {told} Events before, {said} after");
    assert!(cast.seen.moves() <= moves + 1, "at most one move");
    if stage.leading() == leader {
        assert_eq!(stage.panics(), panics, "no loop panicked");
    }
}

/// C-50: whoever may write is down, and the one site that is left may not. It stays closed, whatever it has.
pub(crate) fn candidates(cast: &Cast<'_>) {
    let stage = cast.stage;
    let holder = stage.active();
    let (other, left) = (stage.other_candidate(&holder), stage.follower_only());
    let (revision, begin) = (cast.seen.revision(), stage.timeline.now());
    // The holder last: while the other one is there, it rightly takes over.
    let off = [other, &holder].map(|site| stage.machines().power_cut(site).unwrap());
    // The operator may have been on one of them.
    for site in [holder.as_str(), other] {
        stage.wait_for_unreachable(site);
    }
    stage.wait_for_reason("NoPrimary");
    more_polls_fail(stage);
    let object = stage.object().expect("the group");
    assert_eq!(object["status"]["authority"]["holder"]["site"], *holder, "nobody else was given authority");
    let given = |change: &Change| matches!(change, Change::Authority { site, .. } if site == left);
    assert_eq!(cast.seen.count_after(revision, given), 0, "{left} is never promoted");
    assert!(!cast.eyes.was_open_since(left, begin), "{left} was open");
    let answers = cast.eyes.answers(left);
    for node in off {
        node.boot().unwrap();
    }
    cast.load.wait_for_writes("a candidate is back");
    assert!(cast.eyes.answers(left) > answers, "{left} was not asked");
    assert!(!cast.eyes.was_open_since(left, begin), "{left} was open");
}

/// The operator has looked for the holder so often more, in vain.
fn more_polls_fail(stage: &Stage) {
    let holder = stage.object().expect("the group")["status"]["authority"]["holder"]["site"].clone();
    let holder = holder.as_str().expect("a holder");
    let before = stage.wait_until("the leader's figures", || stage.failed_polls(holder));
    stage.wait_until(&format!("{holder} is looked for again and again"), || {
        // A leader that took over meanwhile has counted less, and looks for as long again.
        (stage.failed_polls(holder)? >= before + MORE_POLLS).then_some(())
    });
}
