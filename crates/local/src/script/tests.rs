//! Scripts: what is wrong is refused with line and reason; a run ends with what came true.

use super::{
    Act, Deed, Edit, End, Expect, Moment, Outcome, Played, Process, Profile, Scene, Script, Seen, SeenSite, SiteWish,
    Stage, Step, What,
};
use crate::ledger::Verdict;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

fn three() -> Vec<SiteWish> {
    super::parse::sites("iad,pdx,fra:dr-only").unwrap()
}

fn parse(text: &str) -> Script {
    super::parse(text, &three()).unwrap_or_else(|wrong| panic!("{wrong}"))
}

fn whats(text: &str) -> Vec<What> {
    parse(text).steps.into_iter().map(|step| step.what).collect()
}

#[test]
fn steps_are_read_in_order_and_begin_and_end_by_themselves() {
    let steps = whats("kill mysqld at iad\nexpect primary pdx within 8s\n");
    let [What::WaitReady(_), What::Load(true), kill, expect, What::Expect(Expect::LedgerClean, _)] = &steps[..] else {
        panic!("{steps:?}");
    };
    assert_eq!(*kill, What::Act(Act::Kill(Process::Mysqld("iad".into()))));
    assert_eq!(*expect, What::Expect(Expect::Primary("pdx".into()), Duration::from_secs(8)));
    assert_eq!(whats("load on\nexpect ledger clean").len(), 2, "nothing is added to what is said");
}

#[test]
fn timed_lines_of_the_simulator_are_sorted_and_everything_settles_before_expectations() {
    let text = "story s\ncooldown 20s\nheal at 60s\nat 30s rejoin iad\nat 20.5s isolate iad\nexpect failovers 1";
    let script = parse(text);
    assert_eq!((script.story.as_str(), script.setup.cooldown), ("s", Some(Duration::from_secs(20))));
    let times: Vec<_> = script.steps.iter().filter_map(|step| step.at).map(|at| at.as_millis()).collect();
    assert_eq!(times, [20_500, 30_000, 60_000]);
    let rest: Vec<&str> = script.steps.iter().rev().take(3).map(|step| step.text.as_str()).collect();
    assert_eq!(rest, ["expect ledger clean", "expect failovers 1", "wait settled"]);
}

#[test]
fn the_setup_is_read() {
    let script = parse("sites 4\ndr-only 1\noperators 2\nprofile fast\nlease 10s\npoll 500ms\nkill operator-1");
    let sites = script.setup.sites.unwrap();
    let names: Vec<_> = sites.iter().map(|site| (site.name.as_str(), site.dr_only)).collect();
    assert_eq!(names, [("iad", false), ("pdx", false), ("fra", false), ("sin", true)]);
    assert_eq!((script.setup.operators, script.setup.profile), (Some(2), Some(Profile::Fast)));
    assert_eq!(script.setup.poll, Some(Duration::from_millis(500)));
    assert!(script.steps.iter().any(|step| step.what == What::Act(Act::Kill(Process::Operator(1)))));
}

