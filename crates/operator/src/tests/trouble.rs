//! Trouble at one place that must not spread: a slow sidecar, a panic, a refused login.

use crate::ears::{Deaf, Ears};
use crate::tell::Teller;
use crate::testing::{Bed, Refusing, operate, operate_with, orders, status, until, writer};
use crate::world::{Event, GroupId, MissingSecret};
use bloodraven_brain::group::input::Saw;
use bloodraven_brain::group::{Group, Notice};
use bloodraven_brain::lease;
use bloodraven_brain::name::Site;
use bloodraven_brain::time::Now;
use bloodraven_telemetry::OperatorMetrics;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

#[tokio::test(flavor = "multi_thread")]
async fn a_sidecar_that_hangs_delays_nobody() {
    let bed = Bed::new(&["iad", "pdx", "fra"]).await;
    let _operator = operate(&bed, "one").await;
    writer(&bed, None).await;
    bed.sidecars["fra"].state.hangs.store(true, Ordering::SeqCst);
    let heard = |site: &str| bed.sidecars[site].state.heard.load(Ordering::SeqCst);
    let (before, hanging) = (heard("pdx"), heard("fra"));
    until("the others are pushed to all the while", async || {
        (heard("pdx") >= before + 3 && heard("fra") > hanging).then_some(())
    })
    .await;
}

