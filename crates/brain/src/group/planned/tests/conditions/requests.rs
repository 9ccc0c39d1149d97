//! A request beside a run: whose it is, and what becomes of it.

use super::{calm, run_in, stored};
use crate::group::Notice;
use crate::group::Step;
use crate::group::command::Command;
use crate::group::forecast::Rehearsal;
use crate::group::input::{PlannedWish, Request};
use crate::group::kept::{Kept, Origin, Planned, PlannedPhase, PlannedReason};
use crate::group::planned::tests::site;
use crate::group::save::Plan;

use PlannedPhase::{Deferred, Pending, Validating, WaitingForLag};

fn asks(stage: &mut Rehearsal, to: &str) {
    let wish = Ok(PlannedWish { site: site(to), max_lag_wait: None, id: None });
    stage.group.seen.requests.planned = Some(Request { text: to.to_owned(), wish });
}

/// What is to be stored after the request was looked at, and what is said and done.
fn heed(stage: &mut Rehearsal, planned: Planned) -> (Planned, Step) {
    let kept = Kept { planned: Some(planned), ..stored(stage) };
    let mut plan = Plan::new(&kept, None);
    let mut out = Step::default();
    stage.group.heed_planned_request(stage.now, &mut plan, &mut out);
    (plan.next().planned.clone().expect("a run"), out)
}

#[test]
fn beside_a_run_another_request_is_refused_and_a_deferred_run_gives_way() {
    // The run's phase, where the request asks to; whether it is refused beside it; where the next run goes to, and its phase.
    let rows = [
        (WaitingForLag, "pdx", false, ("pdx", WaitingForLag)),
        (WaitingForLag, "fra", true, ("pdx", WaitingForLag)),
        (Deferred, "pdx", false, ("pdx", Deferred)),
        (Deferred, "fra", false, ("fra", Pending)),
    ];
    for (phase, to, refused, (target, next_phase)) in rows {
        let mut stage = calm();
        asks(&mut stage, to);
        let (next, out) = heed(&mut stage, run_in(phase));
        assert_eq!((next.target, next.phase), (site(target), next_phase), "{phase:?} {to}");
        let rejected = out
            .notices
            .iter()
            .any(|notice| matches!(notice, Notice::PlannedRejected { reason: PlannedReason::ConcurrentOperation, .. }));
        let removed = out.commands.iter().any(|command| matches!(command, Command::RemoveRequest { .. }));
        assert_eq!((rejected, removed), (refused, refused), "{phase:?} {to}");
    }
}

#[test]
fn an_update_hands_over_by_a_run_of_its_own() {
    let mut stage = calm();
    let kept = stored(&stage);
    let mut plan = Plan::new(&kept, None);
    stage.group.plan_hand_over(stage.now, &site("fra"), &mut plan);
    let planned = plan.next().planned.clone().expect("a run");
    assert_eq!((planned.origin, planned.phase), (Origin::OrderedUpdate, Validating));
    assert_eq!((planned.source, planned.target), (site("iad"), site("fra")));
}
