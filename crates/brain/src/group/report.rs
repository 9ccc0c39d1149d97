//! What people see of a group at a glance: whether it is ready, what is wrong, what is under way. Made from the same
//! state that decides, so it cannot say anything else.
//!
//! In: the leader as it is. Out: a [`Report`]; whoever writes status adds what only the hands know (write probe, a
//! spec that was refused). Must not: decide.

use super::kept::{ClonePhase, Kept, Recovery, UpdatePhase};
use super::{Group, Obstacle, Receipts, Stored};
use crate::candidate::drain::{Applier, Receiver};
use crate::name::{Member, Site};
use crate::record::{Cause, Phase};
use crate::site::State;
use crate::time::Now;
use crate::topology::Alert;
use std::fmt::Write;

/// See above.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Report {
    /// Authority is Stable, its site writes, every other site follows it; else why not.
    pub ready: Result<(), NotReady>,
    /// Everything that is wrong, the worst first, each with its sentence.
    pub degraded: Vec<(Degraded, String)>,
    /// Sites that are being brought back, and sites that may not be.
    pub recovering: Vec<(Site, Recovery)>,
    /// The clone that runs or has failed.
    pub cloning: Option<(Site, ClonePhase, String)>,
    /// The ordered update that runs.
    pub updating: Option<UpdatePhase>,
    /// Why the group is paused.
    pub paused: Option<String>,
    /// The site that has authority; none while nobody has.
    pub active: Option<Site>,
}

/// Why a group is not ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NotReady {
    /// It never had a writer yet.
    Initializing,
    /// Nobody is confirmed to write.
    NoWritablePrimary,
    /// Some site does not follow.
    ReplicationUnhealthy,
}

/// What can be wrong, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Degraded {
    /// Nobody answers.
    TotalLoss,
    /// Several sites are writable.
    SplitBrain,
    /// What is stored cannot be read.
    AuthorityCorrupt,
    /// A higher epoch was heard than the record has.
    AuthorityBehind,
    /// Nobody is promoted without a proof.
    PromotionHeld,
    /// A move waits for the cooldown.
    CooldownActive,
    /// The holder lacks what another site has, and stays closed.
    HolderBehind,
    /// Nobody writes.
    NoPrimary,
    /// A replication thread has an error.
    ReplicationError,
    /// A replication thread stands still.
    ReplicationBroken,
    /// A replica is too far behind.
    ReplicationLagging,
    /// Commits go through without a receipt, or wait for one that nobody can give.
    SemiSyncInactive,
    /// A site does not answer while the primary writes.
    Alert,
}

impl Group {
    /// What people see at a glance.
    pub fn summary(&self, now: Now) -> Report {
        let kept = self.kept();
        let empty = Kept::default();
        let kept = kept.as_deref().unwrap_or(&empty);
        let mut degraded = self.degraded(now, kept);
        degraded.sort_by_key(|(reason, _)| *reason);
        let clone = |site: &Site| {
            let clone = kept.site(site).clone?;
            let shown = clone.phase.is_active() || clone.phase == ClonePhase::Failed;
            shown.then(|| (site.clone(), clone.phase, clone.message))
        };
        let recovery =
            |site: &Site| Some((site.clone(), kept.site(site).recovery)).filter(|(_, state)| *state != Recovery::None);
        Report {
            ready: self.ready(kept),
            degraded,
            recovering: self.spec.names().iter().filter_map(recovery).collect(),
            cloning: self.spec.names().iter().find_map(clone),
            updating: kept.update.as_ref().map(|update| update.phase).filter(|phase| *phase != UpdatePhase::Complete),
            paused: self.spec.pause(now.wall).map(|pause| pause.reason.clone()),
            active: kept.record.as_ref().and_then(|record| record.seat.as_ref()).map(|seat| seat.site.clone()),
        }
    }

    fn ready(&self, kept: &Kept) -> Result<(), NotReady> {
        let Some(primary) = self.serving(kept) else {
            let never = kept.record.as_ref().is_none_or(|record| record.tenure == 0);
            return Err(if never { NotReady::Initializing } else { NotReady::NoWritablePrimary });
        };
        let mut others = self.seen.sites.iter().filter(|(site, _)| **site != primary.site);
        if others.all(|(_, seen)| seen.following >= 2) { Ok(()) } else { Err(NotReady::ReplicationUnhealthy) }
    }

