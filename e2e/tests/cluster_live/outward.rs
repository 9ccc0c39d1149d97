//! How the group looks from the outside: labels, the DNS record, taints, the objects, and what `kubectl` shows of it.
//!
//! In: the API server. Out: what is there. Must not: change anything but the labels by which taints find nodes.

use bloodraven_testbed::cluster::SITES;

use super::marks::Change;
use super::seen::TAINT;
use super::stage::{GROUP, Stage};

impl Stage {
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
        all.iter().any(|taint| taint["key"] == TAINT)
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

    /// What is written in a move to a site that was fenced before, in the order of the contract: authority is taken back, the
    /// old primary loses its label, the new one writes, has the label, then the name, then the old site's nodes have the
    /// taint and the new one's have not.
    pub(crate) fn order_of_a_move(&self, from: &str, to: &str) -> Vec<Change> {
        let role = |site: &str, role: &str| Change::Role { site: site.to_owned(), role: role.to_owned() };
        let record = |phase: &str, site: &str| Change::Authority { phase: phase.to_owned(), site: site.to_owned() };
        let untainted = self.is_tainted(to).then(|| Change::Taint { node: to.to_owned(), on: false });
        let mut order = vec![
            record("Revoking", ""),
            role(from, "fenced"),
            record("Stable", to),
            role(to, "primary"),
            Change::Dns(self.address_of(to).unwrap_or_default()),
            Change::Taint { node: from.to_owned(), on: true },
        ];
        order.extend(untainted);
        order
    }

    /// `kubectl describe` and `kubectl get` tell what happened to somebody who knows nothing yet.
    pub(crate) fn story_is_told(&self, to: &str) {
        let told = self.kubectl(&self.of_group(&["describe", "mfg", GROUP]));
        for word in ["Conditions:", "Ready", "Degraded", "TopologyPolled", "Healthy", "Events:", "FailoverExecuted"] {
            assert!(told.contains(word), "`kubectl describe mfg` does not tell {word}:\n{told}");
        }
        let executed = told.lines().filter(|line| line.contains("FailoverExecuted"));
        assert!(executed.clone().any(|line| line.contains(to)), "no FailoverExecuted names {to}:\n{told}");
        let table = |more: &[&str]| self.kubectl(&self.of_group(&[&["get", "mfg"], more].concat()));
        let words = |text: &str, line: usize| -> Vec<String> {
            text.lines().nth(line).unwrap_or_default().split_whitespace().map(str::to_owned).collect()
        };
        let (short, wide) = (table(&[]), table(&["-o", "wide"]));
        assert_eq!(words(&short, 0), ["NAME", "ACTIVE", "READY", "DEGRADED", "AGE"], "{short}");
        assert_eq!(&words(&short, 1)[..4], [GROUP, to, "True", "False"], "{short}");
        let all = ["NAME", "ACTIVE", "READY", "DEGRADED", "AGE", "REASON", "PLANNED", "EPOCH"];
        assert_eq!(words(&wide, 0), all, "{wide}");
    }
}
