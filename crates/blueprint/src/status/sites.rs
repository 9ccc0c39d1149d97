//! What is known of each site for longer than a poll.
//!
//! In: the brain's map, or the list in status. Out: one from the other. Must not: touch what a poll shows; those fields
//! belong to [`crate::report`].

use std::collections::BTreeMap;

use bloodraven_api::group::status::{CloneStatus, SiteStatus};
use bloodraven_brain::group::kept::{CloneKept, SiteKept};
use bloodraven_brain::name::Site;

use super::fault::Fault;
use super::fields::{KeptSite, counted, missing, number, optional_set};
use crate::measure;
use crate::words::Word;

pub(super) fn write(sites: &BTreeMap<Site, SiteKept>, entries: &mut Vec<SiteStatus>) {
    for (site, kept) in sites {
        let known = entries.iter().any(|entry| entry.name == site.as_str());
        if !known && *kept != SiteKept::default() {
            entries.push(SiteStatus { name: site.to_string(), ..SiteStatus::default() });
        }
    }
    for entry in entries {
        put(sites.get(&Site::new(&entry.name)).cloned().unwrap_or_default(), entry);
    }
}

pub(super) fn read(entries: Vec<KeptSite>) -> Result<BTreeMap<Site, SiteKept>, Fault> {
    let mut sites = BTreeMap::new();
    for entry in entries {
        let site = Site::new(&entry.name);
        let kept = one(entry).map_err(|fault| fault.within(&format!("sites[{site}]")))?;
        if sites.insert(site.clone(), kept).is_some() {
            return Err(Fault::new(format!("sites[{site}]"), "is there twice"));
        }
    }
    sites.retain(|_, kept| *kept != SiteKept::default());
    Ok(sites)
}

fn put(kept: SiteKept, entry: &mut SiteStatus) {
    let SiteKept { recovery, divergent, clone, tainted } = kept;
    entry.recovery_state = recovery.twin();
    (entry.divergent_gtid, entry.divergent_transaction_count) = counted(&divergent);
    entry.clone = clone.map(write_clone);
    entry.read_only_taint = tainted;
}

fn one(entry: KeptSite) -> Result<SiteKept, Fault> {
    let KeptSite { name: _, recovery_state, divergent_gtid, clone, read_only_taint } = entry;
    Ok(SiteKept {
        recovery: Word::of(recovery_state),
        divergent: optional_set("divergentGtid", divergent_gtid.as_deref())?.unwrap_or_default(),
        clone: clone.map(read_clone).transpose().map_err(|fault| fault.within("clone"))?,
        tainted: read_only_taint,
    })
}

fn write_clone(clone: CloneKept) -> CloneStatus {
    let CloneKept { phase, source, attempts, bytes, message } = clone;
    CloneStatus {
        phase: phase.twin(),
        source: source.twin(),
        attempts,
        bytes_done: bytes.map(|(done, _)| measure::count(done)),
        bytes_total: bytes.map(|(_, total)| measure::count(total)),
        message,
    }
}

fn read_clone(clone: CloneStatus) -> Result<CloneKept, Fault> {
    let CloneStatus { phase, source, attempts, bytes_done, bytes_total, message } = clone;
    let bytes = match (bytes_done, bytes_total) {
        (None, None) => None,
        (Some(done), Some(total)) => Some((number("bytesDone", done)?, number("bytesTotal", total)?)),
        (None, Some(_)) => return Err(missing("bytesDone")),
        (Some(_), None) => return Err(missing("bytesTotal")),
    };
    Ok(CloneKept { phase: Word::of(phase), source: Word::of(source), attempts, bytes, message })
}
