//! Everything that can be told is told by something that happens. The brain's part comes from the simulator's corpus, the
//! hands' part from an operator in a world that stands in its way. An entry of a registry that nothing produced fails here,
//! and so does one that belongs to work that is yet to come and was produced.

use crate::ears::Ears as _;
use crate::settings::{Listeners, Settings};
use crate::tell::{Teller, reference};
use crate::testing::{Bed, Refusing, Trouble, object, orders, status, until, writer};
use crate::world::{Event, MissingSecret, Undismissed, Unfurnished};
use bloodraven_api::conditions::{
    BootstrappingReason, ConfigWarningReason, DegradedReason, PausedReason, ReadyReason, RecoveryPendingReason,
    UpdatingReason,
};
use bloodraven_api::events::EventReason;
use bloodraven_api::group::status::UpdatePhase;
use bloodraven_api::{MysqlFailoverGroupStatus, keys};
use bloodraven_blueprint::conditions::{self, Hands};
use bloodraven_brain::group::accounts::AccountRole;
use bloodraven_brain::group::{Group, Notice};
use bloodraven_brain::lease;
use bloodraven_brain::site::Pair;
use bloodraven_brain::time::{Boot, Millis, Now};
use bloodraven_gtid::GtidSet;
use bloodraven_sim::simulate::{Audience, play_before, text};
use bloodraven_telemetry::OperatorMetrics;
use bloodraven_telemetry::log::LogEvent;
use bloodraven_telemetry::metrics::{Scope, catalogue, is_to_come};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};

/// What came out.
#[derive(Debug, Default)]
struct Heard {
    events: BTreeSet<String>,
    /// `type/reason`.
    conditions: BTreeSet<String>,
    /// Names of log events.
    lines: BTreeSet<String>,
    /// Names of metrics that have a series.
    metrics: BTreeSet<String>,
}

impl Heard {
    fn events(&mut self, events: &[Event]) {
        self.events.extend(events.iter().map(|event| event.reason.clone()));
    }

    fn conditions(&mut self, status: &Value) {
        for one in status["conditions"].as_array().into_iter().flatten() {
            let word = |field: &str| one[field].as_str().unwrap_or_default();
            self.conditions.insert(format!("{}/{}", word("type"), word("reason")));
        }
    }

    fn metrics(&mut self, text: &str) {
        let samples = text.lines().filter(|line| !line.starts_with('#'));
        let names = samples.filter_map(|line| line.split(['{', ' ']).next());
        let family = |name: &str| {
            name.trim_end_matches("_bucket").trim_end_matches("_count").trim_end_matches("_sum").to_owned()
        };
        self.metrics.extend(names.map(family));
    }

    fn and(mut self, other: Self) -> Self {
        self.events.extend(other.events);
        self.conditions.extend(other.conditions);
        self.lines.extend(other.lines);
        self.metrics.extend(other.metrics);
        self
    }
}

/// One teller for each operator of a scenario, as there would be.
struct Listener {
    tellers: BTreeMap<usize, (Teller, Option<Boot>)>,
    heard: Rc<RefCell<Heard>>,
}

/// People look at a leader this often.
const GLANCE: Millis = Millis(1000);

impl Listener {
    fn teller(&mut self, operator: usize) -> &mut (Teller, Option<Boot>) {
        self.tellers.entry(operator).or_insert_with(|| (Teller::new(OperatorMetrics::new("0")), None))
    }
}

impl Audience for Listener {
    fn leader(&mut self, operator: usize, now: Now, group: &Group, notices: &[Notice]) {
        let heard = Rc::clone(&self.heard);
        let mut heard = heard.borrow_mut();
        let (teller, glanced) = self.teller(operator);
        heard.events(&teller.notices(&orders(), now, group, notices));
        if notices.is_empty() && glanced.is_some_and(|at| now.boot < at + GLANCE) {
            return;
        }
        *glanced = Some(now.boot);
        heard.events(&teller.glance(&orders(), now, group));
        let mut status = MysqlFailoverGroupStatus::default();
        conditions::show(group, now, 1, &Hands::default(), &mut status);
        heard.conditions(&serde_json::to_value(status).expect("it has a form"));
    }

