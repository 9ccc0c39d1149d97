//! Conditions: a row per answer, and what stays as it is.
//!
//! In: a [`Sight`], changed in one thing. Out: status, reason and words of the message.

use std::path::Path;

use bloodraven_api::conditions::{ConfigWarningReason, DegradedReason};
use bloodraven_api::events::EventReason;
use bloodraven_blueprint::conditions::sight::Patience;
use bloodraven_blueprint::conditions::{Answer, Hands, Sight, answers, degraded, put, reference};
use bloodraven_brain::group::cache::CachePhase;
use bloodraven_brain::group::kept::{CloneKept, ClonePhase, CloneSource, Recovery, Update, UpdatePhase};
use bloodraven_brain::group::report::{Degraded, NotReady, Report};
use bloodraven_brain::name::Site;
use bloodraven_brain::time::{Boot, Millis, Now, Wall};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

fn site(name: &str) -> Site {
    Site::new(name)
}

fn healthy() -> Sight {
    Sight {
        name: "orders".to_owned(),
        epoch: 7,
        report: Report {
            ready: Ok(()),
            degraded: Vec::new(),
            recovering: Vec::new(),
            cloning: None,
            updating: None,
            paused: None,
            active: Some(site("iad")),
        },
        patience: None,
        not_following: Vec::new(),
        divergent: Vec::new(),
        clones: Vec::new(),
        update: None,
        paused_until: None,
        cache: None,
        replication_account: true,
        dns: None,
        taints: None,
        hands: Hands::default(),
    }
}

fn answer(sight: &Sight, condition: &str) -> Option<Answer> {
    answers::all(sight).into_iter().find(|answer| answer.condition.as_str() == condition)
}

/// A row: what is changed, which condition, its status and reason, and words of its message.
type Row = (fn(&mut Sight), &'static str, bool, &'static str, &'static [&'static str]);

fn check(rows: &[Row]) {
    for (change, condition, holds, reason, words) in rows {
        let mut sight = healthy();
        change(&mut sight);
        let answer = answer(&sight, condition).expect("an answer");
        assert_eq!((answer.holds, answer.reason), (*holds, *reason), "{condition}: {}", answer.message);
        for word in *words {
            assert!(answer.message.contains(word), "{condition}: {word:?} in {:?}", answer.message);
        }
    }
}

fn clone(phase: ClonePhase, source: CloneSource) -> (Site, CloneKept) {
    (site("pdx"), CloneKept { phase, source, attempts: 3, bytes: Some((5, 9)), message: "from iad".to_owned() })
}

/// K-05: Ready is true only of a primary that writes and sites that follow it.
#[test]
fn ready() {
    check(&[
        (|_| {}, "Ready", true, "TopologyPolled", &["iad writes in epoch 7"]),
        (
            |s| s.report.ready = Err(NotReady::Initializing),
            "Ready",
            false,
            "Initializing",
            &["no site has been opened"],
        ),
        (
            |s| s.report.ready = Err(NotReady::NoWritablePrimary),
            "Ready",
            false,
            "NoWritablePrimary",
            &["epoch 7", "iad"],
        ),
        (
            |s| {
                s.report.ready = Err(NotReady::ReplicationUnhealthy);
                s.not_following = vec![site("pdx"), site("fra")];
            },
            "Ready",
            false,
            "ReplicationUnhealthy",
            &["pdx, fra"],
        ),
    ]);
}

/// K-05: broken replication is Degraded.
#[test]
fn degraded_names_the_gravest_and_says_all() {
    check(&[
        (|_| {}, "Degraded", false, "Healthy", &["nothing is wrong"]),
        (
            |s| s.report.degraded = vec![(Degraded::Alert, "pdx unreachable".to_owned())],
            "Degraded",
            true,
            "Alert",
            &["pdx unreachable; writes go on"],
        ),
        (
            |s| {
                s.hands.invalid_spec = Some("sites: too few".to_owned());
                s.hands.write_stalled = Some("iad: since 10 s".to_owned());
                s.report.degraded = vec![
                    (Degraded::ReplicationLagging, "pdx is 400 s behind".to_owned()),
                    (Degraded::ReplicationLagging, "fra is 500 s behind".to_owned()),
                ];
            },
            "Degraded",
            true,
            "WriteStalled",
            &["WriteStalled: iad", "ReplicationLagging: pdx", "ReplicationLagging: fra", "InvalidSpec: sites: too few"],
        ),
        (
            |s| s.report.degraded = vec![(Degraded::PromotionHeld, "no proof; silent: iad; to accept: X".to_owned())],
            "Degraded",
            true,
            "PromotionHeld",
            &["silent: iad", "to accept: X"],
        ),
        (
            |s| {
                s.patience = Some(Patience::Comes(Millis(12_100)));
                s.report.degraded = vec![(Degraded::PromotionHeld, "no proof; silent: iad".to_owned())];
            },
            "Degraded",
            true,
            "NoPrimary",
            &["silent: iad", "comes by itself within 13 s"],
        ),
        (
            |s| {
                s.patience = Some(Patience::Young);
                s.report.degraded = vec![(Degraded::PromotionHeld, "no proof; silent: iad; to accept X".to_owned())];
            },
            "Degraded",
            true,
            "NoPrimary",
            &["silent: iad; acknowledgements are on their way"],
        ),
    ]);
}

