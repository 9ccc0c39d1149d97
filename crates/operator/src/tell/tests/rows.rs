//! A row per notice: which Events, which log events, what is counted. A notice without a row fails the last test.

use crate::tell::around::{Around, Took};
use crate::tell::notice::told;
use crate::tell::told::{Change, Told};
use bloodraven_brain::candidate::Difference;
use bloodraven_brain::cooldown;
use bloodraven_brain::group::Notice;
use bloodraven_brain::group::accounts::{AGAINST_THE_RULES, AccountRole, NO_SUCH_ACCOUNT};
use bloodraven_brain::group::kept::{
    CacheUpgradePhase, ClonePhase, CloneSource, Origin, Planned, PlannedPhase, PlannedReason, UpdatePhase,
};
use bloodraven_brain::group::notice::CacheNotice;
use bloodraven_brain::name::{Instance, Member, Site};
use bloodraven_brain::record::{Cause, Phase, Proof, ProofKind};
use bloodraven_brain::site::{State, Transition};
use bloodraven_brain::time::{Millis, Wall};
use bloodraven_brain::topology::{Alert, Lost, NoPrimary};
use bloodraven_gtid::GtidSet;
use bloodraven_telemetry::log::LogEvent;
use bloodraven_telemetry::words::{self, AttemptResult, CacheResult, FailoverStep, PlannedResult};
use std::collections::{BTreeMap, BTreeSet};

fn site(name: &str) -> Site {
    Site::new(name)
}

fn member(name: &str) -> Member {
    Member::new(&site(name), &Instance::new("u1", "s1"))
}

fn set() -> GtidSet {
    "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5".parse().expect("a set")
}

fn proof() -> Proof {
    Proof { kind: ProofKind::LeaseExpired, about: member("iad"), at: Wall(0) }
}

fn around() -> Around {
    Around {
        group: "orders".to_owned(),
        epoch: 7,
        declared: vec![site("iad"), site("pdx")],
        holder: Some(site("iad")),
        old_primary: Some(site("iad")),
        ..Around::default()
    }
}

fn timed() -> Around {
    let took = Took {
        detect: Some(Millis(6000)),
        proof: Some(Millis(17_000)),
        drain: Some(Millis(0)),
        open: Some(Millis(300)),
        total: Some(Millis(23_300)),
    };
    Around { took, ..around() }
}

fn planned(phase: PlannedPhase, reason: Option<PlannedReason>, message: &str) -> Planned {
    Planned {
        phase,
        request_id: "r".to_owned(),
        origin: Origin::Annotation,
        target: site("pdx"),
        source: site("iad"),
        source_gtid: None,
        target_gtid: None,
        started: Wall(1000),
        completed: phase.is_terminal().then_some(Wall(3500)),
        transactions_lost: None,
        reason,
        message: message.to_owned(),
        max_lag_wait: Millis(0),
        drain_timeout: Millis(0),
        drain_started: None,
        remaining_connections: None,
        lag_wait_started: None,
        retry_after: None,
        cache: None,
    }
}

fn plan(phase: PlannedPhase, reason: Option<PlannedReason>) -> Notice {
    Notice::PlannedChanged { target: site("pdx"), phase, reason, message: "so it is".to_owned() }
}

fn in_plan(before: Option<(PlannedPhase, Millis)>, phase: PlannedPhase) -> Around {
    Around { planned: Some(planned(phase, None, "so it is")), planned_before: before, ..around() }
}

fn authority(phase: Phase, seat: Option<&str>) -> Notice {
    let proof = seat.map(|_| proof());
    Notice::AuthorityChanged { epoch: 7, phase, cause: Cause::Emergency, seat: seat.map(member), proof }
}

fn executed(cause: Cause) -> Notice {
    Notice::FailoverExecuted { site: site("pdx"), epoch: 9, cause, proof: Some(proof()), gtid: set() }
}

fn clone(phase: ClonePhase) -> Notice {
    Notice::CloneChanged { site: site("pdx"), phase, source: CloneSource::Reclone, message: "from iad".to_owned() }
}

