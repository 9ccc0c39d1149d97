//! The group's object: read whole, changed by compare-and-swap.
//!
//! In: a change, bound to a version or not. Out: the object as it is now. Must not: change the generation for anything but
//! a new spec, or let two writers both believe that they were first.

use bloodraven_api::admission::{self, Violation};
use bloodraven_api::{MysqlFailoverGroup, keys};
use serde_json::{Map, Value, json};
use snafu::ensure;

use super::{ConflictSnafu, CorruptSnafu, Error, MissingSnafu, RefusedSnafu, Store};
use crate::files;

/// The object's file.
pub const FILE: &str = "group.json";

/// How often a change that is bound to no version is tried again: each loss means that another writer was first.
const ATTEMPTS: usize = 32;

/// The group's object at one version.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    /// Word for word.
    pub value: Value,
    /// `metadata.resourceVersion`.
    pub version: u64,
}

impl Object {
    /// `metadata.name`.
    pub fn name(&self) -> &str {
        self.text("/metadata/name")
    }

    /// `metadata.namespace`.
    pub fn namespace(&self) -> &str {
        self.text("/metadata/namespace")
    }

    /// `metadata.uid`.
    pub fn uid(&self) -> &str {
        self.text("/metadata/uid")
    }

    /// The sites, in the spec's order, with their roles.
    pub fn sites(&self) -> Vec<(String, String)> {
        let sites = self.value.pointer("/spec/sites").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let text = |site: &Value, key: &str| site.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        sites.iter().map(|site| (text(site, "name"), text(site, "role"))).collect()
    }

    /// Text at that place; empty where there is none.
    pub fn text(&self, pointer: &str) -> &str {
        self.value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }
}

/// Writes the first version of the object, which must be acceptable.
pub(super) fn create(store: &Store, object: &Value) -> Result<(), Error> {
    let mut value = object.clone();
    check(&value, None)?;
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("resourceVersion".into(), json!("1"));
        metadata.insert("generation".into(), json!(1));
    }
    Ok(files::replace(&store.path(FILE), &pretty(&value))?)
}

impl Store {
    /// The object as it is now.
    pub fn read_group(&self) -> Result<Object, Error> {
        let path = self.path(FILE);
        let Some(value) = self.json(FILE)? else { return MissingSnafu { path }.fail() };
        let version = value.pointer("/metadata/resourceVersion").and_then(Value::as_str);
        let whole = ["/metadata/name", "/metadata/namespace", "/metadata/uid"]
            .iter()
            .all(|place| value.pointer(place).is_some_and(Value::is_string))
            && value.get("spec").is_some_and(Value::is_object);
        match version.and_then(|text| text.parse().ok()) {
            Some(version) if whole => Ok(Object { value, version }),
            _ => {
                CorruptSnafu { path, why: "it is no group with name, namespace, uid, resourceVersion and spec" }.fail()
            }
        }
    }

    /// Changes the object. With a version: only while it has exactly that one, else [`Error::Conflict`]. Without: whatever
    /// it is, again and again until no other writer comes in between. What the change makes of the spec must be acceptable.
    pub fn change_group(
        &self,
        expected: Option<u64>,
        change: impl Fn(&mut Value) -> Result<(), Error>,
    ) -> Result<Object, Error> {
        let path = self.path(FILE);
        for _ in 0..ATTEMPTS {
            let before = self.read_group()?;
            ensure!(expected.is_none_or(|version| version == before.version), ConflictSnafu { path });
            let mut value = before.value.clone();
            change(&mut value)?;
            if value == before.value {
                return Ok(before);
            }
            let after = versioned(value, &before)?;
            if self.place(&after, before.version)? {
                return Ok(after);
            }
        }
        ConflictSnafu { path }.fail()
    }

