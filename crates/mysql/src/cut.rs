//! Replication cut off before a promotion.
//!
//! In: exactly what is given up. Out: what was read after the cut; or what was found instead. Must not: throw away a
//! transaction that nobody gave up: the sets are read again when both threads have stopped, and relay logs are deleted
//! only then.

use crate::guard::Guarded;
use crate::{Deadline, Error, Reading, Server, Session, Wanted, poll, replica};
use bloodraven_gtid::GtidSet;

/// `STOP REPLICA`; then, only if what was received and not executed is exactly `unapplied`, `RESET REPLICA ALL`; then
/// read. Refused: both threads stay stopped.
pub async fn cut_replication(
    server: &Server,
    wanted: Wanted,
    unapplied: &GtidSet,
    deadline: Deadline,
) -> Result<Guarded, Error> {
    cut_over(&mut Session::open(server, deadline).await?, wanted, unapplied, deadline).await
}

/// [`cut_replication`] over an open session.
pub async fn cut_over(
    session: &mut Session,
    wanted: Wanted,
    unapplied: &GtidSet,
    deadline: Deadline,
) -> Result<Guarded, Error> {
    replica::stop(session, wanted, deadline).await?;
    let reading = poll(session, deadline).await?;
    if let Err(why) = check(&reading, unapplied) {
        return Ok(Guarded::Refused { why, reading: Box::new(reading) });
    }
    replica::reset_all(session, wanted, deadline).await?;
    Ok(Guarded::Acted(Box::new(poll(session, deadline).await?)))
}

fn check(reading: &Reading, unapplied: &GtidSet) -> Result<(), String> {
    let Some(replica) = &reading.replica else {
        let given_up = || format!("nothing is configured there, but {} was to be given up", unapplied.compact());
        return if unapplied.is_empty() { Ok(()) } else { Err(given_up()) };
    };
    if replica.receiver != crate::Receiver::Stopped || replica.applier_running {
        return Err("its threads were started again".to_owned());
    }
    let (Some(executed), Some(received)) = (&reading.executed, &replica.received) else {
        return Err("its sets are not understood".to_owned());
    };
    let found = received.subtract(executed);
    if found == *unapplied {
        return Ok(());
    }
    Err(format!("received and not executed is {:?}, not {:?}", found.compact(), unapplied.compact()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Pair, Receiver, ReplicaReading};
    use std::time::Duration;

    const UUID: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";

    fn set(text: &str) -> GtidSet {
        text.replace('#', UUID).parse().unwrap()
    }

    fn reading(executed: &str, received: Option<&str>) -> Reading {
        let uuid = UUID.parse().unwrap();
        Reading {
            server_uuid: uuid,
            server_id: 1,
            version: "9.7".to_owned(),
            uptime: Duration::ZERO,
            pair: Pair { read_only: true, super_read_only: true },
            executed: executed.replace('#', UUID).parse().ok(),
            committing: Some(GtidSet::new()),
            purged: Some(GtidSet::new()),
            user_data: true,
            replica: received.map(|received| ReplicaReading {
                source_host: "iad".to_owned(),
                source_port: 3306,
                source_uuid: Some(uuid),
                receiver: Receiver::Stopped,
                receiver_error: None,
                applier_running: false,
                applier_error: None,
                received: received.replace('#', UUID).parse().ok(),
                delay: Duration::ZERO,
                behind: None,
                auto_position: true,
                other_channels: 0,
            }),
            semi_sync: crate::SemiSync::default(),
            connections: crate::Connections::default(),
        }
    }

    #[test]
    fn only_exactly_what_is_given_up_is_thrown_away() {
        for (executed, received, unapplied, holds) in [
            ("#:1-9", Some(""), "", true),
            ("#:1-9", Some("#:3-9"), "", true),
            ("#:1-9", Some("#:3-11"), "", false),
            ("#:1-9", Some("#:3-11"), "#:10-11", true),
            ("#:1-9", Some("#:3-11"), "#:10-12", false),
            ("#:1-9", Some("#:3-11:tag:1"), "#:10-11", false),
            ("#:1-9", Some("#:3-11:tag:1"), "#:10-11:tag:1", true),
            ("#:1-9", None, "", true),
            ("#:1-9", None, "#:10", false),
            ("garbage", Some(""), "", false),
            ("#:1-9", Some("garbage"), "", false),
        ] {
            assert_eq!(check(&reading(executed, received), &set(unapplied)).is_ok(), holds, "{executed} {received:?}");
        }
        let mut runs = reading("#:1-9", Some(""));
        if let Some(replica) = &mut runs.replica {
            replica.applier_running = true;
        }
        assert!(check(&runs, &GtidSet::new()).is_err());
    }
}
