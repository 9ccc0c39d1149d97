//! What a fact comes to for people, as data: Events, lines, and what is counted.
//!
//! In: sentences. Out: a [`Told`], which [`super::Teller`] hands on. Must not: reach for a metric or a log by itself, so that
//! every row can be shown in a table.

use bloodraven_api::events::{EventReason, EventType};
use bloodraven_brain::name::Site;
use bloodraven_brain::time::Millis;
use bloodraven_telemetry::GroupMetrics;
use bloodraven_telemetry::log::{Field, Level, Line};
use bloodraven_telemetry::words::{AttemptResult, CacheResult, FailoverStep, PlannedResult, ProofKind, SiteState};

/// See above.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Told {
    /// Events on the group, in order.
    pub events: Vec<Saying>,
    /// Log lines, in order; the group and the epoch are added where they are written.
    pub lines: Vec<Line>,
    /// What is counted.
    pub changes: Vec<Change>,
}

/// An Event, before it is known whether it was said a moment ago.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saying {
    /// Its reason; the type follows from it.
    pub reason: EventReason,
    /// A plain sentence.
    pub message: String,
    /// Two with the same reason and key are one that is repeated. Most often the message itself.
    pub key: String,
}

/// Something that is counted.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// An automatic failover was confirmed.
    Failover(Site),
    /// An attempt at one ended; none: nobody was chosen.
    Attempt(Option<Site>, AttemptResult),
    /// A step of one took so long.
    Step(Site, FailoverStep, Millis),
    /// A planned failover ended; none: its target is no declared site.
    Planned(Option<Site>, PlannedResult),
    /// A planned failover that succeeded took so long.
    PlannedTook(Site, Millis),
    /// A planned failover waited so long for its target.
    LagWait(Site, Millis),
    /// A site was fenced in favour of this one.
    AutoResolve(Site),
    /// The DNS record could not be written.
    DnsFailure,
    /// A promotion rests on this.
    Proof(ProofKind),
    /// A site's state changed.
    Transition(Site, SiteState, SiteState),
    /// A reclone was accepted.
    Reclone(Site),
    /// A promotion of a cache ended.
    CachePromotion(Site, CacheResult),
}

impl Told {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// With an Event.
    #[must_use]
    pub fn event(mut self, reason: EventReason, message: impl Into<String>) -> Self {
        let message = message.into();
        self.events.push(Saying { reason, key: message.clone(), message });
        self
    }

    /// With an Event that counts as repeated whenever the key is the same.
    #[must_use]
    pub fn event_once(mut self, reason: EventReason, key: impl Into<String>, message: impl Into<String>) -> Self {
        self.events.push(Saying { reason, key: key.into(), message: message.into() });
        self
    }

    /// With a line.
    #[must_use]
    pub fn line(mut self, line: Line) -> Self {
        self.lines.push(line);
        self
    }

    /// With something that is counted.
    #[must_use]
    pub fn count(mut self, change: Change) -> Self {
        self.changes.push(change);
        self
    }

    /// With a line for each Event, where no log event says the same.
    #[must_use]
    pub fn also_as_prose(mut self) -> Self {
        self.lines.extend(self.events.iter().map(Saying::prose));
        self
    }
}

impl Saying {
    /// The same as a line.
    pub fn prose(&self) -> Line {
        let level = match self.reason.event_type() {
            EventType::Normal => Level::Info,
            EventType::Warning => Level::Warn,
        };
        Line::prose(level, self.message.clone()).text(Field::Reason, self.reason)
    }
}

impl Change {
    /// Counts it.
    pub fn apply(&self, metrics: &GroupMetrics) {
        match self {
            Self::Failover(site) => count(&metrics.failovers(site.as_str())),
            Self::Attempt(site, result) => count(&metrics.failover_attempts(name(site.as_ref()), *result)),
            Self::Step(site, step, took) => metrics.failover_duration(site.as_str(), *step).observe(seconds(*took)),
            Self::Planned(site, result) => count(&metrics.planned_failovers(name(site.as_ref()), *result)),
            Self::PlannedTook(site, took) => metrics.planned_failover_duration(site.as_str()).observe(seconds(*took)),
            Self::LagWait(site, took) => metrics.planned_failover_lag_wait(site.as_str()).observe(seconds(*took)),
            Self::AutoResolve(site) => count(&metrics.split_brain_auto_resolve(site.as_str())),
            Self::DnsFailure => count(&metrics.dns_write_failures()),
            Self::Proof(kind) => count(&metrics.promotion_proofs(*kind)),
            Self::Transition(site, from, to) => count(&metrics.state_transitions(site.as_str(), *from, *to)),
            Self::Reclone(site) => count(&metrics.reclone_operations(site.as_str())),
            Self::CachePromotion(site, result) => count(&metrics.dragonfly_promotions(site.as_str(), *result)),
        }
    }
}

fn count(counter: &bloodraven_telemetry::metrics::Counter) {
    counter.inc();
}

fn name(site: Option<&Site>) -> &str {
    site.map_or("", Site::as_str)
}

/// As Prometheus has them.
pub(super) fn seconds(length: Millis) -> f64 {
    std::time::Duration::from_millis(length.0).as_secs_f64()
}
