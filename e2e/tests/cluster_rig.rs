//! The testbed's cluster keeps its promises: three nodes with MySQL on volumes, names and services between them, every fault
//! and its end, and nothing left afterwards, however its owner ended.
//!
//! With `BLOODRAVEN_KUBECONFIG` the part that needs no machines of our own runs against that cluster instead.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::io::Read as _;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bloodraven_e2e::programs;
use bloodraven_testbed::cluster::{
    self, Api, BLOODRAVEN_IMAGE, Choice, Cluster, Container, Denial, External, KUBELET, MYSQL_IMAGE, Member, SITES,
    Trace,
};
use bloodraven_testbed::wait::Stopwatch;
use bloodraven_testbed::{environment, wait};
use serde_json::{Value, json};

/// Everything that these tests make is in this namespace.
const NAMESPACE: &str = "rig";

/// Names the image of MySQL in a cluster of somebody else.
const IMAGE: &str = "BLOODRAVEN_MYSQL_IMAGE";

/// Tells a second copy of this test program where to report the cluster that it holds.
const REPORT: &str = "BLOODRAVEN_E2E_CLUSTER_REPORT";

/// What a step may take on a machine that is busy with other things; a few seconds on a free one.
const STEP_LIMIT: Duration = Duration::from_mins(3);

/// How long silence is listened to.
const SILENCE: Duration = Duration::from_secs(3);

/// How a site's server is run: small, on its volume, without what an earlier life left in the folder of its socket.
const RUN: &str = "rm -f /run/mysqld/*; exec mysqld --no-defaults --datadir=/data/db --socket=/run/mysqld/mysqld.sock \
    --mysqlx=OFF --innodb-buffer-pool-size=64M --innodb-redo-log-capacity=32M --max-connections=60 \
    --table-open-cache=200 --skip-name-resolve --secure-file-priv=NULL --performance-schema=OFF --init-file=/data/init.sql";

/// A new volume gets an empty server and an account for the other sites.
const PREPARE: &str = "test -d /data/db || { mysqld --no-defaults --initialize-insecure --datadir=/data/new && \
    mv /data/new /data/db; }; \
    echo \"CREATE USER IF NOT EXISTS probe@'%'; GRANT ALL ON *.* TO probe@'%';\" > /data/init.sql";

#[test]
fn three_sites_run_suffer_every_fault_and_leave_nothing() {
    let _turn = turn();
    if let Some(choice) = Choice::of_environment() {
        return against(&External::open(&choice).unwrap());
    }
    let watch = Stopwatch::start();
    let options = Cluster::options(programs::testbed()).workspace(programs::bloodraven(), programs::static_keeper());
    tell("programs are built", watch);
    let watch = Stopwatch::start();
    let cluster = options.start().unwrap();
    tell("up: three Ready nodes, name service, images", watch);
    let trace = cluster.trace();
    assert_eq!(trace.namespaces(), 15, "three kinds for each of four machines and the switch: {trace:?}");
    assert!(!trace.left().is_empty(), "what runs is seen");

    let sites = Sites::of(&cluster, SITES.map(str::to_owned).to_vec());
    sites.raise();
    workspace_image_runs(&cluster);
    faults_of_pods(&sites);
    faults_of_processes(&cluster, &sites);
    faults_of_lines(&cluster, &sites);
    faults_of_machines(&cluster, &sites);
    faults_of_the_api(&cluster, &sites);
    volumes_are_offered_again(&cluster);

    let watch = Stopwatch::start();
    cluster.down().unwrap();
    tell("down", watch);
    // What was killed is gone when its parent has heard of it.
    let gone = wait::until(SILENCE, || trace.left().is_empty().then_some(()));
    assert!(gone.is_some(), "left: {:?}", trace.left());
}

