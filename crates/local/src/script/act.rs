//! What can be done to a group, by a script or by a key.
//!
//! In: words. Out: one closed list. Must not: do it; the stage does.

use std::fmt;
use std::time::Duration;

/// One end of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// An operator, counted from 0.
    Operator(usize),
    /// The clients, which come through the front doors.
    Clients,
    /// A site: its server and its sidecar.
    Site(String),
}

/// A process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Process {
    /// A site's server.
    Mysqld(String),
    /// The parent of a site's server.
    Keeper(String),
    /// A site's sidecar.
    Sidecar(String),
    /// An operator, counted from 0.
    Operator(usize),
    /// The operator that leads when it is done.
    Leader,
}

/// See above.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// SIGKILL; its supervisor starts it again.
    Kill(Process),
    /// SIGKILL, and it stays away until it is released.
    Hold(Process),
    /// What was held comes back.
    Release(Process),
    /// SIGSTOP.
    Pause(Process),
    /// SIGCONT.
    Resume(Process),
    /// Asks an operator, or all of a site, to end in good order; it stays away until it is started.
    Stop(End),
    /// Starts what was stopped.
    Start(End),
    /// Keeper, server and sidecar are killed at the same moment, and started again in the same pod.
    KillPod(String),
    /// The site's pod ends in good order, and it gets a new one.
    DeletePod(String),
    /// The same, and the data are gone.
    LoseVolume(String),
    /// Nothing gets through between the two.
    Cut(End, End),
    /// Nothing gets from the first to the second.
    CutOneWay(End, End),
    /// What is said between the two arrives later.
    Delay(End, End, Duration),
    /// The link is as before.
    Mend(End, End),
    /// Nothing gets in or out.
    Isolate(End),
    /// Everything gets in and out.
    Rejoin(End),
    /// Every link is as before, everything that stands still goes on, everything that was held or stopped is started.
    Heal,
    /// Asks for a planned failover; with the time that it may wait for the target to catch up.
    Plan(String, Option<Duration>),
    /// Asks for a fresh copy of the site; with the beginning of what it has too much, if that is to be thrown away.
    Reclone(String),
    /// Changes a setting of the group.
    Edit(Edit),
    /// Takes both copies of the record away, as a restored backup of the object would. Only while no operator runs.
    ForgetRecord,
    /// A person does something at a site's server.
    Person(String, Deed),
}

/// What can be changed in a running group's spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// `spec.paused`.
    Paused(bool),
    /// `spec.failoverCooldown`.
    Cooldown(Duration),
    /// `spec.splitBrainPolicy.sitePriorities`; none: the list is empty.
    Priorities(Vec<String>),
}

/// What a person, or a client that nobody thought of, does at a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deed {
    /// Makes it writable, past everyone.
    Open,
    /// Makes it read-only, past everyone.
    Fence,
    /// Writes so many rows, and opens the server for that if it has to.
    Write(u32),
    /// The same with a tag in the GTID.
    WriteTagged(u32),
    /// Holds a table's write lock so long.
    LockTables(Duration),
    /// Holds what is received up so long, with a lock on a table that it writes to.
    BlockApplier(Duration),
    /// Runs one UPDATE that takes so long.
    LongUpdate(Duration),
    /// Takes every connection that an application can have.
    FillConnections,
    /// Stops applying what is received.
    StopApplier,
    /// Applies what is received only so much later.
    DelayApplier(Duration),
    /// Applies what is received at once, as before.
    StartApplier,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Operator(number) => write!(f, "operator-{number}"),
            Self::Clients => write!(f, "clients"),
            Self::Site(site) => write!(f, "{site}"),
        }
    }
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mysqld(site) => write!(f, "mysqld {site}"),
            Self::Keeper(site) => write!(f, "keeper {site}"),
            Self::Sidecar(site) => write!(f, "sidecar {site}"),
            Self::Operator(number) => write!(f, "operator-{number}"),
            Self::Leader => write!(f, "leader"),
        }
    }
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kill(one) => write!(f, "kill {one}"),
            Self::Hold(one) => write!(f, "hold {one}"),
            Self::Release(one) => write!(f, "release {one}"),
            Self::Pause(one) => write!(f, "pause {one}"),
            Self::Resume(one) => write!(f, "resume {one}"),
            Self::Stop(one) => write!(f, "stop {one}"),
            Self::Start(one) => write!(f, "start {one}"),
            Self::KillPod(site) => write!(f, "kill-pod {site}"),
            Self::DeletePod(site) => write!(f, "delete-pod {site}"),
            Self::LoseVolume(site) => write!(f, "lose-volume {site}"),
            Self::Cut(one, two) => write!(f, "cut {one} {two}"),
            Self::CutOneWay(from, to) => write!(f, "cut-one-way {from} {to}"),
            Self::Delay(one, two, by) => write!(f, "delay {one} {two} {}ms", by.as_millis()),
            Self::Mend(one, two) => write!(f, "mend {one} {two}"),
            Self::Isolate(end) => write!(f, "isolate {end}"),
            Self::Rejoin(end) => write!(f, "rejoin {end}"),
            Self::Heal => write!(f, "heal"),
            Self::Plan(site, None) => write!(f, "plan failover to {site}"),
            Self::Plan(site, Some(wait)) => write!(f, "plan failover to {site} waiting {}ms", wait.as_millis()),
            Self::Reclone(site) => write!(f, "reclone {site}"),
            Self::Edit(edit) => write!(f, "edit {edit}"),
            Self::ForgetRecord => write!(f, "forget-record"),
            Self::Person(site, deed) => deed.tell(site, f),
        }
    }
}

impl fmt::Display for Edit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Paused(true) => write!(f, "paused"),
            Self::Paused(false) => write!(f, "unpaused"),
            Self::Cooldown(time) => write!(f, "cooldown {}ms", time.as_millis()),
            Self::Priorities(sites) if sites.is_empty() => write!(f, "priorities none"),
            Self::Priorities(sites) => write!(f, "priorities {}", sites.join(",")),
        }
    }
}

impl Deed {
    fn tell(&self, site: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open => write!(f, "human-open {site}"),
            Self::Fence => write!(f, "human-fence {site}"),
            Self::Write(count) => write!(f, "human-write {site} {count}"),
            Self::WriteTagged(count) => write!(f, "human-write {site} {count} tagged"),
            Self::LockTables(time) => write!(f, "lock-tables {site} {}ms", time.as_millis()),
            Self::BlockApplier(time) => write!(f, "block-applier {site} {}ms", time.as_millis()),
            Self::LongUpdate(time) => write!(f, "long-update {site} {}ms", time.as_millis()),
            Self::FillConnections => write!(f, "fill-connections {site}"),
            Self::StopApplier => write!(f, "stop-applier {site}"),
            Self::DelayApplier(time) => write!(f, "delay-replica {site} {}s", time.as_secs()),
            Self::StartApplier => write!(f, "start-applier {site}"),
        }
    }
}
