//! A playground as people handle it: ended, killed, started again, asked nonsense, spoken to in garbage.
//!
//! One group lives through all of it, so that each step finds what the one before has left.

#![expect(clippy::unwrap_used, reason = "helpers of tests: what goes wrong ends the test, and says so")]

mod live_support;

use std::ffi::OsString;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use bloodraven_e2e::programs;
use bloodraven_testbed::scratch::Scratch;
use bloodraven_testbed::wait;
use live_support::Playground;
use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, OptsBuilder};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Longer than anything here takes on a busy machine.
const LIMIT: Duration = Duration::from_mins(3);

/// A folder, and the playgrounds that are started in it.
struct Bench {
    scratch: Scratch,
}

impl Bench {
    fn new(name: &str) -> Self {
        Self { scratch: Scratch::new(name).unwrap() }
    }

    fn dir(&self) -> PathBuf {
        self.scratch.path().join("group")
    }

    fn start(&self) -> Playground {
        let words: Vec<OsString> =
            ["--sites", "iad,pdx", "--profile", "fast", "--no-load"].into_iter().map(OsString::from).collect();
        Playground::start(self.scratch.path(), &self.dir(), &words)
    }

    /// One that is up and has a primary.
    fn ready(&self) -> Playground {
        let mut playground = self.start();
        let ready = wait::until(LIMIT, || {
            let ended = playground.status();
            assert!(ended.is_none(), "{ended:?}: {}", playground.told());
            // One that was killed could not take its word back: whom it names has to be alive.
            let notice = self.notice();
            let said = notice["state"] == "ready" && notice["activeSite"] != "";
            (said && pids(&notice).iter().all(|pid| lives(*pid))).then_some(())
        });
        assert!(ready.is_some(), "not ready: {} {}", self.notice(), playground.told());
        playground
    }

    /// One that must not come up: how it ended, and what it said.
    fn refused(&self) -> (ExitStatus, String) {
        let mut playground = self.start();
        let status = wait::until(LIMIT, || playground.status()).unwrap();
        (status, playground.told())
    }

    fn notice(&self) -> Value {
        let text = std::fs::read(self.dir().join("playground.json")).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    /// What people can change in the group.
    fn wishes(&self) -> (Value, Value) {
        let group: Value = serde_json::from_slice(&std::fs::read(self.dir().join("group.json")).unwrap()).unwrap();
        let annotations = group["metadata"]["annotations"].as_object().cloned().unwrap_or_default();
        let asked = annotations.into_iter().filter(|(key, _)| key.contains("planned") || key.contains("reclone"));
        (group["spec"].clone(), asked.collect())
    }

    fn address(&self, pointer: &str) -> String {
        self.notice().pointer(pointer).and_then(Value::as_str).unwrap().to_owned()
    }
}

/// Everything that a notice names.
fn pids(notice: &Value) -> Vec<u32> {
    let sites = notice["sites"].as_array().cloned().unwrap_or_default();
    let of_sites = sites.iter().flat_map(|site| [site["mysqldPid"].clone(), site["sidecarPid"].clone()]);
    let pids = of_sites.chain([notice["operator"]["pid"].clone()]);
    // What does not run has no number, and 0 is nobody's.
    pids.map(|pid| pid.as_u64().and_then(|pid| u32::try_from(pid).ok()).unwrap_or(0)).collect()
}

/// A connection through a front door, as the application.
async fn connect(bench: &Bench, door: &str) -> Result<Conn, mysql_async::Error> {
    let address = bench.address(door);
    let (host, port) = address.split_once(':').unwrap();
    let options = OptsBuilder::default()
        .ip_or_hostname(host)
        .tcp_port(port.parse().unwrap())
        .prefer_socket(false)
        .user(Some(bench.address("/credentials/user")))
        .pass(Some(bench.address("/credentials/password")));
    Conn::new(options).await
}

/// What the table holds by now, after one more row. The replica has it, too: whoever writes after the next start has it.
fn write_one(bench: &Bench) -> u64 {
    const COUNT: &str = "SELECT COUNT(*) FROM kept.rows";
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let writing = async {
        let mut conn = connect(bench, "/frontDoors/primary").await.unwrap();
        conn.query_drop("CREATE DATABASE IF NOT EXISTS kept").await.unwrap();
        conn.query_drop("CREATE TABLE IF NOT EXISTS kept.rows (id INT AUTO_INCREMENT PRIMARY KEY)").await.unwrap();
        conn.query_drop("INSERT INTO kept.rows VALUES ()").await.unwrap();
        let opening = conn.query_drop("SET GLOBAL max_connections = 1000").await;
        assert!(opening.is_err(), "the application has no right of an administrator");
        conn.query_first::<u64, _>(COUNT).await.unwrap().unwrap()
    };
    let count = runtime.block_on(async { tokio::time::timeout(LIMIT, writing).await.unwrap() });
    let received = wait::until(LIMIT, || {
        runtime.block_on(async {
            let mut conn = connect(bench, "/frontDoors/replicas").await.ok()?;
            let found = conn.query_first::<u64, _>(COUNT).await.ok()??;
            (found == count).then_some(())
        })
    });
    assert!(received.is_some(), "the replica has not received it");
    count
}

/// An admin verb: its exit code and everything it said.
fn verb(words: &[&str], dir: &Path) -> (i32, String) {
    let (first, rest) = words.split_first().unwrap();
    let output = Command::new(programs::bloodraven()).args(["local", first]).arg(dir).args(rest).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8_lossy(&said).into_owned())
}

