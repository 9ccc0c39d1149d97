//! What is stored twice: the annotation and the status, and what the two come to.
//!
//! In: the copies as they were read. Out: what is stored; whether what a leader knows is told by them. Must not: take one of
//! two copies that contradict each other for the record, or memory for more than what was stored.

use super::kept::{Anchor, Kept};
use crate::authority;
use crate::record::Record;
use bloodraven_gtid::GtidSet;

impl Kept {
    /// What the two stored copies come to. What a copy says of a promotion belongs to the tenure of the record beside it;
    /// under a later one it says nothing.
    #[must_use]
    pub fn join(anchor: Anchor, status: Self) -> Self {
        let record = match (anchor.record.clone(), status.record.clone()) {
            (Some(one), Some(other)) => Some(authority::join(one, other)),
            (one, other) => one.or(other),
        };
        let last_failover = match (anchor.last_failover.clone(), status.last_failover.clone()) {
            (Some(one), Some(other)) => Some(if one.at > other.at { one } else { other }),
            (one, other) => one.or(other),
        };
        let tenure = |record: &Option<Record>| record.as_ref().map_or(0, |record| record.tenure);
        let present = tenure(&record);
        let of_anchor = anchor.promotion.filter(|_| tenure(&anchor.record) == present);
        let of_status = status.promotion.filter(|_| tenure(&status.record) == present);
        // Both hold it, or only one of the two writes went through; what could not be applied goes with it.
        let unapplied = match (tenure(&status.record) == present, tenure(&anchor.record) == present) {
            (true, true) => anchor.unapplied.union(&status.unapplied),
            (true, false) => status.unapplied,
            (false, true) => anchor.unapplied,
            (false, false) => GtidSet::new(),
        };
        Self { record, last_failover, promotion: of_anchor.or(of_status), unapplied, ..status }
    }

    /// What the annotation holds: enough to finish a move while the status cannot be written.
    pub fn anchor(&self) -> Anchor {
        Anchor {
            record: self.record.clone(),
            last_failover: self.last_failover.clone(),
            promotion: self.promotion.clone(),
            unapplied: self.unapplied.clone(),
        }
    }

    /// Whether these copies are what this leader knows to be stored, so that it may write its memory over them. Each of them
    /// may be unreadable (none). Where both can be read and agree, what they come to has to be known. Where one was spoilt by
    /// hand, the other one has to say word for word what is known. A copy of a higher epoch is never spoilt: a write of this
    /// leader's own that it was not told of looks the same.
    pub fn is_told_by(&self, anchor: Option<&Anchor>, status: Option<&Self>) -> bool {
        match (anchor, status) {
            (Some(anchor), Some(status)) if !status.contradicts(anchor) => {
                Self::join(anchor.clone(), status.clone()) == *self
            }
            _ => status == Some(self) || anchor.is_some_and(|anchor| *anchor == self.anchor()),
        }
    }

    /// Whether the two copies of the record cannot both be a leader's.
    pub fn contradicts(&self, anchor: &Anchor) -> bool {
        let both = self.record.as_ref().zip(anchor.record.as_ref());
        both.is_some_and(|(one, other)| authority::contradict(one, other))
    }
}
