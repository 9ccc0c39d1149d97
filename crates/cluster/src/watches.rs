//! What the API server shows: groups, and the pods, claims, Deployments and nodes that belong to them.
//!
//! In: watches, one for each kind and each place that is this operator's business. Out: the objects as they were last seen,
//! and a bell for each group. Must not: show a list that is not whole, or forget what it saw because a watch broke off.

use bloodraven_api::keys::{API_GROUP, API_VERSION, FIELD_MANAGER, LABEL_FAILOVER_GROUP, LABEL_MANAGED_BY};
use bloodraven_operator::world::GroupId;
use futures_util::StreamExt;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Node, PersistentVolumeClaim, Pod};
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::watcher::{self, Event};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// A watch is begun anew after so long, also if it seems well: watches can go quiet.
const WATCH_SECONDS: u32 = 30;

/// After a watch that failed: the API server is not asked more often by it.
const AFTER_A_FAILURE: Duration = Duration::from_secs(1);

/// Everything that is watched. Ends with its owner.
pub(crate) struct Watches {
    pub(crate) groups: Arc<Shelf<DynamicObject>>,
    pub(crate) pods: Arc<Shelf<Pod>>,
    pub(crate) claims: Arc<Shelf<PersistentVolumeClaim>>,
    pub(crate) deployments: Arc<Shelf<Deployment>>,
    pub(crate) nodes: Arc<Shelf<Node>>,
    pub(crate) bell: Arc<Bell>,
    _tasks: JoinSet<()>,
}

/// Objects of one kind, as they were last seen, a place each.
pub(crate) struct Shelf<K> {
    places: Mutex<Vec<Listed<K>>>,
}

/// The objects of one place; none: their list is not whole yet.
type Listed<K> = Option<BTreeMap<Key, Arc<K>>>;

/// Whom an event concerns.
#[derive(Debug, PartialEq, Eq)]
enum Touched {
    These(Vec<Key>),
    /// A list is whole: also one that is empty is news to everyone.
    All,
}

/// Where an object is found: those of one group stand side by side.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    namespace: String,
    group: String,
    name: String,
}

/// Rings when something may have changed.
pub(crate) struct Bell {
    groups: watch::Sender<u64>,
    each: Mutex<BTreeMap<GroupId, watch::Sender<u64>>>,
}

impl Watches {
    /// Watches these namespaces, all of them if none is named. Needs a running tokio.
    pub(crate) fn begin(client: &Client, namespaces: &[String]) -> Self {
        let places: Vec<Option<&str>> = if namespaces.is_empty() {
            vec![None]
        } else {
            namespaces.iter().map(|name| Some(name.as_str())).collect()
        };
        let bell = Arc::new(Bell { groups: watch::Sender::new(0), each: Mutex::default() });
        let mut tasks = JoinSet::new();
        let kind = GroupVersionKind::gvk(API_GROUP, API_VERSION, crate::group::KIND);
        let kind = ApiResource::from_gvk_with_plural(&kind, crate::group::PLURAL);
        let all = watcher::Config::default().timeout(WATCH_SECONDS);
        let ours = all.clone().labels(&format!("{LABEL_MANAGED_BY}={FIELD_MANAGER}"));
        let (groups, pods, claims, deployments) =
            (Shelf::new(places.len()), Shelf::new(places.len()), Shelf::new(places.len()), Shelf::new(places.len()));
        let nodes = Shelf::new(1);
        for (place, namespace) in places.iter().enumerate() {
            let api = match namespace {
                Some(name) => Api::namespaced_with(client.clone(), name, &kind),
                None => Api::all_with(client.clone(), &kind),
            };
            tasks.spawn(follow(api, all.clone(), Arc::clone(&groups), place, Arc::clone(&bell), true));
            tasks.spawn(follow(
                scoped(client, *namespace),
                ours.clone(),
                Arc::clone(&pods),
                place,
                Arc::clone(&bell),
                false,
            ));
            tasks.spawn(follow(
                scoped(client, *namespace),
                ours.clone(),
                Arc::clone(&claims),
                place,
                Arc::clone(&bell),
                false,
            ));
            tasks.spawn(follow(
                scoped(client, *namespace),
                ours.clone(),
                Arc::clone(&deployments),
                place,
                Arc::clone(&bell),
                false,
            ));
        }
        tasks.spawn(follow(Api::all(client.clone()), all, Arc::clone(&nodes), 0, Arc::clone(&bell), false));
        Self { groups, pods, claims, deployments, nodes, bell, _tasks: tasks }
    }
}