    fn election(&mut self, operator: usize, now: Now, notice: &lease::Notice) {
        self.teller(operator).0.election(now, notice);
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        for (teller, _) in self.tellers.values() {
            self.heard.borrow_mut().metrics(&teller.metrics());
        }
    }
}

/// Hears the log events of its thread.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<BTreeSet<String>>>);

impl Visit for Lines {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "event" {
            self.0.lock().expect("nobody panicked here").insert(value.to_owned());
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
}

impl tracing::Subscriber for Lines {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        event.record(&mut self.clone());
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// With every line that is written on the way: all of it runs on this thread.
fn with_lines(happens: impl Future<Output = Heard>) -> Heard {
    let lines = Lines::default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut heard = tracing::subscriber::with_default(lines.clone(), || runtime.block_on(happens));
    heard.lines.extend(lines.0.lock().expect("nobody panicked here").clone());
    heard
}

/// Every scenario in which there is no cache.
fn of_the_corpus() -> Heard {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sim/corpus");
    let lines = Lines::default();
    let heard = Rc::new(RefCell::new(Heard::default()));
    tracing::subscriber::with_default(lines.clone(), || {
        for file in folder.read_dir().expect("the corpus is there") {
            let scenario = std::fs::read_to_string(file.expect("a file").path()).expect("it is text");
            let scenario = text::parse(&scenario).expect("a scenario");
            if !scenario.setup.caches {
                play_before(&scenario, Box::new(Listener { tellers: BTreeMap::new(), heard: Rc::clone(&heard) }));
            }
        }
    });
    let mut heard = Rc::into_inner(heard).expect("everyone has gone").into_inner();
    heard.lines = lines.0.lock().expect("nobody panicked here").clone();
    heard
}

/// An operator that nobody elects, so that the clock may jump.
pub(super) async fn begin(bed: &Bed, teller: &Teller) -> (std::net::SocketAddr, crate::tasks::Owned) {
    let aux = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = aux.local_addr().expect("an address");
    let settings = Settings { elect: false, ears: Arc::new(teller.clone()), ..Settings::new("one") };
    let (world, servers) = (Arc::clone(&bed.world), Arc::clone(&bed.servers));
    let listeners = Listeners { aux, metrics: None, probes: None };
    let task = crate::tasks::own(async move {
        crate::run_with(world, servers, settings, listeners, std::future::pending::<()>()).await.expect("it runs");
    });
    (address, task)
}

/// What a bed has told so far, and a wait for more of it.
struct Ear<'a> {
    bed: &'a Bed,
    heard: RefCell<Heard>,
}

impl Ear<'_> {
    fn listen(&self) {
        let mut heard = self.heard.borrow_mut();
        heard.events(&self.bed.world.events());
        heard.conditions(&status(self.bed));
    }

    async fn event(&self, reason: &str) {
        until(reason, async || {
            self.listen();
            self.heard.borrow().events.contains(reason).then_some(())
        })
        .await;
    }

    async fn condition(&self, word: &str) {
        until(word, async || {
            self.listen();
            self.heard.borrow().conditions.contains(word).then_some(())
        })
        .await;
    }
}

fn tuned() -> Value {
    let mut object = object("orders", &["iad", "pdx"]);
    object["spec"]["writeProbe"] = json!({"interval": "1s", "timeout": "1s"});
    object["spec"]["mysqlConf"] = json!({"sync_binlog": "0"});
    object
}

