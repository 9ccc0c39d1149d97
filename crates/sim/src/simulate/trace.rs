//! The timeline: who did what when, in words; made only when somebody wants to read it.
//!
//! In: moments and sentences. Out: lines. Must not: cost anything when nobody listens.

use super::clock::{MS, SEC, Time};
use super::world::World;
use std::fmt;

/// One line of a timeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// True time.
    pub at: Time,
    /// Who.
    pub who: String,
    /// What, in words.
    pub what: String,
}

/// What has happened so far.
#[derive(Debug, Default)]
pub(super) struct Trace {
    wanted: bool,
    pub(super) lines: Vec<Line>,
}

/// A timeline that grows beyond this is cut: nobody reads on.
const MOST_LINES: usize = 100_000;

impl Trace {
    pub(super) fn new(wanted: bool) -> Self {
        Self { wanted, lines: Vec::new() }
    }
}

impl World {
    /// Writes a line, if anybody reads it.
    pub(super) fn tell(&mut self, words: impl FnOnce(&Self) -> (String, String)) {
        if !self.trace.wanted || self.trace.lines.len() >= MOST_LINES {
            return;
        }
        let (who, what) = words(self);
        self.trace.lines.push(Line { at: self.now, who, what });
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, rest) = (self.at / SEC, self.at % SEC / MS);
        write!(f, "{seconds:>5}.{rest:03} s  {:<22} {}", self.who, self.what)
    }
}
