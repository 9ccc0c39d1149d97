//! The stage: a cluster, the operator as `deploy/` installs it, and the group of the manual's example.
//!
//! In: files of this repository. Out: a group, asked and waited for as a person would. Must not: help the operator.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bloodraven_e2e::programs;
use bloodraven_testbed::cluster::{BLOODRAVEN_IMAGE, Cluster, Container, Door, MYSQL_IMAGE, SITES, STORAGE_CLASS};
use bloodraven_testbed::wait;
use rustix::process::Signal;
use serde_json::{Value, json};

/// The namespace of the group that everything happens to.
pub(crate) const NAMESPACE: &str = "shop";
pub(crate) const GROUP: &str = "orders";

/// Where the operator is installed.
pub(crate) const OPERATORS: &str = "bloodraven";

/// The node from which clients come; it is never hurt.
const CLIENTS: &str = "fra";

/// How often the group is asked for.
const ASK_EVERY: Duration = Duration::from_millis(500);

pub(crate) struct Stage {
    pub(crate) cluster: Arc<Cluster>,
    namespace: String,
    reported: Mutex<BTreeSet<u64>>,
}

/// Writes down what there is to see when a test fails, while the cluster is still there.
pub(crate) struct Evidence<'a>(&'a Stage);

impl Drop for Evidence<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.write_evidence();
        }
    }
}

impl Stage {
    pub(crate) fn up() -> Self {
        let options = Cluster::options(programs::testbed());
        let cluster = options.workspace(programs::bloodraven(), programs::static_keeper()).start();
        let cluster = cluster.unwrap_or_else(|error| panic!("no cluster: {error}"));
        Self { cluster: Arc::new(cluster), namespace: NAMESPACE.to_owned(), reported: Mutex::default() }
    }

    /// The same group in a namespace of its own, on the same cluster.
    pub(crate) fn beside(&self, number: u32) -> Self {
        let namespace = format!("{NAMESPACE}-{number}");
        Self { cluster: Arc::clone(&self.cluster), namespace, reported: Mutex::default() }
    }

    /// `kubectl` words for something of the group's namespace.
    fn of_group<'a>(&'a self, words: &[&'a str]) -> Vec<&'a str> {
        [words, &["-n", &self.namespace]].concat()
    }

    pub(crate) fn evidence(&self) -> Evidence<'_> {
        Evidence(self)
    }

