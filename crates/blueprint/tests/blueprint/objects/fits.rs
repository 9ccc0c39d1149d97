//! What belongs together fits together: selectors and pods, mounts and volumes, paths and mounts, ports and names.

use std::collections::{BTreeMap, BTreeSet};

use bloodraven_api::keys::{FINALIZER_INSTANCE, LABEL_DRAGONFLY_TRAFFIC, LABEL_HEALTHY, LABEL_ROLE};
use bloodraven_blueprint::objects::{Objects, Plan, Surroundings, objects};
use k8s_openapi::api::core::v1::{Container, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::json;

use super::{around, built, container, containers, edited, full, pod};

type Labels = BTreeMap<String, String>;

fn labels(template: &PodTemplateSpec) -> Labels {
    template.metadata.as_ref().and_then(|metadata| metadata.labels.clone()).expect("labels")
}

/// Labels of every pod of a group by `app/site`.
fn pods(objects: &Objects) -> BTreeMap<String, Labels> {
    let mysql = objects.deployments.iter().filter_map(|it| it.spec.as_ref()).map(|spec| labels(&spec.template));
    let cache = objects.stateful_sets.iter().filter_map(|it| it.spec.as_ref()).map(|spec| labels(&spec.template));
    let name = |labels: &Labels| format!("{}/{}", labels["app.kubernetes.io/name"], labels["shipstream.io/site"]);
    mysql.chain(cache).map(|labels| (name(&labels), labels)).collect()
}

fn selected(selector: &Labels, pods: &BTreeMap<String, Labels>) -> BTreeSet<String> {
    let fits = |labels: &&Labels| selector.iter().all(|(key, value)| labels.get(key) == Some(value));
    pods.iter().filter(|(_, labels)| fits(labels)).map(|(name, _)| name.clone()).collect()
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// K-03, K-04: who is an endpoint of which Service.
#[test]
fn every_service_finds_exactly_its_pods() {
    let objects = built(&full());
    let mut pods = pods(&objects);
    assert_eq!(pods.len(), 6);
    // Pods of another group with the same sites, and what the leader labels.
    let billing = edited(&json!({"/metadata/name": "billing"}));
    let strangers = super::fits::pods(&built(&billing));
    let mut label = |pod: &str, key: &str, value: &str| {
        pods.get_mut(pod).expect("a pod").insert(key.to_owned(), value.to_owned());
    };
    label("mysql/iad", LABEL_ROLE, "primary");
    label("mysql/pdx", LABEL_HEALTHY, "yes");
    label("mysql/fra", LABEL_ROLE, "fenced");
    label("mysql/fra", LABEL_HEALTHY, "yes");
    label("dragonfly/pdx", "shipstream.io/dragonfly-role", "master");
    label("dragonfly/pdx", LABEL_DRAGONFLY_TRAFFIC, "enabled");
    let expect = |name: &str| match name {
        "mysql-orders-primary" => set(&["mysql/iad"]),
        "mysql-orders-replicas" => set(&["mysql/pdx"]),
        "orders-dragonfly" => set(&["dragonfly/pdx"]),
        name => {
            let site = ["iad", "pdx", "fra"].into_iter().find(|site| name.contains(site)).expect("a site's");
            let app = if name.starts_with("mysql") { "mysql" } else { "dragonfly" };
            set(&[&format!("{app}/{site}")])
        }
    };
    assert_eq!(objects.services.len(), 3 * 2 + 2 + 3 + 1);
    for service in &objects.services {
        let name = service.metadata.name.as_deref().expect("a name");
        let selector = service.spec.as_ref().and_then(|spec| spec.selector.as_ref()).expect("a selector");
        assert_eq!(selected(selector, &pods), expect(name), "{name}");
        assert_eq!(selected(selector, &strangers), set(&[]), "{name} and another group's pods");
    }
}

/// K-03, K-04: a pod that no leader has seen is an endpoint of neither role.
#[test]
fn a_fresh_pod_gets_no_traffic_of_a_role() {
    let objects = built(&full());
    let pods = pods(&objects);
    for name in ["mysql-orders-primary", "mysql-orders-replicas", "orders-dragonfly"] {
        let service = objects.services.iter().find(|service| service.metadata.name.as_deref() == Some(name));
        let selector = service.and_then(|service| service.spec.as_ref()?.selector.as_ref()).expect("a selector");
        assert_eq!(selected(selector, &pods), set(&[]), "{name}");
    }
}

#[test]
fn controllers_and_budgets_find_exactly_their_pods() {
    let objects = built(&full());
    let pods = pods(&objects);
    for deployment in &objects.deployments {
        let spec = deployment.spec.as_ref().expect("a spec");
        let site = &deployment.metadata.labels.as_ref().expect("labels")["shipstream.io/site"];
        let selector = spec.selector.match_labels.as_ref().expect("labels");
        assert_eq!(selected(selector, &pods), set(&[&format!("mysql/{site}")]));
        assert_eq!(
            (spec.replicas, spec.strategy.as_ref().and_then(|it| it.type_.as_deref())),
            (Some(1), Some("Recreate"))
        );
        let finalizers = spec.template.metadata.as_ref().and_then(|metadata| metadata.finalizers.clone());
        assert_eq!(finalizers, Some(vec![FINALIZER_INSTANCE.to_owned()]), "{site}");
    }
    for set in &objects.stateful_sets {
        let selector = set.spec.as_ref().and_then(|spec| spec.selector.match_labels.as_ref()).expect("labels");
        assert_eq!(selected(selector, &pods).len(), 1);
    }
    let counts: Vec<usize> = objects
        .disruption_budgets
        .iter()
        .map(|budget| budget.spec.as_ref()?.selector.as_ref()?.match_labels.as_ref())
        .map(|selector| selected(selector.expect("labels"), &pods).len())
        .collect();
    assert_eq!(counts, [3, 1, 1, 1]);
}

#[test]
fn every_port_of_a_service_is_a_port_of_its_pods() {
    let objects = built(&full());
    let mysql = pod(&objects, 0);
    let cache = objects.stateful_sets[0].spec.as_ref().and_then(|spec| spec.template.spec.as_ref()).expect("a pod");
    for service in &objects.services {
        let name = service.metadata.name.as_deref().expect("a name");
        let pod = if name.starts_with("mysql") { mysql } else { cache };
        let ports: BTreeMap<&str, i32> = containers(pod)
            .flat_map(|container| container.ports.iter().flatten())
            .filter_map(|port| Some((port.name.as_deref()?, port.container_port)))
            .collect();
        for port in service.spec.iter().flat_map(|spec| spec.ports.iter().flatten()) {
            let Some(IntOrString::String(target)) = &port.target_port else { panic!("{name}: {port:?}") };
            assert_eq!(ports.get(target.as_str()), Some(&port.port), "{name}: {target}");
        }
    }
}

/// The volume below which a path lies for a container.
fn volume_of<'a>(container: &'a Container, path: &str) -> Option<&'a str> {
    let mounts = container.volume_mounts.iter().flatten();
    let above = mounts.filter(|mount| path == mount.mount_path || path.starts_with(&format!("{}/", mount.mount_path)));
    above.max_by_key(|mount| mount.mount_path.len()).map(|mount| mount.name.as_str())
}

