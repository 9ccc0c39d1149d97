//! The front doors over loopback sockets: they lead to labels, and to nothing else.

use std::collections::BTreeMap;
use std::io::ErrorKind;

use bloodraven_brain::group::Outward;
use bloodraven_brain::group::command::Label;
use bloodraven_brain::name::{Instance, Member, Site};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::*;
use crate::testing::{Folder, store, until, within};

/// Two servers behind the doors, on the addresses that the router finds them under.
struct Rig {
    store: Store,
    network: Network,
    router: Router,
    servers: BTreeMap<String, TcpListener>,
    lives: BTreeMap<String, watch::Sender<SiteState>>,
    _folder: Folder,
}

fn life(pod: &str) -> SiteState {
    SiteState { pod: Some(pod.to_owned()), ..SiteState::default() }
}

fn outward(epoch: u64, primary: Option<(&str, &str)>, labels: &[(&str, bool)]) -> Outward {
    let member = |(site, pod): (&str, &str)| Member { site: Site::new(site), instance: Instance::new(pod, "s") };
    let label = |(site, healthy): &(&str, bool)| (Site::new(site), Label { fenced: false, healthy: Some(*healthy) });
    Outward { epoch, primary: primary.map(member), labels: labels.iter().map(label).collect(), ..Outward::default() }
}

impl Rig {
    async fn new() -> Self {
        let folder = Folder::new();
        let (store, network) = store(&folder);
        let (mut servers, mut lives) = (BTreeMap::new(), BTreeMap::new());
        for site in ["iad", "pdx"] {
            let address = network.link_address(&End::FrontDoor, &End::Site(site.into()), Service::Mysql).unwrap();
            servers.insert(site.to_owned(), TcpListener::bind(address).await.unwrap());
            lives.insert(site.to_owned(), watch::Sender::new(life(&format!("{site}-1"))));
        }
        let states = lives.iter().map(|(site, life)| (site.clone(), life.subscribe())).collect();
        let router = Router::start(&network, &store, states).await.unwrap();
        Self { store, network, router, servers, lives, _folder: folder }
    }

    /// Shows this, and waits until the doors follow.
    async fn show(&self, outward: &Outward) {
        self.store.show(outward).unwrap();
        let wanted = outward.primary.as_ref().map(|it| it.site.to_string());
        let mut routes = self.router.routes();
        let followed = routes.wait_for(|routes| routes.primary.as_ref().map(|it| it.site.clone()) == wanted);
        within("the doors follow", followed).await.unwrap();
    }

    /// A connection through a door that reaches that site, both ends.
    async fn reach(&self, door: SocketAddr, site: &str) -> (TcpStream, TcpStream) {
        let mut client = within("connect", TcpStream::connect(door)).await.unwrap();
        let (mut server, _) = within("accept", self.servers[site].accept()).await.unwrap();
        client.write_all(b"?").await.unwrap();
        assert_eq!(within("question", server.read_u8()).await.unwrap(), b'?');
        server.write_all(b"!").await.unwrap();
        assert_eq!(within("answer", client.read_u8()).await.unwrap(), b'!');
        (client, server)
    }

    async fn refused(&self, door: SocketAddr) {
        let mut client = within("connect", TcpStream::connect(door)).await.unwrap();
        reset(&mut client).await;
    }
}

