//! A copy that cannot be read is an error that names copy and field: never a panic, never "no history".
//!
//! In: good copies, spoilt by a table and by dice. Out: what the reader says of them.

use std::collections::BTreeMap;

use crate::common::kept;
use bloodraven_api::{MysqlFailoverGroupStatus, keys};
use bloodraven_blueprint::status::{Copy, read, write};
use bloodraven_brain::record::Settings;
use bloodraven_brain::time::Millis;
use proptest::prelude::*;
use serde_json::{Value, json};

type Annotations = BTreeMap<String, String>;

fn good() -> Value {
    json!({
        "authority": {
            "epoch": 12, "tenure": 9, "phase": "Revoking", "cause": "Emergency", "revokedAt": 11,
            "since": "2026-04-20T14:32:00.123456Z", "leaseTimeout": "20s", "minPeers": 1,
            "voters": [{"site": "iad", "instance": "u1/s1"}, {"site": "pdx", "instance": "u2/s2"}],
            "proof": {"type": "ProcessEnded", "site": "iad", "instance": "u1/s1", "at": "2026-04-20T14:32:01Z"},
            "holder": {"site": "iad", "instance": "u1/s1", "sets": [
                {"epoch": 9, "voters": [{"site": "pdx", "instance": "u2/s2"}], "leaseTimeout": "30s", "minPeers": 2}]},
            "ended": [{"site": "iad", "instance": "u1/s1", "at": "2026-04-20T14:31:00Z"}],
        },
        "lastFailover": "2026-04-20T14:00:00Z", "lastFailoverTarget": "iad",
        "promotionGtidExecuted": "",
        "updatePhase": "WaitReplica", "updateSince": "2026-04-20T14:00:00Z",
        "plannedFailover": {"phase": "Failed", "startTime": "2026-04-20T13:00:00Z", "maxLagWait": "5m", "drainTimeout": "30s"},
        "dragonfly": {"staleMasters": [{"name": "iad", "since": "2026-04-20T13:00:00Z"}]},
        "sites": [{"name": "iad", "clone": {"phase": "Done", "source": "reclone", "bytesDone": 1, "bytesTotal": 2}}],
    })
}

/// Puts a value at `/a/b/0`; `Null` takes the field away.
fn spoil(mut status: Value, pointer: &str, with: Value) -> Value {
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
    let parent = status.pointer_mut(parent).expect("a place");
    match (parent, with) {
        (Value::Object(fields), Value::Null) => drop(fields.remove(key)),
        (Value::Object(fields), with) => drop(fields.insert(key.to_owned(), with)),
        (Value::Array(items), with) => items[key.parse::<usize>().expect("an index")] = with,
        _ => panic!("{pointer} leads nowhere"),
    }
    status
}

fn check(pointer: &str, with: Value, field: &str, because: &str) {
    let status = spoil(good(), pointer, with);
    let corrupt = read(Some(&status), &Annotations::new()).expect_err(pointer);
    assert_eq!(corrupt.copy, Copy::Status, "{pointer}");
    assert_eq!(corrupt.field, field, "{pointer}: {corrupt}");
    assert!(corrupt.because.contains(because), "{pointer}: {corrupt}");
}

#[test]
fn the_good_copy_is_good() {
    let kept = read(Some(&good()), &Annotations::new()).expect("good");
    assert_eq!(kept.record.map(|record| record.epoch), Some(12));
}

