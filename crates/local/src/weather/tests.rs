//! Weather over loopback sockets: what is cut is silent, what heals arrives, nothing is lost or reordered.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, timeout};

use super::*;
use crate::testing::{until, within};

/// Long enough for bytes that are not held back: a hundred times what loopback needs.
const SOON: Duration = Duration::from_millis(100);

/// One link from iad to pdx, and who listens at its far end.
struct Rig {
    weather: Weather,
    far: TcpListener,
    near: SocketAddr,
}

fn site(name: &str) -> End {
    End::Site(name.to_owned())
}

/// An address that is free: bound, then given back.
async fn free() -> SocketAddr {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap().local_addr().unwrap()
}

impl Rig {
    async fn new() -> Self {
        let far = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let near = free().await;
        let to = vec![(site("pdx"), far.local_addr().unwrap())];
        let link = Link { from: Some(site("iad")), to, service: Service::Mysql, listen: near };
        Self { weather: Weather::over(vec![link]).unwrap(), far, near }
    }

    /// A connection over the link, both ends.
    async fn connected(&self) -> (TcpStream, TcpStream) {
        let near = within("connect", TcpStream::connect(self.near)).await.unwrap();
        let (far, _) = within("accept", self.far.accept()).await.unwrap();
        (near, far)
    }
}

async fn read(stream: &mut TcpStream, bytes: usize) -> Vec<u8> {
    let mut buffer = vec![0; bytes];
    within("read", stream.read_exact(&mut buffer)).await.unwrap();
    buffer
}

/// That nothing arrives for a moment.
async fn silent(stream: &mut TcpStream) {
    let mut byte = [0];
    let heard = timeout(SOON, stream.read(&mut byte)).await;
    assert!(heard.is_err(), "{heard:?}");
}

#[tokio::test]
async fn fair_weather_carries_bytes_both_ways_and_the_end_of_each_half() {
    let rig = Rig::new().await;
    let (mut near, mut far) = rig.connected().await;
    near.write_all(b"question").await.unwrap();
    near.shutdown().await.unwrap();
    assert_eq!(read(&mut far, 8).await, b"question");
    assert_eq!(within("end", far.read(&mut [0])).await.unwrap(), 0);
    far.write_all(b"answer").await.unwrap();
    assert_eq!(read(&mut near, 6).await, b"answer");
    drop(far);
    assert_eq!(within("end", near.read(&mut [0])).await.unwrap(), 0);
    until("the connection is counted off", || (rig.weather.counts().open == 0).then_some(())).await;
    assert_eq!(rig.weather.counts().bytes, 14);
}

#[tokio::test]
async fn a_cut_holds_back_what_is_under_way_and_healing_delivers_it() {
    let rig = Rig::new().await;
    let (mut near, mut far) = rig.connected().await;
    let storm = rig.weather.cut("iad", "pdx");
    near.write_all(b"late").await.unwrap();
    far.write_all(b"too").await.unwrap();
    silent(&mut far).await;
    silent(&mut near).await;
    drop(storm);
    assert_eq!(read(&mut far, 4).await, b"late");
    assert_eq!(read(&mut near, 3).await, b"too");
    assert!(rig.weather.faults().is_empty());
}

#[tokio::test]
async fn a_one_way_cut_lets_the_other_way_pass() {
    let rig = Rig::new().await;
    let (mut near, mut far) = rig.connected().await;
    let storm = rig.weather.cut_one_way("pdx", "iad");
    near.write_all(b"request").await.unwrap();
    assert_eq!(read(&mut far, 7).await, b"request");
    far.write_all(b"reply").await.unwrap();
    silent(&mut near).await;
    storm.end();
    assert_eq!(read(&mut near, 5).await, b"reply");
}

#[tokio::test]
async fn a_connection_begun_over_a_cut_reaches_nobody_until_it_heals() {
    let rig = Rig::new().await;
    let both = || rig.weather.cut("iad", "pdx");
    let back = || rig.weather.cut_one_way("pdx", "iad");
    for cut in [&both as &dyn Fn() -> Storm, &back] {
        let storm = cut();
        let mut near = within("connect", TcpStream::connect(rig.near)).await.unwrap();
        near.write_all(b"early").await.unwrap();
        assert!(
            timeout(SOON, rig.far.accept()).await.is_err(),
            "a handshake cannot pass a link that is cut either way"
        );
        storm.end();
        let (mut far, _) = within("accept", rig.far.accept()).await.unwrap();
        assert_eq!(read(&mut far, 5).await, b"early");
    }
}

#[tokio::test]
async fn who_gave_up_behind_a_cut_is_never_heard() {
    let rig = Rig::new().await;
    let storm = rig.weather.cut("iad", "pdx");
    let mut gone = within("connect", TcpStream::connect(rig.near)).await.unwrap();
    gone.write_all(b"never").await.unwrap();
    until("it is taken", || (rig.weather.counts().open == 1).then_some(())).await;
    drop(gone);
    until("it is given up", || (rig.weather.counts().open == 0).then_some(())).await;
    storm.end();
    assert!(timeout(SOON, rig.far.accept()).await.is_err());
}

