//! Servers that write without authority are fenced on every tick until it holds, whatever else goes on. Their own
//! sidecars do it; SQL is a help, never a proof.

use super::command::{Lane, Task};
use super::{Group, Kept, Notice, Step};
use crate::time::{Millis, Now};
use crate::topology::WriterReason;

/// Between two SQL fences of one site: the first one's effect has to be read.
const AGAIN: Millis = Millis(250);

/// The revoked holder's own sidecar has so long before SQL helps.
pub(super) const SIDECAR_FIRST: Millis = Millis(1000);

impl Group {
    pub(super) fn fence_writers(&mut self, now: Now, kept: &Kept, out: &mut Step) {
        let writers = self.judged.as_ref().map(|judged| judged.fence.clone()).unwrap_or_default();
        for writer in writers {
            // A poll has to have seen it; a second pod that only speaks is out of SQL's reach.
            let polled = writer.pair.is_some();
            let rested = self.seen.site(&writer.site).is_none_or(|seen| now.boot >= seen.fence_due);
            let noted =
                !matches!(writer.why, WriterReason::Revoked | WriterReason::AnotherInstance) || fence_is_noted(kept);
            if polled
                && rested
                && noted
                && !self.is_busy(&writer.site, Lane::Fence)
                && self.begin(now, &writer.site, Task::Fence, out)
            {
                let because = writer.why.to_string();
                if let Some(seen) = self.seen.sites.get_mut(&writer.site) {
                    seen.fence_due = now.boot + AGAIN;
                }
                out.notices.push(Notice::FencingWriter { site: writer.site, because });
            }
        }
    }
}

/// The holder's SQL fence is written down before it is sent, so that a later leader knows whose fence it is.
fn fence_is_noted(kept: &Kept) -> bool {
    let holder = kept.record.as_ref().and_then(|record| record.holder.as_ref());
    holder.is_some_and(|holder| holder.sql_fence_sent)
}
