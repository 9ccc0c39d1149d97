//! What the API server shows, every change of it: who has authority, where `-primary` leads, how the outside looks.
//!
//! In: watches. Out: the sequence of writers, every change with its revision, and every moment at which `-primary` had two
//! endpoints or two pods were called primary. Must not: miss a change that a watch delivers; one that broke off is begun with
//! a list.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bloodraven_testbed::cluster::SITES;
use bloodraven_testbed::wait;
use futures_util::TryStreamExt as _;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams, WatchEvent, WatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio::time::interval;

use super::marks::{Change, Marks, out_of_order};
use super::stage::{OPERATORS, Stage};
use super::timeline::Timeline;

/// Watches are begun anew after so long.
const WATCH_SECONDS: u32 = 60;

/// A failover that was asked for begins within this.
const BEGINS_WITHIN: Duration = Duration::from_mins(2);

/// A move is a matter of tenths of a second.
pub(crate) const SOON: Duration = Duration::from_millis(2);

/// What was written is heard of within this: the watch of another kind may be late.
const HEARD_WITHIN: Duration = Duration::from_secs(20);

/// The copy of the record that is written first.
pub(crate) const RECORD: &str = "bloodraven.shipstream.io/authority";

/// The taint of the sites that may not write.
pub(crate) const TAINT: &str = "shipstream.io/db-readonly-orders";

/// What was seen so far.
#[derive(Debug)]
pub(crate) struct History {
    /// The sites that had authority and were opened, one after the other.
    pub(crate) writers: Vec<String>,
    /// Moments with two endpoints or two primaries.
    pub(crate) doubles: Vec<String>,
    authority: Value,
    planned: Value,
    marks: Marks,
    timeline: Timeline,
}

pub(crate) struct Seen {
    history: Arc<Mutex<History>>,
    runtime: Runtime,
}

