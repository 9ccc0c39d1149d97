//! Sessions on a server: list them, end them, see them gone.
//!
//! In: whom to spare, or whom to end. Out: how many were ended and how many are left. Must not: end the server's own
//! threads, replication in either direction, the event scheduler, or itself; loop without a bound.

use crate::error::LeftSnafu;
use crate::{Deadline, Error, Mark, Server, Session, Wanted, driver, quote};
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval, timeout_at};

/// How many sessions one pass ends at most; the next pass ends the rest.
const MOST_A_PASS: usize = 1000;

/// How many `KILL`s travel in one packet: few packets also over a slow line, and no packet of unusual length.
const A_PACKET: usize = 200;

/// How often the server is looked at while sessions end: a killed idle session is gone within a millisecond.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// How often a pass looks whether those it ended are gone before it counts who is left.
const LOOKS: usize = 15;

/// Users and commands that are never ended: replication of this server, its dumps to others, its own threads, and logins
/// under way (ours may be among them; a later pass sees what they became).
const SPARED_USERS: &[&str] = &["system user", "event_scheduler", "unauthenticated user"];
const SPARED_COMMANDS: &[&str] = &["Daemon", "Binlog Dump", "Binlog Dump GTID"];

/// `ER_NO_SUCH_THREAD`: it is gone already.
const GONE: u16 = 1094;

/// `ER_KILL_DENIED_ERROR`: its account has a right that ours lacks.
const DENIED: u16 = 1095;

/// Accounts whose sessions are spared besides the server's own: operator, replication, monitor, backup.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spared(Vec<String>);

impl Spared {
    /// Those accounts.
    pub fn accounts<I: IntoIterator<Item: Into<String>>>(accounts: I) -> Self {
        Self(accounts.into_iter().map(Into::into).collect())
    }
}

/// What came of ending sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// So many were ended.
    pub ended: u64,
    /// So many that should go are still there.
    pub left: u64,
}

/// A session on the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its number.
    pub id: u64,
    /// Its account's name.
    pub user: String,
    /// Where it comes from.
    pub host: String,
    /// What it does (`Sleep`, `Query`, …).
    pub command: String,
}

/// Applications' sessions: everybody but the spared. At most a thousand.
pub async fn list(session: &mut Session, spared: &Spared, deadline: Deadline) -> Result<Vec<Listed>, Error> {
    const DOING: &str = "list sessions";
    let question = format!(
        "SELECT ID, USER, HOST, COMMAND FROM performance_schema.processlist WHERE {} ORDER BY ID LIMIT {MOST_A_PASS}",
        applications(spared)
    );
    let sets = session.ask(DOING, &question, deadline).await?;
    let read = |row| {
        let columns = session.columns(DOING, row);
        Ok(Listed {
            id: columns.number(0, "the session's number")?,
            user: columns.text(1, "the user")?,
            host: columns.maybe(2).unwrap_or_default(),
            command: columns.maybe(3).unwrap_or_default(),
        })
    };
    sets.iter().flatten().map(read).collect()
}

/// Ends applications' sessions in one pass, and counts who is left of them. Who comes meanwhile is not counted: a client that
/// connects again at once would never let it be over, and finds a fenced server.
pub async fn end_once(
    session: &mut Session,
    wanted: Wanted,
    spared: &Spared,
    deadline: Deadline,
) -> Result<Ended, Error> {
    let ids = find(session, &Whose::Processes(applications(spared)), deadline).await?;
    // Numbers grow; beyond the longest list there may be others that were there.
    let newest = ids.last().copied().filter(|_| ids.len() < MOST_A_PASS).unwrap_or(u64::MAX);
    if ids.is_empty() {
        return Ok(Ended::default());
    }
    let ended = kill(session, wanted, ids, deadline).await?;
    let those = format!("{} AND ID <= {newest}", applications(spared));
    let mut left = count(session, &those, deadline).await?;
    let mut look = every(LOOK_EVERY);
    for _ in 0..LOOKS {
        // Also when somebody else was first to end them: they are counted for a moment longer.
        if left == 0 {
            break;
        }
        look.tick().await;
        left = count(session, &those, deadline).await?;
    }
    Ok(Ended { ended, left })
}

