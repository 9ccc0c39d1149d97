//! Defaults, filled in as the API server does it.
//!
//! In: a schema and a value. Out: the value with every absent field that has a default. Must not: replace what is there.

use serde_json::Value;

/// Fills in defaults, objects inside out of their own defaults included.
pub(crate) fn apply(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
                for (name, property) in properties {
                    let nullable = property.get("nullable") == Some(&Value::Bool(true));
                    let absent = fields.get(name).is_none_or(|v| v.is_null() && !nullable);
                    match property.get("default") {
                        Some(default) if absent => {
                            fields.insert(name.clone(), default.clone());
                        }
                        // A null that may not be there is dropped, as the API server does.
                        None if absent => {
                            fields.remove(name);
                        }
                        _ => {}
                    }
                    if let Some(child) = fields.get_mut(name) {
                        apply(property, child);
                    }
                }
            }
            if let Some(values) = schema.get("additionalProperties").filter(|s| s.is_object()) {
                for child in fields.values_mut() {
                    apply(values, child);
                }
            }
        }
        Value::Array(entries) => {
            if let Some(items) = schema.get("items") {
                for child in entries {
                    apply(items, child);
                }
            }
        }
        _ => {}
    }
}
