//! `keeper`: the parent of mysqld.
//!
//! In: a command line (folders, and mysqld's own command line after `--`), signals, requests on a unix socket. Out: a
//! mysqld that boots fenced and that is writable only under a permit; its exit code. Must not: open mysqld, speak SQL or
//! use a network; let mysqld outlive it, or a permit outlive its deadline.
//!
//! Reading order: [`state`] decides, [`server`] does; [`first_boot`] and [`accounts`] are what a start needs;
//! [`clients`], [`lock`], [`process`], [`signals`], [`watch`], [`log`] and [`clock`] are the hands.

mod accounts;
mod args;
mod clients;
mod clock;
mod error;
mod first_boot;
mod lock;
mod log;
mod process;
mod server;
mod signals;
mod state;
mod watch;

use std::io::Write as _;
use std::process::ExitCode;

use self::args::Args;
use self::error::Error;
use self::log::{Entry, Level, Log};

fn main() -> ExitCode {
    // Where, and not what it said: words that were made at that moment may hold a password.
    std::panic::set_hook(Box::new(|panic| {
        if let Some(place) = panic.location() {
            // Nobody may be there to read it.
            let _ = writeln!(std::io::stderr(), "keeper: panicked at {place}");
        }
    }));
    let Ok(mut log) = Log::start() else { return ExitCode::FAILURE };
    let ended = Args::parse(std::env::args_os().skip(1)).and_then(|args| server::keep(&args, &mut log));
    match ended {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            log.say(&complaint(&error));
            ExitCode::FAILURE
        }
    }
}

fn complaint(error: &Error) -> Entry {
    if error.is_full_disk() {
        let text = format!("{error}: the volume is full; make it larger, the next start begins anew");
        return Entry::new(Level::Error, "DiskFull", text);
    }
    Entry::new(Level::Error, "Failed", error.to_string())
}
