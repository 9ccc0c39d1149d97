//! The world that an operator lives in: where groups are stored, how sites are reached, what the outside follows.
//!
//! In: wishes of the operator. Out: what became of them, told apart as finely as safety needs: done, refused for certain,
//! or nobody knows. Must not: decide, retry, or take what cannot be read for what is not there.
//!
//! Two worlds implement this: a cluster's API server, and a state directory on one machine. So nothing here is a file and
//! nothing is a pod, and every rule holds for both:
//!
//! - **Bounds are the caller's.** The operator drops any of these futures when its time is over. A write that was dropped
//!   may have been done, or may yet be done; that is what compare-and-swap is for. Dropping must leave nothing half made
//!   and nothing locked.
//! - **Versions are opaque.** Any write to a group's object, by whomever, gives it another [`Version`]. A write that is
//!   bound to a version is done only while the object has exactly that one.
//! - **Refused is not unknown.** [`Refused::Conflict`] and [`Refused::Denied`] promise that nothing was changed and nothing
//!   will be. Whatever cannot promise that is [`Refused::Unknown`].
//! - **Reads that decide come from the store itself.** [`World::read`], [`World::read_lease`] never answer from a cache.
//!   [`World::groups`] and [`World::estate`] may, as long as a watch keeps it fresh.
//! - **Calls run side by side.** One that hangs delays no other.

