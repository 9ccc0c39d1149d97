//! The end of an older store. In: the record and an acknowledgement that the speaker gave to this leader itself, in
//! answer to a call under way. Out: the instances that it shows to have ended. Must not: be asked about one that a peer
//! handed on, for that may be as old as it likes, and its speaker may be the one that has ended.

use crate::message::Ack;
use crate::name::Member;
use crate::record::{Epoch, Record};
use crate::rule::{Rule, holds, off};

/// The older stores of the speaker's own pod. A pod has one sidecar with one store, so who speaks now is its present
/// life and every other one is over. The holder is different: its server may be open, or be opened by a statement that
/// its sidecar had sent, so it has ended only when its successor has read both variables back as 1, opener sessions
/// ended first.
///
/// What a record lists last is the newer store: an answer of the older one that was under way while its successor was
/// taken in ends nobody. One that is listed nowhere is the newest; an answer of a store whose last mention is gone
/// cannot be under way any more, for a mention lasts a lease and its margin, and a call lasts seconds.
pub fn ended_by_newer_store(record: &Record, ack: &Ack) -> Vec<Member> {
    if record.has_ended(&ack.from) || off(Rule::NewerStoreEndsOlder) {
        return Vec::new();
    }
    let newest = listed_last(record, &ack.from);
    let holder = record.holder.as_ref().map(|holder| &holder.member);
    let older = |member: &&Member| {
        let same_pod = member.site == ack.from.site && member.instance.pod == ack.from.instance.pod;
        **member != ack.from
            && holds(Rule::EndsOnlyItsOwnPod, same_pod)
            && !record.has_ended(member)
            && listed_last(record, member) < newest
            && holds(Rule::HolderEndsFenced, holder != Some(*member) || ack.fenced)
    };
    let mut ended: Vec<Member> = record.members().filter(older).cloned().collect();
    ended.sort();
    ended.dedup();
    ended
}

/// The last epoch that lists that instance: the present one for its seat and voters; of old sets their own; the highest
/// of all for one that is listed nowhere.
fn listed_last(record: &Record, member: &Member) -> Epoch {
    if record.seat.as_ref() == Some(member) || record.voters.contains(member) {
        return record.epoch;
    }
    let sets = record.holder.iter().flat_map(|holder| &holder.sets);
    let in_sets = sets.filter(|set| set.voters.contains(member)).map(|set| set.epoch).max();
    let is_holder = record.holder.as_ref().is_some_and(|holder| holder.member == *member);
    in_sets.or(is_holder.then_some(0)).unwrap_or(Epoch::MAX)
}
