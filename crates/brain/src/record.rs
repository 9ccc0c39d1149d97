//! The record: the only answer to "who may write", and the view of it that sidecars get.
//!
//! In: nothing; these are words. Out: the same words everywhere. Must not: decide. What may follow upon what is in
//! [`crate::authority`].

use crate::name::{Instance, Member, Site};
use crate::time::{Millis, Wall};

/// Version of the record. Never reused, never goes back.
pub type Epoch = u64;

/// What the leader has persisted about authority. Compare-and-swap protected; every change is stored before anyone is
/// told and before anything that depends on it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    /// +1 on every change of seat, voters, settings, or phase to [`Phase::Revoking`].
    pub epoch: Epoch,
    /// Epoch of the grant that began the present holder's time; voter and settings epochs keep it.
    pub tenure: Epoch,
    /// Who may write; nobody while Revoking.
    pub seat: Option<Member>,
    /// How far the present move is.
    pub phase: Phase,
    /// Whose vouches count under this epoch.
    pub voters: Vec<Member>,
    /// Lease settings of this epoch. Never read from the spec on the side.
    pub settings: Settings,
    /// When this epoch began.
    pub since: Wall,
    /// Why this epoch began.
    pub cause: Cause,
    /// What showed that the last holder had let go.
    pub proof: Option<Proof>,
    /// First epoch of the present unbroken run of Revoking epochs.
    pub revoked_at: Option<Epoch>,
    /// The last instance that may have been writable. Replaced only by a grant with proof.
    pub holder: Option<Holder>,
    /// Instances seen to have ended; written before anyone acts on it.
    pub ended: Vec<Ended>,
}

/// How far a move is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Nobody may write.
    Revoking,
    /// The seat may, once opened.
    Granting,
    /// Opened and read back.
    Stable,
}

/// Why an epoch began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// First record of a group.
    Bootstrap,
    /// The holder was lost.
    Emergency,
    /// An admin asked for it.
    Planned,
    /// Hand-over of an ordered update.
    OrderedUpdate,
    /// Several writable sites without a record.
    SplitBrain,
    /// A site was opened by hand while the holder did not serve.
    Manual,
    /// A restore gave or took authority.
    Restore,
    /// A planned move was taken back.
    Rollback,
    /// The holder's site lives on as a new instance.
    Instance,
    /// The holder was fenced by others, or views conflicted.
    Regrant,
    /// Another set of voters.
    Voters,
    /// Other lease settings.
    Lease,
    /// A higher epoch was heard than the record had.
    RecordBehind,
}

/// Lease settings, as they travel in views.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Settings {
    /// How long a grant or a vouch lasts.
    pub lease_timeout: Millis,
    /// How many distinct vouches renew the lease while the leader is silent.
    pub min_peers: u32,
}

/// The last instance that may have been writable.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Holder {
    /// Which life of which site.
    pub member: Member,
    /// The server it ran, once seen; mutating statements compare it.
    pub server_uuid: Option<String>,
    /// Every voter set, with its settings, that it may still hold. The newest is last.
    pub sets: Vec<VoterSet>,
    /// The leader sent it an SQL fence since its last grant (noted here before it was sent).
    pub sql_fence_sent: bool,
}

/// Voters with the settings under which their vouches are counted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VoterSet {
    /// The epoch that brought this set.
    pub epoch: Epoch,
    /// Who may vouch, the holder itself included.
    pub voters: Vec<Member>,
    /// For how long, and how many are needed.
    pub settings: Settings,
}

/// An instance that has ended: no container of it runs or can ever start again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ended {
    /// Which life of which site.
    pub member: Member,
    /// When it was seen.
    pub at: Wall,
}

/// What showed that a holder had let go.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Proof {
    /// By which rule.
    pub kind: ProofKind,
    /// About whom.
    pub about: Member,
    /// When it was found.
    pub at: Wall,
}

/// The rules by which a release is proven.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProofKind {
    /// The holder's own sidecar acknowledged the revocation, fenced.
    FencedBySidecar,
    /// The holder's instance has ended.
    ProcessEnded,
    /// Nobody is left who could prolong its lease, and the lease has run out.
    LeaseExpired,
    /// The same time has passed without enough acknowledgements; only with `spec.promotion.proof: BestEffort`.
    Assumed,
}

/// The copy of the record that sidecars store, order by epoch, and act on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct View {
    /// See [`Record::epoch`].
    pub epoch: Epoch,
    /// See [`Record::tenure`].
    pub tenure: Epoch,
    /// See [`Record::phase`].
    pub phase: Phase,
    /// See [`Record::seat`].
    pub seat: Option<Member>,
    /// See [`Record::voters`].
    pub voters: Vec<Member>,
    /// See [`Record::settings`].
    pub settings: Settings,
}

impl Settings {
    /// How many distinct vouches renew a lease among so many voters (the holder included): at least one.
    pub fn vouches_needed(&self, voters: usize) -> usize {
        let most = voters.saturating_sub(1);
        usize::try_from(self.min_peers).unwrap_or(usize::MAX).min(most).max(1)
    }

    /// What a proof waits beyond the lease: 1 % of it for clock rates, and 3 s for the fence itself
    /// (timer 0.25, ladder or dead man 2.5, scheduling 0.25).
    pub fn margin(&self) -> Millis {
        Millis(self.lease_timeout.0.div_ceil(100)) + Millis(3000)
    }

    /// Lease and margin together: after this long without renewal the instance is fenced or dead.
    pub fn run_out(&self) -> Millis {
        self.lease_timeout + self.margin()
    }
}

impl Record {
    /// The view that sidecars get.
    pub fn view(&self) -> View {
        View {
            epoch: self.epoch,
            tenure: self.tenure,
            phase: self.phase,
            seat: self.seat.clone(),
            voters: self.voters.clone(),
            settings: self.settings,
        }
    }

    /// Every instance that the record names: as seat, holder, voter, or in a set. One may come several times.
    pub fn members(&self) -> impl Iterator<Item = &Member> {
        let holder = self.holder.iter();
        let in_sets = holder.clone().flat_map(|holder| &holder.sets).flat_map(|set| &set.voters);
        self.voters.iter().chain(&self.seat).chain(holder.map(|holder| &holder.member)).chain(in_sets)
    }

    /// Whether the record names that instance anywhere.
    pub fn lists(&self, member: &Member) -> bool {
        self.members().any(|named| named == member)
    }

    /// Whether that instance was seen to have ended.
    pub fn has_ended(&self, member: &Member) -> bool {
        self.ended.iter().any(|ended| ended.member == *member)
    }

    /// The present instance of that site, as the record knows it.
    pub fn voter_at(&self, site: &Site) -> Option<&Instance> {
        self.voters.iter().find(|voter| voter.site == *site).map(|voter| &voter.instance)
    }
}

impl View {
    /// Whether this view gives authority to that instance.
    pub fn names(&self, member: &Member) -> bool {
        self.phase != Phase::Revoking && self.seat.as_ref() == Some(member)
    }

    /// Whether this view knows that instance at all. Only under such a view may it vouch or open.
    pub fn lists(&self, member: &Member) -> bool {
        self.seat.as_ref() == Some(member) || self.voters.contains(member)
    }

    /// Whether two views of one epoch contradict each other. Phase does not count: Granting becomes Stable.
    pub fn conflicts_with(&self, other: &Self) -> bool {
        self.epoch == other.epoch
            && (self.tenure != other.tenure
                || self.seat != other.seat
                || self.voters != other.voters
                || self.settings != other.settings)
    }
}
