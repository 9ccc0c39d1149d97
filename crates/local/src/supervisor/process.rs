//! Processes: started, signalled by a handle that cannot name another, and seen to end.
//!
//! In: a command. Out: a running process that ends with its owner. Must not: signal by number what it has not made sure
//! of, or leave a zombie.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use snafu::{OptionExt as _, ResultExt as _, Snafu};
use tokio::io::unix::AsyncFd;
use tokio::time::{interval, timeout};

use super::{proc, spawner};
use crate::descriptor::watched;

/// When a log is put aside at a start.
const LOG: u64 = 16 << 20;

/// How long a killed or stopped process may take: it has no say in it, but a slow disk has.
const LIMIT: Duration = Duration::from_secs(30);

/// How often a process is looked at while it is waited for.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// What went wrong with a process.
#[derive(Debug, Snafu)]
pub enum Error {
    /// Its log cannot be made.
    #[snafu(display("{name}: cannot write its log {}: {source}", log.display()))]
    Log {
        /// Which process.
        name: String,
        /// The file.
        log: PathBuf,
        /// What the system said.
        source: io::Error,
    },

    /// It cannot be started.
    #[snafu(display("{name}: cannot start {program}: {source}"))]
    Start {
        /// Which process.
        name: String,
        /// The program.
        program: String,
        /// What the system said.
        source: io::Error,
    },

    /// It cannot be signalled.
    #[snafu(display("{name}: cannot signal process {pid}: {source}"))]
    Signal {
        /// Which process.
        name: String,
        /// Its number.
        pid: u32,
        /// What the system said.
        source: io::Error,
    },

    /// It does not run.
    #[snafu(display("{name} does not run"))]
    NotRunning {
        /// Which process.
        name: String,
    },

    /// It does not do what no process can refuse.
    #[snafu(display("{name}: process {pid} has not {what} within {} s", LIMIT.as_secs()))]
    Stuck {
        /// Which process.
        name: String,
        /// Its number.
        pid: u32,
        /// What it has not done.
        what: &'static str,
    },
}

/// A running child. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct Process {
    name: String,
    pid: u32,
    child: Mutex<Child>,
    handle: AsyncFd<OwnedFd>,
}

impl Process {
    /// Starts a program without standard input, both outputs appended to the log.
    pub(crate) fn spawn(mut command: Command, name: &str, log: &Path) -> Result<Self, Error> {
        let (out, err) = open_log(log).context(LogSnafu { name, log })?;
        let program = command.get_program().to_string_lossy().into_owned();
        command.stdin(Stdio::null()).stdout(out).stderr(err);
        let start = || -> io::Result<(Child, OwnedFd)> {
            let mut child = spawner::spawn(command)?;
            // Nobody has waited for it, so the number is still its own.
            match pidfd_open(Pid::from_child(&child), PidfdFlags::empty()) {
                Ok(handle) => Ok((child, handle)),
                Err(error) => {
                    let _ = child.kill();
                    let _ = child.wait();
                    Err(error.into())
                }
            }
        };
        let (child, handle) = start().with_context(|_| StartSnafu { name, program: program.clone() })?;
        let pid = child.id();
        let handle = watched(handle).context(StartSnafu { name, program })?;
        Ok(Self { name: name.to_owned(), pid, child: Mutex::new(child), handle })
    }

    /// Its number.
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// How it ended, when it has.
    pub(crate) fn status(&self) -> Option<ExitStatus> {
        self.child().try_wait().ok().flatten()
    }

    /// Waits until it ends.
    pub(crate) async fn ended(&self) -> ExitStatus {
        loop {
            let ready = self.handle.readable().await;
            if let Some(status) = self.status() {
                return status;
            }
            match ready {
                Ok(mut ready) => ready.clear_ready(),
                // The runtime ends; so do its tasks.
                Err(_) => std::future::pending().await,
            }
        }
    }

