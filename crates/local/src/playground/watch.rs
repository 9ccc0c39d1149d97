//! The watch over the store: the record as soon as it changes, tenures for the book, moments for ambushes, events for the
//! timeline.
//!
//! In: `group.json`, `events.jsonl`. Out: the model kept current. Must not: write to the store, or miss a tenure.

use super::picture::{By, Entry};
use super::record;
use super::scene::{Ambush, Scene};
use crate::ledger::Moment as At;
use crate::load::now;
use crate::script::Moment;
use std::os::unix::fs::MetadataExt as _;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval};

/// A record that is replaced sooner than this is one that nobody could write under: an opening takes longer.
const LOOK: Duration = Duration::from_millis(10);

/// While somebody lies in wait: phases of a planned failover last some hundredths of a second.
const LIE_IN_WAIT: Duration = Duration::from_millis(1);

/// As many events are shown of what happened before.
const EARLIER: usize = 20;

/// What of a file changes when it is replaced.
type Stamp = (u64, u64, i64, i64);

fn stamp(path: &std::path::Path) -> Option<Stamp> {
    let found = std::fs::metadata(path).ok()?;
    Some((found.ino(), found.len(), found.mtime(), found.mtime_nsec()))
}

/// Watches until the end.
pub(super) async fn run(scene: Arc<Scene>) {
    let mut stop = scene.stop.subscribe();
    let path = scene.local.dir().join(crate::store::object::FILE);
    let (mut slow, mut quick) = (every(LOOK), every(LIE_IN_WAIT));
    let mut last = None;
    let mut events = Events::default();
    loop {
        let waiting = !scene.model().ambushes.is_empty();
        tokio::select! {
            _ = slow.tick() => {}
            _ = quick.tick(), if waiting => {}
            () = scene.bell.notified() => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
        let present = stamp(&path);
        if present != last {
            last = present;
            look(&scene);
            strike(&scene);
        }
        events.read(&scene);
    }
}

fn every(time: Duration) -> tokio::time::Interval {
    let mut every = interval(time);
    every.set_missed_tick_behavior(MissedTickBehavior::Delay);
    every
}

/// Reads the object into the model and the tenure into the book.
pub(super) fn look(scene: &Scene) {
    // One that cannot be read is shown as it was: the operator says what is wrong with it.
    let Ok(object) = scene.local.store().read_group() else { return };
    let told = record::read(&object.value);
    let (at, wall) = (now(), crate::world::now().wall.0.saturating_mul(1000));
    let last = std::mem::replace(&mut scene.model().last_look, at);
    if let Some(tenure) = record::tenure(&told, &scene.names, at, wall, last) {
        scene.load.book(|book| book.seen(tenure));
    }
    let mut model = scene.model();
    for site in &told.sites {
        if site.divergent > 0 {
            model.divergent = model.divergent.union(&site.divergent_set);
        }
    }
    model.told = told;
}

/// Lets those strike whose moment has come.
fn strike(scene: &Arc<Scene>) {
    let due: Vec<Ambush> = {
        let mut model = scene.model();
        let told = model.told.clone();
        let (due, rest) = std::mem::take(&mut model.ambushes).into_iter().partition(|ambush| has_come(ambush, &told));
        model.ambushes = rest;
        due
    };
    for ambush in due {
        let scene = Arc::clone(scene);
        // Bounded by the supervisor's own bounds.
        tokio::spawn(async move { scene.act(&ambush.act).await });
    }
}

fn has_come(ambush: &Ambush, told: &record::Told) -> bool {
    let authority = &told.authority;
    let phase = |phase: &str| authority.epoch > ambush.since && authority.phase == phase;
    match &ambush.moment {
        Moment::Revoked => phase("Revoking"),
        Moment::Granted => phase("Granting"),
        Moment::Opened => phase("Stable") && authority.tenure > ambush.since,
        Moment::Planned(wanted) => told.planned.as_ref().is_some_and(|planned| planned.phase == *wanted),
    }
}

/// The timeline's part of the store.
#[derive(Default)]
struct Events {
    last: Option<Stamp>,
    /// Of the last event that was shown.
    newest: Option<(i64, String, String)>,
    begun: bool,
}

impl Events {
    fn read(&mut self, scene: &Scene) {
        let present = stamp(&scene.local.dir().join(crate::store::events::FILE));
        if present == self.last {
            return;
        }
        self.last = present;
        let Ok(lines) = scene.local.store().events(200) else { return };
        let key = |line: &crate::store::events::Line| (line.at_ms, line.reason.clone(), line.message.clone());
        let seen = lines.iter().rposition(|line| Some(key(line)) == self.newest).map_or(0, |at| at + 1);
        let skip = if self.begun { seen } else { lines.len().saturating_sub(EARLIER) };
        self.begun = true;
        for line in lines.iter().skip(skip) {
            let by = if line.kind == "Warning" { By::Warning } else { By::Operator };
            let at = super::picture::stamp(bloodraven_brain::time::Wall(line.at_ms));
            let entry = Entry { at, by, reason: line.reason.clone(), message: line.message.clone() };
            scene.put(entry);
        }
        self.newest = lines.last().map(key);
    }
}

/// The first look, before anything is written: whoever holds authority then has held it since before.
pub(super) fn first(scene: &Scene) {
    scene.model().last_look = At(0);
    look(scene);
}