#[test]
fn a_fault_of_the_record_names_its_field() {
    check("/authority", json!(5), "authority", "invalid type");
    check("/authority", json!([]), "authority", "");
    check("/authority/epoch", Value::Null, "authority", "missing field `epoch`");
    check("/authority/epoch", json!(-3), "authority.epoch", "-3, and cannot be negative");
    check("/authority/epoch", json!(0), "authority.epoch", "the first epoch is 1");
    check("/authority/epoch", json!("12"), "authority.epoch", "invalid type");
    check("/authority/epoch", json!(12.5), "authority.epoch", "invalid type");
    check("/authority/epoch", json!(u64::MAX), "authority.epoch", "invalid value");
    check("/authority/tenure", json!(13), "authority.tenure", "above the epoch");
    check("/authority/phase", json!("Sleeping"), "authority.phase", "is no AuthorityPhase");
    check("/authority/phase", json!("Stable"), "authority.site", "names nobody");
    check("/authority/site", json!("iad"), "authority.instance", "no <pod UID>/<store id>");
    check("/authority/instance", json!("u1/s1"), "authority.site", "names no site");
    check("/authority/cause", json!("Boredom"), "authority.cause", "is no AuthorityCause");
    check("/authority/since", Value::Null, "authority.since", "is missing");
    check("/authority/since", json!("yesterday"), "authority.since", "");
    check("/authority/revokedAt", Value::Null, "authority.revokedAt", "is missing while Revoking");
    check("/authority/revokedAt", json!(13), "authority.revokedAt", "above the epoch");
    check("/authority/revokedAt", json!(-1), "authority.revokedAt", "negative");
    check("/authority/voters/1/instance", json!("u2"), "authority.voters[1].instance", "no <pod UID>/<store id>");
    check("/authority/voters/0", json!(["iad", "u1/s1"]), "authority.voters[0]", "list stands where an object");
    check("/authority/proof/type", json!("Hope"), "authority.proof.type", "is no ProofType");
    check("/authority/proof/instance", json!("/"), "authority.proof.instance", "no <pod UID>/<store id>");
    check("/authority/holder/site", json!(""), "authority.holder.site", "names no site");
    check("/authority/holder/sets/0/epoch", json!(-9), "authority.holder.sets[0].epoch", "negative");
    check("/authority/holder/sets/0/minPeers", json!(-1), "authority.holder.sets[0].minPeers", "invalid value");
    check("/authority/holder/sets/0/leaseTimeout", json!("-1s"), "authority.holder.sets[0].leaseTimeout", "negative");
    check("/authority/ended/0/at", json!(""), "authority.ended[0].at", "");
}

#[test]
fn a_fault_beside_the_record_names_its_field() {
    check("/lastFailoverTarget", Value::Null, "lastFailoverTarget", "is missing");
    check("/lastFailover", Value::Null, "lastFailover", "is missing");
    check("/lastFailoverTarget", json!(""), "lastFailoverTarget", "names no site");
    check("/promotionGtidExecuted", json!("x:1"), "promotionGtidExecuted", "is no GTID set");
    check("/unappliedGtidAtPromotion", json!("1-5"), "unappliedGtidAtPromotion", "is no GTID set");
    check("/updatePhase", json!("Later"), "updatePhase", "is no UpdatePhase");
    check("/updateSince", Value::Null, "updateSince", "is missing");
    check("/plannedFailover/phase", Value::Null, "plannedFailover", "missing field `phase`");
    check("/plannedFailover/startTime", Value::Null, "plannedFailover.startTime", "is missing");
    check("/plannedFailover/maxLagWait", json!("soon"), "plannedFailover.maxLagWait", "no number");
    check("/plannedFailover/transactionsLost", json!(-1), "plannedFailover.transactionsLost", "negative");
    check("/plannedFailover/sourceGtidAtFence", json!("?"), "plannedFailover.sourceGtidAtFence", "is no GTID set");
    check("/dragonfly", json!([]), "dragonfly", "a list stands where an object is due");
    check("/dragonfly/staleMasters/0/since", Value::Null, "dragonfly.staleMasters[0]", "missing field `since`");
    check("/sites", json!([{"name": "iad"}, {"name": "iad"}]), "sites[iad]", "is there twice");
    check("/sites/0/clone/bytesTotal", Value::Null, "sites[iad].clone.bytesTotal", "is missing");
    check("/sites/0/divergentGtid", json!("x"), "sites[iad].divergentGtid", "is no GTID set");
}

