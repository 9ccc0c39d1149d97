//! Processes: programs that end when their owner does, whatever ends the owner.
//!
//! In: a command, a name and a log file. Out: a running process that can be paused, ended and asked for its last words.
//! Must not: outlive this process (not even when it is killed), leave a zombie, or find a process by its name.
//!
//! The kernel ends a child for us (`PR_SET_PDEATHSIG`) when the *thread* that started it ends, so every child is started
//! from one thread that never does.

mod spawner;

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use snafu::{ResultExt as _, Snafu, ensure};

use crate::wait;

/// How much of a log is read for its last lines.
const TAIL_BYTES: u64 = 64 << 10;

/// How long a killed process may take to be gone: it has no say in it, but a core dump or a slow disk has.
const KILL_LIMIT: Duration = Duration::from_secs(30);

/// How long a paused process may go on: its threads stop when they next leave the kernel.
const PAUSE_LIMIT: Duration = Duration::from_secs(10);

/// What went wrong with a process.
#[derive(Debug, Snafu)]
pub enum Error {
    /// The log file cannot be made.
    #[snafu(display("{name}: cannot write its log {}: {source}", log.display()))]
    Log {
        /// The name of the process.
        name: String,
        /// The log file.
        log: PathBuf,
        /// What the system said.
        source: io::Error,
    },

    /// The program cannot be started.
    #[snafu(display("{name}: cannot start {program}: {source}"))]
    Start {
        /// The name of the process.
        name: String,
        /// The program.
        program: String,
        /// What the system said.
        source: io::Error,
    },

    /// A signal cannot be sent, or the end not be waited for.
    #[snafu(display("{name}: cannot {what} process {pid}: {source}"))]
    Signal {
        /// The name of the process.
        name: String,
        /// What was to be done to it.
        what: &'static str,
        /// Its number.
        pid: u32,
        /// What the system said.
        source: io::Error,
    },

    /// The process has ended already.
    #[snafu(display("{name}: cannot {what} process {pid}: it has ended ({status})"))]
    Ended {
        /// The name of the process.
        name: String,
        /// What was to be done to it.
        what: &'static str,
        /// The number it had.
        pid: u32,
        /// How it ended.
        status: ExitStatus,
    },

    /// The process did not go away.
    #[snafu(display("{name}: process {pid} is still there {} s after it was killed", KILL_LIMIT.as_secs()))]
    Stuck {
        /// The name of the process.
        name: String,
        /// Its number.
        pid: u32,
    },

    /// The process goes on although it was told to stop.
    #[snafu(display("{name}: process {pid} still moves {} s after it was paused", PAUSE_LIMIT.as_secs()))]
    Restless {
        /// The name of the process.
        name: String,
        /// Its number.
        pid: u32,
    },

    /// A program that was run to its end took too long, and was ended.
    #[snafu(display("{name}: no end after {} s; last words: {tail}", limit.as_secs()))]
    TooLong {
        /// The name of the process.
        name: String,
        /// How long it was given.
        limit: Duration,
        /// The last lines of its log.
        tail: String,
    },

    /// A program that was run to its end failed.
    #[snafu(display("{name}: {status}; last words: {tail}"))]
    Failed {
        /// The name of the process.
        name: String,
        /// How it ended.
        status: ExitStatus,
        /// The last lines of its log.
        tail: String,
    },
}

/// A running program that is ours. Dropping it kills it and waits for its end.
#[derive(Debug)]
pub struct Process {
    name: String,
    log: PathBuf,
    pid: u32,
    child: Mutex<Child>,
}

impl Process {
    /// Starts a program in a process group of its own, without standard input, both outputs appended to the file `log`.
    pub fn spawn(mut command: Command, name: impl Into<String>, log: impl Into<PathBuf>) -> Result<Self, Error> {
        let (name, log) = (name.into(), log.into());
        let file = File::options().create(true).append(true).open(&log);
        let file = file.and_then(|out| Ok((out.try_clone()?, out)));
        let (out, err) = file.with_context(|_| LogSnafu { name: name.clone(), log: log.clone() })?;
        let program = command.get_program().to_string_lossy().into_owned();
        command.stdin(Stdio::null()).stdout(out).stderr(err);
        let child = spawner::spawn(command).with_context(|_| StartSnafu { name: name.clone(), program })?;
        Ok(Self { name, log, pid: child.id(), child: Mutex::new(child) })
    }

    /// The name it was given.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The file its outputs go to.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// Whether it has not ended. A paused one has not.
    pub fn is_running(&self) -> bool {
        self.status().is_none()
    }

    /// How it ended, when it has.
    pub fn status(&self) -> Option<ExitStatus> {
        self.child().try_wait().ok().flatten()
    }

    /// Ends it at once (`SIGKILL` to its group) and waits until it is gone. One that has ended already is fine.
    pub fn kill(&self) -> Result<ExitStatus, Error> {
        if let Some(status) = self.status() {
            return Ok(status);
        }
        self.signal("kill", Signal::KILL, kill_process_group)?;
        self.wait(KILL_LIMIT)?.ok_or_else(|| StuckSnafu { name: self.name.clone(), pid: self.pid }.build())
    }

    /// Asks it to end (`SIGTERM`) and waits; when `limit` passes first, kills it.
    pub fn terminate(&self, limit: Duration) -> Result<ExitStatus, Error> {
        if let Some(status) = self.status() {
            return Ok(status);
        }
        self.signal("terminate", Signal::TERM, kill_process)?;
        // A paused process would hear the request only after the limit.
        self.signal("terminate", Signal::CONT, kill_process)?;
        match self.wait(limit)? {
            Some(status) => Ok(status),
            None => self.kill(),
        }
    }

