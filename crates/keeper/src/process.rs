//! The child: started so that it dies with the keeper, killed, reaped.
//!
//! In: a command line, and the files that the child shall hold. Out: a process, and later how it ended. Must not: signal a number that may belong to another
//! process: a child keeps its number until it is reaped, and only [`reap`] does that.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpid, getppid, kill_process, set_parent_process_death_signal, wait,
};

use crate::state::End;

/// How many ended processes are reaped in one turn: as pid 1 the keeper inherits every orphan.
const REAPED: usize = 64;

/// Starts the command with further arguments, in a process group of its own: what a terminal sends reaches the keeper
/// alone. The files stay open in the child.
pub(crate) fn spawn<'a>(
    words: &[OsString],
    more: impl IntoIterator<Item = &'a OsStr>,
    inherited: [&File; 2],
) -> io::Result<u32> {
    let (program, arguments) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(program);
    command.args(arguments).args(more).stdin(Stdio::null()).process_group(0);
    // With it mysqld ends with code 16 when it wants to be started again.
    command.env("MYSQLD_PARENT_PID", std::process::id().to_string());
    prepare(&mut command, [inherited[0].try_clone()?, inherited[1].try_clone()?]);
    // Every child is reaped by `reap`.
    Ok(command.spawn()?.id())
}

/// Has the kernel kill the child when the thread that starts it, the keeper's main thread, dies. A server that changes
/// its user after its start would lose that: the keeper runs as the server's user. And keeps the files open in the
/// child: in the keeper itself they are closed by an exec, so that nothing else inherits them.
#[expect(unsafe_code, reason = "both have to be done by the child itself, between fork and exec")]
fn prepare(command: &mut Command, inherited: [File; 2]) {
    let parent = getpid();
    let ask = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        for file in &inherited {
            fcntl_setfd(file, FdFlags::empty())?;
        }
        // The parent may have died before the request: then nobody would ever send the signal.
        if getppid() == Some(parent) { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
    };
    // SAFETY: the closure makes system calls only, and neither allocates, locks nor panics, as fork's child must not.
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