/// Secrets, objects and the outside, one after the other.
async fn of_the_world(bed: &Bed, ear: &Ear<'_>) {
    let world = &bed.world;
    ear.event("SecretNotFound").await;
    let key = MissingSecret::Key { name: "s".to_owned(), key: "k".to_owned(), because: "is empty".to_owned() };
    world.trouble(|trouble| trouble.secrets = Some(key));
    ear.event("SecretMissingKey").await;
    ear.condition("Degraded/InvalidSpec").await;
    let unusable = MissingSecret::Unusable { role: AccountRole::Operator, because: "a test" };
    world.trouble(|trouble| trouble.secrets = Some(unusable));
    ear.event("CredentialReconcileFailed").await;
    world.trouble(|trouble| *trouble = Trouble { objects: trouble.objects.clone(), ..Trouble::default() });
    ear.event("NameConflict").await;
    let image = Unfurnished::NoImage { because: "there is none".to_owned() };
    world.trouble(|trouble| trouble.objects = Some(image));
    ear.event("MissingSidecarImage").await;
    ear.event("InvalidSpec").await;
    world.trouble(|trouble| trouble.objects = None);
    assert_eq!(writer(bed, None).await, "iad");
    ear.condition("ConfigWarning/DurabilityRelaxed").await;
    world.trouble(|trouble| trouble.dns = Some("a test".to_owned()));
    ear.event("DNSUpdateFailed").await;
    world.trouble(|trouble| trouble.taints = Some("node n belongs to two".to_owned()));
    ear.event("TaintConflict").await;
    world.refuse(Refusing::Status);
    world.edit(&orders(), |object| {
        object["metadata"]["generation"] = json!(2);
        object["spec"]["mysqlConf"] = json!({});
    });
    world.allow(Refusing::Status);
    ear.condition("ConfigWarning/TaintConflict").await;
    world.trouble(|trouble| trouble.taints = None);
    ear.condition("ConfigWarning/DNSWriteFailed").await;
    world.trouble(|trouble| trouble.dns = None);
}

/// What Degraded says.
fn degraded(bed: &Bed) -> Option<String> {
    let status = status(bed);
    let degraded = status["conditions"].as_array()?.iter().find(|one| one["type"] == "Degraded")?;
    degraded["message"].as_str().map(str::to_owned)
}

/// What servers and sidecars are up to.
async fn of_the_sites(bed: &Bed, ear: &Ear<'_>) {
    // Commits are tried where there is data.
    for site in ["iad", "pdx"] {
        bed.servers.change(site, |server| server.executed = data("1-5"));
    }
    let version = |text: &str| *bed.sidecars["pdx"].state.version.lock().expect("whole") = text.to_owned();
    version("0.0.1");
    ear.event("SidecarVersionSkew").await;
    ear.condition("ConfigWarning/SidecarVersionSkew").await;
    version(env!("CARGO_PKG_VERSION"));
    ear.condition("ConfigWarning/ScheduledEventsDisabled").await;
    bed.servers.change("iad", |server| server.full = true);
    ear.event("ConnectionsExhausted").await;
    ear.condition("Degraded/ConnectionsExhausted").await;
    bed.servers.change("iad", |server| (server.full, server.stalled) = (false, true));
    ear.event("WriteStalled").await;
    ear.condition("Degraded/WriteStalled").await;
    let commits = bed.servers.change("iad", |server| {
        server.stalled = false;
        server.commits
    });
    until("commits come back", async || bed.servers.change("iad", |server| (server.commits > commits).then_some(())))
        .await;
    until("and it is not said any more", async || (!degraded(bed)?.contains("commits")).then_some(())).await;
    assert_eq!(bed.servers.change("pdx", |server| server.commits), 0, "nobody tries to commit where nobody writes");
    bed.world.edit(&orders(), |object| {
        object["metadata"]["generation"] = json!(3);
        object["spec"]["paused"] = json!(true);
    });
    ear.condition("Paused/Paused").await;
}

