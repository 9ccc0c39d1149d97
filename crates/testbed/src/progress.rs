//! Progress: what a person in front of the terminal sees while something takes long.
//!
//! In: the name of a step. Out: one line on standard error when it ends, with its time, and a sign of life every few
//! seconds before that. Must not: print when nothing needs doing, or fail because nobody reads.

use std::io::Write as _;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::wait::Stopwatch;

/// The first sign of life comes after this time, the next ones at the same distance.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// A long step under way. Say [`Progress::done`] when it succeeded; a step that is dropped without it failed.
#[derive(Debug)]
pub struct Progress {
    step: String,
    watch: Stopwatch,
    // Dropping the sender ends the heartbeat.
    heart: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Progress {
    /// Begins a step, such as "unpacking 73 packages".
    pub fn start(step: impl Into<String>) -> Self {
        let step = step.into();
        let watch = Stopwatch::start();
        let (sender, receiver) = channel();
        let beat = {
            let step = step.clone();
            move || beat(&step, watch, &receiver)
        };
        // Without a thread the step goes on, only without its signs of life.
        let thread = std::thread::Builder::new().name("progress".into()).spawn(beat).ok();
        Self { step, watch, heart: thread.map(|thread| (sender, thread)) }
    }

    /// Ends the step and says how long it took.
    pub fn done(mut self) {
        self.stop();
        say(&format!("{} … {}", self.step, seconds(self.watch.elapsed())));
    }

    /// Whether the step is still to be told about, and ends its heartbeat.
    fn stop(&mut self) -> bool {
        self.heart.take().is_some_and(|(sender, thread)| {
            drop(sender);
            thread.join().is_ok()
        })
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.stop() {
            say(&format!("{} … failed after {}", self.step, seconds(self.watch.elapsed())));
        }
    }
}

/// One line of the testbed on standard error. It is written past the test harness's capture: whoever waits for a
/// download wants to see it before the test ends.
pub fn say(line: &str) {
    if cfg!(test) {
        // This crate's own tests have nobody waiting.
        eprintln!("testbed: {line}");
        return;
    }
    // A closed standard error is no reason to fail a test.
    let _ = writeln!(std::io::stderr().lock(), "testbed: {line}");
}

/// A time as people read it: tenths below ten seconds, whole seconds above.
pub fn seconds(time: Duration) -> String {
    if time < Duration::from_secs(10) {
        format!("{:.1} s", time.as_secs_f64())
    } else {
        format!("{} s", time.as_secs())
    }
}

/// Says that the step goes on, until the sender of `end` is dropped.
fn beat(step: &str, watch: Stopwatch, end: &Receiver<()>) {
    while let Err(RecvTimeoutError::Timeout) = end.recv_timeout(HEARTBEAT) {
        say(&format!("{step} … {} so far", seconds(watch.elapsed())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short_to_read() {
        let check = |millis, expect: &str| assert_eq!(seconds(Duration::from_millis(millis)), expect);
        check(0, "0.0 s");
        check(1_740, "1.7 s");
        check(12_900, "12 s");
        check(272_000, "272 s");
    }

    #[test]
    fn a_step_ends_its_heartbeat_whether_it_is_done_or_dropped() {
        let mut step = Progress::start("testing the progress line");
        assert!(step.stop(), "the first stop ends the thread");
        assert!(!step.stop(), "the second one has nothing to end");
        step.done();
    }
}
