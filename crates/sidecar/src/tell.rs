//! What people are told: log lines and numbers. The one file that knows how they are written.
//!
//! In: notices, looks, ends of ticks and requests. Out: lines with the events of the contract, metrics as text. Must not:
//! decide, or wait for whoever reads.

use crate::config::Config;
use crate::event::Look;
use crate::lock;
use crate::notice::{Method, Notice};
use bloodraven_brain::fence::Closed;
use bloodraven_brain::message::FencedBy;
use bloodraven_brain::name::Member;
use bloodraven_brain::record::Epoch;
use bloodraven_brain::time::Boot;
use bloodraven_keeper::protocol::DEAD_MAN;
use bloodraven_telemetry::log::{Field, Level, Line, LogEvent};
use bloodraven_telemetry::words::{
    Code, FenceActor, FenceResult, FenceRule, HttpServer, KillCause, Method as HttpMethod, OpeningResult, StatusClass,
};
use bloodraven_telemetry::{CONTENT_TYPE, SidecarMetrics};
use std::mem::{Discriminant, discriminant};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

#[cfg(test)]
mod tests;

/// The release of this program.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Counts and speaks. Cheap to clone; all clones are one.
#[derive(Clone)]
pub(crate) struct Teller {
    metrics: SidecarMetrics,
    group: Arc<str>,
    me: Member,
    fencing_since: Arc<Mutex<Option<Boot>>>,
    /// The kind of reason for which the server stays closed, as it was last told: the sets in it change all the time.
    stays_closed: Arc<Mutex<Option<Discriminant<Closed>>>>,
}

impl Teller {
    pub(crate) fn new(config: &Config, me: &Member) -> Self {
        Self::of(&config.namespace, &config.group, me)
    }

    fn of(namespace: &str, group: &str, me: &Member) -> Self {
        let metrics = SidecarMetrics::new(VERSION, namespace, group, me.site.as_str());
        // What has not happened yet is 0, not absent.
        for rule in FenceRule::ALL {
            metrics.site().fences(*rule);
        }
        for result in OpeningResult::ALL {
            metrics.site().openings(*result);
        }
        for cause in KillCause::ALL {
            metrics.site().keeper_kills(*cause);
        }
        let group = format!("{namespace}/{group}").into();
        Self { metrics, group, me: me.clone(), fencing_since: Arc::default(), stays_closed: Arc::default() }
    }

    /// Says and counts what happened.
    pub(crate) fn notice(&self, now: Boot, epoch: Option<Epoch>, notice: &Notice) {
        if self.was_told(notice) {
            return;
        }
        self.count(now, notice);
        let line = match notice {
            Notice::Fencing(rule) => {
                *self.since() = Some(now);
                let text = format!("SELF-FENCING: {}", rule_text(*rule));
                Line::saying(LogEvent::SelfFencing, text).text(Field::Reason, rule_word(*rule))
            }
            Notice::Fenced(_, method) => {
                let took = self.since().take().map_or(0, |since| now.since(since).0);
                let text = match method {
                    Method::Sql => "SELF-FENCED: both variables read back as 1",
                    Method::Killed => "SELF-FENCED: mysqld killed by its keeper",
                };
                Line::saying(LogEvent::SelfFenced, text).number(Field::DurationMs, took)
            }
            Notice::Killing => Line::prose(Level::Warn, "the fence is not confirmed by SQL: the keeper kills mysqld"),
            Notice::Opened => Line::of(LogEvent::Opened),
            Notice::Reopened => Line::saying(LogEvent::Opened, "reopened under lease"),
            Notice::NotOpened => Line::prose(Level::Warn, "the server was not opened; it is fenced again"),
            Notice::StaysClosed(why) => {
                Line::prose(Level::Warn, "this site has authority, but its server stays closed")
                    .text(Field::Reason, closed_text(why))
            }
            Notice::Stored(_) => Line::prose(Level::Info, "a newer view is stored"),
            Notice::Conflict(_) => Line::prose(Level::Error, "two different views of one epoch were heard"),
            Notice::EndedWithPermit(_) => Line::prose(Level::Warn, "mysqld ended while it was open"),
        };
        self.say(line, epoch);
    }

    /// Whether that is the reason that was told last. Whatever opens the server makes it new again.
    fn was_told(&self, notice: &Notice) -> bool {
        let mut told = lock(&self.stays_closed);
        match notice {
            Notice::StaysClosed(why) => told.replace(discriminant(why)) == Some(discriminant(why)),
            Notice::Opened | Notice::Reopened | Notice::Fencing(_) => {
                *told = None;
                false
            }
            _ => false,
        }
    }

