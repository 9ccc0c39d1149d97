//! The data gate: which data may be opened, and which fences may be lifted.

use super::{Command, Marker, Mysqld, Sidecar};
use crate::message::{OpeningWord, QuestionId, StartId};
use crate::name::Site;
use crate::record::Epoch;
use crate::rule::{Rule, holds, off};
use crate::time::{Boot, Millis};
use bloodraven_gtid::GtidSet;
use std::collections::BTreeSet;

/// Why a server that has authority stays closed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Closed {
    /// No lease, or the view names somebody else.
    NotAllowed,
    /// The first opening of a tenure waits for the leader's word.
    NoWord,
    /// Somebody else closed it; only a new tenure lifts that.
    FencedByOthers,
    /// Its data lack what the promotion was decided on.
    LacksPromotion(GtidSet),
    /// Its data lack what a reachable site has.
    Behind(Site, GtidSet),
    /// mysqld does not run, or its state is not known yet.
    NotReady,
    /// A fence of an earlier life of this sidecar may land on it yet.
    StrayFence,
}

/// One asking of all voters for their executed sets, before a server is opened again.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Round {
    /// The start of mysqld that is to be opened.
    pub start: StartId,
    /// Questions without an answer yet.
    pub open: BTreeSet<QuestionId>,
}

impl Sidecar {
    /// Whether the server may be opened now: with the marker to write before the first opening of a tenure, or again
    /// under the marker at hand; or why it stays closed.
    pub fn gate(&self, now: Boot) -> Result<Option<Marker>, Closed> {
        let stored = self.heard.as_ref().is_some_and(|view| self.is_stored(view.epoch));
        if !self.allowed(now) || !holds(Rule::OpensUnderStored, stored) {
            return Err(Closed::NotAllowed);
        }
        let (Some(read), true) = (&self.read, self.fenced()) else {
            return Err(Closed::NotReady);
        };
        if !self.stays_open() {
            return Err(Closed::StrayFence);
        }
        let tenure = self.tenure();
        match &self.disk.marker {
            Some(marker) if marker.tenure == tenure && !self.never_read_back(marker) && !off(Rule::MarkerReopens) => {
                let ours = holds(Rule::ForeignFenceStays, self.own_fence(marker, tenure));
                ours.then_some(()).ok_or(Closed::FencedByOthers)?;
                self.not_behind(now, marker, &read.gtid).map(|()| None)
            }
            _ => self.first_opening(tenure, &read.gtid).map(Some),
        }
    }

    /// An attempt at the first opening that was never read back is no opening: with the leader's word at hand the next
    /// attempt is still the first.
    fn never_read_back(&self, marker: &Marker) -> bool {
        marker.start.is_none() && self.word.as_ref().is_some_and(|(of, _)| *of == marker.tenure)
    }

    /// Whether this tenure was opened here before, or was about to be.
    pub(super) fn was_opened(&self) -> bool {
        self.disk.marker.as_ref().is_some_and(|marker| marker.tenure == self.tenure())
    }

    /// Whether a server that is found open may stay so under this tenure: it was opened here before, or could be now.
    /// Otherwise somebody opened it before the leader had cut its replication and written down what it holds.
    pub(super) fn may_stay_open(&self) -> bool {
        let executed = self.read.as_ref().map(|read| &read.gtid);
        self.was_opened() || executed.is_some_and(|executed| self.first_opening(self.tenure(), executed).is_ok())
    }

    /// The leader's newest word replaces the one kept with the marker: what is reported as lost since then must not keep
    /// the server closed.
    pub(super) fn refresh_marker(&mut self, tenure: Epoch, word: &OpeningWord, out: &mut Vec<Command>) {
        if let Some(marker) = &mut self.disk.marker
            && marker.tenure == tenure
            && marker.word != *word
        {
            marker.word = word.clone();
            out.push(Command::WriteMarker(marker.clone()));
        }
    }

    /// The first opening of a tenure: the leader has said so, and the data are those it decided on.
    fn first_opening(&self, tenure: Epoch, executed: &GtidSet) -> Result<Marker, Closed> {
        let word = match &self.word {
            Some((of, word)) if holds(Rule::WordOfThisTenure, *of == tenure) => word.clone(),
            _ if off(Rule::FirstNeedsWord) => OpeningWord::default(),
            _ => return Err(Closed::NoWord),
        };
        let missing = word.promotion_gtid.subtract(executed);
        if !holds(Rule::PromotionContained, missing.is_empty()) {
            return Err(Closed::LacksPromotion(missing));
        }
        Ok(Marker { tenure, start: None, word })
    }

    /// Whether every voter has told its set, or stayed silent, since this start of mysqld was closed.
    pub(super) fn gate_round_over(&mut self, now: Boot, start: StartId, out: &mut Vec<Command>) -> bool {
        if let Some(round) = &mut self.round
            && round.start == start
        {
            round.open.retain(|id| self.asked.contains_key(id));
            return holds(Rule::AllAreAsked, round.open.is_empty());
        }
        let open = self.ask_voters(now, out);
        self.others.clear();
        self.round = Some(Round { start, open });
        false
    }

    /// Boot: the marker names another start. Lease and conflict: the note was written before that fence (under the
    /// disputed epoch itself nothing opens). Mismatch is ours too, but it ends with a newer tenure only.
    fn own_fence(&self, marker: &Marker, tenure: Epoch) -> bool {
        let Mysqld::Up(start) = self.mysqld else { return false };
        let boot = marker.start != Some(start);
        let lease = self.disk.note.as_ref().is_some_and(|note| note.tenure == tenure && note.start == start);
        boot || lease
    }

    /// Re-opening: this server has everything that a site heard from within a lease has, apart from what was given up.
    fn not_behind(&self, now: Boot, marker: &Marker, executed: &GtidSet) -> Result<(), Closed> {
        let lease = self.heard.as_ref().map_or(Millis(0), |view| view.settings.lease_timeout);
        for (site, (_, theirs)) in self.others.iter().filter(|(_, (told, _))| now < *told + lease) {
            let excused = marker.word.excused.get(site).filter(|_| !off(Rule::ExcusedIsLeftOut));
            let missing = theirs.subtract(&excused.cloned().unwrap_or_default()).subtract(executed);
            if !holds(Rule::NotBehind, missing.is_empty()) {
                return Err(Closed::Behind(site.clone(), missing));
            }
        }
        let missing = marker.word.promotion_gtid.subtract(executed);
        if holds(Rule::PromotionContained, missing.is_empty()) { Ok(()) } else { Err(Closed::LacksPromotion(missing)) }
    }
}
