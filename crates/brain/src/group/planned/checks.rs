//! Every check that a request has to pass, in the order in which people are told. All of them before any fence.

use super::super::kept::{Kept, PlannedReason, Recovery, UpdatePhase};
use super::super::{Group, input::PlannedWish};
use crate::cooldown::{self, Active, Reach};
use crate::name::{Member, Site};
use crate::record::{Cause, Phase};
use crate::site::State;
use crate::time::{Millis, Now};

/// Why a request is not accepted now.
pub(super) enum Refusal {
    /// The target has authority already.
    AlreadyActive,
    /// For good.
    Rejected(PlannedReason, String),
    /// Only because of the cooldown.
    Cooldown(Active),
}

/// A leader that was elected less than this ago may not have looked at everything yet.
const LOOKS_AROUND: Millis = Millis::from_secs(10);

impl Group {
    /// Whether this leader is too young to say anything of that target, or of the source: what it has not seen yet is no
    /// reason to refuse anything.
    pub(super) fn still_looks_around(&self, now: Now, kept: &Kept, target: &Site) -> bool {
        let young = now.boot < self.seen.evidence.elected + LOOKS_AROUND;
        let unknown = self.seen.sites.values().any(|seen| seen.watch.state == State::Unknown);
        let unread = self.seen.site(target).is_some_and(|seen| {
            let silent = self.present(self.lease(kept.record.as_ref()), target).is_none();
            seen.watch.state.is_reachable() && (seen.watch.answers < 2 || seen.following < 2 || silent)
        });
        young && (unknown || unread)
    }

    pub(super) fn check_request(&self, now: Now, kept: &Kept, wish: &PlannedWish) -> Result<(), Refusal> {
        let rejected = |(reason, message)| Refusal::Rejected(reason, message);
        self.check_site(&wish.site).map_err(rejected)?;
        let seat = kept.record.as_ref().and_then(|record| record.seat.as_ref());
        if seat.is_some_and(|seat| seat.site == wish.site) {
            return Err(Refusal::AlreadyActive);
        }
        self.check_quiet(now, kept, false).map_err(rejected)?;
        self.check_target(now, kept, &wish.site, wish.max_lag_wait.unwrap_or(self.spec.planned.max_lag_wait))
            .map_err(rejected)?;
        let last = self.seen.last_failover.as_ref();
        cooldown::may_start(Cause::Planned, Reach::OtherSite, last, self.spec.cooldown, now.boot)
            .map_err(Refusal::Cooldown)
    }

    fn check_site(&self, site: &Site) -> Result<(), (PlannedReason, String)> {
        if self.spec.site(site).is_none() {
            let names: Vec<String> = self.spec.names().iter().map(ToString::to_string).collect();
            return Err((
                PlannedReason::UnknownSite,
                format!("no site is named {site}; write one of: {}", names.join(", ")),
            ));
        }
        if !self.spec.is_candidate(site) {
            let message = format!("{site} is dr-only and is never promoted; change its role first");
            return Err((PlannedReason::UnknownSite, message));
        }
        Ok(())
    }

    /// Nothing else is under way.
    pub(super) fn check_quiet(&self, now: Now, kept: &Kept, by_update: bool) -> Result<(), (PlannedReason, String)> {
        if let Some(pause) = self.spec.pause(now.wall) {
            return Err((PlannedReason::Paused, format!("the group is paused: {}", pause.reason)));
        }
        let concurrent = |message: String| Err((PlannedReason::ConcurrentOperation, message));
        let updating = kept.update.as_ref().is_some_and(|update| update.phase != UpdatePhase::Complete);
        if updating && !by_update {
            return concurrent("an ordered update is under way".to_owned());
        }
        if let Some(site) = kept.cloning() {
            return concurrent(format!("a clone into {site} is under way"));
        }
        match &kept.record {
            Some(record) if record.phase == Phase::Stable => Ok(()),
            _ => concurrent("authority is being moved".to_owned()),
        }
    }

    /// The target could take over.
    pub(super) fn check_target(
        &self,
        now: Now,
        kept: &Kept,
        target: &Site,
        max_lag: Millis,
    ) -> Result<(), (PlannedReason, String)> {
        self.check_site(target)?;
        let unhealthy = |message: String| Err((PlannedReason::TargetUnhealthy, message));
        let (Some(seen), Some(record)) = (self.seen.site(target), &kept.record) else {
            return unhealthy(format!("{target} is not known yet"));
        };
        if seen.watch.state != State::ReadOnly {
            return unhealthy(format!("{target} is {}, not read-only", seen.watch.state));
        }
        if seen.following < 2 {
            return unhealthy(format!("{target} does not replicate from the primary"));
        }
        if kept.site(target).recovery != Recovery::None {
            return unhealthy(format!("{target} is being recovered"));
        }
        let present = self.present(record.settings.lease_timeout, target).map(|instance| Member::new(target, instance));
        if !present.is_some_and(|member| record.voters.contains(&member)) {
            return unhealthy(format!("{target}'s sidecar is silent, or not taken in yet"));
        }
        match self.lag(now, target) {
            Some(lag) if lag <= max_lag => Ok(()),
            Some(lag) => unhealthy(format!("{target} is {} s behind, more than {} s", lag.0 / 1000, max_lag.0 / 1000)),
            None => unhealthy(format!("it is not known how far {target} is behind")),
        }
    }
}