    fn count(&self, now: Boot, notice: &Notice) {
        let site = self.metrics.site();
        match notice {
            Notice::Fencing(rule) => drop(site.fences(fence_rule(*rule)).inc()),
            Notice::Fenced(..) => drop(site.fence_attempts(FenceActor::Sidecar, FenceResult::Success).inc()),
            Notice::Killing => {
                site.fence_attempts(FenceActor::Sidecar, FenceResult::Unknown).inc();
                site.keeper_kills(KillCause::Ladder).inc();
            }
            Notice::Opened => drop(site.openings(OpeningResult::Opened).inc()),
            Notice::Reopened => drop(site.openings(OpeningResult::Reopened).inc()),
            Notice::NotOpened => drop(site.openings(OpeningResult::Failed).inc()),
            Notice::StaysClosed(_) => drop(site.openings(OpeningResult::Gate).inc()),
            Notice::EndedWithPermit(permit) if now.0 >= permit.deadline.0.saturating_add(DEAD_MAN) => {
                site.keeper_kills(KillCause::Deadman).inc();
            }
            Notice::EndedWithPermit(_) | Notice::Stored(_) | Notice::Conflict(_) => {}
        }
    }

    /// Prose for people.
    pub(crate) fn prose(&self, level: Level, text: &'static str, reason: Option<&dyn std::fmt::Display>) {
        self.say(Line::prose(level, text).maybe(Field::Reason, reason), None);
    }

    /// A tick has ended.
    pub(crate) fn ticked(&self, took: Duration) {
        self.metrics.site().tick().observe(took.as_secs_f64());
    }

    /// A request was answered.
    pub(crate) fn answered(&self, handler: &'static str, method: &str, status: u16, took: Duration) {
        let labels = (HttpServer::Sidecar, Code(handler), HttpMethod::of(method), StatusClass::of(status));
        let process = self.metrics.process();
        process.http_requests(labels.0, labels.1, labels.2, labels.3).inc();
        process.http_request_duration(labels.0, labels.1, labels.2, labels.3).observe(took.as_secs_f64());
    }

    /// All numbers as text, with its content type; `look` is how things stand now.
    pub(crate) fn metrics(&self, look: Option<&Look>) -> (&'static str, String) {
        if let Some(look) = look {
            let site = self.metrics.site();
            site.fenced().set(i64::from(look.fenced));
            site.lease_remaining().set(seconds(look.lease_remaining.0));
            for (peer, age) in &look.contact {
                site.contact_age(peer).set(seconds(age.0));
            }
        }
        (CONTENT_TYPE, self.metrics.text())
    }

    fn say(&self, line: Line, epoch: Option<Epoch>) {
        let line = line.text(Field::Fg, &self.group).text(Field::Site, &self.me.site);
        let line = line.text(Field::Instance, &self.me.instance);
        match epoch {
            Some(epoch) => line.number(Field::Epoch, epoch).emit(),
            None => line.emit(),
        }
    }

    fn since(&self) -> MutexGuard<'_, Option<Boot>> {
        lock(&self.fencing_since)
    }
}

/// The word for a rule in `/status` and in logs.
pub(crate) const fn rule_word(rule: FencedBy) -> &'static str {
    match rule {
        FencedBy::Boot => "boot",
        FencedBy::Mismatch => "mismatch",
        FencedBy::Lease => "lease",
        FencedBy::Conflict => "conflict",
        FencedBy::Others => "others",
    }
}

const fn rule_text(rule: FencedBy) -> &'static str {
    match rule {
        FencedBy::Boot => "an opening may be in flight since before this sidecar began",
        FencedBy::Mismatch => "the view does not name this instance",
        FencedBy::Lease | FencedBy::Others => "the lease is over",
        FencedBy::Conflict => "two views of one epoch",
    }
}

const fn fence_rule(rule: FencedBy) -> FenceRule {
    match rule {
        FencedBy::Boot => FenceRule::Boot,
        FencedBy::Mismatch => FenceRule::Mismatch,
        FencedBy::Lease | FencedBy::Others => FenceRule::Lease,
        FencedBy::Conflict => FenceRule::Conflict,
    }
}

fn closed_text(why: &Closed) -> String {
    match why {
        Closed::NotAllowed => "there is no lease, or the view names somebody else".to_owned(),
        Closed::NoWord => "the leader has not said that it may open".to_owned(),
        Closed::FencedByOthers => "somebody else fenced it; only a new tenure lifts that".to_owned(),
        Closed::LacksPromotion(missing) => format!("its data lack what the promotion was decided on: {missing}"),
        Closed::Behind(site, missing) => format!("its data lack what {site} has: {missing}"),
        Closed::StrayFence => "a fence that this sidecar sent in an earlier life may still land on it".to_owned(),
        Closed::NotReady => "mysqld does not run, or its state is not known yet".to_owned(),
    }
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds of a lease, far below 2^52")]
fn seconds(millis: u64) -> f64 {
    millis as f64 / 1000.0
}
