//! The election: carries the brain's calls to the lease and tells everyone who leads.
//!
//! In: the lease, the time, the wish to end. Out: until when this process leads, reign by reign; who has the lease. Must
//! not: let a call take longer than its deadline, or let anyone lead after the brain said no.

use crate::beats::Beat;
use crate::ears::Ears;
use crate::guard::Leadership;
use crate::settings::Settings;
use crate::world::{Refused, World};
use bloodraven_brain::lease::{Command, Election, Found, Input, Lease, Notice, Outcome, Written};
use bloodraven_brain::time::{Boot, Millis, Now};
use futures_util::future::BoxFuture;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

/// The clock that counts is looked at at least so often: a suspended machine's timers come late.
const LOOK: Duration = Duration::from_millis(250);

/// Before the lease is released, what this leader had in flight gets so long to end.
const CLEARING: Duration = Duration::from_secs(1);

/// A time in which this process leads. Another number is another reign: everything known has to be learnt anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reign {
    pub(crate) number: u64,
    pub(crate) until: Boot,
}

/// What the election tells and asks.
pub(crate) struct Court {
    pub(crate) leadership: Leadership,
    /// The present reign; none: somebody else leads, or nobody.
    pub(crate) reigns: watch::Sender<Option<Reign>>,
    /// Whom the lease names.
    pub(crate) holder: watch::Sender<Option<Arc<str>>>,
    /// How many groups are being led: zero soon after a reign ends.
    pub(crate) leading: watch::Receiver<usize>,
    /// Reigns so far.
    pub(crate) count: AtomicU64,
    pub(crate) ears: Arc<dyn Ears>,
}

/// Takes part until `shutdown`, then releases the lease if it is ours.
pub(crate) async fn run<W: World>(
    world: &Arc<W>,
    settings: &Settings,
    court: &Court,
    beat: Beat,
    shutdown: impl Future<Output = ()>,
) {
    court.nobody_leads();
    let mut election = Election::new(&settings.identity, settings.times, world.now().boot);
    let mut call: Option<BoxFuture<'static, Input>> = None;
    let mut next = Input::Tick;
    let mut shutdown = std::pin::pin!(shutdown);
    let mut asked_to_end = false;
    loop {
        beat.beat();
        let Outcome { command, notices } = election.step(world.now(), next);
        court.tell(&election, notices, world.now()).await;
        if let Some(command) = command {
            call = Some(perform(world, &court.ears, command, settings.times.call_deadline()));
        }
        let Some(wake) = election.wake_at() else { return };
        let until_then = Duration::from_millis(wake.since(world.now().boot).0).clamp(Duration::from_millis(1), LOOK);
        next = tokio::select! {
            biased;
            () = &mut shutdown, if !asked_to_end => {
                asked_to_end = true;
                Input::Shutdown
            }
            input = answer(&mut call) => input,
            () = tokio::time::sleep_until(Instant::now() + until_then) => Input::Tick,
        };
    }
}

/// Leads from now on, without an election, until `shutdown`.
pub(crate) async fn lead_for_ever(court: &Court, beat: Beat, shutdown: impl Future<Output = ()>) {
    let until = Boot(u64::MAX);
    court.leadership.set(Some(until));
    let number = court.count.fetch_add(1, Ordering::Relaxed) + 1;
    court.reigns.send_replace(Some(Reign { number, until }));
    court.ears.election(court.leadership.now(), &Notice::Elected(until));
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        beat.beat();
        tokio::select! {
            () = &mut shutdown => break,
            () = tokio::time::sleep_until(Instant::now() + LOOK) => {}
        }
    }
    court.nobody_leads();
    court.cleared().await;
}

async fn answer(call: &mut Option<BoxFuture<'static, Input>>) -> Input {
    let Some(future) = call else { return std::future::pending().await };
    let input = future.await;
    *call = None;
    input
}

impl Court {
    fn nobody_leads(&self) {
        self.leadership.set(None);
        self.reigns.send_replace(None);
    }

    /// In-flight calls are cancelled by now, or will never know.
    async fn cleared(&self) {
        let mut leading = self.leading.clone();
        let _ = timeout(CLEARING, leading.wait_for(|groups| *groups == 0)).await;
    }

    /// What leadership is worth is set before anyone hears a word.
    async fn tell(&self, election: &Election, notices: Vec<Notice>, now: Now) {
        let until = election.leads_until();
        self.leadership.set(until);
        for notice in notices {
            self.ears.election(now, &notice);
            match notice {
                Notice::Elected(_) => drop(self.count.fetch_add(1, Ordering::Relaxed)),
                Notice::Lost(_) => {
                    self.reigns.send_replace(None);
                    self.cleared().await;
                }
                Notice::Stopped | Notice::Follows(_) | Notice::Released => {}
            }
        }
        let number = self.count.load(Ordering::Relaxed);
        let present = until.map(|until| Reign { number, until });
        self.reigns.send_if_modified(|told| std::mem::replace(told, present) != present);
        let holder: Option<Arc<str>> = election.holder().map(Arc::from);
        self.holder.send_if_modified(|told| {
            let news = *told != holder;
            told.clone_from(&holder);
            news
        });
    }
}

/// One call, under its deadline. A lost one comes back as what the brain takes a lost one for.
fn perform<W: World>(
    world: &Arc<W>,
    ears: &Arc<dyn Ears>,
    command: Command,
    deadline: Millis,
) -> BoxFuture<'static, Input> {
    let (world, ears) = (Arc::clone(world), Arc::clone(ears));
    let within = Duration::from_millis(deadline.0);
    Box::pin(async move {
        match command {
            Command::Read(id) => {
                let found = match timeout(within, world.read_lease()).await {
                    Ok(Ok(Some(lease))) => Found::Lease(lease),
                    Ok(Ok(None)) => Found::Absent,
                    Ok(Err(_)) | Err(_) => Found::Failed,
                };
                Input::Read(id, found)
            }
            Command::Create(id, new) => {
                let wrote = timeout(within, world.create_lease(&new)).await;
                Input::Wrote(id, written(&ears, wrote.ok()))
            }
            Command::Update(id, version, new) | Command::Release(id, version, new) => {
                let wrote = timeout(within, world.update_lease(&version, &new)).await;
                Input::Wrote(id, written(&ears, wrote.ok()))
            }
        }
    })
}

fn written(ears: &Arc<dyn Ears>, wrote: Option<Result<Lease, Refused>>) -> Written {
    match wrote {
        Some(Ok(lease)) => return Written::Done(lease),
        Some(Err(Refused::Conflict)) => return Written::Conflict,
        Some(Err(refused)) => tracing::debug!(error = %refused, "the lease was not written"),
        None => {}
    }
    ears.write_failed("lease");
    Written::Unknown
}
