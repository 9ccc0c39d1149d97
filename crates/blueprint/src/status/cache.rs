//! The cache, for longer than a poll.
//!
//! In: the brain's words, or `status.dragonfly`. Out: one from the other; a cache that the brain keeps nothing of has no
//! such field. Must not: touch what a poll shows; those fields belong to [`crate::report`].

use std::collections::BTreeMap;

use bloodraven_api::group::status::{DragonflyStatus, DragonflyUpgradeStatus, StaleMasterStatus};
use bloodraven_brain::group::kept::{CacheKept, CacheUpgrade, Move};
use bloodraven_brain::name::Site;
use bloodraven_brain::time::Wall;

use super::fault::Fault;
use super::fields::{KeptDragonfly, missing, named, optional_time, required_time};
use crate::measure;
use crate::words::Word;

pub(super) fn write(cache: Option<&CacheKept>, field: &mut Option<DragonflyStatus>) {
    let Some(CacheKept { active, last_promotion, promoting, stale_masters, upgrade }) = cache else {
        *field = None;
        return;
    };
    let stale =
        |(site, since): (&Site, &Wall)| StaleMasterStatus { name: site.to_string(), since: measure::time(*since) };
    let status = field.get_or_insert_default();
    status.active_site = active.as_ref().map(Site::to_string).unwrap_or_default();
    status.last_promotion_time = last_promotion.as_ref().map(|last| measure::time(last.at));
    status.last_promotion_target = last_promotion.as_ref().map(|last| last.to.to_string());
    status.promoting = promoting.as_ref().map(Site::to_string);
    status.stale_masters = stale_masters.iter().map(stale).collect();
    status.upgrade = upgrade.as_ref().map(write_upgrade);
}

pub(super) fn read(status: Option<KeptDragonfly>) -> Result<Option<CacheKept>, Fault> {
    let Some(status) = status else { return Ok(None) };
    let KeptDragonfly { active_site, last_promotion_time, last_promotion_target, promoting, stale_masters, upgrade } =
        status;
    Ok(Some(CacheKept {
        active: named(&active_site),
        last_promotion: match (optional_time(last_promotion_time.as_ref()), last_promotion_target) {
            (None, None) => None,
            (Some(at), Some(to)) => Some(Move { at, to: Site::new(&to) }),
            (None, Some(_)) => return Err(missing("lastPromotionTime")),
            (Some(_), None) => return Err(missing("lastPromotionTarget")),
        },
        promoting: promoting.as_deref().map(Site::new),
        stale_masters: read_stale(stale_masters)?,
        upgrade: upgrade.map(read_upgrade).transpose().map_err(|fault| fault.within("upgrade"))?,
    }))
}

fn read_stale(entries: Vec<StaleMasterStatus>) -> Result<BTreeMap<Site, Wall>, Fault> {
    let mut stale = BTreeMap::new();
    for StaleMasterStatus { name, since } in entries {
        if stale.insert(Site::new(&name), measure::wall(&since)).is_some() {
            return Err(Fault::new(format!("staleMasters[{name}]"), "is there twice"));
        }
    }
    Ok(stale)
}

fn write_upgrade(upgrade: &CacheUpgrade) -> DragonflyUpgradeStatus {
    let CacheUpgrade { phase, from, to, active, snapshot_dir, started, snapshot_at, completed, message } = upgrade;
    DragonflyUpgradeStatus {
        phase: phase.twin(),
        source_image: from.clone(),
        target_image: to.clone(),
        active_site: active.to_string(),
        snapshot_dir: snapshot_dir.clone(),
        start_time: Some(measure::time(*started)),
        snapshot_time: snapshot_at.map(measure::time),
        completion_time: completed.map(measure::time),
        reason: String::new(),
        message: message.clone(),
    }
}

fn read_upgrade(status: DragonflyUpgradeStatus) -> Result<CacheUpgrade, Fault> {
    Ok(CacheUpgrade {
        phase: Word::of(status.phase),
        from: status.source_image,
        to: status.target_image,
        active: Site::new(&status.active_site),
        snapshot_dir: status.snapshot_dir,
        started: required_time("startTime", status.start_time.as_ref())?,
        snapshot_at: optional_time(status.snapshot_time.as_ref()),
        completed: optional_time(status.completion_time.as_ref()),
        message: status.message,
    })
}
