//! The thread that starts every child, and never ends before the process does.
//!
//! In: a command. Out: its child, which the kernel kills when this process dies. Must not: end, or run anything else.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, SyncSender, channel, sync_channel};

use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};

/// A command and where its child is wanted.
type Job = (Command, SyncSender<io::Result<Child>>);

/// Starts the command on the spawner thread.
pub(super) fn spawn(mut command: Command) -> io::Result<Child> {
    // A group of its own: a Ctrl-C at the terminal ends the test process, and only thereby its children.
    command.process_group(0);
    die_with_parent(&mut command);
    let (reply, answer) = sync_channel(1);
    let gone = || io::Error::other("the thread that starts processes has ended");
    spawner()?.send((command, reply)).map_err(|_| gone())?;
    answer.recv().map_err(|_| gone())?
}

/// The way to the one spawner thread, which is started by the first caller.
fn spawner() -> io::Result<&'static Sender<Job>> {
    static SPAWNER: OnceLock<Result<Sender<Job>, io::ErrorKind>> = OnceLock::new();
    let started = SPAWNER.get_or_init(|| {
        let (sender, jobs) = channel::<Job>();
        let serve = move || {
            // The sender above is never dropped, so this loop lasts as long as the process.
            for (mut command, reply) in jobs {
                // A caller that went away does not want its child: the answer's drop leaves it to the kernel.
                let _ = reply.send(command.spawn());
            }
        };
        let thread = std::thread::Builder::new().name("spawner".into()).spawn(serve);
        thread.map(|_| sender).map_err(|error| error.kind())
    });
    started.as_ref().map_err(|kind| io::Error::from(*kind))
}

/// Has the kernel kill the child when the thread that starts it dies.
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
