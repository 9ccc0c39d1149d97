//! Specs and requests: what is right comes out in the brain's words, what is wrong with the field and the fix.
//!
//! In: group objects and annotations. Out: the brain's spec and requests.

use std::collections::BTreeMap;

use bloodraven_api::keys;
use bloodraven_blueprint::{requests, spec};
use bloodraven_brain::authority::Policy;
use bloodraven_brain::group::Spec;
use bloodraven_brain::group::input::{Consent, PlannedWish, RecloneWish, Requests};
use bloodraven_brain::group::spec::{CacheSpec, Durability, Pause, PlannedSpec, SiteSpec, UpdateStrategy};
use bloodraven_brain::name::Site;
use bloodraven_brain::record::Settings;
use bloodraven_brain::site::{Role, Thresholds};
use bloodraven_brain::time::{Millis, Wall};
use serde_json::{Value, json};

const NOW: Wall = Wall(1_776_695_520_000);

fn group(more: &Value) -> Value {
    let site = |name: &str, role: &str| {
        json!({"name": name, "role": role, "zone": "z", "taintNodeSelector": {"a": "b"}, "lbIP": "10.0.0.1",
               "storage": {"storageClassName": "x", "size": "1Gi"}})
    };
    let mut object = json!({
        "apiVersion": "shipstream.io/v1alpha1", "kind": "MysqlFailoverGroup", "metadata": {"name": "orders"},
        "spec": {"sites": [site("iad", "primary-candidate"), site("pdx", ""), site("fra", "dr-only")],
                 "secretName": "s", "dns": {"hostname": "db.example.com"}},
        "status": {"authority": "unreadable, and nobody minds here"},
    });
    for (key, value) in more.as_object().expect("fields") {
        object["spec"][key] = value.clone();
    }
    object
}

fn read(more: &Value, account: bool) -> Result<Spec, Vec<String>> {
    let object = spec::object(group(more)).map_err(|found| vec![found[0].to_string()])?;
    let read = spec::group(&object, None, NOW, account);
    read.map_err(|found| found.iter().map(ToString::to_string).collect())
}

fn site(name: &str) -> Site {
    Site::new(name)
}

#[test]
fn a_bare_spec_has_every_default() {
    let expect = Spec {
        name: "orders".to_owned(),
        sites: vec![
            SiteSpec { site: site("iad"), role: Role::PrimaryCandidate },
            SiteSpec { site: site("pdx"), role: Role::PrimaryCandidate },
            SiteSpec { site: site("fra"), role: Role::DrOnly },
        ],
        poll_interval: Millis(2000),
        thresholds: Thresholds { failure: 3, recovery: 2 },
        cooldown: Millis(300_000),
        proof: Policy::Required,
        lease: Settings { lease_timeout: Millis(20_000), min_peers: 1 },
        peer_check: Millis(5000),
        priorities: Vec::new(),
        max_lag: Millis(300_000),
        durability: Durability::Async,
        planned: PlannedSpec { max_lag_wait: Millis(300_000), drain_timeout: Millis(30_000), defer: false },
        cache: None,
        update: UpdateStrategy::Ordered,
        clone_timeout: Millis(3_600_000),
        replication_account: false,
        paused: None,
    };
    assert_eq!(read(&json!({}), false), Ok(expect));
}

#[test]
fn everything_that_is_said_is_heard() {
    let more = json!({
        "pollInterval": "250ms", "failureThreshold": 5, "recoveryThreshold": 4, "failoverCooldown": "0s",
        "promotion": {"proof": "BestEffort"}, "updateStrategy": "Recreate", "cloneTimeout": 60,
        "sidecar": {"leaseTimeout": "10.5s", "peerCheckInterval": "1s", "minPeers": 2},
        "replication": {"maxLagSeconds": 7, "durability": "SemiSync", "semiSyncTimeout": "3s"}, "paused": true, "pausedReason": "why", "pausedUntil": "2026-04-20T14:32:00Z",
        "plannedFailover": {"maxLagWait": "1m", "drainTimeout": "2s", "onCooldown": "defer"},
        "dragonfly": {"enabled": true, "image": "df:v1.38.0", "staleMasterGrace": "10s", "snapshot": {"dir": "/s"},
                      "plannedFailover": {"maxSyncWait": "3s", "onSyncTimeout": "fail"}},
    });
    let spec = read(&more, true).expect("a spec");
    assert_eq!(spec.poll_interval, Millis(250));
    assert_eq!(spec.thresholds, Thresholds { failure: 5, recovery: 4 });
    assert_eq!((spec.cooldown, spec.proof), (Millis(0), Policy::BestEffort));
    assert_eq!(spec.lease, Settings { lease_timeout: Millis(10_500), min_peers: 2 });
    assert_eq!((spec.peer_check, spec.max_lag, spec.clone_timeout), (Millis(1000), Millis(7000), Millis(60_000)));
    assert_eq!((spec.update, spec.replication_account), (UpdateStrategy::Recreate, true));
    assert_eq!(spec.paused, Some(Pause { reason: "why".to_owned(), until: Some(NOW) }));
    let planned = PlannedSpec { max_lag_wait: Millis(60_000), drain_timeout: Millis(2000), defer: true };
    assert_eq!(spec.planned, planned);
    assert_eq!(spec.durability, Durability::SemiSync { timeout: Millis(3000) });
    let cache = CacheSpec {
        image: "df:v1.38.0".to_owned(),
        max_sync_wait: Millis(3000),
        fail_on_timeout: true,
        stale_master_grace: Millis(10_000),
        snapshot_dir: Some("/s".to_owned()),
    };
    assert_eq!(spec.cache, Some(cache));
    assert_eq!(read(&json!({"dragonfly": {"enabled": false}}), true).expect("a spec").cache, None);
}

