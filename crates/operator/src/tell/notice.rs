//! One fact of the brain, in words: which Event, which line, what is counted.
//!
//! In: a [`Notice`] and what is [`Around`] it. Out: a [`Told`]. Must not: leave out a notice (the match is exhaustive), or say
//! a Degraded reason twice: those become Events when the condition shows them, here they are lines.

use super::around::{Around, Took};
use super::told::{Change, Told};
use super::{cache, passwords, planned};
use bloodraven_api::events::EventReason;
use bloodraven_api::keys;
use bloodraven_brain::candidate::Difference;
use bloodraven_brain::group::Notice;
use bloodraven_brain::group::kept::{ClonePhase, CloneSource, UpdatePhase};
use bloodraven_brain::name::{Member, Site};
use bloodraven_brain::record::{Cause, Epoch, Phase, Proof, ProofKind};
use bloodraven_brain::site::{State, Transition};
use bloodraven_gtid::GtidSet;
use bloodraven_telemetry::log::{Field, Level, Line, LogEvent};
use bloodraven_telemetry::words::{self, AttemptResult, FailoverStep};

/// What that notice comes to.
pub fn told(notice: &Notice, around: &Around) -> Told {
    match notice {
        Notice::StateChanged(transition) => state_changed(transition),
        Notice::AuthorityChanged { epoch, phase, cause, seat, proof } => {
            authority_changed(around, *epoch, *phase, *cause, seat.as_ref(), proof.as_ref())
        }
        Notice::MoveStarted { cause, because } => move_started(around, *cause, because),
        Notice::ReleaseProven(proof) => release_proven(around, proof),
        Notice::PromotionHeld { silent } => promotion_held(silent),
        Notice::CooldownBlocks(active) => Told::new().line(
            Line::of(LogEvent::CooldownBlocked)
                .text(Field::LastFailover, active.last_failover)
                .text(Field::Cooldown, format!("{}s", active.cooldown.0 / 1000)),
        ),
        Notice::CandidateChosen { member, rule } => Told::new()
            .line(Line::of(LogEvent::RelayDrained).text(Field::Candidate, &member.site).text(Field::Reason, rule)),
        Notice::IncomparableCandidates { chosen, differences } => incomparable(chosen, differences),
        Notice::UnappliedTransactions { site, set } => unapplied(site, set),
        Notice::FailoverExecuted { site, epoch, cause, proof, gtid } => {
            failover_executed(around, site, *epoch, *cause, proof.as_ref(), gtid)
        }
        Notice::AuthorityRestored { site, epoch, cause } => restored(site, *epoch, *cause),
        Notice::ManualPromotionRequested { site } => manual(around, site),
        Notice::ManualPromotionCompleted { site } => Told::new()
            .event(
                EventReason::ManualPromotionCompleted,
                format!("{site} is the primary in epoch {}, as asked for by opening it by hand", around.epoch),
            )
            .also_as_prose(),
        Notice::VotersChanged { epoch, voters } => Told::new()
            .event(
                EventReason::VotersChanged,
                format!("since epoch {epoch} these vouch for the primary: {}", members(voters)),
            )
            .also_as_prose(),
        Notice::LeaseChanged { epoch, lease_timeout, min_peers } => Told::new()
            .event(
                EventReason::LeaseChanged,
                format!(
                    "since epoch {epoch} the lease of {} lasts {} s and is renewed by peers if {min_peers} of them vouch, as the \
                     spec wants",
                    around.primary(),
                    lease_timeout.0 / 1000
                ),
            )
            .also_as_prose(),
        Notice::AlertRaised(alert) => {
            Told::new().line(Line::saying(LogEvent::Alert, alert.to_string()).text(Field::Reason, alert.reason()))
        }
        Notice::AlertCleared => Told::new().line(Line::prose(Level::Info, "what the last alert said is over")),
        Notice::FencingWriter { site, because } => fencing(around, site, because),
        Notice::DivergenceFound { site, set } => divergence(around, site, set),
        Notice::RecoveryStarted { site } => Told::new().line(
            Line::of(LogEvent::RecoveryStarted).text(Field::Site, site).maybe(Field::Source, around.holder.as_ref()),
        ),
        Notice::RecoveryComplete { site } => Told::new()
            .event(
                EventReason::RecoveryComplete,
                format!("{site} follows {} again (epoch {})", around.primary(), around.epoch),
            )
            .line(Line::of(LogEvent::RecoveryComplete).text(Field::Site, site)),
        Notice::CloneChanged { site, phase, source, message } => clone_changed(site, *phase, *source, message),
        Notice::RecloneRequested { site } => Told::new()
            .event(
                EventReason::RecloneRequested,
                format!(
                    "{site} will be copied anew from a site that follows {}; what it holds now goes",
                    around.primary()
                ),
            )
            .also_as_prose()
            .count(Change::Reclone(site.clone())),
        Notice::RecloneRejected { because } => Told::new()
            .event(EventReason::RecloneRejected, format!("the request {} was refused: {because}", keys::RECLONE_SITE))
            .also_as_prose(),
        Notice::PlannedChanged { target, phase, reason, message } => {
            planned::changed(around, target, *phase, *reason, message)
        }
        Notice::PlannedSkipped { target } => planned::skipped(around, target),
        Notice::PlannedRejected { reason, message } => planned::rejected(around, *reason, message),
        Notice::UpdateChanged { phase, site, stopped } => update_changed(*phase, site.as_ref(), stopped.as_deref()),
        Notice::PasswordsSet { .. }
        | Notice::PasswordsDiscarded { .. }
        | Notice::PasswordsNotSet { .. }
        | Notice::PasswordsRefused { .. } => passwords::told(notice),
        Notice::DnsWriteFailed { because } => Told::new()
            .event(
                EventReason::DnsUpdateFailed,
                format!("the DNS record could not be pointed at {}: {because}; it is tried again", around.primary()),
            )
            .also_as_prose()
            .count(Change::DnsFailure),
        Notice::Cache(notice) => cache::told(notice, around),
        Notice::AuthorityCorrupt { because } => Told::new().line(
            Line::prose(Level::Error, "authority cannot be read; nothing moves until it is mended")
                .text(Field::Error, because),
        ),
    }
}