#[test]
fn a_killed_owner_leaves_nothing_that_the_next_start_does_not_sweep_frozen_nodes_included() {
    if let Some(report) = environment::variable(REPORT) {
        let cluster = Cluster::options(programs::testbed()).start().unwrap();
        let _frozen = cluster.freeze("fra").unwrap();
        report_to(Path::new(&report), &cluster.trace());
        return wait_for_the_parent();
    }
    if Choice::of_environment().is_some() {
        return eprintln!("rig: not run: {} names a cluster whose machines are not ours", environment::KUBECONFIG);
    }
    let _turn = turn();
    let name = "a_killed_owner_leaves_nothing_that_the_next_start_does_not_sweep_frozen_nodes_included";
    let report = std::env::temp_dir().join(format!("bloodraven-e2e-{}-{name}", std::process::id()));
    let watch = Stopwatch::start();
    let mut copy = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(REPORT, &report)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let trace = wait::until(2 * STEP_LIMIT, || {
        assert!(copy.try_wait().unwrap().is_none(), "the copy ended before it had a cluster");
        serde_json::from_slice::<Trace>(&std::fs::read(&report).ok()?).ok()
    });
    let _ = std::fs::remove_file(&report);
    let trace = trace.expect("the copy starts a cluster");
    copy.kill().unwrap();
    copy.wait().unwrap();
    let left = trace.left();
    assert!(left.iter().any(|line| line.contains("process")), "a frozen node does not die with its owner: {left:?}");
    let gone = wait::until_every(STEP_LIMIT, Duration::from_millis(200), || {
        cluster::sweep();
        trace.left().is_empty().then_some(())
    });
    assert!(gone.is_some(), "left: {:?}", trace.left());
    tell("started, frozen, killed, swept", watch);
}

#[test]
fn a_user_who_may_not_is_told_at_once_what_to_do() {
    let folder = std::env::temp_dir().join(format!("bloodraven-e2e-{}-nobody", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o777)).unwrap();
    let program = folder.join("bloodraven-testbed");
    std::fs::copy(programs::testbed(), &program).unwrap();
    let mut command = Command::new(&program);
    command.args(["cluster", "up"]).env(environment::CACHE_DIR, folder.join("cache")).current_dir("/");
    if rustix::process::geteuid().is_root() {
        command.uid(65_534).gid(65_534);
    }
    let watch = Stopwatch::start();
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(!output.status.success() && said.contains("not root") && said.contains("run it as root"), "{said}");
    assert!(watch.elapsed() < Duration::from_secs(30), "before anything is fetched or built");
}

/// The part that needs no machines of our own.
fn against(cluster: &External) {
    eprintln!("rig: on {} without faults of machines, lines and programs, which are not ours", cluster.context());
    let nodes: Vec<String> = cluster.nodes().iter().take(SITES.len()).cloned().collect();
    let sites = Sites::of(cluster, nodes);
    sites.raise();
    faults_of_pods(&sites);
    cluster.kubectl(&["delete", "namespace", NAMESPACE, "--wait=false"]).unwrap();
}

fn workspace_image_runs(cluster: &Cluster) {
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "workspace", "namespace": NAMESPACE},
        "spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "bloodraven", "image": BLOODRAVEN_IMAGE, "args": ["--help"]}],
        },
    });
    cluster.apply(&pod).unwrap();
    let ended = |api: &Api| {
        let pod = api.get(&["pod", "workspace", "--namespace", NAMESPACE]).ok()?;
        (pod["status"]["phase"] == "Succeeded").then_some(())
    };
    cluster.wait_for("the image of the workspace does not run", STEP_LIMIT, ended).unwrap();
}

type Deletion = fn(&Api, &str, &str) -> Result<(), cluster::Error>;