/// Ends applications' sessions until none is left, at most so many passes.
pub async fn end_all(
    session: &mut Session,
    wanted: Wanted,
    spared: &Spared,
    passes: u32,
    deadline: Deadline,
) -> Result<Ended, Error> {
    let mut total = Ended::default();
    for _ in 0..passes {
        let one = end_once(session, wanted, spared, deadline).await?;
        total = Ended { ended: total.ended + one.ended, left: one.left };
        if total.left == 0 {
            break;
        }
    }
    Ok(total)
}

/// Ends every session of one account and sees them gone: what they had sent has ended, or will never begin.
pub async fn end_account(
    session: &mut Session,
    wanted: Wanted,
    account: &str,
    deadline: Deadline,
) -> Result<(), Error> {
    let whose = format!("ID <> CONNECTION_ID() AND USER = {}", quote::text(account));
    let gone = end_until_gone(session, wanted, &Whose::Processes(whose), deadline).await;
    explained(gone, session.place(), account)
}

/// Ends one session by its name, over a connection of its own, and sees it gone.
pub async fn end_marked(server: &Server, wanted: Wanted, mark: &Mark, deadline: Deadline) -> Result<(), Error> {
    let mut session = Session::open(server, deadline).await?;
    end_marked_over(&mut session, wanted, mark, deadline).await
}

/// Ends every session that was opened for that purpose, but this one, and sees them gone.
pub async fn end_purpose(
    session: &mut Session,
    wanted: Wanted,
    purpose: &str,
    deadline: Deadline,
) -> Result<(), Error> {
    let gone = end_until_gone(session, wanted, &Whose::attribute(driver::PURPOSE, purpose), deadline).await;
    explained(gone, session.place(), purpose)
}

/// [`end_marked`] over an open session.
pub async fn end_marked_over(
    session: &mut Session,
    wanted: Wanted,
    mark: &Mark,
    deadline: Deadline,
) -> Result<(), Error> {
    let gone = end_until_gone(session, wanted, &Whose::attribute(driver::ATTRIBUTE, &mark.token), deadline).await;
    explained(gone, session.place(), "a statement that was given up")
}

/// One pass over applications' sessions, but not this one. How many were ended.
pub(crate) async fn pass(
    session: &mut Session,
    wanted: Wanted,
    spared: &Spared,
    but: Option<&Mark>,
    deadline: Deadline,
) -> Result<u64, Error> {
    let mut ids = find(session, &Whose::Processes(applications(spared)), deadline).await?;
    ids.retain(|id| but.is_none_or(|mark| mark.connection != *id));
    kill(session, wanted, ids, deadline).await
}

enum Whose {
    /// A condition on `performance_schema.processlist`.
    Processes(String),
    /// A condition on `performance_schema.session_connect_attrs`.
    Attributes(String),
}

impl Whose {
    fn attribute(name: &str, value: &str) -> Self {
        Self::Attributes(format!(
            "PROCESSLIST_ID <> CONNECTION_ID() AND ATTR_NAME = {} AND ATTR_VALUE = {}",
            quote::text(name),
            quote::text(value)
        ))
    }
}

/// None are left, or so many when the time was over.
enum Gone {
    Yes,
    Not(u64),
}

fn explained(gone: Result<Gone, Error>, place: &str, whose: &str) -> Result<(), Error> {
    match gone? {
        Gone::Yes => Ok(()),
        Gone::Not(count) => LeftSnafu { place, whose, count }.fail(),
    }
}

async fn end_until_gone(
    session: &mut Session,
    wanted: Wanted,
    whose: &Whose,
    deadline: Deadline,
) -> Result<Gone, Error> {
    let mut look = every(LOOK_EVERY);
    // Bounded by the deadline: a turn takes at least the time between two looks.
    loop {
        let ids = find(session, whose, deadline).await?;
        if ids.is_empty() {
            return Ok(Gone::Yes);
        }
        let count = ids.len() as u64;
        kill(session, wanted, ids, deadline).await?;
        if timeout_at(deadline.instant(), look.tick()).await.is_err() || deadline.is_over() {
            return Ok(Gone::Not(count));
        }
    }
}

