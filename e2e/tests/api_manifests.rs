//! The CRDs on a real API server: what it takes, what it refuses and how it says so, what it stores, what may change. For
//! every manifest the code comes to the same verdict.
//!
//! The manifests are data, in `manifests/`. One server serves them all; each test works in a namespace of its own.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking, and so do the functions that its tests share"
)]

#[path = "../manifests/corpus.rs"]
mod corpus;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use bloodraven_api::admission::{self, Admitted, Violation};
use bloodraven_api::{MysqlBackup, MysqlBackupVerification, MysqlFailoverGroup, crd, rules};
use bloodraven_testbed::kubernetes::ApiServer;
use corpus::{Change, Creation};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Client, CustomResourceExt, ResourceExt};
use serde_json::{Value, json};
use tokio::time::timeout;

/// A new resource is served within a second; a busy machine needs more.
const SERVED_LIMIT: Duration = Duration::from_secs(30);

/// How long one look at a resource that is not yet served may take before the next.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// The server that all tests share, with the CRDs in place. It ends with the process.
fn server() -> &'static ApiServer {
    static SERVER: OnceLock<ApiServer> = OnceLock::new();
    SERVER.get_or_init(|| ApiServer::start().unwrap())
}

/// A client whose namespace is there, on a server that serves our kinds.
async fn client(namespace: &str) -> Client {
    let client = server().client().await.unwrap();
    let resources: Api<CustomResourceDefinition> = Api::all(client.clone());
    for (file, text) in crd::each() {
        let definition: Value = serde_saphyr::from_str(&text).unwrap();
        let name = definition["metadata"]["name"].as_str().unwrap();
        let apply = PatchParams::apply("e2e").force();
        let applied = resources.patch(name, &apply, &Patch::Apply(&definition)).await;
        applied.unwrap_or_else(|error| panic!("{file}: {error}"));
        timeout(SERVED_LIMIT, served(&resources, name)).await.unwrap_or_else(|_| panic!("{name} is not served"));
    }
    let metadata = ObjectMeta { name: Some(namespace.to_owned()), ..ObjectMeta::default() };
    let object = Namespace { metadata, ..Namespace::default() };
    Api::all(client.clone()).create(&PostParams::default(), &object).await.unwrap();
    client
}

/// Returns when the API server says that it serves a resource and that its schema is structural. Bounded by its caller.
async fn served(resources: &Api<CustomResourceDefinition>, name: &str) {
    loop {
        let status = resources.get(name).await.unwrap().status.unwrap_or_default();
        let conditions = status.conditions.unwrap_or_default();
        let holds = |kind: &str| conditions.iter().any(|c| c.type_ == kind && c.status == "True");
        assert!(!holds("NonStructuralSchema"), "{conditions:?}");
        if holds("Established") {
            return;
        }
        let mut ticks = tokio::time::interval(LOOK_AGAIN);
        ticks.tick().await;
        ticks.tick().await;
    }
}

fn folder() -> PathBuf {
    corpus::folder(env!("CARGO_MANIFEST_DIR"))
}

/// The objects of a manifest's kind in a namespace.
fn objects(client: &Client, namespace: &str, manifest: &Value) -> Api<DynamicObject> {
    let resource = match manifest["kind"].as_str().unwrap() {
        "MysqlFailoverGroup" => MysqlFailoverGroup::api_resource(),
        "MysqlBackup" => MysqlBackup::api_resource(),
        "MysqlBackupVerification" => MysqlBackupVerification::api_resource(),
        other => panic!("no such kind: {other}"),
    };
    of_resource(client, namespace, &resource)
}

fn of_resource(client: &Client, namespace: &str, resource: &ApiResource) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), namespace, resource)
}

/// Creates an object; a refusal is its text.
async fn create(api: &Api<DynamicObject>, manifest: &Value) -> Result<DynamicObject, String> {
    // A manifest without a spec is still an object.
    let object: DynamicObject = serde_json::from_value(manifest.clone()).unwrap();
    verdict_of(api.create(&PostParams::default(), &object).await)
}

fn verdict_of(answer: kube::Result<DynamicObject>) -> Result<DynamicObject, String> {
    match answer {
        Ok(object) => Ok(object),
        Err(kube::Error::Api(status)) if status.code == 422 => Err(status.message.clone()),
        Err(other) => panic!("neither taken nor refused: {other}"),
    }
}

