//! What the API server shows: groups, and the objects, pods and nodes that belong to them.
//!
//! In: watches, one for each kind and each place that is this operator's business. Out: a shelf for each kind, with as much
//! of each object as anybody here asks for, and bells. Must not: hold more than that; there may be thousands.

use crate::bell::{About, Bell};
use crate::seen::{self, SeenClaim, SeenDeployment, SeenGroup, SeenPod};
use crate::shelf::{Place, Shelf};
use bloodraven_api::keys::{API_GROUP, API_VERSION, FIELD_MANAGER, LABEL_MANAGED_BY};
use futures_util::{Stream, StreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Node, Service};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::{self, Event};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// A watch is begun anew after so long, also if it seems well: watches can go quiet.
const WATCH_SECONDS: u32 = 30;

/// A list comes in pieces of so many objects: each piece is whole in memory once, with everything that nobody keeps.
const PIECE: u32 = 50;

/// After a watch that failed: the API server is not asked more often by it.
const AFTER_A_FAILURE: Duration = Duration::from_secs(1);

/// Everything that is watched. Ends with its owner.
pub(crate) struct Watches {
    pub(crate) groups: Arc<Shelf<SeenGroup>>,
    pub(crate) pods: Arc<Shelf<SeenPod>>,
    pub(crate) claims: Arc<Shelf<SeenClaim>>,
    pub(crate) deployments: Arc<Shelf<SeenDeployment>>,
    pub(crate) nodes: Arc<Shelf<Node>>,
    pub(crate) services: Arc<Shelf<Version>>,
    pub(crate) config_maps: Arc<Shelf<Version>>,
    pub(crate) budgets: Arc<Shelf<Version>>,
    pub(crate) bell: Arc<Bell>,
    _tasks: JoinSet<()>,
}

/// `metadata.resourceVersion`: all that is kept of objects that are only kept as they were made.
pub(crate) type Version = Box<str>;

/// Where one namespace's objects are found, or all of them.
struct Around<'a> {
    client: &'a Client,
    namespace: Option<&'a str>,
    /// Which place of each shelf that is.
    place: usize,
    bell: &'a Arc<Bell>,
    /// Objects that are ours.
    ours: watcher::Config,
}

impl Watches {
    /// Watches these namespaces, all of them if none is named. Needs a running tokio.
    pub(crate) fn begin(client: &Client, namespaces: &[String]) -> Self {
        let places: Vec<Option<&str>> = if namespaces.is_empty() {
            vec![None]
        } else {
            namespaces.iter().map(|name| Some(name.as_str())).collect()
        };
        let bell = Arc::new(Bell::new());
        let all = watcher::Config::default().timeout(WATCH_SECONDS).page_size(PIECE);
        let ours = all.clone().labels(&format!("{LABEL_MANAGED_BY}={FIELD_MANAGER}"));
        let count = places.len();
        let (groups, pods, claims, deployments) =
            (Shelf::for_groups(count), Shelf::new(count), Shelf::new(count), Shelf::new(count));
        let (services, config_maps, budgets) = (Shelf::new(count), Shelf::new(count), Shelf::new(count));
        let nodes = Shelf::new(1);
        let mut tasks = JoinSet::new();
        for (place, namespace) in places.into_iter().enumerate() {
            let around = Around { client, namespace, place, bell: &bell, ours: ours.clone() };
            around.follow_groups(&groups, &all, &mut tasks);
            around.follow(&pods, About::Facts, seen::pod, &mut tasks);
            around.follow(&claims, About::Objects, seen::claim, &mut tasks);
            around.follow(&deployments, About::Objects, seen::deployment, &mut tasks);
            around.follow_versions::<Service>(&services, &mut tasks);
            around.follow_versions::<ConfigMap>(&config_maps, &mut tasks);
            around.follow_versions::<PodDisruptionBudget>(&budgets, &mut tasks);
        }
        let api = Api::<Node>::all(client.clone());
        let url = api.resource_url().to_owned();
        let events = watcher::watcher(api, all);
        tasks.spawn(follow(url, events, nodes.place(0), Arc::clone(&bell), About::Facts, seen::node));
        Self { groups, pods, claims, deployments, nodes, services, config_maps, budgets, bell, _tasks: tasks }
    }
}

