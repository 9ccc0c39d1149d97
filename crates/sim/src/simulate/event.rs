//! What is going to happen, in order of time; of one time in the order in which it was decided.
//!
//! In: events with their times. Out: the earliest. Must not: reorder what has the same time.

use super::clock::Time;
use bloodraven_brain::fence;
use bloodraven_brain::fence::LaneResult;
use bloodraven_brain::group;
use bloodraven_brain::group::{Kept, Outward};
use bloodraven_brain::lease;
use bloodraven_brain::message::{Grant, Question};
use bloodraven_brain::record::View;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// What happens.
#[derive(Debug)]
pub(super) enum Event {
    /// The fault of that number.
    Fault(usize),
    /// An ambush strikes that pod.
    Struck(usize, super::scenario::Victim),
    /// What stood still since an ambush goes on.
    GoesOn(usize),
    /// Everything heals.
    Heal,
    /// Has it come to rest?
    LookAround,
    /// A human's opening should be closed by now: the pod and the start.
    StillOpen(usize, u64, u32),
    /// An operator process begins.
    OperatorBegins(usize),
    /// The election wants a tick.
    Elect(usize, u32),
    /// A call about the lease reaches the store.
    LeaseCall(usize, u32, Box<lease::Command>),
    /// Its answer is back.
    LeaseBack(usize, u32, Box<lease::Input>),
    /// For a leader of that reign.
    Leader(usize, u32, ForLeader),
    /// Somebody asks an operator.
    AskOperator(usize, usize, u32, Option<Box<Question>>),
    /// What a leader wants of the store reaches it.
    AtStore(usize, u32, u64, Box<Wish>),
    /// A statement reaches a server.
    Reaches(usize, Box<super::server::Does>, super::server::Caller),
    /// A statement falls due.
    Due(usize, u64, u64),
    /// A clone is over.
    CloneOver(usize, u64),
    /// The server serves.
    ServerUp(usize, u64),
    /// A server that was killed is reaped.
    Reaped(usize, u64, Option<(u32, u64)>),
    /// The keeper's container begins.
    KeeperBegins(usize),
    /// The dead man looks.
    DeadMan(usize, u64),
    /// The keeper tells its sidecar about mysqld.
    KeeperSays(usize, u32),
    /// The sidecar finds the lock of that life of its keeper free.
    KeeperGone(usize, u32),
    /// A sidecar begins.
    SidecarBegins(usize, u32),
    /// A sidecar's tick.
    SidecarTick(usize, u32),
    /// A sidecar's timer.
    SidecarTimer(usize, u32, Time),
    /// Something for a sidecar, of any life or of that one.
    ToSidecar(usize, Option<u32>, Box<ForSidecar>),
    /// An operation of the lane ended.
    Lane(usize, u32, u64, Box<LaneResult>),
    /// A write reached the disk, or the patience for it ended.
    Disk(usize, u32, u64),
    /// See above.
    DiskLate(usize, u32, u64),
    /// A replica receives.
    Pull(usize, u64),
    /// A replica applies.
    Apply(usize, u64),
    /// A cache begins.
    CacheBegins(usize),
    /// A cache has copied everything.
    CacheSynced(usize, u32),
    /// The leader's call reaches a cache; without a task: a poll.
    AtCache(usize, u32, u64, usize, Option<Box<group::command::CacheTask>>),
    /// An application writes.
    Write(usize),
    /// A deleted pod's containers are ended.
    PodEnds(usize),
    /// A pod's containers begin.
    PodBegins(usize),
    /// A stray is found by its kubelet and ended.
    NodeVouches(usize),
    /// A session that waited is ended.
    StuckWrite(usize, u64),
}

/// For a leader.
#[derive(Debug)]
pub(super) enum ForLeader {
    Tick,
    Poll(usize),
    /// A call is over.
    Back(u64, Box<Answer>),
    /// Its time is over.
    Late(u64),
    /// Something for the group.
    Input(Box<group::Input>),
    /// Something changed in the store.
    Informed,
    /// Time for people to see something.
    Picture,
}

/// How a call of a leader ended.
#[derive(Debug)]
pub(super) enum Answer {
    /// A statement.
    Sql(group::input::Outcome),
    /// A load: the copies, and what they come to.
    Loaded(Box<super::store::Copies>, group::input::Loaded),
    /// The copies, after a conflict.
    Looked(Box<super::store::Copies>),
    /// A write of the annotation.
    Annotated(super::store::Wrote, u64),
    /// A write of the status.
    Stored(super::store::Wrote, u64),
    /// Labels and the name.
    Shown(bool, bool),
    /// What a cache says of itself.
    Cache(Option<Box<group::input::CacheFacts>>),
    /// It failed.
    Failed,
}

/// What a leader wants of the store.
#[derive(Debug)]
pub(super) enum Wish {
    Load,
    Look,
    Annotate(u64, Box<Kept>),
    Store(u64, Box<Kept>),
    Show(Box<Outward>),
    Release(std::sync::Arc<str>),
    Roll(usize),
    CacheImage(String),
    Remove(group::command::RequestKind, String),
}

/// For a sidecar.
#[derive(Debug)]
pub(super) enum ForSidecar {
    /// An operator pushes a view.
    Push(usize, u32, Box<View>),
    /// An operator asks who it is.
    Probe(usize, u32),
    /// An operator answers a question that rode on an acknowledgement.
    Grant(usize, u32, Box<Grant>),
    /// A peer pushes a view.
    PeerPush(usize, u32, Box<View>),
    /// A peer asks for a vouch.
    Question(usize, u32, Box<Question>),
    /// A peer asks for the view.
    AskView(usize, u32),
    /// Anything that is an input as it stands.
    Input(Box<fence::Input>),
}

/// All events.
#[derive(Debug, Default)]
pub(super) struct Queue {
    heap: BinaryHeap<Entry>,
    next: u64,
}

#[derive(Debug)]
struct Entry {
    at: Time,
    number: u64,
    event: Event,
}

impl Queue {
    pub(super) fn push(&mut self, at: Time, event: Event) {
        self.next += 1;
        self.heap.push(Entry { at, number: self.next, event });
    }

    pub(super) fn pop(&mut self) -> Option<(Time, Event)> {
        self.heap.pop().map(|entry| (entry.at, entry.event))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    /// The heap gives the greatest: the earliest is the greatest here.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}