#[test]
fn a_status_that_is_no_object_is_corrupt() {
    for status in [json!([]), json!(""), json!(0), json!(false), json!([[]])] {
        assert!(read(Some(&status), &Annotations::new()).is_err(), "{status}");
    }
}

fn check_annotation(key: &'static str, text: &str, field: &str) {
    let annotations = Annotations::from([(key.to_owned(), text.to_owned())]);
    // One bad copy is enough, however good the other is.
    let corrupt = read(Some(&good()), &annotations).expect_err(text);
    assert!(matches!(corrupt.copy, Copy::Annotation(_)), "{text}: {corrupt}");
    assert_eq!(corrupt.field, field, "{text}: {corrupt}");
}

#[test]
fn one_bad_annotation_is_enough() {
    for text in ["", " ", "null", "[]", "{}", "garbage", "{\"epoch\":1}", "{", "\"Stable\"", "12"] {
        check_annotation(keys::AUTHORITY, text, "");
    }
    let record = good()["authority"].to_string();
    check_annotation(keys::AUTHORITY, &format!("{record}}}"), "");
    check_annotation(keys::AUTHORITY, &record.replace("\"epoch\":12", "\"epoch\":12,\"epoch\":13"), "");
    check_annotation(keys::AUTHORITY, &record.replace("u2/s2", "u2"), "holder.sets[0].voters[0].instance");
    let with_promotion = record.replace("\"epoch\":12", "\"epoch\":12,\"promotionGtidExecuted\":\"x\"");
    check_annotation(keys::AUTHORITY, &with_promotion, "promotionGtidExecuted");
    check_annotation(keys::LAST_FAILOVER, "yesterday", "");
    check_annotation(keys::LAST_FAILOVER, "2026-04-20T14:32:00Z", "");
    check_annotation(keys::LAST_FAILOVER_TARGET, "iad", "");
}

#[test]
fn copies_of_one_epoch_that_contradict_each_other_are_corrupt() {
    let record = good()["authority"].to_string();
    let read_with =
        |text: &str| read(Some(&good()), &Annotations::from([(keys::AUTHORITY.to_owned(), text.to_owned())]));
    assert_eq!(read_with(&record).expect("the same twice").record.map(|record| record.epoch), Some(12));
    let other = record.replace("\"voters\":[{\"instance\":\"u1/s1\",\"site\":\"iad\"},", "\"voters\":[");
    assert_ne!(record, other);
    let said = read_with(&other).expect_err("other voters under the same epoch").to_string();
    assert!(said.contains("both of epoch 12 and contradict each other; restore it, or remove it if"), "{said}");
    let ahead = other.replace("\"epoch\":12", "\"epoch\":13");
    assert_eq!(read_with(&ahead).expect("ahead").record.map(|record| record.epoch), Some(13));
}

#[test]
fn the_sentence_names_copy_field_reason_and_the_way_on() {
    let status = spoil(good(), "/authority/epoch", json!(-3));
    let said = read(Some(&status), &Annotations::new()).expect_err("negative").to_string();
    assert_eq!(
        said,
        "status: authority.epoch: is -3, and cannot be negative; restore the field from a copy of the object; nothing \
         moves until it can be read"
    );
    let annotations = Annotations::from([(keys::AUTHORITY.to_owned(), "{".to_owned())]);
    let said = read(None, &annotations).expect_err("no JSON").to_string();
    assert!(said.starts_with("annotation bloodraven.shipstream.io/authority: is no JSON: "), "{said}");
    assert!(said.contains("remove it if status.authority is right: that one may be older"), "{said}");
}

#[test]
fn fields_of_other_versions_and_of_other_readers_are_no_fault() {
    let mut status = spoil(good(), "/authority/novelty", json!({"a": [1]}));
    for (pointer, with) in [
        ("/novelty", json!(1)),
        ("/sites/0/state", json!("drowsy")),
        ("/backup", json!("?")),
        ("/conditions", json!(7)),
        ("/plannedFailover/novelty", json!([])),
    ] {
        status = spoil(status, pointer, with);
    }
    assert_eq!(read(Some(&status), &Annotations::new()), read(Some(&good()), &Annotations::new()));
}

