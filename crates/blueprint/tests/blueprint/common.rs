//! Everything that a leader can keep, at random.
//!
//! In: proptest's dice. Out: a `Kept` with every variant, every absent and present field, times to the millisecond over
//! all that RFC 3339 can say, numbers to the end of what the API can hold. Must not: make a record that the leader's rules
//! cannot make: nobody has authority while Revoking, somebody has otherwise.

use std::collections::BTreeMap;

use bloodraven_brain::group::Kept;
use bloodraven_brain::group::kept::*;
use bloodraven_brain::name::{Instance, Member, Site};
use bloodraven_brain::record::*;
use bloodraven_brain::time::{Millis, Wall};
use bloodraven_gtid::GtidSet;
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

pub(crate) fn kept() -> impl Strategy<Value = Kept> {
    let first = (
        option::weighted(0.9, record().boxed()),
        option::of(last_move().boxed()),
        option::of(set().boxed()),
        set().boxed(),
    );
    let second = (
        option::of(planned().boxed()),
        option::of(update().boxed()),
        btree_map(site().boxed(), site_kept().boxed(), 0..4),
        option::of(cache().boxed()),
    );
    (first, second).prop_map(|((record, last_failover, promotion, unapplied), (planned, update, mut sites, cache))| {
        sites.retain(|_, kept| *kept != SiteKept::default());
        Kept { record, last_failover, promotion, unapplied, planned, update, sites, cache }
    })
}

pub(crate) fn record() -> impl Strategy<Value = Record> {
    let epochs = prop_oneof![1..1000_u64, 1..=MOST].prop_flat_map(|epoch| (Just(epoch), 0..=epoch, 1..=epoch));
    let phase = select(vec![Phase::Revoking, Phase::Granting, Phase::Stable]);
    let first = (epochs, phase, member().boxed(), members().boxed(), settings().boxed(), wall().boxed());
    let second =
        (cause().boxed(), option::of(proof().boxed()), option::of(holder().boxed()), vec(ended().boxed(), 0..3));
    (first, second).prop_map(|((epochs, phase, seat, voters, settings, since), (cause, proof, holder, ended))| {
        let (epoch, tenure, revoked_at) = epochs;
        let revoking = phase == Phase::Revoking;
        Record {
            epoch,
            tenure,
            seat: (!revoking).then_some(seat),
            phase,
            voters,
            settings,
            since,
            cause,
            proof,
            revoked_at: revoking.then_some(revoked_at),
            holder,
            ended,
        }
    })
}

/// The end of the API's numbers.
const MOST: u64 = i64::MAX.unsigned_abs();

fn site() -> impl Strategy<Value = Site> {
    select(vec!["iad", "pdx", "fra", "a-1", "9"]).prop_map(Site::new)
}

fn member() -> impl Strategy<Value = Member> {
    let part = "[a-z0-9][-a-z0-9]{0,5}";
    (site().boxed(), part, part).prop_map(|(site, pod, store)| Member::new(&site, &Instance::new(&pod, &store)))
}

fn members() -> impl Strategy<Value = Vec<Member>> {
    vec(member().boxed(), 0..4)
}

/// The years 0 to 9999, and around now.
fn wall() -> impl Strategy<Value = Wall> {
    prop_oneof![-62_167_219_200_000..=253_402_207_199_999_i64, 1_700_000_000_000..1_900_000_000_000_i64].prop_map(Wall)
}

fn millis() -> impl Strategy<Value = Millis> {
    prop_oneof![Just(0), 1..100_000_u64, 0..=9_223_372_036_854_u64].prop_map(Millis)
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), 0..1000_u64, 0..=MOST]
}

fn words() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), ".{0,12}"]
}