/// Sends bytes, reads until the other side ends or is silent for long.
fn speak(address: &str, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    // One that has heard enough closes in the middle of it.
    let _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    let _ = stream.take(1 << 16).read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

fn request(method: &str, path: &str, length: usize, body: &str) -> Vec<u8> {
    format!("{method} {path} HTTP/1.1\r\nHost: it\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}")
        .into()
}

fn lives(pid: u32) -> bool {
    // The third word is the state; a name in brackets may hold anything.
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

fn all_gone(pids: &[u32]) -> bool {
    wait::until(Duration::from_secs(20), || pids.iter().all(|pid| !lives(*pid)).then_some(())).is_some()
}

fn signal(playground: &Playground, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(playground.pid()).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

fn check_nonsense(bench: &Bench) {
    let before = bench.wishes();
    let dir = bench.dir();
    let nowhere = bench.scratch.path().join("nowhere");
    let rows: [(&[&str], &Path, i32, &str); 8] = [
        (&["promote", "mars"], &dir, 2, "`mars` is not a site; this group has"),
        (&["promote", &bench.address("/activeSite")], &dir, 1, "it is the primary already"),
        (&["promote", "pdx", "--max-lag-wait", "soon"], &dir, 2, "maxLagWait"),
        (&["reclone", &bench.address("/activeSite")], &dir, 1, "it is the primary: fail over to another site first"),
        (&["what-if", "--kill", "mars"], &dir, 2, "`mars` is not a site"),
        (&["annotate", "authority={}"], &dir, 2, "is the operator's own"),
        (&["status"], &nowhere, 1, "is no state directory"),
        (&["promote"], &dir, 2, "SITE"),
    ];
    for (words, dir, code, said) in rows {
        let (ended, told) = verb(words, dir);
        assert!(ended == code && told.contains(said), "{words:?}: {ended} {told}");
    }
    assert_eq!(bench.wishes(), before);
    assert!(!nowhere.exists());
}

fn check_garbage(bench: &Bench) {
    let (sidecar, operator) = (bench.address("/sites/0/sidecarHttp"), bench.address("/operator/http"));
    let (nonce, mac) = ("0".repeat(32), "0".repeat(64));
    let forged = format!(r#"{{"kind":"view","nonce":"{nonce}","body":"{{\"epoch\":999}}","mac":"{mac}"}}"#);
    // Two that begin a request and never end it.
    let _slow = [&sidecar, &operator].map(|address| {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(b"POST /authority HTTP/1.1\r\nContent-Le").unwrap();
        stream
    });
    let rows: [(&str, Vec<u8>, &str); 8] = [
        (&sidecar, b"\x16\x03\x01\x02\x00\x01\x00\xff\xfe\xfd\r\n\r\n".to_vec(), "400"),
        (&operator, b"\x00\x00\x00\r\n\r\n\x00".to_vec(), "400"),
        (&sidecar, request("POST", "/authority", 3, "{{{"), "400"),
        (&sidecar, request("POST", "/authority", forged.len(), &forged), "401"),
        (&sidecar, request("POST", "/authority", 3 << 20, &" ".repeat(3 << 20)), "413"),
        (&sidecar, request("GET", "/nothing", 0, ""), "404"),
        (&operator, request("DELETE", "/status", 0, ""), "405"),
        (&operator, request("GET", "/active-site?group=", 0, ""), "400"),
    ];
    for (address, bytes, code) in rows {
        let answer = speak(address, &bytes);
        let begun = String::from_utf8_lossy(&bytes[..bytes.len().min(60)]).into_owned();
        assert!(answer.starts_with(&format!("HTTP/1.1 {code}")), "{begun:?}: {answer}");
    }
    let counted = speak(&sidecar, &request("GET", "/metrics", 0, ""));
    let refused =
        |line: &&str| line.contains("http_requests_total{") && line.contains("\"/authority\"") && line.contains("4xx");
    assert!(counted.lines().any(|line| refused(&line)), "not counted: {counted}");
}

#[test]
fn a_group_outlives_its_playgrounds_and_nothing_wrong_changes_it() {
    let bench = Bench::new("playground");
    let mut first = bench.ready();
    assert_eq!(write_one(&bench), 1);
    let mut said = verbs(&bench);
    check_nonsense(&bench);
    check_garbage(&bench);
    let (status, told) = bench.refused();
    assert!(status.code() == Some(1) && told.contains("is in use by another playground"), "{status} {told}");
    assert_eq!(write_one(&bench), 2, "nothing of that was noticed");

    let started = pids(&bench.notice());
    signal(&first, Signal::INT);
    let status = wait::until(LIMIT, || first.status()).unwrap();
    assert!(status.success(), "{status}: {}", first.told());
    assert!(all_gone(&started), "Ctrl-C left something running");
    assert_eq!((bench.notice()["state"].as_str(), bench.notice()["activeSite"].as_str()), (Some("stopping"), Some("")));

    let mut second = bench.ready();
    assert_eq!(write_one(&bench), 3, "the data is still there");
    let started = pids(&bench.notice());
    signal(&second, Signal::KILL);
    wait::until(LIMIT, || second.status()).unwrap();
    // At once: what the killed one had started may not be gone yet.
    let third = bench.ready();
    assert!(all_gone(&started), "a killed playground left something running");
    assert_eq!(write_one(&bench), 4, "the data is still there");
    said.extend([
        ("the first".to_owned(), first.told()),
        ("the second".to_owned(), second.told()),
        ("the third".to_owned(), third.told()),
    ]);
    drop(third);
    nothing_secret_was_said(&bench, said);

    check_directory(&bench);
}

/// Where each secret stands, and how it would look if it were said. The application's password is for people, in
/// `playground.json`.
fn secrets(dir: &Path) -> Vec<(String, String)> {
    let folder = dir.join("secrets");
    let roles = ["operator", "readonly", "monitor", "backup", "replication", "root"];
    let password = |role: &str| std::fs::read_to_string(folder.join(role).join("password")).unwrap().trim().to_owned();
    let mut all: Vec<(String, String)> = roles.iter().map(|role| ((*role).to_owned(), password(role))).collect();
    let key = std::fs::read(folder.join("hmac.key")).unwrap();
    let hex = format!("{:016x}", u64::from_be_bytes(key[..8].try_into().unwrap()));
    let listed = format!("{:?}", &key[..8]);
    all.extend([
        ("the key in hex".to_owned(), hex),
        ("the key as a list".to_owned(), listed.trim_matches(['[', ']']).to_owned()),
    ]);
    assert!(all.iter().all(|(_, text)| text.len() >= 16), "secrets are long enough to be told from other words");
    all
}

/// Everything that was written below a folder but data and the secrets themselves: logs of operator, keepers and sidecars,
/// the group's object, Events.
fn written(folder: &Path, all: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        let kind = entry.file_type().unwrap();
        if kind.is_dir() && !["secrets", "data"].contains(&name.as_str()) {
            written(&path, all);
        } else if kind.is_file() {
            let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
            all.push((path.display().to_string(), text));
        }
    }
}

/// What admin verbs say while all is well.
fn verbs(bench: &Bench) -> Vec<(String, String)> {
    let rows: [&[&str]; 7] = [
        &["status"],
        &["status", "--json"],
        &["why"],
        &["why", "--json"],
        &["what-if", "--kill", "iad"],
        &["what-if", "--kill", "iad", "--json"],
        &["annotate", "note=of-a-test"],
    ];
    let say = |words: &&[&str]| {
        let (code, told) = verb(words, &bench.dir());
        assert_eq!(code, 0, "{words:?}: {told}");
        (words.join(" "), told)
    };
    rows.iter().map(say).collect()
}

fn nothing_secret_was_said(bench: &Bench, mut said: Vec<(String, String)>) {
    written(&bench.dir(), &mut said);
    for log in ["operator-0.log", "iad/log/mysql.log", "iad/log/sidecar.log"] {
        assert!(said.iter().any(|(place, text)| place.ends_with(log) && !text.is_empty()), "{log} is not among them");
    }
    let secrets = secrets(&bench.dir());
    let found = |text: &str| secrets.iter().filter(|(_, secret)| text.contains(secret)).count();
    // The test can fail.
    assert_eq!(found(&secrets[0].1), 1);
    let told: Vec<&String> = said.iter().filter(|(_, text)| found(text) > 0).map(|(place, _)| place).collect();
    assert!(told.is_empty(), "a secret is said in {told:?}");
}

/// What is wrong with a directory or with the machine is told, and nothing is changed.
fn check_directory(bench: &Bench) {
    let door = bench.address("/frontDoors/primary");
    let taken = wait::until(LIMIT, || TcpListener::bind(&door).ok()).unwrap();
    let (status, told) = bench.refused();
    assert!(status.code() == Some(1) && told.contains(&format!("{door} (the front door")), "{status} {told}");
    drop(taken);
    let group = bench.dir().join("group.json");
    let whole = std::fs::read(&group).unwrap();
    std::fs::write(&group, &whole[..whole.len() / 2]).unwrap();
    let (status, told) = bench.refused();
    assert!(status.code() == Some(1) && told.contains("group.json is corrupt"), "{status} {told}");
    assert_eq!(std::fs::read(&group).unwrap(), whole[..whole.len() / 2], "left as it was found");
    std::fs::write(&group, &whole).unwrap();
    std::fs::write(bench.dir().join("version"), "7\n").unwrap();
    let (status, told) = bench.refused();
    assert!(status.code() == Some(1) && told.contains("has format \"7\""), "{status} {told}");
}

#[test]
fn a_server_that_is_too_old_is_refused_and_nothing_is_made() {
    let scratch = Scratch::new("old-server").unwrap();
    let old = scratch.path().join("mysqld");
    std::fs::write(&old, "#!/bin/sh\necho 'mysqld  Ver 8.0.36 for Linux on x86_64 (MySQL Community Server - GPL)'\n")
        .unwrap();
    std::fs::set_permissions(&old, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let dir = scratch.path().join("group");
    let output = Command::new(programs::bloodraven())
        .args(["playground", "--headless", "--dir"])
        .arg(&dir)
        .arg("--keeper")
        .arg(programs::keeper())
        .arg("--mysqld")
        .arg(&old)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && told.contains("8.0.36, which is too old"), "{told}");
    assert!(!dir.exists() || std::fs::read_dir(&dir).unwrap().next().is_none(), "something was made");
}