/// The code's verdict on the same manifest.
fn code_verdict(manifest: &Value, old: Option<&Value>) -> Vec<Violation> {
    fn of<K: Admitted>(manifest: &Value, old: Option<&Value>) -> Vec<Violation> {
        admission::read::<K>(manifest.clone(), old).err().unwrap_or_default()
    }
    match manifest["kind"].as_str().unwrap() {
        "MysqlFailoverGroup" => of::<MysqlFailoverGroup>(manifest, old),
        "MysqlBackup" => of::<MysqlBackup>(manifest, old),
        _ => of::<MysqlBackupVerification>(manifest, old),
    }
}

/// The API server's text names each field and what to write, and the code complains about the same fields.
fn check_refusal(name: &str, text: &str, code: &[Violation], refused: &BTreeMap<String, String>) {
    for (field, tells) in refused {
        assert!(text.contains(&format!("{field}: ")), "{name}: {field} is not named in: {text}");
        assert!(text.contains(tells.as_str()), "{name}: {tells:?} is not said in: {text}");
        assert!(code.iter().any(|v| &v.path == field), "{name}: the code says nothing about {field}: {code:?}");
    }
    // Whatever rule the code finds broken, the API server found it too.
    for violation in code.iter().filter(|v| is_rule(&v.message)) {
        let skipped = text.contains("some validation rules were not checked");
        assert!(skipped || text.contains(&violation.message), "{name}: only the code says {violation}: {text}");
    }
}

fn is_rule(message: &str) -> bool {
    all_rules().iter().any(|rule| rule == message)
}

/// The message of every rule of every kind.
fn all_rules() -> &'static BTreeSet<String> {
    static RULES: OnceLock<BTreeSet<String>> = OnceLock::new();
    RULES.get_or_init(|| {
        let rules = [rules::of_group(), rules::of_backup(), rules::of_verification()];
        rules.iter().flatten().map(|rule| rule.message().to_owned()).collect()
    })
}

/// A manifest is taken, and what is stored is what the code would have made of it.
async fn check_accepted(api: &Api<DynamicObject>, name: &str, manifest: &Value) {
    let stored = create(api, manifest).await.unwrap_or_else(|refusal| panic!("{name}: {refusal}"));
    assert_eq!(code_verdict(manifest, None), [], "{name}");
    let by_code = match manifest["kind"].as_str().unwrap() {
        "MysqlFailoverGroup" => admission::with_defaults::<MysqlFailoverGroup>(manifest.clone()),
        "MysqlBackup" => admission::with_defaults::<MysqlBackup>(manifest.clone()),
        _ => admission::with_defaults::<MysqlBackupVerification>(manifest.clone()),
    };
    assert_eq!(stored.data["spec"], by_code["spec"], "{name}");
    api.delete(&stored.name_any(), &DeleteParams::default()).await.unwrap();
}

#[tokio::test]
async fn bases_and_accepted_manifests_are_taken() {
    let (folder, namespace) = (folder(), "accepted");
    let client = client(namespace).await;
    let mut manifests = corpus::bases(&folder);
    for case in corpus::read::<Vec<Creation>>(&folder.join("accepted.yaml")) {
        manifests.push((case.name.clone(), case.manifest(&folder)));
    }
    for (name, manifest) in &manifests {
        check_accepted(&objects(&client, namespace, manifest), name, manifest).await;
    }
    assert!(manifests.len() >= 50, "only {} manifests", manifests.len());
}

/// K-12, K-13: the same by the API server, and no rule that refuses nothing.
#[tokio::test]
async fn every_refusal_names_the_field_and_what_to_write_and_every_rule_refuses_something() {
    let (folder, namespace) = (folder(), "refused");
    let client = client(namespace).await;
    let mut said = String::new();
    let cases = corpus::read::<Vec<Creation>>(&folder.join("refused.yaml"));
    for case in &cases {
        let manifest = case.manifest(&folder);
        let api = objects(&client, namespace, &manifest);
        let text = create(&api, &manifest).await.expect_err(&case.name);
        check_refusal(&case.name, &text, &code_verdict(&manifest, None), &case.refused);
        said.push_str(&text);
    }
    for case in corpus::read::<Vec<Change>>(&folder.join("changes.yaml")) {
        said.push_str(&change(&client, namespace, &folder, &case).await.err().unwrap_or_default());
    }
    let unsaid: Vec<_> = all_rules().iter().filter(|rule| !said.contains(rule.as_str())).collect();
    assert!(unsaid.is_empty(), "no manifest is refused by: {unsaid:#?}");
    assert!(cases.len() >= 80, "only {} manifests", cases.len());
}

