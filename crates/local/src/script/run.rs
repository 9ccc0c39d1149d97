//! Running a script: one step after the other, each with its bound.
//!
//! In: a script and a stage. Out: whether everything expected came true, and what did not. Must not: touch the group
//! itself; the stage does, and tells what is to be seen.

use super::{Act, Expect, Moment, Scene, Script, Step, What, scenes};
use crate::ledger::Verdict;
use std::future::Future;
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout_at};

/// How often the stage is looked at while something is awaited. Looking costs nothing: the stage keeps its own picture.
const LOOK: Duration = Duration::from_millis(20);

/// A busy machine stands still for a second now and then: as long a silence says nothing of who writes.
const HICCUP: Duration = Duration::from_secs(3);

/// What a script acts on.
pub trait Stage: Sync {
    /// Does something to the group; returns when it is done, or says why not.
    fn act(&self, act: &Act) -> impl Future<Output = Result<(), String>> + Send;

    /// Switches the load.
    fn load(&self, on: bool);

    /// The newest picture.
    fn seen(&self) -> Seen;

    /// Looks every write up on every site.
    fn audit(&self) -> impl Future<Output = Verdict> + Send;

    /// Strikes as soon as the moment comes; returns at once.
    fn ambush(&self, moment: &Moment, act: &Act);

    /// How many ambushes have not struck.
    fn in_wait(&self) -> usize;

    /// Those will not strike any more.
    fn forget(&self);

    /// Whether every divergence report says exactly what the servers say, or what is different.
    fn divergence(&self) -> impl Future<Output = Result<(), String>> + Send;

    /// Whether a site's server says that it is read-only, or what it says instead.
    fn closed(&self, site: &str) -> impl Future<Output = Result<(), String>> + Send;

    /// A scene begins.
    fn begins(&self, scene: &Scene);

    /// A scene has ended; the longest silence at the front door since it began.
    fn ends(&self, played: &mut Played);

    /// Tells whoever watches that a step begins (none) or has ended (how long it took).
    fn tell(&self, step: &Step, ended: Option<Duration>);

    /// Whether the person wants it to end.
    fn stopping(&self) -> bool;
}

/// What is to be seen of a group.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// Who writes: opened and read back.
    pub primary: Option<String>,
    /// The front door took a write from that primary since the last act.
    pub serving: bool,
    /// How often authority went to another site.
    pub moves: usize,
    /// Every site.
    pub sites: Vec<SeenSite>,
    /// Phase and reason of the newest planned failover.
    pub planned: Option<(String, String)>,
    /// The longest silence at the front door since the last act.
    pub gap: Duration,
    /// What the group says that it suffers from; empty: nothing.
    pub degraded: String,
    /// What showed that the holder before this one had let go.
    pub proof: String,
}

/// What is to be seen of a site.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeenSite {
    /// Its name.
    pub name: String,
    /// `writable`, `read-only`, `unreachable`, `unknown`.
    pub state: String,
    /// Both threads run and its source is the primary.
    pub following: bool,
    /// How many transactions it has that the primary lacks.
    pub divergent: u64,
}

/// What did not come true.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// Which step.
    pub step: Step,
    /// What was seen instead.
    pub because: String,
}

/// How a scene ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Played {
    /// Which.
    pub name: String,
    /// What it shows.
    pub story: String,
    /// What did not come true; none: everything did.
    pub failed: Option<Failed>,
    /// How long it took, from the moment when the group was ready for it.
    pub took: Duration,
    /// The longest silence at the front door in it.
    pub gap: Duration,
}

/// How a script ended.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The first thing that did not come true; none: all did.
    pub failed: Option<Failed>,
    /// How each scene ended.
    pub scenes: Vec<Played>,
    /// What the ledger says at the end.
    pub ledger: Verdict,
}

/// As long the ledger may owe something when everything else has ended: several looks at every site on a busy machine.
const LAST_AUDIT: Duration = Duration::from_secs(10);

/// Why a run fails in which nobody fell into an ambush: a moment can be over before anybody saw it.
pub(super) const MISSED: &str = "the moment of an ambush never came";

/// What a run remembers from step to step.
#[derive(Default)]
pub(super) struct Course {
    /// When the load began.
    pub(super) began: Option<Instant>,
    /// Authority had gone to another site so often before.
    pub(super) moves: usize,
}

/// Runs a script to its end: its steps to the first that fails, and each of its scenes.
pub async fn run(script: &Script, stage: &impl Stage) -> Outcome {
    let mut course = Course::default();
    let mut failed = play(&script.steps, stage, &mut course).await.err();
    let mut played = Vec::new();
    if failed.is_none() {
        played = scenes::play_all(&script.scenes, stage).await;
        failed = played.iter().find_map(|scene| scene.failed.clone());
    }
    stage.load(false);
    Outcome { failed, scenes: played, ledger: last_audit(stage).await }
}