#[test]
fn the_brain_and_the_api_rank_alike_and_every_reason_has_its_event() {
    let all = [
        Degraded::TotalLoss,
        Degraded::SplitBrain,
        Degraded::AuthorityCorrupt,
        Degraded::AuthorityBehind,
        Degraded::PromotionHeld,
        Degraded::CooldownActive,
        Degraded::HolderBehind,
        Degraded::NoPrimary,
        Degraded::ReplicationError,
        Degraded::ReplicationBroken,
        Degraded::ReplicationLagging,
        Degraded::Alert,
    ];
    let mut sight = healthy();
    sight.report.degraded = all.iter().rev().map(|reason| (*reason, "x".to_owned())).collect();
    let told = degraded(&sight);
    let words: Vec<String> = told.iter().map(|(reason, _)| reason.to_string()).collect();
    assert_eq!(words, all.map(|reason| format!("{reason:?}")));
    assert!(told.iter().all(|(reason, _)| EventReason::of_degraded(*reason).is_some()));
    assert!(DegradedReason::TotalLoss < DegradedReason::InvalidSpec);
}

#[test]
fn recovery_blocked_beats_in_progress() {
    check(&[
        (|_| {}, "RecoveryPending", false, "NoRecoveryPending", &[]),
        (
            |s| s.report.recovering = vec![(site("pdx"), Recovery::InProgress)],
            "RecoveryPending",
            true,
            "RecoveryInProgress",
            &["pdx is being attached to iad"],
        ),
        (
            |s| {
                s.report.recovering = vec![(site("fra"), Recovery::InProgress), (site("pdx"), Recovery::Blocked)];
                let set = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5".parse().expect("a set");
                s.divergent = vec![(site("pdx"), set)];
            },
            "RecoveryPending",
            true,
            "DivergentTransactions",
            &[
                "pdx has 5 transactions that iad lacks",
                "kubectl annotate mfg orders bloodraven.shipstream.io/reclone-site=pdx:3e11",
            ],
        ),
        (
            |s| {
                s.replication_account = false;
                s.not_following = vec![site("pdx")];
            },
            "RecoveryPending",
            true,
            "CredentialsMissing",
            &["pdx cannot be attached", "MYSQL_REPLICATION_USER"],
        ),
    ]);
}

#[test]
fn bootstrapping_says_which_kind() {
    check(&[
        (|_| {}, "Bootstrapping", false, "NotBootstrapping", &[]),
        (
            |s| s.clones = vec![clone(ClonePhase::Cloning, CloneSource::FreshDeploy)],
            "Bootstrapping",
            true,
            "Cloning",
            &["Bootstrap of pdx: data are copied, 5 of 9 bytes (from iad)"],
        ),
        (
            |s| s.clones = vec![clone(ClonePhase::WaitingForRestart, CloneSource::AutoClone)],
            "Bootstrapping",
            true,
            "WaitingForRestart",
            &["Auto-clone of pdx"],
        ),
        (
            |s| s.clones = vec![clone(ClonePhase::SetupReplication, CloneSource::Reclone)],
            "Bootstrapping",
            true,
            "SetupReplication",
            &["Reclone of pdx"],
        ),
        (
            |s| s.clones = vec![clone(ClonePhase::Failed, CloneSource::Reclone)],
            "Bootstrapping",
            true,
            "Failed",
            &["Reclone of pdx: given up after 3 attempts", "reclone-site", "from iad"],
        ),
        (
            |s| s.clones = vec![clone(ClonePhase::Done, CloneSource::AutoClone)],
            "Bootstrapping",
            false,
            "Done",
            &["Auto-clone of pdx: done"],
        ),
    ]);
}

/// K-19: a pause is visible.
#[test]
fn updates_pauses_and_warnings() {
    check(&[
        (|_| {}, "Updating", false, "NotUpdating", &[]),
        (
            |s| {
                s.update = Some(Update {
                    phase: UpdatePhase::WaitReplica,
                    site: Some(site("pdx")),
                    since: Wall(0),
                    stopped: Some("it does not come back".to_owned()),
                });
            },
            "Updating",
            true,
            "WaitReplica",
            &["at pdx", "stands still: it does not come back"],
        ),
        (|_| {}, "Paused", false, "NotPaused", &[]),
        (|s| s.report.paused = Some(String::new()), "Paused", true, "Paused", &["until spec.paused is false"]),
        (
            |s| {
                s.report.paused = Some("disk swap".to_owned());
                s.paused_until = Some(Wall(0));
            },
            "Paused",
            true,
            "Paused",
            &["until 1970-01-01T00:00:00Z: disk swap"],
        ),
        (|_| {}, "ConfigWarning", false, "NoWarnings", &[]),
        (|s| s.replication_account = false, "ConfigWarning", true, "CredentialsMissing", &["MYSQL_REPLICATION_USER"]),
        (|s| s.dns = Some("denied".to_owned()), "ConfigWarning", true, "DNSWriteFailed", &["denied"]),
        (|s| s.taints = Some("two sites".to_owned()), "ConfigWarning", true, "TaintConflict", &["two sites"]),
        (
            |s| {
                s.dns = Some("denied".to_owned());
                s.hands.warnings = vec![(ConfigWarningReason::DurabilityRelaxed, "sync_binlog=0".to_owned())];
            },
            "ConfigWarning",
            true,
            "DurabilityRelaxed",
            &["sync_binlog=0 | ", "denied"],
        ),
    ]);
}

