//! A drawn pod, run for real: what the blueprint writes into a pod is what init, keeper, server and sidecar read.
//!
//! The containers run in the order and with the words, variables, volumes and probes of the drawing; see [`kubelet`] for
//! the three things that are mapped. No operator: the sidecar answers and keeps the server closed.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking, and so do the functions that its tests share"
)]

mod kubelet;
mod tls;

use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpStream;
use std::time::Duration;

use bloodraven_api::MysqlFailoverGroup;
use bloodraven_blueprint::objects::{self, AuthorityKeys, OperatorAccount, Plan, Surroundings, server_ids};
use bloodraven_blueprint::spec;
use bloodraven_mysql::{Account, Deadline, Server, Session, poll};
use bloodraven_sidecar::Config;
use bloodraven_testbed::process::Process;
use bloodraven_testbed::scratch::Scratch;
use bloodraven_testbed::wait;
use k8s_openapi::api::core::v1::{PodSpec, Probe};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kubelet::{Cluster, Files, Pod};
use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, OptsBuilder};
use serde_json::{Value, json};

/// Anything that a busy machine may take; a first boot initialises a data folder.
const LIMIT: Duration = Duration::from_mins(3);

/// A group of two sites; the first one's pod is run.
fn group(tls: bool) -> MysqlFailoverGroup {
    let site = |name: &str| {
        json!({"name": name, "zone": name, "lbIP": "192.0.2.7", "taintNodeSelector": {"site": name},
        "storage": {"storageClassName": "fast", "size": "1Gi"}})
    };
    let mut object = json!({"apiVersion": "shipstream.io/v1alpha1", "kind": "MysqlFailoverGroup",
        "metadata": {"name": "orders", "namespace": "shop", "uid": "6f1c"},
        "spec": {"credentials": {"operatorSecret": "op", "appSecret": "app", "monitorSecret": "mon"},
            "dns": {"hostname": "db.example.org"}, "sites": [site("iad"), site("pdx")],
            "mysqlConf": {"innodb-buffer-pool-size": "32M", "innodb-redo-log-capacity": "16M", "mysqlx": "OFF"}}});
    if tls {
        object["spec"]["tls"] = json!({"secretName": "orders-tls"});
    }
    spec::object(object).unwrap()
}

fn files(rows: &[(&str, &str)]) -> Files {
    rows.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec())).collect()
}

/// What the cluster would hold for it, and the pod of its first site.
fn drawn(group: &MysqlFailoverGroup) -> (Cluster, PodSpec, u32) {
    let server_ids = server_ids("orders", &["iad", "pdx"], &BTreeMap::new());
    let around = Surroundings {
        own_image: Some("example.org/bloodraven:1".to_owned()),
        operator_address: "127.0.0.1:9".to_owned(),
        cluster_domain: "cluster.local".to_owned(),
        operator_account: OperatorAccount::Keys,
        replication_account: true,
        server_ids: server_ids.clone(),
    };
    let plan = Plan::new(group, &around).unwrap();
    let all = objects::objects(&plan);
    let authority = objects::authority(&plan, &AuthorityKeys { current: [7; 32], previous: None });
    let mut cluster = Cluster::default();
    for map in all.config_maps {
        let texts = map.data.unwrap().into_iter().map(|(name, text)| (name, text.into_bytes()));
        cluster.config_maps.insert(map.metadata.name.unwrap(), texts.collect());
    }
    let keys = authority.data.unwrap().into_iter().map(|(name, bytes)| (name, bytes.0)).collect();
    cluster.secrets.insert(authority.metadata.name.unwrap(), keys);
    let operator = [("username", "ops"), ("password", "ops'pw"), ("MYSQL_ROOT_PASSWORD", "root\\pw")];
    let replication = [("MYSQL_REPLICATION_USER", "repl"), ("MYSQL_REPLICATION_PASSWORD", "repl-pw")];
    cluster.secrets.insert("op".to_owned(), files(&[&operator[..], &replication[..]].concat()));
    cluster.secrets.insert("app".to_owned(), files(&[("username", "app"), ("password", "app-pw")]));
    cluster.secrets.insert("mon".to_owned(), files(&[("username", "mon"), ("password", "mon-pw")]));
    let template = all.deployments.into_iter().next().unwrap().spec.unwrap().template;
    (cluster, template.spec.unwrap(), server_ids["iad"])
}

