//! Everything that a group's leader can have done: one closed enum.
//!
//! Each command may be given again; giving it twice changes nothing more. Each task is answered with
//! [`super::Input::Done`], at the latest when its bound is over.

use super::accounts::{AccountRole, CredentialsVersion};
use super::kept::Kept;
use crate::authority::Answer;
use crate::fence::ReplyId;
use crate::message::Grant;
use crate::name::{Member, Site};
use crate::record::{Epoch, View};
use crate::time::Millis;
use bloodraven_gtid::{GtidSet, Uuid};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Names a save.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SaveId(pub u64);

/// Names a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkId(pub u64);

/// See above.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Read both copies of what is kept from the store itself, never from a cache. Answered within 5 s, or not at all.
    Load,
    /// Write what is kept, compare-and-swap: the record's annotation, then the status.
    Save {
        /// For the answer.
        id: SaveId,
        /// What.
        kept: Box<Kept>,
    },
    /// Push the view to that site's sidecar; its acknowledgement and those it hands on come as `Heard`.
    Push {
        /// Whose sidecar.
        to: Site,
        /// What.
        view: Box<View>,
    },
    /// Ask that site's sidecar who it is and what it has stored, while there is no view to push; its acknowledgement comes
    /// as `Heard`.
    Probe {
        /// Whose sidecar.
        to: Site,
    },
    /// Answer a sidecar's question; without an answer: nothing is known yet.
    Answer {
        /// Where to.
        reply: ReplyId,
        /// What.
        answer: Option<Box<Answer>>,
    },
    /// Answer a question that rode on an acknowledgement, by a push of its own.
    Grant(Box<Grant>),
    /// Do something to a site's server.
    Work {
        /// For the answer.
        id: WorkId,
        /// Which site.
        site: Site,
        /// The server that is meant; another one is left alone. None: whichever answers.
        server: Option<Uuid>,
        /// What.
        task: Task,
        /// Bound.
        within: Millis,
    },
    /// Make the outside look so.
    Show(Box<Outward>),
    /// Remove a request, if it still reads so.
    RemoveRequest {
        /// Which.
        kind: RequestKind,
        /// As it was read.
        text: String,
    },
    /// Bring the site's pod to what the spec wants.
    Roll {
        /// Which site.
        site: Site,
    },
    /// Take the instance finalizer off this pod.
    ReleasePod {
        /// Its UID.
        uid: Arc<str>,
    },
    /// Write the image into `spec.dragonfly.image`.
    SetCacheImage {
        /// Which.
        image: String,
    },
}

/// What is done to a site's server, or to its cache. None of it opens anything.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Task {
    /// Read everything that a poll reads, now.
    Read,
    /// `super_read_only=ON`, applications' sessions ended, then read: a help, never a proof. The session is ended when this
    /// ends.
    Fence,
    /// End the applications' sessions once; tells how many are left.
    EndSessions,
    /// `STOP REPLICA IO_THREAD`, then read.
    StopReceiver,
    /// `START REPLICA SQL_THREAD`.
    StartApplier,
    /// Stop the applier, set the delay to zero, start it.
    LiftDelay,
    /// `STOP REPLICA`; then, only if what was received and not executed is exactly this, `RESET REPLICA ALL`; then read.
    CutReplication {
        /// What is given up.
        unapplied: Box<GtidSet>,
    },
    /// `START REPLICA`.
    StartReplica,
    /// Bring a server without replication to follow that site: fence, then, only if the source's set still contains its
    /// own, reset, point, start; then read.
    Attach {
        /// The source.
        source: Site,
        /// The source's set, as just read.
        contained_in: Box<GtidSet>,
    },
    /// Point a replica to that site: stop, then, only if the source's set still contains its own, what it has received
    /// included, point and start; then read.
    Repoint {
        /// The source.
        source: Site,
        /// The source's set, as just read.
        contained_in: Box<GtidSet>,
    },
    /// Switch the sides of semi-synchronous replication; a receiver that runs is started anew when the replica's side is
    /// named, for it takes that up only when it connects; then read.
    SwitchSemiSync(Switch),
    /// Log in with each account of that version, and look what the channel logs in with; refused when the Secrets are others
    /// by now. Answered with `Logins`.
    CheckLogins {
        /// Of the Secrets.
        version: CredentialsVersion,
    },
    /// `ALTER USER` for these accounts, on the open server that has authority in that epoch, with the passwords of that
    /// version; refused when either is another by now. The password before stays good for now. Then as `CheckLogins`.
    SetPasswords {
        /// Of the Secrets.
        version: CredentialsVersion,
        /// Of the record.
        epoch: Epoch,
        /// Whose.
        accounts: Vec<AccountRole>,
    },
    /// Let these accounts in with the passwords of that version alone; otherwise as `SetPasswords`.
    DiscardPasswords {
        /// Of the Secrets.
        version: CredentialsVersion,
        /// Of the record.
        epoch: Epoch,
        /// Whose.
        accounts: Vec<AccountRole>,
    },
    /// Give the channel the replication account of that version: the receiver is stopped and started, what was received
    /// stays. Refused when the applier does not run and something is left for it.
    RenewChannel {
        /// Of the Secrets.
        version: CredentialsVersion,
    },
    /// Wait until that set is executed, a slice of the time, then read.
    WaitFor {
        /// Which.
        set: Box<GtidSet>,
    },
    /// Copy everything from that site, over exactly what is meant: refused unless the server is fenced and has executed
    /// nothing beyond this. Ends when the server has started anew, or with an error.
    Clone {
        /// The donor.
        donor: Site,
        /// What may be overwritten; none: whatever is there, as an admin asked for and nobody can read.
        over: Option<Box<GtidSet>>,
        /// An admin asked for it: schemas that stand in the way go, with the whole data folder.
        asked: bool,
    },
    /// Of the cache.
    Cache(CacheTask),
}

