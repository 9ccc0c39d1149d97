//! Semi-synchronous replication, each side switched on its own.
//!
//! In: a session, what is wanted. Out: nothing; the state is read by a poll. Must not: load plugins (they come with the
//! server's configuration).

use crate::{Deadline, Error, Session, Wanted};
use std::time::Duration;

/// The largest `rpl_semi_sync_source_timeout` that the server takes, in milliseconds: as good as for ever.
const FOR_EVER: u128 = 4_294_967_295;

/// The source's side, on or off; on with the time that a commit waits for an acknowledgement (zero: for ever).
pub async fn set_source(
    session: &mut Session,
    wanted: Wanted,
    on: Option<Duration>,
    deadline: Deadline,
) -> Result<(), Error> {
    let statement = source_statement(on);
    session.change("switch semi-sync of the source", wanted, &statement, deadline).await.map(drop)
}

/// The replica's side. A running receiver takes it up when it connects the next time.
pub async fn set_replica(session: &mut Session, wanted: Wanted, on: bool, deadline: Deadline) -> Result<(), Error> {
    let statement = format!("SET GLOBAL rpl_semi_sync_replica_enabled = {}", if on { "ON" } else { "OFF" });
    session.change("switch semi-sync of the replica", wanted, &statement, deadline).await.map(drop)
}

fn source_statement(on: Option<Duration>) -> String {
    let Some(timeout) = on else { return "SET GLOBAL rpl_semi_sync_source_enabled = OFF".to_owned() };
    let timeout = if timeout.is_zero() { FOR_EVER } else { timeout.as_millis().clamp(1, FOR_EVER) };
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
        assert_eq!(source_statement(None), "SET GLOBAL rpl_semi_sync_source_enabled = OFF");
        for (timeout, expect) in [
            (Duration::ZERO, "timeout = 4294967295,"),
            (Duration::from_secs(10), "timeout = 10000,"),
            (Duration::from_micros(1), "timeout = 1,"),
            (Duration::MAX, "timeout = 4294967295,"),
        ] {
            let statement = source_statement(Some(timeout));
            assert!(statement.contains(expect) && statement.ends_with("enabled = ON"), "{statement}");
        }
    }
}
