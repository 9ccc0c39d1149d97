//! One connection to one server.
//!
//! In: a server and a deadline; then statements of this crate's verbs. Out: rows. Must not: be used again after a call
//! that timed out, broke or was dropped half-way; leave a statement running that nobody waits for; take a statement from
//! outside this crate.

use crate::error::{
    ConnectSnafu, LoginRefusedSnafu, LostSnafu, ServerSnafu, TimedOutSnafu, TooLateSnafu, UnreadableSnafu,
};
use crate::row::Columns;
use crate::{Account, Deadline, Error, Secret, Server, Wanted, driver, guard, sessions};
use bloodraven_gtid::Uuid;
use driver::Trouble;
use mysql_async::{Conn, Row};
use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// How long ending a statement that was given up may take: a server that answers needs milliseconds, and one that does
/// not answer is not waited for.
const REAP_WITHIN: Duration = Duration::from_secs(2);

/// What every session sets for itself before anything else: literals as [`crate::quote`] writes them, no transaction left
/// open, and no end by an idle time that an admin set for applications.
const MANNERS: &str = "SET SESSION sql_mode = '', autocommit = 1, wait_timeout = 3600";

/// `ER_CON_COUNT_ERROR`, `ER_ACCESS_DENIED_ERROR` and their kin: the server answered the login, and refused it. A full
/// server (1040) is not among them.
const REFUSED_LOGINS: &[u16] = &[
    1044, // no right to the schema
    1045, // access denied
    1130, // host not allowed
    1227, // no right to the administrators' port
    1251, // authentication protocol not supported
    1396, // no such account
    1698, // access denied, no password
    1820, // password must be reset
    1862, // password expired
    3118, // account locked
    3955, // locked after failed logins
    4058, // denied by multi-factor settings
];

/// Codes whose texts are known not to repeat a statement: what they say helps. Of all others about a statement that holds a
/// password only the number is told.
const HARMLESS: &[u16] = &[
    1193, // unknown system variable (a plugin is missing)
    1198, 3081, 3082, 3083, // replication threads run
    1200, 1201, 1794, 1872, // replication metadata
    1227, // no right
    1290, // fenced
    1317, // interrupted
    1396, // no such account
    1524, // a plugin is missing
    1819, // password policy
    3707, // no supervisor to restart it
    3862, 3863, 3864, 3865, 3866, 3867, 3868, 3869, 3870, 3871, 3872, 3873, // clone
];

/// A session's name on the server: the number alone would mean another one after a restart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The server's number for it.
    pub connection: u64,
    /// What it said about itself when it connected; never used twice.
    pub token: String,
}

/// A connection to a server that said who it is.
pub struct Session {
    conn: Option<Conn>,
    server: Server,
    /// The one of the server's accounts that was let in.
    account: Account,
    place: String,
    uuid: Uuid,
    mark: Mark,
    /// The server's clock, and when its answer was here.
    clock: (i64, Instant),
    /// A statement that changes something was sent, and its end was not seen.
    in_flight: bool,
}

impl Session {
    /// Connects, logs in, and asks the server who it is. Where the login is refused, those with earlier accounts follow; the
    /// first refusal is the one that is told, also when there was no time left for the others: who refuses has answered.
    pub async fn open(server: &Server, deadline: Deadline) -> Result<Self, Error> {
        let first = match Self::open_as(server, &server.account, deadline).await {
            Err(refused) if refused.is_login() => refused,
            opened => return opened,
        };
        for account in &server.earlier {
            if let Ok(opened) = Self::open_as(server, account, deadline).await {
                return Ok(opened);
            }
        }
        Err(first)
    }

