//! The operator's world on one machine: a state directory instead of an API server, links instead of Services.
//!
//! In: the operator's wishes. Out: what became of them. Must not: decide, retry, or keep anything in memory that another
//! process may change.
//!
//! Files are read and written on threads that may block. A call that is dropped goes on to its end there; it holds the
//! store's lock for no longer than a comparison and a rename.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bloodraven_api::MysqlFailoverGroup;
use bloodraven_brain::group::Outward;
use bloodraven_brain::group::accounts::AccountRole;
use bloodraven_brain::group::input::{Estate, Rollout, Shown};
use bloodraven_brain::lease::{Lease, NewLease};
use bloodraven_brain::name::Site;
use bloodraven_brain::time::Now;
pub use bloodraven_operator::clock::now;
use bloodraven_operator::world::{
    Account, Addresses, Event, Glimpse, GroupId, HostPort, MissingSecret, Refused, Secrets, Text, Unavailable, Version,
    World,
};
use bloodraven_wire::{Key, Keys};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::files;
use crate::network::{End, Network, Service};
use crate::store::object::Object;
use crate::store::watch::Watch;
use crate::store::{self, Store};
use crate::supervisor::plan::{CLAIM, conf_digest};

/// Accounts beside the operator's and that of replication.
const OTHERS: [AccountRole; 4] = [AccountRole::App, AccountRole::ReadOnly, AccountRole::Monitor, AccountRole::Backup];

/// See above: the world of one operator.
#[derive(Debug)]
pub struct LocalWorld {
    store: Store,
    network: Network,
    me: End,
    news: Watch,
}

impl LocalWorld {
    /// The world of that operator. Needs a running tokio.
    pub fn new(store: Store, network: Network, operator: u8) -> Result<Self, store::Error> {
        let news = store.watch()?;
        Ok(Self { store, network, me: End::Operator(operator), news })
    }

    /// Does something with the store on a thread that may block.
    async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Store) -> Result<T, store::Error> + Send + 'static,
    ) -> Result<T, store::Error> {
        let store = self.store.clone();
        let done = tokio::task::spawn_blocking(move || work(&store)).await;
        done.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
    }

    /// [`LocalWorld::with`], for what is bound to a group: another group is not there.
    async fn of<T: Send + 'static>(
        &self,
        group: &GroupId,
        work: impl FnOnce(&Store, &Object) -> Result<T, store::Error> + Send + 'static,
    ) -> Result<T, store::Error> {
        let group = group.clone();
        self.with(move |store| {
            let object = store.read_group()?;
            if !is(&object, &group) {
                return Err(store::Error::Conflict { path: store.dir().join(store::object::FILE) });
            }
            work(store, &object)
        })
        .await
    }
}

/// The name that a lease knows an operator by; the same after a restart in place.
pub fn identity(operator: u8, uid: &str) -> String {
    format!("operator-{operator}_{uid}")
}

impl World for LocalWorld {
    fn now(&self) -> Now {
        now()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.news.count()
    }

    async fn read_lease(&self) -> Result<Option<Lease>, Unavailable> {
        self.with(Store::read_lease).await.map_err(|error| unavailable("the lease", &error))
    }

    async fn create_lease(&self, new: &NewLease) -> Result<Lease, Refused> {
        let new = new.clone();
        self.with(move |store| store.write_lease(None, &new)).await.map_err(|error| refused(&error))
    }

    async fn update_lease(&self, version: &str, new: &NewLease) -> Result<Lease, Refused> {
        let (version, new) = (version.to_owned(), new.clone());
        self.with(move |store| store.write_lease(Some(&version), &new)).await.map_err(|error| refused(&error))
    }

    async fn operator_address(&self, identity: &str) -> Option<String> {
        let number = identity.strip_prefix("operator-")?.split_once('_')?.0.parse().ok()?;
        self.network.advertised_address(number).map(|address| address.to_string())
    }

    async fn groups(&self) -> Result<Vec<Glimpse>, Unavailable> {
        let object = self.with(Store::read_group).await.map_err(|error| unavailable("the group", &error))?;
        let id = GroupId::new(object.namespace(), object.name());
        Ok(vec![Glimpse { id, object: Arc::new(Text::of(&object.value)) }])
    }

