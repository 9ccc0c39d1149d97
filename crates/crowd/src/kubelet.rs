//! The kubelets and the Deployment controller, as far as an operator sees them.
//!
//! In: Deployments, as they appear. Out: a pod for each, running and ready, and its sidecar's life. Must not: look into a
//! template: what the operator draws is taken as it is.

use crate::clock;
use crate::crowd::{Crowd, NAMESPACE};
use crate::watch::AFTER_A_FAILURE;
use anyhow::{Context as _, Result};
use bloodraven_api::names;
use bloodraven_wire::{Key, Keys};
use futures_util::StreamExt as _;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::runtime::watcher;
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// Pods that are made at a time: the API server is to be busy with the operator, not with us.
const AT_A_TIME: usize = 8;

/// A pod that could not be made is tried again so often, with a pause each time.
const TRIES: usize = 60;
const PAUSE: Duration = Duration::from_secs(1);

/// Runs for ever.
pub(crate) async fn serve(crowd: Arc<Crowd>, client: Client) {
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), NAMESPACE);
    let mut events = std::pin::pin!(watcher(deployments, watcher::Config::default()));
    let room = Arc::new(Semaphore::new(AT_A_TIME));
    let mut seen = BTreeSet::new();
    while let Some(event) = events.next().await {
        let deployment = match event {
            Ok(watcher::Event::Apply(deployment) | watcher::Event::InitApply(deployment)) => deployment,
            Ok(_) => continue,
            Err(_) => {
                clock::pass(AFTER_A_FAILURE).await;
                continue;
            }
        };
        if !seen.insert(deployment.name_any()) {
            continue;
        }
        let (crowd, client, room) = (Arc::clone(&crowd), client.clone(), Arc::clone(&room));
        tokio::spawn(async move {
            let _place = room.acquire().await;
            for _ in 0..TRIES {
                match start(&crowd, &client, &deployment).await {
                    Ok(()) => return,
                    Err(error) => eprintln!("crowd: {}: {error:#}", deployment.name_any()),
                }
                clock::pass(PAUSE).await;
            }
        });
    }
}

async fn start(crowd: &Arc<Crowd>, client: &Client, deployment: &Deployment) -> Result<()> {
    let name = deployment.name_any();
    let place = crowd.place_of_deployment(&name).context("a Deployment of no site")?;
    let owner = deployment.owner_references().first().context("a Deployment without a group")?.uid.clone();
    let template = deployment.spec.as_ref().map(|spec| &spec.template).context("a Deployment without a template")?;
    let mut pod = serde_json::to_value(template)?;
    pod["apiVersion"] = json!("v1");
    pod["kind"] = json!("Pod");
    pod["metadata"]["name"] = json!(name);
    pod["spec"]["nodeName"] = json!("crowd");
    let pods: Api<Pod> = Api::namespaced(client.clone(), NAMESPACE);
    let made = match pods.create(&PostParams::default(), &serde_json::from_value(pod.clone())?).await {
        // An earlier attempt got so far.
        Err(kube::Error::Api(status)) if status.code == 409 => pods.get(&name).await?,
        other => other.context("its pod is refused")?,
    };
    let status = Patch::Merge(json!({ "status": status(&pod) }));
    pods.patch_status(&name, &PatchParams::default(), &status).await.context("its pod's status is refused")?;
    let keys = keys(client, &Crowd::name(place.group)).await?;
    crowd.pod_is_there(place, &owner, keys, made.uid().as_deref().unwrap_or_default());
    Ok(())
}

/// Every container runs.
fn status(pod: &Value) -> Value {
    let of = |key: &str| {
        let containers = pod["spec"][key].as_array().into_iter().flatten();
        let one = |container: &Value| {
            json!({"name": container["name"], "image": container["image"], "imageID": "", "ready": true,
                "restartCount": 0, "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}})
        };
        containers.map(one).collect::<Vec<_>>()
    };
    json!({
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True"}],
        "initContainerStatuses": of("initContainers"),
        "containerStatuses": of("containers"),
    })
}

/// The key that the operator made for the group.
async fn keys(client: &Client, group: &str) -> Result<Keys> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), NAMESPACE);
    let secret = secrets.get(&names::authority(group)).await.context("its group's key is not there")?;
    let data = secret.data.unwrap_or_default();
    let key = data.get("hmac.key").context("its group's key is empty")?;
    Ok(Keys::only(Key::try_from(key.0.as_slice()).context("its group's key is none")?))
}
