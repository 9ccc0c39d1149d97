//! The supervisor: plays the kubelet for the sites, and keeps the operators.
//!
//! In: a plan of each site, and orders. Out: running keepers, servers, sidecars and operators, and files that say what
//! lives and what has ended. Must not: leave a process behind, not even when it is killed itself; call anything ended that
//! it did not see end; decide what a sidecar or an operator decides.

pub mod container;
pub mod mysqld;
mod operator;
pub(crate) mod plan;
pub(crate) mod proc;
pub mod process;
mod site;
mod spawner;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use snafu::{OptionExt as _, Snafu};
use tokio::sync::{mpsc, oneshot, watch};

pub use self::container::Backoff;
pub use self::mysqld::MysqlPrograms;
use self::operator::OperatorOrder;
use self::plan::Plan;
use self::site::Order;
pub(crate) use self::site::POD_VARIABLE;
use crate::files;
use crate::network::Network;
use crate::store::{self, Store};

/// How many orders may wait at a site; each is done within a minute.
const ORDERS: usize = 16;

/// What went wrong with a site or an operator.
#[derive(Debug, Snafu)]
#[snafu(visibility(pub(super)))]
pub enum Error {
    /// There is no such site.
    #[snafu(display("there is no site {site:?}; the sites are {known}"))]
    NoSite {
        /// The name.
        site: String,
        /// The names there are.
        known: String,
    },

    /// There is no such operator.
    #[snafu(display("there is no operator {number}; there are {count}, counted from 0"))]
    NoOperator {
        /// The number.
        number: u8,
        /// How many there are.
        count: usize,
    },

    /// The site has no pod.
    #[snafu(display("{site}: it is stopped; start it first"))]
    NoPod {
        /// The site.
        site: String,
    },

    /// A process of it.
    #[snafu(display("{site}: {source}"))]
    Process {
        /// The site.
        site: String,
        /// What went wrong.
        source: process::Error,
    },

    /// Something of it does not end.
    #[snafu(display("{site}: a process of its pod does not end; nothing is started in its place"))]
    NotGone {
        /// The site.
        site: String,
    },

    /// The state directory.
    #[snafu(display("{site}: {source}"))]
    Store {
        /// The site.
        site: String,
        /// What went wrong.
        source: store::Error,
    },

    /// A file of it.
    #[snafu(display("{site}: {source}"))]
    File {
        /// The site.
        site: String,
        /// What went wrong.
        source: files::Error,
    },

    /// Its data.
    #[snafu(display("{site}: its data folder cannot be changed: {source}"))]
    Data {
        /// The site.
        site: String,
        /// What the system said.
        source: std::io::Error,
    },

    /// It has no address.
    #[snafu(display("{site}: it has no address; name it at the start"))]
    NoAddress {
        /// The site.
        site: String,
    },

    /// The supervisor has ended.
    #[snafu(display("{site}: the supervisor has ended"))]
    Over {
        /// The site.
        site: String,
    },
}

/// The programs that are run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Programs {
    /// Runs as `bloodraven sidecar` and `bloodraven operator`.
    pub bloodraven: PathBuf,
    /// The parent of each server.
    pub keeper: PathBuf,
    /// The server.
    pub mysql: MysqlPrograms,
}

/// A part of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// The server.
    Mysqld,
    /// Its parent; the server dies with it.
    Keeper,
    /// The agent beside it.
    Sidecar,
}

/// What is taken away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wipe {
    /// The server's data and the sidecar's memory: a new volume.
    Volume,
    /// The server's data alone.
    Data,
}

/// How a site is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SiteState {
    /// Its life; none: it is stopped.
    pub pod: Option<String>,
    /// The keeper, while it runs.
    pub keeper_pid: Option<u32>,
    /// The sidecar, while it runs.
    pub sidecar_pid: Option<u32>,
    /// How often this life's keeper was started.
    pub keeper_starts: u32,
    /// How often this life's sidecar was started.
    pub sidecar_starts: u32,
}

impl SiteState {
    /// The server, while it runs: the keeper's child.
    pub fn mysqld_pid(&self) -> Option<u32> {
        self.keeper_pid.and_then(|keeper| proc::children(keeper).into_iter().next())
    }
}

/// How an operator is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OperatorState {
    /// Its process, while it runs.
    pub pid: Option<u32>,
    /// How often it was started.
    pub starts: u32,
}

