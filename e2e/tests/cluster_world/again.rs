//! An operator that starts finds what stands, and writes only what does not stand as drawn.

use std::collections::BTreeMap;

use bloodraven_api::crd;
use bloodraven_testbed::kubernetes::{ApiServer, requests};
use serde_json::{Value, json};

use super::hostile::{NAMESPACE, on_a_thread, read, set_up};
use super::stage::*;

/// How often objects of a kind were applied so far, by the API server's own count.
fn applies(server: &ApiServer) -> BTreeMap<String, f64> {
    let metrics = server.kubectl().args(["get", "--raw", "/metrics"]).output().unwrap();
    let all = requests(&String::from_utf8(metrics.stdout).unwrap());
    all.into_iter().filter_map(|(what, count)| Some((what.strip_prefix("APPLY ")?.to_owned(), count))).collect()
}

/// The last object of a round: once it stands, all others do.
const LAST: [&str; 3] = ["get", "deployment", "mysql-orders-pdx"];

fn patch(server: &ApiServer, kind: &str, name: &str, change: &Value) {
    let change = change.to_string();
    let words = ["patch", kind, "-n", NAMESPACE, name, "--type=merge", "-p", &change];
    assert!(server.kubectl().args(words).output().unwrap().status.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_operator_applies_only_what_does_not_stand_as_drawn() {
    let server = tokio::task::spawn_blocking(|| server_of(&crd::all_yaml())).await.unwrap();
    set_up(&server);
    let first = Operator::at(&server, places(NAMESPACE)).await;
    let server = on_a_thread(server, |server| {
        in_time("all is made", || read(server, &LAST).filter(|it| it["kind"] == "Deployment"));
    })
    .await;
    first.stop().await;
    let before = applies(&server);
    assert!(before["services"] >= 6.0 && before["deployments"] >= 2.0, "{before:?}");

    // while nobody looks: one is changed by hand, one is of an older drawing that had more in it, one is gone
    patch(&server, "deployment", LAST[2], &json!({"spec": {"replicas": 0}}));
    let older = json!({"metadata": {"annotations": {bloodraven_api::keys::DRAWING: "0123456789abcdef"}}});
    patch(&server, "service", "mysql-orders-primary", &older);
    let gone = ["delete", "configmap", "-n", NAMESPACE, "mysql-orders-iad-config"];
    assert!(server.kubectl().args(gone).output().unwrap().status.success());
    let second = Operator::at(&server, places(NAMESPACE)).await;
    let server = on_a_thread(server, |server| {
        in_time("what was changed is as drawn", || read(server, &LAST).filter(|it| it["spec"]["replicas"] == 1));
    })
    .await;
    second.stop().await;
    let after = applies(&server);
    let more: BTreeMap<&str, f64> = after
        .iter()
        .map(|(kind, count)| (kind.as_str(), count - before.get(kind).copied().unwrap_or(0.0)))
        .filter(|(_, more)| *more > 0.0)
        .collect();
    assert_eq!(more, BTreeMap::from([("configmaps", 1.0), ("deployments", 1.0), ("services", 1.0)]));
    drop(server);
}