#[test]
fn the_cache_is_asked_for_only_where_there_is_one() {
    assert_eq!(answer(&healthy(), "DragonflyReady"), None);
    for (phase, reason, holds) in [
        (CachePhase::Reconciling, "Reconciling", false),
        (CachePhase::ConfiguringReplication, "ConfiguringReplication", false),
        (CachePhase::Ready, "Ready", true),
        (CachePhase::Degraded, "Degraded", false),
        (CachePhase::Promoting, "Promoting", false),
    ] {
        let sight = Sight { cache: Some((phase, "the master is at iad".to_owned())), ..healthy() };
        let answer = answer(&sight, "DragonflyReady").expect("an answer");
        assert_eq!((answer.reason, answer.holds, answer.message.as_str()), (reason, holds, "the master is at iad"));
    }
}

fn at(seconds: u64) -> Now {
    Now { boot: Boot(seconds * 1000), wall: Wall(i64::try_from(seconds).expect("small") * 1000 + 700) }
}

fn since(conditions: &[Condition], name: &str) -> String {
    let found = conditions.iter().find(|condition| condition.type_ == name).expect("a condition");
    found.last_transition_time.0.to_string()
}

#[test]
fn a_transition_is_a_change_of_status_and_nothing_else() {
    let mut conditions = Vec::new();
    put(answers::all(&healthy()), at(10), 1, &mut conditions);
    assert_eq!(since(&conditions, "Degraded"), "1970-01-01T00:00:10Z");
    let mut sight = healthy();
    sight.report.degraded = vec![(Degraded::Alert, "pdx".to_owned())];
    put(answers::all(&sight), at(20), 2, &mut conditions);
    assert_eq!(since(&conditions, "Degraded"), "1970-01-01T00:00:20Z");
    assert_eq!(since(&conditions, "Ready"), "1970-01-01T00:00:10Z");
    sight.report.degraded = vec![(Degraded::TotalLoss, "all".to_owned())];
    put(answers::all(&sight), at(30), 3, &mut conditions);
    assert_eq!(since(&conditions, "Degraded"), "1970-01-01T00:00:20Z", "another reason is no transition");
    assert!(conditions.iter().all(|condition| condition.observed_generation == Some(3)));
    let degraded = conditions.iter().find(|condition| condition.type_ == "Degraded").expect("a condition");
    assert_eq!(degraded.reason, "TotalLoss");
}

#[test]
fn others_conditions_stay_and_the_caches_goes_with_the_cache() {
    let of = |name: &str| Condition {
        type_: name.to_owned(),
        status: "True".to_owned(),
        reason: "X".to_owned(),
        message: String::new(),
        last_transition_time: k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(
            k8s_openapi::jiff::Timestamp::UNIX_EPOCH,
        ),
        observed_generation: None,
    };
    let mut conditions = vec![of("BackupVerified"), of("DragonflyReady"), of("SomebodyElses")];
    put(answers::all(&healthy()), at(10), 1, &mut conditions);
    let names: Vec<&str> = conditions.iter().map(|condition| condition.type_.as_str()).collect();
    let ours = ["Ready", "Degraded", "RecoveryPending", "Bootstrapping", "Updating", "Paused", "ConfigWarning"];
    assert_eq!(names, [&ours[..], &["BackupVerified", "SomebodyElses"]].concat());
}

#[test]
fn a_message_fits_into_the_api() {
    let mut sight = healthy();
    sight.report.degraded = vec![(Degraded::Alert, "ä".repeat(50_000))];
    let mut conditions = Vec::new();
    put(answers::all(&sight), at(1), 1, &mut conditions);
    let degraded = conditions.iter().find(|condition| condition.type_ == "Degraded").expect("a condition");
    assert!(degraded.message.len() <= 32_768 && degraded.message.ends_with(" (cut)"));
}

#[test]
fn the_committed_page_is_in_step() {
    #[expect(clippy::disallowed_methods, reason = "a test is told by the environment to write instead of comparing")]
    let update = std::env::var_os("UPDATE_DOCS").is_some();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/conditions.md");
    let page = reference::conditions_page();
    if update {
        std::fs::write(&path, &page).expect("a page");
    }
    let committed = std::fs::read_to_string(&path).expect("a page");
    assert!(
        committed == page,
        "docs/reference/conditions.md is out of step; run UPDATE_DOCS=1 cargo test and commit it"
    );
}
