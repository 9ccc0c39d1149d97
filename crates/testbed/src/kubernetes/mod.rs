//! Kubernetes: a real API server for tests, from nothing but Debian's etcd and the Go modules of Kubernetes.
//!
//! In: what is wanted. Out: programs in the cache ([`provision`], [`provision_all`]) and running servers
//! ([`ApiServer`]). Must not: install anything, write outside the cache folder, or fetch what is there already.
//!
//! ```no_run
//! use bloodraven_testbed::kubernetes::ApiServer;
//!
//! let server = ApiServer::start()?;
//! let answer = server.kubectl().args(["get", "namespaces"]).output();
//! println!("{} {answer:?}", server.url());
//! # Ok::<(), bloodraven_testbed::kubernetes::ApiServerError>(())
//! ```
//!
//! Reading order: `api_server` is what tests use, `client` its Rust client (with the feature of that name), `requests`
//! what it was asked, `kinds` waits until kinds are served; `launch` and `files` are how it is set up, `certificates` and `kubeconfig` what it shows and gives;
//! `etcd`, `programs` and `toolchain` are where its programs come from.

mod api_server;
#[cfg(feature = "client")]
mod client;
mod kinds;
mod launch;
mod requests;

pub(crate) mod certificates;
mod files;
pub(crate) mod kubeconfig;

mod etcd;
mod programs;
mod toolchain;

use std::path::PathBuf;

use snafu::Snafu;

pub use self::api_server::{ApiServer, Error as ApiServerError, Options};
#[cfg(feature = "client")]
pub use self::client::Error as ClientError;
pub(crate) use self::etcd::Ports as EtcdPorts;
pub use self::etcd::{Error as EtcdError, Etcd};
pub use self::kinds::established;
pub use self::programs::{Error as ProgramError, Program, VERSION};
pub(crate) use self::programs::{GoProgram, digest};
pub use self::requests::requests;
pub use self::toolchain::{Error as ToolchainError, Release};

/// The kinds of cache entries that this module makes.
pub const KINDS: [&str; 2] = [etcd::KIND, programs::KIND];

/// What could not be provided.
#[derive(Debug, Snafu)]
pub enum Error {
    /// Etcd.
    #[snafu(transparent)]
    Etcd {
        /// Why.
        source: EtcdError,
    },

    /// A program of Kubernetes.
    #[snafu(transparent)]
    Program {
        /// Why.
        source: ProgramError,
    },
}

/// What an API server is made of.
#[derive(Clone, Debug)]
pub struct Parts {
    /// Its store.
    pub etcd: Etcd,
    /// `kube-apiserver`.
    pub api_server: PathBuf,
    /// `kubectl`.
    pub kubectl: PathBuf,
}

/// Provides what an API server needs: etcd, `kube-apiserver` and `kubectl`. Minutes the first time, with lines on
/// standard error about what is going on; silent and quick afterwards.
pub fn provision() -> Result<Parts, Error> {
    Ok(Parts {
        etcd: Etcd::provision()?,
        api_server: Program::ApiServer.provision()?,
        kubectl: Program::Kubectl.provision()?,
    })
}

/// Provides what a whole cluster needs: [`provision`], and every other program of Kubernetes after it, so that tests
/// that need an API server alone do not wait for the rest.
pub fn provision_all() -> Result<Vec<PathBuf>, Error> {
    provision()?;
    Program::ALL.into_iter().map(|program| Ok(program.provision()?)).collect()
}
