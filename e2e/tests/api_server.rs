//! The API server of the testbed keeps its promises: it is a real one, it survives what tests do to it, and nothing of
//! it is left when its owner is gone, however that came about.
//!
//! One server is shared by the tests that only make objects (each in a namespace of its own); those that stop, kill or
//! drop a server start one for themselves.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking, and so do the functions that its tests share"
)]

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use bloodraven_testbed::kubernetes::{self, ApiServer};
use bloodraven_testbed::{environment, wait};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ObjectMeta, PostParams};
use serde_json::{Value, json};

/// Tells a second copy of this test program where to report the server that it holds.
const REPORT: &str = "BLOODRAVEN_E2E_API_SERVER_REPORT";

/// A killed process is gone at once; the machine may be busy with something else.
const GONE_LIMIT: Duration = Duration::from_secs(20);

/// What a server may take to start, and the two others that may be starting at the same time.
const START_LIMIT: Duration = Duration::from_mins(2);

/// Anything that one request may take.
const REQUEST_LIMIT: Duration = Duration::from_secs(20);

/// The server that most tests share. It is never dropped: it ends with the process, which a test below shows.
fn shared() -> &'static ApiServer {
    static SERVER: OnceLock<ApiServer> = OnceLock::new();
    SERVER.get_or_init(|| ApiServer::start().unwrap())
}

async fn in_namespace(server: &ApiServer, name: &str) -> kube::Client {
    let client = server.client().await.unwrap();
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    let namespace = Namespace { metadata, ..Namespace::default() };
    Api::all(client.clone()).create(&PostParams::default(), &namespace).await.unwrap();
    client
}

fn config_map(name: &str, value: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        data: Some(BTreeMap::from([("key".to_owned(), value.to_owned())])),
        ..ConfigMap::default()
    }
}

fn value_of(map: &ConfigMap) -> Option<&str> {
    map.data.as_ref()?.get("key").map(String::as_str)
}

/// The status code with which the API server refused.
fn refusal<T: std::fmt::Debug>(outcome: kube::Result<T>) -> u16 {
    match outcome {
        Err(kube::Error::Api(status)) => status.code,
        other => panic!("the API server was to refuse: {other:?}"),
    }
}

#[tokio::test]
async fn the_server_reports_the_pinned_version() {
    let version = shared().client().await.unwrap().apiserver_version().await.unwrap();
    assert_eq!(version.git_version, kubernetes::VERSION);
    assert_eq!((version.major.as_str(), version.minor.as_str()), ("1", "34"));
}

#[tokio::test]
async fn objects_are_kept_as_they_were_made() {
    let client = in_namespace(shared(), "objects").await;
    let maps: Api<ConfigMap> = Api::namespaced(client, "objects");
    let made = maps.create(&PostParams::default(), &config_map("one", "first")).await.unwrap();
    let read = maps.get("one").await.unwrap();
    assert_eq!(value_of(&read), Some("first"));
    assert_eq!(read.metadata.uid, made.metadata.uid);
    assert_eq!(refusal(maps.get("another").await), 404);
    assert_eq!(refusal(maps.create(&PostParams::default(), &config_map("one", "again")).await), 409);
}

#[tokio::test]
async fn a_write_on_a_stale_resource_version_is_refused_and_changes_nothing() {
    let client = in_namespace(shared(), "stale").await;
    let maps: Api<ConfigMap> = Api::namespaced(client, "stale");
    let old = maps.create(&PostParams::default(), &config_map("one", "first")).await.unwrap();
    let mut new = old.clone();
    new.data = config_map("one", "second").data;
    maps.replace("one", &PostParams::default(), &new).await.unwrap();

    let mut stale = old;
    stale.data = config_map("one", "third").data;
    assert_eq!(refusal(maps.replace("one", &PostParams::default(), &stale).await), 409);
    assert_eq!(value_of(&maps.get("one").await.unwrap()), Some("second"));
}

