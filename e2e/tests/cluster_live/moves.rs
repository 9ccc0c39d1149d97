//! Scenes of what is shown of a move: who asked for it, in which order the outside follows, and what heals it.
//!
//! In: the cast. Out: exactly one move. Must not: take a move that was counted twice for one.

use std::time::Duration;

use bloodraven_testbed::cluster::{Denial, Denied, SITES};
use bloodraven_testbed::progress::say;
use bloodraven_testbed::wait::{self, Stopwatch};

use super::marks::Change;
use super::scenes::{Cast, HEALS_WITHIN};
use super::stage::{OPERATORS, Stage};

/// A status that could not be written is, so soon after it can be.
const STATUS_WITHIN: Duration = Duration::from_secs(90);

pub(crate) fn planned(cast: &Cast<'_>) {
    let (before, moves) = (cast.stage.active(), cast.seen.moves());
    cast.stage.ask_for(cast.stage.other_candidate(&before));
    cast.stage.wait_for_another(&before, HEALS_WITHIN);
    assert_eq!(cast.stage.planned_phase().as_deref(), Some("Succeeded"));
    assert_eq!(cast.seen.moves(), moves + 1, "one move");
}

/// Followers first, the primary when somebody else writes, never two at a time.
pub(crate) fn update(cast: &Cast<'_>) {
    let (stage, before) = (cast.stage, cast.stage.active());
    let (revision, moves, instances) = (cast.seen.revision(), cast.seen.moves(), stage.instances());
    let (wanted, begin) = (stage.change_max_connections(), stage.timeline.now());
    for (site, instance) in &instances {
        stage.wait_for_another_instance(site, instance);
    }
    stage.wait_until_whole("rolled", HEALS_WITHIN);
    let now = stage.active();
    assert_eq!((now == before, cast.seen.moves()), (false, moves + 1), "one move");
    assert_eq!(stage.object().expect("the group")["status"]["plannedFailover"]["origin"], "OrderedUpdate");
    let taken_over = Change::Authority { phase: "Stable".to_owned(), site: now.clone() };
    cast.seen.wait_for_order(revision, &[Change::NewPod(now), taken_over, Change::NewPod(before)]);
    let down = cast.seen.most_down_since(begin);
    assert!(down <= 1, "{down} sites were down at once");
    for site in SITES {
        assert_eq!(stage.max_connections(site), Some(wanted), "{site} has the new setting");
    }
}

/// Labels, name and taints follow in the contract's order, and people are told.
pub(crate) fn mysqld_stands_still(cast: &Cast<'_>) {
    let stage = cast.stage;
    stage.offer_nodes_for_taints();
    let before = stage.active();
    let (to, revision, count) = (stage.other_candidate(&before), cast.seen.revision(), Count::begin(cast));
    let order = stage.order_of_a_move(&before, to);
    stage.halt_mysqld(&before);
    stage.wait_for_another(&before, HEALS_WITHIN);
    cast.seen.wait_for_order(revision, &order);
    stage.wait_until_whole("another mysqld writes", HEALS_WITHIN);
    count.is_one(cast, to);
    stage.story_is_told(to);
}

pub(crate) fn labels_denied(cast: &Cast<'_>) {
    denied(cast, "pods", &["patch", "update"], |stage, to| {
        let wanted: Vec<bool> = SITES.iter().map(|site| *site == to).collect();
        let is = |site: &&str| stage.role(site).as_deref() == Some("primary");
        SITES.iter().map(is).collect::<Vec<_>>() == wanted
    });
}

pub(crate) fn dns_denied(cast: &Cast<'_>) {
    denied(cast, "dnsendpoints", &["*"], |stage, to| stage.dns_target() == stage.address_of(to));
}

pub(crate) fn taints_denied(cast: &Cast<'_>) {
    cast.stage.offer_nodes_for_taints();
    denied(cast, "nodes", &["patch", "update"], |stage, to| {
        stage.is_tainted(stage.other_candidate(to)) && !stage.is_tainted(to)
    });
}

