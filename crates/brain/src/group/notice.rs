//! What people are told: facts that have happened, with what they rest on. Events, logs and counters are made from these,
//! so they say the same.
//!
//! A notice about something that is stored is given when it is stored, never before.

use super::accounts::AccountRole;
use super::kept::{ClonePhase, CloneSource, PlannedPhase, PlannedReason, UpdatePhase};
use crate::candidate::Difference;
use crate::cooldown;
use crate::name::{Member, Site};
use crate::record::{Cause, Epoch, Phase, Proof};
use crate::site::Transition;
use crate::time::Millis;
use crate::topology::Alert;
use bloodraven_gtid::GtidSet;
use std::collections::BTreeMap;

/// See above.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Notice {
    /// A site's debounced state changed.
    StateChanged(Transition),
    /// The record changed.
    AuthorityChanged {
        /// Its epoch.
        epoch: Epoch,
        /// Its phase.
        phase: Phase,
        /// Why.
        cause: Cause,
        /// Who may write.
        seat: Option<Member>,
        /// What showed that the last holder had let go.
        proof: Option<Proof>,
    },
    /// A move begins.
    MoveStarted {
        /// Why.
        cause: Cause,
        /// In words, with the evidence.
        because: String,
    },
    /// A proof of release was found.
    ReleaseProven(Proof),
    /// There is no proof, and time alone brings none.
    PromotionHeld {
        /// Who is silent.
        silent: Vec<Member>,
    },
    /// A move waits for the cooldown.
    CooldownBlocks(cooldown::Active),
    /// A site was chosen.
    CandidateChosen {
        /// Which.
        member: Member,
        /// By which rule, in words.
        rule: String,
    },
    /// Candidates of which each has what the other lacks.
    IncomparableCandidates {
        /// The one chosen.
        chosen: Site,
        /// Both differences, for each other.
        differences: Vec<Difference>,
    },
    /// A promoted site had received what it could not apply.
    UnappliedTransactions {
        /// Which site.
        site: Site,
        /// What.
        set: GtidSet,
    },
    /// Authority moved to another site and that one was read back writable.
    FailoverExecuted {
        /// Where to.
        site: Site,
        /// The record's epoch.
        epoch: Epoch,
        /// Why.
        cause: Cause,
        /// What it rests on.
        proof: Option<Proof>,
        /// What the site had executed.
        gtid: GtidSet,
    },
    /// Authority is back at the site that had it.
    AuthorityRestored {
        /// Which site.
        site: Site,
        /// The record's epoch.
        epoch: Epoch,
        /// Why it was away.
        cause: Cause,
    },
    /// A site was opened by hand while the holder does not serve.
    ManualPromotionRequested {
        /// Which site.
        site: Site,
    },
    /// The wish was fulfilled.
    ManualPromotionCompleted {
        /// Which site was promoted.
        site: Site,
    },
    /// Another set of voters.
    VotersChanged {
        /// The record's epoch.
        epoch: Epoch,
        /// Who is counted.
        voters: Vec<Member>,
    },
    /// Other lease settings.
    LeaseChanged {
        /// The record's epoch.
        epoch: Epoch,
        /// How long a lease lasts.
        lease_timeout: Millis,
        /// How many vouches renew it.
        min_peers: u32,
    },
    /// Something that people should see began.
    AlertRaised(Alert),
    /// It is over.
    AlertCleared,
    /// A server without authority is being fenced.
    FencingWriter {
        /// Which site.
        site: Site,
        /// In words.
        because: String,
    },
    /// A site has what the primary lacks.
    DivergenceFound {
        /// Which site.
        site: Site,
        /// What.
        set: GtidSet,
    },
    /// A site is being attached.
    RecoveryStarted {
        /// Which site.
        site: Site,
    },
    /// A site follows the primary again.
    RecoveryComplete {
        /// Which site.
        site: Site,
    },
    /// A clone's phase changed.
    CloneChanged {
        /// Into which site.
        site: Site,
        /// How far.
        phase: ClonePhase,
        /// Why it is made.
        source: CloneSource,
        /// For people.
        message: String,
    },
    /// A reclone is accepted.
    RecloneRequested {
        /// Into which site.
        site: Site,
    },
    /// A reclone is refused.
    RecloneRejected {
        /// Why, and what to write.
        because: String,
    },
    /// A planned failover was accepted, went on, or ended.
    PlannedChanged {
        /// Where to.
        target: Site,
        /// How far.
        phase: PlannedPhase,
        /// Why it failed or waits.
        reason: Option<PlannedReason>,
        /// For people.
        message: String,
    },
    /// The target was active already.
    PlannedSkipped {
        /// Which.
        target: Site,
    },
    /// A request for a planned failover was refused.
    PlannedRejected {
        /// Why.
        reason: PlannedReason,
        /// For people.
        message: String,
    },
    /// An update's phase changed.
    UpdateChanged {
        /// How far.
        phase: UpdatePhase,
        /// The site being rolled.
        site: Option<Site>,
        /// Why it stands still.
        stopped: Option<String>,
    },
    /// New passwords were set on the primary, and it lets these in with them.
    PasswordsSet {
        /// The primary.
        site: Site,
        /// Whose.
        accounts: Vec<AccountRole>,
    },
    /// The passwords before are good for nothing any more.
    PasswordsDiscarded {
        /// The primary.
        site: Site,
        /// Whose.
        accounts: Vec<AccountRole>,
    },
    /// Passwords could not be changed on the primary; it is tried again.
    PasswordsNotSet {
        /// The primary.
        site: Site,
        /// Why.
        because: String,
    },
    /// A server goes on refusing accounts with the passwords of their Secrets.
    PasswordsRefused {
        /// Which site.
        site: Site,
        /// Whom, and with which error number.
        accounts: BTreeMap<AccountRole, u16>,
    },
    /// The DNS record could not be written.
    DnsWriteFailed {
        /// Why.
        because: String,
    },
    /// Of the cache.
    Cache(CacheNotice),
    /// What is stored cannot be read: nothing moves.
    AuthorityCorrupt {
        /// Which part, and why.
        because: String,
    },
}

/// What people are told of the cache.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CacheNotice {
    /// A promotion begins.
    PromotionStarted {
        /// Where.
        site: Site,
    },
    /// It is over.
    PromotionCompleted {
        /// Where.
        site: Site,
    },
    /// It failed.
    PromotionFailed {
        /// Where.
        site: Site,
        /// Why.
        because: String,
    },
    /// The target did not catch up in time.
    SyncTimeout {
        /// Which.
        site: Site,
    },
    /// A master that should be a replica.
    StaleMaster {
        /// Where.
        site: Site,
        /// How many keys it holds.
        keys: u64,
    },
    /// An old master follows again.
    OldSiteReconfigured {
        /// Which.
        site: Site,
    },
    /// A promotion lost what had not arrived.
    SessionsLost {
        /// Where.
        site: Site,
    },
    /// A snapshot upgrade went on, or ended.
    UpgradeChanged {
        /// How far, in words.
        phase: super::kept::CacheUpgradePhase,
        /// For people.
        message: String,
    },
    /// A request for one was refused.
    UpgradeRejected {
        /// Why.
        because: String,
    },
}
