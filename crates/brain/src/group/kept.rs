//! What outlives a leader: everything that the next one has to know, and nothing else. It is stored in the group's
//! status (the record in an annotation, too) and read back from there exactly.
//!
//! In: nothing; these are words. Must not: hold what polls and sidecars say anew every second.

use crate::name::Site;
use crate::record::{Epoch, Record};
use crate::time::{Millis, Wall};
use bloodraven_gtid::GtidSet;
use std::collections::BTreeMap;

/// See above.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Kept {
    /// Who may write; none: no history.
    pub record: Option<Record>,
    /// The last confirmed move to another site; starts the cooldown.
    pub last_failover: Option<Move>,
    /// What the present holder had executed just before it was opened; none while that is not known yet.
    pub promotion: Option<GtidSet>,
    /// What the present holder had received and could not apply; given up when it was promoted.
    pub unapplied: GtidSet,
    /// The planned failover under way, or the last one.
    pub planned: Option<Planned>,
    /// The ordered update under way.
    pub update: Option<Update>,
    /// What is known of each site for longer than a poll.
    pub sites: BTreeMap<Site, SiteKept>,
    /// The cache.
    pub cache: Option<CacheKept>,
}

/// The part of it that is stored twice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Anchor {
    /// See [`Kept::record`].
    pub record: Option<Record>,
    /// See [`Kept::last_failover`].
    pub last_failover: Option<Move>,
    /// See [`Kept::promotion`].
    pub promotion: Option<GtidSet>,
    /// See [`Kept::unapplied`].
    pub unapplied: GtidSet,
}

/// A move of authority to another site.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Move {
    /// When it was confirmed.
    pub at: Wall,
    /// Where to.
    pub to: Site,
}

/// One site, for longer than a poll.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SiteKept {
    /// Whether it is being brought back, or may not be.
    pub recovery: Recovery,
    /// What it has and the primary lacks; kept until a reading disproves it. Empty: nothing.
    pub divergent: GtidSet,
    /// The clone into it.
    pub clone: Option<CloneKept>,
    /// Its nodes should carry the read-only taint.
    pub tainted: bool,
}

/// Whether a site is being brought back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Recovery {
    /// Neither.
    #[default]
    None,
    /// It is being attached to the primary.
    InProgress,
    /// It has what the primary lacks: never attached, never cloned without being asked for.
    Blocked,
}

/// A clone into a site.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CloneKept {
    /// How far it is.
    pub phase: ClonePhase,
    /// Why it is made.
    pub source: CloneSource,
    /// Attempts begun.
    pub attempts: u32,
    /// Bytes copied, bytes in all; as last reported.
    pub bytes: Option<(u64, u64)>,
    /// For people.
    pub message: String,
}

/// How far a clone is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClonePhase {
    /// Data are copied.
    Cloning,
    /// The server restarts on the copy.
    WaitingForRestart,
    /// It is attached to the primary.
    SetupReplication,
    /// Over, well.
    Done,
    /// Given up until spec, Secret or annotation change.
    Failed,
}

/// Why a clone is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CloneSource {
    /// A fresh group fills its other sites.
    FreshDeploy,
    /// A site was found empty.
    AutoClone,
    /// An admin asked for it.
    Reclone,
}

/// A planned failover.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Planned {
    /// How far it is.
    pub phase: PlannedPhase,
    /// The request's own name.
    pub request_id: String,
    /// Who asked.
    pub origin: Origin,
    /// Where to.
    pub target: Site,
    /// Where from.
    pub source: Site,
    /// What the source had executed after its fence.
    pub source_gtid: Option<GtidSet>,
    /// What the target had executed before it was opened.
    pub target_gtid: Option<GtidSet>,
    /// When it was accepted.
    pub started: Wall,
    /// When it was over.
    pub completed: Option<Wall>,
    /// Transactions of the source that the target lacks: zero, by construction.
    pub transactions_lost: Option<u64>,
    /// Why it failed, or waits.
    pub reason: Option<PlannedReason>,
    /// For people.
    pub message: String,
    /// Bound of the wait for the target.
    pub max_lag_wait: Millis,
    /// Bound of ending sessions.
    pub drain_timeout: Millis,
    /// When ending sessions began.
    pub drain_started: Option<Wall>,
    /// Sessions that were left.
    pub remaining_connections: Option<u64>,
    /// When the wait for the target began.
    pub lag_wait_started: Option<Wall>,
    /// A deferred one goes on at this time.
    pub retry_after: Option<Wall>,
    /// The cache's part.
    pub cache: Option<PlannedCache>,
}

