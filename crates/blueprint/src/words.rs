//! One table pairs the brain's words with the API's.
//!
//! In: a word of either. Out: its twin. Must not: leave a word without one; both directions are exhaustive.

use bloodraven_api::group as wanted;
use bloodraven_api::group::status as shown;
use bloodraven_brain::group::kept;
use bloodraven_brain::{record, site};

/// A word of the brain that has a twin in the API.
pub(crate) trait Word: Copy {
    /// The twin.
    type Twin: Copy;
    /// As the API has it.
    fn twin(self) -> Self::Twin;
    /// From the API.
    fn of(twin: Self::Twin) -> Self;
}

macro_rules! twins {
    ($( $brain:ty = $api:ty { $( $here:ident = $there:ident ),+ $(,)? } )+) => {
        $( impl Word for $brain {
            type Twin = $api;
            fn twin(self) -> $api {
                match self { $( <$brain>::$here => <$api>::$there ),+ }
            }
            fn of(twin: $api) -> Self {
                match twin { $( <$api>::$there => <$brain>::$here ),+ }
            }
        } )+
    };
}

twins! {
    record::Phase = shown::AuthorityPhase { Revoking = Revoking, Granting = Granting, Stable = Stable }
    record::Cause = shown::AuthorityCause {
        Bootstrap = Bootstrap, Emergency = Emergency, Planned = Planned, OrderedUpdate = OrderedUpdate,
        SplitBrain = SplitBrain, Manual = Manual, Restore = Restore, Rollback = Rollback, Instance = Instance,
        Regrant = Regrant, Voters = Voters, Lease = Lease, RecordBehind = RecordBehind,
    }
    record::ProofKind = shown::ProofType {
        FencedBySidecar = FencedBySidecar, ProcessEnded = ProcessEnded, LeaseExpired = LeaseExpired, Assumed = Assumed,
    }
    kept::Recovery = shown::RecoveryState { None = None, InProgress = RecoveryInProgress, Blocked = RecoveryBlocked }
    kept::ClonePhase = shown::ClonePhase {
        Cloning = Cloning, WaitingForRestart = WaitingForRestart, SetupReplication = SetupReplication, Done = Done,
        Failed = Failed,
    }
    kept::CloneSource = shown::CloneSource { FreshDeploy = FreshDeploy, AutoClone = AutoClone, Reclone = Reclone }
    kept::PlannedPhase = shown::PlannedFailoverPhase {
        Pending = Pending, Validating = Validating, Deferred = Deferred, Draining = Draining,
        WaitingForLag = WaitingForLag, WaitingForCache = WaitingForDragonflySync, PromotingCache = PromotingDragonfly,
        Promoting = Promoting, Resuming = Resuming, Succeeded = Succeeded, Failed = Failed,
    }
    kept::Origin = shown::PlannedFailoverOrigin { Annotation = Annotation, OrderedUpdate = OrderedUpdate }
    kept::PlannedReason = shown::PlannedFailoverReason {
        CooldownActive = CooldownActive, UnknownSite = UnknownSite, TargetUnhealthy = TargetUnhealthy,
        ConcurrentOperation = ConcurrentOperation, InvalidAnnotation = InvalidAnnotation, Paused = Paused,
        Cancelled = Cancelled, AlreadyActive = AlreadyActive, LagTimeout = LagTimeout, InvalidGtid = InvalidGtid,
        SourceCrashed = SourceCrashed, ExecuteFailed = ExecuteFailed, CacheSyncTimeout = DragonflySyncTimeout,
        CachePromotionFailed = DragonflyPromotionFailed, InternalError = InternalError,
    }
    kept::PromotionMethod = shown::PromotionMethod {
        None = None, Takeover = ReplTakeover, NoOne = ReplicaOfNoOne, Skipped = Skipped,
    }
    kept::CacheUpgradePhase = shown::DragonflyUpgradePhase {
        Pending = Pending, SavingSnapshot = SavingSnapshot, UpdatingActive = UpdatingActive,
        WaitingForActiveRestore = WaitingForActiveRestore, ReattachingReplicas = ReattachingReplicas,
        Succeeded = Succeeded, Failed = Failed,
    }
    site::Role = wanted::SiteRole { PrimaryCandidate = PrimaryCandidate, DrOnly = DrOnly }
    site::State = shown::SiteState {
        Unknown = Unknown, Writable = Writable, ReadOnly = ReadOnly, Unreachable = Unreachable,
    }
}

/// The API has a word for "none runs"; the brain has no update then.
impl Word for Option<kept::UpdatePhase> {
    type Twin = shown::UpdatePhase;

    fn twin(self) -> shown::UpdatePhase {
        match self {
            None => shown::UpdatePhase::None,
            Some(kept::UpdatePhase::UpdateReplica) => shown::UpdatePhase::UpdateReplica,
            Some(kept::UpdatePhase::WaitReplica) => shown::UpdatePhase::WaitReplica,
            Some(kept::UpdatePhase::Failover) => shown::UpdatePhase::Failover,
            Some(kept::UpdatePhase::UpdateOldPrimary) => shown::UpdatePhase::UpdateOldPrimary,
            Some(kept::UpdatePhase::WaitOldPrimary) => shown::UpdatePhase::WaitOldPrimary,
            Some(kept::UpdatePhase::Complete) => shown::UpdatePhase::Complete,
        }
    }

    fn of(twin: shown::UpdatePhase) -> Self {
        Some(match twin {
            shown::UpdatePhase::None => return None,
            shown::UpdatePhase::UpdateReplica => kept::UpdatePhase::UpdateReplica,
            shown::UpdatePhase::WaitReplica => kept::UpdatePhase::WaitReplica,
            shown::UpdatePhase::Failover => kept::UpdatePhase::Failover,
            shown::UpdatePhase::UpdateOldPrimary => kept::UpdatePhase::UpdateOldPrimary,
            shown::UpdatePhase::WaitOldPrimary => kept::UpdatePhase::WaitOldPrimary,
            shown::UpdatePhase::Complete => kept::UpdatePhase::Complete,
        })
    }
}
