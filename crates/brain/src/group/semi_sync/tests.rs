//! Who waits for receipts and who gives them: a table, then the order of things around a leader.

use super::{Around, Receipts, Station, wanted};
use crate::candidate::drain::{Applier, Receiver};
use crate::group::Obstacle;
use crate::group::command::{SourceSwitch, Switch, Task};
use crate::group::forecast::Rehearsal;
use crate::group::input::{Facts, Input, Outcome, PlannedWish, Request, Requests, SemiSync, SourceSide};
use crate::group::kept::{CloneKept, ClonePhase, CloneSource, SiteKept};
use crate::group::recovery::tests::bench::{Bench, alone, bench, following, site};
use crate::group::report::Degraded;
use crate::group::spec::Durability;
use crate::group::tests::running;
use crate::name::Site;
use crate::site::{Pair, Role};
use crate::time::Millis;

const WAIT: Millis = Millis(10_000);
const SEMI: Durability = Durability::semi_sync(WAIT);
const ON: SourceSide = SourceSide { timeout: WAIT, strict: true };

/// What a server says, in words: `source`, `late` (another wait), `lax` (set by hand), `replica`, `gives` (receipts), and
/// of its threads `receives`, `tries`, `stands`; `open`, else closed; `heard`: somebody gives it
/// receipts; `bare`: without plugins.
fn server(words: &str) -> Facts {
    let has = |word: &str| words.split(' ').any(|it| it == word);
    let mut facts =
        if has("receives") || has("tries") || has("stands") { following(2, "1:1-9", "iad") } else { alone(2, "1:1-9") };
    if let Some(replica) = &mut facts.replica {
        replica.receiver = match () {
            () if has("receives") => Receiver::Running,
            () if has("tries") => Receiver::Connecting,
            () => Receiver::Stopped,
        };
    }
    let side = match () {
        () if has("source") => Some(ON),
        () if has("late") => Some(SourceSide { timeout: Millis(1), ..ON }),
        () if has("lax") => Some(SourceSide { strict: false, ..ON }),
        () => None,
    };
    facts.pair = if has("open") { Pair::OPEN } else { Pair::CLOSED };
    facts.semi_sync = SemiSync {
        loaded: !has("bare"),
        source: side,
        waits: side.is_some(),
        clients: u64::from(has("heard")),
        replica: has("replica"),
        acknowledges: has("gives"),
    };
    facts
}

