//! The server program: whether it can be used, and what a site's server is configured with.
//!
//! In: the words that run a `mysqld`, a site's folders and addresses, the spec's own settings. Out: a command line and a
//! configuration file as in a pod, with local paths and a laptop's memory. Must not: let a setting of the spec's through
//! that the operator owns; admission has refused those.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use bloodraven_api::GoDuration;
use bloodraven_blueprint::objects::conf;
use snafu::{ResultExt as _, Snafu, ensure};
use tokio::time::timeout;

use crate::network::{ADMIN_PORT, MYSQL_PORT};

/// The oldest version that works: `major.minor`.
pub const OLDEST: (u16, u16) = (8, 4);

/// How long `mysqld --version` may take: 0.1 s, some seconds from a cold disk.
const VERSION_LIMIT: Duration = Duration::from_secs(30);

/// What is wrong with a server program.
#[derive(Debug, Snafu)]
pub enum Error {
    /// It cannot be run.
    #[snafu(display("cannot run {program}: {source}; name a mysqld of {}.{} or newer", OLDEST.0, OLDEST.1))]
    NoProgram {
        /// The words.
        program: String,
        /// What the system said.
        source: std::io::Error,
    },

    /// It does not say what it is.
    #[snafu(display("{program} is no MySQL server ({answer}); name a mysqld of {}.{} or newer", OLDEST.0, OLDEST.1))]
    NoServer {
        /// The words.
        program: String,
        /// What it said.
        answer: String,
    },

    /// It is too old.
    #[snafu(display("{program} is MySQL {version}, which is too old; name a mysqld of {}.{} or newer", OLDEST.0, OLDEST.1))]
    TooOld {
        /// The words.
        program: String,
        /// Its version.
        version: String,
    },
}

/// The words that run the server program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MysqlPrograms {
    /// The program, with a loader before it where it needs one: `[ld-linux, --library-path, ..., mysqld]`.
    pub command: Vec<OsString>,
    /// What it needs to find its own files (`--basedir=...`, `--plugin-dir=...`), and `--user=root` where root runs it.
    pub arguments: Vec<OsString>,
}

impl MysqlPrograms {
    /// The words of a command that runs a server. What begins with `--` after the server's own name is an argument;
    /// `--no-defaults` is left out, since a site's server has a file of its own.
    pub fn from_command(command: &Command) -> Self {
        let words: Vec<OsString> =
            std::iter::once(command.get_program()).chain(command.get_args()).map(ToOwned::to_owned).collect();
        let named =
            |word: &OsString| Path::new(word).file_name().is_some_and(|name| name.to_string_lossy().contains("mysqld"));
        let end = words.iter().position(named).map_or(1, |at| at + 1);
        let arguments = words.iter().skip(end).filter(|word| *word != "--no-defaults").cloned().collect();
        Self { command: words.into_iter().take(end).collect(), arguments }
    }

    /// That program, found by its path or on `PATH`.
    pub fn plain(mysqld: impl Into<PathBuf>) -> Self {
        let root = rustix::process::geteuid().is_root().then(|| "--user=root".into());
        Self { command: vec![mysqld.into().into_os_string()], arguments: root.into_iter().collect() }
    }

    /// The command line of a server with that configuration file.
    pub fn with_file(&self, file: &Path) -> Vec<OsString> {
        let mut defaults = OsString::from("--defaults-file=");
        defaults.push(file);
        self.command.iter().cloned().chain([defaults]).chain(self.arguments.iter().cloned()).collect()
    }

