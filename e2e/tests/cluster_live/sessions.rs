//! The sessions of a group's servers: who comes from where, for what, and whether the line is encrypted.
//!
//! In: a stage whose group was applied. Out: every session that was seen from the first moment of each server on. Must not:
//! take a session that has not logged in yet for one: until then the line is plain.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use bloodraven_testbed::cluster::SITES;
use mysql_async::prelude::{FromRow, Queryable as _};
use mysql_async::{Conn, Error};
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::entrance::{Entrance, PATIENCE};
use super::stage::Stage;
use super::terms::{Login, OPERATOR};

/// A copy of an empty server takes a second, and is to be seen.
const EVERY: Duration = Duration::from_millis(50);

const QUESTION: &str = "SELECT PROCESSLIST_USER, PROCESSLIST_HOST, CONNECTION_TYPE, PROCESSLIST_COMMAND \
    FROM performance_schema.threads WHERE CONNECTION_TYPE IS NOT NULL AND PROCESSLIST_USER <> 'unauthenticated user'";

/// The kind of a session over an encrypted line, in the server's word.
pub(crate) const ENCRYPTED: &str = "SSL/TLS";

/// The kind of one on the server's own machine.
pub(crate) const LOCAL: &str = "Socket";

/// One that was seen.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Session {
    /// Whose server it is of.
    pub(crate) site: &'static str,
    pub(crate) user: String,
    /// The address of its client.
    pub(crate) from: String,
    pub(crate) kind: String,
    /// The server's word for what it does.
    pub(crate) does: String,
}

pub(crate) struct Sessions {
    seen: Arc<Mutex<BTreeSet<Session>>>,
    stop: Arc<AtomicBool>,
    lookers: Vec<JoinHandle<()>>,
}

impl Sessions {
    /// From the moment at which there is something to ask.
    pub(crate) fn watch(stage: &Stage) -> Self {
        let mut sessions = Self { seen: Arc::default(), stop: Arc::default(), lookers: Vec::new() };
        for site in SITES {
            let service = format!("mysql-orders-{site}-internal");
            stage.wait_until(&service, || stage.cluster.get(&stage.of_group(&["service", &service])).ok());
            let looker = Looker {
                site,
                at: stage.door_at(site),
                seen: Arc::clone(&sessions.seen),
                stop: Arc::clone(&sessions.stop),
            };
            sessions.lookers.push(std::thread::spawn(move || looker.run()));
        }
        sessions
    }

    pub(crate) fn stop(mut self) -> BTreeSet<Session> {
        self.stop.store(true, Ordering::Relaxed);
        for looker in self.lookers.drain(..) {
            looker.join().unwrap();
        }
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Sessions {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

struct Looker {
    site: &'static str,
    at: Entrance,
    seen: Arc<Mutex<BTreeSet<Session>>>,
    stop: Arc<AtomicBool>,
}

impl Looker {
    fn run(self) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut turn = interval(EVERY);
            turn.set_missed_tick_behavior(MissedTickBehavior::Delay);
            let mut conn = None;
            while !self.stop.load(Ordering::Relaxed) {
                turn.tick().await;
                conn = self.look(conn).await;
            }
        });
    }

    /// One look; the connection if it can be used again.
    async fn look(&self, conn: Option<Conn>) -> Option<Conn> {
        let mut conn = match conn {
            Some(conn) => conn,
            None => self.at.connect_as(OPERATOR).await?.ok()?,
        };
        let rows = timeout(PATIENCE, conn.query::<(String, Option<String>, String, Option<String>), _>(QUESTION)).await;
        let rows = rows.ok()?.ok()?;
        let sessions = rows.into_iter().map(|(user, from, kind, does)| Session {
            site: self.site,
            user,
            from: from.unwrap_or_default(),
            kind,
            does: does.unwrap_or_default(),
        });
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).extend(sessions);
        Some(conn)
    }
}

/// The first row of an answer; none: no answer, or no row.
pub(crate) fn ask<T: FromRow + Send + 'static>(at: &Entrance, login: Login, question: &str) -> Option<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut conn = at.connect_as(login).await?.ok()?;
        timeout(PATIENCE, conn.query_first(question)).await.ok()?.ok()?
    })
}

/// How a login ends.
pub(crate) fn refusal(at: &Entrance, login: Login) -> Option<Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { at.connect_as(login).await?.err() })
}
