//! A server that starts anew.
//!
//! In: when it was started before. Out: a session on the new start. Must not: take the old process, which may still be
//! on its way out, for the new one; wait without a bound.

use crate::error::TimedOutSnafu;
use crate::{Deadline, Error, Server, Session, Wanted};
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval, timeout_at};

/// How often a connection is tried: a start takes a second or two.
const TRY_EVERY: Duration = Duration::from_millis(200);

/// How long one try may take: a server that is there greets at once, and one that stands still must not eat the time.
const ONE_TRY: Duration = Duration::from_secs(2);

/// When a server was started, by its own clock, in whole seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Started(i64);

impl Started {
    /// Whether this is a later start. Both figures are rounded, so one second more is none.
    pub const fn is_after(self, before: Self) -> bool {
        self.0 > before.0 + 1
    }
}

/// When that server was started.
pub async fn started(session: &mut Session, deadline: Deadline) -> Result<Started, Error> {
    const DOING: &str = "read the start";
    let question = "SELECT TIMESTAMPDIFF(SECOND, '2000-01-01', UTC_TIMESTAMP()) - VARIABLE_VALUE \
                    FROM performance_schema.global_status WHERE VARIABLE_NAME = 'Uptime'";
    let row = session.ask_row(DOING, question, deadline).await?;
    let seconds: f64 = session.columns(DOING, &row).number(0, "Uptime")?;
    #[expect(clippy::cast_possible_truncation, reason = "whole seconds since 2000 that the server sends as a float")]
    Ok(Started(seconds as i64))
}

/// Waits until the server that is meant answers from a later start than `before`.
pub async fn wait_for_restart(
    server: &Server,
    wanted: Wanted,
    before: Started,
    deadline: Deadline,
) -> Result<Session, Error> {
    let mut beat = interval(TRY_EVERY);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // Bounded by the deadline: a turn takes at least the time between two tries.
    while timeout_at(deadline.instant(), beat.tick()).await.is_ok() && !deadline.is_over() {
        let one = deadline.but_within(ONE_TRY);
        match newer(server, before, one).await {
            Ok(Some(session)) => {
                wanted.check(session.place(), session.uuid())?;
                return Ok(session);
            }
            // A refused login will not mend itself here.
            Err(error) if error.is_login() => return Err(error),
            Ok(None) | Err(_) => {}
        }
    }
    TimedOutSnafu { place: server.place(), doing: "wait for the restart" }.fail()
}

async fn newer(server: &Server, before: Started, deadline: Deadline) -> Result<Option<Session>, Error> {
    let mut session = Session::open(server, deadline).await?;
    let now = started(&mut session, deadline).await?;
    Ok(now.is_after(before).then_some(session))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_makes_no_restart() {
        for (before, now, later) in [(100, 100, false), (100, 101, false), (100, 99, false), (100, 102, true)] {
            assert_eq!(Started(now).is_after(Started(before)), later, "{before} {now}");
        }
    }
}
