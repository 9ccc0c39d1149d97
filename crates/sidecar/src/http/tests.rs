//! The server over loopback, with an actor that the tests play: garbage, too much, too slow, forged, played again.

use super::*;
use crate::config::{Config, Mysql};
use crate::event::{Look, Outside, PushAnswer, VouchAnswer};
use crate::keys::KeyRing;
use crate::local::Local;
use crate::tell::Teller;
use crate::testing::Folder;
use bloodraven_brain::fence::Mysqld;
use bloodraven_brain::message::{Ack, Grant, Question, QuestionId, Vouch};
use bloodraven_brain::name::{Instance, Member, Site};
use bloodraven_brain::record::{Phase, Settings, View};
use bloodraven_brain::time::{Boot, Millis};
use bloodraven_wire::message::Details;
use bloodraven_wire::outstanding::Asked;
use bloodraven_wire::query::{self, Purpose};
use bloodraven_wire::{
    AckMessage, EmptyMessage, Envelope, GrantMessage, GroupUid, Key, Keys, MAX_ENVELOPE_BYTES, Nonce, Outstanding,
    QuestionMessage, ViewMessage, VouchMessage,
};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::mpsc;

const SOON: Duration = Duration::from_secs(10);
const LEASE: Millis = Millis(20_000);

fn member(site: &str) -> Member {
    Member::new(&Site::new(site), &Instance::new("pod", &format!("store-{site}")))
}

fn view(epoch: u64) -> View {
    View {
        epoch,
        tenure: epoch,
        phase: Phase::Stable,
        seat: Some(member("iad")),
        voters: vec![member("iad"), member("pdx")],
        settings: Settings { lease_timeout: LEASE, min_peers: 1 },
    }
}

fn nonce(number: u8) -> Nonce {
    Nonce::new([number; 16])
}

fn ack() -> Ack {
    Ack {
        from: member("iad"),
        epoch: Some(7),
        fenced: false,
        gtid: None,
        fenced_by: None,
        opened_by_hand: false,
        conflict: false,
        mysqld: None,
        last_vouch: BTreeMap::new(),
        last_answer: BTreeMap::new(),
        uptime: Millis(5),
    }
}

fn look() -> Look {
    Look {
        me: member("iad"),
        view: Some((view(7), "2026-01-02T03:04:05Z".into())),
        fenced: true,
        fenced_by: None,
        mysqld: Mysqld::Down,
        opened: None,
        lease_remaining: Millis(1500),
        variables: None,
        contact: vec![("pdx".into(), Millis(10))],
    }
}

struct Bench {
    _folder: Folder,
    address: SocketAddr,
    keys: Keys,
    group: GroupUid,
    outstanding: Arc<Mutex<Outstanding>>,
    heard: Arc<Mutex<Vec<String>>>,
    _tasks: JoinSet<()>,
}

impl Bench {
    async fn new() -> Self {
        let folder = Folder::new();
        let key_file = folder.path().join("hmac.key");
        std::fs::write(&key_file, [7; 32]).expect("a key");
        for name in ["username", "password"] {
            std::fs::write(folder.path().join(name), "x").expect("a file");
        }
        let nowhere = ("127.0.0.1".to_owned(), 1);
        let config = Config {
            site: Site::new("iad"),
            group: "orders".into(),
            group_uid: "uid".into(),
            namespace: "shop".into(),
            pod_name: "pod".into(),
            pod_uid: "pod".into(),
            peers: BTreeMap::new(),
            operator: "127.0.0.1:1".into(),
            check_interval: Duration::from_secs(5),
            mysql: Mysql { admin: nowhere.clone(), client: nowhere, credentials: folder.path().into(), tls: None },
            key_file: key_file.clone(),
            state_dir: folder.path().into(),
            keeper_socket: folder.path().join("k"),
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        };
        let keys = KeyRing::read(&key_file).expect("a key");
        let (outside, inbox) = mpsc::channel(8);
        let (outstanding, heard) = (Arc::new(Mutex::new(Outstanding::default())), Arc::default());
        // Nobody is at its socket.
        let (keeper, _) = crate::keeper::Keeper::at(config.keeper_socket.clone(), mpsc::channel(1).0);
        let service = Service::new(
            GroupUid::new("uid"),
            keys.clone(),
            outside,
            Arc::clone(&outstanding),
            (Arc::new(Local::new(config.mysql.clone()).expect("an account")), keeper),
            Teller::new(&config, &member("iad")),
            crate::volume::Gauge::of(&config.state_dir),
        );
        let listener = TcpListener::bind(config.listen).await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let mut tasks = JoinSet::new();
        tasks.spawn(serve(listener, Arc::new(service)));
        tasks.spawn(play_actor(inbox, Arc::clone(&heard)));
        let group = GroupUid::new("uid");
        Self { _folder: folder, address, keys: keys.now(), group, outstanding, heard, _tasks: tasks }
    }

