//! Work at a site's server: one task at a time in each lane, bounded, ended when leadership is.
//!
//! In: tasks of the brain's. Out: how each ended, at the latest when its bound is over. Must not: let one lane wait for
//! another, or begin anything without leadership.

use super::emptying::Recipient;
use super::informer::{self, Network};
use super::leader::ToLeader;
use super::sidecar::Line;
use super::{Common, Shared};
use crate::servers::{Server, Servers};
use crate::tasks::{Owned, own, rest, unless_it_panics};
use crate::world::World;
use bloodraven_brain::group::command::Lane;
use bloodraven_brain::group::input::Outcome;
use bloodraven_brain::group::{Input, Task, WorkId};
use bloodraven_brain::message::QuestionId;
use bloodraven_brain::name::Site;
use bloodraven_brain::site::Pair;
use bloodraven_gtid::Uuid;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, timeout, timeout_at};

/// The brain gives a lane one task at a time; a second one can wait while the first is being given up.
const WAITING: usize = 2;

/// A verb that was given up ends on the server what it began; it has its own bound, and gets this much more.
const CLEARING: Duration = Duration::from_millis(250);

/// A session that lay idle for longer is not used again.
const KEPT_FOR: Duration = Duration::from_secs(10);

/// How often a copy is looked at, and how long a look may take.
const LOOK_EVERY: Duration = Duration::from_secs(2);
const LOOK_WITHIN: Duration = Duration::from_secs(2);

/// One task.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) id: WorkId,
    pub(super) server: Option<Uuid>,
    pub(super) task: Task,
    pub(super) until: Instant,
}

/// A lane's session, for the next task: those of a move follow each other at once. An older one may lead nowhere any more,
/// and would be found out by a task that had to wait for nothing.
struct Kept<Session> {
    of: Server,
    session: Session,
    used: Instant,
}

/// Where it is done, and under which epoch.
#[derive(Clone)]
struct Place {
    site: Site,
    network: watch::Receiver<Network>,
    /// The epoch that the leader knows to be stored.
    epoch: Arc<AtomicU64>,
}

/// The lanes of one site, each begun with its first task: at rest most have none, and there are five at every site.
pub(super) struct Lanes {
    begun: BTreeMap<Lane, Begun>,
    begin: Box<dyn Fn() -> Begun + Send>,
}

struct Begun {
    jobs: mpsc::Sender<Box<Job>>,
    _task: Owned,
}

impl Lanes {
    pub(super) fn begin<W: World, S: Servers>(
        common: &Arc<Common<W, S>>,
        shared: &Arc<Shared>,
        site: &Site,
        network: &watch::Receiver<Network>,
        inbox: &mpsc::Sender<ToLeader>,
        epoch: &Arc<AtomicU64>,
    ) -> Self {
        let (common, shared, inbox) = (Arc::clone(common), Arc::clone(shared), inbox.clone());
        let place = Place { site: site.clone(), network: network.clone(), epoch: Arc::clone(epoch) };
        let begin = move || {
            let (jobs, taken) = mpsc::channel(WAITING);
            let (common, shared, place) = (Arc::clone(&common), Arc::clone(&shared), place.clone());
            Begun { jobs, _task: own(work(common, shared, place, inbox.clone(), taken)) }
        };
        Self { begun: BTreeMap::new(), begin: Box::new(begin) }
    }

    /// Puts a task into its lane. Comes back when there is no room.
    pub(super) fn take(&mut self, job: Box<Job>) -> Result<(), Box<Job>> {
        let lane = self.begun.entry(job.task.lane()).or_insert_with(&self.begin);
        lane.jobs.try_send(job).map_err(|error| match error {
            mpsc::error::TrySendError::Full(job) | mpsc::error::TrySendError::Closed(job) => job,
        })
    }
}

async fn work<W: World, S: Servers>(
    common: Arc<Common<W, S>>,
    shared: Arc<Shared>,
    place: Place,
    inbox: mpsc::Sender<ToLeader>,
    mut jobs: mpsc::Receiver<Box<Job>>,
) {
    let mut kept = None;
    while let Some(job) = next(&mut jobs, &mut kept).await {
        let Job { id, server, task, until } = *job;
        // On the heap while it lasts: a lane is idle for most of its life, and there are thousands.
        let done = Box::pin(one(&common, &shared, &place, &mut kept, server, &task, until));
        let outcome = tokio::select! {
            outcome = done => outcome,
            never = Box::pin(watch_copy(&common, &shared, &place, &inbox)), if matches!(task, Task::Clone { .. }) => match never {},
        };
        if let Outcome::Refused(_) = &outcome {
            shared.reread.notify_one();
        }
        if matches!(task, Task::Fence) {
            let confirmed = matches!(&outcome, Outcome::Read(facts) if facts.pair == Pair::CLOSED);
            common.ears.fenced(&shared.id, &place.site, confirmed);
        }
        if inbox.send(ToLeader::Input(Input::Done { id, outcome })).await.is_err() {
            return;
        }
    }
}