/// That the connection was reset: neither served nor left hanging.
async fn reset(stream: &mut TcpStream) {
    let read = within("the end", stream.read(&mut [0])).await;
    assert_eq!(read.unwrap_err().kind(), ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn without_a_primary_nothing_is_held() {
    let rig = Rig::new().await;
    rig.refused(rig.network.primary_door()).await;
    rig.refused(rig.network.replicas_door()).await;
    assert_eq!(rig.router.primary(), DoorCounts { came: 1, open: 0, refused: 1, cut: 0 });
}

#[tokio::test]
async fn a_connection_passes_both_ways_with_its_halves() {
    let rig = Rig::new().await;
    rig.show(&outward(1, Some(("iad", "iad-1")), &[])).await;
    let (mut client, mut server) = rig.reach(rig.network.primary_door(), "iad").await;
    client.write_all(b"last words").await.unwrap();
    client.shutdown().await.unwrap();
    let mut heard = Vec::new();
    within("to the end", server.read_to_end(&mut heard)).await.unwrap();
    assert_eq!(heard, b"last words");
    server.write_all(b"answered still").await.unwrap();
    drop(server);
    let mut heard = Vec::new();
    within("to the end", client.read_to_end(&mut heard)).await.unwrap();
    assert_eq!(heard, b"answered still");
    until("it is counted off", || (rig.router.primary().open == 0).then_some(())).await;
    assert_eq!(rig.router.primary(), DoorCounts { came: 1, open: 0, refused: 0, cut: 0 });
}

#[tokio::test]
async fn connections_of_a_revoked_site_are_cut_at_once_and_new_ones_go_to_the_next() {
    let rig = Rig::new().await;
    let door = rig.network.primary_door();
    rig.show(&outward(1, Some(("iad", "iad-1")), &[])).await;
    let (mut client, mut server) = rig.reach(door, "iad").await;
    rig.show(&outward(2, None, &[])).await;
    reset(&mut client).await;
    reset(&mut server).await;
    rig.refused(door).await;
    rig.show(&outward(3, Some(("pdx", "pdx-1")), &[])).await;
    rig.reach(door, "pdx").await;
    assert_eq!(rig.router.primary().cut, 1);
}

#[tokio::test]
async fn a_label_is_a_lifes_and_not_a_places() {
    let rig = Rig::new().await;
    let door = rig.network.primary_door();
    rig.show(&outward(1, Some(("iad", "iad-1")), &[])).await;
    let (mut client, _server) = rig.reach(door, "iad").await;
    rig.lives["iad"].send_replace(life("iad-2"));
    reset(&mut client).await;
    rig.refused(door).await;
    rig.show(&outward(2, Some(("iad", "iad-2")), &[])).await;
    rig.reach(door, "iad").await;
}

#[tokio::test]
async fn replicas_are_read_in_turn_and_an_unhealthy_one_keeps_who_is_there() {
    let rig = Rig::new().await;
    let door = rig.network.replicas_door();
    let (both, one) = ([("iad", true), ("pdx", true)], [("iad", false), ("pdx", true)]);
    let followed = |count: usize| {
        let mut routes = rig.router.routes();
        async move {
            within("the doors follow", routes.wait_for(|it| it.replicas.len() == count)).await.unwrap();
        }
    };
    rig.store.show(&outward(1, None, &both)).unwrap();
    followed(2).await;
    let mut clients = Vec::new();
    for _ in 0..2 {
        clients.push(TcpStream::connect(door).await.unwrap());
    }
    let (mut at_iad, _) = within("one of two", rig.servers["iad"].accept()).await.unwrap();
    let (mut at_pdx, _) = within("one of two", rig.servers["pdx"].accept()).await.unwrap();
    rig.store.show(&outward(2, None, &one)).unwrap();
    followed(1).await;
    for _ in 0..3 {
        rig.reach(door, "pdx").await;
    }
    at_iad.write_all(b"i").await.unwrap();
    at_pdx.write_all(b"p").await.unwrap();
    let mut heard = Vec::new();
    for client in &mut clients {
        heard.push(within("still there", client.read_u8()).await.unwrap());
    }
    heard.sort_unstable();
    assert_eq!(heard, b"ip");
    // Promoted: it is no replica any more.
    rig.show(&outward(3, Some(("iad", "iad-1")), &[("pdx", true)])).await;
    reset(&mut at_iad).await;
}

#[tokio::test]
async fn a_site_that_does_not_listen_is_refused() {
    let mut rig = Rig::new().await;
    rig.show(&outward(1, Some(("iad", "iad-1")), &[])).await;
    rig.servers.remove("iad");
    rig.refused(rig.network.primary_door()).await;
}

#[tokio::test]
async fn a_door_that_is_taken_is_named() {
    let folder = Folder::new();
    let (store, network) = store(&folder);
    let _taken = TcpListener::bind(network.replicas_door()).await.unwrap();
    let error = Router::start(&network, &store, BTreeMap::new()).await.unwrap_err().to_string();
    assert!(error.contains(&network.replicas_door().to_string()) && error.contains("front door"), "{error}");
}
