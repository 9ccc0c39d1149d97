//! Sites that are not in the spec any more: their objects go, their pods as soon as no record names them.
//!
//! In: the wanted group, its Deployments and pods as watches showed them, the record as it is stored. Out: fewer objects.
//! Must not: touch the holder's site, an object that is another's, or a volume that is to be kept.

use crate::pods;
use crate::rest::{Fault, Rest};
use crate::seen::{Meta, SeenPod};
use crate::watches::Watches;
use bloodraven_api::group::VolumeRetention;
use bloodraven_api::keys::{AUTHORITY, FINALIZER_INSTANCE, LABEL_SITE};
use bloodraven_api::names;
use bloodraven_blueprint::objects::{Plan, metadata};
use bloodraven_operator::world::{GroupId, Refused, Unfurnished};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

pub(crate) async fn prune(rest: &Rest, watches: &Watches, plan: &Plan<'_>, group: &GroupId) -> Result<(), Unfurnished> {
    let Some(record) = record(watches, group) else { return Ok(()) };
    for deployment in watches.deployments.of(group).unwrap_or_default() {
        let Some(site) = left(plan, &deployment.meta) else { continue };
        if record.is_held_by(site) {
            continue;
        }
        // Its Deployment goes last: while it is there, what is left is found again.
        for (api, plural, name) in of_site(plan, site) {
            let path = format!("{api}/namespaces/{}/{plural}/{name}", group.namespace);
            delete(rest, plan, &path).await.map_err(|fault| stopped(&name, fault))?;
        }
    }
    for pod in watches.pods.of(group).unwrap_or_default() {
        if left(plan, &pod.meta).is_some() && may_go(&pod, &record) {
            let released = pods::release(rest, &pod).await;
            released.map_err(|refused| Unfurnished::Store { what: format!("Pod {}", pod.meta.name), refused })?;
        }
    }
    Ok(())
}

/// The site of an object, if the spec does not have it.
fn left<'a>(plan: &Plan<'_>, object: &'a Meta) -> Option<&'a str> {
    let site = object.label(LABEL_SITE)?;
    plan.sites().iter().all(|it| it.name() != site).then_some(site)
}

/// Everything of a site; a volume only if volumes go.
fn of_site(plan: &Plan<'_>, site: &str) -> Vec<(&'static str, &'static str, String)> {
    let group = plan.name();
    let mut all = vec![
        ("/api/v1", "services", names::site(group, site)),
        ("/api/v1", "services", names::site_internal(group, site)),
        ("/api/v1", "configmaps", names::site_config(group, site)),
    ];
    if plan.spec().volume_retention == VolumeRetention::Delete {
        all.push(("/api/v1", "persistentvolumeclaims", names::site_data(group, site)));
    }
    all.push(("/apis/apps/v1", "deployments", names::site(group, site)));
    all
}

/// Takes an object of ours away, exactly the one that was looked at.
async fn delete(rest: &Rest, plan: &Plan<'_>, path: &str) -> Result<(), Fault> {
    let Some(object) = rest.get(path).await? else { return Ok(()) };
    let found: ObjectMeta = serde_json::from_value(object["metadata"].clone()).unwrap_or_default();
    if metadata::foreign(plan, &found).is_some() || found.deletion_timestamp.is_some() {
        return Ok(());
    }
    let exactly = json!({ "propagationPolicy": "Background", "preconditions": { "uid": found.uid } });
    match rest.delete(path, &exactly).await {
        Err(Fault::Answer { code: 404 | 409, .. }) => Ok(()),
        other => other.map(drop),
    }
}

/// Both copies of the record, as they are stored.
struct Record {
    status: Value,
    annotation: String,
}

/// None: the group is not seen.
fn record(watches: &Watches, group: &GroupId) -> Option<Record> {
    let object = watches.groups.of(group)?.into_iter().next()?.text.read();
    let annotation = object["metadata"]["annotations"][AUTHORITY].as_str().unwrap_or_default().to_owned();
    Some(Record { status: object["status"]["authority"].clone(), annotation })
}

impl Record {
    fn is_held_by(&self, site: &str) -> bool {
        let copy: Value = serde_json::from_str(&self.annotation).unwrap_or_default();
        [&self.status, &copy].iter().any(|record| record["site"] == site || record["holder"]["site"] == site)
    }

    /// Word for word: an instance is its pod's UID and more.
    fn names(&self, uid: &str) -> bool {
        uid.is_empty() || self.annotation.contains(uid) || self.status.to_string().contains(uid)
    }
}

/// On its way out, and of no meaning to anybody.
fn may_go(pod: &SeenPod, record: &Record) -> bool {
    let uid = pod.meta.uid.as_deref().unwrap_or_default();
    pod.meta.is_held_by(FINALIZER_INSTANCE) && pod.meta.deleting && !record.names(uid)
}

fn stopped(name: &str, fault: Fault) -> Unfurnished {
    let refused: Refused = fault.refused();
    Unfurnished::Store { what: name.to_owned(), refused }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seen;

    fn record(status: Value, annotation: &str) -> Record {
        Record { status, annotation: annotation.to_owned() }
    }

    #[test]
    fn a_site_that_either_copy_calls_the_holder_stays() {
        let none = record(json!({"site": "iad"}), "{}");
        assert!(none.is_held_by("iad") && !none.is_held_by("pdx"));
        let revoking = record(json!({"site": "", "holder": {"site": "pdx"}}), "");
        assert!(revoking.is_held_by("pdx"));
        assert!(record(Value::Null, r#"{"holder":{"site":"fra"}}"#).is_held_by("fra"));
    }

    #[test]
    fn a_pod_goes_when_it_is_going_and_no_record_names_it() {
        let pod = |deleting: bool, finalizer: &str| {
            let stamp = deleting.then_some("2026-01-01T00:00:00Z");
            let pod = json!({"metadata": {"name": "p", "uid": "u1", "finalizers": [finalizer],
                "deletionTimestamp": stamp}});
            seen::pod(serde_json::from_value(pod).expect("a pod"))
        };
        let nobody = record(json!({"site": "iad", "voters": [{"instance": "u2/s"}]}), "");
        assert!(may_go(&pod(true, FINALIZER_INSTANCE), &nobody));
        assert!(!may_go(&pod(false, FINALIZER_INSTANCE), &nobody) && !may_go(&pod(true, "another"), &nobody));
        for named in [record(json!({"voters": [{"instance": "u1/s"}]}), ""), record(Value::Null, "u1/s")] {
            assert!(!may_go(&pod(true, FINALIZER_INSTANCE), &named));
        }
    }
}
