//! Comparing a site with the primary, in the order that makes the answer true: the site's set first, the primary's last.
//!
//! In: what a site said while it was closed, and readings of the primary that began after that. Out: a [`Verdict`]. Must
//! not: call a site divergent on one reading. A replica can have a transaction a moment before its source counts it as
//! executed, so what seems missing is looked for a second time.

use super::{Footing, RETRY};
use crate::group::command::{Task, WorkId};
use crate::group::input::{Facts, Outcome};
use crate::group::{Group, Step};
use crate::name::Site;
use crate::record::Epoch;
use crate::site::Pair;
use crate::time::{Boot, Millis, Now};
use bloodraven_gtid::{GtidSet, Uuid};

/// Between two readings of the primary.
const SPACING: Millis = Millis(1000);

/// A comparison that is not over.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Asked {
    tenure: Epoch,
    /// What the site said, closed.
    facts: Facts,
    /// The reading of the primary that was begun after that.
    reading: Option<WorkId>,
    /// What the primary lacked in a first reading.
    missed: Option<GtidSet>,
}

/// What a comparison found.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::group) struct Verdict {
    at: Boot,
    tenure: Epoch,
    /// What the site said.
    facts: Facts,
    /// What the primary had executed or was committing, read after that.
    pub(in crate::group) primary: GtidSet,
    /// What the site has, received or executed, and the primary lacks.
    pub(in crate::group) missing: GtidSet,
    /// It is an empty site: no transactions and no schema of a user, or no transaction of a server that the primary knows
    /// and no such schema, and no replication.
    pub(in crate::group) empty: bool,
}

impl Group {
    /// What the last comparison found, if it is about what the site says now; otherwise one is begun.
    pub(in crate::group) fn finding(
        &mut self,
        now: Now,
        footing: &Footing<'_>,
        site: &Site,
        facts: &Facts,
    ) -> Option<Verdict> {
        facts.data.as_ref()?;
        let known = self.recovering.sites.entry(site.clone()).or_default();
        let holds = |verdict: &&Verdict| {
            verdict.tenure == footing.tenure && same_ground(&verdict.facts, facts) && now.boot < verdict.at + RETRY
        };
        if let Some(verdict) = known.verdict.as_ref().filter(holds) {
            return Some(verdict.clone());
        }
        let under_way = known
            .asked
            .as_ref()
            .is_some_and(|asked| asked.tenure == footing.tenure && same_ground(&asked.facts, facts));
        if !under_way {
            known.asked = Some(Asked { tenure: footing.tenure, facts: facts.clone(), reading: None, missed: None });
        }
        None
    }

    /// Reads the primary for every comparison that waits for it; one reading serves them all.
    pub(in crate::group) fn read_primary(&mut self, now: Now, footing: &Footing<'_>, out: &mut Step) {
        let (work, sites) = (&self.work, &mut self.recovering.sites);
        let mut waiting = false;
        for asked in sites.values_mut().filter_map(|known| known.asked.as_mut()) {
            asked.reading = asked.reading.filter(|id| work.contains_key(id));
            waiting |= asked.reading.is_none();
        }
        if !waiting
            || now.boot < self.recovering.next_reading
            || !self.begin(now, &footing.primary.site, Task::Read, out)
        {
            return;
        }
        self.recovering.next_reading = now.boot + SPACING;
        let id = WorkId(self.next_id);
        for asked in self.recovering.sites.values_mut().filter_map(|known| known.asked.as_mut()) {
            asked.reading.get_or_insert(id);
        }
    }

    /// A task ended; if it was a reading of the primary for a comparison, that goes on.
    pub(in crate::group) fn take_reading(&mut self, id: WorkId, outcome: &Outcome) {
        let at = self.clock;
        for known in self.recovering.sites.values_mut() {
            let Some(mut asked) = known.asked.take_if(|asked| asked.reading == Some(id)) else { continue };
            asked.reading = None;
            match judge(&mut asked, outcome, at) {
                Some(verdict) => known.verdict = Some(verdict),
                None => known.asked = Some(asked),
            }
        }
    }
}

/// What a reading of the primary says about what a site said before; none: it is to be read again.
fn judge(asked: &mut Asked, outcome: &Outcome, at: Boot) -> Option<Verdict> {
    let Outcome::Read(primary) = outcome else { return None };
    // A commit that waits for a receipt is at those who receive it, and may wait for long.
    let primary = &primary.data.as_ref().filter(|_| primary.pair == Pair::OPEN)?.given(primary.server_uuid);
    let missing = asked.facts.data.as_ref()?.held().subtract(primary);
    let empty = is_empty_site(&asked.facts, primary);
    if !missing.is_empty() && !empty && asked.missed.is_none() {
        asked.missed = Some(missing);
        return None;
    }
    let (facts, primary) = (asked.facts.clone(), primary.clone());
    Some(Verdict { at, tenure: asked.tenure, facts, primary, missing, empty })
}

/// The rule for empty sites, as far as data go. A schema of a user without a transaction is doubtful: it is compared like
/// any other site, and never overwritten unasked.
pub(in crate::group) fn is_empty_site(facts: &Facts, primary: &GtidSet) -> bool {
    let Some(data) = facts.data.as_ref().filter(|_| facts.replica.is_none() && !facts.user_data) else { return false };
    let known: Vec<Uuid> = primary.uuids().collect();
    data.executed.is_empty() || !data.executed.uuids().any(|uuid| known.contains(&uuid))
}

/// Whether what was found out about the one is true of the other. The set of a site that follows nobody stands still; one
/// that receives moves on, and is compared for what it had.
fn same_ground(one: &Facts, other: &Facts) -> bool {
    let source = |facts: &Facts| {
        facts
            .replica
            .as_ref()
            .map(|replica| (replica.source.clone(), replica.receiver == crate::candidate::drain::Receiver::Stopped))
    };
    let still = one.replica.is_some() || (one.data == other.data && one.user_data == other.user_data);
    one.server_uuid == other.server_uuid && source(one) == source(other) && still
}

impl Verdict {
    /// It has neither transactions nor a schema of a user.
    pub(in crate::group) fn holds_nothing(&self) -> bool {
        self.empty && self.facts.data.as_ref().is_some_and(|data| data.held().is_empty())
    }

    /// It was found under that tenure.
    pub(super) fn is_about(&self, tenure: Epoch) -> bool {
        self.tenure == tenure
    }

    /// It has what the primary lacks, and that is worth something.
    pub(in crate::group) fn is_divergent(&self) -> bool {
        !self.empty && !self.missing.is_empty()
    }
}