    fn degraded(&self, now: Now, kept: &Kept) -> Vec<(Degraded, String)> {
        let mut found = Vec::new();
        if let Stored::Corrupt(because, _) = &self.stored {
            found.push((
                Degraded::AuthorityCorrupt,
                format!("authority cannot be read: {because}; nothing moves until it is mended"),
            ));
        }
        if let Some(alert) = self.judged.as_ref().and_then(|judged| judged.alert.as_ref()) {
            let reason = match alert {
                Alert::TotalLoss => Degraded::TotalLoss,
                Alert::SplitBrain(_) => Degraded::SplitBrain,
                Alert::NoPrimary(_) => Degraded::NoPrimary,
                Alert::Unreachable { .. } => Degraded::Alert,
            };
            found.push((reason, alert.to_string()));
        }
        if let Some(record) =
            kept.record.as_ref().filter(|record| record.cause == Cause::RecordBehind && record.phase == Phase::Revoking)
        {
            found.push((
                Degraded::AuthorityBehind,
                format!("the record had gone back in time; starting over above epoch {}", record.epoch),
            ));
        }
        found.extend(self.obstacle.as_ref().and_then(|obstacle| self.obstructed(obstacle)));
        found.extend(self.holder_behind(kept));
        for site in self.spec.names() {
            found.extend(self.replica_trouble(now, kept, &site));
        }
        if let Some((site, Receipts::Missing(because))) = self.receipts(now, kept) {
            found.push((Degraded::SemiSyncInactive, format!("{site}: {because}")));
        }
        found
    }

    fn obstructed(&self, obstacle: &Obstacle) -> Option<(Degraded, String)> {
        match obstacle {
            Obstacle::Release(missing) => Some((Degraded::PromotionHeld, self.held_text(missing))),
            Obstacle::Cooldown(active) => Some((
                Degraded::CooldownActive,
                format!("failover blocked by anti-flap cooldown; retry after {}", active.retry_after),
            )),
            Obstacle::NoCandidate(refused) => {
                let why: Vec<String> = refused.iter().map(|(site, why)| format!("{site}: {why}")).collect();
                Some((Degraded::NoPrimary, format!("NO PRIMARY: nobody can be promoted ({})", why.join("; "))))
            }
            Obstacle::NextPod(site) => Some((
                Degraded::NoPrimary,
                format!("NO PRIMARY: every site was lost at once; waiting for {site}'s next pod"),
            )),
            Obstacle::Fresh(waiting) => Some((Degraded::NoPrimary, format!("NO PRIMARY: {waiting}"))),
            Obstacle::Receipts(site) => Some((
                Degraded::SemiSyncInactive,
                format!("{site} is not opened before its commits wait for receipts, and could not be told so yet"),
            )),
            Obstacle::Paused
            | Obstacle::Draining(_)
            | Obstacle::Reading(_)
            | Obstacle::EndingFence
            | Obstacle::BackingOff(_)
            | Obstacle::AwaitingTarget(_)
            | Obstacle::Cutting(_)
            | Obstacle::Opening(_)
            | Obstacle::Planned => None,
        }
    }

    /// What is missing, who is silent, and the command that overrides.
    fn held_text(&self, missing: &crate::authority::Missing) -> String {
        let silent: Vec<String> = missing.silent.iter().map(Member::to_string).collect();
        let mut text = format!("no proof that the last holder has let go; silent: {}", silent.join(", "));
        if missing.until.is_none() {
            let _ = write!(
                text,
                "; to accept the risk of two writers: kubectl patch mfg {} --type merge -p \
                 '{{\"spec\":{{\"promotion\":{{\"proof\":\"BestEffort\"}}}}}}'",
                self.spec.name
            );
        }
        text
    }

    /// The holder answers, closed, and lacks what another site has: its own sidecar will not open it.
    fn holder_behind(&self, kept: &Kept) -> Option<(Degraded, String)> {
        let record = kept.record.as_ref().filter(|record| record.phase == Phase::Stable)?;
        let seat = record.seat.as_ref()?;
        let closed = self.seen.site(&seat.site)?.watch.state == State::ReadOnly;
        let behind = closed && self.seen.site(&seat.site)?.executed().is_some() && !self.passes_gate(kept, seat);
        behind.then(|| {
            let message = format!(
                "{0} has authority and lacks transactions that another site has; it stays closed. To promote the other one: \
                 STOP REPLICA; RESET REPLICA ALL; SET GLOBAL read_only=OFF there",
                seat.site
            );
            (Degraded::HolderBehind, message)
        })
    }

    /// A broken link counts as lag, so it shows when the lag does.
    fn replica_trouble(&self, now: Now, kept: &Kept, site: &Site) -> Option<(Degraded, String)> {
        let primary = self.serving(kept)?;
        let replica = self.seen.site(site).filter(|_| primary.site != *site)?.facts.as_ref()?.replica.as_ref()?;
        if let Applier::Failed { code, message } = &replica.applier {
            return Some((
                Degraded::ReplicationError,
                format!("{site}: the applier failed with error {code}: {message}"),
            ));
        }
        if let Some(error) = &replica.receiver_error {
            return Some((Degraded::ReplicationError, format!("{site}: the receiver failed: {error}")));
        }
        if replica.applier == Applier::Stopped || replica.receiver == Receiver::Stopped {
            return Some((Degraded::ReplicationBroken, format!("{site}: a replication thread stands still")));
        }
        let lag = self.lag(now, site).filter(|lag| *lag > self.spec.max_lag)?;
        Some((Degraded::ReplicationLagging, format!("{site} is {} s behind", lag.0 / 1000)))
    }
}