/// The group goes, and another one comes that nobody can lead.
async fn of_the_end(bed: &Bed, ear: &Ear<'_>) {
    let because = "node n: forbidden".to_owned();
    bed.world.trouble(|trouble| trouble.dismissal = Some(Undismissed::Tainted { because }));
    bed.world.edit(&orders(), |object| object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"));
    ear.event("GracefulShutdown").await;
    bed.world.ahead.fetch_add(61_000, Ordering::SeqCst);
    ear.event("TaintFailed").await;
    until("it is gone", async || bed.world.object(&orders()).is_null().then_some(())).await;
}

/// Without an account for it nothing is attached.
async fn of_a_missing_account() -> Heard {
    let bed = Bed::new(&["iad", "pdx"]).await;
    bed.world.trouble(|trouble| trouble.no_replication = true);
    let (_, _operator) = begin(&bed, &Teller::new(OperatorMetrics::new("0"))).await;
    let ear = Ear { bed: &bed, heard: RefCell::default() };
    ear.condition("ConfigWarning/CredentialsMissing").await;
    assert_eq!(writer(&bed, None).await, "iad");
    ear.condition("RecoveryPending/CredentialsMissing").await;
    ear.heard.into_inner()
}

fn data(numbers: &str) -> GtidSet {
    format!("00000001-0000-4000-8000-000000000000:{numbers}").parse().expect("a set")
}

/// A group that serves, with data in it.
async fn serving(sites: &[&str]) -> (Bed, Teller, crate::tasks::Owned) {
    let bed = Bed::new(sites).await;
    let teller = Teller::new(OperatorMetrics::new("0"));
    let (_, operator) = begin(&bed, &teller).await;
    assert_eq!(writer(&bed, None).await, "iad");
    let follows = |site: &&str| **site == *"iad" || bed.servers.change(site, |server| server.runs);
    until("all follow", async || sites.iter().all(follows).then_some(())).await;
    for site in sites {
        bed.servers.change(site, |server| server.executed = data("1-12"));
    }
    (bed, teller, operator)
}

/// Replicas in trouble, and a copy that takes its time.
async fn of_the_replicas() -> Heard {
    let (bed, teller, _operator) = serving(&["iad", "pdx", "fra"]).await;
    let ear = Ear { bed: &bed, heard: RefCell::default() };
    let both = async |reason: &str| {
        ear.event(reason).await;
        ear.condition(&format!("Degraded/{reason}")).await;
    };
    bed.servers.change("pdx", |server| server.behind = Millis(400_000));
    both("ReplicationLagging").await;
    bed.servers.change("pdx", |server| (server.behind, server.runs, server.tasks_hang) = (Millis(0), false, true));
    both("ReplicationBroken").await;
    bed.servers.change("pdx", |server| (server.tasks_hang, server.broken) = (false, true));
    both("ReplicationError").await;
    bed.servers.change("fra", |server| {
        server.uuid = "00002000-0000-4000-8000-000000000000".parse().expect("a uuid");
        (server.executed, server.source, server.runs, server.clone_hangs) = (GtidSet::new(), None, false, true);
    });
    ear.condition("Bootstrapping/Cloning").await;
    bed.servers.change("fra", |server| server.copied = Some((30, 100)));
    let series = |kind: &str, bytes: u32| {
        let shown = teller.metrics();
        let mut lines = shown.lines().filter(|line| line.starts_with("bloodraven_clone_bytes{"));
        lines.any(|line| line.contains(&format!("kind=\"{kind}\"")) && line.ends_with(&format!(" {bytes}")))
    };
    until("how far it is", async || (series("done", 30) && series("total", 100)).then_some(())).await;
    until("people see it, too", async || {
        let status = status(&bed);
        let fra = status["sites"].as_array()?.iter().find(|site| site["name"] == "fra")?.clone();
        (fra["clone"]["bytesDone"] == 30 && fra["clone"]["bytesTotal"] == 100).then_some(())
    })
    .await;
    bed.servers.change("fra", |server| server.alive = false);
    ear.condition("Bootstrapping/WaitingForRestart").await;
    ear.heard.borrow_mut().metrics(&teller.metrics());
    ear.heard.into_inner()
}

/// Candidates of which none has everything, and one that cannot apply what it has.
async fn of_the_choice() -> Heard {
    let (mut bed, _, _operator) = serving(&["iad", "pdx", "fra"]).await;
    bed.servers.change("pdx", |server| server.executed = data("1-10:12"));
    bed.servers.change("fra", |server| server.executed = data("1-11"));
    bed.kill("iad");
    let ear = Ear { bed: &bed, heard: RefCell::default() };
    ear.event("IncomparableCandidates").await;
    let first = ear.heard.into_inner();
    let (mut bed, _, _operator) = serving(&["iad", "pdx"]).await;
    bed.servers.change("pdx", |server| {
        (server.executed, server.received, server.broken) = (data("1-10"), data("1-12"), true);
    });
    bed.kill("iad");
    let ear = Ear { bed: &bed, heard: RefCell::default() };
    ear.event("UnappliedTransactions").await;
    ear.heard.into_inner().and(first)
}

/// Two sites write and nobody knows whose right it is: the policy does.
async fn of_the_policy() -> Heard {
    let mut object = object("orders", &["iad", "pdx"]);
    object["spec"]["splitBrainPolicy"] = json!({"preferSite": "iad"});
    let bed = Bed::with(object, &["iad", "pdx"]).await;
    for site in ["iad", "pdx"] {
        bed.servers.change(site, |server| (server.pair, server.executed) = (Pair::OPEN, data("1-5")));
    }
    let teller = Teller::new(OperatorMetrics::new("0"));
    let (_, _operator) = begin(&bed, &teller).await;
    let counted = || teller.metrics().contains("bloodraven_split_brain_auto_resolve_total{").then_some(());
    until("the other one is fenced", async || counted()).await;
    let ear = Ear { bed: &bed, heard: RefCell::default() };
    ear.event("SplitBrainDetected").await;
    ear.heard.borrow_mut().metrics(&teller.metrics());
    ear.heard.into_inner()
}

/// A record that nobody can read.
async fn of_the_record() -> Heard {
    let mut object = object("orders", &["iad", "pdx"]);
    object["metadata"]["annotations"] = json!({keys::AUTHORITY: "{\"epoch\": 1e99, ["});
    let bed = Bed::with(object, &["iad", "pdx"]).await;
    let (_, _operator) = begin(&bed, &Teller::new(OperatorMetrics::new("0"))).await;
    let ear = Ear { bed: &bed, heard: RefCell::default() };
    ear.event("AuthorityCorrupt").await;
    ear.condition("Degraded/AuthorityCorrupt").await;
    ear.heard.into_inner()
}

async fn of_the_hands() -> Heard {
    let bed = Bed::with(tuned(), &["iad", "pdx"]).await;
    let (kind, name, owner) = ("Service".to_owned(), "mysql-orders-iad".to_owned(), "somebody".to_owned());
    bed.world.trouble(|trouble| {
        trouble.secrets = Some(MissingSecret::NotFound { name: "orders-mysql".to_owned() });
        trouble.objects = Some(Unfurnished::Taken { kind, name, owner });
    });
    bed.servers.change("iad", |server| server.events = vec!["shop.nightly".to_owned()]);
    let teller = Teller::new(OperatorMetrics::new("0"));
    let (address, _operator) = begin(&bed, &teller).await;
    let ear = Ear { bed: &bed, heard: RefCell::default() };
    of_the_world(&bed, &ear).await;
    of_the_sites(&bed, &ear).await;
    // Counted by whoever serves them.
    let answer = reqwest::get(format!("http://{address}/status")).await.expect("an answer");
    assert_eq!(answer.status().as_u16(), 200);
    let follower = tokio_tungstenite::connect_async(format!("ws://{address}/ws/status")).await.expect("it follows");
    // Opened by hand beside a sidecar that says nothing: the operator closes it; then nobody is there any more.
    bed.sidecars["pdx"].state.hangs.store(true, Ordering::SeqCst);
    bed.servers.change("pdx", |server| server.pair = Pair::OPEN);
    let counts = |name: &str| teller.metrics().contains(&format!("bloodraven_{name}{{")).then_some(());
    until("it is fenced", async || counts("fence_attempts_total")).await;
    bed.servers.change("pdx", |server| server.alive = false);
    until("a poll has failed", async || counts("poll_failures_total")).await;
    // That a loop that panics is told here is shown in `trouble`.
    teller.panicked("group shop/orders");
    until("a write has failed", async || {
        bed.world.refuse(Refusing::Status);
        teller.metrics().contains("api_write_failures_total{").then_some(())
    })
    .await;
    bed.world.allow(Refusing::Status);
    ear.heard.borrow_mut().metrics(&teller.metrics());
    drop(follower);
    of_the_end(&bed, &ear).await;
    ear.heard.into_inner().and(of_a_missing_account().await)
}

fn reasons() -> BTreeSet<String> {
    let of = |name: &str, reasons: Vec<&str>| {
        reasons.into_iter().map(|reason| format!("{name}/{reason}")).collect::<Vec<_>>()
    };
    let mut all = of("Ready", ReadyReason::ALL.iter().map(|it| it.as_str()).collect());
    all.extend(of("Degraded", DegradedReason::ALL.iter().map(|it| it.as_str()).collect()));
    all.extend(of("RecoveryPending", RecoveryPendingReason::ALL.iter().map(|it| it.as_str()).collect()));
    all.extend(of("Bootstrapping", BootstrappingReason::ALL.iter().map(|it| it.as_str()).collect()));
    let phases = UpdatePhase::ALL.iter().filter(|it| **it != UpdatePhase::Complete).map(|it| it.as_str());
    all.extend(of("Updating", phases.filter(|it| !it.is_empty()).collect()));
    all.extend(of("Updating", UpdatingReason::ALL.iter().map(|it| it.as_str()).collect()));
    all.extend(of("Paused", PausedReason::ALL.iter().map(|it| it.as_str()).collect()));
    all.extend(of("ConfigWarning", ConfigWarningReason::ALL.iter().map(|it| it.as_str()).collect()));
    all.into_iter().collect()
}

/// What a sidecar says is shown beside it.
const OF_SIDECARS: [LogEvent; 3] = [LogEvent::SelfFencing, LogEvent::SelfFenced, LogEvent::Opened];

/// K-09: taints that cannot be removed hold a deletion up for a bounded time, and people are told (`of_the_end`).
/// K-14: a sidecar of another version is a condition (`of_the_sites`).
#[tokio::test(flavor = "multi_thread")]
async fn everything_that_can_be_told_is_told_by_something_that_happens() {
    let corpus = tokio::task::spawn_blocking(of_the_corpus);
    let hands = tokio::task::spawn_blocking(|| tokio::runtime::Handle::current().block_on(of_the_hands()));
    let policy = tokio::task::spawn_blocking(|| with_lines(of_the_policy()));
    let more = tokio::task::spawn_blocking(|| {
        let all = async { of_the_replicas().await.and(of_the_choice().await).and(of_the_record().await) };
        tokio::runtime::Handle::current().block_on(all)
    });
    let heard = corpus
        .await
        .expect("it ends")
        .and(hands.await.expect("it ends"))
        .and(more.await.expect("it ends"))
        .and(policy.await.expect("it ends"));

    let (to_come, now): (Vec<EventReason>, Vec<EventReason>) =
        EventReason::ALL.iter().partition(|reason| reference::is_to_come(**reason));
    let words = |reasons: Vec<EventReason>| reasons.iter().map(|it| it.as_str().to_owned()).collect::<BTreeSet<_>>();
    let mut wrong: Vec<String> = Vec::new();
    let mut check = |what: &str, wanted: BTreeSet<String>, found: &BTreeSet<String>| {
        let missing: Vec<String> =
            wanted.difference(found).map(|it| format!("{what} {it}: nothing produces it")).collect();
        wrong.extend(missing);
    };
    check("Event", words(now), &heard.events);
    check("condition", reasons(), &heard.conditions);
    let lines = LogEvent::ALL.iter().filter(|event| !OF_SIDECARS.contains(event));
    check("log event", lines.map(|event| event.as_str().to_owned()).collect(), &heard.lines);
    let ours = catalogue().filter(|spec| spec.scope != Scope::Site && !is_to_come(spec.name));
    check("metric", ours.map(|spec| spec.name.to_owned()).collect(), &heard.metrics);
    let early: Vec<String> = words(to_come).intersection(&heard.events).cloned().collect();
    wrong.extend(early.into_iter().map(|it| format!("Event {it}: nobody should produce it yet")));
    let early = heard.metrics.iter().filter(|name| is_to_come(name)).map(|it| format!("metric {it}: not yet"));
    wrong.extend(early);
    wrong.extend(
        heard.conditions.iter().filter(|it| it.starts_with("Dragonfly")).map(|it| format!("condition {it}: not yet")),
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
