//! Storing: what is refused, contested or lost on the way to the store.

use crate::settings::Settings;
use crate::testing::{BOUND, Bed, Refusing, object, operate, operate_under, orders, status, until, writer};
use bloodraven_gtid::GtidSet;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// A group whose primary dies under that trouble is moved all the same.
async fn check_moves(refusing: Option<Refusing>, meanwhile: impl Fn(&Bed)) {
    let mut bed = Bed::new(&["iad", "pdx", "fra"]).await;
    let operator = operate(&bed, "one").await;
    assert_eq!(writer(&bed, None).await, "iad");
    if let Some(what) = refusing {
        bed.world.refuse(what);
    }
    bed.kill("iad");
    let stored = until("the move is stored", async || {
        meanwhile(&bed);
        let object = bed.world.object(&orders());
        let annotation = object["metadata"]["annotations"]["bloodraven.shipstream.io/authority"].as_str()?;
        let annotation: serde_json::Value = serde_json::from_str(annotation).ok()?;
        let stable =
            |copy: &serde_json::Value| copy["phase"] == "Stable" && copy["site"] != "iad" && copy["site"] != "";
        let stored = stable(&annotation) || stable(&object["status"]["authority"]);
        ["pdx", "fra"].into_iter().find(|site| stored && bed.servers.is_open(site))
    });
    let Ok(moved) = timeout(BOUND * 3 / 4, stored).await else { panic!("no move: {}", operator.get("/why").await.1) };
    if let Some(what) = refusing {
        bed.world.allow(what);
    }
    until("status says so, too", async || (status(&bed)["activeSite"] == moved).then_some(())).await;
    operator.end().await;
}

/// Each write is one that an API server keeps and tells everybody.
#[tokio::test(flavor = "multi_thread")]
async fn a_group_in_which_nothing_happens_is_not_written() {
    let bed = Bed::new(&["iad", "pdx"]).await;
    let progress = Duration::from_hours(1);
    let _operator = operate_under(&bed, Settings { progress, ..Settings::new("one") }).await;
    assert_eq!(writer(&bed, None).await, "iad");
    let polls = || bed.servers.change("iad", |server| server.polls);
    let mut last = (String::new(), polls());
    // Whatever there is to be told after the promotion has been told some day: then ten polls pass without a write.
    until("ten polls without a write", async || {
        let version = bed.world.object(&orders())["metadata"]["resourceVersion"].as_str()?.to_owned();
        if version != last.0 {
            last = (version, polls());
        }
        (polls() >= last.1 + 10).then_some(())
    })
    .await;
    bed.servers.change("pdx", |server| server.alive = false);
    until("news is written", async || {
        let shown = status(&bed)["sites"].as_array()?.iter().find(|site| site["name"] == "pdx")?["state"].clone();
        (shown == "unreachable").then_some(())
    })
    .await;
}

/// K-07: the record survives without its second copy.
#[tokio::test(flavor = "multi_thread")]
async fn with_annotations_denied_the_status_alone_carries_the_record() {
    check_moves(Some(Refusing::Annotations), |_| {}).await;
}

/// K-01: a status that was denied is written once it is allowed.
/// K-07: what the record says survives an outage of the status.
#[tokio::test(flavor = "multi_thread")]
async fn with_the_status_denied_the_annotation_alone_carries_the_record() {
    check_moves(Some(Refusing::Status), |_| {}).await;
}

/// Each write is time in which nobody can write, and with a hundred groups that move at once it is the API server's time.
#[tokio::test(flavor = "multi_thread")]
async fn a_move_waits_for_one_copy_of_its_record() {
    let mut bed = Bed::new(&["iad", "pdx", "fra"]).await;
    let operator = operate(&bed, "one").await;
    assert_eq!(writer(&bed, None).await, "iad");
    let follows = |site: &str| bed.servers.change(site, |server| server.runs);
    until("all follow", async || (follows("pdx") && follows("fra")).then_some(())).await;
    let before = bed.world.saves();
    bed.kill("iad");
    let moved = writer(&bed, Some("iad")).await;
    let after = bed.world.saves();
    let (records, copies) = (after.0 - before.0, after.1 - before.1);
    // Only those that bring more than the annotation holds, as the taint of the site that is left.
    assert!(records >= 2 && copies < records, "{records} records and {copies} copies were waited for");
    until("the second copy follows", async || (status(&bed)["authority"]["site"] == moved).then_some(())).await;
    operator.end().await;
}

