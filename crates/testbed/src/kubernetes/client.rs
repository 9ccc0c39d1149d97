//! The Kubernetes client of an API server, for tests that speak Rust.
//!
//! In: a running server. Out: a client as its administrator. Must not: read the user's kubeconfig, or go through the
//! user's proxy (the server is on loopback).

use kube::config::{Config, KubeConfigOptions, Kubeconfig, KubeconfigError};
use snafu::{ResultExt as _, Snafu};

use super::ApiServer;

/// Why there is no client.
#[derive(Debug, Snafu)]
pub enum Error {
    /// The kubeconfig that the testbed wrote cannot be read.
    #[snafu(display("cannot read the kubeconfig of the API server: {source}"))]
    Kubeconfig {
        /// Why.
        #[snafu(source(from(KubeconfigError, Box::new)))]
        source: Box<KubeconfigError>,
    },

    /// The client cannot be made of it.
    #[snafu(display("cannot make a client for the API server: {source}"))]
    Client {
        /// Why.
        #[snafu(source(from(kube::Error, Box::new)))]
        source: Box<kube::Error>,
    },
}

impl ApiServer {
    /// A client as the administrator, made inside a Tokio runtime. It installs the aws-lc-rs crypto provider when none
    /// is installed yet (the client library does), so the order of tests does not matter.
    pub async fn client(&self) -> Result<kube::Client, Error> {
        kube::Client::try_from(self.client_config().await?).context(ClientSnafu)
    }

    /// The configuration of that client, to be changed before a client is made of it.
    pub async fn client_config(&self) -> Result<Config, Error> {
        let file = Kubeconfig::read_from(self.kubeconfig()).context(KubeconfigSnafu)?;
        let mut config =
            Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.context(KubeconfigSnafu)?;
        // Taken from HTTPS_PROXY otherwise, loopback or not.
        config.proxy_url = None;
        Ok(config)
    }
}
