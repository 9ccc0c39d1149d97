//! The write gap: how long nothing was acknowledged through the front door.
//!
//! In: the moments of acknowledgements, and marks (a fault, a request). Out: the longest silence of each stretch between
//! two marks. Must not: forget a silence that a mark falls into; it belongs to the stretch in which it ends.

use super::Moment;
use serde::Serialize;

/// How many stretches are kept; the oldest go first.
const MOST: usize = 256;

/// The longest silence after a mark.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Gap {
    /// What happened at its beginning.
    pub after: String,
    /// When.
    pub mark: Moment,
    /// In microseconds. Nothing acknowledged since: up to the moment of asking.
    pub longest_us: u64,
    /// Whether writing went on after the longest silence.
    pub over: bool,
}

/// See above.
#[derive(Clone, Debug, Default)]
pub struct Gaps {
    last: Option<Moment>,
    stretches: Vec<Gap>,
    /// Silences that nobody waits through: the load was switched off.
    off: bool,
}

impl Gaps {
    /// Something happened that writing may suffer from.
    pub fn mark(&mut self, after: impl Into<String>, now: Moment) {
        if self.stretches.len() >= MOST {
            self.stretches.remove(0);
        }
        self.stretches.push(Gap { after: after.into(), mark: now, longest_us: 0, over: true });
    }

    /// A write through the front door was acknowledged.
    pub fn acknowledged(&mut self, at: Moment) {
        if self.stretches.is_empty() {
            self.mark("start", at);
        }
        // One that was under way when the load was switched off tells nothing of what follows.
        if self.off {
            return;
        }
        let silence = self.last.map_or(0, |last| at.since(last));
        if let Some(stretch) = self.stretches.last_mut() {
            stretch.longest_us = stretch.longest_us.max(silence);
        }
        self.last = Some(self.last.map_or(at, |last| last.max(at)));
    }

    /// The load is switched on: silences count from its first acknowledgement.
    pub fn switched_on(&mut self) {
        if std::mem::take(&mut self.off) {
            self.last = None;
        }
    }

    /// The load is switched off: the silence that follows is nobody's fault.
    pub fn switched_off(&mut self) {
        self.off = true;
    }

    /// How long nothing has been acknowledged, in microseconds; zero while the load is off or has not begun.
    pub fn silence(&self, now: Moment) -> u64 {
        self.last.filter(|_| !self.off).map_or(0, |last| now.since(last))
    }

    /// Whether anything was acknowledged since the load was switched on.
    pub fn has_begun(&self) -> bool {
        self.last.is_some()
    }

    /// The stretch since the last mark, the silence that lasts included.
    pub fn latest(&self, now: Moment) -> Option<Gap> {
        self.all(now).pop()
    }

    /// Every stretch that is kept.
    pub fn all(&self, now: Moment) -> Vec<Gap> {
        let mut all = self.stretches.clone();
        let silence = self.silence(now);
        if let Some(last) = all.last_mut()
            && silence > last.longest_us
        {
            last.longest_us = silence;
            last.over = false;
        }
        all
    }

    /// The longest of all, in microseconds.
    pub fn longest(&self, now: Moment) -> u64 {
        self.all(now).iter().map(|gap| gap.longest_us).max().unwrap_or(0)
    }
}
