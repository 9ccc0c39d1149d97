//! One site: keeper, mysqld, sidecar, with an operator and two peers who are played.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use bloodraven_brain::message::OpeningWord;
use bloodraven_brain::name::{Instance, Member, Site};
use bloodraven_brain::record::{Phase, Settings, View};
use bloodraven_brain::time::Millis;
use bloodraven_e2e::programs;
use bloodraven_gtid::GtidSet;
use bloodraven_sidecar::Config;
use bloodraven_sidecar::config::Mysql;
use bloodraven_testbed::mysql::{Distribution, provision_template};
use bloodraven_testbed::ports;
use bloodraven_testbed::process::Process;
use bloodraven_testbed::scratch::Scratch;
use bloodraven_wire::{AckMessage, Envelope, Nonce};
use mysql_async::prelude::{FromRow, Queryable as _};
use mysql_async::{Conn, OptsBuilder};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::holding::Holding;
use super::played::{Played, group, keys, push};
use super::{LONG, until};

/// Small, like the testbed's own servers.
const SMALL: [&str; 13] = [
    "--mysqlx=OFF",
    "--secure-file-priv=NULL",
    "--skip-name-resolve",
    "--innodb-buffer-pool-size=64M",
    "--innodb-redo-log-capacity=32M",
    "--innodb-log-buffer-size=1M",
    "--max-connections=60",
    "--table-open-cache=200",
    "--gtid-mode=ON",
    "--enforce-gtid-consistency=ON",
    "--log-bin=bin",
    "--server-id=1",
    "--partial-revokes=ON",
];

const ROLES: [&str; 6] = ["operator", "app", "readonly", "monitor", "backup", "replication"];

/// What a bed is like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// The view's lease.
    pub(crate) lease: Duration,
    /// The sidecar's interval.
    pub(crate) interval: Duration,
    /// Peers that take connections and never answer, besides the two that are played.
    pub(crate) black_holes: usize,
}

impl Default for Plan {
    fn default() -> Self {
        Self { lease: Duration::from_secs(6), interval: Duration::from_millis(500), black_holes: 0 }
    }
}

/// See above.
pub(crate) struct Bed {
    pub(crate) operator: Played,
    pub(crate) peers: Vec<Played>,
    pub(crate) me: Member,
    pub(crate) plan: Plan,
    pub(crate) config: Config,
    /// What stands between the sidecar and the admin port.
    pub(crate) way: Option<Holding>,
    voters: Vec<Member>,
    keeper: Option<Process>,
    sidecar: Option<JoinHandle<Result<(), bloodraven_sidecar::Error>>>,
    port: u16,
    admin_port: u16,
    _holes: Vec<std::net::TcpListener>,
    scratch: Scratch,
}

impl Bed {
    /// A site whose server answers and whose sidecar is known; nobody has said anything yet.
    pub(crate) async fn new(name: &str, plan: Plan) -> Self {
        Self::start(name, plan, None).await
    }

    /// The same; whatever contains that text is held up on its way to the admin port.
    pub(crate) async fn holding(name: &str, plan: Plan, text: &'static str) -> Self {
        Self::start(name, plan, Some(text)).await
    }

