//! Answers to questions. A grant leaves only the leader, only while its leadership holds, only to the very instance that
//! the persisted record names.

use super::Evidence;
use crate::message::{Grant, OpeningWord, Question};
use crate::record::{Phase, Record, View};
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
    let seated = record.phase != Phase::Revoking && record.seat.as_ref() == Some(&question.from);
    let behind = evidence.highest > record.epoch;
    if !leads || !seated || behind {
        return Answer::View(Box::new(record.view()));
    }
    evidence.last_grant = Some(now);
    let open = word.filter(|_| question.open);
    Answer::Grant(Box::new(Grant { id: question.id, to: question.from.clone(), view: record.view(), open }))
}