fn set() -> impl Strategy<Value = GtidSet> {
    let part = (0..4_u8, option::of(select(vec!["nightly", "t"])), 1..50_u64, 0..9_u64);
    vec(part, 0..5).prop_map(|parts| {
        let entry = |(uuid, tag, from, more): &(u8, Option<&str>, u64, u64)| {
            let tag = tag.map(|tag| format!("{tag}:")).unwrap_or_default();
            format!("00000000-0000-0000-0000-00000000000{uuid}:{tag}{from}-{}", from + more)
        };
        let text: Vec<String> = parts.iter().map(entry).collect();
        text.join(",").parse().expect("a set")
    })
}

fn settings() -> impl Strategy<Value = Settings> {
    (millis().boxed(), any::<u32>()).prop_map(|(lease_timeout, min_peers)| Settings { lease_timeout, min_peers })
}

fn cause() -> impl Strategy<Value = Cause> {
    use Cause::*;
    select(vec![
        Bootstrap,
        Emergency,
        Planned,
        OrderedUpdate,
        SplitBrain,
        Manual,
        Restore,
        Rollback,
        Instance,
        Regrant,
        Voters,
        Lease,
        RecordBehind,
    ])
}

fn proof() -> impl Strategy<Value = Proof> {
    use ProofKind::*;
    let kind = select(vec![FencedBySidecar, ProcessEnded, LeaseExpired, Assumed]);
    (kind, member().boxed(), wall().boxed()).prop_map(|(kind, about, at)| Proof { kind, about, at })
}

fn holder() -> impl Strategy<Value = Holder> {
    let set = (0..=MOST, members().boxed(), settings().boxed());
    let set = set.prop_map(|(epoch, voters, settings)| VoterSet { epoch, voters, settings });
    (member().boxed(), option::of(words().boxed()), vec(set, 0..3), any::<bool>())
        .prop_map(|(member, server_uuid, sets, sql_fence_sent)| Holder { member, server_uuid, sets, sql_fence_sent })
}

fn ended() -> impl Strategy<Value = Ended> {
    (member().boxed(), wall().boxed()).prop_map(|(member, at)| Ended { member, at })
}

fn last_move() -> impl Strategy<Value = Move> {
    (wall().boxed(), site().boxed()).prop_map(|(at, to)| Move { at, to })
}

fn update() -> impl Strategy<Value = Update> {
    use UpdatePhase::*;
    let phase = select(vec![UpdateReplica, WaitReplica, Failover, UpdateOldPrimary, WaitOldPrimary, Complete]);
    (phase, option::of(site().boxed()), wall().boxed(), option::of(words().boxed()))
        .prop_map(|(phase, site, since, stopped)| Update { phase, site, since, stopped })
}

fn site_kept() -> impl Strategy<Value = SiteKept> {
    let recovery = select(vec![Recovery::None, Recovery::InProgress, Recovery::Blocked]);
    (recovery, set().boxed(), option::of(clone().boxed()), any::<bool>())
        .prop_map(|(recovery, divergent, clone, tainted)| SiteKept { recovery, divergent, clone, tainted })
}

fn clone() -> impl Strategy<Value = CloneKept> {
    use ClonePhase::*;
    let phase = select(vec![Cloning, WaitingForRestart, SetupReplication, Done, Failed]);
    let source = select(vec![CloneSource::FreshDeploy, CloneSource::AutoClone, CloneSource::Reclone]);
    (phase, source, any::<u32>(), option::of((number().boxed(), number().boxed())), words().boxed())
        .prop_map(|(phase, source, attempts, bytes, message)| CloneKept { phase, source, attempts, bytes, message })
}

fn reason() -> impl Strategy<Value = PlannedReason> {
    use PlannedReason::*;
    select(vec![
        CooldownActive,
        UnknownSite,
        TargetUnhealthy,
        ConcurrentOperation,
        InvalidAnnotation,
        Paused,
        Cancelled,
        AlreadyActive,
        LagTimeout,
        InvalidGtid,
        SourceCrashed,
        ExecuteFailed,
        CacheSyncTimeout,
        CachePromotionFailed,
        InternalError,
    ])
}

