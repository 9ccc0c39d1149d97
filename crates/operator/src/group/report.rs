//! What people see of a group: its status, written on top of what was there, and the short form of it that HTTP shows.
//!
//! In: a leader as it is, the status before. Out: the status after, as JSON. Must not: lose a field that this release does
//! not know, or one that it cannot read.

use super::progress;
use crate::world::GroupId;
use bloodraven_api::MysqlFailoverGroupStatus;
use bloodraven_blueprint::conditions::{self, Hands};
use bloodraven_blueprint::report::{self, Beside};
use bloodraven_blueprint::status::{self, Unwritable};
use bloodraven_brain::group::{Group, Kept};
use bloodraven_brain::name::Site;
use bloodraven_brain::time::{Now, Wall};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// A leader as it is at one moment, for the one who writes status.
#[derive(Clone)]
pub(super) struct Sight {
    pub(super) group: Group,
    pub(super) now: Now,
    pub(super) generation: i64,
    pub(super) beside: BTreeMap<Site, Beside>,
    pub(super) hands: Hands,
}

/// A status: what is understood of it, and what is not.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Status {
    typed: MysqlFailoverGroupStatus,
    /// Fields that this release does not know, or cannot read.
    strange: Map<String, Value>,
}

impl Status {
    pub(super) fn read(raw: Option<&Value>) -> Self {
        let Some(fields) = raw.and_then(Value::as_object) else { return Self::default() };
        let typed = MysqlFailoverGroupStatus::deserialize_known(raw).unwrap_or_else(|_| readable(fields));
        let known = as_map(&typed);
        let strange = fields.iter().filter(|(key, _)| !known.contains_key(*key));
        let strange = strange.map(|(key, value)| (key.clone(), value.clone())).collect();
        Self { typed, strange }
    }

    /// With that kept in it.
    pub(super) fn keeping(&self, kept: &Kept) -> Result<(Self, status::Annotations), Unwritable> {
        let status::Written { status, annotations } = status::write(kept, &self.typed)?;
        Ok((Self { typed: status, strange: self.strange.clone() }, annotations))
    }

    /// What it keeps; none: that cannot be read.
    pub(super) fn kept(&self) -> Option<Kept> {
        status::Copies::read(Some(&self.to_json()), &BTreeMap::new()).in_status()
    }

    /// With what the leader sees shown in it.
    pub(super) fn showing(&self, sight: &Sight) -> Self {
        let mut shown = self.clone();
        let Sight { group, now, generation, beside, hands } = sight;
        report::show(group, *now, *generation, beside, &mut shown.typed);
        conditions::show(group, *now, *generation, hands, &mut shown.typed);
        shown
    }

    /// With word that its spec is refused and that nobody leads.
    pub(super) fn refusing(&self, now: Now, generation: i64, because: &str) -> Self {
        let mut shown = self.clone();
        conditions::show_refused(now, generation, because, &mut shown.typed);
        shown
    }

    /// Whether it tells nothing that the one before did not, but that time goes by.
    pub(super) fn only_goes_on(&self, before: &Self) -> bool {
        self.strange == before.strange && progress::is_all(&self.typed, &before.typed)
    }

    pub(super) fn to_json(&self) -> Value {
        let mut fields = self.strange.clone();
        fields.extend(as_map(&self.typed));
        Value::Object(fields)
    }
}

/// Some field cannot be read: the others are.
fn readable(fields: &Map<String, Value>) -> MysqlFailoverGroupStatus {
    let one = |key: &String, value: &Value| Value::Object(Map::from_iter([(key.clone(), value.clone())]));
    let fits =
        |(key, value): &(&String, &Value)| MysqlFailoverGroupStatus::deserialize_known(Some(&one(key, value))).is_ok();
    let fitting = fields.iter().filter(fits).map(|(key, value)| (key.clone(), value.clone())).collect();
    MysqlFailoverGroupStatus::deserialize_known(Some(&Value::Object(fitting))).unwrap_or_default()
}

/// The typed reading of a status, unknown fields ignored.
trait DeserializeKnown: Sized {
    fn deserialize_known(raw: Option<&Value>) -> Result<Self, serde_json::Error>;
}