#[test]
fn each_place_has_its_sides() {
    const ON: Option<SourceSwitch> = Some(SourceSwitch::On { timeout: WAIT });
    const OFF: Option<SourceSwitch> = Some(SourceSwitch::Off);
    const OFF_IF_CLOSED: Option<SourceSwitch> = Some(SourceSwitch::OffIfClosed);
    let place = |durability, role, station| Around {
        durability,
        role,
        station,
        steady: true,
        source_loaded: true,
        copying: false,
    };
    let for_ever = Durability::semi_sync(Millis(0));
    let copied = |durability| Around { copying: true, ..place(durability, Role::PrimaryCandidate, Station::Holder) };
    let candidate = |station| place(SEMI, Role::PrimaryCandidate, station);
    let dr_only = place(SEMI, Role::DrOnly, Station::Other);
    let async_holder = place(Durability::Async, Role::PrimaryCandidate, Station::Holder);
    let async_other = place(Durability::Async, Role::PrimaryCandidate, Station::Other);
    let unsteady = |around| Around { steady: false, ..around };
    let without_plugins_at_the_source = Around { source_loaded: false, ..candidate(Station::Other) };
    let rows = [
        // The holder waits for receipts; its own receipts are for later.
        (candidate(Station::Holder), "open", ON, Some(true)),
        (candidate(Station::Holder), "open source replica", None, None),
        (candidate(Station::Holder), "open late replica", ON, None),
        (candidate(Station::Holder), "open lax replica", ON, None),
        (candidate(Station::Holder), "source replica", None, None),
        (candidate(Station::Holder), "open bare", None, None),
        // A copy ends only when the commits under way have: receipts that cannot come are not waited for that long.
        (copied(SEMI), "open source replica", None, None),
        (copied(for_ever), "open source replica", OFF, None),
        (copied(for_ever), "open replica", None, None),
        (copied(for_ever), "open replica heard", Some(SourceSwitch::On { timeout: Millis(0) }), None),
        // While authority is being taken away, what waits waits on.
        (unsteady(candidate(Station::Revoked)), "open source", None, None),
        (unsteady(candidate(Station::Revoked)), "source", None, None),
        // A candidate gives receipts, and waits for none: its applier would.
        (candidate(Station::Other), "receives", None, Some(true)),
        (candidate(Station::Other), "receives replica", None, Some(true)),
        (candidate(Station::Other), "receives replica gives", None, None),
        (candidate(Station::Other), "tries replica", None, None),
        (candidate(Station::Other), "stands replica", None, None),
        (candidate(Station::Other), "stands source", OFF_IF_CLOSED, Some(true)),
        (candidate(Station::Other), "source replica", OFF_IF_CLOSED, None),
        (candidate(Station::Other), "receives source replica gives", OFF_IF_CLOSED, None),
        // One that is open without authority is closed first: its commits may wait.
        (candidate(Station::Other), "open source replica", None, None),
        (candidate(Station::Other), "receives bare", None, None),
        // A source without the plugins takes no receipts, however often the receiver connects.
        (without_plugins_at_the_source, "receives replica", None, None),
        (without_plugins_at_the_source, "receives", None, Some(true)),
        // In the middle of a move no receiver is touched.
        (unsteady(candidate(Station::Other)), "receives", None, None),
        (unsteady(candidate(Station::Other)), "receives source", OFF_IF_CLOSED, None),
        // A receipt lies on a site that can be promoted, or there is none.
        (dr_only, "receives", None, None),
        (dr_only, "receives replica gives", None, Some(false)),
        (dr_only, "receives gives", None, Some(false)),
        (dr_only, "stands source", OFF_IF_CLOSED, None),
        // Nobody wants receipts any more.
        (async_holder, "open source replica", OFF, Some(false)),
        (async_holder, "open", None, None),
        (async_other, "receives replica gives", None, Some(false)),
        (async_other, "receives gives", None, Some(false)),
        (async_other, "receives source", OFF, None),
        (unsteady(async_other), "receives replica gives", None, None),
        (async_other, "receives bare", None, None),
    ];
    for (around, words, source, replica) in rows {
        let switch = Switch { source, replica };
        let expect = (switch != Switch::default()).then_some(switch);
        assert_eq!(wanted(around, &server(words)), expect, "{around:?}: {words}");
    }
}

#[test]
fn a_wait_as_long_as_a_server_can_is_for_ever() {
    for (millis, expect) in [(0, 0), (1000, 1000), (4_294_967_294, 4_294_967_294), (4_294_967_295, 0), (u64::MAX, 0)] {
        assert_eq!(Durability::semi_sync(Millis(millis)), Durability::SemiSync { timeout: Millis(expect) });
    }
}

/// `iad` has authority; `pdx` is this, and `fra`, never promoted, follows.
fn with_plugins(primary: &str, pdx: Facts) -> Bench {
    let fra = Facts { semi_sync: server("").semi_sync, ..following(3, "1:1-9", "iad") };
    let mut bench = bench(vec![("pdx", pdx), ("fra:dr", fra)]);
    bench.server("iad").facts.semi_sync = server(primary).semi_sync;
    bench.respec(|spec| spec.durability = SEMI);
    bench
}

/// A copy would wait for commits that wait for a receipt nobody gives; but receipts may only be late.
#[test]
fn receipts_give_way_to_the_copy_of_a_candidate_and_only_when_none_came_for_long() {
    for (name, gives_way) in [("pdx", true), ("fra", false)] {
        let mut bench = with_plugins("source replica", server("receives replica gives"));
        bench.respec(|spec| spec.durability = Durability::semi_sync(Millis(0)));
        let sides = SourceSide { timeout: Millis(0), strict: true };
        bench.server("iad").facts.semi_sync.source = Some(sides);
        bench.server("iad").facts.semi_sync.clients = 0;
        let (phase, source) = (ClonePhase::Cloning, CloneSource::AutoClone);
        let clone = CloneKept { phase, source, attempts: 1, bytes: None, message: String::new() };
        bench = bench.stored(name, SiteKept { clone: Some(clone), ..SiteKept::default() });
        bench.outcomes.insert("Clone", None);
        bench.outcomes.insert("Read", None);
        bench.run(50);
        assert_eq!(bench.count("iad: switch Some(Off)"), 0, "{name}: {:?}", bench.log);
        bench.run(40);
        assert_eq!(bench.count("iad: switch Some(Off)") > 0, gives_way, "{name}: {:?}", bench.log);
    }
}

