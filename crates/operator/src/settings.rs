//! What an operator is told at its start: who it is, how it elects, where it listens.
//!
//! In: nothing; these are words. Must not: read the environment; whoever assembles does.

use crate::ears::{Deaf, Ears};
use bloodraven_brain::lease::{BadTimes, Times};
use bloodraven_brain::time::Millis;
use snafu::Snafu;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

/// See above.
#[derive(Clone)]
pub struct Settings {
    /// Who this is, the same after a restart in place: `<pod name>_<pod uid>`. A lease that names it is taken back at once.
    pub identity: String,
    /// The election's times.
    pub times: Times,
    /// Take part in the election; else lead from the start and for ever. For a world with one operator and no other.
    pub elect: bool,
    /// `host:port` at which sidecars reach this operator's aux server, if it is known.
    pub address: Option<String>,
    /// Origins of pages that may follow over `WebSockets`, beside the server's own.
    pub origins: Vec<String>,
    /// What in a status only tells that time goes by (when a site was last seen, how far it is) is written so often, at
    /// most, and less often with more than a hundred groups; everything else at once. Each write is one that the API server
    /// keeps and tells everybody.
    pub progress: Duration,
    /// Who listens.
    pub ears: Arc<dyn Ears>,
}

/// Where an operator listens. One listener may serve everything: `aux` does.
#[derive(Debug)]
pub struct Listeners {
    /// `/healthz`, `/readyz`, `/status`, `/active-site`, `/ws/status`, `/why`, `/what-if`, `/metrics`.
    pub aux: TcpListener,
    /// `/metrics`.
    pub metrics: Option<TcpListener>,
    /// `/healthz`, `/readyz`.
    pub probes: Option<TcpListener>,
}

/// Why an operator could not start.
#[derive(Debug, Snafu)]
#[snafu(visibility(pub(crate)))]
pub enum Error {
    /// No HTTP client.
    #[snafu(display("the HTTP client towards sidecars cannot be made: {source}"))]
    Client {
        /// Why.
        source: reqwest::Error,
    },
    /// A loop that must not end has ended.
    #[snafu(display("the {what} loop ended; nothing works without it"))]
    Ended {
        /// Which.
        what: &'static str,
    },
}

/// The times of an election (how long others wait, how long a leader tries to renew, how often), checked against each other.
pub fn times(election: [Duration; 3]) -> Result<Times, BadTimes> {
    let [lease, renew, retry] = election.map(|time| Millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX)));
    Times::new(lease, renew, retry)
}

/// The default of [`Settings::progress`].
const PROGRESS: Duration = Duration::from_secs(10);

impl Settings {
    /// That operator, with the defaults of every other setting.
    pub fn new(identity: &str) -> Self {
        Self {
            identity: identity.to_owned(),
            times: Times::default(),
            elect: true,
            address: None,
            origins: Vec::new(),
            progress: PROGRESS,
            ears: Arc::new(Deaf),
        }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { identity, times, elect, address, origins, progress, ears: _ } = self;
        f.debug_struct("Settings")
            .field("identity", identity)
            .field("times", times)
            .field("elect", elect)
            .field("address", address)
            .field("origins", origins)
            .field("progress", progress)
            .finish_non_exhaustive()
    }
}
