//! The drain: a candidate applies what it received before anybody cuts its replication.
//!
//! In: what a candidate has executed and received, its applier, the time. Out: one [`Step`]. Must not: look at lag, or
//! at the link to the source. A dead source is the reason for being here; a lag of 0 can hide a stopped applier.

use super::Data;
use crate::rule::{Rule, holds, off};
use crate::time::{Boot, Millis};
use bloodraven_gtid::GtidSet;
use std::fmt;

/// How long a drain may take. A candidate that is caught up needs well under a second of it.
pub const BOUND: Millis = Millis::from_secs(30);

/// The drain of one candidate.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Drain {
    /// When it began.
    pub began: Boot,
    /// A stopped applier was started already.
    pub applier_started: bool,
    /// A set delay was lifted already.
    pub delay_lifted: bool,
}

/// What a candidate's replica status says.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Replica {
    /// The thread that applies.
    pub applier: Applier,
    /// The thread that receives.
    pub receiver: Receiver,
    /// The applier holds transactions back on purpose (`SOURCE_DELAY`).
    pub delayed: bool,
}

/// The thread that applies.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Applier {
    /// It runs.
    Running,
    /// It does not run, and says no error.
    Stopped,
    /// It stopped with an error.
    Failed {
        /// The server's error number.
        code: u32,
        /// The server's words.
        message: String,
    },
}

/// The thread that receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Receiver {
    /// Connected to the source.
    Running,
    /// Trying to reach it.
    Connecting,
    /// Off, with or without an error.
    Stopped,
}

/// What is to be done next.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// Everything received is executed.
    Done,
    /// Look again soon.
    KeepWaiting {
        /// What is still to be applied.
        unapplied: GtidSet,
        /// When the bound is reached.
        until: Boot,
    },
    /// Start the applier; asked for once.
    StartApplier,
    /// Stop the applier, set the delay to zero, start it; asked for once.
    LiftDelay,
    /// Prefer another candidate; else promote, after exactly these transactions are stored.
    GiveUp {
        /// Received and not applied.
        unapplied: GtidSet,
        /// Why.
        cause: Cause,
    },
}

/// Why a drain was given up.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The applier stopped with an error.
    ApplierFailed {
        /// The server's error number.
        code: u32,
        /// The server's words.
        message: String,
    },
    /// It took too long.
    BoundReached(Millis),
}

/// Whether a candidate's replication may be cut, which purges its relay logs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Cut {
    /// The receiver still runs: stop it, read the received set again.
    StopReceiver,
    /// More was received after all: drain again.
    DrainOn(GtidSet),
    /// The drain was given up: store exactly this set first.
    Store(GtidSet),
    /// Nothing is lost that is not stored.
    Ready,
}

impl Drain {
    /// A drain that begins now.
    pub const fn begin(now: Boot) -> Self {
        Self { began: now, applier_started: false, delay_lifted: false }
    }

    /// The next step. `bound` is [`BOUND`], counted from the beginning.
    pub fn step(&mut self, data: &Data, replica: &Replica, bound: Millis, now: Boot) -> Step {
        let unapplied = data.unapplied();
        if holds(Rule::DrainedIsApplied, unapplied.is_empty()) {
            return Step::Done;
        }
        if let Applier::Failed { code, message } = &replica.applier
            && !off(Rule::ApplierFailureEnds)
        {
            let cause = Cause::ApplierFailed { code: *code, message: message.clone() };
            return Step::GiveUp { unapplied, cause };
        }
        let until = self.began + bound;
        if now >= until && !off(Rule::DrainIsBounded) {
            return Step::GiveUp { unapplied, cause: Cause::BoundReached(bound) };
        }
        if replica.delayed && !self.delay_lifted {
            self.delay_lifted = true;
            return Step::LiftDelay;
        }
        if replica.applier == Applier::Stopped && holds(Rule::ApplierStartedOnce, !self.applier_started) {
            self.applier_started = true;
            return Step::StartApplier;
        }
        Step::KeepWaiting { unapplied, until }
    }
}

