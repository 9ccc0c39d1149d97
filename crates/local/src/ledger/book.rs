//! The book: open writes, what is settled, who held authority when.
//!
//! In: writes as they end, tenures as they are seen, evidence. Out: a verdict at any time. Must not: grow without bound.
//! A write that every site has is settled and only counted on; what cannot be settled is kept, up to [`MOST_OPEN`].

use super::hand::Hand;
use super::judge::{Evidence, Fate, overtaken_by, tenure_of};
use super::verdict::{Verdict, WrongSide};
use super::{Gaps, Moment, Outcome, SiteNumber, Tenure, Write};
use snafu::Snafu;
use std::collections::BTreeMap;

/// As many writes are kept until every site has them: an hour and a half at 150 acknowledged writes a second, 100 MB.
pub(super) const MOST_OPEN: usize = 800_000;

/// As many examples of each wrong are shown.
const EXAMPLES: usize = 10;

/// No more can be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Snafu)]
#[snafu(display("{MOST_OPEN} writes wait for a site that does not answer: bring it back, the load waits meanwhile"))]
pub struct Full;

/// How many writes ended how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// See [`Outcome::Acknowledged`].
    pub acknowledged: u64,
    /// See [`Outcome::Refused`].
    pub refused: u64,
    /// See [`Outcome::Unknown`].
    pub unknown: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    write: Write,
    /// A divergence report spoke of it; that stays true when the site is copied anew.
    reported: bool,
}

/// See above.
#[derive(Debug, Default)]
pub struct Book {
    sites: usize,
    open: BTreeMap<u64, Entry>,
    counts: Counts,
    /// Acknowledged writes by who acknowledged them.
    by_site: BTreeMap<SiteNumber, u64>,
    tenures: Vec<Tenure>,
    /// Of settled writes: the first acknowledgement under each tenure.
    first_settled: BTreeMap<u64, Moment>,
    settled_wrong: u64,
    settled_by_hand: u64,
    settled_reported: u64,
    wrong_examples: Vec<WrongSide>,
    /// The silences at the front door.
    pub gaps: Gaps,
    /// When people had opened which server.
    pub hand: Hand,
}

impl Book {
    /// An empty book for a group of so many sites.
    pub fn new(sites: usize) -> Self {
        Self { sites, ..Self::default() }
    }

    /// Takes down how a write ended. Refused ones are only counted.
    pub fn enter(&mut self, write: Write) -> Result<(), Full> {
        match write.outcome {
            Outcome::Refused => self.counts.refused += 1,
            Outcome::Unknown => self.counts.unknown += 1,
            Outcome::Acknowledged => {
                self.counts.acknowledged += 1;
                if write.door {
                    self.gaps.acknowledged(write.ended);
                }
                if let Some(site) = write.site {
                    *self.by_site.entry(site).or_default() += 1;
                }
                self.open.insert(write.id, Entry { write, reported: false });
            }
        }
        if self.is_full() { Err(Full) } else { Ok(()) }
    }

    /// Whether nothing more should be written until something is settled.
    pub fn is_full(&self) -> bool {
        self.open.len() >= MOST_OPEN
    }

    /// A tenure was seen. The first sight of a number counts.
    pub fn seen(&mut self, tenure: Tenure) {
        if self.tenures.iter().all(|known| known.number != tenure.number) {
            self.tenures.push(tenure);
            self.tenures.sort_by_key(|tenure| tenure.number);
        }
    }

    /// The tenures seen, oldest first.
    pub fn tenures(&self) -> &[Tenure] {
        &self.tenures
    }

    /// How often authority went to another site than the one before.
    pub fn moves(&self) -> usize {
        self.tenures.windows(2).filter(|pair| matches!(pair, [one, two] if one.site != two.site)).count()
    }

    /// How many writes ended how, so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// How many writes a site acknowledged.
    pub fn acknowledged_by(&self, site: SiteNumber) -> u64 {
        self.by_site.get(&site).copied().unwrap_or(0)
    }

    /// The ids that still have to be looked up, as ranges of one writer each (the bits above the lower 32 name run and
    /// writer).
    pub fn open_ranges(&self) -> Vec<(u64, u64)> {
        let mut ranges: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        for id in self.open.keys() {
            let range = ranges.entry(id >> 32).or_insert((*id, *id));
            *range = (range.0.min(*id), range.1.max(*id));
        }
        ranges.into_values().collect()
    }