    /// Logs in with that account alone.
    pub(crate) async fn open_as(server: &Server, account: &Account, deadline: Deadline) -> Result<Self, Error> {
        let (place, token) = (server.place(), token());
        let mut conn = match timeout_at(deadline.instant(), driver::connect(server, account, &token)).await {
            Ok(Ok(conn)) => conn,
            Ok(Err(trouble)) => return Err(connect_error(&place, &trouble)),
            Err(_) => return TimedOutSnafu { place, doing: "connect" }.fail(),
        };
        let hello = format!("{MANNERS}; SELECT @@server_uuid, CONNECTION_ID(), {}", guard::CLOCK);
        let answer = timeout_at(deadline.instant(), driver::exchange(&mut conn, &hello)).await;
        let received = Instant::now();
        let sets = match answer {
            Ok(Ok(sets)) => sets,
            Ok(Err(trouble)) => {
                driver::close(conn);
                return Err(connect_error(&place, &trouble));
            }
            Err(_) => {
                driver::close(conn);
                return TimedOutSnafu { place, doing: "connect" }.fail();
            }
        };
        match read_hello(&sets, &place) {
            Ok((uuid, connection, clock)) => Ok(Self {
                conn: Some(conn),
                server: server.clone(),
                account: account.clone(),
                place,
                uuid,
                mark: Mark { connection, token },
                clock: (clock, received),
                in_flight: false,
            }),
            Err(error) => {
                driver::close(conn);
                Err(error)
            }
        }
    }

    /// Who answers.
    pub const fn uuid(&self) -> Uuid {
        self.uuid
    }

    /// Its name on the server.
    pub const fn mark(&self) -> &Mark {
        &self.mark
    }

    /// Where it is connected to.
    pub const fn server(&self) -> &Server {
        &self.server
    }

    /// Who is logged in.
    pub const fn account(&self) -> &Account {
        &self.account
    }

    /// Since when.
    pub const fn since(&self) -> Instant {
        self.clock.1
    }

    /// `host:port`.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Whether it can still be used.
    pub const fn is_usable(&self) -> bool {
        self.conn.is_some()
    }

    /// Asks something that changes nothing. The rows of each statement.
    pub(crate) async fn ask(
        &mut self,
        doing: &'static str,
        statements: &str,
        deadline: Deadline,
    ) -> Result<Vec<Vec<Row>>, Error> {
        // Taken out while it is in use: a call that is dropped half-way takes it along, and the session is over.
        let Some(mut conn) = self.conn.take().map(Taken::new) else {
            return LostSnafu { place: &self.place, doing, why: "an earlier call on it was given up" }.fail();
        };
        match timeout_at(deadline.instant(), driver::exchange(conn.get(), statements)).await {
            Err(_) => TimedOutSnafu { place: &self.place, doing }.fail(),
            Ok(Ok(sets)) => {
                self.conn = conn.give_back();
                Ok(sets)
            }
            Ok(Err(trouble)) => {
                let (error, usable) = call_error(&self.place, doing, &trouble);
                if usable {
                    self.conn = conn.give_back();
                }
                Err(error)
            }
        }
    }

    /// Asks something whose answer has one row.
    pub(crate) async fn ask_row(
        &mut self,
        doing: &'static str,
        statement: &str,
        deadline: Deadline,
    ) -> Result<Row, Error> {
        let sets = self.ask(doing, statement, deadline).await?;
        let row = sets.into_iter().flatten().next();
        row.map_or_else(|| UnreadableSnafu { place: &self.place, doing, what: "an empty answer" }.fail(), Ok)
    }

