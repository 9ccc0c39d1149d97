//! The words of the model: bounds, nodes, the store, leaders, and the world that is made of them.
//!
//! In: nothing. Out: the first state of a search. Must not: decide; what happens is in `local` and
//! `step`.

use super::canonical;
use bloodraven_brain::authority::{self, Evidence};
use bloodraven_brain::fence::{Command, Disk, Permit, Sidecar};
use bloodraven_brain::message::{Ack, Grant, StartId, Vouch};
use bloodraven_brain::name::{Instance, Member, Site};
use bloodraven_brain::record::{Cause, Epoch, Holder, Phase, Record, Settings, View, VoterSet};
use bloodraven_brain::time::{Boot, Millis, Wall};
use std::collections::BTreeMap;

/// One step of model time. Chosen so that the margin of a lease of two steps is one step (see [`Settings::margin`]).
pub(super) const STEP: Millis = Millis(3062);

/// The present moment. Time passes by shifting everything else into the past.
pub(super) const NOW: Boot = Boot(3062 * 100);

/// Further back than anything reacts to: a lease of two steps and its margin.
pub(super) const LONG_AGO: Boot = Boot(3062 * 97);

/// How many nodes a world has room for: four sites, or two with two lives each and one more.
pub(super) const ROOM: usize = 5;

/// How far the search goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "each widens the search in a way of its own")]
pub struct Bounds {
    /// How many sites.
    pub sites: usize,
    /// Steps of time that a lease lasts. With 1 no answer outlives the step it was given in.
    pub lease: u64,
    /// `minPeers`.
    pub min_peers: u32,
    /// The highest epoch that the leader may begin a move, or a change, from.
    pub epochs: Epoch,
    /// What may go wrong, and how often.
    pub faults: Faults,
    /// Whether acknowledgements may be late, or be handed on by a peer with their age.
    pub late_acks: bool,
    /// Whether views may also come from peers.
    pub peer_views: bool,
    /// Whether the keeper's word may be late.
    pub slow_keeper: bool,
    /// Whether the fenced state in acknowledgements is ignored, so that only a lease that ran out proves anything.
    pub lease_proof_only: bool,
    /// Whether voters are not listened to, so that only the holder's own word, or its end, proves anything.
    pub no_lease_proof: bool,
    /// Whether a write may reach one of the record's two copies only.
    pub two_copies: bool,
    /// Where the search begins.
    pub start: Start,
    /// What is taken out of the world, to show that the search would notice.
    pub without: Option<Without>,
}

/// How often each thing may go wrong, or be changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Faults {
    /// Leader changes, with or without a record write of the old leader in flight.
    pub leader_changes: u8,
    /// Leaders that are elected while the old one goes on: the Kubernetes Lease was not kept.
    pub rivals: u8,
    /// Sidecar crashes.
    pub sidecar_crashes: u8,
    /// mysqld crashes.
    pub mysqld_crashes: u8,
    /// Failing steps of a lane, outcome unknown.
    pub lane_failures: u8,
    /// Voter changes.
    pub voter_changes: u8,
    /// Changes of the lease settings.
    pub settings_changes: u8,
    /// New pods, each beside an old one that may live on.
    pub new_pods: u8,
    /// Instances that end, for good.
    pub ends: u8,
    /// Stores that are lost: a new instance in the same pod.
    pub lost_stores: u8,
}

/// Where a search begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Start {
    /// Site 0 has authority under epoch 1 and is open.
    Opened,
    /// A group without a record: nothing stored anywhere, every server fenced.
    Bootstrap,
    /// Site 1 has authority under epoch 3 and is open; the API server was set back to epoch 1 of site 0.
    RolledBack,
}

/// A part of the protocol that the world around the brain provides, and that a search can do without.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Without {
    /// The keeper never kills a server whose permit has run out.
    DeadMan,
    /// mysqld comes up open.
    FencedBoot,
    /// Ending the opener's sessions ends nothing.
    EndOfOpeners,
    /// The keeper gives a permit for any start of mysqld.
    StartIdAtPermit,
    /// A sidecar that was replaced may still be given what it asked the keeper for.
    OneSession,
    /// The fencing statement sets `super_read_only` alone, which does nothing where it is on already.
    BothInOneStatement,
    /// Views leave before the record is persisted.
    PersistFirst,
    /// A record write lands whatever was written since it was begun.
    CompareAndSwap,
    /// A leader that was replaced goes on answering.
    LeadershipAtTheAnswer,
    /// The operator opens by SQL, too.
    OnlyTheSidecarOpens,
    /// An instance is taken for ended although it lives.
    EvidenceOfTheEnd,
}

