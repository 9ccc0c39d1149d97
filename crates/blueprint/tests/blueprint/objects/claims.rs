//! Claims: they grow, they remember who made them, and they do not become something else.

use bloodraven_api::keys::{GROUP_UID, SERVER_ID};
use bloodraven_blueprint::objects::{self, metadata};
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

use super::{edited, with_plan};

fn claim(edits: &Value, present: &Value) -> Result<PersistentVolumeClaim, String> {
    let present: Option<PersistentVolumeClaim> = serde_json::from_value(present.clone()).expect("a claim or nothing");
    with_plan(&edited(edits), |plan| {
        objects::claim(plan, &plan.sites()[0], present.as_ref()).map_err(|error| error.to_string())
    })
}

fn present(more: &Value) -> Value {
    let mut claim = json!({"metadata": {"annotations": {"bloodraven.shipstream.io/group-uid": "older"}},
        "spec": {"accessModes": ["ReadWriteOncePod"], "storageClassName": "gp3", "volumeName": "pv-1",
                 "resources": {"requests": {"storage": "500Gi"}}}});
    for (key, value) in more.as_object().expect("fields") {
        claim["spec"][key] = value.clone();
    }
    claim
}

fn storage(claim: PersistentVolumeClaim) -> String {
    let requests = claim.spec.and_then(|spec| spec.resources).and_then(|resources| resources.requests);
    requests.expect("requests")["storage"].0.clone()
}

#[test]
fn a_claim_only_grows() {
    let rows = [("100Gi", "500Gi"), ("0.5Ti", "0.5Ti"), ("500Gi", "500Gi"), ("1Ti", "1Ti"), ("512000Mi", "500Gi")];
    for (there, expect) in rows {
        let claim = claim(&json!({}), &present(&json!({"resources": {"requests": {"storage": there}}})));
        assert_eq!(storage(claim.expect("a claim")), expect, "{there}");
    }
    assert_eq!(storage(claim(&json!({}), &Value::Null).expect("a claim")), "500Gi");
}

/// K-06: the id of a site is kept with its volume.
#[test]
fn a_claim_remembers_its_maker_and_its_server_id() {
    let maker = |present: &Value| {
        let annotations = claim(&json!({}), present).expect("a claim").metadata.annotations.expect("annotations");
        assert!(annotations[SERVER_ID].parse::<u32>().expect("a number") > 0);
        annotations[GROUP_UID].clone()
    };
    assert_eq!(maker(&Value::Null), "6f1c", "a fresh one is the group's");
    assert_eq!(maker(&present(&json!({}))), "older", "a kept one stays whose it was");
    let unmarked = json!({"metadata": {}, "spec": {"accessModes": ["ReadWriteOncePod"], "storageClassName": "gp3"}});
    assert_eq!(maker(&unmarked), "unknown", "one that was brought is nobody's: its data count");
}

#[test]
fn a_claim_goes_with_its_group_only_where_that_is_asked_for() {
    let owners = |edits: &Value| claim(edits, &Value::Null).expect("a claim").metadata.owner_references;
    assert_eq!(owners(&json!({})), None);
    let owners = owners(&json!({"/spec/volumeRetention": "Delete"})).expect("an owner");
    assert_eq!((owners.len(), owners[0].uid.as_str(), owners[0].controller), (1, "6f1c", Some(true)));
}

#[test]
fn a_claim_that_cannot_become_the_wanted_one_is_left_alone() {
    let rows = [
        (
            json!({"storageClassName": "gp2"}),
            "spec.sites[iad].storage.storageClassName: claim mysql-orders-iad-data has \"gp2\"",
        ),
        (
            json!({"accessModes": ["ReadWriteOnce"]}),
            "spec.sites[iad].storage.accessMode: claim mysql-orders-iad-data has",
        ),
    ];
    for (spec, expect) in rows {
        let error = claim(&json!({}), &present(&spec)).expect_err("to be refused");
        assert!(error.starts_with(expect), "{error}");
    }
}

#[test]
fn an_object_of_somebody_else_is_told_apart() {
    let owner = |uid: &str| json!({"ownerReferences": [{"apiVersion": "a/v1", "kind": "Shop", "name": "x", "uid": uid, "controller": true}]});
    let labels = |manager: &str, group: &str| json!({"labels": {"app.kubernetes.io/managed-by": manager, "shipstream.io/failover-group": group}});
    let rows = [
        (json!({}), None),
        (owner("6f1c"), None),
        (owner("other"), Some("Shop x")),
        (labels("bloodraven", "orders"), None),
        (labels("bloodraven", "billing"), Some("failover group billing")),
        (labels("Helm", "orders"), Some("Helm")),
    ];
    for (present, expect) in rows {
        let present: ObjectMeta = serde_json::from_value(present).expect("metadata");
        let found = with_plan(&edited(&json!({})), |plan| metadata::foreign(plan, &present));
        assert_eq!(found.as_deref(), expect, "{present:?}");
    }
}