    async fn start(name: &str, plan: Plan, hold: Option<&'static str>) -> Self {
        let scratch = Scratch::new(name).unwrap();
        let free = ports::free(3).unwrap();
        prepare(scratch.path());
        let operator = Played::operator().await;
        let mut peers = Vec::new();
        let mut voters = Vec::new();
        let mut addresses = BTreeMap::new();
        for site in ["pdx", "fra"] {
            let member = Member::new(&Site::new(site), &Instance::new(&format!("pod-{site}"), "store"));
            let peer = Played::peer(member.clone()).await;
            addresses.insert(member.site.clone(), peer.address.to_string());
            voters.push(member);
            peers.push(peer);
        }
        let holes: Vec<std::net::TcpListener> =
            (0..plan.black_holes).map(|_| std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap()).collect();
        for (number, hole) in holes.iter().enumerate() {
            let member = Member::new(&Site::new(&format!("hole{number}")), &Instance::new("pod", "store"));
            addresses.insert(member.site.clone(), hole.local_addr().unwrap().to_string());
            voters.push(member);
        }
        let way = match hold {
            Some(text) => Some(Holding::before(free[1], text).await),
            None => None,
        };
        let admin = way.as_ref().map_or(SocketAddr::from(([127, 0, 0, 1], free[1])), |way| way.address);
        let config = config(scratch.path(), &operator, addresses, admin, free[0], free[2], plan);
        let me = Member::new(&Site::new("iad"), &Instance::new("pod-iad", "unknown"));
        let mut bed = Self {
            operator,
            peers,
            me,
            plan,
            config,
            voters,
            way,
            keeper: None,
            sidecar: None,
            port: free[0],
            admin_port: free[1],
            _holes: holes,
            scratch,
        };
        bed.start_keeper();
        bed.start_sidecar();
        bed.me.instance = until(LONG, "the sidecar says who it is", async || bed.instance().await).await;
        bed.voters.push(bed.me.clone());
        until(LONG, "mysqld is up and closed", async || bed.variables().await.filter(|pair| *pair == (1, 1))).await;
        bed
    }

    /// The same, opened under epoch 1 by the operator's grant.
    pub(crate) async fn opened(name: &str, plan: Plan) -> Self {
        let bed = Self::new(name, plan).await;
        bed.grant(1);
        bed.until_open().await;
        // By its own reading, too: until then whoever closes it makes an opening fail.
        let opened = |line: &str| line.starts_with("bloodraven_sidecar_openings_total") && line.contains("\"opened\"");
        until(LONG, "the opening is read back", async || {
            let metrics = bed.metrics().await;
            metrics.lines().any(|line| opened(line) && !line.ends_with(" 0")).then_some(())
        })
        .await;
        bed
    }

    /// The operator grants that epoch, a tenure of its own, and says "open"; peers know the view.
    pub(crate) fn grant(&self, epoch: u64) {
        let view = self.view(epoch);
        self.peers.iter().for_each(|peer| peer.says(|says| says.view = Some(view.clone())));
        self.operator.says(|says| {
            says.view = Some(view);
            says.agrees = true;
            says.open = Some(OpeningWord::default());
            says.silent = false;
        });
    }

    /// A view that names this site.
    pub(crate) fn view(&self, epoch: u64) -> View {
        View {
            epoch,
            tenure: epoch,
            phase: Phase::Stable,
            seat: Some(self.me.clone()),
            voters: self.voters.clone(),
            settings: Settings {
                lease_timeout: Millis(u64::try_from(self.plan.lease.as_millis()).unwrap()),
                min_peers: 1,
            },
        }
    }

    /// A view that names nobody.
    pub(crate) fn revoked(&self, epoch: u64) -> View {
        View { phase: Phase::Revoking, seat: None, ..self.view(epoch) }
    }

    pub(crate) fn start_keeper(&mut self) {
        let folder = self.scratch.path();
        let mysqld = Distribution::shared().unwrap().mysqld();
        let own = |option: &str, name: &str| format!("--{option}={}", folder.join(name).display());
        let at = |name: &str| folder.join(name);
        let mut command = Command::new(programs::keeper());
        for (option, name) in [("socket", "k"), ("state-dir", "state"), ("run-dir", "run"), ("datadir", "data")] {
            command.arg(format!("--{option}")).arg(at(name));
        }
        command.arg("--credentials-dir").arg(at("secrets")).args(["--opener-host", "127.0.0.1", "--"]);
        command.arg(mysqld.get_program()).args(mysqld.get_args()).args(SMALL);
        command.args([own("datadir", "data"), own("socket", "s"), own("pid-file", "pid"), own("tmpdir", "tmp")]);
        command.args(["--bind-address=127.0.0.1", "--admin-address=127.0.0.1"]);
        command.arg(format!("--port={}", self.port)).arg(format!("--admin-port={}", self.admin_port));
        self.keeper = Some(Process::spawn(command, "keeper", at("keeper.log")).unwrap());
    }

