//! The keeper, live: real mysqld where MySQL's behaviour matters, a shell script in its place where only the keeper's
//! does ([`played`]).
//!
//! In: the keeper as it is in the sources, and the servers of the testbed. Out: proof that mysqld is closed at every
//! start, writable only under a permit, and never outlives its keeper. Must not: leave a process or a folder behind.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a helper of a test fails the test, as the test itself does"
)]

mod played;
mod support;

use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::time::Duration;

use bloodraven_keeper::protocol::{DEAD_MAN, Mysqld, Permit, Refusal, Reply, Request, Status, Unasked};
use bloodraven_testbed::mysql::MysqlServer;
use bloodraven_testbed::progress::say;
use bloodraven_testbed::wait::{self, Stopwatch};
use mysql_async::Conn;
use rustix::process::{Pid, Signal, kill_process};

use support::talk::Talk;
use support::{Bed, ROLES, ask, boot, password, rows, run, runs, variables};

/// Opens mysqld as the sidecar does: opener session, permit, statement. The deadline of the permit.
async fn open(bed: &Bed, talk: &mut Talk, status: Status, milliseconds: u64) -> u64 {
    let (start, secret) = talk.opener();
    assert_eq!(Some(start), status.start);
    let mut opener = bed.try_connect("bloodraven_opener", secret.reveal()).await.unwrap();
    let deadline = talk.permit(start, milliseconds);
    run(&mut opener, "SET GLOBAL read_only=OFF").await.unwrap();
    assert_eq!(variables(&mut opener).await, (0, 0));
    deadline
}

fn signal(pid: Option<u32>, signal: Signal) {
    let pid = i32::try_from(pid.unwrap()).ok().and_then(Pid::from_raw).unwrap();
    kill_process(pid, signal).unwrap();
}

async fn refused(conn: &mut Conn, statement: &str, why: &str) {
    let error = run(conn, statement).await.expect_err(statement);
    assert!(error.contains(why), "{statement}: {error}");
}

/// F-07 and F-20: a first boot that fails for want of room, that is killed in the middle, and that is finished in the
/// end; what comes out of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_first_boot_survives_failures_and_makes_exactly_the_accounts() {
    let mut bed = Bed::empty("first").arg("--partial-revokes=ON");
    // No file may grow beyond 2 MiB (dash and bash count differently): what a full disk does to mysqld.
    bed.through(&["sh", "-c", "ulimit -f 2048; exec \"$0\" \"$@\""]);
    bed.start();
    assert!(!bed.ended().success(), "{}", bed.log());
    assert!(
        bed.log().contains("InitialiseFailed") && bed.log().contains("the next start begins anew"),
        "{}",
        bed.log()
    );
    assert!(bed.at("data").read_dir().unwrap().next().is_some(), "it left something behind");

    bed.through(&[]);
    bed.start();
    let status = bed.until("the data folder fills", || {
        let filled = bed.at("data/ibdata1").exists();
        Talk::status(&bed.at("k")).filter(|status| filled && status.mysqld == Mysqld::Initialising)
    });
    bed.keeper().kill().unwrap();
    bed.until("the initialisation dies with its keeper", || (!runs(status.pid.unwrap())).then_some(()));
    std::fs::write(bed.at("data/half-made"), b"").unwrap();

    bed.start();
    let init_file = bed.at("run/init.sql");
    let mode = bed.until("the init file is there", || Some(init_file.metadata().ok()?.permissions().mode() & 0o777));
    assert_eq!(mode, 0o600);
    let status = bed.until_ready(None).await;
    assert!(bed.log().contains("FirstBootAgain") && !bed.at("data/half-made").exists(), "{}", bed.log());
    assert!(!init_file.exists(), "it is gone once it was read");
    let socket = bed.at("k").metadata().unwrap();
    assert!(socket.file_type().is_socket() && socket.permissions().mode() & 0o777 == 0o600);

    let mut operator = bed.connect("operator").await;
    assert_eq!(variables(&mut operator).await, (1, 1));
    assert_eq!(ask::<(String,)>(&mut operator, "SELECT @@global.gtid_executed").await.0, "");
    accounts_are_exact(&mut operator).await;
    no_secret_is_told(&bed, status);
    the_app_can_neither_write_nor_open(&bed, status).await;

    bed.keeper().terminate(support::LIMIT).unwrap();
    assert_eq!(bed.ended().code(), Some(0), "{}", bed.log());
}

