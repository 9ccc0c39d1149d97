//! The operator's world in a cluster: see [`World`].
//!
//! In: the operator's wishes. Out: what became of them. Must not: decide or retry.

use crate::furnish::{self, Applied, House};
use crate::rest::Rest;
use crate::seen::SeenGroup;
use crate::shelf::Key;
use crate::taken::{self, Specs};
use crate::turns::{Rank, Turns};
use crate::watches::Watches;
use crate::{addresses, dismiss, estate, events, group, lease, outward, pods, secrets};
use bloodraven_api::MysqlFailoverGroup;
use bloodraven_blueprint::objects::Taken;
use bloodraven_brain::group::Outward;
use bloodraven_brain::group::input::{Estate, Shown};
use bloodraven_brain::lease::{Lease, NewLease};
use bloodraven_brain::name::Site;
use bloodraven_brain::time::{Boot, Now, Wall};
use bloodraven_operator::world::{
    Addresses, Event, Glimpse, GroupId, Look, MissingSecret, Refused, Secrets, Unavailable, Undismissed, Unfurnished,
    Version, World,
};
use kube::Client;
use rustix::time::{ClockId, clock_gettime};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::watch;

/// Where an operator lives and looks.
#[derive(Clone, Debug)]
pub struct Places {
    /// Its own namespace: the election's Lease is there.
    pub namespace: String,
    /// Its pod's name, as Events name their writer.
    pub pod: String,
    /// The namespaces whose groups are its business; none: all.
    pub watched: Vec<String>,
    /// What the operator itself adds to every group.
    pub house: House,
    /// The port of its aux server.
    pub aux_port: u16,
}

/// See above.
pub struct ClusterWorld {
    /// For the election: a leader that cannot renew stops.
    lease: Rest,
    /// For what moves rest on: nothing else is in their way.
    records: Rest,
    /// For what is kept beside the record, and is waited for.
    beside: Rest,
    /// For what moves ask for and leave behind: proofs, labels, the second copy of the record.
    moves: Rest,
    rest: Rest,
    watches: Watches,
    places: Places,
    written: events::Written,
    applied: Applied,
    specs: Specs,
    dns: outward::Records,
}

impl ClusterWorld {
    /// The world behind that client. Needs a running tokio; watches begin at once.
    pub fn new(client: &Client, places: Places) -> Self {
        let watches = Watches::begin(client, &places.watched);
        let turns = Turns::default();
        let in_turn = |rank| Rest::in_turn(client.clone(), &turns, rank);
        Self {
            lease: Rest::at_once(client.clone()),
            records: in_turn(Rank::Records),
            beside: in_turn(Rank::Beside),
            moves: in_turn(Rank::Moves),
            rest: in_turn(Rank::Others),
            watches,
            places,
            written: events::Written::default(),
            applied: Applied::default(),
            specs: Specs::default(),
            dns: outward::Records::default(),
        }
    }

    /// The group as a watch last showed it.
    fn seen(&self, group: &GroupId) -> Result<Arc<SeenGroup>, Unavailable> {
        let unavailable = |because: &str| Unavailable { what: "the group".to_owned(), because: because.to_owned() };
        let objects = self.watches.groups.of(group).ok_or_else(|| unavailable("its list is not whole yet"))?;
        objects.into_iter().next().ok_or_else(|| unavailable("it is gone"))
    }

    /// Who it is; whatever its spec says.
    fn uid(&self, group: &GroupId) -> Result<String, Unavailable> {
        Ok(self.seen(group)?.uid.to_string())
    }
}

impl World for ClusterWorld {
    fn now(&self) -> Now {
        now()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.watches.bell.of_groups()
    }

    fn changes_of(&self, group: &GroupId) -> watch::Receiver<u64> {
        self.watches.bell.of(group)
    }

    fn changes_of_objects(&self, group: &GroupId) -> watch::Receiver<u64> {
        self.watches.bell.of_objects(group)
    }

    fn unseen(&self) -> Option<String> {
        let lists = self.watches.unseen();
        (!lists.is_empty()).then(|| format!("not listed yet: {}", lists.join(", ")))
    }

    async fn read_lease(&self) -> Result<Option<Lease>, Unavailable> {
        lease::read(&self.lease, &self.places.namespace).await
    }

    async fn create_lease(&self, new: &NewLease) -> Result<Lease, Refused> {
        lease::create(&self.lease, &self.places.namespace, new).await
    }

    async fn update_lease(&self, version: &str, new: &NewLease) -> Result<Lease, Refused> {
        lease::update(&self.lease, &self.places.namespace, version, new).await
    }

    /// The identity is `<pod name>_<pod uid>`: its pod says where it is, as long as it is the same pod.
    async fn operator_address(&self, identity: &str) -> Option<String> {
        let (pod, uid) = identity.rsplit_once('_')?;
        let path = format!("/api/v1/namespaces/{}/pods/{pod}", self.places.namespace);
        let pod = self.rest.get(&path).await.ok()??;
        let ip = pod["status"]["podIP"].as_str().filter(|_| pod["metadata"]["uid"] == uid)?;
        let ip = if ip.contains(':') { format!("[{ip}]") } else { ip.to_owned() };
        Some(format!("{ip}:{}", self.places.aux_port))
    }

