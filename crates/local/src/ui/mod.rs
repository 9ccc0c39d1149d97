//! The screen: sites, charts, the timeline of decisions, the ledger, and keys that hurt.
//!
//! In: pictures and entries of the playground; keys. Out: a drawn terminal; wishes. Must not: do what a key asks for (the
//! playground does), or leave the terminal in another state than it was found in.

mod draw;
mod history;
mod keys;
mod terminal;

#[cfg(test)]
mod tests;

pub use draw::draw;
pub use history::History;
pub use keys::{Wish, pressed};
pub use terminal::{Terminal, Unusable};

use crate::playground::picture::{Entry, Picture};
use std::collections::VecDeque;

/// As many entries of the timeline are kept.
const MOST_ENTRIES: usize = 200;

/// All that is drawn.
#[derive(Clone, Debug, Default)]
pub struct Screen {
    /// The newest picture.
    pub picture: Picture,
    /// What happened, the newest last.
    pub timeline: VecDeque<Entry>,
    /// What the charts show.
    pub history: History,
    /// The site that the keys are about.
    pub selected: usize,
    /// The answer to the last key.
    pub answer: Option<String>,
    /// Whether the page with the keys is shown.
    pub help: bool,
    /// What the running script shows, and where it is.
    pub script: Option<(String, String)>,
    /// Where everything is kept.
    pub dir: String,
}

impl Screen {
    /// Takes in a picture; once a second it goes into the charts.
    pub fn take(&mut self, picture: Picture, second_over: bool) {
        if second_over {
            self.history.add(&picture);
        }
        self.selected = self.selected.min(picture.sites.len().saturating_sub(1));
        self.picture = picture;
    }

    /// Takes in what happened.
    pub fn note(&mut self, entry: Entry) {
        if self.timeline.len() >= MOST_ENTRIES {
            self.timeline.pop_front();
        }
        self.timeline.push_back(entry);
    }
}
