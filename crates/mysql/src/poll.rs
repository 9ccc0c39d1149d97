//! Everything a server says of itself, in one round trip.
//!
//! In: a session. Out: a [`Reading`]; or the pair alone with the executed set. Must not: change anything, or wait for a
//! lock that a fence waits for.
//!
//! The executed set is read before the received one: what was received by then and is not executed yet shows, what is
//! said to be drained is drained. And it is read after what is being committed: nothing is missed on its way from the one to
//! the other.

use crate::guard::CLOCK;
use crate::reading::{Connections, Fault, Pair, ReadBack, Reading, SemiSync};
use crate::replica_status::{self, Status};
use crate::row::Columns;
use crate::schemas::OWN;
use crate::{Deadline, Error, Server, Session, quote};
use bloodraven_gtid::Uuid;
use mysql_async::Row;
use std::collections::BTreeMap;
use std::time::Duration;

/// The verb's name in errors.
const DOING: &str = "poll";

/// Status values of a poll.
const STATUS: &[&str] = &[
    "Uptime",
    "Threads_connected",
    "Connection_errors_max_connections",
    "Rpl_semi_sync_source_status",
    "Rpl_semi_sync_source_clients",
    "Rpl_semi_sync_replica_status",
];

/// Variables of a poll that exist only with a plugin.
const VARIABLES: &[&str] = &[
    "rpl_semi_sync_source_enabled",
    "rpl_semi_sync_source_timeout",
    "rpl_semi_sync_source_wait_point",
    "rpl_semi_sync_source_wait_for_replica_count",
    "rpl_semi_sync_replica_enabled",
];

/// Reads everything, over an open session.
pub async fn poll(session: &mut Session, deadline: Deadline) -> Result<Reading, Error> {
    let question = format!(
        "SELECT @@global.read_only, @@global.super_read_only, @@server_uuid, @@server_id, @@version, \
         @@global.gtid_owned, @@global.gtid_executed, @@global.gtid_purged, @@global.max_connections, \
         EXISTS(SELECT 1 FROM information_schema.schemata WHERE schema_name NOT IN ({own})), {CLOCK}; \
         SHOW REPLICA STATUS; \
         SELECT LAST_ERROR_NUMBER, LAST_ERROR_MESSAGE FROM performance_schema.replication_applier_status_by_worker \
         WHERE CHANNEL_NAME = '' AND LAST_ERROR_NUMBER <> 0 ORDER BY LAST_ERROR_TIMESTAMP LIMIT 1; \
         SELECT VARIABLE_NAME, VARIABLE_VALUE FROM performance_schema.global_status WHERE VARIABLE_NAME IN ({status}); \
         SELECT VARIABLE_NAME, VARIABLE_VALUE FROM performance_schema.global_variables \
         WHERE VARIABLE_NAME IN ({variables})",
        own = quote::list(OWN.iter().copied()),
        status = quote::list(STATUS.iter().copied()),
        variables = quote::list(VARIABLES.iter().copied()),
    );
    let sets = session.ask(DOING, &question, deadline).await?;
    read(&sets, session.place())
}

/// Both variables in one statement, then the executed set.
pub async fn read_back(session: &mut Session, deadline: Deadline) -> Result<ReadBack, Error> {
    const DOING: &str = "read the fence";
    let question = "SELECT @@global.read_only, @@global.super_read_only, @@server_uuid; SELECT @@global.gtid_executed";
    let sets = session.ask(DOING, question, deadline).await?;
    let mut rows = sets.iter().flatten();
    let (Some(first), Some(second)) = (rows.next(), rows.next()) else {
        return crate::error::UnreadableSnafu { place: session.place(), doing: DOING, what: "an empty answer" }.fail();
    };
    let (first, second) = (session.columns(DOING, first), session.columns(DOING, second));
    Ok(ReadBack {
        server_uuid: first.uuid(2, "server_uuid")?,
        pair: pair(first)?,
        executed: second.set(0, "gtid_executed")?,
    })
}

/// Polls one server again and again over a session that it keeps.
///
/// Nothing is tried twice: a session that broke since the last poll fails this one, and the next one connects anew.
#[derive(Debug)]
pub struct Poller {
    server: Server,
    session: Option<Session>,
}

impl Poller {
    /// Of that server.
    pub const fn new(server: Server) -> Self {
        Self { server, session: None }
    }

    /// Polls, connecting included.
    pub async fn poll(&mut self, deadline: Deadline) -> Result<Reading, Error> {
        // Taken out: a poll that is dropped half-way leaves no session behind.
        let mut session = match self.session.take() {
            Some(session) => session,
            None => Session::open(&self.server, deadline).await?,
        };
        let reading = poll(&mut session, deadline).await?;
        self.session = Some(session);
        Ok(reading)
    }

    /// The server that it polls.
    pub const fn server(&self) -> &Server {
        &self.server
    }

    /// Who answered last, while the session stands.
    pub fn uuid(&self) -> Option<Uuid> {
        self.session.as_ref().map(Session::uuid)
    }

    /// From now on that one (another address, another password).
    pub fn change(&mut self, server: Server) {
        if server != self.server {
            self.session = None;
            self.server = server;
        }
    }
}

