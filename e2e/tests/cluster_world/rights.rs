//! The operator's rights: under its own account it can do all that it does, and it has no right that it does not use.
//!
//! Everything that the operator can ask of the API server is asked, as the account and with the roles that an installation
//! makes; each request is noted on its way out, and the notes are held against the roles.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bloodraven_api::{crd, keys};
use bloodraven_blueprint::install::Install;
use bloodraven_blueprint::objects::Taken;
use bloodraven_brain::group::Outward;
use bloodraven_brain::group::command::Label;
use bloodraven_brain::lease::{Acquired, NewLease};
use bloodraven_brain::name::{Instance, Member};
use bloodraven_brain::time::{Millis, Wall};
use bloodraven_cluster::{ClusterWorld, Places};
use bloodraven_operator::world::{Event, EventKind, GroupId, Look, World};
use http::{Method, Request, Response, StatusCode, Uri};
use kube::client::{Body, ClientBuilder};
use serde_json::{Value, json};
use tower::{Layer, Service};

use super::stage::*;

/// Namespace, API group, resource with its part, verb. Of a role over the whole cluster the namespace is empty.
type Right = (String, String, String, String);

/// What was asked of the API server, and what was denied.
#[derive(Clone, Debug, Default)]
struct Notes {
    used: Arc<Mutex<BTreeSet<Right>>>,
    denied: Arc<Mutex<Vec<String>>>,
}

#[derive(Clone, Debug)]
struct Noting<S> {
    inner: S,
    notes: Notes,
}

impl<S> Layer<S> for Notes {
    type Service = Noting<S>;

    fn layer(&self, inner: S) -> Noting<S> {
        Noting { inner, notes: self.clone() }
    }
}

impl<S, B> Service<Request<Body>> for Noting<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<B>, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (method, uri, notes) = (request.method().clone(), request.uri().clone(), self.notes.clone());
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await?;
            notes.take(&method, &uri, answer.status());
            Ok(answer)
        })
    }
}

impl Notes {
    fn take(&self, method: &Method, uri: &Uri, status: StatusCode) {
        if status == StatusCode::FORBIDDEN {
            self.denied.lock().unwrap().push(format!("{method} {uri}"));
        }
        let (namespace, group, resource, named) = place(uri.path());
        let mut verbs = vec![match *method {
            Method::GET if named => "get",
            Method::GET if uri.query().is_some_and(|query| query.contains("watch=true")) => "watch",
            Method::GET => "list",
            Method::POST => "create",
            Method::PUT => "update",
            Method::PATCH => "patch",
            _ => "delete",
        }];
        // An object that is applied and was not there is made.
        verbs.extend((*method == Method::PATCH && status == StatusCode::CREATED).then_some("create"));
        let mut used = self.used.lock().unwrap();
        used.extend(verbs.iter().map(|verb| (namespace.clone(), group.clone(), resource.clone(), (*verb).to_owned())));
    }
}

/// Namespace, API group, resource with its part, and whether one object is meant.
fn place(path: &str) -> (String, String, String, bool) {
    let mut words = path.trim_matches('/').split('/').peekable();
    let group = if words.next() == Some("api") { "" } else { words.next().unwrap() };
    words.next(); // the version
    let namespace = words.next_if_eq(&"namespaces").and_then(|_| words.next()).unwrap_or_default();
    let (resource, name, part) = (words.next().unwrap_or_default(), words.next(), words.next());
    let resource = part.map_or(resource.to_owned(), |part| format!("{resource}/{part}"));
    (namespace.to_owned(), group.to_owned(), resource, name.is_some())
}

/// Every right that the roles among these objects give.
fn granted(objects: &[Value]) -> BTreeSet<Right> {
    let texts = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().filter_map(|it| it.as_str().map(str::to_owned)).collect()
    };
    let mut all = BTreeSet::new();
    for role in objects.iter().filter(|it| matches!(it["kind"].as_str(), Some("Role" | "ClusterRole"))) {
        let namespace = role["metadata"]["namespace"].as_str().unwrap_or_default();
        for rule in role["rules"].as_array().unwrap() {
            for group in texts(&rule["apiGroups"]) {
                for resource in texts(&rule["resources"]) {
                    let right = |verb| (namespace.to_owned(), group.clone(), resource.clone(), verb);
                    all.extend(texts(&rule["verbs"]).into_iter().map(right));
                }
            }
        }
    }
    all
}

/// The right that a use needs, the narrowest that there is.
fn needed(granted: &BTreeSet<Right>, used: &Right) -> Option<Right> {
    let everywhere = (String::new(), used.1.clone(), used.2.clone(), used.3.clone());
    [used, &everywhere].into_iter().find(|right| granted.contains(*right)).cloned()
}

