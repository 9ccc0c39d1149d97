//! What the outside sees of a group, made by a whole operator at a real API server: labels, the name, taints, status. What is
//! wanted is compared with what stands again and again, so nothing that was denied or undone is lost.

use bloodraven_api::{crd, keys};
use bloodraven_brain::group::Kept;
use bloodraven_brain::name::{Instance, Member, Site};
use bloodraven_brain::record::{Proof, ProofKind};
use bloodraven_brain::time::Wall;
use bloodraven_cluster::Places;
use serde_json::{Value, json};

use super::played::{Part, Played};
use super::recorded::{before, history, store};
use super::stage::*;

/// Nodes of both sites with a taint of somebody else's, and a pod on each. Returns the UID of iad's.
fn furnish_the_stage(namespace: &str) -> String {
    let node = |name: &str, site: &str| {
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": format!("{namespace}-{name}"),
            "labels": {format!("{namespace}-site"): site}},
            "spec": {"taints": [{"key": "other", "effect": "NoSchedule"}]}})
    };
    let pods = [("a", "iad", "n1"), ("b", "pdx", "n2")];
    let pods = pods.map(|(name, site, node)| pod(namespace, name, site, &format!("{namespace}-{node}")));
    for object in [node("n1", "iad"), node("n2", "pdx")].iter().chain(&pods) {
        apply(server(), &object.to_string());
    }
    get("pod", namespace, "a")["metadata"]["uid"].as_str().unwrap().to_owned()
}

/// Iad has authority, and got it from pdx, whose sidecar had closed it.
fn taken_from_pdx(pod: &str) -> Kept {
    let mut kept = before(&history(pod));
    let about = Member { site: Site::new("pdx"), instance: Instance::new("another", "store") };
    let proof = Proof { kind: ProofKind::FencedBySidecar, about, at: Wall(1_700_000_000_000) };
    kept.record.as_mut().unwrap().proof = Some(proof);
    kept
}

/// What clients, resolvers and nodes see.
#[derive(Clone, Debug, PartialEq)]
struct Outside {
    /// Role and health of iad's and of pdx's pod.
    labels: [(String, String); 2],
    name: Option<String>,
    /// Keys with their effects on iad's and on pdx's nodes.
    taints: [Vec<(String, String)>; 2],
}

fn look(namespace: &str) -> Option<Outside> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let labels = ["a", "b"].map(|name| {
        let labels = get("pod", namespace, name)["metadata"]["labels"].clone();
        (text(&labels[keys::LABEL_ROLE]), text(&labels[keys::LABEL_HEALTHY]))
    });
    let words = ["get", "dnsendpoint", "-n", namespace, "bloodraven-orders", "--ignore-not-found", "-o", "json"];
    let found = server().kubectl().args(words).output().ok()?;
    let record: Value = serde_json::from_slice(&found.stdout).unwrap_or_default();
    let taints = ["n1", "n2"].map(|name| {
        let node = get("node", "default", &format!("{namespace}-{name}"));
        let all = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
        let mut all: Vec<_> = all.iter().map(|taint| (text(&taint["key"]), text(&taint["effect"]))).collect();
        // The API server's own, for nodes that no kubelet has reported of.
        all.retain(|(key, _)| !key.starts_with("node.kubernetes.io/"));
        all.sort();
        all
    });
    let name = record["spec"]["endpoints"][0]["targets"][0].as_str().map(str::to_owned);
    Some(Outside { labels, name, taints })
}

/// As it should look while iad serves and pdx follows.
fn as_wanted() -> Outside {
    let label = |role: &str, healthy: &str| (role.to_owned(), healthy.to_owned());
    let taint = |key: &str, effect: &str| (key.to_owned(), effect.to_owned());
    let ours = taint(&keys::taint_key("orders"), "NoExecute");
    let foreign = taint("other", "NoSchedule");
    let mut pdx = vec![foreign.clone(), ours];
    pdx.sort();
    Outside {
        labels: [label("primary", "no"), label("replica", "yes")],
        name: Some("192.0.2.7".to_owned()),
        taints: [vec![foreign], pdx],
    }
}

async fn looks(namespace: &'static str, what: &str, wanted: impl Fn(&Outside) -> bool + Send + 'static) -> Outside {
    eventually(what, move || {
        let found = look(namespace)?;
        wanted(&found).then_some(found)
    })
    .await
}

/// Of a role.
fn rules(object: &mut Value) -> Option<&mut Vec<Value>> {
    object.get_mut("rules")?.as_array_mut()
}

/// The roles of an installation without the right to change anything that the outside sees.
fn without_the_outside(whole: &[Value]) -> Vec<Value> {
    const OUTSIDE: [&str; 4] = ["pods", "nodes", "dnsendpoints", "mysqlfailovergroups/status"];
    let mut fewer = whole.to_vec();
    for rule in fewer.iter_mut().filter_map(rules).flatten() {
        let is_outside = rule["resources"].as_array().unwrap().iter().any(|it| OUTSIDE.iter().any(|out| it == out));
        if is_outside {
            rule["verbs"].as_array_mut().unwrap().retain(|verb| verb == "get" || verb == "list" || verb == "watch");
        }
    }
    fewer
}

