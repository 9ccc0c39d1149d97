//! Specs that change under a leader: the last one counts, and what it says is what hands do.

use crate::testing::{Bed, Running, object, operate, orders, status, until, writer};
use serde_json::{Value, json};
use std::time::Duration;

/// As a person would: the next generation of the spec.
fn respec(bed: &Bed, change: impl FnOnce(&mut Value)) -> i64 {
    let mut now = 0;
    bed.world.edit(&orders(), |object| {
        now = object["metadata"]["generation"].as_i64().unwrap_or(0) + 1;
        object["metadata"]["generation"] = json!(now);
        change(&mut object["spec"]);
    });
    now
}

/// K-08: patches that come faster than a move goes on, from its first moment to its end, leave one writer at most at every
/// look and one in the end; the spec that is kept and what the status speaks of are the last one.
#[tokio::test(flavor = "multi_thread")]
async fn a_swarm_of_patches_in_a_failover_ends_with_the_last_one_and_one_writer() {
    let mut bed = Bed::new(&["iad", "pdx", "fra"]).await;
    let operator = operate(&bed, "one").await;
    assert_eq!(writer(&bed, None).await, "iad");
    bed.kill("iad");
    let open = || ["iad", "pdx", "fra"].into_iter().filter(|site| bed.servers.is_open(site)).count();
    let mut number = 0;
    until("the move is over", async || {
        number += 1;
        let (lag, wait) = (10 + number, format!("{}s", 20 + number % 7));
        respec(&bed, |spec| {
            spec["replication"] = json!({"maxLagSeconds": lag});
            spec["plannedFailover"] = json!({"drainTimeout": wait});
            spec["mysqlConf"] = json!({"max_connections": lag.to_string()});
        });
        assert!(open() <= 1, "two are open");
        let status = status(&bed);
        let moved = status["authority"]["phase"] == "Stable" && status["activeSite"] != "iad";
        (moved && open() == 1).then_some(())
    })
    .await;
    let last = respec(&bed, |spec| spec["replication"] = json!({"maxLagSeconds": 7}));
    until("the status speaks of the last one", async || {
        let status = status(&bed);
        let conditions = status["conditions"].as_array()?;
        let all = conditions.iter().chain([&status]).all(|one| one["observedGeneration"] == last);
        (all && conditions.len() > 5).then_some(())
    })
    .await;
    let kept =
        until("the last one is kept", async || bed.world.taken(&orders()).filter(|it| it.generation == last)).await;
    assert_eq!(kept.spec["replication"]["maxLagSeconds"], 7);
    assert_eq!(open(), 1);
    operator.end().await;
}

/// K-11: `sidecar.leaseTimeout` and `sidecar.minPeers` are stored with the record and reach sidecars with its views.
#[tokio::test(flavor = "multi_thread")]
async fn lease_settings_are_a_new_epoch_of_the_same_tenure() {
    let bed = Bed::new(&["iad", "pdx", "fra"]).await;
    let _operator = operate(&bed, "one").await;
    assert_eq!(writer(&bed, None).await, "iad");
    let record = || status(&bed)["authority"].clone();
    let voters = |record: &Value| record["voters"].as_array().map_or(0, Vec::len);
    let before = until("all are voters", async || Some(record()).filter(|record| voters(record) == 3)).await;
    respec(&bed, |spec| spec["sidecar"] = json!({"leaseTimeout": "7s", "peerCheckInterval": "2s", "minPeers": 2}));
    let after = until("a new epoch", async || Some(record()).filter(|record| record["cause"] == "Lease")).await;
    assert!(after["epoch"].as_u64() > before["epoch"].as_u64(), "{after}");
    for field in ["tenure", "site", "instance", "phase", "voters"] {
        assert_eq!(after[field], before[field], "{field}");
    }
    let sets = after["holder"]["sets"].as_array().expect("sets");
    let settings: Vec<_> = sets.iter().map(|set| (set["leaseTimeout"].clone(), set["minPeers"].clone())).collect();
    assert!(settings.contains(&(json!("7s"), json!(2))), "{settings:?}");
    assert!(bed.servers.is_open("iad"), "nobody is closed for it");
}

/// K-11: `pollInterval` is the period and, K-12, the bound of a poll, also after it was changed.
#[tokio::test(flavor = "multi_thread")]
async fn a_poll_has_no_more_time_than_its_interval() {
    let bed = Bed::new(&["iad", "pdx"]).await;
    let _operator = operate(&bed, "one").await;
    assert_eq!(writer(&bed, None).await, "iad");
    let given = || bed.servers.change("pdx", |server| server.patience);
    assert_eq!(given(), Some(Duration::from_secs(1)));
    respec(&bed, |spec| spec["pollInterval"] = json!("700ms"));
    until("polls have less time", async || (given()? == Duration::from_millis(700)).then_some(())).await;
}

/// A group with data and a writer, whose write probe is like that.
async fn probed(probe: Value) -> (Bed, Running) {
    let mut group = object("orders", &["iad", "pdx"]);
    group["spec"]["writeProbe"] = probe;
    let bed = Bed::with(group, &["iad", "pdx"]).await;
    let operator = operate(&bed, "one").await;
    assert_eq!(writer(&bed, None).await, "iad");
    for site in ["iad", "pdx"] {
        let data = "00000001-0000-4000-8000-000000000000:1-5".parse().expect("a set");
        bed.servers.change(site, |server| server.executed = data);
    }
    (bed, operator)
}

/// K-11: `writeProbe.interval` of zero is off, and another one is on.
#[tokio::test(flavor = "multi_thread")]
async fn a_write_probe_that_is_off_commits_nothing() {
    let (bed, _operator) = probed(json!({"interval": "0s", "timeout": "0s"})).await;
    let count = || bed.servers.change("iad", |server| (server.polls, server.commits));
    let polls = count().0;
    until("many polls", async || (count().0 >= polls + 5).then_some(())).await;
    assert_eq!(count().1, 0);
    respec(&bed, |spec| spec["writeProbe"] = json!({"interval": "1s", "timeout": "1s"}));
    until("commits are tried", async || (count().1 > 1).then_some(())).await;
}

/// K-11: `writeProbe.timeout` is the time that a commit gets, and people are told of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_gets_the_time_that_the_spec_gives_it() {
    let (bed, _operator) = probed(json!({"interval": "2s", "timeout": "2s"})).await;
    bed.servers.change("iad", |server| server.stalled = true);
    let said = until("people are told", async || {
        let status = status(&bed);
        let degraded = status["conditions"].as_array()?.iter().find(|one| one["type"] == "Degraded")?;
        degraded["message"].as_str().filter(|said| said.contains("did not come back")).map(str::to_owned)
    })
    .await;
    assert!(said.contains("within 2 s each"), "{said}");
    assert_eq!(bed.servers.change("iad", |server| server.commit_patience), Some(Duration::from_secs(2)));
}
