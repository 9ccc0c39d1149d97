//! Many patches of a group in the middle of a move: the operator ends at the last one, and says so of nothing older.

use serde_json::{Value, json};

use super::recorded::{history, store};
use super::stage::*;

/// Every generation that a status speaks of.
fn observed(object: &Value) -> Vec<Value> {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    let mut all = vec![object["status"]["observedGeneration"].clone()];
    all.extend(conditions.map(|condition| condition["observedGeneration"].clone()));
    all
}

/// K-08: with authority taken away and nobody chosen yet, a swarm of patches converges on the last one; the status and each of
/// its conditions speak of that generation, and the record is as it was.
#[tokio::test(flavor = "multi_thread")]
async fn a_swarm_of_patches_in_a_move_ends_at_the_last_one() {
    let namespace = "patched";
    stage(namespace).await;
    secret(namespace);
    store(namespace, &history("gone"));
    let operator = Operator::start(namespace).await;
    eventually("it leads", move || {
        let degraded = condition(&group(namespace, "orders")?, "Degraded");
        degraded["message"].as_str()?.contains("PromotionHeld").then_some(())
    })
    .await;
    let record = group(namespace, "orders").unwrap()["status"]["authority"].clone();
    for number in 0..20 {
        // Values for the leader, for objects and for both, so that no part of the operator sees an old spec in peace.
        let limit = (100 + number).to_string();
        edit(
            namespace,
            &json!({"mysqlConf": {"max-connections": limit}, "replication": {"maxLagSeconds": 10 + number},
            "failureThreshold": 3 + number % 2}),
        );
    }
    let last = group(namespace, "orders").unwrap()["metadata"]["generation"].clone();
    let object = eventually("the status speaks of the last one", move || {
        let object = group(namespace, "orders")?;
        let all = observed(&object);
        (all.len() > 5 && all.iter().all(|it| *it == last)).then_some(object)
    })
    .await;
    eventually("objects are made of the last one", move || {
        let of = |site: &str| get("configmap", namespace, &format!("mysql-orders-{site}-config"))["data"].to_string();
        ["iad", "pdx"].iter().all(|site| of(site).contains("max-connections=119")).then_some(())
    })
    .await;
    let now = &object["status"]["authority"];
    for field in ["epoch", "phase", "tenure", "holder"] {
        assert_eq!(now[field], record[field], "{field}");
    }
    operator.stop().await;
}
