//! Many seeds: played on every core, summed up in one table.
//!
//! In: a range of seeds. Out: a [`Tally`]. Must not: let the number of cores change a result.

use super::draw::draw;
use super::{Figures, Rest, Run, play};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// As many wrong seeds are remembered of each kind.
const REMEMBERED: usize = 12;

/// What came of many seeds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many were played.
    pub runs: u64,
    /// How many came to rest with everybody following.
    pub served: u64,
    /// How many rightly stood still.
    pub blocked: u64,
    /// How many served while something did not follow.
    pub trailed: u64,
    /// What went wrong: how often, and the first seeds with their words.
    pub wrong: BTreeMap<String, (u64, Vec<(u64, String)>)>,
    /// Figures of all.
    pub figures: Figures,
    /// The run with the most events, and its seed.
    pub busiest: (u64, u64),
}

impl Tally {
    fn add(&mut self, run: &Run) {
        self.runs += 1;
        self.figures = self.figures.plus(run.figures);
        self.busiest = self.busiest.max((run.figures.events, run.seed));
        let (kind, words) = match (&run.broken, &run.rest) {
            (Some(broken), _) => (broken.promise.to_owned(), broken.words.clone()),
            (None, Rest::Restless(words)) => ("comes to rest".to_owned(), words.clone()),
            (None, Rest::Trails(words)) => {
                self.trailed += 1;
                ("(trails)".to_owned(), words.clone())
            }
            (None, Rest::Blocked(name, words)) => {
                self.blocked += 1;
                (format!("(stands still: {name})"), words.clone())
            }
            (None, Rest::Serves | Rest::Unknown) => return self.served += 1,
        };
        let (count, seeds) = self.wrong.entry(kind).or_default();
        *count += 1;
        seeds.push((run.seed, words));
        seeds.sort_unstable();
        seeds.truncate(REMEMBERED);
    }

    fn join(&mut self, other: Self) {
        self.runs += other.runs;
        self.served += other.served;
        self.blocked += other.blocked;
        self.trailed += other.trailed;
        self.figures = self.figures.plus(other.figures);
        self.busiest = self.busiest.max(other.busiest);
        for (kind, (count, seeds)) in other.wrong {
            let (sum, all) = self.wrong.entry(kind).or_default();
            *sum += count;
            all.extend(seeds);
            all.sort_unstable();
            all.truncate(REMEMBERED);
        }
    }

    /// Whether nothing went wrong; what rightly stands still, or trails, is told and not wrong.
    pub fn is_clean(&self) -> bool {
        self.wrong.keys().all(|kind| kind.starts_with('('))
    }
}

/// Plays all of them, on so many threads; `progress` is told how many are done, from time to time.
pub fn play_all(seeds: Range<u64>, sites: Option<usize>, threads: usize, progress: impl Fn(u64) + Sync) -> Tally {
    let next = AtomicU64::new(seeds.start);
    let total = Mutex::new(Tally::default());
    let work = || {
        let mut mine = Tally::default();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                break;
            }
            mine.add(&play(&draw(seed, sites), false));
            let done = seed - seeds.start + 1;
            if done.is_multiple_of(256) {
                progress(done);
            }
        }
        if let Ok(mut total) = total.lock() {
            total.join(mine);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.max(1) {
            scope.spawn(work);
        }
        work();
    });
    total.into_inner().unwrap_or_default()
}