/// The verdict that a run ends with. What was under way when the load was switched off ends, and a server that was too busy to
/// answer is asked again; what is lost stays lost.
pub(super) async fn last_audit(stage: &impl Stage) -> Verdict {
    let until = Instant::now() + LAST_AUDIT;
    let mut looks = looks();
    loop {
        looks.tick().await;
        let verdict = stage.audit().await;
        if verdict.is_clean() || verdict.wrong_side > 0 || stage.stopping() || Instant::now() >= until {
            return verdict;
        }
    }
}

/// Plays to the first step that fails.
pub(super) async fn play(steps: &[Step], stage: &impl Stage, course: &mut Course) -> Result<(), Failed> {
    for step in steps {
        let start = Instant::now();
        stage.tell(step, None);
        let outcome = perform(step, stage, course).await;
        stage.tell(step, Some(start.elapsed()));
        outcome.map_err(|because| Failed { step: step.clone(), because })?;
    }
    match steps.last() {
        Some(last) if stage.in_wait() > 0 => Err(Failed { step: last.clone(), because: MISSED.to_owned() }),
        _ => Ok(()),
    }
}

async fn perform(step: &Step, stage: &impl Stage, course: &mut Course) -> Result<(), String> {
    if let Some(at) = step.at {
        let start = *course.began.get_or_insert_with(Instant::now);
        pass_until(start + at, stage).await?;
    }
    match &step.what {
        What::Rest(time) => pass_until(Instant::now() + *time, stage).await,
        What::Load(on) => {
            stage.load(*on);
            course.began.get_or_insert_with(Instant::now);
            Ok(())
        }
        What::Act(act) => stage.act(act).await,
        What::Ambush(moment, act) => {
            stage.ambush(moment, act);
            Ok(())
        }
        What::WaitReady(within) => {
            await_true(stage, *within, |seen| {
                if seen.primary.is_some() { Ok(()) } else { Err(format!("nobody writes; {}", states(seen))) }
            })
            .await
        }
        What::WaitSettled(within) => await_true(stage, *within, settled).await,
        What::WaitAttached(within) => await_true(stage, *within, attached).await,
        What::Expect(Expect::LedgerClean, within) => await_clean(stage, *within, false).await,
        What::Expect(Expect::LedgerWhole, within) => await_clean(stage, *within, true).await,
        What::Expect(Expect::DivergenceExact, within) => await_answer(stage, *within, || stage.divergence()).await,
        What::Expect(Expect::Closed(site), within) => await_answer(stage, *within, || stage.closed(site)).await,
        What::Expect(expect, within) => await_true(stage, *within, |seen| check(expect, seen, course.moves)).await,
        What::ExpectFor(expect, time) => remains_true(stage, *time, expect, course.moves).await,
    }
}

/// Lets time pass, unless the person wants it to end.
async fn pass_until(until: Instant, stage: &impl Stage) -> Result<(), String> {
    let mut looks = looks();
    while timeout_at(until, looks.tick()).await.is_ok() {
        interrupted(stage)?;
        if Instant::now() >= until {
            break;
        }
    }
    Ok(())
}

async fn await_true(
    stage: &impl Stage,
    within: Duration,
    mut check: impl FnMut(&Seen) -> Result<(), String>,
) -> Result<(), String> {
    let until = Instant::now() + within;
    let mut looks = looks();
    loop {
        looks.tick().await;
        interrupted(stage)?;
        let Err(because) = check(&stage.seen()) else { return Ok(()) };
        if Instant::now() >= until {
            return Err(format!("not within {} s: {because}", within.as_secs_f64()));
        }
    }
}

async fn remains_true(stage: &impl Stage, time: Duration, expect: &Expect, moves: usize) -> Result<(), String> {
    let until = Instant::now() + time;
    let mut looks = looks();
    while Instant::now() < until {
        looks.tick().await;
        interrupted(stage)?;
        let mut seen = stage.seen();
        seen.serving |= seen.gap < HICCUP;
        check(expect, &seen, moves)?;
    }
    Ok(())
}

