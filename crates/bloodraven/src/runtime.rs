//! The runtime of the subcommands that wait for something.
//!
//! In: a future. Out: what it came to. Must not: leave a task running behind it.

use std::future::Future;
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use tokio::signal::unix::{SignalKind, signal};

/// What blocks in the background (a name that is looked up, a file) gets so long to end.
const FAREWELL: Duration = Duration::from_secs(2);

/// Threads that may wait in the background at a time: when the resolver hangs, there is a name to look up for every site.
const MOST_BLOCKED: usize = 64;

pub(crate) fn run<T>(future: impl Future<Output = T>) -> anyhow::Result<T> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.enable_all().max_blocking_threads(MOST_BLOCKED).build().context("cannot start")?;
    let outcome = runtime.block_on(future);
    runtime.shutdown_timeout(FAREWELL);
    Ok(outcome)
}

/// Ready when somebody wants this process to end. Listening begins at once, so that no signal is missed.
pub(crate) fn told_to_end() -> anyhow::Result<impl Future<Output = ()> + Send> {
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen to signals")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen to signals")?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// The exit code of a process that runs until it is told to end: 1 when it could not start or broke off.
pub(crate) fn exit(ended: anyhow::Result<()>) -> ExitCode {
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // If standard error is closed there is nobody left to tell.
            _ = writeln!(io::stderr(), "error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
