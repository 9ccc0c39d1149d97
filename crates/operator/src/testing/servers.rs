//! Servers without MySQL: what they say can be changed by a test at any time.

use crate::servers::{Looked, Server, Servers, Silent};
use bloodraven_brain::candidate::Data;
use bloodraven_brain::candidate::drain::{Applier, Receiver};
use bloodraven_brain::group::Task;
use bloodraven_brain::group::accounts::{AccountRole, Logins};
use bloodraven_brain::group::input::{Facts, Outcome, ReplicaFacts, SemiSync};
use bloodraven_brain::name::Site;
use bloodraven_brain::site::Pair;
use bloodraven_brain::time::Millis;
use bloodraven_gtid::{GtidSet, Uuid};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

/// One server.
#[expect(clippy::struct_excessive_bools, reason = "each is a fault of its own, and all combinations occur")]
#[derive(Clone, Debug)]
pub(crate) struct FakeServer {
    pub(crate) alive: bool,
    /// It takes the connection and says nothing.
    pub(crate) hangs: bool,
    /// Polls are answered, tasks are not.
    pub(crate) tasks_hang: bool,
    pub(crate) panics: bool,
    pub(crate) password: String,
    /// How often it was set.
    pub(crate) sets: usize,
    pub(crate) pair: Pair,
    pub(crate) uuid: Uuid,
    pub(crate) executed: GtidSet,
    pub(crate) source: Option<Site>,
    pub(crate) runs: bool,
    pub(crate) polls: usize,
    pub(crate) first_poll: Option<Instant>,
    /// How long the last poll was given, and the last commit.
    pub(crate) patience: Option<Duration>,
    pub(crate) commit_patience: Option<Duration>,
    /// Its client port is full.
    pub(crate) full: bool,
    /// Commits do not come back.
    pub(crate) stalled: bool,
    /// Commits that came back.
    pub(crate) commits: usize,
    /// Scheduled events that do not run.
    pub(crate) events: Vec<String>,
    /// What it has received beside what it has executed.
    pub(crate) received: GtidSet,
    /// Its applier stands with an error.
    pub(crate) broken: bool,
    /// How far it says to be behind.
    pub(crate) behind: Millis,
    /// A copy into it takes for ever.
    pub(crate) clone_hangs: bool,
    /// How far that copy is.
    pub(crate) copied: Option<(u64, u64)>,
}

/// All of them.
pub(crate) struct FakeServers {
    servers: Mutex<BTreeMap<Site, FakeServer>>,
    /// Tasks that were begun and not ended.
    pub(crate) in_flight: Arc<AtomicUsize>,
}