/// Deleted in good order and by force, a pod comes back with its data.
fn faults_of_pods(sites: &Sites<'_>) {
    let watch = Stopwatch::start();
    let deletions: [Deletion; 2] = [Api::delete_pod, Api::force_delete_pod];
    for delete in deletions {
        let old = sites.pod(0).unwrap()["metadata"]["uid"].clone();
        delete(sites.api, NAMESPACE, &name_of(0)).unwrap();
        let gone = |_: &Api| sites.pod(0).is_none_or(|pod| pod["metadata"]["uid"] != old).then_some(());
        sites.api.wait_for("the deleted pod is still there", STEP_LIMIT, gone).unwrap();
        sites.apply(0);
        sites.answers(sites.last(), 0);
    }
    tell("pods deleted and forced", watch);
}

fn faults_of_processes(cluster: &Cluster, sites: &Sites<'_>) {
    let watch = Stopwatch::start();
    let killed = cluster.kill(server_of(&name_of(1)), Some("mysqld")).unwrap();
    let again = |_: &Api| {
        let now = cluster.processes(server_of(&name_of(1))).ok()?;
        now.iter().any(|process| process.name == "mysqld" && process.pid != killed.pid).then_some(())
    };
    cluster.wait_for("a killed container does not start again", STEP_LIMIT, again).unwrap();
    sites.answers(2, 1);

    let paused = cluster.pause(server_of(&name_of(1))).unwrap();
    assert!(sites.is_silent(2, 1), "a paused server says nothing");
    drop(paused);
    sites.answers(2, 1);

    let before = cluster.processes(server_of(&name_of(1))).unwrap();
    cluster.kill_program(SITES[1], KUBELET).unwrap();
    let works = |api: &Api| api.exec(NAMESPACE, &name_of(1), "mysqld", &["true"]).ok();
    cluster.wait_for("a killed kubelet does not come back", STEP_LIMIT, works).unwrap();
    assert_eq!(cluster.processes(server_of(&name_of(1))).unwrap()[0], before[0], "its containers do not notice");
    tell("processes killed and paused", watch);
}

fn faults_of_lines(cluster: &Cluster, sites: &Sites<'_>) {
    let watch = Stopwatch::start();
    let cut = cluster.cut("iad", &["pdx"]).unwrap();
    assert!(sites.is_silent(0, 1) && sites.is_silent(1, 0), "cut both ways");
    sites.answers(0, 2);
    cut.heal().unwrap();
    sites.answers(0, 1);

    let cut = cluster.cut_one_way("iad", "fra").unwrap();
    assert!(!arrives(cluster, "iad", "fra") && arrives(cluster, "fra", "iad"), "cut one way");
    drop(cut);
    assert!(arrives(cluster, "iad", "fra"));

    let cut = cluster.isolate("fra").unwrap();
    wait_until_lost(cluster, "fra");
    let mut ask = cluster.command_on("fra", "/usr/bin/busybox").unwrap();
    let name = format!("{}.{NAMESPACE}.svc.cluster.local", name_of(0));
    let asked = ask.args(["nslookup", &name, "10.96.0.10"]).output().unwrap();
    assert!(asked.status.success(), "a site that is cut off still resolves names: {asked:?}");
    drop(cut);
    cluster.wait_for_nodes(&SITES).unwrap();
    sites.answers(0, 2);
    tell("lines cut both ways, one way, all", watch);
}

fn faults_of_machines(cluster: &Cluster, sites: &Sites<'_>) {
    let watch = Stopwatch::start();
    let server = sites.address(1);
    let before = cluster.processes(server_of(&name_of(1))).unwrap();
    let frozen = cluster.freeze("pdx").unwrap();
    assert!(!greets(cluster, "iad", server), "a frozen node says nothing");
    frozen.thaw().unwrap();
    sites.answers(0, 1);
    assert_eq!(cluster.processes(server_of(&name_of(1))).unwrap(), before, "it goes on where it stood");

    let off = cluster.power_cut("pdx").unwrap();
    assert!(!Path::new(&format!("/proc/{}", before[0].pid)).exists(), "every process is gone");
    assert!(cluster.command_on("pdx", "true").is_err(), "one cannot enter a machine that is off");
    wait_until_lost(cluster, "pdx");
    off.boot().unwrap();
    cluster.wait_for_nodes(&SITES).unwrap();
    sites.answers(0, 1);
    tell("a node frozen, thawed, cut off from power, booted", watch);
}

