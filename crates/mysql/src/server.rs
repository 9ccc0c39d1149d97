//! Where a server is and how one logs in.
//!
//! In: host, port, account, TLS. Out: one value that every verb takes. Must not: print a password.

use crate::Account;
use std::fmt;
use std::sync::Arc;

/// A server: where it is, who logs in, and how the connection is secured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Name or address.
    pub host: String,
    /// The port; the administrators' port where there is one.
    pub port: u16,
    /// Who logs in.
    pub account: Account,
    /// Who did so before, the last one first: tried when the server refuses that one, for it may not have the new password
    /// yet.
    pub earlier: Vec<Account>,
    /// None: no TLS.
    pub tls: Option<Tls>,
    /// What sessions are opened for, where somebody may have to find them later; see [`crate::sessions::end_purpose`].
    pub purpose: Option<&'static str>,
}

/// TLS: the certificate must come from this authority and must name the host.
#[derive(Clone, PartialEq, Eq)]
pub struct Tls {
    /// Certificates of the authority, as PEM. No other authority is trusted.
    pub ca: Arc<[u8]>,
    /// The name that the certificate must have, where it is not the host.
    pub name: Option<String>,
}

impl Server {
    /// A server without TLS.
    pub fn new(host: impl Into<String>, port: u16, account: Account) -> Self {
        Self { host: host.into(), port, account, earlier: Vec::new(), tls: None, purpose: None }
    }

    /// With accounts that are tried when the first one is refused.
    #[must_use]
    pub fn with_earlier(mut self, earlier: Vec<Account>) -> Self {
        self.earlier = earlier;
        self
    }

    /// With TLS.
    #[must_use]
    pub fn with_tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// With a purpose that its sessions show.
    #[must_use]
    pub fn with_purpose(mut self, purpose: &'static str) -> Self {
        self.purpose = Some(purpose);
        self
    }

    /// How it is called in messages: `host:port`.
    pub fn place(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("ca", &format_args!("{} bytes", self.ca.len())).field("name", &self.name).finish()
    }
}
