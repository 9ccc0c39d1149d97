//! The last spec of a group that was taken: a `ConfigMap`, for an operator that comes later and cannot take the one that it
//! finds.
//!
//! In: who the group is, its spec word for word. Out: the object, and back. Must not: judge the spec; whoever reads it checks
//! it as if somebody had just written it.

use std::collections::BTreeMap;

use bloodraven_api::keys::Application;
use bloodraven_api::names;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::Value;

use super::metadata::{self, Identity};

const SPEC: &str = "spec.json";
const GENERATION: &str = "generation";

/// A spec that was taken.
#[derive(Clone, Debug, PartialEq)]
pub struct Taken {
    /// The generation of the group's object that it is of.
    pub generation: i64,
    /// Word for word.
    pub spec: Value,
}

/// The object that keeps it.
pub fn taken_spec(group: Identity<'_>, taken: &Taken) -> ConfigMap {
    let data = [(SPEC, taken.spec.to_string()), (GENERATION, taken.generation.to_string())];
    ConfigMap {
        metadata: metadata::owned(group, Application::Mysql, names::taken_spec(group.name), None),
        data: Some(data.map(|(key, text)| (key.to_owned(), text)).into()),
        ..ConfigMap::default()
    }
}

/// What such an object keeps; none: it is another's, of an earlier group of that name, or nobody can read it.
pub fn taken(group: Identity<'_>, object: &ConfigMap) -> Option<Taken> {
    let owners = object.metadata.owner_references.iter().flatten();
    owners.into_iter().find(|owner| owner.controller == Some(true) && owner.uid == group.uid)?;
    let empty = BTreeMap::new();
    let data = object.data.as_ref().unwrap_or(&empty);
    Some(Taken { generation: data.get(GENERATION)?.parse().ok()?, spec: serde_json::from_str(data.get(SPEC)?).ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const ORDERS: Identity<'_> = Identity { name: "orders", namespace: "shop", uid: "u1" };

    fn object() -> ConfigMap {
        taken_spec(ORDERS, &Taken { generation: 7, spec: json!({"pollInterval": "2s"}) })
    }

    #[test]
    fn what_was_kept_is_read_back() {
        assert_eq!(object().metadata.name.as_deref(), Some("mysql-orders-spec"));
        assert_eq!(taken(ORDERS, &object()), Some(Taken { generation: 7, spec: json!({"pollInterval": "2s"}) }));
    }

    #[test]
    fn what_is_another_groups_or_cannot_be_read_is_nothing() {
        type Row = (&'static str, fn(&mut ConfigMap));
        let rows: [Row; 6] = [
            ("an earlier group's", |it| {
                it.metadata.owner_references.iter_mut().flatten().for_each(|by| by.uid = "u0".to_owned());
            }),
            ("nobody's", |it| it.metadata.owner_references = None),
            ("no data", |it| it.data = None),
            ("no spec", |it| drop(it.data.as_mut().and_then(|data| data.remove(SPEC)))),
            ("no generation", |it| drop(it.data.as_mut().and_then(|data| data.remove(GENERATION)))),
            ("no JSON", |it| it.data.iter_mut().for_each(|data| drop(data.insert(SPEC.to_owned(), "{".to_owned())))),
        ];
        for (what, change) in rows {
            let mut map = object();
            change(&mut map);
            assert_eq!(taken(ORDERS, &map), None, "{what}");
        }
    }
}
