//! MySQL servers, as the operator's hands reach them: one trait, so that everything around it can be tried without any.
//!
//! In: where a server is and what is wanted of it. Out: what it said, in the brain's words. Must not: take longer than it
//! was given, or do anything to a server other than the one that is meant.

use crate::world::{Account, HostPort, TlsFiles};
use bloodraven_brain::group::Task;
use bloodraven_brain::group::accounts::{AccountRole, CredentialsVersion};
use bloodraven_brain::group::input::{Facts, Outcome};
use bloodraven_brain::name::Site;
use bloodraven_gtid::Uuid;
use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;

/// See above. Futures are dropped when their time is over, or when this process leads no more.
pub trait Servers: Send + Sync + 'static {
    /// What is kept open between two polls, or two tasks, of one server.
    type Session: Send + 'static;

    /// Reads everything that a poll reads; makes a session if there is none. The caller drops the session when this failed.
    fn poll(
        &self,
        at: &Server,
        session: &mut Option<Self::Session>,
        within: Duration,
    ) -> impl Future<Output = Result<Looked, Silent>> + Send;

    /// Does a task of the brain's to the server that is meant; none: to whichever answers. Makes a session if there is
    /// none, and leaves it there when the task went well and the session may serve for another.
    fn work(
        &self,
        at: &Server,
        session: &mut Option<Self::Session>,
        meant: Option<Uuid>,
        task: &Task,
        within: Duration,
    ) -> impl Future<Output = Outcome> + Send;

    /// Commits a small change at the server that is meant, which writes: no GTID, nothing replicated, nothing of a user's.
    /// Sessions as with [`Servers::poll`].
    fn commit(
        &self,
        at: &Server,
        session: &mut Option<Self::Session>,
        meant: Uuid,
        within: Duration,
    ) -> impl Future<Output = Result<(), Silent>> + Send;

    /// The scheduled events that came to that server by replication and do not run there.
    fn disabled_events(
        &self,
        at: &Server,
        session: &mut Option<Self::Session>,
        within: Duration,
    ) -> impl Future<Output = Result<Vec<String>, Silent>> + Send;

    /// How far the clone into that server is, while one goes on: bytes copied, bytes in all. Sessions as with
    /// [`Servers::poll`].
    fn clone_bytes(
        &self,
        at: &Server,
        session: &mut Option<Self::Session>,
        within: Duration,
    ) -> impl Future<Output = Result<Option<(u64, u64)>, Silent>> + Send;
}

/// A site's server, and what is needed to log in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Whose.
    pub site: Site,
    /// Its admin interface.
    pub admin: HostPort,
    /// Where it finds the others, as sources and donors.
    pub peers: BTreeMap<Site, HostPort>,
    /// Who logs in.
    pub operator: Account,
    /// Who did before, the last one first: this server may not have the new password yet.
    pub earlier: Vec<Account>,
    /// Who replicates.
    pub replication: Option<Account>,
    /// Everybody else.
    pub others: BTreeMap<AccountRole, Account>,
    /// Which Secrets these are from.
    pub version: CredentialsVersion,
    /// Whose sessions are never ended.
    pub spared: Vec<String>,
    /// How it is trusted.
    pub tls: Option<TlsFiles>,
}

/// What a poll saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Looked {
    /// For the brain.
    pub facts: Facts,
    /// `@@server_id`, for people.
    pub server_id: Option<u32>,
    /// The server takes no more clients; the admin interface still answers.
    pub exhausted: bool,
}

/// Why a poll saw nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Silent {
    /// The server answered, and refused the login, or what the account may not do there.
    LoginRefused(String),
    /// Its certificate is not trusted, or names another.
    Untrusted(String),
    /// An error.
    Failed(String),
}

impl Server {
    /// Every account that there is.
    pub(crate) fn accounts(&self) -> impl Iterator<Item = (AccountRole, &Account)> {
        let ours =
            [(AccountRole::Operator, Some(&self.operator)), (AccountRole::Replication, self.replication.as_ref())];
        let ours = ours.into_iter().filter_map(|(role, account)| Some((role, account?)));
        ours.chain(self.others.iter().map(|(role, account)| (*role, account)))
    }
}