#[test]
fn every_deed_is_read_as_it_is_printed() {
    let site = || End::Site("iad".into());
    let rows = [
        Act::Kill(Process::Keeper("iad".into())),
        Act::Hold(Process::Mysqld("pdx".into())),
        Act::Hold(Process::Leader),
        Act::Release(Process::Mysqld("pdx".into())),
        Act::Stop(End::Site("pdx".into())),
        Act::Start(End::Site("pdx".into())),
        Act::Stop(End::Operator(0)),
        Act::KillPod("iad".into()),
        Act::Pause(Process::Sidecar("fra".into())),
        Act::Resume(Process::Operator(0)),
        Act::Start(End::Operator(0)),
        Act::DeletePod("iad".into()),
        Act::LoseVolume("fra".into()),
        Act::Cut(End::Operator(0), site()),
        Act::CutOneWay(site(), End::Clients),
        Act::Delay(site(), End::Operator(0), Duration::from_millis(80)),
        Act::Mend(End::Operator(0), site()),
        Act::Isolate(site()),
        Act::Rejoin(site()),
        Act::Heal,
        Act::Plan("pdx".into(), None),
        Act::Plan("pdx".into(), Some(Duration::from_secs(3))),
        Act::Reclone("fra".into()),
        Act::Edit(Edit::Paused(true)),
        Act::Edit(Edit::Paused(false)),
        Act::Edit(Edit::Cooldown(Duration::from_secs(20))),
        Act::Edit(Edit::Priorities(vec!["pdx".into(), "iad".into()])),
        Act::Edit(Edit::Priorities(Vec::new())),
        Act::ForgetRecord,
        Act::Person("pdx".into(), Deed::Open),
        Act::Person("pdx".into(), Deed::Fence),
        Act::Person("pdx".into(), Deed::Write(3)),
        Act::Person("pdx".into(), Deed::WriteTagged(3)),
        Act::Person("iad".into(), Deed::LockTables(Duration::from_secs(20))),
        Act::Person("pdx".into(), Deed::BlockApplier(Duration::from_secs(20))),
        Act::Person("iad".into(), Deed::LongUpdate(Duration::from_millis(1500))),
        Act::Person("iad".into(), Deed::FillConnections),
        Act::Person("pdx".into(), Deed::StopApplier),
        Act::Person("pdx".into(), Deed::StartApplier),
        Act::Person("pdx".into(), Deed::DelayApplier(Duration::from_mins(20))),
    ];
    for act in rows {
        let found = whats(&format!("load on\n{act}")).into_iter().nth(1);
        assert_eq!(found, Some(What::Act(act.clone())), "{act}");
    }
    let ambush = whats("load on\nambush revoked operator\nambush Draining kill mysqld iad");
    assert_eq!(ambush[1], What::Ambush(Moment::Revoked, Act::Kill(Process::Leader)));
    let kill = Act::Kill(Process::Mysqld("iad".into()));
    assert_eq!(ambush[2], What::Ambush(Moment::Planned("Draining".into()), kill));
}

