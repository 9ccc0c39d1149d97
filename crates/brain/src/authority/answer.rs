//! Answers to questions. A grant leaves only the leader, only while its leadership holds, only to the very instance that
//! the persisted record names.

use super::Evidence;
use crate::message::{Grant, OpeningWord, Question};
use crate::record::{Phase, Record, View};
use crate::rule::{Rule, holds, off};
use crate::time::Boot;

/// What a question gets.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// The epoch is the asker's.
    Grant(Box<Grant>),
    /// What the record says; it renews nothing and opens nothing.
    View(Box<View>),
}

/// Answers a question from the persisted record. `leads_until` is the end of this leader's certain leadership (send time
/// of its last successful renewal + renew deadline); `word` is there when the seat may open: while Stable, and while
/// Granting once replication is cut and the promotion GTID is persisted.
pub fn answer(
    record: &Record,
    evidence: &mut Evidence,
    question: &Question,
    leads_until: Option<Boot>,
    word: Option<OpeningWord>,
    now: Boot,
) -> Answer {
    evidence.highest = evidence.highest.max(question.epoch);
    let leads = leads_until.is_some_and(|until| now < until);
    let given = record.phase != Phase::Revoking;
    // While Revoking nobody is seated; who would be served without that rule is the holder.
    let seat = record.seat.as_ref().or(record.holder.as_ref().map(|holder| &holder.member));
    let seated = seat == Some(&question.from);
    let same_site = seat.is_some_and(|seat| seat.site == question.from.site);
    let behind = evidence.highest > record.epoch;
    let may_grant = holds(Rule::LeadsAtTheAnswer, leads)
        && holds(Rule::NoGrantWhileRevoking, given)
        && (seated || (off(Rule::GrantToTheInstance) && same_site))
        && holds(Rule::StopWhenBehind, !behind);
    if !may_grant {
        return Answer::View(Box::new(record.view()));
    }
    evidence.last_grant = Some(now);
    let open = word.filter(|_| holds(Rule::WordToWhoAsks, question.open));
    Answer::Grant(Box::new(Grant { id: question.id, to: question.from.clone(), view: record.view(), open }))
}