#[test]
fn the_preferred_site_comes_first_and_once() {
    for (policy, expect) in [
        (json!({}), vec![]),
        (json!({"preferSite": "pdx"}), vec!["pdx"]),
        (json!({"sitePriorities": ["pdx", "iad"]}), vec!["pdx", "iad"]),
        (json!({"preferSite": "pdx", "sitePriorities": ["iad"]}), vec!["pdx", "iad"]),
        (json!({"preferSite": "pdx", "sitePriorities": ["pdx", "iad"]}), vec!["pdx", "iad"]),
    ] {
        let spec = read(&json!({"splitBrainPolicy": policy}), true).expect("a spec");
        assert_eq!(spec.priorities, expect.into_iter().map(site).collect::<Vec<_>>(), "{policy}");
    }
}

/// K-12: the operator refuses what got past admission, leases below three peer checks included.
#[test]
fn what_is_wrong_is_named_with_its_field_and_the_fix() {
    for (more, field, fix) in [
        (json!({"splitBrainPolicy": {"preferSite": "fra"}}), "spec.splitBrainPolicy", "primary-candidate"),
        (json!({"sidecar": {"leaseTimeout": "6s"}}), "spec.sidecar.leaseTimeout", "write a longer leaseTimeout"),
        (json!({"pollInterval": "1ms"}), "spec.pollInterval", "250ms"),
        (json!({"pollInterval": "soon"}), "spec.pollInterval", "write"),
        (json!({"image": "mysql:latest"}), "spec.image", "write"),
        (json!({"failureThreshold": "3"}), "spec.failureThreshold", "write"),
        (json!({"dragonfly": {"enabled": true}}), "spec.dragonfly", "image"),
    ] {
        let found = read(&more, true).expect_err("a violation");
        let fits = |said: &String| said.starts_with(field) && said.contains(fix);
        assert!(found.iter().any(fits), "{more}: {found:?}");
    }
}

#[test]
fn a_change_is_judged_by_what_was_taken_before() {
    let taken = spec::object(group(&json!({}))).expect("an object");
    let mut smaller = taken.clone();
    smaller.spec.sites[0].storage.size = "1Mi".to_owned();
    assert!(spec::group(&smaller, None, NOW, true).is_ok());
    let found = spec::group(&smaller, Some(&taken), NOW, true).expect_err("a volume shrank");
    assert!(found[0].path.starts_with("spec.sites[0].storage"), "{found:?}");
}

fn asked(key: &str, text: &str) -> Requests {
    requests::read(&BTreeMap::from([(key.to_owned(), text.to_owned())]))
}

#[test]
fn requests_are_read_word_for_word() {
    assert_eq!(requests::read(&BTreeMap::new()), Requests::default());
    let text = " pdx:maxLagWait=90s:id=t-1";
    let planned = asked(keys::PLANNED_FAILOVER, text).planned.expect("a request");
    let wish = PlannedWish { site: site("pdx"), max_lag_wait: Some(Millis(90_000)), id: Some("t-1".to_owned()) };
    assert_eq!((planned.text.as_str(), planned.wish), (text, Ok(wish)));
    for (text, consent) in [
        ("iad", Consent::None),
        ("iad:3e11fa47-71ca", Consent::Prefix("3e11fa47-71ca".to_owned())),
        ("iad:confirm=orders", Consent::Confirm("orders".to_owned())),
    ] {
        let reclone = asked(keys::RECLONE_SITE, text).reclone.expect("a request");
        assert_eq!((reclone.text.as_str(), reclone.wish), (text, Ok(RecloneWish { site: site("iad"), consent })));
    }
    let upgrade = asked(keys::DRAGONFLY_SNAPSHOT_UPGRADE, "df:v1.39.0").cache_upgrade.expect("a request");
    assert_eq!(upgrade.wish, Ok("df:v1.39.0".to_owned()));
}

#[test]
fn a_request_that_is_not_understood_is_still_a_request() {
    let planned = asked(keys::PLANNED_FAILOVER, "pdx:now").planned.expect("a request");
    assert!(planned.wish.is_err_and(|said| said.contains("<key>=<value>")));
    let reclone = asked(keys::RECLONE_SITE, "").reclone.expect("a request");
    assert!(reclone.text.is_empty() && reclone.wish.is_err_and(|said| said.contains("write <site>")));
    let upgrade = asked(keys::DRAGONFLY_SNAPSHOT_UPGRADE, "df:latest").cache_upgrade.expect("a request");
    assert!(upgrade.wish.is_err_and(|said| said.contains("df:latest")));
}