    /// Puts the object in its place if the one there still has that version.
    fn place(&self, after: &Object, expected: u64) -> Result<bool, Error> {
        let staged = files::stage(&self.path(FILE), &pretty(&after.value))?;
        let lock = self.lock()?;
        if self.read_group()?.version != expected {
            return Ok(false);
        }
        staged.rename()?;
        drop(lock);
        staged.settle()?;
        Ok(true)
    }

    /// Sets annotations (none: takes the key away).
    pub fn annotate(&self, expected: Option<u64>, annotations: &[(String, Option<String>)]) -> Result<Object, Error> {
        self.change_group(expected, |value| {
            let all = annotations_of(value)?;
            for (key, text) in annotations {
                match text {
                    Some(text) => drop(all.insert(key.clone(), Value::String(text.clone()))),
                    None => drop(all.remove(key)),
                }
            }
            Ok(())
        })
    }

    /// Merges a patch into the spec (RFC 7396: null takes a field away).
    pub fn patch_spec(&self, expected: Option<u64>, patch: &Value) -> Result<Object, Error> {
        self.change_group(expected, |value| {
            if let Some(spec) = value.get_mut("spec") {
                merge(spec, patch);
            }
            Ok(())
        })
    }
}

/// The annotations of an object, made when there are none.
pub(crate) fn annotations_of(value: &mut Value) -> Result<&mut Map<String, Value>, Error> {
    let metadata = value.get_mut("metadata").and_then(Value::as_object_mut);
    let all = metadata.and_then(|it| it.entry("annotations").or_insert_with(|| json!({})).as_object_mut());
    all.ok_or_else(|| RefusedSnafu { because: "metadata.annotations is no object" }.build())
}

/// Merges a patch (RFC 7396: null takes a field away).
pub fn merge(into: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *into = patch.clone();
        return;
    };
    if !into.is_object() {
        *into = json!({});
    }
    if let Some(fields) = into.as_object_mut() {
        for (key, value) in patch {
            if value.is_null() {
                fields.remove(key);
            } else {
                merge(fields.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
    }
}

/// The changed object with its next version, and the next generation if the spec is another and acceptable.
fn versioned(mut value: Value, before: &Object) -> Result<Object, Error> {
    let version = before.version + 1;
    let generation = before.value.pointer("/metadata/generation").and_then(Value::as_u64).unwrap_or(1);
    let wished = value.get("spec") != before.value.get("spec");
    if wished {
        check(&value, Some(&before.value))?;
    }
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("resourceVersion".into(), json!(version.to_string()));
        metadata.insert("generation".into(), json!(generation + u64::from(wished)));
    }
    Ok(Object { value, version })
}

/// What an API server would say at admission.
pub(crate) fn check(value: &Value, before: Option<&Value>) -> Result<(), Error> {
    match admission::read_strictly::<MysqlFailoverGroup>(without_status(value), before.map(without_status).as_ref()) {
        Ok(_) => Ok(()),
        Err(found) => RefusedSnafu { because: told(&found) }.fail(),
    }
}

/// Every violation in one line.
pub fn told(found: &[Violation]) -> String {
    found.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// Status is nobody's wish; the rule about the holder's role needs who holds, which the status tells.
fn without_status(value: &Value) -> Value {
    let mut value = value.clone();
    let active = value.pointer("/status/activeSite").cloned();
    if let Some(fields) = value.as_object_mut() {
        fields.remove("status");
        if let Some(active) = active.filter(|active| active.as_str().is_some_and(|site| !site.is_empty())) {
            fields.insert("status".into(), json!({ "activeSite": active }));
        }
    }
    value
}

fn pretty(value: &Value) -> Vec<u8> {
    let mut bytes = serde_json::to_vec_pretty(value).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

/// The annotations that are requests, by their short names.
pub const REQUESTS: [(&str, &str); 3] = [
    ("planned-failover", keys::PLANNED_FAILOVER),
    ("reclone-site", keys::RECLONE_SITE),
    ("dragonfly-snapshot-upgrade", keys::DRAGONFLY_SNAPSHOT_UPGRADE),
];
