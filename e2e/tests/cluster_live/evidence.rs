//! Evidence: what there is to see when a test fails, written down while the cluster is still there.
//!
//! In: a stage whose test panics. Out: a folder beside the cluster's logs. Must not: panic itself, or wait without an end.

use std::path::PathBuf;

use bloodraven_testbed::cluster::SITES;

use super::stage::{OPERATORS, Stage};

/// Writes it when it is dropped by a test that fails.
pub(crate) struct Evidence<'a>(&'a Stage);

impl Drop for Evidence<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.timeline.note("the test fails");
            self.0.write_evidence();
        }
    }
}

impl Stage {
    pub(crate) fn evidence(&self) -> Evidence<'_> {
        Evidence(self)
    }

    fn write_evidence(&self) {
        let folder: PathBuf = self.cluster.logs().join(format!("evidence-{}", self.namespace));
        let _ = std::fs::create_dir_all(&folder);
        let write = |name: &str, text: &str| drop(std::fs::write(folder.join(name), text));
        let save = |name: &str, words: &[&str]| {
            write(name, &self.cluster.kubectl(words).unwrap_or_else(|error| error.to_string()));
        };
        write("timeline.txt", &self.timeline.text());
        save("group.yaml", &self.of_group(&["get", "mfg", "-o", "yaml"]));
        save("describe-group.txt", &self.of_group(&["describe", "mfg"]));
        save("pods.yaml", &["get", "pods", "-A", "-o", "yaml"]);
        save("objects.txt", &["get", "all,pvc,pv,nodes,endpointslices,leases", "-A", "-o", "wide"]);
        save("events.txt", &["get", "events.v1.events.k8s.io", "-A", "--sort-by=.metadata.creationTimestamp"]);
        save("describe.txt", &self.of_group(&["describe", "pods"]));
        let operators = ["logs", "-n", OPERATORS, "-l", "app.kubernetes.io/name=bloodraven", "--tail=-1"];
        save("operator.log", &operators);
        save("operator-before.log", &[&operators[..], &["-p"]].concat());
        for pod in self.operator_pods() {
            let name = pod["metadata"]["name"].as_str().unwrap_or_default();
            write(&format!("metrics-{name}.txt"), &self.page(&pod, "/metrics").unwrap_or_else(silent));
        }
        for site in SITES {
            let Some(pod) = self.pod_object(site) else { continue };
            write(&format!("metrics-{site}.txt"), &self.page(&pod, "/metrics").unwrap_or_else(silent));
            let pod = pod["metadata"]["name"].as_str().unwrap_or_default();
            for container in ["init", "sidecar", "mysql"] {
                save(&format!("{site}-{container}.log"), &self.of_group(&["logs", pod, "-c", container]));
                save(&format!("{site}-{container}-before.log"), &self.of_group(&["logs", pod, "-c", container, "-p"]));
            }
        }
    }
}

fn silent() -> String {
    "no answer\n".to_owned()
}
