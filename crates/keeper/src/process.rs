//! The child: started so that it dies with the keeper, killed, reaped.
//!
//! In: a command line. Out: a process, and later how it ended. Must not: signal a number that may belong to another
//! process: a child keeps its number until it is reaped, and only [`reap`] does that.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpid, getppid, kill_process, set_parent_process_death_signal, wait,
};

use crate::state::End;

/// How many ended processes are reaped in one turn: as pid 1 the keeper inherits every orphan.
const REAPED: usize = 64;

/// Starts the command with further arguments, in a process group of its own: what a terminal sends reaches the keeper
/// alone.
pub(crate) fn spawn<'a>(words: &[OsString], more: impl IntoIterator<Item = &'a OsStr>) -> io::Result<u32> {
    let (program, arguments) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(program);
    command.args(arguments).args(more).stdin(Stdio::null()).process_group(0);
    // With it mysqld ends with code 16 when it wants to be started again.
    command.env("MYSQLD_PARENT_PID", std::process::id().to_string());
    die_with_parent(&mut command);
    // Every child is reaped by `reap`.
    Ok(command.spawn()?.id())
}

/// Has the kernel kill the child when the thread that starts it, the keeper's main thread, dies. A server that changes
/// its user after its start would lose that: the keeper runs as the server's user.
#[expect(unsafe_code, reason = "the request has to be made by the child itself, between fork and exec")]
fn die_with_parent(command: &mut Command) {
    let parent = getpid();
    let ask = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // The parent may have died before the request: then nobody would ever send the signal.
        if getppid() == Some(parent) { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
    };
    // SAFETY: the closure makes two system calls and neither allocates, locks nor panics, as fork's child must not.
    unsafe {
        command.pre_exec(ask);
    }
}

/// Sends a signal to a child that was not reaped yet. One that has ended already takes no notice.
pub(crate) fn signal(pid: u32, signal: Signal) -> io::Result<()> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
    Ok(kill_process(pid, signal)?)
}

/// Takes the ended children, at most [`REAPED`], and whether there may be more.
pub(crate) fn reap() -> (Vec<(u32, End)>, bool) {
    let mut ended = Vec::new();
    for _ in 0..REAPED {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => {
                let pid = u32::try_from(pid.as_raw_nonzero().get()).unwrap_or_default();
                ended.extend(end(status).map(|end| (pid, end)));
            }
            // Nobody has ended, or there is no child at all.
            Ok(None) | Err(_) => return (ended, false),
        }
    }
    (ended, true)
}

fn end(status: WaitStatus) -> Option<End> {
    let by_itself = status.exit_status().map(|code| End { code, by_signal: false });
    by_itself.or_else(|| status.terminating_signal().map(|signal| End { code: 128 + signal, by_signal: true }))
}