impl Seen {
    pub(crate) fn start(stage: &Stage) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let history = Arc::new(Mutex::new(History::new(stage.timeline.clone())));
        let (client, namespace) = (runtime.block_on(client(stage)), &stage.namespace);
        let seen = Self { history, runtime };
        let of = |group: &str, version: &str, kind: &str| -> Api<DynamicObject> {
            let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
            Api::namespaced_with(client.clone(), namespace, &kind)
        };
        seen.follow(of("shipstream.io", "v1alpha1", "MysqlFailoverGroup"), "", History::take_group);
        seen.follow(of("externaldns.k8s.io", "v1alpha1", "DNSEndpoint"), "", History::take_dns);
        let service = "kubernetes.io/service-name=mysql-orders-primary";
        seen.follow(Api::namespaced(client.clone(), namespace), service, History::take_endpoints);
        seen.follow(Api::namespaced(client.clone(), namespace), "app.kubernetes.io/name=mysql", History::take_pods);
        seen.follow(Api::namespaced(client.clone(), OPERATORS), "", History::take_leases);
        seen.follow(Api::all(client), "", History::take_nodes);
        seen
    }

    fn follow<K>(&self, api: Api<K>, labels: &'static str, take: fn(&mut History, &BTreeMap<String, K>))
    where
        K: Resource + Clone + DeserializeOwned + std::fmt::Debug + Send + Sync + 'static,
    {
        let history = Arc::clone(&self.history);
        self.runtime.spawn(follow(api, labels, move |all| take(&mut history.lock().unwrap(), all)));
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

    /// The newest revision that was heard of: what comes later has a higher one.
    pub(crate) fn revision(&self) -> u64 {
        self.history.lock().unwrap().marks.newest()
    }

    /// These changes were written after that revision, in this order.
    pub(crate) fn wait_for_order(&self, after: u64, wanted: &[Change]) {
        let wrong = || out_of_order(&self.history.lock().unwrap().marks, after, wanted);
        let came = wait::until(HEARD_WITHIN, || wrong().is_none().then_some(()));
        assert!(came.is_some(), "{}; changes since:\n{}", wrong().unwrap_or_default(), self.changes_after(after));
    }

    /// How often something became so after that revision.
    pub(crate) fn count_after(&self, after: u64, wanted: impl Fn(&Change) -> bool) -> usize {
        let history = self.history.lock().unwrap();
        history.marks.all.iter().filter(|mark| mark.revision > after && wanted(&mark.change)).count()
    }

    /// How much later than the first change the second was heard of.
    pub(crate) fn time_between(&self, after: u64, first: &Change, second: &Change) -> Duration {
        let (first, second) = (first.clone(), second.clone());
        self.wait_for_order(after, &[first.clone(), second.clone()]);
        let history = self.history.lock().unwrap();
        let heard =
            |change: &Change| history.marks.first_after(after, change).map(|mark| mark.heard).unwrap_or_default();
        heard(&second).saturating_sub(heard(&first))
    }

    /// The most sites that were without a Ready pod at once since then.
    pub(crate) fn most_down_since(&self, begin: Duration) -> usize {
        let history = self.history.lock().unwrap();
        let later = history.marks.all.iter().filter(|mark| mark.heard >= begin);
        let counts = later.filter_map(|mark| if let Change::Down(count) = mark.change { Some(count) } else { None });
        counts.max().unwrap_or_default()
    }

    /// The longest time since then in which `-primary` led nowhere: new connections are refused, those that stand go on.
    pub(crate) fn led_nowhere_since(&self, begin: Duration) -> Duration {
        let history = self.history.lock().unwrap();
        let led = history.marks.all.iter().filter(|mark| matches!(mark.change, Change::Endpoints(_)));
        let led: Vec<(Duration, bool)> =
            led.map(|mark| (mark.heard, mark.change == Change::Endpoints(Vec::new()))).collect();
        let pairs = led.windows(2).filter(|pair| pair[0].1 && pair[1].0 >= begin);
        pairs.map(|pair| pair[1].0.saturating_sub(pair[0].0.max(begin))).max().unwrap_or_default()
    }

    fn changes_after(&self, after: u64) -> String {
        let history = self.history.lock().unwrap();
        let mut later: Vec<_> = history.marks.all.iter().filter(|mark| mark.revision > after).collect();
        later.sort_by_key(|mark| mark.revision);
        later.iter().map(|mark| format!("{} {}", mark.revision, mark.change)).collect::<Vec<_>>().join("\n")
    }

    /// Authority was taken back. A move may be over before anybody looks.
    pub(crate) fn wait_for_move_above(&self, epoch: u64) {
        let began = wait::until_every(BEGINS_WITHIN, SOON, || {
            let history = self.history.lock().unwrap();
            let newer = |field: &str| history.authority[field].as_u64().is_some_and(|now| now > epoch);
            (newer("tenure") || newer("epoch") && history.authority["phase"] == "Revoking").then_some(())
        });
        assert!(began.is_some(), "no failover began: {}", self.record());
    }

    fn record(&self) -> Value {
        self.history.lock().unwrap().authority.clone()
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
        let mut history = self.history.lock().unwrap();
        let timeline = history.timeline.clone();
        std::mem::replace(&mut *history, History::new(timeline))
    }
}

impl History {
    fn new(timeline: Timeline) -> Self {
        let (authority, planned) = (Value::Null, Value::Null);
        Self { writers: Vec::new(), doubles: Vec::new(), authority, planned, marks: Marks::default(), timeline }
    }

    fn mark(&mut self, thing: &str, object: &impl Resource, change: Change) {
        let revision = object.meta().resource_version.as_deref().and_then(|text| text.parse().ok()).unwrap_or_default();
        let (heard, told) = (self.timeline.now(), format!("revision {revision} {change}"));
        if self.marks.take(thing, revision, heard, change) {
            self.timeline.note_at(heard, told);
        }
    }

    fn double(&mut self, what: String) {
        self.timeline.note(format!("TWO: {what}"));
        self.doubles.push(what);
    }

    fn take_group(&mut self, all: &BTreeMap<String, DynamicObject>) {
        let Some(object) = all.values().next() else { return };
        let status = &object.data["status"];
        self.authority = status["authority"].clone();
        self.planned = status["plannedFailover"]["phase"].clone();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let site = text(&self.authority["site"]);
        let writes = self.authority["phase"] == "Stable" && !site.is_empty();
        if writes && self.writers.last() != Some(&site) {
            self.writers.push(site);
        }
        for site in status["sites"].as_array().into_iter().flatten() {
            let (site, state) = (text(&site["name"]), text(&site["state"]));
            self.mark(&format!("site {site}"), object, Change::Site { site, state });
        }
        let first = object.meta().annotations.as_ref().and_then(|all| all.get(RECORD));
        let Some(record) = first.and_then(|text| serde_json::from_str::<Value>(text).ok()) else { return };
        let (phase, site) = (text(&record["phase"]), text(&record["site"]));
        let proof = text(&record["proof"]["type"]);
        self.mark("proof", object, Change::Proof(proof));
        self.mark("epoch", object, Change::Epoch(record["epoch"].as_u64().unwrap_or_default()));
        self.mark("record", object, Change::Authority { phase, site });
    }

    fn take_dns(&mut self, all: &BTreeMap<String, DynamicObject>) {
        for object in all.values() {
            let target = object.data["spec"]["endpoints"][0]["targets"][0].as_str().unwrap_or_default();
            self.mark("dns", object, Change::Dns(target.to_owned()));
        }
    }

    fn take_endpoints(&mut self, all: &BTreeMap<String, EndpointSlice>) {
        let ready = all
            .values()
            .flat_map(|slice| slice.endpoints.iter())
            .filter(|endpoint| endpoint.conditions.as_ref().and_then(|conditions| conditions.ready) != Some(false));
        let addresses: BTreeSet<&String> = ready.flat_map(|endpoint| endpoint.addresses.iter()).collect();
        if addresses.len() > 1 {
            self.double(format!("endpoints of -primary: {addresses:?}"));
        }
        let Some(slice) = all.values().next() else { return };
        self.mark("endpoints", slice, Change::Endpoints(addresses.into_iter().cloned().collect()));
    }

    fn take_pods(&mut self, all: &BTreeMap<String, Pod>) {
        let label = |pod: &Pod, key: &str| {
            let labels = pod.metadata.labels.as_ref();
            labels.and_then(|labels| labels.get(key)).cloned().unwrap_or_default()
        };
        let is_primary = |pod: &Pod| label(pod, "shipstream.io/role") == "primary";
        let primaries: Vec<&String> = all.iter().filter(|(_, pod)| is_primary(pod)).map(|(name, _)| name).collect();
        if primaries.len() > 1 {
            self.double(format!("pods called primary: {primaries:?}"));
        }
        let is_up = |site: &&&str| all.values().any(|pod| label(pod, "shipstream.io/site") == ***site && is_ready(pod));
        let down = SITES.len() - SITES.iter().filter(is_up).count();
        if let Some(pod) = all.values().next() {
            self.mark("down", pod, Change::Down(down));
        }
        for (name, pod) in all {
            self.mark(&format!("new {name}"), pod, Change::NewPod(label(pod, "shipstream.io/site")));
            let (site, role) = (label(pod, "shipstream.io/site"), label(pod, "shipstream.io/role"));
            self.mark(&format!("pod {name}"), pod, Change::Role { site, role });
        }
    }

    fn take_leases(&mut self, all: &BTreeMap<String, Lease>) {
        for lease in all.values() {
            let holder = lease.spec.as_ref().and_then(|spec| spec.holder_identity.clone()).unwrap_or_default();
            self.mark("leader", lease, Change::Leader(holder));
        }
    }

    fn take_nodes(&mut self, all: &BTreeMap<String, Node>) {
        for (name, node) in all {
            let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
            let on = taints.into_iter().flatten().any(|taint| taint.key == TAINT);
            self.mark(&format!("node {name}"), node, Change::Taint { node: name.clone(), on });
        }
    }
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

async fn client(stage: &Stage) -> Client {
    let file = Kubeconfig::read_from(stage.cluster.kubeconfig()).unwrap();
    let options = KubeConfigOptions { context: stage.cluster.context(), ..KubeConfigOptions::default() };
    Client::try_from(Config::from_custom_kubeconfig(file, &options).await.unwrap()).unwrap()
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
        let mut all: BTreeMap<String, K> = listed.items.iter().map(|it| (it.name_any(), it.clone())).collect();
        show(&all);
        let mut version = listed.metadata.resource_version.unwrap_or_default();
        // One that came to its end goes on where it was, so that every single change is shown.
        while watch(&api, labels, &mut version, &mut all, &mut show).await.is_some() {
            again.tick().await;
        }
    }
}

/// One watch; none: it broke off, and a list has to say what there is.
async fn watch<K>(
    api: &Api<K>,
    labels: &str,
    version: &mut String,
    all: &mut BTreeMap<String, K>,
    show: &mut impl FnMut(&BTreeMap<String, K>),
) -> Option<()>
where
    K: Resource + Clone + DeserializeOwned + std::fmt::Debug,
{
    let params = WatchParams::default().labels(labels).timeout(WATCH_SECONDS);
    let mut events = std::pin::pin!(api.watch(&params, version).await.ok()?);
    while let Some(event) = events.try_next().await.ok()? {
        let newest = match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                let newest = object.resource_version();
                all.insert(object.name_any(), object);
                newest
            }
            WatchEvent::Deleted(object) => {
                all.remove(&object.name_any());
                object.resource_version()
            }
            WatchEvent::Bookmark(mark) => Some(mark.metadata.resource_version),
            WatchEvent::Error(_) => return None,
        };
        *version = newest?;
        show(all);
    }
    Some(())
}
