//! What is written is what is read, whatever is kept and whatever stood there before.
//!
//! In: everything that a leader can keep. Out: the same again, also from one copy alone where there are two.

use std::collections::BTreeMap;

use crate::common::{kept, record};
use bloodraven_api::group::status::SiteStatus;
use bloodraven_api::{MysqlFailoverGroupStatus, keys};
use bloodraven_blueprint::status::{Written, read, write};
use bloodraven_brain::group::Kept;
use bloodraven_brain::group::kept::SiteKept;
use bloodraven_brain::name::{Instance, Member, Site};
use bloodraven_brain::record::{Cause, Phase, Record, Settings};
use bloodraven_brain::time::{Millis, Wall};
use proptest::prelude::*;
use serde_json::Value;

fn stored(written: &Written) -> (Value, BTreeMap<String, String>) {
    let mut annotations = BTreeMap::from([("somebody.else/key".to_owned(), "value".to_owned())]);
    written.annotations.put(&mut annotations);
    // Through text, as it goes to the API server and comes back.
    let text = serde_json::to_string(&written.status).expect("JSON");
    (serde_json::from_str(&text).expect("JSON"), annotations)
}

fn read_back(written: &Written) -> Kept {
    let (status, annotations) = stored(written);
    read(Some(&status), &annotations).unwrap_or_else(|corrupt| panic!("{corrupt}"))
}

proptest! {
    #[test]
    fn what_is_written_is_what_is_read(kept in kept()) {
        let written = write(&kept, &MysqlFailoverGroupStatus::default()).expect("written");
        prop_assert_eq!(read_back(&written), kept);
    }

    #[test]
    fn nothing_of_what_stood_there_before_shines_through(before in kept(), kept in kept()) {
        let old = write(&before, &MysqlFailoverGroupStatus::default()).expect("written");
        let written = write(&kept, &old.status).expect("written");
        prop_assert_eq!(read_back(&written), kept);
    }

    /// K-07: the last failover, its target and the record survive a status that is gone.
    #[test]
    fn a_lost_status_loses_neither_the_record_nor_the_last_failover(kept in kept()) {
        let written = write(&kept, &MysqlFailoverGroupStatus::default()).expect("written");
        let (_, annotations) = stored(&written);
        let mut expect = Kept { last_failover: kept.last_failover, ..Kept::default() };
        if let Some(record) = kept.record {
            expect = Kept { record: Some(record), promotion: kept.promotion, unapplied: kept.unapplied, ..expect };
        }
        prop_assert_eq!(read(None, &annotations), Ok(expect.clone()));
        prop_assert_eq!(read(Some(&Value::Null), &annotations), Ok(expect));
    }

    /// K-07: the same without the copies.
    #[test]
    fn lost_annotations_lose_nothing(kept in kept()) {
        let written = write(&kept, &MysqlFailoverGroupStatus::default()).expect("written");
        let (status, _) = stored(&written);
        prop_assert_eq!(read(Some(&status), &BTreeMap::new()), Ok(kept));
    }

    #[test]
    fn copies_that_differ_are_joined_by_the_brains_rule(kept in kept(), one in record(), other in record()) {
        let annotated = Kept { record: Some(one), ..kept.clone() };
        let in_status = Kept { record: Some(other), ..kept };
        let (_, annotations) = stored(&write(&annotated, &MysqlFailoverGroupStatus::default()).expect("written"));
        let (status, _) = stored(&write(&in_status, &MysqlFailoverGroupStatus::default()).expect("written"));
        let read = read(Some(&status), &annotations);
        // Two records of one epoch that no leader can have stored both.
        if in_status.contradicts(&annotated.anchor()) {
            prop_assert!(read.is_err());
        } else {
            prop_assert_eq!(read, Ok(Kept::join(annotated.anchor(), in_status)));
        }
    }

    #[test]
    fn what_is_written_fits_the_schema(kept in kept()) {
        use bloodraven_api::admission::{Violation, validate};
        let mut group = common_group();
        group.status = Some(write(&kept, &MysqlFailoverGroupStatus::default()).expect("written").status);
        prop_assert_eq!(validate(&group, None), Vec::<Violation>::new());
    }
}

fn common_group() -> bloodraven_api::MysqlFailoverGroup {
    let site = |name: &str, ip: &str| {
        serde_json::json!({"name": name, "zone": "z", "taintNodeSelector": {"a": "b"}, "lbIP": ip,
                           "storage": {"storageClassName": "x", "size": "1Gi"}})
    };
    let raw = serde_json::json!({
        "apiVersion": "shipstream.io/v1alpha1", "kind": "MysqlFailoverGroup", "metadata": {"name": "orders"},
        "spec": {"sites": [site("iad", "10.0.0.1"), site("pdx", "10.0.0.2")], "secretName": "s",
                 "dns": {"hostname": "db.example.com"}},
    });
    bloodraven_blueprint::spec::object(raw).expect("a group")
}

