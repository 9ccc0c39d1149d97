//! The front doors: `primary` leads to the life that is labelled so, `replicas` to those that may be read from.
//!
//! In: `outward.json` and which life each site has. Out: connections, passed on through the weather. Must not: hold a
//! connection for which there is no place, keep one to a site whose label went, or decide who is the primary.
//!
//! A label is a life's, not a place's: a new life of the same site gets no connection before it is labelled itself.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use snafu::{ResultExt as _, Snafu};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep_until, timeout};

use crate::network::{End, Network, Service};
use crate::store::outward::Shown;
use crate::store::{self, Store};
use crate::supervisor::SiteState;

/// How many connections a door lets through at a time.
const MOST: usize = 1024;

/// How long a site may take to take a connection.
const CONNECT: Duration = Duration::from_secs(5);

/// How long a door waits when it cannot take a connection.
const BREATH: Duration = Duration::from_millis(10);

/// What went wrong with the front doors.
#[derive(Debug, Snafu)]
pub enum Error {
    /// A door's address is taken.
    #[snafu(display("cannot listen on {address} (a front door): {source}; end the program that listens there"))]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },

    /// What is to be followed cannot be.
    #[snafu(transparent)]
    Store {
        /// Why not.
        source: store::Error,
    },
}

/// The front doors, open as long as this is held.
#[derive(Debug)]
pub struct Router {
    routes: watch::Receiver<Routes>,
    primary: Arc<Counters>,
    replicas: Arc<Counters>,
    tasks: Vec<AbortHandle>,
}

/// Where the doors lead.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Routes {
    /// The site behind `primary`.
    pub primary: Option<Target>,
    /// The sites behind `replicas`, for new connections.
    pub replicas: Vec<Target>,
    /// The sites that connections through `replicas` may stay at.
    pub tolerated: Vec<Target>,
}

/// A life of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The site.
    pub site: String,
    /// Its life.
    pub pod: String,
}

/// What has happened at a door so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DoorCounts {
    /// Connections that came.
    pub came: u64,
    /// Of these, the ones that are open now.
    pub open: u64,
    /// Turned away: there was no place for them, or too many were there.
    pub refused: u64,
    /// Cut, because the label went.
    pub cut: u64,
}

#[derive(Debug, Default)]
struct Counters {
    came: AtomicU64,
    open: AtomicU64,
    refused: AtomicU64,
    cut: AtomicU64,
}

/// Which door.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Door {
    Primary,
    Replicas,
}

impl Router {
    /// Opens the doors of a network. Needs a running tokio.
    pub async fn start(
        network: &Network,
        store: &Store,
        sites: BTreeMap<String, watch::Receiver<SiteState>>,
    ) -> Result<Self, Error> {
        let listen = async |address: SocketAddr| TcpListener::bind(address).await.context(ListenSnafu { address });
        let primary_door = listen(network.primary_door()).await?;
        let replicas_door = listen(network.replicas_door()).await?;
        let (told, routes) = watch::channel(Routes::default());
        let news = store.watch_outward()?;
        let mut tasks = vec![tokio::spawn(follow(store.clone(), news, sites, told)).abort_handle()];
        let (primary, replicas) = (Arc::<Counters>::default(), Arc::<Counters>::default());
        for (door, listener, counters) in
            [(Door::Primary, primary_door, &primary), (Door::Replicas, replicas_door, &replicas)]
        {
            let task = serve(door, listener, network.clone(), routes.clone(), Arc::clone(counters));
            tasks.push(tokio::spawn(task).abort_handle());
        }
        Ok(Self { routes, primary, replicas, tasks })
    }

    /// Where the doors lead now, and news of it.
    pub fn routes(&self) -> watch::Receiver<Routes> {
        self.routes.clone()
    }

    /// What has happened at the door `primary`.
    pub fn primary(&self) -> DoorCounts {
        self.primary.read()
    }

