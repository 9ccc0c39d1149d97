//! Scheduled events that a promotion leaves switched off.
//!
//! In: a session. Out: their names. Must not: switch them on (an admin's choice).

use crate::{Deadline, Error, Session};

/// Events that were replicated and do not run here, as `schema.name`, at most a thousand.
pub async fn disabled_on_replica(session: &mut Session, deadline: Deadline) -> Result<Vec<String>, Error> {
    const DOING: &str = "list events";
    let question = "SELECT EVENT_SCHEMA, EVENT_NAME FROM information_schema.events \
                    WHERE STATUS = 'REPLICA_SIDE_DISABLED' ORDER BY 1, 2 LIMIT 1000";
    let sets = session.ask(DOING, question, deadline).await?;
    let name = |row| {
        let columns = session.columns(DOING, row);
        Ok(format!("{}.{}", columns.text(0, "the schema")?, columns.text(1, "the name")?))
    };
    sets.iter().flatten().map(name).collect()
}