#[test]
fn what_is_wrong_is_refused_with_its_line_and_reason() {
    let rows = [
        ("load on\nkill mysqld mars", "line 2: `mars` is not a site; this group has iad, pdx, fra"),
        ("sites 2\nisolate fra", "line 2: `fra` is not a site; this group has iad, pdx"),
        ("at -5s isolate iad", "line 1: `-5s` is negative"),
        ("rest 5", "line 1: `5` is not a time; write 12.5s or 300ms"),
        ("rest 2000000s", "line 1: `2000000s` is more than an hour"),
        ("pause keeper iad", "line 1: a keeper is not paused: the protocol assumes that it runs"),
        ("cut iad iad", "line 1: a link has two ends"),
        ("cut iad store", "line 1: the store is a folder here: no link leads to it"),
        ("kill operator-1", "line 1: there is one operator only; write `operators 2` first"),
        ("heal now", "line 1: `now` is too much"),
        ("release leader", "line 1: the leader is whoever leads; write operator-0 or operator-1, or heal"),
        ("expect proof none", "line 1: `none` is no proof; write FencedBySidecar, ProcessEnded, LeaseExpired, Assumed"),
        ("kill", "line 1: expected mysqld, keeper, sidecar or an operator, found the end of the line"),
        ("kill iad", "line 1: `iad` is not a process; write mysqld, keeper or sidecar before a site"),
        ("sites 9", "line 1: 9 is not a number of sites from 2 to 5"),
        ("sites iad", "line 1: a group has 2 to 5 sites, not 1"),
        ("sites iad,iad", "line 1: `iad` is named twice"),
        ("sites iad,Pdx", "line 1: `Pdx` is not a name for a site; write up to 12 small letters and digits"),
        ("sites iad,pdx:dr", "line 1: `dr` is not a role; write dr-only or primary-candidate"),
        ("sites iad,pdx:dr-only", "line 1: two sites at least must be candidates; take `:dr-only` off one"),
        ("sites 2\ndr-only 2", "line 2: every site is dr-only; one at least must be a candidate"),
        ("profile slow", "line 1: `slow` is not a profile; write default or fast"),
        ("load on\nlease 5s", "line 2: `lease` says what the group is like; write it before the first step"),
        ("start clients", "line 1: clients are not started; write `load on`"),
        ("load maybe", "line 1: the load is `on` or `off`, not `maybe`"),
        ("at 5s clock iad 7", "line 1: `clock` happens in the simulator only (bloodraven simulate --scenario)"),
        ("eat iad", "line 1: `eat` is not known; a line is a step, a fault, or `at <time> <fault>`"),
        ("expect ledger dirty", "line 1: a ledger is clean or whole, not `dirty`"),
        ("expect site iad happy", "line 1: a site is following, closed, unreachable or divergent, not `happy`"),
        ("expect divergence none", "line 1: expected `exact`, found `none`"),
        ("expect site iad divergent many", "line 1: `many` is too much"),
        ("human-open mars", "line 1: `mars` is not a site; this group has iad, pdx, fra"),
        ("human-write iad none", "line 1: `none` is not a number of rows"),
        ("human-write iad 0", "line 1: 0 is not a number of rows from 1 to 1000"),
        ("human-write iad 3 red", "line 1: `red` is too much"),
        ("lock-tables iad", "line 1: expected a time such as 12.5s or 300ms, found the end of the line"),
        ("long-update iad soon", "line 1: `soon` is not a time; write 12.5s or 300ms"),
        ("fill-connections", "line 1: expected a site, found the end of the line"),
        ("stop-applier operator", "line 1: `operator` is not a site; this group has iad, pdx, fra"),
        ("delay-replica pdx 300ms", "line 1: a delay is a whole number of seconds, 1 at least"),
        ("plan failover to pdx waiting", "line 1: expected a time such as 12.5s or 300ms, found the end of the line"),
        ("edit colour", "line 1: `colour` is not edited here; write paused, unpaused, cooldown or priorities"),
        ("edit priorities pdx,mars", "line 1: `mars` is not a site; this group has iad, pdx, fra"),
        ("threshold 0", "line 1: 0 is not a number of polls from 1 to 100"),
        ("scene", "line 1: expected a name for the scene, found the end of the line"),
        ("scene one", "line 1: say what the scene shows, in the same line"),
        ("scene one from mars it moves", "line 1: `mars` is not a site; this group has iad, pdx, fra"),
        ("scene one a thing\nheal\nscene one another\nheal", "line 3: there is a scene `one` already"),
        ("scene one a thing\nscene two another\nheal", "line 1: nothing happens in the scene `one`"),
        ("scene one a thing\nat 5s isolate iad", "line 2: a scene has no clock; write `rest` before the fault"),
        (
            "scene one a thing\nheal\npoll 1s",
            "line 3: `poll` says what the group is like; write it before the first step",
        ),
        ("play chess", "line 1: `chess` is not a shipped scenario; see bloodraven playground --list"),
        ("play two-operators", "line 1: two-operators needs more operators; write `operators 2` first"),
        ("ambush fencing operator", "line 1: that moment shows in the simulator only"),
        ("ambush revoked ambush revoked operator", "line 1: an ambush strikes once; write a fault"),
        (
            "at 90s isolate iad\nheal at 60s",
            "line 2: the last fault is not before everything heals; write a later `heal at`",
        ),
    ];
    for (text, wrong) in rows {
        let found = super::parse(text, &three()).map_err(|wrong| wrong.to_string()).map(|script| script.steps);
        assert_eq!(found, Err(wrong.to_owned()), "{text}");
    }
}

/// A stage that shows one picture after the other, and writes down what it was asked for.
#[derive(Default)]
struct Puppets {
    pictures: Mutex<Vec<Seen>>,
    asked: Mutex<Vec<String>>,
    ledger: Verdict,
    /// Verdicts that come before that one.
    earlier: Mutex<Vec<Verdict>>,
    refuses: bool,
    stopped: bool,
    misses: AtomicUsize,
    divergence: Option<String>,
}

impl Stage for Puppets {
    async fn act(&self, act: &Act) -> Result<(), String> {
        self.asked.lock().unwrap().push(act.to_string());
        if self.refuses { Err("no such process".to_owned()) } else { Ok(()) }
    }

    fn load(&self, on: bool) {
        self.asked.lock().unwrap().push(format!("load {on}"));
    }