impl DeserializeKnown for MysqlFailoverGroupStatus {
    fn deserialize_known(raw: Option<&Value>) -> Result<Self, serde_json::Error> {
        serde_json::from_value(raw.cloned().unwrap_or_else(|| json!({})))
    }
}

fn as_map(typed: &MysqlFailoverGroupStatus) -> Map<String, Value> {
    match serde_json::to_value(typed) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

/// The whole status that a leader would write now, for those who ask over HTTP.
pub(super) fn whole(sight: &Sight) -> Value {
    let kept = sight.group.kept();
    let before = Status::default();
    let with = kept.as_ref().and_then(|kept| before.keeping(kept).ok()).map_or(before, |(status, _)| status);
    with.showing(sight).to_json()
}

/// The entry of `/status`: made from a status, the leader's own or the stored one.
pub(crate) fn entry(status: Option<&Value>, poll_time: Option<&str>) -> Value {
    let field = |name: &str| status.and_then(|status| status.get(name)).cloned().unwrap_or(Value::Null);
    let authority = field("authority");
    let text = |value: Value| if value.is_null() { json!("") } else { value };
    json!({
        "activeSite": text(field("activeSite")),
        "epoch": authority.get("epoch").cloned().unwrap_or(json!(0)),
        "phase": text(authority.get("phase").cloned().unwrap_or_default()),
        "sites": match field("sites") { Value::Array(sites) => Value::Array(sites), _ => json!([]) },
        "pollTime": poll_time,
        "promotionGtidExecuted": text(field("promotionGtidExecuted")),
        "lastFailover": field("lastFailover"),
        "lastFailoverTarget": field("lastFailoverTarget"),
        "conditions": match field("conditions") { Value::Array(all) => Value::Array(all), _ => json!([]) },
    })
}

/// What those who follow over `WebSockets` get with each poll: the entry, and what a glance needs beside it.
pub(super) fn follow(id: &GroupId, status: &Value, at: Wall) -> String {
    let Value::Object(mut fields) = entry(Some(status), Some(&at.to_string())) else { return String::new() };
    let no_sites = Vec::new();
    let sites = status.get("sites").and_then(Value::as_array).unwrap_or(&no_sites);
    let first = |name: &str| {
        let mut values = sites.iter().filter_map(|site| site.get(name));
        values.find(|value| !value.is_null() && **value != json!("")).cloned().unwrap_or(Value::Null)
    };
    let conditions = status.get("conditions").and_then(Value::as_array).unwrap_or(&no_sites);
    let degraded = conditions.iter().find(|one| one["type"] == "Degraded" && one["status"] == "True");
    fields.extend([
        ("namespace".to_owned(), json!(&*id.namespace)),
        ("group".to_owned(), json!(&*id.name)),
        ("alert".to_owned(), degraded.map_or(Value::Null, |one| one["message"].clone())),
        ("recoveryState".to_owned(), first("recoveryState")),
        ("divergentGtid".to_owned(), first("divergentGtid")),
        ("divergentTransactionCount".to_owned(), first("divergentTransactionCount")),
    ]);
    Value::Object(fields).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_that_nobody_understands_survives_every_write() {
        let raw = json!({
            "activeSite": "iad",
            "ofALaterRelease": {"a": [1, 2]},
            "backupSchedules": "not what this release writes there",
            "sites": [{"name": "iad", "recoveryState": ""}],
        });
        let status = Status::read(Some(&raw));
        let (kept, _) = status.keeping(&Kept::default()).expect("writable");
        let after = kept.to_json();
        assert_eq!(after["ofALaterRelease"], raw["ofALaterRelease"]);
        assert_eq!(after["backupSchedules"], raw["backupSchedules"]);
        assert_eq!(after["sites"][0]["name"], "iad");
        // Nobody has authority in what is kept.
        assert_eq!(after["activeSite"], "");
        assert_eq!(Status::read(Some(&after)).to_json(), after);
        assert_eq!(Status::read(None), Status::default());
        assert_eq!(Status::read(Some(&json!(7))), Status::default());
    }
}
