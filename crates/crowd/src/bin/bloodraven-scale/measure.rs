//! What is measured, and over which stretch of time.
//!
//! In: a stage with groups that are ready. Out: figures. Must not: count what the crowd uses as the operator's.

use anyhow::{Context as _, Result, ensure};
use bloodraven_crowd::crowd::{Place, SITES};
use bloodraven_crowd::polls::Lateness;
use bloodraven_crowd::process::{self, Usage};
use bloodraven_crowd::{Fault, Stage};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// The default of a group.
const PERIOD: Duration = Duration::from_secs(2);

/// A steady state is watched for so long, unless it is said: several rounds of everything that recurs within ten seconds.
pub(crate) const WINDOW: Duration = Duration::from_secs(40);

/// How long everything is watched. Figures need the whole of it; whether the harness works is seen in less.
#[derive(Clone, Copy)]
pub(crate) struct Windows {
    steady: Duration,
    /// An operator that just started reads and connects; so long until it counts as steady.
    settles: Duration,
    /// A site that hangs: its debounce is over in half of the whole window, and the failing polls go on.
    hung: Duration,
}

impl Windows {
    pub(crate) fn of(steady: Duration) -> Self {
        Self { steady, settles: steady / 2, hung: steady / 2 }
    }
}

/// An operator that just started looks at every object of every group once. So long for each group, on a machine that it shares
/// with the store.
const LOOK_AT_ONE: Duration = Duration::from_millis(100);

/// All groups have moved by then, or not at all.
const MOVES: Duration = Duration::from_secs(90);

/// All groups are as before by then.
const RECOVERS: Duration = Duration::from_mins(2);

/// One row.
pub(crate) enum Measured {
    Steady(Steady),
    Lost(Lost),
    Hung(Hung),
}

/// So many groups, and nothing happens.
pub(crate) struct Steady {
    pub(crate) groups: usize,
    /// Cores.
    pub(crate) operator: f64,
    pub(crate) crowd: f64,
    pub(crate) store: f64,
    pub(crate) usage: Usage,
    pub(crate) lateness: Lateness,
    /// From the start of the process.
    pub(crate) first_poll: Duration,
    pub(crate) all_ready: Duration,
    /// Requests to the API server in a second, by what they were.
    pub(crate) requests: BTreeMap<String, f64>,
    pub(crate) load: [String; 2],
}

/// Groups that lost their primary in the same moment.
pub(crate) struct Lost {
    pub(crate) groups: usize,
    pub(crate) of: usize,
    /// From the fault until a record without the old holder was seen to be stored.
    pub(crate) decided: Vec<Duration>,
    /// Until another site's server took writes.
    pub(crate) opened: Vec<Duration>,
    pub(crate) load: [String; 2],
}

/// One site of one group hung.
pub(crate) struct Hung {
    pub(crate) of: usize,
    /// Of every other group.
    pub(crate) lateness: Lateness,
    pub(crate) load: [String; 2],
}

/// What the processes have used.
struct Used {
    at: Instant,
    operator: Usage,
    crowd: Usage,
    store: Duration,
}

impl Used {
    fn now(stage: &Stage) -> Result<Self> {
        let operator = stage.operator().filter(|it| it.is_running()).context("the operator has ended")?;
        let store = process::usage(stage.server.pid()).cpu + process::usage(stage.server.etcd_pid()).cpu;
        let (operator, crowd) = (process::usage(operator.pid()), process::usage(std::process::id()));
        Ok(Self { at: Instant::now(), operator, crowd, store })
    }

    /// Cores, since then.
    fn cores(&self, now: Duration, before: Duration) -> f64 {
        now.saturating_sub(before).as_secs_f64() / self.at.elapsed().as_secs_f64()
    }
}

