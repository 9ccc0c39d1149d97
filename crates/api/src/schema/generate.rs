//! From types to the CRD that the API server gets.
//!
//! In: what kube derives. Out: the same with a schema that follows our conventions, and the rules attached. Must not:
//! contain a rule of its own.

use kube::CustomResourceExt;
use serde_json::{Map, Value, json};

use super::defaults;
use super::path::node_mut;
use crate::rules::Rule;

const SCHEMA: &str = "/spec/versions/0/schema/openAPIV3Schema";

/// Format that marks a duration until its default is printed the way people write it.
pub(crate) const DURATION_FORMAT: &str = "go-duration";

/// Fields whose `null` means something: the server itself answered that it does not know.
const NULLABLE: &[&str] = &["status.sites[].secondsBehindSource"];

/// Bounds that no attribute reaches: inside borrowed types, and of the values of maps.
const FURTHER_BOUNDS: &[(&str, &str, u64)] = &[
    ("spec.extraContainers[].name", "maxLength", 63),
    ("spec.extraInitContainers[].name", "maxLength", 63),
    ("spec.mysqlConf{}", "maxLength", 1024),
    ("spec.podAnnotations{}", "maxLength", 16384),
    ("spec.podLabels{}", "maxLength", 63),
    ("spec.serviceTemplate.annotations{}", "maxLength", 16384),
    ("spec.sites[].taintNodeSelector{}", "maxLength", 63),
];

/// Fields of borrowed types: their inner descriptions are in the Kubernetes reference and would be most of the CRD.
const BORROWED: &[&str] = &[
    "containerSecurityContext",
    "extraContainers",
    "extraInitContainers",
    "mysqldResources",
    "podSecurityContext",
    "resources",
    "sidecarResources",
];

/// The CRD; none: a rule names a path that its schema lacks.
pub(crate) fn definition<K: CustomResourceExt>(longest_name: u64, rules: &[Rule]) -> Option<Value> {
    let mut crd = serde_json::to_value(K::crd()).ok()?;
    let schema = crd.pointer_mut(SCHEMA)?;
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        let name = json!({ "type": "string", "maxLength": longest_name });
        properties.insert("metadata".to_owned(), json!({ "type": "object", "properties": { "name": name } }));
    }
    tidy(schema);
    if let Some(status) = node_mut(schema, "status") {
        drop_defaults(status);
    }
    spell_out_object_defaults(schema);
    for path in NULLABLE {
        if let Some(Value::Object(node)) = node_mut(schema, path) {
            node.insert("nullable".to_owned(), Value::Bool(true));
        }
    }
    for (path, bound, value) in FURTHER_BOUNDS {
        if let Some(Value::Object(node)) = node_mut(schema, path) {
            node.insert((*bound).to_owned(), json!(value));
        }
    }
    for rule in rules {
        attach(schema, rule)?;
    }
    Some(crd)
}

/// A CRD's schema without words for people and for the API server: those are most of it, and what checks an object looks at
/// neither.
pub(crate) fn bare_schema(mut crd: Value) -> Option<Value> {
    let mut schema = crd.pointer_mut(SCHEMA)?.take();
    drop_words(&mut schema);
    Some(schema)
}

fn drop_words(node: &mut Value) {
    if let Value::Object(fields) = node {
        fields.remove("description");
        fields.remove("x-kubernetes-validations");
    }
    for_each_child(node, &mut drop_words);
}

fn attach(schema: &mut Value, rule: &Rule) -> Option<()> {
    let node = node_mut(schema, rule.at())?.as_object_mut()?;
    let mut entry = json!({ "rule": rule.cel(), "message": rule.message() });
    if let (Some(field), Some(fields)) = (rule.field(), entry.as_object_mut()) {
        fields.insert("fieldPath".to_owned(), Value::String(format!(".{field}")));
    }
    node.entry("x-kubernetes-validations").or_insert_with(|| json!([])).as_array_mut()?.push(entry);
    Some(())
}

/// Brings one node and everything below it to our conventions.
fn tidy(node: &mut Value) {
    let Value::Object(fields) = node else { return };
    // Absent and null are the same to us; where they are not, NULLABLE says so.
    fields.remove("nullable");
    if fields.get("default").is_some_and(Value::is_null) {
        fields.remove("default");
    }
    tidy_format(fields);
    // kube holds bounds as floating point numbers.
    for bound in ["minimum", "maximum"] {
        if let Some(value) = fields.get_mut(bound)
            && let Some(whole) = whole_number(value)
        {
            *value = json!(whole);
        }
    }
    if let Some(Value::Object(properties)) = fields.get_mut("properties") {
        for (name, child) in properties {
            tidy(child);
            if BORROWED.contains(&name.as_str()) {
                drop_inner_descriptions(child);
            }
        }
    }
    for inner in ["items", "additionalProperties"] {
        if let Some(child) = fields.get_mut(inner) {
            tidy(child);
        }
    }
}

