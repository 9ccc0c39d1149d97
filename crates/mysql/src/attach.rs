//! A server without replication brought to follow a source.
//!
//! In: the source, and its set as just read. Out: what was read afterwards; or why it was left alone, fenced. Must not:
//! read its set before it is known to be closed, or attach one that has what the source lacks.

use crate::guard::Guarded;
use crate::repoint::contained;
use crate::{Deadline, Error, Server, Session, Source, Spared, Wanted, fence, poll, replica};
use bloodraven_gtid::GtidSet;
use std::time::Duration;

/// What the fence may take of the time.
const FENCE_WITHIN: Duration = Duration::from_millis(1500);

/// Fence; then, only if `contained_in` contains everything it has executed, reset, point, start; then read.
pub async fn attach(
    server: &Server,
    wanted: Wanted,
    source: &Source,
    contained_in: &GtidSet,
    spared: &Spared,
    deadline: Deadline,
) -> Result<Guarded, Error> {
    let fenced = fence(server, wanted, spared, deadline.but_within(FENCE_WITHIN)).await;
    fenced.map_err(|unfenced| unfenced.error)?;
    let mut session = Session::open(server, deadline).await?;
    let session = &mut session;
    // Read after the fence, and on this connection: both variables and the set.
    let reading = poll(session, deadline).await?;
    let refused = match &reading.executed {
        _ if !reading.pair.is_fenced() => Some("somebody opened it again".to_owned()),
        None => Some("its set is not understood".to_owned()),
        Some(executed) => contained(executed, contained_in).err(),
    };
    if let Some(why) = refused {
        return Ok(Guarded::Refused { why, reading: Box::new(reading) });
    }
    replica::stop(session, wanted, deadline).await?;
    replica::reset_all(session, wanted, deadline).await?;
    replica::change_source(session, wanted, source, deadline).await?;
    replica::start(session, wanted, deadline).await?;
    Ok(Guarded::Acted(Box::new(poll(session, deadline).await?)))
}
