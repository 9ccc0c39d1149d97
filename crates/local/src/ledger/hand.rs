//! Servers that a person opened, past every rule: what a client writes there before the server is closed again is told
//! apart from what the product itself let through.
//!
//! In: when somebody began to open a server, and when it was next seen closed. Out: whether a write fell into that time.
//! Must not: excuse for longer than [`MOST`]: by then the server has to be closed, whoever opened it.

use super::{Moment, SiteNumber, Write};

/// A tick of the sidecar and a fence fit in several times, in microseconds.
pub(crate) const MOST: u64 = 5_000_000;

/// As many times are kept; the oldest go first.
const KEPT: usize = 64;

#[derive(Clone, Copy, Debug)]
struct Window {
    site: SiteNumber,
    from: Moment,
    until: Moment,
}

/// See above.
#[derive(Clone, Debug, Default)]
pub struct Hand(Vec<Window>);

impl Hand {
    /// Somebody is about to open that server.
    pub fn opens(&mut self, site: SiteNumber, now: Moment) {
        if self.0.len() >= KEPT {
            self.0.remove(0);
        }
        self.0.push(Window { site, from: now, until: Moment(now.0.saturating_add(MOST)) });
    }

    /// It was seen closed, by a look that began then or later.
    pub fn closed(&mut self, site: SiteNumber, now: Moment) {
        for window in self.0.iter_mut().filter(|window| window.site == site) {
            window.until = window.until.min(now);
        }
    }

    /// Whether the write may have been taken by a server that was open by hand.
    pub fn had_opened(&self, write: &Write) -> bool {
        let during = |window: &Window| write.ended >= window.from && write.sent <= window.until;
        self.0.iter().any(|window| write.site == Some(window.site) && during(window))
    }
}
