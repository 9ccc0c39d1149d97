//! What the tests share: sites with their accounts, and clients that misbehave on purpose.
//!
//! In: names. Out: running servers, logins, raw connections. Must not: use the verbs that are tested.

use bloodraven_gtid::{GtidSet, Uuid};
use bloodraven_mysql::{Account, Deadline, Server, Source, SourceTls, Spared, Wanted};
use bloodraven_testbed::mysql::{Builder, MysqlServer};
use bloodraven_testbed::wait::{self, Stopwatch};
use mysql_async::prelude::{FromRow, Queryable as _};
use mysql_async::{Conn, OptsBuilder};
use std::time::Duration;

/// How long any one call may take that is not about time: a thousand times what it does take.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);

pub(crate) const OPERATOR: &str = "operator";
pub(crate) const PASSWORD: &str = "op-s3cret'\\\"";
pub(crate) const REPLICATION: &str = "repl";
pub(crate) const OPENER: &str = "bloodraven_opener";

/// The rights of a site's accounts, as every start of a site sets them.
const ACCOUNTS: &[&str] = &[
    "SET SESSION sql_log_bin = 0",
    r#"CREATE USER IF NOT EXISTS 'operator'@'%' IDENTIFIED BY 'op-s3cret\'\\"'"#,
    "GRANT SELECT, EVENT, CREATE USER, RELOAD, PROCESS, SHUTDOWN, SHOW DATABASES, REPLICATION CLIENT, REPLICATION SLAVE, \
     CONNECTION_ADMIN, SYSTEM_USER, SYSTEM_VARIABLES_ADMIN, SESSION_VARIABLES_ADMIN, REPLICATION_SLAVE_ADMIN, \
     CLONE_ADMIN, BACKUP_ADMIN, SERVICE_CONNECTION_ADMIN ON *.* TO 'operator'@'%'",
    "CREATE USER IF NOT EXISTS 'repl'@'%' IDENTIFIED BY 'repl-s3cret'",
    "GRANT REPLICATION SLAVE, REPLICATION CLIENT, BACKUP_ADMIN ON *.* TO 'repl'@'%'",
    "GRANT SELECT ON performance_schema.* TO 'repl'@'%'",
    "CREATE USER IF NOT EXISTS 'app'@'%' IDENTIFIED BY 'app'",
    "GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, LOCK TABLES, EVENT ON *.* TO 'app'@'%'",
    "CREATE USER IF NOT EXISTS 'monitor'@'%' IDENTIFIED BY 'app'",
    "GRANT SELECT, INSERT, UPDATE, LOCK TABLES ON *.* TO 'monitor'@'%'",
    "CREATE USER IF NOT EXISTS 'bloodraven_opener'@'127.0.0.1' IDENTIFIED BY 'opener'",
    "GRANT SYSTEM_VARIABLES_ADMIN, SERVICE_CONNECTION_ADMIN ON *.* TO 'bloodraven_opener'@'127.0.0.1'",
    // The schema itself is made when it is first needed.
    "GRANT ALL ON bloodraven.* TO 'operator'@'%'",
];

/// A site's server: fenced from its first moment, with an administrators' port and every plugin.
pub(crate) fn site(name: &str) -> Builder {
    let builder = MysqlServer::builder().name(name).fenced().admin_port().args([
        "--skip-replica-start=ON",
        "--replica-net-timeout=10",
        "--plugin-load-add=mysql_clone.so",
        "--plugin-load-add=semisync_source.so",
        "--plugin-load-add=semisync_replica.so",
    ]);
    ACCOUNTS.iter().fold(builder, |builder, statement| builder.init_statement(*statement))
}

pub(crate) fn soon() -> Deadline {
    Deadline::within(LIMIT)
}

pub(crate) fn within_ms(ms: u64) -> Deadline {
    Deadline::within(Duration::from_millis(ms))
}

/// How the operator logs in: by the administrators' port.
pub(crate) fn login(server: &MysqlServer) -> Server {
    let port = server.admin_port().unwrap();
    Server::new(server.host().to_string(), port, Account::new(OPERATOR, PASSWORD))
}

/// Root is the test itself.
pub(crate) fn spared() -> Spared {
    Spared::accounts([OPERATOR, REPLICATION, "monitor", "backup", "root"])
}