/// More intervals than an annotation has room for.
fn many_transactions() -> GtidSet {
    let intervals: Vec<String> = (0..15_000).map(|number| (2 * number + 1).to_string()).collect();
    format!("3e11fa47-71ca-11e1-9e33-c80aa9429562:{}", intervals.join(":")).parse().expect("a set")
}

/// P-13: what a promotion leaves to be known is stored before anybody is opened, also if the annotation has no room for it.
#[tokio::test(flavor = "multi_thread")]
async fn p_13_a_promotion_too_large_for_the_annotation_waits_for_the_status() {
    let mut bed = Bed::new(&["iad", "pdx"]).await;
    let operator = operate(&bed, "one").await;
    assert_eq!(writer(&bed, None).await, "iad");
    let many = many_transactions();
    for site in ["iad", "pdx"] {
        bed.servers.change(site, |server| server.executed = many.clone());
    }
    let world = Arc::clone(&bed.world);
    let copy = || world.object(&orders())["metadata"]["annotations"][COPY].as_str().map(str::to_owned);
    bed.world.refuse(Refusing::Status);
    bed.servers.change("iad", |server| server.alive = false);
    bed.kill("iad");
    let granting = until("pdx has authority", async || copy().filter(|copy| copy.contains("Granting"))).await;
    let tried = bed.world.saves().1;
    until("the promotion was refused three times", async || (bed.world.saves().1 >= tried + 3).then_some(())).await;
    assert!(!bed.servers.is_open("pdx"), "{granting}");
    bed.world.allow(Refusing::Status);
    assert_eq!(writer(&bed, Some("iad")).await, "pdx");
    let promotion = status(&bed)["promotionGtidExecuted"].as_str().map(str::parse::<GtidSet>);
    assert_eq!(promotion, Some(Ok(many)));
    assert!(!copy().expect("a copy").contains("promotionGtidExecuted"));
    operator.end().await;
}

/// F-05: while the status is behind a hand at the annotation takes nothing away that this leader knows.
#[tokio::test(flavor = "multi_thread")]
async fn f_05_an_annotation_that_is_spoilt_while_the_status_is_behind_is_written_anew() {
    let bed = Bed::new(&["iad", "pdx"]).await;
    let operator = operate(&bed, "one").await;
    assert_eq!(writer(&bed, None).await, "iad");
    until("all vote", async || (status(&bed)["authority"]["voters"].as_array()?.len() == 2).then_some(())).await;
    let annotation = || bed.world.object(&orders())["metadata"]["annotations"][COPY].as_str().map(str::to_owned);
    let before = annotation();
    bed.world.refuse(Refusing::Status);
    bed.world.edit(&orders(), |object| {
        object["metadata"]["generation"] = json!(2);
        object["spec"]["sidecar"]["leaseTimeout"] = json!("9s");
    });
    let read = || serde_json::from_str::<serde_json::Value>(&annotation()?).ok();
    let known = until("an epoch for the lease", async || read().filter(|record| record["leaseTimeout"] == "9s")).await;
    let other_seat = of_another_seat(&known.to_string());
    for spoilt in [None, Some("{"), before.as_deref(), Some(&other_seat)] {
        bed.world.edit(&orders(), |object| object["metadata"]["annotations"][COPY] = json!(spoilt));
        let what = format!("it is as it was stored, after {spoilt:?}");
        // What was dropped of old sets meanwhile is dropped by itself.
        let same = |record: &serde_json::Value| {
            ["epoch", "tenure", "instance", "phase", "voters"].iter().all(|field| record[field] == known[field])
        };
        until(&what, async || read().filter(same).map(drop)).await;
    }
    bed.world.allow(Refusing::Status);
    until("status says so, too", async || (status(&bed)["authority"]["epoch"] == known["epoch"]).then_some(())).await;
    assert_eq!(writer(&bed, None).await, "iad");
    operator.end().await;
}

