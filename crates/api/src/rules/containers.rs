//! Rules on what users add to the MySQL pod.
//!
//! In: `spec`. Out: the rules. Must not: judge the containers themselves; the API server does when the pod is made.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::Rule;
use super::text::OPERATOR_KEY;

#[derive(Deserialize)]
struct ContainerView {
    name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Extra {
    #[serde(default)]
    extra_containers: Vec<ContainerView>,
    #[serde(default)]
    extra_init_containers: Vec<ContainerView>,
}

const TAKEN: &[&str] = &["mysql", "sidecar", "init"];

pub(super) fn rules() -> Vec<Rule> {
    let mut rules: Vec<_> = ["spec.extraContainers[].name", "spec.extraInitContainers[].name"].map(free_name).into();
    rules.extend(["spec.podLabels", "spec.podAnnotations"].map(foreign_keys));
    rules.push(
        Rule::state::<Extra>(
            "container-names-differ",
            "spec",
            "self.extraContainers.all(c, !self.extraInitContainers.exists(i, i.name == c.name))",
            "spec.extraInitContainers and extraContainers may not share a container name; write another name",
            |spec| {
                let inits = &spec.extra_init_containers;
                spec.extra_containers.iter().all(|c| !inits.iter().any(|i| i.name == c.name))
            },
        )
        .pointing_at("extraInitContainers"),
    );
    rules
}

fn free_name(at: &'static str) -> Rule {
    Rule::state::<String>(
        "container-name",
        at,
        "!(self in ['mysql', 'sidecar', 'init'])",
        format!("{at} may not be mysql, sidecar or init, which the operator uses; write another name"),
        |name| !TAKEN.contains(&name.as_str()),
    )
}

fn foreign_keys(at: &'static str) -> Rule {
    Rule::state::<BTreeMap<String, String>>(
        "operator-key",
        at,
        format!("self.all(k, !{})", OPERATOR_KEY.cel("k")),
        format!(
            "{at} may not hold keys of the operator (shipstream.io/..., *.shipstream.io/..., app.kubernetes.io/name, /instance, \
             /managed-by); remove them"
        ),
        |map| !map.keys().any(|key| OPERATOR_KEY.holds(key)),
    )
}
