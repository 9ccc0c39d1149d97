//! New passwords for every account of a group that runs: the files of its Secrets change, and nothing else is done.
//!
//! A whole group of real servers under keepers, sidecars and an operator. Shown: logins with the new passwords on every site,
//! with the old ones on none; replication goes on, also over new connections; nobody is failed over; no acknowledged write is
//! lost; sidecars fence and open with the new account; no password is in any word that anybody said.

#![expect(clippy::unwrap_used, reason = "helpers of tests: what goes wrong ends the test, and says so")]

mod live_support;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use bloodraven_e2e::programs;
use bloodraven_testbed::scratch::Scratch;
use bloodraven_testbed::wait;
use live_support::Playground;
use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, OptsBuilder};
use serde_json::Value;
use tokio::runtime::Runtime;

/// Longer than anything here takes on a busy machine.
const LIMIT: Duration = Duration::from_mins(4);

const ROLES: [&str; 6] = ["operator", "replication", "app", "readonly", "monitor", "backup"];

const SITES: [&str; 3] = ["iad", "pdx", "fra"];

/// `Access denied`: the server compared the password.
const WRONG_PASSWORD: u16 = 1045;

/// A running group, as whoever may look at its folder sees it.
struct Stage {
    scratch: Scratch,
    runtime: Runtime,
}

impl Stage {
    fn dir(&self) -> PathBuf {
        self.scratch.path().join("group")
    }

    fn json(&self, file: &str) -> Value {
        serde_json::from_slice(&std::fs::read(self.dir().join(file)).unwrap_or_default()).unwrap_or_default()
    }

    fn secret(&self, role: &str, file: &str) -> String {
        let text = std::fs::read_to_string(self.dir().join("secrets").join(role).join(file)).unwrap();
        text.trim_end().to_owned()
    }

    /// As a kubelet does: the new file takes the place of the old one.
    fn replace(&self, role: &str, password: &str) {
        let folder = self.dir().join("secrets").join(role);
        std::fs::write(folder.join("password.new"), format!("{password}\n")).unwrap();
        std::fs::rename(folder.join("password.new"), folder.join("password")).unwrap();
    }

