//! A cluster that somebody else runs: the same tests against any cluster for tests.
//!
//! In: a kubeconfig, and a context where it is not the current one. Out: its API server and its nodes. Must not: touch a
//! cluster that does not look like one for tests, unless a person has named that very context to be trusted.

use std::ops::Deref;
use std::path::PathBuf;

use serde_json::Value;
use snafu::{OptionExt as _, ensure};

use super::Api;
use super::error::{Error, ProgramSnafu, part};
use crate::environment::{self, CONTEXT, KUBECONFIG, TRUSTED_CONTEXT};
use crate::kubernetes::Program;
use crate::scratch::Scratch;

/// Words of a context's name that say that it is for tests: those of programs that run clusters on a desk, and plain ones.
const TEST_WORDS: [&str; 16] = [
    "testbed", "test", "tests", "testing", "e2e", "ci", "dev", "sandbox", "scratch", "kind", "k3d", "k3s", "minikube",
    "microk8s", "colima", "desktop",
];

/// Words that say that it is not, whatever else the name says.
const REAL_WORDS: [&str; 5] = ["prod", "production", "prd", "live", "staging"];

/// Which cluster is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The kubeconfig.
    pub kubeconfig: PathBuf,
    /// The context, where it is not the current one.
    pub context: Option<String>,
    /// A context that is trusted to be for tests whatever its name.
    pub trusted: Option<String>,
}

impl Choice {
    /// What the environment asks for: nothing means a cluster of our own.
    pub fn of_environment() -> Option<Self> {
        let text = |name: &str| environment::variable(name).map(|value| value.to_string_lossy().into_owned());
        let kubeconfig = environment::variable(KUBECONFIG)?.into();
        Some(Self { kubeconfig, context: text(CONTEXT), trusted: text(TRUSTED_CONTEXT) })
    }
}

/// A cluster of somebody else.
#[derive(Debug)]
pub struct External {
    api: Api,
    context: String,
    nodes: Vec<String>,
    _folder: Scratch,
}

impl External {
    /// Looks at the cluster that is meant, and refuses it when it does not look like one for tests.
    pub fn open(choice: &Choice) -> Result<Self, Error> {
        let missing = || format!("no file {}: {KUBECONFIG} names a kubeconfig", choice.kubeconfig.display());
        ensure!(choice.kubeconfig.is_file(), ProgramSnafu { what: "opening a cluster", said: missing() });
        let folder = Scratch::passing("external").map_err(part("a folder for kubectl"))?;
        let mut api = Api {
            kubectl: Program::Kubectl.provision().map_err(part("kubectl"))?,
            kubeconfig: choice.kubeconfig.clone(),
            context: choice.context.clone(),
            folder: folder.path().to_owned(),
            hint: "see `kubectl get events --all-namespaces`".to_owned(),
        };
        let view = api.kubectl(&["config", "view", "--minify", "--output=json"])?;
        let view: Value = serde_json::from_str(&view).map_err(part("the kubeconfig"))?;
        let said = "it has no current context: name one";
        let context = view["current-context"].as_str().filter(|name| !name.is_empty());
        let context = context.context(ProgramSnafu { what: "reading the kubeconfig", said })?.to_owned();
        may_be_used(&context, choice.trusted.as_deref())?;
        // The current context may change while tests run.
        api.context = Some(context.clone());
        let nodes = ready_nodes(&api.get(&["nodes"])?);
        let said = || format!("{context} has no node that is Ready and takes pods");
        ensure!(!nodes.is_empty(), ProgramSnafu { what: "looking for nodes", said: said() });
        Ok(Self { api, context, nodes, _folder: folder })
    }

    /// The context that is used.
    pub fn context(&self) -> &str {
        &self.context
    }

    /// Its nodes that are Ready and take pods.
    pub fn nodes(&self) -> &[String] {
        &self.nodes
    }
}

impl Deref for External {
    type Target = Api;

    fn deref(&self) -> &Api {
        &self.api
    }
}

/// Refuses a context that does not look like one for tests and was not named to be trusted.
fn may_be_used(context: &str, trusted: Option<&str>) -> Result<(), Error> {
    let said = format!(
        "the context '{context}' does not look like a cluster for tests, and tests create, kill and delete; \
         if it is one, set {TRUSTED_CONTEXT}={context}"
    );
    let what = "opening a cluster";
    ensure!(trusted == Some(context) || looks_like_a_test(context), ProgramSnafu { what, said });
    Ok(())
}

fn looks_like_a_test(context: &str) -> bool {
    let lower = context.to_ascii_lowercase();
    let words: Vec<&str> = lower.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    let has = |list: &[&str]| words.iter().any(|word| list.contains(word));
    has(&TEST_WORDS) && !has(&REAL_WORDS)
}

/// The names of nodes that are Ready, are not cordoned and refuse no pods.
fn ready_nodes(nodes: &Value) -> Vec<String> {
    let takes_pods = |node: &&Value| {
        let ready = |condition: &Value| condition["type"] == "Ready" && condition["status"] == "True";
        let refuses = |taint: &Value| taint["effect"] == "NoSchedule" || taint["effect"] == "NoExecute";
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        list(&node["status"]["conditions"]).iter().any(ready)
            && !list(&node["spec"]["taints"]).iter().any(refuses)
            && node["spec"]["unschedulable"] != true
    };
    let items = nodes["items"].as_array().into_iter().flatten().filter(takes_pods);
    items.filter_map(|node| node["metadata"]["name"].as_str()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_contexts_for_tests_are_used_unless_they_are_named() {
        let check = |context: &str, trusted: Option<&str>, expect: bool| {
            assert_eq!(may_be_used(context, trusted).is_ok(), expect, "{context} {trusted:?}");
        };
        check("kind-bloodraven", None, true);
        check("k3d-one", None, true);
        check("docker-desktop", None, true);
        check("testbed", None, true);
        check("gke_team_us-east1_e2e", None, true);
        check("us-east-1", None, false);
        check("contest", None, false);
        check("prod-test", None, false);
        check("", None, false);
        check("us-east-1", Some("us-east-1"), true);
        check("us-east-1", Some("us-east-2"), false);
        check("us-east-1", Some(""), false);
        let error = may_be_used("us-east-1", None).unwrap_err().to_string();
        assert!(error.contains("'us-east-1'") && error.contains("BLOODRAVEN_TRUSTED_CONTEXT=us-east-1"), "{error}");
    }

    #[test]
    fn nodes_that_take_no_pods_are_left_out() {
        let node = |name: &str, ready: &str, spec: Value| {
            json!({"metadata": {"name": name}, "spec": spec,
                "status": {"conditions": [{"type": "Ready", "status": ready}]}})
        };
        let nodes = json!({"items": [
            node("one", "True", json!({})),
            node("two", "False", json!({})),
            node("three", "True", json!({"unschedulable": true})),
            node("plane", "True", json!({"taints": [{"key": "node-role", "effect": "NoSchedule"}]})),
            node("five", "True", json!({"taints": [{"key": "soft", "effect": "PreferNoSchedule"}]})),
        ]});
        assert_eq!(ready_nodes(&nodes), ["one", "five"]);
        assert_eq!(ready_nodes(&json!({})), Vec::<String>::new());
    }
}
