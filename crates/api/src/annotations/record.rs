//! Second copies of what must survive a lost status: the authority record and the last failover.
//!
//! In: the operator's own annotations. Out: the record, or the finding that it cannot be read. Must not: take an unreadable
//! copy for "no history".

use k8s_openapi::jiff::Timestamp;
use snafu::{ResultExt, Snafu};

use crate::group::status::Authority;
use crate::keys;

/// Why a record in an annotation cannot be read or written.
#[derive(Debug, Snafu)]
pub enum RecordError {
    /// The authority record is no JSON of a record.
    #[snafu(display(
        "annotation {} cannot be read: {source}; restore it, or remove it while status.authority is right",
        keys::AUTHORITY
    ))]
    ReadAuthority {
        /// Why.
        source: serde_json::Error,
    },
    /// The authority record cannot be printed.
    #[snafu(display("annotation {} cannot be written: {source}", keys::AUTHORITY))]
    WriteAuthority {
        /// Why.
        source: serde_json::Error,
    },
    /// The time of the last failover is no time.
    #[snafu(display(
        "annotation {} is {text:?}, which is no time; write e.g. 2026-04-20T14:32:00Z",
        keys::LAST_FAILOVER
    ))]
    ReadLastFailover {
        /// What it is.
        text: String,
        /// Why.
        source: k8s_openapi::jiff::Error,
    },
}

/// The record from its annotation.
pub fn authority_from_annotation(text: &str) -> Result<Authority, RecordError> {
    serde_json::from_str(text).context(ReadAuthoritySnafu)
}

/// The record as compact JSON.
pub fn authority_to_annotation(record: &Authority) -> Result<String, RecordError> {
    serde_json::to_string(record).context(WriteAuthoritySnafu)
}

/// The time of the last failover.
pub fn last_failover_from_annotation(text: &str) -> Result<Timestamp, RecordError> {
    text.trim().parse().context(ReadLastFailoverSnafu { text })
}

/// The time of the last failover, RFC 3339 in UTC.
pub fn last_failover_to_annotation(at: Timestamp) -> String {
    at.to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_record_survives_its_annotation() {
        let record: Authority = serde_json::from_value(json!({
            "epoch": 12, "tenure": 9, "site": "", "instance": "", "phase": "Revoking",
            "voters": [{"site": "iad", "instance": "u1/s1"}, {"site": "pdx", "instance": "u2/s2"}],
            "since": "2026-04-20T14:32:00.123456Z", "cause": "Emergency", "revokedAt": 11,
            "proof": {"type": "LeaseExpired", "site": "iad", "instance": "u1/s1", "at": "2026-04-20T14:32:01.5Z", "evidence": "e"},
            "holder": {"site": "iad", "instance": "u1/s1", "serverUuid": "x",
                       "sets": [{"voters": [{"site": "pdx", "instance": "u2/s2"}], "leaseTimeout": "20s", "minPeers": 1}]},
            "ended": [{"site": "iad", "instance": "u0/s0", "at": "2026-04-20T14:31:00.000001Z"}],
        }))
        .expect("a record");
        let text = authority_to_annotation(&record).expect("printed");
        assert!(!text.contains([' ', '\n']), "{text}");
        assert_eq!(authority_from_annotation(&text).expect("read"), record);
    }

    #[test]
    fn an_unreadable_record_is_an_error() {
        for text in ["", "null", "{}", "[]", "{\"epoch\":1}", "garbage"] {
            assert!(authority_from_annotation(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn the_last_failover_survives_its_annotation() {
        let at: Timestamp = "2026-04-20T14:32:00Z".parse().expect("a time");
        assert_eq!(last_failover_to_annotation(at), "2026-04-20T14:32:00Z");
        assert_eq!(last_failover_from_annotation(" 2026-04-20T14:32:00Z").expect("read"), at);
        assert!(last_failover_from_annotation("yesterday").is_err());
    }
}
