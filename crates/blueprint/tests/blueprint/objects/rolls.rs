//! What makes a pod another pod, and what must not.

use bloodraven_api::MysqlFailoverGroup;
use bloodraven_api::keys::{LABEL_HEALTHY, LABEL_ROLE, SPEC_HASH};
use bloodraven_blueprint::objects::{OperatorAccount, Plan, Surroundings, deployment};
use serde_json::{Value, json};

use super::{around, built, edited};

/// The hash of the first site's pod.
fn hash_with(group: &MysqlFailoverGroup, around: &Surroundings) -> String {
    let plan = Plan::new(group, around).expect("a plan");
    let deployment = deployment(&plan, &plan.sites()[0]);
    let on_deployment = deployment.metadata.annotations.expect("annotations")[SPEC_HASH].clone();
    let template = deployment.spec.expect("a spec").template.metadata.expect("metadata");
    assert_eq!(template.annotations.expect("annotations")[SPEC_HASH], on_deployment);
    assert_eq!(on_deployment.len(), 16);
    on_deployment
}

fn hash(edits: &Value) -> String {
    let group = edited(edits);
    hash_with(&group, &around(&group))
}

#[test]
fn what_a_pod_is_made_of_rolls_it() {
    let before = hash(&json!({}));
    let site = json!({"name": "syd", "zone": "z", "taintNodeSelector": {"a": "b"}, "lbIP": "10.3.0.10",
                      "storage": {"storageClassName": "gp3", "size": "1Gi"}});
    let rows = [
        json!({"/spec/image": "mysql:9.7.5"}),
        json!({"/spec/sidecarImage": "bloodraven:2"}),
        json!({"/spec/sites/0/resources": {"limits": {"memory": "1Gi"}}}),
        json!({"/spec/sidecarResources": {"limits": {"memory": "64Mi"}}}),
        json!({"/spec/podSecurityContext": {"runAsUser": 27}}),
        json!({"/spec/containerSecurityContext": {"readOnlyRootFilesystem": true}}),
        json!({"/spec/mysqlConf": {"max-connections": "501"}}),
        json!({"/spec/replication": {"durability": "SemiSync"}}),
        json!({"/spec/tls": {"secretName": "tls"}}),
        json!({"/spec/secretName": "other"}),
        json!({"/spec/sites/3": site}),
        json!({"/spec/sidecar": {"peerCheckInterval": "4s"}}),
        json!({"/spec/sidecar": {"bloodravenAddress": "10.0.0.1:8082"}}),
        json!({"/metadata/uid": "another"}),
        // A template's change is a new pod to the cluster, so it has to be one to the update strategy, too.
        json!({"/spec/podLabels": {"team": "shop"}}),
        json!({"/spec/podAnnotations": {"team": "shop"}}),
        json!({"/spec/sites/0/zone": "iad-1b"}),
        json!({"/spec/terminationGracePeriodSeconds": 61}),
        json!({"/spec/imagePullSecrets": [{"name": "pull"}]}),
        json!({"/spec/extraContainers": [{"name": "exporter", "image": "exporter:1"}]}),
        json!({"/spec/extraInitContainers": [{"name": "warm", "image": "warm:1"}]}),
    ];
    let mut seen = vec![before];
    for edits in rows {
        let found = hash(&edits);
        assert!(!seen.contains(&found), "{edits}");
        seen.push(found);
    }
}

#[test]
fn what_sidecars_learn_from_views_and_what_is_elsewhere_rolls_nothing() {
    let before = hash(&json!({}));
    let rows = [
        json!({"/spec/sidecar": {"leaseTimeout": "60s"}}),
        json!({"/spec/sidecar": {"minPeers": 2}}),
        json!({"/spec/dns": {"hostname": "other.example.com", "ttl": 5}}),
        json!({"/spec/pollInterval": "1s", "/spec/failureThreshold": 5, "/spec/recoveryThreshold": 5}),
        json!({"/spec/failoverCooldown": "1h", "/spec/promotion": {"proof": "BestEffort"}}),
        json!({"/spec/splitBrainPolicy": {"preferSite": "pdx"}}),
        json!({"/spec/plannedFailover": {"onCooldown": "defer"}}),
        json!({"/spec/replication": {"maxLagSeconds": 1, "semiSyncTimeout": "1s"}}),
        json!({"/spec/updateStrategy": "Recreate", "/spec/cloneTimeout": 60}),
        json!({"/spec/writeProbe": {"interval": "1s", "timeout": "1s"}}),
        json!({"/spec/volumeRetention": "Delete", "/spec/paused": true}),
        json!({"/spec/serviceTemplate": {"type": "NodePort"}}),
        json!({"/spec/sites/0/storage/size": "501Gi", "/spec/sites/0/lbIP": "10.0.0.11"}),
        json!({"/spec/sites/0/taintNodeSelector": {"a": "b"}}),
        json!({"/spec/sites/1/resources": {"limits": {"memory": "1Gi"}}}),
        json!({"/spec/sites/2/role": "primary-candidate"}),
        json!({"/spec/dragonfly": {"enabled": true, "image": "dragonfly:v1.38.0"}}),
    ];
    for edits in rows {
        assert_eq!(hash(&edits), before, "{edits}");
    }
}

/// K-14: another image of the operator reaches pods at run time.
#[test]
fn what_stands_around_rolls_what_it_reaches() {
    let group = edited(&json!({}));
    let usual = around(&group);
    let before = hash_with(&group, &usual);
    let new_image = Surroundings { own_image: Some("bloodraven:2".to_owned()), ..usual.clone() };
    assert_ne!(hash_with(&group, &new_image), before);
    let rows = [
        Surroundings { cluster_domain: "k8s.example".to_owned(), ..usual.clone() },
        Surroundings { operator_address: "10.0.0.1:8082".to_owned(), ..usual.clone() },
        Surroundings { replication_account: false, ..usual.clone() },
        Surroundings { operator_account: OperatorAccount::Dsn, ..usual.clone() },
    ];
    for around in rows {
        assert_ne!(hash_with(&group, &around), before, "{around:?}");
    }
    let still = edited(&json!({"/spec/sidecarImage": "bloodraven:1"}));
    assert_eq!(hash_with(&still, &usual), hash_with(&still, &new_image), "a set image keeps the pods still");
}

/// K-03: a move changes no template, so it rolls no pod.
#[test]
fn a_move_changes_no_object() {
    let before = edited(&json!({}));
    let mut after = before.clone();
    let status = json!({"activeSite": "pdx", "authority": {"epoch": 7, "tenure": 7, "site": "pdx", "instance": "p/1",
        "phase": "Stable", "voters": [], "since": "2026-04-20T14:32:00.000000Z", "cause": "Emergency"}});
    after.status = serde_json::from_value(status).expect("a status");
    assert_eq!(built(&before), built(&after));
    for deployment in built(&before).deployments {
        let template = deployment.spec.expect("a spec").template.metadata.expect("metadata");
        let labels = template.labels.expect("labels");
        assert_eq!((labels[LABEL_ROLE].as_str(), labels[LABEL_HEALTHY].as_str()), ("replica", "no"));
    }
}
