//! Whether anybody's data is on a server.
//!
//! In: a session. Out: the schemas of users. Must not: count the server's own, or Bloodraven's heartbeat.

use crate::{Deadline, Error, Session, quote};

/// Schemas that are nobody's data.
pub const OWN: &[&str] = &["information_schema", "mysql", "performance_schema", "sys", HEARTBEAT];

/// Bloodraven's own among them.
pub const HEARTBEAT: &str = "bloodraven";

/// The schemas of users, at most a hundred.
pub async fn of_users(session: &mut Session, deadline: Deadline) -> Result<Vec<String>, Error> {
    besides(session, OWN, deadline).await
}

/// What a clone would have to drop: also Bloodraven's own. At most a hundred.
pub(crate) async fn to_drop(session: &mut Session, deadline: Deadline) -> Result<Vec<String>, Error> {
    let servers: Vec<&str> = OWN.iter().copied().filter(|name| *name != HEARTBEAT).collect();
    besides(session, &servers, deadline).await
}

async fn besides(session: &mut Session, these: &[&str], deadline: Deadline) -> Result<Vec<String>, Error> {
    const DOING: &str = "list schemas";
    let question = format!(
        "SELECT schema_name FROM information_schema.schemata WHERE schema_name NOT IN ({}) ORDER BY 1 LIMIT 100",
        quote::list(these.iter().copied())
    );
    let sets = session.ask(DOING, &question, deadline).await?;
    sets.iter().flatten().map(|row| session.columns(DOING, row).text(0, "the schema's name")).collect()
}
