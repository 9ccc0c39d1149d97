//! `playground.json`: what programs beside the playground need to know, never half written, always current.
//!
//! In: how things are. Out: the file, replaced when anything in it changed. Must not: write it when nothing did.

use super::picture::State;
use crate::assembly::{OperatorStatus, Status};
use crate::files;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Its name.
pub const NAME: &str = "playground.json";

/// The file and what was written last.
pub(super) struct Notice {
    path: PathBuf,
    last: Option<Value>,
}

impl Notice {
    pub(super) fn new(dir: &Path) -> Self {
        Self { path: dir.join(NAME), last: None }
    }

    /// Writes how things are, if they are otherwise than written.
    pub(super) fn show(&mut self, value: Value) -> Result<(), files::Error> {
        if self.last.as_ref() != Some(&value) {
            let mut bytes = serde_json::to_vec_pretty(&value).unwrap_or_default();
            bytes.push(b'\n');
            files::show(&self.path, &bytes)?;
            self.last = Some(value);
        }
        Ok(())
    }
}

/// What the file says.
pub(super) fn notice(
    state: State,
    active: &str,
    status: &Status,
    leader: Option<u8>,
    credentials: &(String, String),
) -> Value {
    // The one that leads, else the first that runs.
    let leads = |one: &&OperatorStatus| one.pid.is_some() && Some(one.number) == leader;
    let mut running = status.operators.iter().filter(|one| one.pid.is_some());
    let operator = status.operators.iter().find(leads).or(running.next()).or(status.operators.first());
    let sites: Vec<Value> = status
        .sites
        .iter()
        .map(|site| {
            json!({
                "name": site.name,
                "role": site.role,
                "mysql": site.mysql.to_string(),
                "mysqldPid": site.mysqld_pid,
                "sidecarPid": site.state.sidecar_pid,
                "sidecarHttp": site.sidecar.to_string(),
            })
        })
        .collect();
    json!({
        "state": state,
        "activeSite": active,
        "frontDoors": {"primary": status.primary_door.to_string(), "replicas": status.replicas_door.to_string()},
        "credentials": {"user": credentials.0, "password": credentials.1},
        "operator": {"pid": operator.and_then(|one| one.pid), "http": operator.map(|one| one.http.to_string())},
        "sites": sites,
    })
}

/// A playground that was killed could not say so: what it left says "ready" until the next one has begun. Nothing there, or
/// nothing that can be read: nothing to correct.
pub(super) fn begin(dir: &Path) -> Result<(), files::Error> {
    let mut notice = Notice::new(dir);
    let left = files::read(&notice.path)?.and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
    match left.filter(Value::is_object) {
        Some(left) => notice.show(without_anybody(&left, State::Starting)),
        None => Ok(()),
    }
}

/// The same after everything has ended: nothing runs, and nobody writes.
pub(super) fn ended(last: &Value) -> Value {
    without_anybody(last, State::Stopping)
}

fn without_anybody(last: &Value, state: State) -> Value {
    let mut value = last.clone();
    value["state"] = json!(state);
    value["activeSite"] = json!("");
    value["operator"]["pid"] = Value::Null;
    for site in value["sites"].as_array_mut().into_iter().flatten() {
        site["mysqldPid"] = Value::Null;
        site["sidecarPid"] = Value::Null;
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assembly::SiteStatus;
    use crate::supervisor::SiteState;

    fn status() -> Status {
        let at = |text: &str| text.parse().unwrap();
        Status {
            active_site: "iad".into(),
            phase: "Stable".into(),
            epoch: 3,
            primary_door: at("127.9.9.2:3306"),
            replicas_door: at("127.9.9.2:3307"),
            sites: vec![SiteStatus {
                name: "iad".into(),
                role: "primary-candidate".into(),
                mysql: at("127.9.9.11:3306"),
                admin: at("127.9.9.11:33062"),
                sidecar: at("127.9.9.11:8080"),
                mysqld_pid: Some(7),
                state: SiteState { sidecar_pid: Some(8), ..SiteState::default() },
            }],
            operators: vec![
                OperatorStatus { number: 0, pid: None, http: at("127.9.9.200:8082"), starts: 1 },
                OperatorStatus { number: 1, pid: Some(9), http: at("127.9.9.201:8082"), starts: 1 },
            ],
        }
    }

    #[test]
    fn it_says_what_was_promised_and_who_runs() {
        let said = notice(State::Ready, "iad", &status(), None, &("app".into(), "secret".into()));
        let expect = json!({
            "state": "ready",
            "activeSite": "iad",
            "frontDoors": {"primary": "127.9.9.2:3306", "replicas": "127.9.9.2:3307"},
            "credentials": {"user": "app", "password": "secret"},
            "operator": {"pid": 9, "http": "127.9.9.201:8082"},
            "sites": [{"name": "iad", "role": "primary-candidate", "mysql": "127.9.9.11:3306", "mysqldPid": 7,
                       "sidecarPid": 8, "sidecarHttp": "127.9.9.11:8080"}],
        });
        assert_eq!(said, expect);
        let mut both = status();
        both.operators[0].pid = Some(6);
        let leads =
            |leader| notice(State::Ready, "iad", &both, leader, &("app".into(), "s".into()))["operator"]["pid"].clone();
        assert_eq!((leads(None), leads(Some(1)), leads(Some(0))), (json!(6), json!(9), json!(6)));
        let over = ended(&said);
        assert_eq!((&over["state"], &over["operator"]["pid"]), (&json!("stopping"), &Value::Null));
        assert_eq!(over["sites"][0]["mysqldPid"], Value::Null);
    }

    #[test]
    fn what_a_killed_playground_left_is_corrected_and_what_is_no_notice_is_left_alone() {
        let dir = crate::testing::Folder::new();
        begin(dir.path()).unwrap();
        assert!(!dir.path().join(NAME).exists());
        let ready = notice(State::Ready, "iad", &status(), None, &("app".into(), "secret".into()));
        Notice::new(dir.path()).show(ready).unwrap();
        begin(dir.path()).unwrap();
        let said: Value = serde_json::from_slice(&std::fs::read(dir.path().join(NAME)).unwrap()).unwrap();
        assert_eq!((&said["state"], &said["activeSite"]), (&json!("starting"), &json!("")));
        assert_eq!(said["sites"][0]["mysqldPid"], Value::Null);
        std::fs::write(dir.path().join(NAME), "[1").unwrap();
        begin(dir.path()).unwrap();
        assert_eq!(std::fs::read(dir.path().join(NAME)).unwrap(), b"[1");
    }
}
