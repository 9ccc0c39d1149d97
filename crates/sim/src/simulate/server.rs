//! One mysqld: its data, its fence, its replication threads, the statements it has taken and not run yet.
//!
//! In: statements that fall due, starts and deaths. Out: what they leave behind. Must not: know who has authority.

use super::clock::Time;
use bloodraven_brain::group::Task;
use bloodraven_brain::record::Epoch;
use bloodraven_gtid::{Gtid, GtidSet, Source, Tag, Uuid};
use std::borrow::Cow;

/// How far a server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    /// No process.
    Down,
    /// A process that takes no statements yet.
    Booting,
    /// It serves.
    Up,
}

/// Who waits for a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Caller {
    /// A sidecar: its life, and the operation of its lane.
    Sidecar(u32, u64),
    /// An operator: which, its life, the call.
    Operator(usize, u32, u64),
    /// Nobody.
    Nobody,
}

/// What a statement does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Does {
    /// `SET GLOBAL read_only=OFF` of an opener; under which tenure.
    Open(Epoch),
    /// The first half of `SET GLOBAL read_only=ON, GLOBAL super_read_only=ON`; or only the second.
    Fence {
        /// Both variables are named.
        both: bool,
    },
    /// Ends the opener's sessions and sees them gone.
    EndOpeners,
    /// Ends fences of an earlier life of the sidecar and sees them gone.
    EndFences,
    /// Ends the applications' sessions.
    EndApps,
    /// Reads both variables and the executed set; the epoch on disk and the start that are meant.
    Read(Option<Epoch>, u64),
    /// Reads everything that a poll reads.
    Poll,
    /// A task of the operator's, for that server only.
    Task(Box<Task>, Option<Uuid>),
}

/// A statement that was taken.
#[derive(Clone, Debug)]
pub(super) struct Statement {
    pub(super) id: u64,
    pub(super) does: Does,
    pub(super) caller: Caller,
    /// How many halves have run.
    pub(super) half: u8,
    /// The server stood still when it fell due.
    pub(super) waits: bool,
}

/// A clone into a server.
#[derive(Clone, Debug)]
pub(super) struct Cloning {
    pub(super) donor: usize,
    pub(super) caller: Caller,
}

/// One server.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a variable of the server, and all combinations occur")]
pub(super) struct Server {
    // What survives a restart.
    pub(super) uuid: Uuid,
    pub(super) executed: GtidSet,
    pub(super) purged: GtidSet,
    pub(super) user_data: bool,
    /// The site that it is pointed at.
    pub(super) source: Option<usize>,
    next: u64,
    // One life.
    pub(super) life: Life,
    pub(super) start: u64,
    pub(super) hung: bool,
    pub(super) read_only: bool,
    pub(super) super_read_only: bool,
    /// Received since replication was set up or the server was started.
    pub(super) received: GtidSet,
    pub(super) receiver: bool,
    pub(super) receiver_error: Option<String>,
    pub(super) applier: bool,
    pub(super) applier_error: bool,
    /// The opener's session, by the life of its sidecar.
    pub(super) opener: Option<u32>,
    pub(super) statements: Vec<Statement>,
    pub(super) cloning: Option<Cloning>,
    /// Fences wait until then for a running write.
    pub(super) blocked_until: Time,
    /// A human opened it.
    pub(super) by_hand: bool,
    /// When it was last opened by hand.
    pub(super) hand_opened_at: u64,
    /// Since when its statements take their usual time again.
    pub(super) eased_at: u64,
    /// The tenure under which its sidecar opened it.
    pub(super) tenure: Epoch,
    pub(super) slow: Time,
    /// The applier takes so long for each batch.
    pub(super) slow_applier: Time,
    /// The applier is set to wait so long.
    pub(super) delay: Time,
    /// Every other transaction carries a tag.
    pub(super) tag: Option<Tag>,
    /// The source's side of semi-synchronous replication: commits wait for another site's receipt, the applier's too.
    pub(super) asks: bool,
    /// The replica's side.
    pub(super) gives: bool,
    /// The replica's side as it was when the receiver was started.
    pub(super) acknowledges: bool,
    /// Commits that wait for another site's receipt.
    pub(super) waiting: Vec<Gtid>,
    pub(super) full: bool,
    /// A delivery or an application is under way.
    pub(super) pulling: bool,
    pub(super) applying: bool,
}

impl Server {
    pub(super) fn new(uuid: Uuid) -> Self {
        Self {
            uuid,
            executed: GtidSet::new(),
            purged: GtidSet::new(),
            user_data: false,
            source: None,
            next: 1,
            life: Life::Down,
            start: 0,
            hung: false,
            read_only: true,
            super_read_only: true,
            received: GtidSet::new(),
            receiver: false,
            receiver_error: None,
            applier: false,
            applier_error: false,
            opener: None,
            statements: Vec::new(),
            cloning: None,
            blocked_until: 0,
            by_hand: false,
            hand_opened_at: 0,
            eased_at: 0,
            tenure: 0,
            slow: 0,
            slow_applier: 0,
            delay: 0,
            tag: None,
            asks: false,
            gives: false,
            acknowledges: false,
            waiting: Vec::new(),
            full: false,
            pulling: false,
            applying: false,
        }
    }

    /// A process begins: closed, no threads, unapplied relay logs gone.
    pub(super) fn begin(&mut self, start: u64) {
        self.end();
        self.life = Life::Booting;
        self.start = start;
    }

