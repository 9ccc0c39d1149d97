//! The code's verdict on every manifest that the API server is asked about in `e2e/tests/api_manifests.rs`: the same
//! files, without the server.

#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "../../../e2e/manifests/corpus.rs"]
mod corpus;

use std::path::Path;

use bloodraven_api::admission::{self, Admitted, Violation};
use bloodraven_api::{MysqlBackup, MysqlBackupVerification, MysqlFailoverGroup};
use corpus::{Change, Creation};
use serde_json::Value;

fn folder() -> std::path::PathBuf {
    corpus::folder(env!("CARGO_MANIFEST_DIR"))
}

/// The code's verdict: nothing, or the violations.
fn verdict(manifest: &Value, old: Option<&Value>) -> Vec<Violation> {
    fn of<K: Admitted>(manifest: &Value, old: Option<&Value>) -> Vec<Violation> {
        let old = old.map(|old| admission::with_defaults::<K>(old.clone()));
        admission::read_strictly::<K>(manifest.clone(), old.as_ref()).err().unwrap_or_default()
    }
    match manifest["kind"].as_str() {
        Some("MysqlFailoverGroup") => of::<MysqlFailoverGroup>(manifest, old),
        Some("MysqlBackup") => of::<MysqlBackup>(manifest, old),
        Some("MysqlBackupVerification") => of::<MysqlBackupVerification>(manifest, old),
        kind => panic!("no such kind: {kind:?}"),
    }
}

fn check(name: &str, found: &[Violation], refused: &std::collections::BTreeMap<String, String>) {
    assert_eq!(found.is_empty(), refused.is_empty(), "{name}: {found:?}");
    for field in refused.keys() {
        assert!(found.iter().any(|v| &v.path == field), "{name}: nothing about {field} in {found:?}");
    }
}

#[test]
fn bases_and_accepted_manifests_are_accepted() {
    let folder = folder();
    for (name, manifest) in corpus::bases(&folder) {
        check(&name, &verdict(&manifest, None), &[].into());
    }
    for case in corpus::read::<Vec<Creation>>(&folder.join("accepted.yaml")) {
        check(&case.name, &verdict(&case.manifest(&folder), None), &[].into());
    }
}

/// K-12, K-13: zero and inverted durations, names and references, by the operator's own check.
#[test]
fn refused_manifests_are_refused_with_their_fields() {
    let folder = folder();
    for case in corpus::read::<Vec<Creation>>(&folder.join("refused.yaml")) {
        check(&case.name, &verdict(&case.manifest(&folder), None), &case.refused);
    }
}

/// The operator holds typed objects: what got past the API server and can be read at all is caught there.
#[test]
fn what_bypassed_admission_is_caught_in_the_typed_object() {
    fn caught<K: Admitted>(manifest: &Value) -> Option<bool> {
        let typed: K = serde_json::from_value(manifest.clone()).ok()?;
        Some(!admission::validate(&typed, None).is_empty())
    }
    let folder = folder();
    let mut readable = 0;
    for case in corpus::read::<Vec<Creation>>(&folder.join("refused.yaml")) {
        let manifest = case.manifest(&folder);
        let caught = match manifest["kind"].as_str() {
            Some("MysqlBackup") => caught::<MysqlBackup>(&manifest),
            Some("MysqlBackupVerification") => caught::<MysqlBackupVerification>(&manifest),
            _ => caught::<MysqlFailoverGroup>(&manifest),
        };
        assert_ne!(caught, Some(false), "{}", case.name);
        readable += usize::from(caught.is_some());
    }
    assert!(readable > 80, "only {readable} of the manifests can be read");
}

#[test]
fn changes_are_judged_by_what_was_there() {
    let folder = folder();
    for case in corpus::read::<Vec<Change>>(&folder.join("changes.yaml")) {
        let (mut before, mut after) = (case.before(&folder), case.after(&folder));
        if let Some(status) = &case.status {
            before["status"] = status.clone();
            after["status"] = status.clone();
        }
        check(&case.name, &verdict(&after, Some(&before)), &case.refused);
    }
}

#[test]
fn sixty_four_sites_are_accepted() {
    let folder = folder();
    check("64 sites", &verdict(&corpus::with_sites(&folder, 64), None), &[].into());
    check("256 sites", &verdict(&corpus::with_sites(&folder, 256), None), &[].into());
    check(
        "257 sites",
        &verdict(&corpus::with_sites(&folder, 257), None),
        &[("spec.sites".into(), String::new())].into(),
    );
}

/// K-14: no default of the sidecar's image is stored in an object.
#[test]
fn defaults_are_as_documented() {
    let folder = folder();
    for (name, manifest) in corpus::bases(&folder) {
        let file = folder.join("stored").join(format!("{name}.yaml"));
        if file.exists() {
            let stored = match manifest["kind"].as_str() {
                Some("MysqlBackup") => admission::with_defaults::<MysqlBackup>(manifest),
                Some("MysqlBackupVerification") => admission::with_defaults::<MysqlBackupVerification>(manifest),
                _ => admission::with_defaults::<MysqlFailoverGroup>(manifest),
            };
            for (field, expect) in corpus::read::<serde_json::Map<String, Value>>(&file) {
                assert_eq!(stored["spec"][&field], expect, "{name}: {field}");
            }
        }
    }
    let minimal = admission::with_defaults::<MysqlFailoverGroup>(corpus::base(&folder, "group"));
    let documented: Value = corpus::read(&folder.join("stored/group.yaml"));
    assert_eq!(minimal["spec"], documented, "the whole spec");
}

/// A schema default and the default of the type are written in two places; here they meet.
#[test]
fn the_schema_and_the_types_have_the_same_defaults() {
    let folder = folder();
    for (name, manifest) in corpus::bases(&folder) {
        match manifest["kind"].as_str() {
            Some("MysqlBackup") => same_defaults::<MysqlBackup>(&name, &manifest),
            Some("MysqlBackupVerification") => same_defaults::<MysqlBackupVerification>(&name, &manifest),
            _ => same_defaults::<MysqlFailoverGroup>(&name, &manifest),
        }
    }
}

fn same_defaults<K: Admitted + PartialEq + std::fmt::Debug>(name: &str, manifest: &Value) {
    let from_types: K = serde_json::from_value(manifest.clone()).expect(name);
    let from_schema: K = serde_json::from_value(admission::with_defaults::<K>(manifest.clone())).expect(name);
    assert_eq!(from_types, from_schema, "{name}");
    // What is read, printed and read again is the same, and nothing is printed that the schema does not know.
    let printed = serde_json::to_value(&from_types).expect(name);
    assert_eq!(admission::read_strictly::<K>(printed, None).expect(name), from_types, "{name}");
}

#[test]
fn examples_are_accepted_to_the_last_field() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut files = 0;
    for file in std::fs::read_dir(examples).expect("the folder examples") {
        let file = file.expect("a file").path();
        if file.extension().is_some_and(|e| e == "yaml") {
            let text = std::fs::read_to_string(&file).expect("readable");
            for manifest in serde_saphyr::from_multiple::<Value>(&text).expect("YAML") {
                let name = file.display().to_string();
                check(&name, &verdict(&manifest, None), &[].into());
                match manifest["kind"].as_str() {
                    Some("MysqlBackup") => same_defaults::<MysqlBackup>(&name, &manifest),
                    Some("MysqlBackupVerification") => same_defaults::<MysqlBackupVerification>(&name, &manifest),
                    _ => same_defaults::<MysqlFailoverGroup>(&name, &manifest),
                }
            }
            files += 1;
        }
    }
    assert!(files >= 5, "only {files} examples");
}
