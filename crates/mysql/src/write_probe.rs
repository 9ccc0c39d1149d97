//! A write that reaches the disk: variables can be read while a disk stands still.
//!
//! In: a session on the writable server. Out: how long one commit took. Must not: leave a GTID, be replicated, or be
//! counted as user data.

use crate::{Deadline, Error, Session, Wanted};
use std::time::Duration;
use tokio::time::Instant;

/// What is written to. Without the binary log: no GTID, nothing replicated.
const TABLE: &str = "SET SESSION sql_log_bin = 0; CREATE SCHEMA IF NOT EXISTS bloodraven; \
     CREATE TABLE IF NOT EXISTS bloodraven.heartbeat \
     (id TINYINT UNSIGNED NOT NULL PRIMARY KEY, beats BIGINT UNSIGNED NOT NULL) ENGINE = InnoDB; \
     INSERT IGNORE INTO bloodraven.heartbeat (id, beats) VALUES (1, 0)";

/// Makes the table and its one row, where they are missing; on the writable server only, before its first probe.
///
/// Not at a server's first start: a fenced server with any schema of its own cannot be cloned into.
pub async fn prepare(session: &mut Session, wanted: Wanted, deadline: Deadline) -> Result<(), Error> {
    session.change("prepare the write probe", wanted, TABLE, deadline).await.map(drop)
}

/// Writes once.
pub async fn write_probe(session: &mut Session, wanted: Wanted, deadline: Deadline) -> Result<Duration, Error> {
    const DOING: &str = "write probe";
    let began = Instant::now();
    let statements = "SET SESSION sql_log_bin = 0; \
                      UPDATE bloodraven.heartbeat SET beats = beats + 1 WHERE id = 1; SELECT ROW_COUNT()";
    let sets = session.change(DOING, wanted, statements, deadline).await?;
    let written = sets.iter().flatten().next().map(|row| session.columns(DOING, row).flag(0, "the count"));
    match written.transpose()? {
        Some(true) => Ok(began.elapsed()),
        // A statement that finds no row commits nothing and proves nothing.
        _ => crate::error::UnreadableSnafu { place: session.place(), doing: DOING, what: "the heartbeat's row" }.fail(),
    }
}