/// A kind that another project brings.
pub(super) fn certificates() -> String {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "certificates.cert-manager.io"},
        "spec": {"group": "cert-manager.io", "scope": "Namespaced",
            "names": {"plural": "certificates", "singular": "certificate", "kind": "Certificate"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}]}})
    .to_string()
}

/// The world as the installed operator sees it, and a note of all that it asks.
async fn world(install: &Install, notes: &Notes) -> ClusterWorld {
    let client = ClientBuilder::try_from(config_of(install).await).unwrap().with_layer(notes).build();
    let places = Places { watched: install.watch_namespaces.clone(), ..places(&install.namespace) };
    ClusterWorld::new(&client, places)
}

/// What a person and the kubelets do: the group's Secret and TLS, nodes, pods.
fn furnish_the_stage(namespace: &str, operators: &str) {
    let node = |name: &str, site: &str| {
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": format!("{namespace}-{name}"),
            "labels": {format!("{namespace}-site"): site}}})
    };
    let operator = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "operator-a", "namespace": operators},
        "spec": {"automountServiceAccountToken": false, "containers": [{"name": "a", "image": "example.org/none:1"}]}});
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "creds", "namespace": namespace},
        "stringData": {"dsn": "mysql://ops:hidden@any:3306/"}});
    let tls = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "orders-tls", "namespace": namespace},
        "stringData": {"ca.crt": "-", "tls.crt": "-", "tls.key": "-"}});
    let pods = [("a", "iad", "n1"), ("b", "pdx", "n2")];
    let pods = pods.map(|(name, site, node)| pod(namespace, name, site, &format!("{namespace}-{node}")));
    let all = [node("n1", "iad"), node("n2", "pdx"), operator, secret, tls];
    for object in all.iter().chain(&pods) {
        apply(server(), &object.to_string());
    }
    edit(namespace, &json!({"tls": {"secretName": "orders-tls", "issuerRef": {"name": "ca"}}}));
    let ended = json!({"phase": "Succeeded", "initContainerStatuses": [terminated("sidecar")],
        "containerStatuses": [terminated("mysql")]});
    set_status("pod", namespace, "a", &ended);
    set_status("pod", operators, "operator-a", &json!({"podIP": "192.0.2.1", "podIPs": [{"ip": "192.0.2.1"}]}));
    vouch(&format!("{namespace}-n1"), "2026-01-01T00:00:06.100000Z");
}

/// Everything that an operator ever asks.
async fn do_everything(install: &Install, notes: &Notes, group: &GroupId) {
    let world = &world(install, notes).await;
    lead(world, install).await;
    let [iad, pdx] = sites();
    let estate = until(world, group, async || {
        world.estate(group, &sites()).await.ok().filter(|estate| estate.pods.iter().any(|pod| pod.node_vouches))
    })
    .await;
    keep_the_record(world, group).await;
    let object = wanted(world, group).await;
    until(world, group, async || world.furnish(group, &object, Look::All).await.ok()).await;
    until(world, group, async || world.secrets(group, &object).await.ok()).await;
    world.keep_spec(group, &Taken { generation: 1, spec: json!({}) }).await.unwrap();
    world.kept_spec(group).await.unwrap().unwrap();
    until(world, group, async || world.roll(group, &object, &iad).await.ok()).await;
    let uid = &estate.pods.iter().find(|pod| pod.site == pdx).unwrap().uid;
    let wish = Outward {
        primary: Some(Member { site: pdx.clone(), instance: Instance::new(uid, "store") }),
        labels: BTreeMap::from([(iad.clone(), Label { fenced: false, healthy: Some(true) })]),
        dns: Some(pdx.clone()),
        taints: Some(BTreeMap::from([(iad.clone(), true), (pdx, false)])),
        ..Outward::default()
    };
    let shown = until(world, group, async || world.show(group, &object, &wish).await.ok()).await;
    assert_eq!((shown.labels, &shown.dns, &shown.taints), (true, &Ok(()), &Ok(())));
    for at in [1_700_000_000_000, 1_700_000_001_000] {
        let (reason, message) = ("NoPrimaryDetected".to_owned(), "nobody writes".to_owned());
        world.record_event(group, &Event { kind: EventKind::Warning, reason, message, at: Wall(at) }).await.unwrap();
    }
    // a new operator applies all of it once more, changes what has changed, drops a site, and lets the group go
    let world = &self::world(install, notes).await;
    until(world, group, async || world.furnish(group, &object, Look::All).await.ok()).await;
    world.show(group, &object, &Outward { dns: Some(iad), ..wish }).await.unwrap();
    let sites = get("mfg", &group.namespace, "orders")["spec"]["sites"].clone();
    let mut more = sites.as_array().unwrap().clone();
    more.push(json!({"name": "fra", "zone": "fra", "lbIP": "192.0.2.7", "taintNodeSelector": {"none": "x"},
        "storage": {"storageClassName": "fast", "size": "1Gi"}}));
    for sites in [json!(more), sites] {
        edit(&group.namespace, &json!({"volumeRetention": "Delete", "sites": sites}));
        let object = wanted(world, group).await;
        until(world, group, async || {
            world.furnish(group, &object, Look::All).await.ok()?;
            (names_of("deployment", &group.namespace).len() == object.spec.sites.len()).then_some(())
        })
        .await;
    }
    let ended = estate.pods.iter().find(|pod| pod.node_vouches).unwrap();
    until(world, group, async || world.release_pod(group, &ended.uid).await.ok()).await;
    until(world, group, async || world.release_orphans().await.ok()).await;
    let delete = ["delete", "mfg", "-n", &group.namespace, "orders", "--wait=false"];
    assert!(server().kubectl().args(delete).output().unwrap().status.success());
    until(world, group, async || world.dismiss(group, true).await.ok()).await;
}

