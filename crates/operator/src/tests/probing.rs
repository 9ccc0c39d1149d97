//! What is tried and measured at the one who writes; people are told, and nothing moves because of it.

use crate::testing::{Bed, FakeServer, operate, orders, status, until, writer};
use bloodraven_brain::volume::Space;
use serde_json::json;

/// Reason and message of Degraded.
fn degraded(bed: &Bed) -> Option<(String, String)> {
    let status = status(bed);
    let found = status["conditions"].as_array()?.iter().find(|one| one["type"] == "Degraded")?;
    let text = |field: &str| found[field].as_str().map(str::to_owned);
    Some((text("reason")?, text("message")?))
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_written_where_there_is_no_data() {
    let bed = Bed::new(&["iad", "pdx"]).await;
    let mut object = bed.world.object(&orders());
    object["spec"]["writeProbe"] = json!({"interval": "1s", "timeout": "1s"});
    bed.world.put(&orders(), object);
    let _operator = operate(&bed, "one").await;
    assert_eq!(writer(&bed, None).await, "iad");
    let count = || bed.servers.change("iad", |server| (server.polls, server.commits));
    let (polls, _) = count();
    until("many polls", async || (count().0 >= polls + 5).then_some(())).await;
    assert_eq!(count().1, 0, "a schema of ours alone would keep others from filling the server");
    let data =
        |server: &mut FakeServer| server.executed = "00000001-0000-4000-8000-000000000000:1-5".parse().expect("a set");
    bed.servers.change("iad", data);
    until("commits are tried", async || (count().1 > 1).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_volume_with_less_than_a_hundredth_free_is_told_at_the_one_who_writes() {
    let bed = Bed::new(&["iad", "pdx"]).await;
    let _operator = operate(&bed, "one").await;
    assert_eq!(writer(&bed, None).await, "iad");
    let follows = || bed.servers.change("pdx", |server| server.runs);
    until("all is well", async || degraded(&bed).filter(|(reason, _)| reason == "Healthy" && follows())).await;
    let volume = |site: &str, free: u64| {
        *bed.sidecars[site].state.volume.lock().expect("whole") = Some(Space { free, total: 1000 });
    };
    volume("pdx", 0);
    volume("iad", 9);
    let (_, said) = until("it is told", async || degraded(&bed).filter(|(reason, _)| reason == "WriteStalled")).await;
    assert!(said.contains("iad: less than 1 % of the data volume is free") && !said.contains("pdx"), "{said}");
    let epoch = status(&bed)["authority"]["epoch"].clone();
    volume("iad", 10);
    until("there is room again", async || degraded(&bed).filter(|(reason, _)| reason == "Healthy")).await;
    assert_eq!((&status(&bed)["authority"]["epoch"], &status(&bed)["activeSite"]), (&epoch, &"iad".into()));
}
