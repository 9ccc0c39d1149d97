//! The leader as it is, for gauges and for what appears and goes.
//!
//! In: the leader, and what was seen at the last glance. Out: gauges, and Events for every Degraded reason that appears, for
//! one that holds on (`PromotionHeld`), and for the moment when nothing is wrong any more. Must not: say what the condition
//! does not say.

use super::notice::state;
use super::told::{Told, seconds};
use bloodraven_api::conditions::{ConfigWarningReason, DegradedReason};
use bloodraven_api::events::EventReason;
use bloodraven_blueprint::conditions::{self, Hands};
use bloodraven_brain::candidate::drain::{Applier, Receiver};
use bloodraven_brain::group::kept::Kept;
use bloodraven_brain::group::seen::SiteSeen;
use bloodraven_brain::group::spec::SiteSpec;
use bloodraven_brain::group::{Group, Receipts};
use bloodraven_brain::name::Site;
use bloodraven_brain::record::Phase;
use bloodraven_brain::site::Role;
use bloodraven_brain::time::{Boot, Now};
use bloodraven_telemetry::GroupMetrics;
use bloodraven_telemetry::log::{Field, Level, Line};
use bloodraven_telemetry::words::{AuthorityPhase, CloneBytes, ReplicationThread, SiteRole, TaintAction};
use std::collections::BTreeSet;

/// What was seen at the last glance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Memory {
    /// When it was, and whether somebody served then.
    last: Option<(Boot, bool)>,
    /// Degraded reasons that held.
    holding: BTreeSet<DegradedReason>,
    /// Sites that were declared.
    declared: BTreeSet<Site>,
    /// Sites that refused the operator's login.
    refused: BTreeSet<Site>,
    /// Warnings that are Events, too, and held.
    warned: BTreeSet<EventReason>,
    /// The site that the DNS record named.
    dns: Option<Site>,
    /// Sites whose nodes should carry the taint; none: not looked yet.
    tainted: Option<BTreeSet<Site>>,
}

impl Memory {
    /// What has appeared and what is over. Sets every gauge on the way.
    pub(super) fn glance(&mut self, now: Now, group: &Group, hands: &Hands, metrics: &GroupMetrics) -> Told {
        self.forget_sites(group, metrics);
        for wanted in &group.spec.sites {
            site(now, group, wanted, metrics);
        }
        let told = {
            let told = self.logins(group);
            self.warnings(group, hands, told)
        };
        match group.kept() {
            Some(kept) => {
                self.authority(now, group, &kept, metrics);
                self.outward(group, &kept, metrics);
            }
            None => self.last = None,
        }
        self.degraded(now, group, hands, metrics, told)
    }

    fn forget_sites(&mut self, group: &Group, metrics: &GroupMetrics) {
        let declared: BTreeSet<Site> = group.spec.names().into_iter().collect();
        for gone in self.declared.difference(&declared) {
            metrics.forget_site(gone.as_str());
        }
        self.declared = declared;
    }

    fn authority(&mut self, now: Now, group: &Group, kept: &Kept, metrics: &GroupMetrics) {
        let serving = group.serving(kept).is_some();
        if let Some(record) = &kept.record {
            metrics.authority_epoch().set(i64::try_from(record.epoch).unwrap_or(i64::MAX));
            metrics.show_phase(match record.phase {
                Phase::Revoking => AuthorityPhase::Revoking,
                Phase::Granting => AuthorityPhase::Granting,
                Phase::Stable => AuthorityPhase::Stable,
            });
        }
        // A group that never had a primary is not unavailable; it is being made.
        let had_one = kept.record.as_ref().is_some_and(|record| record.tenure > 0);
        let unavailable = metrics.unavailable();
        if let Some((before, false)) = self.last.filter(|_| had_one) {
            unavailable.inc_by(seconds(now.boot.since(before)));
        }
        self.last = Some((now.boot, serving));
    }

