//! What the charts show: the last two minutes, a column a second.
//!
//! In: a picture each second. Out: points. Must not: grow.

use crate::playground::picture::Picture;
use std::collections::VecDeque;

/// Seconds that are kept.
pub(super) const SECONDS: usize = 120;

/// See above.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// Acknowledged writes a second, for each site.
    writes: Vec<VecDeque<u64>>,
    /// The silence at the front door at the end of the second, in milliseconds.
    silence: VecDeque<u64>,
}

impl History {
    /// A second is over.
    pub fn add(&mut self, picture: &Picture) {
        self.writes.resize(picture.sites.len(), VecDeque::new());
        for (line, site) in self.writes.iter_mut().zip(&picture.sites) {
            push(line, site.writes_per_second);
        }
        push(&mut self.silence, picture.load.silence_ms);
    }

    /// The line of a site: seconds ago (negative) and writes a second.
    pub fn writes(&self, site: usize) -> Vec<(f64, f64)> {
        points(self.writes.get(site))
    }

    /// The most writes a second of any site.
    pub fn most(&self) -> u64 {
        self.writes.iter().flatten().copied().max().unwrap_or(0)
    }

    /// The silences, the newest last.
    pub fn silences(&self) -> Vec<u64> {
        self.silence.iter().copied().collect()
    }
}

fn push(line: &mut VecDeque<u64>, value: u64) {
    if line.len() >= SECONDS {
        line.pop_front();
    }
    line.push_back(value);
}

#[expect(clippy::cast_precision_loss, reason = "writes a second and two minutes are small numbers")]
fn points(line: Option<&VecDeque<u64>>) -> Vec<(f64, f64)> {
    let Some(line) = line else { return Vec::new() };
    let newest = line.len().saturating_sub(1);
    line.iter().enumerate().map(|(index, value)| (index as f64 - newest as f64, *value as f64)).collect()
}
