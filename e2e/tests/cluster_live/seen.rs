//! What the API server shows, every change of it: who has authority, and where `-primary` leads.
//!
//! In: watches. Out: the sequence of writers, and every moment at which `-primary` had two endpoints or two pods were called
//! primary. Must not: miss a change that a watch delivers; one that broke off is begun with a list.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bloodraven_testbed::wait;
use futures_util::TryStreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams, WatchEvent, WatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config, Resource};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio::time::interval;

use super::stage::{NAMESPACE, Stage};

/// Watches are begun anew after so long.
const WATCH_SECONDS: u32 = 60;

/// A failover that was asked for begins within this.
const BEGINS_WITHIN: Duration = Duration::from_mins(2);

/// What was seen so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    /// The sites that had authority and were opened, one after the other.
    pub(crate) writers: Vec<String>,
    /// Moments with two endpoints or two primaries.
    pub(crate) doubles: Vec<String>,
    authority: Value,
    planned: Value,
}

pub(crate) struct Seen {
    history: Arc<Mutex<History>>,
    runtime: Runtime,
}

impl Seen {
    pub(crate) fn start(stage: &Stage) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let history: Arc<Mutex<History>> = Arc::default();
        let client = runtime.block_on(client(stage));
        let kind = GroupVersionKind::gvk("shipstream.io", "v1alpha1", "MysqlFailoverGroup");
        let groups: Api<DynamicObject> = Api::namespaced_with(client.clone(), NAMESPACE, &ApiResource::from_gvk(&kind));
        let (slices, pods) = (Api::namespaced(client.clone(), NAMESPACE), Api::namespaced(client, NAMESPACE));
        let of = |history: &Arc<Mutex<History>>| Arc::clone(history);
        let (first, second, third) = (of(&history), of(&history), of(&history));
        runtime.spawn(follow(groups, "", move |all| first.lock().unwrap().take_group(all)));
        let service = "kubernetes.io/service-name=mysql-orders-primary";
        runtime.spawn(follow(slices, service, move |all| second.lock().unwrap().take_endpoints(all)));
        let primaries = "shipstream.io/role=primary";
        runtime.spawn(follow(pods, primaries, move |all| third.lock().unwrap().take_primaries(all)));
        Self { history, runtime }
    }

    /// The present epoch.
    pub(crate) fn epoch(&self) -> u64 {
        let known = || self.history.lock().unwrap().authority["epoch"].as_u64();
        wait::until(BEGINS_WITHIN, known).expect("an epoch")
    }

    /// How often authority went to another site.
    pub(crate) fn moves(&self) -> usize {
        self.history.lock().unwrap().writers.len()
    }

    /// Authority was taken back.
    pub(crate) fn wait_for_revoking_above(&self, epoch: u64) {
        let revoking = wait::until(BEGINS_WITHIN, || {
            let history = self.history.lock().unwrap();
            let newer = history.authority["epoch"].as_u64().is_some_and(|now| now > epoch);
            (newer && history.authority["phase"] == "Revoking").then_some(())
        });
        assert!(revoking.is_some(), "no failover began: {}", self.history.lock().unwrap().authority);
    }

    /// Where in a move the group is, by the record and the request that is being served; none: in none.
    pub(crate) fn point(&self) -> Option<String> {
        let history = self.history.lock().unwrap();
        let phase = history.authority["phase"].as_str().unwrap_or_default();
        let planned = history.planned.as_str().filter(|phase| !["Succeeded", "Failed"].contains(phase));
        match (phase, planned) {
            ("Stable", None) => None,
            (phase, None) => Some(phase.to_owned()),
            (phase, Some(planned)) => Some(format!("{phase}, {planned}")),
        }
    }

    pub(crate) fn stop(self) -> History {
        self.runtime.shutdown_background();
        std::mem::take(&mut *self.history.lock().unwrap())
    }
}

impl History {
    fn take_group(&mut self, all: &BTreeMap<String, DynamicObject>) {
        let Some(object) = all.values().next() else { return };
        self.authority = object.data["status"]["authority"].clone();
        self.planned = object.data["status"]["plannedFailover"]["phase"].clone();
        let site = self.authority["site"].as_str().unwrap_or_default();
        let writes = self.authority["phase"] == "Stable" && !site.is_empty();
        if writes && self.writers.last().map(String::as_str) != Some(site) {
            self.writers.push(site.to_owned());
        }
    }

    fn take_endpoints(&mut self, all: &BTreeMap<String, EndpointSlice>) {
        let ready = all
            .values()
            .flat_map(|slice| slice.endpoints.iter())
            .filter(|endpoint| endpoint.conditions.as_ref().and_then(|conditions| conditions.ready) != Some(false));
        let addresses: BTreeSet<&String> = ready.flat_map(|endpoint| endpoint.addresses.iter()).collect();
        if addresses.len() > 1 {
            self.doubles.push(format!("endpoints of -primary: {addresses:?}"));
        }
    }

    fn take_primaries(&mut self, all: &BTreeMap<String, Pod>) {
        if all.len() > 1 {
            self.doubles.push(format!("pods called primary: {:?}", all.keys().collect::<Vec<_>>()));
        }
    }
}

async fn client(stage: &Stage) -> Client {
    let file = Kubeconfig::read_from(stage.cluster.kubeconfig()).unwrap();
    Client::try_from(Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.unwrap()).unwrap()
}

/// Shows every state that the API server tells, one after the other.
async fn follow<K>(api: Api<K>, labels: &str, mut show: impl FnMut(&BTreeMap<String, K>))
where
    K: Resource + Clone + DeserializeOwned + std::fmt::Debug,
{
    // Bounds how often a watch that fails is begun again.
    let mut again = interval(Duration::from_millis(250));
    loop {
        again.tick().await;
        let Ok(listed) = api.list(&ListParams::default().labels(labels)).await else { continue };
        let name = |object: &K| object.meta().name.clone().unwrap_or_default();
        let mut all: BTreeMap<String, K> = listed.items.iter().map(|it| (name(it), it.clone())).collect();
        show(&all);
        let version = listed.metadata.resource_version.unwrap_or_default();
        let params = WatchParams::default().labels(labels).timeout(WATCH_SECONDS);
        let Ok(events) = api.watch(&params, &version).await else { continue };
        let mut events = std::pin::pin!(events);
        while let Ok(Some(event)) = events.try_next().await {
            match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => drop(all.insert(name(&object), object)),
                WatchEvent::Deleted(object) => drop(all.remove(&name(&object))),
                WatchEvent::Bookmark(_) => {}
                WatchEvent::Error(_) => break,
            }
            show(&all);
        }
    }
}
