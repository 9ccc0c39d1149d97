//! What the tests of this folder share: one API server, and a namespace with a group in it for each test.
//!
//! There are no kubelets here: pods, nodes and their leases are written as a kubelet would write them.

use std::io::Write as _;
use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bloodraven_api::{MysqlFailoverGroup, crd, keys};
use bloodraven_blueprint::install::Install;
use bloodraven_blueprint::spec;
use bloodraven_brain::name::Site;
use bloodraven_cluster::{ClusterWorld, House, Places};
use bloodraven_operator::servers::Servers;
use bloodraven_operator::settings::{Listeners, Settings};
use bloodraven_operator::sql::Mysql;
use bloodraven_operator::tell::Teller;
use bloodraven_operator::world::{GroupId, Version, World};
use bloodraven_telemetry::OperatorMetrics;
use bloodraven_testbed::kubernetes::{ApiServer, established};
use bloodraven_testbed::wait;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Anything that a busy machine may take.
pub(crate) const LIMIT: Duration = Duration::from_mins(1);

/// The server that all tests share, with our kinds in place. It ends with the process.
pub(crate) fn server() -> &'static ApiServer {
    static SERVER: OnceLock<ApiServer> = OnceLock::new();
    SERVER.get_or_init(|| server_of(&crd::all_yaml()))
}

/// A server that serves these kinds.
pub(crate) fn server_of(kinds: &str) -> ApiServer {
    let server = ApiServer::start().unwrap();
    apply(&server, kinds);
    serves_all(&server);
    server
}

/// Every kind that was applied is served.
pub(crate) fn serves_all(server: &ApiServer) {
    let all = established(LIMIT, &["crd", "--all"], |words| {
        let output = server.kubectl().args(words).output().unwrap();
        if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
    });
    assert_eq!(all, Ok(()), "kinds are not served");
}

/// As an admin would.
pub(crate) fn apply(server: &ApiServer, text: &str) {
    feed(server, &["apply", "--server-side", "--force-conflicts", "-f", "-"], text);
}

/// `kubectl` with that text to read.
pub(crate) fn feed(server: &ApiServer, words: &[&str], text: &str) {
    let mut child = server.kubectl().args(words).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success(), "{words:?} {text:.2000}");
}

/// One object, as it stands.
pub(crate) fn get(kind: &str, namespace: &str, name: &str) -> Value {
    let got = server().kubectl().args(["get", kind, "-n", namespace, name, "-o", "json"]).output().unwrap();
    assert!(got.status.success(), "{got:?}");
    serde_json::from_slice(&got.stdout).unwrap()
}

/// Its status, as a kubelet would write it.
pub(crate) fn set_status(kind: &str, namespace: &str, name: &str, status: &Value) {
    let patch = json!({ "status": status }).to_string();
    let words = ["patch", kind, "-n", namespace, name, "--subresource=status", "--type=merge", "-p", &patch];
    let set = server().kubectl().args(words).output().unwrap();
    assert!(set.status.success(), "{set:?}");
}

pub(crate) fn places(namespace: &str) -> Places {
    Places {
        namespace: namespace.to_owned(),
        pod: "operator-a".to_owned(),
        watched: vec![namespace.to_owned()],
        house: House {
            own_image: Some("example.org/bloodraven:1".to_owned()),
            operator_address: "bloodraven.ops.svc.cluster.local:8082".to_owned(),
            cluster_domain: "cluster.local".to_owned(),
        },
        aux_port: 8082,
    }
}

/// A namespace of its own, a group in it, and the world of an operator there.
pub(crate) async fn stage(namespace: &str) -> (ClusterWorld, GroupId) {
    apply(server(), &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}).to_string());
    let site = |name: &str| {
        json!({"name": name, "zone": name, "lbIP": "192.0.2.7",
        "taintNodeSelector": {format!("{namespace}-site"): name},
        "storage": {"storageClassName": "fast", "size": "1Gi"}})
    };
    let group = json!({"apiVersion": "shipstream.io/v1alpha1", "kind": "MysqlFailoverGroup",
        "metadata": {"name": "orders", "namespace": namespace},
        "spec": {"secretName": "creds", "dns": {"hostname": "db.example.org"}, "sites": [site("iad"), site("pdx")]}});
    apply(server(), &group.to_string());
    let world = ClusterWorld::new(&server().client().await.unwrap(), places(namespace));
    (world, GroupId::new(namespace, "orders"))
}

pub(crate) fn sites() -> [Site; 2] {
    ["iad", "pdx"].map(Site::new)
}

