//! The stage: an API server with groups on it, an operator, a crowd.
//!
//! In: the product's program, how many groups there will be at most. Out: groups that come and are ready, an operator that
//! starts and ends. Must not: leave anything behind; everything ends with the process.

use crate::crowd::{Crowd, DOMAIN, NAMESPACE, OPERATOR, SECRET, SITES};
use crate::watch::Seen;
use anyhow::{Context as _, Result, ensure};
use bloodraven_api::crd;
use bloodraven_api::keys::{API_GROUP, API_VERSION};
use bloodraven_testbed::kubernetes::{ApiServer, established, requests};
use bloodraven_testbed::process::{self, Process};
use bloodraven_testbed::scratch::Scratch;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use kube::Client;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A call of `kubectl`.
const CALL_LIMIT: Duration = Duration::from_mins(1);

/// Groups that are made at a time.
const AT_A_TIME: usize = 4;

/// How long an operator may take to give its lease back.
const ENDING: Duration = Duration::from_secs(20);

/// See above. Needs a running tokio, inside a [place](crate::place).
pub struct Stage {
    /// Its sites.
    pub crowd: Arc<Crowd>,
    /// What is stored of its groups.
    pub seen: Arc<Seen>,
    /// The store.
    pub server: ApiServer,
    client: Client,
    bloodraven: PathBuf,
    scratch: Scratch,
    operator: Option<Process>,
    groups: usize,
}

