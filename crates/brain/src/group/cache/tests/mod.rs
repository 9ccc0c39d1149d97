//! The cache among obedient sites: what is done when something goes wrong, from the outside.

mod planned;
mod rules;
mod upgrades;

use crate::group::forecast::Rehearsal;
use crate::group::input::{CacheFacts, CacheRole, Input};
use crate::group::notice::CacheNotice;
use crate::group::spec::CacheSpec;
use crate::group::tests::running;
use crate::group::{Command, Notice, Task};
use crate::name::Site;
use crate::time::{Millis, Wall};

pub(super) const MINUTE: Millis = Millis::from_secs(60);

pub(super) fn site(name: &str) -> Site {
    Site::new(name)
}

pub(super) fn cache_spec() -> CacheSpec {
    CacheSpec {
        image: "df:1".to_owned(),
        max_sync_wait: Millis::from_secs(30),
        fail_on_timeout: false,
        stale_master_grace: Millis::from_secs(300),
        snapshot_dir: Some("s3://snapshots".to_owned()),
    }
}

/// A group that is up, and so are its caches: the first site's is the master and holds 7 keys.
pub(in crate::group) fn cached(sites: &[&str]) -> Rehearsal {
    let mut stage = running(sites);
    let mut spec = stage.group.spec.clone();
    spec.cache = Some(cache_spec());
    for actor in stage.actors.values_mut() {
        actor.restart_cache(Some("df:1".to_owned()));
    }
    stage.tell(Input::Spec(Box::new(spec)));
    assert!(stage.play(MINUTE, |stage| masters(stage).len() == 1), "{:?}", stage.group.caching);
    write_keys(&mut stage, 7);
    stage.play(Millis::from_secs(4), |_| false);
    stage.told.clear();
    stage
}

/// The master takes writes.
pub(super) fn write_keys(stage: &mut Rehearsal, keys: u64) {
    for actor in stage.actors.values_mut() {
        if let Some(CacheFacts { role: CacheRole::Master { offset, replicas: 1.. }, keys: held, .. }) = &mut actor.cache
        {
            (*offset, *held) = (*offset + keys * 10, *held + keys);
        }
    }
}

/// Sites whose caches call themselves masters.
pub(super) fn masters(stage: &Rehearsal) -> Vec<String> {
    let master = |facts: &CacheFacts| matches!(facts.role, CacheRole::Master { .. });
    let all = stage.actors.iter().filter(|(_, actor)| actor.cache.as_ref().is_some_and(master));
    all.map(|(site, _)| site.to_string()).collect()
}

/// The site whose cache gets traffic.
pub(super) fn traffic(stage: &Rehearsal) -> Option<String> {
    let kept = stage.group.kept()?;
    let labels = stage.group.cache_labels(&kept).expect("a cache");
    labels.master.filter(|_| labels.traffic).map(|site| site.to_string())
}

pub(super) fn keys(stage: &Rehearsal, name: &str) -> Option<u64> {
    stage.actors[&site(name)].cache.as_ref().map(|facts| facts.keys)
}

pub(super) fn cache_told(stage: &Rehearsal) -> Vec<String> {
    let name = |notice: &CacheNotice| format!("{notice:?}").split([' ', '{']).next().unwrap_or_default().to_owned();
    let cache = |(_, notice): &(Millis, Notice)| match notice {
        Notice::Cache(notice) => Some(name(notice)),
        _ => None,
    };
    stage.told.iter().filter_map(cache).collect()
}

/// The cache of that site is gone, its database is not.
pub(super) fn kill_cache(stage: &mut Rehearsal, name: &str) {
    stage.actors.get_mut(&site(name)).expect("an actor").cache = None;
}

#[test]
fn a_fresh_cache_follows_the_database_site() {
    let stage = cached(&["iad", "pdx", "fra"]);
    assert_eq!(masters(&stage), ["iad"]);
    assert_eq!(traffic(&stage).as_deref(), Some("iad"));
    assert_eq!(keys(&stage, "pdx"), Some(7));
    let report = stage.group.cache_report(&stage.group.kept().expect("known"));
    assert_eq!(report.phase, super::CachePhase::Ready, "{report:?}");
}

#[test]
fn a_dead_master_is_replaced_where_exactly_one_replica_can_stand_in() {
    // Sites, those whose cache dies, who is master then.
    let rows: [(&[&str], &[&str], &[&str]); 4] = [
        (&["iad", "pdx"], &["iad"], &["pdx"]),
        (&["iad", "pdx", "fra:dr"], &["iad"], &["pdx"]),
        (&["iad", "pdx", "fra"], &["iad", "fra"], &["pdx"]),
        (&["iad", "pdx", "fra"], &["iad"], &[]),
    ];
    for (sites, dead, expected) in rows {
        let mut stage = cached(sites);
        for name in dead {
            kill_cache(&mut stage, name);
        }
        stage.play(Millis::from_secs(20), |_| false);
        assert_eq!(masters(&stage), expected, "{sites:?} {dead:?}");
        assert_eq!(stage.writer(), Some(site("iad")), "the database stays");
        if !expected.is_empty() {
            assert_eq!(traffic(&stage).as_deref(), Some("pdx"));
            assert_eq!(cache_told(&stage), ["PromotionStarted", "PromotionCompleted", "SessionsLost"]);
        }
    }
}

