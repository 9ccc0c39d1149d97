//! Objects of one kind, as watches last showed them.
//!
//! In: events of a watch for each place. Out: what there is, of all groups or of one. Must not: show a list that is not
//! whole, or forget what it saw because a watch broke off.

use bloodraven_api::keys::LABEL_FAILOVER_GROUP;
use bloodraven_operator::world::GroupId;
use kube::Resource;
use kube::runtime::watcher::Event;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What is kept of objects of one kind, a place each.
pub(crate) struct Shelf<T> {
    places: Mutex<Vec<Listed<T>>>,
    /// They are groups themselves, whatever somebody labels them with.
    holds_groups: bool,
}

/// The objects of one place; none: their list is not whole yet.
type Listed<T> = Option<BTreeMap<Key, Arc<T>>>;

/// Whom an event concerns.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Touched {
    Nobody,
    One(Key),
    /// A list is whole: also one that is empty is news to everyone.
    All,
}

/// Where an object is found: those of one group stand side by side.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) namespace: Box<str>,
    pub(crate) group: Box<str>,
    pub(crate) name: Box<str>,
}

/// One place of a shelf, and the list that is being read for it.
pub(crate) struct Place<T> {
    shelf: Arc<Shelf<T>>,
    number: usize,
    listed: BTreeMap<Key, Arc<T>>,
}

impl<T> Shelf<T> {
    pub(crate) fn new(places: usize) -> Arc<Self> {
        Self::with(places, false)
    }

    /// One for the groups' own objects.
    pub(crate) fn for_groups(places: usize) -> Arc<Self> {
        Self::with(places, true)
    }

    fn with(places: usize, holds_groups: bool) -> Arc<Self> {
        Arc::new(Self { places: Mutex::new((0..places).map(|_| None).collect()), holds_groups })
    }

