//! The playground: a whole group with load, started, watched, shown and judged.
//!
//! In: what somebody wants ([`Wanted`]). Out: a screen or JSON lines, `playground.json`, and for a script a [`Verdict`].
//! Must not: leave anything running, or anything behind that nobody asked to keep.

mod audit;
mod deeds;
pub mod file;
mod front;
mod paint;
mod person;
pub mod picture;
mod probe;
mod record;
mod scene;
mod stage;
mod watch;

use crate::assembly;
use crate::ledger;
use crate::load::{Load, Plan, RATE};
use crate::script::{self, Script, SiteWish};
use crate::ui::{Terminal, Unusable};
use crate::{Local, Options, Profile, Programs, Progress, Role};
use file::Notice;
use scene::Scene;
use serde::Serialize;
use serde_json::{Value, json};
use snafu::{ResultExt as _, Snafu};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio::time::{interval, timeout};

/// How long the tasks that watch may take to notice the end: their longest await is an audit.
const FAREWELL: Duration = Duration::from_secs(15);

/// How often open writes are looked up, at least; the more there are, the seldomer.
const AUDIT: Duration = Duration::from_secs(3);

/// What somebody wants to play.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Where everything is kept; a directory that has a group is resumed.
    pub dir: PathBuf,
    /// The sites; none: the usual three, or those that are there.
    pub sites: Option<Vec<SiteWish>>,
    /// How patient the group is; none: the script's, or as in production.
    pub profile: Option<script::Profile>,
    /// JSON lines instead of a screen.
    pub headless: bool,
    /// A script to run.
    pub script: Option<Script>,
    /// The programs.
    pub programs: Programs,
    /// An initialised data folder to begin with.
    pub template: Option<PathBuf>,
    /// Writes a second for each writer; none: as many as in the benchmarks.
    pub rate: Option<u32>,
    /// Whether the load begins by itself.
    pub load: bool,
}

/// How a script ended.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Verdict {
    /// Everything expected came true, and the ledger owes nothing.
    pub passed: bool,
    /// What the script shows.
    pub story: String,
    /// What did not come true.
    pub failed: Option<String>,
    /// How each scene ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scenes: Vec<SceneVerdict>,
    /// What the ledger says.
    pub ledger: ledger::Verdict,
    /// The same in one line.
    pub summary: String,
}

/// How a scene of a script ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SceneVerdict {
    /// Which.
    pub name: String,
    /// Everything expected came true.
    pub passed: bool,
    /// What did not come true.
    pub failed: Option<String>,
    /// How long it took.
    pub took_ms: u128,
    /// The longest silence at the front door in it.
    pub longest_gap_ms: u128,
}

impl SceneVerdict {
    fn of(played: &script::Played) -> Self {
        Self {
            name: played.name.clone(),
            passed: played.failed.is_none(),
            failed: played.failed.as_ref().map(told),
            took_ms: played.took.as_millis(),
            longest_gap_ms: played.gap.as_millis(),
        }
    }
}

impl fmt::Display for SceneVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, took_ms, longest_gap_ms, .. } = self;
        let ended = if self.passed { "passed" } else { "FAILED" };
        write!(f, "{ended} {name} ({took_ms} ms, longest gap {longest_gap_ms} ms)")?;
        self.failed.as_ref().map_or(Ok(()), |why| write!(f, ": {why}"))
    }
}

/// Why it could not be played, or not be ended in good order.
#[derive(Debug, Snafu)]
pub enum Error {
    /// The group.
    #[snafu(transparent)]
    Local {
        /// What is wrong with it.
        source: assembly::Error,
    },
    /// The screen.
    #[snafu(transparent)]
    Screen {
        /// What is wrong with it.
        source: Unusable,
    },
    /// Signals cannot be heard.
    #[snafu(display("cannot listen to signals: {source}"))]
    Signals {
        /// What the system said.
        source: std::io::Error,
    },
    /// No randomness.
    #[snafu(display("cannot draw a number: {source}"))]
    Draw {
        /// What the system said.
        source: getrandom::Error,
    },
}

