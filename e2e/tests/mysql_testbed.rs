//! The testbed's MySQL servers, live: they start, differ, replicate, fail on demand and never stay behind.
//!
//! In: the programs that the testbed finds or fetches. Out: proof that tests can rely on its promises. Must not: leave
//! a process or a folder behind.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a helper of a test fails the test, as the test itself does")]

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use bloodraven_testbed::cache::{self, Cache};
use bloodraven_testbed::mysql::{self, Client, Distribution, Error, MysqlServer, Version, start_many};
use bloodraven_testbed::progress::{say, seconds};
use bloodraven_testbed::scratch::{self, Scratch};
use bloodraven_testbed::wait::{self, Stopwatch};
use bloodraven_testbed::{environment, process};
use mysql_async::prelude::{FromRow, Queryable as _};
use mysql_async::{Conn, Opts, OptsBuilder};

/// How long any one call may take: a thousand times what it does take.
const LIMIT: Duration = Duration::from_secs(20);

/// Tells a copy of this test program to hold servers instead of testing, and where to write their numbers.
const REPORT: &str = "BLOODRAVEN_E2E_REPORT";

/// Tells that copy how many servers to hold.
const COUNT: &str = "BLOODRAVEN_E2E_COUNT";

/// A call that has to end within the limit.
async fn within<T, E: std::fmt::Debug>(what: &str, call: impl Future<Output = Result<T, E>>) -> T {
    let outcome = tokio::time::timeout(LIMIT, call).await;
    outcome
        .unwrap_or_else(|_| panic!("{what}: no end within {LIMIT:?}"))
        .unwrap_or_else(|error| panic!("{what}: {error:?}"))
}

fn options(host: Ipv4Addr, port: u16) -> OptsBuilder {
    OptsBuilder::default().ip_or_hostname(host.to_string()).tcp_port(port).user(Some("root")).prefer_socket(false)
}

async fn connect(server: &MysqlServer) -> Conn {
    let options = OptsBuilder::from_opts(Opts::from_url(&server.url("root", "")).unwrap()).prefer_socket(false);
    within(&format!("connecting to {}", server.name()), Conn::new(options)).await
}

async fn run(connection: &mut Conn, statement: &str) {
    within(statement, connection.query_drop(statement)).await;
}

async fn ask<T: FromRow + Send + 'static>(connection: &mut Conn, question: &str) -> T {
    within(question, connection.query_first(question)).await.unwrap_or_else(|| panic!("{question}: no row"))
}

/// A call to a server that does not answer has to be given up: the error, or nothing when even that did not come.
async fn given_up<T, E: std::fmt::Debug>(
    limit: Duration,
    call: impl Future<Output = Result<T, E>>,
) -> Result<T, Option<E>> {
    match tokio::time::timeout(limit, call).await {
        Ok(outcome) => outcome.map_err(Some),
        Err(_) => Err(None),
    }
}

