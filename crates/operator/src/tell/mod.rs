//! What people are told of a group: Events, log lines and metrics, all made from the same facts.
//!
//! In: the brain's notices, the leader as it is, and what the hands report ([`Ears`]). Out: Events for the caller to write,
//! lines through `tracing`, numbers for Prometheus. Must not: block, decide, or be needed.
//!
//! | module | what is there |
//! |---|---|
//! | [`notice`] | one notice in words; exhaustive, pure |
//! | [`around`] | what a notice alone does not say |
//! | [`told`] | the words, as data |
//! | [`election`] | the election, in words |
//! | [`repeat`] | what was said a moment ago is counted, not said |
//! | [`mod@reference`] | the page `docs/reference/events.md` |

pub mod around;
mod cache;
pub mod election;
mod glance;
pub mod notice;
mod passwords;
mod planned;
pub mod reference;
pub mod repeat;
pub mod told;

#[cfg(test)]
mod tests;

pub use told::{Change, Saying, Told};

use crate::ears::Ears;
use crate::world::{Event, EventKind, GroupId, MissingSecret, Unfurnished};
use bloodraven_api::conditions::DegradedReason;
use bloodraven_api::events::{EventReason, EventType};
use bloodraven_blueprint::conditions::Hands;
use bloodraven_brain::group::input::Saw;
use bloodraven_brain::group::{Group, Notice};
use bloodraven_brain::lease;
use bloodraven_brain::name::Site;
use bloodraven_brain::record::Epoch;
use bloodraven_brain::time::Now;
use bloodraven_telemetry::OperatorMetrics;
use bloodraven_telemetry::log::Field;
use bloodraven_telemetry::words::{Code, FenceActor, FenceResult, HttpServer, Method, StatusClass};
use repeat::Repeats;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Tells people. Cheap to clone; all clones are one.
#[derive(Clone, Debug)]
pub struct Teller {
    metrics: OperatorMetrics,
    groups: Arc<Mutex<BTreeMap<GroupId, Memory>>>,
}

/// What is remembered of one group.
#[derive(Debug, Default)]
struct Memory {
    around: around::Memory,
    glance: glance::Memory,
    repeats: Repeats,
    hands: Hands,
    /// Why the spec is refused.
    refused_spec: Option<String>,
    /// Why the objects of a group cannot be made.
    unbuilt: Option<String>,
    /// The fences that were told, so that one that is repeated four times a second is told once.
    fences: BTreeMap<(Site, String), bloodraven_brain::time::Boot>,
}

/// A fence of the same site for the same reason within this long is the same fence.
const SAME_FENCE: bloodraven_brain::time::Millis = bloodraven_brain::time::Millis::from_secs(30);

impl Teller {
    /// A teller that counts here.
    pub fn new(metrics: OperatorMetrics) -> Self {
        Self { metrics, groups: Arc::default() }
    }

    /// What is shown to Prometheus.
    pub const fn registry(&self) -> &OperatorMetrics {
        &self.metrics
    }

    /// What only the hands know of that group, a refused spec included: status shows conditions made of it.
    pub fn known_by_hands(&self, id: &GroupId) -> Hands {
        self.memory().get(id).map(Memory::hands).unwrap_or_default()
    }

    fn memory(&self) -> MutexGuard<'_, BTreeMap<GroupId, Memory>> {
        // Whoever panicked while telling left at worst something untold.
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts, writes the lines, and returns the Events that were not said a moment ago.
    fn hand_on(&self, id: &GroupId, now: Now, epoch: Epoch, told: Told, repeats: &mut Repeats) -> Vec<Event> {
        let metrics = self.metrics.group(&id.namespace, &id.name);
        for change in &told.changes {
            change.apply(&metrics);
        }
        for line in told.lines {
            let line = line.text(Field::Fg, id);
            let line = if line.get(Field::Epoch).is_some() { line } else { line.number(Field::Epoch, epoch) };
            line.emit();
        }
        told.events.into_iter().filter_map(|saying| fresh(saying, now, repeats)).collect()
    }
}