#[test]
fn every_mount_has_its_volume_and_every_volume_is_mounted() {
    for objects in [built(&edited(&json!({}))), built(&full())] {
        for site in 0..3 {
            let pod = pod(&objects, site);
            let volumes: Vec<&str> = pod.volumes.iter().flatten().map(|volume| volume.name.as_str()).collect();
            let mounted: BTreeSet<&str> =
                containers(pod).flat_map(|it| it.volume_mounts.iter().flatten()).map(|it| it.name.as_str()).collect();
            assert_eq!(mounted, volumes.iter().copied().collect());
            assert_eq!(mounted.len(), volumes.len(), "no volume twice");
        }
    }
}

#[test]
fn every_path_that_a_container_is_told_is_there() {
    let objects = built(&full());
    let pod = pod(&objects, 0);
    let check = |name: &str, rows: &[(&str, &str)]| {
        let container = container(pod, name);
        for (path, volume) in rows {
            assert_eq!(volume_of(container, path), Some(*volume), "{name}: {path}");
        }
        let told = container.command.iter().flatten().map(|word| word.split_once('=').map_or(word.as_str(), |it| it.1));
        let values = container.env.iter().flatten().filter_map(|variable| variable.value.as_deref());
        for path in told.chain(values).filter(|word| word.starts_with('/')) {
            // The keeper reads what its folders hold; the folder of all accounts is there with its first.
            let below = container.volume_mounts.iter().flatten().any(|it| it.mount_path.starts_with(path));
            assert!(volume_of(container, path).is_some() || below, "{name}: {path}");
        }
    };
    check(
        "init",
        &[
            ("/volume", "data"),
            ("/etc/bloodraven/conf/my.cnf", "conf"),
            ("/run/bloodraven", "run"),
            ("/etc/bloodraven/config/bloodraven.cnf", "config"),
        ],
    );
    check(
        "sidecar",
        &[
            ("/etc/mysql/creds/operator/password", "creds-operator"),
            ("/etc/mysql/creds/replication/username", "creds-replication"),
            ("/etc/mysql/creds/monitor/username", "creds-monitor"),
            ("/etc/mysql/creds/backup/username", "creds-backup"),
            ("/var/lib/bloodraven", "data"),
            ("/etc/bloodraven/authority/hmac.key", "authority"),
            ("/run/bloodraven/keeper.sock", "run"),
        ],
    );
    check(
        "mysql",
        &[
            ("/var/lib/mysql", "data"),
            ("/run/bloodraven/keeper", "run"),
            ("/etc/mysql/tls/ca.crt", "tls"),
            ("/etc/bloodraven/conf/my.cnf", "conf"),
            ("/etc/mysql/creds/replication/username", "creds-replication"),
        ],
    );
}