    async fn read(&self, group: &GroupId) -> Result<Option<Value>, Unavailable> {
        let object = self.with(Store::read_group).await.map_err(|error| unavailable("the group", &error))?;
        Ok(is(&object, group).then_some(object.value))
    }

    async fn save_annotations(
        &self,
        group: &GroupId,
        version: &Version,
        annotations: &BTreeMap<String, Option<String>>,
    ) -> Result<Version, Refused> {
        let version = number(version)?;
        let wanted: Vec<_> = annotations.iter().map(|(key, text)| (key.clone(), text.clone())).collect();
        let saved = self.of(group, move |store, _| store.annotate(Some(version), &wanted)).await;
        saved.map(|object| stamp(&object)).map_err(|error| refused(&error))
    }

    async fn save_status(&self, group: &GroupId, version: &Version, status: &Value) -> Result<Version, Refused> {
        let (version, status) = (number(version)?, status.clone());
        let saved = self
            .of(group, move |store, _| {
                store.change_group(Some(version), |value| {
                    if let Some(fields) = value.as_object_mut() {
                        fields.insert("status".to_owned(), status.clone());
                    }
                    Ok(())
                })
            })
            .await;
        saved.map(|object| stamp(&object)).map_err(|error| refused(&error))
    }

    async fn remove_request(&self, group: &GroupId, key: &str, text: &str) -> Result<(), Refused> {
        let (key, text) = (key.to_owned(), text.to_owned());
        let removed = self
            .of(group, move |store, _| {
                store.change_group(None, |value| {
                    let all = store::object::annotations_of(value)?;
                    if all.get(&key).and_then(Value::as_str) == Some(&text) {
                        all.remove(&key);
                    }
                    Ok(())
                })
            })
            .await;
        removed.map(drop).map_err(|error| refused(&error))
    }

    async fn estate(&self, group: &GroupId, sites: &[Site]) -> Result<Estate, Unavailable> {
        let sites = sites.to_vec();
        let estate = self.of(group, move |store, object| estate(store, object, &sites)).await;
        estate.map_err(|error| unavailable("pods and volumes", &error))
    }

    /// Keeper, sidecars and operator read the same files, the sidecars every 5 s.
    fn secrets_spread(&self) -> Duration {
        Duration::from_secs(15)
    }

    async fn secrets(&self, _: &GroupId, _: &MysqlFailoverGroup) -> Result<Secrets, MissingSecret> {
        let read = self.with(|store| {
            let account = |role: &str| store.account(role).map(|(user, password)| Account { user, password });
            let (operator, replication) = (account("operator")?, account("replication")?);
            let others = OTHERS.map(|role| account(role.as_str()).map(|account| (role, account)));
            let others = others.into_iter().collect::<Result<BTreeMap<_, _>, _>>()?;
            Ok((operator, replication, others, store.keys()?))
        });
        let unread = |error: store::Error| MissingSecret::Unread { because: error.to_string() };
        let (operator, replication, others, (current, previous)) = read.await.map_err(unread)?;
        let key = |name: &str, bytes: &[u8]| {
            let (name, key) = ("secrets".to_owned(), name.to_owned());
            Key::try_from(bytes).map_err(|error| MissingSecret::Key { name, key, because: error.to_string() })
        };
        let keys = Keys {
            current: key("hmac.key", &current)?,
            previous: previous.map(|bytes| key("hmac.previous", &bytes)).transpose()?,
        };
        Ok(Secrets { operator, replication: Some(replication), others, missing: None, keys, tls: None })
    }

    async fn addresses(&self, _: &GroupId, sites: &[Site]) -> Result<BTreeMap<Site, Addresses>, Unavailable> {
        let link = |from: &End, to: &Site, service: Service| {
            let address = self.network.link_address(from, &End::Site(to.to_string()), service)?;
            Some(HostPort { host: address.ip().to_string(), port: address.port() })
        };
        let addresses = |site: &Site| {
            let own = End::Site(site.to_string());
            let peers = sites.iter().filter(|peer| *peer != site);
            let peers = peers.filter_map(|peer| Some((peer.clone(), link(&own, peer, Service::Mysql)?))).collect();
            let admin = link(&self.me, site, Service::Admin)?;
            let sidecar = link(&self.me, site, Service::Sidecar)?;
            Some((site.clone(), Addresses { admin, sidecar, peers }))
        };
        Ok(sites.iter().filter_map(addresses).collect())
    }