    fn kubectl(&self, words: &[&str]) -> String {
        self.cluster.kubectl(words).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Everything in `deploy/`, as it is committed; only the image has the name that the nodes know.
    pub(crate) fn install(&self) {
        let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy");
        let dns = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/testbed/src/kubernetes/dns_endpoint.yaml");
        self.apply_file(&deploy.join("crds"));
        self.apply_file(&dns);
        self.kubectl(&["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"]);
        let text = std::fs::read_to_string(deploy.join("operator.yaml")).unwrap();
        let image = format!("bloodraven:{}", env!("CARGO_PKG_VERSION"));
        assert!(text.contains(&image), "deploy/operator.yaml has the image {image}");
        let file = self.cluster.logs().join("operator.yaml");
        std::fs::write(&file, text.replace(&image, BLOODRAVEN_IMAGE)).unwrap();
        self.apply_file(&file);
        let ready = ["rollout", "status", "deployment/bloodraven", "-n", OPERATORS, "--timeout=180s"];
        self.kubectl(&ready);
    }

    fn apply_file(&self, path: &Path) {
        let path = path.display().to_string();
        self.kubectl(&["apply", "--server-side", "-f", &path]);
    }

    /// The example of the manual, on these nodes.
    pub(crate) fn apply_group(&self) {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}});
        let secret = json!({"apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "orders-mysql", "namespace": self.namespace},
            "stringData": {"username": "ops", "password": "ops-pw", "MYSQL_ROOT_PASSWORD": "root-pw",
                "MYSQL_REPLICATION_USER": "repl", "MYSQL_REPLICATION_PASSWORD": "repl-pw"}});
        let app = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "orders-app", "namespace": self.namespace},
            "stringData": {"username": APP.0, "password": APP.1}});
        for object in [namespace, secret, app, example(&self.namespace)] {
            self.cluster.apply(&object).unwrap_or_else(|error| panic!("{error}"));
        }
    }

    pub(crate) fn delete_group(&self) {
        self.kubectl(&self.of_group(&["delete", "mfg", GROUP, "--wait=false"]));
    }

    /// A deleted group is gone, and its volumes are let go, so that the next one begins with nothing.
    pub(crate) fn wait_until_gone(&self) {
        self.wait_until("the group and its pods are gone", || {
            let left = self.cluster.kubectl(&self.of_group(&["get", "mfg,pods", "-o", "name"])).ok()?;
            left.trim().is_empty().then_some(())
        });
        self.kubectl(&self.of_group(&["delete", "pvc", "--all", "--wait=false"]));
        self.wait_until("volumes are let go", || {
            let left = self.cluster.kubectl(&self.of_group(&["get", "pvc", "-o", "name"])).ok()?;
            left.trim().is_empty().then_some(())
        });
    }

    /// The group's object.
    pub(crate) fn object(&self) -> Option<Value> {
        self.cluster.get(&self.of_group(&["mfg", GROUP])).ok()
    }

    /// The site that may write, by the record.
    pub(crate) fn active(&self) -> String {
        let found = wait::until_every(Duration::from_mins(1), ASK_EVERY, || {
            let site = self.object()?["status"]["activeSite"].as_str()?.to_owned();
            (!site.is_empty()).then_some(site)
        });
        found.expect("a site has authority")
    }

    /// Ready, not degraded, every site in place. A site with transactions that nobody else has is copied anew, as its
    /// condition tells an admin to, after what it holds was noted.
    pub(crate) fn wait_until_whole(&self, after: &str, limit: Duration) {
        let mut last = String::new();
        let whole = wait::until_every(limit, ASK_EVERY, || {
            let object = self.object()?;
            for (site, set) in divergent(&object) {
                self.give_up(&site, &set);
            }
            let missing = missing(&object);
            last = missing.clone().unwrap_or_default();
            missing.is_none().then_some(())
        });
        assert!(whole.is_some(), "{after}: {}/{GROUP} is not whole: {last}", self.namespace);
    }

    /// Everything that a reported site held when it was given up.
    pub(crate) fn reported(&self) -> BTreeSet<u64> {
        self.reported.lock().unwrap().clone()
    }

    fn give_up(&self, site: &str, set: &str) {
        let server = set.split(':').next().unwrap_or_default();
        let annotation = format!("bloodraven.shipstream.io/reclone-site={site}:{server}");
        let Some(held) = super::judge::ids(self, site) else { return };
        self.reported.lock().unwrap().extend(held);
        // Asked for again each time it is seen: the same request changes nothing.
        let _ = self.cluster.kubectl(&self.of_group(&["annotate", "mfg", GROUP, "--overwrite", &annotation]));
    }

    /// The other site that may be promoted.
    pub(crate) fn other_candidate(&self, than: &str) -> &'static str {
        let spec = self.object().expect("the group")["spec"].clone();
        let is_candidate = |name: &str| {
            let all = spec["sites"].as_array().into_iter().flatten();
            all.into_iter().any(|site| site["name"] == name && site["role"] == "primary-candidate")
        };
        SITES.into_iter().find(|name| *name != than && is_candidate(name)).expect("another candidate")
    }

    /// Waits for anything.
    pub(crate) fn wait_until<T>(&self, what: &str, condition: impl FnMut() -> Option<T>) -> T {
        let came = wait::until_every(super::HEALS_WITHIN, ASK_EVERY, condition);
        came.unwrap_or_else(|| panic!("not in time: {what}; {}", self.object().unwrap_or_default()["status"]))
    }

    pub(crate) fn wait_for_condition(&self, name: &str, status: &str) {
        self.wait_until(&format!("{name} {status}"), || {
            let all = self.object()?["status"]["conditions"].as_array()?.clone();
            all.iter().any(|it| it["type"] == name && it["status"] == status).then_some(())
        });
    }

    /// Another site than this one writes.
    pub(crate) fn wait_for_another(&self, before: &str, limit: Duration) {
        let moved = wait::until_every(limit, ASK_EVERY, || {
            let status = self.object()?["status"].clone();
            let site = status["activeSite"].as_str()?;
            (!site.is_empty() && site != before && status["authority"]["phase"] == "Stable").then_some(())
        });
        assert!(moved.is_some(), "nobody took over from {before}: {}", self.object().unwrap_or_default()["status"]);
    }

    /// The pod of a site that is not on its way out.
    pub(crate) fn pod(&self, site: &str) -> Option<String> {
        let label = format!("shipstream.io/site={site},app.kubernetes.io/name=mysql");
        let found = self.cluster.get(&self.of_group(&["pods", "-l", &label])).ok()?;
        let pods = found["items"].as_array()?;
        let live = pods.iter().find(|pod| pod["metadata"]["deletionTimestamp"].is_null())?;
        live["metadata"]["name"].as_str().map(str::to_owned)
    }

    pub(crate) fn kill_container(&self, site: &str, container: &str) {
        let pod = self.pod(site).expect("a pod");
        let of = Container { namespace: &self.namespace, pod: &pod, container };
        self.cluster.kill(of, None).unwrap();
    }

    /// mysqld of that site stands still; its keeper does not.
    pub(crate) fn halt_mysqld(&self, site: &str) {
        let pod = self.pod(site).expect("a pod");
        let of = Container { namespace: &self.namespace, pod: &pod, container: "mysql" };
        self.cluster.signal(of, Some("mysqld"), Signal::STOP).unwrap();
    }

    pub(crate) fn delete_pod(&self, site: &str) {
        let pod = self.pod(site).expect("a pod");
        self.cluster.delete_pod(&self.namespace, &pod).unwrap();
    }

    pub(crate) fn force_delete_pod(&self, site: &str) {
        let pod = self.pod(site).expect("a pod");
        self.cluster.force_delete_pod(&self.namespace, &pod).unwrap();
    }

    pub(crate) fn delete_all_pods(&self) {
        self.kubectl(&self.of_group(&["delete", "pods", "-l", "app.kubernetes.io/name=mysql", "--wait=false"]));
    }

    /// A request as an admin writes it.
    pub(crate) fn ask_for(&self, site: &str) {
        let annotation = format!("bloodraven.shipstream.io/planned-failover={site}");
        self.kubectl(&self.of_group(&["annotate", "mfg", GROUP, "--overwrite", &annotation]));
    }

    pub(crate) fn planned_phase(&self) -> Option<String> {
        self.object()?["status"]["plannedFailover"]["phase"].as_str().map(str::to_owned)
    }

    /// Returns when so many answer, and no other.
    pub(crate) fn scale_operator(&self, replicas: u64) {
        let wanted = format!("--replicas={replicas}");
        self.kubectl(&["scale", "deployment/bloodraven", "-n", OPERATORS, &wanted]);
        // Controllers that were without their API server take a while to go on.
        self.wait_until("the operator's pods", || {
            let status = self.cluster.get(&["deployment", "bloodraven", "-n", OPERATORS]).ok()?["status"].clone();
            let counts = ["replicas", "readyReplicas"].map(|count| status[count].as_u64());
            (counts == [Some(replicas); 2]).then_some(())
        });
    }

    /// The operator's pod that leads.
    pub(crate) fn leader(&self) -> Option<String> {
        let lease = self.cluster.get(&["lease", "bloodraven.shipstream.io", "-n", OPERATORS]).ok()?;
        lease["spec"]["holderIdentity"].as_str()?.split_once('_').map(|(pod, _)| pod.to_owned())
    }

    pub(crate) fn wait_for_another_leader(&self, than: &str) {
        self.wait_until("another leader", || self.leader().filter(|now| now != than && !now.is_empty()));
    }

    /// What the pod of a site is called: `primary`, `replica` or `fenced`.
    pub(crate) fn role(&self, site: &str) -> Option<String> {
        let pod = self.cluster.get(&self.of_group(&["pod", &self.pod(site)?])).ok()?;
        pod["metadata"]["labels"]["shipstream.io/role"].as_str().map(str::to_owned)
    }

    pub(crate) fn dns_target(&self) -> Option<String> {
        let found = self.cluster.get(&self.of_group(&["dnsendpoint", "bloodraven-orders"])).ok()?;
        found["spec"]["endpoints"][0]["targets"][0].as_str().map(str::to_owned)
    }

    /// The address that the DNS record has while that site writes.
    pub(crate) fn address_of(&self, site: &str) -> Option<String> {
        let spec = self.object()?["spec"].clone();
        let found = spec["sites"].as_array()?.iter().find(|it| it["name"] == site)?.clone();
        found["lbIP"].as_str().map(str::to_owned)
    }

    /// The nodes of the candidates get the labels by which the example's taints find them.
    pub(crate) fn offer_nodes_for_taints(&self) {
        for site in SITES {
            let site_label = format!("shipstream.io/site.orders={site}");
            self.kubectl(&[
                "label",
                "node",
                site,
                "--overwrite",
                "shipstream.io/failover-group.orders=true",
                &site_label,
            ]);
        }
    }

    pub(crate) fn is_tainted(&self, node: &str) -> bool {
        let found = self.cluster.get(&["node", node]).unwrap_or_default();
        let all = found["spec"]["taints"].as_array().cloned().unwrap_or_default();
        all.iter().any(|taint| taint["key"] == "shipstream.io/db-readonly-orders")
    }

    /// Its pod goes at once; the Deployment makes another.
    pub(crate) fn kill_operator(&self) {
        let words = ["delete", "pods", "-n", OPERATORS, "--all", "--grace-period=0", "--force", "--wait=false"];
        self.kubectl(&words);
    }

    /// A way to a Service of the group, from the clients' node.
    pub(crate) fn door(&self, service: &str) -> Door {
        let found = self.cluster.get(&self.of_group(&["service", service])).unwrap();
        let address = found["spec"]["clusterIP"].as_str().unwrap();
        let to: SocketAddr = format!("{address}:3306").parse().unwrap();
        self.cluster.door(CLIENTS, to).unwrap()
    }

    /// What the contract lists, no more and no less; and what a person sees first.
    pub(crate) fn objects_are_as_promised(&self) {
        let names = |kind: &str| -> Vec<String> {
            let listed =
                self.kubectl(&self.of_group(&["get", kind, "-l", "shipstream.io/failover-group=orders", "-o", "name"]));
            listed.lines().filter_map(|line| line.rsplit('/').next()).map(str::to_owned).collect()
        };
        let sites = |suffix: &str| -> Vec<String> {
            let mut all: Vec<String> = SITES.iter().map(|site| format!("mysql-orders-{site}{suffix}")).collect();
            all.sort();
            all
        };
        assert_eq!(names("deployment"), sites(""));
        assert_eq!(names("pvc"), sites("-data"));
        let mut config_maps = sites("-config");
        config_maps.push("mysql-orders-spec".to_owned());
        assert_eq!(names("configmap"), config_maps);
        let mut services = [sites(""), sites("-internal")].concat();
        services.extend(["mysql-orders-primary", "mysql-orders-replicas"].map(str::to_owned));
        services.sort();
        assert_eq!(names("service"), services);
        assert_eq!(names("poddisruptionbudget"), ["mysql-orders"]);
        assert_eq!(names("secret"), ["mysql-orders-authority"]);
        assert_eq!(self.kubectl(&self.of_group(&["get", "dnsendpoint", "-o", "name"])).lines().count(), 1);
        let table = self.kubectl(&self.of_group(&["get", "mfg"]));
        let words: Vec<&str> = table.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(&words[..4], [GROUP, &self.active(), "True", "False"], "{table}");
    }

    fn write_evidence(&self) {
        let folder: PathBuf = self.cluster.logs().join(format!("evidence-{}", self.namespace));
        let _ = std::fs::create_dir_all(&folder);
        let save = |name: &str, words: &[&str]| {
            let text = self.cluster.kubectl(words).unwrap_or_else(|error| error.to_string());
            let _ = std::fs::write(folder.join(name), text);
        };
        save("group.yaml", &self.of_group(&["get", "mfg", "-o", "yaml"]));
        save("pods.yaml", &["get", "pods", "-A", "-o", "yaml"]);
        save("objects.txt", &["get", "all,pvc,pv,nodes,endpointslices", "-A", "-o", "wide"]);
        save("events.txt", &["get", "events.v1.events.k8s.io", "-A", "--sort-by=.metadata.creationTimestamp"]);
        save("describe.txt", &self.of_group(&["describe", "pods"]));
        save("operator.log", &["logs", "-n", OPERATORS, "-l", "app.kubernetes.io/name=bloodraven", "--tail=-1"]);
        save(
            "operator-before.log",
            &["logs", "-n", OPERATORS, "-l", "app.kubernetes.io/name=bloodraven", "--tail=-1", "-p"],
        );
        for site in SITES {
            let Some(pod) = self.pod(site) else { continue };
            for container in ["init", "sidecar", "mysql"] {
                save(&format!("{site}-{container}.log"), &self.of_group(&["logs", &pod, "-c", container]));
                save(&format!("{site}-{container}-before.log"), &self.of_group(&["logs", &pod, "-c", container, "-p"]));
            }
        }
    }
}

