//! Pods and volumes of a group, as the brain wants to know them.
//!
//! In: objects as watches last showed them; the Lease of a node, from the store itself. Out: facts, word for word. Must
//! not: conclude. Whether a pod has ended is the brain's question; here stands only what its object says.

use crate::rest::Rest;
use crate::watches::Watches;
use bloodraven_api::keys::{Application, FINALIZER_INSTANCE, GROUP_UID, LABEL_NAME, LABEL_SITE, SPEC_HASH};
use bloodraven_api::names;
use bloodraven_brain::group::input::{Estate, PodFacts, Rollout};
use bloodraven_brain::name::Site;
use bloodraven_operator::world::{GroupId, Unavailable};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ContainerState, ContainerStatus, PersistentVolumeClaim, Pod, PodStatus};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What the garbage collector of pods writes into the status of those whose node is gone: nobody saw their containers end.
const COLLECTED: &str = "DeletionByPodGC";

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
    let pods: Vec<(Site, Arc<Pod>)> = pods.into_iter().filter_map(|pod| Some((site_of(&pod, sites)?, pod))).collect();
    let mut facts = Vec::new();
    for (site, pod) in &pods {
        facts.push(PodFacts { node_vouches: node_vouches(rest, pod).await, ..pod_facts(site, pod) });
    }
    let own = |site: &&Site| is_own(claim_of(&claims, group, site), uid);
    let rollout = |site: &Site| {
        let live =
            pods.iter().find(|(of, pod)| of == site && pod.metadata.deletion_timestamp.is_none() && !finished(pod));
        let deployment =
            deployments.iter().find(|it| it.metadata.name.as_deref() == Some(&names::site(&group.name, site.as_str())));
        let state = rollout(wanted.get(site), deployment.map(|it| &**it), live.map(|(_, pod)| &**pod));
        (site.clone(), state)
    };
    Ok(Estate {
        pods: facts,
        own_volumes: sites.iter().filter(own).cloned().collect(),
        rollouts: sites.iter().map(rollout).collect(),
    })
}

/// The site of a MySQL pod, if it is one of these.
pub(crate) fn site_of(pod: &Pod, sites: &[Site]) -> Option<Site> {
    let labels = pod.metadata.labels.as_ref()?;
    if labels.get(LABEL_NAME).map(String::as_str) != Some(Application::Mysql.as_str()) {
        return None;
    }
    let name = labels.get(LABEL_SITE)?;
    sites.iter().find(|site| site.as_str() == name).cloned()
}

/// What the pod's object says; of its node nothing yet.
fn pod_facts(site: &Site, pod: &Pod) -> PodFacts {
    let status = pod.status.as_ref();
    let collected = status
        .and_then(|status| status.conditions.as_ref())
        .is_some_and(|conditions| conditions.iter().any(|condition| condition.reason.as_deref() == Some(COLLECTED)));
    let finalizers = pod.metadata.finalizers.iter().flatten();
    PodFacts {
        site: site.clone(),
        uid: pod.metadata.uid.as_deref().unwrap_or_default().into(),
        started: started(status),
        all_terminated: ends(pod).is_some(),
        deleting: pod.metadata.deletion_timestamp.is_some(),
        finished: finished(pod),
        collected,
        node_vouches: false,
        finalizer: finalizers.into_iter().any(|finalizer| finalizer == FINALIZER_INSTANCE),
    }
}

/// Some container of it ever ran. A phase beyond Pending says so even if no container is listed.
fn started(status: Option<&PodStatus>) -> bool {
    let Some(status) = status else { return false };
    let beyond = status.phase.as_deref().is_some_and(|phase| phase != "Pending");
    let ran = |state: &Option<ContainerState>| {
        state.as_ref().is_some_and(|state| state.running.is_some() || state.terminated.is_some())
    };
    beyond || statuses(status).any(|it| it.restart_count > 0 || ran(&it.state) || ran(&it.last_state))
}

fn finished(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Failed" | "Succeeded"))
}

fn statuses(status: &PodStatus) -> impl Iterator<Item = &ContainerStatus> {
    status.init_container_statuses.iter().flatten().chain(status.container_statuses.iter().flatten())
}

/// When the last container ended, by its node's clock; none: some container has not ended, or nobody says when it did.
fn ends(pod: &Pod) -> Option<Timestamp> {
    let (spec, status) = (pod.spec.as_ref()?, pod.status.as_ref()?);
    let containers = spec.init_containers.iter().flatten().chain(&spec.containers);
    let mut last = None;
    for container in containers {
        let state = statuses(status).find(|it| it.name == container.name)?.state.as_ref()?;
        let ended = state.terminated.as_ref()?.finished_at.as_ref()?.0;
        last = last.max(Some(ended));
    }
    last
}