fn pair(columns: Columns<'_>) -> Result<Pair, Error> {
    Ok(Pair { read_only: columns.flag(0, "read_only")?, super_read_only: columns.flag(1, "super_read_only")? })
}

fn read(sets: &[Vec<Row>], place: &str) -> Result<Reading, Error> {
    let at = |row| Columns { row, place, doing: DOING };
    let unreadable = |what: &str| crate::error::UnreadableSnafu { place, doing: DOING, what }.fail();
    let [facts, replica, worker, status, variables] = sets else { return unreadable("the number of answers") };
    let Some(facts) = facts.first().map(at) else { return unreadable("an empty answer") };
    let worker = worker.first().map(at).and_then(|columns| {
        let code = columns.maybe(0)?.parse().ok()?;
        Some(Fault { code, message: columns.maybe(1).unwrap_or_default() })
    });
    let statuses: Vec<Status> = replica.iter().map(by_name).collect();
    let replica = match replica_status::read(&statuses, worker.as_ref()) {
        Ok(replica) => replica,
        Err(column) => return unreadable(&column),
    };
    let values = pairs(status, place).chain(pairs(variables, place)).collect::<BTreeMap<_, _>>();
    let number = |name: &str| values.get(name).and_then(|value| value.parse::<u64>().ok());
    let Some(uptime) = number("uptime") else { return unreadable("Uptime") };
    Ok(Reading {
        server_uuid: facts.uuid(2, "server_uuid")?,
        server_id: facts.number(3, "server_id")?,
        version: facts.text(4, "version")?,
        uptime: Duration::from_secs(uptime),
        pair: pair(facts)?,
        committing: crate::owned::read(&facts.text(5, "gtid_owned")?),
        executed: facts.set(6, "gtid_executed")?,
        purged: facts.set(7, "gtid_purged")?,
        user_data: facts.flag(9, "user schemas")?,
        replica,
        semi_sync: semi_sync(&values),
        connections: Connections {
            used: number("threads_connected").unwrap_or_default(),
            most: facts.number(8, "max_connections")?,
            refused: number("connection_errors_max_connections").unwrap_or_default(),
        },
    })
}

fn semi_sync(values: &BTreeMap<String, String>) -> SemiSync {
    let is = |name: &str, text: &str| values.get(name).is_some_and(|value| value == text);
    let on = |name: &str| is(name, "ON");
    SemiSync {
        source_loaded: values.contains_key("rpl_semi_sync_source_enabled"),
        source_enabled: on("rpl_semi_sync_source_enabled"),
        source_active: on("rpl_semi_sync_source_status"),
        clients: values.get("rpl_semi_sync_source_clients").and_then(|text| text.parse().ok()).unwrap_or_default(),
        replica_loaded: values.contains_key("rpl_semi_sync_replica_enabled"),
        replica_enabled: on("rpl_semi_sync_replica_enabled"),
        replica_active: on("rpl_semi_sync_replica_status"),
        strict: is("rpl_semi_sync_source_wait_point", "AFTER_SYNC")
            && is("rpl_semi_sync_source_wait_for_replica_count", "1"),
        timeout: values
            .get("rpl_semi_sync_source_timeout")
            .and_then(|text| text.parse().ok())
            .map(Duration::from_millis),
    }
}

/// A row by lower-case column names, without its NULLs.
pub(crate) fn by_name(row: &Row) -> Status {
    let columns = Columns { row, place: "", doing: DOING };
    let names = row.columns_ref().iter().map(|column| column.name_str().to_ascii_lowercase());
    names.enumerate().filter_map(|(index, name)| Some((name, columns.maybe(index)?))).collect()
}

/// Rows of a name and a value.
fn pairs<'a>(rows: &'a [Row], place: &'a str) -> impl Iterator<Item = (String, String)> + 'a {
    rows.iter().filter_map(move |row| {
        let columns = Columns { row, place, doing: DOING };
        Some((columns.maybe(0)?.to_ascii_lowercase(), columns.maybe(1)?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn semi_sync_is_read_from_what_there_is() {
        let values = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect::<BTreeMap<_, _>>()
        };
        assert_eq!(semi_sync(&values(&[])), SemiSync::default());
        let source = semi_sync(&values(&[
            ("rpl_semi_sync_source_enabled", "ON"),
            ("rpl_semi_sync_source_status", "OFF"),
            ("rpl_semi_sync_source_clients", "2"),
            ("rpl_semi_sync_source_timeout", "10000"),
            ("rpl_semi_sync_source_wait_point", "AFTER_SYNC"),
            ("rpl_semi_sync_source_wait_for_replica_count", "1"),
        ]));
        assert!(source.source_loaded && source.source_enabled && !source.source_active && !source.replica_loaded);
        assert!(source.strict);
        let seen_before = ("rpl_semi_sync_source_wait_point", "AFTER_COMMIT");
        assert!(!semi_sync(&values(&[seen_before, ("rpl_semi_sync_source_wait_for_replica_count", "1")])).strict);
        assert_eq!((source.clients, source.timeout), (2, Some(Duration::from_secs(10))));
    }
}