async fn accounts_are_exact(operator: &mut Conn) {
    let names = rows(operator, "SELECT CONCAT(user, '@', host) FROM mysql.user ORDER BY 1").await;
    let server = ["mysql.infoschema@localhost", "mysql.session@localhost", "mysql.sys@localhost", "root@localhost"];
    let mut expect: Vec<String> = ROLES.iter().map(|role| format!("{role}@%")).collect();
    expect.extend(server.map(String::from));
    expect.push("bloodraven_opener@127.0.0.1".into());
    expect.sort();
    assert_eq!(names, expect);
    let open = "SELECT COUNT(*) FROM mysql.user WHERE authentication_string = '' AND account_locked = 'N'";
    assert_eq!(ask::<(i64,)>(operator, open).await.0, 0, "nobody has an empty password, not even root");
    let app = "SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, REFERENCES, INDEX, ALTER, CREATE TEMPORARY TABLES, \
               LOCK TABLES, EXECUTE, CREATE VIEW, SHOW VIEW, CREATE ROUTINE, ALTER ROUTINE, EVENT, TRIGGER";
    let check = async |operator: &mut Conn, account: &str, expect: &[&str]| {
        let found = rows(operator, &format!("SHOW GRANTS FOR {account}")).await;
        let spelled =
            |text: &&str| text.replace("TO", &format!("TO {account}")).replace("FROM", &format!("FROM {account}"));
        assert_eq!(
            found,
            expect.iter().map(spelled).map(|text| text.replace('\'', "`")).collect::<Vec<_>>(),
            "{account}"
        );
    };
    check(
        operator,
        "'bloodraven_opener'@'127.0.0.1'",
        &["GRANT USAGE ON *.* TO", "GRANT SERVICE_CONNECTION_ADMIN,SYSTEM_VARIABLES_ADMIN ON *.* TO"],
    )
    .await;
    check(operator, "'operator'@'%'", &[
        "GRANT SELECT, RELOAD, SHUTDOWN, PROCESS, SHOW DATABASES, REPLICATION SLAVE, REPLICATION CLIENT, CREATE USER, EVENT ON *.* TO",
        "GRANT BACKUP_ADMIN,CLONE_ADMIN,CONNECTION_ADMIN,REPLICATION_SLAVE_ADMIN,SERVICE_CONNECTION_ADMIN,SESSION_VARIABLES_ADMIN,SYSTEM_USER,SYSTEM_VARIABLES_ADMIN ON *.* TO",
        "GRANT ALL PRIVILEGES ON `bloodraven`.* TO",
    ]).await;
    let everywhere = format!("GRANT {app} ON *.* TO");
    let not_there = ["bloodraven", "mysql", "sys"].map(|schema| format!("REVOKE {app} ON `{schema}`.* FROM"));
    let [one, two, three] = &not_there;
    check(operator, "'app'@'%'", &[&everywhere, one, two, three]).await;
    check(
        operator,
        "'readonly'@'%'",
        &["GRANT SELECT, PROCESS, SHOW DATABASES, SHOW VIEW ON *.* TO", "REVOKE SELECT, SHOW VIEW ON `mysql`.* FROM"],
    )
    .await;
    check(
        operator,
        "'monitor'@'%'",
        &["GRANT PROCESS, REPLICATION CLIENT ON *.* TO", "GRANT SELECT ON `performance_schema`.* TO"],
    )
    .await;
    for account in ["'backup'@'%'", "'replication'@'%'"] {
        check(
            operator,
            account,
            &[
                "GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO",
                "GRANT BACKUP_ADMIN ON *.* TO",
                "GRANT SELECT ON `performance_schema`.* TO",
            ],
        )
        .await;
    }
}

