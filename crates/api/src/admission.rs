//! Whether an object is acceptable: the check that the API server makes at admission, made again in code.
//!
//! In: an object, and its older version for rules about change. Out: the object, or every violation with the field and
//! what to write instead. Must not: be laxer than the API server; a spec that got past it is caught here, by the same
//! schema and the same rule table.

use std::fmt;
use std::sync::LazyLock;

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::CustomResourceExt;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::rules::{self, Rule};
use crate::schema::{Strangers, apply_defaults, bare_schema, check_structure, definition, places};
use crate::{MysqlBackup, MysqlBackupVerification, MysqlFailoverGroup};

/// Why an object is not acceptable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The field, e.g. `spec.sites[2].name`.
    pub path: String,
    /// What is wrong and what to write instead.
    pub message: String,
}

/// What is known about a kind at admission: its schema, its rules.
pub struct Definition {
    schema: Value,
    rules: Vec<Rule>,
    longest_name: u64,
    /// The CRD is large, and a process that checks objects has no use for it: it is made when it is asked for.
    crd: fn(u64, &[Rule]) -> Option<Value>,
}

/// A kind with a schema and rules.
pub trait Admitted: CustomResourceExt + Serialize + DeserializeOwned + 'static {
    /// CRD, schema and rules of this kind.
    fn definition() -> &'static Definition;
}

/// Every violation of an object; `old` is its version before the change, if there was one.
pub fn validate<K: Admitted>(object: &K, old: Option<&K>) -> Vec<Violation> {
    let as_value = |o: &K| serde_json::to_value(o).unwrap_or_default();
    validate_value::<K>(&as_value(object), old.map(as_value).as_ref(), Strangers::Drop)
}

/// Reads an object from JSON as the API server would take it: defaults filled in, unknown fields dropped, every rule held.
pub fn read<K: Admitted>(value: Value, old: Option<&Value>) -> Result<K, Vec<Violation>> {
    read_with(value, old, Strangers::Drop)
}

/// Like [`read`], but a field that the schema does not know is a violation.
pub fn read_strictly<K: Admitted>(value: Value, old: Option<&Value>) -> Result<K, Vec<Violation>> {
    read_with(value, old, Strangers::Report)
}

/// The object as the API server would store it: defaults filled in.
pub fn with_defaults<K: Admitted>(mut value: Value) -> Value {
    apply_defaults(K::definition().schema(), &mut value);
    value
}

/// Rules of a group that need the time: how far ahead the plaintext fallback may reach.
pub fn validate_at(group: &MysqlFailoverGroup, now: Timestamp) -> Vec<Violation> {
    let until = group.spec.backup.as_ref().and_then(|b| b.allow_plaintext_fallback_until.as_ref());
    let limit = now.saturating_add(SignedDuration::from_hours(30 * 24)).unwrap_or(Timestamp::MAX);
    match until {
        Some(until) if until.0 > limit => vec![Violation {
            path: "spec.backup.allowPlaintextFallbackUntil".to_owned(),
            message: format!("is more than 30 days ahead; write {limit} or earlier"),
        }],
        _ => Vec::new(),
    }
}

impl Definition {
    /// The CRD with everything in place.
    pub fn crd(&self) -> Value {
        (self.crd)(self.longest_name, &self.rules).unwrap_or_default()
    }

    /// The structural schema, without descriptions.
    pub fn schema(&self) -> &Value {
        &self.schema
    }

    /// The rules that go beyond the schema.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    fn of<K: CustomResourceExt>(longest_name: u64, rules: Vec<Rule>) -> Self {
        // `None` only if a rule names a path that the schema lacks; the tests of `crd` catch that.
        let schema = definition::<K>(longest_name, &rules).and_then(bare_schema).unwrap_or_default();
        Self { schema, rules, longest_name, crd: definition::<K> }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

/// Group and site have 40 characters together, and a site has at least one.
const LONGEST_GROUP_NAME: u64 = 39;
/// What Kubernetes allows for a name.
const LONGEST_NAME: u64 = 253;

impl Admitted for MysqlFailoverGroup {
    fn definition() -> &'static Definition {
        static DEFINITION: LazyLock<Definition> =
            LazyLock::new(|| Definition::of::<MysqlFailoverGroup>(LONGEST_GROUP_NAME, rules::of_group()));
        &DEFINITION
    }
}

impl Admitted for MysqlBackup {
    fn definition() -> &'static Definition {
        static DEFINITION: LazyLock<Definition> =
            LazyLock::new(|| Definition::of::<MysqlBackup>(LONGEST_NAME, rules::of_backup()));
        &DEFINITION
    }
}

impl Admitted for MysqlBackupVerification {
    fn definition() -> &'static Definition {
        static DEFINITION: LazyLock<Definition> =
            LazyLock::new(|| Definition::of::<MysqlBackupVerification>(LONGEST_NAME, rules::of_verification()));
        &DEFINITION
    }
}

fn read_with<K: Admitted>(value: Value, old: Option<&Value>, strangers: Strangers) -> Result<K, Vec<Violation>> {
    let value = with_defaults::<K>(value);
    let violations = validate_value::<K>(&value, old, strangers);
    if !violations.is_empty() {
        return Err(violations);
    }
    serde_json::from_value(value)
        .map_err(|error| vec![Violation { path: "spec".to_owned(), message: format!("cannot be read: {error}") }])
}

fn validate_value<K: Admitted>(value: &Value, old: Option<&Value>, strangers: Strangers) -> Vec<Violation> {
    let definition = K::definition();
    let mut found = check_structure(definition.schema(), value, strangers);
    for rule in definition.rules() {
        for place in places(definition.schema(), rule.at(), value, old) {
            if !rule.holds(place.value, place.old) {
                let path = [place.path.as_str(), rule.field().unwrap_or_default()];
                let path: Vec<_> = path.into_iter().filter(|p| !p.is_empty()).collect();
                found.push(Violation { path: path.join("."), message: rule.message().to_owned() });
            }
        }
    }
    found
}
