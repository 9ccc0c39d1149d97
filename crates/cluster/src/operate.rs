//! An operator in a cluster: its client, its world, its settings, its listeners.
//!
//! In: what flags and environment say. Out: everything that an operator needs to run, or what is wrong and what to write.
//! Must not: read the environment; whoever assembles does.

use crate::{ClusterWorld, House, Places};
use bloodraven_brain::lease::BadTimes;
use bloodraven_operator::ears::Ears;
use bloodraven_operator::settings::{Listeners, Settings, times};
use kube::{Client, Config};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use snafu::{OptionExt as _, ResultExt as _, Snafu};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

/// A watch says something at least every 30 s, if only that it ends; a connection that is silent for longer is dead.
const SILENCE: Duration = Duration::from_secs(45);

/// An API server that is there takes a connection within this.
const CONNECTING: Duration = Duration::from_secs(5);

/// What an operator in a cluster is told at its start.
#[derive(Clone, Debug)]
pub struct Options {
    /// `POD_NAME`.
    pub pod: Option<String>,
    /// `POD_NAMESPACE`.
    pub namespace: Option<String>,
    /// `POD_UID`.
    pub uid: Option<String>,
    /// `BLOODRAVEN_OPERATOR_IMAGE`: what sidecars run unless a group says otherwise.
    pub image: Option<String>,
    /// Take part in the election.
    pub elect: bool,
    /// How long others wait for a leader that is silent, how long it tries to renew, how often.
    pub election: [Duration; 3],
    /// Where `/metrics`, probes, and everything else are served.
    pub binds: [String; 3],
    /// The namespaces whose groups are its business; none: all.
    pub watched: Vec<String>,
    /// Origins of pages that may follow over `WebSockets`.
    pub origins: Vec<String>,
    /// Where sidecars ask, `host:port`.
    pub aux_address: Option<String>,
    /// The cluster's domain.
    pub domain: String,
}

/// Why an operator cannot start.
#[derive(Debug, Snafu)]
pub enum Error {
    /// Nobody said who this is.
    #[snafu(display("{name} is not set; let the pod's own field set it, as deploy/ does"))]
    Unsaid {
        /// The variable.
        name: &'static str,
    },
    /// There is no cluster to be found.
    #[snafu(display("no cluster is configured: {source}; run in a pod with a service account, or set KUBECONFIG"))]
    NoCluster {
        /// Why.
        #[snafu(source(from(kube::config::InferConfigError, Box::new)))]
        source: Box<kube::config::InferConfigError>,
    },
    /// No client.
    #[snafu(display("the client of the API server cannot be made: {source}"))]
    NoClient {
        /// Why.
        #[snafu(source(from(kube::Error, Box::new)))]
        source: Box<kube::Error>,
    },
    /// The election's times.
    #[snafu(display("--lease-duration, --renew-deadline and --retry-period do not go together: {source}"))]
    Election {
        /// Why not.
        source: BadTimes,
    },
    /// An address that is none.
    #[snafu(display("--{flag}: {address:?} is no address; write e.g. :8080 or 10.0.0.7:8080"))]
    Address {
        /// The flag.
        flag: &'static str,
        /// What was written.
        address: String,
    },
    /// An address that is taken.
    #[snafu(display("--{flag}: cannot listen on {address}: {source}; choose another port"))]
    Listen {
        /// The flag.
        flag: &'static str,
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
}

/// Everything that an operator in a cluster needs to run.
pub async fn prepare(options: Options, ears: Arc<dyn Ears>) -> Result<(Arc<ClusterWorld>, Settings, Listeners), Error> {
    take_all_descriptors();
    let mut config = Config::infer().await.context(NoClusterSnafu)?;
    config.connect_timeout = Some(CONNECTING);
    config.read_timeout = Some(SILENCE);
    let client = Client::try_from(config).context(NoClientSnafu)?;
    let pod = options.pod.context(UnsaidSnafu { name: "POD_NAME" })?;
    let namespace = options.namespace.context(UnsaidSnafu { name: "POD_NAMESPACE" })?;
    let uid = options.uid.context(UnsaidSnafu { name: "POD_UID" })?;
    let [metrics, probes, aux] = options.binds;
    let metrics = listen("metrics-bind", &metrics).await?;
    let probes = listen("probe-bind", &probes).await?;
    let aux = listen("aux-bind", &aux).await?;
    let aux_port = aux.local_addr().map(|address| address.port()).unwrap_or_default();
    let own = || format!("bloodraven.{namespace}.svc.{}:{aux_port}", options.domain);
    let operator_address = options.aux_address.unwrap_or_else(own);
    let settings = Settings {
        times: times(options.election).context(ElectionSnafu)?,
        elect: options.elect,
        address: Some(operator_address.clone()),
        origins: options.origins,
        ears,
        ..Settings::new(&format!("{pod}_{uid}"))
    };
    let house = House { own_image: options.image, operator_address, cluster_domain: options.domain };
    let places = Places { namespace, pod, watched: options.watched, house, aux_port };
    let world = Arc::new(ClusterWorld::new(&client, places));
    Ok((world, settings, Listeners { aux, metrics: Some(metrics), probes: Some(probes) }))
}

/// A thousand groups are some ten thousand connections; a process may ask for as many as its hard limit says.
fn take_all_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }) {
        tracing::warn!(%error, "the limit of open files cannot be raised");
    }
}

async fn listen(flag: &'static str, address: &str) -> Result<TcpListener, Error> {
    let address = parse(address).context(AddressSnafu { flag, address })?;
    TcpListener::bind(address).await.context(ListenSnafu { flag, address })
}

/// `:8080` is that port of every address.
fn parse(address: &str) -> Option<SocketAddr> {
    let whole = if address.starts_with(':') { format!("0.0.0.0{address}") } else { address.to_owned() };
    whole.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_port_is_that_of_every_address() {
        assert_eq!(parse(":8080"), "0.0.0.0:8080".parse().ok());
        assert_eq!(parse("10.0.0.7:1"), "10.0.0.7:1".parse().ok());
        assert_eq!(parse("[::1]:2"), "[::1]:2".parse().ok());
        for wrong in ["", "8080", "db:8080", ":port"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