    fn passwords(&self) -> BTreeMap<&'static str, String> {
        ROLES.into_iter().map(|role| (role, self.secret(role, "password"))).collect()
    }

    fn mysql_of(&self, site: &str) -> String {
        let notice = self.json("playground.json");
        let found = notice["sites"].as_array().unwrap().iter().find(|entry| entry["name"] == site).cloned();
        found.unwrap()["mysql"].as_str().unwrap().to_owned()
    }

    fn primary(&self) -> String {
        self.json("group.json")["status"]["activeSite"].as_str().unwrap_or_default().to_owned()
    }

    fn open(&self, site: &str, role: &str, password: &str) -> Result<Conn, mysql_async::Error> {
        let address = self.mysql_of(site);
        let (host, port) = address.split_once(':').unwrap();
        let options = OptsBuilder::default()
            .ip_or_hostname(host)
            .tcp_port(port.parse().unwrap())
            .prefer_socket(false)
            .user(Some(self.secret(role, "username")))
            .pass(Some(password));
        let open = async { tokio::time::timeout(Duration::from_secs(10), Conn::new(options)).await };
        self.runtime.block_on(open).unwrap()
    }

    /// None: let in.
    fn refusal(&self, site: &str, role: &str, password: &str) -> Option<String> {
        match self.open(site, role, password) {
            Ok(_) => None,
            Err(mysql_async::Error::Server(error)) if error.code == WRONG_PASSWORD => Some("wrong password".to_owned()),
            Err(error) => Some(error.to_string()),
        }
    }

    /// Where these are not answered so.
    fn unlike(&self, passwords: &BTreeMap<&'static str, String>, expected: Option<&str>) -> Vec<String> {
        let all = SITES.iter().flat_map(|site| passwords.iter().map(move |(role, password)| (site, role, password)));
        let answers = all.map(|(site, role, password)| (site, role, self.refusal(site, role, password)));
        let unlike = answers.filter(|(_, _, answer)| answer.as_deref() != expected);
        unlike.map(|(site, role, answer)| format!("{role} at {site}: {answer:?}")).collect()
    }

    /// One more row; the primary has acknowledged so many by now.
    fn write(&self, conn: &mut Conn, acknowledged: &mut u64) {
        self.runtime.block_on(conn.query_drop("INSERT INTO kept.rows VALUES ()")).unwrap();
        *acknowledged += 1;
    }

    /// Waits until every site has that many rows.
    fn all_have(&self, app: &str, rows: u64) {
        for site in SITES {
            let has = wait::until(LIMIT, || {
                let mut conn = self.open(site, "app", app).ok()?;
                let count = "SELECT COUNT(*) FROM kept.rows";
                let found: Option<u64> = self.runtime.block_on(conn.query_first(count)).ok()?;
                (found == Some(rows)).then_some(())
            });
            assert!(has.is_some(), "{site} does not have {rows} rows");
        }
    }

    /// Everything that anybody has said so far, by file or address.
    fn words(&self) -> BTreeMap<String, String> {
        let mut words = BTreeMap::new();
        let group = self.dir();
        let files =
            [group.join("group.json"), self.scratch.path().join("told.txt"), self.scratch.path().join("said.jsonl")];
        for file in files.into_iter().chain(logs(&group)) {
            let text = String::from_utf8_lossy(&std::fs::read(&file).unwrap_or_default()).into_owned();
            words.insert(file.display().to_string(), text);
        }
        words.extend(processes(self.scratch.path()));
        let notice = self.json("playground.json");
        let sidecars = notice["sites"].as_array().unwrap().iter().map(|site| site["sidecarHttp"].clone());
        for address in sidecars.chain([notice["operator"]["http"].clone()]) {
            let address = address.as_str().unwrap().to_owned();
            for path in ["/status", "/metrics", "/health", "/healthz"] {
                words.insert(format!("{address}{path}"), get(&address, path));
            }
        }
        words
    }
}

/// What everyone can read of the processes that work below that folder: their words and their environment.
fn processes(folder: &Path) -> Vec<(String, String)> {
    let folder = folder.display().to_string();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let read = |file: &str| {
            let bytes = std::fs::read(entry.path().join(file)).unwrap_or_default();
            String::from_utf8_lossy(&bytes).replace('\0', " ")
        };
        let (words, environment) = (read("cmdline"), read("environ"));
        if words.contains(&folder) || environment.contains(&folder) {
            let place = entry.path().display().to_string();
            found.push((place.clone() + "/cmdline", words));
            found.push((place + "/environ", environment));
        }
    }
    found
}

/// Every log below; data folders and Secrets apart.
fn logs(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && !["data", "secrets"].iter().any(|name| path.ends_with(name)) {
            found.extend(logs(&path));
        } else if path.extension().is_some_and(|end| end == "log" || end == "jsonl") {
            found.push(path);
        }
    }
    found
}

fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: it\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    let _ = stream.take(4 << 20).read_to_string(&mut answer);
    answer
}

fn start() -> (Stage, Playground) {
    let scratch = Scratch::new("rotation").unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let stage = Stage { scratch, runtime };
    let words: Vec<OsString> = ["--sites", "iad,pdx,fra", "--no-load"].into_iter().map(OsString::from).collect();
    let mut playground = Playground::start(stage.scratch.path(), &stage.dir(), &words);
    let ready = wait::until(LIMIT, || {
        assert!(playground.status().is_none(), "{}", playground.told());
        let notice = stage.json("playground.json");
        (notice["state"] == "ready" && notice["activeSite"] != "").then_some(())
    });
    assert!(ready.is_some(), "not ready: {}", playground.told());
    (stage, playground)
}