fn scoped<K>(client: &Client, namespace: Option<&str>) -> Api<K>
where
    K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
{
    match namespace {
        Some(name) => Api::namespaced(client.clone(), name),
        None => Api::all(client.clone()),
    }
}

/// Runs for ever: what is seen goes on the shelf, and the bell rings.
async fn follow<K>(
    api: Api<K>,
    config: watcher::Config,
    shelf: Arc<Shelf<K>>,
    place: usize,
    bell: Arc<Bell>,
    are_groups: bool,
) where
    K: Resource + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
    K::DynamicType: Clone,
{
    let url = api.resource_url().to_owned();
    let mut events = std::pin::pin!(watcher::watcher(api, config));
    let mut listed = BTreeMap::new();
    // Said once: what goes on failing goes on being the same news.
    let mut failing = false;
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => {
                failing = false;
                match shelf.take(place, &mut listed, event) {
                    Touched::These(keys) => bell.ring(&keys, are_groups),
                    Touched::All => bell.ring_all(),
                }
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

impl<K: Resource> Shelf<K> {
    fn new(places: usize) -> Arc<Self> {
        Arc::new(Self { places: Mutex::new((0..places).map(|_| None).collect()) })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Listed<K>>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, place: usize, listed: &mut BTreeMap<Key, Arc<K>>, event: Event<K>) -> Touched {
        let mut places = self.lock();
        let Some(known) = places.get_mut(place) else { return Touched::These(Vec::new()) };
        let keys = match event {
            Event::Init => {
                listed.clear();
                Vec::new()
            }
            Event::InitApply(object) => {
                listed.insert(Key::of(&object), Arc::new(slim(object)));
                Vec::new()
            }
            Event::InitDone => {
                *known = Some(std::mem::take(listed));
                return Touched::All;
            }
            Event::Apply(object) => {
                let key = Key::of(&object);
                known.get_or_insert_default().insert(key.clone(), Arc::new(slim(object)));
                vec![key]
            }
            Event::Delete(object) => {
                let key = Key::of(&object);
                known.get_or_insert_default().remove(&key);
                vec![key]
            }
        };
        Touched::These(keys)
    }

    /// Every object; none: some list is not whole yet.
    pub(crate) fn all(&self) -> Option<Vec<Arc<K>>> {
        let places = self.lock();
        let mut all = Vec::new();
        for place in places.iter() {
            all.extend(place.as_ref()?.values().cloned());
        }
        Some(all)
    }

    /// The objects of one group; none: some list is not whole yet.
    pub(crate) fn of(&self, group: &GroupId) -> Option<Vec<Arc<K>>> {
        let first = Key { namespace: group.namespace.to_string(), group: group.name.to_string(), name: String::new() };
        let belongs = |key: &Key| key.namespace == first.namespace && key.group == first.group;
        let places = self.lock();
        let mut found = Vec::new();
        for place in places.iter() {
            let from = place.as_ref()?.range(first.clone()..);
            found.extend(from.take_while(|(key, _)| belongs(key)).map(|(_, object)| Arc::clone(object)));
        }
        Some(found)
    }
}

/// Who wrote which field when is half of an object, and nobody here asks.
fn slim<K: Resource>(mut object: K) -> K {
    object.meta_mut().managed_fields = None;
    object
}

impl Key {
    /// A group's own object belongs to itself; everything else to the group that its label names.
    fn of<K: Resource>(object: &K) -> Self {
        let meta = object.meta();
        let name = meta.name.clone().unwrap_or_default();
        let label = meta.labels.as_ref().and_then(|labels| labels.get(LABEL_FAILOVER_GROUP)).cloned();
        let group = label.unwrap_or_else(|| name.clone());
        Self { namespace: meta.namespace.clone().unwrap_or_default(), group, name }
    }
}

impl Bell {
    fn ring(&self, touched: &[Key], are_groups: bool) {
        if are_groups {
            self.groups.send_modify(|count| *count += 1);
        }
        let each = self.lock();
        for key in touched {
            if let Some(bell) = each.get(&GroupId::new(&key.namespace, &key.group)) {
                bell.send_modify(|count| *count += 1);
            }
        }
    }

    fn ring_all(&self) {
        self.groups.send_modify(|count| *count += 1);
        for bell in self.lock().values() {
            bell.send_modify(|count| *count += 1);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<GroupId, watch::Sender<u64>>> {
        self.each.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Rings when a group comes, goes or changes.
    pub(crate) fn of_groups(&self) -> watch::Receiver<u64> {
        self.groups.subscribe()
    }

    /// Rings when something of that group changes. Bells that nobody listens to any more are taken down.
    pub(crate) fn of(&self, group: &GroupId) -> watch::Receiver<u64> {
        let mut each = self.lock();
        each.retain(|id, bell| id == group || bell.receiver_count() > 0);
        each.entry(group.clone()).or_insert_with(|| watch::Sender::new(0)).subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::core::ObjectMeta;

    fn pod(namespace: &str, group: &str, name: &str) -> Pod {
        let labels = Some(BTreeMap::from([(LABEL_FAILOVER_GROUP.to_owned(), group.to_owned())]));
        let (namespace, name) = (Some(namespace.to_owned()), Some(name.to_owned()));
        Pod { metadata: ObjectMeta { namespace, name, labels, ..ObjectMeta::default() }, ..Pod::default() }
    }

    fn names(found: Option<Vec<Arc<Pod>>>) -> Option<Vec<String>> {
        found.map(|pods| pods.iter().filter_map(|pod| pod.metadata.name.clone()).collect())
    }

    #[test]
    fn a_list_shows_once_it_is_whole_and_stays_while_the_next_is_read() {
        let (shelf, mut listed) = (Shelf::<Pod>::new(1), BTreeMap::new());
        let mut take = |event| shelf.take(0, &mut listed, event);
        let orders = GroupId::new("shop", "orders");
        take(Event::Init);
        take(Event::InitApply(pod("shop", "orders", "a")));
        assert_eq!(names(shelf.of(&orders)), None, "not whole");
        take(Event::InitApply(pod("shop", "other", "x")));
        assert_eq!(take(Event::InitDone), Touched::All);
        assert_eq!(names(shelf.of(&orders)), Some(vec!["a".to_owned()]));
        // the watch broke off and is begun again
        take(Event::Init);
        assert_eq!(names(shelf.of(&orders)), Some(vec!["a".to_owned()]), "what was seen stays");
        take(Event::InitApply(pod("shop", "orders", "b")));
        assert_eq!(take(Event::InitDone), Touched::All, "what is gone is news as well");
        assert_eq!(names(shelf.of(&orders)), Some(vec!["b".to_owned()]));
        take(Event::Delete(pod("shop", "orders", "b")));
        assert_eq!(names(shelf.of(&orders)), Some(Vec::new()));
    }

    #[test]
    fn a_list_of_several_places_is_whole_when_each_is() {
        let (shelf, mut listed) = (Shelf::<Pod>::new(2), BTreeMap::new());
        shelf.take(0, &mut listed, Event::InitDone);
        assert_eq!(names(shelf.all()), None);
        shelf.take(1, &mut listed, Event::InitDone);
        assert_eq!(names(shelf.all()), Some(Vec::new()));
    }

    #[test]
    fn only_the_bell_of_that_group_rings() {
        let bell = Bell { groups: watch::Sender::new(0), each: Mutex::default() };
        let (orders, other) = (bell.of(&GroupId::new("shop", "orders")), bell.of(&GroupId::new("shop", "other")));
        bell.ring(&[Key::of(&pod("shop", "orders", "a"))], false);
        assert!(orders.has_changed().expect("open") && !other.has_changed().expect("open"));
        assert!(!bell.of_groups().has_changed().expect("open"));
        drop(other);
        bell.of(&GroupId::new("shop", "orders"));
        assert_eq!(bell.lock().len(), 1, "nobody listens to the other");
    }
}