/// The Event, unless it was said a moment ago; then it is counted, and the next one says how often.
fn fresh(saying: Saying, now: Now, repeats: &mut Repeats) -> Option<Event> {
    let Saying { reason, message, key } = saying;
    let kept_back = repeats.say(now.boot, reason, &key)?;
    let message = if kept_back == 0 { message } else { format!("{message} ({} times since)", kept_back + 1) };
    let kind = match reason.event_type() {
        EventType::Normal => EventKind::Normal,
        EventType::Warning => EventKind::Warning,
    };
    Some(Event { kind, reason: reason.as_str().to_owned(), message, at: now.wall })
}

impl Memory {
    /// What only the hands know.
    fn hands(&self) -> Hands {
        let unbuilt = || self.unbuilt.clone();
        let invalid_spec = self.hands.invalid_spec.clone().or_else(|| self.refused_spec.clone()).or_else(unbuilt);
        Hands { invalid_spec, ..self.hands.clone() }
    }

    /// Whether that fence was told a moment ago.
    fn told_already(&mut self, now: Now, notice: &Notice) -> bool {
        let Notice::FencingWriter { site, because } = notice else { return false };
        self.fences.retain(|_, at| now.boot.since(*at) < SAME_FENCE);
        self.fences.insert((site.clone(), because.clone()), now.boot).is_some()
    }
}

fn epoch(group: &Group) -> Epoch {
    group.kept().map_or(0, |kept| kept.epoch())
}

impl Ears for Teller {
    fn notices(&self, id: &GroupId, now: Now, group: &Group, notices: &[Notice]) -> Vec<Event> {
        let mut groups = self.memory();
        let memory = groups.entry(id.clone()).or_default();
        let mut events = Vec::new();
        for notice in notices {
            if memory.told_already(now, notice) {
                continue;
            }
            let around = memory.around.around(now, group, notice);
            let told = notice::told(notice, &around);
            events.extend(self.hand_on(id, now, around.epoch, told, &mut memory.repeats));
            memory.around.forget_move(notice);
        }
        events
    }

    fn glance(&self, id: &GroupId, now: Now, group: &Group) -> Vec<Event> {
        let metrics = self.metrics.group(&id.namespace, &id.name);
        let mut groups = self.memory();
        let memory = groups.entry(id.clone()).or_default();
        memory.around.look(group);
        let told = memory.glance.glance(now, group, &memory.hands(), &metrics);
        self.hand_on(id, now, epoch(group), told, &mut memory.repeats)
    }

    fn hands(&self, id: &GroupId, known: &Hands) {
        self.memory().entry(id.clone()).or_default().hands = known.clone();
    }

    fn spec_refused(&self, id: &GroupId, _: Now, because: Option<&str>) -> Vec<Event> {
        // The condition shows it; its Event comes with the next glance.
        self.memory().entry(id.clone()).or_default().refused_spec = because.map(str::to_owned);
        Vec::new()
    }

    fn unled(&self, id: &GroupId, now: Now, because: &str) -> Vec<Event> {
        let reason = DegradedReason::InvalidSpec;
        let all = DegradedReason::ALL.iter().filter(|reason| **reason != DegradedReason::Healthy);
        let metrics = self.metrics.group(&id.namespace, &id.name);
        metrics.show_degraded(all.map(|reason| reason.as_str()), &[reason.as_str()]);
        let message = format!("{because}; nobody leads this group until that is mended");
        let told = Told::new().event(EventReason::InvalidSpec, message).also_as_prose();
        let mut groups = self.memory();
        let memory = groups.entry(id.clone()).or_default();
        self.hand_on(id, now, 0, told, &mut memory.repeats)
    }

    fn secrets_missing(&self, id: &GroupId, now: Now, because: Option<&MissingSecret>) -> Vec<Event> {
        let Some(missing) = because else { return Vec::new() };
        let reason = match missing {
            MissingSecret::ToBeMade { .. } => return Vec::new(),
            MissingSecret::Unread { .. } | MissingSecret::NotFound { .. } => EventReason::SecretNotFound,
            MissingSecret::Key { .. } => EventReason::SecretMissingKey,
            MissingSecret::Unusable { .. } | MissingSecret::Certificate => EventReason::CredentialReconcileFailed,
        };
        let message = format!("{missing}; running pods stay as they are, it is looked for again every 30 s");
        let told = Told::new().event(reason, message).also_as_prose();
        let mut groups = self.memory();
        let memory = groups.entry(id.clone()).or_default();
        self.hand_on(id, now, 0, told, &mut memory.repeats)
    }

