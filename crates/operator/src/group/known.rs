//! What only the hands know of a whole group, for its conditions.
//!
//! In: the spec in force and why another is refused, what polls, probes and sidecars said beside what the brain hears. Out:
//! plain data. Must not: say what the brain says, or hold a value of a Secret.

use super::prober::{Probed, Target};
use super::spec::Valid;
use super::{Shared, lock};
use bloodraven_api::conditions::ConfigWarningReason;
use bloodraven_blueprint::conditions::Hands;
use bloodraven_blueprint::objects::conf::relaxed;
use bloodraven_blueprint::report::Beside;
use bloodraven_brain::group::Group;
use bloodraven_brain::name::Site;
use bloodraven_brain::volume::Space;
use std::collections::{BTreeMap, BTreeSet};

/// The release of this program; sidecars say theirs.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// So many events are named; the rest is counted.
const NAMED: usize = 10;

type Warning = (ConfigWarningReason, String);

/// See above.
pub(super) fn hands(
    shared: &Shared,
    valid: &Valid,
    writer: Option<&Site>,
    exhausted: &BTreeSet<Site>,
    probed: &Probed,
    beside: &BTreeMap<Site, Beside>,
) -> Hands {
    let full: Vec<&str> = exhausted.iter().map(Site::as_str).collect();
    let connections_exhausted = (!full.is_empty())
        .then(|| format!("{} takes no more clients; raise max_connections or end idle sessions", full.join(", ")));
    let refused = lock(&shared.refused).clone();
    let unbuilt = || lock(&shared.unbuilt).clone();
    let unread = || lock(&shared.unread).clone();
    Hands {
        invalid_spec: refused.or_else(unbuilt).or_else(unread),
        write_stalled: stalled(writer, probed, beside),
        connections_exhausted,
        warnings: [durability(valid), skew(valid, beside), events(probed)].into_iter().flatten().collect(),
    }
}

/// Commits that do not come back, and a volume that leaves them no room; both at the one who writes.
fn stalled(writer: Option<&Site>, probed: &Probed, beside: &BTreeMap<Site, Beside>) -> Option<String> {
    let full = writer.filter(|site| {
        let space = beside.get(*site).and_then(|beside| beside.volume);
        space.is_some_and(Space::is_nearly_full)
    });
    let full = full.map(|site| format!("{site}: less than 1 % of the data volume is free; make it larger"));
    let words: Vec<String> = probed.stalled.iter().cloned().chain(full).collect();
    (!words.is_empty()).then(|| words.join("; "))
}

/// Who is tried, while somebody is confirmed to write.
pub(super) fn target(group: &Group, valid: &Valid) -> Option<Target> {
    let kept = group.kept()?;
    let site = group.serving(&kept)?.site.clone();
    let facts = group.seen.site(&site)?.facts.as_ref()?;
    let probe = &valid.object().spec.write_probe;
    // The probe's schema stands beside data of users only: a server that has nothing else could not be cloned into any more
    // once somebody else writes.
    let every = Some(probe.interval.as_std()).filter(|every| !every.is_zero() && facts.user_data);
    Some(Target { site, server: facts.server_uuid, every, within: probe.timeout.as_std() })
}

fn durability(valid: &Valid) -> Option<Warning> {
    let options = relaxed(&valid.object().spec);
    let words = || {
        format!(
            "spec.mysqlConf relaxes {}: a crash of a server can lose commits that it acknowledged; remove it to be safe",
            options.join(", ")
        )
    };
    (!options.is_empty()).then(|| (ConfigWarningReason::DurabilityRelaxed, words()))
}

/// Of the sites that are declared: a sidecar that is gone for good says nothing any more.
fn skew(valid: &Valid, beside: &BTreeMap<Site, Beside>) -> Option<Warning> {
    let said = |site: Site| beside.get(&site)?.version.clone().map(|version| (site, version));
    let others = valid.spec.names().into_iter().filter_map(said).filter(|(_, version)| version != VERSION);
    let others: Vec<String> = others.map(|(site, version)| format!("{site} ({version})")).collect();
    let words = || {
        format!(
            "sidecars of another release than this operator's ({VERSION}): {}; let the update go on, or set \
             spec.sidecarImage",
            others.join(", ")
        )
    };
    (!others.is_empty()).then(|| (ConfigWarningReason::SidecarVersionSkew, words()))
}

fn events(probed: &Probed) -> Option<Warning> {
    let (site, names) = probed.events.as_ref()?;
    let more = names.len().saturating_sub(NAMED);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    let names: Vec<&str> = names.iter().take(NAMED).map(String::as_str).collect();
    let words = format!(
        "scheduled events do not run at {site}, because they came to it by replication: {}{more}; ALTER EVENT … ENABLE \
         those that should run",
        names.join(", ")
    );
    Some((ConfigWarningReason::ScheduledEventsDisabled, words))
}