    /// The process ends. Returns the statements that nobody answers any more.
    pub(super) fn end(&mut self) -> Vec<Statement> {
        self.life = Life::Down;
        self.hung = false;
        self.read_only = true;
        self.super_read_only = true;
        self.received = GtidSet::new();
        self.receiver = false;
        self.receiver_error = None;
        self.applier = false;
        self.applier_error = false;
        self.opener = None;
        self.blocked_until = 0;
        self.by_hand = false;
        self.pulling = false;
        self.applying = false;
        self.slow_applier = 0;
        self.asks = false;
        self.gives = false;
        self.acknowledges = false;
        self.waiting.clear();
        let mut left = std::mem::take(&mut self.statements);
        if let Some(cloning) = self.cloning.take() {
            left.push(Statement { id: 0, does: Does::Poll, caller: cloning.caller, half: 0, waits: false });
        }
        left
    }

    pub(super) fn is_up(&self) -> bool {
        self.life == Life::Up
    }

    /// Whether applications can write, now or when it goes on.
    pub(super) fn is_open(&self) -> bool {
        self.life == Life::Up && !self.read_only
    }

    /// Whether a statement that opens it was taken and can still run.
    pub(super) fn opening_in_flight(&self) -> bool {
        self.life == Life::Up && self.statements.iter().any(|one| matches!(one.does, Does::Open(_)))
    }

    /// What it has executed or received.
    pub(super) fn held(&self) -> Cow<'_, GtidSet> {
        // At rest everything received has been executed.
        if self.executed.contains(&self.received) {
            return Cow::Borrowed(&self.executed);
        }
        Cow::Owned(self.executed.union(&self.received))
    }

    pub(super) fn unapplied(&self) -> GtidSet {
        self.received.subtract(&self.executed)
    }

    /// What held fences up is over, unless the disk is full or a commit waits for another site.
    pub(super) fn unblock(&mut self) {
        if !self.full && self.waiting.is_empty() {
            self.blocked_until = 0;
        }
    }

    /// One transaction of an application.
    pub(super) fn commit(&mut self) -> Option<Gtid> {
        loop {
            let source = match self.tag {
                Some(tag) if self.next.is_multiple_of(2) => Source { uuid: self.uuid, tag: Some(tag) },
                _ => Source::from(self.uuid),
            };
            let gtid = Gtid::new(source, self.next)?;
            self.next += 1;
            if self.executed.insert(gtid) {
                self.user_data = true;
                return Some(gtid);
            }
        }
    }

    pub(super) fn take(&mut self, id: u64, does: Does, caller: Caller) {
        self.statements.push(Statement { id, does, caller, half: 0, waits: false });
    }

    pub(super) fn remove(&mut self, id: u64) -> Option<Statement> {
        let place = self.statements.iter().position(|one| one.id == id)?;
        Some(self.statements.remove(place))
    }

    /// One half of a fence. Returns whether it is over.
    pub(super) fn fence_half(&mut self, half: u8, both: bool) -> bool {
        if half == 0 && both {
            self.read_only = true;
            return false;
        }
        // Setting what is set already does nothing, not even to the other variable.
        if !self.super_read_only {
            self.super_read_only = true;
            self.read_only = true;
        }
        true
    }

    /// One half of an opening. Returns whether it is over.
    pub(super) fn open_half(&mut self, half: u8) -> bool {
        if half == 0 {
            self.super_read_only = false;
            false
        } else {
            self.read_only = false;
            true
        }
    }

    /// `STOP REPLICA; RESET REPLICA ALL`.
    pub(super) fn reset_replica(&mut self) {
        self.receiver = false;
        self.applier = false;
        self.receiver_error = None;
        self.applier_error = false;
        self.source = None;
        self.received = GtidSet::new();
    }

    /// Points it to that site and starts both threads. Received and unapplied transactions are fetched anew.
    pub(super) fn follow(&mut self, source: usize) {
        self.source = Some(source);
        self.received = GtidSet::new();
        self.receive();
        self.receiver_error = None;
        self.applier = true;
        self.applier_error = false;
    }

    /// The receiver starts; it takes up what the replica's side is now.
    pub(super) fn receive(&mut self) {
        self.receiver = true;
        self.acknowledges = self.gives;
    }

    /// Another server's data take the place of its own.
    pub(super) fn replace_data(&mut self, executed: GtidSet, user_data: bool) {
        self.purged = executed.clone();
        self.executed = executed;
        self.user_data = user_data;
        self.source = None;
        self.next = 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open_server() -> Server {
        let mut server = Server::new(Uuid::from_bytes([7; 16]));
        server.begin(1);
        server.life = Life::Up;
        server
    }

    #[test]
    fn a_fence_that_runs_between_the_halves_of_an_opening_leaves_it_half_open() {
        let mut server = open_server();
        assert!(!server.open_half(0));
        assert!(!server.fence_half(0, true));
        assert!(server.fence_half(1, true));
        assert!(server.open_half(1));
        assert_eq!((server.read_only, server.super_read_only), (false, true));
        server.fence_half(1, false);
        assert_eq!((server.read_only, server.super_read_only), (false, true), "the second alone does nothing");
        server.fence_half(0, true);
        server.fence_half(1, true);
        assert_eq!((server.read_only, server.super_read_only), (true, true));
    }

    #[test]
    fn a_restart_closes_and_forgets_what_was_received() {
        let mut server = open_server();
        server.open_half(0);
        server.open_half(1);
        let gtid = server.commit().expect("a number is left");
        server.received.insert(gtid);
        server.begin(2);
        assert!(server.read_only && server.super_read_only && server.received.is_empty());
        assert_eq!(server.executed.count(), 1);
    }
}
