//! What is tried at the primary beside its polls: whether a commit comes back, and which scheduled events do not run there.
//!
//! In: who writes now, how often to try. Out: what was found, told to the leader. Must not: touch a server that is not
//! confirmed to write, decide anything (a stall is an alert, never a reason to move), or leave a GTID.

use super::informer::{self, Network};
use super::leader::ToLeader;
use super::{Common, Shared};
use crate::servers::{Server, Servers, Silent};
use crate::tasks::{rest, unless_it_panics};
use crate::world::World;
use bloodraven_brain::name::Site;
use bloodraven_gtid::Uuid;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, timeout};

/// So many commits in a row that did not come back are a stall.
const MISSES: u32 = 3;

/// Scheduled events are looked for when somebody begins to write, and again after so long: people switch them on.
const EVENTS_AGAIN: Duration = Duration::from_mins(1);

/// How long that may take.
const EVENTS_WITHIN: Duration = Duration::from_secs(5);

/// With the write probe off.
const IDLE: Duration = Duration::from_secs(10);

/// Who writes, and how it is tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) site: Site,
    pub(super) server: Uuid,
    /// None: no commit is tried.
    pub(super) every: Option<Duration>,
    pub(super) within: Duration,
}

/// What was found at the one who writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Probed {
    /// Commits do not come back, in words.
    pub(super) stalled: Option<String>,
    /// Where, and which scheduled events do not run.
    pub(super) events: Option<(Site, Vec<String>)>,
}

/// Runs for one reign.
pub(super) async fn keep<W: World, S: Servers>(
    common: Arc<Common<W, S>>,
    shared: Arc<Shared>,
    mut wanted: watch::Receiver<Option<Target>>,
    network: watch::Receiver<Network>,
    inbox: mpsc::Sender<ToLeader>,
) {
    let mut told = Probed::default();
    loop {
        let target = wanted.borrow_and_update().clone();
        let mut visit = Visit { common: &common, shared: &shared, network: &network, kept: None, misses: 0, due: None };
        let mut found = Probed::default();
        loop {
            if let Some(target) = &target {
                Box::pin(visit.try_once(target, &mut found)).await;
            }
            if found != told {
                told = found.clone();
                if inbox.send(ToLeader::Probed(found.clone())).await.is_err() {
                    return;
                }
            }
            let pause = target.as_ref().and_then(|target| target.every).unwrap_or(IDLE);
            tokio::select! {
                changed = wanted.changed() => match changed {
                    Ok(()) => break,
                    Err(_) => return,
                },
                () = rest(pause) => {}
            }
        }
    }
}

/// As long as the same server writes.
struct Visit<'a, W, S: Servers> {
    common: &'a Common<W, S>,
    shared: &'a Shared,
    network: &'a watch::Receiver<Network>,
    kept: Option<(Server, Option<S::Session>)>,
    misses: u32,
    /// When scheduled events are looked for again.
    due: Option<Instant>,
}

impl<W: World, S: Servers> Visit<'_, W, S> {
    async fn try_once(&mut self, target: &Target, found: &mut Probed) {
        let known = (self.network.borrow().clone(), self.shared.secrets.borrow().clone());
        let Some(server) = informer::server(&target.site, &known.0, known.1.as_deref()) else { return };
        let mut session = self.kept.take_if(|(before, _)| *before == server).and_then(|(_, session)| session);
        let mut well = true;
        if target.every.is_some() {
            let commit = self.common.servers.commit(&server, &mut session, target.server, target.within);
            match within(target.within, self.common.leadership.guard(unless_it_panics(commit))).await {
                Some(Ok(())) => self.misses = 0,
                // An answer, and somebody else's to tell; and whoever leads no more has tried nothing.
                Some(Err(Silent::LoginRefused(_) | Silent::Untrusted(_))) => well = false,
                Some(Err(Silent::Failed(because))) => {
                    well = false;
                    self.misses += 1;
                    tracing::warn!(fg = %self.shared.id, site = %target.site, error = because, "a commit did not come back");
                }
                None => {
                    well = false;
                    self.misses += 1;
                }
            }
            found.stalled = (self.misses >= MISSES).then(|| {
                let (site, seconds) = (&target.site, target.within.as_secs_f32());
                format!("{site}: the last {MISSES} commits or more did not come back within {seconds} s each")
            });
        }
        if well && self.due.is_none_or(|due| Instant::now() >= due) {
            let events = self.common.servers.disabled_events(&server, &mut session, EVENTS_WITHIN);
            if let Some(Ok(names)) = within(EVENTS_WITHIN, self.common.leadership.guard(unless_it_panics(events))).await
            {
                found.events = (!names.is_empty()).then(|| (target.site.clone(), names));
                self.due = Some(Instant::now() + EVENTS_AGAIN);
            }
        }
        self.kept = Some((server, session.filter(|_| well)));
    }
}

/// Who is given up sees that nothing of it goes on; that takes a moment, too.
const SEEN_OFF: Duration = Duration::from_secs(3);

/// None: it took too long, or panicked. A reign that is over ends the task itself.
async fn within<T, E>(bound: Duration, call: impl Future<Output = Result<Option<T>, E>>) -> Option<T> {
    timeout(bound + SEEN_OFF, call).await.ok()?.ok()?
}
