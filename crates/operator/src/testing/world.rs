//! A world in memory.

use crate::world::{
    Account, Addresses, Event, Glimpse, GroupId, HostPort, Look, MissingSecret, Refused, Secrets, Text, Unavailable,
    Undismissed, Unfurnished, Version, World,
};
use bloodraven_api::MysqlFailoverGroup;
use bloodraven_blueprint::objects::Taken;
use bloodraven_brain::group::Outward;
use bloodraven_brain::group::input::{Estate, PodFacts, Rollout, Shown};
use bloodraven_brain::lease::{Acquired, Lease, NewLease};
use bloodraven_brain::name::Site;
use bloodraven_brain::time::{Boot, Now, Wall};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::watch;
use tokio::time::Instant;

/// What a world can refuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Refusing {
    /// Annotations are denied.
    Annotations,
    /// The status is denied.
    Status,
    /// Nobody hears whether the status was stored; it was.
    StatusAnswer,
    /// Nobody hears whether the annotations were stored; they were.
    AnnotationsAnswer,
    /// The lease is not written.
    Lease,
    /// Objects are not read: the call hangs.
    Reads,
    /// Nothing is shown: the call hangs.
    Show,
    /// The spec that was kept is not read.
    KeptSpec,
    /// Whoever lists the groups panics.
    ListPanics,
    /// Whoever reads or writes the lease panics.
    LeasePanics,
}

/// See above.
pub(crate) struct FakeWorld {
    began: Instant,
    /// Added to the clock.
    pub(crate) ahead: AtomicU64,
    changes: watch::Sender<u64>,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    version: u64,
    objects: BTreeMap<GroupId, Value>,
    lease: Option<Lease>,
    places: BTreeMap<Site, SocketAddr>,
    pods: Vec<PodFacts>,
    operators: BTreeMap<String, String>,
    refusing: BTreeSet<Refusing>,
    /// How often the annotations and the status were written to keep something.
    saves: (usize, usize),
    password: String,
    shown: Option<Outward>,
    events: Vec<Event>,
    taken: BTreeMap<GroupId, Taken>,
    pub(crate) trouble: Trouble,
}

/// What stands in the way at the world's end; none: nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trouble {
    pub(crate) secrets: Option<MissingSecret>,
    pub(crate) objects: Option<Unfurnished>,
    pub(crate) dns: Option<String>,
    pub(crate) taints: Option<String>,
    pub(crate) dismissal: Option<Undismissed>,
    pub(crate) no_replication: bool,
    pub(crate) unseen: Option<String>,
}