#[tokio::test]
async fn a_dns_endpoint_is_taken_and_a_wrong_one_refused() {
    let client = in_namespace(shared(), "dns").await;
    let kind = GroupVersionKind::gvk("externaldns.k8s.io", "v1alpha1", "DNSEndpoint");
    let resource = ApiResource::from_gvk_with_plural(&kind, "dnsendpoints");
    let endpoints: Api<DynamicObject> = Api::namespaced_with(client, "dns", &resource);
    let make = async |name: &str, endpoint: Value| {
        let object = DynamicObject::new(name, &resource).data(json!({"spec": {"endpoints": [endpoint]}}));
        endpoints.create(&PostParams::default(), &object).await
    };

    let good = json!({"dnsName": "db.example.org", "recordType": "A", "targets": ["192.0.2.1"], "recordTTL": 30,
        "setIdentifier": "one", "labels": {"a": "b"}, "providerSpecific": [{"name": "weight", "value": "10"}]});
    let taken = make("good", good.clone()).await.unwrap();
    assert_eq!(taken.data.pointer("/spec/endpoints/0"), Some(&good), "every field of a record is kept");

    let wrong = [
        json!({"recordType": "A", "targets": ["192.0.2.1"]}),
        json!({"dnsName": "db.example.org", "targets": ["192.0.2.1"]}),
        json!({"dnsName": "db.example.org", "recordType": "A", "targets": "192.0.2.1"}),
        json!({"dnsName": "db.example.org", "recordType": "A", "recordTTL": "30"}),
        json!({"dnsName": "db.example.org", "recordType": "A", "recordTTL": -1}),
        json!({"dnsName": 7, "recordType": "A"}),
        json!({"dnsName": "db.example.org", "recordType": "NONE"}),
        json!("db.example.org"),
    ];
    for endpoint in wrong {
        let text = endpoint.to_string();
        assert_eq!(refusal(make("wrong", endpoint).await), 422, "{text}");
    }
}

#[test]
fn access_control_is_on() {
    let check = |user: &[&str], verb: &str, what: &str, expect: &str| {
        let answer = shared().kubectl().args(["auth", "can-i", verb, what]).args(user).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&answer.stdout).trim(), expect, "{user:?} {verb} {what}: {answer:?}");
    };
    check(&[], "delete", "nodes", "yes");
    check(&["--as=nobody"], "get", "secrets", "no");
    check(&["--as=nobody"], "get", "/metrics", "no");
    check(&["--as=nobody"], "get", "/version", "yes");
}

#[test]
fn a_start_that_cannot_succeed_ends_at_once_and_says_why() {
    let error = ApiServer::options().flag("--no-such-flag").start().unwrap_err().to_string();
    assert!(error.contains("kube-apiserver ended") && error.contains("unknown flag: --no-such-flag"), "{error}");
}

#[tokio::test]
async fn a_server_that_was_killed_stopped_or_paused_comes_back_with_its_objects() {
    // Without this plugin a namespace need not exist, which shows that the option took effect.
    let mut server = ApiServer::options().admission_off("NamespaceLifecycle").start().unwrap();
    let (url, first) = (server.url(), server.pid());
    let client = server.client().await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "never-made");
    maps.create(&PostParams::default(), &config_map("kept", "first")).await.unwrap();
    let refused = Api::namespaced(shared().client().await.unwrap(), "never-made");
    assert_eq!(refusal(refused.create(&PostParams::default(), &config_map("kept", "first")).await), 404);

    server.kill().unwrap();
    let error = tokio::time::timeout(REQUEST_LIMIT, maps.get("kept")).await.expect("a dead server refuses at once");
    assert!(!matches!(error, Ok(_) | Err(kube::Error::Api(_))), "nobody may answer: {error:?}");
    server.restart().unwrap();
    assert_eq!(server.url(), url, "clients find the server where it was");
    assert_ne!(server.pid(), first);
    assert_eq!(value_of(&maps.get("kept").await.unwrap()), Some("first"));

    server.stop().unwrap();
    assert!(is_gone(server.pid()));
    server.restart().unwrap();
    assert_eq!(value_of(&maps.get("kept").await.unwrap()), Some("first"));

    server.pause().unwrap();
    let silence = tokio::time::timeout(Duration::from_secs(1), maps.get("kept")).await;
    assert!(silence.is_err(), "a paused server says nothing: {silence:?}");
    server.resume().unwrap();
    let answer = tokio::time::timeout(REQUEST_LIMIT, maps.get("kept")).await.expect("a resumed server answers");
    assert_eq!(value_of(&answer.unwrap()), Some("first"));
}

