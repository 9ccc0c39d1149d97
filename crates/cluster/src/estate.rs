//! Pods and volumes of a group, as the brain wants to know them.
//!
//! In: objects as watches last showed them; the Lease of a node, from the store itself. Out: facts, word for word. Must
//! not: conclude. Whether a pod has ended is the brain's question; here stands only what its object says.

use crate::rest::Rest;
use crate::seen::{SeenClaim, SeenDeployment, SeenPod};
use crate::watches::Watches;
use bloodraven_api::keys::{Application, FINALIZER_INSTANCE, GROUP_UID, LABEL_NAME, LABEL_SITE, SPEC_HASH};
use bloodraven_api::names;
use bloodraven_brain::group::input::{Estate, PodFacts, Rollout};
use bloodraven_brain::name::Site;
use bloodraven_operator::world::{GroupId, Unavailable};
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What each site's pods should be (their spec's hash); a site that is not named: not known yet.
pub(crate) type Wanted = BTreeMap<Site, String>;

/// Everything of these sites, whole or not at all.
pub(crate) async fn read(
    rest: &Rest,
    watches: &Watches,
    group: &GroupId,
    uid: &str,
    sites: &[Site],
    wanted: &Wanted,
) -> Result<Estate, Unavailable> {
    let unseen = |what: &str| Unavailable { what: what.to_owned(), because: "its list is not whole yet".to_owned() };
    let pods = watches.pods.of(group).ok_or_else(|| unseen("pods"))?;
    let claims = watches.claims.of(group).ok_or_else(|| unseen("volume claims"))?;
    let deployments = watches.deployments.of(group).ok_or_else(|| unseen("deployments"))?;
    let pods: Vec<(Site, Arc<SeenPod>)> =
        pods.into_iter().filter_map(|pod| Some((site_of(&pod, sites)?, pod))).collect();
    let mut facts = Vec::new();
    for (site, pod) in &pods {
        facts.push(PodFacts { node_vouches: node_vouches(rest, pod).await, ..pod_facts(site, pod) });
    }
    let own = |site: &&Site| is_own(claim_of(&claims, group, site), uid);
    let rollout = |site: &Site| {
        let live = pods.iter().find(|(of, pod)| of == site && !pod.meta.deleting && !pod.finished);
        let name = names::site(&group.name, site.as_str());
        let deployment = deployments.iter().find(|it| *it.meta.name == *name);
        let state =
            rollout(wanted.get(site).map(String::as_str), deployment.map(|it| &**it), live.map(|(_, pod)| &**pod));
        (site.clone(), state)
    };
    Ok(Estate {
        pods: facts,
        own_volumes: sites.iter().filter(own).cloned().collect(),
        rollouts: sites.iter().map(rollout).collect(),
    })
}

/// The site of a MySQL pod, if it is one of these.
pub(crate) fn site_of(pod: &SeenPod, sites: &[Site]) -> Option<Site> {
    if pod.meta.label(LABEL_NAME) != Some(Application::Mysql.as_str()) {
        return None;
    }
    let name = pod.meta.label(LABEL_SITE)?;
    sites.iter().find(|site| site.as_str() == name).cloned()
}

/// What the pod's object says; of its node nothing yet.
fn pod_facts(site: &Site, pod: &SeenPod) -> PodFacts {
    PodFacts {
        site: site.clone(),
        uid: pod.meta.uid.as_deref().unwrap_or_default().into(),
        started: pod.started,
        all_terminated: pod.ends.is_some(),
        deleting: pod.meta.deleting,
        finished: pod.finished,
        collected: pod.collected,
        node_vouches: false,
        finalizer: pod.meta.is_held_by(FINALIZER_INSTANCE),
    }
}

/// Whether the kubelet that reported the end of every container was alive afterwards: its Lease was renewed later, by the
/// same clock. Whoever cannot be asked does not vouch.
async fn node_vouches(rest: &Rest, pod: &SeenPod) -> bool {
    let (Some(ended), Some(node)) = (pod.ends, &pod.node) else { return false };
    if !pod.meta.deleting && !pod.finished {
        return false;
    }
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{node}");
    let Ok(Some(lease)) = rest.get(&path).await else { return false };
    lease["spec"]["renewTime"]
        .as_str()
        .and_then(|text| text.parse().ok())
        .is_some_and(|renewed| vouches(renewed, ended))
}

/// Ends are told in whole seconds: one that reads the same may be later.
fn vouches(renewed: Timestamp, ended: Timestamp) -> bool {
    renewed.as_second() > ended.as_second()
}

fn claim_of<'a>(claims: &'a [Arc<SeenClaim>], group: &GroupId, site: &Site) -> Option<&'a SeenClaim> {
    let name = names::site_data(&group.name, site.as_str());
    claims.iter().find(|claim| *claim.meta.name == *name).map(|claim| &**claim)
}

/// Made by this very group object, or not made yet.
fn is_own(claim: Option<&SeenClaim>, uid: &str) -> bool {
    claim.is_none_or(|claim| claim.meta.annotation(GROUP_UID) == Some(uid))
}

