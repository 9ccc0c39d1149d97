//! What is said over the keeper's socket.
//!
//! In: values, or lines without their line end. Out: lines, or values that cannot be wrong. Must not: do IO, or show a
//! password in a debug text.
//!
//! A client sends one [`Request`] a line and gets one [`Reply`] a line for each, in order; the answer to a kill alone
//! comes when the process is reaped, whatever was asked and answered meanwhile. Between replies the keeper says
//! [`Unasked`] words, which begin with `!`, to the one sidecar session. A line has at most [`MAX_LINE`] bytes, its end
//! included.

mod text;

use std::fmt;
use std::path::{Path, PathBuf};

/// The longest line in bytes, its end included.
pub const MAX_LINE: usize = 4096;

/// How long after its deadline a permit ends in SIGKILL, in milliseconds.
pub const DEAD_MAN: u64 = 2500;

/// How long mysqld may take to stop before its data folder is emptied, in milliseconds: nothing of it is kept.
pub const EMPTY_WAIT: u64 = 5000;

/// How long the keeper waits for `fenced` after it said `!stopping`, in milliseconds.
pub const FENCE_WAIT: u64 = 5000;

/// The lock that the keeper of that socket holds, and every process that it started: it is taken before the socket is
/// there, and the kernel frees it when the last of them is gone. Whoever saw it held during a session, and gets it
/// afterwards, knows that the keeper of that session and its mysqld have ended.
pub fn lock_of(socket: &Path) -> PathBuf {
    socket.with_file_name("mysqld.lock")
}

/// Names one start of mysqld: random, 53 bits (exact in any JSON reader), never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StartId(u64);

impl StartId {
    /// A start by its number; none for 0 and for numbers of more than 53 bits.
    pub fn new(number: u64) -> Option<Self> {
        (number != 0 && number < 1 << 53).then_some(Self(number))
    }

    /// The number.
    pub fn get(self) -> u64 {
        self.0
    }
}

/// The permission for one start of mysqld to be writable until a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Permit {
    /// The start that it is bound to.
    pub start: StartId,
    /// The epoch under which it was asked for or last renewed.
    pub epoch: u64,
    /// The end of the lease, in milliseconds of `CLOCK_BOOTTIME`.
    pub deadline: u64,
}

/// What a client may ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Request {
    /// How mysqld is. For any client.
    Status,
    /// Makes the caller the one sidecar session; the older one is shut.
    Hello,
    /// The opener's password for the present start.
    Opener,
    /// Asks for a permit.
    Permit(Permit),
    /// Moves the deadline of the permit that is held; never makes one.
    Renew(Permit),
    /// Both variables of that start were read back as 1: withdraws its permit.
    Fenced {
        /// The start that was read.
        start: StartId,
    },
    /// SIGKILL for mysqld, if it is that start.
    Kill {
        /// The start that is meant.
        start: StartId,
    },
    /// Stops mysqld, if it is that start and holds no permit, throws away everything in its data folder, and goes through
    /// the first boot. What was begun is finished, also by the next keeper.
    Empty {
        /// The start whose data is meant.
        start: StartId,
    },
    /// Stops mysqld in good order, and the keeper with it.
    Stop,
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Reply {
    /// How mysqld is.
    Status(Status),
    /// The caller is the session now.
    Welcome,
    /// The opener's password.
    Opener {
        /// The start that it opens, and no other.
        start: StartId,
        /// The password.
        password: Password,
    },
    /// The permit is held.
    Permitted,
    /// The deadline was moved.
    Renewed,
    /// The permit of that start is withdrawn, if there was one.
    Noted,
    /// The process was killed and reaped.
    Killed {
        /// The start that is gone.
        start: StartId,
    },
    /// The data folder of that start will be emptied: this cannot be taken back.
    Emptying {
        /// The start that ends.
        start: StartId,
    },
    /// mysqld is being stopped.
    Stopping,
    /// Not done, for a reason that the protocol knows.
    Refused(Refusal),
    /// The line was no request: words joined by dashes.
    Error {
        /// What was wrong with it.
        why: String,
    },
}

/// What the keeper says to the session on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unasked {
    /// mysqld was started; it has not answered anything yet.
    Started {
        /// The new start.
        start: StartId,
    },
    /// mysqld has ended and was reaped; its permit is gone.
    Exited {
        /// The start that ended.
        start: StartId,
        /// Its exit code, or 128 + the signal that ended it.
        code: i32,
    },
    /// The keeper was told to end: fence now and say `fenced`; mysqld is stopped [`FENCE_WAIT`] later at the latest.
    Stopping,
    /// Another session said hello; this one is closed.
    Superseded,
}

/// Any line of the keeper's.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Line {
    /// An answer.
    Reply(Reply),
    /// A word of its own.
    Unasked(Unasked),
}

/// Why something was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Refusal {
    /// Only the session may ask this.
    NotTheSession,
    /// mysqld does not run.
    NotRunning,
    /// Another start of mysqld runs, or none, or it is being killed or emptied.
    OtherStart,
    /// The keeper is stopping mysqld.
    Stopping,
    /// The deadline has passed.
    Past,
    /// There is no permit to renew.
    NoPermit,
    /// There is a permit: the server may be writable.
    Permit,
}

/// How mysqld is. While `start` is told, a process of that start exists and counts as running.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Status {
    /// The process, of the server or of the first initialisation.
    pub pid: Option<u32>,
    /// The present start.
    pub start: Option<StartId>,
    /// When it was started, in milliseconds of `CLOCK_BOOTTIME`.
    pub started: Option<u64>,
    /// What it is doing.
    pub mysqld: Mysqld,
    /// How the last one ended.
    pub code: Option<i32>,
    /// The permit that is held.
    pub permit: Option<Permit>,
    /// Whether mysqld is being stopped for good.
    pub stopping: bool,
}

/// What mysqld is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mysqld {
    /// It is about to start, or has not read its init file yet.
    Booting,
    /// The data folder is being initialised.
    Initialising,
    /// It has read its init file: the accounts are there.
    Running,
    /// It ended by itself.
    Exited,
    /// A signal ended it.
    Killed,
}

/// A password on its way to the session: opaque text without blanks. It is not shown by `Debug`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Password(String);

impl Password {
    /// A password that can stand in a line; none when it is empty or has blanks or other control signs.
    pub fn new(text: impl Into<String>) -> Option<Self> {
        let text = text.into();
        (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())).then_some(Self(text))
    }

    /// The text itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(..)")
    }
}

/// Why a line cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Unreadable {
    /// There is nothing on it.
    Empty,
    /// The first word is not known.
    Verb(String),
    /// A word is not of the form `key=value`, or its key is unknown or told twice.
    Word(String),
    /// A key is missing.
    Missing(&'static str),
    /// A value cannot be what its key asks for.
    Value(&'static str),
}

#[cfg(test)]
mod tests;
