//! The leader's rule: revoke, prove, then grant.
//!
//! In: the persisted [`Record`] and the [`Evidence`] that this leader gathered. Out: the next record (to be persisted
//! before anyone is told), proofs of release, answers to questions. Must not: remember anything that a new leader would
//! have to know; what outlives a leader is in the record.
//!
//! Reading order: [`change`] (what may follow upon what), [`evidence`] (what was heard), [`proof`] (when a holder has let
//! go), [`store`] (whose life is over), [`voters`] (who is counted), [`mod@answer`] (grants).

pub mod answer;
pub mod change;
pub mod evidence;
pub mod fresh;
pub mod proof;
pub mod store;
pub mod voters;

#[cfg(test)]
mod tests;

pub use answer::{Answer, answer};
pub use change::{
    Refused, change_settings, change_voters, drop_fence_note, drop_sets, grant, note_end, note_proof, revoke, settle,
    start_over,
};
pub use evidence::Evidence;
pub use fresh::{Fresh, release_of_fresh};
pub use proof::{Missing, Policy, Release, release, release_of_all, return_to_holder};
pub use store::ended_by_newer_store;

use crate::record::{Phase, Record};
use crate::rule::{Rule, holds, off};

/// Whether two stored copies cannot both be a leader's: everything that an epoch is about is settled when it begins. One of
/// them was changed by hand, and neither may be acted on.
pub fn contradict(one: &Record, other: &Record) -> bool {
    let settled = |record: &Record| {
        let holder = record.holder.as_ref().map(|holder| holder.member.clone());
        (record.phase == Phase::Revoking, record.tenure, record.revoked_at, record.seat.clone(), holder)
    };
    let same = settled(one) == settled(other) && (&one.voters, one.settings) == (&other.voters, other.settings);
    one.epoch == other.epoch && !holds(Rule::CopiesAgree, same)
}

/// Which of two stored copies of the record is the record: the higher epoch; at equal epochs the later phase, with
/// everything that either of them knows of sets and ends.
pub fn join(mut one: Record, other: Record) -> Record {
    if one == other || off(Rule::HigherCopyWins) {
        return one;
    }
    if other.epoch != one.epoch {
        return if other.epoch > one.epoch { other } else { one };
    }
    let (mut record, rest) = if other.phase > one.phase {
        (other, one)
    } else {
        one.proof = one.proof.or_else(|| other.proof.clone());
        (one, other)
    };
    if off(Rule::CopiesAreJoined) {
        return record;
    }
    for ended in rest.ended {
        if !record.has_ended(&ended.member) {
            record.ended.push(ended);
        }
    }
    if let (Some(holder), Some(other)) = (&mut record.holder, rest.holder) {
        holder.sql_fence_sent |= other.sql_fence_sent;
        holder.server_uuid = holder.server_uuid.take().or(other.server_uuid);
        for set in other.sets {
            if !holder.sets.contains(&set) {
                holder.sets.push(set);
            }
        }
        holder.sets.sort_by_key(|set| set.epoch);
    }
    record
}
