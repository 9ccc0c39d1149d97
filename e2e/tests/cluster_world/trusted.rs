//! Servers that do not let the operator in, and certificates that it does not trust: real servers behind a whole operator.
//!
//! The names of a group's Services mean nothing here. So each site's server is asked at an address instead, and its certificate
//! has to cover that.

use std::collections::BTreeMap;
use std::time::Duration;

use bloodraven_brain::group::Task;
use bloodraven_brain::group::input::Outcome;
use bloodraven_brain::name::Site;
use bloodraven_gtid::Uuid;
use bloodraven_operator::servers::{Looked, Server, Servers, Silent};
use bloodraven_operator::sql::Mysql;
use bloodraven_operator::world::HostPort;
use bloodraven_testbed::mysql::{MysqlServer, start_many};
use bloodraven_testbed::scratch::Scratch;
use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, OptsBuilder};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::{Value, json};

use super::recorded::{before, history, store};
use super::stage::*;

const NAMESPACE: &str = "trusted";

/// MySQL, at these addresses.
struct At(BTreeMap<Site, HostPort>);

impl At {
    fn of(&self, server: &Server) -> Server {
        Server { admin: self.0[&server.site].clone(), ..server.clone() }
    }
}

type Session = <Mysql as Servers>::Session;

impl Servers for At {
    type Session = Session;

    async fn poll(&self, at: &Server, session: &mut Option<Session>, within: Duration) -> Result<Looked, Silent> {
        Mysql.poll(&self.of(at), session, within).await
    }

    async fn work(
        &self,
        at: &Server,
        session: &mut Option<Session>,
        meant: Option<Uuid>,
        task: &Task,
        within: Duration,
    ) -> Outcome {
        Mysql.work(&self.of(at), session, meant, task, within).await
    }

    async fn commit(
        &self,
        at: &Server,
        session: &mut Option<Session>,
        meant: Uuid,
        within: Duration,
    ) -> Result<(), Silent> {
        Mysql.commit(&self.of(at), session, meant, within).await
    }

    async fn disabled_events(
        &self,
        at: &Server,
        session: &mut Option<Session>,
        within: Duration,
    ) -> Result<Vec<String>, Silent> {
        Mysql.disabled_events(&self.of(at), session, within).await
    }

    async fn clone_bytes(
        &self,
        at: &Server,
        session: &mut Option<Session>,
        within: Duration,
    ) -> Result<Option<(u64, u64)>, Silent> {
        Mysql.clone_bytes(&self.of(at), session, within).await
    }
}

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A server for each of these names, which its certificate covers.
fn servers(folder: &Scratch, authority: &CertifiedIssuer<'_, KeyPair>, names: [&str; 2]) -> Vec<MysqlServer> {
    let builder = |(number, name): (usize, &str)| {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&key, authority).unwrap();
        let file = |end: &str, text: String| {
            let path = folder.path().join(format!("{number}-{end}"));
            std::fs::write(&path, text).unwrap();
            path.display().to_string()
        };
        MysqlServer::builder()
            .name(format!("trusted-{number}"))
            .admin_port()
            .args([
                format!("--ssl-ca={}", file("ca.crt", authority.pem())),
                format!("--ssl-cert={}", file("tls.crt", certificate.pem())),
                format!("--ssl-key={}", file("tls.key", key.serialize_pem())),
            ])
            .init_statement("SET SESSION sql_log_bin = 0")
            .init_statement("CREATE USER 'ops'@'%' IDENTIFIED BY 'hidden'")
            .init_statement("GRANT ALL ON *.* TO 'ops'@'%'")
    };
    start_many(names.into_iter().enumerate().map(builder)).unwrap()
}

/// The account gets another password, and whoever is logged in with it is sent away.
async fn sets_password(server: &MysqlServer, password: &str) {
    let options = OptsBuilder::default()
        .ip_or_hostname(server.host().to_string())
        .tcp_port(server.port())
        .user(Some("root"))
        .prefer_socket(false);
    let mut root = Conn::new(options).await.unwrap();
    root.query_drop("SET SESSION sql_log_bin = 0").await.unwrap();
    root.query_drop(format!("ALTER USER 'ops'@'%' IDENTIFIED BY '{password}'")).await.unwrap();
    let list = "SELECT id FROM performance_schema.processlist WHERE user = 'ops'";
    let ids: Vec<u64> = root.query(list).await.unwrap();
    for id in ids {
        // It may be gone by itself.
        drop(root.query_drop(format!("KILL {id}")).await);
    }
    root.disconnect().await.unwrap();
}

