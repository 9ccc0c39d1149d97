//! The CRDs as text: committed as generated, readable as what they are made of, small enough to be applied.

use std::path::Path;

use bloodraven_api::admission::Admitted;
use bloodraven_api::{MysqlBackup, MysqlBackupVerification, MysqlFailoverGroup, crd};
use serde_json::Value;

/// `kubectl apply` keeps the whole object in one annotation, and annotations end here.
const ANNOTATIONS_LIMIT: usize = 262_144;

#[test]
fn committed_crds_are_the_generated_ones() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/crds");
    let mut committed: Vec<String> = std::fs::read_dir(&folder)
        .expect("the folder deploy/crds")
        .map(|file| file.expect("a file").file_name().to_string_lossy().into_owned())
        .collect();
    committed.sort();
    let mut generated = crd::each();
    generated.sort();
    assert_eq!(committed, generated.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>());
    for (name, text) in generated {
        let file = std::fs::read_to_string(folder.join(&name)).expect("readable");
        // Not assert_eq: the difference of two texts of a quarter megabyte helps nobody.
        assert!(file == text, "deploy/crds/{name} is not what the types say; run cargo xtask codegen");
        assert!(text.starts_with(crd::HEADER), "{name}");
    }
}

#[test]
fn the_text_says_what_the_definition_says() {
    let definitions =
        [MysqlFailoverGroup::definition(), MysqlBackup::definition(), MysqlBackupVerification::definition()];
    let names = ["mysqlfailovergroups", "mysqlbackups", "mysqlbackupverifications"];
    let documents = serde_saphyr::from_multiple::<Value>(&crd::all_yaml()).expect("YAML");
    assert_eq!(documents.len(), 3);
    for (((definition, plural), (file, text)), document) in
        definitions.iter().zip(names).zip(crd::each()).zip(documents)
    {
        assert_eq!(file, format!("{plural}.shipstream.io.yaml"));
        let read: Value = serde_saphyr::from_str(&text).expect("YAML");
        assert_eq!(read, definition.crd(), "{file}");
        assert_eq!(document, read, "{file}");
        assert!(definition.crd().to_string().len() < ANNOTATIONS_LIMIT, "{file} is too large for kubectl apply");
    }
}

/// K-08: the status of every kind says which spec it speaks of.
#[test]
fn every_kind_says_of_which_spec_its_status_speaks() {
    for definition in
        [MysqlFailoverGroup::definition(), MysqlBackup::definition(), MysqlBackupVerification::definition()]
    {
        let status = &definition.schema()["properties"]["status"]["properties"];
        assert_eq!(status["observedGeneration"]["type"], "integer", "{status}");
    }
}

/// Every field has a description, so that `kubectl explain` explains; what is borrowed from Kubernetes is explained there.
#[test]
fn every_field_of_ours_is_described() {
    for definition in
        [MysqlFailoverGroup::definition(), MysqlBackup::definition(), MysqlBackupVerification::definition()]
    {
        let mut missing = Vec::new();
        let crd = definition.crd();
        undescribed(&crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"], "", &mut missing);
        assert!(missing.is_empty(), "{missing:?}");
    }
}

fn undescribed(node: &Value, path: &str, missing: &mut Vec<String>) {
    const BORROWED: &[&str] = &[
        "containerSecurityContext",
        "extraContainers",
        "extraInitContainers",
        "mysqldResources",
        "podSecurityContext",
        "resources",
        "sidecarResources",
    ];
    for (name, child) in node.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let path = format!("{path}.{name}");
        if path != ".metadata" && path != ".metadata.name" && child.get("description").is_none() {
            missing.push(path.clone());
        }
        if !BORROWED.contains(&name.as_str()) {
            undescribed(child, &path, missing);
        }
    }
    if let Some(items) = node.get("items") {
        undescribed(items, &format!("{path}[]"), missing);
    }
}