async fn find(session: &mut Session, whose: &Whose, deadline: Deadline) -> Result<Vec<u64>, Error> {
    const DOING: &str = "find sessions";
    let question = match whose {
        Whose::Processes(condition) => {
            format!("SELECT ID FROM performance_schema.processlist WHERE {condition} ORDER BY ID LIMIT {MOST_A_PASS}")
        }
        Whose::Attributes(condition) => format!(
            "SELECT PROCESSLIST_ID FROM performance_schema.session_connect_attrs WHERE {condition} LIMIT {MOST_A_PASS}"
        ),
    };
    let sets = session.ask(DOING, &question, deadline).await?;
    sets.iter().flatten().map(|row| session.columns(DOING, row).number(0, "the session's number")).collect()
}

async fn count(session: &mut Session, condition: &str, deadline: Deadline) -> Result<u64, Error> {
    const DOING: &str = "count sessions";
    let question = format!("SELECT COUNT(*) FROM performance_schema.processlist WHERE {condition}");
    let row = session.ask_row(DOING, &question, deadline).await?;
    session.columns(DOING, &row).number(0, "the count")
}

/// Ends those sessions. An error of one stops the packet; the rest goes into the next.
async fn kill(session: &mut Session, wanted: Wanted, mut ids: Vec<u64>, deadline: Deadline) -> Result<u64, Error> {
    let mut ended = 0;
    ids.reverse();
    // Each turn takes at least one number off the list.
    while !ids.is_empty() {
        let some: Vec<u64> = ids.iter().rev().take(A_PACKET).copied().collect();
        let packet = some.iter().map(|id| format!("KILL {id}")).collect::<Vec<_>>().join("; ");
        let done = match session.change("end sessions", wanted, &packet, deadline).await {
            Ok(_) => {
                ended += some.len() as u64;
                some.len()
            }
            Err(Error::Server { code: GONE | DENIED, message, .. }) => {
                let before = failing(&message, &some);
                ended += before as u64;
                before + 1
            }
            Err(error) => return Err(error),
        };
        ids.truncate(ids.len().saturating_sub(done));
    }
    Ok(ended)
}

/// How many `KILL`s of a packet worked before the one that the message is about. Unknown: none.
fn failing(message: &str, ids: &[u64]) -> usize {
    let mut numbers =
        message.split(|letter: char| !letter.is_ascii_digit()).filter_map(|word| word.parse::<u64>().ok());
    numbers.find_map(|number| ids.iter().position(|id| *id == number)).unwrap_or(0)
}

fn applications(spared: &Spared) -> String {
    let users = SPARED_USERS.iter().copied().chain(spared.0.iter().map(String::as_str));
    format!(
        "ID <> CONNECTION_ID() AND USER NOT IN ({}) AND COMMAND NOT IN ({})",
        quote::list(users),
        quote::list(SPARED_COMMANDS.iter().copied())
    )
}

fn every(period: Duration) -> tokio::time::Interval {
    let mut look = interval(period);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    look.reset();
    look
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_session_that_stopped_a_packet_is_found_in_the_message() {
        for (message, ids, expect) in [
            ("Unknown thread id: 12", &[11, 12, 13][..], 1),
            ("You are not owner of thread 13", &[11, 12, 13], 2),
            ("Unknown thread id: 99", &[11, 12], 0),
            ("", &[11], 0),
        ] {
            assert_eq!(failing(message, ids), expect, "{message}");
        }
    }

    #[test]
    fn names_cannot_leave_their_place_in_the_condition() {
        let condition = applications(&Spared::accounts(["operator", "o'brien) OR (1=1"]));
        assert!(condition.contains(r"'operator', 'o\'brien) OR (1=1')"), "{condition}");
        assert!(condition.contains("'system user'") && condition.contains("'Binlog Dump GTID'"));
    }
}
