//! A group's object as the world tells it, taken apart as far as everyone needs it.
//!
//! In: JSON. Out: its names, its version, its annotations, what is kept in it. Must not: fail because of a part that nobody
//! asked for; what a spec says is read elsewhere, and only when it changed.

use crate::world::{Glimpse, GroupId, Version};
use bloodraven_blueprint::status::{self, Corrupt};
use bloodraven_brain::group::Kept;
use bloodraven_wire::GroupUid;
use serde_json::Value;
use snafu::{OptionExt, Snafu};
use std::collections::BTreeMap;
use std::sync::Arc;

/// See above.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Object {
    pub(crate) uid: GroupUid,
    pub(crate) version: Version,
    pub(crate) generation: i64,
    /// It is being deleted: nothing is begun for it any more.
    pub(crate) deleting: bool,
    pub(crate) annotations: BTreeMap<String, String>,
    pub(crate) raw: Arc<Value>,
}

/// Why an object is none.
#[derive(Clone, Debug, PartialEq, Eq, Snafu)]
#[snafu(display("metadata.{field} is missing or no text; the object is left alone"))]
pub(crate) struct NoObject {
    field: &'static str,
}

impl Object {
    pub(crate) fn read(raw: Arc<Value>) -> Result<Self, NoObject> {
        let metadata = raw.get("metadata");
        let field = |name: &str| metadata.and_then(|metadata| metadata.get(name));
        let text = |name| field(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        let uid = GroupUid::new(text("uid").context(NoObjectSnafu { field: "uid" })?);
        let version = text("resourceVersion").context(NoObjectSnafu { field: "resourceVersion" })?;
        let version = Version(version.into());
        let annotations = field("annotations").and_then(Value::as_object);
        let annotations = annotations
            .into_iter()
            .flatten()
            .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
            .collect();
        let generation = field("generation").and_then(Value::as_i64).unwrap_or(0);
        let deleting = field("deletionTimestamp").is_some_and(|stamp| !stamp.is_null());
        Ok(Self { uid, version, generation, deleting, annotations, raw })
    }

    pub(crate) fn status(&self) -> Option<&Value> {
        self.raw.get("status")
    }

    pub(crate) fn spec(&self) -> Option<&Value> {
        self.raw.get("spec")
    }

    /// What is stored in it, both copies joined.
    pub(crate) fn kept(&self) -> Result<Kept, Corrupt> {
        status::read(self.status(), &self.annotations)
    }
}

/// Objects, and what is none.
pub(crate) type Sorted = (BTreeMap<GroupId, Arc<Object>>, Vec<(GroupId, NoObject)>);

/// Every group whose object can be told apart from others; the rest is named.
pub(crate) fn sorted(glimpses: Vec<Glimpse>) -> Sorted {
    let (mut good, mut bad) = (BTreeMap::new(), Vec::new());
    for Glimpse { id, object } in glimpses {
        match Object::read(object) {
            Ok(object) => drop(good.insert(id, Arc::new(object))),
            Err(why) => bad.push((id, why)),
        }
    }
    (good, bad)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn one_object_that_is_none_stands_in_nobodys_way() {
        let glimpse = |name: &str, object: Value| Glimpse { id: GroupId::new("shop", name), object: Arc::new(object) };
        let fine = json!({"metadata": {"uid": "u", "resourceVersion": "7", "generation": 3,
            "annotations": {"a": "b", "c": 7}}});
        let (good, bad) = sorted(vec![
            glimpse("a", json!({"metadata": {"uid": "", "resourceVersion": "7"}})),
            glimpse("b", fine),
            glimpse("c", json!([1])),
            glimpse("d", json!({"metadata": {"uid": "u", "resourceVersion": 7}})),
        ]);
        assert_eq!(good.keys().map(ToString::to_string).collect::<Vec<_>>(), ["shop/b"]);
        assert_eq!(
            bad.iter().map(|(id, why)| (id.to_string(), why.field)).collect::<Vec<_>>(),
            [("shop/a".to_owned(), "uid"), ("shop/c".to_owned(), "uid"), ("shop/d".to_owned(), "resourceVersion")]
        );
        let object = good.values().next().expect("one");
        assert_eq!((object.generation, object.annotations.len(), object.deleting), (3, 1, false));
    }
}