fn planned_phase() -> impl Strategy<Value = PlannedPhase> {
    use PlannedPhase::*;
    select(vec![
        Pending,
        Validating,
        Deferred,
        Draining,
        WaitingForLag,
        WaitingForCache,
        PromotingCache,
        Promoting,
        Resuming,
        Succeeded,
        Failed,
    ])
}

fn planned() -> impl Strategy<Value = Planned> {
    // A request that was not understood names no target, and a group without a primary has no source.
    let place = prop_oneof![site().boxed(), Just(Site::new(""))];
    let origin = select(vec![Origin::Annotation, Origin::OrderedUpdate]);
    let first = (
        planned_phase().boxed(),
        words().boxed(),
        origin,
        place.clone(),
        place,
        option::of(set().boxed()),
        option::of(set().boxed()),
    );
    let second = (
        wall().boxed(),
        option::of(wall().boxed()),
        option::of(number().boxed()),
        option::of(reason().boxed()),
        words().boxed(),
    );
    let third = (
        millis().boxed(),
        millis().boxed(),
        option::of(wall().boxed()),
        option::of(number().boxed()),
        option::of(wall().boxed()),
        option::of(wall().boxed()),
    );
    (first, second, third, option::of(planned_cache().boxed())).prop_map(|(first, second, third, cache)| {
        let (phase, request_id, origin, target, source, source_gtid, target_gtid) = first;
        let (started, completed, transactions_lost, reason, message) = second;
        let (max_lag_wait, drain_timeout, drain_started, remaining_connections, lag_wait_started, retry_after) = third;
        Planned {
            phase,
            request_id,
            origin,
            target,
            source,
            source_gtid,
            target_gtid,
            started,
            completed,
            transactions_lost,
            reason,
            message,
            max_lag_wait,
            drain_timeout,
            drain_started,
            remaining_connections,
            lag_wait_started,
            retry_after,
            cache,
        }
    })
}

fn planned_cache() -> impl Strategy<Value = PlannedCache> {
    use PromotionMethod::*;
    let method = select(vec![None, Takeover, NoOne, Skipped]);
    let first = (
        option::of(wall().boxed()),
        option::of(number().boxed()),
        any::<bool>(),
        option::of(number().boxed()),
        option::of(number().boxed()),
    );
    (first, option::of(any::<bool>()), method, option::of(reason().boxed()), words().boxed()).prop_map(
        |(first, sessions_preserved, method, reason, message)| {
            let (sync_wait_started, source_offset, offset_capture_failed, target_offset, sync_wait_seconds) = first;
            PlannedCache {
                sync_wait_started,
                source_offset,
                offset_capture_failed,
                target_offset,
                sync_wait_seconds,
                sessions_preserved,
                method,
                reason,
                message,
            }
        },
    )
}

fn cache() -> impl Strategy<Value = CacheKept> {
    let stale: BoxedStrategy<BTreeMap<Site, Wall>> = btree_map(site().boxed(), wall().boxed(), 0..3).boxed();
    (
        option::of(site().boxed()),
        option::of(last_move().boxed()),
        option::of(site().boxed()),
        stale,
        option::of(upgrade().boxed()),
    )
        .prop_map(|(active, last_promotion, promoting, stale_masters, upgrade)| CacheKept {
            active,
            last_promotion,
            promoting,
            stale_masters,
            upgrade,
        })
}

fn upgrade() -> impl Strategy<Value = CacheUpgrade> {
    use CacheUpgradePhase::*;
    let phase = select(vec![
        Pending,
        SavingSnapshot,
        UpdatingActive,
        WaitingForActiveRestore,
        ReattachingReplicas,
        Succeeded,
        Failed,
    ]);
    let times = (wall().boxed(), option::of(wall().boxed()), option::of(wall().boxed()));
    (phase, words().boxed(), words().boxed(), site().boxed(), words().boxed(), times, words().boxed()).prop_map(
        |(phase, from, to, active, snapshot_dir, (started, snapshot_at, completed), message)| CacheUpgrade {
            phase,
            from,
            to,
            active,
            snapshot_dir,
            started,
            snapshot_at,
            completed,
            message,
        },
    )
}