fn faults_of_the_api(cluster: &Cluster, sites: &Sites<'_>) {
    let watch = Stopwatch::start();
    refused_and_allowed(cluster);
    let server = sites.address(0);
    let ask = ["get", "--raw=/readyz", "--request-timeout=3s"];
    let stopped = cluster.stop_api().unwrap();
    assert!(cluster.kubectl(&ask).is_err(), "a stopped API server does not answer");
    assert!(greets(cluster, "fra", server), "servers go on without it");
    drop(stopped);
    cluster.wait_for_answers(STEP_LIMIT).unwrap();
    let paused = cluster.pause_api().unwrap();
    assert!(cluster.kubectl(&ask).is_err(), "a paused API server does not answer");
    drop(paused);
    cluster.wait_for_answers(STEP_LIMIT).unwrap();
    cluster.wait_for_nodes(&SITES).unwrap();
    sites.answers(2, 0);
    tell("requests refused, API server stopped and paused", watch);
}

/// A right that an account has is refused while it is denied, and no other.
fn refused_and_allowed(cluster: &Cluster) {
    let user = format!("system:serviceaccount:{NAMESPACE}:default");
    let account = format!("--serviceaccount={NAMESPACE}:default");
    let bind = ["create", "rolebinding", "edits", "--namespace", NAMESPACE, "--clusterrole=edit", &account];
    cluster.kubectl(&bind).unwrap();
    let as_user = format!("--as={user}");
    let create = |name: &str| cluster.kubectl(&["create", "configmap", name, "--namespace", NAMESPACE, &as_user]);
    let allowed = |_: &Api| create("first").ok();
    cluster.wait_for("the right is not there", STEP_LIMIT, allowed).unwrap();
    let denied = cluster.deny(Denial::new(&user, &["create"], "configmaps").unwrap()).unwrap();
    let refusal = create("second").unwrap_err().to_string();
    assert!(refusal.contains("forbidden") && refusal.contains("refused by the testbed"), "{refusal}");
    cluster.kubectl(&["get", "configmap", "first", "--namespace", NAMESPACE, &as_user]).unwrap();
    denied.allow().unwrap();
    create("second").unwrap();
}

fn volumes_are_offered_again(cluster: &Cluster) {
    cluster.kubectl(&["delete", "namespace", NAMESPACE, "--wait=true", "--timeout=50s"]).unwrap();
    let phases = |api: &Api| -> Option<Vec<String>> {
        let found = api.get(&["persistentvolumes"]).ok()?;
        let phases = found["items"].as_array()?.iter().map(|item| item["status"]["phase"].as_str().map(str::to_owned));
        phases.collect()
    };
    let released = |api: &Api| (phases(api)?.iter().filter(|phase| *phase == "Released").count() == 3).then_some(());
    cluster.wait_for("the volumes are not released", STEP_LIMIT, released).unwrap();
    cluster.renew_volumes().unwrap();
    let free = |api: &Api| phases(api)?.iter().all(|phase| phase == "Available").then_some(());
    cluster.wait_for("the volumes are not offered again", STEP_LIMIT, free).unwrap();
}

/// A MySQL server a node, each with a volume and a service of its own.
struct Sites<'a> {
    api: &'a Api,
    nodes: Vec<String>,
    image: String,
}

impl<'a> Sites<'a> {
    fn of(api: &'a Api, nodes: Vec<String>) -> Self {
        let image = environment::variable(IMAGE).map(|image| image.to_string_lossy().into_owned());
        Self { api, nodes, image: image.unwrap_or_else(|| MYSQL_IMAGE.to_owned()) }
    }

    fn last(&self) -> usize {
        self.nodes.len() - 1
    }

