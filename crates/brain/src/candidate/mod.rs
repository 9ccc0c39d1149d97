//! Whom to promote: the site that holds most, and only then the site that is liked most.
//!
//! In: every site with what it has executed and received, who was ever a primary, the priority list, a wish made by
//! hand. Out: a [`Decision`]: the chosen instance with the rule that decided, what the choice gives up, and why each
//! other site was refused. Must not: ask anything of the dead primary; a site is never refused because its source is
//! gone. Whether it is *safe* to promote is not asked here but by the proof of release.
//!
//! [`drain`] decides when a candidate has applied what it received.

mod compare;
pub mod drain;
mod eligible;

#[cfg(test)]
mod tests;

pub use eligible::Refusal;

use crate::name::{Instance, Member, Site};
use crate::rule::{Rule as Law, off};
use crate::site::{Role, State};
use bloodraven_gtid::{GtidSet, Uuid};
use std::collections::BTreeMap;
use std::fmt;

/// One site, as the choice sees it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Candidate {
    /// The site.
    pub site: Site,
    /// What it may become.
    pub role: Role,
    /// Its debounced state.
    pub state: State,
    /// Both variables were read as 1, no opening in flight.
    pub fenced: bool,
    /// Who would open it.
    pub sidecar: Sidecar,
    /// Work that keeps it from being promoted.
    pub busy: Option<Busy>,
    /// Polls in a row that it answered.
    pub answers: u32,
    /// What it has; none: not read, or not understood.
    pub data: Option<Data>,
    /// How far it is with applying what it received.
    pub drain: Progress,
}

/// Whether a site's sidecar can be granted authority.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Sidecar {
    /// It does not answer.
    Silent,
    /// It answers, but the record does not list its instance yet.
    NotListed,
    /// It answers, and the record lists it.
    Listed(Instance),
}

/// Work that keeps a site from being promoted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Busy {
    /// It has transactions that the last primary lacked.
    RecoveryBlocked,
    /// It is being overwritten by a clone.
    Cloning,
    /// A clone into it is complete, and it does not follow yet: it is promoted if the copy is whole.
    Copied,
    /// A restore works on it.
    Restoring,
}

/// What a site has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Data {
    /// `gtid_executed`.
    pub executed: GtidSet,
    /// `Retrieved_Gtid_Set`; empty: nothing is pending.
    pub received: GtidSet,
    /// `gtid_purged`: what its binary logs no longer have.
    pub purged: GtidSet,
    /// What it is committing: it may stand in its binary log, and others may have it, before it counts as executed.
    pub committing: GtidSet,
}

/// How far a candidate is with applying what it received.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Progress {
    /// Not over.
    Pending,
    /// All applied.
    Done,
    /// It cannot, or not in time.
    GaveUp(drain::Cause),
}

/// What the choice is made from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Choice<'a> {
    /// Every site, in declared order.
    pub sites: &'a [Candidate],
    /// The site that had authority last.
    pub last_site: Option<&'a Site>,
    /// Polls that site must have answered before it is a candidate again.
    pub recovery_threshold: u32,
    /// Servers that ever had authority.
    pub known_primaries: &'a [Uuid],
    /// The server that had it last.
    pub last_primary: Option<Uuid>,
    /// What the last primary began with.
    pub last_promotion: &'a GtidSet,
    /// The effective priority list.
    pub priorities: &'a [Site],
    /// The site that somebody opened by hand: first among equals.
    pub wish: Option<&'a Site>,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Decision {
    /// Whom to promote; none: nobody may be.
    pub chosen: Option<Chosen>,
    /// Who may not be, and why; declared order.
    pub refused: Vec<(Site, Refusal)>,
}

/// Whom to promote.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Chosen {
    /// The instance.
    pub member: Member,
    /// What decided.
    pub rule: Rule,
    /// How far its drain is; it is promoted only when that is over.
    pub drain: Progress,
    /// What it has received and not applied. Stored before its relay logs are purged.
    pub unapplied: GtidSet,
    /// What other sites have and it lacks: given up by this choice.
    pub given_up: BTreeMap<Site, GtidSet>,
    /// The candidates that it could not be compared with.
    pub incomparable: Vec<Difference>,
}

/// Two candidates of which each has what the other lacks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Difference {
    /// The one that was not chosen.
    pub other: Site,
    /// What only the chosen one has.
    pub only_chosen: GtidSet,
    /// What only the other one has.
    pub only_other: GtidSet,
}

/// What decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rule {
    /// How the sets compared.
    pub by: Comparison,
    /// What decided between those that compared equal.
    pub tie: Option<Tie>,
}

/// How the candidates' sets compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Comparison {
    /// There was one candidate.
    OnlyCandidate,
    /// One holds everything that the others hold, and more.
    StrictSuperset,
    /// Several hold the same, and nobody holds more.
    EqualSets,
    /// Incomparable, until only transactions of known primaries counted.
    KnownPrimaries,
    /// Incomparable even so: most transactions of the last primary. People are warned.
    MostOfLastPrimary,
}

/// What decided between equals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tie {
    /// Somebody opened it by hand.
    Wish,
    /// The others could not apply all that they received.
    Drained,
    /// Every follower can go on from its binary logs.
    BinaryLogs,
    /// The priority list.
    Priority,
    /// The order of declaration.
    DeclaredOrder,
}

/// Whom to promote now.
pub fn choose(choice: &Choice<'_>) -> Decision {
    let mut fit = Vec::new();
    let mut refused = Vec::new();
    for site in choice.sites {
        match eligible::check(choice, site) {
            Ok(fit_site) => fit.push(fit_site),
            Err(why) => refused.push((site.site.clone(), why)),
        }
    }
    Decision { chosen: compare::best(choice, &fit), refused }
}

impl Data {
    /// What the site has once its drain is done.
    pub fn held(&self) -> GtidSet {
        if off(Law::ReceivedCounts) { self.executed.clone() } else { self.executed.union(&self.received) }
    }

    /// What others may have from it. Of what it is committing only what bears its own name: anything else is somebody's
    /// session, which may take it back.
    pub fn given(&self, own: Uuid) -> GtidSet {
        let mut committing = self.committing.clone();
        committing.retain_uuids(&[own]);
        self.executed.union(&committing)
    }

    /// What it has received and not applied.
    pub fn unapplied(&self) -> GtidSet {
        self.received.subtract(&self.executed)
    }
}

impl Chosen {
    /// Whether people are warned that the choice was between sets that cannot be compared.
    pub fn is_doubtful(&self) -> bool {
        self.rule.by == Comparison::MostOfLastPrimary
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.by {
            Comparison::OnlyCandidate => "only candidate",
            Comparison::StrictSuperset => "strict superset",
            Comparison::EqualSets => "equal sets",
            Comparison::KnownPrimaries => "known primaries only",
            Comparison::MostOfLastPrimary => "most transactions of the last primary",
        })?;
        let tie = match self.tie {
            None => return Ok(()),
            Some(Tie::Wish) => "opened by hand",
            Some(Tie::Drained) => "fully drained",
            Some(Tie::BinaryLogs) => "binary logs for every follower",
            Some(Tie::Priority) => "priority",
            Some(Tie::DeclaredOrder) => "declared order",
        };
        write!(f, ", then {tie}")
    }
}