#[test]
fn an_older_record_takes_its_settings_from_its_newest_set() {
    let mut status = good();
    for pointer in ["/authority/leaseTimeout", "/authority/minPeers", "/authority/holder/sets/0/epoch"] {
        status = spoil(status, pointer, Value::Null);
    }
    let record = read(Some(&status), &Annotations::new()).expect("readable").record.expect("a record");
    assert_eq!(record.settings, Settings { lease_timeout: Millis(30_000), min_peers: 2 });
    let holder = record.holder.expect("a holder");
    assert!(!holder.sql_fence_sent);
    assert_eq!(holder.sets[0].epoch, 12, "it stays until a later epoch than the record's is acknowledged");
    let without_sets = spoil(status, "/authority/holder", Value::Null);
    let corrupt = read(Some(&without_sets), &Annotations::new()).expect_err("no settings");
    assert_eq!(corrupt.field, "authority.leaseTimeout");
}

/// Every place in a value, as pointers.
fn places(value: &Value, path: &str, found: &mut Vec<String>) {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields.iter().map(|(key, value)| (key.clone(), value)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(index, item)| (index.to_string(), item)).collect(),
        _ => Vec::new(),
    };
    for (key, child) in children {
        let path = format!("{path}/{key}");
        places(child, &path, found);
        found.push(path);
    }
}

fn junk() -> impl Strategy<Value = Value> {
    let word = prop_oneof!["[a-zA-Z/:,{\"-]{0,6}", Just("Stable".to_owned()), Just("2026-04-20T14:32:00Z".to_owned())];
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word.prop_map(Value::from),
        Just(json!([])),
        Just(json!({})),
        Just(json!([null, 1, "x"])),
    ]
}

/// Whoever takes the key itself away takes the copy away; everything else leaves a copy.
fn holds_a_record(status: &Value, annotations: &Annotations) -> bool {
    status.get("authority").is_some_and(|authority| !authority.is_null()) || annotations.contains_key(keys::AUTHORITY)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_spoilt_status_is_never_no_history(kept in kept(), at in any::<prop::sample::Index>(), junk in junk()) {
        let written = write(&kept, &MysqlFailoverGroupStatus::default()).expect("written");
        let status = serde_json::to_value(&written.status).expect("JSON");
        let mut found = Vec::new();
        places(&status, "", &mut found);
        let spoilt = spoil(status, &found[at.index(found.len())], junk);
        let none = Annotations::new();
        if let Ok(read) = read(Some(&spoilt), &none) {
            prop_assert!(read.record.is_some() || !holds_a_record(&spoilt, &none), "{spoilt}");
        }
    }

    #[test]
    fn a_spoilt_annotation_is_never_no_history(
        kept in kept(), at in any::<prop::sample::Index>(), length in 0..4_usize, junk in "[\\PC\"{}\\[\\]:,0-9-]{0,3}",
    ) {
        let written = write(&kept, &MysqlFailoverGroupStatus::default()).expect("written");
        let mut annotations = Annotations::new();
        written.annotations.put(&mut annotations);
        if let Some(text) = annotations.get_mut(keys::AUTHORITY) {
            let mut letters: Vec<char> = text.chars().collect();
            let from = at.index(letters.len());
            letters.splice(from..(from + length).min(letters.len()), junk.chars());
            *text = letters.into_iter().collect();
        }
        if let Ok(read) = read(None, &annotations) {
            prop_assert_eq!(read.record.is_some(), annotations.contains_key(keys::AUTHORITY));
        }
    }

    #[test]
    fn no_text_at_all_makes_it_panic(text in "\\PC{0,60}", status in junk()) {
        let annotations = [keys::AUTHORITY, keys::LAST_FAILOVER, keys::LAST_FAILOVER_TARGET];
        let annotations: Annotations = annotations.map(|key| (key.to_owned(), text.clone())).into();
        prop_assert!(read(Some(&status), &annotations).is_err());
    }
}