/// Whether replication may be cut now: asked after the receiver was stopped, and again between STOP REPLICA and
/// RESET REPLICA ALL. `stored` is what status says was given up; none while the drain counts as done.
pub fn may_cut(data: &Data, receiver: Receiver, stored: Option<&GtidSet>) -> Cut {
    if !holds(Rule::ReceiverStopsFirst, receiver == Receiver::Stopped) {
        return Cut::StopReceiver;
    }
    let unapplied = data.unapplied();
    match stored {
        None if unapplied.is_empty() => Cut::Ready,
        None => Cut::DrainOn(unapplied),
        Some(stored) if holds(Rule::LossIsStoredFirst, *stored == unapplied) => Cut::Ready,
        Some(_) => Cut::Store(unapplied),
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ApplierFailed { code, message } => write!(f, "the applier failed with error {code}: {message}"),
            Self::BoundReached(bound) => write!(f, "not drained within {} s", bound.0 / 1000),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGAN: Boot = Boot(100_000);

    fn set(text: &str) -> GtidSet {
        let uuid = "00000000-0000-0000-0000-00000000000a";
        if text.is_empty() { GtidSet::new() } else { format!("{uuid}:{text}").parse().expect("a set") }
    }

    fn data(executed: &str, received: &str) -> Data {
        Data { executed: set(executed), received: set(received), ..Data::default() }
    }

    fn failed() -> Applier {
        Applier::Failed { code: 1062, message: "duplicate entry".to_owned() }
    }

    fn replica(applier: Applier) -> Replica {
        Replica { applier, receiver: Receiver::Connecting, delayed: false }
    }

    fn name(step: &Step) -> &'static str {
        match step {
            Step::Done => "done",
            Step::KeepWaiting { .. } => "keep waiting",
            Step::StartApplier => "start applier",
            Step::LiftDelay => "lift delay",
            Step::GiveUp { cause: Cause::ApplierFailed { .. }, .. } => "give up: applier",
            Step::GiveUp { cause: Cause::BoundReached(_), .. } => "give up: bound",
        }
    }

    fn check(executed: &str, received: &str, applier: Applier, after_s: u64, expected: &str) {
        let mut drain = Drain::begin(BEGAN);
        let step = drain.step(&data(executed, received), &replica(applier), BOUND, BEGAN + Millis::from_secs(after_s));
        assert_eq!(name(&step), expected, "executed {executed}, received {received}, after {after_s} s");
    }

    #[test]
    fn p_02_done_when_received_is_a_subset_of_executed() {
        check("1-9", "1-9", Applier::Running, 0, "done");
        check("1-9", "5-9", Applier::Running, 0, "done");
        check("1-9", "5-10", Applier::Running, 0, "keep waiting");
        check("", "1", Applier::Running, 0, "keep waiting");
        // empty = nothing pending
        check("1-9", "", Applier::Running, 0, "done");
        check("", "", Applier::Stopped, 0, "done");
        // done is done, whatever the applier says and however late it is
        check("1-9", "5-9", Applier::Stopped, 0, "done");
        check("1-9", "5-9", failed(), 0, "done");
        check("1-9", "5-9", Applier::Running, 31, "done");
    }

    #[test]
    fn p_02_only_an_applier_error_or_the_bound_ends_it() {
        check("1-9", "5-10", failed(), 0, "give up: applier");
        check("1-9", "5-10", Applier::Running, 29, "keep waiting");
        check("1-9", "5-10", Applier::Running, 30, "give up: bound");
        check("1-9", "5-10", Applier::Stopped, 30, "give up: bound");
        check("1-9", "5-10", failed(), 30, "give up: applier");
    }

    #[test]
    fn p_02_io_error_never_ends_the_drain() {
        for receiver in [Receiver::Running, Receiver::Connecting, Receiver::Stopped] {
            let mut drain = Drain::begin(BEGAN);
            let replica = Replica { applier: Applier::Running, receiver, delayed: false };
            assert_eq!(name(&drain.step(&data("1-9", "5-10"), &replica, BOUND, BEGAN)), "keep waiting", "{receiver:?}");
            assert_eq!(name(&drain.step(&data("1-10", "5-10"), &replica, BOUND, BEGAN)), "done", "{receiver:?}");
        }
    }

    #[test]
    fn p_01_a_stopped_applier_is_started_once_and_a_delay_lifted_once() {
        let mut drain = Drain::begin(BEGAN);
        let data = data("1-9", "5-10");
        let replica = Replica { applier: Applier::Stopped, receiver: Receiver::Stopped, delayed: true };
        let steps: Vec<&str> =
            (0..5).map(|second| name(&drain.step(&data, &replica, BOUND, BEGAN + Millis::from_secs(second)))).collect();
        assert_eq!(steps, ["lift delay", "start applier", "keep waiting", "keep waiting", "keep waiting"]);
        assert_eq!(name(&drain.step(&data, &replica, BOUND, BEGAN + BOUND)), "give up: bound");
    }

    #[test]
    fn p_04_what_is_given_up_is_exactly_what_was_received_and_not_applied() {
        let mut drain = Drain::begin(BEGAN);
        let step = drain.step(&data("1-9:12", "5-15"), &replica(Applier::Running), BOUND, BEGAN + BOUND);
        assert_eq!(step, Step::GiveUp { unapplied: set("10-11:13-15"), cause: Cause::BoundReached(BOUND) });
        let step = drain.step(&data("1-9", "5-15"), &replica(failed()), BOUND, BEGAN);
        let cause = Cause::ApplierFailed { code: 1062, message: "duplicate entry".to_owned() };
        assert_eq!(cause.to_string(), "the applier failed with error 1062: duplicate entry");
        assert_eq!(step, Step::GiveUp { unapplied: set("10-15"), cause });
    }

    #[test]
    fn p_03_the_receiver_is_stopped_before_the_final_received_set_is_read() {
        let rows = [
            // executed, received, receiver, stored as given up, verdict
            ("1-9", "5-9", Receiver::Running, None, Cut::StopReceiver),
            ("1-9", "5-9", Receiver::Connecting, None, Cut::StopReceiver),
            ("1-9", "5-9", Receiver::Stopped, None, Cut::Ready),
            ("1-9", "", Receiver::Stopped, None, Cut::Ready),
            // the link returned in the middle of the drain
            ("1-9", "5-11", Receiver::Stopped, None, Cut::DrainOn(set("10-11"))),
            // given up: exactly what is lost is stored before relay logs are purged
            ("1-9", "5-11", Receiver::Stopped, Some("10-11"), Cut::Ready),
            ("1-9", "5-12", Receiver::Stopped, Some("10-11"), Cut::Store(set("10-12"))),
            ("1-10", "5-11", Receiver::Stopped, Some("10-11"), Cut::Store(set("11"))),
            ("1-11", "5-11", Receiver::Stopped, Some("10-11"), Cut::Store(set(""))),
            ("1-9", "5-11", Receiver::Running, Some("10-11"), Cut::StopReceiver),
        ];
        for (executed, received, receiver, stored, expected) in rows {
            let stored = stored.map(set);
            let cut = may_cut(&data(executed, received), receiver, stored.as_ref());
            assert_eq!(cut, expected, "executed {executed}, received {received}, {receiver:?}, stored {stored:?}");
        }
    }
}