/// The supervisor of a directory. Everything that it started ends when it is dropped.
#[derive(Debug)]
pub struct Supervisor {
    sites: BTreeMap<String, Handle<Order, SiteState>>,
    operators: Vec<Handle<OperatorOrder, OperatorState>>,
}

/// The way to a task that keeps something.
#[derive(Debug)]
struct Handle<O, S> {
    name: String,
    orders: mpsc::Sender<(O, oneshot::Sender<Result<(), Error>>)>,
    state: watch::Receiver<S>,
    task: tokio::task::JoinHandle<()>,
}

/// What the supervisor needs to know.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) store: Store,
    pub(crate) network: Network,
    pub(crate) programs: Programs,
    pub(crate) template: Option<PathBuf>,
    pub(crate) backoff: Backoff,
    /// Where sockets live: a short path.
    pub(crate) run: PathBuf,
    pub(crate) sites: Vec<String>,
    /// The identity of each operator.
    pub(crate) operators: Vec<String>,
    pub(crate) log_level: String,
}

impl Supervisor {
    /// A supervisor of sites that are all stopped. Needs a running tokio.
    pub(crate) fn new(setup: &Setup) -> Self {
        let site = |name: &String| {
            let plan = Arc::new(Plan {
                site: name.clone(),
                folder: setup.store.site(name),
                run: setup.run.join(name),
                network: setup.network.clone(),
                programs: setup.programs.clone(),
                template: setup.template.clone(),
                backoff: setup.backoff,
                secrets: setup.store.secrets(),
                log_level: setup.log_level.clone(),
            });
            let store = setup.store.clone();
            let handle = Handle::new(name.clone(), |orders, state| site::run(store, plan, orders, state));
            (name.clone(), handle)
        };
        let operator = |(number, uid): (u8, &String)| {
            let keeper = operator::OperatorKeeper::new(setup, number, uid);
            Handle::new(format!("operator {number}"), |orders, state| operator::run(keeper, orders, state))
        };
        Self {
            sites: setup.sites.iter().map(site).collect(),
            operators: (0..).zip(&setup.operators).map(operator).collect(),
        }
    }

    /// Kills a part of a site; it is started again, in the same life.
    pub async fn kill(&self, site: &str, part: Part) -> Result<(), Error> {
        self.site(site)?.order(Order::Kill(part)).await
    }

    /// Kills keeper, server and sidecar of a site at the same time; they are started again, in the same life.
    pub async fn kill_all(&self, site: &str) -> Result<(), Error> {
        self.site(site)?.order(Order::KillAll).await
    }

    /// Kills a part of a site and keeps it away until it is released. A server is kept away with its keeper.
    pub async fn hold(&self, site: &str, part: Part) -> Result<(), Error> {
        self.site(site)?.order(Order::Hold(part)).await
    }

    /// Starts a part that was kept away.
    pub async fn release(&self, site: &str, part: Part) -> Result<(), Error> {
        self.site(site)?.order(Order::Release(part)).await
    }

    /// Stops a part where it is (`SIGSTOP`): its connections stay open and nothing answers.
    pub async fn pause(&self, site: &str, part: Part) -> Result<(), Error> {
        self.site(site)?.order(Order::Pause(part)).await
    }

    /// Lets a paused part go on (`SIGCONT`).
    pub async fn resume(&self, site: &str, part: Part) -> Result<(), Error> {
        self.site(site)?.order(Order::Resume(part)).await
    }

    /// Ends a site's life: asked first (fence, shutdown), or killed. It stays away until it is started.
    pub async fn stop(&self, site: &str, graceful: bool) -> Result<(), Error> {
        self.site(site)?.order(Order::Stop { graceful }).await
    }

    /// A new life for a site that is stopped.
    pub async fn start(&self, site: &str) -> Result<(), Error> {
        self.site(site)?.order(Order::Start).await
    }

    /// Ends a site's life and begins a new one on its data.
    pub async fn replace(&self, site: &str, graceful: bool) -> Result<(), Error> {
        self.site(site)?.order(Order::Replace { graceful }).await
    }

    /// Ends a site's life, takes its data away, and begins a new one on nothing.
    pub async fn wipe(&self, site: &str, wipe: Wipe) -> Result<(), Error> {
        self.site(site)?.order(Order::Wipe(wipe)).await
    }

