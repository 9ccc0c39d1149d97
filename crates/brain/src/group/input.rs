//! Everything that can happen to a group's leader: one closed enum, and the facts it brings.

use super::Spec;
use super::accounts::{Credentials, Logins};
use super::command::{SaveId, WorkId};
use super::kept::Kept;
use crate::candidate::Data;
use crate::candidate::drain::{Applier, Receiver};
use crate::fence::ReplyId;
use crate::message::{Ack, Question};
use crate::name::{Instance, Member, Site};
use crate::record::Epoch;
use crate::site::Pair;
use crate::time::{Boot, Millis, Wall};
use bloodraven_gtid::Uuid;
use std::collections::BTreeMap;
use std::sync::Arc;

/// See above.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Input {
    /// Time has passed; comes at least every 250 ms.
    Tick,
    /// Until when this process leads for certain; none: it does not.
    Leads(Option<Boot>),
    /// What an admin wants now.
    Spec(Box<Spec>),
    /// What `Load` found.
    Loaded(Loaded),
    /// How a `Save` ended.
    Saved {
        /// Which.
        id: SaveId,
        /// How.
        saved: Saved,
    },
    /// A poll of a site ended.
    Polled {
        /// Which site.
        site: Site,
        /// The record's epoch when it began.
        began_under: Epoch,
        /// What it saw.
        saw: Saw,
    },
    /// An acknowledgement came: directly, or handed on by a peer.
    Heard(Box<Word>),
    /// A push was not acknowledged.
    PushFailed {
        /// The site it was meant for.
        to: Site,
    },
    /// A sidecar asks for its grant.
    Asked {
        /// Its question.
        question: Question,
        /// Where the answer goes.
        reply: ReplyId,
    },
    /// A task ended.
    Done {
        /// Which.
        id: WorkId,
        /// How.
        outcome: Outcome,
    },
    /// What pods and volumes exist.
    Estate(Box<Estate>),
    /// The requests that stand on the group now.
    Requests(Box<Requests>),
    /// How far the outside follows.
    Shown(Shown),
    /// Which credentials there are: told at first, and when they were read anew and are others.
    CredentialsChanged(Credentials),
    /// How far the copy into a site is.
    CloneProgress {
        /// Which site.
        site: Site,
        /// Bytes copied, bytes in all.
        bytes: (u64, u64),
    },
    /// A poll of a site's cache ended; none: it does not answer.
    CachePolled {
        /// Which site.
        site: Site,
        /// What it said.
        facts: Option<CacheFacts>,
    },
}

/// What `Load` found. Both copies are joined by then.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Loaded {
    /// What is stored; without a record: no history.
    Kept(Box<Kept>),
    /// A copy cannot be read. Never "no history".
    Corrupt(String),
    /// Nobody answered.
    Failed,
}

/// How a `Save` ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Saved {
    /// Everything is stored.
    All,
    /// The record is stored, the rest is not.
    RecordOnly,
    /// Surely nothing of it is stored, and what was known still is.
    Denied,
    /// Nothing is stored, or nobody knows: read again before anything else.
    Unknown,
}

/// What a poll saw.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Saw {
    /// An error or a timeout.
    Nothing,
    /// The server refused the login.
    LoginRefused,
    /// An answer.
    Facts(Box<Facts>),
}

/// What a server says of itself, in one poll.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Facts {
    /// The fence variables.
    pub pair: Pair,
    /// `@@server_uuid`.
    pub server_uuid: Uuid,
    /// Its sets; none: not understood.
    pub data: Option<Data>,
    /// Its replication; none: not configured.
    pub replica: Option<ReplicaFacts>,
    /// It has a schema of a user.
    pub user_data: bool,
    /// Semi-synchronous replication.
    pub semi_sync: SemiSync,
}

/// What a server says of semi-synchronous replication; nothing is on where the plugins are not loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "what a server says of four switches, each on or off")]
pub struct SemiSync {
    /// Both plugins are loaded.
    pub loaded: bool,
    /// The source's side is on, and how.
    pub source: Option<SourceSide>,
    /// Commits wait for a receipt now; a source that waited in vain goes on without.
    pub waits: bool,
    /// Replicas that are connected and give receipts.
    pub clients: u64,
    /// The replica's side is on.
    pub replica: bool,
    /// The receiver gives receipts: the replica's side was on when it connected.
    pub acknowledges: bool,
}

/// The source's side, when it is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SourceSide {
    /// How long a commit waits; zero: for ever.
    pub timeout: Millis,
    /// One receipt, before anybody sees the commit. Anything else was set by hand.
    pub strict: bool,
}

/// What a replica says of its replication.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReplicaFacts {
    /// The site it is pointed at; none: at something else.
    pub source: Option<Site>,
    /// The receiving thread.
    pub receiver: Receiver,
    /// The receiving thread's error, a broken link apart.
    pub receiver_error: Option<String>,
    /// The applying thread.
    pub applier: Applier,
    /// A delay is set.
    pub delayed: bool,
    /// How far it is behind, by its own word.
    pub behind: Option<Millis>,
}