/// Its containers, started as a node starts them: one that stays counts as soon as it runs.
struct Started {
    sidecar: Process,
    mysql: Process,
}

fn start(pod: &Pod) -> Started {
    pod.run("init").unwrap();
    let sidecar = pod.start("sidecar");
    ready(pod, "sidecar", pod.container("sidecar").liveness_probe.as_ref().unwrap());
    let mysql = pod.start("mysql");
    Started { sidecar, mysql }
}

/// Probes a container as its drawing says, until it passes.
fn ready(pod: &Pod, container: &str, probe: &Probe) {
    let passed = wait::until_every(LIMIT, Duration::from_millis(100), || passes(pod, container, probe).then_some(()));
    assert!(
        passed.is_some(),
        "{container} never passed {probe:?}: {}\n{}",
        pod.words_of(container),
        pod.words_of("mysql")
    );
}

fn passes(pod: &Pod, container: &str, probe: &Probe) -> bool {
    let number = |port: &IntOrString| {
        let IntOrString::String(name) = port else { panic!("{port:?}: ports have names") };
        let ports = pod.container(container).ports.clone().unwrap();
        let found = ports.into_iter().find(|it| it.name.as_ref() == Some(name)).unwrap();
        u16::try_from(found.container_port).unwrap()
    };
    match (&probe.http_get, &probe.tcp_socket) {
        (Some(http), None) => ask(pod, number(&http.port), http.path.as_deref().unwrap()).is_some_and(|it| it.0 == 200),
        (None, Some(tcp)) => TcpStream::connect((pod.address, number(&tcp.port))).is_ok(),
        _ => panic!("{probe:?}"),
    }
}

/// The answer of a GET; none: nobody answers.
fn ask(pod: &Pod, port: u16, path: &str) -> Option<(u16, String)> {
    let url = format!("http://{}:{port}{path}", pod.address);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = reqwest::Client::builder().timeout(Duration::from_secs(5)).build().unwrap();
        let answer = client.get(url).send().await.ok()?;
        Some((answer.status().as_u16(), answer.text().await.ok()?))
    })
}