/// Formats of unsigned numbers are unknown to the API server; their range becomes explicit bounds. A duration's default
/// loses the zeros that Go prints and nobody writes.
fn tidy_format(fields: &mut Map<String, Value>) {
    let format = fields.get("format").and_then(Value::as_str).unwrap_or_default().to_owned();
    let (new_format, most): (Option<&str>, Option<u64>) = match format.as_str() {
        "uint8" => (Some("int32"), Some(u64::from(u8::MAX))),
        "uint16" => (Some("int32"), Some(u64::from(u16::MAX))),
        "int32" => (Some("int32"), Some(i32::MAX.unsigned_abs().into())),
        "uint32" => (Some("int64"), Some(u64::from(u32::MAX))),
        "uint64" => (Some("int64"), None),
        DURATION_FORMAT => (None, None),
        _ => return,
    };
    match new_format {
        Some(text) => fields.insert("format".to_owned(), json!(text)),
        None => fields.remove("format"),
    };
    if let Some(most) = most {
        fields.entry("maximum").or_insert_with(|| json!(most));
    }
    if format == DURATION_FORMAT
        && let Some(Value::String(text)) = fields.get_mut("default")
    {
        *text = short_duration(text);
    }
}

#[expect(clippy::cast_possible_truncation, reason = "only whole numbers that fit are converted")]
fn whole_number(value: &Value) -> Option<i64> {
    let number = value.as_f64()?;
    (number.fract() == 0.0 && number.abs() < 9e15).then_some(number as i64)
}

/// `5m0s` becomes `5m`, `1h0m0s` becomes `1h`.
fn short_duration(text: &str) -> String {
    let text = text.strip_suffix("m0s").map_or(text.to_owned(), |minutes| format!("{minutes}m"));
    text.strip_suffix("h0m").map_or(text.clone(), |hours| format!("{hours}h"))
}

fn drop_inner_descriptions(node: &mut Value) {
    for_each_child(node, &mut |child| {
        if let Value::Object(fields) = child {
            fields.remove("description");
        }
        drop_inner_descriptions(child);
    });
}

fn drop_defaults(node: &mut Value) {
    for_each_child(node, &mut |child| {
        if let Value::Object(fields) = child {
            fields.remove("default");
        }
        drop_defaults(child);
    });
}

/// An object's default spells out the defaults of its fields, in their words: the API server holds it against the
/// object's rules before it fills in the fields.
fn spell_out_object_defaults(node: &mut Value) {
    for_each_child(node, &mut |child| {
        spell_out_object_defaults(child);
        if child.get("default").is_some_and(Value::is_object) {
            let mut whole = child.get("default").cloned().unwrap_or_default();
            normalise_durations(child, &mut whole);
            defaults::apply(child, &mut whole);
            if let Value::Object(fields) = child {
                fields.insert("default".to_owned(), whole);
            }
        }
    });
}

/// An object's own default was printed before the defaults of its durations were shortened: take the fields' texts.
fn normalise_durations(schema: &Value, value: &mut Value) {
    let (Some(properties), Value::Object(fields)) = (schema.get("properties").and_then(Value::as_object), value) else {
        return;
    };
    for (name, property) in properties {
        if let (Some(Value::String(theirs)), Some(mine)) = (property.get("default"), fields.get_mut(name)) {
            let parse = |text: &str| text.parse::<crate::GoDuration>().ok();
            if mine.as_str().and_then(parse).is_some_and(|d| parse(theirs) == Some(d)) {
                *mine = json!(theirs);
            }
        }
        if let Some(child) = fields.get_mut(name) {
            normalise_durations(property, child);
        }
    }
}

fn for_each_child(node: &mut Value, visit: &mut impl FnMut(&mut Value)) {
    let Value::Object(fields) = node else { return };
    if let Some(Value::Object(properties)) = fields.get_mut("properties") {
        properties.values_mut().for_each(&mut *visit);
    }
    for inner in ["items", "additionalProperties"] {
        if let Some(child) = fields.get_mut(inner) {
            visit(child);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::rules::DURATIONS;
    use crate::{MysqlBackup, MysqlBackupVerification, MysqlFailoverGroup};

    /// K-12: no duration of any kind is without its bound.
    #[test]
    fn every_duration_that_users_write_has_a_bound() {
        let mut found = BTreeSet::new();
        for crd in [MysqlFailoverGroup::crd(), MysqlBackup::crd(), MysqlBackupVerification::crd()] {
            let crd = serde_json::to_value(crd).expect("a CRD");
            durations(crd.pointer(SCHEMA).expect("a schema"), "", &mut found);
        }
        let in_specs: BTreeSet<_> = found.iter().map(String::as_str).filter(|p| p.starts_with("spec.")).collect();
        let bounded: BTreeSet<_> = DURATIONS.iter().map(|bound| bound.path).collect();
        assert_eq!(in_specs, bounded);
    }

    fn durations(node: &Value, path: &str, found: &mut BTreeSet<String>) {
        if node.get("format").and_then(Value::as_str) == Some(DURATION_FORMAT) {
            found.insert(path.to_owned());
        }
        for (name, child) in node.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let dot = if path.is_empty() { "" } else { "." };
            durations(child, &format!("{path}{dot}{name}"), found);
        }
        if let Some(items) = node.get("items") {
            durations(items, &format!("{path}[]"), found);
        }
    }

    #[test]
    fn durations_are_shortened_the_way_people_write_them() {
        for (text, expect) in
            [("5m0s", "5m"), ("1h0m0s", "1h"), ("20s", "20s"), ("2m30s", "2m30s"), ("1h30m0s", "1h30m")]
        {
            assert_eq!(short_duration(text), expect);
        }
    }
}
