//! What the stored object tells about a group, as far as the picture needs it.
//!
//! In: the group's object. Out: the record, the sites, the planned failover, the alert. Must not: fail on anything that is
//! missing; a picture shows what there is.

use super::picture::{Authority, Planned};
use crate::ledger::{Moment, SiteNumber, Tenure};
use bloodraven_api::keys;
use bloodraven_gtid::GtidSet;
use serde_json::Value;

/// What an object tells.
#[derive(Clone, Debug, Default)]
pub(super) struct Told {
    pub(super) authority: Authority,
    /// When the record's epoch began, in microseconds since 1970.
    pub(super) since: Option<i64>,
    pub(super) planned: Option<Planned>,
    pub(super) alert: Option<String>,
    pub(super) degraded: String,
    /// By name.
    pub(super) sites: Vec<ToldSite>,
}

/// What it tells about a site.
#[derive(Clone, Debug, Default)]
pub(super) struct ToldSite {
    pub(super) name: String,
    pub(super) state: String,
    /// The life of the site that was heard last, `<pod>/<store>`.
    pub(super) instance: String,
    pub(super) following: bool,
    pub(super) lag: Option<u64>,
    pub(super) divergent: u64,
    pub(super) divergent_set: GtidSet,
    pub(super) clone: Option<String>,
}

impl ToldSite {
    /// It follows, and what follows is the pod that runs now; none: no pod is known.
    pub(super) fn follows_as(&self, pod: Option<&str>) -> bool {
        let heard = self.instance.split('/').next().unwrap_or_default();
        self.following && pod.is_none_or(|pod| pod == heard)
    }
}

/// Reads both copies of the record, the higher epoch wins, and the rest of the status.
pub(super) fn read(object: &Value) -> Told {
    let status = object.get("status").unwrap_or(&Value::Null);
    let second =
        object.pointer("/metadata/annotations").and_then(|all| all.get(keys::AUTHORITY)).and_then(Value::as_str);
    let second: Option<Value> = second.and_then(|text| serde_json::from_str(text).ok());
    let first = status.get("authority").filter(|record| record.is_object());
    // At equal epochs Stable beats Granting.
    let rank = |record: &Value| (record["epoch"].as_u64().unwrap_or(0), record["phase"] == "Stable");
    let record = [first, second.as_ref()].into_iter().flatten().max_by_key(|record| rank(record));
    let empty = Vec::new();
    let sites = status.get("sites").and_then(Value::as_array).unwrap_or(&empty);
    Told {
        authority: record.map(authority).unwrap_or_default(),
        since: record.and_then(|record| record["since"].as_str()).and_then(micros),
        planned: status.get("plannedFailover").filter(|planned| planned.is_object()).map(planned),
        alert: alert(status),
        degraded: degraded(status).map(|one| text(one, "reason")).unwrap_or_default(),
        sites: sites.iter().map(site).collect(),
    }
}

fn text(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn authority(record: &Value) -> Authority {
    let number = |key: &str| record.get(key).and_then(Value::as_u64).unwrap_or(0);
    Authority {
        epoch: number("epoch"),
        tenure: number("tenure"),
        phase: text(record, "phase"),
        site: text(record, "site"),
        cause: text(record, "cause"),
        proof: record.pointer("/proof/type").and_then(Value::as_str).unwrap_or_default().to_owned(),
    }
}

fn micros(text: &str) -> Option<i64> {
    text.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_microsecond)
}

fn planned(planned: &Value) -> Planned {
    let [phase, target, reason, message] = ["phase", "target", "reason", "message"].map(|key| text(planned, key));
    let id = format!("{} {}", text(planned, "requestId"), text(planned, "startTime"));
    Planned { id, phase, target, reason, message }
}

/// The condition that says that something is wrong.
fn degraded(status: &Value) -> Option<&Value> {
    let conditions = status.get("conditions").and_then(Value::as_array)?;
    conditions.iter().find(|one| one["type"] == "Degraded" && one["status"] == "True")
}

/// Its message.
fn alert(status: &Value) -> Option<String> {
    let degraded = degraded(status)?;
    let (reason, message) = (text(degraded, "reason"), text(degraded, "message"));
    // The message begins with the reason.
    Some(if message.is_empty() { reason } else { message })
}

