//! What the keeper's tests share: a keeper with a real or a played mysqld, and a client of its socket.
//!
//! In: a name and what the keeper shall be given. Out: a running keeper in a folder of its own. Must not: leave a process
//! behind.

pub(crate) mod talk;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use bloodraven_e2e::programs;
use bloodraven_keeper::protocol::{Mysqld, Status};
use bloodraven_testbed::mysql::{Distribution, provision_template};
use bloodraven_testbed::process::{self, Process};
use bloodraven_testbed::scratch::Scratch;
use bloodraven_testbed::{ports, wait};
use mysql_async::prelude::{FromRow, Queryable as _};
use mysql_async::{Conn, OptsBuilder};

use self::talk::Talk;

/// How long anything may take: many times what it does take, for busy machines.
pub(crate) const LIMIT: Duration = Duration::from_secs(90);

/// The accounts of the contract.
pub(crate) const ROLES: [&str; 6] = ["operator", "app", "readonly", "monitor", "backup", "replication"];

/// A server that is small and like a site's.
const SMALL: [&str; 14] = [
    "--mysqlx=OFF",
    "--secure-file-priv=NULL",
    "--skip-name-resolve",
    "--innodb-buffer-pool-size=64M",
    "--innodb-redo-log-capacity=32M",
    "--innodb-log-buffer-size=1M",
    "--max-connections=60",
    "--table-open-cache=200",
    "--table-definition-cache=400",
    "--gtid-mode=ON",
    "--enforce-gtid-consistency=ON",
    "--log-bin=bin",
    "--server-id=1",
    "--plugin-load-add=mysql_clone.so",
];

/// The folder of one keeper, and the keeper while it runs.
pub(crate) struct Bed {
    pub(crate) port: u16,
    pub(crate) opener_host: &'static str,
    pub(crate) init_sql: Option<&'static str>,
    mysqld: Vec<OsString>,
    /// What the keeper itself is started by.
    wrapper: Vec<OsString>,
    keeper: Option<Process>,
    scratch: Scratch,
}

impl Bed {
    /// A folder without data; mysqld is the real one.
    pub(crate) fn empty(name: &str) -> Self {
        let scratch = Scratch::new(name).unwrap();
        let port = ports::free(1).unwrap()[0];
        let folder = scratch.path();
        let program = Distribution::shared().unwrap().mysqld();
        let mut mysqld = vec![program.get_program().to_owned()];
        mysqld.extend(program.get_args().map(ToOwned::to_owned));
        mysqld.extend(SMALL.map(OsString::from));
        let own = |option: &str, name: &str| OsString::from(format!("--{option}={}", folder.join(name).display()));
        mysqld.extend([own("datadir", "data"), own("socket", "s"), own("pid-file", "pid"), own("tmpdir", "tmp")]);
        mysqld.extend(["--bind-address=127.0.0.1".into(), format!("--port={port}").into()]);
        Self::with(scratch, port, mysqld)
    }

    /// The same on a copy of the testbed's data, which has an account `root` for everyone on this machine.
    pub(crate) fn filled(name: &str) -> Self {
        let bed = Self::empty(name);
        let template = provision_template(&Distribution::shared().unwrap()).unwrap();
        copy(&template, &bed.at("data"));
        bed
    }

    /// A folder with some data whose mysqld is played by a shell script.
    pub(crate) fn played(name: &str, script: &str) -> Self {
        let bed = Self::with(Scratch::new(name).unwrap(), 0, ["sh", "-c", script, "mysqld"].map(OsString::from).into());
        std::fs::create_dir_all(bed.at("data")).unwrap();
        std::fs::write(bed.at("data/ibdata1"), b"somebody's").unwrap();
        bed
    }