#[test]
fn sides_are_switched_before_threads_are_started_and_once() {
    let mut booted = server("stands source");
    if let Some(replica) = &mut booted.replica {
        replica.applier = Applier::Stopped;
    }
    let mut bench = with_plugins("source", booted);
    bench.run(20);
    let expect = [
        // Closed and without authority: at first sight. Receivers wait until there is one confirmed primary.
        "pdx: switch Some(OffIfClosed) None",
        "iad: switch None Some(true)",
        "pdx: switch None Some(true)",
        "pdx: StartReplica",
        // It connected with its side on, and the bench's server does not say so: it is started anew.
        "pdx: switch None Some(true)",
    ];
    assert_eq!(bench.log, expect);
}

#[test]
fn an_old_primary_stops_waiting_before_it_is_attached() {
    let mut bench = with_plugins("source replica", server("source replica"));
    bench.run(20);
    let at = |line: &str| bench.log.iter().position(|it| it.starts_with(line)).expect("it is in the log");
    assert!(at("pdx: switch Some(OffIfClosed) None") < at("pdx: attach to iad"), "{:?}", bench.log);
}

#[test]
fn a_switch_that_fails_is_rarely_tried_and_stands_in_nobodys_way() {
    let refused = || Some(Outcome::Failed("timeout".to_owned()));
    let mut bench = with_plugins("source replica", server("receives source replica gives"));
    bench.outcomes.insert("Switch", refused());
    bench.run(100);
    assert_eq!(bench.count("pdx: switch"), 2, "{:?}", bench.log);
    let mut bench = with_plugins("source replica", server("source replica"));
    bench.outcomes.insert("Switch", refused());
    bench.run(30);
    assert_eq!(bench.count("pdx: attach to iad"), 1, "{:?}", bench.log);
}

#[test]
fn nothing_is_switched_while_the_group_is_paused_or_has_no_plugins() {
    let mut bench = with_plugins("bare", server("receives bare"));
    bench.server("fra").facts.semi_sync = SemiSync::default();
    bench.run(60);
    assert_eq!(bench.count("pdx: switch") + bench.count("iad: switch") + bench.count("fra: switch"), 0);
    let mut bench = with_plugins("", server("receives"));
    bench.respec(|spec| spec.paused = Some(crate::group::spec::Pause { reason: String::new(), until: None }));
    bench.run(60);
    assert_eq!(bench.log, [""; 0]);
}

#[test]
fn nobody_is_opened_before_its_commits_wait_for_receipts() {
    for planned in [false, true] {
        let mut stage = running(&["iad", "pdx", "fra"]);
        stage.group.spec.durability = SEMI;
        for (name, actor) in &mut stage.actors {
            let words = if *name == site("iad") { "source" } else { "replica gives" };
            actor.facts.semi_sync = server(words).semi_sync;
        }
        stage.play(Millis::from_secs(10), |_| false);
        stage.openings.clear();
        if planned {
            let wish = PlannedWish { site: site("pdx"), max_lag_wait: None, id: None };
            let planned = Some(Request { text: "pdx".to_owned(), wish: Ok(wish) });
            stage.tell(Input::Requests(Box::new(Requests { planned, ..Requests::default() })));
        } else {
            stage.kill(&site("iad"));
        }
        let elsewhere = |stage: &Rehearsal| stage.writer().is_some_and(|writer| writer != site("iad"));
        assert!(stage.play(Millis::from_secs(60), elsewhere), "{:?}", stage.group.obstacle);
        let waits = |(_, says): &(Site, SemiSync)| says.source == Some(ON);
        assert!(!stage.openings.is_empty() && stage.openings.iter().all(waits), "{:?}", stage.openings);
        // Who was the holder and lives waits for nobody any more.
        stage.play(Millis::from_secs(10), |_| false);
        let iad = &stage.actors[&site("iad")];
        assert!(!iad.server || iad.facts.semi_sync.source.is_none());
    }
}