    async fn show(&self, group: &GroupId, _: &MysqlFailoverGroup, outward: &Outward) -> Result<Shown, Unavailable> {
        let outward = outward.clone();
        let shown = self.of(group, move |store, _| store.show(&outward)).await;
        shown.map_err(|error| unavailable("what is shown", &error))?;
        Ok(Shown { labels: true, dns: Ok(()), taints: Ok(()), at: now().wall })
    }

    async fn roll(&self, group: &GroupId, _: &MysqlFailoverGroup, site: &Site) -> Result<(), Refused> {
        let site = site.to_string();
        let asked = self.of(group, move |store, _| store.ask_roll(&site)).await;
        asked.map_err(|error| refused(&error))
    }

    async fn release_pod(&self, group: &GroupId, uid: &str) -> Result<(), Refused> {
        let uid = uid.to_owned();
        let released = self.of(group, move |store, _| store.release_pod(&uid)).await;
        released.map_err(|error| refused(&error))
    }

    async fn set_cache_image(&self, group: &GroupId, image: &str) -> Result<(), Refused> {
        let patch = json!({ "dragonfly": { "image": image } });
        let set = self.of(group, move |store, _| store.patch_spec(None, &patch)).await;
        set.map(drop).map_err(|error| refused(&error))
    }

    async fn record_event(&self, group: &GroupId, event: &Event) -> Result<(), Refused> {
        let event = event.clone();
        let told = self.of(group, move |store, _| store.record_event(&event)).await;
        told.map_err(|error| refused(&error))
    }
}

/// Pods and volumes of these sites.
fn estate(store: &Store, object: &Object, sites: &[Site]) -> Result<Estate, store::Error> {
    let pods = store.pods()?;
    let conf = conf_digest(object);
    let mut own_volumes = Vec::new();
    let mut rollouts = BTreeMap::new();
    for site in sites {
        let claim = files::read(&store.site(site.as_str()).join(CLAIM))?;
        if claim.is_none_or(|by| by == object.uid().as_bytes()) {
            own_volumes.push(site.clone());
        }
        let live = pods.iter().find(|pod| pod.site == site.as_str() && !pod.deleting && !pod.ended);
        let rollout = match live {
            Some(pod) if pod.conf != conf => Rollout::Drifted,
            Some(pod) if pod.keeper_pid.is_some() && pod.sidecar_pid.is_some() => Rollout::Current,
            _ => Rollout::InProgress,
        };
        rollouts.insert(site.clone(), rollout);
    }
    let named = |site: &str| sites.iter().any(|it| it.as_str() == site);
    let pods = pods.iter().filter(|pod| named(&pod.site)).map(|pod| store.pod_facts(pod)).collect::<Result<_, _>>()?;
    Ok(Estate { pods, own_volumes, rollouts })
}

fn is(object: &Object, group: &GroupId) -> bool {
    object.name() == &*group.name && object.namespace() == &*group.namespace
}

fn stamp(object: &Object) -> Version {
    Version(object.version.to_string().into())
}

/// Versions are ours: anything that is none of them is another's.
fn number(version: &Version) -> Result<u64, Refused> {
    version.0.parse().map_err(|_| Refused::Conflict)
}

fn unavailable(what: &str, error: &store::Error) -> Unavailable {
    Unavailable { what: what.to_owned(), because: error.to_string() }
}

fn refused(error: &store::Error) -> Refused {
    let because = error.to_string();
    match error {
        store::Error::Conflict { .. } | store::Error::Missing { .. } => Refused::Conflict,
        error if error.changed_nothing() => Refused::Denied { because },
        _ => Refused::Unknown { because },
    }
}

#[cfg(test)]
mod tests;
