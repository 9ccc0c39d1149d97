//! What a step has changed, for people: fences, openings, kills.
//!
//! In: how the brain stood before and after one step. Out: what is worth telling, as data. Must not: speak, count, or
//! change anything.

use bloodraven_brain::fence::{Closed, FenceStep, Lane, Mysqld, Permit, Sidecar};
use bloodraven_brain::message::{FencedBy, StartId};
use bloodraven_brain::record::Epoch;
use bloodraven_brain::time::Boot;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    /// The ladder begins.
    Fencing(FencedBy),
    /// The ladder has ended.
    Fenced(FencedBy, Method),
    /// The keeper is asked to kill mysqld.
    Killing,
    /// The server was opened, for the first time in its tenure.
    Opened,
    /// The server was opened again under the lease.
    Reopened,
    /// An attempt to open has failed; the ladder follows.
    NotOpened,
    /// The data, or somebody else's fence, keep a server closed that has authority.
    StaysClosed(Closed),
    /// A newer view is on disk.
    Stored(Epoch),
    /// Two views of this epoch differ.
    Conflict(Epoch),
    /// mysqld ended while it had a permit and nobody here had asked for it: the keeper's dead man, or a crash.
    EndedWithPermit(Permit),
}

/// How a fence was confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    /// Both variables were read as 1.
    Sql,
    /// mysqld was killed and reaped.
    Killed,
}

/// What of the brain is compared. Cheap: no set and no view is copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Glimpse {
    lane: Lane,
    mysqld: Mysqld,
    permit: Option<Permit>,
    stored: Option<Epoch>,
    conflict: Option<Epoch>,
    opened: Option<(Epoch, Option<StartId>)>,
    /// The kind of reason for which the gate is closed, and the reason itself.
    closed: Option<Closed>,
}

impl Glimpse {
    /// How the brain stands.
    pub(crate) fn of(brain: &Sidecar, now: Boot) -> Self {
        let closed = match (&brain.lane, brain.allowed(now) && brain.fenced()) {
            (Lane::Idle | Lane::Reading | Lane::Clearing, true) => brain.gate(now).err(),
            _ => None,
        };
        let told = |reason: &Closed| !matches!(reason, Closed::NotAllowed | Closed::NoWord | Closed::NotReady);
        Self {
            lane: brain.lane.clone(),
            mysqld: brain.mysqld,
            permit: brain.permit,
            stored: brain.disk.view.as_ref().map(|view| view.epoch),
            conflict: brain.disk.conflict,
            opened: brain.disk.marker.as_ref().map(|marker| (marker.tenure, marker.start)),
            closed: closed.filter(told),
        }
    }
}

/// What happened between the two.
pub(crate) fn between(before: &Glimpse, after: &Glimpse) -> Vec<Notice> {
    let mut told = Vec::new();
    if after.stored > before.stored {
        told.extend(after.stored.map(Notice::Stored));
    }
    if after.conflict != before.conflict {
        told.extend(after.conflict.map(Notice::Conflict));
    }
    let opening_ended = before.lane.may_open() && !after.lane.may_open();
    if opening_ended && after.lane.fencing() {
        told.push(Notice::NotOpened);
    }
    told.extend(ladder(before, after));
    if opening_ended && after.lane == Lane::Idle && after.opened != before.opened {
        told.push(opened(before, after));
    } else if opening_ended
        && after.lane == Lane::Idle
        && matches!(after.mysqld, Mysqld::Up(_))
        && after.permit.is_some()
    {
        // Opened again under the very marker that is there already.
        told.push(Notice::Reopened);
    }
    if after.closed != before.closed {
        told.extend(after.closed.clone().map(Notice::StaysClosed));
    }
    if let (Mysqld::Up(_), Some(permit)) = (before.mysqld, before.permit)
        && after.mysqld != before.mysqld
        && !before.lane.fencing()
    {
        told.push(Notice::EndedWithPermit(permit));
    }
    told
}

fn ladder(before: &Glimpse, after: &Glimpse) -> Option<Notice> {
    let killing = |lane: &Lane| matches!(lane, Lane::Fencing { step: FenceStep::Killing, .. });
    match (&before.lane, &after.lane) {
        (Lane::Fencing { .. }, Lane::Fencing { .. }) => {
            (killing(&after.lane) && !killing(&before.lane)).then_some(Notice::Killing)
        }
        (_, Lane::Fencing { rule, .. }) => Some(Notice::Fencing(*rule)),
        (Lane::Fencing { rule, .. }, _) => {
            let method = if matches!(after.mysqld, Mysqld::Up(_)) && after.mysqld == before.mysqld {
                Method::Sql
            } else {
                Method::Killed
            };
            Some(Notice::Fenced(*rule, method))
        }
        _ => None,
    }
}

fn opened(before: &Glimpse, after: &Glimpse) -> Notice {
    let again = match (before.opened, after.opened) {
        (Some((tenure, start)), Some((now, _))) => tenure == now && start.is_some(),
        _ => false,
    };
    if again { Notice::Reopened } else { Notice::Opened }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bloodraven_brain::fence::OpenStep;

    const START: StartId = StartId(7);

    fn glimpse(lane: Lane) -> Glimpse {
        Glimpse {
            lane,
            mysqld: Mysqld::Up(START),
            permit: None,
            stored: Some(1),
            conflict: None,
            opened: None,
            closed: None,
        }
    }

    fn fencing(step: FenceStep) -> Lane {
        Lane::Fencing { start: START, rule: FencedBy::Lease, began: Boot(0), step }
    }

    fn permit() -> Permit {
        Permit { start: START, epoch: 1, deadline: Boot(9) }
    }

    fn opening() -> Lane {
        Lane::Opening { start: START, step: OpenStep::Reading }
    }

    #[test]
    fn each_change_is_told_once() {
        let idle = || glimpse(Lane::Idle);
        let up = glimpse(fencing(FenceStep::EndingOpeners));
        let killing = glimpse(fencing(FenceStep::Killing));
        let down = Glimpse { mysqld: Mysqld::Down, ..idle() };
        let marked = |start| Glimpse { opened: Some((1, start)), permit: Some(permit()), ..idle() };
        let tried = |start| Glimpse { opened: Some((1, start)), ..glimpse(opening()) };
        let rows = [
            (idle(), idle(), vec![]),
            (idle(), up.clone(), vec![Notice::Fencing(FencedBy::Lease)]),
            (up.clone(), up.clone(), vec![]),
            (up.clone(), killing.clone(), vec![Notice::Killing]),
            (up.clone(), idle(), vec![Notice::Fenced(FencedBy::Lease, Method::Sql)]),
            (killing, down.clone(), vec![Notice::Fenced(FencedBy::Lease, Method::Killed)]),
            (tried(None), marked(Some(START)), vec![Notice::Opened]),
            (tried(Some(StartId(6))), marked(Some(START)), vec![Notice::Reopened]),
            (tried(Some(START)), marked(Some(START)), vec![Notice::Reopened]),
            (glimpse(opening()), up, vec![Notice::NotOpened, Notice::Fencing(FencedBy::Lease)]),
            (idle(), Glimpse { stored: Some(2), ..idle() }, vec![Notice::Stored(2)]),
            (idle(), Glimpse { conflict: Some(1), ..idle() }, vec![Notice::Conflict(1)]),
            (marked(Some(START)), down, vec![Notice::EndedWithPermit(permit())]),
        ];
        for (before, after, expect) in rows {
            assert_eq!(between(&before, &after), expect, "{before:?} {after:?}");
        }
    }
}
