//! The one binary of Bloodraven. Each subcommand is a file of its own; this one only says how it ended.

mod cli;
mod crds;
mod gtid;
mod init;
mod install;
mod local;
mod operator;
mod playground;
mod runtime;
mod sidecar;
mod simulate;

use std::io::{self, Write};
use std::process::ExitCode;

/// One that gives back what only the start needed: lists of everything there is. How it is set up stands in `.cargo/config.toml`.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let outcome = cli::run(std::env::args_os(), &mut io::stdin(), &mut io::stdout());
    outcome.unwrap_or_else(|error| {
        // Whoever read our output and has seen enough (`| head`) is content, not in error.
        if error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe) {
            return ExitCode::SUCCESS;
        }
        // If standard error is closed there is nobody left to tell.
        _ = writeln!(io::stderr(), "error: {error:#}");
        ExitCode::from(2)
    })
}
