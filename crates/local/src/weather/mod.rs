//! Weather: what can befall the links between operators, sites and front doors, without root.
//!
//! In: the links of a network, and faults. Out: a proxy on each link that carries bytes as the weather allows. Must not:
//! answer in anyone's name, reorder or change a byte, or refuse where a real network would be silent.
//!
//! - A *cut* direction carries nothing. Bytes that were under way wait, as they would in the sender's kernel, and arrive
//!   when it heals; a connection that is begun over a cut link, whichever way it is cut, gets no further than a handshake
//!   would. Nobody is told.
//! - Weather changes for connections that are there as well as for new ones.
//! - Every fault is held by a [`Storm`]; it is over when that is dropped.

mod fault;
mod link;
mod pipe;

pub use fault::{Effect, Fault, Sky, Storm, Who};
pub use link::{Error, Link};

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::network::{End, Network, Service};

/// The weather on every link. Clones share it; the proxies end with the last of them.
#[derive(Clone, Debug)]
pub struct Weather {
    clouds: Arc<Clouds>,
    _proxies: Arc<Proxies>,
}

/// What has happened on the links so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections that were taken.
    pub taken: u64,
    /// Of these, the ones that are open.
    pub open: u64,
    /// Connections that were given up because too many were open.
    pub overrun: u64,
    /// Bytes that were carried.
    pub bytes: u64,
}

/// Every fault that holds, and the news of it.
#[derive(Debug)]
struct Clouds {
    faults: Mutex<Vec<(u64, Fault)>>,
    next: AtomicU64,
    /// Counts up with every change.
    changed: watch::Sender<u64>,
    taken: AtomicU64,
    open: AtomicU64,
    overrun: AtomicU64,
    bytes: AtomicU64,
}

/// The tasks that listen.
#[derive(Debug)]
struct Proxies(Vec<AbortHandle>);

impl Weather {
    /// Fair weather on every link of a network. Needs a running tokio.
    pub fn start(network: &Network, operators: u8) -> Result<Self, Error> {
        Self::over(link::all(network, operators))
    }

    /// Fair weather on these links.
    pub fn over(links: Vec<Link>) -> Result<Self, Error> {
        let clouds = Arc::new(Clouds {
            faults: Mutex::new(Vec::new()),
            next: AtomicU64::new(0),
            changed: watch::Sender::new(0),
            taken: AtomicU64::new(0),
            open: AtomicU64::new(0),
            overrun: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        });
        // Every address is bound before any connection is taken: a start that fails has carried nothing.
        let bound = links.into_iter().map(Link::bind).collect::<Result<Vec<_>, _>>()?;
        let proxies = bound
            .into_iter()
            .map(|(link, listener)| tokio::spawn(link::serve(link, listener, Arc::clone(&clouds))).abort_handle())
            .collect();
        Ok(Self { clouds, _proxies: Arc::new(Proxies(proxies)) })
    }

    /// Lets these faults hold until the storm is dropped.
    pub fn add(&self, faults: impl IntoIterator<Item = Fault>) -> Storm {
        let mut ids = Vec::new();
        {
            let mut held = self.clouds.held();
            for fault in faults {
                let id = self.clouds.next.fetch_add(1, Ordering::Relaxed);
                held.push((id, fault));
                ids.push(id);
            }
        }
        self.clouds.tell();
        Storm::new(Arc::clone(&self.clouds), ids)
    }

    /// Cuts two from each other, both ways.
    pub fn cut(&self, one: impl Into<Who>, other: impl Into<Who>) -> Storm {
        let (one, other) = (one.into(), other.into());
        self.add(Fault::both_ways(&one, &other, Effect::Cut))
    }

    /// Cuts what `from` sends to `to`; the other way stays open.
    pub fn cut_one_way(&self, from: impl Into<Who>, to: impl Into<Who>) -> Storm {
        self.add([Fault::new(from, to, Effect::Cut)])
    }

    /// Cuts one from everyone, both ways. Who is at the same site (its sidecar and its server, a client beside them) still
    /// reaches it.
    pub fn isolate(&self, one: impl Into<Who>) -> Storm {
        let one = one.into();
        self.add(Fault::both_ways(&one, &Who::Anyone, Effect::Cut))
    }

    /// Delays what two send to each other, each way.
    pub fn delay(&self, one: impl Into<Who>, other: impl Into<Who>, by: Duration) -> Storm {
        let (one, other) = (one.into(), other.into());
        self.add(Fault::both_ways(&one, &other, Effect::Delay(by)))
    }

    /// Lets at most so many bytes a second pass between two, each way of each link.
    pub fn slow(&self, one: impl Into<Who>, other: impl Into<Who>, bytes_per_second: u64) -> Storm {
        let (one, other) = (one.into(), other.into());
        self.add(Fault::both_ways(&one, &other, Effect::Slow(bytes_per_second)))
    }

    /// Ends every fault, whoever holds it.
    pub fn heal(&self) {
        self.clouds.held().clear();
        self.clouds.tell();
    }

    /// Ends every fault between these two.
    pub fn heal_between(&self, one: impl Into<Who>, other: impl Into<Who>) {
        let (one, other) = (one.into(), other.into());
        let between =
            |fault: &Fault| (fault.from == one && fault.to == other) || (fault.from == other && fault.to == one);
        self.clouds.held().retain(|(_, fault)| !between(fault));
        self.clouds.tell();
    }

    /// The faults that hold, the oldest first.
    pub fn faults(&self) -> Vec<Fault> {
        self.clouds.held().iter().map(|(_, fault)| fault.clone()).collect()
    }

    /// The weather for what `from` sends to `to`.
    pub fn sky(&self, from: &End, to: &End, service: Service) -> Sky {
        self.clouds.sky(Some(from), Some(to), service)
    }

    /// What has happened so far.
    pub fn counts(&self) -> Counts {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Clouds { taken, open, overrun, bytes, .. } = &*self.clouds;
        Counts { taken: count(taken), open: count(open), overrun: count(overrun), bytes: count(bytes) }
    }
}

impl Clouds {
    /// The weather for what one sends to another; none: it could be anyone.
    fn sky(&self, from: Option<&End>, to: Option<&End>, service: Service) -> Sky {
        let held = self.held();
        let fitting = held.iter().map(|(_, fault)| fault).filter(|fault| fault.concerns(from, to, service));
        fitting.fold(Sky::default(), |sky, fault| sky.under(fault.effect))
    }

    fn forget(&self, ids: &[u64]) {
        self.held().retain(|(id, _)| !ids.contains(id));
        self.tell();
    }

    fn tell(&self) {
        self.changed.send_modify(|count| *count = count.wrapping_add(1));
    }

    fn held(&self) -> MutexGuard<'_, Vec<(u64, Fault)>> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Proxies {
    fn drop(&mut self) {
        for task in &self.0 {
            task.abort();
        }
    }
}

#[cfg(test)]
mod tests;
