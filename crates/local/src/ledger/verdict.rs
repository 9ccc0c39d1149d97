//! What the ledger says, as JSON and in one line.
//!
//! In: counts. Out: text. Must not: call clean what is not accounted for.

use super::{Gap, SiteNumber};
use serde::Serialize;
use std::fmt;

/// A write that was acknowledged by a site that had no right to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WrongSide {
    /// Which write.
    pub id: u64,
    /// Who acknowledged it.
    pub site: SiteNumber,
    /// The tenure it can have been written under at best; none: the site never had one by then.
    pub tenure: Option<u64>,
    /// The newer tenure that another site had acknowledged under before.
    pub newer: Option<u64>,
}

/// The ledger's judgement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Verdict {
    /// Writes that a client was told are done.
    pub acknowledged: u64,
    /// Writes that were refused for certain.
    pub refused: u64,
    /// Writes of which nobody was told anything.
    pub unknown: u64,
    /// Acknowledged by a site that had no right to. Must be 0.
    pub wrong_side: u64,
    /// The same, but by a server that a person had opened by hand a moment before. Nobody can prevent that; it is told.
    pub opened_by_hand: u64,
    /// Some of those on the wrong side.
    pub wrong_side_examples: Vec<WrongSide>,
    /// Acknowledged, and found nowhere although everyone who could have it was asked. Must be 0.
    pub lost: u64,
    /// Acknowledged, on some site, but neither on the primary nor in a divergence report. Must be 0 in the end.
    pub unreported: u64,
    /// Acknowledged, not on the primary, and the site that acknowledged it could not be asked. Must be 0 in the end.
    pub stranded: u64,
    /// Some of those three.
    pub missing_examples: Vec<u64>,
    /// Acknowledged, not on the primary, and people are told so by a divergence report.
    pub reported: u64,
    /// Transactions that a later primary had received while it followed, and that are gone. Must be 0.
    pub received_and_lost: u64,
    /// The longest silence at the front door, in microseconds.
    pub longest_gap_us: u64,
    /// The silence after each fault.
    pub gaps: Vec<Gap>,
    /// Why nothing can be said about missing writes yet.
    pub incomplete: Option<String>,
}

impl Verdict {
    /// Whether every promise was kept and nothing is left open.
    pub fn is_clean(&self) -> bool {
        self.wrong_side == 0
            && self.missing() == 0
            && self.stranded == 0
            && self.received_and_lost == 0
            && self.incomplete.is_none()
    }

    /// Lost in the sense of the promise: neither on the primary nor in a divergence report.
    pub const fn missing(&self) -> u64 {
        self.lost + self.unreported
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { acknowledged, wrong_side, received_and_lost, reported, stranded, .. } = self;
        write!(f, "{acknowledged} acknowledged, {} lost, {wrong_side} wrong-side", self.missing())?;
        write!(f, ", {received_and_lost} received and lost, longest gap {}", Shown(self.longest_gap_us))?;
        if *reported > 0 {
            write!(f, ", {reported} reported as divergent")?;
        }
        if self.opened_by_hand > 0 {
            write!(f, ", {} by a server that a person had opened", self.opened_by_hand)?;
        }
        if *stranded > 0 {
            write!(f, ", {stranded} on a site that does not answer")?;
        }
        self.incomplete.as_ref().map_or(Ok(()), |why| write!(f, " (incomplete: {why})"))
    }
}

/// A length of time for people: `41 ms`, `6.2 s`.
pub(crate) struct Shown(pub(crate) u64);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0 / 1000;
        if millis < 1000 {
            return write!(f, "{millis} ms");
        }
        write!(f, "{}.{} s", millis / 1000, millis % 1000 / 100)
    }
}
