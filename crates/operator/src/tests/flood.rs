//! Anybody may ask anything, as often as they like: nothing that is kept grows by it.

use crate::tell::Teller;
use crate::testing::{BOUND, Bed, operate_with, writer};
use bloodraven_telemetry::OperatorMetrics;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// In every word that is made up, so that it is found wherever it is kept.
const MARK: &str = "zq7";

/// Words that nobody has said before, the same ones in every run.
struct Words(u64);

impl Words {
    fn next(&mut self) -> String {
        // xorshift: any numbers will do, as long as they differ.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        format!("{MARK}{:x}", self.0)
    }
}

/// Requests of strangers, each with a word in it.
fn requests(word: &str) -> Vec<String> {
    let get = |target: &str| format!("GET {target} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    let upper = word.to_uppercase();
    vec![
        get(&format!("/{word}")),
        get(&format!("/{word}/metrics")),
        get(&format!("/status?{word}={word}")),
        get(&format!("/active-site?namespace={word}&group={word}")),
        get(&format!("/active-site?namespace=shop&group=orders&nonce={word}&mac={word}")),
        get(&format!("/why?namespace={word}&group={word}")),
        get(&format!("/what-if?kill={word}")),
        format!("{upper} /status HTTP/1.1\r\nhost: {word}\r\nconnection: close\r\n\r\n"),
        format!("POST /{word} HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\nconnection: close\r\n\r\n{MARK}"),
        format!("GET /ws/status HTTP/1.1\r\nhost: x\r\norigin: https://{word}\r\nconnection: close\r\n\r\n"),
        format!("{word}\r\n\r\n"),
    ]
}

/// Says it, and hears all that is answered.
async fn say(address: SocketAddr, request: &str) {
    let talk = async {
        let mut stream = TcpStream::connect(address).await.expect("a connection");
        stream.write_all(request.as_bytes()).await.expect("it takes them");
        let mut answer = Vec::new();
        // A refusal may end the connection before everything was said.
        let _ = stream.read_to_end(&mut answer).await;
        assert!(answer.starts_with(b"HTTP/1.1 "), "{request}: {}", String::from_utf8_lossy(&answer));
    };
    timeout(BOUND, talk).await.expect("an answer in time");
}

/// What is counted of requests, without the numbers.
fn series(metrics: &str) -> BTreeSet<String> {
    let lines =
        metrics.lines().filter(|line| line.starts_with("bloodraven_http") || line.starts_with("bloodraven_websocket"));
    lines.filter_map(|line| line.rsplit_once(' ')).map(|(series, _)| series.to_owned()).collect()
}

/// K-23: requests with thousands of words that nobody knows, of every shape, make no series and no label of their own, and are
/// all answered. That what is remembered of questions is bounded is shown beside it (`replay`, `repeat`).
#[tokio::test(flavor = "multi_thread")]
async fn whatever_strangers_say_nothing_of_it_is_kept() {
    let bed = Bed::new(&["iad", "pdx"]).await;
    let teller = Teller::new(OperatorMetrics::new("0.0.0"));
    let operator = operate_with(&bed, "one", Arc::new(teller.clone())).await;
    assert_eq!(writer(&bed, None).await, "iad");
    let mut words = Words(0x9e37_79b9_7f4a_7c15);
    for request in requests(&words.next()) {
        say(operator.address, &request).await;
    }
    let before = series(&teller.registry().text());
    assert!(before.iter().any(|line| line.contains("handler=\"other\"")), "strangers are counted: {before:?}");
    for _ in 0..200 {
        for request in requests(&words.next()) {
            say(operator.address, &request).await;
        }
    }
    let metrics = teller.registry().text();
    assert_eq!(series(&metrics), before);
    assert!(!metrics.contains(MARK) && !metrics.contains(&MARK.to_uppercase()), "{metrics}");
    assert_eq!(operator.get("/healthz").await.0, 200);
    assert_eq!(writer(&bed, None).await, "iad");
}
