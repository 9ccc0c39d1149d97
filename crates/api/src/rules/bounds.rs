//! Bounds of durations.
//!
//! In: nothing. Out: one table of every duration in the group's spec with its least and most; admission refuses what lies
//! outside, binaries clamp to the same table. Must not: miss a duration (a test compares the table with the schema).

use super::Rule;
use super::text::DURATION;
use crate::go_duration::GoDuration;

/// Bounds of one duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DurationBound {
    /// Schema path of the field.
    pub path: &'static str,
    /// Whether `0s` is allowed apart from the bounds, as "off" or "never".
    pub zero: bool,
    /// Least value.
    pub least: GoDuration,
    /// Most, where there is one.
    pub most: Option<GoDuration>,
    /// A value that makes sense, for messages.
    pub example: &'static str,
}

const fn at_least(path: &'static str, least: GoDuration, example: &'static str) -> DurationBound {
    DurationBound { path, zero: false, least, most: None, example }
}

const fn zero_or(path: &'static str, least: GoDuration, example: &'static str) -> DurationBound {
    DurationBound { path, zero: true, least, most: None, example }
}

const fn between(path: &'static str, least: GoDuration, most: GoDuration, example: &'static str) -> DurationBound {
    DurationBound { path, zero: false, least, most: Some(most), example }
}

const SECOND: GoDuration = GoDuration::from_secs(1);

/// Every duration of a group's spec.
pub const DURATIONS: &[DurationBound] = &[
    between("spec.pollInterval", GoDuration::from_millis(250), GoDuration::from_secs(60), "500ms or 2s"),
    at_least("spec.failoverCooldown", GoDuration::ZERO, "5m or 1h30m"),
    at_least("spec.sidecar.leaseTimeout", GoDuration::from_secs(5), "20s"),
    at_least("spec.sidecar.peerCheckInterval", SECOND, "5s"),
    zero_or("spec.replication.semiSyncTimeout", SECOND, "10s"),
    at_least("spec.plannedFailover.maxLagWait", SECOND, "30s or 5m"),
    at_least("spec.plannedFailover.drainTimeout", SECOND, "30s"),
    at_least("spec.dragonfly.plannedFailover.maxSyncWait", SECOND, "30s"),
    at_least("spec.dragonfly.staleMasterGrace", GoDuration::from_secs(10), "5m"),
    zero_or("spec.writeProbe.interval", SECOND, "10s"),
    zero_or("spec.writeProbe.timeout", SECOND, "5s"),
    at_least("spec.backup.divergenceRescue.timeout", SECOND, "10m"),
    between("spec.backup.pitr.archivePollInterval", GoDuration::from_secs(5), GoDuration::from_mins(60), "60s"),
    at_least("spec.restoreInPlace.keepPreviousFor", GoDuration::ZERO, "1h"),
];

impl DurationBound {
    /// The bound of a field, by its schema path.
    pub fn of(path: &str) -> Option<&'static Self> {
        DURATIONS.iter().find(|bound| bound.path == path)
    }

    /// Whether a value is allowed.
    pub fn allows(&self, value: GoDuration) -> bool {
        (self.zero && value.is_zero()) || (value >= self.least && self.most.is_none_or(|most| value <= most))
    }

    /// The nearest value that is allowed.
    pub fn clamp(&self, value: GoDuration) -> GoDuration {
        if self.zero && value.is_zero() {
            return value;
        }
        let value = value.max(self.least);
        self.most.map_or(value, |most| value.min(most))
    }

    fn rule(self) -> Rule {
        let range =
            self.most.map_or(format!("at least {}", self.least), |most| format!("{} to {}", self.least, short(most)));
        let zero = if self.zero { "0s or " } else { "" };
        let message = format!("{} must be a duration, {zero}{range}; write e.g. {}", self.path, self.example);
        let mut cel = format!("duration(self) >= duration('{}')", self.least);
        if let Some(most) = self.most {
            cel = format!("{cel} && duration(self) <= duration('{}')", short(most));
        }
        if self.zero {
            cel = format!("(duration(self) == duration('0s') || {cel})");
        }
        let cel = format!("{} && {cel}", DURATION.cel("self"));
        Rule::state::<String>("duration", self.path, cel, message, move |text| {
            text.parse::<GoDuration>().is_ok_and(|value| self.allows(value))
        })
    }
}

pub(super) fn rules() -> Vec<Rule> {
    DURATIONS.iter().map(|bound| bound.rule()).collect()
}

/// Whole minutes and hours the way people write them.
fn short(duration: GoDuration) -> String {
    match duration.as_nanos() / 1_000_000_000 {
        60 => "60s".to_owned(),
        3600 => "1h".to_owned(),
        _ => duration.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// K-12: what a binary clamps to is what the schema allows.
    #[test]
    fn what_is_clamped_is_allowed_and_what_is_allowed_stays() {
        for bound in DURATIONS {
            for nanos in [0, 1, 249_999_999, 250_000_000, 1_000_000_000, 60_000_000_000, 3_600_000_000_001, i64::MAX] {
                let value = GoDuration::from_nanos(nanos).expect("not negative");
                let clamped = bound.clamp(value);
                assert!(bound.allows(clamped), "{}: {value} became {clamped}", bound.path);
                assert_eq!(bound.allows(value), clamped == value, "{}: {value} became {clamped}", bound.path);
            }
        }
    }
}