/// Plays until the script is over or the person has enough. For a script: how it ended.
pub async fn run(wanted: Wanted) -> Result<Option<Verdict>, Error> {
    // Before anything is started: a terminal that cannot be used costs nothing.
    let terminal = if wanted.headless { None } else { Some(Terminal::take()?) };
    let mut terminate = signal(SignalKind::terminate()).context(SignalsSnafu)?;
    let mut interrupt = signal(SignalKind::interrupt()).context(SignalsSnafu)?;
    let options = options(&wanted);
    let started = tokio::select! {
        started = Local::start(options, |progress| begin(&wanted, &progress)) => started?,
        // What was started ends with the dropped start.
        _ = terminate.recv() => return Ok(None),
        _ = interrupt.recv() => return Ok(None),
    };
    let scene = assemble(started, &wanted)?;
    let mut tasks = watchers(&scene);
    let played = {
        let listening = async {
            tokio::select! {
                _ = terminate.recv() => scene.end(),
                _ = interrupt.recv() => scene.end(),
            }
            std::future::pending::<()>().await;
        };
        let playing = play(&scene, &wanted, terminal);
        tokio::select! {
            played = playing => played,
            () = listening => None,
        }
    };
    scene.end();
    let farewell = async { while tasks.join_next().await.is_some() {} };
    let in_time = timeout(FAREWELL, farewell).await.is_ok();
    tasks.shutdown().await;
    tracing::debug!(in_time, "everyone who watched has gone");
    let ended = tokio::select! {
        ended = end(scene) => ended,
        // A second wish to end: what is left is killed as it is dropped.
        _ = interrupt.recv() => Ok(()),
        _ = terminate.recv() => Ok(()),
    };
    ended.map(|()| played)
}

/// What a start has come to is told; what an earlier playground left to be read is corrected as soon as it is ours.
fn begin(wanted: &Wanted, progress: &Progress) {
    if *progress == Progress::Taken
        && let Err(error) = file::begin(&wanted.dir)
    {
        tracing::warn!(%error, "playground.json still tells of an earlier playground");
    }
    say(wanted.headless, progress);
}

fn say(headless: bool, progress: &Progress) {
    let message = match progress {
        Progress::Taken => "the directory is ours".to_owned(),
        Progress::Server { version } => format!("MySQL {version}"),
        Progress::Directory { resumed: true } => "the group that is there is resumed".to_owned(),
        Progress::Directory { resumed: false } => "a new group".to_owned(),
        Progress::Links => "links and front doors are open".to_owned(),
        Progress::Site { name } => format!("{name}: keeper and sidecar run"),
        Progress::Operator { number } => format!("operator-{number} runs"),
    };
    if headless {
        let at = picture::stamp(crate::world::now().wall);
        let entry = picture::Entry { at, by: picture::By::Script, reason: "starting".to_owned(), message };
        front::print(&front::Line::Event(&entry));
    }
}

fn options(wanted: &Wanted) -> Options {
    let setup = wanted.script.as_ref().map(|script| script.setup.clone()).unwrap_or_default();
    let wishes = wanted.sites.clone().or(setup.sites.clone());
    let exists = crate::store::Store::exists(&wanted.dir).unwrap_or(false);
    let mut options = Options::new(&wanted.dir, wanted.programs.clone());
    if let Some(wishes) = wishes {
        let role = |wish: &SiteWish| if wish.dr_only { Role::DrOnly } else { Role::PrimaryCandidate };
        options.sites = wishes.iter().map(|wish| (wish.name.clone(), role(wish))).collect();
    } else if exists {
        options.sites = Vec::new();
    }
    options.operators = setup.operators.and_then(|count| u8::try_from(count).ok()).unwrap_or(1);
    options.profile = match wanted.profile.or(setup.profile).unwrap_or_default() {
        script::Profile::Default => Profile::Default,
        script::Profile::Fast => Profile::Fast,
    };
    options.spec = spec(&setup);
    options.template.clone_from(&wanted.template);
    options
}

/// What a script changes in the spec.
fn spec(setup: &script::Setup) -> Value {
    let script::Setup { lease, poll, threshold, cooldown, semi_sync, .. } = *setup;
    let text = |time: Duration| format!("{}ms", time.as_millis());
    let mut spec = json!({});
    if let Some(lease) = lease {
        // A tick is a third of the lease at most.
        let tick = (lease / 3).min(Duration::from_secs(5));
        spec["sidecar"] = json!({ "leaseTimeout": text(lease), "peerCheckInterval": text(tick) });
    }
    if let Some(poll) = poll {
        spec["pollInterval"] = json!(text(poll));
    }
    if let Some(threshold) = threshold {
        spec["failureThreshold"] = json!(threshold);
    }
    if let Some(cooldown) = cooldown {
        spec["failoverCooldown"] = json!(text(cooldown));
    }
    if let Some(wait) = semi_sync {
        spec["replication"] = json!({ "durability": "SemiSync", "semiSyncTimeout": text(wait) });
    }
    spec
}