pub use crate::told::Text;
use bloodraven_api::MysqlFailoverGroup;
use bloodraven_blueprint::objects::Taken;
use bloodraven_brain::group::Outward;
use bloodraven_brain::group::accounts::AccountRole;
use bloodraven_brain::group::input::{Estate, Shown};
use bloodraven_brain::lease::{Lease, NewLease};
use bloodraven_brain::name::Site;
use bloodraven_brain::time::{Now, Wall};
use bloodraven_wire::Keys;
use serde_json::Value;
use snafu::Snafu;
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// See above.
pub trait World: Send + Sync + 'static {
    /// Both clocks: `CLOCK_BOOTTIME` and the calendar.
    fn now(&self) -> Now;

    /// Counts up whenever something may have changed: a group's object, its pods or volumes, a Secret, an address. It is a
    /// hint to look again; the operator looks again without it, too, only later.
    fn changes(&self) -> watch::Receiver<u64>;

    /// The same for one group: its object, its pods and volumes. With many groups a change of one wakes no other.
    fn changes_of(&self, group: &GroupId) -> watch::Receiver<u64> {
        let _ = group;
        self.changes()
    }

    /// The same for what was furnished alone: an object that somebody took away or changed.
    fn changes_of_objects(&self, group: &GroupId) -> watch::Receiver<u64> {
        self.changes_of(group)
    }

    /// What this world has to see before anybody can count on it, and has not seen yet; none: it sees everything.
    fn unseen(&self) -> Option<String> {
        None
    }

    /// The election's lease, from the store itself; none: there is none.
    fn read_lease(&self) -> impl Future<Output = Result<Option<Lease>, Unavailable>> + Send;

    /// Makes the lease; [`Refused::Conflict`] if it is there already.
    fn create_lease(&self, new: &NewLease) -> impl Future<Output = Result<Lease, Refused>> + Send;

    /// Writes the lease, if it still has that version (`Lease::version`).
    fn update_lease(&self, version: &str, new: &NewLease) -> impl Future<Output = Result<Lease, Refused>> + Send;

    /// Where the operator of that identity, as the lease names it, answers (`host:port` of its aux server); none: unknown.
    fn operator_address(&self, identity: &str) -> impl Future<Output = Option<String>> + Send;

    /// Every group that is this operator's business, as far as the world has heard.
    fn groups(&self) -> impl Future<Output = Result<Vec<Glimpse>, Unavailable>> + Send;

    /// The group's object as it is stored now, word for word; none: it is gone.
    fn read(&self, group: &GroupId) -> impl Future<Output = Result<Option<Value>, Unavailable>> + Send;

    /// Sets these annotations (none: takes the key away) and touches no other, if the object still has that version.
    fn save_annotations(
        &self,
        group: &GroupId,
        version: &Version,
        annotations: &BTreeMap<String, Option<String>>,
    ) -> impl Future<Output = Result<Version, Refused>> + Send;

    /// Puts this in the place of the whole status, if the object still has that version. The status is not a wish: neither
    /// spec nor metadata change, and the generation stays.
    fn save_status(
        &self,
        group: &GroupId,
        version: &Version,
        status: &Value,
    ) -> impl Future<Output = Result<Version, Refused>> + Send;

    /// The same for a status that brings the second copy of something stored already: nobody waits for it, but it goes before
    /// everything that is not kept.
    fn copy_status(
        &self,
        group: &GroupId,
        version: &Version,
        status: &Value,
    ) -> impl Future<Output = Result<Version, Refused>> + Send {
        self.save_status(group, version, status)
    }

    /// The same for a status that keeps nothing new: it is for people, and may wait for whatever is kept.
    fn show_status(
        &self,
        group: &GroupId,
        version: &Version,
        status: &Value,
    ) -> impl Future<Output = Result<Version, Refused>> + Send {
        self.save_status(group, version, status)
    }

    /// Takes the annotation away if it still reads so, whatever the object's version; done also if it does not read so any
    /// more: what was asked for is gone then, and a newer request stays.
    fn remove_request(
        &self,
        group: &GroupId,
        key: &str,
        text: &str,
    ) -> impl Future<Output = Result<(), Refused>> + Send;

    /// Pods and volumes of these sites: complete, as of one moment.
    fn estate(&self, group: &GroupId, sites: &[Site]) -> impl Future<Output = Result<Estate, Unavailable>> + Send;

    /// So long after a change of a Secret somebody who uses it may still have what it said before: kubelets bring files to
    /// pods a minute or two later, and applications read them when they like.
    fn secrets_spread(&self) -> Duration {
        Duration::from_mins(5)
    }

    /// The group's accounts and keys, from the Secrets that this spec names.
    fn secrets(
        &self,
        group: &GroupId,
        wanted: &MysqlFailoverGroup,
    ) -> impl Future<Output = Result<Secrets, MissingSecret>> + Send;

    /// Keeps the spec that was taken last, for an operator that comes later and cannot take the one that it finds. Asked
    /// again and again; what is so already costs nothing.
    fn keep_spec(&self, group: &GroupId, taken: &Taken) -> impl Future<Output = Result<(), Refused>> + Send {
        let _ = (group, taken);
        std::future::ready(Ok(()))
    }

    /// The spec that was kept last, from the store itself; none: none was, or nobody can read it.
    fn kept_spec(&self, group: &GroupId) -> impl Future<Output = Result<Option<Taken>, Unavailable>> + Send {
        let _ = group;
        std::future::ready(Ok(None))
    }

    /// How each of these sites is reached. A site that cannot be reached by any address is left out.
    fn addresses(
        &self,
        group: &GroupId,
        sites: &[Site],
    ) -> impl Future<Output = Result<BTreeMap<Site, Addresses>, Unavailable>> + Send;

    /// Makes the group's objects and keeps them as this spec wants them, except that a pod that runs is left alone:
    /// [`World::roll`] brings it on. Asked again and again; what is so already costs nothing.
    fn furnish(
        &self,
        group: &GroupId,
        wanted: &MysqlFailoverGroup,
        look: Look,
    ) -> impl Future<Output = Result<(), Unfurnished>> + Send {
        let _ = (group, wanted, look);
        std::future::ready(Ok(()))
    }

    /// Lets a group go that is being deleted: taints off, pods released, then its finalizer. With `patience` a taint that
    /// cannot be taken off holds the rest up; without, the group goes all the same.
    fn dismiss(&self, group: &GroupId, patience: bool) -> impl Future<Output = Result<(), Undismissed>> + Send {
        let _ = (group, patience);
        std::future::ready(Ok(()))
    }

    /// Releases pods that are being deleted and whose group is gone: nobody will ask for their end any more.
    fn release_orphans(&self) -> impl Future<Output = Result<(), Refused>> + Send {
        std::future::ready(Ok(()))
    }

    /// Makes the outside of the group that this spec wants look so, in the order that [`Outward`] names, as far as it can.
    fn show(
        &self,
        group: &GroupId,
        wanted: &MysqlFailoverGroup,
        outward: &Outward,
    ) -> impl Future<Output = Result<Shown, Unavailable>> + Send;

    /// Begins to bring the site's pod to what this spec wants. Asked again until the estate shows it.
    fn roll(
        &self,
        group: &GroupId,
        wanted: &MysqlFailoverGroup,
        site: &Site,
    ) -> impl Future<Output = Result<(), Refused>> + Send;

    /// Nobody needs the end of that pod any more: its object may go. A pod that is not there is done.
    fn release_pod(&self, group: &GroupId, uid: &str) -> impl Future<Output = Result<(), Refused>> + Send;

    /// Writes the image into `spec.dragonfly.image`.
    fn set_cache_image(&self, group: &GroupId, image: &str) -> impl Future<Output = Result<(), Refused>> + Send;

    /// Tells people. One that is lost is lost: it is in the log as well.
    fn record_event(&self, group: &GroupId, event: &Event) -> impl Future<Output = Result<(), Refused>> + Send;
}

