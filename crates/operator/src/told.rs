//! A group's object as the world last told it, kept small.
//!
//! In: JSON. Out: who it is and which version, at once; everything else when it is asked for. Must not: keep a tree of it.
//! That is several times as large as the text, there may be a thousand, and it is looked into only when it has changed.

use crate::object::{NoObject, Object};
use crate::world::Version;
use bloodraven_wire::GroupUid;
use serde::Serialize;
use serde_json::Value;
use std::sync::Arc;

/// A group's object, word for word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text(Box<str>);

impl Text {
    /// That object as text; one that cannot be written down is null.
    pub fn of(object: &impl Serialize) -> Self {
        Self(serde_json::to_string(object).unwrap_or_else(|_| "null".to_owned()).into())
    }

    /// The object again.
    pub fn read(&self) -> Value {
        serde_json::from_str(&self.0).unwrap_or_default()
    }
}

/// See above.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Told {
    pub(crate) uid: GroupUid,
    pub(crate) version: Version,
    /// It is being deleted: nothing is begun for it any more.
    pub(crate) deleting: bool,
    pub(crate) text: Arc<Text>,
}

impl Told {
    pub(crate) fn read(text: Arc<Text>) -> Result<Self, NoObject> {
        let Object { uid, version, deleting, .. } = Object::read(Arc::new(text.read()))?;
        Ok(Self { uid, version, deleting, text })
    }

    /// All of it.
    pub(crate) fn object(&self) -> Object {
        Object::of(self.uid.clone(), self.version.clone(), Arc::new(self.text.read()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_kept_as_text_is_the_same_when_it_is_read() {
        let object = json!({"metadata": {"uid": "u", "resourceVersion": "7", "annotations": {"a": "b \"c\" \u{e9}"}},
            "spec": {"most": u64::MAX, "least": i64::MIN, "share": 0.1, "none": null, "list": [[], {}]}});
        let text = Text::of(&object);
        assert_eq!(text.read(), object);
        let told = Told::read(Arc::new(text)).expect("an object");
        assert_eq!((told.object().raw.as_ref(), told.deleting), (&object, false));
        assert!(Told::read(Arc::new(Text::of(&json!({"metadata": {}})))).is_err());
    }
}