/// The account of the clients.
pub(crate) const APP: (&str, &str) = ("shop", "shop-pw");

/// `examples/three-sites-dr.yaml` with this cluster's zones, volumes and image, and times for a test.
fn example(namespace: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/three-sites-dr.yaml");
    let mut group: Value = serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    group["metadata"]["namespace"] = json!(namespace);
    let spec = group["spec"].as_object_mut().unwrap();
    for site in spec["sites"].as_array_mut().unwrap() {
        site["zone"] = site["name"].clone();
        site["storage"] = json!({"storageClassName": STORAGE_CLASS, "size": "1Gi"});
        site.as_object_mut().unwrap().remove("resources");
    }
    let small = [("innodb-buffer-pool-size", "64M"), ("innodb-redo-log-capacity", "32M"), ("mysqlx", "OFF")];
    let small: BTreeMap<&str, &str> = small.into();
    spec.remove("secretName");
    spec.extend([
        ("image".to_owned(), json!(MYSQL_IMAGE)),
        ("credentials".to_owned(), json!({"operatorSecret": "orders-mysql", "appSecret": "orders-app"})),
        ("mysqlConf".to_owned(), json!(small)),
        // Fault follows fault here.
        ("failoverCooldown".to_owned(), json!("0s")),
        ("pollInterval".to_owned(), json!("1s")),
        ("sidecar".to_owned(), json!({"leaseTimeout": "12s", "peerCheckInterval": "2s"})),
    ]);
    group
}