fn site(site: &Value) -> ToldSite {
    ToldSite {
        name: text(site, "name"),
        state: text(site, "state"),
        instance: text(site, "instance"),
        following: site["replicating"].as_bool() == Some(true),
        lag: site["secondsBehindSource"].as_u64(),
        divergent: site["divergentTransactionCount"].as_u64().unwrap_or(0),
        divergent_set: site["divergentGtid"].as_str().and_then(|set| set.parse().ok()).unwrap_or_default(),
        clone: site
            .pointer("/clone/phase")
            .and_then(Value::as_str)
            .filter(|phase| !matches!(*phase, "" | "Done"))
            .map(str::to_owned),
    }
}

/// The tenure that a record speaks of, with the earliest moment that anyone could have written under it: the moment of its
/// grant if the record is still of that epoch, else the last look that did not know it.
pub(super) fn tenure(told: &Told, names: &[String], now: Moment, wall: i64, last_look: Moment) -> Option<Tenure> {
    let Authority { epoch, tenure, site, .. } = &told.authority;
    let number = names.iter().position(|name| name == site)?;
    let granted = told.since.filter(|_| epoch == tenure).map(|since| {
        let ago = u64::try_from(wall.saturating_sub(since)).unwrap_or(0);
        Moment(now.0.saturating_sub(ago))
    });
    let from = granted.unwrap_or(last_look);
    Some(Tenure { number: *tenure, site: SiteNumber(u8::try_from(number).ok()?), from })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_newer_copy_of_the_record_wins_and_what_is_missing_is_nothing() {
        assert_eq!(read(&json!({})).authority, Authority::default());
        let copy = json!({"epoch": 8, "tenure": 8, "site": "pdx", "phase": "Granting", "since": "2026-01-02T03:04:05.678000Z"});
        let object = |epoch: u64, phase: &str| {
            json!({
                "metadata": {"annotations": {keys::AUTHORITY: copy.to_string()}},
                "status": {
                    "authority": {"epoch": epoch, "tenure": 8, "site": "iad", "phase": phase, "proof": {"type": "LeaseExpired"}},
                    "sites": [{"name": "iad", "state": "read-only", "replicating": true, "secondsBehindSource": 3,
                               "divergentTransactionCount": 2, "clone": {"phase": "Cloning"}}],
                    "conditions": [{"type": "Degraded", "status": "True", "reason": "PromotionHeld", "message": "iad is silent"}],
                }
            })
        };
        let told = read(&object(7, "Stable"));
        assert_eq!((told.authority.epoch, told.authority.site.as_str()), (8, "pdx"));
        assert_eq!(told.since, Some(1_767_323_045_678_000));
        assert_eq!(read(&object(8, "Stable")).authority.site, "iad");
        assert_eq!(read(&object(9, "Revoking")).authority.proof, "LeaseExpired");
        let site = &told.sites[0];
        assert_eq!(
            (site.lag, site.divergent, site.following, site.clone.as_deref()),
            (Some(3), 2, true, Some("Cloning"))
        );
        assert_eq!(told.alert.as_deref(), Some("iad is silent"));
    }

    #[test]
    fn what_is_told_of_an_earlier_pod_says_nothing_of_the_present_one() {
        let told = site(&json!({"name": "iad", "replicating": true, "instance": "p1/s1"}));
        assert!(told.follows_as(Some("p1")) && told.follows_as(None));
        assert!(!told.follows_as(Some("p2")), "its predecessor followed");
        assert!(!site(&json!({"name": "iad", "instance": "p1/s1"})).follows_as(Some("p1")));
    }

    #[test]
    fn a_tenure_begins_with_its_grant_or_with_the_last_look_before_it() {
        let names = ["iad".to_owned(), "pdx".to_owned()];
        let told = |epoch| Told {
            authority: Authority {
                epoch,
                tenure: 8,
                site: "pdx".into(),
                phase: "Stable".into(),
                ..Authority::default()
            },
            since: Some(9_000_000),
            ..Told::default()
        };
        let seen = |told: &Told| tenure(told, &names, Moment(500_000), 9_100_000, Moment(450_000)).unwrap();
        assert_eq!(seen(&told(8)), Tenure { number: 8, site: SiteNumber(1), from: Moment(400_000) });
        assert_eq!(
            seen(&told(9)).from,
            Moment(450_000),
            "a later epoch of the same tenure does not tell its beginning"
        );
        let nobody = Told::default();
        assert_eq!(tenure(&nobody, &names, Moment(1), 1, Moment(0)), None);
    }
}
