//! The agent beside one MySQL server: fences it when it may no longer write, opens it when it may.
//!
//! In: a [`Config`]. Out: `run`, which goes on until it is told to end. Must not: decide (that is
//! [`bloodraven_brain::fence`]), wait without a bound, or have two ways to open a server.
//!
//! # How it hangs together
//!
//! ```text
//!   operator, peers ── http ──┐                     ┌── store     (a thread: one writer, in order)
//!   operator, peers ◄ outward ┤◄──  actor ── hands ─┤── lane      (fence, open; one at a time) ── mysqld
//!                             └──► (the brain)      └── keeper    (one session)                ── keeper
//! ```
//!
//! One task, the `actor`, owns the brain and waits for nothing but its next input. Everything that takes time is a task
//! of its own and reports to it. The timer of the deadline comes before all other inputs.
//!
//! | file | holds |
//! |---|---|
//! | `config` | the environment, read once |
//! | `actor` | the loop: inputs in their order, steps, commands |
//! | `chain` | which command waits for which write; which operation of the lane counts |
//! | `lane` | fencing and opening; `lane/opener.rs` is the only file that can open |
//! | `local` | the server beside: sessions, readings |
//! | `store` | what survives a restart |
//! | `keeper` | the session with the parent of mysqld |
//! | `outward` | what is asked of operator and peers |
//! | `http` | what others may ask |
//! | `volume` | how full the data volume is |
//! | `notice`, `tell` | what people are told |

#![forbid(unsafe_code)]

pub mod config;

mod actor;
mod chain;
mod clock;
mod event;
mod http;
mod keeper;
mod keys;
mod lane;
mod local;
mod notice;
mod outward;
mod store;
mod tell;
mod volume;

#[cfg(test)]
mod testing;

pub use config::Config;

use actor::{Actor, Inputs, Parts};
use bloodraven_brain::fence::Sidecar;
use bloodraven_brain::name::{Instance, Member};
use bloodraven_telemetry::log::Level;
use bloodraven_wire::{GroupUid, Outstanding};
use snafu::{ResultExt as _, Snafu};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use store::{Found, Made};
use tell::Teller;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// How long the disk may take to give the store and the key at the start. Without them this sidecar does not know who it
/// is; a server that is open meanwhile is closed by its keeper when its permit is over.
const FILES_WITHIN: Duration = Duration::from_secs(10);

/// How many inputs of each kind may wait for the actor; it takes microseconds for each.
const WAITING: usize = 64;

/// Why a sidecar ended, or could not begin.
#[derive(Debug, Snafu)]
pub enum Error {
    /// The group's key cannot be read.
    #[snafu(transparent)]
    Key {
        /// Why not.
        source: keys::Error,
    },
    /// The operator account cannot be read.
    #[snafu(transparent)]
    Account {
        /// Why not.
        source: local::Unknown,
    },
    /// The disk does not answer.
    #[snafu(display("STATE_DIR, AUTHORITY_KEY_FILE: the disk gave no answer within {FILES_WITHIN:?}"))]
    DiskHangs,
    /// The port is taken, or the address is not this host's.
    #[snafu(display("LISTEN_ADDR: cannot listen on {address}: {source}"))]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// The system gives no randomness: neither store nor questions can be named.
    #[snafu(display("the system gives no randomness"))]
    NoRandomness,
    /// The thread of the store cannot be started.
    #[snafu(display("cannot start the store's thread: {source}"))]
    Thread {
        /// What the system said.
        source: std::io::Error,
    },
    /// The HTTP client cannot be made.
    #[snafu(display("cannot make an HTTP client: {source}"))]
    Client {
        /// What it said.
        source: reqwest::Error,
    },
    /// The actor ended by itself.
    #[snafu(transparent)]
    Actor {
        /// Why.
        source: actor::Error,
    },
    /// A part of the sidecar ended by itself.
    #[snafu(display("a part of the sidecar ended; it is started anew"))]
    PartEnded,
}