    fn with(scratch: Scratch, port: u16, mysqld: Vec<OsString>) -> Self {
        for name in ["run", "tmp"] {
            std::fs::create_dir_all(scratch.path().join(name)).unwrap();
        }
        for role in ROLES {
            let folder = scratch.path().join("secrets").join(role);
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("username"), role).unwrap();
            std::fs::write(folder.join("password"), password(role)).unwrap();
        }
        let (keeper, wrapper) = (None, Vec::new());
        Self { port, opener_host: "127.0.0.1", init_sql: None, mysqld, wrapper, keeper, scratch }
    }

    /// Another script in mysqld's place.
    pub(crate) fn script(mut self, script: &str) -> Self {
        self.mysqld = ["sh", "-c", script, "mysqld"].map(OsString::from).into();
        self
    }

    /// A further argument of mysqld's.
    pub(crate) fn arg(mut self, argument: &str) -> Self {
        self.mysqld.push(argument.into());
        self
    }

    /// A program that starts the keeper.
    pub(crate) fn through(&mut self, wrapper: &[&str]) {
        self.wrapper = wrapper.iter().map(OsString::from).collect();
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// The command that runs the keeper.
    pub(crate) fn command(&self) -> Command {
        let mut words = self.wrapper.clone();
        words.push(programs::keeper().into());
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        for (option, name) in [("socket", "k"), ("state-dir", "state"), ("run-dir", "run"), ("datadir", "data")] {
            command.arg(format!("--{option}")).arg(self.at(name));
        }
        command.arg("--credentials-dir").arg(self.at("secrets")).args(["--opener-host", self.opener_host]);
        if let Some(sql) = self.init_sql {
            std::fs::write(self.at("more.sql"), sql).unwrap();
            command.arg("--init-sql").arg(self.at("more.sql"));
        }
        command.arg("--").args(&self.mysqld);
        command
    }

    /// Starts the keeper.
    pub(crate) fn start(&mut self) {
        let _ = std::fs::remove_file(self.at("log"));
        self.keeper = Some(Process::spawn(self.command(), "keeper", self.at("log")).unwrap());
    }

    /// Starts it and waits until mysqld has its accounts and answers.
    pub(crate) async fn ready(&mut self) -> Status {
        self.start();
        self.until_ready(None).await
    }

    /// Waits until a start other than `before` has its accounts and answers.
    pub(crate) async fn until_ready(&self, before: Option<Status>) -> Status {
        let status = self.until("mysqld has its accounts", || {
            assert!(self.keeper().is_running(), "the keeper ended: {}", self.log());
            let status = Talk::status(&self.at("k"))?;
            let other = before.is_none_or(|before| status.start != before.start);
            (other && status.mysqld == Mysqld::Running).then_some(status)
        });
        // It listens already; the first connection is let in a moment after the accounts were made.
        drop(self.connect("operator").await);
        status
    }

    pub(crate) fn keeper(&self) -> &Process {
        self.keeper.as_ref().unwrap()
    }

    /// The session.
    pub(crate) fn hello(&self) -> Talk {
        Talk::hello(&self.at("k"))
    }

    pub(crate) fn log(&self) -> String {
        process::tail(&self.at("log"), 60)
    }

    /// Waits for a condition.
    pub(crate) fn until<T>(&self, what: &str, condition: impl FnMut() -> Option<T>) -> T {
        wait::until(LIMIT, condition).unwrap_or_else(|| panic!("never: {what}: {}", self.log()))
    }

    /// Waits for the end of the keeper.
    pub(crate) fn ended(&self) -> ExitStatus {
        self.keeper().wait(LIMIT).unwrap().unwrap_or_else(|| panic!("the keeper does not end: {}", self.log()))
    }

    pub(crate) async fn try_connect(&self, user: &str, password: &str) -> Result<Conn, String> {
        let options = OptsBuilder::default()
            .ip_or_hostname("127.0.0.1")
            .tcp_port(self.port)
            .user(Some(user))
            .pass(Some(password).filter(|password| !password.is_empty()))
            .prefer_socket(false);
        let login = tokio::time::timeout(LIMIT, Conn::new(options)).await;
        let login = login.unwrap_or_else(|_| panic!("no answer to a login of {user}: {}", self.log()));
        login.map_err(|error| error.to_string())
    }

    /// A connection of one of the roles, or of the template's root.
    pub(crate) async fn connect(&self, user: &str) -> Conn {
        let password = if user == "root" { String::new() } else { password(user) };
        self.try_connect(user, &password).await.unwrap_or_else(|error| panic!("{user}: {error}: {}", self.log()))
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the keeper's log:\n{}", self.log());
        }
    }
}

/// The password of a role; its signs would end a careless quote.
pub(crate) fn password(role: &str) -> String {
    format!("pw'\\\"; of {role} é")
}

pub(crate) async fn ask<T: FromRow + Send + 'static>(conn: &mut Conn, question: &str) -> T {
    let answer = tokio::time::timeout(LIMIT, conn.query_first(question)).await;
    let answer = answer.unwrap_or_else(|_| panic!("{question}: no answer"));
    answer.unwrap_or_else(|error| panic!("{question}: {error}")).unwrap_or_else(|| panic!("{question}: no row"))
}

pub(crate) async fn rows(conn: &mut Conn, question: &str) -> Vec<String> {
    let answer = tokio::time::timeout(LIMIT, conn.query(question)).await;
    answer.unwrap_or_else(|_| panic!("{question}: no answer")).unwrap_or_else(|error| panic!("{question}: {error}"))
}

/// Runs a statement; the error's text when it is refused.
pub(crate) async fn run(conn: &mut Conn, statement: &str) -> Result<(), String> {
    let outcome = tokio::time::timeout(LIMIT, conn.query_drop(statement)).await;
    outcome.unwrap_or_else(|_| panic!("{statement}: no answer")).map_err(|error| error.to_string())
}

pub(crate) async fn variables(conn: &mut Conn) -> (i64, i64) {
    ask(conn, "SELECT @@global.read_only, @@global.super_read_only").await
}

/// Whether a process runs. One that ended and whose parent never asked (a zombie) does not.
pub(crate) fn runs(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// Milliseconds of `CLOCK_BOOTTIME`, to a hundredth of a second.
pub(crate) fn boot() -> u64 {
    let text = std::fs::read_to_string("/proc/uptime").unwrap();
    let (seconds, hundredths) = text.split(' ').next().unwrap().split_once('.').unwrap();
    seconds.parse::<u64>().unwrap() * 1000 + hundredths.parse::<u64>().unwrap() * 10
}

pub(crate) fn copy(from: &Path, to: &Path) {
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