    fn untrusted(&self, id: &GroupId, now: Now, site: &Site, because: &str) -> Vec<Event> {
        // What to do comes first: the reason may name everything that a certificate covers, and an Event is cut.
        let message = format!(
            "compare the certificate of {site} with the names of its Services and the authority in the Secret of spec.tls: \
             {because}"
        );
        let told = Told::new().event_once(EventReason::CredentialReconcileFailed, site.as_str(), message);
        let mut groups = self.memory();
        let memory = groups.entry(id.clone()).or_default();
        self.hand_on(id, now, 0, told, &mut memory.repeats)
    }

    fn unfurnished(&self, id: &GroupId, now: Now, because: Option<&Unfurnished>) -> Vec<Event> {
        let mut groups = self.memory();
        let memory = groups.entry(id.clone()).or_default();
        memory.unbuilt = match because {
            // The store's trouble is not the spec's.
            None | Some(Unfurnished::Store { .. }) => None,
            Some(unfurnished) => Some(unfurnished.to_string()),
        };
        let reason = match because {
            Some(Unfurnished::Taken { .. }) => EventReason::NameConflict,
            Some(Unfurnished::NoImage { .. }) => EventReason::MissingSidecarImage,
            Some(Unfurnished::Store { .. }) => {
                self.write_failed("object");
                return Vec::new();
            }
            // The condition shows it; its Event comes with the next glance.
            Some(Unfurnished::Unbuildable { .. }) | None => return Vec::new(),
        };
        let message = because.map(ToString::to_string).unwrap_or_default();
        let told = Told::new().event(reason, message).also_as_prose();
        self.hand_on(id, now, 0, told, &mut memory.repeats)
    }

    fn forget(&self, id: &GroupId) {
        self.memory().remove(id);
        self.metrics.forget_group(&id.namespace, &id.name);
    }

    fn election(&self, _: Now, notice: &lease::Notice) {
        let (line, leads) = election::told(notice);
        line.emit();
        if let Some(leads) = leads {
            self.metrics.process().leader().set(i64::from(leads));
        }
    }

    fn polled(&self, id: &GroupId, site: &Site, took: Duration, saw: &Saw) {
        let metrics = self.metrics.group(&id.namespace, &id.name);
        match saw {
            Saw::Nothing => {
                metrics.poll_failures(site.as_str()).inc();
            }
            Saw::LoginRefused | Saw::Facts(_) => metrics.poll_latency(site.as_str()).observe(took.as_secs_f64()),
        }
    }

    fn fenced(&self, id: &GroupId, site: &Site, confirmed: bool) {
        let result = if confirmed { FenceResult::Success } else { FenceResult::Unknown };
        let metrics = self.metrics.group(&id.namespace, &id.name);
        metrics.fence_attempts(site.as_str(), FenceActor::Operator, result).inc();
    }

    fn panicked(&self, of: &str) {
        // Loops are the group's, the election's and the servers'; the group's name would make a label without bound.
        let which = ["election", "group", "http", "sites"].into_iter().find(|known| of.starts_with(known));
        self.metrics.process().loop_panics(Code(which.unwrap_or("other"))).inc();
        tracing::error!(error = of, "a loop panicked and is started again");
    }

    fn write_failed(&self, resource: &'static str) {
        self.metrics.process().api_write_failures(Code(resource)).inc();
    }

    fn answered(&self, handler: &'static str, method: &str, status: u16, took: Duration) {
        let (server, handler) = (HttpServer::Aux, Code(handler));
        let (method, class) = (Method::of(method), StatusClass::of(status));
        let process = self.metrics.process();
        process.http_requests(server, handler, method, class).inc();
        process.http_request_duration(server, handler, method, class).observe(took.as_secs_f64());
    }

    fn followers(&self, clients: usize) {
        let clients = i64::try_from(clients).unwrap_or(i64::MAX);
        self.metrics.process().websocket_connected_clients(HttpServer::Aux).set(clients);
    }

    fn metrics(&self) -> String {
        self.metrics.text()
    }
}