    pub(crate) fn columns<'a>(&'a self, doing: &'static str, row: &'a Row) -> Columns<'a> {
        Columns { row, place: &self.place, doing }
    }

    /// Changes something on the server that is meant: the guard and the statements, in one packet.
    pub(crate) async fn change(
        &mut self,
        doing: &'static str,
        wanted: Wanted,
        statements: &str,
        deadline: Deadline,
    ) -> Result<Vec<Vec<Row>>, Error> {
        wanted.check(&self.place, self.uuid)?;
        let packet = format!("{}; {statements}", guard::statement(self.uuid, self.clock_at(deadline)));
        self.send_change(doing, &packet, deadline).await
    }

    /// [`Self::change`] for one statement that holds passwords: sent alone, and hardly a word of the server's answer is
    /// passed on.
    pub(crate) async fn change_in_secret(
        &mut self,
        doing: &'static str,
        wanted: Wanted,
        statement: &str,
        secrets: &[&Secret],
        deadline: Deadline,
    ) -> Result<(), Error> {
        wanted.check(&self.place, self.uuid)?;
        match self.send_change(doing, statement, deadline).await {
            Ok(_) => Ok(()),
            Err(Error::Server { place, doing, code, message }) => {
                Err(Error::Server { place, doing, code, message: without(code, &message, secrets) })
            }
            Err(error) => Err(error),
        }
    }

    async fn send_change(
        &mut self,
        doing: &'static str,
        packet: &str,
        deadline: Deadline,
    ) -> Result<Vec<Vec<Row>>, Error> {
        let usable = self.is_usable();
        self.in_flight = usable;
        let outcome = self.ask(doing, packet, deadline).await;
        // A refusal is an end as good as any; without an answer the statement may run on.
        if self.is_usable() || !usable {
            self.in_flight = false;
        }
        outcome
    }

    /// The deadline by the server's clock, rather early than late: its clock was read before its answer was here.
    fn clock_at(&self, deadline: Deadline) -> i64 {
        let (server, here) = self.clock;
        let ahead = deadline.instant().saturating_duration_since(here);
        server.saturating_add(i64::try_from(ahead.as_micros()).unwrap_or(i64::MAX))
    }

    /// Whether a statement that changes something may still run on the server.
    pub(crate) const fn may_run_on(&self) -> bool {
        self.in_flight
    }

    /// The session was seen gone on the server: nothing of it can run on.
    pub(crate) const fn is_over(&mut self) {
        self.in_flight = false;
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Some(conn) = self.conn.take() {
            driver::close(conn);
        }
        if !self.in_flight {
            return;
        }
        // Whoever waited has given up, perhaps was cancelled: what still runs is ended over another connection, once.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let (server, uuid, mark) = (self.server.clone(), self.uuid, self.mark.clone());
            runtime.spawn(async move {
                let _ = sessions::end_marked(&server, Wanted::Only(uuid), &mark, Deadline::within(REAP_WITHIN)).await;
            });
        }
    }
}

/// Not the driver's own words: they hold the password.
impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Session");
        shown.field("server", &self.server).field("uuid", &self.uuid).field("mark", &self.mark);
        shown.field("usable", &self.is_usable()).field("in_flight", &self.in_flight).finish_non_exhaustive()
    }
}

/// A connection in use. Closed at once when it is not given back.
struct Taken(Option<Conn>);

impl Taken {
    const fn new(conn: Conn) -> Self {
        Self(Some(conn))
    }

    #[expect(clippy::expect_used, reason = "it is there from `new` until `give_back`, which takes `self`")]
    fn get(&mut self) -> &mut Conn {
        self.0.as_mut().expect("a connection that was not given back")
    }

    fn give_back(mut self) -> Option<Conn> {
        self.0.take()
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        if let Some(conn) = self.0.take() {
            driver::close(conn);
        }
    }
}

