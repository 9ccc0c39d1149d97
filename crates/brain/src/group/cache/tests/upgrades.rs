//! Other images: one by one, or over a snapshot.

use super::{MINUTE, cache_told, cached, keys, masters, site, traffic};
use crate::group::Task;
use crate::group::command::CacheTask;
use crate::group::forecast::Rehearsal;
use crate::group::input::{Input, Request, Requests};
use crate::group::kept::CacheUpgradePhase;
use crate::time::Millis;

fn request(stage: &mut Rehearsal, image: &str) {
    let cache_upgrade = Some(Request { text: image.to_owned(), wish: Ok(image.to_owned()) });
    stage.tell(Input::Requests(Box::new(Requests { cache_upgrade, ..Requests::default() })));
}

fn all_run(stage: &Rehearsal, image: &str) -> bool {
    stage.actors.values().all(|actor| actor.cache.as_ref().is_some_and(|facts| facts.image == image))
}

fn phase(stage: &Rehearsal) -> Option<CacheUpgradePhase> {
    stage.store.cache.as_ref()?.upgrade.as_ref().map(|upgrade| upgrade.phase)
}

fn ended(stage: &Rehearsal) -> bool {
    matches!(phase(stage), Some(CacheUpgradePhase::Succeeded | CacheUpgradePhase::Failed))
}

#[test]
fn a_changed_image_keeps_every_key_and_ends_where_it_began() {
    for sites in [&["iad", "pdx"][..], &["iad", "pdx", "fra"][..]] {
        let mut stage = cached(sites);
        stage.group.spec.cache.as_mut().expect("a cache").image = "df:2".to_owned();
        assert!(stage.play(Millis::from_secs(180), |stage| all_run(stage, "df:2")), "{:?}", stage.store.cache);
        assert!(stage.play(MINUTE, |stage| masters(stage) == ["iad"]), "{:?}", stage.store.cache);
        assert!(stage.play(MINUTE, |stage| traffic(stage).as_deref() == Some("iad")));
        assert!(sites.iter().all(|name| keys(&stage, name) == Some(7)), "{sites:?}");
    }
}

/// One at a time: a cache that is lost for ever keeps the others' image waiting, but not the cache from the database.
#[test]
fn a_lost_cache_with_an_old_image_does_not_keep_the_cache_from_the_database() {
    let mut stage = cached(&["iad", "pdx", "fra"]);
    stage.actors.get_mut(&site("fra")).expect("fra").refuses = Some(|task| matches!(task, Task::Cache(_)));
    super::kill_cache(&mut stage, "fra");
    stage.play(MINUTE, |_| false);
    super::kill_cache(&mut stage, "iad");
    assert!(stage.play(MINUTE, |stage| masters(stage) == ["pdx"]), "{:?}", stage.store.cache);
    stage.group.spec.cache.as_mut().expect("a cache").image = "df:2".to_owned();
    stage.actors.get_mut(&site("iad")).expect("iad").restart_cache(Some("df:1".to_owned()));
    assert!(stage.play(Millis::from_secs(300), |stage| masters(stage) == ["iad"]), "{:?}", stage.store.cache);
    assert!(stage.play(MINUTE, |stage| traffic(stage).as_deref() == Some("iad")));
}

#[test]
fn a_snapshot_upgrade_keeps_every_key_and_writes_the_image_at_the_end() {
    let mut stage = cached(&["iad", "pdx", "fra"]);
    request(&mut stage, "df:2");
    assert!(stage.play(Millis::from_secs(180), ended), "{:?}", stage.store.cache);
    assert_eq!(phase(&stage), Some(CacheUpgradePhase::Succeeded));
    assert_eq!(stage.group.spec.cache.as_ref().map(|spec| spec.image.as_str()), Some("df:2"));
    assert!(all_run(&stage, "df:2"));
    assert_eq!((masters(&stage), traffic(&stage)), (vec!["iad".to_owned()], Some("iad".to_owned())));
    assert_eq!((keys(&stage, "iad"), keys(&stage, "pdx")), (Some(7), Some(7)));
    assert_eq!(stage.group.seen.requests.cache_upgrade, None);
}