    /// The record's flips and the taints' changes, as far as the outside has followed.
    fn outward(&mut self, group: &Group, kept: &Kept, metrics: &GroupMetrics) {
        let active = kept.record.as_ref().and_then(|record| record.seat.as_ref()).map(|seat| seat.site.clone());
        let written = group.seen.shown.as_ref().is_some_and(|shown| shown.dns.is_ok());
        if let Some(site) = active.filter(|site| written && self.dns.as_ref() != Some(site)) {
            if self.dns.is_some() {
                metrics.dns_flips(site.as_str()).inc();
            }
            self.dns = Some(site);
        }
        let tainted: BTreeSet<Site> =
            kept.sites.iter().filter(|(_, kept)| kept.tainted).map(|(site, _)| site.clone()).collect();
        if let Some(before) = self.tainted.replace(tainted.clone()) {
            for site in tainted.difference(&before) {
                metrics.taint_operations(site.as_str(), TaintAction::Taint).inc();
            }
            for site in before.difference(&tainted) {
                metrics.taint_operations(site.as_str(), TaintAction::Untaint).inc();
            }
        }
    }

    fn logins(&mut self, group: &Group) -> Told {
        let now_refused = group.seen.sites.iter().filter(|(_, seen)| seen.watch.login_refused);
        let refused: BTreeSet<Site> = now_refused.map(|(site, _)| site.clone()).collect();
        let mut told = Told::new();
        for site in refused.difference(&self.refused) {
            let message = format!(
                "{site} refuses the operator's login; its state stays as it was and nothing moves because of it. Compare the \
                 operator's Secret with the account on that server"
            );
            told = told.event(EventReason::CredentialReconcileFailed, message);
        }
        self.refused = refused;
        told.also_as_prose()
    }

    /// Of the warnings that the condition shows, those that somebody else has to hear of as well.
    fn warnings(&mut self, group: &Group, hands: &Hands, mut told: Told) -> Told {
        let skew = hands.warnings.iter().find(|(reason, _)| *reason == ConfigWarningReason::SidecarVersionSkew);
        let taints = group.seen.shown.as_ref().and_then(|shown| shown.taints.clone().err());
        let taints =
            taints.map(|why| format!("node taints are not as wanted: {why}; mend taintNodeSelector of the sites"));
        let found = [
            (EventReason::SidecarVersionSkew, skew.map(|(_, text)| text.clone())),
            (EventReason::TaintConflict, taints),
        ];
        let mut warned = BTreeSet::new();
        for (reason, text) in found {
            let Some(text) = text else { continue };
            if !self.warned.contains(&reason) {
                let saying = Told::new().event(reason, text).also_as_prose();
                told.events.extend(saying.events);
                told.lines.extend(saying.lines);
            }
            warned.insert(reason);
        }
        self.warned = warned;
        told
    }

    fn degraded(&mut self, now: Now, group: &Group, hands: &Hands, metrics: &GroupMetrics, told: Told) -> Told {
        let found = conditions::degraded_now(group, now, hands);
        let words: Vec<&str> = found.iter().map(|(reason, _)| reason.as_str()).collect();
        let all = DegradedReason::ALL.iter().filter(|reason| **reason != DegradedReason::Healthy);
        metrics.show_degraded(all.map(|reason| reason.as_str()), &words);
        metrics.promotion_held().set(i64::from(words.contains(&DegradedReason::PromotionHeld.as_str())));
        self.changes(&found, told)
    }