/// iad is lost, and pdx, the only candidate, refuses to be switched.
fn switch_refused(durability: Durability) -> Rehearsal {
    let mut stage = running(&["iad", "pdx"]);
    stage.group.spec.durability = durability;
    for (name, actor) in &mut stage.actors {
        actor.facts.semi_sync = server(if *name == site("iad") { "source replica" } else { "replica gives" }).semi_sync;
    }
    stage.play(Millis::from_secs(10), |_| false);
    stage.openings.clear();
    let pdx = stage.actors.get_mut(&site("pdx")).expect("pdx");
    pdx.refuses = Some(|task| matches!(task, Task::SwitchSemiSync(_)));
    stage.kill(&site("iad"));
    let stuck = |stage: &Rehearsal| stage.group.obstacle == Some(Obstacle::Receipts(site("pdx")));
    assert!(stage.play(Millis::from_secs(60), stuck), "{:?}", stage.group.obstacle);
    stage
}

fn tells_of_receipts(stage: &Rehearsal) -> bool {
    stage.group.summary(stage.now).degraded.iter().any(|(reason, _)| *reason == Degraded::SemiSyncInactive)
}

fn pdx_writes(stage: &Rehearsal) -> bool {
    stage.writer() == Some(site("pdx"))
}

#[test]
fn a_server_that_cannot_be_switched_is_opened_when_commits_would_wait_no_longer_and_people_are_told() {
    let mut stage = switch_refused(SEMI);
    assert!(!stage.play(Millis(WAIT.0 - 2000), pdx_writes) && tells_of_receipts(&stage), "{:?}", stage.group.obstacle);
    assert!(stage.play(Millis::from_secs(4), pdx_writes), "{:?}", stage.group.obstacle);
    assert!(tells_of_receipts(&stage));
}

#[test]
fn a_switch_that_failed_is_tried_again_before_the_server_is_opened() {
    for durability in [SEMI, Durability::semi_sync(Millis(0))] {
        let mut stage = switch_refused(durability);
        stage.play(Millis::from_secs(3), |_| false);
        stage.actors.get_mut(&site("pdx")).expect("pdx").refuses = None;
        assert!(stage.play(Millis::from_secs(60), pdx_writes), "{:?}", stage.group.obstacle);
        assert!(stage.openings.iter().all(|(_, says)| says.source.is_some()), "{:?}", stage.openings);
    }
}

#[test]
fn who_waits_for_receipts_without_end_has_no_write_without_one() {
    let mut stage = switch_refused(Durability::semi_sync(Millis(0)));
    assert!(!stage.play(Millis::from_secs(600), pdx_writes), "{:?}", stage.openings);
    assert!(stage.play(Millis::from_secs(60), tells_of_receipts), "{:?}", stage.group.obstacle);
}

#[test]
fn missing_receipts_are_never_silent() {
    let given =
        SemiSync { loaded: true, source: Some(ON), waits: true, clients: 1, replica: true, acknowledges: false };
    let rows = [
        (given, 20, None),
        (SemiSync { loaded: false, ..SemiSync::default() }, 20, Some("the plugins are not loaded")),
        (SemiSync { source: None, waits: false, ..given }, 20, Some("the source's side is off")),
        (SemiSync { waits: false, ..given }, 20, Some("no receipt came within 10 s")),
        (SemiSync { clients: 0, ..given }, 4, None),
        (SemiSync { clients: 0, ..given }, 20, Some("no primary-candidate gives receipts, commits wait 10 s")),
    ];
    for (says, seconds, expect) in rows {
        let mut bench = with_plugins("", server("receives replica gives"));
        bench.server("iad").facts.semi_sync = says;
        // Whatever is switched changes nothing there.
        bench.outcomes.insert("Switch", Some(Outcome::Failed("refused".to_owned())));
        bench.run(seconds);
        let kept = bench.group.kept().expect("it is known what is stored");
        let (primary, receipts) = bench.group.receipts(bench.now, &kept).expect("receipts are wanted");
        assert_eq!(primary, site("iad"));
        let degraded = bench.group.summary(bench.now).degraded;
        let told = degraded.iter().find(|(reason, _)| *reason == Degraded::SemiSyncInactive);
        match expect {
            None => assert!(receipts == Receipts::Given && told.is_none(), "{says:?}: {receipts:?}"),
            Some(text) => assert!(told.is_some_and(|(_, told)| told.contains(text)), "{says:?}: {told:?}"),
        }
        bench.respec(|spec| spec.durability = Durability::Async);
        assert_eq!(bench.group.receipts(bench.now, &kept), None);
    }
}