/// Looks again whenever the group's bell rings, until it is so.
pub(crate) async fn until<T>(world: &ClusterWorld, group: &GroupId, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let mut bell = world.changes_of(group);
    let seen = async {
        loop {
            bell.borrow_and_update();
            if let Some(found) = look().await {
                return found;
            }
            bell.changed().await.unwrap();
        }
    };
    timeout(LIMIT, seen).await.expect("seen in time")
}

pub(crate) async fn version(world: &ClusterWorld, group: &GroupId) -> Version {
    let object = world.read(group).await.unwrap().unwrap();
    Version(object["metadata"]["resourceVersion"].as_str().unwrap().into())
}

/// A pod as its Deployment would make it.
pub(crate) fn pod(namespace: &str, name: &str, site: &str, node: &str) -> Value {
    let labels = json!({keys::LABEL_NAME: "mysql", keys::LABEL_INSTANCE: "orders", keys::LABEL_MANAGED_BY: "bloodraven",
        keys::LABEL_FAILOVER_GROUP: "orders", keys::LABEL_SITE: site, keys::LABEL_ROLE: "replica",
        keys::LABEL_HEALTHY: "no"});
    let container = |name: &str| json!({"name": name, "image": "example.org/none:1"});
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels, "finalizers": [keys::FINALIZER_INSTANCE]},
        "spec": {"nodeName": node, "containers": [container("mysql")], "initContainers": [container("sidecar")],
            "automountServiceAccountToken": false, "tolerations": [{"operator": "Exists"}]}})
}

pub(crate) fn terminated(name: &str) -> Value {
    json!({"name": name, "image": "i", "imageID": "", "ready": false, "restartCount": 0,
        "state": {"terminated": {"exitCode": 0, "finishedAt": "2026-01-01T00:00:05Z"}}})
}

/// The lease of a node, renewed at that time.
pub(crate) fn vouch(node: &str, at: &str) {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-node-lease"}});
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": node, "namespace": "kube-node-lease"}, "spec": {"renewTime": at}});
    apply(server(), &format!("{namespace}\n---\n{lease}"));
}

/// The group as the operator would take it.
pub(crate) async fn wanted(world: &ClusterWorld, group: &GroupId) -> MysqlFailoverGroup {
    spec::object(world.read(group).await.unwrap().unwrap()).unwrap()
}

pub(crate) fn names_of(kind: &str, namespace: &str) -> Vec<String> {
    let words = ["get", kind, "-n", namespace, "-l", "app.kubernetes.io/managed-by=bloodraven", "-o", "name"];
    let listed = server().kubectl().args(words).output().unwrap();
    assert!(listed.status.success(), "{listed:?}");
    let names = String::from_utf8(listed.stdout).unwrap();
    names.lines().filter_map(|line| line.rsplit('/').next()).map(str::to_owned).collect()
}

/// As a person would: fields of the group's spec.
pub(crate) fn edit(namespace: &str, spec: &Value) {
    let patch = json!({ "spec": spec }).to_string();
    let words = ["patch", "mfg", "-n", namespace, "orders", "--type=merge", "-p", &patch];
    let patched = server().kubectl().args(words).output().unwrap();
    assert!(patched.status.success(), "{patched:?}");
}

/// The accounts that the group of a stage names.
pub(crate) fn secret(namespace: &str) {
    let data = json!({"username": "ops", "password": "hidden", "MYSQL_ROOT_PASSWORD": "hidden"});
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "creds", "namespace": namespace},
        "stringData": data});
    apply(server(), &secret.to_string());
}

/// `kubectl` with these words, which has to succeed.
pub(crate) fn order(words: &[&str]) {
    let done = server().kubectl().args(words).output().unwrap();
    assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
}

/// An installation that looks at these namespaces alone.
pub(crate) fn install(operators: &str, watched: &[&str]) -> Install {
    Install {
        namespace: operators.to_owned(),
        image: "example.org/bloodraven:1".to_owned(),
        watch_namespaces: watched.iter().map(|namespace| (*namespace).to_owned()).collect(),
    }
}

/// The account of an installation and all that it may do. Installations share names of objects outside of their
/// namespaces, and here there are several: each gets names of its own.
pub(crate) fn rights(install: &Install) -> Vec<Value> {
    let mut all = install.objects();
    all.retain(|it| !matches!(it["kind"].as_str(), Some("Service" | "Deployment")));
    for object in &mut all {
        let outside = matches!(object["metadata"]["namespace"].as_str(), None | Some("kube-node-lease"));
        if !outside || object["kind"] == "Namespace" {
            continue;
        }
        for pointer in ["/metadata/name", "/roleRef/name"] {
            if let Some(name) = object.pointer_mut(pointer) {
                *name = json!(format!("{}-{}", name.as_str().unwrap(), install.namespace));
            }
        }
    }
    all
}

