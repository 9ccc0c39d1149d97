//! The ledger: what clients were promised, held against what the servers have.
//!
//! In: every write of the load with its outcome and its times, who held authority when, and what a look at every site
//! found. Out: a [`Verdict`]: the write gap, wrong-side writes, lost writes, received and lost ones. Must not: ask anyone
//! (see [`lookup`]), or give the benefit of the doubt where the promise is at stake.
//!
//! | verdict | meaning |
//! |---|---|
//! | wrong-side | sent to and acknowledged by a site after another one had acknowledged under a newer tenure, or without any tenure |
//! | lost | acknowledged, and neither on the primary nor in a divergence report |
//! | received and lost | had reached a later primary while it followed, and is gone |
//!
//! What a person lets through by opening a server by hand is counted apart ([`Hand`]): nobody can prevent it.
//!
//! Two acknowledgements that cross on their way to the client prove nothing: a write counts as wrong-side only if it was
//! *sent* after the other one's acknowledgement had arrived.

mod book;
mod gap;
pub(crate) mod hand;
mod judge;
pub mod lookup;
mod verdict;

#[cfg(test)]
mod tests;

pub use book::{Book, Counts, Full};
pub use gap::{Gap, Gaps};
pub use hand::Hand;
pub use judge::{Evidence, Reading};
pub use verdict::{Verdict, WrongSide};

use serde::Serialize;

/// A moment on this machine's `CLOCK_BOOTTIME`, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Moment(pub u64);

impl Moment {
    /// How long ago `earlier` was, in microseconds; zero if it lies ahead.
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// A site by its place in the group's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct SiteNumber(pub u8);

/// What the client was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It is done.
    Acknowledged,
    /// It is not done.
    Refused,
    /// Nothing: the connection was lost or the time was over after it had been sent.
    Unknown,
}

/// One write, as its client saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// Unique over all writers and runs.
    pub id: u64,
    /// Through the front door, not straight to a site.
    pub door: bool,
    /// The site whose server it was sent to; none: that server is not known.
    pub site: Option<SiteNumber>,
    /// When it was sent.
    pub sent: Moment,
    /// When the outcome was known.
    pub ended: Moment,
    /// What the client was told.
    pub outcome: Outcome,
}

/// A time of authority: that site may write from then on, until a newer tenure begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tenure {
    /// The epoch of the grant that began it.
    pub number: u64,
    /// Whose it is.
    pub site: SiteNumber,
    /// Not before this moment could anyone have written under it.
    pub from: Moment,
}
