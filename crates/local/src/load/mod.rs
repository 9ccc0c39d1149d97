//! Load with a ledger: a writer for each site, one through the front door, a reader of the replicas.
//!
//! In: where to write, as whom, how often. Out: a [`Book`] in which every write stands with its outcome and its times, and
//! counters. Must not: retry a write (each try has an id of its own), call refused what may have been done, wait without a
//! bound, or go on when the book is full.
//!
//! Site writers go straight to the server, past router and weather: they are the clients that a stale primary would serve.

mod client;
mod reader;
mod writer;

use crate::ledger::lookup::TABLE;
use crate::ledger::{Book, Moment, SiteNumber};
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;

pub(crate) use client::Client;

/// How long tasks get to end after they were told to; then they are dropped where they are.
const FAREWELL: Duration = Duration::from_secs(3);

/// Where and as whom to write.
#[derive(Clone)]
pub struct Plan {
    /// The real address of each site's server, in the order of the group's list.
    pub sites: Vec<SocketAddr>,
    /// The front door for writes.
    pub primary: SocketAddr,
    /// The front door for reads.
    pub replicas: SocketAddr,
    /// An ordinary user.
    pub user: String,
    /// Its password.
    pub password: String,
    /// Writes a second, for each writer.
    pub rate: u32,
}

/// How often each writer writes when nobody says otherwise.
pub const RATE: u32 = 75;

/// One writer's or the reader's totals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Done.
    pub done: u64,
    /// Refused for certain.
    pub refused: u64,
    /// Nobody knows.
    pub unknown: u64,
    /// There was no connection to try on.
    pub unconnected: u64,
}

/// Totals of all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// The writers of the sites.
    pub sites: Vec<Totals>,
    /// The writer at the front door.
    pub door: Totals,
    /// The reader of the replicas.
    pub reads: Totals,
}

/// What the tasks share.
pub(crate) struct Shared {
    pub(crate) book: Mutex<Book>,
    tally: Mutex<Tally>,
    servers: Mutex<BTreeMap<String, SiteNumber>>,
    on: watch::Receiver<bool>,
}

/// Running load. Dropping it ends it.
pub struct Load {
    shared: Arc<Shared>,
    switch: watch::Sender<bool>,
    tasks: JoinSet<()>,
}

impl Load {
    /// Starts the tasks, switched off. `run` tells this run's ids from those of earlier ones on the same data.
    pub fn start(plan: &Plan, run: u32) -> Self {
        let (switch, on) = watch::channel(false);
        let count = plan.sites.len();
        let tally = Tally { sites: vec![Totals::default(); count], ..Tally::default() };
        let shared = Arc::new(Shared {
            book: Mutex::new(Book::new(count)),
            tally: Mutex::new(tally),
            servers: Mutex::default(),
            on,
        });
        let mut tasks = JoinSet::new();
        for (number, address) in (0..=u8::MAX).zip(&plan.sites) {
            let place = writer::Place::Site(SiteNumber(number));
            tasks.spawn(writer::run(writer::Writer::new(place, *address, plan, run), Arc::clone(&shared)));
        }
        tasks.spawn(writer::run(writer::Writer::new(writer::Place::Door, plan.primary, plan, run), shared.clone()));
        tasks.spawn(reader::run(plan.clone(), Arc::clone(&shared)));
        Self { shared, switch, tasks }
    }

    /// Switches it on or off.
    pub fn switch(&self, on: bool) {
        self.book(|book| if on { book.gaps.switched_on() } else { book.gaps.switched_off() });
        self.switch.send_replace(on);
    }

    /// Whether it is on.
    pub fn is_on(&self) -> bool {
        *self.switch.borrow()
    }

    /// Looks into the book, or writes into it.
    pub fn book<T>(&self, look: impl FnOnce(&mut Book) -> T) -> T {
        look(&mut lock(&self.shared.book))
    }

    /// What the tasks share, for who looks on after a deed.
    pub(crate) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    /// The totals so far.
    pub fn tally(&self) -> Tally {
        lock(&self.shared.tally).clone()
    }

    /// Ends every task.
    pub async fn stop(mut self) {
        drop(self.switch);
        let all = async { while self.tasks.join_next().await.is_some() {} };
        // Every await of a task has a bound of its own; this is the bound of them all.
        let _ = tokio::time::timeout(FAREWELL, all).await;
        self.tasks.abort_all();
    }
}

impl Shared {
    /// The site whose server has that uuid, as far as a site writer has met it.
    fn site_of(&self, uuid: &str) -> Option<SiteNumber> {
        lock(&self.servers).get(uuid).copied()
    }

    /// The server at that site's address has that uuid now.
    fn met(&self, uuid: &str, site: SiteNumber) {
        let mut servers = lock(&self.servers);
        // A site that lost its data has another one; 100 are more than any run sees.
        if servers.len() < 100 || servers.contains_key(uuid) {
            servers.insert(uuid.to_owned(), site);
        }
    }

    fn count(&self, change: impl FnOnce(&mut Tally)) {
        change(&mut lock(&self.tally));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The clock of the ledger: `CLOCK_BOOTTIME` in microseconds.
pub fn now() -> Moment {
    let time = clock_gettime(ClockId::Boottime);
    let (seconds, nanos) = (u64::try_from(time.tv_sec).unwrap_or(0), u64::try_from(time.tv_nsec).unwrap_or(0));
    Moment(seconds * 1_000_000 + nanos / 1000)
}

/// Makes the database and the table, as the ordinary user.
const PREPARE: [&str; 2] = [
    "CREATE DATABASE IF NOT EXISTS ledger",
    "CREATE TABLE IF NOT EXISTS ledger.writes (id BIGINT UNSIGNED PRIMARY KEY, at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6))",
];

fn insert(id: u64) -> String {
    format!("INSERT INTO {TABLE} (id) VALUES ({id})")
}
