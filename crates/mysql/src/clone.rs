//! Everything copied from a donor, over exactly what is meant.
//!
//! In: the donor, what may be overwritten, whom to spare. Out: what the server says after it has started anew on the
//! copy; or why nothing was touched. Must not: open the recipient (it stays fenced throughout, its own command line sees
//! to that), overwrite what is not meant, or run on after it was given up.
//!
//! A clone begins by dropping the recipient's schemas, which a fenced server refuses (1290), Bloodraven's own included:
//! only a recipient without any can be cloned into. Whoever has data there empties its folder first.
//!
//! At its end the server exits: with code 16 if somebody supervises it, else after an error 3707. Both, and a lost
//! connection, are the expected end; the verdict is the new start and `clone_status`.

use crate::progress::{CloneState, clone_progress, clone_status};
use crate::repoint::contained;
use crate::restart::{self, Started};
use crate::schemas;
use crate::{
    Account, Deadline, Error, Guarded, Mark, Reading, Server, Session, Spared, Wanted, poll, quote, replica, sessions,
};
use bloodraven_gtid::GtidSet;
use std::convert::Infallible;
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval};

/// `ER_RESTART_SERVER_FAILED`: nobody supervises it, so it only shuts down.
const NO_SUPERVISOR: u16 = 3707;

/// How long the server may wait for other sessions to let go of its data, in seconds: they are ended meanwhile.
const DDL_TIMEOUT: u32 = 30;

/// How long the two servers may be silent towards each other, in seconds: a donor that checkpoints can be quiet for a
/// while.
const NET_TIMEOUT: u32 = 600;

/// How often sessions that came back are ended while the old data goes, and how many times at most.
const EVICT_EVERY: Duration = Duration::from_millis(500);
const EVICTIONS: usize = 2 * DDL_TIMEOUT as usize;

/// The verb's name in errors.
const DOING: &str = "clone";

/// Where a copy comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Donor {
    /// The stable name of the site, never a pod's address.
    pub host: String,
    /// Its port for clients.
    pub port: u16,
    /// The account that may copy there.
    pub account: Account,
    /// Whether the link is to be encrypted.
    pub tls: bool,
}

/// What is to be copied over what.
#[derive(Clone, Copy, Debug)]
pub struct CloneOrder<'a> {
    /// The donor.
    pub donor: &'a Donor,
    /// What may be overwritten; none: whatever is there, understood or not.
    pub over: Option<&'a GtidSet>,
    /// Accounts whose sessions are not ended first.
    pub spared: &'a Spared,
}

/// Copies, waits for the new start, and reads.
pub async fn clone(
    server: &Server,
    wanted: Wanted,
    order: CloneOrder<'_>,
    deadline: Deadline,
) -> Result<Guarded, Error> {
    let before = match begin(server, wanted, order, deadline).await? {
        Ok(before) => before,
        Err(refused) => return Ok(refused),
    };
    let mut session = restart::wait_for_restart(server, wanted, before, deadline).await?;
    let status = clone_status(&mut session, deadline).await?;
    match status {
        Some(status) if status.state == CloneState::Completed => {
            Ok(Guarded::Acted(Box::new(poll(&mut session, deadline).await?)))
        }
        other => {
            let what = other.map_or_else(
                || "no trace of the clone after the restart".to_owned(),
                |status| format!("the clone ended {:?} with {}: {}", status.state, status.code, status.message),
            );
            crate::error::UnreadableSnafu { place: server.place(), doing: DOING, what }.fail()
        }
    }
}

