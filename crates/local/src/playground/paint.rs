//! Painting: everything that is known becomes one picture, ten times a second; once a second the rates.
//!
//! In: the model, the load, the supervisor. Out: the newest picture and `playground.json`. Must not: ask anyone.

use super::file::{self, Notice};
use super::picture::{Authority, LoadPicture, OperatorPicture, Picture, SitePicture, State, stamp};
use super::scene::{Model, Scene};
use crate::assembly::{OperatorStatus, SiteStatus, Status};
use crate::ledger::SiteNumber;
use crate::load::{Client, now};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior, interval};

const EVERY: Duration = Duration::from_millis(100);

/// A group that writes is ready when every site follows, or when one has had so long to do so.
const PATIENCE: Duration = Duration::from_mins(1);

/// What is needed to tell rates.
#[derive(Default)]
struct Before {
    at: Option<Instant>,
    by_site: Vec<u64>,
    door: u64,
    reads: u64,
}

/// Paints until the end.
pub(super) async fn run(scene: Arc<Scene>, mut notice: Notice) {
    let mut stop = scene.stop.subscribe();
    let mut every = interval(EVERY);
    every.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut before = Before::default();
    let mut writing_since: Option<Instant> = None;
    loop {
        tokio::select! {
            _ = every.tick() => {}
            _ = stop.wait_for(|stop| *stop) => {}
        }
        let Ok(status) = scene.local.status() else { continue };
        let mut picture = paint(&scene, &status, &mut before);
        if scene.is_ending() {
            picture.state = State::Stopping;
        } else if picture.state == State::Starting && picture.primary().is_some() {
            let since = *writing_since.get_or_insert_with(Instant::now);
            picture.state = readiness(&scene, &picture, since.elapsed()).await;
        }
        let active = picture.authority.site.clone();
        let said = file::notice(picture.state, &active, &status, leader(&scene), &scene.credentials);
        let ending = picture.state == State::Stopping;
        scene.model().picture = picture;
        if let Err(error) = notice.show(said) {
            tracing::warn!(%error, "playground.json is not current");
        }
        if ending {
            return;
        }
    }
}

/// The operator that the lease names.
fn leader(scene: &Scene) -> Option<u8> {
    let lease = scene.local.store().read_lease().ok()??;
    let (name, _) = lease.holder.as_deref()?.split_once('_')?;
    name.strip_prefix("operator-")?.parse().ok()
}

/// Ready: somebody writes, the front door leads there, and the others follow (or have had their time).
async fn readiness(scene: &Scene, picture: &Picture, writing: Duration) -> State {
    let follows = |site: &SitePicture| site.following || Some(site.name.as_str()) == picture.primary();
    let settled = picture.sites.iter().all(follows);
    if !settled && writing < PATIENCE {
        return State::Starting;
    }
    let plan = &scene.plan;
    // Bounded by the client's own bound.
    match Client::open(plan.primary, &plan.user, &plan.password).await {
        Some(_) => State::Ready,
        None => State::Starting,
    }
}

fn paint(scene: &Scene, status: &Status, before: &mut Before) -> Picture {
    let at = now();
    let (silence, gap) = scene.silences(at);
    let tally = scene.load.tally();
    let (counts, by_site, moves) = scene.load.book(|book| {
        let by_site: Vec<u64> =
            (0..=u8::MAX).take(scene.names.len()).map(|n| book.acknowledged_by(SiteNumber(n))).collect();
        (book.counts(), by_site, book.moves())
    });
    let mut model = scene.model();
    let old = model.picture.clone();
    let rates = rates(before, by_site, tally.door.done, tally.reads.done);
    let sites = status.sites.iter().enumerate().map(|(index, site)| {
        let rate = match &rates {
            Some(rates) => rates.sites.get(index).copied().unwrap_or(0),
            None => old.sites.get(index).map_or(0, |site| site.writes_per_second),
        };
        paint_site(&model, site, index, rate)
    });
    let sites = sites.collect();
    let operators =
        status.operators.iter().enumerate().map(|(index, one)| paint_operator(&model, one, index)).collect();
    let door =
        rates.as_ref().map_or((old.load.door_per_second, old.load.reads_per_second), |rates| (rates.door, rates.reads));
    let authority = Authority::clone(&model.told.authority);
    model.tally = tally;
    Picture {
        at: stamp(crate::world::now().wall),
        state: old.state,
        authority,
        sites,
        operators,
        load: LoadPicture {
            on: scene.load.is_on(),
            door_per_second: door.0,
            reads_per_second: door.1,
            silence_ms: silence / 1000,
            gap_ms: gap / 1000,
            acknowledged: counts.acknowledged,
        },
        ledger: model.verdict.clone(),
        alert: model.told.alert.clone(),
        degraded: model.told.degraded.clone(),
        planned: model.told.planned.clone(),
        moves,
    }
}

struct Rates {
    sites: Vec<u64>,
    door: u64,
    reads: u64,
}

/// How much more there is than a second ago; none: it is not a second yet.
fn rates(before: &mut Before, by_site: Vec<u64>, door: u64, reads: u64) -> Option<Rates> {
    let passed = before.at.map(|at| at.elapsed());
    if passed.is_some_and(|passed| passed < Duration::from_secs(1)) {
        return None;
    }
    let millis = passed.map_or(1000, |passed| u64::try_from(passed.as_millis()).unwrap_or(1000).max(1));
    let rate = |present: u64, past: u64| present.saturating_sub(past).saturating_mul(1000) / millis;
    let past = |index: usize| before.by_site.get(index).copied().unwrap_or(0);
    let rates = Rates {
        sites: by_site.iter().enumerate().map(|(index, present)| rate(*present, past(index))).collect(),
        door: rate(door, before.door),
        reads: rate(reads, before.reads),
    };
    *before = Before { at: Some(Instant::now()), by_site, door, reads };
    Some(rates)
}

fn paint_site(model: &Model, site: &SiteStatus, index: usize, writes_per_second: u64) -> SitePicture {
    let told = model.told.sites.iter().find(|told| told.name == site.name).cloned().unwrap_or_default();
    let said = model.sidecars.get(index).cloned().flatten().unwrap_or_default();
    let executed = model.executed.get(&site.name);
    SitePicture {
        name: site.name.clone(),
        role: site.role.clone(),
        state: told.state,
        following: told.following,
        lag: told.lag,
        transactions: executed.map_or(0, |set| u64::try_from(set.count()).unwrap_or(u64::MAX)),
        gtid: executed.map(ToString::to_string).unwrap_or_default(),
        epoch: said.epoch,
        lease_ms: said.lease_ms,
        mysqld: said.mysqld,
        divergent: told.divergent,
        writes_per_second,
        hurt: model.hurts.get(&site.name).into_iter().flatten().cloned().collect(),
        mysqld_pid: site.mysqld_pid,
        sidecar_pid: site.state.sidecar_pid,
        clone: told.clone,
    }
}

fn paint_operator(model: &Model, one: &OperatorStatus, index: usize) -> OperatorPicture {
    let name = format!("operator-{}", one.number);
    OperatorPicture {
        pid: one.pid,
        http: one.http.to_string(),
        answers: model.operators.get(index).copied().unwrap_or(false),
        hurt: model.hurts.get(&name).into_iter().flatten().cloned().collect(),
    }
}
