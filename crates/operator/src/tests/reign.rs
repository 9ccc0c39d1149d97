//! Leading: a group comes up, survives the loss of its primary, changes hands between operators.

use crate::tell::Teller;
use crate::testing::{Bed, operate, operate_with, status, until, writer};
use bloodraven_telemetry::OperatorMetrics;
use std::sync::Arc;
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

/// K-27: neither the first grant nor a failover waits for a site whose pod is Pending, whose volume is nowhere and whose
/// rollout never ends.
#[tokio::test(flavor = "multi_thread")]
async fn a_site_that_is_never_scheduled_holds_up_neither_the_first_grant_nor_a_failover() {
    let mut bed = Bed::new(&["iad", "pdx", "fra"]).await;
    bed.servers.change("fra", |server| server.alive = false);
    bed.sidecars.remove("fra");
    bed.world.unscheduled("fra");
    let operator = operate(&bed, "one").await;
    assert_eq!(writer(&bed, None).await, "iad");
    until("the other follows", async || bed.servers.change("pdx", |server| server.runs.then_some(()))).await;
    bed.kill("iad");
    assert_eq!(writer(&bed, Some("iad")).await, "pdx");
    operator.end().await;
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

/// K-15, in part: an operator that does not lead answers from the stored record.
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

/// K-26: what the next operator shows to Prometheus is made of what is stored, before anything happens under it. No metric of
/// an operator is a time stamp; those of backups are not made yet.
#[tokio::test(flavor = "multi_thread")]
async fn metrics_of_what_is_stored_are_there_again_after_a_restart() {
    let bed = Bed::new(&["iad", "pdx"]).await;
    let first = operate(&bed, "one").await;
    assert_eq!(writer(&bed, None).await, "iad");
    until("both are voters", async || (status(&bed)["authority"]["voters"].as_array()?.len() == 2).then_some(())).await;
    first.end().await;
    let epoch = status(&bed)["authority"]["epoch"].as_u64().expect("an epoch");
    let teller = Teller::new(OperatorMetrics::new("0.0.0"));
    let _second = operate_with(&bed, "two", Arc::new(teller.clone())).await;
    let of_group = "{namespace=\"shop\",group=\"orders\"";
    let lines = [
        format!("bloodraven_authority_epoch{of_group}}} {epoch}\n"),
        format!("bloodraven_authority_phase{of_group},phase=\"Stable\"}} 1\n"),
        format!("bloodraven_site_state{of_group},site=\"iad\",role=\"primary-candidate\",state=\"writable\"}} 1\n"),
        format!("bloodraven_promotion_held{of_group}}} 0\n"),
    ];
    until("they are there", async || {
        let text = teller.registry().text();
        lines.iter().all(|line| text.contains(line)).then_some(())
    })
    .await;
    assert_eq!(status(&bed)["authority"]["epoch"], epoch, "nothing has happened");
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
