//! The lane: fencing and opening, one operation at a time, each within its bound.
//!
//! In: operations with their tokens. Out: how each ended. Must not: run two at a time (a new one ends the one before,
//! wherever it stands), stay silent about one that broke or panicked, or let anything else reach the opener.

mod opener;

use crate::chain::Token;
use crate::keeper::Keeper;
use crate::local::Local;
use bloodraven_brain::fence::{Budget, LaneResult, Permit, ReadBack};
use bloodraven_brain::message::StartId;
use bloodraven_brain::record::Epoch;
use bloodraven_brain::time::{Boot, Millis};
use bloodraven_mysql::{Deadline, Server, Wanted, fence, read_back, sessions};
use opener::Opener;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

/// How long the keeper may take to give a permit: it answers in a millisecond.
const PERMIT_WITHIN: Duration = Duration::from_secs(1);

/// What its fencing sessions are called on the server, so that a later life finds them.
const FENCES: &str = "sidecar-fence";

/// How long ending applications' sessions may take in all, and in how many passes: new ones may come meanwhile.
const SESSIONS_WITHIN: Duration = Duration::from_secs(2);
const PASSES: u32 = 20;

/// One operation.
#[derive(Clone, Debug)]
pub(crate) enum Operation {
    /// Connect the opener session of that start.
    Connect { start: StartId, within: Millis },
    /// Ask the keeper for the permit.
    Permit(Permit),
    /// Send the opening statement over the session that stands, not after the lease.
    Open { lease: Boot, within: Millis },
    /// End the opener's sessions and see them gone.
    EndOpeners { start: StartId, within: Millis },
    /// End fences of an earlier life and see them gone.
    EndFences { start: StartId, within: Millis },
    /// Set both variables.
    Fence { within: Millis },
    /// Read both variables, then the executed set.
    Read { start: StartId, under: Option<Epoch>, blind: bool, within: Millis },
    /// Have the keeper kill that start.
    Kill(StartId),
}

/// How an operation ended.
#[derive(Clone, Debug)]
pub(crate) struct Ended {
    pub(crate) token: Token,
    pub(crate) result: LaneResult,
}

/// The lane's hands.
pub(crate) struct Lane {
    tools: Tools,
    reports: mpsc::Sender<Ended>,
    running: Option<AbortHandle>,
    /// The pass that ends applications' sessions, beside the lane.
    clearing: Option<AbortHandle>,
}

#[derive(Clone)]
struct Tools {
    local: Arc<Local>,
    keeper: Keeper,
    opener: Arc<Mutex<Option<Opener>>>,
}

impl Lane {
    pub(crate) fn new(local: Arc<Local>, keeper: Keeper, reports: mpsc::Sender<Ended>) -> Self {
        let tools = Tools { local, keeper, opener: Arc::default() };
        Self { tools, reports, running: None, clearing: None }
    }

    /// Begins an operation; the one before ends where it stands.
    pub(crate) fn begin(&mut self, tasks: &mut JoinSet<()>, token: Token, operation: Operation) {
        self.cancel();
        let (tools, mut report) = (self.tools.clone(), Report::new(token, self.reports.clone()));
        self.running = Some(tasks.spawn(async move {
            report.result = tools.run(operation).await;
            report.send().await;
        }));
    }

    /// Ends the operation under way where it stands.
    pub(crate) fn cancel(&mut self) {
        if let Some(running) = self.running.take() {
            running.abort();
        }
    }

    /// Reports an operation that was not begun as failed.
    pub(crate) fn report_failed(&self, tasks: &mut JoinSet<()>, token: Token) {
        let report = Report::new(token, self.reports.clone());
        tasks.spawn(report.send());
    }

    /// Ends applications' sessions, unless that is under way.
    pub(crate) fn clear_sessions(&mut self, tasks: &mut JoinSet<()>) {
        if self.clearing.as_ref().is_some_and(|clearing| !clearing.is_finished()) {
            return;
        }
        let local = Arc::clone(&self.tools.local);
        self.clearing = Some(tasks.spawn(async move {
            let deadline = Deadline::within(SESSIONS_WITHIN);
            let spared = local.spared();
            let Ok(mut session) = local.open(deadline).await else { return };
            if let Err(error) = sessions::end_all(&mut session, Wanted::Any, &spared, PASSES, deadline).await {
                tracing::warn!(error = %error, "sessions of applications may be left");
            }
        }));
    }

    /// Fences because mysqld is about to be stopped; true when it is closed for certain.
    pub(crate) fn close_for_the_end(&self) -> impl Future<Output = bool> + Send + use<> {
        let tools = self.tools.clone();
        async move {
            let start = tools.keeper.known_start().unwrap_or(StartId(0));
            tools.end_openers(start, Budget::OPENERS).await == LaneResult::OpenersGone
                && tools.fence_by(tools.local.servers(), Budget::FENCE).await == LaneResult::FenceSet
                && matches!(tools.read(start, None, true, Budget::READ).await,
                    LaneResult::Read(read) if read.closed())
        }
    }
}

impl Tools {
    async fn run(&self, operation: Operation) -> LaneResult {
        match operation {
            Operation::Connect { start, within } => bounded(within, self.connect(start, within)).await,
            Operation::Permit(permit) if self.keeper.permit(permit, PERMIT_WITHIN).await => {
                LaneResult::PermitGiven(permit)
            }
            Operation::Open { lease, within } => bounded(within, self.open(lease, within)).await,
            Operation::EndOpeners { start, within } => bounded(within, self.end_openers(start, within)).await,
            Operation::EndFences { start, within } => bounded(within, self.end_fences(start, within)).await,
            Operation::Fence { within } => bounded(within, self.fence(within)).await,
            Operation::Read { start, under, blind, within } => {
                bounded(within, self.read(start, under, blind, within)).await
            }
            Operation::Kill(start) if self.keeper.kill(start, duration(Budget::KILL)).await => {
                LaneResult::Killed(start)
            }
            Operation::Permit(_) | Operation::Kill(_) => LaneResult::Failed,
        }
    }

