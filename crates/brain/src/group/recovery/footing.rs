//! What any repair stands on: one confirmed primary, and nobody else at work.
//!
//! In: what is stored and seen. Out: a [`Footing`], or what keeps it from being one. Must not: be asked once and
//! remembered; it holds for the step that asked.

use crate::group::{Group, Kept};
use crate::name::{Member, Site};
use crate::record::{Epoch, Phase};
use crate::time::Now;
use std::fmt;

/// One confirmed primary, and nothing that keeps sites from being brought back to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::group) struct Footing<'a> {
    pub(in crate::group) primary: &'a Member,
    pub(in crate::group) tenure: Epoch,
}

/// What keeps sites from being brought back or filled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::group) enum Hindrance {
    Paused,
    PlannedFailover,
    NoPrimary,
    OtherWriter(Site),
    NoAccount,
}

impl Group {
    /// The one confirmed primary, if sites may be brought back to it now.
    pub(in crate::group) fn footing<'a>(&self, now: Now, kept: &'a Kept) -> Result<Footing<'a>, Hindrance> {
        let standing = self.standing(now, kept)?;
        if self.spec.replication_account { Ok(standing) } else { Err(Hindrance::NoAccount) }
    }

    /// The one confirmed primary, while nobody else is at work; with or without an account for replication.
    pub(in crate::group) fn standing<'a>(&self, now: Now, kept: &'a Kept) -> Result<Footing<'a>, Hindrance> {
        if self.is_paused(now) {
            return Err(Hindrance::Paused);
        }
        if kept.planned_active().is_some() {
            return Err(Hindrance::PlannedFailover);
        }
        let record = kept.record.as_ref().filter(|record| record.phase == Phase::Stable);
        let record = record.filter(|record| self.seen.evidence.highest <= record.epoch).ok_or(Hindrance::NoPrimary)?;
        let primary = self.serving(kept).ok_or(Hindrance::NoPrimary)?;
        if let Some(site) = self.writer_beside(&primary.site) {
            return Err(Hindrance::OtherWriter(site));
        }
        Ok(Footing { primary, tenure: record.tenure })
    }

    /// A second server that writes, or could: it is closed first.
    fn writer_beside(&self, primary: &Site) -> Option<Site> {
        let judged = self.judged.as_ref().and_then(|judged| judged.fence.first()).map(|writer| writer.site.clone());
        let open =
            |site: &&Site| *site != primary && self.seen.site(site).is_some_and(|seen| seen.watch.is_seen_open());
        let mut sites = self.spec.sites.iter().map(|spec| &spec.site);
        judged.or_else(|| sites.find(open).cloned())
    }
}

/// Whether that site has authority, or had it last while it is being moved.
pub(in crate::group) fn has_authority(kept: &Kept, site: &Site) -> bool {
    let record = kept.record.as_ref();
    let seat = record.and_then(|record| record.seat.as_ref());
    let holder = record.and_then(|record| record.holder.as_ref()).map(|holder| &holder.member);
    seat.into_iter().chain(holder).any(|member| member.site == *site)
}

impl fmt::Display for Hindrance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Paused => write!(f, "the group is paused"),
            Self::PlannedFailover => write!(f, "a planned failover is under way"),
            Self::NoPrimary => write!(f, "there is no confirmed primary"),
            Self::OtherWriter(site) => write!(f, "{site} is open without authority and is being fenced"),
            Self::NoAccount => write!(
                f,
                "there is no replication account; put MYSQL_REPLICATION_USER and MYSQL_REPLICATION_PASSWORD into the \
                 Secret"
            ),
        }
    }
}
