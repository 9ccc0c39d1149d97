//! A cluster's API server, through `kubectl`: asked, told, waited for.
//!
//! In: a kubeconfig and words of `kubectl`. Out: what it says, objects as JSON. Must not: wait without an end (each run of
//! `kubectl` has a deadline, and is ended at it), or know where the cluster runs.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::error::{Error, ProgramSnafu, TooLateSnafu};
use super::network::answer;
use crate::{process, wait};

/// How often the API server is asked while something is waited for: each question is a run of `kubectl`.
const ASK_EVERY: Duration = Duration::from_millis(500);

/// How long one run of `kubectl` may take; one request less, so that it can say why.
const RUN_LIMIT: Duration = Duration::from_mins(1);

/// How long nodes may take to be Ready: 12 s on two free cores.
pub(super) const READY_LIMIT: Duration = Duration::from_mins(4);

/// An API server and whoever asks it.
#[derive(Clone, Debug)]
pub struct Api {
    pub(super) kubectl: PathBuf,
    pub(super) kubeconfig: PathBuf,
    /// The context to use, where it is not the current one of the kubeconfig.
    pub(super) context: Option<String>,
    /// Where `kubectl` may keep what it learned.
    pub(super) folder: PathBuf,
    /// Where a person looks when something is late.
    pub(super) hint: String,
}

impl Api {
    /// The path of the kubeconfig.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Runs `kubectl`, and gives what it wrote.
    pub fn kubectl(&self, words: &[&str]) -> Result<String, Error> {
        self.kubectl_fed(words, "")
    }

    /// `kubectl` under this kubeconfig; add arguments and run it.
    pub fn kubectl_command(&self) -> Command {
        let mut command = Command::new(&self.kubectl);
        command.arg("--kubeconfig").arg(&self.kubeconfig);
        command.arg("--cache-dir").arg(self.folder.join("kubectl-cache"));
        if let Some(context) = &self.context {
            command.arg("--context").arg(context);
        }
        // It would go through the user's proxy otherwise, loopback or not.
        for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"] {
            command.env_remove(name);
        }
        command
    }

    /// Creates or changes objects.
    pub fn apply(&self, objects: &Value) -> Result<(), Error> {
        let words = ["apply", "--server-side", "--force-conflicts", "--request-timeout=20s", "-f", "-"];
        self.kubectl_fed(&words, &objects.to_string()).map(drop)
    }

    /// Creates one object, and gives what the API server made of it.
    pub fn create(&self, object: &Value) -> Result<Value, Error> {
        let words = ["create", "--request-timeout=10s", "--output=json", "-f", "-"];
        parse(&self.kubectl_fed(&words, &object.to_string())?)
    }

    /// The objects that a `kubectl get` finds.
    pub fn get(&self, words: &[&str]) -> Result<Value, Error> {
        parse(&self.kubectl(&[&["get", "--request-timeout=10s", "--output=json"], words].concat())?)
    }

    /// Runs a command in a container, and gives what it wrote.
    pub fn exec(&self, namespace: &str, pod: &str, container: &str, words: &[&str]) -> Result<String, Error> {
        let who = ["exec", "--namespace", namespace, pod, "--container", container, "--"];
        self.kubectl(&[&who[..], words].concat())
    }

    /// Deletes a pod in good order, without waiting for its end.
    pub fn delete_pod(&self, namespace: &str, pod: &str) -> Result<(), Error> {
        self.kubectl(&["delete", "pod", pod, "--namespace", namespace, "--wait=false"]).map(drop)
    }

    /// Deletes a pod's object at once, whether or not its processes have ended.
    pub fn force_delete_pod(&self, namespace: &str, pod: &str) -> Result<(), Error> {
        let words = ["delete", "pod", pod, "--namespace", namespace, "--wait=false", "--grace-period=0", "--force"];
        self.kubectl(&words).map(drop)
    }

    /// Waits until a question to the API server has the wanted answer; an error that names `what` when it never has.
    pub fn wait_for<T>(
        &self,
        what: &str,
        limit: Duration,
        mut ask: impl FnMut(&Self) -> Option<T>,
    ) -> Result<T, Error> {
        let found = wait::until_every(limit, ASK_EVERY, || ask(self));
        found.ok_or_else(|| TooLateSnafu { what, seconds: limit.as_secs(), hint: self.hint.clone() }.build())
    }

    /// Waits until the API server answers that it is ready.
    pub fn wait_for_answers(&self, limit: Duration) -> Result<(), Error> {
        self.wait_for("the API server is not ready", limit, |api| {
            api.kubectl(&["get", "--raw=/readyz", "--request-timeout=5s"]).is_ok().then_some(())
        })
    }

    /// Waits until nodes are Ready.
    pub fn wait_for_nodes(&self, names: &[&str]) -> Result<(), Error> {
        let what = format!("not all of {} are Ready", names.join(", "));
        self.wait_for(&what, READY_LIMIT, |api| {
            let nodes = api.get(&["nodes"]).ok()?;
            names.iter().all(|name| is_ready(&nodes, name)).then_some(())
        })
    }

    fn kubectl_fed(&self, words: &[&str], input: &str) -> Result<String, Error> {
        let what = format!("kubectl {}", words.join(" "));
        answer(&what, process::output(self.kubectl_command().args(words), input, RUN_LIMIT))
    }
}

fn parse(text: &str) -> Result<Value, Error> {
    let said = |error: serde_json::Error| ProgramSnafu { what: "reading kubectl", said: error.to_string() }.build();
    serde_json::from_str(text).map_err(said)
}

/// Whether a list of nodes has one of that name that is Ready.
fn is_ready(nodes: &Value, name: &str) -> bool {
    let found = nodes["items"].as_array().into_iter().flatten().find(|node| node["metadata"]["name"] == name);
    let conditions = found.and_then(|node| node["status"]["conditions"].as_array());
    conditions.into_iter().flatten().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_node_is_ready_when_its_own_condition_says_so() {
        let node = |name: &str, status: &str| {
            json!({"metadata": {"name": name}, "status": {"conditions": [
            {"type": "MemoryPressure", "status": "False"}, {"type": "Ready", "status": status}]}})
        };
        let nodes = json!({"items": [node("iad", "True"), node("pdx", "Unknown")]});
        assert!(is_ready(&nodes, "iad"));
        assert!(!is_ready(&nodes, "pdx") && !is_ready(&nodes, "fra") && !is_ready(&json!({}), "iad"));
    }
}
