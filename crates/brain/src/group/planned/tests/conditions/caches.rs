//! The two phases of a run that wait for the cache, each condition by itself.

use super::{look, look_at_all, revoked, seen, since};
use crate::group::Step;
use crate::group::cache::tests::cached;
use crate::group::command::{CacheTask, Command, Task};
use crate::group::forecast::Rehearsal;
use crate::group::input::{CacheRole, Outcome};
use crate::group::kept::{CacheUpgrade, CacheUpgradePhase, Kept, PlannedPhase, PlannedReason};
use crate::group::planned::tests::site;
use crate::record::Cause;
use crate::time::{Millis, Wall};

use PlannedPhase::{Failed, Promoting, PromotingCache, WaitingForCache};

/// What is changed about a calm group with a cache, and about what is stored of it.
type Change = fn(&mut Rehearsal, &mut Kept);

/// The wait that the spec allows, and ten seconds.
const BOUND: u64 = 40_000;

fn silent(stage: &mut Rehearsal, _: &mut Kept) {
    seen(stage, "pdx").cache = Some(None);
}

fn upgrades(kept: &mut Kept, phase: CacheUpgradePhase) {
    kept.cache.as_mut().expect("a cache").upgrade = Some(CacheUpgrade {
        phase,
        from: "df:1".to_owned(),
        to: "df:2".to_owned(),
        active: site("iad"),
        snapshot_dir: "s3://snapshots".to_owned(),
        started: Wall(0),
        snapshot_at: None,
        completed: None,
        message: String::new(),
    });
}

fn is_promoting(kept: &mut Kept) {
    kept.cache.as_mut().expect("a cache").promoting = Some(site("pdx"));
}

fn is_active(kept: &mut Kept, name: &str) {
    kept.cache.as_mut().expect("a cache").active = Some(site(name));
}

/// A run in that phase, so old, with that change.
fn run(phase: PlannedPhase, age: u64, change: Change) -> (Rehearsal, Kept) {
    let mut stage = cached(&["iad", "pdx"]);
    let mut kept = revoked(&stage, phase);
    change(&mut stage, &mut kept);
    stage.group.ages.meet(kept.stamps(), stage.now);
    let now = stage.now.boot;
    since(&mut stage.group, phase, now, age);
    (stage, kept)
}

#[test]
fn a_cache_that_cannot_take_over_is_given_up_and_people_are_told_why() {
    let late = "the target's cache did not take over in time";
    let upgrading = "a snapshot upgrade of the cache is under way";
    let dead = "the target's cache does not answer";
    let rows: [(&str, u64, Change, &str); 9] = [
        ("as it is", 0, |_, _| (), ""),
        ("just in time", BOUND - 1, |_, _| (), ""),
        ("too late", BOUND, |_, _| (), late),
        ("an upgrade", 0, |_, kept| upgrades(kept, CacheUpgradePhase::SavingSnapshot), upgrading),
        ("an upgrade that is over", 0, |_, kept| upgrades(kept, CacheUpgradePhase::Succeeded), ""),
        ("too late, and an upgrade", BOUND, |_, kept| upgrades(kept, CacheUpgradePhase::Pending), late),
        ("dead", 0, silent, dead),
        ("too late, and dead", BOUND, silent, late),
        ("silent while it is promoted", 0, |stage, kept| (silent(stage, kept), is_promoting(kept)).1, ""),
    ];
    for (name, age, change, because) in rows {
        let (mut stage, kept) = run(PromotingCache, age, change);
        let (next, _) = look_at_all(&mut stage, &kept);
        let planned = next.planned.expect("a run");
        assert_eq!((planned.phase, planned.reason), (PromotingCache, None), "{name}");
        let part = planned.cache.unwrap_or_default();
        let reason = (!because.is_empty()).then_some(PlannedReason::CachePromotionFailed);
        assert_eq!((part.message.as_str(), part.reason), (because, reason), "{name}");
        let promoting = next.cache.expect("a cache").promoting;
        assert_eq!(promoting, because.is_empty().then(|| site("pdx")), "{name}");
    }
}

#[test]
fn a_cache_that_has_taken_over_is_waited_for_no_longer() {
    let rows: [(&str, PlannedPhase, Change, PlannedPhase); 7] = [
        ("it takes writes", PromotingCache, |_, kept| is_active(kept, "pdx"), Promoting),
        ("another does", PromotingCache, |_, kept| is_active(kept, "iad"), PromotingCache),
        (
            "it does, and that is not over",
            PromotingCache,
            |_, kept| (is_active(kept, "pdx"), is_promoting(kept)).1,
            PromotingCache,
        ),
        ("it takes writes already", WaitingForCache, |_, kept| waits(kept, "pdx", false), PromotingCache),
        ("the offset is unknown", WaitingForCache, |_, kept| waits(kept, "iad", true), PromotingCache),
        ("neither", WaitingForCache, |_, kept| waits(kept, "iad", false), WaitingForCache),
        ("turned off", PromotingCache, |stage, _| stage.group.spec.cache = None, Promoting),
    ];
    for (name, phase, change, expect) in rows {
        let (mut stage, kept) = run(phase, 0, change);
        let (next, _) = look(&mut stage, kept);
        assert_eq!((next.phase, next.reason), (expect, None), "{name}");
    }
}