/// Neither command lines nor environments nor the log hold a password.
fn no_secret_is_told(bed: &Bed, status: Status) {
    let (_, opener) = bed.hello().opener();
    let mut secrets: Vec<String> = ROLES.iter().map(|role| password(role)).collect();
    secrets.push(opener.reveal().to_owned());
    let mut told = bed.log();
    for pid in [bed.keeper().pid(), status.pid.unwrap()] {
        for name in ["cmdline", "environ"] {
            told.push_str(&String::from_utf8_lossy(&std::fs::read(format!("/proc/{pid}/{name}")).unwrap()));
        }
    }
    assert!(told.contains("--super-read-only=ON") && told.contains("MYSQLD_PARENT_PID="), "{told}");
    assert!(!secrets.iter().any(|secret| told.contains(secret)), "{told}");
}

async fn the_app_can_neither_write_nor_open(bed: &Bed, status: Status) {
    let mut app = bed.connect("app").await;
    refused(&mut app, "CREATE SCHEMA shop", "read-only").await;
    for statement in ["SET GLOBAL read_only=OFF", "SET GLOBAL super_read_only=OFF", "SET PERSIST read_only=OFF"] {
        refused(&mut app, statement, "Access denied").await;
    }
    let mut talk = bed.hello();
    open(bed, &mut talk, status, 60_000).await;
    run(&mut app, "CREATE SCHEMA shop").await.unwrap();
    let mut operator = bed.connect("operator").await;
    for statement in [
        "SET SESSION sql_log_bin = 0",
        "CREATE SCHEMA bloodraven",
        "CREATE TABLE bloodraven.heartbeat (id TINYINT UNSIGNED NOT NULL PRIMARY KEY, beats BIGINT UNSIGNED NOT NULL)",
        "INSERT INTO bloodraven.heartbeat VALUES (1, 0)",
        "UPDATE bloodraven.heartbeat SET beats = beats + 1 WHERE id = 1",
    ] {
        run(&mut operator, statement).await.unwrap();
    }
    refused(&mut operator, "CREATE TABLE shop.t (id INT)", "denied").await;
    for statement in ["UPDATE bloodraven.heartbeat SET beats = 7", "DELETE FROM mysql.user", "DROP SCHEMA sys"] {
        refused(&mut app, statement, "denied").await;
    }
    run(&mut operator, "SET GLOBAL read_only=ON, GLOBAL super_read_only=ON").await.unwrap();
    assert_eq!(talk.ask(Request::Fenced { start: status.start.unwrap() }), Reply::Noted);
    refused(&mut app, "CREATE SCHEMA market", "read-only").await;
}

