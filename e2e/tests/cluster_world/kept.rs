//! The last spec that was taken outlives its operator: the next one leads by it while the group's own cannot be taken.

use bloodraven_api::keys;
use bloodraven_blueprint::objects::Taken;
use bloodraven_operator::world::{Refused, World as _};
use bloodraven_testbed::kubernetes::ApiServer;
use serde_json::{Value, json};

use super::hostile::{NAMESPACE, on_a_thread, read, set_up, takes_an_edit, without_schema};
use super::stage::*;

const MAP: &str = "mysql-orders-spec";

fn patch(server: &ApiServer, spec: &Value) {
    let change = json!({ "spec": spec }).to_string();
    let words = ["patch", "mfg", "-n", NAMESPACE, "orders", "--type=merge", "-p", &change];
    assert!(server.kubectl().args(words).output().unwrap().status.success());
}

/// Of the object, and of the spec that is kept.
fn generations(server: &ApiServer) -> Option<(i64, i64)> {
    let object = read(server, &["get", "mfg", "orders"])?;
    let kept = read(server, &["get", "configmap", MAP])?;
    Some((object["metadata"]["generation"].as_i64()?, kept["data"]["generation"].as_str()?.parse().ok()?))
}

/// The spec is refused; objects are kept as the one before it wants them, and the status is a leader's.
fn is_led_by_what_was_kept(server: &ApiServer) {
    in_time("people are told, by a leader", || {
        let object = read(server, &["get", "mfg", "orders"])?;
        let (degraded, ready) = (condition(&object, "Degraded"), condition(&object, "Ready"));
        let said = degraded["message"].as_str()?;
        let told = degraded["status"] == "True" && said.contains("InvalidSpec") && said.contains("pollInterval");
        (told && ready["status"] == "False" && said.contains("NoPrimary")).then_some(())
    });
    let door = ["get", "service", "mysql-orders-primary"];
    assert!(server.kubectl().args(["delete", "service", "-n", NAMESPACE, door[2]]).output().unwrap().status.success());
    in_time("the front door is back", || read(server, &door).filter(|it| it["kind"] == "Service"));
    let (present, kept) = generations(server).unwrap();
    assert!(kept < present, "what is refused is not kept: {kept} of {present}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_that_comes_while_the_spec_is_refused_leads_by_the_one_before() {
    let server = tokio::task::spawn_blocking(without_schema).await.unwrap();
    set_up(&server);
    let first = Operator::at(&server, places(NAMESPACE)).await;
    let server = on_a_thread(server, |server| {
        takes_an_edit(server, "100");
        in_time("the spec is kept", || generations(server).filter(|(present, kept)| present == kept));
    })
    .await;
    first.stop().await;
    patch(
        &server,
        &json!({"pollInterval": "soon", "secretName": "../elsewhere", "mysqlConf": {"max-connections": "9"}}),
    );
    let second = Operator::at(&server, places(NAMESPACE)).await;
    let server = on_a_thread(server, |server| {
        is_led_by_what_was_kept(server);
        patch(server, &json!({"pollInterval": "2s", "secretName": "creds"}));
        takes_an_edit(server, "101");
        in_time("the mended one is kept", || generations(server).filter(|(present, kept)| present == kept));
        in_time("nobody is told of it any more", || {
            let degraded = condition(&read(server, &["get", "mfg", "orders"])?, "Degraded");
            (!degraded["message"].as_str()?.contains("InvalidSpec")).then_some(())
        });
    })
    .await;
    second.stop().await;
    drop(server);
}

#[tokio::test]
async fn what_was_kept_comes_back_and_anothers_object_is_left_alone() {
    let namespace = "kept";
    let (world, group) = stage(namespace).await;
    let taken = Taken { generation: 3, spec: json!({"pollInterval": "2s"}) };
    until(&world, &group, async || world.keep_spec(&group, &taken).await.ok()).await;
    assert_eq!(world.kept_spec(&group).await.unwrap(), Some(taken.clone()));
    let version = || get("configmap", namespace, MAP)["metadata"]["resourceVersion"].clone();
    let before = version();
    assert_eq!(get("configmap", namespace, MAP)["metadata"]["ownerReferences"][0]["name"], "orders");
    // somebody takes it away: it is back within a few rounds, and nothing is written before or after
    let keep_often = async || {
        for _ in 0..6 {
            world.keep_spec(&group, &taken).await.unwrap();
        }
    };
    keep_often().await;
    assert_eq!(version(), before);
    let delete = ["delete", "configmap", "-n", namespace, MAP];
    assert!(server().kubectl().args(delete).output().unwrap().status.success());
    assert_eq!(world.kept_spec(&group).await.unwrap(), None);
    keep_often().await;
    assert_eq!(world.kept_spec(&group).await.unwrap(), Some(taken.clone()));
    // another's
    assert!(server().kubectl().args(delete).output().unwrap().status.success());
    let other = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": MAP, "namespace": namespace,
        "labels": {keys::LABEL_MANAGED_BY: "somebody"}}, "data": {"generation": "9", "spec.json": "{}"}});
    apply(server(), &other.to_string());
    let refused = world.keep_spec(&group, &Taken { generation: 4, ..taken }).await;
    assert!(matches!(&refused, Err(Refused::Denied { because }) if because.contains("somebody")), "{refused:?}");
    assert_eq!(world.kept_spec(&group).await.unwrap(), None);
    assert_eq!(get("configmap", namespace, MAP)["data"]["generation"], "9");
}