/// It has waited since the beginning of the calendar's present second.
fn waits(kept: &mut Kept, active: &str, unknown: bool) {
    is_active(kept, active);
    let planned = kept.planned.as_mut().expect("a run");
    let cache = planned.cache.get_or_insert_default();
    (cache.sync_wait_started, cache.offset_capture_failed) = (Some(Wall(i64::MAX)), unknown);
}

#[test]
fn the_caches_phases_end_with_the_run_of_revoking_that_they_are_part_of() {
    for phase in [WaitingForCache, PromotingCache] {
        let (mut stage, mut kept) = run(phase, 0, |_, _| ());
        kept.record.as_mut().expect("a record").cause = Cause::Emergency;
        let (next, _) = look(&mut stage, kept);
        assert_eq!((next.phase, next.reason), (Failed, Some(PlannedReason::SourceCrashed)), "{phase:?}");
    }
}

#[test]
fn the_wait_for_a_cache_has_its_bound() {
    let bound = Millis::from_secs(30);
    for (age, phase) in [(bound.0 - 1, WaitingForCache), (bound.0, PromotingCache)] {
        let (mut stage, mut kept) = run(WaitingForCache, 0, |_, kept| waits(kept, "iad", false));
        let began = Wall(stage.now.wall.0 - i64::try_from(age).expect("a small number"));
        kept.planned.as_mut().expect("a run").cache.as_mut().expect("a part").sync_wait_started = Some(began);
        stage.group.ages.meet(kept.stamps(), stage.now);
        let (next, _) = look(&mut stage, kept);
        let waited = next.cache.expect("a part").sync_wait_seconds;
        assert_eq!((next.phase, waited), (phase, (phase == PromotingCache).then_some(30)), "{age} ms");
    }
}

fn offsets_asked(out: &Step, name: &str) -> usize {
    let is = |command: &&Command| matches!(command, Command::Work { site: at, task: Task::Cache(CacheTask::Offset), .. } if *at == site(name));
    out.commands.iter().filter(is).count()
}

#[test]
fn the_sources_offset_is_asked_for_unless_its_cache_is_silent() {
    let rows: [(Change, usize, &str); 2] = [
        (|_, kept| waits(kept, "iad", false), 1, ""),
        (
            |stage, kept| {
                waits(kept, "iad", false);
                seen(stage, "iad").cache = Some(None);
            },
            0,
            "the source's offset could not be read: it does not answer",
        ),
    ];
    for (change, asked, message) in rows {
        let (mut stage, kept) = run(WaitingForCache, 0, change);
        let (next, out) = look(&mut stage, kept);
        let part = next.cache.expect("a part");
        assert_eq!((offsets_asked(&out, "iad"), part.message.as_str()), (asked, message));
        assert_eq!(part.offset_capture_failed, !message.is_empty());
    }
}

#[test]
fn the_target_takes_over_when_it_follows_and_has_what_the_source_had() {
    // What the target answers, whether its link is up; whether that is enough. The source had 100.
    let rows = [
        (Some(100), true, true),
        (Some(101), true, true),
        (Some(99), true, false),
        (Some(100), false, false),
        (None, true, false),
    ];
    for (answer, linked, enough) in rows {
        let (mut stage, mut kept) = run(WaitingForCache, 0, |_, kept| waits(kept, "iad", false));
        let part = kept.planned.as_mut().expect("a run").cache.as_mut().expect("a part");
        part.source_offset = Some(100);
        part.sync_wait_started = Some(Wall(stage.now.wall.0 - 2500));
        stage.group.ages.meet(kept.stamps(), stage.now);
        if let Some(offset) = answer {
            stage.group.cache_task_ended(stage.now, &site("pdx"), &CacheTask::Offset, &Outcome::Offset(offset));
        }
        if let Some(Some(facts)) = &mut seen(&mut stage, "pdx").cache {
            let (master, syncing, heard) = (Some(site("iad")), false, true);
            facts.role = CacheRole::Replica { master, link_up: linked, syncing, heard, offset: 0 };
        }
        stage.now.boot = stage.now.boot + Millis::from_secs(1);
        let (next, out) = look(&mut stage, kept);
        let part = next.cache.expect("a part");
        let expect = if enough { (PromotingCache, answer, Some(3), 0) } else { (WaitingForCache, None, None, 1) };
        let came = (next.phase, part.target_offset, part.sync_wait_seconds, offsets_asked(&out, "pdx"));
        assert_eq!(came, expect, "{answer:?} {linked}");
    }
}
