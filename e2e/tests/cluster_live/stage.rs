//! The stage: a cluster, the operator as `deploy/` installs it, and the group of the manual's example.
//!
//! In: files of this repository. Out: a group, asked and waited for as a person would. Must not: help the operator.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bloodraven_testbed::cluster::{Cluster, SITES};
use bloodraven_testbed::kubernetes::established;
use bloodraven_testbed::wait;
use mysql_async::prelude::Queryable as _;
use serde_json::{Value, json};

use super::entrance::Entrance;
use super::ground::Ground;
use super::seen::RECORD;
use super::terms::Terms;
use super::timeline::Timeline;
use super::ways::{Forward, Way};

/// The namespace of the group that everything happens to.
pub(crate) const NAMESPACE: &str = "shop";
pub(crate) const GROUP: &str = "orders";

/// Where the operator is installed.
pub(crate) const OPERATORS: &str = "bloodraven";

/// The node from which clients come; it is never hurt.
const CLIENTS: &str = "fra";

/// The group's `leaseTimeout`.
pub(crate) const LEASE: Duration = Duration::from_secs(12);

/// How often the group is asked for.
const ASK_EVERY: Duration = Duration::from_millis(500);

pub(crate) struct Stage {
    // Before the cluster, which they lead into.
    ways: Mutex<BTreeMap<String, Arc<Way>>>,
    pub(crate) cluster: Arc<Ground>,
    /// By the one clock of this run.
    pub(crate) timeline: Timeline,
    pub(crate) namespace: String,
    /// Who is let in, and how.
    pub(crate) terms: Terms,
    reported: Mutex<BTreeSet<u64>>,
}

impl Stage {
    pub(crate) fn up() -> Self {
        Self::new(Arc::new(Ground::prepare()), Timeline::start(), NAMESPACE.to_owned(), Terms::ordinary())
    }

    /// The same group in a namespace of its own, on the same cluster, on terms of its own.
    pub(crate) fn beside(&self, name: &str, terms: Terms) -> Self {
        let namespace = format!("{NAMESPACE}-{name}");
        Self::new(Arc::clone(&self.cluster), self.timeline.clone(), namespace, terms)
    }

    fn new(cluster: Arc<Ground>, timeline: Timeline, namespace: String, terms: Terms) -> Self {
        Self { ways: Mutex::default(), cluster, timeline, namespace, terms, reported: Mutex::default() }
    }

    /// The machines, for what only they can suffer.
    pub(crate) fn machines(&self) -> &Cluster {
        self.cluster.machines()
    }

    /// Takes away what was made in a cluster of somebody else; one of our own goes as it is.
    pub(crate) fn leave(&self) {
        if let Ground::Others(_) = *self.cluster {
            self.delete_group();
            self.wait_until_gone();
            self.kubectl(&["delete", "namespace", NAMESPACE, OPERATORS, "--wait=false"]);
        }
    }