fn state_changed(Transition { site, from, to }: &Transition) -> Told {
    let line = Line::of(LogEvent::StateTransition)
        .text(Field::Site, site)
        .text(Field::From, from.as_str())
        .text(Field::To, to.as_str());
    Told::new().line(line).count(Change::Transition(site.clone(), state(*from), state(*to)))
}

fn authority_changed(
    around: &Around,
    epoch: Epoch,
    phase: Phase,
    cause: Cause,
    seat: Option<&Member>,
    proof: Option<&Proof>,
) -> Told {
    let line = Line::of(LogEvent::AuthorityChanged)
        .number(Field::Epoch, epoch)
        .maybe(Field::Site, seat.map(|seat| &seat.site))
        .maybe(Field::Instance, seat.map(|seat| &seat.instance))
        .text(Field::Phase, format!("{phase:?}"))
        .text(Field::Cause, format!("{cause:?}"))
        .maybe(Field::Proof, proof.map(|proof| format!("{:?}", proof.kind)));
    let told = Told::new().line(line);
    match &around.failed_attempt {
        None => told,
        Some(site) => {
            let why = format!("{site} was granted authority and could not be opened; the move goes on");
            let line = Line::of(LogEvent::FailoverFailed).text(Field::Candidate, site).text(Field::Reason, why);
            told.line(line).count(Change::Attempt(around.declared(site), AttemptResult::Failed))
        }
    }
}

fn move_started(around: &Around, cause: Cause, because: &str) -> Told {
    let line = Line::of(LogEvent::FailoverStarted)
        .maybe(Field::OldPrimary, around.old_primary.as_ref().or(around.holder.as_ref()))
        .text(Field::Cause, format!("{cause:?}"))
        .text(Field::Reason, because);
    Told::new().line(line)
}

fn release_proven(around: &Around, proof: &Proof) -> Told {
    let line = Line::of(LogEvent::FailoverProof)
        .text(Field::OldPrimary, &proof.about.site)
        .text(Field::Instance, &proof.about.instance)
        .text(Field::Proof, format!("{:?}", proof.kind));
    let line = match around.took.proof {
        Some(took) => line.number(Field::DurationMs, took.0),
        None => line,
    };
    Told::new().line(line).count(Change::Proof(kind(proof.kind)))
}

fn promotion_held(silent: &[Member]) -> Told {
    Told::new()
        .line(Line::of(LogEvent::PromotionHeld).text(Field::Missing, members(silent)))
        .count(Change::Attempt(None, AttemptResult::Held))
}

fn incomparable(chosen: &Site, differences: &[Difference]) -> Told {
    let each = differences.iter().map(|difference| {
        format!(
            "only {chosen} has {}, only {} has {}",
            short(&difference.only_chosen),
            difference.other,
            short(&difference.only_other)
        )
    });
    let message = format!(
        "no candidate holds all that the others hold; {chosen} is promoted: {}; what only the others have will show as \
         divergent",
        each.collect::<Vec<_>>().join("; ")
    );
    Told::new().event(EventReason::IncomparableCandidates, message).also_as_prose()
}

