//! What a leader has seen, for people: the part of status that nobody decides from.
//!
//! In: the group's leader, the moment, and what only the hands know. Out: fields of status. Must not: be read back, change
//! what is kept ([`crate::status`] writes that), or show as known what is not.
//!
//! Conditions are written by [`crate::conditions::show`], which needs what only the hands know of the whole group.

use std::collections::BTreeMap;

use bloodraven_api::group::status::{DragonflyRole, DragonflySiteStatus, DragonflyStatus, SidecarStatus, SiteStatus};
use bloodraven_api::{MysqlFailoverGroupStatus, names};
use bloodraven_brain::group::input::{CacheFacts, CacheRole};
use bloodraven_brain::group::kept::SiteKept;
use bloodraven_brain::group::seen::{Heard, SiteSeen};
use bloodraven_brain::group::{Group, Kept, spec};
use bloodraven_brain::message::FencedBy;
use bloodraven_brain::name::Site;
use bloodraven_brain::site::Pair;
use bloodraven_brain::time::{Boot, Millis, Now, Wall};
use bloodraven_brain::volume::Space;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::conditions::answers::phase_of;
use crate::measure::{count, timestamp};
use crate::words::Word;

/// So many polls in a row show that a site replicates.
const POLLS_THAT_SHOW_REPLICATION: u32 = 2;

/// What the hands know of a site beside what they tell the brain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Beside {
    /// `@@server_id`.
    pub server_id: Option<u32>,
    /// The sidecar's version.
    pub version: Option<String>,
    /// The fence variables as the sidecar read them.
    pub pair: Option<Pair>,
    /// What is left of the lease, by the sidecar's word.
    pub lease_remaining: Option<Millis>,
    /// How full its data volume is.
    pub volume: Option<Space>,
}

/// Shows in `status` what `group` has seen. `generation` is that of the spec that the leader goes by.
pub fn show(
    group: &Group,
    now: Now,
    generation: i64,
    beside: &BTreeMap<Site, Beside>,
    status: &mut MysqlFailoverGroupStatus,
) {
    status.observed_generation = Some(generation);
    let kept = group.kept();
    if let Some(kept) = &kept {
        status.active_site = active_site(kept);
    }
    let mut before = std::mem::take(&mut status.sites);
    for wanted in &group.spec.sites {
        let known = before.iter().position(|entry| entry.name == wanted.site.as_str());
        let mut entry = known.map(|index| before.remove(index)).unwrap_or_default();
        let nothing = Beside::default();
        show_site(group, now, wanted, beside.get(&wanted.site).unwrap_or(&nothing), &mut entry);
        status.sites.push(entry);
    }
    status.sites.extend(before.into_iter().filter(|entry| stays(kept.as_deref(), entry)).map(without_sight));
    if let Some(cache) = &mut status.dragonfly {
        show_cache(group, cache);
    }
}

fn active_site(kept: &Kept) -> String {
    let seat = kept.record.as_ref().and_then(|record| record.seat.as_ref());
    seat.map(|seat| seat.site.to_string()).unwrap_or_default()
}

/// A site that is not declared any more stays as long as something is kept of it, or nobody knows what is.
fn stays(kept: Option<&Kept>, entry: &SiteStatus) -> bool {
    let is_kept = |kept: &Kept| kept.site(&Site::new(&entry.name)) != SiteKept::default();
    entry.rescue.is_some() || kept.is_none_or(is_kept)
}

/// Nobody polls a site that is not declared.
fn without_sight(entry: SiteStatus) -> SiteStatus {
    SiteStatus {
        name: entry.name,
        recovery_state: entry.recovery_state,
        divergent_gtid: entry.divergent_gtid,
        divergent_transaction_count: entry.divergent_transaction_count,
        read_only_taint: entry.read_only_taint,
        clone: entry.clone,
        rescue: entry.rescue,
        ..SiteStatus::default()
    }
}

fn show_site(group: &Group, now: Now, wanted: &spec::SiteSpec, beside: &Beside, entry: &mut SiteStatus) {
    let site = &wanted.site;
    entry.name = site.to_string();
    entry.role = Some(wanted.role.twin());
    let unseen = SiteSeen::new(site);
    let seen = group.seen.site(site).unwrap_or(&unseen);
    let facts = seen.facts.as_ref();
    let replica = facts.and_then(|facts| facts.replica.as_ref());
    entry.state = seen.watch.state.twin();
    entry.last_seen = facts.map(|_| seconds(now, seen.facts_at));
    entry.gtid_executed = seen.executed().map(|set| set.compact().to_string());
    entry.replicating = seen.following >= POLLS_THAT_SHOW_REPLICATION;
    entry.seconds_behind_source = group.lag(now, site).map(|lag| count(lag.0 / 1000));
    let source = replica.and_then(|replica| replica.source.as_ref());
    entry.source_host = source.map(|source| names::site_internal(&group.spec.name, source.as_str()));
    let convergence = group.kept().and_then(|kept| group.convergence(&kept, site));
    entry.source_convergence_state = convergence.and_then(|convergence| convergence.state.as_str().parse().ok());
    entry.source_convergence_reason = convergence.and_then(|convergence| convergence.reason.as_str().parse().ok());
    entry.server_uuid = facts.map(|facts| facts.server_uuid.to_string());
    entry.server_id = beside.server_id.map(i64::from);
    let present = seen.present(attention(group), now.boot);
    entry.instance = present.map(|(instance, _)| instance.to_string());
    entry.sidecar = Some(present.map_or_else(SidecarStatus::default, |(_, heard)| sidecar(heard, beside)));
}