/// F-07, F-26 and F-42: mysqld restarts itself between permit and opening, with an open fence persisted.
#[tokio::test(flavor = "multi_thread")]
async fn a_restart_in_place_is_a_new_start_and_boots_fenced_whatever_was_persisted() {
    let mut bed = Bed::filled("restart").arg("--partial-revokes=ON");
    // What the server was like before anybody could log in.
    bed.init_sql = Some(
        "CREATE SCHEMA IF NOT EXISTS seen;\n\
         CREATE TABLE IF NOT EXISTS seen.fence (ro INT, sro INT);\n\
         INSERT INTO seen.fence VALUES (@@global.read_only, @@global.super_read_only);\n",
    );
    let first = bed.ready().await;
    assert!(bed.at("data/ibdata1").exists() && !bed.at("state/init-started").exists(), "somebody's data are not ours");
    let mut talk = bed.hello();
    let (start, secret) = talk.opener();
    let mut opener = bed.try_connect("bloodraven_opener", secret.reveal()).await.unwrap();
    let mut root = bed.connect("root").await;
    for variable in ["read_only", "super_read_only"] {
        run(&mut root, &format!("SET PERSIST_ONLY {variable}=OFF")).await.unwrap();
    }
    talk.permit(start, 60_000);
    drop(run(&mut root, "RESTART").await);
    assert_eq!(talk.word(), Unasked::Exited { start, code: 16 });
    let Unasked::Started { start: next } = talk.word() else { panic!("{}", bed.log()) };
    assert!(next != start && Some(start) == first.start);

    let second = bed.until_ready(Some(first)).await;
    assert_eq!((second.start, second.permit, second.code), (Some(next), None, Some(16)));
    assert!(run(&mut opener, "SET GLOBAL read_only=OFF").await.is_err(), "the old session is dead");
    let late = bed.try_connect("bloodraven_opener", secret.reveal()).await.map(drop).unwrap_err();
    assert!(late.contains("denied"), "{late}");
    let deadline = boot() + 60_000;
    talk.refused(Request::Permit(Permit { start, epoch: 1, deadline }), Refusal::OtherStart);
    talk.refused(Request::Renew(Permit { start: next, epoch: 1, deadline }), Refusal::NoPermit);
    let mut root = bed.connect("root").await;
    assert_eq!(variables(&mut root).await, (1, 1));
    assert_eq!(rows(&mut root, "SELECT CONCAT(ro, sro) FROM seen.fence").await, ["11", "11"], "before the first login");

    // An older session cannot touch what a newer one has.
    let mut newer = bed.hello();
    assert_eq!(talk.word(), Unasked::Superseded);
    assert_eq!(talk.line(), None, "it is closed");
    newer.permit(next, 60_000);
    let mut reader = Talk::connect(&bed.at("k")).unwrap();
    reader.refused(Request::Fenced { start: next }, Refusal::NotTheSession);
    reader.refused(Request::Kill { start: next }, Refusal::NotTheSession);

    // A kill is answered when the process is gone, stopped or not.
    signal(second.pid, Signal::STOP);
    newer.refused(Request::Kill { start }, Refusal::OtherStart);
    assert_eq!(newer.ask(Request::Kill { start: next }), Reply::Killed { start: next });
    assert!(!std::fs::exists(format!("/proc/{}", second.pid.unwrap())).unwrap(), "reaped");
    assert_eq!(newer.word(), Unasked::Exited { start: next, code: 137 });
    assert_eq!(bed.ended().code(), Some(137), "{}", bed.log());
}

/// F-32: the session is gone for good; then one that stands still beside a server that does, too.
#[tokio::test(flavor = "multi_thread")]
async fn the_dead_man_kills_mysqld_whatever_became_of_the_sidecar() {
    let mut bed = Bed::filled("deadman").arg("--partial-revokes=ON");
    let status = bed.ready().await;
    let mut talk = bed.hello();
    let mut app = bed.connect("app").await;
    let deadline = open(&bed, &mut talk, status, 300).await;
    drop(talk);
    run(&mut app, "CREATE SCHEMA shop").await.unwrap();
    run(&mut app, "CREATE TABLE shop.t (id INT AUTO_INCREMENT PRIMARY KEY)").await.unwrap();
    let (watch, mut last) = (Stopwatch::start(), 0);
    while run(&mut app, "INSERT INTO shop.t VALUES ()").await.is_ok() {
        last = boot();
        assert!(watch.elapsed() < support::LIMIT, "the dead man never came");
    }
    assert_eq!(bed.ended().code(), Some(137));
    assert!(boot() >= deadline + DEAD_MAN, "not before his time");
    assert!(bed.log().contains("\"DeadMan\"") && !runs(status.pid.unwrap()), "{}", bed.log());
    say(&format!("the last write came {} ms after the deadline", last.saturating_sub(deadline)));

    let status = bed.ready().await;
    let mut silent = bed.hello();
    let deadline = open(&bed, &mut silent, status, 300).await;
    signal(status.pid, Signal::STOP);
    assert_eq!(bed.ended().code(), Some(137));
    let gone = boot();
    assert!(gone >= deadline + DEAD_MAN, "gone {gone}, deadline {deadline}");
    assert_eq!(silent.word(), Unasked::Exited { start: status.start.unwrap(), code: 137 });
    say(&format!("a stopped mysqld was gone {} ms after the deadline", gone - deadline));
}

