//! A group's object as the world tells it, taken apart as far as everyone needs it.
//!
//! In: JSON. Out: its names, its version, its annotations, what is kept in it. Must not: fail because of a part that nobody
//! asked for; what a spec says is read elsewhere, and only when it changed.

use crate::world::Version;
use bloodraven_blueprint::status::{Copies, Corrupt};
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
        Ok(Self::of(uid, version, raw))
    }

    /// The one that is known to be that.
    pub(crate) fn of(uid: GroupUid, version: Version, raw: Arc<Value>) -> Self {
        let field = |name: &str| raw.get("metadata").and_then(|metadata| metadata.get(name));
        let annotations = field("annotations").and_then(Value::as_object);
        let annotations = annotations
            .into_iter()
            .flatten()
            .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
            .collect();
        let generation = field("generation").and_then(Value::as_i64).unwrap_or(0);
        let deleting = field("deletionTimestamp").is_some_and(|stamp| !stamp.is_null());
        Self { uid, version, generation, deleting, annotations, raw }
    }

    pub(crate) fn status(&self) -> Option<&Value> {
        self.raw.get("status")
    }

    pub(crate) fn spec(&self) -> Option<&Value> {
        self.raw.get("spec")
    }

    /// Both copies of what is stored in it.
    pub(crate) fn copies(&self) -> Copies {
        Copies::read(self.status(), &self.annotations)
    }

    /// What is stored in it, both copies joined.
    pub(crate) fn kept(&self) -> Result<Kept, Corrupt> {
        self.copies().join()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_no_object_is_told_by_its_field() {
        let read = |object: Value| Object::read(Arc::new(object));
        let fine = json!({"metadata": {"uid": "u", "resourceVersion": "7", "generation": 3,
            "annotations": {"a": "b", "c": 7}}});
        let object = read(fine).expect("an object");
        assert_eq!((object.generation, object.annotations.len(), object.deleting), (3, 1, false));
        let rows = [
            (json!({"metadata": {"uid": "", "resourceVersion": "7"}}), "uid"),
            (json!([1]), "uid"),
            (json!({"metadata": {"uid": "u", "resourceVersion": 7}}), "resourceVersion"),
        ];
        for (none, field) in rows {
            assert_eq!(read(none).expect_err("none").field, field);
        }
    }
}