    /// Its version, which is new enough.
    pub async fn version(&self) -> Result<String, Error> {
        let program = || self.command.last().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
        let mut words = self.command.iter();
        let mut command = tokio::process::Command::new(words.next().cloned().unwrap_or_default());
        command.args(words).arg("--no-defaults").arg("--version").stdin(Stdio::null()).kill_on_drop(true);
        let silent = || NoServerSnafu { program: program(), answer: "no answer" }.build();
        let output = timeout(VERSION_LIMIT, command.output()).await.map_err(|_| silent())?;
        let output = output.context(NoProgramSnafu { program: program() })?;
        let answer = String::from_utf8_lossy(&output.stdout).into_owned();
        let first = answer.lines().next().unwrap_or("no answer").to_owned();
        let Some((version, numbers)) = parse(&answer) else {
            return NoServerSnafu { program: program(), answer: first }.fail();
        };
        ensure!(numbers >= OLDEST, TooOldSnafu { program: program(), version });
        Ok(version)
    }
}

/// The version in `mysqld  Ver 9.7.4-1 for Linux on x86_64 (...)`, and its first two numbers. A server that only shares
/// the name counts from other numbers.
fn parse(answer: &str) -> Option<(String, (u16, u16))> {
    if answer.contains("MariaDB") || !answer.contains("mysqld") {
        return None;
    }
    let word = answer.split_once("Ver ")?.1.split_whitespace().next()?;
    let digits = word.split(|c: char| !c.is_ascii_digit() && c != '.').next()?;
    let mut numbers = digits.split('.').map(|number| number.parse().ok());
    Some((digits.to_owned(), (numbers.next()??, numbers.next()??)))
}

/// Where a site's server keeps its files.
#[derive(Clone, Debug)]
pub(super) struct ServerFiles {
    pub(super) data: PathBuf,
    pub(super) run: PathBuf,
}

/// The configuration of a site's server.
pub(super) fn configuration(
    files: &ServerFiles,
    ip: Ipv4Addr,
    server_id: u32,
    semi_sync: Option<GoDuration>,
    own: &BTreeMap<String, String>,
) -> String {
    let below = |folder: &Path, name: &str| folder.join(name).display().to_string();
    let mut all: BTreeMap<String, String> =
        [conf::DURABLE, conf::DEFAULTS, &LAPTOP].into_iter().flatten().map(|option| owned_text(*option)).collect();
    all.extend(own.iter().map(|(key, value)| (key_of(key), value.clone())));
    // What is owned comes last, so that nothing else can be in its place.
    all.extend(conf::OWNED.iter().map(|option| owned_text(*option)));
    all.extend(
        [
            ("datadir", files.data.display().to_string()),
            ("log-bin", below(&files.data, "mysql-bin")),
            ("relay-log", below(&files.data, "mysql-relay-bin")),
            ("socket", below(&files.run, "mysqld.sock")),
            ("pid-file", below(&files.run, "mysqld.pid")),
            ("tmpdir", files.run.display().to_string()),
            ("server-id", server_id.to_string()),
            ("bind-address", ip.to_string()),
            ("port", MYSQL_PORT.to_string()),
            ("admin-address", ip.to_string()),
            ("admin-port", ADMIN_PORT.to_string()),
        ]
        .map(|(key, value)| (key.to_owned(), value)),
    );
    let semi_sync = semi_sync.map(conf::semi_sync);
    all.extend(semi_sync.iter().flatten().map(|(key, value)| ((*key).to_owned(), value.clone())));
    let mut text = String::from("# Made at each start of a pod; changes belong into spec.mysqlConf.\n[mysqld]\n");
    let plugins = conf::SEMI_SYNC_PLUGINS.iter().filter(|_| semi_sync.is_some());
    for plugin in ["mysql_clone.so"].iter().chain(plugins) {
        let _ = writeln!(text, "plugin-load-add={plugin}");
    }
    for (key, value) in all {
        let _ = if value.is_empty() { writeln!(text, "{key}") } else { writeln!(text, "{key}={value}") };
    }
    text
}

fn owned_text((key, value): (&str, &str)) -> (String, String) {
    (key.to_owned(), value.to_owned())
}

/// The server's own spelling of a key.
fn key_of(key: &str) -> String {
    key.replace('_', "-")
}