impl FakeWorld {
    pub(crate) fn new() -> Self {
        let inner = Inner { password: "one".to_owned(), version: 1, ..Inner::default() };
        Self {
            began: Instant::now(),
            ahead: AtomicU64::new(1_000_000),
            changes: watch::Sender::new(0),
            inner: Mutex::new(inner),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("nobody panicked here")
    }

    fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    /// Stores an object, or changes it.
    pub(crate) fn put(&self, id: &GroupId, object: Value) {
        self.edit(id, |stored| *stored = object);
    }

    /// In one go: what somebody else wrote a moment ago is not lost.
    pub(crate) fn edit(&self, id: &GroupId, edit: impl FnOnce(&mut Value)) {
        let mut inner = self.lock();
        inner.version += 1;
        let version = json!(inner.version.to_string());
        let object = inner.objects.entry(id.clone()).or_default();
        edit(object);
        object["metadata"]["resourceVersion"] = version;
        drop(inner);
        self.changed();
    }

    pub(crate) fn object(&self, id: &GroupId) -> Value {
        self.lock().objects.get(id).cloned().unwrap_or_default()
    }

    /// A site's server and sidecar, and its pod.
    pub(crate) fn place(&self, site: &str, sidecar: SocketAddr) {
        let mut inner = self.lock();
        inner.places.insert(Site::new(site), sidecar);
        inner.pods.push(PodFacts {
            site: Site::new(site),
            uid: format!("pod-{site}").into(),
            started: true,
            all_terminated: false,
            deleting: false,
            finished: false,
            collected: false,
            node_vouches: true,
            finalizer: true,
        });
    }

    pub(crate) fn end_pod(&self, site: &str) {
        for pod in self.lock().pods.iter_mut().filter(|pod| pod.site.as_str() == site) {
            (pod.all_terminated, pod.deleting) = (true, true);
        }
        self.changed();
    }

    /// The site's pod waits for a node, and its rollout for the pod.
    pub(crate) fn unscheduled(&self, site: &str) {
        for pod in self.lock().pods.iter_mut().filter(|pod| pod.site.as_str() == site) {
            (pod.started, pod.node_vouches) = (false, false);
        }
        self.changed();
    }

    pub(crate) fn operator_at(&self, identity: &str, address: &str) {
        self.lock().operators.insert(identity.to_owned(), address.to_owned());
    }

    pub(crate) fn refuse(&self, what: Refusing) {
        self.lock().refusing.insert(what);
    }

    pub(crate) fn allow(&self, what: Refusing) {
        self.lock().refusing.remove(&what);
    }

    fn refuses(&self, what: Refusing) -> bool {
        self.lock().refusing.contains(&what)
    }

    /// How often annotations and a status were written to keep something, and not to show it.
    pub(crate) fn saves(&self) -> (usize, usize) {
        self.lock().saves
    }

    pub(crate) fn password(&self, password: &str) {
        self.lock().password = password.to_owned();
    }

    /// Changes what stands in the way.
    pub(crate) fn trouble(&self, change: impl FnOnce(&mut Trouble)) {
        change(&mut self.lock().trouble);
        self.changed();
    }

    /// Everything that people were told so far.
    pub(crate) fn events(&self) -> Vec<Event> {
        self.lock().events.clone()
    }

    /// The spec that was kept.
    pub(crate) fn taken(&self, id: &GroupId) -> Option<Taken> {
        self.lock().taken.get(id).cloned()
    }

    pub(crate) fn holder(&self) -> Option<String> {
        self.lock().lease.as_ref()?.holder.as_ref().map(ToString::to_string)
    }

    pub(crate) fn shown(&self) -> Option<Outward> {
        self.lock().shown.clone()
    }

    fn write(&self, id: &GroupId, version: &Version, change: impl FnOnce(&mut Value)) -> Result<Version, Refused> {
        let mut inner = self.lock();
        let next = inner.version + 1;
        let Some(object) = inner.objects.get_mut(id) else { return Err(Refused::Conflict) };
        if object["metadata"]["resourceVersion"] != json!(&*version.0) {
            return Err(Refused::Conflict);
        }
        change(object);
        object["metadata"]["resourceVersion"] = json!(next.to_string());
        inner.version = next;
        drop(inner);
        self.changed();
        Ok(Version(next.to_string().into()))
    }

    fn write_lease(&self, version: Option<&str>, new: &NewLease) -> Result<Lease, Refused> {
        assert!(!self.refuses(Refusing::LeasePanics), "a test");
        if self.refuses(Refusing::Lease) {
            return Err(Refused::Unknown { because: "a test".to_owned() });
        }
        let mut inner = self.lock();
        if inner.lease.as_ref().map(|lease| &*lease.version) != version {
            return Err(Refused::Conflict);
        }
        inner.version += 1;
        let acquired = match &new.acquired {
            Acquired::At(at) => Some(at.to_string().into()),
            Acquired::AsRead(text) => text.clone(),
        };
        let lease = Lease {
            version: inner.version.to_string().into(),
            holder: new.holder.clone(),
            duration: Some(new.duration),
            acquired,
            renewed: Some(new.renewed.0.to_string().into()),
            transitions: new.transitions,
        };
        inner.lease = Some(lease.clone());
        Ok(lease)
    }
}

impl World for FakeWorld {
    fn now(&self) -> Now {
        let millis = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let ahead = self.ahead.load(Ordering::SeqCst);
        let wall = 1_800_000_000_000 + i64::try_from(millis + ahead).unwrap_or(0);
        Now { boot: Boot(ahead + millis), wall: Wall(wall) }
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    async fn read_lease(&self) -> Result<Option<Lease>, Unavailable> {
        assert!(!self.refuses(Refusing::LeasePanics), "a test");
        Ok(self.lock().lease.clone())
    }

    async fn create_lease(&self, new: &NewLease) -> Result<Lease, Refused> {
        self.write_lease(None, new)
    }

    async fn update_lease(&self, version: &str, new: &NewLease) -> Result<Lease, Refused> {
        self.write_lease(Some(version), new)
    }

    async fn operator_address(&self, identity: &str) -> Option<String> {
        self.lock().operators.get(identity).cloned()
    }

    async fn groups(&self) -> Result<Vec<Glimpse>, Unavailable> {
        assert!(!self.refuses(Refusing::ListPanics), "a test");
        let inner = self.lock();
        let glimpse = |(id, object): (&GroupId, &Value)| Glimpse { id: id.clone(), object: Arc::new(Text::of(object)) };
        Ok(inner.objects.iter().map(glimpse).collect())
    }

    async fn read(&self, group: &GroupId) -> Result<Option<Value>, Unavailable> {
        if self.refuses(Refusing::Reads) {
            std::future::pending::<()>().await;
        }
        Ok(self.lock().objects.get(group).cloned())
    }

    async fn save_annotations(
        &self,
        group: &GroupId,
        version: &Version,
        annotations: &BTreeMap<String, Option<String>>,
    ) -> Result<Version, Refused> {
        if self.refuses(Refusing::Annotations) {
            return Err(Refused::Denied { because: "a test".to_owned() });
        }
        self.lock().saves.0 += 1;
        let wrote = self.write(group, version, |object| {
            for (key, value) in annotations {
                match value {
                    Some(value) => object["metadata"]["annotations"][key] = json!(value),
                    None => {
                        if let Some(all) = object["metadata"]["annotations"].as_object_mut() {
                            all.remove(key);
                        }
                    }
                }
            }
        });
        if self.refuses(Refusing::AnnotationsAnswer) {
            return Err(Refused::Unknown { because: "a test".to_owned() });
        }
        wrote
    }

    async fn save_status(&self, group: &GroupId, version: &Version, status: &Value) -> Result<Version, Refused> {
        self.lock().saves.1 += 1;
        self.show_status(group, version, status).await
    }

    async fn copy_status(&self, group: &GroupId, version: &Version, status: &Value) -> Result<Version, Refused> {
        self.show_status(group, version, status).await
    }

    async fn show_status(&self, group: &GroupId, version: &Version, status: &Value) -> Result<Version, Refused> {
        if self.refuses(Refusing::Status) {
            return Err(Refused::Denied { because: "a test".to_owned() });
        }
        let wrote = self.write(group, version, |object| object["status"] = status.clone());
        if self.refuses(Refusing::StatusAnswer) {
            return Err(Refused::Unknown { because: "a test".to_owned() });
        }
        wrote
    }

    async fn remove_request(&self, group: &GroupId, key: &str, text: &str) -> Result<(), Refused> {
        self.edit(group, |object| {
            if object["metadata"]["annotations"][key] == json!(text)
                && let Some(all) = object["metadata"]["annotations"].as_object_mut()
            {
                all.remove(key);
            }
        });
        Ok(())
    }

    async fn estate(&self, _: &GroupId, sites: &[Site]) -> Result<Estate, Unavailable> {
        let pods = self.lock().pods.clone();
        let waits = |site: &Site| pods.iter().any(|pod| pod.site == *site && !pod.started);
        let rollout = |site: &Site| if waits(site) { Rollout::InProgress } else { Rollout::Current };
        let rollouts = sites.iter().map(|site| (site.clone(), rollout(site))).collect();
        Ok(Estate { pods, own_volumes: sites.to_vec(), rollouts })
    }

    async fn secrets(&self, _: &GroupId, _: &MysqlFailoverGroup) -> Result<Secrets, MissingSecret> {
        let account = |user: &str| Account { user: user.to_owned(), password: self.lock().password.clone() };
        let trouble = self.lock().trouble.clone();
        if let Some(missing) = trouble.secrets {
            return Err(missing);
        }
        Ok(Secrets {
            operator: account("operator"),
            replication: (!trouble.no_replication).then(|| account("replication")),
            others: BTreeMap::new(),
            missing: None,
            keys: super::keys(),
            tls: None,
        })
    }

    async fn addresses(&self, _: &GroupId, sites: &[Site]) -> Result<BTreeMap<Site, Addresses>, Unavailable> {
        let server = |site: &Site| HostPort { host: format!("{site}.example"), port: 3306 };
        let inner = self.lock();
        let addresses = |site: &Site| {
            let sidecar = inner.places.get(site)?;
            let peers = sites.iter().filter(|peer| *peer != site).map(|peer| (peer.clone(), server(peer))).collect();
            let sidecar = HostPort { host: sidecar.ip().to_string(), port: sidecar.port() };
            Some((site.clone(), Addresses { admin: server(site), sidecar, peers }))
        };
        Ok(sites.iter().filter_map(addresses).collect())
    }

    async fn keep_spec(&self, group: &GroupId, taken: &Taken) -> Result<(), Refused> {
        self.lock().taken.insert(group.clone(), taken.clone());
        Ok(())
    }

    async fn kept_spec(&self, group: &GroupId) -> Result<Option<Taken>, Unavailable> {
        if self.refuses(Refusing::KeptSpec) {
            return Err(Unavailable { what: "the spec".to_owned(), because: "a test".to_owned() });
        }
        Ok(self.lock().taken.get(group).cloned())
    }

    async fn show(&self, _: &GroupId, _: &MysqlFailoverGroup, outward: &Outward) -> Result<Shown, Unavailable> {
        if self.refuses(Refusing::Show) {
            std::future::pending::<()>().await;
        }
        let mut inner = self.lock();
        inner.shown = Some(outward.clone());
        let Trouble { dns, taints, .. } = inner.trouble.clone();
        drop(inner);
        Ok(Shown {
            labels: true,
            dns: dns.map_or(Ok(()), Err),
            taints: taints.map_or(Ok(()), Err),
            at: self.now().wall,
        })
    }

    fn unseen(&self) -> Option<String> {
        self.lock().trouble.unseen.clone()
    }

    async fn furnish(&self, _: &GroupId, _: &MysqlFailoverGroup, _: Look) -> Result<(), Unfurnished> {
        self.lock().trouble.objects.clone().map_or(Ok(()), Err)
    }

    async fn dismiss(&self, group: &GroupId, patience: bool) -> Result<(), Undismissed> {
        if let Some(undismissed) = self.lock().trouble.dismissal.clone().filter(|_| patience) {
            return Err(undismissed);
        }
        self.lock().objects.remove(group);
        self.changed();
        Ok(())
    }

    async fn roll(&self, _: &GroupId, _: &MysqlFailoverGroup, _: &Site) -> Result<(), Refused> {
        Ok(())
    }

    async fn release_pod(&self, _: &GroupId, uid: &str) -> Result<(), Refused> {
        self.lock().pods.retain(|pod| *pod.uid != *uid);
        self.changed();
        Ok(())
    }

    async fn set_cache_image(&self, _: &GroupId, _: &str) -> Result<(), Refused> {
        Ok(())
    }

    async fn record_event(&self, _: &GroupId, event: &Event) -> Result<(), Refused> {
        self.lock().events.push(event.clone());
        Ok(())
    }
}
