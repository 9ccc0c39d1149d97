//! The scene: the running group, the load, and the newest picture of both, shared by everyone who watches or acts.
//!
//! In: a [`Local`] and its load. Out: pictures, entries of the timeline, deeds done. Must not: decide anything about the
//! group, or hold a lock while it waits.

use super::picture::{By, Entry, Picture, State, stamp};
use super::record::Told;
use crate::assembly::Status;
use crate::ledger::{Moment as At, Verdict};
use crate::load::{Load, Plan, Tally, now};
use crate::script::{Act, Edit, Moment};
use crate::{Local, admin};
use bloodraven_api::keys;
use bloodraven_gtid::GtidSet;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

/// As many entries of the timeline are kept for whoever is slow to read them.
const MOST_ENTRIES: usize = 1000;

/// As many ambushes may lie in wait.
const MOST_AMBUSHES: usize = 32;

/// See above.
pub(super) struct Scene {
    pub(super) local: Local,
    pub(super) load: Load,
    pub(super) plan: Plan,
    /// Names of the sites, in the group's order.
    pub(super) names: Vec<String>,
    pub(super) credentials: (String, String),
    pub(super) stop: watch::Sender<bool>,
    /// Rung when somebody lies in wait.
    pub(super) bell: Notify,
    /// Clients that hold something at a server until everything is healed.
    pub(super) guests: tokio::sync::Mutex<JoinSet<()>>,
    model: Mutex<Model>,
}

/// What is known, and by whom it was changed.
#[derive(Default)]
pub(super) struct Model {
    pub(super) picture: Picture,
    pub(super) told: Told,
    /// What was done by hand and still holds: to `iad`, to `operator-0`.
    pub(super) hurts: BTreeMap<String, BTreeSet<String>>,
    pub(super) verdict: Option<Verdict>,
    /// What each site had received while it followed.
    pub(super) received: BTreeMap<String, GtidSet>,
    /// What was ever reported as divergent.
    pub(super) divergent: GtidSet,
    /// What each site had executed at the last reading.
    pub(super) executed: BTreeMap<String, GtidSet>,
    pub(super) ambushes: Vec<Ambush>,
    /// The planned failover that was there when one was last asked for by hand.
    pub(super) planned_before: Option<String>,
    pub(super) tally: Tally,
    /// What each sidecar said last, in the order of the sites.
    pub(super) sidecars: Vec<Option<super::probe::Said>>,
    /// Whether each operator answers.
    pub(super) operators: Vec<bool>,
    /// When the store was last looked at.
    pub(super) last_look: At,
    entries: VecDeque<Entry>,
    /// The number of the first entry that is kept.
    first: u64,
}

/// Somebody lies in wait.
#[derive(Clone, Debug)]
pub(super) struct Ambush {
    pub(super) moment: Moment,
    pub(super) act: Act,
    /// The record's epoch when it was laid: only what comes later counts.
    pub(super) since: u64,
}

impl Scene {
    pub(super) fn new(local: Local, load: Load, plan: Plan, status: &Status, credentials: (String, String)) -> Self {
        let names: Vec<String> = status.sites.iter().map(|site| site.name.clone()).collect();
        let (stop, _) = watch::channel(false);
        Self {
            local,
            load,
            plan,
            names,
            credentials,
            stop,
            bell: Notify::new(),
            guests: tokio::sync::Mutex::default(),
            model: Mutex::default(),
        }
    }

    pub(super) fn model(&self) -> MutexGuard<'_, Model> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The newest picture.
    pub(super) fn picture(&self) -> Picture {
        self.model().picture.clone()
    }

    /// Everyone is told to end.
    pub(super) fn end(&self) {
        self.model().picture.state = State::Stopping;
        self.stop.send_replace(true);
    }

    pub(super) fn is_ending(&self) -> bool {
        *self.stop.borrow()
    }

    /// Adds to the timeline.
    pub(super) fn note(&self, by: By, reason: &str, message: impl Into<String>) {
        let at = stamp(crate::world::now().wall);
        self.put(Entry { at, by, reason: reason.to_owned(), message: message.into() });
    }

    /// Adds what somebody else has dated.
    pub(super) fn put(&self, entry: Entry) {
        let mut model = self.model();
        if model.entries.len() >= MOST_ENTRIES {
            model.entries.pop_front();
            model.first += 1;
        }
        model.entries.push_back(entry);
    }

