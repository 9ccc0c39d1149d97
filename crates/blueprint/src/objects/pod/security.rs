//! What the pod's processes may do: as little as MySQL needs.
//!
//! In: a plan. Out: security contexts. Must not: mix the user's with the default; what the user writes replaces it as a
//! whole. All containers of ours have the same one, so that keeper, server and sidecar share one uid.

use k8s_openapi::api::core::v1::{Capabilities, PodSecurityContext, SeccompProfile, SecurityContext};

use super::Plan;

/// The user and group `mysql` of the usual server images.
const MYSQL_USER: i64 = 999;

pub(super) fn of_pod(plan: &Plan<'_>) -> PodSecurityContext {
    let default = || PodSecurityContext {
        run_as_non_root: Some(true),
        run_as_user: Some(MYSQL_USER),
        run_as_group: Some(MYSQL_USER),
        fs_group: Some(MYSQL_USER),
        // A volume with millions of files is not walked through at every start.
        fs_group_change_policy: Some("OnRootMismatch".to_owned()),
        seccomp_profile: Some(SeccompProfile { type_: "RuntimeDefault".to_owned(), localhost_profile: None }),
        ..PodSecurityContext::default()
    };
    plan.spec().pod_security_context.clone().unwrap_or_else(default)
}

pub(super) fn of_container(plan: &Plan<'_>) -> SecurityContext {
    plan.spec().container_security_context.clone().unwrap_or_else(confined)
}

fn confined() -> SecurityContext {
    SecurityContext {
        allow_privilege_escalation: Some(false),
        capabilities: Some(Capabilities { drop: Some(vec!["ALL".to_owned()]), add: None }),
        ..SecurityContext::default()
    }
}

/// Mode of files from Secrets: for the pod's group where there is one, which the files then belong to.
pub(super) fn secret_mode(plan: &Plan<'_>) -> i32 {
    if of_pod(plan).fs_group.is_some() { 0o440 } else { 0o444 }
}