    /// Starts an operator.
    pub async fn start_operator(&self, number: u8) -> Result<(), Error> {
        self.operator(number)?.order(OperatorOrder::Start).await
    }

    /// Asks an operator to end, and keeps it away.
    pub async fn stop_operator(&self, number: u8) -> Result<(), Error> {
        self.operator(number)?.order(OperatorOrder::Stop).await
    }

    /// Kills an operator; it is started again.
    pub async fn kill_operator(&self, number: u8) -> Result<(), Error> {
        self.operator(number)?.order(OperatorOrder::Kill).await
    }

    /// Kills an operator and keeps it away until it is started.
    pub async fn hold_operator(&self, number: u8) -> Result<(), Error> {
        self.operator(number)?.order(OperatorOrder::Hold).await
    }

    /// Stops an operator where it is. It never stands still with the store's lock: in a cluster, too, the API server goes
    /// on without it.
    pub async fn pause_operator(&self, number: u8) -> Result<(), Error> {
        self.operator(number)?.order(OperatorOrder::Pause).await
    }

    /// Lets a paused operator go on.
    pub async fn resume_operator(&self, number: u8) -> Result<(), Error> {
        self.operator(number)?.order(OperatorOrder::Resume).await
    }

    /// How every site is.
    pub fn site_states(&self) -> BTreeMap<String, SiteState> {
        self.sites.iter().map(|(name, handle)| (name.clone(), handle.state.borrow().clone())).collect()
    }

    /// How every operator is.
    pub fn operator_states(&self) -> Vec<OperatorState> {
        self.operators.iter().map(|handle| *handle.state.borrow()).collect()
    }

    /// News of a site.
    pub fn watch_site(&self, site: &str) -> Result<watch::Receiver<SiteState>, Error> {
        Ok(self.site(site)?.state.clone())
    }

    /// Ends everything: operators first, then all sites at the same time.
    pub(crate) async fn end(self, graceful: bool) -> Result<(), Error> {
        let mut outcome = Ok(());
        let end = if graceful { OperatorOrder::Stop } else { OperatorOrder::Hold };
        for operator in &self.operators {
            outcome = outcome.and(operator.order(end).await);
        }
        let stops = self.sites.values().map(|site| site.order(Order::Stop { graceful }));
        for stopped in futures_util::future::join_all(stops).await {
            outcome = outcome.and(stopped);
        }
        outcome
    }

    fn site(&self, name: &str) -> Result<&Handle<Order, SiteState>, Error> {
        let known = || self.sites.keys().cloned().collect::<Vec<_>>().join(", ");
        self.sites.get(name).with_context(|| NoSiteSnafu { site: name, known: known() })
    }

    fn operator(&self, number: u8) -> Result<&Handle<OperatorOrder, OperatorState>, Error> {
        let count = self.operators.len();
        self.operators.get(usize::from(number)).context(NoOperatorSnafu { number, count })
    }
}

/// Kills whatever lives of a pod or an operator of an earlier run, and waits until nothing does. None: something stays.
pub(crate) async fn bury_pod(uid: &str) -> Option<()> {
    site::all_gone(uid, None).await
}

impl<O: Send + 'static, S: Default + Send + Sync + 'static> Handle<O, S> {
    fn new<F: Future<Output = ()> + Send + 'static>(
        name: String,
        run: impl FnOnce(mpsc::Receiver<(O, oneshot::Sender<Result<(), Error>>)>, watch::Sender<S>) -> F,
    ) -> Self {
        let (orders, receiver) = mpsc::channel(ORDERS);
        let (sender, state) = watch::channel(S::default());
        let task = tokio::spawn(run(receiver, sender));
        Self { name, orders, state, task }
    }

    async fn order(&self, order: O) -> Result<(), Error> {
        let over = || OverSnafu { site: &self.name }.build();
        let (reply, outcome) = oneshot::channel();
        self.orders.send((order, reply)).await.map_err(|_| over())?;
        outcome.await.map_err(|_| over())?
    }
}

impl<O, S> Drop for Handle<O, S> {
    fn drop(&mut self) {
        // Its processes are dropped with it, and so killed.
        self.task.abort();
    }
}

#[cfg(test)]
mod tests;