    /// What has happened at the door `replicas`.
    pub fn replicas(&self) -> DoorCounts {
        self.replicas.read()
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl Counters {
    fn read(&self) -> DoorCounts {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        DoorCounts {
            came: count(&self.came),
            open: count(&self.open),
            refused: count(&self.refused),
            cut: count(&self.cut),
        }
    }
}

/// Where the doors lead, by what is shown and who lives.
fn routes(shown: &Shown, lives: &BTreeMap<String, Option<String>>) -> Routes {
    let life = |site: &str| {
        let pod = lives.get(site).cloned().flatten()?;
        Some(Target { site: site.to_owned(), pod })
    };
    let primary = shown.primary.as_ref().and_then(|label| life(&label.site).filter(|target| target.pod == label.pod()));
    let labelled = |wanted: fn(&store::outward::SiteLabel) -> bool| {
        let sites = shown.sites.iter().filter(move |(_, label)| wanted(label));
        sites.filter_map(|(site, _)| life(site)).filter(|target| Some(target) != primary.as_ref()).collect()
    };
    Routes {
        replicas: labelled(|label| !label.fenced && label.healthy),
        tolerated: labelled(|label| !label.fenced),
        primary,
    }
}

/// Keeps the routes current.
async fn follow(
    store: Store,
    news: store::watch::Watch,
    mut sites: BTreeMap<String, watch::Receiver<SiteState>>,
    told: watch::Sender<Routes>,
) {
    let mut count = news.count();
    let mut shown = Shown::default();
    loop {
        // Small, and replaced whole: reading it blocks for no longer than a page takes. What cannot be read is no reason to
        // lead anyone elsewhere, nor to go on leading them there.
        shown = store.shown().unwrap_or(Shown { primary: None, ..shown });
        let lives =
            sites.iter_mut().map(|(site, state)| (site.clone(), state.borrow_and_update().pod.clone())).collect();
        let next = routes(&shown, &lives);
        told.send_if_modified(|now| {
            let changed = *now != next;
            *now = next;
            changed
        });
        let lives_changed = futures_util::future::select_all(
            sites.values_mut().map(|state| Box::pin(async { state.changed().await.is_ok() })),
        );
        let over = tokio::select! {
            changed = count.changed() => changed.is_err(),
            (changed, _, _) = lives_changed => !changed,
        };
        if over {
            told.send_replace(Routes::default());
            return;
        }
    }
}

/// Takes connections at a door until it is aborted; they end with it.
async fn serve(
    door: Door,
    listener: TcpListener,
    network: Network,
    routes: watch::Receiver<Routes>,
    counters: Arc<Counters>,
) {
    let network = Arc::new(network);
    let turn = AtomicUsize::new(0);
    let mut through = JoinSet::new();
    loop {
        while through.try_join_next().is_some() {}
        let Ok((client, _)) = listener.accept().await else {
            // Out of descriptors, or a connection that was reset before it was taken.
            sleep_until(Instant::now() + BREATH).await;
            continue;
        };
        counters.came.fetch_add(1, Ordering::Relaxed);
        let target = door.target(&routes.borrow(), turn.fetch_add(1, Ordering::Relaxed));
        let Some(target) = target.filter(|_| through.len() < MOST) else {
            refuse(&client, &counters);
            continue;
        };
        let (network, routes, counters) = (Arc::clone(&network), routes.clone(), Arc::clone(&counters));
        through.spawn(async move {
            counters.open.fetch_add(1, Ordering::Relaxed);
            pass(door, client, &target, &network, routes, &counters).await;
            counters.open.fetch_sub(1, Ordering::Relaxed);
        });
    }
}

impl Door {
    /// Where a new connection goes.
    fn target(self, routes: &Routes, turn: usize) -> Option<Target> {
        match self {
            Self::Primary => routes.primary.clone(),
            Self::Replicas => routes.replicas.get(turn % routes.replicas.len().max(1)).cloned(),
        }
    }

    /// Whether a connection may stay where it is.
    fn tolerates(self, routes: &Routes, target: &Target) -> bool {
        match self {
            Self::Primary => routes.primary.as_ref() == Some(target),
            Self::Replicas => routes.tolerated.contains(target),
        }
    }
}

/// Passes a connection on until it ends or its label goes.
async fn pass(
    door: Door,
    mut client: TcpStream,
    target: &Target,
    network: &Network,
    mut routes: watch::Receiver<Routes>,
    counters: &Counters,
) {
    let revoked = async {
        let gone = |routes: &Routes| !door.tolerates(routes, target);
        // An error means that the doors close.
        let _ = routes.wait_for(gone).await;
    };
    tokio::pin!(revoked);
    let address = network.link_address(&End::FrontDoor, &End::Site(target.site.clone()), Service::Mysql);
    let reach = async {
        let stream = timeout(CONNECT, TcpStream::connect(address?)).await.ok()?.ok()?;
        Some(stream)
    };
    let mut server = tokio::select! {
        reached = reach => match reached {
            Some(server) => server,
            None => return refuse(&client, counters),
        },
        () = &mut revoked => return refuse(&client, counters),
    };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let cut = tokio::select! {
        biased;
        () = &mut revoked => true,
        _ = copy_bidirectional(&mut client, &mut server) => false,
    };
    if cut {
        counters.cut.fetch_add(1, Ordering::Relaxed);
        // Reset, not closed: what lies in the sockets must not arrive any more.
        let _ = (client.set_zero_linger(), server.set_zero_linger());
    }
}

/// Turns a connection away.
fn refuse(client: &TcpStream, counters: &Counters) {
    counters.refused.fetch_add(1, Ordering::Relaxed);
    let _ = client.set_zero_linger();
}

#[cfg(test)]
mod tests;
