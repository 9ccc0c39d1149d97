//! One group, on every replica of the operator: its secrets, its spec, and, while this process leads, its leader.
//!
//! In: the group's object as it changes, reigns. Out: a leader for each reign; what `/active-site` and `/status` need of a
//! group, leader or not. Must not: let one group's trouble reach another.

mod emptying;
mod errand;
mod furnish;
mod heard;
mod informer;
mod known;
mod lanes;
mod leader;
mod outward;
mod poller;
mod prober;
mod progress;
mod refusal;
mod report;
mod secrets;
mod sidecar;
mod spec;
mod store;
mod taken;
mod words;

pub(crate) use leader::{Asked, ToLeader};
pub(crate) use report::entry;
pub(crate) use sidecar::{client, reason};
pub(crate) use words::forecast;

use crate::beats::Beats;
use crate::ears::Ears;
use crate::election::Reign;
use crate::guard::Leadership;
use crate::http::replay::Replay;
use crate::object::Object;
use crate::servers::Servers;
use crate::tasks::{again_after_panics, own};
use crate::told::Told;
use crate::world::{Event, GroupId, World};
use bloodraven_wire::GroupUid;
use refusal::Unled;
use report::Sight;
use secrets::Known;
use serde_json::Value;
use spec::Valid;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, Semaphore, broadcast, mpsc, watch};
use tokio::time::timeout;

/// How long a call to the store may take.
const STORE_BOUND: Duration = Duration::from_secs(5);

/// The same for what nobody waits for: with many groups it waits for its turn first, and its requests have bounds of their own.
const PATIENT_BOUND: Duration = Duration::from_secs(30);

/// Events that wait to be written; more than that is noise, and it is in the log.
const EVENTS: usize = 128;

/// What all groups share.
pub(crate) struct Common<W, S> {
    pub(crate) world: Arc<W>,
    pub(crate) servers: Arc<S>,
    pub(crate) client: reqwest::Client,
    pub(crate) leadership: Leadership,
    pub(crate) reigns: watch::Receiver<Option<Reign>>,
    /// How many groups are being led.
    pub(crate) leading: watch::Sender<usize>,
    pub(crate) beats: Beats,
    pub(crate) ears: Arc<dyn Ears>,
    /// For those who follow over `WebSockets`.
    pub(crate) hub: broadcast::Sender<Arc<str>>,
    /// Groups whose objects are looked at, at a time.
    pub(crate) furnishing: Semaphore,
    /// See [`crate::settings::Settings::progress`].
    pub(crate) progress: Duration,
}

/// What the rest of the process knows of one group.
pub(crate) struct Shared {
    pub(crate) id: GroupId,
    pub(crate) uid: GroupUid,
    pub(crate) told: watch::Receiver<Arc<Told>>,
    pub(crate) secrets: watch::Sender<Option<Arc<Known>>>,
    /// Somebody was refused: read the secrets again.
    pub(crate) reread: Notify,
    /// The last spec that could be taken.
    valid: watch::Sender<Option<Arc<Valid>>>,
    /// Why the present spec is not it.
    refused: Mutex<Option<String>>,
    /// Why its objects are not as the valid one wants them; the store's trouble apart.
    unbuilt: Mutex<Option<String>>,
    /// Why its secrets are not complete, where somebody has to do something about it.
    unread: Mutex<Option<String>>,
    /// The leader's inbox; none: this process does not lead, or not yet.
    leader: Mutex<Option<mpsc::Sender<ToLeader>>>,
    /// The leader as it was a moment ago, for those who write or show its status.
    outlook: watch::Sender<Option<Arc<Sight>>>,
    /// Nonces of questions that were answered.
    pub(crate) answered: Mutex<Replay>,
    events: mpsc::Sender<Event>,
}

/// Attends to one group until dropped.
pub(crate) fn attend<W: World, S: Servers>(
    common: &Arc<Common<W, S>>,
    id: GroupId,
    uid: GroupUid,
    told: watch::Receiver<Arc<Told>>,
) -> (Arc<Shared>, crate::tasks::Owned) {
    let (events, written) = mpsc::channel(EVENTS);
    let shared = Arc::new(Shared {
        id,
        uid,
        told,
        secrets: watch::Sender::new(None),
        reread: Notify::new(),
        valid: watch::Sender::new(None),
        refused: Mutex::default(),
        unbuilt: Mutex::default(),
        unread: Mutex::default(),
        leader: Mutex::default(),
        outlook: watch::Sender::new(None),
        answered: Mutex::default(),
        events,
    });
    let (common, group) = (Arc::clone(common), Arc::clone(&shared));
    let task = own(async move {
        let _secrets = own(secrets::keep(Arc::clone(&common), Arc::clone(&group)));
        let _events = own(write_events(Arc::clone(&common), group.id.clone(), written));
        let name = format!("group {}", group.id);
        again_after_panics(&name, &common.ears, || lead_whenever_elected(Arc::clone(&common), Arc::clone(&group)))
            .await;
    });
    (shared, task)
}

