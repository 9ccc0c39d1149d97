//! `<site>[:<key>=<value>]...`, keys `maxLagWait` and `id`.
//!
//! In: the annotation's text, split at every colon. Out: the request. Must not: fill in what the spec says; an absent key
//! stays absent.

use std::str::FromStr;

use snafu::{ResultExt, Snafu, ensure};

use crate::go_duration::{self, GoDuration};

/// A planned failover, as asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedFailoverRequest {
    /// Site to be promoted.
    pub site: String,
    /// Longest wait for it to catch up, in place of the spec's.
    pub max_lag_wait: Option<GoDuration>,
    /// Id of the request, in place of a generated one.
    pub id: Option<String>,
}

/// Why a planned-failover annotation cannot be read.
#[derive(Debug, Snafu, PartialEq, Eq)]
pub enum PlannedFailoverError {
    /// Nothing but blanks and colons.
    #[snafu(display("planned-failover is empty; write <site> or <site>:maxLagWait=30s"))]
    Empty,
    /// It begins with a key.
    #[snafu(display("planned-failover begins with {segment:?} where the site is due; write <site>:{segment}"))]
    SiteMissing {
        /// The segment.
        segment: String,
    },
    /// A segment is not `key=value`.
    #[snafu(display(
        "planned-failover segment {segment:?} is not <key>=<value>; use maxLagWait=<duration> or id=<text>, or remove it"
    ))]
    NotKeyValue {
        /// The segment.
        segment: String,
    },
    /// A key that is not known.
    #[snafu(display(
        "planned-failover segment {segment:?} has an unknown key; use maxLagWait=<duration> or id=<text>, or remove it"
    ))]
    UnknownKey {
        /// The segment.
        segment: String,
    },
    /// A key is given twice.
    #[snafu(display("planned-failover segment {segment:?} gives its key a second time; remove one"))]
    RepeatedKey {
        /// The segment.
        segment: String,
    },
    /// The duration cannot be read.
    #[snafu(display("planned-failover segment {segment:?}: {source}"))]
    BadDuration {
        /// The segment.
        segment: String,
        /// Why.
        source: go_duration::ParseError,
    },
    /// The duration is too short.
    #[snafu(display("planned-failover segment {segment:?} is too short; write maxLagWait=1s or more"))]
    TooShort {
        /// The segment.
        segment: String,
    },
    /// The id has a form that is not allowed.
    #[snafu(display(
        "planned-failover segment {segment:?} has a bad id; write 1 to 63 of A-Z, a-z, 0-9, '.', '_' and '-'"
    ))]
    BadId {
        /// The segment.
        segment: String,
    },
}

impl FromStr for PlannedFailoverRequest {
    type Err = PlannedFailoverError;

    fn from_str(text: &str) -> Result<Self, PlannedFailoverError> {
        let mut segments = text.split(':').map(str::trim).filter(|segment| !segment.is_empty());
        let Some(site) = segments.next() else {
            return EmptySnafu.fail();
        };
        ensure!(!site.contains('='), SiteMissingSnafu { segment: site });
        let mut request = Self { site: site.to_owned(), max_lag_wait: None, id: None };
        for segment in segments {
            request.add(segment)?;
        }
        Ok(request)
    }
}

impl PlannedFailoverRequest {
    fn add(&mut self, segment: &str) -> Result<(), PlannedFailoverError> {
        let Some((key, value)) = segment.split_once('=') else {
            return NotKeyValueSnafu { segment }.fail();
        };
        let value = value.trim();
        match key.trim() {
            "maxLagWait" => {
                ensure!(self.max_lag_wait.is_none(), RepeatedKeySnafu { segment });
                let wait: GoDuration = value.parse().context(BadDurationSnafu { segment })?;
                ensure!(wait >= GoDuration::from_secs(1), TooShortSnafu { segment });
                self.max_lag_wait = Some(wait);
            }
            "id" => {
                ensure!(self.id.is_none(), RepeatedKeySnafu { segment });
                ensure!(is_id(value), BadIdSnafu { segment });
                self.id = Some(value.to_owned());
            }
            _ => return UnknownKeySnafu { segment }.fail(),
        }
        Ok(())
    }
}

fn is_id(text: &str) -> bool {
    (1..=63).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, site: &str, max_lag_wait: Option<u32>, id: Option<&str>) {
        let expect = PlannedFailoverRequest {
            site: site.to_owned(),
            max_lag_wait: max_lag_wait.map(GoDuration::from_secs),
            id: id.map(str::to_owned),
        };
        assert_eq!(text.parse(), Ok(expect), "{text:?}");
    }

    #[test]
    fn requests_are_read() {
        check("pdx", "pdx", None, None);
        check("  pdx  ", "pdx", None, None);
        check("PDX", "PDX", None, None);
        check("pdx:maxLagWait=30s", "pdx", Some(30), None);
        check("pdx:maxLagWait=1m30s:id=ticket-42", "pdx", Some(90), Some("ticket-42"));
        check("pdx:id=a.b_C-9:maxLagWait=1s", "pdx", Some(1), Some("a.b_C-9"));
        check("pdx::", "pdx", None, None);
        check(": pdx : : maxLagWait = 30s :", "pdx", Some(30), None);
        check(&format!("pdx:id={}", "x".repeat(63)), "pdx", None, Some(&"x".repeat(63)));
    }

    fn refuse(text: &str, expect: &str) {
        let message = text.parse::<PlannedFailoverRequest>().expect_err(text).to_string();
        assert!(message.contains(expect), "{text:?}: {message}");
    }

    #[test]
    fn refusals_name_the_segment_and_the_fix() {
        refuse("", "write <site>");
        refuse(" : : ", "write <site>");
        refuse("maxLagWait=30s", "write <site>:maxLagWait=30s");
        refuse("pdx:now", "\"now\" is not <key>=<value>");
        refuse("pdx:iad", "\"iad\" is not <key>=<value>");
        refuse("pdx:maxlagwait=30s", "\"maxlagwait=30s\" has an unknown key");
        refuse("pdx:drainTimeout=30s", "unknown key");
        refuse("pdx:=30s", "unknown key");
        refuse("pdx:maxLagWait=", "\"maxLagWait=\": a duration is empty");
        refuse("pdx:maxLagWait=30", "number without a unit");
        refuse("pdx:maxLagWait=-30s", "negative");
        refuse("pdx:maxLagWait=soon", "no number");
        refuse("pdx:maxLagWait=999ms", "write maxLagWait=1s or more");
        refuse("pdx:maxLagWait=0s", "write maxLagWait=1s or more");
        refuse("pdx:maxLagWait=1s:maxLagWait=2s", "second time");
        refuse("pdx:id=", "bad id");
        refuse("pdx:id=a b", "bad id");
        refuse("pdx:id=ü", "bad id");
        refuse("pdx:id=a=b", "bad id");
        refuse(&format!("pdx:id={}", "x".repeat(64)), "1 to 63");
    }
}