    async fn groups(&self) -> Result<Vec<Glimpse>, Unavailable> {
        let unavailable = |because: &str| Unavailable { what: "the groups".to_owned(), because: because.to_owned() };
        let named = |key: &Key| GroupId::new(&key.namespace, &key.name);
        let all = self.watches.groups.all_with(named).ok_or_else(|| unavailable("their list is not whole yet"))?;
        Ok(all.into_iter().map(|(id, seen)| Glimpse { id, object: Arc::clone(&seen.text) }).collect())
    }

    async fn read(&self, group: &GroupId) -> Result<Option<Value>, Unavailable> {
        group::read(&self.records, group).await
    }

    async fn save_annotations(
        &self,
        group: &GroupId,
        version: &Version,
        annotations: &BTreeMap<String, Option<String>>,
    ) -> Result<Version, Refused> {
        group::save_annotations(&self.records, group, version, annotations).await
    }

    async fn save_status(&self, group: &GroupId, version: &Version, status: &Value) -> Result<Version, Refused> {
        group::save_status(&self.beside, group, version, status).await
    }

    async fn copy_status(&self, group: &GroupId, version: &Version, status: &Value) -> Result<Version, Refused> {
        group::save_status(&self.moves, group, version, status).await
    }

    async fn show_status(&self, group: &GroupId, version: &Version, status: &Value) -> Result<Version, Refused> {
        group::save_status(&self.rest, group, version, status).await
    }

    async fn remove_request(&self, group: &GroupId, key: &str, text: &str) -> Result<(), Refused> {
        group::remove_request(&self.rest, group, key, text).await
    }

    async fn estate(&self, group: &GroupId, sites: &[Site]) -> Result<Estate, Unavailable> {
        let uid = self.uid(group)?;
        estate::read(&self.moves, &self.watches, group, &uid, sites, &self.applied.hashes(group)).await
    }

    async fn secrets(&self, group: &GroupId, wanted: &MysqlFailoverGroup) -> Result<Secrets, MissingSecret> {
        secrets::read(&self.rest, group, &wanted.spec).await
    }

    async fn keep_spec(&self, group: &GroupId, taken: &Taken) -> Result<(), Refused> {
        let unread = |error: Unavailable| Refused::Denied { because: error.to_string() };
        let uid = self.uid(group).map_err(unread)?;
        taken::keep(&self.rest, &self.watches, &self.specs, group, &uid, taken).await
    }

    async fn kept_spec(&self, group: &GroupId) -> Result<Option<Taken>, Unavailable> {
        taken::read(&self.rest, group, &self.uid(group)?).await
    }

    async fn addresses(&self, group: &GroupId, sites: &[Site]) -> Result<BTreeMap<Site, Addresses>, Unavailable> {
        Ok(addresses::of(group, sites, &self.places.house.cluster_domain))
    }

    async fn show(
        &self,
        group: &GroupId,
        wanted: &MysqlFailoverGroup,
        outward: &Outward,
    ) -> Result<Shown, Unavailable> {
        let Self { moves: rest, watches, dns: records, places, .. } = self;
        let outside = outward::Outside { rest, watches, records, house: &places.house };
        outward::show(outside, group, wanted, outward, self.now()).await
    }

    async fn furnish(&self, group: &GroupId, wanted: &MysqlFailoverGroup, look: Look) -> Result<(), Unfurnished> {
        furnish::furnish(&self.rest, &self.watches, &self.places.house, &self.applied, group, wanted, look).await
    }

    async fn dismiss(&self, group: &GroupId, patience: bool) -> Result<(), Undismissed> {
        self.applied.forget(group);
        self.specs.forget(group);
        self.dns.forget(group);
        dismiss::dismiss(&self.rest, &self.watches, group, patience).await
    }

    async fn release_orphans(&self) -> Result<(), Refused> {
        dismiss::release_orphans(&self.rest, &self.watches).await
    }

    async fn roll(&self, group: &GroupId, wanted: &MysqlFailoverGroup, site: &Site) -> Result<(), Refused> {
        furnish::roll(&self.rest, &self.watches, &self.places.house, group, wanted, site).await
    }

    async fn release_pod(&self, group: &GroupId, uid: &str) -> Result<(), Refused> {
        let unseen = || Refused::Denied { because: "the list of pods is not whole yet".to_owned() };
        let pods = self.watches.pods.of(group).ok_or_else(unseen)?;
        match pods.iter().find(|pod| pod.meta.uid.as_deref() == Some(uid)) {
            Some(pod) => pods::release(&self.moves, pod).await,
            None => Ok(()),
        }
    }

    async fn set_cache_image(&self, group: &GroupId, image: &str) -> Result<(), Refused> {
        group::set_cache_image(&self.rest, group, image).await
    }

    async fn record_event(&self, group: &GroupId, event: &Event) -> Result<(), Refused> {
        let unread = |error: Unavailable| Refused::Denied { because: error.to_string() };
        let uid = self.uid(group).map_err(unread)?;
        events::record(&self.rest, &self.written, &self.places.pod, group, &uid, event).await
    }
}

/// Both clocks.
#[expect(clippy::disallowed_methods, reason = "this is the clock of the world")]
fn now() -> Now {
    let boot = clock_gettime(ClockId::Boottime);
    let millis = boot.tv_sec.saturating_mul(1000).saturating_add(boot.tv_nsec / 1_000_000);
    let wall = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Now {
        boot: Boot(u64::try_from(millis).unwrap_or_default()),
        wall: Wall(i64::try_from(wall.as_millis()).unwrap_or(i64::MAX)),
    }
}