fn update(phase: UpdatePhase, stopped: Option<&str>) -> Notice {
    Notice::UpdateChanged { phase, site: Some(site("pdx")), stopped: stopped.map(str::to_owned) }
}

fn upgrade(phase: CacheUpgradePhase) -> Notice {
    Notice::Cache(CacheNotice::UpgradeChanged { phase, message: String::new() })
}

/// What is expected: Events, log events (`prose` for a line without one), changes.
type Row = (Notice, Around, &'static [&'static str], &'static [&'static str], Vec<Change>);

fn step(step: FailoverStep, millis: u64) -> Change {
    Change::Step(site("pdx"), step, Millis(millis))
}

fn rows_of_moves() -> Vec<Row> {
    let transition = Transition { site: site("iad"), from: State::Writable, to: State::Unreachable };
    let failed = Around { failed_attempt: Some(site("pdx")), ..around() };
    let active = cooldown::Active {
        last_failover: Wall(0),
        cooldown: Millis(300_000),
        retry_after: Wall(300_000),
        remaining: Millis(1000),
    };
    let difference = Difference { other: site("fra"), only_chosen: set(), only_other: set() };
    let (from, to) = (words::SiteState::Writable, words::SiteState::Unreachable);
    vec![
        (
            Notice::StateChanged(transition),
            around(),
            &[],
            &["StateTransition"],
            vec![Change::Transition(site("iad"), from, to)],
        ),
        (authority(Phase::Revoking, None), around(), &[], &["AuthorityChanged"], vec![]),
        (authority(Phase::Granting, Some("pdx")), around(), &[], &["AuthorityChanged"], vec![]),
        (
            authority(Phase::Revoking, None),
            failed,
            &[],
            &["AuthorityChanged", "FailoverFailed"],
            vec![Change::Attempt(Some(site("pdx")), AttemptResult::Failed)],
        ),
        (
            Notice::MoveStarted { cause: Cause::Emergency, because: "x".to_owned() },
            around(),
            &[],
            &["FailoverStarted"],
            vec![],
        ),
        (
            Notice::ReleaseProven(proof()),
            timed(),
            &[],
            &["FailoverProof"],
            vec![Change::Proof(words::ProofKind::LeaseExpired)],
        ),
        (
            Notice::PromotionHeld { silent: vec![member("iad")] },
            around(),
            &[],
            &["PromotionHeld"],
            vec![Change::Attempt(None, AttemptResult::Held)],
        ),
        (Notice::CooldownBlocks(active), around(), &[], &["CooldownBlocked"], vec![]),
        (
            Notice::CandidateChosen { member: member("pdx"), rule: "x".to_owned() },
            around(),
            &[],
            &["RelayDrained"],
            vec![],
        ),
        (
            Notice::IncomparableCandidates { chosen: site("pdx"), differences: vec![difference] },
            around(),
            &["IncomparableCandidates"],
            &["prose"],
            vec![],
        ),
        (
            Notice::UnappliedTransactions { site: site("pdx"), set: set() },
            around(),
            &["UnappliedTransactions"],
            &["prose"],
            vec![],
        ),
    ]
}