    pub(crate) fn place(self: &Arc<Self>, number: usize) -> Place<T> {
        Place { shelf: Arc::clone(self), number, listed: BTreeMap::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Listed<T>>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether every place has been listed.
    pub(crate) fn is_whole(&self) -> bool {
        self.lock().iter().all(Option::is_some)
    }

    /// Every object; none: some list is not whole yet.
    pub(crate) fn all(&self) -> Option<Vec<Arc<T>>> {
        Some(self.all_with(|_| ())?.into_iter().map(|((), object)| object).collect())
    }

    /// Every object, with something of where it is found; none: some list is not whole yet.
    pub(crate) fn all_with<N>(&self, named: impl Fn(&Key) -> N) -> Option<Vec<(N, Arc<T>)>> {
        let places = self.lock();
        let mut all = Vec::new();
        for place in places.iter() {
            all.extend(place.as_ref()?.iter().map(|(key, object)| (named(key), Arc::clone(object))));
        }
        Some(all)
    }

    /// The objects of one group; none: some list is not whole yet.
    pub(crate) fn of(&self, group: &GroupId) -> Option<Vec<Arc<T>>> {
        let first = Key::new(group, "");
        let belongs = |key: &Key| key.namespace == first.namespace && key.group == first.group;
        let places = self.lock();
        let mut found = Vec::new();
        for place in places.iter() {
            let from = place.as_ref()?.range(first.clone()..);
            found.extend(from.take_while(|(key, _)| belongs(key)).map(|(_, object)| Arc::clone(object)));
        }
        Some(found)
    }

    /// That one object of a group; none: it is not there, or not seen yet.
    pub(crate) fn one(&self, group: &GroupId, name: &str) -> Option<Arc<T>> {
        let key = Key::new(group, name);
        self.lock().iter().flatten().find_map(|place| place.get(&key).cloned())
    }
}

impl<T> Place<T> {
    /// What a watch shows; `keep`: as much of it as anybody here asks for.
    pub(crate) fn take<K: Resource>(&mut self, event: Event<K>, keep: impl Fn(K) -> T) -> Touched {
        let key_of = |object: &K| if self.shelf.holds_groups { Key::of_group(object) } else { Key::of(object) };
        let mut places = self.shelf.lock();
        let Some(known) = places.get_mut(self.number) else { return Touched::Nobody };
        match event {
            Event::Init => {
                self.listed.clear();
                Touched::Nobody
            }
            Event::InitApply(object) => {
                self.listed.insert(key_of(&object), Arc::new(keep(object)));
                Touched::Nobody
            }
            Event::InitDone => {
                *known = Some(std::mem::take(&mut self.listed));
                Touched::All
            }
            Event::Apply(object) => {
                let key = key_of(&object);
                known.get_or_insert_default().insert(key.clone(), Arc::new(keep(object)));
                Touched::One(key)
            }
            Event::Delete(object) => {
                let key = key_of(&object);
                known.get_or_insert_default().remove(&key);
                Touched::One(key)
            }
        }
    }
}

impl Key {
    fn new(group: &GroupId, name: &str) -> Self {
        Self { namespace: (&*group.namespace).into(), group: (&*group.name).into(), name: name.into() }
    }

    /// A group's own object belongs to itself.
    fn of_group<K: Resource>(object: &K) -> Self {
        let meta = object.meta();
        let (namespace, name) =
            (meta.namespace.as_deref().unwrap_or_default(), meta.name.as_deref().unwrap_or_default());
        Self { namespace: namespace.into(), group: name.into(), name: name.into() }
    }

    /// Everything else belongs to the group that its label names.
    fn of<K: Resource>(object: &K) -> Self {
        let own = Self::of_group(object);
        let label = object.meta().labels.as_ref().and_then(|labels| labels.get(LABEL_FAILOVER_GROUP));
        Self { group: label.map_or(own.group, |label| label.as_str().into()), ..own }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::Pod;
    use kube::core::ObjectMeta;

    fn pod(namespace: &str, group: &str, name: &str) -> Pod {
        let labels = Some(BTreeMap::from([(LABEL_FAILOVER_GROUP.to_owned(), group.to_owned())]));
        let (namespace, name) = (Some(namespace.to_owned()), Some(name.to_owned()));
        Pod { metadata: ObjectMeta { namespace, name, labels, ..ObjectMeta::default() }, ..Pod::default() }
    }

    fn name(pod: Pod) -> String {
        pod.metadata.name.unwrap_or_default()
    }

    fn names(found: Option<Vec<Arc<String>>>) -> Option<Vec<String>> {
        found.map(|names| names.iter().map(|name| String::clone(name)).collect())
    }

    #[test]
    fn a_group_is_found_under_its_own_name_whatever_label_somebody_gave_it() {
        let shelf = Shelf::for_groups(1);
        shelf.place(0).take(Event::Apply(pod("shop", "ledger", "orders")), name);
        assert!(shelf.one(&GroupId::new("shop", "orders"), "orders").is_some());
        assert!(shelf.one(&GroupId::new("shop", "ledger"), "orders").is_none());
    }

    #[test]
    fn a_list_shows_once_it_is_whole_and_stays_while_the_next_is_read() {
        let shelf = Shelf::new(1);
        let mut place = shelf.place(0);
        let mut take = |event| place.take(event, name);
        let orders = GroupId::new("shop", "orders");
        take(Event::Init);
        take(Event::InitApply(pod("shop", "orders", "a")));
        assert_eq!(names(shelf.of(&orders)), None, "not whole");
        take(Event::InitApply(pod("shop", "other", "x")));
        assert_eq!(take(Event::InitDone), Touched::All);
        assert_eq!(names(shelf.of(&orders)), Some(vec!["a".to_owned()]));
        assert_eq!((shelf.one(&orders, "a").is_some(), shelf.one(&orders, "x")), (true, None));
        // the watch broke off and is begun again
        take(Event::Init);
        assert_eq!(names(shelf.of(&orders)), Some(vec!["a".to_owned()]), "what was seen stays");
        take(Event::InitApply(pod("shop", "orders", "b")));
        assert_eq!(take(Event::InitDone), Touched::All, "what is gone is news as well");
        assert_eq!(names(shelf.of(&orders)), Some(vec!["b".to_owned()]));
        let gone = take(Event::Delete(pod("shop", "orders", "b")));
        assert_eq!(gone, Touched::One(Key::new(&orders, "b")));
        assert_eq!(names(shelf.of(&orders)), Some(Vec::new()));
    }

    #[test]
    fn a_list_of_several_places_is_whole_when_each_is() {
        let shelf = Shelf::<String>::new(2);
        shelf.place(0).take(Event::<Pod>::InitDone, name);
        assert_eq!((names(shelf.all()), shelf.is_whole()), (None, false));
        shelf.place(1).take(Event::<Pod>::InitDone, name);
        assert_eq!((names(shelf.all()), shelf.is_whole()), (Some(Vec::new()), true));
    }
}