/// What is other here than in a cluster: three servers share a laptop's memory.
const LAPTOP: [(&str, &str); 6] = [
    ("innodb-buffer-pool-size", "64M"),
    ("innodb-redo-log-capacity", "32M"),
    ("max-connections", "150"),
    ("mysqlx", "OFF"),
    ("performance-schema", "ON"),
    ("skip-name-resolve", ""),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_loader_are_kept_and_the_file_comes_first_of_the_arguments() {
        let mut command = Command::new("/c/ld-linux-x86-64.so.2");
        command.args(["--library-path", "/c/lib", "/c/usr/sbin/mysqld", "--no-defaults", "--basedir=/c/usr"]);
        let programs = MysqlPrograms::from_command(&command);
        let line = programs.with_file(Path::new("/d/my.cnf"));
        let expect = ["/c/ld-linux-x86-64.so.2", "--library-path", "/c/lib", "/c/usr/sbin/mysqld"];
        let expect: Vec<&str> = expect.into_iter().chain(["--defaults-file=/d/my.cnf", "--basedir=/c/usr"]).collect();
        assert_eq!(line, expect);
    }

    #[test]
    fn versions_are_read_as_the_server_prints_them() {
        let check = |answer: &str, expect: Option<(&str, (u16, u16))>| {
            assert_eq!(parse(answer), expect.map(|(text, numbers)| (text.to_owned(), numbers)), "{answer}");
        };
        check("/usr/sbin/mysqld  Ver 9.7.4-1 for debian-linux-gnu on x86_64 ((Debian))", Some(("9.7.4", (9, 7))));
        check("mysqld  Ver 8.0.36 for Linux on x86_64", Some(("8.0.36", (8, 0))));
        check("mysqld  Ver 10.11.6-MariaDB for Linux", None);
        check("hello", None);
        check("", None);
    }

    #[test]
    fn the_spec_cannot_take_what_is_owned_and_can_change_the_rest() {
        let files = ServerFiles { data: "/s/data".into(), run: "/s/run".into() };
        let own = [("gtid_mode", "OFF"), ("max_connections", "20"), ("read_buffer_size", "1M")];
        let own = own.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        let text = configuration(&files, Ipv4Addr::new(127, 1, 2, 11), 7, Some(GoDuration::from_secs(5)), &own);
        let lines: Vec<&str> = text.lines().collect();
        for line in [
            "gtid-mode=ON",
            "max-connections=20",
            "read-buffer-size=1M",
            "server-id=7",
            "admin-address=127.1.2.11",
            "log-bin=/s/data/mysql-bin",
            "skip-name-resolve",
            "plugin-load-add=semisync_source.so",
            "loose-rpl-semi-sync-source-enabled=ON",
            "loose-rpl-semi-sync-source-timeout=5000",
        ] {
            assert_eq!(lines.iter().filter(|it| **it == line).count(), 1, "{line}\n{text}");
        }
        assert!(!text.contains("gtid-mode=OFF") && !text.contains("read-only"), "{text}");
    }

    #[tokio::test]
    async fn what_cannot_be_used_is_refused_with_the_way_out() {
        let check = |script: &'static str| async move {
            let words = ["/bin/sh", "-c", script].map(OsString::from);
            MysqlPrograms { command: words.into(), arguments: Vec::new() }.version().await
        };
        assert_eq!(check("echo 'mysqld  Ver 9.7.4 for Linux'").await.unwrap(), "9.7.4");
        let old = check("echo 'mysqld  Ver 8.0.36 for Linux'").await.unwrap_err().to_string();
        assert!(old.contains("MySQL 8.0.36, which is too old") && old.contains("8.4 or newer"), "{old}");
        assert!(matches!(check("true").await, Err(Error::NoServer { .. })));
        let absent = MysqlPrograms::plain("/absent/mysqld").version().await.unwrap_err().to_string();
        assert!(absent.contains("/absent/mysqld"), "{absent}");
    }
}