    pub(crate) fn keeper(&self) -> &Process {
        self.keeper.as_ref().unwrap()
    }

    pub(crate) fn start_sidecar(&mut self) {
        let run = bloodraven_sidecar::run(self.config.clone(), std::future::pending());
        self.sidecar = Some(tokio::spawn(run));
    }

    /// Ends the sidecar as a kill does: where it stands.
    pub(crate) async fn kill_sidecar(&mut self) {
        let sidecar = self.sidecar.take().unwrap();
        sidecar.abort();
        let ended = sidecar.await;
        assert!(ended.is_err_and(|error| error.is_cancelled()), "it ran until then");
        let port = self.config.listen.port();
        until(LONG, "its port is free", async || ports::is_free(Ipv4Addr::LOCALHOST, port).ok()).await;
    }

    /// mysqld's process, as the keeper tells it.
    pub(crate) async fn mysqld_pid(&self) -> Option<Pid> {
        let status = self.keeper_status().await?;
        status.pid.and_then(|pid| Pid::from_raw(pid.try_into().ok()?))
    }

    pub(crate) async fn keeper_status(&self) -> Option<bloodraven_keeper::protocol::Status> {
        let ask = async {
            let mut stream = UnixStream::connect(self.scratch.path().join("k")).await.ok()?;
            stream.write_all(b"status\n").await.ok()?;
            let line = BufReader::new(stream).lines().next_line().await.ok()??;
            match line.parse().ok()? {
                bloodraven_keeper::protocol::Reply::Status(status) => Some(status),
                _ => None,
            }
        };
        timeout(Duration::from_secs(2), ask).await.ok()?
    }

    pub(crate) async fn signal_mysqld(&self, signal: Signal) {
        let pid = until(LONG, "mysqld runs", async || self.mysqld_pid().await).await;
        kill_process(pid, signal).unwrap();
    }

    pub(crate) async fn connect(&self, user: &str) -> Option<Conn> {
        let password = (user != "root").then(|| format!("password of {user}"));
        let options = OptsBuilder::default()
            .ip_or_hostname("127.0.0.1")
            .tcp_port(self.port)
            .user(Some(user))
            .pass(password)
            .prefer_socket(false);
        timeout(Duration::from_secs(5), Conn::new(options)).await.ok()?.ok()
    }

