//! One object, kept as it was drawn.
//!
//! In: the drawing, how the object was made last. Out: how it stands, or what is in the way. Must not: touch an object that
//! is another's, or write one that is as drawn already: an operator that starts would else write everything anew, and the
//! API server would have no time for what moves.

use crate::rest::{Fault, Rest};
use bloodraven_api::keys::DRAWING;
use bloodraven_blueprint::objects;
use bloodraven_blueprint::objects::metadata::{Identity, foreign};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

/// An object as it should be.
pub(crate) struct Drawing {
    path: String,
    object: Value,
    digest: u64,
}

/// An object as it was made, or found to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Made {
    /// Of the drawing; the text itself is large, and there are twenty of them in a group.
    digest: u64,
    /// `metadata.resourceVersion`.
    version: String,
}

/// Why an object is not as drawn.
#[derive(Debug)]
pub(crate) enum Unkept {
    /// It is another's.
    Taken {
        owner: String,
    },
    Fault(Fault),
}

impl From<Fault> for Unkept {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl Drawing {
    /// Stamped, so that a later operator knows whether what stands comes of the same drawing. What is secret is not: a
    /// stamp would tell whoever guesses that the guess was right.
    pub(crate) fn new(path: String, mut object: Value) -> Self {
        let digest = digest(&object);
        if object["kind"] != <Secret as k8s_openapi::Resource>::KIND {
            object["metadata"]["annotations"][DRAWING] = stamp(digest).into();
        }
        Self { path, object, digest }
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// What was made last, if it was made of this drawing.
    pub(crate) fn made<'a>(&self, last: Option<&'a Made>) -> Option<&'a Made> {
        last.filter(|made| made.digest == self.digest)
    }

    /// Whether the object comes of this drawing, and nobody has changed what was drawn. Fields that an older drawing had
    /// and this one has not would not be missed, hence the stamp.
    fn stands_in(&self, present: &Value) -> bool {
        present["metadata"]["annotations"][DRAWING] == stamp(self.digest) && contains(present, &self.object)
    }
}

impl Made {
    pub(crate) fn version(&self) -> &str {
        &self.version
    }
}

/// Looks at the object, and applies the drawing where it does not stand.
pub(crate) async fn keep(
    rest: &Rest,
    group: Identity<'_>,
    drawing: &Drawing,
    last: Option<&Made>,
) -> Result<Made, Unkept> {
    let now = |object: &Value| Made { digest: drawing.digest, version: version_of(object) };
    if let Some(present) = rest.get(&drawing.path).await? {
        let now = now(&present);
        if drawing.made(last) == Some(&now) {
            return Ok(now);
        }
        let metadata: ObjectMeta = serde_json::from_value(present["metadata"].clone()).unwrap_or_default();
        if let Some(owner) = foreign(group, &metadata) {
            return Err(Unkept::Taken { owner });
        }
        if drawing.stands_in(&present) {
            return Ok(now);
        }
    }
    Ok(now(&rest.apply(&drawing.path, &drawing.object).await?))
}

/// Two texts that differ have different ones, as far as anybody will ever see.
pub(crate) fn digest(text: &Value) -> u64 {
    objects::digest(text.to_string())
}

fn stamp(digest: u64) -> String {
    format!("{digest:016x}")
}

fn version_of(object: &Value) -> String {
    object["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned()
}

/// Whether everything that is wanted stands there. The API server adds fields, but no elements to lists. Where it writes the
/// same in another way, the answer is no, and a drawing is applied that changes nothing.
fn contains(present: &Value, wanted: &Value) -> bool {
    match (present, wanted) {
        (Value::Object(present), Value::Object(wanted)) => wanted.iter().all(|(key, wanted)| {
            let absent = &Value::Null;
            contains(present.get(key).unwrap_or(absent), wanted)
        }),
        (Value::Array(present), Value::Array(wanted)) => {
            present.len() == wanted.len()
                && present.iter().zip(wanted).all(|(present, wanted)| contains(present, wanted))
        }
        (present, wanted) => present == wanted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn drawing(object: Value) -> Drawing {
        Drawing::new("/api/v1/namespaces/shop/services/door".to_owned(), object)
    }

    #[test]
    fn what_is_wanted_must_stand_and_more_may() {
        let wanted = json!({"spec": {"ports": [{"port": 1}, {"port": 2}], "kind": "a", "off": false, "none": null}});
        let check =
            |name: &str, present: Value, expect: bool| assert_eq!(contains(&present, &wanted), expect, "{name}");
        let ports = json!([{"port": 1, "protocol": "TCP"}, {"port": 2}]);
        check("as wanted", wanted.clone(), true);
        check("with defaults", json!({"spec": {"ports": ports, "kind": "a", "off": false, "ip": "10.0.0.1"}}), true);
        check("another word", json!({"spec": {"ports": ports, "kind": "b", "off": false}}), false);
        check("a word is gone", json!({"spec": {"ports": ports, "off": false}}), false);
        check("what is off is not said", json!({"spec": {"ports": ports, "kind": "a"}}), false);
        check("an element less", json!({"spec": {"ports": [{"port": 1}], "kind": "a", "off": false}}), false);
        let more = json!([{"port": 1}, {"port": 2}, {"port": 3}]);
        check("an element more", json!({"spec": {"ports": more, "kind": "a", "off": false}}), false);
        let turned = json!([{"port": 2}, {"port": 1}]);
        check("another order", json!({"spec": {"ports": turned, "kind": "a", "off": false}}), false);
        check("nothing", json!({}), false);
    }

    #[test]
    fn an_object_of_an_older_drawing_does_not_stand() {
        let older = drawing(json!({"kind": "Service", "spec": {"a": 1, "b": 2}}));
        let newer = drawing(json!({"kind": "Service", "spec": {"a": 1}}));
        assert!(older.stands_in(&older.object) && newer.stands_in(&newer.object));
        assert!(contains(&older.object["spec"], &newer.object["spec"]), "nothing that is wanted is missing");
        assert!(!newer.stands_in(&older.object), "but b is there, which nobody wants any more");
        let mut by_hand = newer.object.clone();
        by_hand["spec"]["a"] = json!(3);
        assert!(!newer.stands_in(&by_hand), "the stamp alone proves nothing");
    }

    #[test]
    fn what_is_secret_is_not_stamped() {
        let secret = drawing(json!({"kind": "Secret", "metadata": {"name": "s"}, "data": {"password": "aGk="}}));
        assert_eq!(secret.object["metadata"].get("annotations"), None);
        let other = drawing(json!({"kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "b"}}));
        assert_eq!(other.object["metadata"]["annotations"][DRAWING], stamp(other.digest));
    }
}