fn status(pod: &Pod) -> Value {
    let (_, text) = ask(pod, 8080, "/status").unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Every container that has a readiness probe passes it.
fn all_ready(pod: &Pod) {
    for name in ["mysql", "sidecar"] {
        ready(pod, name, pod.container(name).readiness_probe.as_ref().unwrap());
    }
}

#[test]
fn a_drawn_pod_serves_closed_and_survives_what_happens_to_pods() {
    let node = Scratch::new("pod").unwrap();
    let (cluster, spec, server_id) = drawn(&group(false));
    let pod = Pod::place(&node, "u1", spec.clone(), "shop", &cluster);
    let Started { sidecar, mysql } = start(&pod);
    all_ready(&pod);

    let told = status(&pod);
    assert_eq!(
        (&told["read_only"], &told["super_read_only"], &told["mysqld"]),
        (&json!(true), &json!(true), &json!("up"))
    );
    assert_eq!((&told["server_id"], &told["gtid_executed"]), (&json!(server_id), &json!("")));
    let store = told["instance"].as_str().unwrap().strip_prefix("u1/").unwrap().to_owned();
    accounts_are_there_and_nobody_writes(&pod);

    // the container is killed, and started again in the same pod
    mysql.kill().unwrap();
    // A node starts a container again when nothing of it runs any more, and asks the new one.
    let silent = || {
        let probe = |name: &str| passes(&pod, name, pod.container(name).readiness_probe.as_ref().unwrap());
        (!probe("mysql") && !probe("sidecar")).then_some(())
    };
    assert!(wait::until(LIMIT, silent).is_some(), "the server outlives its keeper");
    let mysql = pod.start("mysql");
    all_ready(&pod);
    assert_eq!(status(&pod)["instance"], json!(format!("u1/{store}")));

    // the pod is deleted: the server first, then the sidecar, each within its time
    let grace = Duration::from_secs(u64::try_from(spec.termination_grace_period_seconds.unwrap()).unwrap());
    assert_eq!(mysql.terminate(grace).unwrap().code(), Some(0), "{}", pod.words_of("mysql"));
    assert!(sidecar.is_running(), "it outlives the server");
    assert_eq!(sidecar.terminate(grace).unwrap().code(), Some(0), "{}", pod.words_of("sidecar"));

    // its successor has the same volume and another name
    let pod = Pod::place(&node, "u2", spec, "shop", &cluster);
    let _started = start(&pod);
    all_ready(&pod);
    assert_eq!(status(&pod)["instance"], json!(format!("u2/{store}")));
    accounts_are_there_and_nobody_writes(&pod);
}

/// As the operator, an application and monitoring would come in.
fn accounts_are_there_and_nobody_writes(pod: &Pod) {
    let host = pod.address.to_string();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let deadline = Deadline::within(LIMIT);
        let operator = Server::new(host.clone(), 33062, Account::new("ops", "ops'pw"));
        let mut session = Session::open(&operator, deadline).await.unwrap();
        assert!(poll(&mut session, deadline).await.unwrap().pair.is_fenced());
        for (user, password) in [("app", "app-pw"), ("mon", "mon-pw"), ("repl", "repl-pw")] {
            let options = OptsBuilder::default().ip_or_hostname(host.clone()).tcp_port(3306);
            let mut conn = Conn::new(options.user(Some(user)).pass(Some(password)).prefer_socket(false)).await.unwrap();
            let refused = conn.query_drop("CREATE SCHEMA shop").await.unwrap_err().to_string();
            let closed = refused.contains("read-only option") || refused.contains("Access denied");
            assert!(closed, "{user}: {refused}");
            conn.disconnect().await.unwrap();
        }
    });
}

#[test]
fn every_variable_that_is_drawn_is_one_that_the_sidecar_reads() {
    for tls in [false, true] {
        let node = Scratch::passing("variables").unwrap();
        let (mut cluster, spec, _) = drawn(&group(tls));
        cluster.secrets.insert("orders-tls".to_owned(), files(&[("ca.crt", "-")]));
        let pod = Pod::place(&node, "u1", spec, "shop", &cluster);
        let given = pod.environment("sidecar");
        let asked = std::cell::RefCell::new(BTreeSet::new());
        let read = Config::from_env(|name| {
            asked.borrow_mut().insert(name.to_owned());
            given.get(name).map(|value| {
                if value.starts_with('/') { pod.path("sidecar", value).display().to_string() } else { value.clone() }
            })
        });
        let config = read.unwrap_or_else(|error| panic!("{error}"));
        let unread: Vec<&String> = given.keys().filter(|name| !asked.borrow().contains(*name)).collect();
        assert!(unread.is_empty(), "drawn, and never read: {unread:?}");
        assert_eq!((config.group_uid.as_str(), config.mysql.tls.is_some()), ("6f1c", tls));
        assert_eq!(config.mysql.admin, (pod.address.to_string(), 33062));
        let peers: Vec<&str> = config.peers.keys().map(bloodraven_brain::name::Site::as_str).collect();
        assert_eq!(peers, ["pdx"]);
    }
}

#[test]
fn a_pod_without_its_keeper_or_with_a_bad_volume_says_so() {
    let node = Scratch::new("bad-pod").unwrap();
    let (cluster, spec, _) = drawn(&group(false));
    let pod = Pod::place(&node, "u1", spec, "shop", &cluster);
    std::fs::write(node.path().join("mysql-orders-iad-data/mysql"), "in the way").unwrap();
    let error = pod.run("init").unwrap_err().to_string();
    assert!(error.contains("--volume: ") && error.contains("no folder; move it away"), "{error}");
}