/// F-07 and F-20: what a clone brings along opens nothing. Then the keeper is killed, and mysqld with it.
#[tokio::test(flavor = "multi_thread")]
async fn a_clone_restarts_in_place_fenced_and_mysqld_dies_with_its_keeper() {
    let donor = MysqlServer::builder()
        .name("donor")
        .arg("--plugin-load-add=mysql_clone.so")
        .init_statement("CREATE SCHEMA shop")
        .init_statement("CREATE USER 'bloodraven_opener'@'127.%' IDENTIFIED BY 'remembered'")
        .init_statement("GRANT SYSTEM_VARIABLES_ADMIN ON *.* TO 'bloodraven_opener'@'127.%'");
    let donor = std::thread::spawn(move || donor.start().unwrap());
    let mut bed = Bed::filled("clone").arg("--partial-revokes=ON");
    let first = bed.ready().await;
    let donor = donor.join().unwrap();
    let mut talk = bed.hello();
    let mut operator = bed.connect("operator").await;
    let list = format!("SET GLOBAL clone_valid_donor_list = '127.0.0.1:{}'", donor.port());
    run(&mut operator, &list).await.unwrap();
    let clone = format!("CLONE INSTANCE FROM 'root'@'127.0.0.1':{} IDENTIFIED BY ''", donor.port());
    drop(run(&mut operator, &clone).await);
    assert_eq!(talk.word(), Unasked::Exited { start: first.start.unwrap(), code: 16 });
    assert!(matches!(talk.word(), Unasked::Started { start } if Some(start) != first.start));

    let second = bed.until_ready(Some(first)).await;
    let mut operator = bed.connect("operator").await;
    assert_eq!(variables(&mut operator).await, (1, 1));
    assert_eq!(rows(&mut operator, "SELECT state FROM performance_schema.clone_status").await, ["Completed"]);
    assert!(rows(&mut operator, "SHOW SCHEMAS").await.contains(&"shop".to_owned()));
    let hosts = rows(&mut operator, "SELECT host FROM mysql.user WHERE user = 'bloodraven_opener'").await;
    assert_eq!(hosts, ["127.0.0.1"]);
    let late = bed.try_connect("bloodraven_opener", "remembered").await.map(drop).unwrap_err();
    assert!(late.contains("denied"), "{late}");

    bed.keeper().kill().unwrap();
    let gone = wait::until(Duration::from_secs(20), || (!runs(second.pid.unwrap())).then_some(()));
    assert!(gone.is_some(), "mysqld outlived its keeper");
}

