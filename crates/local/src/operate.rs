//! An operator of the local world: `bloodraven operator --local DIR --local-operator N`.
//!
//! In: a state directory and a number. Out: an operator in that directory's world, the same program as in a cluster. Must
//! not: read the environment; who it is stands in the directory.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bloodraven_brain::lease::BadTimes;
use bloodraven_operator::ears::Ears;
use bloodraven_operator::settings::{Listeners, Settings, times};
use serde::{Deserialize, Serialize};
use snafu::{OptionExt as _, ResultExt as _, Snafu};
use tokio::net::TcpListener;

use crate::files;
use crate::network::{self, End, Network, Service};
use crate::store::{self, Store};
use crate::world::{LocalWorld, identity};

/// Who the operators are.
pub const FILE: &str = "operators.json";

/// What went wrong at an operator's start.
#[derive(Debug, Snafu)]
pub enum Error {
    /// The directory.
    #[snafu(transparent)]
    Store {
        /// What is wrong with it.
        source: store::Error,
    },

    /// Its addresses.
    #[snafu(transparent)]
    Network {
        /// What is wrong with them.
        source: network::Error,
    },

    /// Nobody wrote down who the operators are.
    #[snafu(display("{} does not tell who operator {number} is; start the playground on this directory", path.display()))]
    Unknown {
        /// The file.
        path: PathBuf,
        /// The operator.
        number: u8,
    },

    /// The times of the election do not go together.
    #[snafu(display("{}: the election's times do not go together: {source}", path.display()))]
    Election {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: BadTimes,
    },

    /// Its address is taken.
    #[snafu(display("cannot listen on {address}: {source}; end the program that listens there"))]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
}

/// Who the operators of a directory are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Operators {
    /// Lease duration, renew deadline, retry period.
    pub(crate) election_ms: [u64; 3],
    /// A name for each that no other operator anywhere has.
    pub(crate) uids: Vec<String>,
}

impl Operators {
    /// Reads who they are; none: nobody wrote it down.
    pub(crate) fn read(store: &Store) -> Result<Option<Self>, store::Error> {
        let Some(value) = store.json(FILE)? else { return Ok(None) };
        let path = store.dir().join(FILE);
        serde_json::from_value(value).map(Some).map_err(|error| store::Error::Corrupt { path, why: error.to_string() })
    }

    /// So many of them: those who were there keep their names.
    pub(crate) fn ensure(store: &Store, count: u8, election: [Duration; 3]) -> Result<Self, store::Error> {
        let before = Self::read(store)?;
        let mut uids = before.as_ref().map(|it| it.uids.clone()).unwrap_or_default();
        while uids.len() < usize::from(count) {
            uids.push(store::secrets::uuid()?);
        }
        let election_ms = election.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        let after = Self { election_ms, uids };
        if before.as_ref() != Some(&after) {
            files::replace(&store.dir().join(FILE), &serde_json::to_vec_pretty(&after).unwrap_or_default())?;
        }
        Ok(after)
    }
}

/// Everything that an operator of a directory needs to run: its world, its settings, its listener.
pub async fn prepare(
    dir: &Path,
    number: u8,
    ears: Arc<dyn Ears>,
) -> Result<(Arc<LocalWorld>, Settings, Listeners), Error> {
    let store = Store::open(dir)?;
    let network = Network::read(store.dir())?;
    let path = store.dir().join(FILE);
    let operators = Operators::read(&store)?;
    let known = operators.and_then(|it| Some((it.election_ms, it.uids.get(usize::from(number))?.clone())));
    let (election, uid) = known.context(UnknownSnafu { path: &path, number })?;
    let address =
        network.address(&End::Operator(number), Service::Aux).context(UnknownSnafu { path: &path, number })?;
    let settings = Settings {
        times: times(election.map(Duration::from_millis)).context(ElectionSnafu { path })?,
        address: network.advertised_address(number).map(|address| address.to_string()),
        // People look at it all the time, and a file costs nothing.
        progress: Duration::from_secs(1),
        ears,
        ..Settings::new(&identity(number, &uid))
    };
    let aux = TcpListener::bind(address).await.context(ListenSnafu { address })?;
    let world = Arc::new(LocalWorld::new(store, network, number)?);
    Ok((world, settings, Listeners { aux, metrics: None, probes: None }))
}