/// New connections of the receivers, with what their channels log in with.
fn cut_receivers(stage: &Stage, operator: &str) {
    let primary = stage.primary();
    let mut conn = stage.open(&primary, "operator", operator).unwrap();
    let of_replication = stage.secret("replication", "username");
    let list = format!("SELECT id FROM performance_schema.processlist WHERE user = '{of_replication}'");
    let ids: Vec<u64> = stage.runtime.block_on(conn.query(list)).unwrap();
    assert_eq!(ids.len(), 2, "both follow");
    for id in ids {
        stage.runtime.block_on(conn.query_drop(format!("KILL {id}"))).unwrap();
    }
}

/// K-22: passwords of one Secret, with real servers.
#[test]
fn every_password_changes_while_the_group_runs() {
    let (stage, playground) = start();
    let (primary, before) = (stage.primary(), stage.passwords());
    let record = stage.json("group.json")["status"]["authority"].clone();
    let mut writer = stage.open(&primary, "app", &before["app"]).unwrap();
    let mut acknowledged = 0;
    for statement in ["CREATE DATABASE kept", "CREATE TABLE kept.rows (id INT AUTO_INCREMENT PRIMARY KEY)"] {
        stage.runtime.block_on(writer.query_drop(statement)).unwrap();
    }
    stage.write(&mut writer, &mut acknowledged);
    stage.all_have(&before["app"], acknowledged);

    for role in ROLES {
        stage.replace(role, &format!("Marked-{role}-'\\\"q7"));
    }
    let after = stage.passwords();
    let mut last = Vec::new();
    let changed = wait::until(LIMIT, || {
        stage.write(&mut writer, &mut acknowledged);
        last = [stage.unlike(&after, None), stage.unlike(&before, Some("wrong password"))].concat();
        last.is_empty().then_some(())
    });
    assert!(
        changed.is_some(),
        "playground {}: {last:?}\n{}\nsee {}",
        playground.pid(),
        playground.told(),
        stage.scratch.keep().display()
    );

    // A connection that was there before is not touched; new ones of the receivers are let in.
    stage.write(&mut writer, &mut acknowledged);
    cut_receivers(&stage, &after["operator"]);
    stage.write(&mut writer, &mut acknowledged);
    stage.all_have(&after["app"], acknowledged);
    assert_eq!(stage.primary(), primary, "nobody was failed over");
    let now = stage.json("group.json")["status"]["authority"].clone();
    assert_eq!((&now["tenure"], &now["instance"]), (&record["tenure"], &record["instance"]));

    // Sidecars fence and open with the new account.
    let to = SITES.into_iter().find(|site| *site != primary).unwrap();
    let promoted = Command::new(programs::bloodraven()).args(["local", "promote"]).arg(stage.dir()).arg(to).output();
    assert!(promoted.unwrap().status.success());
    let moved = wait::until(LIMIT, || {
        let status = stage.json("group.json")["status"].clone();
        (status["activeSite"] == to && status["authority"]["phase"] == "Stable").then_some(())
    });
    assert!(moved.is_some(), "{}", stage.json("group.json")["status"]);
    let mut writer = stage.open(to, "app", &after["app"]).unwrap();
    let written =
        wait::until(LIMIT, || stage.runtime.block_on(writer.query_drop("INSERT INTO kept.rows VALUES ()")).ok());
    assert!(written.is_some(), "{to} takes no write");
    stage.all_have(&after["app"], acknowledged + 1);

    let marks = before.values().chain(after.values()).map(String::as_str).chain(["Marked-"]);
    let words = stage.words();
    assert!(
        words.len() > 15 && words.values().any(|text| text.contains("has the new passwords of")),
        "{:?}",
        words.keys()
    );
    for mark in marks {
        let told = words.iter().find(|(_, text)| text.contains(mark)).map(|(place, _)| place);
        assert_eq!(told, None, "a password is told");
    }
}