/// Makes the object as it was, with its status, changes it, and takes it away again.
async fn change(client: &Client, namespace: &str, folder: &Path, case: &Change) -> Result<DynamicObject, String> {
    let before = case.before(folder);
    let api = objects(client, namespace, &before);
    let mut stored = create(&api, &before).await.unwrap_or_else(|refusal| panic!("{}: {refusal}", case.name));
    let name = stored.name_any();
    if let Some(status) = &case.status {
        let patch = Patch::Merge(json!({ "status": status }));
        stored = api.patch_status(&name, &PatchParams::default(), &patch).await.unwrap();
        assert_eq!(stored.data["status"]["activeSite"], status["activeSite"], "{}", case.name);
    }
    let mut after: DynamicObject = serde_json::from_value(case.after(folder)).unwrap();
    after.metadata.resource_version = stored.resource_version();
    let verdict = verdict_of(api.replace(&name, &PostParams::default(), &after).await);

    let old = serde_json::to_value(&stored).unwrap();
    let mut new = serde_json::to_value(&after).unwrap();
    // The API server keeps the stored status when a spec is changed.
    if let Some(status) = old.get("status") {
        new["status"] = status.clone();
    }
    let code = code_verdict(&new, Some(&old));
    match &verdict {
        Ok(_) => assert_eq!(code, [], "{}", case.name),
        Err(text) => check_refusal(&case.name, text, &code, &case.refused),
    }
    api.delete(&name, &DeleteParams::default()).await.unwrap();
    verdict
}

#[tokio::test]
async fn changes_are_judged_by_what_was_there() {
    let (folder, namespace) = (folder(), "changes");
    let client = client(namespace).await;
    for case in corpus::read::<Vec<Change>>(&folder.join("changes.yaml")) {
        let verdict = change(&client, namespace, &folder, &case).await;
        assert_eq!(verdict.is_ok(), case.refused.is_empty(), "{}: {verdict:?}", case.name);
    }
}

#[tokio::test]
async fn what_is_stored_is_what_is_documented() {
    let (folder, namespace) = (folder(), "stored");
    let client = client(namespace).await;
    for (name, manifest) in corpus::bases(&folder) {
        let file = folder.join("stored").join(format!("{name}.yaml"));
        if !file.exists() {
            continue;
        }
        let api = objects(&client, namespace, &manifest);
        let stored = create(&api, &manifest).await.unwrap();
        let documented: BTreeMap<String, Value> = corpus::read(&file);
        for (field, expect) in &documented {
            assert_eq!(&stored.data["spec"][field], expect, "{name}: {field}");
        }
        // Of the others the whole spec is documented.
        if !["full", "in-place-pvc"].contains(&name.as_str()) {
            assert_eq!(stored.data["spec"], json!(documented), "{name}");
        }
        api.delete(&stored.name_any(), &DeleteParams::default()).await.unwrap();
    }
}

#[tokio::test]
async fn sixty_four_sites_are_taken() {
    let (folder, namespace) = (folder(), "sites");
    let client = client(namespace).await;
    for sites in [64, 256] {
        let manifest = corpus::with_sites(&folder, sites);
        check_accepted(&objects(&client, namespace, &manifest), &format!("{sites} sites"), &manifest).await;
    }
    let manifest = corpus::with_sites(&folder, 257);
    let refusal = create(&objects(&client, namespace, &manifest), &manifest).await.unwrap_err();
    assert!(refusal.contains("must have at most 256 items"), "{refusal}");
}