#[test]
fn of_several_replicas_the_one_beside_the_database_stands_in() {
    let mut stage = cached(&["iad", "pdx", "fra"]);
    let dead = ["iad", "fra"];
    for name in dead {
        kill_cache(&mut stage, name);
    }
    assert!(stage.play(MINUTE, |stage| masters(stage) == ["pdx"]));
    for name in dead {
        stage.actors.get_mut(&site(name)).expect("a site").restart_cache(Some("df:1".to_owned()));
    }
    let filled = |stage: &Rehearsal| dead.iter().all(|name| keys(stage, name) == Some(7));
    assert!(stage.play(Millis::from_secs(20), filled), "{:?}", masters(&stage));
    kill_cache(&mut stage, "pdx");
    assert!(stage.play(Millis::from_secs(20), |stage| masters(stage) == ["iad"]), "{:?}", masters(&stage));
}

#[test]
fn a_dead_master_comes_back_as_a_replica_and_the_cache_returns_to_the_database() {
    let mut stage = cached(&["iad", "pdx"]);
    kill_cache(&mut stage, "iad");
    assert!(stage.play(MINUTE, |stage| masters(stage) == ["pdx"]));
    stage.actors.get_mut(&site("iad")).expect("iad").restart_cache(Some("df:1".to_owned()));
    assert!(stage.play(Millis::from_secs(20), |stage| keys(stage, "iad") == Some(7)));
    assert!(stage.play(MINUTE, |stage| masters(stage) == ["iad"] && traffic(stage).as_deref() == Some("iad")));
    assert!(cache_told(&stage).contains(&"OldSiteReconfigured".to_owned()), "{:?}", cache_told(&stage));
    assert_eq!(keys(&stage, "iad"), Some(7), "nothing was lost on the way back");
}

#[test]
fn a_master_that_restarts_between_two_polls_does_not_empty_its_replica() {
    for sites in [&["iad", "pdx"][..], &["iad", "pdx", "fra"][..]] {
        let mut stage = cached(sites);
        stage.actors.get_mut(&site("iad")).expect("iad").restart_cache(None);
        stage.play(Millis::from_secs(20), |_| false);
        assert!(sites.iter().all(|name| keys(&stage, name) == Some(7)), "{sites:?} {:?}", stage.group.stored);
    }
}

#[test]
fn a_stale_master_is_kept_for_the_grace_if_it_took_writes() {
    // Its offset, how long it is a master still, at least and at most.
    for (offset, least, most) in [(70, 290, 320), (0, 0, 20)] {
        let mut stage = cached(&["iad", "pdx"]);
        let role = CacheRole::Master { offset, replicas: 0 };
        stage.actors.get_mut(&site("pdx")).expect("pdx").cache.as_mut().expect("a cache").role = role;
        assert!(!stage.play(Millis::from_secs(least), |stage| masters(stage) == ["iad"]), "{offset}");
        assert_eq!(traffic(&stage).as_deref(), Some("iad"), "{offset}");
        assert!(stage.play(Millis::from_secs(most - least), |stage| masters(stage) == ["iad"]), "{offset}");
        stage.play(Millis::from_secs(10), |_| false);
        let told = cache_told(&stage);
        assert_eq!(told.first().map(String::as_str), Some("StaleMaster"), "{offset} {told:?}");
        assert_eq!(told.last().map(String::as_str), Some("OldSiteReconfigured"), "{offset} {told:?}");
    }
}

#[test]
fn a_calendar_that_jumps_holds_nothing_up() {
    for jump in [-3600, 3600] {
        let mut stage = cached(&["iad", "pdx"]);
        kill_cache(&mut stage, "iad");
        assert!(stage.play(MINUTE, |stage| masters(stage) == ["pdx"]));
        stage.play(Millis::from_secs(1), |_| false);
        stage.now.wall = Wall(stage.now.wall.0 + jump * 1000);
        stage.actors.get_mut(&site("iad")).expect("iad").restart_cache(Some("df:1".to_owned()));
        let back = |stage: &Rehearsal| masters(stage) == ["iad"] && traffic(stage).as_deref() == Some("iad");
        assert!(!stage.play(Millis::from_secs(20), back), "{jump}: not so soon after the last one");
        assert!(stage.play(Millis::from_secs(40), back), "{jump}: {:?}", stage.store.cache);
    }
}

#[test]
fn a_grace_is_counted_on_the_steady_clock() {
    for jump in [-3600, 3600] {
        let mut stage = cached(&["iad", "pdx"]);
        let role = CacheRole::Master { offset: 70, replicas: 0 };
        stage.actors.get_mut(&site("pdx")).expect("pdx").cache.as_mut().expect("a cache").role = role;
        stage.play(Millis::from_secs(10), |_| false);
        stage.now.wall = Wall(stage.now.wall.0 + jump * 1000);
        assert!(!stage.play(Millis::from_secs(280), |stage| masters(stage) == ["iad"]), "{jump}");
        assert!(stage.play(Millis::from_secs(30), |stage| masters(stage) == ["iad"]), "{jump}");
    }
}