fn rows_of_ends() -> Vec<Row> {
    let restored = |cause| Notice::AuthorityRestored { site: site("iad"), epoch: 9, cause };
    let success = vec![
        Change::Failover(site("pdx")),
        Change::Attempt(Some(site("pdx")), AttemptResult::Success),
        step(FailoverStep::Detect, 6000),
        step(FailoverStep::Proof, 17_000),
        step(FailoverStep::Drain, 0),
        step(FailoverStep::Open, 300),
        step(FailoverStep::Total, 23_300),
    ];
    vec![
        (
            executed(Cause::Emergency),
            timed(),
            &["FailoverExecuted"],
            &["PromotionConfirmed", "FailoverComplete"],
            success,
        ),
        (executed(Cause::Planned), timed(), &[], &["PromotionConfirmed", "FailoverComplete"], vec![]),
        (executed(Cause::Manual), timed(), &[], &["PromotionConfirmed", "FailoverComplete"], vec![]),
        (restored(Cause::Instance), around(), &["AuthorityRestored"], &["PromotionConfirmed"], vec![]),
        (restored(Cause::Regrant), around(), &["AuthorityRestored"], &["PromotionConfirmed"], vec![]),
        (restored(Cause::Bootstrap), around(), &[], &["PromotionConfirmed"], vec![]),
        (
            Notice::ManualPromotionRequested { site: site("pdx") },
            around(),
            &["ManualPromotionRequested"],
            &["prose"],
            vec![],
        ),
        (
            Notice::ManualPromotionCompleted { site: site("pdx") },
            around(),
            &["ManualPromotionCompleted"],
            &["prose"],
            vec![],
        ),
        (
            Notice::VotersChanged { epoch: 8, voters: vec![member("pdx")] },
            around(),
            &["VotersChanged"],
            &["prose"],
            vec![],
        ),
        (
            Notice::LeaseChanged { epoch: 8, lease_timeout: Millis(20_000), min_peers: 1 },
            around(),
            &["LeaseChanged"],
            &["prose"],
            vec![],
        ),
    ]
}

fn rows_of_sites() -> Vec<Row> {
    let no_primary = NoPrimary::NoCandidate { lost: Lost::Unreachable(site("iad")), dr_only: vec![] };
    let policy = Around { policy_winner: Some(site("iad")), ..around() };
    let fencing = Notice::FencingWriter { site: site("pdx"), because: "NotTheHolder".to_owned() };
    let because = || "write it so".to_owned();
    vec![
        (Notice::AlertRaised(Alert::TotalLoss), around(), &[], &["Alert"], vec![]),
        (Notice::AlertRaised(Alert::SplitBrain(vec![site("iad"), site("pdx")])), around(), &[], &["Alert"], vec![]),
        (Notice::AlertRaised(Alert::NoPrimary(no_primary)), around(), &[], &["Alert"], vec![]),
        (
            Notice::AlertRaised(Alert::Unreachable { primary: site("iad"), unreachable: vec![site("pdx")] }),
            around(),
            &[],
            &["Alert"],
            vec![],
        ),
        (Notice::AlertCleared, around(), &[], &["prose"], vec![]),
        (fencing.clone(), around(), &[], &["prose"], vec![]),
        (fencing, policy, &[], &["SplitBrainAutoResolve"], vec![Change::AutoResolve(site("iad"))]),
        (
            Notice::DivergenceFound { site: site("pdx"), set: set() },
            around(),
            &["DataLossDetected"],
            &["DivergenceDetected"],
            vec![],
        ),
        (Notice::RecoveryStarted { site: site("pdx") }, around(), &[], &["RecoveryStarted"], vec![]),
        (
            Notice::RecoveryComplete { site: site("pdx") },
            around(),
            &["RecoveryComplete"],
            &["RecoveryComplete"],
            vec![],
        ),
        (clone(ClonePhase::Cloning), around(), &[], &["CloneStarted"], vec![]),
        (clone(ClonePhase::WaitingForRestart), around(), &[], &["prose"], vec![]),
        (clone(ClonePhase::SetupReplication), around(), &[], &["prose"], vec![]),
        (clone(ClonePhase::Done), around(), &[], &["CloneDone"], vec![]),
        (clone(ClonePhase::Failed), around(), &[], &["CloneFailed"], vec![]),
        (
            Notice::RecloneRequested { site: site("pdx") },
            around(),
            &["RecloneRequested"],
            &["prose"],
            vec![Change::Reclone(site("pdx"))],
        ),
        (Notice::RecloneRejected { because: because() }, around(), &["RecloneRejected"], &["prose"], vec![]),
        (update(UpdatePhase::UpdateReplica, None), around(), &["UpdateStarted"], &["prose"], vec![]),
        (update(UpdatePhase::WaitReplica, None), around(), &[], &["prose"], vec![]),
        (update(UpdatePhase::Failover, Some("no target")), around(), &["UpdateStopped"], &["prose"], vec![]),
        (update(UpdatePhase::Complete, None), around(), &["UpdateCompleted"], &["prose"], vec![]),
        (
            Notice::DnsWriteFailed { because: because() },
            around(),
            &["DNSUpdateFailed"],
            &["prose"],
            vec![Change::DnsFailure],
        ),
        (Notice::AuthorityCorrupt { because: because() }, around(), &[], &["prose"], vec![]),
    ]
}

