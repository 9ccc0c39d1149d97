//! Whole objects, against files: the example of the manual, then what other settings change in it.
//!
//! A difference fails, and the objects of today are put beside the build; who meant the change copies the file.

use std::path::Path;

use bloodraven_api::MysqlFailoverGroup;
use bloodraven_blueprint::install::{self, Install};
use bloodraven_blueprint::objects::{self, AuthorityKeys, Objects};
use serde::Serialize;
use serde_json::{Value, json};

use super::{edited, full, with_plan};

fn value(object: &impl Serialize) -> Value {
    serde_json::to_value(object).expect("an object can be written")
}

/// Every object of a group, in the order in which they are applied.
pub(super) fn all(group: &MysqlFailoverGroup) -> Vec<Value> {
    with_plan(group, |plan| {
        let Objects { config_maps, services, disruption_budgets, certificate, deployments, stateful_sets } =
            objects::objects(plan);
        let keys = AuthorityKeys { current: [7; 32], previous: None };
        let mut found = vec![value(&objects::authority(plan, &keys))];
        found.extend(plan.sites().iter().map(|site| value(&objects::claim(plan, site, None).expect("a fresh claim"))));
        found.extend(config_maps.iter().map(value));
        found.extend(services.iter().map(value));
        found.extend(disruption_budgets.iter().map(value));
        found.extend(certificate.iter().map(value));
        found.extend(deployments.iter().map(value));
        found.extend(stateful_sets.iter().map(value));
        found.extend(plan.sites().first().map(|site| value(&objects::dns_endpoint(plan, site))));
        found
    })
}

fn identity(object: &Value) -> String {
    let name = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    [name("/kind"), name("/metadata/namespace"), name("/metadata/name")].join("/")
}

fn check(name: &str, objects: &[Value]) {
    let file = format!("{name}.yaml");
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/blueprint/objects/snapshots").join(&file);
    let text = std::fs::read_to_string(&kept).unwrap_or_default();
    let documents = text.split("\n---\n").filter(|document| !document.trim().is_empty());
    let expect: Vec<Value> = documents.map(|document| serde_saphyr::from_str(document).expect("YAML")).collect();
    if expect == objects {
        return;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("objects");
    std::fs::create_dir_all(&folder).expect("a folder beside the build");
    let documents = objects.iter().map(|object| serde_saphyr::to_string(object).expect("YAML").trim_end().to_owned());
    let text = documents.collect::<Vec<_>>().join("\n---\n");
    std::fs::write(folder.join(&file), format!("{text}\n")).expect("a file beside the build");
    let at = (0..expect.len().max(objects.len())).find(|at| expect.get(*at) != objects.get(*at));
    let first = at.and_then(|at| objects.get(at)).map_or("the end".to_owned(), identity);
    panic!("{name}: differs from {} first at {first}; today's is {}", kept.display(), folder.join(&file).display());
}

/// Objects that a setting changes or adds.
fn changed(edits: &Value) -> Vec<Value> {
    let before = all(&edited(&json!({})));
    all(&edited(edits)).into_iter().filter(|object| !before.contains(object)).collect()
}

#[test]
fn the_example_of_the_manual() {
    check("three_sites", &all(&edited(&json!({}))));
}

#[test]
fn tls_changes_options_mounts_and_asks_for_a_certificate() {
    check("tls", &changed(&json!({"/spec/tls": {"secretName": "orders-tls", "issuerRef": {"name": "ca"}}})));
}

#[test]
fn semi_sync_changes_options() {
    check("semi_sync", &changed(&json!({"/spec/replication": {"durability": "SemiSync", "semiSyncTimeout": "5s"}})));
}

#[test]
fn everything_that_can_be_set() {
    check("everything", &all(&full()));
}

#[test]
fn a_cache_that_is_off_is_not_there() {
    let off = json!({"/spec/dragonfly": {"enabled": false, "image": "dragonfly:v1.38.0"}});
    assert_eq!(changed(&off), Vec::<Value>::new());
    let on = changed(&json!({"/spec/dragonfly": {"enabled": true, "image": "dragonfly:v1.38.0"}}));
    assert!(on.iter().all(|object| identity(object).contains("orders-dragonfly")), "nothing of MySQL changes");
    check("dragonfly", &on);
}

#[test]
fn a_site_that_only_follows_has_the_shape_of_the_others() {
    let objects = super::built(&edited(&json!({})));
    let other = super::built(&edited(&json!({"/spec/sites/2/role": "primary-candidate"})));
    assert_eq!(objects, other, "a role is no matter of objects");
}

/// K-15, in part: the Service that sidecars ask is part of every installation.
#[test]
fn the_operator_itself() {
    let all = |watch: &[&str]| {
        let install = Install {
            namespace: "ops".to_owned(),
            image: "registry.example.com/bloodraven:0.1.0".to_owned(),
            watch_namespaces: watch.iter().map(|namespace| (*namespace).to_owned()).collect(),
        };
        install.objects()
    };
    check("install", &all(&[]));
    check("install_namespaces", &all(&["shop", "billing"]));
}

/// What people apply, without anything of this project installed.
#[test]
fn committed_manifests_are_the_generated_ones() {
    for (file, watch) in [("operator.yaml", vec![]), ("operator-one-namespace.yaml", vec!["shop".to_owned()])] {
        let image = format!("bloodraven:{}", env!("CARGO_PKG_VERSION"));
        let install = Install { namespace: install::NAME.to_owned(), image, watch_namespaces: watch };
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(file);
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let expect = format!("{}{}", install::HEADER, install.yaml());
        assert!(text == expect, "deploy/{file} is not what the code says; run cargo xtask codegen");
    }
}