    /// Stops it where it is (`SIGSTOP`): its connections stay open and nothing answers. Returns when every thread of it
    /// stands still; one that is busy in the kernel takes its time.
    pub fn pause(&self) -> Result<(), Error> {
        self.signal_live("pause", Signal::STOP)?;
        let stopped = wait::until(PAUSE_LIMIT, || (self.stands_still() || !self.is_running()).then_some(()));
        ensure!(stopped.is_some(), RestlessSnafu { name: self.name.clone(), pid: self.pid });
        Ok(())
    }

    /// Lets a paused one go on (`SIGCONT`).
    pub fn resume(&self) -> Result<(), Error> {
        self.signal_live("resume", Signal::CONT)
    }

    /// Waits until it ends, at most for `limit`.
    pub fn wait(&self, limit: Duration) -> Result<Option<ExitStatus>, Error> {
        wait::until(limit, || self.child().try_wait().transpose()).transpose().with_context(|_| SignalSnafu {
            name: self.name.clone(),
            what: "wait for",
            pid: self.pid,
        })
    }

    /// The last `lines` lines of its log.
    pub fn log_tail(&self, lines: usize) -> String {
        tail(&self.log, lines)
    }

    /// Whether every thread is stopped (`T`) or dead.
    fn stands_still(&self) -> bool {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.pid)).into_iter().flatten().flatten();
        let states = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("stat")).ok());
        // The name of a thread stands in brackets and may contain anything; its state follows the last one.
        let letter = |stat: String| stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
        let mut letters = states.filter_map(letter).peekable();
        letters.peek().is_some() && letters.all(|letter| matches!(letter, 'T' | 'Z' | 'X'))
    }

    fn signal_live(&self, what: &'static str, signal: Signal) -> Result<(), Error> {
        if let Some(status) = self.status() {
            return EndedSnafu { name: self.name.clone(), what, pid: self.pid, status }.fail();
        }
        self.signal(what, signal, kill_process)
    }

    /// Sends a signal while the lock keeps the number ours: only a waited-for process gives its number back.
    fn signal(
        &self,
        what: &'static str,
        signal: Signal,
        send: fn(Pid, Signal) -> rustix::io::Result<()>,
    ) -> Result<(), Error> {
        let mut child = self.child();
        let outcome = match child.try_wait() {
            Ok(Some(_)) => Ok(()),
            Ok(None) => send(Pid::from_child(&child), signal).map_err(io::Error::from),
            Err(error) => Err(error),
        };
        outcome.with_context(|_| SignalSnafu { name: self.name.clone(), what, pid: self.pid })
    }

    fn child(&self) -> MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Err(error) = self.kill() {
            crate::progress::say(&error.to_string());
        }
    }
}

/// Runs a program to its end, at most for `limit`, with its outputs in the file `log`. Anything but success is an error
/// with the last lines of that file.
pub fn run(command: Command, name: &str, log: &Path, limit: Duration) -> Result<(), Error> {
    let process = Process::spawn(command, name, log)?;
    let Some(status) = process.wait(limit)? else {
        process.kill()?;
        return TooLongSnafu { name, limit, tail: last_words(log) }.fail();
    };
    ensure!(status.success(), FailedSnafu { name, status, tail: last_words(log) });
    Ok(())
}

/// Runs a short program to its end, at most for `limit`, and gives what it wrote; one that takes longer is ended, which is
/// an error of the kind `TimedOut`. `input` is what it reads.
pub fn output(command: &mut Command, input: &str, limit: Duration) -> io::Result<Output> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.process_group(0).spawn()?;
    let (feed, out, err) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    std::thread::scope(|scope| {
        // Both outputs are read while it runs: a full pipe would hold it up.
        let out = scope.spawn(|| collect(out));
        let err = scope.spawn(|| collect(err));
        if let Some(mut feed) = feed {
            // One that does not want its input says why in its output.
            let _ = feed.write_all(input.as_bytes());
        }
        let ended = wait::until(limit, || child.try_wait().transpose());
        let status = ended.unwrap_or_else(|| {
            // With what it started: a process that goes on would hold the pipes open.
            let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
            child.wait().and_then(|_| Err(late(limit)))
        });
        let read = |thread: ScopedJoinHandle<'_, io::Result<Vec<u8>>>| {
            thread.join().unwrap_or_else(|_| Err(io::Error::other("reading the output panicked")))
        };
        let (stdout, stderr) = (read(out), read(err));
        Ok(Output { status: status?, stdout: stdout?, stderr: stderr? })
    })
}

fn late(limit: Duration) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, format!("no end after {} s", limit.as_secs()))
}

fn collect(from: Option<impl io::Read>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.map_or(Ok(0), |mut from| from.read_to_end(&mut bytes))?;
    Ok(bytes)
}

/// The last `lines` lines of a file; nothing when it cannot be read. Reads at most the last 64 KiB.
pub fn tail(file: &Path, lines: usize) -> String {
    let read = || -> io::Result<Vec<u8>> {
        let mut file = File::open(file)?;
        let length = file.seek(SeekFrom::End(0))?;
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
        let mut text = Vec::new();
        file.take(TAIL_BYTES).read_to_end(&mut text)?;
        Ok(text)
    };
    let text = read().unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

/// The end of a log in one line.
fn last_words(log: &Path) -> String {
    let words = tail(log, 3).lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" | ");
    if words.is_empty() { "none".to_owned() } else { words }
}

#[cfg(test)]
mod tests;