/// Names a group.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId {
    /// `metadata.namespace`.
    pub namespace: Arc<str>,
    /// `metadata.name`.
    pub name: Arc<str>,
}

/// A group as a watch last showed it.
#[derive(Clone, Debug, PartialEq)]
pub struct Glimpse {
    /// Which.
    pub id: GroupId,
    /// Its object: metadata (uid, generation, resourceVersion, annotations), spec, status.
    pub object: Arc<Text>,
}

/// `metadata.resourceVersion` of a group's object. Only equality means anything.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub Arc<str>);

/// Nobody answered, or not in a way that can be read.
#[derive(Clone, Debug, PartialEq, Eq, Snafu)]
#[snafu(display("{what} cannot be read: {because}"))]
pub struct Unavailable {
    /// What was asked for.
    pub what: String,
    /// Why there is no answer.
    pub because: String,
}

/// Why a write was not done, as far as that is known.
#[derive(Clone, Debug, PartialEq, Eq, Snafu)]
pub enum Refused {
    /// Nothing was changed: the object has another version, is there already, or is gone.
    #[snafu(display("somebody else has written meanwhile"))]
    Conflict,
    /// Nothing was changed: it is not allowed, or not accepted. Another way may be open.
    #[snafu(display("refused: {because}"))]
    Denied {
        /// In the store's words.
        because: String,
    },
    /// It may have been done, or may yet be.
    #[snafu(display("nobody knows whether it was done: {because}"))]
    Unknown {
        /// What went wrong.
        because: String,
    },
}

/// How far furnishing looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// At everything, also at what nobody tells of when it changes: Secrets.
    All,
    /// At what is told of: an object changed.
    Told,
}

/// Why a group that is being deleted could not be let go yet.
#[derive(Clone, Debug, PartialEq, Eq, Snafu)]
pub enum Undismissed {
    /// Our taint could not be taken off a node.
    #[snafu(display("{because}"))]
    Tainted {
        /// Which node, and why.
        because: String,
    },
    /// The store does not take something else.
    #[snafu(transparent)]
    Store {
        /// Why not.
        source: Refused,
    },
}

/// Why a group's objects are not as wanted.
#[derive(Clone, Debug, PartialEq, Eq, Snafu)]
pub enum Unfurnished {
    /// An object of that name is another's; it is left alone.
    #[snafu(display("{kind} {name} belongs to {owner}; rename the group, or remove that object"))]
    Taken {
        /// The object's kind.
        kind: String,
        /// Its name.
        name: String,
        /// Whose it is.
        owner: String,
    },
    /// Nobody knows which image sidecars should run.
    #[snafu(display("{because}"))]
    NoImage {
        /// In words.
        because: String,
    },
    /// The spec asks for something that cannot be built.
    #[snafu(display("{because}"))]
    Unbuildable {
        /// The field, and what to write.
        because: String,
    },
    /// The store does not take it.
    #[snafu(display("{what}: {refused}"))]
    Store {
        /// Which object.
        what: String,
        /// Why not.
        refused: Refused,
    },
}