/// The ledger may owe something while a site is being brought back; in the end it may not.
async fn await_clean(stage: &impl Stage, within: Duration, whole: bool) -> Result<(), String> {
    let until = Instant::now() + within;
    loop {
        interrupted(stage)?;
        let verdict = stage.audit().await;
        if verdict.is_clean() && whole && verdict.reported > 0 {
            return Err(format!("{} acknowledged writes were given up: {verdict}", verdict.reported));
        }
        if verdict.is_clean() {
            return Ok(());
        }
        // What was written on the wrong side stays written.
        if verdict.wrong_side > 0 || Instant::now() >= until {
            return Err(verdict.to_string());
        }
        pass_until(Instant::now() + Duration::from_millis(500), stage).await?;
    }
}

pub(super) fn interrupted(stage: &impl Stage) -> Result<(), String> {
    if stage.stopping() { Err("ended by hand".to_owned()) } else { Ok(()) }
}

pub(super) fn looks() -> tokio::time::Interval {
    let mut looks = interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    looks
}

/// Waits for what has to be asked of servers.
async fn await_answer<F>(stage: &impl Stage, within: Duration, ask: impl Fn() -> F) -> Result<(), String>
where
    F: Future<Output = Result<(), String>>,
{
    let until = Instant::now() + within;
    loop {
        interrupted(stage)?;
        let Err(because) = ask().await else { return Ok(()) };
        if Instant::now() >= until {
            return Err(because);
        }
        pass_until(Instant::now() + Duration::from_millis(500), stage).await?;
    }
}

pub(super) fn settled(seen: &Seen) -> Result<(), String> {
    whole(seen, |site| site.following && site.divergent == 0)
}

/// As settled, but a site may hold what the primary lacks: fenced, and reported.
pub(super) fn attached(seen: &Seen) -> Result<(), String> {
    whole(seen, |site| site.following || site.divergent > 0)
}

fn whole(seen: &Seen, with_the_primary: impl Fn(&SeenSite) -> bool) -> Result<(), String> {
    let Some(primary) = &seen.primary else { return Err(format!("nobody writes; {}", states(seen))) };
    let fine = |site: &&SeenSite| {
        if site.name == *primary {
            site.state == "writable"
        } else {
            with_the_primary(site) && site.state == "read-only"
        }
    };
    let late: Vec<String> = seen.sites.iter().filter(|site| !fine(site)).map(state).collect();
    if late.is_empty() { Ok(()) } else { Err(format!("{primary} writes; {}", late.join(", "))) }
}

fn check(expect: &Expect, seen: &Seen, before: usize) -> Result<(), String> {
    let primary = seen.primary.as_deref().unwrap_or("nobody");
    let site = |name: &str| seen.sites.iter().find(|site| site.name == name).cloned().unwrap_or_default();
    let (holds, instead) = match expect {
        Expect::Primary(wanted) => (primary == wanted && seen.serving, format!("{primary} writes; {}", states(seen))),
        Expect::PrimaryNot(other) => {
            (seen.primary.is_some() && primary != other && seen.serving, format!("{primary} writes; {}", states(seen)))
        }
        Expect::NoPrimary => (seen.primary.is_none(), format!("{primary} writes")),
        Expect::Failovers(count) => {
            let moves = seen.moves.saturating_sub(before);
            (moves == *count, format!("{moves} failovers"))
        }
        Expect::Following(name) => (site(name).following, state(&site(name))),
        Expect::Unreachable(name) => (site(name).state == "unreachable", state(&site(name))),
        Expect::Divergent(name, count) => {
            let found = site(name).divergent;
            (count.map_or(found > 0, |count| found == count), state(&site(name)))
        }
        Expect::Degraded(reason) => (seen.degraded == *reason, format!("the group says `{}`", seen.degraded)),
        Expect::Proof(kind) => (seen.proof == *kind, format!("the proof is `{}`", seen.proof)),
        Expect::Planned(phase, reason) => {
            let found = seen.planned.clone().unwrap_or_default();
            let fits = found.0 == *phase && reason.as_ref().is_none_or(|reason| found.1 == *reason);
            (fits, format!("the planned failover is {} {}", found.0, found.1).trim_end().to_owned())
        }
        Expect::GapUnder(bound) => (seen.gap < *bound, format!("a gap of {} ms", seen.gap.as_millis())),
        // Asked of the ledger and of the servers themselves.
        Expect::LedgerClean | Expect::LedgerWhole | Expect::DivergenceExact | Expect::Closed(_) => {
            (true, String::new())
        }
    };
    if holds { Ok(()) } else { Err(instead) }
}

fn states(seen: &Seen) -> String {
    seen.sites.iter().map(state).collect::<Vec<_>>().join(", ")
}

fn state(site: &SeenSite) -> String {
    let following = if site.following { " and following" } else { "" };
    let divergent = if site.divergent > 0 { format!(", {} divergent", site.divergent) } else { String::new() };
    format!("{} {}{following}{divergent}", site.name, site.state)
}
