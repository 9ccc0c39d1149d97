//! One pod of a site: keeper, server, sidecar with its disk. Containers are started again; the pod is not.
//!
//! In: nothing; this is state. Out: what of it survives what. Must not: decide.

use super::clock::Time;
use super::event::Event;
use super::server::Server;
use bloodraven_brain::fence::{Command, Disk, Permit, ReplyId, Sidecar};
use bloodraven_brain::name::{Instance, Member, Site};
use bloodraven_brain::record::Epoch;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// One pod.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own, and all combinations occur")]
pub(super) struct Pod {
    /// Its site.
    pub(super) site: usize,
    pub(super) name: Site,
    pub(super) uid: Arc<str>,
    /// Its containers may run: it has started and has not ended.
    pub(super) runs: bool,
    /// It ran once and never will again.
    pub(super) ended: bool,
    /// Its node is cut off from everyone: it was deleted by force and lives on.
    pub(super) stray: bool,
    /// Its volume was taken from it: what it commits is lost with it.
    pub(super) ended_volume: bool,
    /// What it was made from.
    pub(super) template: u32,
    /// It begins when that one has ended, on its volume.
    pub(super) waits_for: Option<usize>,
    pub(super) keeper: Keeper,
    pub(super) server: Server,
    pub(super) side: Side,
}

/// The keeper.
#[derive(Debug, Default)]
pub(super) struct Keeper {
    pub(super) up: bool,
    pub(super) life: u32,
    pub(super) permit: Option<Permit>,
    /// The sidecar's life that it listens to.
    pub(super) session: Option<u32>,
    /// The sidecar's life that has seen this keeper hold its lock.
    pub(super) known_by: Option<u32>,
    /// It stands still.
    pub(super) paused: bool,
    /// What came while it stood still.
    pub(super) inbox: Vec<Event>,
    /// The renewal that lies in its socket.
    pub(super) renewal: Option<Permit>,
}

/// The sidecar with its hands and its disk.
#[derive(Debug)]
pub(super) struct Side {
    pub(super) life: u32,
    /// None: it does not run.
    pub(super) brain: Option<Box<Sidecar>>,
    pub(super) paused: bool,
    /// What came while it stood still.
    pub(super) inbox: Vec<Event>,
    pub(super) store: Arc<str>,
    /// What is on disk for certain.
    pub(super) disk: Disk,
    pub(super) full: bool,
    /// Writes under way, in order.
    pub(super) writes: VecDeque<(u64, DiskWrite)>,
    /// The disk is busy until then.
    pub(super) disk_free: Time,
    /// What waits for a write.
    pub(super) chains: BTreeMap<u64, VecDeque<(Command, u64)>>,
    /// The newest operation of the lane, and whether it has ended.
    pub(super) lane: u64,
    pub(super) lane_open: bool,
    /// The timer that is set.
    pub(super) timer: Option<Time>,
    pub(super) next: u64,
    /// Who waits for an answer.
    pub(super) replies: BTreeMap<ReplyId, ReplyTo>,
    /// When this life began, for the grid of its timer.
    pub(super) since: Time,
}

/// What is written to a sidecar's disk.
#[derive(Clone, Debug)]
pub(super) enum DiskWrite {
    View(Box<bloodraven_brain::record::View>),
    Marker(Box<bloodraven_brain::fence::Marker>),
    Note(Option<bloodraven_brain::fence::Note>),
    Conflict(Epoch),
}

/// Who waits for an answer of a sidecar.
#[derive(Clone, Copy, Debug)]
pub(super) enum ReplyTo {
    /// An operator that pushed.
    Operator(usize, u32),
    /// A peer that pushed: its pod and life.
    Pusher(usize, u32),
    /// A peer that asked: its pod and life.
    Asker(usize, u32),
}

impl Pod {
    pub(super) fn new(site: usize, name: &Site, uid: &str, server: Server, store: &str) -> Self {
        let agent = Side {
            life: 0,
            brain: None,
            paused: false,
            inbox: Vec::new(),
            store: store.into(),
            disk: Disk::default(),
            full: false,
            writes: VecDeque::new(),
            disk_free: 0,
            chains: BTreeMap::new(),
            lane: 0,
            lane_open: false,
            timer: None,
            next: 0,
            replies: BTreeMap::new(),
            since: 0,
        };
        let (name, uid) = (name.clone(), uid.into());
        let keeper = Keeper::default();
        Self {
            site,
            name,
            uid,
            runs: false,
            ended: false,
            stray: false,
            ended_volume: false,
            template: 0,
            waits_for: None,
            keeper,
            server,
            side: agent,
        }
    }

    pub(super) fn member(&self) -> Member {
        Member { site: self.name.clone(), instance: Instance { pod: self.uid.clone(), store: self.side.store.clone() } }
    }
}

impl Side {
    /// The process ends; of the writes under way the first few reached the disk.
    pub(super) fn end(&mut self, reached: usize) {
        self.brain = None;
        self.paused = false;
        self.inbox.clear();
        self.chains.clear();
        self.lane += 1;
        self.lane_open = false;
        self.timer = None;
        self.replies.clear();
        let writes = std::mem::take(&mut self.writes);
        for (_, write) in writes.into_iter().take(reached) {
            self.reach(write);
        }
        self.life += 1;
    }

    /// A write reaches the disk.
    pub(super) fn reach(&mut self, write: DiskWrite) {
        match write {
            DiskWrite::View(view) => self.disk.view = Some(*view),
            DiskWrite::Marker(marker) => self.disk.marker = Some(*marker),
            DiskWrite::Note(note) => self.disk.note = note,
            DiskWrite::Conflict(epoch) => self.disk.conflict = Some(epoch),
        }
    }

    pub(super) fn next_id(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}
