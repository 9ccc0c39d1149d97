//! What an admin wants, as the brain reads it: checked elsewhere, complete, in the brain's own words.
//!
//! In: nothing; these are words. Must not: be anything but what the validated spec says; lease settings take effect by a
//! change of the record only.

use crate::authority::Policy;
use crate::name::Site;
use crate::record::Settings;
use crate::site::{Role, Thresholds};
use crate::time::{Millis, Wall};

/// One group, as wanted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Spec {
    /// The group's name: what a cold reclone has to confirm.
    pub name: String,
    /// All sites, in declared order.
    pub sites: Vec<SiteSpec>,
    /// Period and timeout of a poll.
    pub poll_interval: Millis,
    /// How many polls in a row decide.
    pub thresholds: Thresholds,
    /// Pause between moves.
    pub cooldown: Millis,
    /// What counts as a proof.
    pub proof: Policy,
    /// Lease settings that the record should have.
    pub lease: Settings,
    /// Views are pushed at least this often.
    pub peer_check: Millis,
    /// The effective priority list.
    pub priorities: Vec<Site>,
    /// Above this lag a replica is alerted and sheds reads.
    pub max_lag: Millis,
    /// What a commit waits for.
    pub durability: Durability,
    /// Planned failover.
    pub planned: PlannedSpec,
    /// The cache, when there is one.
    pub cache: Option<CacheSpec>,
    /// How changed pods are rolled.
    pub update: UpdateStrategy,
    /// Bound of one clone.
    pub clone_timeout: Millis,
    /// Whether there is a replication account; without one nothing is attached and nothing cloned.
    pub replication_account: bool,
    /// The maintenance switch.
    pub paused: Option<Pause>,
}

/// One site, as wanted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SiteSpec {
    /// Its name.
    pub site: Site,
    /// What it may become.
    pub role: Role,
}

/// `spec.replication.durability`: what a commit waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Durability {
    /// For nobody else.
    Async,
    /// Until a primary-candidate has received it.
    SemiSync {
        /// So long; then the server goes on without. Zero: for ever. See [`Durability::semi_sync`].
        timeout: Millis,
    },
}

/// `spec.plannedFailover`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PlannedSpec {
    /// Bound of the wait for the target to catch up.
    pub max_lag_wait: Millis,
    /// Bound of ending the applications' sessions.
    pub drain_timeout: Millis,
    /// A request inside the cooldown is kept until it is over (else rejected).
    pub defer: bool,
}

/// `spec.dragonfly`, as far as it is decided about here.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CacheSpec {
    /// The image that its pods should run.
    pub image: String,
    /// Bound of the wait for the target's cache.
    pub max_sync_wait: Millis,
    /// A cache that does not catch up takes the planned failover back (else it goes on without the sessions).
    pub fail_on_timeout: bool,
    /// How long a returned master that took writes is kept.
    pub stale_master_grace: Millis,
    /// Where snapshots go; a snapshot upgrade needs it.
    pub snapshot_dir: Option<String>,
}

/// How changed pods are rolled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UpdateStrategy {
    /// Replicas first, the primary last and only after it has handed over.
    Ordered,
    /// All at once.
    Recreate,
}

/// `spec.paused`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pause {
    /// For people.
    pub reason: String,
    /// After this time the group is not paused any more.
    pub until: Option<Wall>,
}

impl Durability {
    /// The largest wait that a server takes: as good as for ever.
    const FOR_EVER: Millis = Millis(4_294_967_295);

    /// A wait in one form: zero, or as long as a server can wait, is for ever.
    pub const fn wait(timeout: Millis) -> Millis {
        if timeout.0 >= Self::FOR_EVER.0 { Millis(0) } else { timeout }
    }

    /// Receipts, waited for so long; zero: for ever.
    pub const fn semi_sync(timeout: Millis) -> Self {
        Self::SemiSync { timeout: Self::wait(timeout) }
    }
}

impl Spec {
    /// What is wanted of that site.
    pub fn site(&self, site: &Site) -> Option<&SiteSpec> {
        self.sites.iter().find(|spec| spec.site == *site)
    }

    /// The names of all sites, in declared order.
    pub fn names(&self) -> Vec<Site> {
        self.sites.iter().map(|spec| spec.site.clone()).collect()
    }

    /// Whether that site may be promoted.
    pub fn is_candidate(&self, site: &Site) -> bool {
        self.site(site).is_some_and(|spec| spec.role == Role::PrimaryCandidate)
    }

    /// The pause that is in force.
    pub fn pause(&self, now: Wall) -> Option<&Pause> {
        self.paused.as_ref().filter(|pause| pause.until.is_none_or(|until| now < until))
    }

    /// The site that a fresh group begins with: the first of the priority list, else the first declared candidate.
    pub fn seed(&self) -> Option<&Site> {
        let listed = self.priorities.iter().find(|site| self.is_candidate(site));
        listed.or_else(|| self.sites.iter().find(|spec| spec.role == Role::PrimaryCandidate).map(|spec| &spec.site))
    }
}