    /// Sends a signal; one that has ended already is fine.
    pub(crate) fn signal(&self, signal: Signal) -> Result<(), Error> {
        match pidfd_send_signal(self.handle.get_ref(), signal) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
            Err(error) => Err(io::Error::from(error)).context(SignalSnafu { name: &self.name, pid: self.pid }),
        }
    }

    /// Ends it at once, and waits until it is gone.
    pub(crate) async fn kill(&self) -> Result<ExitStatus, Error> {
        self.signal(Signal::KILL)?;
        let stuck = StuckSnafu { name: &self.name, pid: self.pid, what: "ended although it was killed" };
        timeout(LIMIT, self.ended()).await.ok().context(stuck)
    }

    /// Asks it to end, and kills it when it does not within the limit.
    pub(crate) async fn terminate(&self, limit: Duration) -> Result<ExitStatus, Error> {
        self.signal(Signal::TERM)?;
        // A paused process would hear the request only after the limit.
        self.signal(Signal::CONT)?;
        match timeout(limit, self.ended()).await {
            Ok(status) => Ok(status),
            Err(_) => self.kill().await,
        }
    }

    fn child(&self) -> MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let mut child = self.child();
        if matches!(child.try_wait(), Ok(None)) {
            let _ = pidfd_send_signal(self.handle.get_ref(), Signal::KILL);
            // Killed, so this is short.
            let _ = child.wait();
        }
    }
}

/// Another's child (a server is its keeper's), held by a handle.
#[derive(Debug)]
pub(crate) struct Foreign {
    name: String,
    pid: u32,
    handle: AsyncFd<OwnedFd>,
}

impl Foreign {
    /// The process of that number, if it is still the child of that parent.
    pub(crate) fn child_of(parent: u32, pid: u32, name: &str) -> Option<Self> {
        let number = Pid::from_raw(i32::try_from(pid).ok()?)?;
        let handle = watched(pidfd_open(number, PidfdFlags::empty()).ok()?).ok()?;
        // Whoever has the number now has the handle; it is ours only if the parent is right after that.
        let stat = proc::stat(pid)?;
        (stat.parent == parent && stat.lives()).then(|| Self { name: name.to_owned(), pid, handle })
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: Signal) -> Result<(), Error> {
        match pidfd_send_signal(self.handle.get_ref(), signal) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
            Err(error) => Err(io::Error::from(error)).context(SignalSnafu { name: &self.name, pid: self.pid }),
        }
    }

    /// Waits until every thread of it stands still.
    pub(crate) async fn stands_still(&self) -> Result<(), Error> {
        stands_still(self.pid, &self.name).await
    }

    /// Waits until it is gone, or a zombie.
    pub(crate) async fn gone(&self) -> Result<(), Error> {
        let stuck = StuckSnafu { name: &self.name, pid: self.pid, what: "ended although it was killed" };
        timeout(LIMIT, self.handle.readable()).await.ok().context(stuck).map(drop)
    }
}

/// Waits until every thread of a process stands still.
pub(super) async fn stands_still(pid: u32, name: &str) -> Result<(), Error> {
    let stuck = StuckSnafu { name, pid, what: "come to a stand" };
    wait_until(|| proc::stands_still(pid)).await.context(stuck)
}

/// Looks until the condition holds; none: it did not within the limit.
pub(crate) async fn wait_until(mut look: impl FnMut() -> bool) -> Option<()> {
    let mut every = interval(LOOK_EVERY);
    let looking = async {
        while !look() {
            every.tick().await;
        }
    };
    timeout(LIMIT, looking).await.ok()
}

/// The log, opened twice for appending; a long one is put aside first.
fn open_log(log: &Path) -> io::Result<(File, File)> {
    if log.metadata().is_ok_and(|found| found.len() > LOG) {
        std::fs::rename(log, log.with_extension("1.log"))?;
    }
    let out = File::options().create(true).append(true).mode(0o600).open(log)?;
    Ok((out.try_clone()?, out))
}
