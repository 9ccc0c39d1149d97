//! The end of a group: nothing is made for it any more, it stays until its taints are gone, and its volumes go or stay as its
//! spec says.

use std::process::Command;

use bloodraven_api::{crd, keys};
use bloodraven_testbed::kubernetes::{ApiServer, Program};
use bloodraven_testbed::process::Process;
use serde_json::{Value, json};

use super::hostile::{NAMESPACE, group as group_of, on_a_thread, read, set_up, spec};
use super::stage::*;

/// Whether a node carries our taint, and another's.
fn taints(node: &str) -> (bool, bool) {
    let node = get("node", "default", node);
    let all = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
    let has = |key: &str| all.iter().any(|taint| taint["key"] == key);
    (has(&keys::taint_key("orders")), has("other"))
}

/// How often the group could not be let go.
async fn dismissals(operator: &Operator) -> u64 {
    let text = reqwest::get(format!("http://{}/metrics", operator.address)).await.unwrap().text().await.unwrap();
    let line =
        text.lines().find(|line| line.starts_with("bloodraven_api_write_failures_total{resource=\"dismissal\"}"));
    line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or(0)
}

/// Looks until the group could not be let go so often.
async fn until_refused(operator: &Operator, times: u64) {
    again_until("refused often", async || (dismissals(operator).await >= times).then_some(())).await;
}

/// Kinds of which the operator makes objects.
const KINDS: [&str; 6] = ["deployment", "service", "configmap", "poddisruptionbudget", "pvc", "secret"];

fn everything_of(namespace: &str) -> Vec<String> {
    let named = |kind: &'static str| names_of(kind, namespace).into_iter().map(move |name| format!("{kind}/{name}"));
    KINDS.into_iter().flat_map(named).collect()
}

/// A node with our taint and another's, and an account that may change no node.
fn a_taint_that_cannot_be_removed(namespace: &str, operators: &str) -> Vec<Value> {
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": format!("{namespace}-n1"),
            "labels": {format!("{namespace}-site"): "iad"}},
        "spec": {"taints": [{"key": "other", "effect": "NoSchedule"},
            {"key": keys::taint_key("orders"), "value": "true", "effect": "NoExecute"}]}});
    apply(server(), &node.to_string());
    // With the kubelets' namespace, which a cluster has.
    vouch(&format!("{namespace}-n1"), "2026-01-01T00:00:00.000000Z");
    let whole = rights(&install(operators, &[namespace]));
    let mut fewer = whole.clone();
    let role = fewer.iter_mut().find(|it| it["kind"] == "ClusterRole").unwrap();
    role["rules"][0]["verbs"] = json!(["list", "watch"]);
    apply(server(), &fewer.iter().map(crd::yaml).collect::<Vec<_>>().join("---\n"));
    whole
}

/// K-09: the finalizer stays until the taints are gone, and nothing is made after the stamp.
/// K-01: a taint that may not be removed is removed once that is allowed.
#[tokio::test(flavor = "multi_thread")]
async fn after_the_deletion_stamp_nothing_is_made_and_the_group_stays_until_its_taints_are_gone() {
    let (namespace, operators) = ("stamped", "ops-stamped");
    stage(namespace).await;
    secret(namespace);
    let whole = a_taint_that_cannot_be_removed(namespace, operators);
    let client = kube::Client::try_from(config_of(&install(operators, &[namespace])).await).unwrap();
    let watched = places(namespace).watched;
    let operator = Operator::with(client, bloodraven_cluster::Places { watched, ..places(operators) }).await;
    eventually("everything is made", move || (everything_of(namespace).len() >= 15).then_some(())).await;
    order(&["delete", "mfg", "-n", namespace, "orders", "--wait=false"]);
    until_refused(&operator, 1).await;
    // As a garbage collector does, and an impatient person. A leader would put them back within two seconds.
    for kind in ["deployment", "service", "configmap", "poddisruptionbudget"] {
        order(&["delete", kind, "-n", namespace, "--all"]);
    }
    let left = everything_of(namespace);
    assert!(left.iter().all(|it| it.starts_with("pvc/") || it.starts_with("secret/")), "{left:?}");
    until_refused(&operator, dismissals(&operator).await + 4).await;
    assert_eq!(everything_of(namespace), left, "nothing is made after the stamp");
    let held = group(namespace, "orders").expect("held while its taint is there");
    assert_eq!(held["metadata"]["finalizers"], json!([keys::FINALIZER_GROUP]));
    assert_eq!(taints("stamped-n1"), (true, true));
    // The right is given: the taint goes, another's stays, and so may the group.
    apply(server(), &whole.iter().map(crd::yaml).collect::<Vec<_>>().join("---\n"));
    eventually("the group is gone", move || group(namespace, "orders").is_none().then_some(())).await;
    assert_eq!(taints("stamped-n1"), (false, true));
    assert_eq!(everything_of(namespace), left);
    assert!(events(namespace).iter().any(|(reason, _)| reason == "GracefulShutdown"));
    operator.stop().await;
}

