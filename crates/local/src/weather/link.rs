//! Links: a listener each, and what becomes of a connection from its first moment to its last.
//!
//! In: who speaks to whom, on which address, and where that one really listens. Out: connections carried by
//! [`super::pipe`]. Must not: reach the far end while a handshake could not, or hold connections without a bound.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use snafu::{ResultExt as _, Snafu};
use tokio::io::AsyncReadExt as _;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use super::pipe::{self, Lane};
use super::{Clouds, Sky};
use crate::network::{End, Network, Service};

/// How many connections a link may have, those included that wait behind a cut. Pollers that give up after a second leave
/// none behind; this is for who never gives up.
const MOST: usize = 512;

/// How much of what a client says before its connection is made is kept for it.
const EARLY: usize = 64 << 10;

/// How long the far end, on this machine, may take to answer.
const CONNECT: Duration = Duration::from_secs(5);

/// How many connections wait to be taken.
const BACKLOG: u32 = 256;

/// How long a link waits when it cannot take a connection.
const BREATH: Duration = Duration::from_millis(10);

/// What went wrong with a link.
#[derive(Debug, Snafu)]
pub enum Error {
    /// Its address cannot be listened on.
    #[snafu(display(
        "cannot listen on {address} (the link from {name}): {source}; end the program that listens there"
    ))]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Whose link to whom.
        name: String,
        /// What the system said.
        source: io::Error,
    },
}

/// Who speaks to whom.
#[derive(Clone, Debug)]
pub struct Link {
    /// Who begins; none: it could be any site.
    pub from: Option<End>,
    /// To whom, and where that one listens. With several, whichever answers first, taken in turn.
    pub to: Vec<(End, SocketAddr)>,
    /// What is spoken.
    pub service: Service,
    /// Where `from` finds it.
    pub listen: SocketAddr,
}

/// Every link of a network.
pub(super) fn all(network: &Network, operators: u8) -> Vec<Link> {
    let sites: Vec<End> = network.sites().map(|site| End::Site(site.to_owned())).collect();
    let operators: Vec<End> = (0..operators).map(End::Operator).collect();
    let mut links = Vec::new();
    let mut add = |from: &End, to: &End, service: Service| {
        let listen = network.link_address(from, to, service);
        if let (Some(listen), Some(address)) = (listen, network.address(to, service)) {
            links.push(Link { from: Some(from.clone()), to: vec![(to.clone(), address)], service, listen });
        }
    };
    for to in &sites {
        add(&End::FrontDoor, to, Service::Mysql);
        for from in &operators {
            add(from, to, Service::Admin);
            add(from, to, Service::Sidecar);
        }
        for from in sites.iter().filter(|from| *from != to) {
            add(from, to, Service::Mysql);
            add(from, to, Service::Sidecar);
        }
    }
    let aux = |end: &End| Some((end.clone(), network.address(end, Service::Aux)?));
    let answering: Vec<_> = operators.iter().filter_map(aux).collect();
    for site in network.sites() {
        if let (Some(listen), false) = (network.operators_address(site), answering.is_empty()) {
            let from = Some(End::Site(site.to_owned()));
            links.push(Link { from, to: answering.clone(), service: Service::Aux, listen });
        }
    }
    for (number, operator) in (0..).zip(answering) {
        if let Some(listen) = network.advertised_address(number) {
            links.push(Link { from: None, to: vec![operator], service: Service::Aux, listen });
        }
    }
    links
}

impl Link {
    /// Takes its address. Needs a running tokio.
    pub(super) fn bind(self) -> Result<(Self, TcpListener), Error> {
        let bind = || {
            let socket = if self.listen.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
            socket.set_reuseaddr(true)?;
            socket.bind(self.listen)?;
            socket.listen(BACKLOG)
        };
        let name = || {
            let from = self.from.as_ref().map_or_else(|| "any site".to_owned(), ToString::to_string);
            let to: Vec<String> = self.to.iter().map(|(end, _)| end.to_string()).collect();
            format!("{from} to {} of {}", self.service, to.join(" or "))
        };
        let listener = bind().with_context(|_| ListenSnafu { address: self.listen, name: name() })?;
        Ok((self, listener))
    }
}