fn rows_of_plans() -> Vec<Row> {
    use PlannedPhase as P;
    let lag = PlannedReason::LagTimeout;
    let waited = Some((P::WaitingForLag, Millis(1500)));
    let refused = Around { planned: Some(planned(P::Failed, Some(PlannedReason::Paused), "so it is")), ..around() };
    let elsewhere = Planned { target: site("nowhere"), ..planned(P::Failed, Some(PlannedReason::Paused), "so it is") };
    let unbounded = Around { planned: Some(elsewhere), ..around() };
    let rejected = || Notice::PlannedRejected { reason: PlannedReason::Paused, message: "so it is".to_owned() };
    let end = |result| Change::Planned(Some(site("pdx")), result);
    let lag_wait = Change::LagWait(site("pdx"), Millis(1500));
    let log = &["PlannedPhase"];
    vec![
        (plan(P::Pending, None), in_plan(None, P::Pending), &["PlannedFailoverStarted"], log, vec![]),
        (plan(P::Validating, None), in_plan(None, P::Validating), &["PlannedFailoverStarted"], log, vec![]),
        (plan(P::Validating, None), in_plan(Some((P::Pending, Millis(0))), P::Validating), &[], log, vec![]),
        (
            plan(P::Deferred, Some(PlannedReason::CooldownActive)),
            in_plan(None, P::Deferred),
            &["PlannedFailoverDeferred"],
            log,
            vec![],
        ),
        (plan(P::Draining, None), in_plan(None, P::Draining), &["PlannedFailoverDraining"], log, vec![]),
        (plan(P::WaitingForLag, None), in_plan(None, P::WaitingForLag), &[], log, vec![]),
        (
            plan(P::Promoting, None),
            in_plan(waited, P::Promoting),
            &["PlannedFailoverLagOK"],
            log,
            vec![lag_wait.clone()],
        ),
        (
            plan(P::WaitingForCache, None),
            in_plan(waited, P::WaitingForCache),
            &["PlannedFailoverLagOK"],
            log,
            vec![lag_wait],
        ),
        (plan(P::WaitingForLag, Some(lag)), in_plan(waited, P::WaitingForLag), &[], log, vec![]),
        (plan(P::Resuming, None), in_plan(None, P::Resuming), &[], log, vec![]),
        (
            plan(P::Succeeded, None),
            in_plan(None, P::Succeeded),
            &["PlannedFailoverCompleted"],
            log,
            vec![end(PlannedResult::Success), Change::PlannedTook(site("pdx"), Millis(2500))],
        ),
        (
            plan(P::Failed, Some(lag)),
            in_plan(waited, P::Failed),
            &["PlannedFailoverFailed"],
            log,
            vec![end(PlannedResult::FailedTimeout)],
        ),
        (
            plan(P::Failed, Some(PlannedReason::SourceCrashed)),
            in_plan(None, P::Failed),
            &["PlannedFailoverFailed"],
            log,
            vec![end(PlannedResult::FailedOther)],
        ),
        (Notice::PlannedSkipped { target: site("pdx") }, around(), &["PlannedFailoverSkipped"], &["prose"], vec![]),
        (rejected(), refused, &["PlannedFailoverRejected"], &["prose"], vec![end(PlannedResult::Rejected)]),
        (
            rejected(),
            unbounded,
            &["PlannedFailoverRejected"],
            &["prose"],
            vec![Change::Planned(None, PlannedResult::Rejected)],
        ),
    ]
}