impl Watches {
    /// The kinds whose lists are not whole yet.
    pub(crate) fn unseen(&self) -> Vec<&'static str> {
        let lists = [
            ("groups", self.groups.is_whole()),
            ("pods", self.pods.is_whole()),
            ("volume claims", self.claims.is_whole()),
            ("deployments", self.deployments.is_whole()),
            ("nodes", self.nodes.is_whole()),
            ("services", self.services.is_whole()),
            ("config maps", self.config_maps.is_whole()),
            ("disruption budgets", self.budgets.is_whole()),
        ];
        lists.into_iter().filter(|(_, whole)| !whole).map(|(name, _)| name).collect()
    }
}

impl Around<'_> {
    fn follow_groups(&self, onto: &Arc<Shelf<SeenGroup>>, config: &watcher::Config, tasks: &mut JoinSet<()>) {
        let kind = GroupVersionKind::gvk(API_GROUP, API_VERSION, crate::group::KIND);
        let kind = ApiResource::from_gvk_with_plural(&kind, crate::group::PLURAL);
        let api: Api<DynamicObject> = match self.namespace {
            Some(name) => Api::namespaced_with(self.client.clone(), name, &kind),
            None => Api::all_with(self.client.clone(), &kind),
        };
        let url = api.resource_url().to_owned();
        let events = watcher::watcher(api, config.clone());
        tasks.spawn(follow(url, events, onto.place(self.place), Arc::clone(self.bell), About::Groups, seen::group));
    }

    fn follow<K, T>(&self, onto: &Arc<Shelf<T>>, about: About, keep: fn(K) -> T, tasks: &mut JoinSet<()>)
    where
        T: Send + Sync + 'static,
        K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
        K: Clone + Debug + DeserializeOwned + Send + Sync + 'static,
    {
        let api: Api<K> = self.api();
        let url = api.resource_url().to_owned();
        let events = watcher::watcher(api, self.ours.clone());
        tasks.spawn(follow(url, events, onto.place(self.place), Arc::clone(self.bell), about, keep));
    }

    fn follow_versions<K>(&self, onto: &Arc<Shelf<Version>>, tasks: &mut JoinSet<()>)
    where
        K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
        K: Clone + Debug + DeserializeOwned + Send + Sync + 'static,
    {
        // Of these the API server sends nothing but the metadata.
        let api: Api<PartialObjectMeta<K>> = self.api();
        let url = api.resource_url().to_owned();
        let events = watcher::watcher(api, self.ours.clone());
        let (place, bell) = (onto.place(self.place), Arc::clone(self.bell));
        tasks.spawn(follow(url, events, place, bell, About::Objects, |it: PartialObjectMeta<K>| {
            it.metadata.resource_version.unwrap_or_default().into()
        }));
    }

    fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
    {
        match self.namespace {
            Some(name) => Api::namespaced(self.client.clone(), name),
            None => Api::all(self.client.clone()),
        }
    }
}

/// Runs for ever: what is seen goes on the shelf, and bells ring.
async fn follow<K: Resource, T>(
    url: String,
    events: impl Stream<Item = watcher::Result<Event<K>>>,
    mut place: Place<T>,
    bell: Arc<Bell>,
    about: About,
    keep: impl Fn(K) -> T,
) {
    let mut events = std::pin::pin!(events);
    // Said once: what goes on failing goes on being the same news.
    let mut failing = false;
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => {
                failing = false;
                bell.ring(&place.take(event, &keep), about);
            }
            Err(error) => {
                if !failing {
                    tracing::warn!(url, error = %error, "a watch broke off; it is begun again");
                }
                failing = true;
                rest(AFTER_A_FAILURE).await;
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a pause between two attempts is meant to be time")]
async fn rest(time: Duration) {
    tokio::time::sleep(time).await;
}