struct InFlight(Arc<AtomicUsize>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl FakeServers {
    pub(crate) fn new(sites: &[&str]) -> Self {
        let server = |number: usize| FakeServer {
            alive: true,
            hangs: false,
            tasks_hang: false,
            panics: false,
            password: "one".to_owned(),
            sets: 0,
            pair: Pair::CLOSED,
            uuid: format!("{number:08}-0000-4000-8000-000000000000").parse().expect("a uuid"),
            executed: GtidSet::new(),
            source: None,
            runs: false,
            polls: 0,
            first_poll: None,
            patience: None,
            commit_patience: None,
            full: false,
            stalled: false,
            commits: 0,
            events: Vec::new(),
            received: GtidSet::new(),
            broken: false,
            behind: Millis(0),
            clone_hangs: false,
            copied: None,
        };
        let servers = sites.iter().enumerate().map(|(number, site)| (Site::new(site), server(number + 1)));
        Self { servers: Mutex::new(servers.collect()), in_flight: Arc::default() }
    }

    pub(crate) fn change<T>(&self, site: &str, change: impl FnOnce(&mut FakeServer) -> T) -> T {
        let mut servers = self.servers.lock().expect("nobody panicked here");
        change(servers.get_mut(&Site::new(site)).expect("a site"))
    }

    pub(crate) fn is_open(&self, site: &str) -> bool {
        self.change(site, |server| server.alive && server.pair == Pair::OPEN)
    }

    fn get(&self, at: &Server) -> FakeServer {
        self.change(at.site.as_str(), |server| server.clone())
    }
}

impl FakeServer {
    /// With the present password or with one of before.
    fn lets_in(&self, at: &Server) -> bool {
        std::iter::once(&at.operator).chain(&at.earlier).any(|account| account.password == self.password)
    }

    fn logins(&self, at: &Server) -> Outcome {
        let mut logins = Logins::default();
        if self.password != at.operator.password {
            logins.refused.insert(AccountRole::Operator, 1045);
        }
        Outcome::Logins(Box::new(logins))
    }

    fn facts(&self) -> Facts {
        let replica = self.source.clone().map(|source| ReplicaFacts {
            source: Some(source),
            receiver: if self.runs { Receiver::Running } else { Receiver::Stopped },
            receiver_error: None,
            applier: match (self.broken, self.runs) {
                (true, _) => Applier::Failed { code: 1062, message: "twice".to_owned() },
                (false, true) => Applier::Running,
                (false, false) => Applier::Stopped,
            },
            delayed: false,
            behind: self.runs.then_some(self.behind),
        });
        let data = Data { executed: self.executed.clone(), received: self.received.clone(), ..Data::default() };
        Facts {
            pair: self.pair,
            server_uuid: self.uuid,
            data: Some(data),
            replica,
            user_data: !self.executed.is_empty(),
            semi_sync: SemiSync::default(),
        }
    }
}

impl Servers for FakeServers {
    type Session = ();

    async fn poll(&self, at: &Server, session: &mut Option<()>, within: Duration) -> Result<Looked, Silent> {
        let server = self.change(at.site.as_str(), |server| {
            server.polls += 1;
            server.patience = Some(within);
            server.first_poll.get_or_insert_with(Instant::now);
            server.clone()
        });
        assert!(!server.panics, "a malformed key");
        if server.hangs {
            std::future::pending::<()>().await;
        }
        if !server.alive {
            return Err(Silent::Failed("nobody answers".to_owned()));
        }
        if !server.lets_in(at) {
            return Err(Silent::LoginRefused("another password".to_owned()));
        }
        *session = Some(());
        Ok(Looked { facts: server.facts(), server_id: Some(1), exhausted: server.full })
    }

    async fn work(&self, at: &Server, _: &mut Option<()>, meant: Option<Uuid>, task: &Task, _: Duration) -> Outcome {
        self.in_flight.fetch_add(1, Ordering::SeqCst);
        let _in_flight = InFlight(Arc::clone(&self.in_flight));
        let server = self.get(at);
        if server.hangs || server.tasks_hang || (server.clone_hangs && matches!(task, Task::Clone { .. })) {
            std::future::pending::<()>().await;
        }
        if !server.alive {
            return Outcome::Failed("nobody answers".to_owned());
        }
        if !server.lets_in(at) {
            return Outcome::Refused("another password".to_owned());
        }
        if meant.is_some_and(|meant| meant != server.uuid) {
            return Outcome::Failed("another server answers".to_owned());
        }
        let donated = match task {
            Task::Clone { donor, .. } => self.change(donor.as_str(), |donor| donor.executed.clone()),
            _ => GtidSet::new(),
        };
        self.change(at.site.as_str(), |server| {
            match task {
                Task::Read | Task::WaitFor { .. } | Task::SwitchSemiSync(_) => {}
                Task::CheckLogins { .. } | Task::DiscardPasswords { .. } => return server.logins(at),
                Task::SetPasswords { accounts, .. } => {
                    if server.pair != Pair::OPEN {
                        return Outcome::Failed("it is fenced".to_owned());
                    }
                    if accounts.contains(&AccountRole::Operator) {
                        server.password.clone_from(&at.operator.password);
                        server.sets += 1;
                    }
                    return server.logins(at);
                }
                Task::RenewChannel { .. } => return Outcome::Ok,
                Task::Fence => server.pair = Pair::CLOSED,
                Task::EndSessions => return Outcome::Sessions(0),
                Task::StopReceiver => server.runs = false,
                Task::StartApplier | Task::LiftDelay | Task::StartReplica => {
                    server.runs = true;
                    return Outcome::Ok;
                }
                Task::CutReplication { .. } => (server.source, server.runs) = (None, false),
                Task::Attach { source, .. } | Task::Repoint { source, .. } => {
                    (server.source, server.runs) = (Some(source.clone()), true);
                }
                Task::Clone { .. } if server.facts().user_data => {
                    return Outcome::Failed("a fenced server cannot drop its schemas".to_owned());
                }
                Task::Clone { .. } => {
                    (server.executed, server.source, server.runs) = (donated, None, false);
                    return Outcome::Cloned;
                }
                Task::Cache(_) => return Outcome::Failed("there is no cache".to_owned()),
            }
            Outcome::Read(Box::new(server.facts()))
        })
    }

    async fn clone_bytes(&self, at: &Server, _: &mut Option<()>, _: Duration) -> Result<Option<(u64, u64)>, Silent> {
        Ok(self.get(at).copied)
    }

    async fn commit(&self, at: &Server, _: &mut Option<()>, meant: Uuid, within: Duration) -> Result<(), Silent> {
        self.change(at.site.as_str(), |server| {
            server.commit_patience = Some(within);
            if server.stalled || meant != server.uuid || server.pair != Pair::OPEN {
                return Err(Silent::Failed("no end in time".to_owned()));
            }
            server.commits += 1;
            Ok(())
        })
    }

    async fn disabled_events(&self, at: &Server, _: &mut Option<()>, _: Duration) -> Result<Vec<String>, Silent> {
        Ok(self.get(at).events)
    }
}
