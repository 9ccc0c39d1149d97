//! How far a site is from following the primary directly, for the status report.
//!
//! In: what is stored and seen. Out: words. Must not: decide anything.

use super::super::kept::Recovery;
use super::super::{Group, Kept};
use crate::candidate::drain::Applier;
use crate::name::Site;

/// `sourceConvergenceState` and `sourceConvergenceReason`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Convergence {
    /// How far.
    pub state: ConvergenceState,
    /// Why.
    pub reason: ConvergenceReason,
}

/// How far a site is from following the primary directly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConvergenceState {
    /// It is pointed at the primary.
    Converged,
    /// It will be.
    Pending,
    /// It may not be.
    Blocked,
}

/// Why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConvergenceReason {
    /// Its source is the primary.
    DirectSource,
    /// Its source is another one, or it has none.
    SourceMismatch,
    /// It does not answer, or not in a way that is understood.
    ProbeFailed,
    /// It could not be pointed.
    MutationFailed,
    /// It has what the primary lacks.
    GtidDiverged,
}

impl Convergence {
    const fn new(state: ConvergenceState, reason: ConvergenceReason) -> Self {
        Self { state, reason }
    }
}

impl ConvergenceState {
    /// The word of status.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Converged => "Converged",
            Self::Pending => "Pending",
            Self::Blocked => "Blocked",
        }
    }
}

impl ConvergenceReason {
    /// The word of status.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::DirectSource => "DirectSource",
            Self::SourceMismatch => "SourceMismatch",
            Self::ProbeFailed => "ProbeFailed",
            Self::MutationFailed => "MutationFailed",
            Self::GtidDiverged => "GTIDDiverged",
        }
    }
}

impl Group {
    /// How far that site is from following the primary directly; none for the primary itself, and without one.
    pub fn convergence(&self, kept: &Kept, site: &Site) -> Option<Convergence> {
        let seat = kept.record.as_ref()?.seat.as_ref().filter(|seat| seat.site != *site)?;
        let stored = kept.site(site);
        if stored.recovery == Recovery::Blocked || !stored.divergent.is_empty() {
            return Some(Convergence::new(ConvergenceState::Blocked, ConvergenceReason::GtidDiverged));
        }
        let seen = self.seen.site(site)?;
        let pending = |reason| Some(Convergence::new(ConvergenceState::Pending, reason));
        let Some(facts) = seen.facts.as_ref().filter(|facts| seen.watch.state.is_reachable() && facts.data.is_some())
        else {
            return pending(ConvergenceReason::ProbeFailed);
        };
        let source = facts.replica.as_ref().and_then(|replica| replica.source.as_ref());
        if source == Some(&seat.site) {
            return Some(Convergence::new(ConvergenceState::Converged, ConvergenceReason::DirectSource));
        }
        if seen.change.failures > 0 {
            return pending(ConvergenceReason::MutationFailed);
        }
        pending(ConvergenceReason::SourceMismatch)
    }

    /// Whether both threads of that site run and its source is the holder, on two polls in a row.
    pub fn is_replicating(&self, kept: &Kept, site: &Site) -> bool {
        let seat = kept.record.as_ref().and_then(|record| record.seat.as_ref()).map(|seat| &seat.site);
        let Some(seen) = self.seen.site(site) else { return false };
        let follows = seen.facts.as_ref().is_some_and(|facts| super::super::absorb::follows(facts, seat));
        follows && seen.following >= 2 && seen.watch.state.is_reachable()
    }

    /// What keeps a site from replicating, in its own words: an error is reported, never tried over and over.
    pub fn replication_trouble(&self, site: &Site) -> Option<String> {
        let facts = self.seen.site(site)?.facts.as_ref()?;
        if facts.data.is_none() {
            return Some(
                "InvalidGTID: its GTID sets are not understood, so it is neither attached nor cloned".to_owned(),
            );
        }
        let replica = facts.replica.as_ref()?;
        match (&replica.applier, &replica.receiver_error) {
            (Applier::Failed { code, message }, _) => Some(format!("applier stopped with error {code}: {message}")),
            (_, Some(error)) => Some(format!("receiver stopped with an error: {error}")),
            (Applier::Running | Applier::Stopped, None) => None,
        }
    }
}