/// An emergency that is over but for one thing that cannot be written; and then it can.
fn denied(cast: &Cast<'_>, resource: &str, verbs: &[&str], shown: fn(&Stage, &str) -> bool) {
    let stage = cast.stage;
    let before = stage.active();
    let (to, count) = (stage.other_candidate(&before), Count::begin(cast));
    let denied = deny(stage, resource, verbs);
    stage.halt_mysqld(&before);
    stage.wait_for_another(&before, HEALS_WITHIN);
    assert!(!shown(stage, to), "{resource} were written although they cannot be");
    denied.allow().unwrap();
    stage.wait_until(&format!("{resource} follow when they can be written"), || shown(stage, to).then_some(()));
    stage.wait_until_whole("everything can be written", HEALS_WITHIN);
    count.is_one(cast, to);
}

/// C-80: the record has a second copy, on which a failover goes on. Status follows when it can be written.
pub(crate) fn status_denied(cast: &Cast<'_>) {
    let stage = cast.stage;
    let before = stage.active();
    let (to, count) = (stage.other_candidate(&before), Count::begin(cast));
    let denied = deny(stage, "mysqlfailovergroups/status", &["patch", "update"]);
    stage.halt_mysqld(&before);
    stage.wait_until(&format!("{to} writes by the second copy of the record"), || {
        let record = stage.record()?;
        (record["phase"] == "Stable" && record["site"] == *to).then_some(())
    });
    cast.load.wait_for_writes("while status cannot be written");
    let active = stage.object().expect("the group")["status"]["activeSite"].clone();
    assert_eq!(active, *before, "status was written although it cannot be");
    denied.allow().unwrap();
    let watch = Stopwatch::start();
    let told = wait::until_every(STATUS_WITHIN, Duration::from_millis(200), || {
        (stage.object()?["status"]["activeSite"] == *to).then_some(())
    });
    assert!(told.is_some(), "no status {STATUS_WITHIN:?} after it can be written");
    say(&format!("status followed {:.1} s after it could be written", watch.elapsed().as_secs_f64()));
    stage.wait_until_whole("status can be written", HEALS_WITHIN);
    count.is_one(cast, to);
}

/// The operator is refused these requests.
fn deny<'a>(stage: &'a Stage, resource: &str, verbs: &[&str]) -> Denied<'a> {
    let operator = format!("system:serviceaccount:{OPERATORS}:bloodraven");
    stage.machines().deny(Denial::new(&operator, verbs, resource).unwrap()).unwrap()
}

/// What was counted before a failover.
struct Count {
    moves: usize,
    events: u64,
    leader: String,
    counted: Option<u64>,
}

impl Count {
    fn begin(cast: &Cast<'_>) -> Self {
        let leader = cast.stage.leader().expect("a leader");
        let counted = cast.stage.failovers_counted_by(&leader);
        Self { moves: cast.seen.moves(), events: cast.stage.events("FailoverExecuted"), leader, counted }
    }

    /// Exactly one, by the record, by the Events, and by what the leader counts, if it is the same still.
    fn is_one(&self, cast: &Cast<'_>, to: &str) {
        let stage = cast.stage;
        let status = stage.object().expect("the group")["status"].clone();
        assert_eq!(status["lastFailoverTarget"], to, "{status}");
        assert_eq!((stage.active().as_str(), cast.seen.moves()), (to, self.moves + 1), "no second failover");
        assert_eq!(stage.events("FailoverExecuted"), self.events + 1, "one Event");
        let same = stage.leader().as_ref() == Some(&self.leader);
        let now = stage.failovers_counted_by(&self.leader).filter(|_| same);
        match (self.counted, now) {
            (Some(before), Some(now)) => assert_eq!(now, before + 1, "bloodraven_failovers_total"),
            _ => say("another operator leads now: its count begins with it"),
        }
    }
}