/// Starts the operator anew, lets it settle, and watches.
pub(crate) async fn steady(stage: &mut Stage, windows: Windows) -> Result<Steady> {
    let load = process::load();
    let began = stage.start_operator()?;
    let polled = stage.seen.until(RECOVERS, || stage.crowd.polls.first().is_some()).await;
    ensure!(polled, "no poll within {} s of the operator's start", RECOVERS.as_secs());
    let first_poll = stage.crowd.polls.first().map_or(Duration::ZERO, |first| first - began);
    stage.crowd.polls.open(stage.groups() * SITES.len());
    stage.all_ready(RECOVERS, |_| {}).await?;
    let all_ready = began.elapsed();
    let looks = LOOK_AT_ONE * u32::try_from(stage.groups()).unwrap_or(u32::MAX);
    pass((windows.settles + looks).saturating_sub(all_ready)).await;
    let requests = stage.requests().await?;
    let before = Used::now(stage)?;
    stage.crowd.polls.open(stage.groups() * SITES.len());
    pass(windows.steady).await;
    let lateness = stage.crowd.polls.close(PERIOD, |_| true);
    let now = Used::now(stage)?;
    let (operator, crowd) =
        (before.cores(now.operator.cpu, before.operator.cpu), before.cores(now.crowd.cpu, before.crowd.cpu));
    let store = before.cores(now.store, before.store);
    let seconds = before.at.elapsed().as_secs_f64();
    let mut rates = stage.requests().await?;
    rates.retain(|what, count| {
        *count = (*count - requests.get(what).copied().unwrap_or(0.0)) / seconds;
        *count > 0.05
    });
    let (groups, load) = (stage.groups(), [load, process::load()]);
    Ok(Steady {
        groups,
        operator,
        crowd,
        store,
        usage: now.operator,
        lateness,
        first_poll,
        all_ready,
        requests: rates,
        load,
    })
}

/// The servers of so many primaries are killed in one moment; afterwards they come back.
pub(crate) async fn lose_primaries(stage: &Stage, most: usize) -> Result<Lost> {
    let load = process::load();
    let losers: Vec<Place> = (0..most.min(stage.groups()))
        .filter_map(|group| Some(Place { group, site: stage.crowd.writer(group)?.0 }))
        .collect();
    let at = Instant::now();
    for place in &losers {
        stage.crowd.befall(*place, Fault::ServerKilled);
    }
    let opened = |place: &Place| {
        let (site, since) = stage.crowd.writer(place.group)?;
        (site != place.site).then_some(since)
    };
    let decided = |place: &Place| stage.seen.of(place.group).left_stable.filter(|left| *left > at);
    // What is stored is heard of a moment later.
    let over = |place: &Place| opened(place).is_some() && decided(place).is_some();
    let moved = stage.seen.until(MOVES, || losers.iter().all(over)).await;
    let mut decided: Vec<Duration> = losers.iter().filter_map(decided).map(|left| left - at).collect();
    let mut opened: Vec<Duration> = losers.iter().filter_map(opened).map(|since| since - at).collect();
    decided.sort_unstable();
    opened.sort_unstable();
    for place in &losers {
        stage.crowd.befall(*place, Fault::Back);
    }
    stage.all_ready(RECOVERS, |_| {}).await.context("after primaries were lost")?;
    ensure!(moved, "{} of {} groups moved within {} s", opened.len(), losers.len(), MOVES.as_secs());
    Ok(Lost { groups: losers.len(), of: stage.groups(), decided, opened, load: [load, process::load()] })
}

/// A replica of the first group stands still; how late are the others polled?
pub(crate) async fn hang_one(stage: &Stage, windows: Windows) -> Result<Hung> {
    let load = process::load();
    pass(windows.settles / 2).await;
    let writer = stage.crowd.writer(0).map_or(0, |(site, _)| site);
    let place = Place { group: 0, site: (writer + 1) % SITES.len() };
    stage.crowd.befall(place, Fault::Hung);
    stage.crowd.polls.open(stage.groups() * SITES.len());
    pass(windows.hung).await;
    let lateness = stage.crowd.polls.close(PERIOD, |site| site >= SITES.len());
    stage.crowd.befall(place, Fault::Back);
    stage.all_ready(RECOVERS, |_| {}).await.context("after a site hung")?;
    Ok(Hung { of: stage.groups(), lateness, load: [load, process::load()] })
}

async fn pass(time: Duration) {
    bloodraven_crowd::pass(time).await;
}
