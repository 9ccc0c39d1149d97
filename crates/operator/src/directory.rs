//! Which groups there are: each is attended to by a task of its own, from when it appears until it is gone.
//!
//! In: the world's groups. Out: attended groups. Must not: let an object that cannot be read, or a list that cannot be had,
//! end what is being attended to.

use crate::beats::Beat;
use crate::group::{self, Common, Shared};
use crate::http::Groups;
use crate::pace;
use crate::servers::Servers;
use crate::tasks::{Owned, rest};
use crate::told::Told;
use crate::world::{Glimpse, GroupId, World};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

/// How long the list may take.
const LIST_BOUND: Duration = Duration::from_secs(5);

/// Without a word of a change it is read again after so long: watches can go quiet.
const AGAIN: Duration = Duration::from_secs(3);

/// After a list that failed.
const AFTER_A_FAILURE: Duration = Duration::from_secs(1);

/// Changes come in swarms; those of many groups in larger ones, and each look goes over all of them.
const SWARM: Duration = Duration::from_millis(5);

struct Attended {
    shared: Arc<Shared>,
    told: watch::Sender<Arc<Told>>,
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
    let mut orphans_due = Instant::now();
    loop {
        beat.beat();
        changes.borrow_and_update();
        let pause = match timeout(LIST_BOUND, common.world.groups()).await {
            Ok(Ok(glimpses)) => {
                reconcile(&common, &mut attended, glimpses);
                publish(&attended, &groups);
                synced.send_replace(true);
                if Instant::now() >= orphans_due {
                    release_orphans(&common).await;
                    orphans_due = Instant::now() + AGAIN;
                }
                AGAIN
            }
            Ok(Err(unavailable)) => {
                tracing::warn!(error = %unavailable, "the groups cannot be listed");
                AFTER_A_FAILURE
            }
            Err(_) => AFTER_A_FAILURE,
        };
        tokio::select! {
            Ok(()) = changes.changed() => rest(pace::among(attended.len(), SWARM)).await,
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

/// One that is malformed now and was fine before is attended to as it was. Most are what they were: with a thousand groups
/// somebody changes all the time.
fn reconcile<W: World, S: Servers>(
    common: &Arc<Common<W, S>>,
    attended: &mut BTreeMap<GroupId, Attended>,
    glimpses: Vec<Glimpse>,
) {
    let listed: BTreeSet<&GroupId> = glimpses.iter().map(|glimpse| &glimpse.id).collect();
    attended.retain(|id, _| listed.contains(id));
    drop(listed);
    for Glimpse { id, object } in glimpses {
        let known = attended.get(&id);
        if known.is_some_and(|known| Arc::ptr_eq(&known.told.borrow().text, &object)) {
            continue;
        }
        let object = match Told::read(object) {
            Ok(object) => Arc::new(object),
            Err(why) => {
                tracing::warn!(fg = %id, error = %why, "an object is left alone");
                continue;
            }
        };
        if let Some(known) = known.filter(|known| known.shared.uid == object.uid) {
            known.told.send_if_modified(|told| {
                let news = told.version != object.version || told.text != object.text;
                *told = object;
                news
            });
            continue;
        }
        // Another of the same name: whoever attended to the one before ends first.
        attended.remove(&id);
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
