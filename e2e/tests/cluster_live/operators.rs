//! The operator's pods: who leads, what it counts; killed, scaled, rolled.
//!
//! In: the Lease, the Deployment, metrics. Out: what they say. Must not: take a pod that is gone for the leader.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};

use super::ground::Ground;
use super::stage::{GROUP, OPERATORS, Stage};

/// How long a page may take.
const PAGE_LIMIT: Duration = Duration::from_secs(5);

impl Stage {
    /// So many answer, and no other is there.
    fn wait_for_operators(&self, replicas: u64) {
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

    /// Its pod goes at once; the Deployment makes another.
    pub(crate) fn kill_operator(&self) {
        let words = ["delete", "pods", "-n", OPERATORS, "--all", "--grace-period=0", "--force", "--wait=false"];
        self.kubectl(&words);
    }

    /// Who leads, and is not on its way out: the identity in the Lease.
    pub(crate) fn leading(&self) -> String {
        self.wait_until("somebody leads", || {
            let (holder, _) = self.lease()?;
            let (pod, _) = holder.split_once('_')?;
            let stays = |it: &Value| it["metadata"]["name"] == *pod && it["metadata"]["deletionTimestamp"].is_null();
            self.operator_pods().iter().any(stays).then(|| holder.clone())
        })
    }

    /// The Lease: who holds it, and the revision of its last write.
    pub(crate) fn lease(&self) -> Option<(String, u64)> {
        let lease = self.cluster.get(&["lease", "bloodraven.shipstream.io", "-n", OPERATORS]).ok()?;
        let holder = lease["spec"]["holderIdentity"].as_str()?.to_owned();
        Some((holder, revision(&lease)?))
    }

    /// Another operator than this one leads, and has written the group's status.
    pub(crate) fn wait_for_status_of_another(&self, than: &str) -> String {
        let (now, taken) =
            self.wait_until("another leader", || self.lease().filter(|(now, _)| now != than && !now.is_empty()));
        // Only the leader writes status, and a later write has a higher revision.
        self.wait_until(&format!("a status by {now}"), || {
            let object = self.object()?;
            (revision(&object)? > taken).then_some(())
        });
        now
    }

    /// Every pod of the operator is the installed one, and answers.
    pub(crate) fn wait_for_rollout(&self) {
        let words = ["rollout", "status", "deployment/bloodraven", "-n", OPERATORS, "--timeout=40s"];
        self.wait_until("the operator is rolled out", || self.cluster.kubectl(&words).ok());
    }

    pub(crate) fn restart_operator_in_good_order(&self) {
        self.kubectl(&["rollout", "restart", "deployment/bloodraven", "-n", OPERATORS]);
    }

    /// Two of them, which nobody ends: a kubelet would kill one that stands still for a minute, and a move taints the nodes of
    /// the site that it left.
    pub(crate) fn two_patient_operators(&self) {
        self.change_operators(2, &json!(60), &json!([{"operator": "Exists"}]));
    }

    /// One, as it was installed.
    pub(crate) fn one_operator_as_installed(&self) {
        self.change_operators(1, &Value::Null, &Value::Null);
    }

    fn change_operators(&self, replicas: u64, silent_probes: &Value, tolerations: &Value) {
        let container = json!({"name": "bloodraven", "livenessProbe": {"failureThreshold": silent_probes}});
        let pod = json!({"containers": [container], "tolerations": tolerations});
        let patch = json!({"spec": {"replicas": replicas, "template": {"spec": pod}}}).to_string();
        self.kubectl(&["patch", "deployment", "bloodraven", "-n", OPERATORS, "--type=strategic", "-p", &patch]);
        self.wait_for_rollout();
        self.wait_for_operators(replicas);
    }

    /// The pods of the operator.
    pub(crate) fn operator_pods(&self) -> Vec<Value> {
        let found = self.cluster.get(&["pods", "-n", OPERATORS, "-l", "app.kubernetes.io/name=bloodraven"]);
        found.ok().and_then(|found| found["items"].as_array().cloned()).unwrap_or_default()
    }

    /// A page of a pod, asked on its own node; none: it does not answer.
    pub(crate) fn page(&self, pod: &Value, path: &str) -> Option<String> {
        if let Ground::Others(_) = *self.cluster {
            return self.page_through_the_api(pod, path);
        }
        let (node, address) = (pod["spec"]["nodeName"].as_str()?, pod["status"]["podIP"].as_str()?);
        let to: SocketAddr = format!("{address}:8080").parse().ok()?;
        let door = self.machines().door(node, to).ok()?;
        let mut stream = TcpStream::connect(door.address()).ok()?;
        stream.set_read_timeout(Some(PAGE_LIMIT)).ok()?;
        write!(stream, "GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        head.lines().next()?.contains(" 200 ").then(|| body.to_owned())
    }

    /// The same where the nodes are not ours.
    fn page_through_the_api(&self, pod: &Value, path: &str) -> Option<String> {
        let (namespace, name) = (pod["metadata"]["namespace"].as_str()?, pod["metadata"]["name"].as_str()?);
        self.cluster
            .kubectl(&["get", "--raw", &format!("/api/v1/namespaces/{namespace}/pods/{name}:8080/proxy{path}")])
            .ok()
    }

    /// A figure of that pod of the operator, by the beginnings of its lines; none: the pod does not answer.
    fn figure(&self, pod: &str, series: &str, which: &[&str]) -> Option<u64> {
        let pods = self.operator_pods();
        let pod = pods.iter().find(|it| it["metadata"]["name"] == pod)?;
        Some(sum_of(&self.page(pod, "/metrics")?, series, which))
    }

    /// 1 while it takes itself for the leader, else 0.
    pub(crate) fn leads_by_its_metrics(&self, pod: &str) -> Option<u64> {
        self.figure(pod, "bloodraven_leader", &[])
    }

    /// How often a loop of the leader has panicked; none: it does not answer.
    pub(crate) fn panics(&self) -> Option<u64> {
        self.figure(&self.leader()?, "bloodraven_loop_panics_total", &[])
    }

    /// How often the leader has looked for a site of the group in vain; none: it does not answer.
    pub(crate) fn failed_polls(&self, site: &str) -> Option<u64> {
        let group = [format!("namespace=\"{}\"", self.namespace), format!("site=\"{site}\"")];
        self.figure(&self.leader()?, "bloodraven_poll_failures_total", &[&group[0], &group[1]])
    }

    /// How often the container of that pod of the operator was started again.
    pub(crate) fn restarts_of_operator(&self, pod: &str) -> Option<u64> {
        let pods = self.operator_pods();
        let pod = pods.iter().find(|it| it["metadata"]["name"] == pod)?;
        pod["status"]["containerStatuses"][0]["restartCount"].as_u64()
    }

    /// How many failovers of the group that pod of the operator has counted in its life; none: it does not answer.
    pub(crate) fn failovers_counted_by(&self, pod: &str) -> Option<u64> {
        self.figure(
            pod,
            "bloodraven_failovers_total",
            &[&format!("group=\"{GROUP}\""), &format!("namespace=\"{}\"", self.namespace)],
        )
    }

    /// How many Events of that reason the group has.
    pub(crate) fn events(&self, reason: &str) -> u64 {
        self.events_of(reason).iter().map(|event| event["series"]["count"].as_u64().unwrap_or(1)).sum()
    }

    /// What the Events of that reason say.
    pub(crate) fn notes(&self, reason: &str) -> Vec<String> {
        self.events_of(reason).iter().filter_map(|event| event["note"].as_str()).map(str::to_owned).collect()
    }

    fn events_of(&self, reason: &str) -> Vec<Value> {
        let found = self.cluster.get(&self.of_group(&["events.v1.events.k8s.io"])).unwrap_or_default();
        let all = found["items"].as_array().cloned().unwrap_or_default();
        all.into_iter().filter(|event| event["reason"] == reason && event["regarding"]["name"] == GROUP).collect()
    }
}

/// The store's revision of an object.
pub(crate) fn revision(object: &Value) -> Option<u64> {
    object["metadata"]["resourceVersion"].as_str()?.parse().ok()
}

/// The sum of a series over all of its lines that contain these texts.
fn sum_of(metrics: &str, series: &str, which: &[&str]) -> u64 {
    let of_series = |line: &&str| line.strip_prefix(series).is_some_and(|rest| rest.starts_with(['{', ' ']));
    let lines = metrics.lines().filter(of_series).filter(|line| which.iter().all(|text| line.contains(text)));
    lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
}

#[test]
fn figures_are_added_up_over_the_lines_of_their_series() {
    let metrics = "# TYPE bloodraven_failovers counter\n\
        bloodraven_failovers_total{namespace=\"shop\",group=\"orders\",target_site=\"iad\"} 2\n\
        bloodraven_failovers_total{namespace=\"shop\",group=\"orders\",target_site=\"pdx\"} 1\n\
        bloodraven_failovers_total{namespace=\"shop\",group=\"other\",target_site=\"pdx\"} 7\n\
        bloodraven_leader 1\n";
    assert_eq!(sum_of(metrics, "bloodraven_failovers_total", &["namespace=\"shop\"", "group=\"orders\""]), 3);
    assert_eq!(sum_of(metrics, "bloodraven_leader", &[]), 1);
    assert_eq!(sum_of(metrics, "bloodraven_lead", &[]), 0);
}
