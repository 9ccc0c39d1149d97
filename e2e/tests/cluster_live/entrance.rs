//! Ways in as clients use them: an address, and whom they trust there.
//!
//! In: where a way leads; with TLS also the authority and the name that the server has to have. Out: connections. Must not:
//! wait for ever, or talk to a server without TLS where it is asked for.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use mysql_async::{Conn, OptsBuilder, SslOpts};
use tokio::time::timeout;

use super::terms::{APP, Login};

/// How long a client waits for an answer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);

/// A server that clients come to.
#[derive(Clone, Debug)]
pub(crate) struct Entrance {
    pub(crate) at: SocketAddr,
    /// None: nobody is verified.
    pub(crate) trust: Option<Trust>,
}

/// Whom a client takes for the right server.
#[derive(Clone, Debug)]
pub(crate) struct Trust {
    /// The certificate of the authority.
    pub(crate) authority: Arc<str>,
    /// What the server's certificate has to cover.
    pub(crate) name: String,
}

impl Entrance {
    /// As an application.
    pub(crate) async fn connect(&self) -> Option<Conn> {
        self.connect_as(APP).await?.ok()
    }

    /// As somebody, who may be refused; none: no answer in time.
    pub(crate) async fn connect_as(&self, login: Login) -> Option<Result<Conn, mysql_async::Error>> {
        let options = OptsBuilder::default().ip_or_hostname(self.at.ip().to_string()).tcp_port(self.at.port());
        let options = options.user(Some(login.0)).pass(Some(login.1)).prefer_socket(false);
        let options = options.ssl_opts(self.trust.as_ref().map(Trust::options));
        timeout(PATIENCE, Conn::new(options)).await.ok()
    }
}

impl Trust {
    /// The address is one of this machine's: the name is what the server is called in the cluster.
    fn options(&self) -> SslOpts {
        let authority = self.authority.as_bytes().to_vec();
        let options = SslOpts::default().with_root_certs(vec![authority.into()]).with_disable_built_in_roots(true);
        options.with_danger_tls_hostname_override(Some(self.name.clone()))
    }
}