/// The cache's part in a planned failover.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PlannedCache {
    /// When the wait for its target began.
    pub sync_wait_started: Option<Wall>,
    /// The source's offset when writes had stopped.
    pub source_offset: Option<u64>,
    /// The source's offset could not be read.
    pub offset_capture_failed: bool,
    /// The target's offset when it was promoted.
    pub target_offset: Option<u64>,
    /// How long the wait took, in seconds.
    pub sync_wait_seconds: Option<u64>,
    /// Whether sessions were kept.
    pub sessions_preserved: Option<bool>,
    /// How it was promoted.
    pub method: PromotionMethod,
    /// Why it did not go as it should.
    pub reason: Option<PlannedReason>,
    /// For people.
    pub message: String,
}

/// How a cache was promoted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PromotionMethod {
    /// It was not.
    #[default]
    None,
    /// With everything that the old master had.
    Takeover,
    /// With what had arrived.
    NoOne,
    /// It was turned off meanwhile.
    Skipped,
}

/// How far a planned failover is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PlannedPhase {
    /// Accepted.
    Pending,
    /// All checks once more.
    Validating,
    /// Waits for the end of the cooldown; nothing is held up by it.
    Deferred,
    /// The source is fenced, its sessions are ended.
    Draining,
    /// The target applies what the source had.
    WaitingForLag,
    /// The target's cache catches up.
    WaitingForCache,
    /// The cache is promoted.
    PromotingCache,
    /// Authority goes to the target.
    Promoting,
    /// The target is open; everything follows.
    Resuming,
    /// Over, well.
    Succeeded,
    /// Over, and the source has authority again, or the emergency path goes on.
    Failed,
}

/// Who asked for a planned failover.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    /// An admin.
    Annotation,
    /// An ordered update.
    OrderedUpdate,
}

/// Why a planned failover failed, or waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PlannedReason {
    /// The cooldown is in force.
    CooldownActive,
    /// No such site, or one that is never promoted.
    UnknownSite,
    /// The target cannot take over.
    TargetUnhealthy,
    /// Something else is under way.
    ConcurrentOperation,
    /// The request is not understood.
    InvalidAnnotation,
    /// The group is paused.
    Paused,
    /// The request was taken back.
    Cancelled,
    /// The target became active by another way.
    AlreadyActive,
    /// The target did not catch up in time.
    LagTimeout,
    /// A GTID set is not understood.
    InvalidGtid,
    /// The source was lost on the way.
    SourceCrashed,
    /// The target could not be opened in time.
    ExecuteFailed,
    /// The target's cache did not catch up in time.
    CacheSyncTimeout,
    /// The target's cache could not be promoted.
    CachePromotionFailed,
    /// The source did not acknowledge its fence.
    InternalError,
}

/// An ordered update.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Update {
    /// How far it is.
    pub phase: UpdatePhase,
    /// The site that is being rolled.
    pub site: Option<Site>,
    /// When this phase began.
    pub since: Wall,
    /// Why it stands still; it goes on when the cause is gone.
    pub stopped: Option<String>,
}

/// How far an ordered update is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UpdatePhase {
    /// A follower is being rolled.
    UpdateReplica,
    /// It comes back.
    WaitReplica,
    /// The primary hands over.
    Failover,
    /// The old primary is being rolled.
    UpdateOldPrimary,
    /// It comes back.
    WaitOldPrimary,
    /// Over.
    Complete,
}