async fn lead(world: &ClusterWorld, install: &Install) {
    let mut new = NewLease {
        holder: Some("a_1".into()),
        duration: Millis(15_000),
        acquired: Acquired::At(Wall(1_700_000_000_000)),
        renewed: Wall(1_700_000_000_000),
        transitions: 0,
    };
    world.read_lease().await.unwrap();
    let made = world.create_lease(&new).await.unwrap();
    new.acquired = Acquired::AsRead(made.acquired.clone());
    world.update_lease(&made.version, &new).await.unwrap();
    let uid = get("pod", &install.namespace, "operator-a")["metadata"]["uid"].as_str().unwrap().to_owned();
    let address = world.operator_address(&format!("operator-a_{uid}")).await;
    assert_eq!(address.as_deref(), Some("192.0.2.1:8082"), "sidecars are told where the leader is");
}

async fn keep_the_record(world: &ClusterWorld, group: &GroupId) {
    let note = BTreeMap::from([(keys::AUTHORITY.to_owned(), Some("x".to_owned()))]);
    let version = version(world, group).await;
    let version = world.save_annotations(group, &version, &note).await.unwrap();
    world.save_status(group, &version, &json!({"activeSite": "pdx"})).await.unwrap();
    world.remove_request(group, keys::PLANNED_FAILOVER, "pdx").await.unwrap();
}

/// K-16, the roles, at an API server: no right is missing. K-18: none lists Secrets, since no right is unused.
#[tokio::test]
async fn the_operator_can_do_what_it_does_and_has_no_right_beyond() {
    apply(server(), &certificates());
    serves_all(server());
    for (namespace, operators, watched) in
        [("rights-all", "ops-all", vec![]), ("rights-one", "ops-one", vec!["rights-one"])]
    {
        let (_, group) = stage(namespace).await;
        let install = install(operators, &watched);
        let objects = install.objects();
        // with the kubelets' namespace, which a cluster has
        vouch("nobody", "2026-01-01T00:00:00.000000Z");
        apply(server(), &objects.iter().map(crd::yaml).collect::<Vec<_>>().join("---\n"));
        furnish_the_stage(namespace, operators);
        let notes = Notes::default();
        Box::pin(do_everything(&install, &notes, &group)).await;

        assert_eq!(notes.denied.lock().unwrap().as_slice(), [""; 0], "{namespace}");
        let (granted, used) = (granted(&objects), notes.used.lock().unwrap().clone());
        let needed: BTreeSet<Right> = used.iter().filter_map(|used| needed(&granted, used)).collect();
        // Asked by the API server, not by us, and only where it checks owners.
        let checked = |right: &&Right| right.2 != "mysqlfailovergroups/finalizers";
        let unused: Vec<&Right> = granted.difference(&needed).filter(checked).collect();
        assert!(unused.is_empty(), "{namespace}: granted, and never used: {unused:#?}");
    }
}

#[test]
fn requests_are_read_as_the_api_server_reads_them() {
    let rows = [
        ("/api/v1/namespaces/shop/pods/a", ("shop", "", "pods", true)),
        ("/api/v1/nodes", ("", "", "nodes", false)),
        ("/apis/apps/v1/deployments", ("", "apps", "deployments", false)),
        ("/apis/x.io/v1/namespaces/shop/groups/a/status", ("shop", "x.io", "groups/status", true)),
    ];
    for (path, (namespace, group, resource, named)) in rows {
        assert_eq!(place(path), (namespace.to_owned(), group.to_owned(), resource.to_owned(), named), "{path}");
    }
}
