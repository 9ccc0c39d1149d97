//! Groups with a history, led by a whole operator at a real API server: what hands do to the record, and to the objects that
//! it rests on.
//!
//! No site answers here. So the record that stands at the beginning, authority taken away and nobody chosen yet, stands until
//! something is seen in the objects themselves.

use bloodraven_api::{MysqlFailoverGroupStatus, keys};
use bloodraven_blueprint::status;
use bloodraven_brain::group::Kept;
use bloodraven_brain::group::kept::Move;
use bloodraven_brain::name::{Instance, Member, Site};
use bloodraven_brain::record::{Cause, Holder, Phase, Record, Settings, VoterSet};
use bloodraven_brain::time::{Millis, Wall};
use serde_json::{Value, json};

use super::marked::paper;
use super::stage::*;

/// When the seventh epoch began, and the one that took it away.
const GRANTED: Wall = Wall(1_700_000_000_000);
const REVOKED: Wall = Wall(1_700_000_100_000);

/// What an operator before has left: iad had authority, in the pod of that UID, and lost it.
pub(super) fn history(pod: &str) -> Kept {
    let [iad, pdx] = [("iad", pod), ("pdx", "another")].map(|(site, pod)| member(site, pod));
    let settings = Settings { lease_timeout: Millis(20_000), min_peers: 1 };
    let voters = vec![iad.clone(), pdx];
    let set = VoterSet { epoch: 7, voters: voters.clone(), settings };
    let record = Record {
        epoch: 8,
        tenure: 7,
        seat: None,
        phase: Phase::Revoking,
        voters,
        settings,
        since: REVOKED,
        cause: Cause::Emergency,
        proof: None,
        revoked_at: Some(8),
        holder: Some(Holder { member: iad, server_uuid: None, sets: vec![set], sql_fence_sent: false }),
        ended: Vec::new(),
    };
    let last_failover = Some(Move { at: GRANTED, to: Site::new("iad") });
    Kept { record: Some(record), last_failover, ..Kept::default() }
}

/// The same before authority was taken away.
pub(super) fn before(kept: &Kept) -> Kept {
    let mut kept = kept.clone();
    if let Some(record) = &mut kept.record {
        let seat = record.holder.as_ref().map(|holder| holder.member.clone());
        (record.epoch, record.phase, record.seat, record.since) = (7, Phase::Stable, seat, GRANTED);
        record.revoked_at = None;
    }
    kept
}

fn member(site: &str, pod: &str) -> Member {
    Member { site: Site::new(site), instance: Instance::new(pod, "store") }
}

/// Both copies, as the operator writes them.
pub(super) fn store(namespace: &str, kept: &Kept) {
    let written = status::write(kept, &MysqlFailoverGroupStatus::default()).unwrap();
    set_status("mfg", namespace, "orders", &serde_json::to_value(&written.status).unwrap());
    annotate(namespace, &annotations(kept));
}

fn annotations(kept: &Kept) -> Value {
    let written = status::write(kept, &MysqlFailoverGroupStatus::default()).unwrap();
    written.annotations.entries().into_iter().map(|(key, text)| (key.to_owned(), json!(text))).collect()
}

fn annotate(namespace: &str, annotations: &Value) {
    let patch = json!({"metadata": {"annotations": annotations}}).to_string();
    order(&["patch", "mfg", "-n", namespace, "orders", "--type=merge", "-p", &patch]);
}

/// The annotations that are the operator's own; the record's as what it says.
fn ours(object: &Value) -> Option<(Value, Value, Value)> {
    let text = |key: &str| object["metadata"]["annotations"][key].clone();
    let record = serde_json::from_str(text(keys::AUTHORITY).as_str()?).ok()?;
    Some((record, text(keys::LAST_FAILOVER), text(keys::LAST_FAILOVER_TARGET)))
}

/// Leads, and says that the promotion is held.
async fn is_held(namespace: &'static str) -> Value {
    eventually("the promotion is held", move || {
        let object = group(namespace, "orders")?;
        // With several reasons the first names the condition, and the message has them all.
        let degraded = condition(&object, "Degraded");
        let held = degraded["reason"] == "PromotionHeld" || degraded["message"].as_str()?.contains("PromotionHeld:");
        (degraded["status"] == "True" && held).then_some(object)
    })
    .await
}