    fn heard(&self) -> Vec<String> {
        self.heard.lock().expect("no panic").clone()
    }

    /// Status and body of one exchange, byte for byte as given.
    async fn raw(&self, request: &[u8]) -> (u16, String) {
        let mut stream = TcpStream::connect(self.address).await.expect("it listens");
        // A server that has heard enough may have hung up already.
        let _ = stream.write_all(request).await;
        let mut bytes = Vec::new();
        let _ = timeout(SOON, stream.read_to_end(&mut bytes)).await.expect("an end");
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let status = text.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
        let body = text.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default();
        (status, body)
    }

    async fn get(&self, target: &str) -> (u16, String) {
        self.raw(format!("GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").as_bytes()).await
    }

    async fn post(&self, body: &str) -> (u16, String) {
        self.post_to("/authority", body).await
    }

    async fn post_to(&self, path: &str, body: &str) -> (u16, String) {
        let length = body.len();
        let head = format!("POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n");
        self.raw(format!("{head}{body}").as_bytes()).await
    }

    fn sealed_view(keys: &Keys, group: &str, epoch: u64) -> String {
        let observed_at = "2026-01-02T03:04:05Z".to_owned();
        let message = ViewMessage { group: GroupUid::new(group), view: view(epoch), observed_at };
        message.seal(keys, nonce(1)).expect("a view").to_string()
    }

    fn question(&self, number: u8) -> String {
        let question = Question { id: QuestionId(1), from: member("pdx"), epoch: 7, open: false };
        let message = QuestionMessage { group: self.group.clone(), nonce: nonce(number), question, t_send: Boot(1) };
        message.to_target(&self.keys, "/peer/ping", &[]).expect("a question")
    }
}

/// Answers everything the friendliest way, and writes down what came.
async fn play_actor(mut inbox: mpsc::Receiver<Outside>, heard: Arc<Mutex<Vec<String>>>) {
    while let Some(outside) = inbox.recv().await {
        let answer = || PushAnswer::Ack {
            ack: Box::new(ack()),
            details: Details::default(),
            question: None,
            relayed: Vec::new(),
        };
        let said = match outside {
            Outside::Push { view, answer: to, source, .. } => {
                let reply = match view.epoch {
                    500 => PushAnswer::Conflict,
                    507 => PushAnswer::NotStored,
                    _ => answer(),
                };
                let _ = to.send(reply);
                format!("view {} from {source:?}", view.epoch)
            }
            Outside::PushedGrant { grant, answer: to, .. } => {
                let _ = to.send(answer());
                format!("grant {}", grant.id.0)
            }
            Outside::Question { question, answer: to } => {
                let vouch = Vouch {
                    id: QuestionId(0),
                    epoch: question.epoch,
                    from: member("iad"),
                    about: question.from,
                    ok: true,
                    gtid: None,
                    ack: Box::new(ack()),
                };
                let _ = to.send(VouchAnswer { vouch, highest_epoch: 7, details: Details::default() });
                "question".to_owned()
            }
            Outside::Probe(to) => {
                let _ = to.send(answer());
                "probe".to_owned()
            }
            Outside::Empty { order, answer: to } => {
                let _ = to.send(if order.epoch == 7 { Ok(()) } else { Err("another epoch".to_owned()) });
                format!("empty {}", order.epoch)
            }
            Outside::Look(to) => {
                let _ = to.send(look());
                continue;
            }
            other => format!("{other:?}"),
        };
        heard.lock().expect("no panic").push(said);
    }
}

