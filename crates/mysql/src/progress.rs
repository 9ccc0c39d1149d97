//! How far a clone is, and how the last one ended. Both survive the recipient's restart.
//!
//! In: a session on the recipient. Out: typed rows. Must not: take a missing plugin for a failed clone.

use crate::{Deadline, Error, Session};
use bloodraven_gtid::GtidSet;

/// `ER_NO_SUCH_TABLE`, `ER_UNKNOWN_TABLE`: the plugin is not loaded.
const NO_TABLE: &[u16] = &[1146, 1109];

/// How the last clone into this server ended, or that it goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloneStatus {
    /// Where it is.
    pub state: CloneState,
    /// `host:port` of the donor.
    pub source: String,
    /// The server's error number; zero: none.
    pub code: u32,
    /// The server's words.
    pub message: String,
    /// What the copy had executed; none: not known yet, or not understood.
    pub executed: Option<GtidSet>,
}

/// Where a clone is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloneState {
    /// It has not begun.
    NotStarted,
    /// It goes on.
    InProgress,
    /// It is complete.
    Completed,
    /// It failed.
    Failed,
}

/// One stage of a clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// `DROP DATA`, `FILE COPY`, …
    pub name: String,
    /// Where it is.
    pub state: CloneState,
    /// Bytes copied.
    pub copied: u64,
    /// Bytes expected.
    pub expected: u64,
}

/// The last clone into this server; none: there was none, or the plugin is not loaded.
pub async fn clone_status(session: &mut Session, deadline: Deadline) -> Result<Option<CloneStatus>, Error> {
    const DOING: &str = "read the clone's state";
    let question = "SELECT STATE, SOURCE, ERROR_NO, ERROR_MESSAGE, GTID_EXECUTED FROM performance_schema.clone_status";
    let sets = match session.ask(DOING, question, deadline).await {
        Err(Error::Server { code, .. }) if NO_TABLE.contains(&code) => return Ok(None),
        other => other?,
    };
    let Some(row) = sets.iter().flatten().next() else { return Ok(None) };
    let columns = session.columns(DOING, row);
    let text = columns.text(0, "STATE")?;
    let Some(state) = state(&text) else { return columns.unreadable("STATE") };
    Ok(Some(CloneStatus {
        state,
        source: columns.maybe(1).unwrap_or_default(),
        code: columns.number(2, "ERROR_NO")?,
        message: columns.maybe(3).unwrap_or_default(),
        executed: columns.maybe(4).and_then(|set| set.parse().ok()),
    }))
}

/// Its stages, in order; empty: there was none, or the plugin is not loaded.
pub async fn clone_progress(session: &mut Session, deadline: Deadline) -> Result<Vec<Stage>, Error> {
    const DOING: &str = "read the clone's progress";
    let question = "SELECT STAGE, STATE, DATA, ESTIMATE FROM performance_schema.clone_progress LIMIT 100";
    let sets = match session.ask(DOING, question, deadline).await {
        Err(Error::Server { code, .. }) if NO_TABLE.contains(&code) => return Ok(Vec::new()),
        other => other?,
    };
    let read = |row| {
        let columns = session.columns(DOING, row);
        let text = columns.text(1, "STATE")?;
        let Some(state) = state(&text) else { return columns.unreadable("STATE") };
        Ok(Stage {
            name: columns.text(0, "STAGE")?,
            state,
            copied: columns.number(2, "DATA")?,
            expected: columns.number(3, "ESTIMATE")?,
        })
    };
    sets.iter().flatten().map(read).collect()
}

/// Bytes copied and bytes in all of the clone that goes on; none: none does.
pub async fn clone_bytes(session: &mut Session, deadline: Deadline) -> Result<Option<(u64, u64)>, Error> {
    Ok(bytes(&clone_progress(session, deadline).await?))
}

/// What an earlier clone has left there is not about this one: some stage must be under way.
fn bytes(stages: &[Stage]) -> Option<(u64, u64)> {
    stages.iter().any(|stage| stage.state == CloneState::InProgress).then(|| {
        let sum = |of: fn(&Stage) -> u64| stages.iter().map(of).fold(0, u64::saturating_add);
        (sum(|stage| stage.copied), sum(|stage| stage.expected.max(stage.copied)))
    })
}

fn state(text: &str) -> Option<CloneState> {
    match text {
        "Not Started" => Some(CloneState::NotStarted),
        "In Progress" => Some(CloneState::InProgress),
        "Completed" => Some(CloneState::Completed),
        "Failed" => Some(CloneState::Failed),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_those_of_the_clone_that_goes_on() {
        use CloneState::{Completed, InProgress, NotStarted};
        let stage = |state, copied, expected| Stage { name: "FILE COPY".to_owned(), state, copied, expected };
        let rows = [
            (vec![], None),
            (vec![stage(Completed, 9, 9), stage(NotStarted, 0, 0)], None),
            (vec![stage(Completed, 0, 0), stage(InProgress, 5, 9), stage(NotStarted, 0, 0)], Some((5, 9))),
            // An estimate may be exceeded.
            (vec![stage(Completed, 9, 9), stage(InProgress, 3, 2)], Some((12, 12))),
            (vec![stage(InProgress, u64::MAX, 1), stage(InProgress, 1, 1)], Some((u64::MAX, u64::MAX))),
        ];
        for (stages, expect) in rows {
            assert_eq!(bytes(&stages), expect, "{stages:?}");
        }
    }

    #[test]
    fn states_are_the_servers_words() {
        assert_eq!(state("Completed"), Some(CloneState::Completed));
        assert_eq!(state("Not Started"), Some(CloneState::NotStarted));
        assert_eq!(state("completed?"), None);
    }
}
