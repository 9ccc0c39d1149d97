//! What a server says of itself, typed.
//!
//! In: rows. Out: values that leave nothing to be parsed by anyone else. Must not: judge (whether a lag is long, or a
//! server fit to be promoted, is decided elsewhere).

use bloodraven_gtid::{GtidSet, Uuid};
use std::time::Duration;

/// The two variables of the fence, read in one statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pair {
    /// `@@global.read_only`.
    pub read_only: bool,
    /// `@@global.super_read_only`.
    pub super_read_only: bool,
}

impl Pair {
    /// Both are on. Anything else is writable for somebody.
    pub const fn is_fenced(self) -> bool {
        self.read_only && self.super_read_only
    }
}

/// The pair, then the executed set, read after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadBack {
    /// Who was read.
    pub server_uuid: Uuid,
    /// The variables.
    pub pair: Pair,
    /// `@@global.gtid_executed`; none: not understood.
    pub executed: Option<GtidSet>,
}

/// Everything that a poll reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// `@@server_uuid`.
    pub server_uuid: Uuid,
    /// `@@server_id`.
    pub server_id: u32,
    /// `@@version`.
    pub version: String,
    /// For how long the server has been running.
    pub uptime: Duration,
    /// The fence variables.
    pub pair: Pair,
    /// What is being committed, by `@@global.gtid_owned`: a replica may have it already. None: not understood.
    pub committing: Option<GtidSet>,
    /// `@@global.gtid_executed`; none: not understood.
    pub executed: Option<GtidSet>,
    /// `@@global.gtid_purged`; none: not understood.
    pub purged: Option<GtidSet>,
    /// It has a schema besides the server's own and `bloodraven`.
    pub user_data: bool,
    /// Its replication; none: not configured.
    pub replica: Option<ReplicaReading>,
    /// Semi-synchronous replication.
    pub semi_sync: SemiSync,
    /// How full it is.
    pub connections: Connections,
}

/// What a replica says of its replication (of the channel without a name).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaReading {
    /// `Source_Host`, as it was configured.
    pub source_host: String,
    /// `Source_Port`.
    pub source_port: u16,
    /// `Source_UUID`, once it has been connected.
    pub source_uuid: Option<Uuid>,
    /// The receiving thread.
    pub receiver: Receiver,
    /// Its last error; a broken link is one, see [`Fault::is_link`].
    pub receiver_error: Option<Fault>,
    /// The applying thread runs.
    pub applier_running: bool,
    /// Its last error, a worker's rather than the coordinator's.
    pub applier_error: Option<Fault>,
    /// `Retrieved_Gtid_Set`, read after `executed`; none: not understood; empty: nothing is pending.
    pub received: Option<GtidSet>,
    /// `SQL_Delay`.
    pub delay: Duration,
    /// `Seconds_Behind_Source`: a hint, and often absent.
    pub behind: Option<Duration>,
    /// `Auto_Position`.
    pub auto_position: bool,
    /// Further channels. Ours is the one without a name.
    pub other_channels: usize,
}

/// The receiving thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Receiver {
    /// Connected to the source.
    Running,
    /// Trying to reach it.
    Connecting,
    /// Off, with or without an error.
    Stopped,
}

/// An error that a thread of the server stopped with, or met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The server's number for it.
    pub code: u32,
    /// The server's words.
    pub message: String,
}

/// Errors of the receiving thread that speak of the way to the source, or of its end, and of nothing else: the thread
/// tries again by itself, and a human can do nothing about them at the replica.
const LINK: &[u32] = &[
    1053, // the source shuts down
    1152, 1184, // the source aborted the connection
    1158, 1159, // reading packets failed, or took too long
    1160, 1161, // writing packets failed, or took too long
    1189, 1190, // the same, as told by a source
    2002, // no connection through a socket
    2003, // refused, no route, or timed out while connecting
    2005, // the name does not resolve: pods come and go with their names
    2006, // the server has gone away
    2012, // the greeting broke off
    2013, 2055, // lost in the middle of something
];

impl Fault {
    /// Whether it is about the link to the source. Certificates (2026), logins (1045, 2061), a full source (1040) and a
    /// source that lacks the binary logs (1236, 13114) are not.
    pub fn is_link(&self) -> bool {
        LINK.contains(&self.code)
    }
}

/// Semi-synchronous replication; all false where the plugins are not loaded.
#[expect(clippy::struct_excessive_bools, reason = "each is a variable of the server, and all combinations occur")]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SemiSync {
    /// The source's plugin is loaded.
    pub source_loaded: bool,
    /// `rpl_semi_sync_source_enabled`.
    pub source_enabled: bool,
    /// `Rpl_semi_sync_source_status`: commits wait for an acknowledgement now.
    pub source_active: bool,
    /// `Rpl_semi_sync_source_clients`.
    pub clients: u64,
    /// The replica's plugin is loaded.
    pub replica_loaded: bool,
    /// `rpl_semi_sync_replica_enabled`.
    pub replica_enabled: bool,
    /// `Rpl_semi_sync_replica_status`.
    pub replica_active: bool,
    /// `rpl_semi_sync_source_timeout`.
    pub timeout: Option<Duration>,
    /// `AFTER_SYNC`, and one acknowledgement.
    pub strict: bool,
}

/// How full the server is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connections {
    /// `Threads_connected`.
    pub used: u64,
    /// `@@max_connections`.
    pub most: u64,
    /// `Connection_errors_max_connections`: logins that were refused for want of a place, since the start.
    pub refused: u64,
}

impl Connections {
    /// Whether an application finds no place.
    pub const fn is_exhausted(self) -> bool {
        self.used >= self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_two_ones_are_a_fence() {
        for (read_only, super_read_only, fenced) in
            [(true, true, true), (true, false, false), (false, true, false), (false, false, false)]
        {
            assert_eq!(Pair { read_only, super_read_only }.is_fenced(), fenced);
        }
    }

    #[test]
    fn a_broken_link_is_told_from_a_broken_setup() {
        for (code, link) in [
            (2003, true),
            (2005, true),
            (2013, true),
            (1159, true),
            (1053, true),
            (1045, false),
            (1040, false),
            (1236, false),
            (13114, false),
            (2026, false),
            (2061, false),
            (0, false),
        ] {
            assert_eq!(Fault { code, message: String::new() }.is_link(), link, "{code}");
        }
    }
}
