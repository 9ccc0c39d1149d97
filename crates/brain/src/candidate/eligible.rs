//! Who may be promoted at all. Nothing here depends on the dead primary: threads, links and lag are not asked for.

use super::{Busy, Candidate, Choice, Data, Progress, Sidecar};
use crate::name::{Instance, Member};
use crate::rule::{Rule, holds, off};
use crate::site::{Role, State};
use crate::topology::data_lost;
use bloodraven_gtid::GtidSet;
use std::fmt;

/// Why a site may not be promoted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Refusal {
    /// It is never promoted.
    DrOnly,
    /// It does not answer.
    NotReachable(State),
    /// Its variables are not both 1, or are not known.
    NotFenced,
    /// Nobody is there to open it.
    SidecarSilent,
    /// The record does not list its instance yet.
    SidecarNotListed,
    /// It has other work.
    Busy(Busy),
    /// It had authority, and has not answered often enough since it came back.
    JustReturned {
        /// Polls in a row that it answered.
        answers: u32,
        /// How many it takes.
        needed: u32,
    },
    /// Its sets were not read, or not understood.
    SetsUnknown,
    /// It has no data although data are known to exist.
    Empty,
}

/// A site that may be promoted.
#[derive(Clone, Debug)]
pub(super) struct Fit<'a> {
    pub(super) candidate: &'a Candidate,
    pub(super) member: Member,
    pub(super) data: &'a Data,
    /// What it would have as a primary: all it received; or, if it cannot apply that, only what it executed.
    pub(super) holds: GtidSet,
}

pub(super) fn check<'a>(choice: &Choice<'_>, candidate: &'a Candidate) -> Result<Fit<'a>, Refusal> {
    let instance = standing(candidate)?;
    returned(choice, candidate)?;
    let data = candidate.data.as_ref().ok_or(Refusal::SetsUnknown)?;
    let others = choice.sites.iter().filter_map(|site| Some(&site.data.as_ref()?.executed));
    let has_data = !data_lost(&data.held(), choice.last_promotion, others);
    if !holds(Rule::CandidateHasData, has_data) {
        return Err(Refusal::Empty);
    }
    let is_copy = candidate.busy == Some(Busy::Copied);
    if is_copy && !holds(Rule::CopyIsWhole, is_whole_copy(choice, data)) {
        return Err(Refusal::Busy(Busy::Copied));
    }
    let holds = match candidate.drain {
        Progress::Pending | Progress::Done => data.held(),
        Progress::GaveUp(_) => data.executed.clone(),
    };
    Ok(Fit { candidate, member: Member::new(&candidate.site, instance), data, holds })
}

fn standing(candidate: &Candidate) -> Result<&Instance, Refusal> {
    if !holds(Rule::CandidateRole, candidate.role != Role::DrOnly) {
        return Err(Refusal::DrOnly);
    }
    if !holds(Rule::CandidateReachable, candidate.state.is_reachable()) {
        return Err(Refusal::NotReachable(candidate.state));
    }
    if !holds(Rule::CandidateFenced, candidate.fenced && candidate.state == State::ReadOnly) {
        return Err(Refusal::NotFenced);
    }
    // A copy that is complete is judged by what it holds.
    if let Some(work) = candidate.busy.filter(|work| *work != Busy::Copied && !off(Rule::CandidateFree)) {
        return Err(Refusal::Busy(work));
    }
    match &candidate.sidecar {
        Sidecar::Silent => Err(Refusal::SidecarSilent),
        Sidecar::NotListed => Err(Refusal::SidecarNotListed),
        Sidecar::Listed(instance) => Ok(instance),
    }
}

/// A complete copy that was never compared with the primary: its donor may have been another one. It is one of the last
/// primary if it has all that this one began with, and beyond that nothing but what this one wrote.
fn is_whole_copy(choice: &Choice<'_>, data: &Data) -> bool {
    let held = data.held();
    let since = held.subtract(choice.last_promotion);
    held.contains(choice.last_promotion) && since.uuids().all(|uuid| Some(uuid) == choice.last_primary)
}

/// The site that had authority last is a candidate again once it has answered for a while: it has the freshest data.
fn returned(choice: &Choice<'_>, candidate: &Candidate) -> Result<(), Refusal> {
    let (answers, needed) = (candidate.answers, choice.recovery_threshold);
    let long_enough = choice.last_site != Some(&candidate.site) || answers >= needed;
    if !holds(Rule::CandidateReturned, long_enough) {
        return Err(Refusal::JustReturned { answers, needed });
    }
    Ok(())
}

impl Refusal {
    /// A new voter set or the next polls are sure to lift it.
    pub(crate) const fn passes_by_itself(self) -> bool {
        match self {
            Self::SidecarNotListed | Self::JustReturned { .. } => true,
            // One that is not fenced may let nobody in, and sets that are unknown may be what nobody understands: the next poll
            // that it answers is soon enough.
            Self::DrOnly
            | Self::NotReachable(_)
            | Self::NotFenced
            | Self::SidecarSilent
            | Self::Busy(_)
            | Self::SetsUnknown
            | Self::Empty => false,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DrOnly => f.write_str("dr-only is never promoted"),
            Self::NotReachable(state) => write!(f, "{state}"),
            Self::NotFenced => f.write_str("not fenced"),
            Self::SidecarSilent => f.write_str("its sidecar is silent"),
            Self::SidecarNotListed => f.write_str("its instance is not listed yet"),
            Self::Busy(Busy::RecoveryBlocked) => f.write_str("it has divergent transactions"),
            Self::Busy(Busy::Cloning) => f.write_str("it is being cloned"),
            Self::Busy(Busy::Copied) => f.write_str("its copy has not been compared with a primary"),
            Self::Busy(Busy::Restoring) => f.write_str("a restore works on it"),
            Self::JustReturned { answers, needed } => write!(f, "it came back {answers} of {needed} polls ago"),
            Self::SetsUnknown => f.write_str("its GTID sets are unknown"),
            Self::Empty => f.write_str("it has no data"),
        }
    }
}