fn unapplied(site: &Site, set: &GtidSet) -> Told {
    let message = format!(
        "{site} had received {} transactions that it could not apply in time and is promoted without them: {}; they are in \
         status.unappliedGtidAtPromotion, look for them on the other sites",
        set.count(),
        short(set)
    );
    Told::new().event(EventReason::UnappliedTransactions, message).also_as_prose()
}

/// Only what nobody asked for is an automatic failover.
const fn is_automatic(cause: Cause) -> bool {
    matches!(cause, Cause::Emergency | Cause::SplitBrain)
}

fn failover_executed(
    around: &Around,
    site: &Site,
    epoch: Epoch,
    cause: Cause,
    proof: Option<&Proof>,
    gtid: &GtidSet,
) -> Told {
    let confirmed = Line::of(LogEvent::PromotionConfirmed)
        .number(Field::Epoch, epoch)
        .text(Field::Site, site)
        .text(Field::PromotionGtid, gtid.compact());
    let complete = Line::of(LogEvent::FailoverComplete)
        .number(Field::Epoch, epoch)
        .text(Field::PromotedSite, site)
        .maybe(Field::OldPrimary, around.old_primary.as_ref())
        .text(Field::Cause, format!("{cause:?}"))
        .maybe(Field::Proof, proof.map(|proof| format!("{:?}", proof.kind)))
        .text(Field::PromotionGtid, gtid.compact());
    let complete = match around.took.total {
        Some(total) => complete.number(Field::DurationMs, total.0),
        None => complete,
    };
    let told = Told::new().line(confirmed).line(complete);
    if !is_automatic(cause) {
        return told;
    }
    let rests = proof.map_or("no proof was needed".to_owned(), |proof| format!("proof {}", evidence(proof)));
    let message = format!(
        "{site} is the primary in epoch {epoch}, {} was lost; {rests}; it had executed {}",
        around.old(),
        short(gtid)
    );
    let told = told
        .event(EventReason::FailoverExecuted, message)
        .count(Change::Failover(site.clone()))
        .count(Change::Attempt(Some(site.clone()), AttemptResult::Success));
    steps(around.took).into_iter().fold(told, |told, (step, took)| match took {
        Some(took) => told.count(Change::Step(site.clone(), step, took)),
        None => told,
    })
}

const fn steps(took: Took) -> [(FailoverStep, Option<bloodraven_brain::time::Millis>); 5] {
    [
        (FailoverStep::Detect, took.detect),
        (FailoverStep::Proof, took.proof),
        (FailoverStep::Drain, took.drain),
        (FailoverStep::Open, took.open),
        (FailoverStep::Total, took.total),
    ]
}

fn restored(site: &Site, epoch: Epoch, cause: Cause) -> Told {
    let line = Line::of(LogEvent::PromotionConfirmed)
        .number(Field::Epoch, epoch)
        .text(Field::Site, site)
        .text(Field::Cause, format!("{cause:?}"));
    let why = match cause {
        // The first primary of a group was nowhere before.
        Cause::Bootstrap => return Told::new().line(line),
        Cause::Instance => "its pod was replaced",
        Cause::Regrant => "it had been fenced by the operator, or had seen two views of one epoch",
        Cause::Rollback => "the planned move was taken back",
        Cause::RecordBehind => "the record had gone back in time",
        Cause::Emergency
        | Cause::Planned
        | Cause::OrderedUpdate
        | Cause::SplitBrain
        | Cause::Manual
        | Cause::Restore
        | Cause::Voters
        | Cause::Lease => "the move ended where it began",
    };
    let message = format!("{site} has authority again in epoch {epoch} ({cause:?}: {why}); nothing is to be done");
    Told::new().event(EventReason::AuthorityRestored, message).line(line)
}

fn manual(around: &Around, site: &Site) -> Told {
    let message = format!(
        "{site} was opened by hand while {} does not serve; it is fenced, then promoted once {} is known to have let go",
        around.primary(),
        around.primary()
    );
    Told::new().event(EventReason::ManualPromotionRequested, message).also_as_prose()
}

fn fencing(around: &Around, site: &Site, because: &str) -> Told {
    if let Some(winner) = around.policy_winner.as_ref().filter(|winner| *winner != site) {
        let line =
            Line::of(LogEvent::SplitBrainAutoResolve).text(Field::PreferSite, winner).text(Field::FencedSite, site);
        return Told::new().line(line).count(Change::AutoResolve(winner.clone()));
    }
    let line = Line::prose(Level::Warn, format!("{site} takes writes without authority and is being fenced"));
    Told::new().line(line.text(Field::Site, site).text(Field::Reason, because))
}