#[tokio::test]
async fn a_port_that_nobody_listens_on_resets() {
    let rig = Rig::new().await;
    let Rig { weather, far, near } = rig;
    drop(far);
    let mut client = within("connect", TcpStream::connect(near)).await.unwrap();
    let read = within("read", client.read(&mut [0])).await;
    assert_eq!(read.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
    drop(weather);
}

#[tokio::test]
async fn a_delay_counts_each_way_and_for_connections_that_are_there() {
    let rig = Rig::new().await;
    let (mut near, mut far) = rig.connected().await;
    let by = Duration::from_millis(150);
    let _storm = rig.weather.delay("iad", "pdx", by);
    let began = Instant::now();
    near.write_all(b"a").await.unwrap();
    near.write_all(b"b").await.unwrap();
    assert_eq!(read(&mut far, 2).await, b"ab");
    assert!(began.elapsed() >= by, "{:?}", began.elapsed());
    let began = Instant::now();
    far.write_all(b"c").await.unwrap();
    assert_eq!(read(&mut near, 1).await, b"c");
    assert!(began.elapsed() >= by, "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_delay_that_ends_lets_what_waits_arrive_at_once_and_in_order() {
    let rig = Rig::new().await;
    let (mut near, mut far) = rig.connected().await;
    let storm = rig.weather.delay("iad", "pdx", Duration::from_mins(10));
    let text: Vec<u8> = (0..200_000_u32).map(|number| u8::try_from(number % 251).unwrap()).collect();
    near.write_all(&text).await.unwrap();
    silent(&mut far).await;
    storm.end();
    assert_eq!(read(&mut far, text.len()).await, text);
}

#[tokio::test]
async fn a_slow_link_takes_its_time_and_loses_nothing() {
    let rig = Rig::new().await;
    let (mut near, mut far) = rig.connected().await;
    let storm = rig.weather.slow("iad", "pdx", 100_000);
    let text: Vec<u8> = (0..30_000_u32).map(|number| u8::try_from(number % 251).unwrap()).collect();
    let began = Instant::now();
    near.write_all(&text).await.unwrap();
    assert_eq!(read(&mut far, text.len()).await, text);
    let took = began.elapsed();
    // The first piece is free, and the clock of the test may be off by a tick.
    assert!(took >= Duration::from_millis(180), "{took:?}");
    storm.end();
    near.write_all(&text).await.unwrap();
    assert_eq!(read(&mut far, text.len()).await, text);
}

#[tokio::test]
async fn storms_add_up_and_healing_ends_all_of_them() {
    let rig = Rig::new().await;
    let (mut near, mut far) = rig.connected().await;
    let one = rig.weather.cut("iad", "pdx");
    let other = rig.weather.isolate("pdx");
    one.end();
    near.write_all(b"x").await.unwrap();
    silent(&mut far).await;
    other.stay();
    silent(&mut far).await;
    rig.weather.heal();
    assert_eq!(read(&mut far, 1).await, b"x");
    rig.weather.cut("iad", "pdx").stay();
    rig.weather.heal_between("pdx", "iad");
    assert!(rig.weather.faults().is_empty());
}

#[tokio::test]
async fn a_link_to_several_takes_the_next_one_that_answers() {
    let (dead, near) = (free().await, free().await);
    let alive = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let to = vec![(End::Operator(0), dead), (End::Operator(1), alive.local_addr().unwrap())];
    let link = Link { from: Some(site("iad")), to, service: Service::Aux, listen: near };
    let _weather = Weather::over(vec![link]).unwrap();
    for _ in 0..4 {
        let mut client = within("connect", TcpStream::connect(near)).await.unwrap();
        let (mut far, _) = within("accept", alive.accept()).await.unwrap();
        client.write_all(b"?").await.unwrap();
        assert_eq!(read(&mut far, 1).await, b"?");
    }
}

#[tokio::test]
async fn an_address_that_is_taken_is_named() {
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let listen = taken.local_addr().unwrap();
    let link = Link { from: None, to: vec![(End::Operator(0), listen)], service: Service::Aux, listen };
    let error = Weather::over(vec![link]).unwrap_err().to_string();
    assert!(error.contains(&listen.to_string()) && error.contains("any site to the operator's port"), "{error}");
}

#[tokio::test]
async fn every_link_of_a_network_can_be_listened_on() {
    let names: Vec<String> = ["iad", "pdx", "fra"].map(ToOwned::to_owned).into();
    let folder = crate::testing::Folder::new();
    let network = Network::of(folder.path(), &names).unwrap();
    let links = link::all(&network, 2);
    // To each of 3 sites: the front door, 2 services of 2 operators, 2 services of 2 sites. To the operators: one of each
    // site, one of each operator for whoever it is.
    assert_eq!(links.len(), 3 * (1 + 4 + 4) + 3 + 2);
    let _weather = Weather::start(&network, 2).unwrap();
}