/// The next task. A session that nobody will use again is ended meanwhile.
async fn next<Session>(jobs: &mut mpsc::Receiver<Box<Job>>, kept: &mut Option<Kept<Session>>) -> Option<Box<Job>> {
    if kept.is_some() {
        match timeout(KEPT_FOR, jobs.recv()).await {
            Ok(job) => return job,
            Err(_) => *kept = None,
        }
    }
    jobs.recv().await
}

async fn one<W: World, S: Servers>(
    common: &Common<W, S>,
    shared: &Shared,
    place: &Place,
    kept: &mut Option<Kept<S::Session>>,
    meant: Option<Uuid>,
    task: &Task,
    until: Instant,
) -> Outcome {
    if matches!(task, Task::Cache(_)) {
        return Outcome::Failed("caches are not built yet".to_owned());
    }
    let site = &place.site;
    if let Task::SetPasswords { epoch, .. } | Task::DiscardPasswords { epoch, .. } = task
        && *epoch != place.epoch.load(Ordering::SeqCst)
    {
        return Outcome::Failed("authority has changed since it was asked for".to_owned());
    }
    let (network, known) = (place.network.borrow().clone(), shared.secrets.borrow().clone());
    let Some(server) = informer::server(site, &network, known.as_deref()) else {
        return Outcome::Failed(format!("{site} has no address or no account yet"));
    };
    let left = || until.saturating_duration_since(Instant::now());
    let fresh = |kept: &mut Kept<S::Session>| kept.of == server && kept.used.elapsed() < KEPT_FOR;
    let mut session = kept.take_if(fresh).map(|kept| kept.session);
    let work = unless_it_panics(async {
        let Task::Clone { donor, over: Some(over), asked: true } = task else {
            return common.servers.work(&server, &mut session, meant, task, left()).await;
        };
        let Some(line) = line(common, shared, place) else {
            return Outcome::Failed(format!("{site} has no address of its sidecar yet"));
        };
        let epoch = place.epoch.load(Ordering::SeqCst);
        let recipient = Recipient { servers: &*common.servers, server: &server, line: &line, epoch, until };
        match recipient.make_room(meant, over).await {
            Ok((uuid, held)) => {
                let clone = Task::Clone { donor: donor.clone(), over: Some(Box::new(held)), asked: true };
                common.servers.work(&server, &mut None, Some(uuid), &clone, left()).await
            }
            Err(outcome) => outcome,
        }
    });
    let outcome = match timeout_at(until + CLEARING, common.leadership.guard(work)).await {
        Ok(Ok(Some(outcome))) => outcome,
        Ok(Ok(None)) => Outcome::Failed("the task panicked; its effect is unknown".to_owned()),
        Ok(Err(_)) => Outcome::Failed("leadership was lost".to_owned()),
        Err(_) => Outcome::Failed("it took too long; its effect is unknown".to_owned()),
    };
    let failed = matches!(outcome, Outcome::Failed(_) | Outcome::Refused(_));
    *kept = session.filter(|_| !failed).map(|session| Kept { of: server, session, used: Instant::now() });
    outcome
}

/// Tells how far the copy into the site is, as long as it is polled.
async fn watch_copy<W: World, S: Servers>(
    common: &Common<W, S>,
    shared: &Shared,
    place: &Place,
    inbox: &mpsc::Sender<ToLeader>,
) -> Infallible {
    let mut session = None;
    loop {
        rest(LOOK_EVERY).await;
        let (network, known) = (place.network.borrow().clone(), shared.secrets.borrow().clone());
        let Some(server) = informer::server(&place.site, &network, known.as_deref()) else { continue };
        let look = unless_it_panics(common.servers.clone_bytes(&server, &mut session, LOOK_WITHIN));
        if let Ok(Some(Ok(Some(bytes)))) = timeout(LOOK_WITHIN, look).await {
            let site = place.site.clone();
            // Nobody listens any more: whoever polls this is gone in a moment.
            let _ = inbox.send(ToLeader::Input(Input::CloneProgress { site, bytes })).await;
        }
    }
}

/// The way to the site's sidecar.
fn line<W: World, S: Servers>(common: &Common<W, S>, shared: &Shared, place: &Place) -> Option<Line> {
    let at = place.network.borrow().as_ref()?.get(&place.site)?.sidecar.clone();
    let keys = shared.secrets.borrow().as_ref()?.now.keys.clone();
    let observed = common.world.now().wall;
    let (client, site, group) = (common.client.clone(), place.site.clone(), shared.uid.clone());
    // No question rides on what is said here.
    Some(Line { client, site, at, group, keys, id: QuestionId(0), observed })
}
