//! Admin verbs on a directory without processes: requests are written as they should be, and nothing is changed when any
//! word is wrong.

use super::{annotate, pause, promote, reclone, resume, status, what_if, why};
use crate::store::Store;
use crate::testing::Folder;
use bloodraven_api::keys;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// A group of three sites whose primary is iad; fra has two transactions of its own.
fn group() -> (Folder, PathBuf) {
    let folder = Folder::new();
    let dir = folder.path().join("group");
    let site = |name: &str, role: &str| {
        json!({
            "name": name, "role": role, "zone": name, "taintNodeSelector": {"site": name}, "lbIP": "127.0.0.1",
            "storage": {"storageClassName": "local", "size": "1Gi"},
        })
    };
    let object = json!({
        "apiVersion": format!("{}/{}", keys::API_GROUP, keys::API_VERSION),
        "kind": "MysqlFailoverGroup",
        "metadata": {"name": "local", "namespace": "local", "uid": "u"},
        "spec": {
            "secretName": "secrets",
            "dns": {"hostname": "primary.local.internal"},
            "sites": [site("iad", "primary-candidate"), site("pdx", "primary-candidate"), site("fra", "dr-only")],
        },
    });
    let object = bloodraven_api::admission::with_defaults::<bloodraven_api::MysqlFailoverGroup>(object);
    let store = Store::create(&dir, &object).unwrap();
    let told = json!({
        "activeSite": "iad",
        "authority": {"epoch": 4, "tenure": 4, "site": "iad", "phase": "Stable", "cause": "Bootstrap"},
        "sites": [
            {"name": "iad", "state": "writable"},
            {"name": "pdx", "state": "read-only", "replicating": true, "secondsBehindSource": 0},
            {"name": "fra", "state": "read-only", "recoveryState": "RecoveryBlocked",
             "divergentGtid": "0a11fa47-71ca-11e1-9e33-c80aa9429562:7-8", "divergentTransactionCount": 2},
        ],
        "plannedFailover": {"phase": "Failed", "target": "pdx", "reason": "LagTimeout", "message": "300 s behind"},
        "conditions": [
            {"type": "Ready", "status": "True"},
            {"type": "RecoveryPending", "status": "True", "reason": "DivergentTransactions", "message": "fra has 2"},
        ],
    });
    let put = |value: &mut Value| {
        value["status"] = told.clone();
        Ok(())
    };
    store.change_group(None, put).unwrap();
    (folder, dir)
}

fn object(dir: &Path) -> Value {
    Store::open(dir).unwrap().read_group().unwrap().value
}

fn annotation(dir: &Path, key: &str) -> Value {
    object(dir)["metadata"]["annotations"][key].clone()
}

#[test]
fn requests_are_the_annotations_and_fields_of_a_cluster() {
    let (_folder, dir) = group();
    promote(&dir, "pdx", Some("30s"), Some("tuesday")).unwrap();
    assert_eq!(annotation(&dir, keys::PLANNED_FAILOVER), "pdx:maxLagWait=30s:id=tuesday");
    reclone(&dir, "pdx", None).unwrap();
    assert_eq!(annotation(&dir, keys::RECLONE_SITE), "pdx");
    reclone(&dir, "fra", Some("0a11fa47")).unwrap();
    assert_eq!(annotation(&dir, keys::RECLONE_SITE), "fra:0a11fa47");
    pause(&dir, Some("2030-01-31T12:00:00Z")).unwrap();
    assert_eq!(
        (&object(&dir)["spec"]["paused"], &object(&dir)["spec"]["pausedUntil"]),
        (&json!(true), &json!("2030-01-31T12:00:00Z"))
    );
    resume(&dir).unwrap();
    assert_ne!(object(&dir)["spec"]["paused"], json!(true));
    annotate(&dir, "example.com/owner=ann").unwrap();
    assert_eq!(annotation(&dir, "example.com/owner"), "ann");
    annotate(&dir, "example.com/owner-").unwrap();
    annotate(&dir, "reclone-site-").unwrap();
    assert_eq!(
        (annotation(&dir, "example.com/owner"), annotation(&dir, keys::RECLONE_SITE)),
        (Value::Null, Value::Null)
    );
}

