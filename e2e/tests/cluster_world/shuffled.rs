//! The list of sites is shuffled, grows and shrinks: everything of a site follows its name, never its place in the list.

use std::collections::BTreeMap;

use bloodraven_api::keys;
use serde_json::{Value, json};

use super::played::{Part, Played};
use super::recorded::{before, history, store};
use super::stage::*;

const NAMESPACE: &str = "shuffled";

/// What stands of a site, but for what has to follow its neighbours and the clock.
fn of_site(object: &Value, site: &str) -> Option<Value> {
    let entry = object["status"]["sites"].as_array()?.iter().find(|entry| entry["name"] == site)?;
    let claim = get("pvc", NAMESPACE, &format!("mysql-orders-{site}-data"));
    let config = get("configmap", NAMESPACE, &format!("mysql-orders-{site}-config"));
    Some(json!({
        "status": {"state": entry["state"], "serverUuid": entry["serverUuid"], "role": entry["role"]},
        "serverId": claim["metadata"]["annotations"][keys::SERVER_ID],
        "claim": claim["metadata"]["uid"],
        "options": config["data"],
        "service": get("service", NAMESPACE, &format!("mysql-orders-{site}"))["spec"]["selector"],
    }))
}

/// What stands of both, once the operator has taken the list as it is now and made all of it.
async fn settled(deployments: usize) -> BTreeMap<&'static str, Value> {
    eventually("the list is taken", move || {
        let object = group(NAMESPACE, "orders")?;
        let taken = object["status"]["observedGeneration"] == object["metadata"]["generation"];
        let names: Vec<&Value> = object["status"]["sites"].as_array()?.iter().map(|site| &site["name"]).collect();
        let listed = object["spec"]["sites"].as_array()?.iter().all(|site| names.contains(&&site["name"]));
        let made = names_of("deployment", NAMESPACE).len() == deployments;
        let both = ["iad", "pdx"].map(|site| Some((site, of_site(&object, site)?)));
        let decided = |it: &Option<(_, Value)>| {
            it.as_ref().is_some_and(|(_, stands)| {
                let state = &stands["status"]["state"];
                state == "writable" || state == "read-only"
            })
        };
        let whole = taken && listed && made && names.len() == deployments && both.iter().all(decided);
        whole.then(|| both.into_iter().flatten().collect())
    })
    .await
}

/// K-06: server ids, volumes, option files and status entries stay with their names when the list is reordered, grows at its
/// head, and shrinks again.
#[tokio::test(flavor = "multi_thread")]
async fn what_belongs_to_a_site_stays_with_its_name_wherever_that_stands_in_the_list() {
    stage(NAMESPACE).await;
    secret(NAMESPACE);
    store(NAMESPACE, &before(&history("gone")));
    let played = Played::new(&[("iad", Part::Writes), ("pdx", Part::Follows(0)), ("fra", Part::Follows(0))]);
    let operator = Operator::towards(played, server().client().await.unwrap(), places(NAMESPACE)).await;
    let stood = settled(2).await;
    assert_ne!(stood["iad"]["serverId"], stood["pdx"]["serverId"]);
    assert_eq!(
        (&stood["iad"]["status"]["state"], &stood["pdx"]["status"]["state"]),
        (&json!("writable"), &json!("read-only"))
    );

    let sites = get("mfg", NAMESPACE, "orders")["spec"]["sites"].as_array().unwrap().clone();
    let [iad, pdx] = <[Value; 2]>::try_from(sites).unwrap();
    let fra = json!({"name": "fra", "zone": "fra", "lbIP": "192.0.2.9", "taintNodeSelector": {"none": "x"},
        "storage": {"storageClassName": "fast", "size": "1Gi"}});
    let rows = [
        ("reordered", vec![pdx.clone(), iad.clone()]),
        ("one more, at the head", vec![fra.clone(), pdx.clone(), iad.clone()]),
        ("reordered again", vec![iad.clone(), fra, pdx.clone()]),
        ("one less", vec![pdx, iad]),
    ];
    for (what, sites) in rows {
        let count = sites.len();
        edit(NAMESPACE, &json!({ "sites": sites }));
        assert_eq!(settled(count).await, stood, "{what}");
    }
    operator.stop().await;
}