/// A word that no other session of any process uses.
fn token() -> String {
    static PROCESS: OnceLock<u64> = OnceLock::new();
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let process = PROCESS.get_or_init(|| RandomState::new().hash_one("process"));
    format!("{process:016x}-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

fn read_hello(sets: &[Vec<Row>], place: &str) -> Result<(Uuid, u64, i64), Error> {
    let Some(row) = sets.iter().flatten().next() else {
        return UnreadableSnafu { place, doing: "connect", what: "an empty answer" }.fail();
    };
    let columns = Columns { row, place, doing: "connect" };
    Ok((columns.uuid(0, "server_uuid")?, columns.number(1, "the connection's number")?, columns.number(2, "the time")?))
}

fn connect_error(place: &str, trouble: &Trouble) -> Error {
    match trouble {
        Trouble::Driver(mysql_async::Error::Server(error)) if REFUSED_LOGINS.contains(&error.code) => {
            LoginRefusedSnafu { place, code: error.code, why: &error.message }.build()
        }
        Trouble::Driver(mysql_async::Error::Server(error)) => {
            ServerSnafu { place, doing: "connect", code: error.code, message: &error.message }.build()
        }
        other => ConnectSnafu { place, why: said(other) }.build(),
    }
}

/// The error of a call, and whether the connection is still good.
fn call_error(place: &str, doing: &'static str, trouble: &Trouble) -> (Error, bool) {
    match trouble {
        Trouble::Driver(mysql_async::Error::Server(error)) if guard::is_refusal(error.code, &error.message) => {
            (TooLateSnafu { place, doing }.build(), true)
        }
        Trouble::Driver(mysql_async::Error::Server(error)) => {
            (ServerSnafu { place, doing, code: error.code, message: &error.message }.build(), true)
        }
        other => (LostSnafu { place, doing, why: said(other) }.build(), false),
    }
}

fn said(trouble: &Trouble) -> String {
    match trouble {
        Trouble::Driver(error) => error.to_string(),
        Trouble::Panicked => "the driver did not understand the server's answer".to_owned(),
        Trouble::TooMuch => "the server answered with more rows than were asked for".to_owned(),
    }
}

/// The server's words about a statement that holds passwords.
fn without(code: u16, message: &str, secrets: &[&Secret]) -> String {
    let tells = secrets.iter().any(|secret| !secret.reveal().is_empty() && message.contains(secret.reveal()));
    if HARMLESS.contains(&code) && !tells {
        message.to_owned()
    } else {
        "the server's words are left out, they may repeat a password".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_about_a_statement_with_a_password_are_passed_on_only_when_they_cannot_hold_it() {
        let secret = Secret::new("Tr0ub4dor&3");
        let left_out = "the server's words are left out, they may repeat a password";
        for (code, message, expect) in [
            (3081, "This operation cannot be performed with running replication threads", None),
            (1064, "You have an error in your SQL syntax near 'dor&3''", Some(left_out)),
            (1470, "String 'Tr0ub4dor&3' is too long", Some(left_out)),
            (3862, "Clone Donor Error: 1045 : Access denied for user 'repl'", None),
            (3862, "Clone Donor Error: Tr0ub4dor&3", Some(left_out)),
        ] {
            assert_eq!(without(code, message, &[&secret]), expect.unwrap_or(message), "{code}");
        }
        assert_eq!(without(3081, "fine", &[&Secret::new("")]), "fine");
    }

    #[test]
    fn refused_logins_are_told_from_other_troubles() {
        let server = |code: u16| {
            let error = mysql_async::ServerError { code, message: "no".into(), state: "HY000".into() };
            connect_error("h:1", &Trouble::Driver(mysql_async::Error::Server(error)))
        };
        assert!(server(1045).is_login() && server(3118).is_login());
        assert!(matches!(server(1040), Error::Server { code: 1040, .. }), "a full server is not a wrong password");
        assert!(matches!(connect_error("h:1", &Trouble::Panicked), Error::Connect { .. }));
    }

    /// It answers the first connection with a refusal, and no other with anything.
    #[test]
    fn who_refuses_has_answered_also_when_the_next_login_gets_no_answer() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let refusing = std::thread::spawn(move || {
            let (mut first, _) = listener.accept().expect("a first connection");
            let refusal = [&[0xff, 0x15, 0x04][..], b"#28000no"].concat();
            let length = u8::try_from(refusal.len()).expect("a short packet");
            std::io::Write::write_all(&mut first, &[&[length, 0, 0, 0][..], &refusal].concat()).expect("written");
            // Held until the other side goes.
            let (mut second, _) = listener.accept().expect("a second connection");
            let _ = std::io::Read::read(&mut second, &mut [0; 1]);
        });
        let account = |password: &str| Account::new("ops".to_owned(), password);
        let server = Server::new("127.0.0.1", port, account("new")).with_earlier(vec![account("old")]);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let deadline = Duration::from_millis(500);
        let opened = runtime.block_on(async { Session::open(&server, Deadline::within(deadline)).await });
        assert!(opened.as_ref().is_err_and(Error::is_login), "{opened:?}");
        // With it goes the connection that nobody waits for any more.
        drop(runtime);
        refusing.join().expect("both connections came");
    }

    #[test]
    fn no_two_sessions_share_a_token() {
        assert_ne!(token(), token());
    }
}