/// Whether a process runs. One that ended and whose parent never asked (a zombie) does not.
fn runs(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

#[tokio::test(flavor = "multi_thread")]
async fn three_servers_start_together_answer_and_differ() {
    mysql::provision_template(&Distribution::shared().unwrap()).unwrap();
    let watch = Stopwatch::start();
    let one = MysqlServer::builder().name("alone").start().unwrap();
    let alone = watch.elapsed();
    drop(one);
    let watch = Stopwatch::start();
    let servers = start_many(["iad", "pdx", "fra"].map(|name| MysqlServer::builder().name(name))).unwrap();
    say(&format!("one MySQL server starts in {}, three in {}", seconds(alone), seconds(watch.elapsed())));

    assert_eq!(servers.iter().map(MysqlServer::name).collect::<Vec<_>>(), ["iad", "pdx", "fra"]);
    let (mut uuids, mut ids, mut pids) = (Vec::new(), Vec::new(), Vec::new());
    for server in &servers {
        let mut connection = connect(server).await;
        let (version, uuid, id): (String, String, u32) =
            ask(&mut connection, "SELECT VERSION(), @@server_uuid, @@server_id").await;
        assert!(Version::parse(&version).unwrap() >= Version::OLDEST, "{version}");
        let (gtids, mode): (String, String) = ask(&mut connection, "SELECT @@gtid_executed, @@gtid_mode").await;
        assert_eq!((gtids.as_str(), mode.as_str()), ("", "ON"), "a fresh server has no history");
        assert!(server.socket().exists() && server.datadir().is_dir() && runs(server.pid()));
        uuids.push(uuid);
        ids.push(id);
        pids.push(server.pid());
    }
    uuids.sort();
    uuids.dedup();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!((uuids.len(), ids.len()), (3, 3), "{uuids:?} {ids:?}");

    let folders: Vec<PathBuf> = servers.iter().map(|server| server.folder().to_owned()).collect();
    drop(servers);
    assert!(!pids.iter().any(|pid| runs(*pid)), "a dropped server is gone: {pids:?}");
    assert!(!folders.iter().any(|folder| folder.exists()), "with its files: {folders:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_catches_up_by_gtid() {
    let account = "CREATE USER IF NOT EXISTS 'repl'@'127.%' IDENTIFIED BY 's3cret'";
    let source = MysqlServer::builder()
        .name("source")
        .init_statement("SET SESSION sql_log_bin=0")
        .init_statement(account)
        .init_statement("GRANT REPLICATION SLAVE ON *.* TO 'repl'@'127.%';");
    let servers = start_many([source, MysqlServer::builder().name("replica").fenced()]).unwrap();
    let (mut source, mut replica) = (connect(&servers[0]).await, connect(&servers[1]).await);
    let (executed,): (String,) = ask(&mut source, "SELECT @@gtid_executed").await;
    assert_eq!(executed, "", "init statements without the binary log leave no GTID");

    run(&mut source, "CREATE SCHEMA app").await;
    run(&mut source, "CREATE TABLE app.t (id INT PRIMARY KEY)").await;
    let change = format!(
        "CHANGE REPLICATION SOURCE TO SOURCE_HOST='{}', SOURCE_PORT={}, SOURCE_USER='repl', \
         SOURCE_PASSWORD='s3cret', SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1, SOURCE_CONNECT_RETRY=1",
        servers[0].host(),
        servers[0].port()
    );
    run(&mut replica, &change).await;
    run(&mut replica, "START REPLICA").await;
    run(&mut source, "INSERT INTO app.t VALUES (1), (2), (3)").await;
    let (executed,): (String,) = ask(&mut source, "SELECT @@gtid_executed").await;
    let wait = format!("SELECT WAIT_FOR_EXECUTED_GTID_SET('{executed}', 15)");
    let (timed_out,): (i64,) = ask(&mut replica, &wait).await;
    assert_eq!(timed_out, 0, "the replica caught up; its log: {}", servers[1].error_log_tail(5));
    let (rows,): (i64,) = ask(&mut replica, "SELECT COUNT(*) FROM app.t").await;
    assert_eq!(rows, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_server_refuses_and_comes_back_with_its_data() {
    let mut server = MysqlServer::builder().start().unwrap();
    let mut connection = connect(&server).await;
    run(&mut connection, "CREATE SCHEMA app").await;
    run(&mut connection, "CREATE TABLE app.t (id INT PRIMARY KEY)").await;
    run(&mut connection, "INSERT INTO app.t VALUES (42)").await;
    let (uuid,): (String,) = ask(&mut connection, "SELECT @@server_uuid").await;
    let (pid, port) = (server.pid(), server.port());

    server.kill().unwrap();
    assert!(!server.is_running() && !runs(pid));
    let refused = given_up(LIMIT, Conn::new(options(server.host(), port))).await;
    let refused = refused.map(drop).unwrap_err().expect("a refusal comes at once").to_string();
    assert!(refused.contains("refused"), "{refused}");
    let ended = server.wait_ready(LIMIT).unwrap_err();
    assert!(matches!(ended, Error::Ended { .. }), "{ended}");

    for _ in 0..2 {
        // The first restart comes after a kill, the second one stops a running server in good order.
        server.restart().unwrap();
        let mut connection = connect(&server).await;
        let (found, same): (i64, String) = ask(&mut connection, "SELECT (SELECT id FROM app.t), @@server_uuid").await;
        assert_eq!((found, same.as_str(), server.port()), (42, uuid.as_str(), port));
    }
    assert_ne!(server.pid(), pid);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_server_does_not_answer_and_a_resumed_one_does() {
    let server = MysqlServer::builder().start().unwrap();
    let mut connection = connect(&server).await;
    server.pause().unwrap();
    let short = Duration::from_millis(300);
    let silence = given_up(short, connection.query_drop("SELECT 1")).await;
    assert!(matches!(silence, Err(None)), "an open connection hangs: {silence:?}");
    let silence = given_up(short, Conn::new(options(server.host(), server.port()))).await;
    assert!(matches!(silence, Err(None)), "a new one does, too: {:?}", silence.map(drop));
    let silent = server.wait_ready(short).unwrap_err();
    assert!(matches!(silent, Error::Silent { .. }) && server.is_running(), "{silent}");
    server.resume().unwrap();
    server.wait_ready(LIMIT).unwrap();
    let (one,): (i64,) = ask(&mut connect(&server).await, "SELECT 1").await;
    assert_eq!(one, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fenced_server_is_read_only_from_its_first_moment_and_after_every_start() {
    let mut server = MysqlServer::builder()
        .fenced()
        .init_statement("SET SESSION sql_log_bin=0")
        .init_statement("CREATE SCHEMA IF NOT EXISTS seen")
        .init_statement("CREATE TABLE IF NOT EXISTS seen.fence AS SELECT @@read_only ro, @@super_read_only sro")
        .start()
        .unwrap();
    for _ in 0..2 {
        let mut connection = connect(&server).await;
        let now: (i64, i64) = ask(&mut connection, "SELECT @@read_only, @@super_read_only").await;
        assert_eq!(now, (1, 1), "at the first login");
        let before: (i64, i64) = ask(&mut connection, "SELECT ro, sro FROM seen.fence").await;
        assert_eq!(before, (1, 1), "before the first login, as the init file saw it");
        let write = given_up(LIMIT, connection.query_drop("CREATE SCHEMA app")).await.unwrap_err();
        let write = write.expect("a refusal comes at once").to_string();
        assert!(write.contains("super-read-only"), "{write}");
        let (executed,): (String,) = ask(&mut connection, "SELECT @@gtid_executed").await;
        assert_eq!(executed, "");
        // What someone persisted must not open the next start.
        run(&mut connection, "SET PERSIST_ONLY read_only=OFF").await;
        run(&mut connection, "SET PERSIST_ONLY super_read_only=OFF").await;
        drop(connection);
        server.restart().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn other_loopback_addresses_admin_ports_and_arguments_work() {
    let address = Ipv4Addr::new(127, 0, 0, 7);
    let builder = MysqlServer::builder().bind_address(address).admin_port().server_id(77);
    let server = builder.args(["--max-connections=11", "--max-connections=12"]).start().unwrap();
    assert_eq!(server.host(), address);
    let admin = server.admin_port().expect("an admin port was asked for");
    assert_ne!(admin, server.port());
    let mut connection = within("the admin port", Conn::new(options(address, admin))).await;
    let found: (u32, i64, i64) = ask(&mut connection, "SELECT @@server_id, @@max_connections, @@admin_port").await;
    assert_eq!(found, (77, 12, i64::from(admin)));
    // The same port on another address belongs to nobody.
    assert!(TcpListener::bind((Ipv4Addr::LOCALHOST, server.port())).is_ok());
}

#[test]
fn a_port_in_use_is_told_with_the_way_out() {
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = taken.local_addr().unwrap().port();
    let error = MysqlServer::builder().name("late").port(port).start().unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "late: port {port} on 127.0.0.1 is in use by another program: give another port, or none to get a free one"
        )
    );
}

#[test]
fn a_server_that_cannot_start_tells_why() {
    let error = MysqlServer::builder().name("odd").arg("--no-such-option=1").start().unwrap_err();
    let text = error.to_string();
    let Error::Ended { log, .. } = error else { panic!("{text}") };
    assert!(std::fs::read_to_string(&log).unwrap().contains("no-such-option"), "the log is kept");
    std::fs::remove_dir_all(log.parent().unwrap()).unwrap();
    assert!(text.starts_with("odd: mysqld ended (exit status: ") && text.contains("no-such-option"), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
}

#[test]
fn the_clients_of_the_distribution_run() {
    let server = MysqlServer::builder().start().unwrap();
    let folder = Scratch::new("clients").unwrap();
    let log = folder.path().join("out");
    let at = [format!("--host={}", server.host()), format!("--port={}", server.port()), "--user=root".to_owned()];
    let check = |client: Client, arguments: &[&str], expect: &str| {
        let mut command = server.distribution().client(client).unwrap();
        command.args(&at).args(arguments);
        process::run(command, client.program(), &log, LIMIT).unwrap();
        let said = process::tail(&log, 200);
        assert!(said.contains(expect), "{client:?}: {said}");
    };
    check(Client::Mysql, &["--batch", "--execute=SELECT CONCAT('fo', 'und')"], "found");
    check(Client::Mysqldump, &["--no-data", "sys", "sys_config"], "CREATE TABLE `sys_config`");
    check(Client::Mysqlbinlog, &["--read-from-remote-server", "bin.000001"], "BINLOG");
}

/// What a copy of this program does instead of its test: starts servers, tells their numbers, and waits for its end.
fn hold_servers_when_a_copy() -> bool {
    let Some(report) = environment::variable(REPORT).map(PathBuf::from) else { return false };
    let count = environment::variable(COUNT).and_then(|count| count.to_str()?.parse().ok()).unwrap_or(1);
    let servers = start_many((0..count).map(|_| MysqlServer::builder())).unwrap();
    let pids: Vec<String> = servers.iter().map(|server| server.pid().to_string()).collect();
    // The file appears complete, or not at all.
    let unfinished = report.with_extension("unfinished");
    std::fs::write(&unfinished, pids.join(" ")).unwrap();
    std::fs::rename(&unfinished, report).unwrap();
    // Ends with the parent: its end of the pipe is closed then, whatever happens to it.
    let _ = std::io::stdin().read_line(&mut String::new());
    true
}

/// A copy of this program that holds servers in the place of one of its tests, its messages in a file.
struct Copy {
    child: Child,
    folder: Scratch,
}

impl Copy {
    fn start(test: &str, count: usize, variables: &[(&str, &Path)], folder: Scratch) -> Self {
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", test, "--nocapture", "--test-threads=1"]).envs(variables.iter().copied());
        command.env(COUNT, count.to_string()).env(REPORT, folder.path().join("report"));
        command.stdin(Stdio::piped()).stdout(log.try_clone().unwrap()).stderr(log);
        Self { child: command.spawn().unwrap(), folder }
    }

    /// The numbers of its servers, once they all answer.
    fn servers(&mut self) -> Vec<u32> {
        let report = self.folder.path().join("report");
        let told = wait::until(Duration::from_mins(2), || {
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none(), "the copy ended ({ended:?}): {}", self.log());
            std::fs::read_to_string(&report).ok()
        });
        let told = told.unwrap_or_else(|| panic!("no servers: {}", self.log()));
        told.split(' ').map(|pid| pid.parse().unwrap()).collect()
    }

    /// Tells it to end, and waits for that.
    fn finish(&mut self) -> ExitStatus {
        drop(self.child.stdin.take());
        let ended = wait::until(Duration::from_mins(1), || self.child.try_wait().unwrap());
        ended.unwrap_or_else(|| panic!("the copy does not end: {}", self.log()))
    }

    fn log(&self) -> String {
        process::tail(&self.folder.path().join("log"), 30)
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn servers_do_not_outlive_a_killed_test_process() {
    if hold_servers_when_a_copy() {
        return;
    }
    let test = "servers_do_not_outlive_a_killed_test_process";
    let mut copy = Copy::start(test, 2, &[], Scratch::new("killed").unwrap());
    let pids = copy.servers();
    assert_eq!(pids.len(), 2);
    assert!(pids.iter().all(|pid| runs(*pid)), "{pids:?}");
    let left = |prefix: String| {
        let names = cache::root().join("run").read_dir().unwrap().map(|found| found.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().starts_with(&prefix)).count()
    };
    let prefix = format!("{}-", copy.child.id());
    copy.child.kill().unwrap();
    copy.child.wait().unwrap();
    let gone = wait::until(Duration::from_secs(5), || (!pids.iter().any(|pid| runs(*pid))).then_some(()));
    assert!(gone.is_some(), "of {pids:?} some are left");
    assert_eq!(left(prefix.clone()), 2, "nobody could remove their folders");
    scratch::sweep(&cache::root());
    assert_eq!(left(prefix), 0, "the next run does");
}

/// A copy of the cache that shares its files: those that a test changes, it replaces.
fn linked_copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for found in from.read_dir().unwrap().map(Result::unwrap) {
        let (path, target) = (found.path(), to.join(found.file_name()));
        if found.file_type().unwrap().is_dir() {
            linked_copy(&path, &target);
        } else {
            std::fs::hard_link(&path, &target).unwrap();
        }
    }
}

#[test]
fn a_damaged_cache_entry_is_recognised_and_made_anew() {
    if hold_servers_when_a_copy() {
        return;
    }
    let distribution = Distribution::shared().unwrap();
    let template = mysql::provision_template(&distribution).unwrap();
    let folder = Scratch::new("torn").unwrap();
    let cache_copy = folder.path().join("c");
    for kind in mysql::KINDS.iter().map(Path::new).filter(|kind| cache::root().join(kind).is_dir()) {
        linked_copy(&cache::root().join(kind), &cache_copy.join(kind));
    }
    let tablespace = cache_copy.join(template.strip_prefix(cache::root()).unwrap()).join("mysql.ibd");
    std::fs::remove_file(&tablespace).unwrap();
    std::fs::write(&tablespace, b"cut short").unwrap();
    let key = tablespace.ancestors().nth(2).and_then(Path::file_name).unwrap().to_str().unwrap().to_owned();
    assert_eq!(Cache::at(&cache_copy).get(mysql::KINDS[1], &key), None);

    let variables = [(environment::CACHE_DIR, cache_copy.as_path())];
    let mut copy = Copy::start("a_damaged_cache_entry_is_recognised_and_made_anew", 1, &variables, folder);
    assert_eq!(copy.servers().len(), 1);
    assert!(copy.finish().success(), "{}", copy.log());
    let said = copy.log();
    assert!(said.contains("is damaged (data/mysql.ibd has changed size): making it anew"), "{said}");
    assert!(Cache::at(&cache_copy).get(mysql::KINDS[1], &key).is_some());
    assert!(template.join("mysql.ibd").metadata().unwrap().len() > 1 << 20, "the original is untouched");
}