pub(crate) fn source(server: &MysqlServer) -> Source {
    Source {
        host: server.host().to_string(),
        port: server.port(),
        account: Account::new(REPLICATION, "repl-s3cret"),
        tls: SourceTls::Off,
    }
}

pub(crate) fn set(text: &str) -> GtidSet {
    text.parse().unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

/// A call that has to end within the limit.
pub(crate) async fn within<T, E: std::fmt::Debug>(what: &str, call: impl Future<Output = Result<T, E>>) -> T {
    let outcome = tokio::time::timeout(LIMIT, call).await;
    outcome
        .unwrap_or_else(|_| panic!("{what}: no end within {LIMIT:?}"))
        .unwrap_or_else(|error| panic!("{what}: {error:?}"))
}

/// A raw connection to the port for clients.
pub(crate) async fn raw(server: &MysqlServer, user: &str, password: &str) -> Conn {
    within(&format!("{user} at {}", server.name()), Conn::new(raw_options(server, user, password))).await
}

pub(crate) fn raw_options(server: &MysqlServer, user: &str, password: &str) -> OptsBuilder {
    OptsBuilder::default()
        .ip_or_hostname(server.host().to_string())
        .tcp_port(server.port())
        .user(Some(user))
        .pass(Some(password))
        .prefer_socket(false)
}

pub(crate) async fn root(server: &MysqlServer) -> Conn {
    raw(server, "root", "").await
}

pub(crate) async fn run(connection: &mut Conn, statement: &str) {
    within(statement, connection.query_drop(statement)).await;
}

pub(crate) async fn ask<T: FromRow + Send + 'static>(connection: &mut Conn, question: &str) -> T {
    within(question, connection.query_first(question)).await.unwrap_or_else(|| panic!("{question}: no row"))
}

/// Opens a server as its sidecar would, and makes a table.
pub(crate) async fn opened(server: &MysqlServer) -> Conn {
    let mut connection = root(server).await;
    run(&mut connection, "SET GLOBAL read_only = OFF").await;
    run(&mut connection, "CREATE SCHEMA IF NOT EXISTS app").await;
    run(&mut connection, "CREATE TABLE IF NOT EXISTS app.t (id INT PRIMARY KEY AUTO_INCREMENT, v INT)").await;
    connection
}

pub(crate) async fn pair(connection: &mut Conn) -> (u8, u8) {
    ask(connection, "SELECT @@global.read_only, @@global.super_read_only").await
}

pub(crate) async fn executed(connection: &mut Conn) -> GtidSet {
    let (text,): (String,) = ask(connection, "SELECT @@global.gtid_executed").await;
    set(&text)
}

pub(crate) async fn uuid(connection: &mut Conn) -> Uuid {
    let (text,): (String,) = ask(connection, "SELECT @@server_uuid").await;
    text.parse().unwrap()
}

/// A statement in a task of its own; how it ends does not matter.
pub(crate) fn in_background(mut connection: Conn, statement: &str) -> tokio::task::JoinHandle<bool> {
    let statement = statement.to_owned();
    tokio::spawn(async move { connection.query_drop(statement).await.is_ok() })
}

/// Waits until a query gives that number.
pub(crate) async fn until_number(connection: &mut Conn, question: &str, expect: i64) {
    let watch = Stopwatch::start();
    loop {
        let (found,): (i64,) = ask(connection, question).await;
        if found == expect {
            return;
        }
        assert!(watch.elapsed() < LIMIT, "{question}: {found}, not {expect}");
        tokio::task::yield_now().await;
    }
}

/// Waits for something about a process.
pub(crate) fn until(what: &str, condition: impl Fn() -> bool) {
    assert!(wait::until(LIMIT, || condition().then_some(())).is_some(), "{what}");
}

/// A call with the time it took.
pub(crate) async fn timed<T>(call: impl Future<Output = T>) -> (T, Duration) {
    let watch = Stopwatch::start();
    let outcome = call.await;
    (outcome, watch.elapsed())
}

/// Another server than any of ours.
pub(crate) fn stranger() -> Wanted {
    Wanted::Only(Uuid::from_bytes([0xee; 16]))
}