    /// An Event for each reason that appears, again and again for a promotion that is held, and one for the end of it all.
    pub(super) fn changes(&mut self, found: &[(DegradedReason, String)], mut told: Told) -> Told {
        let holding: BTreeSet<DegradedReason> = found.iter().map(|(reason, _)| *reason).collect();
        for (reason, text) in found {
            let goes_on = self.holding.contains(reason) && *reason != DegradedReason::PromotionHeld;
            if let Some(event) = EventReason::of_degraded(*reason).filter(|_| !goes_on) {
                // Numbers change from glance to glance; what is wrong is the same.
                let key: String = text.chars().filter(|letter| !letter.is_ascii_digit()).collect();
                told = told.event_once(event, key, text.clone());
            }
        }
        if holding.is_empty() && !self.holding.is_empty() {
            let was: Vec<&str> = self.holding.iter().map(|reason| reason.as_str()).collect();
            let message = format!("nothing is wrong any more; it was: {}", was.join(", "));
            let line = Line::prose(Level::Info, message.clone()).text(Field::Reason, EventReason::SiteRecovered);
            told = told.event(EventReason::SiteRecovered, message).line(line);
        }
        self.holding = holding;
        told
    }
}

fn site(now: Now, group: &Group, wanted: &SiteSpec, metrics: &GroupMetrics) {
    let name = wanted.site.as_str();
    let role = match wanted.role {
        Role::PrimaryCandidate => SiteRole::PrimaryCandidate,
        Role::DrOnly => SiteRole::DrOnly,
    };
    let unseen = SiteSeen::new(&wanted.site);
    let seen = group.seen.site(&wanted.site).unwrap_or(&unseen);
    metrics.show_site_state(name, role, state(seen.watch.state));
    let lag = group.lag(now, &wanted.site).map_or(-1.0, seconds);
    metrics.replication_lag(name, role).set(lag);
    let replica = seen.facts.as_ref().and_then(|facts| facts.replica.as_ref());
    let runs = |runs: Option<bool>| runs.map_or(-1, i64::from);
    let receiver = replica.map(|replica| replica.receiver == Receiver::Running);
    let applier = replica.map(|replica| replica.applier == Applier::Running);
    metrics.replication_running(name, ReplicationThread::Io).set(runs(receiver));
    metrics.replication_running(name, ReplicationThread::Sql).set(runs(applier));
    if let Some(kept) = group.kept() {
        kept_of_site(&kept, &wanted.site, group.clone_bytes(&kept, &wanted.site), metrics);
        receipts(now, group, &kept, name, metrics);
    }
    if group.spec.cache.is_some() {
        let up = seen.cache.as_ref().is_some_and(Option::is_some);
        metrics.dragonfly_site_up(name).set(i64::from(up));
    }
}

/// Of the primary, where receipts are wanted; a series of anybody else would be an alarm about nothing.
fn receipts(now: Now, group: &Group, kept: &Kept, name: &str, metrics: &GroupMetrics) {
    match group.receipts(now, kept).filter(|(primary, _)| primary.as_str() == name) {
        Some((_, receipts)) => {
            metrics.semi_sync_active(name).set(i64::from(receipts == Receipts::Given));
        }
        None => metrics.remove_from("semi_sync_active", &[("site", name)]),
    }
}

fn kept_of_site(kept: &Kept, site: &Site, bytes: Option<(u64, u64)>, metrics: &GroupMetrics) {
    let whole = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let known = kept.site(site);
    let divergent = i64::try_from(known.divergent.count()).unwrap_or(i64::MAX);
    metrics.divergent_transactions(site.as_str()).set(divergent);
    let seat = kept.record.as_ref().and_then(|record| record.seat.as_ref());
    let unapplied = seat.filter(|seat| seat.site == *site).map_or(0, |_| kept.unapplied.count());
    metrics.unapplied_transactions(site.as_str()).set(i64::try_from(unapplied).unwrap_or(i64::MAX));
    match bytes {
        Some((done, total)) => {
            metrics.clone_bytes(site.as_str(), CloneBytes::Done).set(whole(done));
            metrics.clone_bytes(site.as_str(), CloneBytes::Total).set(whole(total));
        }
        None => metrics.remove_from("clone_bytes", &[("site", site.as_str())]),
    }
}
