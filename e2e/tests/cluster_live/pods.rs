//! The pods of the sites: killed, deleted, and seen to have been.
//!
//! In: a site. Out: what was done to its pod, and whether it was. Must not: take a pod that is on its way out for the site's.

use bloodraven_testbed::cluster::{Container, SITES};
use rustix::process::Signal;
use serde_json::Value;

use super::stage::Stage;

impl Stage {
    /// The pod of a site that is not on its way out.
    pub(crate) fn pod_object(&self, site: &str) -> Option<Value> {
        let label = format!("shipstream.io/site={site},app.kubernetes.io/name=mysql");
        let found = self.cluster.get(&self.of_group(&["pods", "-l", &label])).ok()?;
        found["items"].as_array()?.iter().find(|pod| pod["metadata"]["deletionTimestamp"].is_null()).cloned()
    }

    pub(crate) fn pod(&self, site: &str) -> Option<String> {
        self.pod_object(site)?["metadata"]["name"].as_str().map(str::to_owned)
    }

    pub(crate) fn kill_container(&self, site: &str, container: &str) {
        let pod = self.pod(site).expect("a pod");
        let of = Container { namespace: &self.namespace, pod: &pod, container };
        self.machines().kill(of, None).unwrap();
    }

    /// mysqld of that site stands still; its keeper does not.
    pub(crate) fn halt_mysqld(&self, site: &str) {
        let pod = self.pod(site).expect("a pod");
        let of = Container { namespace: &self.namespace, pod: &pod, container: "mysql" };
        self.machines().signal(of, Some("mysqld"), Signal::STOP).unwrap();
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

    /// The life of a site that the operator speaks of.
    pub(crate) fn instance(&self, site: &str) -> String {
        self.wait_until(&format!("{site} has an instance"), || {
            self.site(site)?["instance"].as_str().filter(|text| !text.is_empty()).map(str::to_owned)
        })
    }

    /// The instances of all sites.
    pub(crate) fn instances(&self) -> Vec<(&'static str, String)> {
        SITES.into_iter().map(|site| (site, self.instance(site))).collect()
    }

    /// The operator speaks of another life of that site: its pod is another one.
    pub(crate) fn wait_for_another_instance(&self, site: &str, before: &str) {
        let was_pod = before.split('/').next().unwrap_or_default();
        self.wait_until(&format!("another pod of {site} than {was_pod}"), || {
            let now = self.site(site)?["instance"].as_str()?.to_owned();
            let uid = self.pod_object(site)?["metadata"]["uid"].as_str()?.to_owned();
            (now.starts_with(&uid) && uid != was_pod).then_some(())
        });
    }

    /// How often a container of a site's pod was started again.
    pub(crate) fn restarts(&self, site: &str, container: &str) -> Option<u64> {
        // A sidecar is started before the others and is listed with those that are.
        let status = self.pod_object(site)?["status"].clone();
        let sorts = ["containerStatuses", "initContainerStatuses"];
        let all = sorts.iter().filter_map(|sort| status[sort].as_array()).flatten();
        all.into_iter().find(|it| it["name"] == container)?["restartCount"].as_u64()
    }
}
