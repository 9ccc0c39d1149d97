//! Which groups there are: each is attended to by a task of its own, from when it appears until it is gone.
//!
//! In: the world's groups. Out: attended groups. Must not: let an object that cannot be read, or a list that cannot be had,
//! end what is being attended to.

use crate::beats::Beat;
use crate::group::{self, Common, Shared};
use crate::http::Groups;
use crate::object::{self, Object};
use crate::servers::Servers;
use crate::tasks::{Owned, rest};
use crate::world::{GroupId, World};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// How long the list may take.
const LIST_BOUND: Duration = Duration::from_secs(5);

/// Without a word of a change it is read again after so long: watches can go quiet.
const AGAIN: Duration = Duration::from_secs(3);

/// After a list that failed.
const AFTER_A_FAILURE: Duration = Duration::from_secs(1);

/// Changes come in swarms.
const SWARM: Duration = Duration::from_millis(5);

struct Attended {
    shared: Arc<Shared>,
    told: watch::Sender<Arc<Object>>,
    _task: Owned,
}

/// Runs for ever.
pub(crate) async fn keep<W: World, S: Servers>(
    common: Arc<Common<W, S>>,
    groups: watch::Sender<Groups>,
    synced: watch::Sender<bool>,
    beat: Beat,
) {
    let mut changes = common.world.changes();
    let mut attended: BTreeMap<GroupId, Attended> = BTreeMap::new();
    loop {
        beat.beat();
        changes.borrow_and_update();
        let pause = match timeout(LIST_BOUND, common.world.groups()).await {
            Ok(Ok(glimpses)) => {
                let (good, bad) = object::sorted(glimpses);
                for (id, why) in &bad {
                    tracing::warn!(fg = %id, error = %why, "an object is left alone");
                }
                reconcile(&common, &mut attended, good, &bad.into_iter().map(|(id, _)| id).collect());
                publish(&attended, &groups);
                synced.send_replace(true);
                release_orphans(&common).await;
                AGAIN
            }
            Ok(Err(unavailable)) => {
                tracing::warn!(error = %unavailable, "the groups cannot be listed");
                AFTER_A_FAILURE
            }
            Err(_) => AFTER_A_FAILURE,
        };
        tokio::select! {
            Ok(()) = changes.changed() => rest(SWARM).await,
            () = rest(pause) => {}
        }
    }
}

/// By the leader alone; what fails is tried again with the next list.
async fn release_orphans<W: World, S: Servers>(common: &Common<W, S>) {
    if !common.leadership.holds() {
        return;
    }
    let call = timeout(LIST_BOUND, common.leadership.guard(common.world.release_orphans()));
    if let Ok(Ok(Err(refused))) = call.await {
        tracing::warn!(error = %refused, "a pod whose group is gone cannot be released");
        common.ears.write_failed("pod");
    }
}

/// One that is malformed now and was fine before is attended to as it was.
fn reconcile<W: World, S: Servers>(
    common: &Arc<Common<W, S>>,
    attended: &mut BTreeMap<GroupId, Attended>,
    good: BTreeMap<GroupId, Arc<Object>>,
    bad: &BTreeSet<GroupId>,
) {
    attended.retain(|id, group| bad.contains(id) || good.get(id).is_some_and(|object| object.uid == group.shared.uid));
    for (id, object) in good {
        if let Some(known) = attended.get(&id) {
            known.told.send_if_modified(|told| {
                let same = Arc::ptr_eq(&told.raw, &object.raw);
                let news = !same && (told.version != object.version || told.raw != object.raw);
                *told = object;
                news
            });
            continue;
        }
        let uid = object.uid.clone();
        let (told, receiver) = watch::channel(object);
        let (shared, task) = group::attend(common, id.clone(), uid, receiver);
        attended.insert(id, Attended { shared, told, _task: task });
    }
}

fn publish(attended: &BTreeMap<GroupId, Attended>, groups: &watch::Sender<Groups>) {
    groups.send_if_modified(|known| {
        let same = known.len() == attended.len()
            && known.iter().zip(attended).all(|((_, one), (_, other))| Arc::ptr_eq(one, &other.shared));
        if !same {
            *known = attended.iter().map(|(id, group)| (id.clone(), Arc::clone(&group.shared))).collect();
        }
        !same
    });
}