#[test]
fn whatever_is_wrong_is_said_and_nothing_is_changed() {
    let (_folder, dir) = group();
    let before = object(&dir);
    let dir = dir.as_path();
    let rows = [
        (promote(dir, "mars", None, None), "`mars` is not a site; this group has iad, pdx, fra"),
        (promote(dir, "fra", None, None), "fra: it is dr-only and never promoted"),
        (promote(dir, "iad", None, None), "iad: it is the primary already"),
        (promote(dir, "pdx", Some("soon"), None), "maxLagWait"),
        (promote(dir, "pdx", None, Some("a:b")), "b"),
        (reclone(dir, "mars", None), "`mars` is not a site"),
        (reclone(dir, "iad", None), "iad: it is the primary: fail over to another site first"),
        (reclone(dir, "pdx", Some("0a11fa47")), "pdx: it has nothing that the primary lacks"),
        (reclone(dir, "fra", None), "fra: it has transactions that the primary lacks (0a11fa47-"),
        (reclone(dir, "fra", Some("0a1")), "fra: --divergent is not the beginning (8 characters or more)"),
        (reclone(dir, "fra", Some("ffffffff")), "fra: --divergent is not the beginning"),
        (pause(dir, Some("tomorrow")), "`tomorrow` is not a time"),
        (annotate(dir, "planned-failover"), "`planned-failover`: write key=value"),
        (annotate(dir, "a b/c=d"), "`a b/c` is not the key of an annotation"),
        (annotate(dir, "authority={}"), "bloodraven.shipstream.io/authority is the operator's own"),
    ];
    for (outcome, said) in rows {
        let error = outcome.unwrap_err().to_string();
        assert!(error.starts_with(said) || error.contains(said), "{error}\nwanted {said}");
    }
    assert_eq!(object(dir), before);
}

#[test]
fn a_directory_that_is_none_another_version_or_corrupt_is_told() {
    let (folder, dir) = group();
    let check = |dir: &Path, said: &str| {
        for outcome in [
            promote(dir, "pdx", None, None),
            reclone(dir, "pdx", None),
            pause(dir, None),
            resume(dir),
            annotate(dir, "a/b=c"),
            status(dir, false),
        ] {
            let error = outcome.unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    };
    check(&folder.path().join("nothing"), "is no state directory");
    std::fs::write(dir.join("version"), "7\n").unwrap();
    check(&dir, "has format \"7\" and this program reads \"1\"");
    std::fs::write(dir.join("version"), "1\n").unwrap();
    std::fs::write(dir.join("group.json"), "{").unwrap();
    check(&dir, "group.json is corrupt");
    assert_eq!(std::fs::read(dir.join("group.json")).unwrap(), b"{");
}

#[test]
fn the_status_page_names_what_matters() {
    let (_folder, dir) = group();
    let page = status(&dir, false).unwrap();
    let expect = "\
local/local  iad may write  epoch 4 Stable (Bootstrap)

SITE  ROLE               STATE      FOLLOWS  BEHIND  REMARKS
iad   primary-candidate  writable   -        -
pdx   primary-candidate  read-only  yes      0 s
fra   dr-only            read-only  no       -       2 divergent: 0a11fa47-71ca-11e1-9e33-c80aa9429562:7-8; RecoveryBlocked

planned failover to pdx: Failed LagTimeout 300 s behind

RecoveryPending DivergentTransactions: fra has 2
";
    assert_eq!(page, expect);
    let whole: Value = serde_json::from_str(&status(&dir, true).unwrap()).unwrap();
    assert_eq!(whole["activeSite"], "iad");
}

#[tokio::test]
async fn questions_without_an_operator_say_so() {
    let (_folder, dir) = group();
    let check = |outcome: Result<String, super::Error>, said: &str| {
        let error = outcome.unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    };
    check(why(&dir, false).await, "playground.json is not there: nothing runs");
    check(what_if(&dir, &["mars".to_owned()], false).await, "`mars` is not a site");
    check(what_if(&dir, &[], false).await, "name a site that dies");
    std::fs::write(dir.join("playground.json"), "{").unwrap();
    check(why(&dir, false).await, "playground.json is corrupt");
    std::fs::write(dir.join("playground.json"), r#"{"state":"stopping","operator":{"pid":null,"http":"127.0.0.1:1"}}"#)
        .unwrap();
    check(why(&dir, false).await, "playground.json says stopping");
    std::fs::write(dir.join("playground.json"), r#"{"state":"ready","operator":{"pid":7,"http":"127.0.0.1:1"}}"#)
        .unwrap();
    check(why(&dir, false).await, "no operator answers for");
}
