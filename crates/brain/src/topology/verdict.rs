//! The words of a judgement. Every verdict carries its reason, so that status, events and logs say the same.

use crate::message::FencedBy;
use crate::name::{Instance, Member, Site};
use crate::record::{Cause, Epoch, Phase};
use crate::site::Pair;
use std::fmt;

/// What a tick comes to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Judgement {
    /// What is the case.
    pub verdict: Verdict,
    /// What people should see, also while a move goes on.
    pub alert: Option<Alert>,
    /// Who writes, or could, without authority. To be fenced on every tick until it holds, whatever the verdict.
    pub fence: Vec<Writer>,
}

/// What is the case.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The record does not say who has authority: start over in Revoking, above every epoch heard.
    AuthorityUnknown(AuthorityUnknown),
    /// Go on with the move from the record.
    MoveInProgress {
        /// How far it is.
        phase: Phase,
        /// Why it was begun.
        cause: Cause,
        /// The record's epoch.
        epoch: Epoch,
    },
    /// Nothing is decided on sites that no poll has decided about.
    Wait {
        /// Those sites.
        unknown: Vec<Site>,
    },
    /// The holder's site lives on as another instance: revoke, prove the old one's release, grant to the new one.
    SelfMove {
        /// The holder's site.
        site: Site,
        /// The instance that the record names.
        old: Instance,
        /// The instance that answers.
        new: Instance,
    },
    /// Nobody answers.
    TotalLoss,
    /// More than one site is writable.
    SplitBrain(SplitBrain),
    /// Only the holder is writable, all others follow.
    Healthy {
        /// The holder's site.
        primary: Site,
    },
    /// Only the holder is writable, some sites do not answer. No reason to move anything.
    Degraded {
        /// The holder's site.
        primary: Site,
        /// Who does not answer.
        unreachable: Vec<Site>,
    },
    /// One site is writable, and it is not the holder. It is fenced; what then is the case decides.
    UnauthorisedWriter {
        /// That site.
        site: Site,
    },
    /// A primary-candidate was opened by hand while the holder does not serve: a request to move there now.
    ManualPromotion {
        /// The wish.
        site: Site,
        /// Why the holder does not serve.
        holder: NotServing,
    },
    /// The holder is lost, and there is somebody to promote.
    Failover {
        /// How the holder was lost.
        lost: Lost,
        /// Read-only primary-candidates, in declared order.
        candidates: Vec<Site>,
    },
    /// The holder is fenced for a reason that is the operator's own: revoke and grant to it again.
    Regrant {
        /// The holder.
        holder: Member,
        /// Which reason.
        why: RegrantReason,
    },
    /// The holder answers read-only, not for long enough to alert: its own sidecar opens it, or says why not.
    HolderClosed {
        /// The holder's site.
        site: Site,
        /// Polls in a row that saw it so.
        polls: u32,
        /// How many it takes.
        needed: u32,
    },
    /// Nobody writes, and nothing is done about it across sites.
    NoPrimary(NoPrimary),
}

/// Why authority is unknown.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AuthorityUnknown {
    /// There is no record.
    NoRecord {
        /// Several sites are writable, and what the policy says to it.
        split_brain: Option<SplitBrain>,
    },
    /// A sidecar knows a later epoch than the record.
    RecordBehind {
        /// The highest epoch heard.
        heard: Epoch,
        /// The record's epoch.
        record: Epoch,
    },
}

/// Several writable sites.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SplitBrain {
    /// All of them, in declared order.
    pub writable: Vec<Site>,
    /// Who stays.
    pub answer: SplitBrainAnswer,
}

/// Who stays in a split brain.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SplitBrainAnswer {
    /// The record's instance, whatever the policy says; it may be dead or fenced.
    RecordStands(Member),
    /// Without a record: the first writable primary-candidate of the priority list.
    PolicyWinner(Site),
    /// Without a record and without a list that names a writable candidate: nobody is chosen, people are told.
    AlertOnly,
}

/// How a holder was lost.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lost {
    /// It does not answer.
    Unreachable(Site),
    /// It answers with an empty set although data are known to exist.
    DataLost(Site),
}

/// Why a holder does not serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NotServing {
    /// It does not answer.
    Unreachable,
    /// It answers, read-only.
    ReadOnly,
    /// Another instance answers in its place, without its data.
    Replaced,
}

/// Why authority is granted again to the same instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RegrantReason {
    /// The operator sent it an SQL fence since its last grant, and others than its sidecar fenced it.
    OwnSqlFence,
    /// It saw two views of one epoch.
    ConflictingViews,
}

/// Why nobody writes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum NoPrimary {
    /// The holder is lost, and no primary-candidate is read-only.
    NoCandidate {
        /// How the holder was lost.
        lost: Lost,
        /// Sites that answer and are never promoted.
        dr_only: Vec<Site>,
    },
    /// The holder answers, read-only.
    HolderFenced {
        /// The holder's site.
        site: Site,
        /// Who fenced it, by its sidecar's word. `Others`: a human, whose fence stays.
        by: Option<FencedBy>,
    },
}

/// What people should see.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Alert {
    /// Nobody answers.
    TotalLoss,
    /// Several sites are writable.
    SplitBrain(Vec<Site>),
    /// Nobody writes.
    NoPrimary(NoPrimary),
    /// Sites do not answer while the primary is writable.
    Unreachable {
        /// The holder's site.
        primary: Site,
        /// Who does not answer.
        unreachable: Vec<Site>,
    },
}

/// A server that is not fenced and has no authority.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Writer {
    /// The site.
    pub site: Site,
    /// The instance, when known; the statement is meant for no other.
    pub instance: Option<Instance>,
    /// The variables, when a poll read them.
    pub pair: Option<Pair>,
    /// Why it may not write.
    pub why: WriterReason,
}

/// Why a server may not write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WriterReason {
    /// It had authority until it was revoked. Its own sidecar fences it; SQL is a help that is noted in the record first
    /// and waits for the sidecar's acknowledgement.
    Revoked,
    /// The record names another instance of this site.
    AnotherInstance,
    /// It is never a primary.
    DrOnly,
    /// It was opened by hand.
    OpenedByHand,
    /// The record names another site.
    NotTheHolder,
    /// There is no record: nobody may write.
    NoRecord,
}

impl fmt::Display for WriterReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Revoked => "its authority was revoked",
            Self::AnotherInstance => "another instance of the site has authority",
            Self::DrOnly => "it is dr-only and never a primary",
            Self::OpenedByHand => "it was opened by hand",
            Self::NotTheHolder => "another site has authority",
            Self::NoRecord => "there is no record, so nobody may write",
        })
    }
}