/// A server without a permit is emptied where it is: a new server, closed, that has executed nothing.
#[tokio::test(flavor = "multi_thread")]
async fn an_emptied_server_is_a_new_one_and_a_writable_one_is_not_emptied() {
    let mut bed = Bed::filled("empty").arg("--partial-revokes=ON");
    let first = bed.ready().await;
    let (start, mut talk) = (first.start.unwrap(), bed.hello());
    open(&bed, &mut talk, first, 60_000).await;
    run(&mut bed.connect("app").await, "CREATE SCHEMA shop").await.unwrap();
    let mut operator = bed.connect("operator").await;
    let identity = rows(&mut operator, "SELECT @@server_uuid").await;
    talk.refused(Request::Empty { start }, Refusal::Permit);
    run(&mut operator, "SET GLOBAL read_only=ON, GLOBAL super_read_only=ON").await.unwrap();
    assert_eq!(talk.ask(Request::Fenced { start }), Reply::Noted);
    assert!(rows(&mut operator, "SHOW SCHEMAS").await.contains(&"shop".to_owned()), "nothing has gone yet");
    assert_eq!(talk.ask(Request::Empty { start }), Reply::Emptying { start });
    talk.refused(Request::Permit(Permit { start, epoch: 1, deadline: boot() + 60_000 }), Refusal::OtherStart);
    assert!(matches!(talk.word(), Unasked::Exited { start: ended, .. } if ended == start));

    let second = bed.until_ready(Some(first)).await;
    assert!(second.permit.is_none() && bed.at("state/init-done").exists());
    let mut operator = bed.connect("operator").await;
    assert_eq!(variables(&mut operator).await, (1, 1));
    assert_eq!(ask::<(String,)>(&mut operator, "SELECT @@global.gtid_executed").await.0, "");
    assert_ne!(rows(&mut operator, "SELECT @@server_uuid").await, identity);
    let schemas = rows(&mut operator, "SHOW SCHEMAS").await;
    assert_eq!(schemas, ["information_schema", "mysql", "performance_schema", "sys"]);
}

/// What was begun is finished: by a keeper that was killed before mysqld had even stopped, when it is back.
#[test]
fn an_emptying_that_is_cut_short_goes_on_at_the_next_start() {
    let script = "for a; do case $a in --initialize-insecure) : > DATA/fresh; exit 0;; esac; done; \
                  trap '' TERM; while :; do sleep 0.05; done";
    let bed = Bed::played("cut", "");
    let data = bed.at("data");
    let mut bed = bed.script(&script.replace("DATA", &data.display().to_string()));
    let mut left = Vec::new();
    for expected in ["ibdata1", "fresh"] {
        bed.start();
        let status = bed.until("mysqld runs", || Talk::status(&bed.at("k")).filter(|status| status.start.is_some()));
        left.push(data.join(expected).exists());
        let start = status.start.unwrap();
        assert_eq!(bed.hello().ask(Request::Empty { start }), Reply::Emptying { start });
        bed.keeper().kill().unwrap();
        bed.until("it dies with its keeper", || (!runs(status.pid.unwrap())).then_some(()));
    }
    assert_eq!(left, [true, true], "emptied only when it was asked for, and then made anew");
    assert!(!data.join("ibdata1").exists());
    std::fs::write(data.join("half-gone"), b"").unwrap();
    bed.start();
    bed.until("mysqld runs", || Talk::status(&bed.at("k")).filter(|status| status.start.is_some()));
    assert!(data.join("fresh").exists() && !data.join("half-gone").exists(), "{}", bed.log());
}

/// F-20: the opener comes from its own address only, and nothing is half made where accounts could do too much.
#[tokio::test(flavor = "multi_thread")]
async fn without_partial_revokes_nothing_is_made_and_the_opener_has_an_address() {
    let mut bed = Bed::filled("revokes");
    bed.opener_host = "127.0.0.7";
    bed.start();
    assert_eq!(bed.ended().code(), Some(1), "{}", bed.log());
    assert!(bed.log().contains("partial_revokes is OFF: set partial-revokes=ON"), "{}", bed.log());
    assert!(bed.log().contains("\"InitFileRefused\""), "{}", bed.log());
    assert!(!bed.at("run/init.sql").exists());

    let mut bed = bed.arg("--partial-revokes=ON");
    bed.ready().await;
    let (_, secret) = bed.hello().opener();
    let elsewhere = bed.try_connect("bloodraven_opener", secret.reveal()).await.map(drop).unwrap_err();
    // To who asks for an account that is not there from here, the server names any plugin.
    assert!(elsewhere.contains("denied") || elsewhere.contains("authentication plugin"), "{elsewhere}");
    let schemas = rows(&mut bed.connect("root").await, "SHOW SCHEMAS").await;
    assert_eq!(schemas, ["information_schema", "mysql", "performance_schema", "sys"]);
}
