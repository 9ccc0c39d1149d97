//! HTTP: what strangers, sidecars and tools get.

use crate::testing::{Bed, Running, keys, operate, until, writer};
use bloodraven_brain::message::QuestionId;
use bloodraven_wire::{Envelope, GrantMessage, GroupUid, Key, Keys, Kind, QuestionMessage, ViewMessage};
use futures_util::StreamExt;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

const WHERE: [(&str, &str); 2] = [("namespace", "shop"), ("group", "orders")];

fn target(keys: &Keys, message: &QuestionMessage) -> String {
    message.to_target(keys, "/active-site", &WHERE).expect("a target")
}

/// The envelope under that nonce.
fn signed(body: &Value, message: &QuestionMessage) -> bloodraven_wire::Verified {
    let text = body.to_string();
    let envelope = Envelope::read_signed(text.as_bytes()).expect("readable").expect("signed");
    envelope.open_answer(&keys(), message.nonce).expect("the right signature and nonce")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signed_question_gets_a_grant_once_and_only_if_it_is_the_asker_s() {
    let bed = Bed::new(&["iad", "pdx"]).await;
    let operator = operate(&bed, "one").await;
    assert_eq!(writer(&bed, None).await, "iad");
    let uid = GroupUid::new("uid-orders");

    // While a voter is taken in the record is being stored, and nobody is granted anything: the next question is.
    let (epoch, mine, verified) = until("a grant", async || {
        let epoch = crate::testing::status(&bed)["authority"]["epoch"].as_u64().expect("an epoch");
        let mine = bed.sidecars["iad"].state.question(epoch);
        let (code, body) = operator.get(&target(&keys(), &mine)).await;
        assert_eq!((code, &body["activeSite"], &body["leader"]), (200, &json!("iad"), &json!(true)));
        let verified = signed(&body, &mine);
        (verified.kind() == Kind::Grant).then_some((epoch, mine, verified))
    })
    .await;
    let grant = GrantMessage::open(&verified, &uid, QuestionId(9)).expect("a grant").grant;
    assert_eq!((grant.id, &grant.to), (QuestionId(9), &mine.question.from));
    assert!(grant.open.is_some());

    // A recording of it.
    let (code, body) = operator.get(&target(&keys(), &mine)).await;
    assert_eq!((code, &body["error"]), (401, &json!("the nonce was used before")));

    // Whose epoch it is not gets the view alone.
    let other = bed.sidecars["pdx"].state.question(epoch);
    let (code, body) = operator.get(&target(&keys(), &other)).await;
    let verified = signed(&body, &other);
    assert_eq!((code, verified.kind()), (200, Kind::View));
    assert_eq!(ViewMessage::open(&verified, &uid).expect("a view").view.epoch, epoch);

    // Another key, another group, a changed query.
    let wrong = bed.sidecars["iad"].state.question(epoch);
    let strangers = Keys::only(Key::new([8; 32]));
    assert_eq!(operator.get(&target(&strangers, &wrong)).await.0, 401);
    let changed = target(&keys(), &wrong).replace("open=true", "open=false");
    assert_eq!(operator.get(&changed).await.0, 401);
    let elsewhere = QuestionMessage { group: GroupUid::new("uid-other"), ..bed.sidecars["iad"].state.question(epoch) };
    assert_eq!(operator.get(&target(&keys(), &elsewhere)).await.0, 404);
    let unsigned = target(&keys(), &wrong);
    let unsigned = unsigned.split("&mac=").next().expect("a beginning");
    assert_eq!(operator.get(unsigned).await.0, 400);
    // None of these used the nonce up.
    assert_eq!(operator.get(&target(&keys(), &wrong)).await.0, 200);
}

/// K-23: bodies, targets and headers have their limits.
#[tokio::test(flavor = "multi_thread")]
async fn strangers_get_short_answers() {
    let bed = Bed::new(&["iad", "pdx"]).await;
    let operator = operate(&bed, "one").await;
    writer(&bed, None).await;
    let long = format!("/active-site?namespace=shop&group=orders&nonce=00&mac={}", "a".repeat(9000));
    let rows = [
        ("/", 404),
        ("/nothing", 404),
        ("/active-site", 400),
        ("/active-site?namespace=shop", 400),
        ("/active-site?namespace=shop&group=", 400),
        ("/active-site?namespace=shop&group=%ff", 404),
        ("/active-site?namespace=shop&group=other", 404),
        ("/active-site?namespace=shop&group=orders", 200),
        ("/active-site?namespace=shop&group=orders&mac=00", 400),
        ("/active-site?namespace=shop&group=orders&nonce=00&mac=00", 400),
        (long.as_str(), 414),
        ("/status", 200),
        ("/why", 200),
        ("/why?namespace=shop&group=orders", 200),
        ("/why?namespace=shop&group=other", 404),
        ("/what-if?kill=lax", 400),
        ("/ws/status", 400),
        ("/metrics", 200),
    ];
    for (target, expected) in rows {
        let (code, body) = operator.get(target).await;
        assert_eq!(code, expected, "{target}: {body}");
        assert!(code == 200 || body["error"].is_string(), "{target}: {body}");
    }
    assert_eq!(raw(&operator, "POST /status HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n").await, 405);
    assert_eq!(raw(&operator, "DELETE /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await, 405);
    assert_eq!(raw(&operator, "GET /status HTTP/1.1\r\nhost: x\r\ncontent-length: 70000\r\n\r\n").await, 413);
    assert_eq!(
        raw(&operator, "GET /status HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n").await,
        411
    );
    let headers = "x: y\r\n".repeat(4000);
    assert_eq!(raw(&operator, &format!("GET /status HTTP/1.1\r\nhost: x\r\n{headers}\r\n")).await, 431);
    assert_eq!(raw(&operator, "nonsense\r\n\r\n").await, 400);
    // A client that says half a request keeps nobody else waiting.
    let _half = TcpStream::connect(operator.address).await.expect("a connection");
    assert_eq!(operator.get("/healthz").await, (200, json!("ok")));
}

/// The status code of an answer to these very bytes.
async fn raw(operator: &Running, request: &str) -> u16 {
    let mut stream = TcpStream::connect(operator.address).await.expect("a connection");
    stream.write_all(request.as_bytes()).await.expect("it takes them");
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await.expect("an answer");
    String::from_utf8_lossy(&answer[9..]).parse().expect("a code")
}

#[tokio::test(flavor = "multi_thread")]
async fn why_and_what_if_speak_of_the_leader_as_it_is() {
    let bed = Bed::new(&["iad", "pdx", "fra"]).await;
    let operator = operate(&bed, "one").await;
    assert_eq!(writer(&bed, None).await, "iad");
    let why = until("it is ready", async || {
        let (_, why) = operator.get("/why").await;
        (why["ready"] == json!(true)).then_some(why)
    })
    .await;
    assert_eq!((&why["record"]["site"], &why["obstacle"]), (&json!("iad"), &Value::Null));
    let decisions = why["decisions"].as_array().expect("a list");
    assert!(decisions.iter().any(|one| one["kind"] == "AuthorityChanged"), "{why}");
    let (code, forecast) = operator.get("/what-if?kill=iad").await;
    assert_eq!(code, 200);
    assert!(forecast["ending"]["site"].is_string() && forecast["ending"]["site"] != "iad", "{forecast}");
    let (_, forecast) = operator.get("/what-if?kill=iad,pdx,fra").await;
    assert_eq!(forecast["ending"]["site"], Value::Null, "{forecast}");
    // Nothing has happened.
    assert!(bed.servers.is_open("iad"));
}

#[tokio::test(flavor = "multi_thread")]
async fn those_who_follow_get_every_poll() {
    let bed = Bed::new(&["iad", "pdx"]).await;
    let operator = operate(&bed, "one").await;
    writer(&bed, None).await;
    let at = format!("ws://{}/ws/status", operator.address);
    let (mut socket, _) = tokio_tungstenite::connect_async(&at).await.expect("a socket");
    let mut seen = 0;
    while seen < 3 {
        let message = tokio::time::timeout(crate::testing::BOUND, socket.next()).await.expect("in time");
        let message = message.expect("open").expect("a message");
        if message.is_text() {
            let poll: Value = serde_json::from_str(message.to_text().expect("a text")).expect("JSON");
            assert_eq!((&poll["namespace"], &poll["group"]), (&json!("shop"), &json!("orders")));
            assert_eq!(poll["activeSite"], "iad");
            seen += 1;
        }
    }
    let mut foreign = at.as_str().into_client_request().expect("a request");
    foreign.headers_mut().insert("origin", "https://evil.example".parse().expect("a value"));
    let refused = tokio_tungstenite::connect_async(foreign).await.expect_err("refused");
    assert!(refused.to_string().contains("403"), "{refused}");
}

/// K-18: ready is who has seen everything.
#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_see_everything_is_not_ready_and_says_what() {
    let bed = Bed::new(&["iad", "pdx"]).await;
    let blind = "not listed yet: pods".to_owned();
    bed.world.trouble(|trouble| trouble.unseen = Some(blind.clone()));
    let operator = operate(&bed, "one").await;
    let unready = until("it says what", async || {
        let (code, said) = operator.get("/readyz").await;
        assert_eq!(code, 503, "{said}");
        said.to_string().contains(&blind).then_some(said)
    });
    unready.await;
    // What is known is told all the same.
    assert_eq!(writer(&bed, None).await, "iad");
    assert_eq!(operator.get("/healthz").await.0, 200);
    bed.world.trouble(|trouble| trouble.unseen = None);
    until("it is ready", async || (operator.get("/readyz").await == (200, json!("ok"))).then_some(())).await;
}

/// K-24, in part: a hundred clients that never read hold no failover up. How much longer a poll takes is not measured here.
#[tokio::test(flavor = "multi_thread")]
async fn no_more_than_so_many_follow_and_those_who_never_read_hold_nobody_up() {
    let bed = Bed::new(&["iad", "pdx"]).await;
    let operator = operate(&bed, "one").await;
    writer(&bed, None).await;
    let at = format!("ws://{}/ws/status", operator.address);
    let mut sockets = Vec::new();
    for _ in 0..crate::http::CLIENTS {
        sockets.push(tokio_tungstenite::connect_async(&at).await.expect("a socket").0);
    }
    let refused = tokio_tungstenite::connect_async(&at).await.expect_err("refused");
    assert!(refused.to_string().contains("429"), "{refused}");
    // Nobody reads, and polls go on: a primary that dies is noticed as ever.
    bed.servers.change("iad", |server| server.alive = false);
    assert_eq!(writer(&bed, Some("iad")).await, "pdx");
    sockets.pop();
    until("a place is free again", async || tokio_tungstenite::connect_async(&at).await.ok().map(drop)).await;
}