/// K-07: writes of others neither rewind a phase nor stop one.
#[tokio::test(flavor = "multi_thread")]
async fn somebody_else_who_writes_all_the_time_does_not_stop_a_move() {
    let busy = |bed: &Bed| {
        bed.world.edit(&orders(), |object| object["metadata"]["labels"] = json!({"written": "again"}));
    };
    check_moves(None, busy).await;
    // Nor what people see.
    let bed = Bed::new(&["iad", "pdx"]).await;
    let operator = operate(&bed, "one").await;
    until("the status says who writes", async || {
        busy(&bed);
        (status(&bed)["authority"]["phase"] == "Stable" && status(&bed)["activeSite"] == "iad").then_some(())
    })
    .await;
    operator.end().await;
}

/// K-07: nothing is granted on top of a write of which nobody knows.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_lost_is_found_out_by_reading_again() {
    let mut bed = Bed::new(&["iad", "pdx", "fra"]).await;
    let _operator = operate(&bed, "one").await;
    assert_eq!(writer(&bed, None).await, "iad");
    bed.world.refuse(Refusing::AnnotationsAnswer);
    bed.kill("iad");
    // Stored, and nobody heard it: nothing is granted on top of it.
    until("the revocation is stored", async || {
        let object = bed.world.object(&orders());
        let annotation = object["metadata"]["annotations"]["bloodraven.shipstream.io/authority"].as_str()?;
        annotation.contains("Revoking").then_some(())
    })
    .await;
    bed.world.allow(Refusing::AnnotationsAnswer);
    assert_ne!(writer(&bed, Some("iad")).await, "iad");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_hangs_keeps_nobody_from_polling() {
    let bed = Bed::new(&["iad", "pdx"]).await;
    bed.world.refuse(Refusing::Reads);
    let operator = operate(&bed, "one").await;
    until("polls go on", async || bed.servers.change("iad", |server| (server.polls >= 3).then_some(()))).await;
    assert_eq!(operator.get("/healthz").await.0, 200);
    assert_eq!(status(&bed)["authority"], json!(null));
    bed.world.allow(Refusing::Reads);
    assert_eq!(writer(&bed, None).await, "iad");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_spec_leaves_the_last_valid_one_in_force() {
    let bed = Bed::new(&["iad", "pdx"]).await;
    let _operator = operate(&bed, "one").await;
    writer(&bed, None).await;
    bed.world.edit(&orders(), |object| {
        object["metadata"]["generation"] = json!(2);
        object["spec"]["pollInterval"] = json!("-3s");
    });
    until("people are told", async || {
        let status = status(&bed);
        let degraded = status["conditions"].as_array()?.iter().find(|one| one["type"] == "Degraded")?.clone();
        (degraded["reason"] == "InvalidSpec" && degraded["message"].as_str()?.contains("pollInterval")).then_some(())
    })
    .await;
    let polls = bed.servers.change("iad", |server| server.polls);
    until("polls go on", async || bed.servers.change("iad", |server| (server.polls > polls).then_some(()))).await;
    assert_eq!(status(&bed)["observedGeneration"], 1);
    bed.world.edit(&orders(), |object| {
        object["metadata"]["generation"] = json!(3);
        object["spec"]["pollInterval"] = json!("1s");
    });
    until("it is taken", async || (status(&bed)["observedGeneration"] == 3).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_that_are_none_stand_in_nobodys_way() {
    let bed = Bed::new(&["iad", "pdx"]).await;
    bed.world.put(&crate::world::GroupId::new("shop", "broken"), json!({"metadata": {"name": "broken"}, "spec": 7}));
    let mut nonsense = object("nonsense", &["iad", "pdx"]);
    nonsense["spec"]["sites"] = json!("none");
    bed.world.put(&crate::world::GroupId::new("shop", "nonsense"), nonsense);
    let operator = operate(&bed, "one").await;
    assert_eq!(writer(&bed, None).await, "iad");
    let (code, all) = operator.get("/status").await;
    assert_eq!((code, &all["shop/orders"]["activeSite"]), (200, &json!("iad")));
    assert!(all.get("shop/broken").is_none());
    assert_eq!(operator.get("/healthz").await.0, 200);
}

/// The annotation's copy of the record.
const COPY: &str = "bloodraven.shipstream.io/authority";

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_was_taken_away_is_written_anew() {
    let bed = Bed::new(&["iad", "pdx"]).await;
    let operator = operate(&bed, "one").await;
    assert_eq!(writer(&bed, None).await, "iad");
    let epoch = status(&bed)["authority"]["epoch"].clone();
    bed.world.edit(&orders(), |object| {
        if let Some(annotations) = object["metadata"]["annotations"].as_object_mut() {
            annotations.remove(COPY);
        }
    });
    until("the annotation is back", async || {
        bed.world.object(&orders())["metadata"]["annotations"][COPY].as_str().map(drop)
    })
    .await;
    bed.world.edit(&orders(), |object| object["status"] = json!({}));
    until("the status is back", async || (status(&bed)["authority"]["epoch"] == epoch).then_some(())).await;
    assert_eq!(writer(&bed, None).await, "iad");
    operator.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_says_more_than_is_known_is_never_overwritten() {
    let bed = Bed::new(&["iad", "pdx"]).await;
    let operator = operate(&bed, "one").await;
    assert_eq!(writer(&bed, None).await, "iad");
    let epoch = status(&bed)["authority"]["epoch"].as_u64().expect("an epoch");
    // As another leader would have left it.
    let copy = bed.world.object(&orders())["metadata"]["annotations"][COPY].as_str().expect("a copy").to_owned();
    let ahead = copy.replacen(&format!("\"epoch\":{epoch},"), &format!("\"epoch\":{},", epoch + 5), 1);
    assert_ne!(copy, ahead);
    bed.world.edit(&orders(), |object| object["metadata"]["annotations"][COPY] = json!(ahead));
    until("it is the record", async || {
        let record = operator.get("/why").await.1["record"].clone();
        (record["epoch"].as_u64()? >= epoch + 5).then_some(())
    })
    .await;
    operator.end().await;
}

/// The annotation's copy of the record with another seat under the same epoch.
fn of_another_seat(copy: &str) -> String {
    let mut record: serde_json::Value = serde_json::from_str(copy).expect("a record");
    let voters = record["voters"].as_array().cloned().unwrap_or_default();
    let other = voters.into_iter().find(|voter| voter["site"] != record["site"]).expect("another voter");
    (record["site"], record["instance"]) = (other["site"].clone(), other["instance"].clone());
    record.to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_is_spoilt_while_a_leader_runs_is_written_anew() {
    let bed = Bed::new(&["iad", "pdx"]).await;
    let operator = operate(&bed, "one").await;
    assert_eq!(writer(&bed, None).await, "iad");
    let copy = bed.world.object(&orders())["metadata"]["annotations"][COPY].as_str().expect("a copy").to_owned();
    let epoch = status(&bed)["authority"]["epoch"].clone();
    for spoilt in ["{".to_owned(), of_another_seat(&copy), copy.replace("\"Stable\"", "\"Asleep\"")] {
        assert_ne!(spoilt, copy);
        bed.world.edit(&orders(), |object| object["metadata"]["annotations"][COPY] = json!(spoilt));
        until("it is as it was stored", async || {
            let object = bed.world.object(&orders());
            let text = object["metadata"]["annotations"][COPY].as_str()?;
            let record: serde_json::Value = serde_json::from_str(text).ok()?;
            (record["site"] == "iad" && record["phase"] == "Stable").then_some(())
        })
        .await;
    }
    // So it is with a stamp that is no time.
    let stamp = "bloodraven.shipstream.io/last-failover";
    bed.world.edit(&orders(), |object| object["metadata"]["annotations"][stamp] = json!("yesterday"));
    until("the stamp is as it was stored", async || {
        let object = bed.world.object(&orders());
        (object["metadata"]["annotations"][stamp] != "yesterday").then_some(())
    })
    .await;
    let now = status(&bed);
    assert_eq!(now["authority"]["epoch"], epoch, "nothing moved, and nothing was decided anew");
    let reasons: Vec<_> = now["conditions"].as_array().into_iter().flatten().map(|one| one["reason"].clone()).collect();
    assert!(!reasons.contains(&json!("AuthorityCorrupt")), "{reasons:?}");
    assert!(bed.servers.is_open("iad"));
    operator.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn copies_that_contradict_each_other_at_the_start_stop_every_move() {
    let bed = Bed::new(&["iad", "pdx"]).await;
    let operator = operate(&bed, "one").await;
    assert_eq!(writer(&bed, None).await, "iad");
    operator.end().await;
    let copy = bed.world.object(&orders())["metadata"]["annotations"][COPY].as_str().expect("a copy").to_owned();
    let spoilt = of_another_seat(&copy);
    bed.world.edit(&orders(), |object| object["metadata"]["annotations"][COPY] = json!(spoilt));
    let operator = operate(&bed, "two").await;
    let reason = |reason: &'static str| {
        let status = status(&bed);
        let all = status["conditions"].as_array().cloned().unwrap_or_default();
        all.into_iter().find(|one| one["reason"] == reason)
    };
    let told = until("people are told", async || reason("AuthorityCorrupt")).await;
    assert!(told["message"].as_str().is_some_and(|text| text.contains("contradict each other")), "{told}");
    assert_eq!(bed.world.object(&orders())["metadata"]["annotations"][COPY], json!(spoilt), "it stays as it was found");
    assert!(!bed.servers.is_open("pdx"));
    // Mended by hand, as the message says.
    bed.world.edit(&orders(), |object| object["metadata"]["annotations"][COPY] = json!(copy));
    until("it is over", async || reason("AuthorityCorrupt").is_none().then_some(())).await;
    assert_eq!(writer(&bed, None).await, "iad");
    operator.end().await;
}

/// The stored entry of that site.
fn entry(bed: &Bed, site: &str) -> serde_json::Value {
    let status = status(bed);
    let sites = status["sites"].as_array().cloned().unwrap_or_default();
    sites.into_iter().find(|entry| entry["name"] == site).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_divergence_that_a_copy_of_the_same_epoch_knows_nothing_of_is_reported_again() {
    let set = |text: &str| text.parse::<GtidSet>().expect("a set");
    let (ours, theirs) = ("00000001-0000-4000-8000-000000000000:1-5", "00000002-0000-4000-8000-000000000000:1-3");
    let bed = Bed::new(&["iad", "pdx", "fra"]).await;
    let operator = operate(&bed, "one").await;
    assert_eq!(writer(&bed, None).await, "iad");
    let follows = |site: &str| bed.servers.change(site, |server| server.runs);
    until("all follow", async || (follows("pdx") && follows("fra")).then_some(())).await;
    for site in ["iad", "pdx", "fra"] {
        bed.servers.change(site, |server| server.executed = set(ours));
    }
    let epoch = status(&bed)["authority"]["epoch"].clone();
    let (before, object) = (status(&bed), bed.world.object(&orders()));
    let annotations = object["metadata"]["annotations"].clone();
    bed.servers.change("pdx", |server| {
        (server.executed, server.source, server.runs) = (set(&format!("{ours},{theirs}")), None, false);
    });
    let reported = async || (entry(&bed, "pdx")["divergentGtid"] == theirs).then_some(());
    until("it is reported", reported).await;
    assert_eq!(status(&bed)["authority"]["epoch"], epoch, "the copy is of the same epoch");
    bed.world.edit(&orders(), |object| {
        (object["status"], object["metadata"]["annotations"]) = (before, annotations);
    });
    assert_ne!(entry(&bed, "pdx")["divergentGtid"], theirs, "the copy knows nothing of it");
    until("it is reported again", reported).await;
    assert_eq!(entry(&bed, "pdx")["recoveryState"], "RecoveryBlocked");
    assert!(!follows("pdx"), "never attached");
    operator.end().await;
}