    fn seen(&self) -> Seen {
        let mut pictures = self.pictures.lock().unwrap();
        if pictures.len() > 1 { pictures.remove(0) } else { pictures.first().cloned().unwrap_or_default() }
    }

    async fn audit(&self) -> Verdict {
        self.earlier.lock().unwrap().pop().unwrap_or_else(|| self.ledger.clone())
    }

    fn ambush(&self, moment: &Moment, act: &Act) {
        self.asked.lock().unwrap().push(format!("{moment:?} {act}"));
    }

    fn in_wait(&self) -> usize {
        let left = self.misses.load(Ordering::Relaxed);
        self.misses.store(left.saturating_sub(1), Ordering::Relaxed);
        left.min(1)
    }

    fn forget(&self) {
        self.asked.lock().unwrap().push("forget".to_owned());
    }

    async fn divergence(&self) -> Result<(), String> {
        self.divergence.clone().map_or(Ok(()), Err)
    }

    async fn closed(&self, site: &str) -> Result<(), String> {
        let open = self.pictures.lock().unwrap().iter().any(|seen| seen.primary.as_deref() == Some(site));
        if open { Err(format!("{site} is open")) } else { Ok(()) }
    }

    fn begins(&self, scene: &Scene) {
        self.asked.lock().unwrap().push(format!("scene {}", scene.name));
    }

    fn ends(&self, played: &mut Played) {
        let ended = if played.failed.is_none() { "passed" } else { "failed" };
        self.asked.lock().unwrap().push(format!("{} {ended}", played.name));
    }

    fn tell(&self, _: &Step, _: Option<Duration>) {}

    fn stopping(&self) -> bool {
        self.stopped
    }
}

fn picture(primary: &str) -> Seen {
    let site = |name: &str| SeenSite {
        name: name.into(),
        state: if name == primary { "writable" } else { "read-only" }.into(),
        following: name != primary,
        divergent: 0,
    };
    let sites = ["iad", "pdx", "fra"].map(site).to_vec();
    let primary = Some(primary.to_owned()).filter(|name| !name.is_empty());
    Seen { serving: primary.is_some(), primary, sites, ..Seen::default() }
}

async fn play(text: &str, puppets: &Puppets) -> Outcome {
    super::run(&parse(text), puppets).await
}

#[tokio::test(start_paused = true)]
async fn a_run_waits_for_what_is_expected_and_ends_with_the_ledger() {
    let pictures = Mutex::new(["", "iad", "", "", "pdx"].map(picture).to_vec());
    let puppets = Puppets { pictures, ..Puppets::default() };
    let text = "wait ready\nload on\nambush granted operator\nkill mysqld iad\nexpect primary pdx within 5s\n\
                wait settled\nexpect primary pdx for 3s";
    let outcome = play(text, &puppets).await;
    assert_eq!(outcome.failed, None);
    let asked = puppets.asked.lock().unwrap().clone();
    assert_eq!(asked, ["load true", "Granted kill leader", "kill mysqld iad", "load false"]);
}

#[tokio::test(start_paused = true)]
async fn a_run_ends_with_what_the_ledger_owes_when_everything_under_way_has_ended() {
    let owes = Verdict { received_and_lost: 1, ..Verdict::default() };
    let wrong = Verdict { wrong_side: 1, ..Verdict::default() };
    let ends = async |earlier: Vec<Verdict>, ledger: Verdict| {
        let puppets = Puppets { earlier: earlier.into(), ledger, ..Puppets::default() };
        let begun = tokio::time::Instant::now();
        (super::run::last_audit(&puppets).await, begun.elapsed().as_secs())
    };
    assert_eq!(ends(vec![owes.clone(); 3], Verdict::default()).await, (Verdict::default(), 0));
    // What was on the wrong side stays there, and is not asked for again.
    assert_eq!(ends(vec![wrong.clone()], Verdict::default()).await, (wrong, 0));
    assert_eq!(ends(Vec::new(), owes.clone()).await, (owes, 10), "asked for again and again, and not for ever");
}

