//! Schema paths: `spec.sites[].storage.size`, `spec.mysqlConf{}`.
//!
//! In: such a path, a schema, an object and perhaps its older version. Out: the schema node, or every value that the path
//! names, each with its older counterpart. Must not: pair list entries by position; the API server pairs them by key.

use serde_json::Value;

/// A value that a path names.
pub(crate) struct Place<'a> {
    /// Concrete path, e.g. `spec.sites[2].name`.
    pub(crate) path: String,
    /// The value.
    pub(crate) value: &'a Value,
    /// The value before, if there was one to pair it with.
    pub(crate) old: Option<&'a Value>,
}

/// One step of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step<'a> {
    Field(&'a str),
    Items,
    Values,
}

/// The schema node at a path, to change it.
pub(crate) fn node_mut<'a>(schema: &'a mut Value, path: &str) -> Option<&'a mut Value> {
    let mut node = schema;
    for step in steps(path) {
        node = match step {
            Step::Field(name) => node.get_mut("properties")?.get_mut(name)?,
            Step::Items => node.get_mut("items")?,
            Step::Values => node.get_mut("additionalProperties")?,
        };
    }
    Some(node)
}

/// Every value that a path names; absent ones are none.
pub(crate) fn places<'a>(schema: &Value, path: &str, value: &'a Value, old: Option<&'a Value>) -> Vec<Place<'a>> {
    let mut node = Some(schema);
    let mut found = vec![Place { path: String::new(), value, old }];
    for step in steps(path) {
        match step {
            Step::Field(name) => {
                node = node.and_then(|n| n.get("properties")?.get(name));
                found = found.into_iter().filter_map(|p| field(&p, name)).collect();
            }
            Step::Items => {
                let key = node.and_then(list_key);
                node = node.and_then(|n| n.get("items"));
                found = found.iter().flat_map(|p| items(p, key)).collect();
            }
            Step::Values => {
                node = node.and_then(|n| n.get("additionalProperties"));
                found = found.iter().flat_map(values).collect();
            }
        }
    }
    found
}

/// The key that makes a list a map, where it has exactly one.
pub(crate) fn list_key(schema: &Value) -> Option<&str> {
    match schema.get("x-kubernetes-list-map-keys")?.as_array()?.as_slice() {
        [Value::String(key)] => Some(key),
        _ => None,
    }
}

fn steps(path: &str) -> impl Iterator<Item = Step<'_>> {
    path.split('.').filter(|part| !part.is_empty()).flat_map(|part| {
        if let Some(name) = part.strip_suffix("[]") {
            vec![Step::Field(name), Step::Items]
        } else if let Some(name) = part.strip_suffix("{}") {
            vec![Step::Field(name), Step::Values]
        } else {
            vec![Step::Field(part)]
        }
    })
}

fn field<'a>(place: &Place<'a>, name: &str) -> Option<Place<'a>> {
    let dot = if place.path.is_empty() { "" } else { "." };
    Some(Place {
        path: format!("{}{dot}{name}", place.path),
        value: place.value.get(name).filter(|v| !v.is_null())?,
        old: place.old.and_then(|o| o.get(name)).filter(|v| !v.is_null()),
    })
}

fn items<'a>(place: &Place<'a>, key: Option<&str>) -> Vec<Place<'a>> {
    let Some(list) = place.value.as_array() else {
        return Vec::new();
    };
    let old_list = place.old.and_then(Value::as_array);
    list.iter()
        .enumerate()
        .map(|(index, value)| Place {
            path: format!("{}[{index}]", place.path),
            value,
            old: key.and_then(|k| old_list?.iter().find(|o| o.get(k) == value.get(k))),
        })
        .collect()
}

/// The values of a map; the API server writes their path as `spec.mysqlConf[max-connections]`.
fn values<'a>(place: &Place<'a>) -> Vec<Place<'a>> {
    let Some(fields) = place.value.as_object() else {
        return Vec::new();
    };
    fields
        .iter()
        .map(|(key, value)| Place {
            path: format!("{}[{key}]", place.path),
            value,
            old: place.old.and_then(|o| o.get(key)),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// K-06: a rule about change compares a site with the one of its name.
    #[test]
    fn list_entries_are_paired_by_key_and_not_by_position() {
        let schema = json!({"properties": {"sites": {
            "x-kubernetes-list-map-keys": ["name"], "items": {"properties": {"size": {}}}}}});
        let old = json!({"sites": [{"name": "a", "size": 1}, {"name": "b", "size": 2}]});
        let new = json!({"sites": [{"name": "b", "size": 3}, {"name": "c", "size": 4}, {"name": "d"}]});
        let found: Vec<_> = places(&schema, "sites[].size", &new, Some(&old))
            .into_iter()
            .map(|p| (p.path, p.value.clone(), p.old.cloned()))
            .collect();
        assert_eq!(
            found,
            [("sites[0].size".to_owned(), json!(3), Some(json!(2))), ("sites[1].size".to_owned(), json!(4), None),]
        );
    }
}
