//! A write that reaches the disk: variables can be read while a disk stands still.
//!
//! In: a session on the writable server. Out: how long one commit took. Must not: leave a GTID, be replicated, or be
//! counted as user data.

use crate::{Deadline, Error, Session, Wanted};
use std::time::Duration;
use tokio::time::Instant;

/// The table that is written to, for whoever makes it (with `sql_log_bin=0`, at every start).
pub const TABLE: &str = "CREATE TABLE IF NOT EXISTS bloodraven.heartbeat \
     (id TINYINT UNSIGNED NOT NULL PRIMARY KEY, beats BIGINT UNSIGNED NOT NULL) ENGINE = InnoDB";

/// Its one row; made together with the table.
pub const ROW: &str = "INSERT IGNORE INTO bloodraven.heartbeat (id, beats) VALUES (1, 0)";

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