fn rows_of_passwords() -> Vec<Row> {
    const FAILED: &[&str] = &["CredentialReconcileFailed"];
    let at = || site("iad");
    let accounts = || vec![AccountRole::Operator, AccountRole::App];
    let row = |notice, events| -> Row { (notice, around(), events, &["prose"], vec![]) };
    let refused = |code| BTreeMap::from([(AccountRole::App, code), (AccountRole::Monitor, 3118)]);
    let because = "iad:33062: set a password: no end in time".to_owned();
    let mut rows = vec![
        row(Notice::PasswordsSet { site: at(), accounts: accounts() }, &[]),
        row(Notice::PasswordsDiscarded { site: at(), accounts: accounts() }, &[]),
        row(Notice::PasswordsNotSet { site: at(), because }, FAILED),
    ];
    let codes = [1045, NO_SUCH_ACCOUNT, AGAINST_THE_RULES];
    rows.extend(codes.map(|code| row(Notice::PasswordsRefused { site: at(), accounts: refused(code) }, FAILED)));
    rows
}

fn rows_of_caches() -> Vec<Row> {
    use CacheNotice as C;
    use CacheUpgradePhase as U;
    let because = || "write it so".to_owned();
    let at = || site("pdx");
    let end = |result| vec![Change::CachePromotion(at(), result)];
    let row = |notice, events: &'static [&'static str], changes| -> Row {
        (Notice::Cache(notice), around(), events, &["prose"], changes)
    };
    let mut rows: Vec<Row> = vec![
        row(C::PromotionStarted { site: at() }, &["DragonflyPromotionStarted"], vec![]),
        row(C::PromotionCompleted { site: at() }, &["DragonflyPromotionCompleted"], end(CacheResult::Success)),
        row(
            C::PromotionFailed { site: at(), because: because() },
            &["DragonflyPromotionFailed"],
            end(CacheResult::Failed),
        ),
        row(C::SyncTimeout { site: at() }, &["DragonflySyncTimeout"], vec![]),
        row(C::StaleMaster { site: at(), keys: 3 }, &["DragonflyStaleMasterDetected"], vec![]),
        row(C::OldSiteReconfigured { site: at() }, &["DragonflyOldSiteReconfigured"], vec![]),
        row(C::SessionsLost { site: at() }, &["DragonflySessionsLost"], vec![]),
        row(C::UpgradeRejected { because: because() }, &["DragonflyUpgradeRejected"], vec![]),
    ];
    let upgrades: [(_, &'static [&'static str]); 7] = [
        (U::Pending, &["DragonflyUpgradeStarted"]),
        (U::SavingSnapshot, &["DragonflyUpgradeSnapshotStarted"]),
        (U::UpdatingActive, &["DragonflyUpgradeSnapshotCompleted"]),
        (U::WaitingForActiveRestore, &[]),
        (U::ReattachingReplicas, &[]),
        (U::Succeeded, &["DragonflyUpgradeCompleted"]),
        (U::Failed, &["DragonflyUpgradeFailed"]),
    ];
    rows.extend(upgrades.map(|(phase, events)| {
        let lines: &[&str] = if events.is_empty() { &[] } else { &["prose"] };
        (upgrade(phase), around(), events, lines, vec![])
    }));
    rows
}

fn rows() -> Vec<Row> {
    [rows_of_moves(), rows_of_ends(), rows_of_sites(), rows_of_plans(), rows_of_passwords(), rows_of_caches()].concat()
}

fn shape(told: &Told) -> (Vec<&'static str>, Vec<&'static str>) {
    let events = told.events.iter().map(|event| event.reason.as_str()).collect();
    (events, told.lines.iter().map(|line| line.event.map_or("prose", LogEvent::as_str)).collect())
}

#[test]
fn each_notice_is_told_as_its_row_says() {
    for (notice, around, events, lines, changes) in rows() {
        let told = told(&notice, &around);
        assert_eq!(shape(&told), (events.to_vec(), lines.to_vec()), "{notice:?}");
        assert_eq!(told.changes, changes, "{notice:?}");
    }
}