/// Copies, until the server ends itself. When it had been started, for [`restart::wait_for_restart`]; or why nothing was
/// touched.
pub async fn begin(
    server: &Server,
    wanted: Wanted,
    order: CloneOrder<'_>,
    deadline: Deadline,
) -> Result<Result<Started, Guarded>, Error> {
    let mut session = Session::open(server, deadline).await?;
    wanted.check(session.place(), session.uuid())?;
    let reading = poll(&mut session, deadline).await?;
    if let Err(why) = check(&reading, order.over) {
        return Ok(Err(Guarded::Refused { why, reading: Box::new(reading) }));
    }
    let schemas = schemas::to_drop(&mut session, deadline).await?;
    if !schemas.is_empty() {
        let why =
            format!("a fenced server cannot drop its schemas ({}): empty its data folder first", schemas.join(", "));
        return Ok(Err(Guarded::Refused { why, reading: Box::new(reading) }));
    }
    let before = restart::started(&mut session, deadline).await?;
    replica::stop(&mut session, wanted, deadline).await?;
    sessions::end_once(&mut session, wanted, order.spared, deadline).await?;
    session.change(DOING, wanted, &settings(order.donor), deadline).await?;
    let (statement, secrets) = (clone_statement(order.donor), [&order.donor.account.password]);
    let (uuid, mark) = (session.uuid(), session.mark().clone());
    let copied = tokio::select! {
        biased;
        copied = session.change_in_secret(DOING, wanted, &statement, &secrets, deadline) => copied,
        never = keep_out(server, Wanted::Only(uuid), order.spared, &mark, deadline) => match never {},
    };
    match copied {
        // The expected ends; the first is not known to happen.
        Ok(()) | Err(Error::Server { code: NO_SUPERVISOR, .. } | Error::Lost { .. }) => {
            // What ran there has ended with the server.
            session.is_over();
            Ok(Ok(before))
        }
        Err(error) => Err(error),
    }
}

/// Fenced, and nothing executed beyond what may be overwritten.
fn check(reading: &Reading, over: Option<&GtidSet>) -> Result<(), String> {
    if !reading.pair.is_fenced() {
        return Err("it is not fenced".to_owned());
    }
    match (over, &reading.executed) {
        (None, _) => Ok(()),
        (Some(_), None) => Err("its set is not understood".to_owned()),
        (Some(over), Some(executed)) => {
            contained(executed, over).map_err(|_| format!("it has {} more", executed.subtract(over).compact()))
        }
    }
}

/// Ends sessions that came back, the clone's own apart, as long as the server drops its old data: they could hold that up. Never returns.
async fn keep_out(server: &Server, wanted: Wanted, spared: &Spared, mark: &Mark, deadline: Deadline) -> Infallible {
    let mut beat = interval(EVICT_EVERY);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    beat.reset();
    for _ in 0..EVICTIONS {
        beat.tick().await;
        let within = deadline.but_within(2 * EVICT_EVERY);
        if let Ok(false) = evict(server, wanted, spared, mark, within).await {
            break;
        }
    }
    std::future::pending().await
}

/// One pass, if the old data is still being dropped. Whether it is.
async fn evict(
    server: &Server,
    wanted: Wanted,
    spared: &Spared,
    mark: &Mark,
    deadline: Deadline,
) -> Result<bool, Error> {
    let mut session = Session::open(server, deadline).await?;
    let stages = clone_progress(&mut session, deadline).await?;
    let dropping =
        stages.iter().find(|stage| stage.name == "DROP DATA").is_none_or(|stage| stage.state != CloneState::Completed);
    if dropping {
        sessions::pass(&mut session, wanted, spared, Some(mark), deadline).await?;
    }
    Ok(dropping)
}

fn settings(donor: &Donor) -> String {
    let list = quote::text(&format!("{}:{}", donor.host, donor.port));
    format!(
        "SET GLOBAL clone_valid_donor_list = {list}, GLOBAL clone_ddl_timeout = {DDL_TIMEOUT}, \
         SESSION net_read_timeout = {NET_TIMEOUT}, SESSION net_write_timeout = {NET_TIMEOUT}"
    )
}

fn clone_statement(donor: &Donor) -> String {
    format!(
        "CLONE INSTANCE FROM {}@{}:{} IDENTIFIED BY {} REQUIRE {}SSL",
        quote::text(&donor.account.user),
        quote::text(&donor.host),
        donor.port,
        quote::text(donor.account.password.reveal()),
        if donor.tls { "" } else { "NO " }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_statement_names_the_donor_and_quotes_everything() {
        let mut donor = Donor { host: "iad".to_owned(), port: 3306, account: Account::new("repl", "p'w"), tls: false };
        assert_eq!(
            clone_statement(&donor),
            r"CLONE INSTANCE FROM 'repl'@'iad':3306 IDENTIFIED BY 'p\'w' REQUIRE NO SSL"
        );
        donor.tls = true;
        assert!(clone_statement(&donor).ends_with("REQUIRE SSL"));
        assert!(settings(&donor).starts_with("SET GLOBAL clone_valid_donor_list = 'iad:3306'"));
        assert!(!format!("{donor:?}").contains("p'w"));
    }
}
