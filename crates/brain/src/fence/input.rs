//! What goes into the sidecar's step and what comes out: two closed enums.

use super::{Marker, Note};
use crate::message::{Ack, Grant, Question, QuestionId, StartId, Vouch};
use crate::name::Member;
use crate::record::{Epoch, View};
use crate::time::{Boot, Millis};
use bloodraven_gtid::GtidSet;

/// Names a push that waits for its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReplyId(pub u64);

/// From whom a view came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// The operator pushed it, or answered with it.
    Operator,
    /// A peer pushed it, or answered with it.
    Peer,
}

/// The keeper's permission for one start of mysqld to be writable until a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Permit {
    /// The start of mysqld that it is bound to.
    pub start: StartId,
    /// The epoch under which it was asked for or last renewed.
    pub epoch: Epoch,
    /// The lease's end; the keeper kills mysqld some time after it.
    pub deadline: Boot,
}

/// Both variables, read in one statement, with the executed set read after them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReadBack {
    /// The server that was read.
    pub start: StartId,
    /// The epoch that was on disk when the reading began.
    pub under: Option<Epoch>,
    /// `@@global.read_only`.
    pub read_only: bool,
    /// `@@global.super_read_only`.
    pub super_read_only: bool,
    /// `@@global.gtid_executed`.
    pub gtid: GtidSet,
}

/// What the keeper says about mysqld.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeeperFact {
    /// The running start; none: not running.
    pub running: Option<StartId>,
    /// The permit it holds.
    pub permit: Option<Permit>,
}

/// How a step of the lane ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum LaneResult {
    /// The opener session stands.
    OpenerConnected,
    /// The keeper gave the permit.
    PermitGiven(Permit),
    /// The opening statement returned without an error.
    OpenSent,
    /// No opener session is left.
    OpenersGone,
    /// No fence of an earlier life is left.
    FencesGone,
    /// The fencing statement returned without an error.
    FenceSet,
    /// Both variables were read.
    Read(ReadBack),
    /// The keeper has reaped that start of mysqld.
    Killed(StartId),
    /// The step failed, timed out or was refused; its outcome is unknown.
    Failed,
}

/// Everything that can happen to a sidecar.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Input {
    /// The fencing tick: ask everyone, read both variables.
    Tick,
    /// Time has passed; called at least every [`super::TIMER`].
    Timer,
    /// A view, with a valid signature, from anyone; `reply` if it was a push that wants an acknowledgement.
    View {
        /// What it says.
        view: View,
        /// Who brought it.
        source: Source,
        /// Where the acknowledgement goes.
        reply: Option<ReplyId>,
    },
    /// The view of that epoch is on disk (fsynced).
    Stored(Epoch),
    /// The view of that epoch could not be stored.
    NotStored(Epoch),
    /// The leader's answer to a question; `reply` if it came as a push of its own.
    Granted {
        /// The answer.
        grant: Grant,
        /// Where the acknowledgement goes.
        reply: Option<ReplyId>,
    },
    /// A voter's answer to a question.
    Vouched(Vouch),
    /// A peer acknowledged what was pushed to it.
    PeerAck(Box<Ack>),
    /// A question ended without an answer.
    NoAnswer(QuestionId),
    /// Somebody asks this sidecar to vouch.
    AskedToVouch {
        /// The question.
        question: Question,
        /// Where the answer goes.
        reply: ReplyId,
    },
    /// The keeper reported. Reports come in the order in which the keeper made them: an old "not running" after a newer
    /// start would pass for fenced.
    Keeper(KeeperFact),
    /// A step of the lane ended.
    Lane(LaneResult),
}

/// Everything that a sidecar can have done.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Write the view to disk, fsync, then report `Stored` or `NotStored`.
    Store(View),
    /// Write the marker to disk, fsync. The next command waits for it.
    WriteMarker(Marker),
    /// Write or remove the note, fsync. The next command waits for it, but not beyond the bound.
    WriteNote {
        /// What is written; none removes it.
        note: Option<Note>,
        /// A hanging disk must not hold up a fence.
        within: Millis,
    },
    /// Write down that two views of this epoch differ, fsync.
    WriteConflict(Epoch),
    /// Push the view to every peer, one attempt each.
    PushToPeers(View),
    /// Ask the operator for its view; with a question if this sidecar is named. In the same round the hands ask every
    /// peer for its view, named or not: who missed a push and is cut off from the operator learns of a revocation so.
    AskOperator(Option<Question>),
    /// Ask this voter to vouch.
    AskPeer {
        /// Whom; the site's present sidecar answers, and says who it is.
        voter: Member,
        /// What.
        question: Question,
    },
    /// Answer a push: the acknowledgement, and a question if this sidecar could open.
    Acknowledge {
        /// The push.
        reply: ReplyId,
        /// The acknowledgement.
        ack: Box<Ack>,
        /// Rides along.
        question: Option<Question>,
        /// Acknowledgements of peers, with their age.
        relayed: Vec<(Ack, Millis)>,
    },
    /// Tell the pusher that its view was not stored, or contradicts the stored one.
    Refuse {
        /// The push.
        reply: ReplyId,
        /// Whether it was a contradiction (else: not stored).
        conflict: bool,
    },
    /// Answer a question.
    Answer {
        /// The question's channel.
        reply: ReplyId,
        /// The answer.
        vouch: Vouch,
    },
    /// Ask the keeper for its status.
    AskKeeper,
    /// Connect the opener session.
    ConnectOpener {
        /// Bound of this step.
        within: Millis,
    },
    /// Ask the keeper for the permit.
    AskPermit(Permit),
    /// Prolong the permit; never makes one.
    RenewPermit(Permit),
    /// Tell the keeper that the fence was read back: withdraws the permit.
    WithdrawPermit(StartId),
    /// `SET GLOBAL read_only=OFF` over the opener session and no other.
    Open {
        /// Bound of this step; never past the lease.
        within: Millis,
    },
    /// End the opener account's sessions and see them gone.
    EndOpeners {
        /// Bound of this step.
        within: Millis,
    },
    /// End fencing statements of an earlier life of this sidecar and see them gone.
    EndFences {
        /// Bound of this step.
        within: Millis,
    },
    /// `SET GLOBAL read_only=ON, GLOBAL super_read_only=ON`.
    Fence {
        /// Bound of this step.
        within: Millis,
    },
    /// End the sessions of applications.
    KillAppSessions,
    /// Read both variables in one statement, then the executed set.
    Read {
        /// The epoch on disk as the reading begins.
        under: Option<Epoch>,
        /// The server meant. While the keeper is silent it is only guessed, and whichever server answers is read.
        start: StartId,
        /// Bound of this step.
        within: Millis,
    },
    /// SIGKILL by the keeper; reported when the process is reaped, as failed when it is not by [`super::Budget::KILL`].
    Kill(StartId),
}