/// The cache, for longer than a poll.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct CacheKept {
    /// The site whose cache takes writes, as last known.
    pub active: Option<Site>,
    /// The last promotion: when, and where to.
    pub last_promotion: Option<Move>,
    /// A promotion that was begun and is not known to be over.
    pub promoting: Option<Site>,
    /// Masters that should be replicas, and since when they are known.
    pub stale_masters: BTreeMap<Site, Wall>,
    /// The snapshot upgrade under way, or the last one.
    pub upgrade: Option<CacheUpgrade>,
}

/// A snapshot upgrade of the cache.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CacheUpgrade {
    /// How far it is.
    pub phase: CacheUpgradePhase,
    /// The image before.
    pub from: String,
    /// The image wanted.
    pub to: String,
    /// The site whose cache takes writes.
    pub active: Site,
    /// Where the snapshot goes.
    pub snapshot_dir: String,
    /// When it began.
    pub started: Wall,
    /// When the snapshot was complete.
    pub snapshot_at: Option<Wall>,
    /// When it was over.
    pub completed: Option<Wall>,
    /// For people.
    pub message: String,
}

/// How far a snapshot upgrade is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CacheUpgradePhase {
    /// Accepted.
    Pending,
    /// The snapshot is written.
    SavingSnapshot,
    /// The active cache gets the new image.
    UpdatingActive,
    /// It reads the snapshot.
    WaitingForActiveRestore,
    /// The others follow it again.
    ReattachingReplicas,
    /// Over, well.
    Succeeded,
    /// Over, not well.
    Failed,
}

impl Kept {
    /// The record's epoch; 0 without one.
    pub fn epoch(&self) -> Epoch {
        self.record.as_ref().map_or(0, |record| record.epoch)
    }

    /// Every stamp that something is counted from.
    pub(super) fn stamps(&self) -> impl Iterator<Item = Wall> {
        let planned = self.planned.iter().flat_map(|planned| {
            let sync = planned.cache.as_ref().and_then(|cache| cache.sync_wait_started);
            let began = [planned.drain_started, planned.lag_wait_started, sync, planned.completed];
            began.into_iter().flatten().chain([planned.started])
        });
        let cache = self.cache.iter().flat_map(|cache| {
            let promoted = cache.last_promotion.iter().map(|last| last.at);
            promoted.chain(cache.stale_masters.values().copied())
        });
        let moved = self.last_failover.iter().map(|last| last.at);
        moved.chain(self.update.iter().map(|update| update.since)).chain(planned).chain(cache)
    }

    /// What is known of that site.
    pub fn site(&self, site: &Site) -> SiteKept {
        self.sites.get(site).cloned().unwrap_or_default()
    }

    /// The same, to look at.
    pub fn look(&self, site: &Site) -> &SiteKept {
        static NOTHING: SiteKept =
            SiteKept { recovery: Recovery::None, divergent: GtidSet::new(), clone: None, tainted: false };
        self.sites.get(site).unwrap_or(&NOTHING)
    }

    /// To change what is known of that site.
    pub fn site_mut(&mut self, site: &Site) -> &mut SiteKept {
        self.sites.entry(site.clone()).or_default()
    }

    /// The planned failover that holds everything else up.
    pub fn planned_active(&self) -> Option<&Planned> {
        self.planned.as_ref().filter(|planned| planned.phase.is_active())
    }

    /// The site that is being cloned into.
    pub fn cloning(&self) -> Option<&Site> {
        self.sites
            .iter()
            .find(|(_, kept)| kept.clone.as_ref().is_some_and(|clone| clone.phase.is_active()))
            .map(|(site, _)| site)
    }
}

impl PlannedPhase {
    /// Whether it is over.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }

    /// Whether it holds everything else up.
    pub const fn is_active(self) -> bool {
        !self.is_terminal() && !matches!(self, Self::Deferred)
    }
}

impl CloneKept {
    /// Whether the site is not to be promoted, nor brought back by anything but another clone. A copy over data that broke
    /// off leaves the old set of transactions without the tables that belong to it.
    pub fn holds_the_site(&self) -> bool {
        self.phase.is_active() || (self.phase == ClonePhase::Failed && self.source == CloneSource::Reclone)
    }
}

impl ClonePhase {
    /// Whether it goes on.
    pub const fn is_active(self) -> bool {
        !matches!(self, Self::Done | Self::Failed)
    }
}
