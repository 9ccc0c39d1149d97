//! A spec that cannot be taken is told, and holds up nobody else.

use super::told::begin;
use crate::ears::Ears as _;
use crate::tell::Teller;
use crate::testing::{Bed, object, until, writer};
use crate::world::GroupId;
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
