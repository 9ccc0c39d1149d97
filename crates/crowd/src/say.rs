//! Statements and answers: what Bloodraven says to a server, and what a played one says to that.
//!
//! In: the text of one packet. Out: an answer for each statement, up to the first that is refused. Must not: guess. A
//! statement that is not known is refused with its text, so that a new one in the product shows at once.

use crate::clock;
use crate::server::{Replica, Server};

/// What a server answers to one statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Done.
    Done,
    /// Rows, NULL where there is none.
    Rows { columns: Vec<&'static str>, rows: Vec<Vec<Option<String>>> },
    /// Refused, with its number.
    Refused { code: u16, message: String },
}

/// What a statement is said about: one server among those of its group.
pub(crate) struct Said<'a> {
    /// Those of the group, by the names that replicas know them by.
    pub(crate) servers: Vec<(&'a str, &'a mut Server)>,
    /// Which one is spoken to.
    pub(crate) at: usize,
    /// The session's number.
    pub(crate) connection: u32,
    /// Accounts that there are.
    pub(crate) accounts: &'a [(String, String)],
}

/// `ER_WRONG_VALUE_FOR_TYPE`: how a guard refuses.
const GUARD: u16 = 1411;

/// `ER_OPTION_PREVENTS_STATEMENT`: how a closed server refuses a write.
const CLOSED: u16 = 1290;

/// `ER_PARSE_ERROR`.
const UNKNOWN: u16 = 1064;