#[test]
fn the_volume_has_two_folders_that_do_not_meet() {
    let objects = built(&edited(&json!({})));
    let folders = |name: &str| -> Vec<(String, String)> {
        let mounts = container(pod(&objects, 0), name).volume_mounts.iter().flatten();
        let data = mounts.filter(|mount| mount.name == "data");
        data.map(|mount| (mount.mount_path.clone(), mount.sub_path.clone().unwrap_or_default())).collect()
    };
    let row = |path: &str, folder: &str| (path.to_owned(), folder.to_owned());
    assert_eq!(folders("init"), [row("/volume", "")]);
    assert_eq!(folders("sidecar"), [row("/var/lib/bloodraven", "bloodraven")]);
    assert_eq!(folders("mysql"), [row("/var/lib/mysql", "mysql"), row("/var/lib/bloodraven", "bloodraven")]);
}

#[test]
fn secrets_are_files_and_the_signing_key_is_the_sidecars_alone() {
    let objects = built(&full());
    let pod = pod(&objects, 0);
    for container in containers(pod) {
        let has_key = container.volume_mounts.iter().flatten().any(|mount| mount.name == "authority");
        assert_eq!(has_key, container.name == "sidecar", "{}", container.name);
        assert!(container.env_from.is_none(), "{}", container.name);
        for variable in container.env.iter().flatten() {
            let secret = variable.value_from.as_ref().and_then(|source| source.secret_key_ref.as_ref());
            assert_eq!(secret, None, "{}: {}", container.name, variable.name);
        }
    }
    let names: BTreeMap<&str, &str> = pod
        .volumes
        .iter()
        .flatten()
        .filter_map(|volume| Some((volume.name.as_str(), volume.secret.as_ref()?.secret_name.as_deref()?)))
        .collect();
    let expect = [
        ("authority", "mysql-orders-authority"),
        ("creds-app", "app"),
        ("creds-backup", "bak"),
        ("creds-monitor", "mon"),
        ("creds-operator", "op"),
        ("creds-readonly", "ro"),
        ("creds-replication", "op"),
        ("creds-root", "op"),
        ("tls", "orders-tls"),
    ];
    assert_eq!(names, expect.into());
}

#[test]
fn accounts_that_are_not_there_have_no_folder() {
    let group = edited(&json!({}));
    let usual = around(&group);
    let volumes = |around: &Surroundings| -> BTreeSet<String> {
        let objects = objects(&Plan::new(&group, around).expect("a plan"));
        let names = pod(&objects, 0).volumes.iter().flatten().map(|volume| volume.name.clone());
        names.filter(|name| name.starts_with("creds-")).collect()
    };
    assert_eq!(volumes(&usual), set(&["creds-operator", "creds-replication", "creds-root"]));
    let without = Surroundings { replication_account: false, ..usual };
    assert_eq!(volumes(&without), set(&["creds-operator", "creds-root"]));
}

#[test]
fn the_sidecar_comes_first_and_stays() {
    let objects = built(&full());
    let pod = pod(&objects, 0);
    let names: Vec<(&str, Option<&str>)> =
        containers(pod).map(|it| (it.name.as_str(), it.restart_policy.as_deref())).collect();
    let expect = [("init", None), ("sidecar", Some("Always")), ("warm", None), ("mysql", None), ("exporter", None)];
    assert_eq!(names, expect);
    let mysql = container(pod, "mysql");
    assert!(mysql.liveness_probe.is_none() && mysql.lifecycle.is_none(), "nothing restarts a slow server");
}
