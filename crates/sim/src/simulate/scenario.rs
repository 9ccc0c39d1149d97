//! A scenario: how a group is set up, what happens to it and when, what is expected.
//!
//! In: nothing; these are words. Out: the same words for seeds, files and shrinking. Must not: decide anything.

use super::clock::{SEC, Time};
use super::net::{Channel, End};
use bloodraven_brain::group::kept::PlannedPhase;

/// The names of sites, in declared order.
pub const SITES: [&str; 5] = ["iad", "pdx", "fra", "sin", "gru"];

/// A group, the weather over it, and what must come of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scenario {
    /// Decides every delay and every order that the faults leave open.
    pub seed: u64,
    /// In one line.
    pub story: String,
    /// How the group is set up.
    pub setup: Setup,
    /// What happens, in order of time.
    pub faults: Vec<Timed>,
    /// When everything is healed.
    pub heal_at: Time,
    /// What must come of it, beyond the promises that hold in every run.
    pub expects: Vec<Expect>,
}

/// How a group is set up.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own, and all combinations occur")]
pub struct Setup {
    /// How many sites: 2 to 5.
    pub sites: usize,
    /// The last so many of them are never promoted.
    pub dr_only: usize,
    /// Operator processes: 1 or 2.
    pub operators: usize,
    /// `leaseTimeout`.
    pub lease: Time,
    /// `minPeers`.
    pub min_peers: u32,
    /// `pollInterval`.
    pub poll: Time,
    /// `failoverCooldown`.
    pub cooldown: Time,
    /// A fresh, empty group; else one that has served before and restarts.
    pub fresh: bool,
    /// `spec.promotion.proof: BestEffort`.
    pub best_effort: bool,
    /// The priority list names the sites in this order.
    pub priorities: Vec<usize>,
    /// Calendars of hosts differ.
    pub skewed: bool,
    /// The usual delay of a message.
    pub latency: Time,
    /// So many of a hundred messages come twice.
    pub twice: u64,
    /// Sites that never come back once they were lost.
    pub lost_for_ever: bool,
    /// Every site has a cache beside its server.
    pub caches: bool,
    /// A cache that cannot follow takes a planned failover back.
    pub caches_matter: bool,
    /// A write is acknowledged when another site has received it.
    pub semi_sync: bool,
    /// Every other transaction carries a tag.
    pub tagged: bool,
    /// The group's object is new, its volumes and sidecars are not.
    pub recordless: bool,
    /// Changed pods are replaced all at once.
    pub recreate: bool,
    /// What belongs to a promotion does not fit in the annotation: it stands in status alone.
    pub large_promotions: bool,
}

/// Something that happens at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timed {
    /// When.
    pub at: Time,
    /// What.
    pub what: Fault,
}

/// A process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Process {
    /// The server of a site.
    Mysqld(usize),
    /// The keeper of a site; its server dies with it.
    Keeper(usize),
    /// The sidecar of a site.
    Sidecar(usize),
    /// An operator.
    Operator(usize),
    /// The cache of a site.
    Cache(usize),
}

/// What the store may refuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusable {
    /// Writes of the group's status.
    Status,
    /// Writes of the record's annotation.
    Annotation,
    /// Writes of the operators' lease.
    Lease,
    /// Writes of labels.
    Labels,
    /// Writes of the DNS record.
    Dns,
    /// Take-overs between caches; not the store's, and refused all the same.
    Takeover,
}

/// A moment of the protocol at which a fault can lie in wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Moment {
    /// A revocation is stored.
    Revoked,
    /// A grant is stored.
    Granted,
    /// A keeper gives a permit.
    Permitted,
    /// A server is open.
    Opened,
    /// A sidecar begins to close its server.
    Fencing,
    /// A planned failover is stored in that phase; about its source.
    Planned(PlannedPhase),
}

/// Who is struck at that moment: the one that it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Victim {
    /// Its server is killed.
    Mysqld,
    /// Its keeper is killed.
    Keeper,
    /// Its sidecar is killed.
    Sidecar,
    /// Its server stands still for a while.
    MysqldStops,
    /// Its sidecar stands still for a while.
    SidecarStops,
    /// The operators are killed.
    Operator,
}

/// What an admin changes in the spec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edit {
    /// `leaseTimeout`.
    Lease(Time),
    /// `minPeers`.
    MinPeers(u32),
    /// `preferSite`.
    Prefer(usize),
    /// `paused`.
    Paused(bool),
    /// Something that every pod is made from.
    Template,
    /// The caches' image.
    CacheImage,
}