fn follower(of: &str, keys: u64, offset: u64) -> CacheFacts {
    let role = CacheRole::Replica { master: Some(site(of)), link_up: false, syncing: false, heard: true, offset };
    CacheFacts { role, keys, image: "df:1".to_owned(), loading: false, takeover: true }
}

#[test]
fn a_group_without_a_master_gets_one_again() {
    let mut stage = cached(&["iad", "pdx"]);
    for (name, of) in [("iad", "pdx"), ("pdx", "iad")] {
        stage.actors.get_mut(&site(name)).expect("there").cache = Some(follower(of, 7, 70));
    }
    let served = |stage: &Rehearsal| masters(stage) == ["iad"] && traffic(stage).as_deref() == Some("iad");
    assert!(stage.play(Millis::from_secs(10), served), "{:?}", stage.store.cache);
    stage.play(MINUTE, |_| false);
    assert!(served(&stage), "{:?}", stage.store.cache);
    assert_eq!((keys(&stage, "iad"), keys(&stage, "pdx")), (Some(7), Some(7)));
}

#[test]
fn without_a_master_the_one_that_has_most_is_promoted() {
    // Keys and bytes of the one with the label and of the other one; who is promoted.
    let rows = [((7, 70), (7, 70), "iad"), ((7, 70), (9, 90), "pdx"), ((0, 90), (1, 10), "pdx")];
    for (labelled, other, expected) in rows {
        let mut stage = cached(&["iad", "pdx"]);
        for (name, of, (keys, offset)) in [("iad", "pdx", labelled), ("pdx", "iad", other)] {
            let seen = stage.group.seen.sites.get_mut(&site(name)).expect("there");
            seen.cache = Some(Some(follower(of, keys, offset)));
        }
        let kept = stage.group.kept().expect("known");
        let cache = kept.cache.clone().expect("stored");
        assert_eq!(cache.active, Some(site("iad")));
        assert_eq!(
            stage.group.wanted_promotion(stage.now, &kept, &cache),
            Some(site(expected)),
            "{labelled:?} {other:?}"
        );
    }
}

#[test]
fn after_an_emergency_the_cache_follows_and_says_what_was_lost() {
    let mut stage = cached(&["iad", "pdx", "fra"]);
    stage.kill(&site("iad"));
    assert!(stage.play(Millis::from_secs(90), |stage| stage.writer().is_some_and(|writer| writer != site("iad"))));
    let to = stage.writer().expect("a writer").to_string();
    assert!(stage.play(Millis::from_secs(10), |stage| masters(stage) == [to.clone()]), "{:?}", stage.store.cache);
    stage.play(Millis::from_secs(1), |_| false);
    assert_eq!(traffic(&stage), Some(to));
    assert_eq!(cache_told(&stage), ["PromotionStarted", "PromotionCompleted", "SessionsLost"]);
}

#[test]
fn caches_that_do_not_answer_delay_no_emergency() {
    let mut times = Vec::new();
    for dead in [false, true] {
        let mut stage = cached(&["iad", "pdx"]);
        if dead {
            kill_cache(&mut stage, "iad");
            kill_cache(&mut stage, "pdx");
        }
        let before = stage.now.boot;
        stage.kill(&site("iad"));
        assert!(stage.play(Millis::from_secs(90), |stage| stage.writer() == Some(site("pdx"))));
        times.push(stage.now.boot.since(before));
        stage.play(Millis::from_secs(12), |_| false);
        assert_eq!(cache_told(&stage).contains(&"PromotionFailed".to_owned()), dead, "{:?}", cache_told(&stage));
    }
    assert_eq!(times[0], times[1]);
}

#[test]
fn the_old_masters_label_is_off_before_anybody_takes_over() {
    let mut stage = cached(&["iad", "pdx"]);
    kill_cache(&mut stage, "iad");
    let mut off = false;
    for _ in 0..400 {
        stage.now.boot = stage.now.boot + Millis(250);
        let facts = stage.actors[&site("pdx")].cache.clone();
        let (iad, pdx) = (site("iad"), site("pdx"));
        let mut inputs = vec![Input::CachePolled { site: iad, facts: None }, Input::CachePolled { site: pdx, facts }];
        // Bounded by what one step asks for.
        while let Some(input) = inputs.pop() {
            for command in stage.group.step(stage.now, input).commands {
                match command {
                    Command::Save { id, .. } => {
                        inputs.push(Input::Saved { id, saved: crate::group::input::Saved::All });
                    }
                    Command::Show(wanted) => off |= !wanted.cache.expect("labels").traffic,
                    Command::Work { task: Task::Cache(_), .. } => {
                        assert!(off, "the label goes first");
                        return;
                    }
                    _ => {}
                }
            }
        }
    }
    panic!("nobody was promoted");
}