/// The whole state: numbers of interned parts (see `intern`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct World {
    /// One node for each instance; none beyond those that live.
    pub(super) nodes: [Option<u32>; ROOM],
    /// The leader.
    pub(super) leader: u32,
    /// An earlier leader that goes on, where a search allows it.
    pub(super) rival: Option<u32>,
    /// What the API server holds.
    pub(super) store: u32,
    /// What is left of the faults.
    pub(super) left: Faults,
}

/// What the API server holds, and what was ever told.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Store {
    /// The record, as somebody who reads both copies finds it.
    pub record: Record,
    /// The copy that a write did not reach.
    pub stale: Option<Record>,
    /// Every view ever told that a late message may still bring.
    pub views: Vec<View>,
    /// A record write of a dead leader; it lands if the record has not changed since.
    pub late_write: Option<Record>,
}

/// A leader, with the record as it last read or wrote it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Leader {
    /// What it believes to be persisted.
    pub record: Record,
    /// What it has heard.
    pub evidence: Evidence,
}

/// One instance: keeper, mysqld and sidecar, with what is in flight to and from them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Node {
    /// Who it is.
    pub me: Member,
    /// The sidecar, unless it is down.
    pub sidecar: Option<Sidecar>,
    /// What is on disk while the sidecar is down; while it runs, its own copy is the same.
    pub disk: Disk,
    /// mysqld.
    pub server: Server,
    /// The keeper's permit.
    pub permit: Option<Permit>,
    /// What a sidecar that died had asked the keeper for.
    pub asked_by_ghost: Option<Permit>,
    /// The lane operation that the sidecar waits for.
    pub lane: Option<Command>,
    /// Answers on their way to it, by sender; no member: the leader. A newer one replaces the older, which is lost.
    pub inbox: BTreeMap<Option<Member>, Letter>,
    /// An acknowledgement on its way to the leader, with the time it was spoken.
    pub late_ack: Option<(Boot, Ack)>,
    /// It has ended, for good.
    pub ended: bool,
}

/// An answer in flight.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Letter {
    /// The leader's.
    Grant(Grant),
    /// A voter's.
    Vouch(Vouch),
}

/// mysqld, the ground truth.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own, and all combinations occur")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Server {
    /// Which start.
    pub start: u64,
    /// Whether it runs.
    pub running: bool,
    /// `@@global.read_only`.
    pub read_only: bool,
    /// `@@global.super_read_only`.
    pub super_read_only: bool,
    /// An opening statement was sent over a session that nobody has seen gone.
    pub opening_in_flight: bool,
    /// The same by the operator, over a session that no sidecar knows.
    pub operator_opens: bool,
}

impl Bounds {
    /// Two sites, one move, no faults: what every search begins with.
    pub const ONE_MOVE: Self = Self {
        sites: 2,
        lease: 2,
        min_peers: 1,
        epochs: 2,
        faults: Faults {
            leader_changes: 0,
            rivals: 0,
            sidecar_crashes: 0,
            mysqld_crashes: 0,
            lane_failures: 0,
            voter_changes: 0,
            settings_changes: 0,
            new_pods: 0,
            ends: 0,
            lost_stores: 0,
        },
        late_acks: false,
        peer_views: false,
        slow_keeper: false,
        lease_proof_only: false,
        no_lease_proof: false,
        two_copies: false,
        start: Start::Opened,
        without: None,
    };

    /// Whether anything beside mysqld can go wrong in the middle of a lane.
    pub(super) fn lane_is_disturbed(&self) -> bool {
        let Faults { sidecar_crashes, mysqld_crashes, lane_failures, ends, lost_stores, .. } = self.faults;
        sidecar_crashes + mysqld_crashes + lane_failures + ends + lost_stores > 0 || self.slow_keeper
    }

    /// Whether no move, and no change, can begin from that epoch any more.
    pub(super) fn is_last(&self, epoch: Epoch) -> bool {
        self.start == Start::Opened && self.without != Some(Without::PersistFirst) && epoch > self.epochs
    }

    /// Whether one vouch is always enough, of always the same voters under always the same settings.
    pub(super) fn lease_is_one_number(&self) -> bool {
        let Faults { voter_changes, settings_changes, new_pods, lost_stores, .. } = self.faults;
        self.min_peers == 1 && voter_changes + settings_changes + new_pods + lost_stores == 0
    }
}