fn divergence(around: &Around, site: &Site, set: &GtidSet) -> Told {
    let count = set.count();
    let text = set.compact().to_string();
    // A prefix of the set is consent enough, and fits into a command line.
    let prefix = text.split(':').next().unwrap_or_default();
    let message = format!(
        "{site} has {count} transactions that {} lacks: {}; it is neither attached nor overwritten. Save what you need of \
         them, then: kubectl annotate mfg {} {}={site}:{prefix}",
        around.primary(),
        short(set),
        around.group,
        keys::RECLONE_SITE
    );
    let line = Line::of(LogEvent::DivergenceDetected)
        .text(Field::Site, site)
        .text(Field::DivergentGtid, text)
        .number(Field::Count, i64::try_from(count).unwrap_or(i64::MAX));
    Told::new().event(EventReason::DataLossDetected, message).line(line)
}

fn clone_changed(site: &Site, phase: ClonePhase, source: CloneSource, message: &str) -> Told {
    let source = match source {
        CloneSource::FreshDeploy => "fresh-deploy",
        CloneSource::AutoClone => "auto-clone",
        CloneSource::Reclone => "reclone",
    };
    let line = match phase {
        ClonePhase::Cloning => Line::of(LogEvent::CloneStarted).text(Field::Reason, message),
        ClonePhase::WaitingForRestart | ClonePhase::SetupReplication => {
            Line::prose(Level::Info, format!("bootstrap of {site} goes on: {message}"))
        }
        ClonePhase::Done => Line::of(LogEvent::CloneDone),
        ClonePhase::Failed => Line::of(LogEvent::CloneFailed).text(Field::Error, message),
    };
    let line = line.text(Field::Recipient, site).text(Field::Source, source).text(Field::Phase, format!("{phase:?}"));
    Told::new().line(line)
}

fn update_changed(phase: UpdatePhase, site: Option<&Site>, stopped: Option<&str>) -> Told {
    let at = site.map(|site| format!(" at {site}")).unwrap_or_default();
    if let Some(why) = stopped {
        let message = format!("the ordered update stands still in {phase:?}{at}: {why}; it goes on when that is gone");
        return Told::new().event(EventReason::UpdateStopped, message).also_as_prose();
    }
    match phase {
        UpdatePhase::UpdateReplica => {
            let message = format!("an ordered update rolls the pod{at}; the primary comes last and hands over first");
            Told::new().event(EventReason::UpdateStarted, message).also_as_prose()
        }
        UpdatePhase::Complete => {
            Told::new().event(EventReason::UpdateCompleted, "every site runs what the spec wants").also_as_prose()
        }
        UpdatePhase::WaitReplica
        | UpdatePhase::Failover
        | UpdatePhase::UpdateOldPrimary
        | UpdatePhase::WaitOldPrimary => {
            let line = Line::prose(Level::Info, format!("the ordered update goes on{at}"));
            Told::new().line(line.text(Field::Phase, format!("{phase:?}")))
        }
    }
}

/// A proof, in a sentence.
pub(super) fn evidence(proof: &Proof) -> String {
    let (kind, about) = (proof.kind, &proof.about);
    let why = match kind {
        ProofKind::FencedBySidecar => "its own sidecar acknowledged the revocation, fenced",
        ProofKind::ProcessEnded => "nothing of it runs or can start again",
        ProofKind::LeaseExpired => "nobody could prolong its lease any more, and the lease ran out",
        ProofKind::Assumed => "time has passed without enough acknowledgements, as BestEffort allows",
    };
    format!("{kind:?} about {about}: {why}")
}

/// The set, as far as a sentence can hold it; the whole is in the status and in the log.
pub(super) fn short(set: &GtidSet) -> String {
    const LONGEST: usize = 300;
    let text = set.compact().to_string();
    if text.is_empty() {
        return "nothing".to_owned();
    }
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

pub(super) fn members(members: &[Member]) -> String {
    members.iter().map(Member::to_string).collect::<Vec<_>>().join(", ")
}

pub(super) const fn state(state: State) -> words::SiteState {
    match state {
        State::Unknown => words::SiteState::Unknown,
        State::Writable => words::SiteState::Writable,
        State::ReadOnly => words::SiteState::ReadOnly,
        State::Unreachable => words::SiteState::Unreachable,
    }
}

const fn kind(kind: ProofKind) -> words::ProofKind {
    match kind {
        ProofKind::FencedBySidecar => words::ProofKind::FencedBySidecar,
        ProofKind::ProcessEnded => words::ProofKind::ProcessEnded,
        ProofKind::LeaseExpired => words::ProofKind::LeaseExpired,
        ProofKind::Assumed => words::ProofKind::Assumed,
    }
}
