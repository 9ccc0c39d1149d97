//! Room for a clone that was asked for: a recipient with schemas is emptied by its own keeper first.
//!
//! In: the clone's recipient, what may be overwritten, the epoch that is stored. Out: the server that may be cloned into,
//! empty and of a new identity if there was anything to go; or why not. Must not: order anything for a clone that nobody
//! asked for, order it twice, or take a server for empty that is the one from before.
//!
//! `CLONE` begins by dropping the recipient's schemas, which a fenced server refuses; and it is never opened for that. The
//! order names all that the sidecar can compare: its instance, the epoch, the start of mysqld, the server and what it holds;
//! and it is void after a few seconds of the sidecar's own time. Who repeats it, finds another server there. A leader that
//! comes in the middle reads the site as it is by then: full, silent or empty.

use super::sidecar::{self, Line, Said};
use crate::servers::{Server, Servers};
use crate::tasks::rest;
use bloodraven_brain::group::Task;
use bloodraven_brain::group::input::{Facts, Outcome};
use bloodraven_brain::record::Epoch;
use bloodraven_brain::site::Pair;
use bloodraven_brain::time::Millis;
use bloodraven_gtid::{GtidSet, Uuid};
use bloodraven_wire::EmptyMessage;
use std::time::Duration;
use tokio::time::Instant;

/// How long one reading may take.
const READ_WITHIN: Duration = Duration::from_secs(5);

/// How long after the sidecar's acknowledgement an order is good.
const GOOD_FOR: Millis = Millis(3000);

/// How long stopping, emptying and the first boot may take: a large folder takes a minute to go.
const EMPTIED_WITHIN: Duration = Duration::from_mins(5);

/// Between two looks whether it is done.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Whom to ask, about which server.
pub(super) struct Recipient<'a, S> {
    pub(super) servers: &'a S,
    pub(super) server: &'a Server,
    pub(super) line: &'a Line,
    /// The epoch that is known to be stored.
    pub(super) epoch: Epoch,
    pub(super) until: Instant,
}

impl<S: Servers> Recipient<'_, S> {
    /// Sees to it that nothing stands in the way; the server to be cloned into, and what it holds.
    pub(super) async fn make_room(&self, meant: Option<Uuid>, over: &GtidSet) -> Result<(Uuid, GtidSet), Outcome> {
        let facts = self.read(meant).await?;
        if is_empty(&facts) {
            return Ok((facts.server_uuid, GtidSet::new()));
        }
        let failed = |why: String| Err(Outcome::Failed(format!("it could not be emptied: {why}")));
        let executed = facts.data.as_ref().map(|data| &data.executed);
        if facts.pair != Pair::CLOSED || !executed.is_some_and(|executed| over.contains(executed)) {
            return failed("it is not fenced, or has more than may go".to_owned());
        }
        if let Err(why) = self.order(facts.server_uuid, over).await {
            return failed(why);
        }
        let end = self.until.min(Instant::now() + EMPTIED_WITHIN);
        while Instant::now() < end {
            rest(LOOK_EVERY).await;
            match self.read(None).await {
                Ok(now) if now.server_uuid != facts.server_uuid && is_empty(&now) && now.pair == Pair::CLOSED => {
                    return Ok((now.server_uuid, GtidSet::new()));
                }
                _ => {}
            }
        }
        failed("it did not come back empty in time".to_owned())
    }

    async fn order(&self, server: Uuid, over: &GtidSet) -> Result<(), String> {
        let told = sidecar::say(self.line, &Said::Probe).await.map_err(|unheard| unheard.to_string())?.ack;
        let start = told.mysqld.ok_or("its sidecar says that mysqld does not run")?;
        let order = EmptyMessage {
            group: self.line.group.clone(),
            to: told.from,
            epoch: self.epoch,
            start,
            server,
            over: over.clone(),
            until_uptime: told.uptime + GOOD_FOR,
        };
        tracing::warn!(site = %self.line.site, server = %server, "its data folder is emptied for the reclone");
        let said = sidecar::say(self.line, &Said::Empty(Box::new(order))).await;
        said.map(drop).map_err(|unheard| unheard.to_string())
    }

    async fn read(&self, meant: Option<Uuid>) -> Result<Facts, Outcome> {
        let within = READ_WITHIN.min(self.until.saturating_duration_since(Instant::now()));
        match self.servers.work(self.server, &mut None, meant, &Task::Read, within).await {
            Outcome::Read(facts) => Ok(*facts),
            other => Err(other),
        }
    }
}

/// Nothing that a clone would have to drop: no schema of users, and nothing ever executed, so no other either.
fn is_empty(facts: &Facts) -> bool {
    !facts.user_data && facts.data.as_ref().is_some_and(|data| data.executed.is_empty())
}
