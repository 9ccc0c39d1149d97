//! A spec that cannot be taken is told, and holds up nobody else.

use super::told::begin;
use crate::ears::Ears as _;
use crate::tell::Teller;
use crate::testing::{Bed, Refusing, object, operate, orders, status, until, writer};
use crate::world::{GroupId, World as _};
use bloodraven_blueprint::objects::Taken;
use bloodraven_telemetry::OperatorMetrics;
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn a_group_of_which_no_spec_can_be_taken_says_so_and_is_led_when_it_is_mended() {
    let bed = Bed::new(&["iad", "pdx"]).await;
    let other = GroupId::new("shop", "nonsense");
    let mut nonsense = object("nonsense", &["iad", "pdx"]);
    nonsense["spec"]["pollInterval"] = json!("soon");
    nonsense["status"] = json!({"activeSite": "iad", "conditions": "garbage", "ofALaterRelease": 7});
    bed.world.put(&other, nonsense);
    // What an operator before has kept is no better.
    let kept = Taken { generation: 1, spec: json!({"sites": 7}) };
    bed.world.keep_spec(&other, &kept).await.expect("kept");
    let teller = Teller::new(OperatorMetrics::new("0"));
    let (_, _operator) = begin(&bed, &teller).await;
    let degraded = |id: &GroupId| {
        let object = bed.world.object(id);
        object["status"]["conditions"].as_array()?.iter().find(|one| one["type"] == "Degraded").cloned()
    };
    until("people are told", async || {
        let found = degraded(&other)?;
        let named = found["reason"] == "InvalidSpec" && found["message"].as_str()?.contains("pollInterval");
        (found["status"] == "True" && named).then_some(())
    })
    .await;
    until("an Event", async || {
        let told = bed.world.events();
        told.iter().find(|event| event.reason == "InvalidSpec" && event.message.contains("pollInterval")).map(|_| ())
    })
    .await;
    assert!(teller.metrics().contains("group=\"nonsense\",reason=\"InvalidSpec\"} 1"));
    let kept = bed.world.object(&other)["status"].clone();
    assert_eq!((&kept["activeSite"], &kept["ofALaterRelease"]), (&json!("iad"), &json!(7)), "nothing else is touched");
    assert_eq!(writer(&bed, None).await, "iad", "the others are led");
    bed.world.edit(&other, |object| {
        object["metadata"]["generation"] = json!(2);
        object["spec"]["pollInterval"] = json!("1s");
    });
    until("it is led", async || {
        let found = degraded(&other)?;
        (found["observedGeneration"] == 2 && !found["message"].as_str()?.contains("pollInterval")).then_some(())
    })
    .await;
}

/// The message of a Degraded that names the refused field.
fn names_the_field(bed: &Bed) -> Option<String> {
    let status = status(bed);
    let degraded = status["conditions"].as_array()?.iter().find(|one| one["type"] == "Degraded")?.clone();
    let message = degraded["message"].as_str()?.to_owned();
    (degraded["status"] == "True" && message.contains("pollInterval")).then_some(message)
}

/// K-08: the status never speaks of a spec that is not in force.
#[tokio::test(flavor = "multi_thread")]
async fn the_next_operator_leads_by_the_last_spec_that_was_taken() {
    let mut bed = Bed::new(&["iad", "pdx", "fra"]).await;
    let first = operate(&bed, "one").await;
    assert_eq!(writer(&bed, None).await, "iad");
    until("it is kept", async || bed.world.taken(&orders()).filter(|kept| kept.generation == 1)).await;
    first.end().await;
    bed.world.edit(&orders(), |object| {
        object["metadata"]["generation"] = json!(2);
        object["spec"]["pollInterval"] = json!("soon");
    });
    bed.world.refuse(Refusing::KeptSpec);
    let second = operate(&bed, "two").await;
    let alone = until("people are told", async || names_the_field(&bed)).await;
    bed.world.allow(Refusing::KeptSpec);
    bed.kill("iad");
    assert_ne!(writer(&bed, Some("iad")).await, "iad", "it is led all the same");
    assert!(alone.contains("nobody leads this group"), "{alone}");
    let led = |words: &String| words.contains("the last valid spec stays in force");
    until("it still names the field", async || names_the_field(&bed).filter(led)).await;
    assert_eq!(status(&bed)["observedGeneration"], 1);
    assert_eq!(bed.world.taken(&orders()).map(|kept| kept.generation), Some(1), "what is refused is not kept");
    bed.world.edit(&orders(), |object| {
        object["metadata"]["generation"] = json!(3);
        object["spec"]["pollInterval"] = json!("2s");
    });
    until("it is taken", async || (status(&bed)["observedGeneration"] == 3).then_some(())).await;
    let kept = until("it is kept", async || bed.world.taken(&orders()).filter(|kept| kept.generation == 3)).await;
    assert_eq!(kept.spec["pollInterval"], "2s");
    second.end().await;
}
