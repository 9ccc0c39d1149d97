//! The election's Lease.
//!
//! In: the lease as an operator would write it. Out: the lease as it is stored, or that somebody else was first. Must not:
//! compare times; they are handed on as they were read.

use crate::rest::{Fault, Rest};
use bloodraven_brain::lease::{Acquired, Lease, NewLease};
use bloodraven_brain::time::{Millis, Wall};
use bloodraven_operator::world::{Refused, Unavailable};
use serde_json::{Value, json};
use std::sync::Arc;

/// Its name: one for every operator of a cluster, in the operator's own namespace.
pub(crate) const NAME: &str = "bloodraven.shipstream.io";

fn folder(namespace: &str) -> String {
    format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases")
}

pub(crate) async fn read(rest: &Rest, namespace: &str) -> Result<Option<Lease>, Unavailable> {
    let path = format!("{}/{NAME}", folder(namespace));
    let stored = rest.get(&path).await.map_err(|fault| fault.unavailable("the lease"))?;
    stored.map(|object| parse(&object)).transpose()
}

pub(crate) async fn create(rest: &Rest, namespace: &str, new: &NewLease) -> Result<Lease, Refused> {
    written(rest.create(&folder(namespace), &object(namespace, None, new)).await)
}

pub(crate) async fn update(rest: &Rest, namespace: &str, version: &str, new: &NewLease) -> Result<Lease, Refused> {
    let path = format!("{}/{NAME}", folder(namespace));
    written(rest.replace(&path, &object(namespace, Some(version), new)).await)
}

/// An answer that cannot be read says nothing of what was stored.
fn written(answer: Result<Value, Fault>) -> Result<Lease, Refused> {
    let object = answer.map_err(Fault::refused)?;
    parse(&object).map_err(|unread| Refused::Unknown { because: unread.to_string() })
}

fn object(namespace: &str, version: Option<&str>, new: &NewLease) -> Value {
    let NewLease { holder, duration, acquired, renewed, transitions } = new;
    let acquired = match acquired {
        Acquired::At(at) => Some(micro(*at)),
        Acquired::AsRead(text) => text.as_deref().map(str::to_owned),
    };
    // Whole seconds, at least one: others wait at least as long as we count on.
    let seconds = duration.0.div_ceil(1000).max(1);
    let mut metadata = json!({ "name": NAME, "namespace": namespace });
    if let Some(version) = version {
        metadata["resourceVersion"] = json!(version);
    }
    json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": metadata,
        "spec": {
            "holderIdentity": holder.as_deref().unwrap_or_default(),
            "leaseDurationSeconds": seconds,
            "acquireTime": acquired,
            "renewTime": micro(*renewed),
            "leaseTransitions": transitions,
        }
    })
}

/// The API server takes six digits, no more and no fewer.
pub(crate) fn micro(at: Wall) -> String {
    let text = at.to_string();
    let whole = text.trim_end_matches('Z').split('.').next().unwrap_or_default();
    format!("{whole}.{:03}000Z", at.0.rem_euclid(1000))
}

fn parse(object: &Value) -> Result<Lease, Unavailable> {
    let unread = |because: &str| Unavailable { what: "the lease".to_owned(), because: because.to_owned() };
    let version = object["metadata"]["resourceVersion"].as_str().ok_or_else(|| unread("it has no version"))?;
    let spec = &object["spec"];
    let text = |field: &str| spec[field].as_str().filter(|text| !text.is_empty()).map(Arc::from);
    Ok(Lease {
        version: version.into(),
        holder: text("holderIdentity"),
        duration: spec["leaseDurationSeconds"].as_u64().map(Millis::from_secs),
        acquired: text("acquireTime"),
        renewed: text("renewTime"),
        transitions: spec["leaseTransitions"].as_u64().and_then(|count| count.try_into().ok()).unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(acquired: Acquired) -> NewLease {
        NewLease {
            holder: Some("pod-a_uid".into()),
            duration: Millis(14_200),
            acquired,
            renewed: Wall(1_700_000_000_007),
            transitions: 3,
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let mut written = object("ns", Some("7"), &new(Acquired::At(Wall(1_700_000_000_000))));
        assert_eq!(written["metadata"]["resourceVersion"], "7");
        assert_eq!(written["spec"]["renewTime"], "2023-11-14T22:13:20.007000Z");
        assert_eq!(written["spec"]["leaseDurationSeconds"], 15, "others wait at least as long");
        written["metadata"]["resourceVersion"] = json!("8");
        let read = parse(&written).expect("a lease");
        assert_eq!((&*read.version, read.holder.as_deref(), read.transitions), ("8", Some("pod-a_uid"), 3));
        assert_eq!(read.acquired.as_deref(), Some("2023-11-14T22:13:20.000000Z"));
        let again = object("ns", Some("8"), &new(Acquired::AsRead(read.acquired)));
        assert_eq!(again["spec"]["acquireTime"], "2023-11-14T22:13:20.000000Z", "handed on word for word");
    }

    #[test]
    fn a_released_lease_has_no_holder() {
        let released = NewLease { holder: None, ..new(Acquired::AsRead(None)) };
        let mut object = object("ns", None, &released);
        assert!(object["metadata"].get("resourceVersion").is_none());
        object["metadata"]["resourceVersion"] = json!("1");
        assert_eq!(parse(&object).expect("a lease").holder, None);
    }
}