#[test]
fn what_a_snapshot_upgrade_is_refused_for() {
    type Before = fn(&mut Rehearsal);
    let rows: [(&str, Before); 5] = [
        ("df:2", |stage| stage.group.spec.cache = None),
        ("df:2", |stage| stage.group.spec.cache.as_mut().expect("a cache").snapshot_dir = None),
        ("df:2", |stage| {
            super::kill_cache(stage, "iad");
            super::kill_cache(stage, "pdx");
            stage.play(Millis::from_secs(5), |_| false);
        }),
        ("df:2", |stage| {
            stage.group.spec.paused = Some(crate::group::spec::Pause { reason: "work".to_owned(), until: None });
        }),
        ("df:1", |_| {}),
    ];
    for (number, (image, before)) in rows.into_iter().enumerate() {
        let mut stage = cached(&["iad", "pdx"]);
        before(&mut stage);
        request(&mut stage, image);
        stage.play(Millis::from_secs(2), |_| false);
        assert_eq!(phase(&stage), None, "row {number}");
        let told = cache_told(&stage).iter().filter(|name| *name == "UpgradeRejected").count();
        assert_eq!(told, 1, "row {number}: {:?}", cache_told(&stage));
        assert_eq!(stage.group.seen.requests.cache_upgrade, None, "row {number}: removed");
    }
}

#[test]
fn a_snapshot_that_fails_ends_the_upgrade_and_traffic_goes_on() {
    let mut stage = cached(&["iad", "pdx"]);
    let refuses: fn(&Task) -> bool = |task| matches!(task, Task::Cache(CacheTask::Snapshot));
    stage.actors.get_mut(&site("iad")).expect("iad").refuses = Some(refuses);
    request(&mut stage, "df:2");
    assert!(stage.play(MINUTE, ended));
    assert_eq!(phase(&stage), Some(CacheUpgradePhase::Failed));
    assert_eq!(traffic(&stage).as_deref(), Some("iad"));
    assert!(all_run(&stage, "df:1"));
}

#[test]
fn the_database_fails_over_in_the_midst_of_an_upgrade() {
    let mut stage = cached(&["iad", "pdx"]);
    request(&mut stage, "df:2");
    assert!(stage.play(MINUTE, |stage| phase(stage) == Some(CacheUpgradePhase::UpdatingActive) || ended(stage)));
    stage.kill(&site("iad"));
    assert!(stage.play(Millis::from_secs(90), |stage| stage.writer() == Some(site("pdx"))));
    assert!(
        stage.play(Millis::from_secs(30), |stage| traffic(stage).as_deref() == Some("pdx")),
        "{:?}",
        stage.store.cache
    );
}

#[test]
fn a_new_leader_goes_on_with_an_upgrade_wherever_the_old_one_stopped() {
    for stop in 0..40 {
        let mut stage = cached(&["iad", "pdx"]);
        stage.stop_after(stop);
        request(&mut stage, "df:2");
        stage.play(MINUTE, Rehearsal::is_stopped);
        let accepted = phase(&stage).is_some();
        let mut stage = stage.with_new_leader();
        if !accepted {
            request(&mut stage, "df:2");
        }
        assert!(stage.play(Millis::from_secs(300), ended), "stopped after {stop}: {:?}", stage.store.cache);
        assert_eq!(phase(&stage), Some(CacheUpgradePhase::Succeeded), "stopped after {stop}: {:?}", stage.store.cache);
        let done = |stage: &Rehearsal| keys(stage, "pdx") == Some(7) && traffic(stage).as_deref() == Some("iad");
        assert!(stage.play(MINUTE, done), "stopped after {stop}: {:?}", stage.store.cache);
    }
}