    async fn connect(&self, start: StartId, within: Millis) -> LaneResult {
        self.put(None);
        let Some(password) = self.keeper.opener(start, duration(within)).await else { return LaneResult::Failed };
        match Opener::connect(self.local.admin(), start, &password).await {
            Ok(opener) => {
                self.put(Some(opener));
                LaneResult::OpenerConnected
            }
            Err(why) => failed("connect the opener", &why),
        }
    }

    async fn open(&self, lease: Boot, within: Millis) -> LaneResult {
        let known = self.keeper.known_start();
        let Some(opener) = self.take().filter(|opener| Some(opener.start()) == known) else {
            return failed("open", "no opener session stands");
        };
        match opener.open(lease, within).await {
            Ok(()) => LaneResult::OpenSent,
            Err(why) => failed("open", &why),
        }
    }

    async fn end_openers(&self, start: StartId, within: Millis) -> LaneResult {
        self.put(None);
        let deadline = Deadline::within(duration(within));
        let ended = self.local.over_kept(start, deadline, async |session, deadline| {
            sessions::end_account(session, Wanted::Any, crate::config::OPENER, deadline).await
        });
        match ended.await {
            Ok(()) => LaneResult::OpenersGone,
            Err(error) => failed("end the opener's sessions", &error),
        }
    }

    async fn end_fences(&self, start: StartId, within: Millis) -> LaneResult {
        let deadline = Deadline::within(duration(within));
        let ended = self.local.over_kept(start, deadline, async |session, deadline| {
            sessions::end_purpose(session, Wanted::Any, FENCES, deadline).await
        });
        match ended.await {
            Ok(()) => LaneResult::FencesGone,
            Err(error) => failed("end fences of an earlier life", &error),
        }
    }

    /// A fence of the lane; the one before mysqld's end has no such name, and nobody ends it.
    async fn fence(&self, within: Millis) -> LaneResult {
        self.fence_by(self.local.servers().map(|server| server.with_purpose(FENCES)), within).await
    }

    async fn fence_by(&self, [admin, client]: [Server; 2], within: Millis) -> LaneResult {
        let deadline = Deadline::within(duration(within));
        let spared = self.local.spared();
        let fenced = match fence(&admin, Wanted::Any, &spared, deadline).await {
            Err(unfenced) if matches!(unfenced.error, bloodraven_mysql::Error::Connect { .. }) => {
                fence(&client, Wanted::Any, &spared, deadline).await
            }
            fenced => fenced,
        };
        match fenced {
            Ok(_) => LaneResult::FenceSet,
            Err(error) => failed("fence", &error),
        }
    }

    /// Whichever server answers is the only one that can, so what the keeper has told last says which start it is. While
    /// the keeper has told nothing the caller's guess stands.
    async fn read(&self, start: StartId, under: Option<Epoch>, blind: bool, within: Millis) -> LaneResult {
        let deadline = Deadline::within(duration(within));
        let read = self.local.over_kept(start, deadline, async |session, deadline| read_back(session, deadline).await);
        let read = match read.await {
            Ok(read) => read,
            Err(error) => {
                // Every tick, for as long as mysqld does not answer.
                tracing::debug!(error = %error, "cannot read the fence");
                return LaneResult::Failed;
            }
        };
        let contradicts = self.keeper.known_start().is_some_and(|known| known != start);
        if contradicts && !blind {
            return failed("read the fence", "another start of mysqld answers");
        }
        let gtid = read.executed.unwrap_or_else(|| {
            tracing::error!("gtid_executed cannot be read; it counts as empty, and nothing opens on it");
            bloodraven_gtid::GtidSet::default()
        });
        let (read_only, super_read_only) = (read.pair.read_only, read.pair.super_read_only);
        LaneResult::Read(ReadBack { start, under, read_only, super_read_only, gtid })
    }

    fn put(&self, opener: Option<Opener>) {
        *self.opener.lock().unwrap_or_else(PoisonError::into_inner) = opener;
    }

    fn take(&self) -> Option<Opener> {
        self.opener.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Reports an operation's end, also of one that panicked.
struct Report {
    token: Token,
    result: LaneResult,
    to: Option<mpsc::Sender<Ended>>,
}

impl Report {
    fn new(token: Token, to: mpsc::Sender<Ended>) -> Self {
        Self { token, result: LaneResult::Failed, to: Some(to) }
    }

    async fn send(mut self) {
        if let Some(to) = self.to.take() {
            let _ = to.send(Ended { token: self.token, result: self.result.clone() }).await;
        }
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        if let Some(to) = self.to.take() {
            // Of an operation that was cancelled nobody wants to hear; the token tells.
            let _ = to.try_send(Ended { token: self.token, result: LaneResult::Failed });
        }
    }
}

/// What has not ended by then has failed.
async fn bounded(within: Millis, work: impl Future<Output = LaneResult>) -> LaneResult {
    tokio::time::timeout(duration(within), work).await.unwrap_or(LaneResult::Failed)
}

fn failed(doing: &'static str, why: &(impl std::fmt::Display + ?Sized)) -> LaneResult {
    tracing::warn!(error = %why, "cannot {doing}");
    LaneResult::Failed
}

const fn duration(millis: Millis) -> Duration {
    Duration::from_millis(millis.0)
}