    /// `kubectl` words for something of the group's namespace.
    pub(crate) fn of_group<'a>(&'a self, words: &[&'a str]) -> Vec<&'a str> {
        [words, &["-n", &self.namespace]].concat()
    }

    pub(crate) fn kubectl(&self, words: &[&str]) -> String {
        self.cluster.kubectl(words).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Everything in `deploy/`, as it is committed; only the image has the name that the nodes know.
    pub(crate) fn install(&self) {
        let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy");
        let dns = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/testbed/src/kubernetes/dns_endpoint.yaml");
        self.apply_file(&deploy.join("crds"));
        self.apply_file(&dns);
        let served =
            established(Duration::from_mins(1), &["crd", "--all"], |words| self.cluster.kubectl(words).map(drop));
        served.unwrap_or_else(|error| panic!("{error}"));
        let text = std::fs::read_to_string(deploy.join("operator.yaml")).unwrap();
        let image = format!("bloodraven:{}", env!("CARGO_PKG_VERSION"));
        assert!(text.contains(&image), "deploy/operator.yaml has the image {image}");
        let file = self.cluster.logs().join("operator.yaml");
        std::fs::write(&file, text.replace(&image, &self.cluster.image())).unwrap();
        self.apply_file(&file);
        self.wait_for_rollout();
    }

    fn apply_file(&self, path: &Path) {
        let path = path.display().to_string();
        self.kubectl(&["apply", "--server-side", "-f", &path]);
    }

    /// The example of the manual, on these nodes.
    pub(crate) fn apply_group(&self) {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}});
        self.apply(&namespace);
        self.terms.secrets(&self.namespace).iter().for_each(|secret| self.apply(secret));
        self.apply(&example(self));
    }

    pub(crate) fn apply(&self, object: &Value) {
        self.cluster.apply(object).unwrap_or_else(|error| panic!("{error}"));
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

    /// The first reason of Degraded is that one.
    pub(crate) fn wait_for_reason(&self, reason: &str) {
        self.wait_until(&format!("Degraded for {reason}"), || {
            let all = self.object()?["status"]["conditions"].as_array()?.clone();
            let told =
                all.iter().any(|it| it["type"] == "Degraded" && it["status"] == "True" && it["reason"] == reason);
            told.then_some(())
        });
    }

    /// The copy of the record that is written first.
    pub(crate) fn record(&self) -> Option<Value> {
        serde_json::from_str(self.object()?["metadata"]["annotations"][RECORD].as_str()?).ok()
    }

    /// Another setting of mysqld, which needs new pods; gives its value.
    pub(crate) fn change_max_connections(&self) -> u64 {
        const WANTED: u64 = 160;
        let patch = json!({"spec": {"mysqlConf": {"max-connections": WANTED.to_string()}}}).to_string();
        self.kubectl(&self.of_group(&["patch", "mfg", GROUP, "--type=merge", "-p", &patch]));
        WANTED
    }

    /// That setting as a site's server has it; none: it does not answer.
    pub(crate) fn max_connections(&self, site: &str) -> Option<u64> {
        let door = self.door_at(site);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut conn = door.connect().await?;
            conn.query_first("SELECT @@global.max_connections").await.ok()?
        })
    }

    /// What the operator says of a site.
    pub(crate) fn site(&self, site: &str) -> Option<Value> {
        let sites = self.object()?["status"]["sites"].as_array()?.clone();
        sites.into_iter().find(|it| it["name"] == site)
    }

    /// The operator does not reach that site.
    pub(crate) fn wait_for_unreachable(&self, site: &str) {
        self.wait_until(&format!("{site} is unreachable"), || {
            (self.site(site)?["state"] == "unreachable").then_some(())
        });
    }

    /// Kubernetes has lost that node.
    pub(crate) fn wait_for_lost_node(&self, node: &str) {
        self.wait_until(&format!("node {node} is not Ready"), || {
            let all = self.cluster.get(&["node", node]).ok()?["status"]["conditions"].as_array()?.clone();
            all.iter().any(|it| it["type"] == "Ready" && it["status"] != "True").then_some(())
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

    /// A request as an admin writes it.
    pub(crate) fn ask_for(&self, site: &str) {
        let annotation = format!("bloodraven.shipstream.io/planned-failover={site}");
        self.kubectl(&self.of_group(&["annotate", "mfg", GROUP, "--overwrite", &annotation]));
    }

    pub(crate) fn planned_phase(&self) -> Option<String> {
        self.object()?["status"]["plannedFailover"]["phase"].as_str().map(str::to_owned)
    }

    /// The way through `-primary`, from the clients' node.
    pub(crate) fn front_door(&self) -> Entrance {
        self.entrance(CLIENTS, "mysql-orders-primary", "shipstream.io/role=primary")
    }

    /// The way straight to a site's server, from the site's own node: it leads there also while the node is cut off, and
    /// again after it was off.
    pub(crate) fn door_at(&self, site: &str) -> Entrance {
        self.entrance(site, &format!("mysql-orders-{site}-internal"), &format!("shipstream.io/site={site}"))
    }

    /// The way from a node to a Service, and whom clients trust at its end.
    pub(crate) fn entrance(&self, from: &str, service: &str, labels: &str) -> Entrance {
        let at = self.way(from, service, labels).address();
        Entrance { at, trust: self.terms.trust(&self.namespace, service) }
    }

    /// Each is made once and lives as long as the stage.
    fn way(&self, from: &str, service: &str, labels: &str) -> Arc<Way> {
        let mut ways = self.ways.lock().unwrap();
        let make = || match *self.cluster {
            Ground::Own(ref cluster) => Way::Door(cluster.door(from, self.service(service)).unwrap()),
            Ground::Others(_) => {
                let labels = format!("app.kubernetes.io/name=mysql,{labels}");
                Way::Forward(Forward::open(&self.cluster, &self.namespace, &labels, self.cluster.logs()))
            }
        };
        Arc::clone(ways.entry(service.to_owned()).or_insert_with(|| Arc::new(make())))
    }

    fn service(&self, name: &str) -> SocketAddr {
        let found = self.cluster.get(&self.of_group(&["service", name])).unwrap();
        let address = found["spec"]["clusterIP"].as_str().unwrap();
        format!("{address}:3306").parse().unwrap()
    }
}

/// `examples/three-sites-dr.yaml` with this cluster's zones, volumes and image, and times for a test.
fn example(stage: &Stage) -> Value {
    let ground = &stage.cluster;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/three-sites-dr.yaml");
    let mut group: Value = serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    group["metadata"]["namespace"] = json!(stage.namespace);
    let spec = group["spec"].as_object_mut().unwrap();
    for site in spec["sites"].as_array_mut().unwrap() {
        site["zone"] = json!(ground.zone(site["name"].as_str().unwrap()));
        site["storage"] = json!({"storageClassName": ground.storage_class(), "size": "1Gi"});
        site.as_object_mut().unwrap().remove("resources");
    }
    let small = [("innodb-buffer-pool-size", "64M"), ("innodb-redo-log-capacity", "32M"), ("mysqlx", "OFF")];
    let small: BTreeMap<&str, &str> = small.into();
    stage.terms.write_into(spec);
    spec.extend([
        ("image".to_owned(), json!(ground.mysql_image())),
        ("mysqlConf".to_owned(), json!(small)),
        // Fault follows fault here.
        ("failoverCooldown".to_owned(), json!("0s")),
        ("pollInterval".to_owned(), json!("1s")),
        ("sidecar".to_owned(), json!({"leaseTimeout": format!("{}s", LEASE.as_secs()), "peerCheckInterval": "2s"})),
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
    let wanted = object["spec"]["sites"].as_array().map_or(0, Vec::len);
    (!strays.is_empty() || voters != wanted || sites.len() != wanted)
        .then(|| format!("{voters} voters; not replicating: {strays:?}"))
}
