//! The restricted Pod Security Standard, as a function: our pods keep it, and the function finds what would not.

use bloodraven_blueprint::install::{self, Install};
use k8s_openapi::api::core::v1::{Container, PodSpec, Volume};
use serde_json::{Value, json};

use super::{built, containers, edited, pod};

/// Every breach of the standard, by field.
fn breaches(pod: &PodSpec) -> Vec<String> {
    let host = [("hostNetwork", pod.host_network), ("hostPID", pod.host_pid), ("hostIPC", pod.host_ipc)];
    let mut found: Vec<String> =
        host.into_iter().filter(|(_, on)| *on == Some(true)).map(|(field, _)| field.to_owned()).collect();
    let forbidden = |volume: &&Volume| {
        let source = serde_json::to_value(volume).expect("a volume").as_object().expect("fields").clone();
        source.keys().any(|key| {
            let allowed = [
                "name",
                "configMap",
                "csi",
                "downwardAPI",
                "emptyDir",
                "ephemeral",
                "persistentVolumeClaim",
                "projected",
                "secret",
            ];
            !allowed.contains(&key.as_str())
        })
    };
    found.extend(pod.volumes.iter().flatten().filter(forbidden).map(|volume| format!("volumes.{}", volume.name)));
    let sysctls = pod.security_context.as_ref().and_then(|context| context.sysctls.as_ref());
    found.extend(sysctls.filter(|list| !list.is_empty()).map(|_| "sysctls".to_owned()));
    for container in containers(pod) {
        found.extend(of_container(pod, container).into_iter().map(|field| format!("{}.{field}", container.name)));
    }
    found
}

fn of_container(pod: &PodSpec, container: &Container) -> Vec<&'static str> {
    let own = container.security_context.clone().unwrap_or_default();
    let shared = pod.security_context.clone().unwrap_or_default();
    let capabilities = own.capabilities.clone().unwrap_or_default();
    let seccomp = own.seccomp_profile.or(shared.seccomp_profile).map(|profile| profile.type_);
    let added = capabilities.add.unwrap_or_default();
    let rows = [
        ("privileged", own.privileged == Some(true)),
        ("allowPrivilegeEscalation", own.allow_privilege_escalation != Some(false)),
        ("runAsNonRoot", own.run_as_non_root.or(shared.run_as_non_root) != Some(true)),
        ("runAsUser", own.run_as_user.or(shared.run_as_user) == Some(0)),
        ("seccompProfile", !matches!(seccomp.as_deref(), Some("RuntimeDefault" | "Localhost"))),
        ("capabilities.drop", !capabilities.drop.unwrap_or_default().contains(&"ALL".to_owned())),
        ("capabilities.add", added.iter().any(|capability| capability != "NET_BIND_SERVICE")),
        ("procMount", own.proc_mount.is_some_and(|mount| mount != "Default")),
        ("hostPort", container.ports.iter().flatten().any(|port| port.host_port.unwrap_or(0) != 0)),
    ];
    rows.into_iter().filter(|(_, breach)| *breach).map(|(field, _)| field).collect()
}

#[test]
fn pods_of_ours_keep_the_standard() {
    let objects = built(&edited(&json!({"/spec/tls": {"secretName": "t"}})));
    for site in 0..3 {
        let pod = pod(&objects, site);
        assert_eq!(breaches(pod), Vec::<String>::new());
        assert_eq!(pod.automount_service_account_token, Some(false));
        assert_eq!(pod.share_process_namespace, None);
    }
    let install =
        Install { namespace: "ops".to_owned(), image: "bloodraven:1".to_owned(), watch_namespaces: Vec::new() };
    let operator = install::deployment(&install).spec.and_then(|spec| spec.template.spec).expect("a pod");
    assert_eq!(breaches(&operator), Vec::<String>::new());
}

#[test]
fn a_context_of_the_user_replaces_ours_as_a_whole_in_all_three_containers() {
    let objects = built(&edited(&json!({"/spec/containerSecurityContext": {"runAsUser": 27}})));
    let contexts: Vec<Value> = containers(pod(&objects, 0))
        .map(|container| serde_json::to_value(&container.security_context).expect("a context"))
        .collect();
    assert_eq!(contexts, vec![json!({"runAsUser": 27}); 3]);
    let objects = built(&edited(&json!({"/spec/podSecurityContext": {"runAsUser": 27}})));
    let pod = pod(&objects, 0);
    assert_eq!(serde_json::to_value(&pod.security_context).expect("a context"), json!({"runAsUser": 27}));
    let modes: Vec<Option<i32>> =
        pod.volumes.iter().flatten().filter_map(|volume| Some(volume.secret.as_ref()?.default_mode)).collect();
    assert!(modes.iter().all(|mode| *mode == Some(0o444)), "without a group of the pod, files are for everyone in it");
}

#[test]
fn what_breaks_the_standard_is_found() {
    let good = json!({"securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [{"name": "c", "securityContext": {"allowPrivilegeEscalation": false,
            "capabilities": {"drop": ["ALL"]}}}]});
    let check = |pointer: &str, value: Value, expect: &str| {
        let mut pod = good.clone();
        let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
        pod.pointer_mut(parent).expect("a place")[key] = value;
        let pod: PodSpec = serde_json::from_value(pod).expect("a pod");
        assert_eq!(breaches(&pod), [expect], "{pointer}");
    };
    let inside = |field: &str| format!("/containers/0/securityContext/{field}");
    check("/hostNetwork", json!(true), "hostNetwork");
    check("/hostPID", json!(true), "hostPID");
    check("/hostIPC", json!(true), "hostIPC");
    check("/volumes", json!([{"name": "v", "hostPath": {"path": "/"}}]), "volumes.v");
    check("/securityContext/sysctls", json!([{"name": "a", "value": "b"}]), "sysctls");
    check("/securityContext/runAsNonRoot", json!(false), "c.runAsNonRoot");
    check("/securityContext/runAsUser", json!(0), "c.runAsUser");
    check("/securityContext/seccompProfile", json!({"type": "Unconfined"}), "c.seccompProfile");
    check(&inside("runAsNonRoot"), json!(false), "c.runAsNonRoot");
    check(&inside("privileged"), json!(true), "c.privileged");
    check(&inside("allowPrivilegeEscalation"), json!(true), "c.allowPrivilegeEscalation");
    check(&inside("capabilities"), json!({"drop": ["KILL"]}), "c.capabilities.drop");
    check(&inside("capabilities"), json!({"drop": ["ALL"], "add": ["SYS_ADMIN"]}), "c.capabilities.add");
    check(&inside("procMount"), json!("Unmasked"), "c.procMount");
    check("/containers/0/ports", json!([{"containerPort": 1, "hostPort": 1}]), "c.hostPort");
}
