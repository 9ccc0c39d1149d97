//! Leader election as a decision: who may act, and until when, by one Kubernetes Lease.
//!
//! In: the lease as read, the outcomes of our own calls, the time, a request to shut down. Out: at most one
//! [`Command`] at a time, [`Notice`]s, and [`Election::leads_until`]. Must not: compare the clocks of two hosts, or
//! trust an answer for longer than the call it answers.
//!
//! - We lead while `now` is before the *send* time of our last successful renewal plus the renew deadline. When the answer
//!   came does not matter; a call whose outcome is unknown prolongs nothing.
//! - Another's lease is over when *we* have seen it unchanged for its whole duration on our own clock. The stamps in it
//!   are another host's calendar and are never compared.
//! - A lease that carries our own identity is taken back at once: this pod had it, and its earlier process is gone.
//! - A release ends our leadership before it is sent, whatever becomes of it.
//!
//! So one's leadership ends before another's can begin: the renew deadline is shorter than the lease duration by more than
//! clock rates can differ, and every write is bound to the version that was read.

mod election;
mod times;

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

pub use election::Election;
pub use times::{BadTimes, Times};

use crate::time::{Boot, Millis, Wall};
use std::sync::Arc;

/// The lease, as the API server has it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Lease {
    /// `resourceVersion`: any write changes it.
    pub version: Arc<str>,
    /// Who has it; none: released.
    pub holder: Option<Arc<str>>,
    /// How long its holder wants to be waited for.
    pub duration: Option<Millis>,
    /// When its holder got it, by its own calendar. Handed on, never compared.
    pub acquired: Option<Arc<str>>,
    /// When it was renewed, by its holder's calendar. Never compared with a clock; a change of it is a sign of life.
    pub renewed: Option<Arc<str>>,
    /// How often it changed hands.
    pub transitions: u32,
}

/// The lease, as we would write it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NewLease {
    /// Us; none: released.
    pub holder: Option<Arc<str>>,
    /// How long others are to wait for us.
    pub duration: Millis,
    /// When we got it.
    pub acquired: Acquired,
    /// Now, for people.
    pub renewed: Wall,
    /// How often it changed hands.
    pub transitions: u32,
}

/// When a holder got the lease.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Acquired {
    /// Now.
    At(Wall),
    /// As it was read.
    AsRead(Option<Arc<str>>),
}

/// Names one call within one life of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u64);

/// What is to be done. One call at a time; each under [`Times::call_deadline`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Read the lease from the API server, not from a cache.
    Read(CallId),
    /// Create it; fails if it exists.
    Create(CallId, NewLease),
    /// Write it if it still has that version.
    Update(CallId, Arc<str>, NewLease),
    /// Write it without a holder if it still has that version. Leadership is over already.
    Release(CallId, Arc<str>, NewLease),
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Input {
    /// Time passed.
    Tick,
    /// A read came to its end.
    Read(CallId, Found),
    /// A create, update or release came to its end.
    Wrote(CallId, Written),
    /// The process is to end.
    Shutdown,
}

/// What a read found.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Found {
    /// This.
    Lease(Lease),
    /// There is no lease.
    Absent,
    /// It failed or timed out.
    Failed,
}

/// What became of a write.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Written {
    /// It was done; this is the lease now.
    Done(Lease),
    /// It was refused: another version, already there, or gone.
    Conflict,
    /// A timeout or any other error: it may have been done, or may yet be.
    Unknown,
}

/// What people and the other parts of the operator should hear.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Notice {
    /// We lead, until this moment unless renewed.
    Elected(Boot),
    /// We lead no longer: cancel what is in flight and stop.
    Lost(LostBy),
    /// Another has the lease.
    Follows(Arc<str>),
    /// The lease is free for the next.
    Released,
    /// Nothing more will come. The lease is left as it is if it was not released.
    Stopped,
}

/// Why leadership was lost.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum LostBy {
    /// It was not renewed in time.
    Deadline,
    /// Another has the lease.
    Taken(Arc<str>),
    /// Somebody cleared the holder.
    Cleared,
    /// Somebody deleted the lease.
    Deleted,
    /// We were asked to end.
    Shutdown,
}

/// What follows from an input.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Outcome {
    /// To be done.
    pub command: Option<Command>,
    /// To be told, in order.
    pub notices: Vec<Notice>,
}