impl Said<'_> {
    /// Answers a packet, statement after statement.
    pub(crate) fn all(&mut self, text: &str) -> Vec<Answer> {
        let mut answers = Vec::new();
        for statement in statements(text) {
            let answer = self.one(statement);
            let stops = matches!(answer, Answer::Refused { .. });
            answers.push(answer);
            if stops {
                break;
            }
        }
        answers
    }

    fn server(&mut self) -> &mut Server {
        self.servers[self.at].1
    }

    fn one(&mut self, statement: &str) -> Answer {
        let begins = |words: &str| statement.get(..words.len()).is_some_and(|it| it.eq_ignore_ascii_case(words));
        if begins("DO IF(") {
            return self.guard(statement);
        }
        if begins("SELECT") || begins("SHOW") {
            return self.question(statement);
        }
        if begins("SET SESSION") || begins("ALTER USER") || begins("KILL ") {
            return Answer::Done;
        }
        if begins("SET GLOBAL") {
            return self.set(statement);
        }
        if begins("CHANGE REPLICATION SOURCE TO") {
            return self.point(statement);
        }
        let starts = begins("START REPLICA");
        if starts || begins("STOP REPLICA") {
            // One of the two, if it is named; else both.
            let (receiver, applier) = (statement.contains("IO_THREAD"), statement.contains("SQL_THREAD"));
            if let Some(replica) = &mut self.server().replica {
                replica.receiver = if applier { replica.receiver } else { starts };
                replica.applier = if receiver { replica.applier } else { starts };
            }
            return Answer::Done;
        }
        // The write probe's own table is all that anybody writes here.
        if statement.contains("bloodraven.heartbeat") || begins("CREATE SCHEMA IF NOT EXISTS bloodraven") {
            return self.write();
        }
        if begins("RESET REPLICA ALL") {
            self.server().replica = None;
            return Answer::Done;
        }
        unknown(statement)
    }

    fn write(&mut self) -> Answer {
        if self.server().is_open() {
            return Answer::Done;
        }
        let message = "the server is running with the --super-read-only option".to_owned();
        Answer::Refused { code: CLOSED, message }
    }

    /// The conditions that stand before a change, as the product writes them.
    fn guard(&mut self, statement: &str) -> Answer {
        let text = statement.split("UUID_TO_BIN('").nth(1).and_then(|rest| rest.split('\'').next()).unwrap_or_default();
        let server = self.server();
        let holds = if text.ends_with("too late") {
            let until = statement.rsplit(" < ").next().and_then(|rest| rest.split(',').next());
            let in_time = until.and_then(|until| until.trim().parse::<i64>().ok());
            statement.contains(&server.uuid) && in_time.is_some_and(|until| clock::micros_since_2000() < until)
        } else if text.ends_with("it is not closed") {
            server.read_only && server.super_read_only
        } else if text.ends_with("the receiver is off") {
            server.replica.as_ref().is_some_and(|replica| replica.receiver)
        } else {
            return unknown(statement);
        };
        let message = format!("Incorrect string value: '{text}' for function uuid_to_bin");
        if holds { Answer::Done } else { Answer::Refused { code: GUARD, message } }
    }

    fn set(&mut self, statement: &str) -> Answer {
        let on = |name: &str| Some(value(statement, name)?.eq_ignore_ascii_case("ON"));
        let server = self.server();
        let mut known = false;
        for (name, field) in [
            ("read_only", &mut server.read_only as &mut bool),
            ("super_read_only", &mut server.super_read_only),
            ("rpl_semi_sync_source_enabled", &mut server.source_waits),
            ("rpl_semi_sync_replica_enabled", &mut server.replica_acknowledges),
        ] {
            if let Some(on) = on(name) {
                (*field, known) = (on, true);
            }
        }
        if let Some(timeout) = value(statement, "rpl_semi_sync_source_timeout") {
            server.source_timeout = timeout.parse().unwrap_or(server.source_timeout);
        }
        if known { Answer::Done } else { unknown(statement) }
    }

    fn point(&mut self, statement: &str) -> Answer {
        let text = |name: &str| value(statement, name).map(|value| value.trim_matches('\'').to_owned());
        let Some(host) = text("SOURCE_HOST") else {
            // A delay or a password of a channel that is there.
            return Answer::Done;
        };
        let port = text("SOURCE_PORT").and_then(|port| port.parse().ok()).unwrap_or(3306);
        let (user, password) = (text("SOURCE_USER").unwrap_or_default(), text("SOURCE_PASSWORD").unwrap_or_default());
        self.server().replica = Some(Replica { host, port, user, password, receiver: false, applier: false });
        Answer::Done
    }

    fn question(&mut self, statement: &str) -> Answer {
        let has = |words: &str| statement.contains(words);
        let clock = || clock::micros_since_2000().to_string();
        if has("@@global.gtid_owned") {
            let server = self.server();
            let flag = |on: bool| u8::from(on).to_string();
            let row = vec![
                flag(server.read_only),
                flag(server.super_read_only),
                server.uuid.clone(),
                server.number.to_string(),
                "9.7.0-double".to_owned(),
                String::new(),
                server.executed.to_string(),
                String::new(),
                "151".to_owned(),
                "1".to_owned(),
                clock(),
            ];
            return row_of(row);
        }
        if has("SHOW REPLICA STATUS") {
            return self.replica_status();
        }
        if has("replication_applier_status_by_worker") {
            return Answer::Rows { columns: vec!["LAST_ERROR_NUMBER", "LAST_ERROR_MESSAGE"], rows: Vec::new() };
        }
        if has("performance_schema.global_status") {
            return self.status();
        }
        if has("performance_schema.global_variables") {
            return self.variables();
        }
        if has("@@server_uuid, CONNECTION_ID()") {
            let row = vec![self.server().uuid.clone(), self.connection.to_string(), clock()];
            return row_of(row);
        }
        if has("SELECT @@global.read_only, @@global.super_read_only, @@server_uuid") {
            let server = self.server();
            let flag = |on: bool| u8::from(on).to_string();
            return row_of(vec![flag(server.read_only), flag(server.super_read_only), server.uuid.clone()]);
        }
        if has("@@global.gtid_executed, @@global.gtid_purged") {
            return row_of(vec![self.server().executed.to_string(), String::new()]);
        }
        if has("SELECT @@global.gtid_executed") {
            return row_of(vec![self.server().executed.to_string()]);
        }
        if has("WAIT_FOR_EXECUTED_GTID_SET") {
            return row_of(vec!["0".to_owned()]);
        }
        // Of the one row that the write probe changes.
        if has("SELECT ROW_COUNT()") {
            return row_of(vec!["1".to_owned()]);
        }
        if has("information_schema.events") {
            return Answer::Rows { columns: vec!["EVENT_SCHEMA", "EVENT_NAME"], rows: Vec::new() };
        }
        if has("SELECT COUNT(*) FROM performance_schema.processlist") {
            return row_of(vec!["0".to_owned()]);
        }
        if has("performance_schema.processlist") || has("session_connect_attrs") {
            return Answer::Rows { columns: vec!["ID"], rows: Vec::new() };
        }
        if has("FROM mysql.user") {
            let named = |user: &&(String, String)| statement.contains(&format!("'{}'", user.0));
            let rows = self.accounts.iter().filter(named);
            let rows = rows.map(|(user, _)| vec![Some(user.clone()), Some("0".to_owned())]).collect();
            return Answer::Rows { columns: vec!["User", "second"], rows };
        }
        if has("mysql.slave_master_info") {
            let replica = self.server().replica.clone();
            let rows = replica.into_iter().map(|it| vec![Some(it.user), Some(it.password)]).collect();
            return Answer::Rows { columns: vec!["User_name", "User_password"], rows };
        }
        unknown(statement)
    }

    fn replica_status(&mut self) -> Answer {
        let columns = vec![
            "Channel_Name",
            "Source_Host",
            "Source_Port",
            "Source_UUID",
            "Replica_IO_Running",
            "Replica_SQL_Running",
            "Last_IO_Errno",
            "Last_IO_Error",
            "Last_SQL_Errno",
            "Last_SQL_Error",
            "Retrieved_Gtid_Set",
            "SQL_Delay",
            "Seconds_Behind_Source",
            "Auto_Position",
        ];
        let Some(replica) = self.server().replica.clone() else { return Answer::Rows { columns, rows: Vec::new() } };
        let source = self.servers.iter().find(|(host, _)| *host == replica.host).map(|(_, server)| &**server);
        let is_up = source.is_some_and(|source| source.start.is_some());
        let (receiver, fault) = match (replica.receiver, is_up) {
            (true, true) => ("Yes", ("0", String::new())),
            (true, false) => ("Connecting", ("2003", format!("error connecting to source '{}'", replica.host))),
            (false, _) => ("No", ("0", String::new())),
        };
        let some = |text: &str| Some(text.to_owned());
        let row = vec![
            some(""),
            Some(replica.host.clone()),
            Some(replica.port.to_string()),
            some(source.map_or("", |source| &source.uuid)),
            some(receiver),
            some(if replica.applier { "Yes" } else { "No" }),
            some(fault.0),
            Some(fault.1),
            some("0"),
            some(""),
            some(""),
            some("0"),
            (receiver == "Yes" && replica.applier).then(|| "0".to_owned()),
            some("1"),
        ];
        Answer::Rows { columns, rows: vec![row] }
    }

    fn status(&mut self) -> Answer {
        let host = self.servers[self.at].0;
        let follows = |(_, server): &&(&str, &mut Server)| {
            let to_us = |replica: &Replica| replica.receiver && replica.host == host;
            server.replica_acknowledges && server.start.is_some() && server.replica.as_ref().is_some_and(to_us)
        };
        let clients = self.servers.iter().filter(follows).count();
        let server = self.server();
        let receives = server.replica.as_ref().is_some_and(|replica| replica.receiver);
        named(&[
            ("Uptime", "3600"),
            ("Threads_connected", "3"),
            ("Connection_errors_max_connections", "0"),
            ("Rpl_semi_sync_source_status", on_off(server.source_waits && clients > 0)),
            ("Rpl_semi_sync_source_clients", &clients.to_string()),
            ("Rpl_semi_sync_replica_status", on_off(server.replica_acknowledges && receives)),
        ])
    }

    fn variables(&mut self) -> Answer {
        let server = self.server();
        named(&[
            ("rpl_semi_sync_source_enabled", on_off(server.source_waits)),
            ("rpl_semi_sync_source_timeout", &server.source_timeout.to_string()),
            ("rpl_semi_sync_source_wait_point", "AFTER_SYNC"),
            ("rpl_semi_sync_source_wait_for_replica_count", "1"),
            ("rpl_semi_sync_replica_enabled", on_off(server.replica_acknowledges)),
        ])
    }
}