#[tokio::test]
async fn examples_are_taken_as_they_are() {
    let namespace = "examples";
    let client = client(namespace).await;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|e| e == "yaml"));
    assert!(files.len() >= 5, "only {} examples", files.len());
    for file in files {
        let mut apply = server().kubectl();
        apply.args(["apply", "--namespace", namespace, "--validate=strict", "--filename"]).arg(&file);
        let answer = apply.output().unwrap();
        assert!(answer.status.success(), "{}: {}", file.display(), String::from_utf8_lossy(&answer.stderr));
        for manifest in serde_saphyr::from_multiple::<Value>(&std::fs::read_to_string(&file).unwrap()).unwrap() {
            assert_eq!(code_verdict(&manifest, None), [], "{}", file.display());
            let api = objects(&client, namespace, &manifest);
            api.delete(manifest["metadata"]["name"].as_str().unwrap(), &DeleteParams::default()).await.unwrap();
        }
    }
}

/// The committed files, the way people install them. An unknown format or a defaulted required field would be a warning.
#[tokio::test]
async fn committed_crds_are_taken_without_a_warning() {
    client("installed").await;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/crds");
    let mut apply = server().kubectl();
    apply.args(["apply", "--server-side", "--force-conflicts", "--validate=strict", "--filename"]).arg(folder);
    let answer = apply.output().unwrap();
    assert!(answer.status.success(), "{}", String::from_utf8_lossy(&answer.stderr));
    assert_eq!(String::from_utf8_lossy(&answer.stderr), "");
}

/// What kubectl shows of a group, its short names, and that the typed client reads what is stored.
#[tokio::test]
async fn kubectl_and_the_typed_client_see_the_columns_and_the_status() {
    let (folder, namespace) = (folder(), "columns");
    let client = client(namespace).await;
    let group = corpus::base(&folder, "group");
    create(&objects(&client, namespace, &group), &group).await.unwrap();
    let groups: Api<MysqlFailoverGroup> = Api::namespaced(client.clone(), namespace);
    let status = json!({ "status": {
        "activeSite": "iad",
        "authority": { "epoch": 7, "tenure": 7, "site": "iad", "instance": "u/s", "phase": "Stable", "cause": "Bootstrap",
                       "since": "2026-04-20T14:32:00.123456Z",
                       "holder": { "site": "iad", "instance": "u/s",
                                   "sets": [{ "voters": [{ "site": "pdx", "instance": "v/s" }], "leaseTimeout": "20s", "minPeers": 1 }] } },
        "sites": [{ "name": "pdx", "role": "primary-candidate", "state": "read-only", "secondsBehindSource": null }],
        "conditions": [
            { "type": "Ready", "status": "True", "reason": "TopologyPolled", "message": "", "lastTransitionTime": "2026-04-20T14:32:00Z" },
            { "type": "Degraded", "status": "False", "reason": "Healthy", "message": "", "lastTransitionTime": "2026-04-20T14:32:00Z" } ],
        "plannedFailover": { "phase": "Succeeded", "target": "iad", "sourcePrimary": "pdx", "transactionsLost": 0,
                             "message": "promoted iad, 0 transactions lost" },
    }});
    let merged = groups.patch_status("orders", &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    let read = groups.get("orders").await.unwrap();
    assert_eq!(read, merged);
    let status = read.status.clone().unwrap();
    assert_eq!(status.authority.as_ref().unwrap().epoch, 7);
    // A status that the types print is one that the server takes, without a word lost.
    let printed = Patch::Merge(json!({ "status": status }));
    assert_eq!(groups.patch_status("orders", &PatchParams::default(), &printed).await.unwrap().status.unwrap(), status);

    let mut get = server().kubectl();
    get.args(["get", "mfg", "--namespace", namespace, "--output", "wide"]);
    let table = String::from_utf8(get.output().unwrap().stdout).unwrap();
    let words: Vec<_> = table.split_whitespace().collect();
    let expect = "NAME ACTIVE READY DEGRADED AGE REASON PLANNED EPOCH orders iad True False <age> Healthy Succeeded 7";
    for (word, expect) in words.iter().zip(expect.split(' ')).filter(|(_, expect)| *expect != "<age>") {
        assert_eq!(*word, expect, "{table}");
    }
    assert_eq!(words.len(), expect.split(' ').count(), "{table}");
    for short in ["mb", "mbv"] {
        let mut get = server().kubectl();
        let answer = get.args(["get", short, "--namespace", namespace]).output().unwrap();
        assert!(answer.status.success(), "{short}: {}", String::from_utf8_lossy(&answer.stderr));
    }
}
