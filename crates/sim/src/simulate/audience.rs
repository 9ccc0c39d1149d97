//! Who watches a run: every leader and every sidecar after each of its steps.
//!
//! In: the brains as they are. Out: nothing. Must not: change a run; it is not even asked.

use bloodraven_brain::fence::Sidecar;
use bloodraven_brain::group::{Group, Notice};
use bloodraven_brain::lease;
use bloodraven_brain::time::{Boot, Now};

/// See above.
pub trait Audience {
    /// The leader in that process has made a step, and this is what it said.
    fn leader(&mut self, operator: usize, now: Now, group: &Group, notices: &[Notice]) {
        let _ = (operator, now, group, notices);
    }

    /// The election has said something in that process.
    fn election(&mut self, operator: usize, now: Now, notice: &lease::Notice) {
        let _ = (operator, now, notice);
    }

    /// The sidecar of that pod, in that life of it, has made a step.
    fn sidecar(&mut self, pod: usize, life: u32, now: Boot, brain: &Sidecar) {
        let _ = (pod, life, now, brain);
    }
}