impl Without {
    /// All of them.
    pub const ALL: &[Self] = &[
        Self::DeadMan,
        Self::FencedBoot,
        Self::EndOfOpeners,
        Self::StartIdAtPermit,
        Self::OneSession,
        Self::BothInOneStatement,
        Self::PersistFirst,
        Self::CompareAndSwap,
        Self::LeadershipAtTheAnswer,
        Self::OnlyTheSidecarOpens,
        Self::EvidenceOfTheEnd,
    ];

    /// Its name, as commands take it.
    pub fn name(self) -> String {
        format!("{self:?}")
    }
}

impl Server {
    const FENCED: Self = Self {
        start: 1,
        running: true,
        read_only: true,
        super_read_only: true,
        opening_in_flight: false,
        operator_opens: false,
    };

    /// Whether somebody could write. 0/1 and 1/0 count.
    pub(super) fn writable(&self) -> bool {
        self.running && !(self.read_only && self.super_read_only)
    }

    /// Whether an opening may take effect.
    pub(super) fn may_be_opened(&self) -> bool {
        self.running && (self.opening_in_flight || self.operator_opens)
    }

    /// A new start: always fenced, unless a search does without.
    pub(super) fn boot(&mut self, fenced: bool) {
        *self = Self { start: self.start + 1, read_only: fenced, super_read_only: fenced, ..Self::FENCED };
    }

    /// The end of a start takes its sessions along; a statement that was not sent yet finds the next start.
    pub(super) fn end(&mut self) {
        self.running = false;
        self.opening_in_flight = false;
    }

    pub(super) fn id(&self) -> StartId {
        StartId(self.start)
    }
}

impl Node {
    /// An instance that starts with that on its disk, beside a server that has just come up; everybody is long up.
    pub(super) fn new(me: Member, disk: Disk, born: Boot) -> Self {
        Self {
            sidecar: Some(Sidecar::start(me.clone(), disk, born)),
            me,
            disk: Disk::default(),
            server: Server::FENCED,
            permit: None,
            asked_by_ghost: None,
            lane: None,
            inbox: BTreeMap::new(),
            late_ack: None,
            ended: false,
        }
    }

    /// The highest epoch that its sidecar has heard.
    pub(super) fn known(&self) -> Epoch {
        self.sidecar.as_ref().and_then(|sidecar| sidecar.heard.as_ref()).map_or(0, |view| view.epoch)
    }

    /// The epoch on its disk.
    pub(super) fn on_disk(&self) -> Epoch {
        let disk = self.sidecar.as_ref().map_or(&self.disk, |sidecar| &sidecar.disk);
        disk.view.as_ref().map_or(0, |view| view.epoch)
    }
}

impl Leader {
    pub(super) fn elected(record: Record, at: Boot, bounds: &Bounds) -> Self {
        let mut leader = Self { record, evidence: Evidence::new(at) };
        canonical::leader(&mut leader, bounds);
        leader
    }
}

/// The record of epoch 1: site 0 has authority, all sites vote.
pub(super) fn first_record(bounds: &Bounds) -> Record {
    let voters: Vec<Member> = (0..bounds.sites).map(|site| member(site, 1, 1)).collect();
    let settings = Settings { lease_timeout: STEP.times(bounds.lease), min_peers: bounds.min_peers };
    Record {
        epoch: 1,
        tenure: 1,
        seat: Some(voters[0].clone()),
        phase: Phase::Granting,
        voters: voters.clone(),
        settings,
        since: Wall(0),
        cause: Cause::Bootstrap,
        proof: None,
        revoked_at: None,
        holder: Some(Holder {
            member: voters[0].clone(),
            server_uuid: None,
            sets: vec![VoterSet { epoch: 1, voters, settings }],
            sql_fence_sent: false,
        }),
        ended: Vec::new(),
    }
}

/// The record of a group that has none.
pub(super) fn no_record(bounds: &Bounds, highest: Epoch) -> Record {
    let first = first_record(bounds);
    authority::start_over(highest, first.voters, first.settings, Cause::Bootstrap, Wall(0))
}

/// That life of that site.
pub(super) fn member(site: usize, pod: usize, store: usize) -> Member {
    let name = ["iad", "pdx", "fra", "syd", "gru"].get(site).copied().unwrap_or("zzz");
    Member { site: Site::new(name), instance: Instance::new(&format!("{name}{pod}"), &format!("s{store}")) }
}
