//! Every value of every Secret is a mark of its own; whatever goes wrong with them, no mark is ever said.
//!
//! A whole operator at a real API server is led through the ways in which Secrets can be wrong. Then everything that it
//! said is searched: log lines, Events, the group's object, the objects that it made, HTTP answers.

use bloodraven_telemetry::log::{self, Component, Level};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Arc, Mutex, OnceLock};

use super::stage::*;

/// What this process has logged, from the first call on.
#[derive(Clone, Default)]
pub(super) struct Paper(Arc<Mutex<Vec<u8>>>);

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Paper {
    pub(super) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

pub(super) fn paper() -> &'static Paper {
    static PAPER: OnceLock<(Paper, log::Guard)> = OnceLock::new();
    let (paper, _) = PAPER.get_or_init(|| {
        let paper = Paper::default();
        let guard = log::init_into(Component::Operator, Level::Debug, paper.clone()).unwrap();
        (paper, guard)
    });
    paper
}

/// Marks, each with where it stands.
#[derive(Default)]
struct Marks(BTreeMap<String, String>);

impl Marks {
    /// A new one; the same place has another one each time.
    fn new_at(&mut self, place: &str) -> String {
        let mark = format!("Mk{}Zq7", self.0.len() + 1000);
        self.0.insert(mark.clone(), place.to_owned());
        mark
    }

    /// Which of them stand in a text, plainly, backwards from base64, or as a URL would write them.
    fn found_in(&self, text: &str) -> Vec<String> {
        let said = |mark: &str| text.contains(mark) || in_base64(mark).iter().any(|part| text.contains(part));
        self.0.iter().filter(|(mark, _)| said(mark)).map(|(mark, place)| format!("{mark} of {place}")).collect()
    }
}

/// What every base64 of a text has that holds this one, wherever it begins: the first and last letters depend on what
/// stands beside it.
fn in_base64(mark: &str) -> Vec<String> {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let encode = |bytes: &[u8]| {
        let mut text = String::new();
        for three in bytes.chunks_exact(3) {
            let all = u32::from_be_bytes([0, three[0], three[1], three[2]]);
            for place in [18, 12, 6, 0] {
                text.push(char::from(LETTERS[usize::try_from(all >> place & 63).unwrap()]));
            }
        }
        text
    };
    (0..3).map(|skip| encode(&mark.as_bytes()[skip..])).collect()
}

/// In the place of what was there.
fn put(namespace: &str, name: &str, data: &Value) {
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace},
        "stringData": data});
    let is_there = server().kubectl().args(["get", "secret", "-n", namespace, name]).output().unwrap().status.success();
    feed(server(), &[if is_there { "replace" } else { "create" }, "-f", "-"], &secret.to_string());
}

/// What an HTTP server says there. Blocks a thread.
fn ask(address: &str) -> Option<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    runtime.block_on(async { reqwest::get(address).await.ok()?.text().await.ok() })
}

/// Everything that can be read of a namespace but its Secrets.
fn objects(namespace: &str) -> String {
    let kinds = "mfg,events.v1.events.k8s.io,deployments,configmaps,services,pvc,pdb,pods";
    let read = server().kubectl().args(["get", kinds, "-n", namespace, "-o", "yaml", "--show-managed-fields"]).output();
    let read = read.unwrap();
    assert!(read.status.success(), "{read:?}");
    String::from_utf8(read.stdout).unwrap()
}

/// What is in the Secret, the words that the condition has for it, and the Event. No two in a row say the same.
type Row = (Value, &'static str, &'static str);

fn rows(marks: &mut Marks) -> Vec<Row> {
    let mut mark = |place: &str| marks.new_at(place);
    let (half, broken, bare) = (mark("a DSN without a host"), mark("a DSN with a broken %"), mark("a DSN without @"));
    let (root, twice, empty, word) =
        (mark("root"), mark("one user twice"), mark("beside an empty key"), mark("no key"));
    let huge = format!("{}{}", mark("a huge password"), "x".repeat(1100));
    let long = format!("{}{}", mark("a long replication password"), "y".repeat(40));
    let both = |user: &str, password: &str| {
        json!({"username": "ops", "password": password, "MYSQL_REPLICATION_USER": user,
            "MYSQL_REPLICATION_PASSWORD": password})
    };
    vec![
        (json!({ "words": word }), "key username is missing", "SecretMissingKey"),
        (json!({"dsn": format!("mysql://{half}")}), "key dsn has no account", "SecretMissingKey"),
        (json!({"username": "", "password": empty}), "key username is empty", "SecretMissingKey"),
        (json!({"dsn": format!("mysql://ops:{broken}%zz@db:3306/")}), "has a % that stands for no", "SecretMissingKey"),
        (json!({"username": "root", "password": root}), "names a user that is not for this", "SecretMissingKey"),
        (json!({"dsn": format!("ops:{bare}")}), "key dsn has no account", "SecretMissingKey"),
        (json!({"username": "ops", "password": huge}), "longer than 1024 bytes", "CredentialReconcileFailed"),
        (both("repl", &long), "more than 32 signs", "CredentialReconcileFailed"),
        (both("ops", &twice), "another account has the same user", "CredentialReconcileFailed"),
    ]
}