#[tokio::test]
async fn paths_and_methods_are_those_of_the_contract() {
    let bench = Bench::new().await;
    let rows = [
        ("GET", "/peer/ping", 200),
        ("GET", "/peer/active-site", 200),
        ("GET", "/metrics", 200),
        ("GET", "/health", 503),
        ("GET", "/status", 503),
        ("GET", "/", 404),
        ("GET", "/peer/ping/", 404),
        ("GET", "/peer", 404),
        ("POST", "/peer/ping", 405),
        ("DELETE", "/authority", 405),
        ("PUT", "/status", 405),
        ("GET", "/authority", 401),
        ("POST", "/authority", 400),
        ("POST", "/empty", 400),
        ("GET", "/empty", 405),
    ];
    for (method, path, expect) in rows {
        let request = format!("{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
        let (status, body) = bench.raw(request.as_bytes()).await;
        assert_eq!(status, expect, "{method} {path}: {body}");
        if status >= 400 && path != "/status" {
            assert!(body.starts_with(r#"{"error":"#), "{method} {path}: {body}");
        }
    }
    let (_, pong) = bench.get("/peer/ping").await;
    assert_eq!(pong, "pong");
    assert!(bench.heard().is_empty(), "nothing of it reached the brain");
}

#[tokio::test]
async fn status_tells_what_is_known_while_mysql_is_silent() {
    let bench = Bench::new().await;
    let (status, body) = bench.get("/status").await;
    let told: serde_json::Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!(status, 503);
    assert_eq!((told["epoch"].as_u64(), told["mysqld"].as_str()), (Some(7), Some("down")));
    assert_eq!(told["instance"].as_str(), Some("pod/store-iad"));
    assert!(told["error"].is_string() && told["self_fenced"] == true && told["viewSite"] == "iad");
    assert!(told["volumeFreeBytes"].is_u64() && told["leaseRemainingMs"] == 1500);
    let (_, metrics) = bench.get("/metrics").await;
    assert!(metrics.contains("bloodraven_sidecar_fenced"), "{metrics}");
    assert!(metrics.contains(r#"peer="pdx""#), "{metrics}");
}

#[tokio::test]
async fn a_view_is_taken_and_acknowledged_under_its_nonce() {
    let bench = Bench::new().await;
    let (status, body) = bench.post(&Bench::sealed_view(&bench.keys, "uid", 7)).await;
    assert_eq!(status, 200, "{body}");
    let verified = Envelope::read(body.as_bytes()).expect("an envelope").open_answer(&bench.keys, nonce(1));
    AckMessage::open(&verified.expect("signed"), &bench.group, QuestionId(0)).expect("an acknowledgement");
    assert_eq!(bench.heard(), ["view 7 from Operator"]);
    for (epoch, expect) in [(500, 409), (507, 507)] {
        let (status, body) = bench.post(&Bench::sealed_view(&bench.keys, "uid", epoch)).await;
        assert_eq!(status, expect, "{body}");
    }
}

/// F-24: what nobody signed, or was signed for something else, changes nothing.
#[tokio::test]
async fn forged_and_malformed_bodies_are_refused() {
    let bench = Bench::new().await;
    let strangers = Keys::only(Key::new([8; 32]));
    let whole = Bench::sealed_view(&bench.keys, "uid", 7);
    let question = Question { id: QuestionId(1), from: member("pdx"), epoch: 7, open: true };
    let grant = Grant { id: question.id, to: member("iad"), view: view(7), open: None };
    let observed_at = String::from("2026-01-02T03:04:05Z");
    let grant = GrantMessage { group: bench.group.clone(), grant, observed_at, reason: String::new() };
    let grant = grant.seal(&bench.keys, nonce(9)).expect("a grant").to_string();
    let rows = [
        (String::new(), 400),
        ("garbage".to_owned(), 400),
        ("[]".to_owned(), 400),
        (format!("{whole}{whole}"), 400),
        (whole.replacen("Stable", "Revoking", 1), 401),
        (whole.replacen("\"view\"", "\"grant\"", 1), 401),
        (whole.replacen("\"mac\":\"", "\"mac\":\"00", 1), 401),
        (Bench::sealed_view(&strangers, "uid", 7), 401),
        (Bench::sealed_view(&bench.keys, "other", 7), 400),
        (grant, 400),
    ];
    for (body, expect) in rows {
        let (status, answer) = bench.post(&body).await;
        assert_eq!(status, expect, "{body:.60}: {answer}");
    }
    assert!(bench.heard().is_empty(), "{:?}", bench.heard());
}

/// F-30: a grant counts for an outstanding question, and once.
#[tokio::test]
async fn a_grant_counts_once_for_its_question() {
    let bench = Bench::new().await;
    let asked = Asked { id: QuestionId(41), t_send: crate::clock::boot() };
    assert!(bench.outstanding.lock().expect("no panic").ask(nonce(9), asked, LEASE));
    let grant = Grant { id: QuestionId(0), to: member("iad"), view: view(7), open: None };
    let observed_at = String::from("2026-01-02T03:04:05Z");
    let message = GrantMessage { group: bench.group.clone(), grant, observed_at, reason: String::new() };
    let body = message.seal(&bench.keys, nonce(9)).expect("a grant").to_string();
    let (status, answer) = bench.post(&body).await;
    assert_eq!(status, 200, "{answer}");
    let (status, _) = bench.post(&body).await;
    assert_eq!(status, 400, "played again");
    assert_eq!(bench.heard(), ["grant 41"]);
}

/// F-24: a question that is played again is none.
#[tokio::test]
async fn a_question_is_answered_once() {
    let bench = Bench::new().await;
    let target = bench.question(3);
    let (status, body) = bench.get(&target).await;
    assert_eq!(status, 200, "{body}");
    let verified = Envelope::read(body.as_bytes()).expect("an envelope").open_answer(&bench.keys, nonce(3));
    let vouch = VouchMessage::open(&verified.expect("signed"), &bench.group, QuestionId(1)).expect("a vouch").vouch;
    assert!(vouch.ok && vouch.about == member("pdx"));
    assert_eq!(bench.get(&target).await.0, 401, "played again");
    let forged = bench.question(4).replacen("epoch=7", "epoch=8", 1);
    assert_eq!(bench.get(&forged).await.0, 401, "changed on the way");
    assert_eq!(bench.get("/peer/ping?mac=00").await.0, 400);
    assert_eq!(bench.heard(), ["question"]);
}

#[tokio::test]
async fn the_leader_may_ask_how_this_sidecar_is() {
    let bench = Bench::new().await;
    let sign = |group| query::sign(&bench.keys, Purpose::Other, "/authority", &[("groupUid", group)], nonce(5));
    let (status, body) = bench.get(&sign("uid").expect("a request")).await;
    assert_eq!(status, 200, "{body}");
    let verified = Envelope::read(body.as_bytes()).expect("an envelope").open_answer(&bench.keys, nonce(5));
    AckMessage::open(&verified.expect("signed"), &bench.group, QuestionId(0)).expect("an acknowledgement");
    assert_eq!(bench.get(&sign("other").expect("a request")).await.0, 400);
}

#[tokio::test]
async fn a_peer_gets_the_view_signed_under_its_nonce() {
    let bench = Bench::new().await;
    let parameters = [("groupUid", "uid")];
    let target = query::sign(&bench.keys, Purpose::Other, "/peer/active-site", &parameters, nonce(6));
    let (status, body) = bench.get(&target.expect("a request")).await;
    assert_eq!(status, 200, "{body}");
    let signed = Envelope::read_signed(body.as_bytes()).expect("JSON").expect("signed");
    let verified = signed.open_answer(&bench.keys, nonce(6)).expect("ours");
    assert_eq!(ViewMessage::open(&verified, &bench.group).expect("a view").view, view(7));
    let (_, plain) = bench.get("/peer/active-site").await;
    assert!(plain.contains(r#""activeSite":"iad""#) && !plain.contains("signed"), "{plain}");
}

/// K-23: a body has its limit.
#[tokio::test]
async fn too_much_is_refused_before_it_is_read() {
    let bench = Bench::new().await;
    let length = MAX_ENVELOPE_BYTES + 1;
    let announced = format!("POST /authority HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n");
    let (status, _) = bench.raw(announced.as_bytes()).await;
    assert_eq!(status, 413, "announced");
    let mut chunked =
        b"POST /authority HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    chunked.extend(format!("{length:x}\r\n{}\r\n0\r\n\r\n", "x".repeat(length)).bytes());
    let (status, _) = bench.raw(&chunked).await;
    assert_eq!(status, 413, "without a word about its length");
    let long = format!("GET /peer/ping?{} HTTP/1.1\r\nHost: x\r\n\r\n", "a".repeat(4 * HEAD_BYTES));
    let (status, _) = bench.raw(long.as_bytes()).await;
    assert!(matches!(status, 400 | 414 | 431), "{status}");
}

#[tokio::test]
async fn what_is_no_http_is_no_request() {
    let bench = Bench::new().await;
    for garbage in [&b"\0\x01\x02\x03\r\n\r\n"[..], b"GET\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"] {
        let mut stream = TcpStream::connect(bench.address).await.expect("it listens");
        stream.write_all(garbage).await.expect("sent");
        stream.shutdown().await.expect("done");
        let mut bytes = Vec::new();
        let _ = timeout(SOON, stream.read_to_end(&mut bytes)).await.expect("an end");
        assert!(bytes.is_empty() || bytes.starts_with(b"HTTP/1.1 400"), "{bytes:?}");
    }
    assert_eq!(bench.get("/peer/ping").await.1, "pong");
}

/// K-23: so has the time for it.
#[tokio::test]
async fn a_body_that_does_not_come_is_not_waited_for() {
    let bench = Bench::new().await;
    let (status, _) = bench.raw(b"POST /authority HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf").await;
    assert_eq!(status, 408);
}

/// Silent clients and slow ones, more than there is room for: who comes with a request is served all the same.
/// K-23: and the number of those who wait.
#[tokio::test]
async fn slow_clients_give_way() {
    let bench = Bench::new().await;
    let mut held = Vec::new();
    for number in 0..MOST_CONNECTIONS + 8 {
        let mut stream = TcpStream::connect(bench.address).await.expect("it listens");
        let begun: &[u8] = if number % 2 == 0 { b"" } else { b"GET /peer/ping HTTP/1.1\r\nHost: " };
        stream.write_all(begun).await.expect("sent");
        held.push(stream);
    }
    for _ in 0..MOST_CONNECTIONS {
        assert_eq!(bench.get("/peer/ping").await.1, "pong");
    }
    drop(held);
}

/// What is not signed, is played again, or is refused by the brain, reaches neither server nor keeper.
#[tokio::test]
async fn an_order_to_empty_is_signed_new_and_judged_before_the_server_is_read() {
    let bench = Bench::new().await;
    let order = |keys: &Keys, group: &str, epoch: u64, number: u8| {
        let message = EmptyMessage {
            group: GroupUid::new(group),
            to: member("iad"),
            epoch,
            start: bloodraven_brain::message::StartId(7),
            server: "3e11fa47-71ca-11e1-9e33-c80aa9429562".parse().expect("a uuid"),
            over: bloodraven_gtid::GtidSet::new(),
            until_uptime: Millis(1),
        };
        message.seal(keys, nonce(number)).expect("an order").to_string()
    };
    let stranger = Keys::only(Key::new([8; 32]));
    assert_eq!(bench.post_to("/empty", &order(&stranger, "uid", 7, 1)).await.0, 401);
    assert_eq!(bench.post_to("/empty", &order(&bench.keys, "another", 7, 1)).await.0, 400);
    assert_eq!(bench.post_to("/empty", &Bench::sealed_view(&bench.keys, "uid", 7)).await.0, 400);
    assert!(bench.heard().is_empty());
    let (status, body) = bench.post_to("/empty", &order(&bench.keys, "uid", 6, 1)).await;
    assert_eq!((status, body.as_str()), (409, r#"{"error":"another epoch"}"#));
    let (status, body) = bench.post_to("/empty", &order(&bench.keys, "uid", 6, 1)).await;
    assert_eq!((status, body.as_str()), (401, r#"{"error":"the nonce was used before"}"#));
    // The server does not answer: nothing is known of what it holds.
    assert_eq!(bench.post_to("/empty", &order(&bench.keys, "uid", 7, 2)).await.0, 409);
    assert_eq!(bench.heard(), ["empty 6", "empty 7"]);
    assert_eq!(bench.post(&order(&bench.keys, "uid", 7, 3)).await.0, 400, "not where views go");
}