/// Whether a packet is a poll's.
pub(crate) fn is_poll(text: &str) -> bool {
    text.starts_with("SELECT @@global.read_only, @@global.super_read_only, @@server_uuid, @@server_id")
}

const fn on_off(on: bool) -> &'static str {
    if on { "ON" } else { "OFF" }
}

fn row_of(values: Vec<String>) -> Answer {
    let columns = vec!["c"; values.len()];
    Answer::Rows { columns, rows: vec![values.into_iter().map(Some).collect()] }
}

fn named(pairs: &[(&str, &str)]) -> Answer {
    let row = |(name, value): &(&str, &str)| vec![Some((*name).to_owned()), Some((*value).to_owned())];
    Answer::Rows { columns: vec!["VARIABLE_NAME", "VARIABLE_VALUE"], rows: pairs.iter().map(row).collect() }
}

fn unknown(statement: &str) -> Answer {
    let begin: String = statement.chars().take(120).collect();
    Answer::Refused { code: UNKNOWN, message: format!("this double does not know: {begin}") }
}

/// The value that a statement gives a name, up to the next comma or space.
fn value<'a>(statement: &'a str, name: &str) -> Option<&'a str> {
    let mut rest = statement;
    while let Some(at) = rest.find(name) {
        let before = rest[..at].chars().next_back();
        let after = rest[at + name.len()..].trim_start();
        let is_whole = before.is_none_or(|letter| !letter.is_ascii_alphanumeric() && letter != '_');
        if let Some(value) = after.strip_prefix('=').filter(|_| is_whole) {
            let value = value.trim_start();
            let end = value.find([',', ' ']).unwrap_or(value.len());
            return Some(&value[..end]);
        }
        rest = &rest[at + name.len()..];
    }
    None
}