/// K-20: log lines, Events, objects and answers of an operator whose Secrets are wrong in every way.
#[tokio::test(flavor = "multi_thread")]
async fn no_value_of_a_secret_is_ever_said() {
    let namespace = "marked";
    let paper = paper();
    let (_, _) = stage(namespace).await;
    let mut marks = Marks::default();
    let operator = Operator::start(namespace).await;
    for (data, words, reason) in rows(&mut marks) {
        put(namespace, "creds", &data);
        eventually(&format!("{reason}: {words}"), move || {
            let degraded = condition(&group(namespace, "orders")?, "Degraded");
            let shown = degraded["status"] == "True" && degraded["message"].as_str()?.contains(words);
            (shown && events(namespace).iter().any(|(said, _)| said == reason)).then_some(())
        })
        .await;
    }
    // Accounts that are well, a signing key that is none, certificates that are none, servers that nobody reaches.
    let fine = |marks: &mut Marks, place: &str| marks.new_at(place);
    let data = json!({"username": "ops", "password": fine(&mut marks, "operator"),
        "MYSQL_ROOT_PASSWORD": fine(&mut marks, "root"), "MYSQL_REPLICATION_USER": "repl",
        "MYSQL_REPLICATION_PASSWORD": fine(&mut marks, "replication")});
    put(namespace, "mysql-orders-authority", &json!({"hmac.key": fine(&mut marks, "a short key")}));
    put(
        namespace,
        "tls",
        &json!({"ca.crt": fine(&mut marks, "ca.crt"), "tls.crt": fine(&mut marks, "tls.crt"),
        "tls.key": fine(&mut marks, "tls.key")}),
    );
    edit(namespace, &json!({"tls": {"secretName": "tls"}}));
    put(namespace, "creds", &data);
    eventually("the key is refused", move || {
        events(namespace)
            .into_iter()
            .find(|(_, note)| note.contains("mysql-orders-authority") && note.contains("hmac.key"))
    })
    .await;
    let key = format!("{:x<32}", fine(&mut marks, "the key"));
    put(namespace, "mysql-orders-authority", &json!({ "hmac.key": key }));
    eventually("the group is furnished", move || (names_of("deployment", namespace).len() == 2).then_some(())).await;
    eventually("the certificate is refused", move || {
        let degraded = condition(&group(namespace, "orders")?, "Degraded");
        degraded["message"].as_str()?.contains("ca.crt holds no certificate").then_some(())
    })
    .await;
    // With one that is read, servers are asked for, and nobody is there.
    let ca = rcgen::generate_simple_self_signed(vec!["nobody".to_owned()]).unwrap().cert.pem();
    put(
        namespace,
        "tls",
        &json!({"ca.crt": ca, "tls.crt": fine(&mut marks, "tls.crt, again"),
        "tls.key": fine(&mut marks, "tls.key, again")}),
    );
    let metrics = format!("http://{}/metrics", operator.address);
    eventually("polls fail", move || {
        let text = ask(&metrics)?;
        text.contains("bloodraven_poll_failures_total{namespace=\"marked\"").then_some(())
    })
    .await;
    // As a DSN, so that the operator writes a Secret of its own.
    let dsn = format!("ops:{}@tcp(db:3306)/", fine(&mut marks, "dsn"));
    put(namespace, "creds", &json!({"dsn": dsn, "MYSQL_ROOT_PASSWORD": fine(&mut marks, "root, again")}));
    edit(namespace, &json!({"mysqlConf": {"max-connections": "78"}}));
    eventually("the change is made", move || {
        let text = get("configmap", namespace, "mysql-orders-iad-config")["data"]["bloodraven.cnf"].to_string();
        text.contains("max-connections=78").then_some(())
    })
    .await;

    let mut words = vec![("objects and Events".to_owned(), objects(namespace))];
    for path in [
        "/status",
        "/metrics",
        "/healthz",
        "/readyz",
        "/active-site?namespace=marked&group=orders",
        "/why?namespace=marked&group=orders",
        "/what-if?namespace=marked&group=orders&kill=iad",
    ] {
        let answer = reqwest::get(format!("http://{}{path}", operator.address)).await.unwrap();
        words.push((path.to_owned(), answer.text().await.unwrap()));
    }
    operator.stop().await;
    let lines = paper.text();
    assert!(lines.contains("marked/orders"), "the log is heard: {} bytes", lines.len());
    words.push(("log".to_owned(), lines));
    // The test can fail: a Secret shows every mark that it holds.
    let shown = server().kubectl().args(["get", "secret", "-n", namespace, "creds", "-o", "yaml"]).output().unwrap();
    assert_eq!(marks.found_in(&String::from_utf8(shown.stdout).unwrap()).len(), 2);
    for (place, text) in words {
        assert_eq!(marks.found_in(&text), Vec::<String>::new(), "said in {place}");
    }
}
