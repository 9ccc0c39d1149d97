//! A replica pointed to another source.
//!
//! In: the source, and its set as just read. Out: what was read afterwards; or why it was left stopped. Must not: delete
//! relay logs (pointing does) before everything the replica has, received transactions included, is known to be at the
//! source.

use crate::guard::Guarded;
use crate::{Deadline, Error, Reading, Server, Session, Source, Wanted, poll, replica};
use bloodraven_gtid::GtidSet;

/// Stop; then, only if `contained_in` contains everything it has executed or received, point and start; then read.
pub async fn repoint(
    server: &Server,
    wanted: Wanted,
    source: &Source,
    contained_in: &GtidSet,
    deadline: Deadline,
) -> Result<Guarded, Error> {
    let mut session = Session::open(server, deadline).await?;
    let session = &mut session;
    replica::stop(session, wanted, deadline).await?;
    let reading = poll(session, deadline).await?;
    if let Err(why) = check(&reading, contained_in) {
        return Ok(Guarded::Refused { why, reading: Box::new(reading) });
    }
    replica::change_source(session, wanted, source, deadline).await?;
    replica::start(session, wanted, deadline).await?;
    Ok(Guarded::Acted(Box::new(poll(session, deadline).await?)))
}

/// Everything that it has, received transactions included, is at the source.
fn check(reading: &Reading, contained_in: &GtidSet) -> Result<(), String> {
    let Some(executed) = &reading.executed else { return Err("its set is not understood".to_owned()) };
    let held = match reading.replica.as_ref().map(|replica| &replica.received) {
        None => executed.clone(),
        Some(Some(received)) => executed.union(received),
        Some(None) => return Err("its received set is not understood".to_owned()),
    };
    contained(&held, contained_in)
}

/// Why a set is not part of the source's.
pub(crate) fn contained(held: &GtidSet, contained_in: &GtidSet) -> Result<(), String> {
    let beyond = held.subtract(contained_in);
    if beyond.is_empty() { Ok(()) } else { Err(format!("the source lacks {}", beyond.compact())) }
}
