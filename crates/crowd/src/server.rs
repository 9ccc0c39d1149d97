//! A played server: what it holds, whom it follows, whether it takes writes.
//!
//! In: changes by statements and by its sidecar. Out: its state. Must not: write anything, or follow anybody for real: all
//! servers of a group hold the same transactions from the start, and no more come.

use bloodraven_gtid::GtidSet;

/// See above.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "they are the server's own variables, each with its own name")]
pub(crate) struct Server {
    pub(crate) uuid: String,
    pub(crate) number: u32,
    /// Which start of it runs; none: it does not.
    pub(crate) start: Option<u64>,
    pub(crate) starts: u64,
    pub(crate) read_only: bool,
    pub(crate) super_read_only: bool,
    pub(crate) executed: GtidSet,
    pub(crate) replica: Option<Replica>,
    pub(crate) source_waits: bool,
    pub(crate) source_timeout: u64,
    pub(crate) replica_acknowledges: bool,
}

/// Whom it follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Replica {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) user: String,
    pub(crate) password: String,
    pub(crate) receiver: bool,
    pub(crate) applier: bool,
}

impl Server {
    /// One that runs, closed, and holds what the others of its group hold.
    pub(crate) fn new(number: u32, executed: GtidSet) -> Self {
        Self {
            uuid: format!("{number:08x}-0000-4000-8000-000000000001"),
            number: number + 1,
            start: Some(1),
            starts: 1,
            read_only: true,
            super_read_only: true,
            executed,
            replica: None,
            source_waits: false,
            source_timeout: 10_000,
            replica_acknowledges: false,
        }
    }

    /// As its command line has it: closed.
    pub(crate) fn boot(&mut self) {
        self.starts += 1;
        self.start = Some(self.starts);
        self.close();
    }

    pub(crate) fn end(&mut self) {
        self.start = None;
    }

    pub(crate) fn close(&mut self) {
        (self.read_only, self.super_read_only) = (true, true);
    }

    pub(crate) fn open(&mut self) {
        (self.read_only, self.super_read_only) = (false, false);
    }

    pub(crate) fn is_open(&self) -> bool {
        self.start.is_some() && !(self.read_only && self.super_read_only)
    }
}
