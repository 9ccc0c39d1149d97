//! A judgement in words: one text for status, events and logs.

use super::{Alert, AuthorityUnknown, Lost, NoPrimary, NotServing, RegrantReason, SplitBrainAnswer, Verdict};
use crate::message::FencedBy;
use crate::name::Site;
use std::fmt;

impl Alert {
    /// The reason of the condition `Degraded`.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::TotalLoss => "TotalLoss",
            Self::SplitBrain(_) => "SplitBrain",
            Self::NoPrimary(_) => "NoPrimary",
            Self::Unreachable { .. } => "Alert",
        }
    }
}

impl fmt::Display for Alert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TotalLoss => f.write_str("TOTAL LOSS: no site answers"),
            Self::SplitBrain(writable) if writable.len() == 2 => f.write_str("SPLIT BRAIN: both sites are writable"),
            Self::SplitBrain(writable) => {
                write!(f, "SPLIT BRAIN: {} sites are writable ({})", writable.len(), names(writable))
            }
            Self::NoPrimary(why) => write!(f, "NO PRIMARY: {why}"),
            Self::Unreachable { primary, unreachable } => {
                write!(f, "{} unreachable while {primary} is primary", names(unreachable))
            }
        }
    }
}

impl fmt::Display for NoPrimary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCandidate { lost, dr_only } if dr_only.is_empty() => {
                write!(f, "{lost} and no primary-candidate answers")
            }
            Self::NoCandidate { lost, dr_only } => {
                write!(f, "{lost} and no primary-candidate answers; {} is never promoted (dr-only)", names(dr_only))
            }
            Self::HolderFenced { site, by } => write!(f, "{site} has authority and is fenced{}", fenced_by(*by)),
        }
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(site) => write!(f, "{site} is unreachable"),
            Self::DataLost(site) => write!(f, "{site} has lost its data"),
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AuthorityUnknown(why) => write!(f, "authority unknown: {why}"),
            Self::MoveInProgress { phase, cause, epoch } => {
                write!(f, "move in progress: {phase:?} in epoch {epoch} ({cause:?})")
            }
            Self::Wait { unknown } => write!(f, "wait: {} unknown", names(unknown)),
            Self::SelfMove { site, old, new } => write!(f, "move to itself: {site} lives on as {new}, was {old}"),
            Self::TotalLoss => f.write_str("total loss"),
            Self::SplitBrain(split) => write!(f, "split brain: {} writable, {}", names(&split.writable), split.answer),
            Self::Healthy { primary } => write!(f, "healthy: {primary}"),
            Self::Degraded { primary, unreachable } => write!(f, "degraded: {primary} without {}", names(unreachable)),
            Self::UnauthorisedWriter { site } => write!(f, "unauthorised writer: {site}"),
            Self::ManualPromotion { site, holder } => {
                write!(f, "manual promotion: {site} was opened by hand, the holder {}", not_serving(*holder))
            }
            Self::Failover { lost, candidates } => write!(f, "failover: {lost}, candidates {}", names(candidates)),
            Self::Regrant { holder, why } => write!(f, "regrant: {} was fenced by {}", holder.site, regrant(*why)),
            Self::HolderClosed { site, polls, needed } => {
                write!(f, "holder closed: {site} is read-only ({polls} of {needed} polls)")
            }
            Self::NoPrimary(why) => write!(f, "no primary: {why}"),
        }
    }
}

impl fmt::Display for AuthorityUnknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRecord { split_brain: None } => f.write_str("no record"),
            Self::NoRecord { split_brain: Some(split) } => {
                write!(f, "no record, {} writable, {}", names(&split.writable), split.answer)
            }
            Self::RecordBehind { heard, record } => write!(f, "epoch {heard} was heard, the record is at {record}"),
        }
    }
}

impl fmt::Display for SplitBrainAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RecordStands(holder) => write!(f, "{} has authority", holder.site),
            Self::PolicyWinner(site) => write!(f, "{site} wins by policy"),
            Self::AlertOnly => f.write_str("no policy decides"),
        }
    }
}

const fn not_serving(holder: NotServing) -> &'static str {
    match holder {
        NotServing::Unreachable => "is unreachable",
        NotServing::ReadOnly => "is read-only",
        NotServing::Replaced => "was replaced",
    }
}

const fn regrant(why: RegrantReason) -> &'static str {
    match why {
        RegrantReason::OwnSqlFence => "the operator's own SQL fence",
        RegrantReason::ConflictingViews => "two views of one epoch",
    }
}

const fn fenced_by(by: Option<FencedBy>) -> &'static str {
    match by {
        Some(FencedBy::Boot) => " since its start",
        Some(FencedBy::Mismatch) => " because its view names somebody else",
        Some(FencedBy::Lease) => " because its lease ran out",
        Some(FencedBy::Conflict) => " because it saw two views of one epoch",
        Some(FencedBy::Others) => " by hand; the fence stays until it is lifted by hand",
        None => "; its sidecar does not say why",
    }
}

fn names(sites: &[Site]) -> String {
    sites.iter().map(Site::as_str).collect::<Vec<_>>().join(", ")
}
