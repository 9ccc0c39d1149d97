//! What is searched: bounds with a name. The rows of a test run end within a minute together; the deep ones take their
//! time and may be cut off by their size.

use super::{Bounds, Faults, Start};

/// A name, its bounds, and after how many worlds the search gives up.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// For people, and for the table of teeth.
    pub name: &'static str,
    /// How far it goes.
    pub bounds: Bounds,
    /// Where it gives up.
    pub most: usize,
}

const ONE: Bounds = Bounds::ONE_MOVE;
const NONE: Faults = ONE.faults;

/// Two moves: the second begins from epoch 3.
const TWO: Bounds = Bounds { epochs: 3, ..ONE };

const fn row(name: &'static str, bounds: Bounds, most: usize) -> Row {
    Row { name, bounds, most }
}

/// One move, two sites, nothing goes wrong but time and mail.
pub const MOVE: Row = row("2 sites, one move", ONE, 1_000_000);

/// The leader dies, with or without a write on its way.
pub const LEADER: Row =
    row("2 sites, one move, a new leader", Bounds { faults: Faults { leader_changes: 1, ..NONE }, ..ONE }, 1_000_000);

/// Another leader beside the first, which does not know: the Kubernetes Lease was unsound. Both answer, both write; what is
/// left to protect is that the record is compared and swapped. A lease that ran out proves nothing then, for neither knows
/// what the other granted: that is what a sound Lease is assumed for (`Without::LeadershipAtTheAnswer` shows it).
pub const RIVAL: Row = row(
    "2 sites, one move, a rival leader, no lease proof",
    Bounds { no_lease_proof: true, faults: Faults { rivals: 1, ..NONE }, ..ONE },
    30_000_000,
);

/// The same through two moves.
pub const RIVAL_TWICE: Row = row(
    "2 sites, two moves, a rival leader, no lease proof",
    Bounds { no_lease_proof: true, faults: Faults { rivals: 1, ..NONE }, ..TWO },
    30_000_000,
);

/// A sidecar dies.
pub const SIDECAR: Row =
    row("2 sites, one move, a sidecar crash", Bounds { faults: Faults { sidecar_crashes: 1, ..NONE }, ..ONE }, 600_000);

/// mysqld dies, or a step of the lane fails.
pub const MYSQLD: Row = row(
    "2 sites, one move, a mysqld crash, a failing step",
    Bounds { faults: Faults { mysqld_crashes: 1, lane_failures: 1, ..NONE }, ..ONE },
    600_000,
);

/// All three at once: the bound that caught most in the trials.
pub const CRASHES: Row = row(
    "2 sites, one move, new leader, both crash",
    Bounds { faults: Faults { leader_changes: 1, sidecar_crashes: 1, mysqld_crashes: 1, ..NONE }, ..ONE },
    20_000_000,
);

/// The keeper's word is late while sidecar and mysqld crash.
pub const KEEPER: Row = row(
    "2 sites, one move, late keeper, both crash",
    Bounds { slow_keeper: true, faults: Faults { sidecar_crashes: 1, mysqld_crashes: 1, ..NONE }, ..ONE },
    10_000_000,
);

/// Authority moves twice; also back.
pub const TWO_MOVES: Row = row("2 sites, two moves", TWO, 800_000);

/// Acknowledgements are late and handed on, through two moves.
pub const LATE_ACKS: Row =
    row("2 sites, two moves, late acknowledgements", Bounds { late_acks: true, ..TWO }, 10_000_000);

/// Views come from peers, too.
pub const PEERS: Row = row("2 sites, one move, views of peers", Bounds { peer_views: true, ..ONE }, 1_000_000);

/// Three sites.
pub const THREE: Row = row("3 sites, one move", Bounds { sites: 3, ..ONE }, 600_000);

/// A voter goes, or comes back; nothing but the lease proves anything.
pub const VOTERS: Row = row(
    "3 sites, one voter change, lease proof only",
    Bounds { sites: 3, epochs: 2, lease_proof_only: true, faults: Faults { voter_changes: 1, ..NONE }, ..ONE },
    400_000,
);

/// Lease and `minPeers` change.
pub const SETTINGS: Row = row(
    "3 sites, one change of lease or minPeers",
    Bounds { sites: 3, epochs: 2, lease_proof_only: true, faults: Faults { settings_changes: 1, ..NONE }, ..ONE },
    10_000_000,
);

/// Four sites, two vouches needed.
pub const FOUR: Row = row(
    "4 sites, two vouches, lease proof only",
    Bounds { sites: 4, min_peers: 2, lease_proof_only: true, ..ONE },
    10_000_000,
);

/// A sidecar loses its store: a new instance in the same pod.
pub const STORE: Row = row(
    "2 sites, a lost store, a voter change",
    Bounds { epochs: 2, faults: Faults { lost_stores: 1, voter_changes: 1, ..NONE }, ..ONE },
    400_000,
);

/// A new pod beside an old one that lives on, or ends.
pub const PODS: Row = row(
    "2 sites, a new pod, an end, a voter change",
    Bounds { epochs: 2, faults: Faults { new_pods: 1, ends: 1, voter_changes: 1, ..NONE }, ..ONE },
    600_000,
);

/// Nothing is known of the group.
pub const BOOTSTRAP: Row = row("2 sites, bootstrap", Bounds { start: Start::Bootstrap, epochs: 0, ..ONE }, 1_000_000);

/// The API server was set back.
pub const ROLLED_BACK: Row =
    row("2 sites, record set back", Bounds { start: Start::RolledBack, epochs: 1, ..ONE }, 1_000_000);

/// A write reaches one copy only, and the leader dies.
pub const COPIES: Row = row(
    "2 sites, one move, two copies, a new leader",
    Bounds { two_copies: true, faults: Faults { leader_changes: 1, ..NONE }, ..ONE },
    600_000,
);

/// Rows for every test run: a minute together.
pub const MINUTES: &[Row] =
    &[MOVE, LEADER, SIDECAR, MYSQLD, PEERS, BOOTSTRAP, COPIES, ROLLED_BACK, TWO_MOVES, THREE, VOTERS, STORE, PODS];

/// The same row, given time.
const fn deep(row: Row) -> Row {
    Row { most: 30_000_000, ..row }
}

/// Rows that take longer: those that a test run cuts off, and those that it leaves out.
pub const DEEP: &[Row] = &[
    deep(SIDECAR),
    deep(MYSQLD),
    deep(COPIES),
    deep(TWO_MOVES),
    deep(THREE),
    deep(VOTERS),
    deep(STORE),
    deep(PODS),
    RIVAL,
    RIVAL_TWICE,
    CRASHES,
    KEEPER,
    LATE_ACKS,
    SETTINGS,
    FOUR,
];

/// What swarm walks roam: everything at once, which no search would ever finish.
pub const ROAM: Bounds = Bounds {
    sites: 3,
    epochs: 12,
    faults: Faults {
        leader_changes: 2,
        rivals: 0,
        sidecar_crashes: 3,
        mysqld_crashes: 3,
        lane_failures: 2,
        voter_changes: 2,
        settings_changes: 1,
        new_pods: 2,
        ends: 2,
        lost_stores: 1,
    },
    late_acks: true,
    peer_views: true,
    slow_keeper: true,
    two_copies: true,
    ..ONE
};