/// An acknowledgement, and how it came.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Word {
    /// What it says.
    pub ack: Ack,
    /// How long it lay with a peer.
    pub lay: Millis,
    /// The peer that handed it on; none: it came directly.
    pub via: Option<Site>,
    /// The question that rode on it.
    pub question: Option<Question>,
}

/// How a task ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// As wanted.
    Ok,
    /// As wanted, and this was read.
    Read(Box<Facts>),
    /// So many sessions of applications were left after a pass.
    Sessions(u64),
    /// The clone's recipient started anew on the copy.
    Cloned,
    /// The login was refused: the account is missing or wrong.
    Refused(String),
    /// It failed, or took too long; its effect is unknown.
    Failed(String),
    /// How the server answers logins.
    Logins(Box<Logins>),
    /// The cache's offset.
    Offset(u64),
}

/// What pods and volumes exist. Complete, as of one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Estate {
    /// Every pod object of this group's servers.
    pub pods: Vec<PodFacts>,
    /// Sites whose volume was made by this very group object, or is not made yet.
    pub own_volumes: Vec<Site>,
    /// Sites whose pods are not what the spec wants, or are being rolled.
    pub rollouts: BTreeMap<Site, Rollout>,
}

/// A pod object.
#[expect(clippy::struct_excessive_bools, reason = "each is a field of the pod's status, and all combinations occur")]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PodFacts {
    /// Its site.
    pub site: Site,
    /// Its UID: half of an instance.
    pub uid: Arc<str>,
    /// Some container of it ever started.
    pub started: bool,
    /// Every container, init containers too, is terminated in its one last status.
    pub all_terminated: bool,
    /// It is being deleted.
    pub deleting: bool,
    /// Its phase is Failed or Succeeded.
    pub finished: bool,
    /// The pod garbage collector wrote its status.
    pub collected: bool,
    /// Its node's Lease was renewed after that status.
    pub node_vouches: bool,
    /// It still carries the instance finalizer.
    pub finalizer: bool,
}

/// A site's pod against the spec.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rollout {
    /// It is what the spec wants, and ready.
    Current,
    /// It is what the spec wants, and not ready yet.
    InProgress,
    /// It is not what the spec wants.
    Drifted,
}

/// The requests that stand on the group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Requests {
    /// `planned-failover`.
    pub planned: Option<Request<PlannedWish>>,
    /// `reclone-site`.
    pub reclone: Option<Request<RecloneWish>>,
    /// `dragonfly-snapshot-upgrade`: the image.
    pub cache_upgrade: Option<Request<String>>,
}

/// A request: its text, and what it was read as, or why it was not understood.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Request<W> {
    /// Word for word; removed only if it still reads so.
    pub text: String,
    /// What it wants.
    pub wish: Result<W, String>,
}

/// A wish for a planned failover.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PlannedWish {
    /// Where to.
    pub site: Site,
    /// Instead of the spec's.
    pub max_lag_wait: Option<Millis>,
    /// The request's own name.
    pub id: Option<String>,
}

/// A wish for a reclone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RecloneWish {
    /// Into which site.
    pub site: Site,
    /// What shows that the admin knows what is lost.
    pub consent: Consent,
}

/// What shows that an admin knows what is lost.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Consent {
    /// Nothing: enough for a site that has nothing of its own.
    None,
    /// The beginning of what diverges.
    Prefix(String),
    /// The group's name.
    Confirm(String),
}

/// How far the outside follows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shown {
    /// Pod labels are as wanted.
    pub labels: bool,
    /// The DNS record is as wanted; else why not.
    pub dns: Result<(), String>,
    /// Node taints are as wanted; else why not.
    pub taints: Result<(), String>,
    /// When.
    pub at: Wall,
}

/// What a cache says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CacheFacts {
    /// What it takes itself for.
    pub role: CacheRole,
    /// Keys it holds.
    pub keys: u64,
    /// The image it runs.
    pub image: String,
    /// It reads a snapshot.
    pub loading: bool,
    /// It can be promoted without losing what the master had.
    pub takeover: bool,
}

/// What a cache takes itself for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CacheRole {
    /// It takes writes.
    Master {
        /// Bytes it has sent.
        offset: u64,
        /// Replicas attached.
        replicas: u32,
    },
    /// It follows.
    Replica {
        /// The site it follows; none: something else.
        master: Option<Site>,
        /// The link is up.
        link_up: bool,
        /// It copies everything.
        syncing: bool,
        /// It has heard from its master at all.
        heard: bool,
        /// Bytes it has.
        offset: u64,
    },
}

impl PodFacts {
    /// Whether every instance of this pod has ended: no container runs or can ever start again. A missing object, a
    /// container that may be restarted, a force delete, a word of the garbage collector are no evidence.
    pub const fn has_ended(&self) -> bool {
        self.all_terminated && (self.deleting || self.finished) && !self.collected && self.node_vouches
    }

    /// Whether that instance lives, or lived, in this pod.
    pub fn is_pod_of(&self, member: &Member) -> bool {
        self.site == member.site && self.holds(&member.instance)
    }

    fn holds(&self, instance: &Instance) -> bool {
        *self.uid == *instance.pod
    }
}