    /// Brings them up, has each write its name, and every one read every other's.
    fn raise(&self) {
        let watch = Stopwatch::start();
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        self.api.apply(&namespace).unwrap();
        (0..self.nodes.len()).for_each(|site| self.apply(site));
        for site in 0..self.nodes.len() {
            let table = "CREATE DATABASE IF NOT EXISTS rig; CREATE TABLE IF NOT EXISTS rig.note";
            let text = format!("{table} SELECT '{}' AS text", name_of(site));
            let here = ["--socket=/run/mysqld/mysqld.sock", "--user=root", "--execute", &text];
            self.eventually("a server takes a write", || self.sql(site, &here));
        }
        tell("a MySQL server on each node's volume", watch);
        let watch = Stopwatch::start();
        let pairs = (0..self.nodes.len()).flat_map(|from| (0..self.nodes.len()).map(move |to| (from, to)));
        pairs.for_each(|(from, to)| self.answers(from, to));
        tell("every site reads every other by name through its service", watch);
    }

    fn apply(&self, site: usize) {
        self.api.apply(&objects(&name_of(site), &self.nodes[site], &self.image)).unwrap();
    }

    fn pod(&self, site: usize) -> Option<Value> {
        self.api.get(&["pod", &name_of(site), "--namespace", NAMESPACE]).ok()
    }

    fn address(&self, site: usize) -> SocketAddr {
        let pod = self.pod(site).expect("the pod is there");
        let address: IpAddr = pod["status"]["podIP"].as_str().expect("it has an address").parse().unwrap();
        SocketAddr::from((address, 3306))
    }

    /// Tries until it succeeds; the last refusal says why it never did.
    fn eventually(&self, what: &str, attempt: impl Fn() -> Result<String, cluster::Error>) {
        let done = self.api.wait_for(what, STEP_LIMIT, |_| attempt().ok());
        done.or_else(|_| attempt()).unwrap_or_else(|error| panic!("{what}: {error}"));
    }

    fn sql(&self, site: usize, words: &[&str]) -> Result<String, cluster::Error> {
        let client = ["mysql", "--no-defaults", "--skip-column-names", "--connect-timeout=3"];
        self.api.exec(NAMESPACE, &name_of(site), "mysqld", &[&client[..], words].concat())
    }

    /// What one site reads at another, over the other's service.
    fn read(&self, from: usize, to: usize) -> Result<String, cluster::Error> {
        let host = format!("--host={}.{NAMESPACE}.svc.cluster.local", name_of(to));
        self.sql(from, &[&host, "--user=probe", "--execute", "SELECT text FROM rig.note"])
    }

    /// Waits until one site reads at another what that one wrote.
    fn answers(&self, from: usize, to: usize) {
        let what = format!("{} reads what {} wrote", name_of(from), name_of(to));
        self.eventually(&what, || self.read(from, to));
        assert_eq!(self.read(from, to).unwrap().trim(), name_of(to), "{what}");
    }

    fn is_silent(&self, from: usize, to: usize) -> bool {
        self.read(from, to).is_err()
    }
}

fn name_of(site: usize) -> String {
    format!("site-{site}")
}

fn server_of(pod: &str) -> Container<'_> {
    Container { namespace: NAMESPACE, pod, container: "mysqld" }
}

