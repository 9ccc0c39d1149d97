//! Work at a site's server: one task at a time in each lane, bounded, ended when leadership is.
//!
//! In: tasks of the brain's. Out: how each ended, at the latest when its bound is over. Must not: let one lane wait for
//! another, or begin anything without leadership.

use super::informer::{self, Network};
use super::leader::ToLeader;
use super::{Common, Shared};
use crate::servers::Servers;
use crate::tasks::{Owned, own, unless_it_panics};
use crate::world::World;
use bloodraven_brain::group::command::Lane;
use bloodraven_brain::group::input::Outcome;
use bloodraven_brain::group::{Input, Task, WorkId};
use bloodraven_brain::name::Site;
use bloodraven_brain::site::Pair;
use bloodraven_gtid::Uuid;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, timeout_at};

/// The brain gives a lane one task at a time; a second one can wait while the first is being given up.
const WAITING: usize = 2;

/// A verb that was given up ends on the server what it began; it has its own bound, and gets this much more.
const CLEARING: Duration = Duration::from_millis(250);

/// One task.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) id: WorkId,
    pub(super) server: Option<Uuid>,
    pub(super) task: Task,
    pub(super) until: Instant,
}

/// The lanes of one site.
pub(super) struct Lanes {
    read: mpsc::Sender<Job>,
    fence: mpsc::Sender<Job>,
    change: mpsc::Sender<Job>,
    cache: mpsc::Sender<Job>,
    _tasks: [Owned; 4],
}

impl Lanes {
    pub(super) fn begin<W: World, S: Servers>(
        common: &Arc<Common<W, S>>,
        shared: &Arc<Shared>,
        site: &Site,
        network: &watch::Receiver<Network>,
        inbox: &mpsc::Sender<ToLeader>,
    ) -> Self {
        let lane = || {
            let (jobs, taken) = mpsc::channel(WAITING);
            let (common, shared) = (Arc::clone(common), Arc::clone(shared));
            let task = own(work(common, shared, site.clone(), network.clone(), inbox.clone(), taken));
            (jobs, task)
        };
        let ((read, one), (fence, two), (change, three), (cache, four)) = (lane(), lane(), lane(), lane());
        Self { read, fence, change, cache, _tasks: [one, two, three, four] }
    }

    /// Puts a task into its lane. Comes back when there is no room.
    pub(super) fn take(&self, job: Job) -> Result<(), Job> {
        let lane = match job.task.lane() {
            Lane::Read => &self.read,
            Lane::Fence => &self.fence,
            Lane::Change => &self.change,
            Lane::Cache => &self.cache,
        };
        lane.try_send(job).map_err(|error| match error {
            mpsc::error::TrySendError::Full(job) | mpsc::error::TrySendError::Closed(job) => job,
        })
    }
}

async fn work<W: World, S: Servers>(
    common: Arc<Common<W, S>>,
    shared: Arc<Shared>,
    site: Site,
    network: watch::Receiver<Network>,
    inbox: mpsc::Sender<ToLeader>,
    mut jobs: mpsc::Receiver<Job>,
) {
    while let Some(Job { id, server, task, until }) = jobs.recv().await {
        let outcome = one(&common, &shared, &site, &network, server, &task, until).await;
        if let Outcome::Refused(_) = &outcome {
            shared.reread.notify_one();
        }
        if matches!(task, Task::Fence) {
            let confirmed = matches!(&outcome, Outcome::Read(facts) if facts.pair == Pair::CLOSED);
            common.ears.fenced(&shared.id, &site, confirmed);
        }
        if inbox.send(ToLeader::Input(Input::Done { id, outcome })).await.is_err() {
            return;
        }
    }
}

async fn one<W: World, S: Servers>(
    common: &Common<W, S>,
    shared: &Shared,
    site: &Site,
    network: &watch::Receiver<Network>,
    meant: Option<Uuid>,
    task: &Task,
    until: Instant,
) -> Outcome {
    if matches!(task, Task::Cache(_)) {
        return Outcome::Failed("caches are not built yet".to_owned());
    }
    let (network, secrets) = (network.borrow().clone(), shared.secrets.borrow().clone());
    let Some(server) = informer::server(site, &network, secrets.as_deref()) else {
        return Outcome::Failed(format!("{site} has no address or no account yet"));
    };
    let left: Duration = until.saturating_duration_since(Instant::now());
    let work = unless_it_panics(common.servers.work(&server, meant, task, left));
    match timeout_at(until + CLEARING, common.leadership.guard(work)).await {
        Ok(Ok(Some(outcome))) => outcome,
        Ok(Ok(None)) => Outcome::Failed("the task panicked; its effect is unknown".to_owned()),
        Ok(Err(_)) => Outcome::Failed("leadership was lost".to_owned()),
        Err(_) => Outcome::Failed("it took too long; its effect is unknown".to_owned()),
    }
}