/// Sides of semi-synchronous replication that are switched; none: that one stays as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Switch {
    /// The source's.
    pub source: Option<SourceSwitch>,
    /// The replica's.
    pub replica: Option<bool>,
}

/// How the source's side is switched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SourceSwitch {
    /// On: a commit waits so long for one receipt, before anybody sees it. Zero: for ever.
    On {
        /// How long.
        timeout: Millis,
    },
    /// Off, refused by a server that is not closed: commits that wait there would go through without a receipt.
    OffIfClosed,
    /// Off, whatever waits: nobody asks for receipts any more.
    Off,
}

/// What is done to a site's cache.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CacheTask {
    /// Follow that site.
    Follow {
        /// Its master.
        master: Site,
    },
    /// Take over from the master, with everything it has.
    TakeOver {
        /// How long the server may try.
        within: Millis,
    },
    /// Become a master with what has arrived.
    Promote,
    /// End the clients' connections.
    EndClients,
    /// Read the offset.
    Offset,
    /// Write a snapshot.
    Snapshot,
    /// Bring its pod to that image.
    Roll {
        /// Which.
        image: String,
    },
}

/// Tasks of one lane run one after another at a site; those of different lanes do not wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// Reading only.
    Read,
    /// Fences and ended sessions.
    Fence,
    /// Whatever changes replication, clones included.
    Change,
    /// Logins and passwords: nobody waits for them.
    Accounts,
    /// The cache.
    Cache,
}

/// The requests that can stand on a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RequestKind {
    /// `planned-failover`.
    PlannedFailover,
    /// `reclone-site`.
    Reclone,
    /// `dragonfly-snapshot-upgrade`.
    CacheUpgrade,
}

/// How the outside should look. Made so in this order: labels (the primary's last, and taken off first), DNS, taints (the
/// new primary's removed last).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Outward {
    /// The record's epoch.
    pub epoch: Epoch,
    /// The one pod that is `primary`.
    pub primary: Option<Member>,
    /// The label of every other site's pod.
    pub labels: BTreeMap<Site, Label>,
    /// The site that the name points to; none: leave it as it is.
    pub dns: Option<Site>,
    /// Sites whose nodes carry the taint, or do not; none: leave them as they are.
    pub taints: Option<BTreeMap<Site, bool>>,
    /// The cache's labels.
    pub cache: Option<CacheLabels>,
}

/// The labels of a pod that is not the primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Label {
    /// `fenced` (else `replica`).
    pub fenced: bool,
    /// `healthy`; none: leave it as it is.
    pub healthy: Option<bool>,
}

/// The labels of the caches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct CacheLabels {
    /// The site labelled master.
    pub master: Option<Site>,
    /// Whether it gets traffic.
    pub traffic: bool,
}

impl Task {
    /// The lane it runs in.
    pub const fn lane(&self) -> Lane {
        match self {
            Self::Read | Self::WaitFor { .. } => Lane::Read,
            Self::Fence | Self::EndSessions => Lane::Fence,
            Self::StopReceiver
            | Self::StartApplier
            | Self::LiftDelay
            | Self::CutReplication { .. }
            | Self::StartReplica
            | Self::Attach { .. }
            | Self::Repoint { .. }
            | Self::SwitchSemiSync(_)
            | Self::RenewChannel { .. }
            | Self::Clone { .. } => Lane::Change,
            Self::CheckLogins { .. } | Self::SetPasswords { .. } | Self::DiscardPasswords { .. } => Lane::Accounts,
            Self::Cache(_) => Lane::Cache,
        }
    }

    /// Its bound, a clone apart.
    pub const fn bound(&self) -> Millis {
        match self {
            Self::Fence => Millis(1500),
            Self::EndSessions | Self::WaitFor { .. } | Self::Cache(CacheTask::EndClients) => Millis(2000),
            Self::Cache(CacheTask::TakeOver { within }) => Millis(within.0 + 2000),
            Self::Cache(CacheTask::Snapshot) => Millis::from_secs(300),
            Self::Attach { .. } | Self::Repoint { .. } => Millis::from_secs(15),
            // One login after the other, some of them over a long line.
            Self::CheckLogins { .. } | Self::SetPasswords { .. } | Self::DiscardPasswords { .. } => {
                Millis::from_secs(30)
            }
            _ => Millis(5000),
        }
    }
}