/// Reign after reign.
async fn lead_whenever_elected<W: World, S: Servers>(common: Arc<Common<W, S>>, shared: Arc<Shared>) {
    let mut reigns = common.reigns.clone();
    let mut told = shared.told.clone();
    // Kept while nobody can lead it: what people were told goes with it.
    let mut unled = None;
    loop {
        let Ok(Some(reign)) = reigns.wait_for(Option::is_some).await.map(|reign| *reign) else { return };
        told.borrow_and_update();
        let object = shared.object();
        let (valid, unread) = match shared.take_spec(&common, &object) {
            None if !shared.told.borrow().deleting => Box::pin(taken::recover(&common, &shared, &object)).await,
            valid => (valid, false),
        };
        let unled_now = valid.is_none() && !shared.told.borrow().deleting;
        let refused = lock(&shared.refused).clone().filter(|_| unled_now);
        if refused.is_none() {
            unled = None;
        }
        if let Some(valid) = valid {
            let _count = Counted::new(&common.leading);
            let _furnish = own(furnish::keep(Arc::clone(&common), Arc::clone(&shared)));
            let _taken = own(taken::keep(Arc::clone(&common), Arc::clone(&shared)));
            let leader = leader::Leader::new(&common, &shared, reign, valid);
            tokio::select! {
                () = reign_over(reigns.clone(), reign.number) => {}
                () = leader.lead(reigns.clone()) => {}
            }
            shared.retire();
            common.ears.forget(&shared.id);
        }
        if shared.told.borrow().deleting {
            tokio::select! {
                () = reign_over(reigns.clone(), reign.number) => {}
                () = furnish::dismiss(&common, &shared) => {}
            }
        }
        let nobody_leads = async {
            match &refused {
                Some(because) => unled.get_or_insert_with(|| Unled::new(&common, &shared)).tell(because).await,
                None => std::future::pending().await,
            }
        };
        // A spec that can be taken, or the next reign.
        tokio::select! {
            changed = told.changed() => if changed.is_err() { return },
            () = reign_over(reigns.clone(), reign.number) => {}
            () = nobody_leads => {}
            () = taken::again(), if unread => {}
        }
    }
}

async fn reign_over(mut reigns: watch::Receiver<Option<Reign>>, number: u64) {
    // An error: the election is gone, and with it every reign.
    let _ = reigns.wait_for(|reign| reign.is_none_or(|reign| reign.number != number)).await;
}

/// Counts the groups that are led.
struct Counted(watch::Sender<usize>);

impl Counted {
    fn new(leading: &watch::Sender<usize>) -> Self {
        leading.send_modify(|groups| *groups += 1);
        Self(leading.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.send_modify(|groups| *groups = groups.saturating_sub(1));
    }
}

/// One at a time, each with a bound; one that cannot be written is lost, and counted.
async fn write_events<W: World, S: Servers>(common: Arc<Common<W, S>>, id: GroupId, mut events: mpsc::Receiver<Event>) {
    while let Some(event) = events.recv().await {
        let write = timeout(PATIENT_BOUND, common.leadership.guard(common.world.record_event(&id, &event)));
        match write.await {
            Ok(Ok(Ok(())) | Err(_)) => {}
            Ok(Ok(Err(_))) | Err(_) => common.ears.write_failed("event"),
        }
    }
}

impl Shared {
    /// Puts a question to the leader; what comes back says whether there is one that can take it.
    pub(crate) fn ask(&self, what: ToLeader) -> Result<(), ToLeader> {
        let leader = lock(&self.leader).clone();
        match leader {
            Some(leader) => leader.try_send(what).map_err(|error| match error {
                mpsc::error::TrySendError::Full(what) | mpsc::error::TrySendError::Closed(what) => what,
            }),
            None => Err(what),
        }
    }

    fn reign(&self, inbox: mpsc::Sender<ToLeader>) {
        *lock(&self.leader) = Some(inbox);
    }

    fn retire(&self) {
        *lock(&self.leader) = None;
        self.outlook.send_replace(None);
    }

    /// The status as the leader sees it; none: this process does not lead.
    pub(crate) fn outlook(&self) -> Option<Value> {
        let sight = self.outlook.borrow().clone();
        sight.map(|sight| report::whole(&sight))
    }

    /// Events beyond the bound are dropped: they are in the log.
    fn write(&self, events: Vec<Event>) {
        for event in events {
            let _ = self.events.try_send(event);
        }
    }

    fn has_replication(&self) -> bool {
        self.secrets.borrow().as_ref().is_some_and(|known| known.now.replication.is_some())
    }

    /// The object as it was told last.
    pub(crate) fn object(&self) -> Object {
        let told = Arc::clone(&self.told.borrow());
        told.object()
    }

    /// The spec as it stands, or the last one that could be taken; none: nothing can be led.
    fn take_spec<W: World, S: Servers>(&self, common: &Common<W, S>, object: &Object) -> Option<Arc<Valid>> {
        if object.deleting {
            return None;
        }
        let valid = self.valid.borrow().clone();
        let replication = self.has_replication();
        let now = common.world.now();
        let (next, refused) = match spec::read(object, valid.as_deref(), now.wall, replication) {
            Ok(read) => (read, None),
            // Secrets may come and go under a spec that stays.
            Err(because) => (valid.as_ref().and_then(|valid| valid.under(replication)), Some(because)),
        };
        let valid = match next {
            Some(next) => {
                let next = Some(Arc::new(next));
                self.valid.send_replace(next.clone());
                next
            }
            None => valid,
        };
        let mut known = lock(&self.refused);
        if *known != refused {
            self.write(common.ears.spec_refused(&self.id, now, refused.as_deref()));
            *known = refused;
        }
        valid
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
