//! What an admin wants, checked, in the brain's words.
//!
//! In: a group object. Out: the brain's spec, or every field that is wrong and what to write instead. Must not: have rules
//! or defaults of its own; both are the API's, so that what admission refuses is refused here, too.

use bloodraven_api::admission::{self, Violation};
use bloodraven_api::group as wanted;
use bloodraven_api::{MysqlFailoverGroup, MysqlFailoverGroupSpec};
use bloodraven_brain::authority::Policy;
use bloodraven_brain::group::Spec;
use bloodraven_brain::group::spec::{CacheSpec, Durability, Pause, PlannedSpec, SiteSpec, UpdateStrategy};
use bloodraven_brain::name::Site;
use bloodraven_brain::record::Settings;
use bloodraven_brain::site::Thresholds;
use bloodraven_brain::time::{Millis, Wall};
use serde_json::Value;

use crate::measure::{millis, timestamp};
use crate::words::Word;

/// The object as the API server holds it, typed: defaults filled in, its status left out (whether that can be read is
/// [`crate::status`]'s question, and no reason against a spec).
pub fn object(mut raw: Value) -> Result<MysqlFailoverGroup, Vec<Violation>> {
    if let Some(fields) = raw.as_object_mut() {
        fields.remove("status");
    }
    let raw = admission::with_defaults::<MysqlFailoverGroup>(raw);
    serde_path_to_error::deserialize(&raw).map_err(|error| {
        let path = error.path().to_string();
        vec![Violation { path, message: format!("cannot be read: {}; write what the schema asks for", error.inner()) }]
    })
}

/// What the object asks for. `before` is the last version that was taken, for rules about change; whether there is a
/// replication account is told, because only who read the Secret knows.
pub fn group(
    object: &MysqlFailoverGroup,
    before: Option<&MysqlFailoverGroup>,
    now: Wall,
    replication_account: bool,
) -> Result<Spec, Vec<Violation>> {
    let mut found = admission::validate(object, before);
    found.extend(admission::validate_at(object, timestamp(now)));
    // Status is nobody's wish; it has its own reader.
    found.retain(|violation| !violation.path.starts_with("status"));
    if !found.is_empty() {
        return Err(found);
    }
    let name = object.metadata.name.clone().unwrap_or_default();
    Ok(spec(name, &object.spec, replication_account))
}

fn spec(name: String, spec: &MysqlFailoverGroupSpec, replication_account: bool) -> Spec {
    let site = |site: &wanted::SiteSpec| SiteSpec { site: Site::new(&site.name), role: Word::of(site.role) };
    Spec {
        name,
        sites: spec.sites.iter().map(site).collect(),
        poll_interval: millis(spec.poll_interval),
        thresholds: Thresholds { failure: spec.failure_threshold, recovery: spec.recovery_threshold },
        cooldown: millis(spec.failover_cooldown),
        proof: match spec.promotion.proof {
            wanted::PromotionProof::Required => Policy::Required,
            wanted::PromotionProof::BestEffort => Policy::BestEffort,
        },
        lease: Settings { lease_timeout: millis(spec.sidecar.lease_timeout), min_peers: spec.sidecar.min_peers },
        peer_check: millis(spec.sidecar.peer_check_interval),
        priorities: priorities(&spec.split_brain_policy),
        max_lag: Millis::from_secs(spec.replication.max_lag_seconds.into()),
        durability: match spec.replication.durability {
            wanted::Durability::Async => Durability::Async,
            wanted::Durability::SemiSync => Durability::semi_sync(millis(spec.replication.semi_sync_timeout)),
        },
        planned: planned(&spec.planned_failover),
        cache: spec.dragonfly.as_ref().filter(|cache| cache.enabled).map(cache),
        update: match spec.update_strategy {
            wanted::UpdateStrategy::OrderedUpdate => UpdateStrategy::Ordered,
            wanted::UpdateStrategy::Recreate => UpdateStrategy::Recreate,
        },
        clone_timeout: Millis::from_secs(spec.clone_timeout.into()),
        replication_account,
        paused: spec.paused.then(|| Pause {
            reason: spec.paused_reason.clone().unwrap_or_default(),
            until: spec.paused_until.as_ref().map(|until| Wall(until.0.as_millisecond())),
        }),
    }
}

/// The effective list: the preferred site, then the others in their order.
fn priorities(policy: &wanted::SplitBrainPolicy) -> Vec<Site> {
    let preferred = Some(&policy.prefer_site).filter(|site| !site.is_empty());
    let others = policy.site_priorities.iter().filter(|site| Some(*site) != preferred);
    preferred.into_iter().chain(others).map(|site| Site::new(site)).collect()
}

fn planned(spec: &wanted::PlannedFailoverSpec) -> PlannedSpec {
    PlannedSpec {
        max_lag_wait: millis(spec.max_lag_wait),
        drain_timeout: millis(spec.drain_timeout),
        defer: spec.on_cooldown == wanted::OnCooldown::Defer,
    }
}

fn cache(spec: &wanted::DragonflySpec) -> CacheSpec {
    CacheSpec {
        // The rules ask for an image when the cache is on.
        image: spec.image.clone().unwrap_or_default(),
        max_sync_wait: millis(spec.planned_failover.max_sync_wait),
        fail_on_timeout: spec.planned_failover.on_sync_timeout == wanted::OnSyncTimeout::Fail,
        stale_master_grace: millis(spec.stale_master_grace),
        snapshot_dir: spec.snapshot.as_ref().map(|snapshot| snapshot.dir.clone()),
    }
}