/// The API server as the account of that installation sees it.
pub(crate) async fn config_of(install: &Install) -> kube::Config {
    let mut config = server().client_config().await.unwrap();
    config.auth_info.impersonate = Some(format!("system:serviceaccount:{}:bloodraven", install.namespace));
    let groups = ["system:serviceaccounts".to_owned(), "system:authenticated".to_owned()];
    config.auth_info.impersonate_groups = Some(groups.to_vec());
    config
}

/// An operator of one namespace, as it runs in a pod.
pub(crate) struct Operator {
    /// Where its aux server answers.
    pub(crate) address: SocketAddr,
    end: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Operator {
    pub(crate) async fn start(namespace: &str) -> Self {
        Self::at(server(), places(namespace)).await
    }

    pub(crate) async fn at(server: &ApiServer, places: Places) -> Self {
        Self::with(server.client().await.unwrap(), places).await
    }

    /// With the rights that this client has.
    pub(crate) async fn with(client: kube::Client, places: Places) -> Self {
        Self::towards(Mysql, client, places).await
    }

    /// With other servers than those at the names of the group's Services.
    pub(crate) async fn towards<S: Servers>(servers: S, client: kube::Client, places: Places) -> Self {
        let world = Arc::new(ClusterWorld::new(&client, places));
        let ears = Arc::new(Teller::new(OperatorMetrics::new("0.0.0")));
        let settings = Settings { ears, ..Settings::new("operator-a_1") };
        let aux = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = aux.local_addr().unwrap();
        let (end, told) = oneshot::channel::<()>();
        let task = tokio::spawn(async move {
            let listeners = Listeners { aux, metrics: None, probes: None };
            let told = async { drop(told.await) };
            bloodraven_operator::run_with(world, Arc::new(servers), settings, listeners, told).await.unwrap();
        });
        Self { address, end: Some(end), task }
    }

    pub(crate) async fn stop(mut self) {
        drop(self.end.take());
        self.task.await.unwrap();
    }
}

/// Asks until it is so. Blocks a thread: the operator runs on others.
pub(crate) async fn eventually<T: Send + 'static>(what: &str, ask: impl FnMut() -> Option<T> + Send + 'static) -> T {
    let seen = tokio::task::spawn_blocking(move || wait::until_every(LIMIT, LOOK_EVERY, ask)).await.unwrap();
    seen.unwrap_or_else(|| panic!("never: {what}"))
}

/// The same for a question that does not block.
pub(crate) async fn again_until<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let mut beats = tokio::time::interval(LOOK_EVERY);
    let seen = async {
        loop {
            beats.tick().await;
            if let Some(found) = ask().await {
                return found;
            }
        }
    };
    timeout(LIMIT, seen).await.unwrap_or_else(|_| panic!("never: {what}"))
}

/// The same on a thread that may be blocked.
pub(crate) fn in_time<T>(what: &str, ask: impl FnMut() -> Option<T>) -> T {
    wait::until_every(LIMIT, LOOK_EVERY, ask).unwrap_or_else(|| panic!("never: {what}"))
}

/// `kubectl` is a process each time.
const LOOK_EVERY: Duration = Duration::from_millis(200);

pub(crate) fn group(namespace: &str, name: &str) -> Option<Value> {
    let words = ["get", "mfg", "-n", namespace, name, "-o", "json"];
    serde_json::from_slice(&server().kubectl().args(words).output().ok()?.stdout).ok()
}

pub(crate) fn condition(object: &Value, name: &str) -> Value {
    let all = object["status"]["conditions"].as_array().into_iter().flatten();
    all.into_iter().find(|it| it["type"] == name).cloned().unwrap_or_default()
}

/// Reasons of the Events of a namespace.
pub(crate) fn events(namespace: &str) -> Vec<(String, String)> {
    let words = ["get", "events.v1.events.k8s.io", "-n", namespace, "-o", "json"];
    let listed: Value = serde_json::from_slice(&server().kubectl().args(words).output().unwrap().stdout).unwrap();
    let text = |event: &Value, field: &str| event[field].as_str().unwrap_or_default().to_owned();
    listed["items"].as_array().unwrap().iter().map(|it| (text(it, "reason"), text(it, "note"))).collect()
}