fn give(rights: &[Value]) {
    // A rule without a verb is none that an API server takes.
    let mut rights = rights.to_vec();
    for rules in rights.iter_mut().filter_map(rules) {
        rules.retain(|rule| !rule["verbs"].as_array().unwrap().is_empty());
    }
    apply(server(), &rights.iter().map(crd::yaml).collect::<Vec<_>>().join("---\n"));
}

/// K-01: every write to the outside and to status was denied; once it is allowed, all of it is right, without another change
/// of the group. K-10: the taint is `NoExecute` under the group's own key, on nodes of the site that lost authority alone, and
/// a foreign one stays.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_denied_outside_is_made_when_it_is_allowed() {
    let (namespace, operators) = ("denied-out", "ops-denied-out");
    stage(namespace).await;
    secret(namespace);
    let kept = taken_from_pdx(&furnish_the_stage(namespace));
    store(namespace, &kept);
    vouch("denied-out-n1", "2026-01-01T00:00:06.100000Z");
    let install = install(operators, &[namespace]);
    let whole = rights(&install);
    give(&without_the_outside(&whole));
    let untouched = look(namespace).unwrap();
    let played = Played::new(&[("iad", Part::Writes), ("pdx", Part::Follows(0))]);
    let client = kube::Client::try_from(config_of(&install).await).unwrap();
    let watched = install.watch_namespaces.clone();
    let operator = Operator::towards(played.clone(), client, Places { watched, ..places(operators) }).await;
    let polls = played.polls();
    again_until("many polls", async || (played.polls() >= polls + 5).then_some(())).await;
    assert_eq!(look(namespace).unwrap(), untouched, "nothing of it may be changed");
    assert_eq!(condition(&group(namespace, "orders").unwrap(), "Ready"), Value::Null, "nor the status");

    give(&whole);
    let found = looks(namespace, "it looks as wanted", |found| *found == as_wanted()).await;
    assert_ne!(found, untouched, "the test can fail");
    eventually("status says so", move || {
        let object = group(namespace, "orders")?;
        (object["status"]["activeSite"] == "iad" && condition(&object, "Ready")["status"] == "True").then_some(())
    })
    .await;
    operator.stop().await;
}

/// K-01: what somebody undid is right again, though nothing of the group changed. K-02: the name follows what is seen, also
/// after a restart, never leads to a site that is not confirmed to write, and is not written where it is right. K-04: a replica
/// that stopped or lags loses its label, and gets it back by itself.
#[tokio::test(flavor = "multi_thread")]
async fn the_outside_follows_what_is_seen_and_is_put_right_when_it_is_undone() {
    let namespace = "followed";
    stage(namespace).await;
    secret(namespace);
    let pods = furnish_the_stage(namespace);
    store(namespace, &taken_from_pdx(&pods));
    edit(namespace, &json!({"replication": {"maxLagSeconds": 30}}));
    // With a candidate in sight authority would be taken from a primary that nobody sees.
    let played = Played::new(&[("iad", Part::Silent), ("pdx", Part::Silent)]);
    let start = async || Operator::towards(played.clone(), server().client().await.unwrap(), places(namespace)).await;
    let operator = start().await;
    let polls = played.polls();
    again_until("it was asked often", async || (played.polls() >= polls + 4).then_some(())).await;
    assert_eq!(look(namespace).unwrap().name, None, "nobody is confirmed to write");
    played.set("iad", Part::Writes);
    played.set("pdx", Part::Follows(0));
    looks(namespace, "a primary and its replica", |found| *found == as_wanted()).await;

    for (part, healthy) in [(Part::Follows(31), "no"), (Part::Follows(30), "yes"), (Part::Stopped, "no")] {
        played.set("pdx", part);
        looks(namespace, &format!("{part:?}"), move |found| found.labels[1].1 == healthy).await;
    }
    played.set("pdx", Part::Follows(0));
    looks(namespace, "it is back by itself", |found| *found == as_wanted()).await;

    // A hand undoes all of it.
    order(&["label", "pod", "-n", namespace, "a", "--overwrite", &format!("{}=replica", keys::LABEL_ROLE)]);
    order(&["delete", "dnsendpoint", "-n", namespace, "bloodraven-orders"]);
    order(&[
        "patch",
        "node",
        "followed-n2",
        "--type=merge",
        "-p",
        r#"{"spec": {"taints": [{"key": "other", "effect": "NoSchedule"}]}}"#,
    ]);
    looks(namespace, "it is put right", |found| *found == as_wanted()).await;
    operator.stop().await;

    // The next one finds it right, and makes what was taken away meanwhile.
    let version = || get("pod", namespace, "a")["metadata"]["resourceVersion"].clone();
    let before = version();
    order(&["delete", "dnsendpoint", "-n", namespace, "bloodraven-orders"]);
    let operator = start().await;
    looks(namespace, "the name after a restart", |found| *found == as_wanted()).await;
    assert_eq!(version(), before, "nothing is written that is so already");
    operator.stop().await;
}
