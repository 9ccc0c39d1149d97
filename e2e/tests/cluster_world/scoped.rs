//! An operator that is told to look at one namespace, under the roles of such an installation and no other right.

use bloodraven_api::crd;
use bloodraven_cluster::Places;
use serde_json::Value;

use super::stage::*;

/// K-18: caches are scoped, and the operator is ready with what it may see.
#[tokio::test(flavor = "multi_thread")]
async fn an_operator_of_one_namespace_leads_there_and_touches_nothing_elsewhere() {
    let (ours, theirs, operators) = ("scoped", "scoped-not", "ops-scoped");
    for namespace in [ours, theirs] {
        stage(namespace).await;
        secret(namespace);
    }
    vouch("scoped-n1", "2026-01-01T00:00:00.000000Z");
    let install = install(operators, &[ours]);
    apply(server(), &rights(&install).iter().map(crd::yaml).collect::<Vec<_>>().join("---\n"));
    let client = kube::Client::try_from(config_of(&install).await).unwrap();
    // The rights are no more than they should be.
    let namespaces = format!("/apis/shipstream.io/v1alpha1/namespaces/{theirs}/mysqlfailovergroups");
    let denied = client.request::<Value>(http::Request::get(namespaces).body(Vec::new()).unwrap()).await.unwrap_err();
    assert!(matches!(&denied, kube::Error::Api(status) if status.code == 403), "{denied}");
    let before = group(theirs, "orders").unwrap();

    let watched = install.watch_namespaces.clone();
    let operator = Operator::with(client, Places { watched, ..places(operators) }).await;
    eventually("the group is furnished and told of", move || {
        let object = group(ours, "orders")?;
        let told = condition(&object, "Ready")["status"] == "False" && object["status"]["observedGeneration"] == 1;
        (told && names_of("deployment", ours).len() == 2).then_some(())
    })
    .await;
    let ready = reqwest::get(format!("http://{}/readyz", operator.address)).await.unwrap();
    assert!(ready.status().is_success(), "no list is missing: {ready:?}");
    let known: Value = {
        let answer = reqwest::get(format!("http://{}/status", operator.address)).await.unwrap();
        serde_json::from_str(&answer.text().await.unwrap()).unwrap()
    };
    assert_eq!(known.as_object().unwrap().keys().collect::<Vec<_>>(), ["scoped/orders"]);
    // It takes an edit, so it has gone round at least once more.
    edit(ours, &serde_json::json!({"mysqlConf": {"max-connections": "77"}}));
    eventually("the edit is in force", move || {
        let text = get("configmap", ours, "mysql-orders-iad-config")["data"]["bloodraven.cnf"].to_string();
        text.contains("max-connections=77").then_some(())
    })
    .await;
    assert_eq!(group(theirs, "orders").unwrap(), before, "untouched");
    for kind in ["deployment", "service", "configmap", "pvc", "secret"] {
        assert_eq!(names_of(kind, theirs), Vec::<String>::new(), "{kind}");
    }
    operator.stop().await;
}