/// K-07: no epoch is rewound by a hand while a leader runs.
#[tokio::test(flavor = "multi_thread")]
async fn an_annotation_of_ours_that_a_hand_set_back_is_written_from_memory() {
    let namespace = "set-back";
    let paper = paper();
    stage(namespace).await;
    secret(namespace);
    let kept = history("gone");
    store(namespace, &kept);
    let operator = Operator::start(namespace).await;
    let stood = ours(&is_held(namespace).await).unwrap();
    assert_eq!((&stood.0["epoch"], &stood.2), (&json!(8), &json!("iad")));
    // An older record, and an older move to somewhere else.
    let mut older = before(&kept);
    older.last_failover = Some(Move { at: Wall(1_600_000_000_000), to: Site::new("pdx") });
    annotate(namespace, &annotations(&older));
    assert_eq!(ours(&group(namespace, "orders").unwrap()).unwrap().0["site"], "iad", "as the hand wrote it");
    let object = eventually("it is as it was", move || {
        let object = group(namespace, "orders")?;
        (ours(&object)? == stood).then_some(object)
    })
    .await;
    assert_eq!(object["status"]["authority"]["epoch"], 8, "nobody got authority of it");
    let line = |line: &&str| line.contains("set-back/orders") && line.contains("written anew from memory");
    assert!(paper.text().lines().any(|it| line(&it)), "the log tells of it");
    operator.stop().await;
}

/// A pod of iad, and its UID.
fn pod_of_iad(namespace: &str, node: &str) -> String {
    apply(server(), &pod(namespace, "a", "iad", node).to_string());
    get("pod", namespace, "a")["metadata"]["uid"].as_str().unwrap().to_owned()
}

fn proof(object: &Value) -> Option<&str> {
    object["status"]["authority"]["proof"]["type"].as_str()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_kept_its_finalizer_shows_its_end() {
    let namespace = "seen-off";
    stage(namespace).await;
    secret(namespace);
    let uid = pod_of_iad(namespace, "seen-off-n1");
    let ended = json!({"phase": "Succeeded", "initContainerStatuses": [terminated("sidecar")],
        "containerStatuses": [terminated("mysql")]});
    set_status("pod", namespace, "a", &ended);
    order(&["delete", "pod", "-n", namespace, "a", "--wait=false"]);
    vouch("seen-off-n1", "2026-01-01T00:00:06.100000Z");
    store(namespace, &history(&uid));
    let operator = Operator::start(namespace).await;
    let object = eventually("its end is stored", move || {
        group(namespace, "orders").filter(|object| proof(object) == Some("ProcessEnded"))
    })
    .await;
    assert!(object["status"]["authority"]["ended"].to_string().contains(&uid), "{}", object["status"]["authority"]);
    eventually("the pod may go", move || {
        let pods = server().kubectl().args(["get", "pods", "-n", namespace, "-o", "name"]).output().unwrap();
        pods.stdout.is_empty().then_some(())
    })
    .await;
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_finalizer_taken_off_by_hand_is_no_end_and_the_promotion_is_held() {
    let namespace = "taken-off";
    stage(namespace).await;
    secret(namespace);
    let uid = pod_of_iad(namespace, "taken-off-n1");
    store(namespace, &history(&uid));
    // Its node vouches as for any pod; what is missing is the pod's last word.
    vouch("taken-off-n1", "2026-01-01T00:00:06.100000Z");
    order(&["patch", "pod", "-n", namespace, "a", "--type=merge", "-p", r#"{"metadata": {"finalizers": null}}"#]);
    order(&["delete", "pod", "-n", namespace, "a", "--force", "--grace-period=0"]);
    let operator = Operator::start(namespace).await;
    let object = is_held(namespace).await;
    let (record, said) = (&object["status"]["authority"], condition(&object, "Degraded")["message"].clone());
    assert_eq!((&record["phase"], &record["epoch"], proof(&object)), (&json!("Revoking"), &json!(8), None));
    assert!(!record["ended"].to_string().contains(&uid), "{record}");
    let said = said.as_str().unwrap();
    assert!(said.contains("iad") && said.contains("pdx"), "it says about whom, and who is silent: {said}");
    eventually("an Event PromotionHeld", move || events(namespace).into_iter().find(|(it, _)| it == "PromotionHeld"))
        .await;
    operator.stop().await;
}