/// What the connections of a link share.
struct Shared {
    link: Link,
    clouds: Arc<Clouds>,
    forth: Lane,
    back: Lane,
    turn: AtomicUsize,
}

/// Carries the link's connections until it is aborted; they end with it.
pub(super) async fn serve(link: Link, listener: TcpListener, clouds: Arc<Clouds>) {
    let shared =
        Arc::new(Shared { link, clouds, forth: Lane::default(), back: Lane::default(), turn: AtomicUsize::new(0) });
    let mut carried = JoinSet::new();
    loop {
        while carried.try_join_next().is_some() {}
        let Ok((client, _)) = listener.accept().await else {
            // Out of descriptors, or a connection that was reset before it was taken.
            sleep_until(Instant::now() + BREATH).await;
            continue;
        };
        shared.clouds.taken.fetch_add(1, Ordering::Relaxed);
        if carried.len() >= MOST {
            shared.clouds.overrun.fetch_add(1, Ordering::Relaxed);
            let _ = client.set_zero_linger();
            continue;
        }
        let open = Open::new(&shared.clouds);
        let shared = Arc::clone(&shared);
        carried.spawn(async move {
            carry(client, &shared).await;
            drop(open);
        });
    }
}

/// Counts an open connection for as long as it is one.
struct Open(Arc<Clouds>);

impl Open {
    fn new(clouds: &Arc<Clouds>) -> Self {
        clouds.open.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(clouds))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// One connection, from its first moment to its last.
async fn carry(mut client: TcpStream, shared: &Shared) {
    let _ = client.set_nodelay(true);
    let mut weather = shared.clouds.changed.subscribe();
    let mut early = Vec::new();
    let Some((target, mut server)) = reach(&mut client, shared, &mut weather, &mut early).await else {
        // Whoever began it sees a reset, as from a port that nobody listens on.
        let _ = client.set_zero_linger();
        return;
    };
    let _ = server.set_nodelay(true);
    let (from, to) = (shared.link.from.as_ref(), Some(&target));
    let service = shared.link.service;
    let forth = || shared.clouds.sky(from, to, service);
    let back = || shared.clouds.sky(to, from, service);
    let carried = &shared.clouds.bytes;
    let ended = {
        let (mut client_reads, mut client_writes) = client.split();
        let (mut server_reads, mut server_writes) = server.split();
        let mut other = weather.clone();
        tokio::try_join!(
            pipe::carry(&mut client_reads, &mut server_writes, early, &shared.forth, &mut weather, forth, carried),
            pipe::carry(&mut server_reads, &mut client_writes, Vec::new(), &shared.back, &mut other, back, carried),
        )
    };
    if ended.is_err() {
        let _ = client.set_zero_linger();
        let _ = server.set_zero_linger();
    }
}

/// Makes the far half of a connection, when a handshake would: nothing is cut either way, and a round trip has passed.
/// None: the client went away, or nobody listens there.
async fn reach(
    client: &mut TcpStream,
    shared: &Shared,
    weather: &mut watch::Receiver<u64>,
    early: &mut Vec<u8>,
) -> Option<(End, TcpStream)> {
    let began = Instant::now();
    let targets = shared.link.to.len().max(1);
    let first = shared.turn.fetch_add(1, Ordering::Relaxed);
    for step in 0..targets {
        let (target, address) = shared.link.to.get((first + step) % targets)?;
        let (from, to) = (shared.link.from.as_ref(), Some(target));
        loop {
            weather.mark_unchanged();
            let skies = [(from, to), (to, from)].map(|(from, to)| shared.clouds.sky(from, to, shared.link.service));
            let cut = skies.iter().any(|sky: &Sky| sky.cut);
            let due = began + skies.iter().map(|sky| sky.delay).sum();
            if !cut && due <= Instant::now() {
                break;
            }
            tokio::select! {
                changed = weather.changed() => changed.ok()?,
                () = sleep_until(due), if !cut => {}
                read = client.read_buf(early), if early.len() < EARLY => {
                    if matches!(read, Ok(0) | Err(_)) {
                        return None;
                    }
                }
            }
        }
        if let Ok(Ok(server)) = timeout(CONNECT, TcpStream::connect(address)).await {
            return Some((target.clone(), server));
        }
    }
    None
}