/// The statements of a packet: parted by semicolons that stand in no text.
fn statements(text: &str) -> Vec<&str> {
    let (mut found, mut from, mut quoted, mut escaped) = (Vec::new(), 0, false, false);
    for (at, letter) in text.char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '\'' => quoted = !quoted,
            ';' if !quoted => {
                found.push(text[from..at].trim());
                from = at + 1;
            }
            _ => {}
        }
    }
    found.push(text[from..].trim());
    found.retain(|statement| !statement.is_empty());
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(server: &mut Server, text: &str) -> Vec<Answer> {
        let accounts = [("op".to_owned(), "pw".to_owned())];
        Said { servers: vec![("iad", server)], at: 0, connection: 7, accounts: &accounts }.all(text)
    }

    #[test]
    fn a_packet_is_parted_outside_of_texts() {
        assert_eq!(statements(r"A; B 'x;\';y'; C"), ["A", r"B 'x;\';y'", "C"]);
    }

    #[test]
    fn a_guard_that_does_not_hold_stops_the_packet() {
        let mut server = Server::new(1, bloodraven_gtid::GtidSet::new());
        server.open();
        let fence = "SET GLOBAL read_only = ON, GLOBAL super_read_only = ON";
        let guard = |uuid: &str, until: i64| {
            format!(
                "DO IF(@@server_uuid = '{uuid}' AND NOW < {until}, 0, UUID_TO_BIN('bloodraven: too late')); {fence}"
            )
        };
        let uuid = server.uuid.clone();
        for (uuid, until, holds) in [(uuid.as_str(), i64::MAX, true), (&uuid, 1, false), ("another", i64::MAX, false)] {
            server.open();
            let answers = ask(&mut server, &guard(uuid, until));
            assert_eq!(answers.len(), if holds { 2 } else { 1 }, "{uuid} {until}");
            assert_eq!(server.is_open(), !holds, "{uuid} {until}");
        }
    }

    #[test]
    fn a_replica_is_pointed_started_and_cut() {
        let mut server = Server::new(1, bloodraven_gtid::GtidSet::new());
        ask(
            &mut server,
            "CHANGE REPLICATION SOURCE TO SOURCE_HOST = 'mysql-g-iad', SOURCE_PORT = 3306, SOURCE_USER = 'repl', \
             SOURCE_PASSWORD = 'r' FOR CHANNEL ''",
        );
        ask(&mut server, "START REPLICA FOR CHANNEL ''; STOP REPLICA IO_THREAD FOR CHANNEL ''");
        let replica = server.replica.clone().unwrap();
        assert_eq!((replica.host.as_str(), replica.receiver, replica.applier), ("mysql-g-iad", false, true));
        ask(&mut server, "RESET REPLICA ALL FOR CHANNEL ''");
        assert_eq!(server.replica, None);
    }

    #[test]
    fn the_write_probe_is_taken_where_writes_are() {
        let mut server = Server::new(1, bloodraven_gtid::GtidSet::new());
        let probe = "SET SESSION sql_log_bin = 0; UPDATE bloodraven.heartbeat SET beats = beats + 1 WHERE id = 1; \
                     SELECT ROW_COUNT()";
        let closed = ask(&mut server, probe);
        assert!(matches!(&closed[..], [Answer::Done, Answer::Refused { code: CLOSED, .. }]), "{closed:?}");
        server.open();
        assert_eq!(ask(&mut server, probe), [Answer::Done, Answer::Done, row_of(vec!["1".to_owned()])]);
    }

    #[test]
    fn what_is_not_known_is_refused_by_name() {
        let mut server = Server::new(1, bloodraven_gtid::GtidSet::new());
        let answers = ask(&mut server, "DROP SCHEMA shop");
        assert!(matches!(&answers[..], [Answer::Refused { code: 1064, message }] if message.contains("DROP SCHEMA")));
    }
}
