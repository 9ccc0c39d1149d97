//! People at a server, and clients that nobody thought of: they open, close, write, lock, and stop appliers.
//!
//! In: a site and a [`Deed`]. Out: it is done; what has to be held is held by a guest until everything is healed. Must not:
//! use any right that somebody with root's password on that machine would not have.

use super::deeds::{APPLIER, mark};
use super::scene::Scene;
use crate::ledger::lookup::TABLE;
use crate::ledger::{SiteNumber, hand};
use crate::load::now;
use crate::script::Deed;
use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Error, OptsBuilder};
use std::future::Future;
use std::sync::PoisonError;
use std::time::Duration;
use tokio::time::{Instant, interval, timeout};

/// A person's statement on this machine; longer ones are a server that stands still.
const STATEMENT: Duration = Duration::from_secs(10);

/// How often a server that was opened by hand is looked at until it is closed.
const LOOK: Duration = Duration::from_millis(20);

/// A server that is closed again and again while somebody writes: so long it is opened again.
const PERSISTENT: Duration = Duration::from_secs(20);

/// More connections than any server here allows.
const MOST_CONNECTIONS: usize = 2000;

/// The server takes no more connections.
const TOO_MANY: u16 = 1040;

/// The server is read-only.
const READ_ONLY: u16 = 1290;

/// Where people write.
const NOTES: &str = "people.notes";

/// What makes that table.
const PREPARE: [&str; 2] = [
    "CREATE DATABASE IF NOT EXISTS people",
    "CREATE TABLE IF NOT EXISTS people.notes (id BIGINT AUTO_INCREMENT PRIMARY KEY, word VARCHAR(40) NOT NULL)",
];

pub(super) async fn perform(scene: &Scene, site: &str, deed: &Deed) -> Result<(), String> {
    match deed {
        Deed::Open => opening(scene, site, async { say(&mut root(scene, site).await?, OPEN).await }).await,
        Deed::Fence => say(&mut root(scene, site).await?, "SET GLOBAL super_read_only = ON").await,
        Deed::Write(count) => {
            opening(scene, site, write(scene, site, *count, "SET SESSION gtid_next = 'AUTOMATIC'")).await
        }
        Deed::WriteTagged(count) => {
            opening(scene, site, write(scene, site, *count, "SET SESSION gtid_next = 'AUTOMATIC:people'")).await
        }
        Deed::LockTables(time) => lock(scene, site, &format!("LOCK TABLES {NOTES} WRITE"), *time).await,
        Deed::BlockApplier(time) => lock(scene, site, &format!("LOCK TABLES {TABLE} READ"), *time).await,
        Deed::LongUpdate(time) => long_update(scene, site, *time).await,
        Deed::FillConnections => fill(scene, site).await,
        Deed::StopApplier => {
            say(&mut root(scene, site).await?, "STOP REPLICA SQL_THREAD").await?;
            mark(scene, site, APPLIER, true);
            Ok(())
        }
        Deed::DelayApplier(time) => {
            delay(scene, site, time.as_secs()).await?;
            mark(scene, site, APPLIER, true);
            Ok(())
        }
        Deed::StartApplier => {
            mark(scene, site, APPLIER, false);
            delay(scene, site, 0).await
        }
    }
}

/// What a person types who wants to write, whoever may.
const OPEN: &str = "SET GLOBAL read_only = OFF";

/// Root at the server's own machine.
async fn root(scene: &Scene, site: &str) -> Result<Conn, String> {
    connect(root_options(scene, site)?).await
}

fn root_options(scene: &Scene, site: &str) -> Result<OptsBuilder, String> {
    let path = scene.local.store().path("secrets").join("root").join("password");
    let password = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let socket = scene.local.socket(site).display().to_string();
    Ok(OptsBuilder::default().socket(Some(socket)).user(Some("root")).pass(Some(password.trim().to_owned())))
}

/// Does something that opens this server by hand. The book is told before, and somebody looks until it is closed again.
async fn opening<T>(scene: &Scene, site: &str, deed: impl Future<Output = T>) -> T {
    let number = scene.names.iter().position(|name| name == site).and_then(|at| u8::try_from(at).ok());
    let (Some(number), Ok(options)) = (number.map(SiteNumber), root_options(scene, site)) else { return deed.await };
    scene.load.book(|book| book.hand.opens(number, now()));
    let done = deed.await;
    let shared = scene.load.shared();
    scene.guests.lock().await.spawn(async move {
        let mut every = interval(LOOK);
        let closes = async {
            while read_closed(options.clone()).await != Ok(true) {
                every.tick().await;
            }
        };
        // One that is not closed by then is not excused any longer; the book knows.
        if timeout(Duration::from_micros(hand::MOST), closes).await.is_ok() {
            shared.book.lock().unwrap_or_else(PoisonError::into_inner).hand.closed(number, now());
        }
    });
    done
}

/// An application at the server's ordinary port.
async fn guest(scene: &Scene, site: &str) -> Result<Conn, Refused> {
    let at = scene.names.iter().position(|name| name == site).and_then(|at| scene.plan.sites.get(at));
    let address = at.ok_or_else(|| Refused::Otherwise(format!("{site} has no address")))?;
    let options = OptsBuilder::default()
        .ip_or_hostname(address.ip().to_string())
        .tcp_port(address.port())
        .prefer_socket(false)
        .user(Some(scene.plan.user.clone()))
        .pass(Some(scene.plan.password.clone()));
    match timeout(STATEMENT, Conn::new(options)).await {
        Ok(Ok(connection)) => Ok(connection),
        Ok(Err(Error::Server(error))) if error.code == TOO_MANY => Err(Refused::TooMany),
        Ok(Err(error)) => Err(Refused::Otherwise(error.to_string())),
        Err(_) => Err(Refused::Otherwise("no answer".to_owned())),
    }
}

