//! Pods, volumes and addresses: told to the leader whenever they change.
//!
//! In: the world's estate and addresses. Out: inputs, and a map of the network for everyone who calls a site. Must not:
//! take a failed reading for an empty one.

use super::leader::ToLeader;
use super::secrets::Known;
use super::{Common, STORE_BOUND, Shared};
use crate::servers::{Server, Servers};
use crate::tasks::rest;
use crate::world::{Addresses, Secrets, World};
use bloodraven_brain::group::Input;
use bloodraven_brain::group::accounts::AccountRole;
use bloodraven_brain::name::Site;
use bloodraven_brain::time::Millis;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

/// Without a word of a change it is looked again after so long: watches can go quiet.
const AGAIN: Duration = Duration::from_secs(2);

/// Changes come in swarms.
const SWARM: Duration = Duration::from_millis(10);

/// How every site is reached; none: not read yet.
pub(super) type Network = Option<Arc<BTreeMap<Site, Addresses>>>;

/// Runs for one reign.
pub(super) async fn inform<W: World, S: Servers>(
    common: Arc<Common<W, S>>,
    shared: Arc<Shared>,
    sites: watch::Receiver<Vec<Site>>,
    network: watch::Sender<Network>,
    inbox: mpsc::Sender<ToLeader>,
) {
    let (mut changes, mut declared) = (common.world.changes_of(&shared.id), sites.clone());
    let mut last = None;
    let beat = common.beats.begin(format!("informer {}", shared.id), Millis::from_secs(5));
    loop {
        beat.beat();
        let names = declared.borrow_and_update().clone();
        let (estate, addresses) = tokio::join!(
            timeout(STORE_BOUND, common.world.estate(&shared.id, &names)),
            timeout(STORE_BOUND, common.world.addresses(&shared.id, &names)),
        );
        if let Ok(Ok(addresses)) = addresses {
            network.send_if_modified(|known| {
                let news = known.as_deref() != Some(&addresses);
                if news {
                    *known = Some(Arc::new(addresses));
                }
                news
            });
        }
        if let Ok(Ok(estate)) = estate
            && last.as_ref() != Some(&estate)
        {
            last = Some(estate.clone());
            if inbox.send(ToLeader::Input(Input::Estate(Box::new(estate)))).await.is_err() {
                return;
            }
        }
        tokio::select! {
            Ok(()) = changes.changed() => rest(SWARM).await,
            Ok(()) = declared.changed() => {}
            () = rest(AGAIN) => {}
        }
    }
}

/// That site's server, if its address and an account are known.
pub(super) fn server(site: &Site, network: &Network, known: Option<&Known>) -> Option<Server> {
    let (addresses, known) = (network.as_ref()?.get(site)?, known?);
    let Secrets { operator, replication, others, missing: _, keys: _, tls } = &known.now;
    let spared = [AccountRole::Monitor, AccountRole::Backup].iter().filter_map(|role| others.get(role));
    Some(Server {
        site: site.clone(),
        admin: addresses.admin.clone(),
        peers: addresses.peers.clone(),
        operator: operator.clone(),
        earlier: known.earlier.clone(),
        replication: replication.clone(),
        spared: spared.map(|account| account.user.clone()).collect(),
        others: others.clone(),
        version: known.version,
        tls: tls.clone(),
    })
}
