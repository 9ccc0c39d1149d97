//! Probes: what sidecars, operators and servers say of themselves, twice a second.
//!
//! In: their real addresses, past the weather. Out: the model kept current. Must not: wait for a silent one longer than
//! its turn, or let one delay another.

use super::scene::Scene;
use crate::assembly::Status;
use bloodraven_gtid::GtidSet;
use bloodraven_mysql::{Account, Deadline, Reading, Server, Session};
use futures_util::future::join_all;
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval, timeout};

const EVERY: Duration = Duration::from_millis(500);

/// Loopback: who has not answered by then stands still.
const WITHIN: Duration = Duration::from_millis(400);

/// No answer of a sidecar is longer: GTID sets, at most.
const LONGEST: usize = 4 << 20;

/// What a sidecar says of itself.
#[derive(Clone, Debug, Default)]
pub(super) struct Said {
    pub(super) epoch: Option<u64>,
    pub(super) lease_ms: Option<i64>,
    pub(super) mysqld: String,
}

/// Probes until the end.
pub(super) async fn run(scene: Arc<Scene>) {
    let Ok(client) = reqwest::Client::builder().timeout(WITHIN).no_proxy().build() else { return };
    let mut stop = scene.stop.subscribe();
    let mut every = interval(EVERY);
    every.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = every.tick() => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
        let Ok(status) = scene.local.status() else { continue };
        let sidecars = join_all(status.sites.iter().map(|site| ask_sidecar(&client, site.sidecar)));
        let operators = join_all(status.operators.iter().map(|one| ask_operator(&client, one.http)));
        let (sidecars, operators, _) = tokio::join!(sidecars, operators, read_servers(&scene));
        let mut model = scene.model();
        model.sidecars = sidecars;
        model.operators = operators;
    }
}

async fn ask_sidecar(client: &reqwest::Client, address: SocketAddr) -> Option<Said> {
    let answer = client.get(format!("http://{address}/status")).send().await.ok()?;
    let body = answer.bytes().await.ok().filter(|body| body.len() <= LONGEST)?;
    let value: Value = serde_json::from_slice(&body).ok()?;
    Some(Said {
        epoch: value["epoch"].as_u64(),
        lease_ms: value["leaseRemainingMs"].as_i64(),
        mysqld: value["mysqld"].as_str().unwrap_or_default().to_owned(),
    })
}

async fn ask_operator(client: &reqwest::Client, address: SocketAddr) -> bool {
    client.get(format!("http://{address}/healthz")).send().await.is_ok_and(|answer| answer.status().is_success())
}

/// Reads every server's sets, side by side: what it executed, and what it received while it followed. Out: what those that
/// answered this time have executed.
pub(super) async fn read_servers(scene: &Scene) -> BTreeMap<String, GtidSet> {
    let (Ok(status), Ok(account)) = (scene.local.status(), scene.local.store().account("operator")) else {
        return BTreeMap::new();
    };
    let readings = join_all(status.sites.iter().map(|site| read_server(site.admin, account.clone()))).await;
    take_in(scene, &status, readings)
}

async fn read_server(admin: SocketAddr, (user, password): (String, String)) -> Option<Reading> {
    let server = Server::new(admin.ip().to_string(), admin.port(), Account::new(user, password));
    let deadline = Deadline::within(WITHIN);
    let read = async {
        let mut session = Session::open(&server, deadline).await.ok()?;
        bloodraven_mysql::poll(&mut session, deadline).await.ok()
    };
    timeout(WITHIN, read).await.ok().flatten()
}

fn take_in(scene: &Scene, status: &Status, readings: Vec<Option<Reading>>) -> BTreeMap<String, GtidSet> {
    let mut answered = BTreeMap::new();
    let mut model = scene.model();
    for (site, reading) in status.sites.iter().zip(readings) {
        let Some(reading) = reading else { continue };
        let executed = reading.executed.unwrap_or_default();
        if model.told.authority.site != site.name
            && let Some(replica) = &reading.replica
        {
            let pending = replica.received.clone().unwrap_or_default();
            let before = model.received.remove(&site.name).unwrap_or_default();
            model.received.insert(site.name.clone(), before.union(&pending).union(&executed));
        }
        answered.insert(site.name.clone(), executed.clone());
        model.executed.insert(site.name.clone(), executed);
    }
    answered
}