impl Stage {
    /// An API server with our kinds, no groups yet, no operator.
    pub async fn begin(bloodraven: &Path, scratch: Scratch, most: usize) -> Result<Self> {
        let server = ApiServer::start()?;
        kubectl(&server, &["apply", "--server-side", "-f", "-"], &crd::all_yaml())?;
        established(CALL_LIMIT, &["crd", "--all"], |words| kubectl(&server, words, ""))?;
        let data = json!({"username": "operator", "password": "op-pw", "MYSQL_ROOT_PASSWORD": "root-pw",
            "MYSQL_REPLICATION_USER": "repl", "MYSQL_REPLICATION_PASSWORD": "repl-pw"});
        let objects = [
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}),
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET, "namespace": NAMESPACE},
                "stringData": data}),
        ];
        kubectl(&server, &["apply", "-f", "-"], &objects.map(|object| object.to_string()).join("\n---\n"))?;
        let client = server.client().await?;
        let crowd = Crowd::new(most);
        crowd.begin(client.clone()).await?;
        let seen = Seen::begin(&crowd, client.clone(), most);
        let bloodraven = bloodraven.to_owned();
        Ok(Self { crowd, seen, server, client, bloodraven, scratch, operator: None, groups: 0 })
    }

    /// Groups that there are.
    pub const fn groups(&self) -> usize {
        self.groups
    }

    /// More groups, until there are so many.
    pub async fn grow(&mut self, groups: usize) -> Result<()> {
        let path = format!("/apis/{API_GROUP}/{API_VERSION}/namespaces/{NAMESPACE}/mysqlfailovergroups");
        let make = |number: usize| {
            let (client, path) = (self.client.clone(), path.clone());
            async move {
                let request = http_post(&path, &group(number))?;
                let made: Value = client.request(request).await.context("a group is refused")?;
                ensure!(made["metadata"]["uid"].is_string(), "a group has no UID");
                Ok(())
            }
        };
        stream::iter((self.groups..groups).map(make)).buffer_unordered(AT_A_TIME).try_collect::<()>().await?;
        self.groups = groups;
        Ok(())
    }

    /// Starts the operator; when that was.
    pub fn start_operator(&mut self) -> Result<Instant> {
        self.stop_operator()?;
        let mut command = Command::new(&self.bloodraven);
        command
            .arg("operator")
            .args(["--metrics-bind", "127.0.0.1:9080", "--probe-bind", "127.0.0.1:9081"])
            .args(["--aux-bind", &OPERATOR.to_string(), "--aux-address", &OPERATOR.to_string()])
            .args(["--cluster-domain", DOMAIN, "--watch-namespace", NAMESPACE, "--log-level", "warn"])
            .env("KUBECONFIG", self.server.kubeconfig())
            .envs([("POD_NAME", "operator-0"), ("POD_NAMESPACE", NAMESPACE), ("POD_UID", "uid-0")])
            .env("BLOODRAVEN_OPERATOR_IMAGE", "example.org/bloodraven:1")
            // Of the machine, not of this network.
            .env_remove("HTTPS_PROXY")
            .env_remove("https_proxy");
        self.crowd.polls.forget_first();
        let began = Instant::now();
        self.operator = Some(Process::spawn(command, "operator", self.log())?);
        Ok(began)
    }

    /// Ends it, its lease given back.
    pub fn stop_operator(&mut self) -> Result<()> {
        if let Some(operator) = self.operator.take() {
            operator.terminate(ENDING)?;
        }
        Ok(())
    }

    /// The operator's process.
    pub fn operator(&self) -> Option<&Process> {
        self.operator.as_ref()
    }

    /// Where the operator's lines are.
    pub fn log(&self) -> PathBuf {
        self.scratch.path().join("operator.log")
    }

    /// Waits until every group is ready and exactly one site of each takes writes. The error names those that are not.
    pub async fn all_ready(&self, limit: Duration, told: impl Fn(usize)) -> Result<()> {
        let mut before = usize::MAX;
        let so = || {
            let unready = self.unready().len();
            if unready != before {
                before = unready;
                told(self.groups - unready);
            }
            unready == 0
        };
        if self.seen.until(limit, so).await {
            return Ok(());
        }
        let unready = self.unready();
        let first = unready.first().map(|group| (Crowd::name(*group), self.seen.of(*group)));
        let tail = process::tail(&self.log(), 5);
        anyhow::bail!(
            "{} of {} groups are not ready; the first: {first:?}; the operator says:\n{tail}",
            unready.len(),
            self.groups
        )
    }

    /// Requests that the API server has answered so far, by what they were; watches apart.
    pub async fn requests(&self) -> Result<BTreeMap<String, f64>> {
        let request = axum::http::Request::get("/metrics").body(Vec::new())?;
        let text = self.client.request_text(request).await.context("the API server shows no metrics")?;
        Ok(requests(&text))
    }

    fn unready(&self) -> Vec<usize> {
        let ready = |group: &usize| {
            let state = self.seen.of(*group);
            state.ready && state.phase == "Stable" && self.crowd.writers(*group) == 1
        };
        (0..self.groups).filter(|group| !ready(group)).collect()
    }
}

/// As an admin would write it, every setting at its default.
fn group(number: usize) -> Value {
    let site = |name: &&str| {
        json!({"name": name, "zone": name, "lbIP": "192.0.2.7", "taintNodeSelector": {"site": name},
        "storage": {"storageClassName": "fast", "size": "1Gi"}})
    };
    json!({"apiVersion": format!("{API_GROUP}/{API_VERSION}"), "kind": "MysqlFailoverGroup",
        "metadata": {"name": Crowd::name(number), "namespace": NAMESPACE},
        "spec": {"secretName": SECRET, "dns": {"hostname": format!("g{number}.example.org")},
            "sites": SITES.iter().map(site).collect::<Vec<_>>()}})
}

fn http_post(path: &str, body: &Value) -> Result<axum::http::Request<Vec<u8>>> {
    let request = axum::http::Request::post(path).header("content-type", "application/json");
    Ok(request.body(body.to_string().into_bytes())?)
}

fn kubectl(server: &ApiServer, words: &[&str], input: &str) -> Result<()> {
    let output = process::output(server.kubectl().args(words), input, CALL_LIMIT)?;
    ensure!(output.status.success(), "kubectl {words:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}