    /// The entries from that number on, and the number to ask for next.
    pub(super) fn entries_from(&self, number: u64) -> (Vec<Entry>, u64) {
        let model = self.model();
        let skip = usize::try_from(number.saturating_sub(model.first)).unwrap_or(usize::MAX);
        let found: Vec<Entry> = model.entries.iter().skip(skip).cloned().collect();
        let next = model.first + u64::try_from(model.entries.len()).unwrap_or(0);
        (found, next)
    }

    /// Lies in wait.
    pub(super) fn lay(&self, moment: &Moment, act: &Act) {
        let mut model = self.model();
        if model.ambushes.len() < MOST_AMBUSHES {
            let since = model.told.authority.epoch;
            model.ambushes.push(Ambush { moment: moment.clone(), act: act.clone(), since });
        }
        drop(model);
        self.bell.notify_one();
    }

    /// Does something to the group, and marks it in the book.
    pub(super) async fn act(&self, act: &Act) -> Result<(), String> {
        self.load.book(|book| book.gaps.mark(act.to_string(), now()));
        let done = self.perform(act).await;
        match &done {
            Ok(()) => self.note(By::Hand, "deed", act.to_string()),
            Err(why) => self.note(By::Hand, "refused", format!("{act}: {why}")),
        }
        done
    }

    async fn perform(&self, act: &Act) -> Result<(), String> {
        let dir = self.local.dir();
        match act {
            Act::Plan(site, wait) => {
                super::watch::look(self);
                let mut model = self.model();
                model.planned_before = model.told.planned.as_ref().map(|planned| planned.id.clone());
                drop(model);
                let wait = wait.map(|wait| format!("{}ms", wait.as_millis()));
                admin::promote(dir, site, wait.as_deref(), None).map(drop).map_err(told)
            }
            Act::Reclone(site) => {
                // What is about to be thrown away is looked at first: it stands in a report now.
                self.audit().await;
                let found = self.local.store().read_group().map_err(told)?;
                let divergent = admin::divergent_gtid(&found.value, site);
                let prefix = divergent.get(..16).or_else(|| (!divergent.is_empty()).then_some(divergent.as_str()));
                admin::reclone(dir, site, prefix).map(drop).map_err(told)
            }
            Act::Edit(Edit::Paused(true)) => admin::pause(dir, None).map(drop).map_err(told),
            Act::Edit(Edit::Paused(false)) => admin::resume(dir).map(drop).map_err(told),
            Act::Edit(Edit::Cooldown(time)) => {
                self.edit(&json!({ "failoverCooldown": format!("{}ms", time.as_millis()) }))
            }
            Act::Edit(Edit::Priorities(sites)) => {
                self.edit(&json!({ "splitBrainPolicy": { "sitePriorities": sites } }))
            }
            Act::ForgetRecord => self.forget_record(),
            other => super::deeds::perform(self, other).await,
        }
    }

    fn edit(&self, patch: &Value) -> Result<(), String> {
        self.local.store().patch_spec(None, patch).map(drop).map_err(told)
    }

    /// Both copies of the record and what hangs on them.
    fn forget_record(&self) -> Result<(), String> {
        if self.local.supervisor().operator_states().iter().any(|operator| operator.pid.is_some()) {
            return Err("an operator runs, and would write it again; write `stop operator` first".to_owned());
        }
        let forget = |value: &mut Value| {
            if let Some(object) = value.as_object_mut() {
                object.remove("status");
            }
            let all = crate::store::object::annotations_of(value)?;
            for key in [keys::AUTHORITY, keys::LAST_FAILOVER, keys::LAST_FAILOVER_TARGET] {
                all.remove(key);
            }
            Ok(())
        };
        self.local.store().change_group(None, forget).map(drop).map_err(told)
    }

    /// Looks every open write up on every site, and judges.
    pub(super) async fn audit(&self) -> Verdict {
        super::audit::audit(self).await
    }

    /// How long nothing has been acknowledged at the front door, and the longest silence since the last deed.
    pub(super) fn silences(&self, at: At) -> (u64, u64) {
        self.load.book(|book| (book.gaps.silence(at), book.gaps.latest(at).map_or(0, |gap| gap.longest_us)))
    }
}

fn told(error: impl std::fmt::Display) -> String {
    error.to_string()
}
