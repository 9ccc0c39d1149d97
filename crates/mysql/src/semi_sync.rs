//! Semi-synchronous replication, each side switched on its own.
//!
//! In: a session, what is wanted. Out: nothing; the state is read by a poll. Must not: load plugins (they come with the
//! server's configuration), or let commits go that wait on an open server unless that is what was asked for.

use crate::error::UnsafeSnafu;
use crate::{Deadline, Error, Receiver, Session, Wanted, guard, replica};
use std::time::Duration;

/// The largest `rpl_semi_sync_source_timeout` that the server takes, in milliseconds: as good as for ever.
const FOR_EVER: u128 = 4_294_967_295;

/// What the guard of a source's side that is switched off says.
const NOT_CLOSED: &str = "it is not closed";

/// The source's side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// On: a commit waits so long for one acknowledgement, before anybody sees it (zero: for ever).
    On(Duration),
    /// Off, on a server that is closed. On another one nothing is done: commits that wait there would go through.
    OffIfClosed,
    /// Off; whatever waits goes through.
    Off,
}

/// Switches the source's side.
pub async fn set_source(session: &mut Session, wanted: Wanted, side: Source, deadline: Deadline) -> Result<(), Error> {
    const DOING: &str = "switch semi-sync of the source";
    match session.change(DOING, wanted, &source_statement(side), deadline).await {
        Err(error) if guard::is_unless(&error, NOT_CLOSED) => {
            let why = "it is not closed, and commits that wait there would go through without an acknowledgement";
            UnsafeSnafu { place: session.place(), doing: DOING, why }.fail()
        }
        other => other.map(drop),
    }
}

/// Switches the replica's side. A running receiver takes it up when it connects the next time.
pub async fn set_replica(session: &mut Session, wanted: Wanted, on: bool, deadline: Deadline) -> Result<(), Error> {
    let statement = format!("SET GLOBAL rpl_semi_sync_replica_enabled = {}", if on { "ON" } else { "OFF" });
    session.change("switch semi-sync of the replica", wanted, &statement, deadline).await.map(drop)
}

/// Starts a receiver anew that runs; another one is left as it is: one that tries takes its side up when it connects.
pub async fn renew_receiver(session: &mut Session, wanted: Wanted, deadline: Deadline) -> Result<(), Error> {
    wanted.check(session.place(), session.uuid())?;
    let runs = replica::status(session, deadline).await?.is_some_and(|replica| replica.receiver == Receiver::Running);
    if !runs {
        return Ok(());
    }
    let statements = "STOP REPLICA IO_THREAD FOR CHANNEL ''; START REPLICA IO_THREAD FOR CHANNEL ''";
    session.change("start the receiver anew", wanted, statements, deadline).await.map(drop)
}

fn source_statement(side: Source) -> String {
    const OFF: &str = "SET GLOBAL rpl_semi_sync_source_enabled = OFF";
    let timeout = match side {
        Source::Off => return OFF.to_owned(),
        Source::OffIfClosed => {
            let closed = "@@global.read_only AND @@global.super_read_only";
            return format!("{}; {OFF}", guard::unless(closed, NOT_CLOSED));
        }
        Source::On(timeout) if timeout.is_zero() => FOR_EVER,
        Source::On(timeout) => timeout.as_millis().clamp(1, FOR_EVER),
    };
    format!(
        "SET GLOBAL rpl_semi_sync_source_wait_point = AFTER_SYNC, \
         GLOBAL rpl_semi_sync_source_wait_for_replica_count = 1, GLOBAL rpl_semi_sync_source_timeout = {timeout}, \
         GLOBAL rpl_semi_sync_source_enabled = ON"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_means_for_ever_and_off_is_off() {
        assert_eq!(source_statement(Source::Off), "SET GLOBAL rpl_semi_sync_source_enabled = OFF");
        for (timeout, expect) in [
            (Duration::ZERO, "timeout = 4294967295,"),
            (Duration::from_secs(10), "timeout = 10000,"),
            (Duration::from_micros(1), "timeout = 1,"),
            (Duration::MAX, "timeout = 4294967295,"),
        ] {
            let statement = source_statement(Source::On(timeout));
            assert!(statement.contains(expect) && statement.ends_with("enabled = ON"), "{statement}");
        }
    }

    #[test]
    fn the_check_comes_before_what_it_guards() {
        let statement = source_statement(Source::OffIfClosed);
        let (check, off) = statement.split_once("; ").expect("two statements");
        assert!(check.contains("super_read_only") && check.contains(NOT_CLOSED), "{check}");
        assert_eq!(off, source_statement(Source::Off));
    }
}
