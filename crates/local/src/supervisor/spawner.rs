//! The thread that starts every child, and never ends before the process does.
//!
//! In: a command. Out: its child, which the kernel kills when this process dies, however it dies. Must not: end, or run
//! anything else.
//!
//! The kernel sends the death signal when the *thread* that started a child ends; the threads of an async runtime come and
//! go.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, SyncSender, channel, sync_channel};

use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal, setsid};

/// A command and where its child is wanted.
type Job = (Command, SyncSender<io::Result<Child>>);

/// Starts the command on the spawner thread, in a session of its own.
pub(super) fn spawn(mut command: Command) -> io::Result<Child> {
    alone_and_mortal(&mut command);
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
                // A caller that went away does not want its child: nobody will wait for it, so it ends at once.
                if let Err(unwanted) = reply.send(command.spawn())
                    && let Ok(mut child) = unwanted.0
                {
                    let _ = child.kill();
                    let _ = child.wait();
                }
            }
        };
        let thread = std::thread::Builder::new().name("spawner".into()).spawn(serve);
        thread.map(|_| sender).map_err(|error| error.kind())
    });
    started.as_ref().map_err(|kind| io::Error::from(*kind))
}

/// Has the kernel kill the child when its parent dies, and gives it a session: no Ctrl-C of a terminal reaches it, and
/// whatever it starts can be found by it.
#[expect(unsafe_code, reason = "both have to be asked for by the child itself, between fork and exec")]
fn alone_and_mortal(command: &mut Command) {
    let parent = getpid();
    let ask = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // The parent may have died before the request: then nobody would ever send the signal.
        if getppid() != Some(parent) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        setsid()?;
        Ok(())
    };
    // SAFETY: the closure makes three system calls and neither allocates, locks nor panics, as fork's child must not.
    unsafe {
        command.pre_exec(ask);
    }
}
