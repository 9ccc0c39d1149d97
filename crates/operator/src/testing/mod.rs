//! A whole group in memory: a world that can refuse and hang, servers without MySQL, sidecars that sign.
//!
//! In: what a test wants to go wrong. Out: everything that an operator can meet. Must not: decide for it.

mod servers;
mod sidecar;
mod world;

pub(crate) use servers::{FakeServer, FakeServers};
pub(crate) use sidecar::FakeSidecar;
pub(crate) use world::{FakeWorld, Refusing, Trouble};

use crate::ears::{Deaf, Ears};
use crate::settings::{Listeners, Settings};
use crate::world::GroupId;
use bloodraven_brain::lease::Times;
use bloodraven_brain::time::Millis;
use bloodraven_wire::{Key, Keys};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

/// The bound of every wait in these tests; a loaded machine is slow.
pub(crate) const BOUND: Duration = Duration::from_mins(1);

pub(crate) fn keys() -> Keys {
    Keys::only(Key::new([7; 32]))
}

pub(crate) fn orders() -> GroupId {
    GroupId::new("shop", "orders")
}

/// A group's object; polls are quick, so that tests are.
pub(crate) fn object(name: &str, sites: &[&str]) -> Value {
    let site = |name: &&str| {
        json!({"name": name, "zone": format!("{name}-1a"), "lbIP": "10.0.0.10",
            "taintNodeSelector": {"site": name}, "storage": {"storageClassName": "fast", "size": "1Gi"}})
    };
    json!({
        "apiVersion": "shipstream.io/v1alpha1", "kind": "MysqlFailoverGroup",
        "metadata": {"name": name, "namespace": "shop", "uid": format!("uid-{name}"), "generation": 1,
            "resourceVersion": "1"},
        "spec": {
            "secretName": "orders-mysql", "dns": {"hostname": "db.example.com"},
            "pollInterval": "1s", "failureThreshold": 2, "recoveryThreshold": 1,
            "sidecar": {"leaseTimeout": "6s", "peerCheckInterval": "2s"},
            "sites": sites.iter().map(site).collect::<Vec<_>>(),
        },
    })
}

/// A world with that group, its servers and its sidecars.
pub(crate) struct Bed {
    pub(crate) world: Arc<FakeWorld>,
    pub(crate) servers: Arc<FakeServers>,
    pub(crate) sidecars: BTreeMap<String, FakeSidecar>,
}

impl Bed {
    pub(crate) async fn new(sites: &[&str]) -> Self {
        Self::with(object("orders", sites), sites).await
    }

    pub(crate) async fn with(object: Value, sites: &[&str]) -> Self {
        let servers = Arc::new(FakeServers::new(sites));
        let mut sidecars = BTreeMap::new();
        for site in sites {
            sidecars.insert((*site).to_owned(), FakeSidecar::start(site, "uid-orders", &servers).await);
        }
        let world = Arc::new(FakeWorld::new());
        world.put(&orders(), object);
        for (site, sidecar) in &sidecars {
            world.place(site, sidecar.address);
        }
        Self { world, servers, sidecars }
    }

    /// Server, sidecar and pod of that site end, and the world sees it.
    pub(crate) fn kill(&mut self, site: &str) {
        self.servers.change(site, |server| server.alive = false);
        self.sidecars.remove(site);
        self.world.end_pod(site);
    }
}

/// An operator that runs beside the test.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    end: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

/// An election that is over in a moment.
pub(crate) fn quick() -> Times {
    Times::new(Millis(3000), Millis(2000), Millis(300)).expect("they go together")
}

pub(crate) async fn operate(bed: &Bed, identity: &str) -> Running {
    operate_with(bed, identity, Arc::new(Deaf)).await
}

pub(crate) async fn operate_with(bed: &Bed, identity: &str, ears: Arc<dyn Ears>) -> Running {
    operate_under(bed, Settings { ears, ..Settings::new(identity) }).await
}

pub(crate) async fn operate_under(bed: &Bed, settings: Settings) -> Running {
    let aux = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = aux.local_addr().expect("an address");
    let settings = Settings { times: quick(), address: Some(address.to_string()), ..settings };
    bed.world.operator_at(&settings.identity, &address.to_string());
    let (end, ended) = oneshot::channel::<()>();
    let (world, servers) = (Arc::clone(&bed.world), Arc::clone(&bed.servers));
    let listeners = Listeners { aux, metrics: None, probes: None };
    let task = tokio::spawn(async move {
        let shutdown = async move { drop(ended.await) };
        crate::run_with(world, servers, settings, listeners, shutdown).await.expect("it runs");
    });
    Running { address, end: Some(end), task }
}

impl Running {
    pub(crate) async fn get(&self, target: &str) -> (u16, Value) {
        let response = reqwest::get(format!("http://{}{target}", self.address)).await.expect("an answer");
        let status = response.status().as_u16();
        let text = response.text().await.expect("a text");
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    /// Asks it to end, and waits for it.
    pub(crate) async fn end(mut self) {
        if let Some(end) = self.end.take() {
            let _ = end.send(());
        }
        timeout(BOUND, &mut self.task).await.expect("it ends in time").expect("it ends well");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Waits until that is so.
pub(crate) async fn until<T>(what: &str, mut so: impl AsyncFnMut() -> Option<T>) -> T {
    let end = Instant::now() + BOUND;
    loop {
        if let Some(found) = so().await {
            return found;
        }
        assert!(Instant::now() < end, "{what}: not within {BOUND:?}");
        crate::tasks::rest(Duration::from_millis(20)).await;
    }
}

/// The stored status.
pub(crate) fn status(bed: &Bed) -> Value {
    bed.world.object(&orders()).get("status").cloned().unwrap_or_default()
}

/// Waits until that site, or any but that one, is stored as Stable and its server is open. Returns it.
pub(crate) async fn writer(bed: &Bed, not: Option<&str>) -> String {
    until("a writer", async || {
        let status = status(bed);
        let (site, phase) = (status["activeSite"].as_str()?.to_owned(), status["authority"]["phase"].as_str()?);
        let fits = phase == "Stable" && !site.is_empty() && not != Some(site.as_str());
        (fits && bed.servers.is_open(&site)).then_some(site)
    })
    .await
}
