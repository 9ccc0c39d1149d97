//! GTID sets: read, waited for, and compared by the server itself.
//!
//! In: a session. Out: sets, yes or no. Must not: wait longer than the deadline allows.

use crate::{Deadline, Error, Session, quote};
use bloodraven_gtid::GtidSet;
use std::time::Duration;

/// What is kept back of the time for the answer of a wait to arrive.
const RESERVE: Duration = Duration::from_millis(200);

/// What a server has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sets {
    /// `@@global.gtid_executed`; none: not understood.
    pub executed: Option<GtidSet>,
    /// `@@global.gtid_purged`; none: not understood.
    pub purged: Option<GtidSet>,
}

/// Reads both sets.
pub async fn read(session: &mut Session, deadline: Deadline) -> Result<Sets, Error> {
    const DOING: &str = "read the sets";
    let row = session.ask_row(DOING, "SELECT @@global.gtid_executed, @@global.gtid_purged", deadline).await?;
    let columns = session.columns(DOING, &row);
    Ok(Sets { executed: columns.set(0, "gtid_executed")?, purged: columns.set(1, "gtid_purged")? })
}

/// Waits until that set is executed, at most for `slice` and never past the deadline. Whether it is.
pub async fn wait_for(
    session: &mut Session,
    set: &GtidSet,
    slice: Duration,
    deadline: Deadline,
) -> Result<bool, Error> {
    const DOING: &str = "wait for a set";
    let seconds = slice.min(deadline.left().saturating_sub(RESERVE)).as_secs_f64();
    // The server takes zero for "for ever"; a thousandth of a second is the shortest that it takes for a time.
    let question = format!(
        "SELECT WAIT_FOR_EXECUTED_GTID_SET({}, {:.3})",
        quote::text(&set.compact().to_string()),
        seconds.max(0.001)
    );
    let row = session.ask_row(DOING, &question, deadline).await?;
    // 0: executed; 1: the time was over.
    Ok(!session.columns(DOING, &row).flag(0, "the answer")?)
}

/// Whether `whole` contains `part`, by the server's own arithmetic.
pub async fn contains(
    session: &mut Session,
    whole: &GtidSet,
    part: &GtidSet,
    deadline: Deadline,
) -> Result<bool, Error> {
    const DOING: &str = "compare sets";
    let (whole, part) = (quote::text(&whole.compact().to_string()), quote::text(&part.compact().to_string()));
    let row = session.ask_row(DOING, &format!("SELECT GTID_SUBSET({part}, {whole})"), deadline).await?;
    session.columns(DOING, &row).flag(0, "the answer")
}

/// `whole` without `part`, by the server's own arithmetic; none: not understood.
pub async fn subtract(
    session: &mut Session,
    whole: &GtidSet,
    part: &GtidSet,
    deadline: Deadline,
) -> Result<Option<GtidSet>, Error> {
    const DOING: &str = "subtract sets";
    let (whole, part) = (quote::text(&whole.compact().to_string()), quote::text(&part.compact().to_string()));
    let row = session.ask_row(DOING, &format!("SELECT GTID_SUBTRACT({whole}, {part})"), deadline).await?;
    session.columns(DOING, &row).set(0, "the answer")
}