/// The part of a cluster that takes away what has lost its owner, and lets claims go that nobody uses.
fn collector(server: &ApiServer) -> Process {
    let mut command = Command::new(Program::ControllerManager.provision().unwrap());
    command
        .arg(format!("--kubeconfig={}", server.kubeconfig().display()))
        .args(["--controllers=garbage-collector-controller,persistentvolumeclaim-protection-controller"])
        .args(["--leader-elect=false", "--secure-port=0"]);
    Process::spawn(command, "collector", server.folder().join("collector.log")).unwrap()
}

/// A group of that name, and what becomes of its volumes.
fn make(server: &ApiServer, name: &str, retention: &str) {
    let mut spec = spec(&["iad", "pdx"]);
    spec["volumeRetention"] = json!(retention);
    apply(server, &group_of(name, &json!({ "spec": spec })).to_string());
}

fn claims(server: &ApiServer, group: &str) -> Vec<Value> {
    let selector = format!("{}={group}", keys::LABEL_FAILOVER_GROUP);
    let listed = read(server, &["get", "pvc", "-l", &selector]).unwrap();
    listed["items"].as_array().unwrap().clone()
}

fn is_owned(claim: &Value) -> bool {
    claim["metadata"]["ownerReferences"].as_array().is_some_and(|owners| !owners.is_empty())
}

fn delete(server: &ApiServer, name: &str) {
    let words = ["delete", "mfg", "-n", NAMESPACE, name, "--wait=false"];
    assert!(server.kubectl().args(words).output().unwrap().status.success());
}

fn is_collected(server: &ApiServer, name: &str) {
    in_time(&format!("{name} and what it owned are gone"), || {
        let selector = format!("{}={name}", keys::LABEL_FAILOVER_GROUP);
        let left = read(server, &["get", "deployments,services,configmaps,pdb", "-l", &selector])?;
        let group = server.kubectl().args(["get", "mfg", "-n", NAMESPACE, name]).output().ok()?;
        (left["items"].as_array()?.is_empty() && !group.status.success()).then_some(())
    });
}

/// K-09: what goes with a group and what stays, with the finalizer of the group in place.
#[tokio::test(flavor = "multi_thread")]
async fn volumes_go_or_stay_as_the_spec_said_at_the_end() {
    let server = tokio::task::spawn_blocking(|| server_of(&crd::all_yaml())).await.unwrap();
    let collector = collector(&server);
    set_up(&server);
    for (name, retention) in [("stays", "Retain"), ("goes", "Delete"), ("turns", "Delete")] {
        make(&server, name, retention);
    }
    let first = Operator::at(&server, places(NAMESPACE)).await;
    let server = on_a_thread(server, |server| {
        for (name, owned) in [("stays", false), ("goes", true), ("turns", true)] {
            in_time(&format!("the claims of {name}"), || {
                let found = claims(server, name);
                (found.len() == 2 && found.iter().all(|claim| is_owned(claim) == owned)).then_some(())
            });
            in_time("its finalizer", || {
                let held = read(server, &["get", "mfg", name])?["metadata"]["finalizers"].is_array();
                held.then_some(())
            });
        }
    })
    .await;
    first.stop().await;
    // Nobody looks while somebody thinks better of it.
    make(&server, "turns", "Retain");
    delete(&server, "turns");
    let second = Operator::at(&server, places(NAMESPACE)).await;
    let server = on_a_thread(server, |server| {
        for name in ["stays", "goes"] {
            delete(server, name);
        }
        for name in ["stays", "goes", "turns"] {
            is_collected(server, name);
        }
        in_time("the volumes that were to go", || claims(server, "goes").is_empty().then_some(()));
        for name in ["stays", "turns"] {
            let left = claims(server, name);
            let kept = |claim: &Value| !is_owned(claim) && claim["metadata"].get("deletionTimestamp").is_none();
            assert!(left.len() == 2 && left.iter().all(kept), "{name}: {left:?}");
        }
    })
    .await;
    second.stop().await;
    assert!(collector.is_running(), "{}", collector.log_tail(20));
    drop(server);
}
