//! Who is who: sites, instances, members.
//!
//! A *site* is a place for a MySQL server. An *instance* is one life of a site: the pod's UID and the id of the
//! sidecar's store. Authority is given to instances, never to places, because a place can hold two lives at once (a
//! force-deleted pod that still runs beside its successor).

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// The name of a site, as declared.
#[derive(Clone, Eq, Hash)]
#[expect(clippy::derived_hash_with_manual_eq, reason = "equal texts are equal names, and hash alike")]
pub struct Site(Arc<str>);

/// One life of a site.
#[derive(Clone, Eq, Hash)]
#[expect(clippy::derived_hash_with_manual_eq, reason = "equal texts are equal names, and hash alike")]
pub struct Instance {
    /// The pod's UID (local world: the supervisor's start id). A container restart keeps it.
    pub pod: Arc<str>,
    /// The random id made with the sidecar's store. An emptied store is a new one.
    pub store: Arc<str>,
}

/// A site together with the instance that is meant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Member {
    /// The place.
    pub site: Site,
    /// The life.
    pub instance: Instance,
}

/// By their texts. Names are compared all the time, and nearly all of those that are equal are the same text. Names are
/// short and mostly differ early: byte by byte is done before a call to the system's comparison has begun.
fn compare(one: &Arc<str>, other: &Arc<str>) -> Ordering {
    if Arc::ptr_eq(one, other) { Ordering::Equal } else { one.bytes().cmp(other.bytes()) }
}

fn is_same(one: &Arc<str>, other: &Arc<str>) -> bool {
    Arc::ptr_eq(one, other) || (one.len() == other.len() && one.bytes().eq(other.bytes()))
}

impl PartialEq for Site {
    fn eq(&self, other: &Self) -> bool {
        is_same(&self.0, &other.0)
    }
}

impl PartialOrd for Site {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Site {
    fn cmp(&self, other: &Self) -> Ordering {
        compare(&self.0, &other.0)
    }
}

impl PartialEq for Instance {
    fn eq(&self, other: &Self) -> bool {
        is_same(&self.pod, &other.pod) && is_same(&self.store, &other.store)
    }
}

impl PartialOrd for Instance {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Instance {
    fn cmp(&self, other: &Self) -> Ordering {
        compare(&self.pod, &other.pod).then_with(|| compare(&self.store, &other.store))
    }
}

impl Site {
    /// A site of that name; names are checked where specs are read.
    pub fn new(name: &str) -> Self {
        Self(name.into())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Instance {
    /// The instance of that pod and store.
    pub fn new(pod: &str, store: &str) -> Self {
        Self { pod: pod.into(), store: store.into() }
    }

    /// Reads the printed form, `<pod UID>/<store id>`.
    pub fn parse(text: &str) -> Option<Self> {
        let (pod, store) = text.split_once('/')?;
        (!pod.is_empty() && !store.is_empty() && !store.contains('/')).then(|| Self::new(pod, store))
    }
}

impl Member {
    /// That life of that site.
    pub fn new(site: &Site, instance: &Instance) -> Self {
        Self { site: site.clone(), instance: instance.clone() }
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.pod, self.store)
    }
}

impl fmt::Debug for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.site, self.instance)
    }
}
