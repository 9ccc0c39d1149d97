//! What is stored twice: the annotation and the status, and what the two come to.
//!
//! In: the copies as they were read. Out: what is stored; whether what a leader knows is told by them. Must not: take one of
//! two copies that contradict each other for the record, or memory for more than what was stored.

use super::kept::{Anchor, Kept};
use crate::authority;
use crate::record::{Epoch, Record};
use crate::rule::{Rule, holds};
use bloodraven_gtid::GtidSet;

/// What both copies were found to hold after somebody else had written the object.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    /// None: it cannot be read.
    pub anchor: Option<&'a Anchor>,
    /// None: it cannot be read.
    pub status: Option<&'a Kept>,
    /// The highest epoch that either of them names, also where the rest of it cannot be read.
    pub epoch: Epoch,
    /// What this leader had left in status; none: it had found something there that cannot be read.
    pub left: Option<&'a Kept>,
}

impl Anchor {
    /// The record's epoch; 0 without one.
    fn epoch(&self) -> Epoch {
        self.record.as_ref().map_or(0, |record| record.epoch)
    }
}

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

    /// Whether these copies are what this leader knows to be stored, so that it may write its memory over them. Where both can
    /// be read and agree, what they come to has to be known. Where one was spoilt by hand, the other one has to say word for
    /// word what is known. Where the annotation is of an earlier epoch, contradicts what is known or says no more than that, the
    /// status has to be as it was left: it may be behind, because a move does not wait for it. A copy of a higher epoch is never
    /// spoilt: a write of this leader's own that it was not told of looks the same.
    pub fn is_told_by(&self, found: Found<'_>) -> bool {
        let Found { anchor, status, epoch, left } = found;
        if !holds(Rule::HigherIsNeverSpoilt, epoch <= self.epoch()) {
            return false;
        }
        let agreed = anchor.zip(status).filter(|(anchor, status)| !status.contradicts(anchor));
        let says_it = match agreed {
            Some((anchor, status)) => Self::join(anchor.clone(), status.clone()) == *self,
            None => status == Some(self) || anchor.is_some_and(|anchor| *anchor == self.anchor()),
        };
        let says_no_more = |anchor: &Anchor| Self::join(anchor.clone(), self.clone()) == *self;
        let is_spoilt = agreed.is_none_or(|(anchor, _)| {
            anchor.epoch() < self.epoch() || self.contradicts(anchor) || says_no_more(anchor)
        });
        says_it || (is_spoilt && status.is_some() && status == left)
    }

    /// Whether the two copies of the record cannot both be a leader's.
    pub fn contradicts(&self, anchor: &Anchor) -> bool {
        let both = self.record.as_ref().zip(anchor.record.as_ref());
        both.is_some_and(|(one, other)| authority::contradict(one, other))
    }
}
