//! The cache's two phases of a planned failover, with every way they can end.

use super::{MINUTE, cache_told, cached, keys, kill_cache, masters, site, traffic, write_keys};
use crate::group::Task;
use crate::group::command::CacheTask;
use crate::group::forecast::Rehearsal;
use crate::group::input::{Input, PlannedWish, Request, Requests};
use crate::group::kept::{PlannedPhase, PlannedReason, PromotionMethod};
use crate::time::Millis;

fn ask(stage: &mut Rehearsal) {
    let wish = PlannedWish { site: site("pdx"), max_lag_wait: None, id: None };
    let planned = Some(Request { text: "pdx".to_owned(), wish: Ok(wish) });
    stage.tell(Input::Requests(Box::new(Requests { planned, ..Requests::default() })));
}

fn is_over(stage: &Rehearsal) -> bool {
    stage.store.planned.as_ref().is_some_and(|planned| planned.phase.is_terminal())
}

fn refuse(stage: &mut Rehearsal, name: &str, what: fn(&Task) -> bool) {
    stage.actors.get_mut(&site(name)).expect("an actor").refuses = Some(what);
}

fn takeovers(task: &Task) -> bool {
    matches!(task, Task::Cache(CacheTask::TakeOver { .. }))
}

fn offsets(task: &Task) -> bool {
    matches!(task, Task::Cache(CacheTask::Offset))
}

/// What goes wrong; whether that fails the run; its end, what became of the cache.
struct Row {
    name: &'static str,
    goes_wrong: fn(&mut Rehearsal),
    fails: bool,
    reason: Option<PlannedReason>,
    cache_reason: Option<PlannedReason>,
    preserved: Option<bool>,
    method: PromotionMethod,
    told: &'static str,
    master: &'static str,
}

const WELL: Row = Row {
    name: "all goes well",
    goes_wrong: |_| {},
    fails: false,
    reason: None,
    cache_reason: None,
    preserved: Some(true),
    method: PromotionMethod::Takeover,
    told: "PromotionCompleted",
    master: "pdx",
};

fn rows() -> Vec<Row> {
    let timeout = Some(PlannedReason::CacheSyncTimeout);
    let failed = Some(PlannedReason::CachePromotionFailed);
    vec![
        WELL,
        Row { name: "all goes well, failing allowed", fails: true, ..WELL },
        Row {
            name: "the source's offset cannot be read",
            goes_wrong: |stage| refuse(stage, "iad", offsets),
            preserved: Some(false),
            ..WELL
        },
        Row {
            name: "the target does not catch up: goes on",
            goes_wrong: |stage| refuse(stage, "pdx", offsets),
            cache_reason: timeout,
            preserved: Some(false),
            told: "SyncTimeout",
            ..WELL
        },
        Row {
            name: "the target does not catch up: taken back",
            goes_wrong: |stage| refuse(stage, "pdx", offsets),
            fails: true,
            reason: timeout,
            cache_reason: timeout,
            preserved: Some(false),
            method: PromotionMethod::None,
            told: "SyncTimeout",
            master: "iad",
        },
        Row {
            name: "the takeover fails: goes on",
            goes_wrong: |stage| refuse(stage, "pdx", takeovers),
            cache_reason: failed,
            preserved: Some(false),
            method: PromotionMethod::None,
            told: "PromotionFailed",
            master: "iad",
            ..WELL
        },
        Row {
            name: "the takeover fails: taken back",
            goes_wrong: |stage| refuse(stage, "pdx", takeovers),
            fails: true,
            reason: failed,
            cache_reason: failed,
            preserved: Some(false),
            method: PromotionMethod::None,
            told: "PromotionFailed",
            master: "iad",
        },
        Row {
            name: "the target's cache is dead",
            goes_wrong: |stage| kill_cache(stage, "pdx"),
            cache_reason: failed,
            preserved: Some(false),
            method: PromotionMethod::None,
            told: "PromotionFailed",
            master: "iad",
            ..WELL
        },
    ]
}

#[test]
fn what_becomes_of_the_cache_and_of_the_run() {
    for row in rows() {
        let mut stage = cached(&["iad", "pdx"]);
        stage.group.spec.cache.as_mut().expect("a cache").fail_on_timeout = row.fails;
        (row.goes_wrong)(&mut stage);
        write_keys(&mut stage, 5);
        ask(&mut stage);
        let over = stage.play(Millis::from_secs(120), is_over);
        let planned = stage.store.planned.clone().expect("a run");
        assert!(over, "{}: {planned:?}", row.name);
        assert_eq!(planned.reason, row.reason, "{}: {planned:?}", row.name);
        let cache = planned.cache.clone().expect("the cache's part");
        let came = (cache.reason, cache.sessions_preserved, cache.method);
        assert_eq!(came, (row.cache_reason, row.preserved, row.method), "{}: {cache:?}", row.name);
        assert!(cache_told(&stage).contains(&row.told.to_owned()), "{}: {:?}", row.name, cache_told(&stage));
        let writer = if row.reason.is_none() { "pdx" } else { "iad" };
        assert_eq!(stage.writer(), Some(site(writer)), "{}", row.name);
        assert_eq!(traffic(&stage).as_deref(), Some(row.master), "{}", row.name);
        if row.preserved == Some(true) {
            assert_eq!(keys(&stage, "pdx"), Some(12), "{}", row.name);
        }
    }
}

#[test]
fn a_cache_that_is_turned_off_on_the_way_is_skipped() {
    let mut stage = cached(&["iad", "pdx"]);
    refuse(&mut stage, "pdx", offsets);
    ask(&mut stage);
    let waits = |stage: &Rehearsal| {
        stage.store.planned.as_ref().is_some_and(|planned| planned.phase == PlannedPhase::WaitingForCache)
    };
    assert!(stage.play(MINUTE, waits));
    stage.group.spec.cache = None;
    assert!(stage.play(Millis::from_secs(5), is_over));
    let planned = stage.store.planned.clone().expect("a run");
    assert_eq!(
        (planned.phase, planned.cache.expect("a part").method),
        (PlannedPhase::Succeeded, PromotionMethod::Skipped)
    );
}

#[test]
fn a_new_leader_goes_on_wherever_the_old_one_stopped() {
    for stop in 0..70 {
        let mut stage = cached(&["iad", "pdx"]);
        write_keys(&mut stage, 5);
        stage.stop_after(stop);
        ask(&mut stage);
        stage.play(MINUTE, Rehearsal::is_stopped);
        let accepted = stage.store.planned.is_some();
        let mut stage = stage.with_new_leader();
        if !accepted {
            ask(&mut stage);
        }
        assert!(stage.play(MINUTE, is_over), "stopped after {stop}: {:?}", stage.store.planned);
        let to = if stage.store.planned.as_ref().is_some_and(|run| run.reason.is_none()) { "pdx" } else { "iad" };
        let one = |stage: &Rehearsal| masters(stage) == [to] && traffic(stage).as_deref() == Some(to);
        assert!(stage.play(Millis::from_secs(90), one), "stopped after {stop}: {:?}", stage.store);
        assert_eq!(keys(&stage, to), Some(12), "stopped after {stop}: sessions are kept");
    }
}
