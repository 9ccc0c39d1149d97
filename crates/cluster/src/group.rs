//! A group's object: read, annotated, its status replaced, requests taken off it.
//!
//! In: a name, a version, what to write. Out: the object or its new version. Must not: read from a cache, or write without
//! saying which version it means.

use crate::rest::{Fault, Rest};
use bloodraven_api::keys::{API_GROUP, API_VERSION};
use bloodraven_operator::world::{GroupId, Refused, Unavailable, Version};
use serde_json::{Value, json};
use std::collections::BTreeMap;

pub(crate) const PLURAL: &str = "mysqlfailovergroups";
pub(crate) const KIND: &str = "MysqlFailoverGroup";

pub(crate) fn path(group: &GroupId) -> String {
    let GroupId { namespace, name } = group;
    format!("/apis/{API_GROUP}/{API_VERSION}/namespaces/{namespace}/{PLURAL}/{name}")
}

pub(crate) async fn read(rest: &Rest, group: &GroupId) -> Result<Option<Value>, Unavailable> {
    rest.get(&path(group)).await.map_err(|fault| fault.unavailable("the group"))
}

pub(crate) async fn save_annotations(
    rest: &Rest,
    group: &GroupId,
    version: &Version,
    annotations: &BTreeMap<String, Option<String>>,
) -> Result<Version, Refused> {
    let change = json!({ "metadata": { "resourceVersion": &*version.0, "annotations": annotations } });
    let stored = rest.merge(&path(group), &change).await.map_err(Fault::refused)?;
    match changed_on_its_way(annotations, &stored) {
        Some(key) => {
            let because = format!("annotation {key} is not stored as it was sent: a webhook or policy changes it");
            Err(Refused::Denied { because })
        }
        None => version_of(&stored),
    }
}

/// An answer of "stored" is the API server's word for what came out of its webhooks, not for what was sent.
fn changed_on_its_way<'a>(sent: &'a BTreeMap<String, Option<String>>, stored: &Value) -> Option<&'a str> {
    let stands = &stored["metadata"]["annotations"];
    let changed = |(key, value): &(&String, &Option<String>)| stands[key.as_str()].as_str() != value.as_deref();
    sent.iter().find(changed).map(|(key, _)| key.as_str())
}

/// The whole status at once, by the one who writes it: a field that another writer had left behind would be read as a part
/// of the record.
pub(crate) async fn save_status(
    rest: &Rest,
    group: &GroupId,
    version: &Version,
    status: &Value,
) -> Result<Version, Refused> {
    let object = json!({
        "apiVersion": format!("{API_GROUP}/{API_VERSION}"),
        "kind": KIND,
        "metadata": { "name": &*group.name, "namespace": &*group.namespace, "resourceVersion": &*version.0 },
        "status": status,
    });
    version_of(&rest.replace(&format!("{}/status", path(group)), &object).await.map_err(Fault::refused)?)
}

pub(crate) async fn remove_request(rest: &Rest, group: &GroupId, key: &str, text: &str) -> Result<(), Refused> {
    let pointer = format!("/metadata/annotations/{}", key.replace('~', "~0").replace('/', "~1"));
    let operations = json!([
        { "op": "test", "path": pointer, "value": text },
        { "op": "remove", "path": pointer },
    ]);
    match rest.operations(&path(group), &operations).await {
        Ok(_) => Ok(()),
        // A test that fails and a path that is not there are both answered by 422: what stands there says which it was.
        Err(fault @ Fault::Answer { code: 422, .. }) => {
            let stands = rest.get(&path(group)).await.map_err(Fault::refused)?;
            let same = stands.is_some_and(|object| object["metadata"]["annotations"][key] == text);
            if same { Err(fault.refused()) } else { Ok(()) }
        }
        Err(fault) if fault.code() == Some(404) => Ok(()),
        Err(fault) => Err(fault.refused()),
    }
}

pub(crate) async fn set_cache_image(rest: &Rest, group: &GroupId, image: &str) -> Result<(), Refused> {
    let change = json!({ "spec": { "dragonfly": { "image": image } } });
    rest.merge(&path(group), &change).await.map(drop).map_err(Fault::refused)
}

/// The version that an answer names.
fn version_of(answer: &Value) -> Result<Version, Refused> {
    let version = answer["metadata"]["resourceVersion"].as_str();
    let unknown = || Refused::Unknown { because: "the answer names no version".to_owned() };
    version.map(|version| Version(version.into())).ok_or_else(unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_stored_as_it_was_sent_is_not_stored() {
        let sent = BTreeMap::from([("a".to_owned(), Some("1".to_owned())), ("b".to_owned(), None)]);
        let check = |annotations: Value, expect: Option<&str>| {
            let stored = json!({ "metadata": { "annotations": annotations } });
            assert_eq!(changed_on_its_way(&sent, &stored), expect, "{stored}");
        };
        check(json!({ "a": "1", "others": "2" }), None);
        check(json!({ "a": "2" }), Some("a"));
        check(json!({ "others": "2" }), Some("a"));
        check(json!(null), Some("a"));
        check(json!({ "a": "1", "b": "" }), Some("b"));
    }
}
