//! The judgement: pure, on one reading of every site.
//!
//! In: open writes, tenures, a reading. Out: for each write what became of it. Must not: judge a write that ended after
//! the reading began: a server asked before it was told cannot know.

use super::{Moment, Outcome, SiteNumber, Tenure, Write};
use bloodraven_gtid::GtidSet;
use std::collections::{BTreeMap, BTreeSet};

/// What one site said about the writes it was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// Those it has.
    pub found: BTreeSet<u64>,
}

/// What a look at the whole group found.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// When the look began.
    pub began: Moment,
    /// The ids that were looked up, as ranges; none: all of them.
    pub asked: Option<Vec<(u64, u64)>>,
    /// Who holds authority, opened and read back.
    pub primary: Option<SiteNumber>,
    /// What each site said; a site that did not answer is missing.
    pub readings: BTreeMap<SiteNumber, Reading>,
    /// How many transactions each site's divergence report speaks of.
    pub reports: BTreeMap<SiteNumber, u64>,
    /// What each site had received (applied or not) while it followed.
    pub received: BTreeMap<SiteNumber, GtidSet>,
    /// What the divergence reports list.
    pub divergent: GtidSet,
    /// What the primary has executed, read after all that was received; none: it did not answer.
    pub executed: Option<GtidSet>,
}

/// What became of an acknowledged write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// On every site.
    Everywhere,
    /// On the primary.
    Kept,
    /// On another site, in its report.
    Reported,
    /// On another site, in no report.
    Unreported,
    /// Whoever acknowledged it does not answer.
    Stranded,
    /// Nowhere.
    Lost,
}

impl Evidence {
    /// What became of this write; none: it cannot be judged on this evidence.
    pub(super) fn fate(&self, write: &Write, sites: usize) -> Option<Fate> {
        let primary = self.readings.get(&self.primary?)?;
        if write.outcome != Outcome::Acknowledged || write.ended >= self.began {
            return None;
        }
        // Ended before the look began and entered after it: nobody was asked for it.
        let in_range = |(first, last): &(u64, u64)| (*first..=*last).contains(&write.id);
        if self.asked.as_ref().is_some_and(|asked| !asked.iter().any(in_range)) {
            return None;
        }
        let has = |reading: &Reading| reading.found.contains(&write.id);
        if has(primary) {
            let everywhere = self.readings.len() == sites && self.readings.values().all(has);
            return Some(if everywhere { Fate::Everywhere } else { Fate::Kept });
        }
        let holders = self.readings.iter().filter(|(_, reading)| has(reading)).map(|(site, _)| site);
        let holders: Vec<&SiteNumber> = holders.collect();
        if holders.iter().any(|site| self.reports.get(site).is_some_and(|count| *count > 0)) {
            return Some(Fate::Reported);
        }
        if !holders.is_empty() {
            return Some(Fate::Unreported);
        }
        let origin_asked = write.site.is_some_and(|site| self.readings.contains_key(&site));
        let all_asked = self.readings.len() == sites;
        Some(if origin_asked || all_asked { Fate::Lost } else { Fate::Stranded })
    }

    /// What a later primary had received and is gone: neither on the primary nor reported.
    pub(super) fn received_and_lost(&self, tenures: &[Tenure]) -> u64 {
        let Some(executed) = &self.executed else { return 0 };
        let mut lost = GtidSet::new();
        for (site, received) in &self.received {
            if tenures.iter().any(|tenure| tenure.site == *site) {
                lost = lost.union(&received.subtract(executed).subtract(&self.divergent));
            }
        }
        u64::try_from(lost.count()).unwrap_or(u64::MAX)
    }
}

/// The tenure that a write by `site` with that end can have been made under at best: the newest of that site that had
/// begun.
pub(super) fn tenure_of(tenures: &[Tenure], site: SiteNumber, ended: Moment) -> Option<u64> {
    let begun = tenures.iter().filter(|tenure| tenure.site == site && tenure.from <= ended);
    begun.map(|tenure| tenure.number).max()
}

/// The oldest tenure newer than `own` that another site had acknowledged under before `sent`.
pub(super) fn overtaken_by(
    tenures: &[Tenure],
    first_acknowledged: &BTreeMap<u64, Moment>,
    site: SiteNumber,
    own: u64,
    sent: Moment,
) -> Option<u64> {
    let newer = tenures.iter().filter(|tenure| tenure.site != site && tenure.number > own);
    let earlier = |tenure: &&Tenure| first_acknowledged.get(&tenure.number).is_some_and(|first| *first < sent);
    newer.filter(earlier).map(|tenure| tenure.number).min()
}
