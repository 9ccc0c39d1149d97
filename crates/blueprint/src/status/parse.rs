//! JSON, as text or as a value, into a type.
//!
//! In: what is stored. Out: the typed form, or the field that does not fit and why. Must not: accept a list where an
//! object is due; the derived readers would take it field by field, and an empty one for an empty object.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::fault::Fault;

pub(super) fn text<T: DeserializeOwned + Serialize>(text: &str) -> Result<T, Fault> {
    let raw: Value = serde_json::from_str(text).map_err(|error| Fault::new("", format!("is no JSON: {error}")))?;
    // From the text once more, for a value has lost what was given twice.
    let mut reader = serde_json::Deserializer::from_str(text);
    let typed = serde_path_to_error::deserialize(&mut reader).map_err(|error| unreadable(&error))?;
    well_shaped(&raw, typed)
}

pub(super) fn value<T: DeserializeOwned + Serialize>(raw: &Value) -> Result<T, Fault> {
    let typed = serde_path_to_error::deserialize(raw).map_err(|error| unreadable(&error))?;
    well_shaped(raw, typed)
}

fn unreadable(error: &serde_path_to_error::Error<serde_json::Error>) -> Fault {
    let path = error.path().to_string();
    Fault::new(if path == "." { String::new() } else { path }, format!("cannot be read: {}", error.inner()))
}

/// What was understood, unless it was understood from a list that stands where an object is due.
fn well_shaped<T: Serialize>(raw: &Value, typed: T) -> Result<T, Fault> {
    let understood = serde_json::to_value(&typed).map_err(|error| Fault::new("", error.to_string()))?;
    match misplaced_list("", raw, &understood) {
        Some(field) => Err(Fault::new(field, "cannot be read: a list stands where an object is due")),
        None => Ok(typed),
    }
}

/// Bounded: it goes no deeper than the type does.
fn misplaced_list(path: &str, raw: &Value, understood: &Value) -> Option<String> {
    match (raw, understood) {
        (Value::Array(_), Value::Object(_)) => Some(path.to_owned()),
        (Value::Object(raw), Value::Object(understood)) => understood.iter().find_map(|(key, understood)| {
            let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            misplaced_list(&path, raw.get(key)?, understood)
        }),
        (Value::Array(raw), Value::Array(understood)) => raw
            .iter()
            .zip(understood)
            .enumerate()
            .find_map(|(index, (raw, understood))| misplaced_list(&format!("{path}[{index}]"), raw, understood)),
        _ => None,
    }
}
