//! Views go to every sidecar on each change and at least every interval; whoever does not know the present epoch is told
//! again soon.

use super::command::Command;
use super::{Group, Kept, Step};
use crate::name::Site;
use crate::time::{Boot, Millis, Now};

/// Who failed, or has not stored the present epoch, is told again after this long.
pub(super) const AGAIN: Millis = Millis(500);

/// A push that was not answered for so long is lost.
const LOST: Millis = Millis(3000);

impl Group {
    pub(super) fn push_views(&mut self, now: Now, kept: &Kept, out: &mut Step) {
        for (site, seen) in &mut self.seen.sites {
            seen.pushing = seen.pushing.filter(|since| now.boot < *since + LOST);
            if seen.pushing.is_none() && now.boot >= seen.push_due {
                seen.pushing = Some(now.boot);
                let to = site.clone();
                out.commands.push(match &kept.record {
                    Some(record) => Command::Push { to, view: Box::new(record.view()) },
                    None => Command::Probe { to },
                });
            }
        }
    }

    /// Without waiting for the interval, and beside one that is on its way: it brings an older view.
    pub(super) fn push_soon(&mut self, now: Boot) {
        for seen in self.seen.sites.values_mut() {
            seen.pushing = None;
            seen.push_due = now;
        }
    }

    pub(super) fn push_failed(&mut self, now: Now, to: &Site) {
        if let Some(seen) = self.seen.sites.get_mut(to) {
            seen.pushing = None;
            seen.push_due = now.boot + AGAIN;
        }
    }

    /// At least every interval, and never slower than a third of the lease.
    pub(super) fn push_interval(&self) -> Millis {
        Millis(self.spec.peer_check.0.min(self.spec.lease.lease_timeout.0 / 3))
    }
}