fn assemble(local: Local, wanted: &Wanted) -> Result<Arc<Scene>, Error> {
    let status = local.status()?;
    let credentials = local.credentials()?;
    let plan = Plan {
        sites: status.sites.iter().map(|site| site.mysql).collect(),
        primary: status.primary_door,
        replicas: status.replicas_door,
        user: credentials.0.clone(),
        password: credentials.1.clone(),
        rate: wanted.rate.unwrap_or(RATE),
    };
    let run = getrandom::u32().context(DrawSnafu)?;
    let load = Load::start(&plan, run);
    let scene = Arc::new(Scene::new(local, load, plan, &status, credentials));
    watch::first(&scene);
    Ok(scene)
}

/// Everyone who keeps the picture current.
fn watchers(scene: &Arc<Scene>) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    tasks.spawn(watch::run(Arc::clone(scene)));
    tasks.spawn(probe::run(Arc::clone(scene)));
    tasks.spawn(paint::run(Arc::clone(scene), Notice::new(scene.local.dir())));
    tasks.spawn(audits(Arc::clone(scene)));
    tasks
}

/// Looks open writes up every now and then, so that they are settled and the ledger's line is current.
async fn audits(scene: Arc<Scene>) {
    let mut stop = scene.stop.subscribe();
    let mut every = interval(AUDIT);
    let mut rest = 0;
    loop {
        tokio::select! {
            _ = every.tick() => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
        if rest > 0 {
            rest -= 1;
            continue;
        }
        tokio::select! {
            _ = scene.audit() => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
        // Twenty thousand open writes take a look of a second.
        rest = scene.load.book(|book| book.open()) / 20_000;
    }
}

/// Shows, and runs the script. Ends when the script does, or when the person wants it.
async fn play(scene: &Arc<Scene>, wanted: &Wanted, terminal: Option<Terminal>) -> Option<Verdict> {
    let story = wanted.script.as_ref().map(|script| script.story.clone());
    let shown = show(scene, terminal, story);
    let Some(script) = &wanted.script else {
        if wanted.load {
            scene.load.switch(true);
        }
        shown.await;
        return None;
    };
    let mut shown = std::pin::pin!(shown);
    let mut running = std::pin::pin!(script::run(script, &**scene));
    // The screen ends first when the person wants it; the script then ends with the next look.
    let (outcome, gone) = tokio::select! {
        outcome = &mut running => (outcome, false),
        () = &mut shown => (running.await, true),
    };
    scene.end();
    if !gone {
        // Shows what is left to show.
        shown.await;
    }
    let verdict = verdict(script, outcome);
    if wanted.headless {
        front::print(&front::Line::Verdict(&verdict));
    }
    Some(verdict)
}

async fn show(scene: &Arc<Scene>, terminal: Option<Terminal>, story: Option<String>) {
    match terminal {
        None => front::headless(Arc::clone(scene)).await,
        Some(terminal) => {
            // A terminal that fails is as good as one that was closed.
            if front::screen(Arc::clone(scene), terminal, story).await.is_err() {
                scene.end();
            }
        }
    }
}

fn verdict(script: &Script, outcome: script::Outcome) -> Verdict {
    let failed = outcome.failed.as_ref().map(told);
    let passed = failed.is_none() && outcome.ledger.is_clean();
    let summary = outcome.ledger.to_string();
    let scenes = outcome.scenes.iter().map(SceneVerdict::of).collect();
    Verdict { passed, story: script.story.clone(), failed, scenes, ledger: outcome.ledger, summary }
}

/// What did not come true, in words.
fn told(failed: &script::Failed) -> String {
    match failed.step.line {
        0 => format!("{}: {}", failed.step.text, failed.because),
        line => format!("line {line}: {}: {}", failed.step.text, failed.because),
    }
}

/// Ends the load and the group, and says so in `playground.json`.
async fn end(scene: Arc<Scene>) -> Result<(), Error> {
    let dir = scene.local.dir().to_owned();
    // Deeds that are under way hold the scene; each ends within the supervisor's bounds.
    let mut every = interval(Duration::from_millis(20));
    let mut shared = scene;
    let Scene { local, load, .. } = loop {
        match Arc::try_unwrap(shared) {
            Ok(scene) => break scene,
            Err(still) => shared = still,
        }
        every.tick().await;
    };
    load.stop().await;
    let ended = local.stop().await;
    let path = dir.join(file::NAME);
    if let Ok(Some(bytes)) = crate::files::read(&path)
        && let Ok(last) = serde_json::from_slice::<Value>(&bytes)
    {
        // Nothing runs: whoever reads the file should not look for it.
        let _ = Notice::new(&dir).show(file::ended(&last));
    }
    Ok(ended?)
}