/// What people read is a plain sentence: it names a site or a request, has no rest of a program in it, no full stop.
#[test]
fn sentences_are_sentences() {
    for (notice, around, ..) in rows() {
        for saying in told(&notice, &around).events {
            let text = &saying.message;
            let named = ["iad", "pdx", "bloodraven.shipstream.io/", "every site", "the cache", "snapshot"];
            assert!(named.iter().any(|name| text.contains(name)), "{text}");
            let program = ["Some(", "None", "Site(", "{", "}", "  ", "\n"];
            assert!(program.iter().all(|rest| !text.contains(rest)), "{text}");
            assert!(!text.ends_with('.') && text.len() > 20 && text.len() < 1024, "{text}");
        }
    }
}

/// Fields of a line are those that its event declares, or of all lines.
#[test]
fn lines_bring_declared_fields() {
    use bloodraven_telemetry::log::Field;
    for (notice, around, ..) in rows() {
        for line in told(&notice, &around).lines {
            let Some(event) = line.event else { continue };
            let declared = event.spec().fields;
            let common = [Field::Fg, Field::Epoch, Field::Reason, Field::Cause, Field::Phase, Field::Source];
            for (field, _) in &line.fields {
                assert!(declared.contains(field) || common.contains(field), "{}: {}", event.as_str(), field.as_str());
            }
        }
    }
}

/// A number per variant. A new one does not compile here before it has one.
fn variant(notice: &Notice) -> usize {
    match notice {
        Notice::StateChanged(_) => 0,
        Notice::AuthorityChanged { .. } => 1,
        Notice::MoveStarted { .. } => 2,
        Notice::ReleaseProven(_) => 3,
        Notice::PromotionHeld { .. } => 4,
        Notice::CooldownBlocks(_) => 5,
        Notice::CandidateChosen { .. } => 6,
        Notice::IncomparableCandidates { .. } => 7,
        Notice::UnappliedTransactions { .. } => 8,
        Notice::FailoverExecuted { .. } => 9,
        Notice::AuthorityRestored { .. } => 10,
        Notice::ManualPromotionRequested { .. } => 11,
        Notice::ManualPromotionCompleted { .. } => 12,
        Notice::VotersChanged { .. } => 13,
        Notice::LeaseChanged { .. } => 14,
        Notice::AlertRaised(_) => 15,
        Notice::AlertCleared => 16,
        Notice::FencingWriter { .. } => 17,
        Notice::DivergenceFound { .. } => 18,
        Notice::RecoveryStarted { .. } => 19,
        Notice::RecoveryComplete { .. } => 20,
        Notice::CloneChanged { .. } => 21,
        Notice::RecloneRequested { .. } => 22,
        Notice::RecloneRejected { .. } => 23,
        Notice::PlannedChanged { .. } => 24,
        Notice::PlannedSkipped { .. } => 25,
        Notice::PlannedRejected { .. } => 26,
        Notice::UpdateChanged { .. } => 27,
        Notice::DnsWriteFailed { .. } => 28,
        Notice::AuthorityCorrupt { .. } => 29,
        Notice::PasswordsSet { .. } => 39,
        Notice::PasswordsDiscarded { .. } => 40,
        Notice::PasswordsNotSet { .. } => 41,
        Notice::PasswordsRefused { .. } => 42,
        Notice::Cache(cache) => {
            30 + match cache {
                CacheNotice::PromotionStarted { .. } => 0,
                CacheNotice::PromotionCompleted { .. } => 1,
                CacheNotice::PromotionFailed { .. } => 2,
                CacheNotice::SyncTimeout { .. } => 3,
                CacheNotice::StaleMaster { .. } => 4,
                CacheNotice::OldSiteReconfigured { .. } => 5,
                CacheNotice::SessionsLost { .. } => 6,
                CacheNotice::UpgradeChanged { .. } => 7,
                CacheNotice::UpgradeRejected { .. } => 8,
            }
        }
    }
}

#[test]
fn every_notice_has_a_row() {
    let covered: BTreeSet<usize> = rows().iter().map(|(notice, ..)| variant(notice)).collect();
    assert_eq!(covered, (0..43).collect());
}