/// K-24: a poll that panics takes no loop along.
#[tokio::test(flavor = "multi_thread")]
async fn a_poll_that_panics_is_a_failed_poll() {
    let bed = Bed::new(&["iad", "pdx"]).await;
    let operator = operate(&bed, "one").await;
    writer(&bed, None).await;
    bed.servers.change("pdx", |server| server.panics = true);
    until("it is unreachable", async || {
        let status = status(&bed);
        let entry = status["sites"].as_array()?.iter().find(|entry| entry["name"] == "pdx")?.clone();
        (entry["state"] == "unreachable").then_some(())
    })
    .await;
    assert_eq!(operator.get("/healthz").await.0, 200);
    assert!(bed.servers.is_open("iad"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_login_is_no_failed_poll_and_new_credentials_are_found() {
    let bed = Bed::new(&["iad", "pdx"]).await;
    let _operator = operate(&bed, "one").await;
    writer(&bed, None).await;
    bed.servers.change("iad", |server| server.password = "two".to_owned());
    let polls = bed.servers.change("iad", |server| server.polls);
    // More refusals than the failure threshold.
    until("refused often", async || bed.servers.change("iad", |server| (server.polls > polls + 3).then_some(()))).await;
    assert_eq!(status(&bed)["activeSite"], "iad");
    assert!(bed.servers.is_open("iad"));
    bed.world.password("two");
    bed.servers.change("pdx", |server| server.password = "two".to_owned());
    until("it is seen again", async || {
        let status = status(&bed);
        let entry = status["sites"].as_array()?.iter().find(|entry| entry["name"] == "pdx")?.clone();
        (entry["state"] == "read-only").then_some(())
    })
    .await;
    assert_eq!(writer(&bed, None).await, "iad");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_password_is_set_on_the_primary_and_nothing_moves_meanwhile() {
    let bed = Bed::new(&["iad", "pdx", "fra"]).await;
    let _operator = operate(&bed, "one").await;
    assert_eq!(writer(&bed, None).await, "iad");
    let epoch = status(&bed)["authority"]["epoch"].clone();
    bed.world.password("two");
    // Secrets are read again at once when a login is refused, whatever for.
    bed.servers.change("fra", |server| server.password = "three".to_owned());
    until("it is set", async || {
        bed.servers.change("iad", |server| (server.password == "two" && server.sets > 0).then_some(()))
    })
    .await;
    // A site that does not have it yet is polled all the same, with the one before.
    let polls = bed.servers.change("pdx", |server| server.polls);
    until("polled often", async || bed.servers.change("pdx", |server| (server.polls > polls + 3).then_some(()))).await;
    let status = status(&bed);
    assert_eq!((&status["activeSite"], &status["authority"]["epoch"]), (&"iad".into(), &epoch));
    let entry = status["sites"].as_array().into_iter().flatten().find(|entry| entry["name"] == "pdx").cloned();
    assert_eq!(entry.map(|entry| entry["state"].clone()), Some("read-only".into()));
    assert_eq!(bed.servers.change("pdx", |server| server.sets), 0, "only the primary is changed");
}

/// K-22: a Secret that changes while its primary dies; sites are polled with the password before, and the next primary gets
/// the new one.
#[tokio::test(flavor = "multi_thread")]
async fn a_password_that_changes_in_a_failover_is_set_on_the_next_primary() {
    let mut bed = Bed::new(&["iad", "pdx", "fra"]).await;
    let operator = operate(&bed, "one").await;
    assert_eq!(writer(&bed, None).await, "iad");
    until("it follows", async || bed.servers.change("pdx", |server| server.runs.then_some(()))).await;
    bed.kill("iad");
    bed.world.password("two");
    // Secrets are read again at once when a login is refused, whatever for.
    bed.servers.change("fra", |server| server.password = "three".to_owned());
    assert_eq!(writer(&bed, Some("iad")).await, "pdx");
    until("it is set", async || {
        bed.servers.change("pdx", |server| (server.password == "two" && server.sets > 0).then_some(()))
    })
    .await;
    assert!(bed.servers.is_open("pdx"));
    operator.end().await;
}

/// Panics at the first notices.
struct Clumsy {
    panics: AtomicUsize,
    stumbled: AtomicUsize,
}

impl Ears for Clumsy {
    fn notices(&self, id: &GroupId, now: Now, group: &Group, notices: &[Notice]) -> Vec<Event> {
        assert!(self.stumbled.fetch_add(1, Ordering::SeqCst) >= 2, "a test");
        Deaf.notices(id, now, group, notices)
    }

    fn glance(&self, _: &GroupId, _: Now, _: &Group) -> Vec<Event> {
        Vec::new()
    }

    fn spec_refused(&self, _: &GroupId, _: Now, _: Option<&str>) -> Vec<Event> {
        Vec::new()
    }

    fn secrets_missing(&self, _: &GroupId, _: Now, _: Option<&MissingSecret>) -> Vec<Event> {
        Vec::new()
    }

    fn forget(&self, _: &GroupId) {}

    fn election(&self, _: Now, _: &lease::Notice) {}

    fn polled(&self, _: &GroupId, _: &Site, _: Duration, _: &Saw) {}

    fn fenced(&self, _: &GroupId, _: &Site, _: bool) {}

    fn panicked(&self, of: &str) {
        assert_eq!(of, "group shop/orders");
        self.panics.fetch_add(1, Ordering::SeqCst);
    }

    fn write_failed(&self, _: &'static str) {}

    fn answered(&self, _: &'static str, _: &str, _: u16, _: Duration) {}

    fn followers(&self, _: usize) {}

    fn metrics(&self) -> String {
        String::new()
    }
}

/// K-24: a group's loop is started again after a panic.
#[tokio::test(flavor = "multi_thread")]
async fn a_group_loop_that_panics_is_counted_and_started_again() {
    let bed = Bed::new(&["iad", "pdx"]).await;
    let ears = Arc::new(Clumsy { panics: AtomicUsize::new(0), stumbled: AtomicUsize::new(0) });
    let operator = operate_with(&bed, "one", Arc::clone(&ears) as Arc<dyn Ears>).await;
    assert_eq!(writer(&bed, None).await, "iad");
    assert_eq!(ears.panics.load(Ordering::SeqCst), 2);
    assert_eq!(operator.get("/healthz").await.0, 200);
}

/// K-24: the loops of the process, that of groups and that of the election, too, are started again after a panic, each with its
/// metric; what they looked after goes on.
#[tokio::test(flavor = "multi_thread")]
async fn every_loop_that_panics_is_counted_by_its_name_and_goes_on() {
    let mut bed = Bed::new(&["iad", "pdx"]).await;
    let teller = Teller::new(OperatorMetrics::new("0.0.0"));
    let operator = operate_with(&bed, "one", Arc::new(teller.clone())).await;
    assert_eq!(writer(&bed, None).await, "iad");
    until("it follows", async || bed.servers.change("pdx", |server| server.runs.then_some(()))).await;
    for (panics, of) in [(Refusing::ListPanics, "sites"), (Refusing::LeasePanics, "election")] {
        let counted = format!("bloodraven_loop_panics_total{{loop=\"{of}\"}}");
        assert!(!teller.registry().text().contains(&counted), "{of}");
        bed.world.refuse(panics);
        // Whoever waits for a change looks.
        bed.world.edit(&orders(), |object| object["metadata"]["labels"] = json!({"a": of}));
        until(of, async || teller.registry().text().contains(&counted).then_some(())).await;
        bed.world.allow(panics);
        until("it leads", async || (operator.get("/why").await.0 == 200).then_some(())).await;
    }
    bed.kill("iad");
    assert_eq!(writer(&bed, Some("iad")).await, "pdx");
    until("all loops beat", async || (operator.get("/healthz").await.0 == 200).then_some(())).await;
}