fn put_authority(pem: &str) {
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "tls", "namespace": NAMESPACE},
        "stringData": {"ca.crt": pem, "tls.crt": "-", "tls.key": "-"}});
    apply(server(), &secret.to_string());
}

/// Polls of iad that were answered, by a refusal too, and those that failed.
async fn polls(operator: &Operator) -> (u64, u64) {
    let text = reqwest::get(format!("http://{}/metrics", operator.address)).await.unwrap().text().await.unwrap();
    let count = |name: &str| {
        let line =
            |line: &&str| line.starts_with(name) && line.contains("namespace=\"trusted\"") && line.contains("\"iad\"");
        text.lines().find(line).and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or(0)
    };
    (count("bloodraven_poll_latency_seconds_count{"), count("bloodraven_poll_failures_total{"))
}

/// Waits for more answers than failures are needed to call a site unreachable.
async fn answered_often(operator: &Operator) {
    let before = polls(operator).await.0;
    again_until("answered often", async || (polls(operator).await.0 >= before + 5).then_some(())).await;
}

fn state(object: &Value, site: &str) -> String {
    let sites = object["status"]["sites"].as_array().cloned().unwrap_or_default();
    let entry = sites.into_iter().find(|entry| entry["name"] == site).unwrap_or_default();
    entry["state"].as_str().unwrap_or_default().to_owned()
}

async fn is_seen(site: &'static str, wanted: &'static str) {
    eventually(&format!("{site} is {wanted}"), move || {
        (state(&group(NAMESPACE, "orders")?, site) == wanted).then_some(())
    })
    .await;
}

async fn is_told(words: &'static [&'static str]) {
    eventually(&format!("an Event that says {words:?}"), move || {
        let said = |note: &str| words.iter().all(|word| note.contains(word));
        events(NAMESPACE).into_iter().find(|(reason, note)| reason == "CredentialReconcileFailed" && said(note))
    })
    .await;
}

/// K-21, in part: authority and name at real servers behind a whole operator. K-22: the authority changes.
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_login_is_an_answer_and_a_certificate_that_is_none_changes_nothing() {
    let folder = Scratch::new("trusted").unwrap();
    let (ours, other) = (authority(), authority());
    let [iad, pdx] = <[_; 2]>::try_from(servers(&folder, &ours, ["127.0.0.1", "mysql-orders-pdx-internal"])).unwrap();
    stage(NAMESPACE).await;
    secret(NAMESPACE);
    put_authority(&ours.pem());
    edit(NAMESPACE, &json!({"tls": {"secretName": "tls"}}));
    // Iad has authority and takes writes.
    store(NAMESPACE, &before(&history("gone")));
    let at = |server: &MysqlServer| HostPort { host: server.host().to_string(), port: server.admin_port().unwrap() };
    let at = At(sites().into_iter().zip([at(&iad), at(&pdx)]).collect());
    let operator = Operator::towards(at, server().client().await.unwrap(), places(NAMESPACE)).await;
    is_seen("iad", "writable").await;
    // A certificate that does not cover the address.
    is_told(&["the certificate of pdx"]).await;
    is_seen("pdx", "unreachable").await;

    sets_password(&iad, "another").await;
    is_told(&["iad refuses the operator's login"]).await;
    // The session that was sent away may have been one failure.
    let failed = polls(&operator).await.1;
    answered_often(&operator).await;
    let object = group(NAMESPACE, "orders").unwrap();
    assert_eq!(state(&object, "iad"), "writable", "its state stays");
    let record = &object["status"]["authority"];
    assert_eq!((&record["epoch"], &record["phase"], &record["site"]), (&json!(7), &json!("Stable"), &json!("iad")));

    // An authority that is none: what was known before stays in force, here and in the pods.
    let templates =
        || ["iad", "pdx"].map(|site| get("deployment", NAMESPACE, &format!("mysql-orders-{site}"))["spec"].clone());
    let drawn = templates();
    put_authority("nonsense");
    is_told(&["ca.crt holds no certificate"]).await;
    sets_password(&iad, "hidden").await;
    answered_often(&operator).await;
    is_seen("iad", "writable").await;
    assert_eq!(polls(&operator).await.1, failed, "no poll of iad has failed since");
    assert_eq!(templates(), drawn, "no pod gets another file");

    // Another's: the connection is refused, which is no answer.
    put_authority(&other.pem());
    // Secrets are read again at once when a login is refused.
    sets_password(&iad, "another").await;
    is_told(&["the certificate of iad"]).await;
    is_seen("iad", "unreachable").await;
    assert!(polls(&operator).await.1 > failed);
    operator.stop().await;
}