fn objects(name: &str, node: &str, image: &str) -> Value {
    let mounts = json!([
        {"name": "data", "mountPath": "/data"},
        {"name": "run", "mountPath": "/run/mysqld"},
        {"name": "tmp", "mountPath": "/tmp"},
    ]);
    let container = |name: &str, script: &str| {
        json!({
            "name": name,
            "image": image,
            "command": ["sh", "-c", script],
            "volumeMounts": mounts,
            "securityContext": {
                "allowPrivilegeEscalation": false,
                "readOnlyRootFilesystem": true,
                "capabilities": {"drop": ["ALL"]},
            },
        })
    };
    // It stays where its data is, however long its node is silent.
    let patience =
        ["not-ready", "unreachable"].map(|it| json!({"key": format!("node.kubernetes.io/{it}"), "operator": "Exists"}));
    let claim = json!({"accessModes": ["ReadWriteOncePod"], "resources": {"requests": {"storage": "1Gi"}}});
    let meta = json!({"name": name, "namespace": NAMESPACE, "labels": {"site": name}});
    let spec = json!({
        "nodeSelector": {"kubernetes.io/hostname": node},
        "terminationGracePeriodSeconds": 5,
        "tolerations": patience,
        "securityContext": {
            "runAsNonRoot": true, "runAsUser": 999, "runAsGroup": 999, "fsGroup": 999,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "initContainers": [container("prepare", PREPARE)],
        "containers": [container("mysqld", RUN)],
        "volumes": [
            {"name": "data", "persistentVolumeClaim": {"claimName": name}},
            {"name": "run", "emptyDir": {}},
            {"name": "tmp", "emptyDir": {}},
        ],
    });
    let service = json!({"selector": {"site": name}, "ports": [{"port": 3306}]});
    json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": claim},
        {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec},
        {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": service},
    ]})
}

/// Whether a server's greeting reaches a machine.
fn greets(cluster: &Cluster, from: &str, server: SocketAddr) -> bool {
    let door = cluster.door(from, server).unwrap();
    let mut stream = TcpStream::connect(door.address()).unwrap();
    stream.set_read_timeout(Some(SILENCE)).unwrap();
    stream.read(&mut [0; 64]).is_ok_and(|length| length > 0)
}

/// Whether a datagram of one machine reaches another: nobody listens there, and its kernel counts that.
fn arrives(cluster: &Cluster, from: &str, to: &str) -> bool {
    let before = unheard(cluster, to);
    let address = Member::named(to).unwrap().address();
    let mut send = cluster.command_on(from, "/usr/bin/bash").unwrap();
    let output = send.args(["-c", &format!("echo x > /dev/udp/{address}/7777")]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    wait::until(SILENCE, || (unheard(cluster, to) > before).then_some(())).is_some()
}

/// How many datagrams a machine got that nobody waited for.
fn unheard(cluster: &Cluster, machine: &str) -> u64 {
    let mut cat = cluster.command_on(machine, "/usr/bin/busybox").unwrap();
    let read = cat.args(["cat", "/proc/net/snmp"]).output().unwrap();
    let text = String::from_utf8(read.stdout).unwrap();
    // A line of names is followed by one of numbers: `Udp: InDatagrams NoPorts ...`.
    let numbers = text.lines().filter(|line| line.starts_with("Udp: ")).nth(1).expect("the kernel counts datagrams");
    numbers.split(' ').nth(2).unwrap().parse().unwrap()
}

fn wait_until_lost(cluster: &Cluster, node: &str) {
    let lost = |api: &Api| {
        let node = api.get(&["node", node]).ok()?;
        let ready = |condition: &&Value| condition["type"] == "Ready";
        let condition = node["status"]["conditions"].as_array()?.iter().find(ready)?.clone();
        (condition["status"] != "True").then_some(())
    };
    cluster.wait_for("a lost node is still Ready", STEP_LIMIT, lost).unwrap();
}

/// One cluster at a time: they would take each other's processors.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn tell(what: &str, watch: Stopwatch) {
    eprintln!("rig: {what}: {:.1} s", watch.elapsed().as_secs_f64());
}

/// Tells the other process, all at once or not at all.
fn report_to(report: &Path, trace: &Trace) {
    let unfinished = report.with_extension("unfinished");
    std::fs::write(&unfinished, serde_json::to_vec(trace).unwrap()).unwrap();
    std::fs::rename(&unfinished, report).unwrap();
}

/// Waits for the end of standard input: the parent closes it, or it ends with the parent.
fn wait_for_the_parent() {
    let mut rest = Vec::new();
    // Bounded by the life of the parent, which never writes.
    std::io::stdin().lock().take(1).read_to_end(&mut rest).unwrap();
}
