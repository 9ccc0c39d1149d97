//! The last decisions in words, and what stands in the way: for `why`.
//!
//! In: notices and obstacles of the brain. Out: sentences. Must not: say what the brain did not.

use bloodraven_brain::authority::Missing;
use bloodraven_brain::group::forecast::{Ending, Forecast};
use bloodraven_brain::group::{Group, Notice, Obstacle};
use bloodraven_brain::name::{Member, Site};
use bloodraven_brain::record::Proof;
use bloodraven_brain::time::{Now, Wall};
use serde_json::{Value, json};
use std::collections::VecDeque;

/// As many notices are remembered.
const REMEMBERED: usize = 200;

/// The last notices, oldest first.
#[derive(Debug, Default)]
pub(super) struct Memory(VecDeque<(Wall, &'static str, String)>);

impl Memory {
    pub(super) fn take(&mut self, now: Now, notice: &Notice) {
        if self.0.len() >= REMEMBERED {
            self.0.pop_front();
        }
        let (kind, text) = sentence(notice);
        self.0.push_back((now.wall, kind, text));
    }
}

/// What `why` answers.
pub(super) fn why(group: &Group, memory: &Memory, now: Now) -> Value {
    let kept = group.kept();
    let record = kept.as_ref().and_then(|kept| kept.record.as_ref());
    let summary = group.summary(now);
    let decisions: Vec<Value> = memory
        .0
        .iter()
        .rev()
        .map(|(at, kind, text)| json!({"at": at.to_string(), "kind": kind, "text": text}))
        .collect();
    let degraded: Vec<Value> = summary
        .degraded
        .iter()
        .map(|(reason, text)| json!({"reason": format!("{reason:?}"), "message": text}))
        .collect();
    let sites: Vec<Value> = group
        .seen
        .sites
        .iter()
        .map(|(site, seen)| json!({"name": site.as_str(), "state": seen.watch.state.to_string()}))
        .collect();
    json!({
        "now": now.wall.to_string(),
        "leading": group.leads(now.boot),
        "record": record.map(|record| json!({
            "epoch": record.epoch,
            "tenure": record.tenure,
            "phase": format!("{:?}", record.phase),
            "cause": format!("{:?}", record.cause),
            "site": record.seat.as_ref().map(|seat| seat.site.to_string()),
            "instance": record.seat.as_ref().map(|seat| seat.instance.to_string()),
            "holder": record.holder.as_ref().map(|holder| holder.member.to_string()),
            "proof": record.proof.as_ref().map(proof),
            "since": record.since.to_string(),
        })),
        "ready": summary.ready.is_ok(),
        "notReady": summary.ready.err().map(|why| format!("{why:?}")),
        "degraded": degraded,
        "paused": summary.paused,
        "obstacle": group.obstacle.as_ref().map(|obstacle| obstructed(obstacle, now)),
        "judgement": group.judged.as_ref().map(|judged| judged.verdict.to_string()),
        "sites": sites,
        "decisions": decisions,
    })
}

/// What stands in the way of the present move.
pub(super) fn obstructed(obstacle: &Obstacle, now: Now) -> String {
    match obstacle {
        Obstacle::Release(missing) => missing_proof(missing, now),
        Obstacle::Cooldown(active) => format!("the cooldown after the last move lasts until {}", active.retry_after),
        Obstacle::Paused => "the group is paused".to_owned(),
        Obstacle::NoCandidate(refused) => {
            let why: Vec<String> = refused.iter().map(|(site, why)| format!("{site}: {why}")).collect();
            format!("nobody can be promoted ({})", why.join("; "))
        }
        Obstacle::Draining(site) => format!("{site} still applies what it received"),
        Obstacle::Reading(sites) => {
            let names: Vec<&str> = sites.iter().map(Site::as_str).collect();
            format!("the data of {} are being read", names.join(", "))
        }
        Obstacle::EndingFence => "a session that fences is being ended".to_owned(),
        Obstacle::BackingOff(until) => {
            format!("the last attempt failed; the next one is in {} ms", until.since(now.boot).0)
        }
        Obstacle::AwaitingTarget(member) => format!("{member} has not stored its epoch yet, or is not fenced under it"),
        Obstacle::Cutting(site) => format!("the replication of {site} is being cut"),
        Obstacle::Receipts(site) => format!("{site} could not be told yet to wait for receipts"),
        Obstacle::Opening(site) => format!("the sidecar of {site} is opening it"),
        Obstacle::NextPod(site) => format!("every site was lost at once; the next pod of {site} is waited for"),
        Obstacle::Fresh(waiting) => waiting.to_string(),
        Obstacle::Planned => "a planned failover leads the move".to_owned(),
    }
}

fn missing_proof(missing: &Missing, now: Now) -> String {
    let silent: Vec<String> = missing.silent.iter().map(Member::to_string).collect();
    let silent =
        if silent.is_empty() { "nobody is silent".to_owned() } else { format!("silent: {}", silent.join(", ")) };
    match missing.until {
        Some(until) => {
            format!(
                "no proof yet that the last holder has let go ({silent}); its lease is over in {} ms",
                until.since(now.boot).0
            )
        }
        None => format!("no proof that the last holder has let go, and time alone brings none ({silent})"),
    }
}

fn proof(proof: &Proof) -> String {
    format!("{:?} about {} at {}", proof.kind, proof.about, proof.at)
}

/// A notice: its kind and its sentence.
fn sentence(notice: &Notice) -> (&'static str, String) {
    match notice {
        Notice::StateChanged(change) => {
            ("StateChanged", format!("{} went from {} to {}", change.site, change.from, change.to))
        }
        Notice::AuthorityChanged { epoch, phase, cause, seat, proof: found } => {
            let seat = seat.as_ref().map_or_else(|| "nobody".to_owned(), Member::to_string);
            let found = found.as_ref().map(|found| format!("; {}", proof(found))).unwrap_or_default();
            ("AuthorityChanged", format!("epoch {epoch}: {phase:?}, {seat} may write, because of {cause:?}{found}"))
        }
        Notice::MoveStarted { cause, because } => ("MoveStarted", format!("a move began ({cause:?}): {because}")),
        Notice::ReleaseProven(found) => ("ReleaseProven", format!("the last holder has let go: {}", proof(found))),
        Notice::PromotionHeld { silent } => {
            let silent: Vec<String> = silent.iter().map(Member::to_string).collect();
            ("PromotionHeld", format!("nobody is promoted without a proof; silent: {}", silent.join(", ")))
        }
        Notice::CooldownBlocks(active) => {
            ("CooldownBlocks", format!("a move waits for the cooldown until {}", active.retry_after))
        }
        Notice::CandidateChosen { member, rule } => ("CandidateChosen", format!("{member} was chosen: {rule}")),
        Notice::IncomparableCandidates { chosen, differences } => (
            "IncomparableCandidates",
            format!("{chosen} was chosen among {} differences that no set contains", differences.len()),
        ),
        Notice::UnappliedTransactions { site, set } => {
            ("UnappliedTransactions", format!("{site} gave up {} transactions that it had received", set.count()))
        }
        Notice::FailoverExecuted { site, epoch, cause, .. } => {
            ("FailoverExecuted", format!("{site} writes under epoch {epoch} ({cause:?})"))
        }
        Notice::AuthorityRestored { site, epoch, cause } => {
            ("AuthorityRestored", format!("{site} has its authority back under epoch {epoch} ({cause:?})"))
        }
        Notice::VotersChanged { epoch, voters } => {
            let voters: Vec<&str> = voters.iter().map(|voter| voter.site.as_str()).collect();
            ("VotersChanged", format!("epoch {epoch}: the voters are {}", voters.join(", ")))
        }
        Notice::LeaseChanged { epoch, lease_timeout, min_peers } => {
            ("LeaseChanged", format!("epoch {epoch}: a lease lasts {} ms and needs {min_peers} peers", lease_timeout.0))
        }
        Notice::AlertRaised(alert) => ("AlertRaised", alert.to_string()),
        Notice::AlertCleared => ("AlertCleared", "the alert is over".to_owned()),
        Notice::FencingWriter { site, because } => ("FencingWriter", format!("{site} is being fenced: {because}")),
        Notice::DivergenceFound { site, set } => {
            ("DivergenceFound", format!("{site} has {} transactions that the primary lacks", set.count()))
        }
        Notice::DnsWriteFailed { because } => ("DnsWriteFailed", format!("the DNS record was not written: {because}")),
        Notice::AuthorityCorrupt { because } => ("AuthorityCorrupt", format!("nothing moves: {because}")),
        other => asked_for(other),
    }
}

/// What was asked for, and what recovery, clones and caches say.
fn asked_for(notice: &Notice) -> (&'static str, String) {
    match notice {
        Notice::ManualPromotionRequested { site } => {
            ("ManualPromotionRequested", format!("{site} was opened by hand while the holder does not serve"))
        }
        Notice::ManualPromotionCompleted { site } => {
            ("ManualPromotionCompleted", format!("{site} was promoted as wished"))
        }
        Notice::RecoveryStarted { site } => ("RecoveryStarted", format!("{site} is being attached")),
        Notice::RecoveryComplete { site } => ("RecoveryComplete", format!("{site} follows again")),
        Notice::CloneChanged { site, phase, message, .. } => {
            ("CloneChanged", format!("the clone into {site}: {phase:?}; {message}"))
        }
        Notice::RecloneRequested { site } => ("RecloneRequested", format!("{site} will be cloned anew")),
        Notice::RecloneRejected { because } => ("RecloneRejected", because.clone()),
        Notice::PlannedChanged { target, phase, reason, message } => {
            let reason = reason.map(|reason| format!(" ({reason:?})")).unwrap_or_default();
            ("PlannedChanged", format!("the planned failover to {target}: {phase:?}{reason}; {message}"))
        }
        Notice::PlannedSkipped { target } => ("PlannedSkipped", format!("{target} has authority already")),
        Notice::PlannedRejected { reason, message } => ("PlannedRejected", format!("{reason:?}: {message}")),
        Notice::UpdateChanged { phase, site, stopped } => {
            let site = site.as_ref().map(|site| format!(" at {site}")).unwrap_or_default();
            let stopped = stopped.as_ref().map(|why| format!("; it stands still: {why}")).unwrap_or_default();
            ("UpdateChanged", format!("the update: {phase:?}{site}{stopped}"))
        }
        Notice::Cache(notice) => ("Cache", format!("{notice:?}")),
        other => ("Other", format!("{other:?}")),
    }
}

/// What `what-if` answers.
pub(crate) fn forecast(group: &Group, now: Now, dead: &[Site]) -> Value {
    let Forecast { told, ending } = group.what_if(now, dead);
    let told: Vec<Value> = told
        .iter()
        .map(|(after, notice)| {
            let (kind, text) = sentence(notice);
            json!({"afterMs": after.0, "kind": kind, "text": text})
        })
        .collect();
    let ending = match ending {
        Ending::Writes { site, after } => json!({"site": site.as_str(), "afterMs": after.0}),
        Ending::Nobody { verdict, obstacle, alert } => json!({
            "site": Value::Null,
            "verdict": verdict.map(|verdict| verdict.to_string()),
            "obstacle": obstacle.map(|obstacle| obstructed(&obstacle, now)),
            "alert": alert.map(|alert| alert.to_string()),
        }),
        Ending::Unknown => json!({"site": Value::Null, "unknown": "what is stored was not read yet"}),
    };
    let dead: Vec<&str> = dead.iter().map(Site::as_str).collect();
    json!({"killed": dead, "told": told, "ending": ending})
}