/// Sites that are reported to have what no other has, and what that is.
fn divergent(object: &Value) -> Vec<(String, String)> {
    let sites = object["status"]["sites"].as_array().cloned().unwrap_or_default();
    let named = sites.iter().filter_map(|site| Some((site["name"].as_str()?, site["divergentGtid"].as_str()?)));
    named.filter(|(_, set)| !set.is_empty()).map(|(site, set)| (site.to_owned(), set.to_owned())).collect()
}

/// What is not as it should be, first things first.
fn missing(object: &Value) -> Option<String> {
    let status = &object["status"];
    let condition = |name: &str| {
        let all = status["conditions"].as_array().into_iter().flatten();
        all.into_iter().find(|it| it["type"] == name).cloned().unwrap_or_default()
    };
    let (ready, degraded) = (condition("Ready"), condition("Degraded"));
    if ready["status"] != "True" || degraded["status"] != "False" {
        return Some(format!("Ready {ready}, Degraded {degraded}; {status}"));
    }
    if status["observedGeneration"] != object["metadata"]["generation"] || status["authority"]["phase"] != "Stable" {
        return Some(format!("not settled: {status}"));
    }
    let follows = |site: &&Value| site["replicating"] == true || site["name"] == status["activeSite"];
    let sites = status["sites"].as_array()?;
    let strays: Vec<&Value> = sites.iter().filter(|site| !follows(site)).collect();
    let voters = status["authority"]["voters"].as_array().map_or(0, Vec::len);
    (!strays.is_empty() || voters != 3).then(|| format!("{voters} voters; not replicating: {strays:?}"))
}
