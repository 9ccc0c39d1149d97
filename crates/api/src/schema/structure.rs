//! The structural check that the API server makes, in code: types, enums, bounds, required fields, unique keys.
//!
//! In: a schema and a value. Out: every place where the value does not fit, with what to write instead. Must not: know
//! about kinds; what a schema cannot say is in `crate::rules`.

use std::collections::BTreeSet;

use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

use super::path::list_key;
use crate::admission::Violation;

/// What to do about fields that the schema does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strangers {
    /// Let them pass: the API server drops them.
    Drop,
    /// Report them.
    Report,
}

/// Every place where `value` does not fit `schema`.
pub(crate) fn check(schema: &Value, value: &Value, strangers: Strangers) -> Vec<Violation> {
    let mut walk = Walk { strangers, found: Vec::new() };
    walk.value(schema, value, "");
    walk.found
}

struct Walk {
    strangers: Strangers,
    found: Vec<Violation>,
}

impl Walk {
    fn report(&mut self, path: &str, message: impl Into<String>) {
        self.found.push(Violation { path: path.to_owned(), message: message.into() });
    }

    fn value(&mut self, schema: &Value, value: &Value, path: &str) {
        if value.is_null() && schema.get("nullable") == Some(&Value::Bool(true)) {
            return;
        }
        if schema.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) {
            if !value.is_string() && !value.is_i64() {
                self.report(path, "must be a number or a text");
            }
            return;
        }
        let wanted = schema.get("type").and_then(Value::as_str).unwrap_or("any");
        match (wanted, value) {
            ("object", Value::Object(_)) => self.object(schema, value, path),
            ("array", Value::Array(entries)) => self.array(schema, entries, path),
            ("string", Value::String(text)) => self.text(schema, text, path),
            ("integer", Value::Number(number)) if number.as_i64().is_some() => self.number(schema, value, path),
            ("number", Value::Number(_)) => self.number(schema, value, path),
            ("boolean", Value::Bool(_)) | ("any", _) => {}
            _ => self.report(path, format!("must be of type {wanted}")),
        }
    }

    fn object(&mut self, schema: &Value, value: &Value, path: &str) {
        let Some(fields) = value.as_object() else { return };
        for name in schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
            if fields.get(name).is_none_or(Value::is_null) {
                self.report(&join(path, name), "is required");
            }
        }
        self.size(schema, fields.len(), path, "Properties", "entries");
        let properties = schema.get("properties").and_then(Value::as_object);
        let others = schema.get("additionalProperties").filter(|s| s.is_object());
        let open = schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true))
            || (properties.is_none() && others.is_none());
        for (name, child) in fields {
            match properties.and_then(|p| p.get(name)).or(others) {
                Some(child_schema) => self.value(child_schema, child, &join(path, name)),
                None if open || self.strangers == Strangers::Drop || is_frame(path, name) => {}
                None => self.report(&join(path, name), "is not a known field"),
            }
        }
    }

    fn array(&mut self, schema: &Value, entries: &[Value], path: &str) {
        self.size(schema, entries.len(), path, "Items", "entries");
        if let Some(key) = list_key(schema) {
            let mut seen = BTreeSet::new();
            for (index, entry) in entries.iter().enumerate() {
                if let Some(text) = entry.get(key).and_then(Value::as_str)
                    && !seen.insert(text)
                {
                    self.report(
                        &format!("{path}[{index}]"),
                        format!("repeats {key} {text:?}; every {key} is there once"),
                    );
                }
            }
        }
        if let Some(items) = schema.get("items") {
            for (index, entry) in entries.iter().enumerate() {
                self.value(items, entry, &format!("{path}[{index}]"));
            }
        }
    }

    fn text(&mut self, schema: &Value, text: &str, path: &str) {
        if let Some(allowed) = schema.get("enum").and_then(Value::as_array)
            && !allowed.iter().any(|a| a.as_str() == Some(text))
        {
            let words: Vec<_> = allowed.iter().filter_map(Value::as_str).map(|w| format!("{w:?}")).collect();
            self.report(path, format!("must be one of {}", words.join(", ")));
        }
        self.size(schema, text.chars().count(), path, "Length", "characters");
        if schema.get("format").and_then(Value::as_str) == Some("date-time") && text.parse::<Timestamp>().is_err() {
            self.report(path, "must be a time, e.g. 2026-04-20T14:32:00Z");
        }
    }

    fn number(&mut self, schema: &Value, value: &Value, path: &str) {
        let Some(number) = value.as_f64() else { return };
        if let Some(least) = schema.get("minimum").and_then(Value::as_f64)
            && number < least
        {
            self.report(path, format!("must be at least {least}"));
        }
        if let Some(most) = schema.get("maximum").and_then(Value::as_f64)
            && number > most
        {
            self.report(path, format!("must be at most {most}"));
        }
    }

    /// `minItems` and `maxItems`, or the same of another measure.
    fn size(&mut self, schema: &Value, size: usize, path: &str, measure: &str, unit: &str) {
        let bound = |side: &str| schema.get(format!("{side}{measure}")).and_then(Value::as_u64);
        let size = size as u64;
        if let Some(least) = bound("min").filter(|least| size < *least) {
            self.report(path, format!("must have at least {least} {unit}"));
        }
        if let Some(most) = bound("max").filter(|most| size > *most) {
            self.report(path, format!("must have at most {most} {unit}"));
        }
    }
}

/// The fields that every object has and no schema of ours describes.
fn is_frame(path: &str, name: &str) -> bool {
    path == "metadata" || (path.is_empty() && matches!(name, "apiVersion" | "kind"))
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