#[tokio::test(start_paused = true)]
async fn an_ambush_that_never_struck_fails_the_run() {
    let pictures = Mutex::new(vec![picture("iad")]);
    let outcome =
        play("load on\nambush granted operator", &Puppets { pictures, misses: 1.into(), ..Puppets::default() }).await;
    assert_eq!(outcome.failed.map(|failed| failed.because), Some("the moment of an ambush never came".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_scene_whose_ambush_missed_its_moment_is_played_again_and_never_let_pass() {
    let text = "scene one from iad first\nambush granted operator\nexpect primary iad";
    for (misses, plays, passes) in [(0, 1, true), (2, 3, true), (4, 5, true), (5, 5, false), (9, 5, false)] {
        let pictures = Mutex::new(vec![picture("iad")]);
        let puppets = Puppets { pictures, misses: misses.into(), ..Puppets::default() };
        let outcome = play(text, &puppets).await;
        let asked = puppets.asked.lock().unwrap().clone();
        assert_eq!(asked.iter().filter(|asked| *asked == "scene one").count(), plays, "{misses} misses");
        assert_eq!(outcome.failed.is_none(), passes, "{misses} misses");
    }
}

#[tokio::test(start_paused = true)]
async fn what_does_not_come_true_ends_the_run_and_is_named() {
    let always = |seen: Seen| Puppets { pictures: Mutex::new(vec![seen]), ..Puppets::default() };
    let dirty = Verdict { wrong_side: 1, ..Verdict::default() };
    let lost = Verdict { lost: 2, ..Verdict::default() };
    let late = Seen { gap: Duration::from_millis(700), ..picture("iad") };
    let planned = Seen { planned: Some(("Failed".into(), "LagTimeout".into())), ..picture("iad") };
    let states = "iad writable, pdx read-only and following, fra read-only and following";
    let rows = [
        (always(picture("iad")), "expect primary pdx within 5s", format!("not within 5 s: iad writes; {states}")),
        (always(picture("iad")), "expect no-primary within 2s", "not within 2 s: iad writes".into()),
        (always(picture("iad")), "expect no-primary for 2s", "iad writes".into()),
        (always(picture("iad")), "expect failovers 1 within 1s", "not within 1 s: 0 failovers".into()),
        (always(late), "expect gap under 500ms within 0s", "not within 0 s: a gap of 700 ms".into()),
        (
            always(Seen { proof: "LeaseExpired".into(), ..picture("iad") }),
            "expect proof FencedBySidecar within 1s",
            "not within 1 s: the proof is `LeaseExpired`".into(),
        ),
        (
            always(planned),
            "expect planned failed because TargetUnhealthy within 1s",
            "not within 1 s: the planned failover is Failed LagTimeout".into(),
        ),
        (Puppets { ledger: dirty.clone(), ..always(picture("iad")) }, "expect ledger clean", dirty.to_string()),
        (Puppets { ledger: lost.clone(), ..always(picture("iad")) }, "expect ledger clean", lost.to_string()),
        (Puppets { refuses: true, ..always(picture("iad")) }, "kill mysqld iad", "no such process".into()),
        (Puppets { stopped: true, ..always(picture("iad")) }, "rest 5s", "ended by hand".into()),
        (
            always(picture("")),
            "wait settled within 3s",
            format!("not within 3 s: nobody writes; {}", {
                "iad read-only and following, pdx read-only and following, fra read-only and following"
            }),
        ),
    ];
    for (puppets, text, because) in rows {
        let outcome = play(&format!("load on\n{text}\nreclone fra"), &puppets).await;
        let failed = outcome.failed.unwrap_or_else(|| panic!("{text} must fail"));
        assert_eq!((failed.step.text.as_str(), failed.because), (text, because));
        assert!(!puppets.asked.lock().unwrap().contains(&"reclone fra".to_owned()), "{text}: nothing after it is done");
    }
}

#[tokio::test(start_paused = true)]
async fn a_scene_begins_whole_and_at_its_site_and_one_that_fails_does_not_hide_the_next() {
    let mut torn = picture("pdx");
    torn.sites[0].following = false;
    torn.sites[0].divergent = 2;
    // Healed, recloned, moved to iad; then a scene that fails and one that passes.
    let mut pictures = vec![picture("pdx"); 500];
    pictures.insert(0, torn);
    pictures.push(picture("iad"));
    let pictures = Mutex::new(pictures);
    let puppets = Puppets { pictures, ..Puppets::default() };
    let text = "scene one from iad it fails\nexpect primary pdx within 1s\nreclone fra\n\
                scene two it passes\nkill sidecar iad\nexpect failovers 0";
    let outcome = play(text, &puppets).await;
    let ended: Vec<(&str, bool)> =
        outcome.scenes.iter().map(|scene| (scene.name.as_str(), scene.failed.is_none())).collect();
    assert_eq!(ended, [("one", false), ("two", true)]);
    assert_eq!(outcome.failed.map(|failed| failed.step.line), Some(2));
    let asked = puppets.asked.lock().unwrap().clone();
    let expect = [
        "forget",
        "heal",
        "lose-volume iad",
        "plan failover to iad",
        "load true",
        "scene one",
        "forget",
        "one failed",
        "forget",
        "heal",
        "load true",
        "scene two",
        "kill sidecar iad",
        "forget",
        "two passed",
        "load false",
    ];
    assert_eq!(asked, expect);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_played_on_a_broken_promise_or_on_a_group_that_does_not_come_back() {
    let always = |seen: Seen| Puppets { pictures: Mutex::new(vec![seen]), ..Puppets::default() };
    let text = "scene one it fails\nexpect no-primary within 1s\nscene two never\nheal";
    let rows = [
        (
            Puppets { ledger: Verdict { wrong_side: 1, ..Verdict::default() }, ..always(picture("iad")) },
            "not played: a write on the wrong side was found before",
        ),
        (always(picture("")), "not played: the group could not be made ready for the scene one"),
    ];
    for (puppets, because) in rows {
        let outcome = play(text, &puppets).await;
        let second = outcome.scenes[1].failed.clone().map(|failed| failed.because);
        assert_eq!(second.as_deref(), Some(because));
        assert!(!puppets.asked.lock().unwrap().contains(&"scene two".to_owned()), "{because}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_divergent_site_is_attached_and_not_settled_and_its_report_is_held_against_the_servers() {
    let mut seen = picture("pdx");
    seen.sites[0].following = false;
    seen.sites[0].divergent = 2;
    let puppets = |divergence: Option<&str>| Puppets {
        pictures: Mutex::new(vec![seen.clone()]),
        divergence: divergence.map(str::to_owned),
        ..Puppets::default()
    };
    let rows = [
        ("wait attached within 1s", None, None),
        ("expect site iad divergent 2 within 1s", None, None),
        ("expect site iad divergent", None, None),
        ("expect divergence exact within 1s", None, None),
        ("expect divergence exact within 1s", Some("iad has 3"), Some("iad has 3")),
        ("wait settled within 1s", None, Some("not within 1 s: pdx writes; iad read-only, 2 divergent")),
        ("expect site iad divergent 3 within 1s", None, Some("not within 1 s: iad read-only, 2 divergent")),
        ("expect site iad closed within 1s", None, None),
        ("expect site pdx closed within 1s", None, Some("pdx is open")),
        ("expect degraded SplitBrain within 1s", None, Some("not within 1 s: the group says ``")),
    ];
    for (text, divergence, because) in rows {
        let outcome = play(&format!("load on\n{text}"), &puppets(divergence)).await;
        assert_eq!(outcome.failed.map(|failed| failed.because).as_deref(), because, "{text}");
    }
}

#[test]
fn a_shipped_scenario_can_be_a_scene() {
    let script = parse("play hold-then-heal\nscene own from pdx of its own\nheal");
    let names: Vec<_> = script.scenes.iter().map(|scene| (scene.name.as_str(), scene.from.as_deref())).collect();
    assert_eq!(names, [("hold-then-heal", Some("iad")), ("own", Some("pdx"))]);
    let last = |scene: &Scene| scene.steps.last().map(|step| step.text.clone());
    assert_eq!(script.scenes.iter().filter_map(last).collect::<Vec<_>>(), ["expect ledger clean"; 2]);
}
