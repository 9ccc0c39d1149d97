//! The timeline: what was seen, by whom, and when, all by one clock.
//!
//! In: lines from everybody who watches. Out: them in order, for the evidence of a run that failed. Must not: grow without a
//! bound, or take the time from anywhere else.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bloodraven_testbed::wait::Stopwatch;

/// A run of all scenes writes some thousands.
const MOST_LINES: usize = 100_000;

/// Shared by everybody who watches.
#[derive(Clone, Debug)]
pub(crate) struct Timeline {
    clock: Stopwatch,
    began: Duration,
    lines: Arc<Mutex<Vec<(Duration, String)>>>,
}

impl Timeline {
    #[expect(clippy::disallowed_methods, reason = "logs have the time of day; it is read once, to lay them beside")]
    pub(crate) fn start() -> Self {
        let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { clock: Stopwatch::start(), began, lines: Arc::default() }
    }

    /// The one clock of a run.
    pub(crate) fn now(&self) -> Duration {
        self.clock.elapsed()
    }

    pub(crate) fn note(&self, text: impl Into<String>) {
        self.note_at(self.now(), text);
    }

    /// Something that was over when it was found.
    pub(crate) fn note_at(&self, at: Duration, text: impl Into<String>) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() < MOST_LINES {
            lines.push((at, text.into()));
        }
    }

    /// All of it, the first first: seconds since the start, the time of day (UTC), what happened.
    pub(crate) fn text(&self) -> String {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner).clone();
        lines.sort_by_key(|(at, _)| *at);
        let line =
            |(at, text): &(Duration, String)| format!("{:>9.3}  {}  {text}", at.as_secs_f64(), self.time_of_day(*at));
        lines.iter().map(line).collect::<Vec<_>>().join("\n") + "\n"
    }

    fn time_of_day(&self, at: Duration) -> String {
        let time = self.began + at;
        let seconds = time.as_secs() % 86_400;
        format!("{:02}:{:02}:{:02}.{:03}", seconds / 3600, seconds / 60 % 60, seconds % 60, time.subsec_millis())
    }
}

#[test]
fn lines_are_told_in_the_order_of_their_times() {
    let timeline = Timeline { began: Duration::from_secs(86_400 + 3_661), ..Timeline::start() };
    timeline.note_at(Duration::from_millis(2_500), "second");
    timeline.note_at(Duration::from_millis(20), "first");
    assert_eq!(timeline.text(), "    0.020  01:01:01.020  first\n    2.500  01:01:03.500  second\n");
}