/// Something that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing arrives from the one at the other; none: on both channels.
    Cut(End, End, Option<Channel>),
    /// The same, both ways.
    CutBoth(End, End, Option<Channel>),
    /// All is as usual between the two, both ways.
    Mend(End, End),
    /// Cut from everyone, both ways.
    Isolate(End),
    /// As usual with everyone.
    Rejoin(End),
    /// So many of a hundred messages are lost between the two.
    Loss(End, End, u64),
    /// Messages between the two take so much longer.
    Delay(End, End, Time),
    /// SIGKILL; the kubelet starts it again.
    Kill(Process),
    /// SIGSTOP.
    Pause(Process),
    /// SIGCONT.
    Resume(Process),
    /// SIGKILL; nobody starts it again before it is released.
    Hold(Process),
    /// What was held starts again.
    Release(Process),
    /// SIGTERM for the server of a site, which ends in order and is held.
    Stop(usize),
    /// The operator dies after so many more commands.
    CrashAfter(usize, u32),
    /// The pod is deleted and replaced.
    DeletePod(usize),
    /// The pod is deleted by force, lives on behind a cut, and another one starts from the volume as it was.
    ForceDeletePod(usize),
    /// The pod is deleted and its volume is lost.
    LoseVolume(usize),
    /// The node is gone, with everything on it.
    LoseNode(usize),
    /// The node is back.
    ReturnNode(usize),
    /// The store refuses such writes.
    Deny(Refusable),
    /// It takes them again.
    Allow(Refusable),
    /// The store does not answer.
    StoreDown,
    /// It answers.
    StoreUp,
    /// The group's object is copied away.
    BackUpStore,
    /// It is what it was when it was copied; without a copy nothing happens.
    RestoreStore,
    /// Somebody else writes to the group's object: the next compare-and-swap is refused.
    Conflict,
    /// The disk of a site takes nothing any more.
    FillDisk(usize),
    /// It does.
    FreeDisk(usize),
    /// Statements at a site take so much longer.
    SlowSql(usize, Time),
    /// A session at a site holds up every fence for so long, unless it is ended.
    BlockFence(usize, Time),
    /// The applier of a site stops, without an error.
    StopApplier(usize),
    /// The applier of a site stops with an error.
    BreakApplier(usize),
    /// The applier of a site takes so long for each batch.
    SlowApplier(usize, Time),
    /// The applier of a site is set to wait so long; zero: not any more.
    DelayReplica(usize, Time),
    /// The receiver of a site stops.
    StopReceiver(usize),
    /// The binary logs of a site are purged.
    Purge(usize),
    /// A human closes the server of a site.
    HumanFence(usize),
    /// A human opens the server of a site.
    HumanOpen(usize),
    /// An admin changes the spec.
    Edit(Edit),
    /// An admin asks for a planned failover.
    Planned(usize),
    /// An admin asks for a reclone, knowing what is lost.
    Reclone(usize),
    /// From now on: at the next such moment, that one is struck, once.
    Ambush(Moment, Victim),
    /// The calendar of a host jumps, in seconds.
    ClockJump(End, i64),
    /// No fault: at that moment the server of a site must be closed, or dead.
    MustBeClosed(usize),
}

/// What must come of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// That site has authority in the end, and serves.
    Primary(usize),
    /// Nobody writes in the end.
    NoPrimary,
    /// So many moves to another site were confirmed.
    Failovers(u32),
    /// The last planned failover succeeded, or did not.
    Planned(bool),
    /// That site has what the primary lacks, and it is said.
    Divergent(usize),
    /// The cache of that site is the master.
    Cache(usize),
    /// Every pod is what the spec wants.
    Updated,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            sites: 3,
            dr_only: 0,
            operators: 1,
            lease: 20 * SEC,
            min_peers: 1,
            poll: 2 * SEC,
            cooldown: 300 * SEC,
            fresh: false,
            best_effort: false,
            priorities: Vec::new(),
            skewed: false,
            latency: 1000,
            twice: 0,
            lost_for_ever: false,
            caches: false,
            caches_matter: false,
            semi_sync: false,
            tagged: false,
            recordless: false,
            recreate: false,
            large_promotions: false,
        }
    }
}

impl Setup {
    /// Whether that site may be promoted.
    pub const fn is_candidate(&self, site: usize) -> bool {
        site + self.dr_only < self.sites
    }

    /// A request inside the cooldown is kept until it is over; a matter of the setup like any other.
    pub(super) const fn seeded_defer(&self) -> bool {
        self.cooldown.is_multiple_of(2_000_000)
    }
}

impl Fault {
    /// Whether it only undoes another.
    pub const fn is_cure(&self) -> bool {
        matches!(
            self,
            Self::Mend(..)
                | Self::Rejoin(_)
                | Self::Resume(_)
                | Self::Release(_)
                | Self::ReturnNode(_)
                | Self::Allow(_)
                | Self::StoreUp
                | Self::FreeDisk(_)
                | Self::Edit(Edit::Paused(false))
        )
    }
}