#[test]
fn dropping_a_server_ends_both_processes_and_removes_their_folder() {
    let server = ApiServer::start().unwrap();
    let held = Held::of(&server);
    assert!(held.pids.iter().all(|pid| !is_gone(*pid)), "both run before the drop: {held:?}");
    assert!(held.folder.is_dir());
    drop(server);
    assert!(held.pids.iter().all(|pid| is_gone(*pid)), "a drop waits for the end: {held:?}");
    assert!(!held.folder.exists());
}

#[test]
fn a_killed_test_process_leaves_no_server_behind() {
    if let Some(report) = environment::variable(REPORT) {
        let server = ApiServer::start().unwrap();
        Held::of(&server).write(Path::new(&report));
        return wait_for_the_parent();
    }
    let (mut copy, held) = second_copy("a_killed_test_process_leaves_no_server_behind");
    assert_ne!(held.url, shared().url(), "two test processes share no port");
    assert!(held.pids.iter().all(|pid| !is_gone(*pid)), "both run before the kill: {held:?}");
    copy.kill().unwrap();
    copy.wait().unwrap();
    held.assert_gone();
}

#[test]
fn a_server_in_a_static_ends_with_its_process() {
    if let Some(report) = environment::variable(REPORT) {
        Held::of(shared()).write(Path::new(&report));
        return wait_for_the_parent();
    }
    let (mut copy, held) = second_copy("a_server_in_a_static_ends_with_its_process");
    assert!(held.pids.iter().all(|pid| !is_gone(*pid)), "both run before the end: {held:?}");
    // The end of its input lets the copy return from its test, and so from its main function.
    drop(copy.stdin.take());
    let status = wait::until(START_LIMIT, || copy.try_wait().unwrap()).expect("the copy ends by itself");
    assert!(status.success(), "{status}");
    held.assert_gone();
}

/// What a server holds while it runs.
#[derive(Debug)]
struct Held {
    pids: [u32; 2],
    url: String,
    folder: PathBuf,
}

impl Held {
    fn of(server: &ApiServer) -> Self {
        Self { pids: [server.pid(), server.etcd_pid()], url: server.url(), folder: server.folder().to_owned() }
    }

    /// Tells the other process, all at once or not at all.
    fn write(&self, report: &Path) {
        let unfinished = report.with_extension("unfinished");
        let text = json!({"pids": self.pids, "url": self.url, "folder": self.folder}).to_string();
        std::fs::write(&unfinished, text).unwrap();
        std::fs::rename(&unfinished, report).unwrap();
    }

    fn read(report: &Path) -> Option<Self> {
        let told: Value = serde_json::from_str(&std::fs::read_to_string(report).ok()?).unwrap();
        Some(Self {
            pids: serde_json::from_value(told["pids"].clone()).unwrap(),
            url: told["url"].as_str().unwrap().to_owned(),
            folder: told["folder"].as_str().unwrap().into(),
        })
    }

    fn assert_gone(&self) {
        let gone = wait::until(GONE_LIMIT, || self.pids.iter().all(|pid| is_gone(*pid)).then_some(()));
        assert!(gone.is_some(), "still running after the end of their owner: {self:?}");
    }
}

/// Runs one test of this program in a process of its own, and waits until it tells what it holds.
fn second_copy(test: &str) -> (Child, Held) {
    // Whatever has to be fetched or built is, before the time of the copy counts.
    kubernetes::provision().unwrap();
    let report = std::env::temp_dir().join(format!("bloodraven-e2e-{}-{test}", std::process::id()));
    let mut copy = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(REPORT, &report)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let held =
        wait::until(START_LIMIT, || Held::read(&report).or_else(|| copy.try_wait().unwrap().map(|_| ended(test))));
    let _ = std::fs::remove_file(&report);
    (copy, held.expect("the copy starts a server"))
}

fn ended(test: &str) -> Held {
    panic!("the copy that runs {test} ended before it had a server");
}

/// Waits for the end of standard input: the parent closes it, or it ends with the parent.
fn wait_for_the_parent() {
    let mut rest = Vec::new();
    // Bounded by the life of the parent, which never writes.
    std::io::stdin().lock().take(1).read_to_end(&mut rest).unwrap();
}

/// Whether no such process runs. One that has ended and waits for its new parent to notice does not.
fn is_gone(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The state follows the name, which is in brackets and may itself contain some.
    stat.rsplit_once(')').is_none_or(|(_, rest)| rest.trim_start().starts_with('Z'))
}