/// How far a site's pod is what the spec wants.
fn rollout(wanted: Option<&str>, deployment: Option<&SeenDeployment>, live: Option<&SeenPod>) -> Rollout {
    let of_template = deployment.and_then(|it| it.meta.annotation(SPEC_HASH));
    let of_pod = live.and_then(|pod| pod.meta.annotation(SPEC_HASH));
    let drifted = |hash: Option<&str>| wanted.is_some() && hash.is_some() && hash != wanted;
    if drifted(of_template) || drifted(of_pod) {
        return Rollout::Drifted;
    }
    if live.is_some_and(|pod| pod.ready) { Rollout::Current } else { Rollout::InProgress }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seen::{self, COLLECTED};
    use serde_json::{Value, json};

    fn pod(change: impl FnOnce(&mut Value)) -> SeenPod {
        let ended = |name: &str, at: &str| {
            json!({"name": name, "image": "i", "imageID": "", "ready": false,
            "restartCount": 0, "state": {"terminated": {"exitCode": 0, "finishedAt": at}}})
        };
        let mut pod = json!({
            "metadata": {"name": "p", "uid": "u", "deletionTimestamp": "2026-01-01T00:00:00Z",
                "finalizers": [FINALIZER_INSTANCE]},
            "spec": {"nodeName": "n", "containers": [{"name": "mysql"}],
                "initContainers": [{"name": "init"}, {"name": "sidecar"}]},
            "status": {"phase": "Running",
                "initContainerStatuses": [ended("init", "2026-01-01T00:00:01Z"), ended("sidecar", "2026-01-01T00:00:09Z")],
                "containerStatuses": [ended("mysql", "2026-01-01T00:00:05Z")]},
        });
        change(&mut pod);
        seen::pod(serde_json::from_value(pod).expect("a pod"))
    }

    fn facts(change: impl FnOnce(&mut Value)) -> PodFacts {
        pod_facts(&Site::new("iad"), &pod(change))
    }

    #[test]
    fn a_pod_whose_every_container_is_terminated_says_so() {
        let whole = facts(|_| {});
        assert!(whole.all_terminated && whole.started && whole.deleting && whole.finalizer);
        assert!(!whole.finished && !whole.collected && !whole.node_vouches);
    }

    #[test]
    fn one_container_that_is_not_terminated_is_enough_to_say_no() {
        type Change = fn(&mut Value);
        let rows: [(&str, Change); 5] = [
            ("runs", |pod| pod["status"]["containerStatuses"][0]["state"] = json!({"running": {}})),
            ("waits", |pod| pod["status"]["containerStatuses"][0]["state"] = json!({"waiting": {"reason": "x"}})),
            ("init runs", |pod| pod["status"]["initContainerStatuses"][1]["state"] = json!({"running": {}})),
            ("not listed", |pod| pod["status"]["containerStatuses"] = json!([])),
            ("no time", |pod| {
                pod["status"]["containerStatuses"][0]["state"] = json!({"terminated": {"exitCode": 255}});
            }),
        ];
        for (name, change) in rows {
            assert!(!facts(change).all_terminated, "{name}");
        }
    }

    #[test]
    fn what_the_garbage_collector_wrote_is_told() {
        let collected = facts(|pod| {
            pod["status"]["conditions"] = json!([{"type": "DisruptionTarget", "status": "True", "reason": COLLECTED}]);
        });
        assert!(collected.collected);
    }

    /// K-27: a Pending pod is told as one that never started.
    #[test]
    fn a_pod_that_waits_for_a_node_never_started() {
        let waiting = facts(|pod| pod["status"] = json!({"phase": "Pending"}));
        assert!(!waiting.started && !waiting.all_terminated);
        assert!(facts(|pod| pod["status"] = json!({"phase": "Running"})).started, "a phase is enough");
    }

    #[test]
    fn a_node_vouches_only_after_the_last_end() {
        let at = |text: &str| text.parse::<Timestamp>().expect("a time");
        let last = pod(|_| {}).ends.expect("all ended");
        assert_eq!(last, at("2026-01-01T00:00:09Z"));
        assert!(vouches(at("2026-01-01T00:00:10Z"), last));
        assert!(!vouches(at("2026-01-01T00:00:09.900000Z"), last), "the end may be later in that second");
        assert!(!vouches(at("2026-01-01T00:00:02Z"), last));
    }

    #[test]
    fn a_volume_is_our_own_if_this_very_group_made_it() {
        let claim = |annotations: Value| {
            let claim = json!({"metadata": {"name": "c", "annotations": annotations}});
            seen::claim(serde_json::from_value(claim).expect("a claim"))
        };
        assert!(is_own(None, "u"), "not made yet");
        assert!(is_own(Some(&claim(json!({GROUP_UID: "u"}))), "u"));
        assert!(!is_own(Some(&claim(json!({GROUP_UID: "before"}))), "u"));
        assert!(!is_own(Some(&claim(json!({}))), "u"), "nobody knows who made it");
    }

    #[test]
    fn a_pod_of_another_hash_has_drifted() {
        let deployment = |hash: &str| {
            let deployment = json!({"metadata": {"annotations": {SPEC_HASH: hash}}});
            seen::deployment(serde_json::from_value(deployment).expect("a deployment"))
        };
        let live = |hash: &str, ready: &str| {
            pod(|pod| {
                pod["metadata"]["annotations"] = json!({SPEC_HASH: hash});
                pod["status"]["conditions"] = json!([{"type": "Ready", "status": ready}]);
            })
        };
        let check =
            |of_template: &str, pod: Option<SeenPod>| rollout(Some("b"), Some(&deployment(of_template)), pod.as_ref());
        assert_eq!(check("b", Some(live("b", "True"))), Rollout::Current);
        assert_eq!(check("b", Some(live("b", "False"))), Rollout::InProgress);
        assert_eq!(check("b", Some(live("a", "True"))), Rollout::Drifted);
        assert_eq!(check("a", None), Rollout::Drifted);
        assert_eq!(check("b", None), Rollout::InProgress);
        assert_eq!(rollout(None, Some(&deployment("a")), None), Rollout::InProgress, "not known what is wanted");
    }
}