/// Runs the sidecar until `shutdown` is ready. Dropping it is like killing the process.
pub async fn run(config: Config, shutdown: impl Future<Output = ()>) -> Result<(), Error> {
    let config = Arc::new(config);
    let Files { keys, local, found } = read_files(&config).await?;
    let listener = TcpListener::bind(config.listen).await.context(ListenSnafu { address: config.listen })?;
    let Found { kept, made } = found;
    let me = Member::new(&config.site, &Instance::new(&config.pod_uid, &kept.id));
    let teller = Teller::new(&config, &me);
    tell_store(&teller, made.as_ref());

    let mut tasks = JoinSet::new();
    let (lane_ended, lane) = mpsc::channel(WAITING);
    let (disk_done, disk) = mpsc::channel(WAITING);
    let (keeper_said, said) = mpsc::channel(WAITING);
    let (outside, from_outside) = mpsc::channel(WAITING);
    let (keeper, talking) = keeper::Keeper::at(config.keeper_socket.clone(), keeper_said);
    tasks.spawn(talking);
    let outstanding = Arc::new(Mutex::new(Outstanding::default()));
    let volume = volume::Gauge::of(&config.state_dir);
    tasks.spawn(volume.clone().watch());
    let brain = Sidecar::start(me.clone(), kept.disk.clone(), clock::boot());
    let parts = Parts {
        brain,
        observed_at: kept.observed_at.clone(),
        lane: lane::Lane::new(Arc::clone(&local), keeper.clone(), lane_ended),
        keeper: keeper.clone(),
        outward: outward::Outward::new(Arc::clone(&config), me, keys.clone(), outside.clone()).context(ClientSnafu)?,
        teller: teller.clone(),
        outstanding: Arc::clone(&outstanding),
        volume: volume.clone(),
        writer: store::Writer::start(config.state_dir.clone(), kept, move |done| {
            // Gone only with the process that would want to know.
            let _ = disk_done.blocking_send(done);
        })
        .context(ThreadSnafu)?,
        config: Arc::clone(&config),
    };
    let group = GroupUid::new(&config.group_uid);
    let watched = (keys.clone(), Arc::clone(&local));
    let service = http::Service::new(group, keys, outside, outstanding, (local, keeper), teller.clone(), volume);
    tasks.spawn(http::serve(listener, Arc::new(service)));
    tasks.spawn(watch_files(watched.0, watched.1, teller));

    let inputs = Inputs { lane, disk, keeper: said, outside: from_outside };
    let actor = Actor::new(parts).run(inputs, shutdown);
    tokio::select! {
        biased;
        ended = actor => Ok(ended?),
        Some(_) = tasks.join_next() => PartEndedSnafu.fail(),
    }
}

/// What is read before anything else.
struct Files {
    keys: keys::KeyRing,
    local: Arc<local::Local>,
    found: Found,
}

/// Key, account and store, read in a thread of their own.
async fn read_files(config: &Arc<Config>) -> Result<Files, Error> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).ok().ok_or(Error::NoRandomness)?;
    let new_id = format!("{:032x}", u128::from_be_bytes(random));
    let config = Arc::clone(config);
    let reading = tokio::task::spawn_blocking(move || {
        let keys = keys::KeyRing::read(&config.key_file)?;
        let local = Arc::new(local::Local::new(config.mysql.clone())?);
        Ok(Files { keys, local, found: store::open(&config.state_dir, || new_id) })
    });
    match timeout(FILES_WITHIN, reading).await {
        Ok(Ok(read)) => read,
        Ok(Err(_)) | Err(_) => DiskHangsSnafu.fail(),
    }
}

fn tell_store(teller: &Teller, made: Option<&Made>) {
    match made {
        None => {}
        Some(Made::First) => teller.prose(Level::Info, "a new store: this is a new instance", None),
        Some(Made::Discarded(error)) => {
            teller.prose(Level::Error, "the store was discarded: this is a new instance", Some(error));
        }
    }
}

/// Looks after changed keys and accounts for as long as it is polled, with one thread at a time.
async fn watch_files(keys: keys::KeyRing, local: Arc<local::Local>, teller: Teller) {
    let mut look = tokio::time::interval(keys::LOOK_EVERY);
    look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        look.tick().await;
        let (keys, local) = (keys.clone(), Arc::clone(&local));
        let looked = tokio::task::spawn_blocking(move || (keys.look_again(), local.look_again()));
        // A panic there changes nothing either.
        let Ok((key, account)) = looked.await else { continue };
        match key {
            Ok(true) => teller.prose(Level::Info, "the group's key has changed", None),
            Ok(false) => {}
            Err(error) => teller.prose(Level::Warn, "the group's key stays as it was", Some(&error)),
        }
        if let Err(error) = account {
            teller.prose(Level::Warn, "the operator account stays as it was", Some(&error));
        }
    }
}

/// A lock whose holder never panics half-way.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