    pub(crate) async fn ask<T: FromRow + Send + 'static>(&self, user: &str, question: &str) -> Option<T> {
        let mut conn = self.connect(user).await?;
        timeout(Duration::from_secs(5), conn.query_first(question)).await.ok()?.ok()?
    }

    pub(crate) async fn run(&self, user: &str, statement: &str) -> Result<(), String> {
        let mut conn = self.connect(user).await.ok_or("no connection")?;
        let done = timeout(LONG, conn.query_drop(statement)).await.map_err(|_| "no end")?;
        done.map_err(|error| error.to_string())
    }

    /// `read_only` and `super_read_only`.
    pub(crate) async fn variables(&self) -> Option<(u8, u8)> {
        self.ask("monitor", "SELECT @@global.read_only, @@global.super_read_only").await
    }

    pub(crate) async fn until_open(&self) {
        until(LONG, "the server is open", async || self.variables().await.filter(|pair| *pair == (0, 0))).await;
    }

    pub(crate) async fn until_closed(&self) {
        until(LONG, "the server is closed", async || self.variables().await.filter(|pair| *pair == (1, 1))).await;
    }

    /// Waits for so many further ticks of the sidecar, seen by the questions that the operator gets.
    pub(crate) async fn ticks(&self, count: u64) {
        let before = self.operator.asked();
        until(LONG, "ticks", async || (self.operator.asked() >= before + count).then_some(())).await;
    }

    pub(crate) async fn executed(&self) -> GtidSet {
        let told: Option<(String,)> = self.ask("monitor", "SELECT @@global.gtid_executed").await;
        told.unwrap().0.parse().unwrap()
    }

    /// `/status`, whatever mysqld does.
    pub(crate) async fn status(&self) -> Option<serde_json::Value> {
        let ask = reqwest::Client::new().get(format!("http://{}/status", self.config.listen)).send();
        let answer = timeout(Duration::from_secs(5), ask).await.ok()?.ok()?;
        serde_json::from_slice(&answer.bytes().await.ok()?).ok()
    }

    async fn instance(&self) -> Option<Instance> {
        Instance::parse(self.status().await?["instance"].as_str()?)
    }

    pub(crate) async fn metrics(&self) -> String {
        let answer = reqwest::Client::new().get(format!("http://{}/metrics", self.config.listen)).send().await;
        String::from_utf8(answer.unwrap().bytes().await.unwrap().to_vec()).unwrap()
    }

    /// Pushes a view; the acknowledgement.
    pub(crate) async fn push(&self, view: &View, number: u8) -> AckMessage {
        let (status, body) = push(self.config.listen, view, number).await;
        assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
        let verified = Envelope::read(&body).unwrap().open_answer(&keys(), Nonce::new([number; 16])).unwrap();
        AckMessage::open(&verified, &group(), bloodraven_brain::message::QuestionId(9)).unwrap()
    }

    /// The keeper's log, for a test that fails.
    pub(crate) fn log(&self) -> String {
        bloodraven_testbed::process::tail(&self.scratch.path().join("keeper.log"), 30)
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        if let Some(sidecar) = &self.sidecar {
            sidecar.abort();
        }
        if std::thread::panicking() {
            eprintln!("keeper: {}", self.log());
        }
    }
}

/// Data, secrets and folders.
fn prepare(folder: &Path) {
    let template = provision_template(&Distribution::shared().unwrap()).unwrap();
    for name in ["state", "run", "tmp"] {
        std::fs::create_dir_all(folder.join(name)).unwrap();
    }
    copy(&template, &folder.join("data"));
    for role in ROLES {
        let at = folder.join("secrets").join(role);
        std::fs::create_dir_all(&at).unwrap();
        std::fs::write(at.join("username"), role).unwrap();
        std::fs::write(at.join("password"), format!("password of {role}")).unwrap();
    }
    std::fs::write(folder.join("hmac.key"), [7; 32]).unwrap();
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for found in from.read_dir().unwrap().flatten() {
        let target = to.join(found.file_name());
        if found.file_type().unwrap().is_dir() {
            copy(&found.path(), &target);
        } else {
            std::fs::copy(found.path(), target).unwrap();
        }
    }
}

fn config(
    folder: &Path,
    operator: &Played,
    peers: BTreeMap<Site, String>,
    admin: SocketAddr,
    port: u16,
    listen: u16,
    plan: Plan,
) -> Config {
    Config {
        site: Site::new("iad"),
        group: "orders".into(),
        group_uid: group().to_string(),
        namespace: "shop".into(),
        pod_name: "mysql-orders-iad-0".into(),
        pod_uid: "pod-iad".into(),
        peers,
        operator: operator.address.to_string(),
        check_interval: plan.interval,
        mysql: Mysql {
            admin: (admin.ip().to_string(), admin.port()),
            client: ("127.0.0.1".into(), port),
            credentials: folder.join("secrets").join("operator"),
            tls: None,
        },
        key_file: folder.join("hmac.key"),
        state_dir: folder.join("state"),
        keeper_socket: folder.join("k"),
        listen: SocketAddr::from(([127, 0, 0, 1], listen)),
    }
}