/// Who was silent for longer is not reachable.
fn attention(group: &Group) -> Millis {
    let kept = group.kept();
    let record = kept.as_ref().and_then(|kept| kept.record.as_ref());
    record.map_or(group.spec.lease, |record| record.settings).lease_timeout
}

fn seconds(now: Now, at: Boot) -> Time {
    let age = i64::try_from(now.boot.since(at).0).unwrap_or(i64::MAX);
    let milliseconds = now.wall.0.saturating_sub(age);
    Time(timestamp(Wall(milliseconds - milliseconds.rem_euclid(1000))))
}

fn sidecar(heard: &Heard, beside: &Beside) -> SidecarStatus {
    let ack = &heard.ack;
    // That it is fenced while its server runs means that both were read as 1.
    let implied = (ack.fenced && ack.mysqld.is_some()).then_some(Pair::CLOSED);
    let pair = beside.pair.or(implied);
    SidecarStatus {
        reachable: true,
        version: beside.version.clone(),
        instance: Some(ack.from.instance.to_string()),
        epoch: ack.epoch.map(count),
        read_only: pair.map(|pair| pair.read_only),
        super_read_only: pair.map(|pair| pair.super_read_only),
        fenced: Some(ack.fenced),
        fenced_by: ack.fenced_by.map(|by| fenced_by(by).to_owned()),
        mysqld: Some(if ack.mysqld.is_some() { "running" } else { "stopped" }.to_owned()),
        lease_remaining_ms: beside.lease_remaining.map(|left| count(left.0)),
        via: heard.via.as_ref().map(Site::to_string).unwrap_or_default(),
    }
}

const fn fenced_by(by: FencedBy) -> &'static str {
    match by {
        FencedBy::Boot => "Boot",
        FencedBy::Mismatch => "Mismatch",
        FencedBy::Lease => "Lease",
        FencedBy::Conflict => "Conflict",
        FencedBy::Others => "Others",
    }
}

fn show_cache(group: &Group, cache: &mut DragonflyStatus) {
    cache.enabled = group.spec.cache.is_some();
    if let Some(kept) = group.kept() {
        let report = group.cache_report(&kept);
        cache.phase = phase_of(report.phase);
        cache.message = report.message;
    }
    let mut sites = Vec::new();
    for wanted in group.spec.sites.iter().filter(|_| cache.enabled) {
        let said = group.seen.site(&wanted.site).and_then(|seen| seen.cache.as_ref());
        sites.push(cache_site(&group.spec.name, &wanted.site, said, &cache.active_site));
    }
    cache.sites = sites;
}

fn cache_site(group: &str, site: &Site, said: Option<&Option<CacheFacts>>, active: &str) -> DragonflySiteStatus {
    let facts = said.and_then(Option::as_ref);
    let mut shown = DragonflySiteStatus {
        name: site.to_string(),
        role: if said.is_some() { DragonflyRole::Unreachable } else { DragonflyRole::Unknown },
        reachable: facts.is_some(),
        service_name: Some(names::dragonfly_site(group, site.as_str())),
        pod_name: None,
        replication_state: None,
        link_status: None,
        sync_in_progress: false,
        last_io_seconds_ago: None,
        ready: false,
        takeover_supported: facts.map(|facts| facts.takeover),
        message: String::new(),
    };
    match facts.map(|facts| (&facts.role, facts.loading)) {
        None => {}
        Some((CacheRole::Master { .. }, loading)) => {
            let is_active = site.as_str() == active;
            shown.role = if is_active { DragonflyRole::Master } else { DragonflyRole::StaleMaster };
            shown.ready = is_active && !loading;
        }
        Some((CacheRole::Replica { master, link_up, syncing, heard, offset: _ }, loading)) => {
            shown.role = DragonflyRole::Replica;
            shown.link_status = Some(if *link_up { "up" } else { "down" }.to_owned());
            shown.sync_in_progress = *syncing;
            let right_master = master.as_ref().is_some_and(|master| master.as_str() == active);
            shown.ready = right_master && *link_up && !syncing && *heard && !loading;
        }
    }
    shown
}