    /// How many writes are open.
    pub fn open(&self) -> usize {
        self.open.len()
    }

    /// The judgement on this evidence. What is found to be reported is remembered; what everyone has is settled.
    pub fn judge(&mut self, evidence: &Evidence, now: Moment) -> Verdict {
        let first = self.first_acknowledged();
        let mut verdict = self.begin(evidence, now);
        let mut settled = Vec::new();
        for entry in self.open.values_mut() {
            let wrong = wrong_side(&self.tenures, &first, &entry.write);
            match wrong {
                Some(_) if self.hand.had_opened(&entry.write) => verdict.opened_by_hand += 1,
                Some(wrong) => {
                    verdict.wrong_side += 1;
                    note(&mut verdict.wrong_side_examples, wrong);
                }
                None => {}
            }
            let fate = evidence.fate(&entry.write, self.sites);
            entry.reported |= fate == Some(Fate::Reported);
            let missing = match fate {
                Some(Fate::Everywhere) => {
                    settled.push((entry.write, wrong));
                    continue;
                }
                None | Some(Fate::Kept) => continue,
                _ if entry.reported => {
                    verdict.reported += 1;
                    continue;
                }
                Some(Fate::Reported) => continue,
                Some(Fate::Unreported) => &mut verdict.unreported,
                Some(Fate::Stranded) => &mut verdict.stranded,
                Some(Fate::Lost) => &mut verdict.lost,
            };
            *missing += 1;
            note(&mut verdict.missing_examples, entry.write.id);
        }
        self.settle(settled);
        verdict
    }

    fn begin(&self, evidence: &Evidence, now: Moment) -> Verdict {
        let answers = |primary| evidence.executed.is_some() && evidence.readings.contains_key(&primary);
        let silent = !evidence.primary.is_some_and(answers);
        Verdict {
            acknowledged: self.counts.acknowledged,
            refused: self.counts.refused,
            unknown: self.counts.unknown,
            wrong_side: self.settled_wrong,
            opened_by_hand: self.settled_by_hand,
            wrong_side_examples: self.wrong_examples.clone(),
            reported: self.settled_reported,
            received_and_lost: evidence.received_and_lost(&self.tenures),
            longest_gap_us: self.gaps.longest(now),
            gaps: self.gaps.all(now),
            incomplete: silent.then(|| "there is no primary that answers".to_owned()),
            ..Verdict::default()
        }
    }

    /// The first acknowledgement under each tenure, settled writes included.
    fn first_acknowledged(&self) -> BTreeMap<u64, Moment> {
        let mut first = self.first_settled.clone();
        for Entry { write, .. } in self.open.values() {
            let tenure = write.site.and_then(|site| tenure_of(&self.tenures, site, write.ended));
            if let Some(tenure) = tenure {
                first.entry(tenure).and_modify(|at| *at = (*at).min(write.ended)).or_insert(write.ended);
            }
        }
        first
    }

    fn settle(&mut self, settled: Vec<(Write, Option<WrongSide>)>) {
        let first = self.first_acknowledged();
        for (write, wrong) in settled {
            self.open.remove(&write.id);
            match wrong {
                Some(_) if self.hand.had_opened(&write) => self.settled_by_hand += 1,
                Some(wrong) => {
                    self.settled_wrong += 1;
                    note(&mut self.wrong_examples, wrong);
                }
                None => {}
            }
        }
        self.first_settled = first;
    }
}

/// Whether the write was acknowledged by a site that had no right to.
fn wrong_side(tenures: &[Tenure], first: &BTreeMap<u64, Moment>, write: &Write) -> Option<WrongSide> {
    let site = write.site?;
    let Some(own) = tenure_of(tenures, site, write.ended) else {
        return Some(WrongSide { id: write.id, site, tenure: None, newer: None });
    };
    let newer = overtaken_by(tenures, first, site, own, write.sent)?;
    Some(WrongSide { id: write.id, site, tenure: Some(own), newer: Some(newer) })
}

fn note<T>(examples: &mut Vec<T>, example: T) {
    if examples.len() < EXAMPLES {
        examples.push(example);
    }
}
