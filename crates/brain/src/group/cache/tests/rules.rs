//! The rules one by one: which cache is active, and what each one is.

use super::{cached, masters, site, traffic};
use crate::group::cache::CacheState;
use crate::group::input::{CacheFacts, CacheRole, Input};
use crate::time::Millis;

/// `-`: does not answer; `m`: a master with writes; `b`: just started; `r<site>`: follows it; `d<site>`: its link is down.
fn facts(text: &str) -> Option<CacheFacts> {
    let replica = |master: &str, link_up| CacheRole::Replica {
        master: Some(site(master)),
        link_up,
        syncing: false,
        heard: true,
        offset: 70,
    };
    let (kind, of) = text.split_at(1);
    let (role, keys) = match kind {
        "-" => return None,
        "m" => (CacheRole::Master { offset: 70, replicas: 0 }, 7),
        "b" => (CacheRole::Master { offset: 0, replicas: 0 }, 0),
        "r" => (replica(of, true), 7),
        _ => (replica(of, false), 7),
    };
    Some(CacheFacts { role, keys, image: "df:1".to_owned(), loading: false, takeover: true })
}

#[test]
fn the_active_site_is_the_one_observed_master_else_the_last_known_else_the_databases() {
    // iad, pdx; the last known; the active one.
    let rows = [
        ("m", "riad", None, "iad"),
        ("rpdx", "m", Some("iad"), "pdx"),
        ("-", "m", Some("iad"), "pdx"),
        ("m", "m", Some("pdx"), "pdx"),
        ("m", "m", None, "iad"),
        ("b", "b", None, "iad"),
        ("-", "riad", Some("iad"), "iad"),
        ("riad", "b", Some("iad"), "iad"),
        ("-", "b", Some("iad"), "pdx"),
        ("b", "diad", Some("iad"), "iad"),
        ("-", "-", Some("pdx"), "pdx"),
        ("-", "-", None, "iad"),
    ];
    for (iad, pdx, known, expected) in rows {
        let mut stage = cached(&["iad", "pdx"]);
        for (name, said) in [("iad", iad), ("pdx", pdx)] {
            stage.group.seen.sites.get_mut(&site(name)).expect("seen").cache = Some(facts(said));
        }
        let kept = stage.group.kept().expect("known");
        let cache = crate::group::kept::CacheKept { active: known.map(site), ..Default::default() };
        assert_eq!(stage.group.active_cache(&kept, &cache), Some(site(expected)), "{iad} {pdx} {known:?}");
    }
}

#[test]
fn what_a_cache_is_and_whether_it_can_take_over() {
    let rows = [
        ("iad", "m", CacheState::Master, false),
        ("iad", "-", CacheState::Unreachable, false),
        ("pdx", "m", CacheState::StaleMaster, false),
        ("pdx", "b", CacheState::Unconfigured, false),
        ("pdx", "riad", CacheState::Replica, true),
        ("pdx", "rfra", CacheState::Replica, false),
        ("pdx", "diad", CacheState::Replica, false),
    ];
    for (at, said, expected, ready) in rows {
        let mut stage = cached(&["iad", "pdx"]);
        stage.group.seen.sites.get_mut(&site(at)).expect("seen").cache = Some(facts(said));
        assert_eq!(stage.group.cache_state(&site(at), Some(&site("iad"))), expected, "{at} {said}");
        assert_eq!(stage.group.cache_ready(&site(at), &site("iad")), ready, "{at} {said}");
    }
}

#[test]
fn a_replica_that_is_being_filled_or_was_never_heard_is_not_ready() {
    for (syncing, heard, loading) in [(true, true, false), (false, false, false), (false, true, true)] {
        let mut stage = cached(&["iad", "pdx"]);
        let mut said = facts("riad").expect("facts");
        said.loading = loading;
        let master = Some(site("iad"));
        said.role = CacheRole::Replica { master, link_up: true, syncing, heard, offset: 70 };
        stage.tell(Input::CachePolled { site: site("pdx"), facts: Some(said) });
        assert!(!stage.group.cache_ready(&site("pdx"), &site("iad")));
    }
}

#[test]
fn a_paused_group_promotes_no_cache() {
    let mut stage = cached(&["iad", "pdx"]);
    stage.group.spec.paused = Some(crate::group::spec::Pause { reason: "work".to_owned(), until: None });
    super::kill_cache(&mut stage, "iad");
    stage.play(Millis::from_secs(30), |_| false);
    assert!(masters(&stage).is_empty(), "{:?}", stage.store.cache);
    assert_eq!(traffic(&stage).as_deref(), Some("iad"));
}
