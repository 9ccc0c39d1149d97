//! A container: one program that is started again when it ends, as a kubelet does.
//!
//! In: how to start it. Out: its process while it runs, and when it is due again. Must not: start it before what it left
//! behind is gone, or while it is held.

use std::future::pending;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::Signal;
use tokio::time::{Instant, sleep_until};

use super::process::{Error, Process, stands_still};

/// How long a program is not started again after it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The first time; doubled with each end.
    pub first: Duration,
    /// At most.
    pub most: Duration,
    /// It begins anew after the program ran for so long.
    pub calm: Duration,
}

impl Default for Backoff {
    /// A kubelet's way, with a laptop's patience.
    fn default() -> Self {
        Self { first: Duration::from_millis(250), most: Duration::from_secs(5), calm: Duration::from_secs(10) }
    }
}

impl Backoff {
    /// How long after that many ends in a row.
    fn after(self, ends: u32) -> Duration {
        let doubled = self.first.saturating_mul(2_u32.saturating_pow(ends.saturating_sub(1).min(16)));
        doubled.min(self.most)
    }
}

/// See above.
pub(super) struct Container {
    pub(super) name: String,
    log: PathBuf,
    make: Box<dyn Fn() -> Command + Send + Sync>,
    backoff: Backoff,
    state: State,
    began: Instant,
    ends: u32,
    /// How often it was started.
    pub(super) starts: u32,
}

enum State {
    /// It runs.
    Running(Arc<Process>),
    /// It is started again at that moment.
    Due(Instant),
    /// It is not started until somebody says so.
    Held,
}

/// What became of a container.
#[derive(Debug)]
pub(super) enum Turn {
    /// It ended.
    Ended(ExitStatus),
    /// It is to be started.
    Due,
}

impl Container {
    pub(super) fn new(
        name: String,
        log: PathBuf,
        backoff: Backoff,
        make: impl Fn() -> Command + Send + Sync + 'static,
    ) -> Self {
        let (state, began) = (State::Held, Instant::now());
        Self { name, log, make: Box::new(make), backoff, state, began, ends: 0, starts: 0 }
    }

    /// What happens next to it. May be dropped at any time.
    pub(super) async fn turn(&self) -> Turn {
        match &self.state {
            State::Running(process) => Turn::Ended(process.ended().await),
            State::Due(at) => {
                sleep_until(*at).await;
                Turn::Due
            }
            State::Held => pending().await,
        }
    }

    /// Takes note of what happened: starts it when it is due. What failed to start is due again later.
    pub(super) fn take(&mut self, turn: &Turn) -> Result<(), Error> {
        match turn {
            Turn::Ended(status) => {
                tracing::info!(process = %self.name, %status, "ended; it is started again");
                self.set_due();
                Ok(())
            }
            Turn::Due => self.start(),
        }
    }

    /// Starts it now, unless it runs.
    pub(super) fn start(&mut self) -> Result<(), Error> {
        if self.process().is_some() {
            return Ok(());
        }
        self.began = Instant::now();
        match Process::spawn((self.make)(), &self.name, &self.log) {
            Ok(process) => {
                self.starts += 1;
                self.state = State::Running(Arc::new(process));
                Ok(())
            }
            Err(error) => {
                self.set_due();
                Err(error)
            }
        }
    }

    /// It is not started again until [`Container::start`].
    pub(super) fn hold(&mut self) {
        self.state = State::Held;
    }

    /// Its process, while it runs.
    pub(super) fn process(&self) -> Option<Arc<Process>> {
        match &self.state {
            State::Running(process) if process.status().is_none() => Some(Arc::clone(process)),
            _ => None,
        }
    }

    /// The number of its process, while it runs.
    pub(super) fn pid(&self) -> Option<u32> {
        self.process().map(|process| process.pid())
    }

    /// Kills its process and waits for the end; it will be started again.
    pub(super) async fn kill(&mut self) -> Result<(), Error> {
        let Some(process) = self.process() else { return Err(self.not_running()) };
        process.kill().await?;
        self.set_due();
        Ok(())
    }

    /// Stops its process where it is.
    pub(super) async fn pause(&self) -> Result<(), Error> {
        let Some(process) = self.process() else { return Err(self.not_running()) };
        process.signal(Signal::STOP)?;
        stands_still(process.pid(), &self.name).await
    }

    /// Lets it go on.
    pub(super) fn resume(&self) -> Result<(), Error> {
        self.process().ok_or_else(|| self.not_running())?.signal(Signal::CONT)
    }

    /// Ends its process, asked first when there is a limit for that, and holds it.
    pub(super) async fn end(&mut self, asked: Option<Duration>) -> Result<(), Error> {
        if let Some(process) = self.process() {
            match asked {
                Some(limit) => process.terminate(limit).await?,
                None => process.kill().await?,
            };
        }
        self.hold();
        Ok(())
    }

    /// Puts off what is due, for as long as after an end.
    pub(super) fn put_off(&mut self) {
        self.set_due();
    }

    fn set_due(&mut self) {
        let calm = self.began.elapsed() >= self.backoff.calm;
        self.ends = if calm { 1 } else { self.ends.saturating_add(1) };
        self.state = State::Due(Instant::now() + self.backoff.after(self.ends));
    }

    fn not_running(&self) -> Error {
        Error::NotRunning { name: self.name.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_up_to_its_bound() {
        let backoff = Backoff { first: Duration::from_millis(250), most: Duration::from_secs(2), calm: Duration::ZERO };
        let waits: Vec<u128> = [1, 2, 3, 4, 5, 40].map(|ends| backoff.after(ends).as_millis()).to_vec();
        assert_eq!(waits, [250, 500, 1000, 2000, 2000, 2000]);
    }
}
