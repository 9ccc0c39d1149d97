//! Leading: a group comes up, survives the loss of its primary, changes hands between operators.

use crate::testing::{Bed, operate, status, until, writer};
use std::time::Duration;
use tokio::time::Instant;

#[tokio::test(flavor = "multi_thread")]
async fn a_fresh_group_gets_its_writer_and_a_dead_primary_is_replaced() {
    let mut bed = Bed::new(&["iad", "pdx", "fra"]).await;
    let operator = operate(&bed, "one").await;
    let first = writer(&bed, None).await;
    assert_eq!(first, "iad");
    // Both copies say the same, and people see conditions.
    let object = until("everything is shown", async || {
        let object = bed.world.object(&crate::testing::orders());
        let shown = bed.world.shown()?;
        (object["status"]["conditions"].is_array() && shown.primary.is_some()).then_some(object)
    })
    .await;
    let annotation = object["metadata"]["annotations"]["bloodraven.shipstream.io/authority"].as_str().expect("a copy");
    let annotation: serde_json::Value = serde_json::from_str(annotation).expect("JSON");
    assert_eq!(annotation["epoch"], object["status"]["authority"]["epoch"]);
    assert_eq!(bed.world.shown().and_then(|shown| shown.primary).expect("a primary").site.as_str(), "iad");
    // The others follow.
    until("all follow", async || {
        let replicating = |site: &&str| {
            let status = status(&bed);
            status["sites"].as_array()?.iter().find(|entry| entry["name"] == **site)?["replicating"].as_bool()
        };
        ["pdx", "fra"].iter().all(|site| replicating(site) == Some(true)).then_some(())
    })
    .await;

    let dead_at = Instant::now();
    bed.kill("iad");
    let second = writer(&bed, Some("iad")).await;
    assert_ne!(second, "iad");
    assert!(dead_at.elapsed() < Duration::from_secs(20), "{:?}", dead_at.elapsed());
    let authority = status(&bed)["authority"].clone();
    assert_eq!(authority["proof"]["type"], "ProcessEnded", "{authority}");
    assert!(!bed.servers.is_open("iad"));
    // It ends well, and leaves the lease to the next.
    operator.end().await;
    assert_eq!(bed.world.holder(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_poll_is_made_at_once() {
    let bed = Bed::new(&["iad", "pdx"]).await;
    let began = Instant::now();
    let _operator = operate(&bed, "one").await;
    for site in ["iad", "pdx"] {
        let polled = until("a poll", async || bed.servers.change(site, |server| server.first_poll)).await;
        // 300 ms on a quiet machine; this one may be busy.
        assert!(polled.duration_since(began) < Duration::from_secs(3), "{:?}", polled.duration_since(began));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_two_leads_and_the_other_takes_over_at_once_when_it_ends() {
    let bed = Bed::new(&["iad", "pdx"]).await;
    let first = operate(&bed, "one").await;
    until("the first leads", async || (bed.world.holder()? == "one").then_some(())).await;
    let second = operate(&bed, "two").await;
    writer(&bed, None).await;
    let grants = || bed.sidecars.values().map(|sidecar| sidecar.state.grants.load(std::sync::atomic::Ordering::SeqCst));
    assert!(grants().sum::<usize>() >= 1);
    let asked = "/active-site?namespace=shop&group=orders";
    let (code, told) = until("the follower knows the record", async || {
        let (code, told) = second.get(asked).await;
        (told["activeSite"] == "iad").then_some((code, told))
    })
    .await;
    assert_eq!((code, &told["leader"]), (200, &serde_json::json!(false)));
    assert_eq!(told["leaderAddress"], first.address.to_string());
    assert_eq!(second.get("/healthz").await.0, 200);
    assert_eq!(second.get("/readyz").await.0, 200);
    assert_eq!(second.get("/why").await.0, 503);

    first.end().await;
    until("the second leads", async || (bed.world.holder()? == "two").then_some(())).await;
    until("it leads this group", async || (second.get("/why").await.0 == 200).then_some(())).await;
    // The writer stays where it was.
    assert_eq!(writer(&bed, None).await, "iad");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_cannot_renew_stops_and_takes_its_hands_off() {
    use crate::testing::Refusing;
    use std::sync::atomic::Ordering;
    let bed = Bed::new(&["iad", "pdx"]).await;
    let operator = operate(&bed, "one").await;
    writer(&bed, None).await;
    // A site opened by hand is fenced; the fence hangs.
    bed.servers.change("pdx", |server| {
        (server.tasks_hang, server.pair) = (true, bloodraven_brain::site::Pair::OPEN);
    });
    let in_flight = || bed.servers.in_flight.load(Ordering::SeqCst);
    until("a task is under way", async || (in_flight() > 0).then_some(())).await;
    bed.world.refuse(Refusing::Lease);
    until("it does not lead any more", async || (operator.get("/why").await.0 == 503).then_some(())).await;
    until("nothing is in flight", async || (in_flight() == 0).then_some(())).await;
    let polls = bed.servers.change("iad", |server| server.polls);
    let heard = bed.sidecars["iad"].state.heard.load(Ordering::SeqCst);
    bed.world.allow(Refusing::Lease);
    // Elected again: everything begins anew.
    until("it leads again", async || (operator.get("/why").await.0 == 200).then_some(())).await;
    until("it polls and pushes again", async || {
        let polled = bed.servers.change("iad", |server| server.polls) > polls;
        (polled && bed.sidecars["iad"].state.heard.load(Ordering::SeqCst) > heard).then_some(())
    })
    .await;
}