/// A group's accounts and keys, as they are now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Secrets {
    /// Polls, fences, changes replication.
    pub operator: Account,
    /// What replicas log in with at their source, and clones at their donor; none: nothing is attached and nothing cloned.
    pub replication: Option<Account>,
    /// Everybody else's: set on the servers, and never used here.
    pub others: BTreeMap<AccountRole, Account>,
    /// One of those others that cannot be had: people are told, and nothing waits for it.
    pub missing: Option<MissingSecret>,
    /// What is said between operator and sidecars is signed with these: the present one and the one before it.
    pub keys: Keys,
    /// TLS towards the servers; none: the connection is plain.
    pub tls: Option<TlsFiles>,
}

/// A user of MySQL and its password.
#[derive(Clone, PartialEq, Eq)]
pub struct Account {
    /// The name, without a host.
    pub user: String,
    /// Never shown.
    pub password: String,
}

/// What is needed to trust a group's servers.
#[derive(Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The authority's certificate, PEM.
    pub ca: Vec<u8>,
    /// Where a server of this group finds the same file, to trust its source.
    pub ca_at_server: String,
}

/// Why secrets cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, Snafu)]
pub enum MissingSecret {
    /// Nobody answered.
    #[snafu(display("secrets cannot be read: {because}"))]
    Unread {
        /// Why.
        because: String,
    },
    /// There is no such Secret.
    #[snafu(display("secret {name} is missing; create it"))]
    NotFound {
        /// Its name.
        name: String,
    },
    /// The operator makes it itself, and has not yet: nobody has to do anything.
    #[snafu(display("secret {name} is still to be made by the operator"))]
    ToBeMade {
        /// Its name.
        name: String,
    },
    /// It can be read, and no server would take it.
    #[snafu(display("the {role} account cannot be used: {because}"))]
    Unusable {
        /// Whose.
        role: AccountRole,
        /// What is wrong, and what to write.
        because: &'static str,
    },
    /// What should say whom to trust is no certificate.
    #[snafu(display("the Secret of spec.tls: key ca.crt holds no certificate; put one there as PEM"))]
    Certificate,
    /// It is there and lacks a key, or the key is empty or malformed.
    #[snafu(display("secret {name}: key {key} {because}"))]
    Key {
        /// The Secret's name.
        name: String,
        /// The key.
        key: String,
        /// What is wrong with it.
        because: String,
    },
}

impl MissingSecret {
    /// Whether somebody has to do something about it: the operator makes its own, and a store that is silent comes back.
    pub fn is_peoples(&self) -> bool {
        !matches!(self, Self::Unread { .. } | Self::ToBeMade { .. })
    }
}

/// How one site is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// Its server's admin interface.
    pub admin: HostPort,
    /// Its sidecar.
    pub sidecar: HostPort,
    /// Under which address *this site's server* reaches each other site's, as a replica its source and as a recipient its
    /// donor. What `SHOW REPLICA STATUS` names is compared with these.
    pub peers: BTreeMap<Site, HostPort>,
}

/// A host, by name or number, and a port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostPort {
    /// The host.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// Something that people are told about a group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Event {
    /// Whether somebody should look.
    pub kind: EventKind,
    /// One word, from the list of reasons.
    pub reason: String,
    /// A sentence.
    pub message: String,
    /// When.
    pub at: Wall,
}

/// Whether somebody should look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventKind {
    /// No.
    Normal,
    /// Yes.
    Warning,
}

impl GroupId {
    /// The group of that namespace and name.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for GroupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl fmt::Debug for GroupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Account({}, secret)", self.user)
    }
}

impl fmt::Debug for TlsFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TlsFiles({} bytes, {})", self.ca.len(), self.ca_at_server)
    }
}

impl fmt::Display for HostPort {
    /// As in a URL: an IPv6 number stands in brackets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

impl EventKind {
    /// As Events spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}