/// Whether the kubelet that reported the end of every container was alive afterwards: its Lease was renewed later, by the
/// same clock. Whoever cannot be asked does not vouch.
async fn node_vouches(rest: &Rest, pod: &Pod) -> bool {
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
    let (Some(ended), Some(node)) = (ends(pod), node) else { return false };
    if pod.metadata.deletion_timestamp.is_none() && !finished(pod) {
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

fn claim_of<'a>(
    claims: &'a [Arc<PersistentVolumeClaim>],
    group: &GroupId,
    site: &Site,
) -> Option<&'a PersistentVolumeClaim> {
    let name = names::site_data(&group.name, site.as_str());
    claims.iter().find(|claim| claim.metadata.name.as_deref() == Some(&name)).map(|claim| &**claim)
}

/// Made by this very group object, or not made yet.
fn is_own(claim: Option<&PersistentVolumeClaim>, uid: &str) -> bool {
    let Some(claim) = claim else { return true };
    let by = claim.metadata.annotations.as_ref().and_then(|all| all.get(GROUP_UID));
    by.is_some_and(|by| by == uid)
}

/// How far a site's pod is what the spec wants.
fn rollout(wanted: Option<&String>, deployment: Option<&Deployment>, live: Option<&Pod>) -> Rollout {
    let of_template = deployment.and_then(|it| it.metadata.annotations.as_ref()).and_then(|all| all.get(SPEC_HASH));
    let of_pod = live.and_then(|pod| pod.metadata.annotations.as_ref()).and_then(|all| all.get(SPEC_HASH));
    let drifted = |hash: Option<&String>| wanted.is_some() && hash.is_some() && hash != wanted;
    if drifted(of_template) || drifted(of_pod) {
        return Rollout::Drifted;
    }
    let conditions = live.and_then(|pod| pod.status.as_ref()).and_then(|status| status.conditions.as_ref());
    let ready = conditions.is_some_and(|all| all.iter().any(|it| it.type_ == "Ready" && it.status == "True"));
    if ready { Rollout::Current } else { Rollout::InProgress }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn pod(change: impl FnOnce(&mut Value)) -> Pod {
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
        serde_json::from_value(pod).expect("a pod")
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

    #[test]
    fn a_pod_that_waits_for_a_node_never_started() {
        let waiting = facts(|pod| pod["status"] = json!({"phase": "Pending"}));
        assert!(!waiting.started && !waiting.all_terminated);
        assert!(facts(|pod| pod["status"] = json!({"phase": "Running"})).started, "a phase is enough");
    }

    #[test]
    fn a_node_vouches_only_after_the_last_end() {
        let at = |text: &str| text.parse::<Timestamp>().expect("a time");
        let last = ends(&pod(|_| {})).expect("all ended");
        assert_eq!(last, at("2026-01-01T00:00:09Z"));
        assert!(vouches(at("2026-01-01T00:00:10Z"), last));
        assert!(!vouches(at("2026-01-01T00:00:09.900000Z"), last), "the end may be later in that second");
        assert!(!vouches(at("2026-01-01T00:00:02Z"), last));
    }

    #[test]
    fn a_volume_is_our_own_if_this_very_group_made_it() {
        let claim = |annotations: Value| -> PersistentVolumeClaim {
            serde_json::from_value(json!({"metadata": {"name": "c", "annotations": annotations}})).expect("a claim")
        };
        assert!(is_own(None, "u"), "not made yet");
        assert!(is_own(Some(&claim(json!({GROUP_UID: "u"}))), "u"));
        assert!(!is_own(Some(&claim(json!({GROUP_UID: "before"}))), "u"));
        assert!(!is_own(Some(&claim(json!({}))), "u"), "nobody knows who made it");
    }

    #[test]
    fn a_pod_of_another_hash_has_drifted() {
        let deployment = |hash: &str| -> Deployment {
            serde_json::from_value(json!({"metadata": {"annotations": {SPEC_HASH: hash}}})).expect("a deployment")
        };
        let live = |hash: &str, ready: &str| {
            pod(|pod| {
                pod["metadata"]["annotations"] = json!({SPEC_HASH: hash});
                pod["status"]["conditions"] = json!([{"type": "Ready", "status": ready}]);
            })
        };
        let wanted = "b".to_owned();
        let check =
            |of_template: &str, pod: Option<Pod>| rollout(Some(&wanted), Some(&deployment(of_template)), pod.as_ref());
        assert_eq!(check("b", Some(live("b", "True"))), Rollout::Current);
        assert_eq!(check("b", Some(live("b", "False"))), Rollout::InProgress);
        assert_eq!(check("b", Some(live("a", "True"))), Rollout::Drifted);
        assert_eq!(check("a", None), Rollout::Drifted);
        assert_eq!(check("b", None), Rollout::InProgress);
        assert_eq!(rollout(None, Some(&deployment("a")), None), Rollout::InProgress, "not known what is wanted");
    }
}