#[test]
fn nothing_stored_is_no_history() {
    let empty = Value::Object(serde_json::Map::new());
    for status in [None, Some(&Value::Null), Some(&empty)] {
        assert_eq!(read(status, &BTreeMap::new()), Ok(Kept::default()));
    }
}

#[test]
fn an_empty_promotion_is_not_an_unknown_one() {
    for promotion in [None, Some(bloodraven_gtid::GtidSet::new())] {
        let kept = Kept { promotion, ..Kept::default() };
        let written = write(&kept, &MysqlFailoverGroupStatus::default()).expect("written");
        assert_eq!(written.status.promotion_gtid_executed.as_deref(), kept.promotion.as_ref().map(|_| ""));
        assert_eq!(read_back(&written), kept);
    }
}

#[test]
fn a_site_of_which_nothing_is_known_has_no_entry() {
    let sites = BTreeMap::from([(Site::new("iad"), SiteKept::default())]);
    let kept = Kept { sites, ..Kept::default() };
    let before = MysqlFailoverGroupStatus {
        sites: vec![SiteStatus { name: "pdx".to_owned(), ..SiteStatus::default() }],
        ..MysqlFailoverGroupStatus::default()
    };
    let written = write(&kept, &before).expect("written");
    assert_eq!(written.status.sites, before.sites);
    assert_eq!(read_back(&written), Kept::default());
}

#[test]
fn what_the_brain_does_not_keep_stays_as_it_was() {
    let raw = serde_json::json!({
        "observedGeneration": 4, "lastBackupTime": "2026-01-01T00:00:00Z",
        "sites": [{"name": "iad", "state": "writable", "gtidExecuted": "x", "readOnlyTaint": true}],
    });
    let before: MysqlFailoverGroupStatus = serde_json::from_value(raw).expect("a status");
    let written = write(&Kept::default(), &before).expect("written").status;
    let mut expect = before;
    expect.sites[0].read_only_taint = false;
    assert_eq!(written, expect);
}

#[test]
fn annotations_that_are_not_to_be_there_go() {
    let mut annotations: BTreeMap<String, String> =
        [keys::AUTHORITY, keys::LAST_FAILOVER, keys::LAST_FAILOVER_TARGET, "other"]
            .map(|key| (key.to_owned(), "x".to_owned()))
            .into();
    write(&Kept::default(), &MysqlFailoverGroupStatus::default()).expect("written").annotations.put(&mut annotations);
    assert_eq!(annotations.keys().collect::<Vec<_>>(), ["other"]);
}

fn member(pod: &str, store: &str) -> Member {
    Member::new(&Site::new("iad"), &Instance::new(pod, store))
}

fn good_record() -> Record {
    Record {
        epoch: 3,
        tenure: 2,
        seat: None,
        phase: Phase::Revoking,
        voters: vec![member("u", "s")],
        settings: Settings { lease_timeout: Millis(20_000), min_peers: 1 },
        since: Wall(0),
        cause: Cause::Emergency,
        proof: None,
        revoked_at: Some(3),
        holder: None,
        ended: Vec::new(),
    }
}

#[test]
fn what_could_not_be_read_back_is_not_written() {
    let good = good_record();
    let refused = |record: &Record| {
        let kept = Kept { record: Some(record.clone()), ..Kept::default() };
        write(&kept, &MysqlFailoverGroupStatus::default()).err().map(|unwritable| unwritable.field)
    };
    assert_eq!(refused(&good), None);
    for (bad, field) in [
        (Record { epoch: 1 << 63, ..good.clone() }, "authority.epoch"),
        (Record { epoch: 0, ..good.clone() }, "authority.epoch"),
        (Record { tenure: 4, ..good.clone() }, "authority.tenure"),
        (Record { phase: Phase::Stable, ..good.clone() }, "authority.site"),
        (Record { seat: Some(member("u", "s")), ..good.clone() }, "authority.site"),
        (Record { revoked_at: None, ..good.clone() }, "authority.revokedAt"),
        (Record { voters: vec![member("u", "s"), member("", "s")], ..good.clone() }, "authority.voters[1].instance"),
        (Record { voters: vec![member("u", "s/t")], ..good.clone() }, "authority.voters[0].instance"),
    ] {
        assert_eq!(refused(&bad).as_deref(), Some(field), "{bad:?}");
    }
}

#[test]
fn a_promotion_that_is_too_long_for_an_annotation_stands_in_status() {
    let numbers: Vec<String> = (1..12_000_u32).map(|number| format!("{}", number * 2)).collect();
    let text = format!("3e11fa47-71ca-11e1-9e33-c80aa9429562:{}", numbers.join(":"));
    let kept = Kept { record: Some(good_record()), promotion: text.parse().ok(), ..Kept::default() };
    let written = write(&kept, &MysqlFailoverGroupStatus::default()).expect("written");
    assert!(text.len() > 65_536 && written.annotations.authority.as_ref().is_some_and(|text| text.len() < 1000));
    assert_eq!(read_back(&written), kept);
}
