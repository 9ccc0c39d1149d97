//! A group's objects: made and kept as its spec wants them, by the leader; taken care of when the group goes.
//!
//! In: the last spec that could be taken, the group's object as it changes. Out: calls to the world, and word of what stands
//! in the way. Must not: touch anything while the group is paused, or make anything for a group that is being deleted.

use super::{Common, Shared, lock};
use crate::servers::Servers;
use crate::tasks::rest;
use crate::world::{Event, EventKind, Look, Undismissed, Unfurnished, World};
use bloodraven_api::events::EventReason;
use bloodraven_api::keys;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// All objects of one group; each call to the store is short.
const FURNISH_BOUND: Duration = Duration::from_secs(30);

/// Without a word of a change everything is looked at again after so long: Secrets are not told of.
const AGAIN: Duration = Duration::from_secs(30);

/// After something that stood in the way, and longer each time that it still does.
const SOON: Duration = Duration::from_secs(1);
const NOT_SO_SOON: Duration = Duration::from_secs(8);

/// Changes come in swarms, most of them our own.
const SWARM: Duration = Duration::from_secs(1);

/// Runs for one reign.
pub(super) async fn keep<W: World, S: Servers>(common: Arc<Common<W, S>>, shared: Arc<Shared>) {
    let (mut specs, mut secrets) = (shared.valid.subscribe(), shared.secrets.subscribe());
    let mut objects = common.world.changes_of_objects(&shared.id);
    let (mut trouble, mut look, mut whole, mut unfinished) = (None, Look::All, false, SOON);
    *lock(&shared.unbuilt) = None;
    loop {
        // Another spec may have come while a swarm was waited out.
        if specs.has_changed().unwrap_or(false) || secrets.has_changed().unwrap_or(false) {
            look = Look::All;
        }
        secrets.borrow_and_update();
        objects.borrow_and_update();
        let valid = specs.borrow_and_update().clone();
        let deleting = shared.told.borrow().deleting;
        let wanted = valid.filter(|valid| !deleting && !valid.is_paused(common.world.now().wall));
        if let Some(valid) = wanted {
            // Not all groups at once: what is asked for their sake is asked first.
            let _turn = common.furnishing.acquire().await;
            let call = common.leadership.guard(common.world.furnish(&shared.id, valid.object(), look));
            let done = timeout(FURNISH_BOUND, call).await;
            whole = matches!(done, Ok(Ok(Ok(()))));
            let found = match done {
                Ok(Ok(done)) => done.err(),
                // Nobody answers, or this process leads no more: neither is the spec's fault.
                Ok(Err(_)) | Err(_) => trouble.clone(),
            };
            // The key is among what was made: until then it was missed.
            if whole && shared.secrets.borrow().is_none() {
                shared.reread.notify_one();
            }
            if whole || found != trouble {
                unfinished = SOON;
            }
            if found != trouble {
                let now = common.world.now();
                let is_specs = |it: &&Unfurnished| !matches!(it, Unfurnished::Store { .. });
                *lock(&shared.unbuilt) = found.as_ref().filter(is_specs).map(ToString::to_string);
                shared.write(common.ears.unfurnished(&shared.id, now, found.as_ref()));
                trouble = found;
            }
        }
        // What was not done to the end is begun anew, and soon: nobody tells of what was never made.
        let (pause, when_told) = if whole { (AGAIN, Look::Told) } else { (unfinished, Look::All) };
        unfinished = unfinished.saturating_mul(2).min(NOT_SO_SOON);
        look = tokio::select! {
            Ok(()) = specs.changed() => Look::All,
            Ok(()) = secrets.changed() => Look::All,
            Ok(()) = objects.changed() => {
                rest(SWARM).await;
                when_told
            }
            () = rest(pause) => Look::All,
        };
    }
}

/// The group is being deleted: it is let go in order, and then its object may go. Runs until that is done or the reign is
/// over.
pub(super) async fn dismiss<W: World, S: Servers>(common: &Common<W, S>, shared: &Shared) {
    shared.write(vec![Event {
        kind: EventKind::Normal,
        reason: EventReason::GracefulShutdown.as_str().to_owned(),
        message: "the group is being deleted: taints are removed, then its objects go".to_owned(),
        at: common.world.now().wall,
    }]);
    let began = common.world.now().boot;
    let mut tainted: Option<String> = None;
    loop {
        let now = common.world.now();
        let patience = now.boot.since(began).0 < PATIENCE_MS;
        if let Some(because) = tainted.take_if(|_| !patience) {
            shared.write(vec![Event {
                kind: EventKind::Warning,
                reason: EventReason::TaintFailed.as_str().to_owned(),
                message: format!(
                    "the taint {} could not be removed in time: {because}; the group goes without that, take it off by hand",
                    keys::taint_key(&shared.id.name)
                ),
                at: now.wall,
            }]);
            // It is about an object that goes in a moment.
            rest(SOON).await;
        }
        let call = common.leadership.guard(common.world.dismiss(&shared.id, patience));
        match timeout(FURNISH_BOUND, call).await {
            Ok(Ok(Ok(()))) => return,
            Ok(Ok(Err(undismissed))) => {
                tracing::warn!(fg = %shared.id, error = %undismissed, "the group cannot be let go yet");
                common.ears.write_failed("dismissal");
                if let Undismissed::Tainted { because } = undismissed {
                    tainted = Some(because);
                }
            }
            Ok(Err(_)) | Err(_) => {}
        }
        rest(SOON).await;
    }
}

/// So long the taints are tried to be removed; then the group goes without that.
const PATIENCE_MS: u64 = 60_000;