/// Why there is no connection.
enum Refused {
    TooMany,
    Otherwise(String),
}

impl Refused {
    fn told(self) -> String {
        match self {
            Self::TooMany => "too many connections".to_owned(),
            Self::Otherwise(why) => why,
        }
    }
}

async fn connect(options: OptsBuilder) -> Result<Conn, String> {
    match timeout(STATEMENT, Conn::new(options)).await {
        Ok(connection) => connection.map_err(|error| error.to_string()),
        Err(_) => Err("no answer".to_owned()),
    }
}

async fn say(connection: &mut Conn, statement: &str) -> Result<(), String> {
    match timeout(STATEMENT, connection.query_drop(statement)).await {
        Ok(done) => done.map_err(|error| error.to_string()),
        Err(_) => Err(format!("no answer to {statement}")),
    }
}

/// Whether the server says of itself that it is read-only for everyone.
pub(super) async fn is_closed(scene: &Scene, site: &str) -> Result<(), String> {
    let closed = read_closed(root_options(scene, site)?).await?;
    if closed { Ok(()) } else { Err(format!("{site} is not closed")) }
}

async fn read_closed(options: OptsBuilder) -> Result<bool, String> {
    let mut connection = connect(options).await?;
    let answer = timeout(STATEMENT, connection.query_first("SELECT @@super_read_only")).await;
    let found: Option<bool> = answer.map_err(|_| "no answer".to_owned())?.map_err(|error| error.to_string())?;
    Ok(found == Some(true))
}

/// Writes rows, one transaction each, and opens the server as often as somebody closes it.
async fn write(scene: &Scene, site: &str, count: u32, session: &str) -> Result<(), String> {
    let mut statements: Vec<String> = Vec::new();
    let mut connection = root(scene, site).await?;
    let there = "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'people' AND table_name = 'notes'";
    let found: Option<u64> = connection.query_first(there).await.map_err(|error| error.to_string())?;
    if found != Some(1) {
        statements.extend(PREPARE.map(str::to_owned));
    }
    statements.extend((0..count).map(|_| format!("INSERT INTO {NOTES} (word) VALUES ('by hand')")));
    let until = Instant::now() + PERSISTENT;
    let (mut connection, mut next) = (Some(connection), statements.iter().peekable());
    while let Some(statement) = next.peek() {
        if Instant::now() >= until {
            return Err("the server is closed again and again".to_owned());
        }
        let mut open = match connection.take() {
            Some(open) => open,
            // Whoever closes a server may end sessions as well.
            None => match root(scene, site).await {
                Ok(open) => open,
                Err(_) => continue,
            },
        };
        let ended = async {
            open.query_drop(session).await?;
            open.query_drop(statement.as_str()).await
        };
        match timeout(STATEMENT, ended).await {
            Ok(Ok(())) => _ = next.next(),
            Ok(Err(Error::Server(error))) if error.code == READ_ONLY => {
                // A session that is ended meanwhile is made anew.
                if say(&mut open, OPEN).await.is_err() {
                    continue;
                }
            }
            // The session was ended before it could have an answer: nobody knows, and the count would be wrong.
            Ok(Err(error)) => return Err(error.to_string()),
            Err(_) => return Err("no answer".to_owned()),
        }
        connection = Some(open);
    }
    Ok(())
}

async fn lock(scene: &Scene, site: &str, statement: &str, time: Duration) -> Result<(), String> {
    let mut connection = guest(scene, site).await.map_err(Refused::told)?;
    say(&mut connection, statement).await?;
    scene.guests.lock().await.spawn(async move {
        tokio::time::sleep_until(Instant::now() + time).await;
        drop(connection);
    });
    Ok(())
}

async fn long_update(scene: &Scene, site: &str, time: Duration) -> Result<(), String> {
    let mut connection = guest(scene, site).await.map_err(Refused::told)?;
    let statement = format!("UPDATE {NOTES} SET word = CONCAT('slow', SLEEP({})) LIMIT 1", time.as_secs_f64());
    scene.guests.lock().await.spawn(async move {
        // Its end is not awaited by anyone: it is ended by the fence, by the heal, or by itself.
        let _ = timeout(time + STATEMENT, connection.query_drop(statement)).await;
    });
    Ok(())
}

async fn fill(scene: &Scene, site: &str) -> Result<(), String> {
    let mut held = Vec::new();
    while held.len() < MOST_CONNECTIONS {
        match guest(scene, site).await {
            Ok(connection) => held.push(connection),
            Err(Refused::TooMany) => {
                scene.guests.lock().await.spawn(async move {
                    std::future::pending::<()>().await;
                    drop(held);
                });
                return Ok(());
            }
            Err(other) => return Err(other.told()),
        }
    }
    Err(format!("{MOST_CONNECTIONS} connections are not enough to fill it"))
}

/// What is received is applied so many seconds later; what was received stays.
async fn delay(scene: &Scene, site: &str, seconds: u64) -> Result<(), String> {
    let mut connection = root(scene, site).await?;
    say(&mut connection, "STOP REPLICA SQL_THREAD").await?;
    say(&mut connection, &format!("CHANGE REPLICATION SOURCE TO SOURCE_DELAY = {seconds}")).await?;
    say(&mut connection, "START REPLICA SQL_THREAD").await
}
